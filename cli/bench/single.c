/* single.c - adjoint bench --op: times the kernels of one op and its gradients; --raw: times every
 * convolution of a model's plan alone: the planned kernel and the fastest candidate. The sum of the
 * fastest is a lower bound of the step; planned time over fastest time is the plan's regret. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "check/inspect.h"
#include "cli/command.h"
#include "cli/op/graph.h"
#include "exec/report.h"
#include "kernel.h"
#include "ops/attr_lists.h"
#include "step.h"

/* ---- --op: one node in a graph of its own ---- */

static adj_type channels_last(adj_type t)
{
    const int64_t *d = t.shape.dim;
    return (adj_type){t.dtype, {4, {d[0], d[2], d[3], d[1]}}};
}

/* Times NHWC kernels for images in NCHW, as the executor computes those in NHWC
 * (graph/passes/channels_last.c). */
static adj_node *alone(adj_graph *g, const adj_node *n)
{
    adj_node *in[MAX_OPERANDS] = {NULL};
    size_t size = adj_attr_size(n->op);
    void *attrs = adj_graph_alloc(g, size);
    if (n->n_in > MAX_OPERANDS || attrs == NULL)
        return NULL;
    if (size > 0)
        memcpy(attrs, n->attrs, size);
    const unsigned images = adj_set_format(n, attrs, ADJ_NHWC) ? n->op->images : 0;
    for (int k = 0; k < n->n_in; k++) {
        char name[16];
        const int same = adj_operand_position(n, n->in[k]); /* equal operands share one leaf */
        snprintf(name, sizeof name, "in%d", k);
        adj_type t = images >> k & 1 ? channels_last(n->in[k]->type) : n->in[k]->type;
        in[k] = same < k ? in[same] : adj_input(g, name, t.dtype, t.shape);
    }
    return adj_node_new(g, n->op, n->n_in, in, attrs);
}

/* Sets *choice to the kernel that an executor of the node alone selects. Returns CONTINUE or the
 * exit status. */
static int ask_plan(const bench_opts *o, adj_graph *g, adj_node *n, planned_choice *p)
{
    adj_error error;
    adj_exec *e = NULL;
    bench_opts one = *o;
    if (o->all)
        one.backend = NULL; /* --backend selects candidates, not the plan's backends */
    *p = (planned_choice){.count = 1};
    adj_status status = make_exec(&one, g, n, NULL, &e, &error);
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        adj_step_info s = adj_exec_step_at(e, i);
        if (strcmp(s.op, n->op->name) == 0) {
            snprintf(p->backend, sizeof p->backend, "%s", s.backend);
            snprintf(p->impl, sizeof p->impl, "%s", s.impl);
        }
    }
    adj_exec_free(e);
    if (status == ADJ_OK)
        return CONTINUE;
    return complain("bench", status == ADJ_EARG ? EXIT_USAGE : EXIT_FAILED, "%s", error.message);
}

/* Adds rows for the node of the caller's graph. Returns CONTINUE or the exit status. */
static int add_node(bench_kernels *k, const bench_opts *o, const adj_node *n, bench_rows *rows)
{
    planned_choice p;
    int first = rows->n;
    adj_graph *g = adj_graph_new();
    adj_node *copy = g != NULL ? alone(g, n) : NULL;
    int status = copy != NULL
                     ? ask_plan(o, g, copy, &p)
                     : complain("bench", EXIT_FAILED, "%s: %s", n->op->name, adj_graph_message(g));
    const bench_race race = {.node = copy,
                             .n_planned = 1,
                             .planned = &p,
                             .planned_alone = !o->all,
                             .seconds = o->seconds,
                             .each = 1,
                             .cold = bench_cold_bytes(o, SIZE_MAX)};
    if (status == CONTINUE && !bench_race_run(k, o, &race, rows))
        status = complain("bench", EXIT_FAILED, "out of memory");
    for (int i = first; i < rows->n; i++)
        rows->row[i].node = n;
    bench_rows_sum(rows, first, o->all);
    adj_graph_free(g);
    return status;
}

/* True if the node has kernels to run. */
static int is_computed(const adj_node *n)
{
    return !(n->op->flags & (ADJ_OP_LEAF | ADJ_OP_VIEW)) && adj_shape_elems(n->type.shape) > 0;
}

int bench_op(const bench_opts *o)
{
    const compared_opts described = {.op = o->op};
    compared c;
    bench_rows rows = {0};
    int status = CONTINUE;
    if (compared_open(&c, &described) != ADJ_OK)
        status = complain("bench", c.usage ? EXIT_USAGE : EXIT_FAILED, "%s", c.m.error.message);
    bench_kernels *k = status == CONTINUE ? bench_kernels_open(o) : NULL;
    char *needed = k != NULL ? bench_needed(c.m.graph, c.n_root, c.root, NULL) : NULL;
    if (status == CONTINUE && needed == NULL)
        status = k == NULL ? EXIT_USAGE : complain("bench", EXIT_FAILED, "out of memory");
    for (int id = 0; status == CONTINUE && id < adj_graph_node_count(c.m.graph); id++)
        if (needed[id] && is_computed(adj_graph_node_at(c.m.graph, id)))
            status = add_node(k, o, adj_graph_node_at(c.m.graph, id), &rows);
    if (status == CONTINUE)
        status = bench_rows_write(o, &rows);
    free(needed);
    free(rows.row);
    bench_kernels_close(k);
    compared_close(&c);
    return status;
}

/* ---- --raw ---- */

typedef struct {
    const adj_node *node; /* of the executor's graph */
    int step;             /* of its plan */
} planned_conv;

typedef struct {
    int n;
    planned_conv *conv;     /* in the order of the plan */
    planned_choice *choice; /* room for n */
} planned_convs;

/* ---- what the plan has ---- */

/* Lists the convolutions of the plan; returns 0 when out of memory. */
static int list_convolutions(const adj_exec *e, planned_convs *all)
{
    int room = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        room += adj_exec_step_at(e, i).n_node;
    all->conv = calloc((size_t)room + 1, sizeof *all->conv);
    all->choice = calloc((size_t)room + 1, sizeof *all->choice);
    if (all->conv == NULL || all->choice == NULL)
        return 0;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const adj_group *g = adj_exec_step_group(e, i);
        for (int k = 0; g != NULL && k < g->n_node; k++) {
            adj_conv conv;
            if (adj_node_conv(g->node[k], &conv) && g->node[k]->n_in <= MAX_OPERANDS)
                all->conv[all->n++] = (planned_conv){g->node[k], i};
        }
    }
    return 1;
}

/* Returns the kernel of the convolution, without the nodes fused to it. */
static planned_choice choice_of(const adj_exec *e, const planned_conv *c)
{
    const adj_node *in[MAX_OPERANDS], *n = c->node;
    const adj_group *g = adj_exec_step_group(e, c->step);
    const adj_step_info s = adj_exec_step_at(e, c->step);
    planned_choice p = {.count = 1};
    int n_in = list_operands(1, &n, in);
    snprintf(p.backend, sizeof p.backend, "%s", s.backend);
    snprintf(p.impl, sizeof p.impl, "%s", s.impl);
    for (int i = 0; i < n_in; i++)
        p.layout[i] = adj_exec_step_layout(e, c->step, in[i]);
    p.layout[n_in] =
        adj_exec_step_layout(e, c->step, adj_group_out(g, n) >= 0 ? n : g->out[g->n_out - 1]);
    return p;
}

static int is_same_choice(const planned_choice *a, const planned_choice *b)
{
    int same = strcmp(a->backend, b->backend) == 0 && strcmp(a->impl, b->impl) == 0;
    for (int i = 0; same && i <= MAX_OPERANDS; i++)
        same = (a->layout[i] == NULL) == (b->layout[i] == NULL) &&
               (a->layout[i] == NULL || strcmp(a->layout[i], b->layout[i]) == 0);
    return same;
}

/* Lists in all->choice the kernels of the i-th convolution and its equals, and returns their
 * number; 0 if an earlier one is its equal. */
static int list_choices(const adj_exec *e, const planned_convs *all, int i)
{
    int n = 0;
    for (int k = 0; k < all->n; k++) {
        if (!adj_gradcheck_same(all->conv[i].node, all->conv[k].node))
            continue;
        if (k < i)
            return 0;
        const planned_choice p = choice_of(e, &all->conv[k]);
        int same = 0;
        while (same < n && !is_same_choice(&all->choice[same], &p))
            same++;
        if (same == n)
            all->choice[n++] = p;
        else
            all->choice[same].count++;
    }
    return n;
}

/* Times the distinct convolutions, each for an equal fraction of the remaining time. */
static int time_convolutions(const bench_opts *o, const adj_exec *e, bench_kernels *k,
                             bench_rows *rows)
{
    planned_convs all = {0};
    const double end = seconds_now() + o->seconds;
    const adj_exec_info info = adj_exec_stats(e);
    const size_t cold = bench_cold_bytes(o, info.arena_bytes + info.storage_bytes);
    int ok = list_convolutions(e, &all), left = 0;
    for (int i = 0; ok && i < all.n; i++)
        left += list_choices(e, &all, i) > 0;
    rows->convolutions = all.n;
    rows->different = left;
    for (int i = 0; ok && i < all.n; i++) {
        const int first = rows->n, n = list_choices(e, &all, i);
        if (n == 0)
            continue;
        const double now = seconds_now();
        const bench_race race = {.node = all.conv[i].node,
                                 .n_planned = n,
                                 .planned = all.choice,
                                 .seconds = (end - now) / left--,
                                 .cold = cold};
        ok = bench_race_run(k, o, &race, rows);
        bench_rows_sum(rows, first, o->all);
    }
    free(all.conv);
    free(all.choice);
    return ok ? CONTINUE : complain("bench", EXIT_FAILED, "out of memory");
}

int bench_raw(const bench_opts *o)
{
    bench_net net;
    bench_rows rows = {0};
    bench_opts of_plan = *o;
    bench_kernels *k = bench_kernels_open(o);
    if (k == NULL)
        return EXIT_USAGE;
    of_plan.backend = NULL; /* --backend selects candidates, not the plan's backends */
    int status = CONTINUE;
    if (bench_net_build(&net, o) != ADJ_OK || bench_net_plan(&net, &of_plan) != ADJ_OK)
        status = complain("bench", net.usage ? EXIT_USAGE : EXIT_FAILED, "%s", net.m.error.message);
    if (adj_exec_warning(net.exec)[0] != '\0')
        complain("bench", EXIT_OK, "%s", adj_exec_warning(net.exec));
    if (status == CONTINUE)
        status = time_convolutions(o, net.exec, k, &rows);
    if (status == CONTINUE)
        status = bench_rows_write(o, &rows);
    free(rows.row);
    bench_net_close(&net);
    bench_kernels_close(k);
    return status;
}
