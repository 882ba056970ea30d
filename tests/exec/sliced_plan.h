/* sliced_plan.h - plans that run groups of nodes in slices of the batch (exec/slices/), for their
 * tests: of a model's training step, and of a node of a fixture. */
#ifndef SLICED_PLAN_H
#define SLICED_PLAN_H

#include "adjoint_ext.h"
#include "tests/harness.h"

/* A suite's .init: which groups are taken is looked at, whatever all tests are run with. */
void plan_as_usual(void);

int sliced_steps(const adj_exec *e);

/* ---- a training step with batch norms ---- */

typedef struct {
    adj_graph *g;
    adj_node *labels, *loss, *gradient; /* of the first filter */
    adj_updates *updates;
} training_net;

training_net new_net(const char *model, int64_t batch, adj_format format);
/* A plan of it, with its inputs set. */
adj_exec *plan_net(training_net *n, adj_exec_opts o);
/* The loss, then the gradient, after so many steps; malloc'ed. */
float *results_after(adj_exec *e, const training_net *n, int steps, int64_t *count);

/* ---- a node of a fixture ---- */

enum { N = 6, SIDE = 5, C = 4, MAX_VALUES = 4096 };
static const adj_conv same = {.padding = ADJ_SAME};

/* y's values, if they are wanted; returns how many steps of the plan run in slices. */
int planned_values(fixture *f, adj_node *y, adj_exec_opts o, double *v);
/* The same on two threads. */
int values_of(fixture *f, adj_node *y, adj_exec_opts o, double v[MAX_VALUES]);

#endif
