/* sweep.h - the convolutions that adjoint selftest tries, numbered. */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "adjoint.h"

typedef enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS } sweep_direction;

typedef struct {
    sweep_direction direction;
    adj_dtype dtype;
    int depthwise;
    int64_t n, h, w, k, stride, dilation, ic, oc, groups; /* ic, oc: all groups' */
    adj_conv conv;
} sweep_case;

int64_t sweep_size(void);
/* The i-th in an order that spreads: any first part of it tries something of everything. */
sweep_case sweep_at(int64_t i);
/* Adds the case's node to the graph; NULL with the graph's error. */
adj_node *sweep_node(adj_graph *g, const sweep_case *c);
/* "backward_weights f32" and "ic=12,oc=16,...", as a quarantine file has them. */
void sweep_text(const sweep_case *c, const char *implementation, char *text, size_t size);

#endif
