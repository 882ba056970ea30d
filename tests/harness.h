/* harness.h - sets values, evaluates a node on a backend, compares with literal numbers. */
#ifndef HARNESS_H
#define HARNESS_H

#include "adjoint.h"
#include "tests/plan.h"

enum { FIXTURE_INPUTS = 16 };

/* A graph with inputs whose values are known. */
typedef struct {
    adj_graph *g;
    int n_in;
    adj_node *in[FIXTURE_INPUTS];
    double *value[FIXTURE_INPUTS];
} fixture;

fixture fixture_new(void);
void fixture_free(fixture *f);
/* Frees f and makes it a new fixture. */
void fixture_renew(fixture *f);

/* Inputs named "in0", "in1", ...: with the values listed; uniform in [lo, hi); integers from lo to
 * hi. Values are rounded to dtype when they are given, so that an oracle reading f->value sees what
 * the kernel sees. */
adj_node *given(fixture *f, adj_dtype dtype, adj_shape shape, const double *values);
adj_node *given_random(fixture *f, adj_dtype dtype, adj_shape shape, double lo, double hi);
adj_node *given_integers(fixture *f, adj_dtype dtype, adj_shape shape, int lo, int hi);

/* Sets a leaf to numbers, which are converted to its dtype. */
void set_values(adj_exec *e, const adj_node *leaf, const double *values);
/* Sets all inputs of a plan; y's elements after a run, malloc'ed, read into memory prefilled with
 * NaN. Fail the running test when the library does. */
void fixture_set(const fixture *f, adj_exec *e);
double *fixture_get(adj_exec *e, const adj_node *y);

/* Returns a plan with these options, whose inputs are set and which has run; fails the running test
 * when the library does. */
adj_exec *fixture_run(const fixture *f, const adj_exec_opts *o);

/* y's elements on a backend ("naive", "onednn"), malloc'ed; fails the running test when the library
 * does. Results are read into memory prefilled with NaN. */
double *evaluate(fixture *f, adj_node *y, const char *backend);
/* Evaluates y with this number of threads; 0: the default. */
double *evaluate_with(fixture *f, adj_node *y, const char *backend, int threads);
/* Evaluates y on direct, whose plan begins with an implementation of this name. */
double *evaluate_by(fixture *f, adj_node *y, const char *impl, int threads);

/* Fails the running test unless |got - want| <= atol + rtol * |want| everywhere (two NaNs are
 * equal); names the worst element. */
void expect_close(const double *got, const double *want, int64_t n, double rtol, double atol,
                  const char *label);
/* Expects the same bits (any NaN is any NaN). */
void expect_same_bits(const double *got, const double *want, int64_t n, const char *label);
/* Returns v as the type stores it. */
double as_stored(adj_dtype dtype, double v);
/* evaluate(y) against literal numbers. */
void expect_values(fixture *f, adj_node *y, const char *backend, const double *want, double rtol,
                   double atol);
/* y is equal to literal numbers on naive. */
void expect_exact(fixture *f, adj_node *y, const double *want);
/* Returns adj_grad's gradient of y with respect to x; fails the running test when the library does.
 */
adj_node *gradient_of(adj_node *y, adj_node *dy, adj_node *x);
/* adj_grad of y (with a random dy) with respect to every float input against central differences in
 * float64, on naive; the graph must be all f64. step: of the difference; linear functions may take
 * 0.5. */
void expect_gradient(fixture *f, adj_node *y, double step, double rtol, double atol);
/* The message contains every one of the words, which are separated by |. */
void expect_words(const char *message, const char *words);
/* The graph has failed with this status and a message that contains the words. */
void expect_error(const adj_graph *g, adj_status status, const char *words);
/* A call in f's graph was refused: its result y is NULL, and the graph has failed with this status
 * and the words, formatted as by printf. f is new again afterwards, for the next call. */
void expect_refusal(fixture *f, const adj_node *y, adj_status status, const char *words, ...)
    __attribute__((format(printf, 4, 5)));

#endif
