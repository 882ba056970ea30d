/* compare_graph.h - what adjoint compare compares: a training step of a model. */
#ifndef CLI_COMPARE_GRAPH_H
#define CLI_COMPARE_GRAPH_H

#include "adjoint_check.h"
#include "adjoint_nn.h"

typedef struct {
    const char *model;
    int64_t batch, height, width; /* 0: the model's */
} compared_opts;

typedef struct {
    adj_graph *graph;
    adj_node *loss, *labels;
    adj_updates *updates; /* with momentum: gradients, new velocities and parameters */
    int32_t *label;
    int usage; /* the failure is the caller's */
    char message[512];
} compared;

/* c is to be freed in every case; on failure its message says why. */
adj_status compared_open(compared *c, const compared_opts *o);
void compared_close(compared *c);

#endif
