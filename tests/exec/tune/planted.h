/* planted.h - a backend with a slow and a fast candidate for relu, and a plan of one relu. The slow
 * one takes its time from pass_ms, of tests/virtual_clock.h or the test's own, which is included
 * before. */
#ifndef TESTS_TUNE_PLANTED_H
#define TESTS_TUNE_PLANTED_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "tests/plan.h"
#include "tests/reference.h"
#include "tune_folder.h"

static int runs;                      /* runs of planted kernels */
static void (*before_next_run)(void); /* called once before a run; NULL: no call */

static const char *const names[] = {"slow:1", "fast:1"};
static int in_other_order; /* the fast one is listed first */

typedef struct {
    void *naive;
    int candidate;
} planted;

static adj_status plant(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    static planted states[] = {{NULL, 0}, {NULL, 1}};
    if (strcmp(g->node[0]->op->name, "relu") != 0 || candidate > 1)
        return ADJ_ENOKERNEL;
    if (in_other_order)
        candidate = 1 - candidate;
    adj_status status = naive_backend()->kernels[0]->prepare(backend, g, 0, p);
    states[candidate].naive = p->state;
    p->state = &states[candidate];
    p->seconds = 1e-9;
    strcpy(p->impl, names[candidate]);
    return status;
}

static adj_status run(const adj_call *c)
{
    const planted *s = c->state;
    adj_call inner = *c;
    void (*before)(void) = before_next_run;
    before_next_run = NULL;
    if (before != NULL)
        before();
    runs++;
    inner.state = s->naive;
    if (s->candidate == 0)
        pass_ms(0.3);
    return naive_backend()->kernels[0]->run(&inner);
}

static const char *version = "1.0.0 none";
static void describe(char *text, size_t size) { snprintf(text, size, "%s", version); }

static const adj_kernel kernel = {.name = "two", .prepare = plant, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend backend = {.name = "planted", .kernels = kernels, .describe = describe};

/* ---- a plan of one relu ---- */

typedef struct {
    char impl[64], note[512];
    char selection[2048];
    int timed, cached, runs;
    double tuned;
} outcome;

static inline outcome plan(adj_exec_opts o, int64_t n)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {n}}), *y = adj_relu(x);
    outcome out = {.runs = runs};
    o.n_fetch = 1;
    o.fetch = &y;
    o.backends = beside_naive(backend);
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    adj_step_info s = adj_exec_step_at(e, 0);
    snprintf(out.impl, sizeof out.impl, "%s", s.impl);
    snprintf(out.note, sizeof out.note, "%s", adj_exec_warning(e));
    snprintf(out.selection, sizeof out.selection, "%s", adj_exec_selection(e));
    out.tuned = s.tuned_seconds;
    out.timed = adj_exec_details(e).timed;
    out.cached = adj_exec_details(e).cached;
    out.runs = runs - out.runs;
    cr_assert_null(strchr(out.note, '\n'));
    scoped(release) float *v = calloc((size_t)n, sizeof *v);
    v[0] = -3;
    v[n - 1] = 4;
    cr_assert_eq(adj_set(e, x, v, (size_t)n * sizeof *v), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_get(e, y, v, (size_t)n * sizeof *v), ADJ_OK);
    cr_assert(v[0] == 0 && v[n - 1] == 4);
    return out;
}

#endif
