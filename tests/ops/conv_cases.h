/* conv_cases.h - what test_conv2d.c and test_depthwise_conv2d.c do alike: each row of a table in
 * both formats, all dtypes and on every backend, against the slow reference, as adjoints of each
 * other, and against finite differences. */
#ifndef CONV_CASES_H
#define CONV_CASES_H

#include "harness.h"
#include "oracle.h"

/* The triple under test. */
typedef struct {
    adj_node *(*y)(adj_node *x, adj_node *w, const adj_conv *a);
    adj_node *(*dx)(adj_shape input_sizes, adj_node *w, adj_node *dy, const adj_conv *a);
    adj_node *(*dw)(adj_node *x, adj_shape filter_sizes, adj_node *dy, const adj_conv *a);
} conv_triple;

void expect_reference(const conv_triple *triple, oracle_conv row);
/* The same for rows drawn from a seed: any mix of sizes, strides, dilations, pads and groups. */
void expect_reference_random(const conv_triple *triple, int depthwise, int rows);
/* <dy, y(x, w)> == <dx(w, dy), x> == <dw(x, dy), w> on integers, exactly. */
void expect_adjoint(const conv_triple *triple, oracle_conv row);
/* Finite differences of all three: those of the adjoints are the second derivatives. */
void expect_derivatives(const conv_triple *triple, oracle_conv row);
/* The same bits for 1, 2 and 3 threads. */
void expect_thread_independence(const conv_triple *triple, oracle_conv row, adj_dtype dtype);

#endif
