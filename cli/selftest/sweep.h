/* sweep.h - the convolutions and average pools that adjoint selftest tries, numbered. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "adjoint.h"

typedef enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS } sweep_direction;

/* What a case is made of: one value of each property. */
typedef enum {
    DIRECTION,
    DTYPE,
    VARIANT,
    PADDING,
    KERNEL,
    STRIDE,
    DILATION,
    CHANNELS,
    SIZE,
    N_PROPERTY
} sweep_property;

/* A part of all cases: bit i of a property's mask lets its i-th value in. */
typedef struct {
    unsigned mask[N_PROPERTY];
} sweep;

typedef struct {
    sweep_direction direction;
    adj_dtype dtype;
    int depthwise;
    int pool; /* avg_pool, or its gradient: no filter, one group a channel */
    int64_t n, h, w, k, stride, dilation, ic, oc, groups; /* ic, oc: all groups' */
    adj_conv conv;
} sweep_case;

enum { SWEEP_TEXT = 96 };

sweep sweep_all(void);
/* Leaves of the property those values that the comma-separated list names ("1,3"). ADJ_EARG, and
 * what there is: one is not there. */
adj_status sweep_keep(sweep *s, sweep_property property, const char *list, adj_error *error);
/* The same for an op's name: its direction, and depthwise or not. */
adj_status sweep_keep_op(sweep *s, const char *op, adj_error *error);
/* The sweep as a word, and back; 0: it is none. */
void sweep_write(const sweep *s, char text[SWEEP_TEXT]);
int sweep_read(sweep *s, const char *text);

int64_t sweep_size(const sweep *s);
/* The i-th of sweep_size in an order that looks random and is always the same: any first part is a
 * sample of all. */
sweep_case sweep_at(const sweep *s, int64_t i);
/* Adds the case's node to the graph; NULL with the graph's error, or without one where there is no
 * such case (a pool's filter gradient). */
adj_node *sweep_node(adj_graph *g, const sweep_case *c);
/* "backward_weights f32 jit:avx2 groups=1,gic=10..14,...": what a row of a quarantine file says of
 * a case that went wrong. */
void sweep_row(const sweep_case *c, const char *implementation, char *text, size_t size);

#endif
