/* plan.h - a training step's plan by layers and by kernels, measured, for the report. */
#ifndef CLI_TRAIN_PLAN_H
#define CLI_TRAIN_PLAN_H

#include "adjoint_ext.h"
#include "report.h"

/* Which layer each node of a graph belongs to: a layer is the trainable parameters of one prefix
 * ("conv1" of "conv1/w" and "conv1/b"), what is computed of them, and what follows without
 * parameters of its own. A gradient belongs to the layer of what it is the gradient of. */
typedef struct {
    int n;                  /* layers, in the order of their first parameters */
    const adj_node **first; /* by layer: its first parameter */
    int *of;                /* by the node's id: its layer; negative: none */
    char *needed;           /* by id: the loss or an update depends on it */
    char *weight;           /* by id: made of parameters, states and constants alone */
} layer_map;

/* Of what the loss and the graph's updates depend on. 0 on success; not when out of memory. To be
 * freed in every case. */
int layer_map_make(layer_map *m, const adj_graph *g, const adj_node *loss);
void layer_map_free(layer_map *m);
/* The parameter's name up to its last '/', cut to size. */
void layer_name(const adj_node *param, size_t size, char name[]);

/* Fills p (all zero before but for batch) from runs of e, an executor of the loss's graph with
 * debug.profile whose inputs are set: as many as fit into so many seconds, at most max_runs, and
 * one before them. Parameters change as in training. Texts are p's own. */
adj_status plan_measure(report_plan *p, const adj_node *loss, adj_exec *e, int max_runs,
                        double seconds);
void plan_free(report_plan *p);

#endif
