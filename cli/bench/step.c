/* step.c - whole steps of a model as a user's program runs them: adj_set of the labels, adj_run,
 * adj_get of the loss (for inference, of the logits); the images are written in place. A profile
 * has the median time of each step of the plan, so that its rows add up to an undisturbed step. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/command.h"
#include "exec/internal.h"

enum { MAX_PROFILED = 400 };

adj_status make_exec(const bench_opts *o, adj_graph *g, adj_node *fetch, const adj_updates *updates,
                     adj_exec **e, adj_error *error)
{
    const adj_exec_internal internal = {.profile = o->timed_steps};
    const adj_exec_debug debug = {.impl = o->impl, .internal = &internal};
    const adj_exec_opts options = {.n_fetch = 1,
                                   .fetch = &fetch,
                                   .updates = updates,
                                   .backend = o->backend,
                                   .backends = o->backends,
                                   .threads = (int)o->threads,
                                   .math = o->math_mode,
                                   .precision = o->precision,
                                   .loss_scale = 1, /* the optimizer's, as in train */
                                   .tune = (int)o->tune,
                                   .debug = &debug};
    adj_status status = adj_graph_status(g);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%s", adj_graph_message(g));
    status = adj_exec_new(g, &options, e);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%s", adj_exec_message(*e));
    return ADJ_OK;
}

/* ---- what is computed ---- */

double bench_flop(const adj_node *n)
{
    return n->op->flags & (ADJ_OP_LEAF | ADJ_OP_VIEW) ? 0 : flop_of(n);
}

char *bench_needed(const adj_graph *g, int n_root, adj_node *const root[],
                   const adj_updates *updates)
{
    int size = adj_graph_node_count(g);
    char *needed = allocate(size, 1);
    for (int i = 0; i < n_root; i++)
        needed[adj_node_id(root[i])] = 1;
    for (int i = 0; updates != NULL && i < adj_updates_count(updates); i++)
        needed[adj_node_id(adj_updates_next_at(updates, i))] = 1;
    for (int id = size - 1; id >= 0; id--) {
        const adj_node *n = adj_graph_node_at(g, id);
        for (int k = 0; needed[id] && k < n->n_in; k++)
            needed[n->in[k]->id] = 1;
    }
    return needed;
}

/* Builds the graph, up to the logits for inference, else with loss, gradients and updates. */
adj_status bench_net_build(bench_net *n, const bench_opts *o)
{
    *n = (bench_net){0};
    const adj_model_opts options = {.batch = o->batch, .training = !o->infer, .dtype = o->dtype};
    const adj_loss_scale usual = {0};
    adj_optimizer_opts optimizer = model_momentum;
    optimizer.loss_scale = o->precision == ADJ_PRECISION_F16 ? &usual : NULL;
    adj_status status =
        model_build(&n->m, adj_graph_new(), o->model, &options, o->infer ? NULL : &optimizer);
    if (status == ADJ_OK && o->shared != NULL) {
        n->m.updates = adj_data_parallel(n->m.updates, o->shared->size, o->shared->rank, NULL);
        status = adj_graph_status(n->m.graph);
        if (status != ADJ_OK)
            adj_error_set(&n->m.error, status, "%s", adj_graph_message(n->m.graph));
    }
    n->fetch = o->infer ? n->m.logits : n->m.loss;
    return status;
}

/* Draws random images once, for all steps. */
static adj_status draw(bench_net *n)
{
    const adj_type t = adj_node_type(n->m.images);
    void *x;
    const adj_status status = adj_set_in_place(n->exec, n->m.images, &x);
    if (status != ADJ_OK)
        return adj_error_set(&n->m.error, status, "%s", adj_exec_message(n->exec));
    adj_draw(t.dtype, x, adj_shape_elems(t.shape), (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1}, 1,
             0);
    return ADJ_OK;
}

adj_status bench_net_plan(bench_net *n, const bench_opts *o)
{
    adj_exec_free(n->exec);
    n->exec = NULL;
    const float rate = 0.01F;
    adj_status status = make_exec(o, n->m.graph, n->fetch, n->m.updates, &n->exec, &n->m.error);
    if (status == ADJ_OK && n->m.lr != NULL)
        status = adj_set(n->exec, n->m.lr, &rate, sizeof rate);
    return status;
}

adj_status bench_net_open(bench_net *n, const bench_opts *o)
{
    double start = seconds_now();
    adj_status status = bench_net_build(n, o);
    if (status != ADJ_OK)
        return status;
    status = bench_net_plan(n, o);
    n->plan_seconds = seconds_now() - start;
    if (status == ADJ_OK)
        status = draw(n);
    n->y_bytes = adj_type_bytes(adj_node_type(n->fetch));
    n->y = allocate((int64_t)n->y_bytes, 1);
    n->label = model_labels(&n->m);
    char *needed = bench_needed(n->m.graph, 1, &n->fetch, n->m.updates);
    for (int id = 0; id < adj_graph_node_count(n->m.graph); id++)
        n->flop += needed[id] ? bench_flop(adj_graph_node_at(n->m.graph, id)) : 0;
    free(needed);
    return status;
}

void bench_net_close(bench_net *n)
{
    free(n->y);
    free(n->label);
    adj_exec_free(n->exec);
    adj_graph_free(n->m.graph);
}

/* ---- steps ---- */

static adj_status run_step(bench_net *n)
{
    adj_status status = ADJ_OK;
    if (n->m.lr != NULL)
        status = adj_set(n->exec, n->m.labels, n->label, adj_type_bytes(n->m.labels->type));
    if (status == ADJ_OK)
        status = adj_run(n->exec);
    if (status == ADJ_OK)
        status = adj_get(n->exec, n->fetch, n->y, n->y_bytes);
    if (status != ADJ_OK)
        return adj_error_set(&n->m.error, status, "%s", adj_exec_message(n->exec));
    return ADJ_OK;
}

static size_t peak_rss(void)
{
    struct rusage r;
    return getrusage(RUSAGE_SELF, &r) == 0 ? (size_t)r.ru_maxrss * 1024 : 0;
}

/* Adds the times of the plan's steps in the last run; returns 0 if there is no room for more. */
static int add_steps(const bench_net *n, samples *steps)
{
    int added = 1;
    for (int i = 0; i < adj_exec_step_count(n->exec); i++)
        added &= samples_add(&steps[i], adj_exec_step_at(n->exec, i).seconds);
    return added && steps->n < MAX_PROFILED;
}

adj_status bench_net_time(bench_net *n, const bench_opts *o, bench_step_time *t, samples *steps)
{
    samples s = {0};
    adj_status status = ADJ_OK;
    for (int i = 0; i < BENCH_WARM_UP && status == ADJ_OK; i++)
        status = run_step(n);
    double end = seconds_now() + o->seconds;
    while (status == ADJ_OK) {
        double start = seconds_now();
        status = run_step(n);
        double stop = seconds_now();
        if (status == ADJ_OK &&
            (!samples_add(&s, stop - start) || (steps != NULL && !add_steps(n, steps)) ||
             (o->runs > 0 ? s.n >= o->runs : stop >= end)))
            break;
    }
    *t = (bench_step_time){.time = samples_spread(&s), .loss = NAN, .peak_rss = peak_rss()};
    if (n->m.lr != NULL)
        t->loss = adj_load(adj_node_type(n->m.loss).dtype, n->y, 0);
    samples_free(&s);
    return status;
}

/* ---- the profile ---- */

/* True if the step is bound by arithmetic: its rate is in GFLOP/s, that of others in GB/s. */
static int counts_flop(const adj_step_info *s) { return s->flop > 4 * (double)s->bytes; }

static double rate_of(const adj_step_info *s)
{
    double amount = counts_flop(s) ? s->flop : (double)s->bytes;
    return s->seconds > 0 ? 1e-9 * amount / s->seconds : 0;
}

adj_status bench_profile_run(bench_profile *p, bench_net *n, const bench_opts *o)
{
    bench_opts timed = *o;
    bench_step_time whole;
    *p = (bench_profile){0};
    timed.timed_steps = 1;
    adj_status status = bench_net_plan(n, &timed);
    if (status == ADJ_OK)
        status = draw(n);
    if (status != ADJ_OK)
        return status;
    p->n = adj_exec_step_count(n->exec);
    p->row = allocate(p->n, sizeof *p->row);
    samples *steps = allocate(p->n, sizeof *steps);
    status = bench_net_time(n, o, &whole, steps);
    for (int i = 0; i < p->n && status == ADJ_OK; i++) {
        p->row[i] = adj_exec_step_at(n->exec, i);
        p->row[i].seconds = samples_spread(&steps[i]).median;
        p->plan_seconds += p->row[i].seconds;
        p->runs = whole.time.n;
        p->step_seconds = whole.time.median;
    }
    for (int i = 0; i < p->n; i++)
        samples_free(&steps[i]);
    free(steps);
    return status;
}

void bench_profile_free(bench_profile *p)
{
    free(p->row);
    *p = (bench_profile){0};
}

static void print_line(const bench_profile *p, const adj_step_info *s, const char *name)
{
    put_text(stdout, "%-36s %10.1f %9.3f %9.4g %-7s %5.1f %%  %s%s%s\n", name, 1e6 * s->seconds,
             1e-6 * (double)s->bytes, rate_of(s), counts_flop(s) ? "GFLOP/s" : "GB/s",
             p->plan_seconds > 0 ? 100 * s->seconds / p->plan_seconds : 0, s->backend,
             s->impl[0] != '\0' ? " " : "", s->impl);
}

static void print_steps(const bench_profile *p)
{
    for (int i = 0; i < p->n; i++) {
        const adj_step_info *s = &p->row[i];
        char name[160];
        int used = s->node != NULL
                       ? snprintf(name, sizeof name, "%%%d %s", adj_node_id(s->node), s->op)
                       : snprintf(name, sizeof name, "- %s", s->op);
        if (s->n_node > 1)
            used += snprintf(name + used, sizeof name - (size_t)used, " +%d", s->n_node - 1);
        if (s->name[0] != '\0')
            snprintf(name + used, sizeof name - (size_t)used, " \"%.90s\"", s->name);
        print_line(p, s, name);
    }
}

static int by_seconds(const void *a, const void *b)
{
    double x = ((const adj_step_info *)a)->seconds, y = ((const adj_step_info *)b)->seconds;
    return (x < y) - (x > y);
}

/* The rows of equal op and implementation added up, the slowest first. */
static void print_ops(const bench_profile *p)
{
    adj_step_info *sum = allocate(p->n, sizeof *sum);
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        const adj_step_info *s = &p->row[i];
        int k = 0;
        while (k < n && (strcmp(sum[k].op, s->op) != 0 || strcmp(sum[k].impl, s->impl) != 0))
            k++;
        if (k == n) {
            sum[n++] = *s;
            sum[k].n_node = 1;
            continue;
        }
        sum[k].seconds += s->seconds;
        sum[k].flop += s->flop;
        sum[k].bytes += s->bytes;
        sum[k].n_node++;
    }
    if (n > 0)
        qsort(sum, (size_t)n, sizeof *sum, by_seconds);
    for (int k = 0; k < n; k++) {
        char name[96];
        snprintf(name, sizeof name, "%3d %s", sum[k].n_node, sum[k].op);
        print_line(p, &sum[k], name);
    }
    free(sum);
}

static void print_head(const char *title)
{
    printf("%-36s %10s %9s %17s %7s  implementation\n", title, "us", "MB", "rate", "share");
}

void bench_profile_print(const bench_profile *p)
{
    printf("\nmedians of %d steps\n", p->runs);
    print_head("step");
    print_steps(p);
    putchar('\n');
    print_head("steps by op");
    print_ops(p);
    printf("%.1f us in the plan's steps; %.1f us a training step with input, output and timing\n",
           1e6 * p->plan_seconds, 1e6 * p->step_seconds);
}

json_t *bench_profile_json(const bench_profile *p)
{
    json_t *rows = json_array();
    int failed = rows == NULL;
    for (int i = 0; i < p->n && !failed; i++) {
        const adj_step_info *s = &p->row[i];
        failed = json_array_append_new(
            rows, json_pack("{s:s, s:s, s:i, s:i, s:s, s:s, s:f, s:f, s:I, s:f, s:s}", "op", s->op,
                            "name", s->name, "node", s->node != NULL ? adj_node_id(s->node) : -1,
                            "nodes", s->n_node, "backend", s->backend, "implementation", s->impl,
                            "us", 1e6 * s->seconds, "flop", s->flop, "bytes", (json_int_t)s->bytes,
                            "rate", rate_of(s), "unit", counts_flop(s) ? "GFLOP/s" : "GB/s"));
    }
    return rows;
}
