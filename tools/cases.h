/* cases.h - the convolutions and average pools that the sweep of oneDNN tries, numbered. */
#ifndef TOOLS_CASES_H
#define TOOLS_CASES_H

#include "adjoint.h"

typedef enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS } sweep_direction;

/* Properties of a case; a case has one value of each. */
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

/* A subset of all cases: bit i of a property's mask selects its i-th value. */
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

sweep sweep_all(void);
/* Restricts a property to the values in the comma-separated list ("1,3"). ADJ_EARG, with the valid
 * values, for an unknown one. */
adj_status sweep_keep(sweep *s, sweep_property property, const char *list, adj_error *error);
/* Restricts direction and kind (depthwise or not) to those of an op's name. */
adj_status sweep_keep_op(sweep *s, const char *op, adj_error *error);

int64_t sweep_size(const sweep *s);
/* Returns the i-th of sweep_size cases in a fixed pseudo-random order: any first cases are a sample
 * of all. */
sweep_case sweep_at(const sweep *s, int64_t i);
/* Adds the case's node to the graph; NULL with the graph's error, or without one where there is no
 * such case (a pool's filter gradient). */
adj_node *sweep_node(adj_graph *g, const sweep_case *c);
/* "backward_weights f32 in=2,36,36,12 out=16 groups=1 kernel=3 stride=1 dilation=1 VALID". */
void sweep_text(const sweep_case *c, char *text, size_t size);

#endif
