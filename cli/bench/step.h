/* step.h - whole steps of a model. */
#ifndef CLI_BENCH_STEP_H
#define CLI_BENCH_STEP_H

#include "bench.h"
#include "cli/model.h"
#include "rows.h"

enum { BENCH_WARM_UP = 3 }; /* warm-up steps, not timed */

typedef struct {
    model_graph m; /* updates NULL: inference */
    adj_exec *exec;
    adj_node *fetch; /* the loss, or the logits */
    void *y;         /* value of the fetched loss or logits */
    size_t y_bytes;
    int32_t *label;
    double plan_seconds, flop; /* seconds until planned; operations */
    int usage;                 /* the failure is the caller's */
} bench_net;

typedef struct {
    spread time;
    double loss; /* the last; NAN: inference */
    size_t peak_rss;
} bench_step_time;

/* The caller closes n in every case; on failure its error has the reason. */
adj_status bench_net_open(bench_net *n, const bench_opts *o);
void bench_net_close(bench_net *n);
/* Builds the graph without a plan. */
adj_status bench_net_build(bench_net *n, const bench_opts *o);
/* Plans again: replaces n->exec, without images. */
adj_status bench_net_plan(bench_net *n, const bench_opts *o);
/* Draws random images. */
adj_status bench_net_draw(bench_net *n);
/* Runs steps for o->seconds, after warm-up steps. steps: samples for each step of a plan that times
 * them, which end the run when they are full; NULL: none. */
adj_status bench_net_time(bench_net *n, const bench_opts *o, bench_step_time *t, samples *steps);
/* Plans the fetch and the updates with the options. The caller frees *e in every case. */
adj_status make_exec(const bench_opts *o, adj_graph *g, adj_node *fetch, const adj_updates *updates,
                     adj_exec **e, adj_error *error);
/* Returns an array indexed by node id, 1 for what the roots need, to be freed; NULL when out of
 * memory. */
char *bench_needed(const adj_graph *g, int n_root, adj_node *const root[],
                   const adj_updates *updates);
double bench_flop(const adj_node *n);

#endif
