/* single.c - adjoint bench --op: times the kernels of one op and its gradients; --raw: times every
 * convolution of a model's plan alone: the planned kernel and the fastest candidate. The sum of the
 * fastest is a lower bound of the step; planned time over fastest time is the plan's regret. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/backend_option.h"
#include "base/clock.h"
#include "base/machine/machine.h"
#include "check/inspect.h"
#include "cli/command.h"
#include "cli/op/graph.h"
#include "ops/attr_lists.h"

/* Sets the bits of the backends of --backend onednn,direct, all without it; returns 0 after a
 * complaint. */
static int read_backends(const bench_opts *o, unsigned *backends)
{
    const char *list = o->all || o->raw ? o->backend : NULL;
    *backends = list != NULL ? 0 : ~0U;
    while (list != NULL) {
        adj_error error;
        const adj_op *op;
        int i;
        if (next_backend_part(&list, o->backends != NULL ? o->backends : adj_backends, "", &op, &i,
                              &error) != ADJ_OK)
            return complain(0, "--backend: %s", error.message);
        if (op != NULL)
            return complain(0, "--backend: expected backend names only (got a choice for op %s)",
                            op->name);
        *backends |= 1U << i;
    }
    return 1;
}

/* Returns the bytes to read before each run, so that operands are as cold as after `touched` bytes
 * of other reads: at most the size of the last-level cache; 0 with --warm. */
static size_t cold_bytes(const bench_opts *o, size_t touched)
{
    enum { MAX_COLD = 64 << 20, DEFAULT_L3 = 32 << 20 };
    const machine_facts m = machine_look("");
    const machine_cache *c = machine_data_cache(&m, 3);
    const size_t cache = c != NULL ? c->bytes : DEFAULT_L3;
    const size_t bytes = touched < cache ? touched : cache;
    if (o->warm)
        return 0;
    return bytes < MAX_COLD ? bytes : MAX_COLD;
}

static void say_warning(const adj_exec *e)
{
    if (adj_exec_warning(e)[0] != '\0')
        complain(EXIT_OK, "%s", adj_exec_warning(e));
}

/* ---- --op: one node in a graph of its own ---- */

/* Adds the node over new leaves. */
static adj_node *alone(adj_graph *g, const adj_node *n)
{
    adj_node *in[MAX_OPERANDS] = {NULL};
    if (n->n_in > MAX_OPERANDS)
        return NULL;
    for (int k = 0; k < n->n_in; k++) {
        char name[16];
        const int same = adj_operand_position(n, n->in[k]); /* equal operands share one leaf */
        const adj_type t = n->in[k]->type;
        snprintf(name, sizeof name, "in%d", k);
        in[k] = same < k ? in[same] : adj_input(g, name, t.dtype, t.shape);
    }
    return adj_node_new(g, n->op, n->n_in, in, n->attrs);
}

/* Sets *choice to the kernel that an executor of the node alone selects, and *n to the node that
 * this computes, such as an NHWC one for NCHW. Returns CONTINUE or the exit status. */
static int ask_plan(const bench_opts *o, adj_exec **e, const adj_node **n, planned_choice *p)
{
    adj_error error;
    bench_opts one = *o;
    const adj_node *given = *n;
    if (o->all)
        one.backend = NULL; /* --backend selects candidates, not the plan's backends */
    *p = (planned_choice){.count = 1};
    const adj_status status = make_exec(&one, given->graph, (adj_node *)given, NULL, e, &error);
    for (int i = 0; i < adj_exec_step_count(*e); i++) {
        const adj_step_info s = adj_exec_step_at(*e, i);
        if (strcmp(s.op, given->op->name) == 0) {
            snprintf(p->backend, sizeof p->backend, "%s", s.backend);
            snprintf(p->impl, sizeof p->impl, "%s", s.impl);
            *n = adj_exec_step_group(*e, i)->node[0];
        }
    }
    return status == ADJ_OK ? CONTINUE : complain_of(&error);
}

/* Adds rows for the node of the caller's graph. Returns CONTINUE or the exit status. */
static int add_node(const bench_opts *o, unsigned backends, const adj_node *n, bench_rows *rows)
{
    planned_choice p;
    int first = rows->n;
    adj_exec *e = NULL;
    adj_graph *g = adj_graph_new();
    const adj_node *copy = g != NULL ? alone(g, n) : NULL;
    int status = copy != NULL ? ask_plan(o, &e, &copy, &p)
                              : complain(EXIT_FAILED, "%s: %s", n->op->name, adj_graph_message(g));
    const bench_race race = {.node = copy,
                             .exec = e,
                             .backends = backends,
                             .n_planned = 1,
                             .planned = &p,
                             .planned_alone = !o->all,
                             .seconds = o->seconds,
                             .each = 1,
                             .cold = cold_bytes(o, SIZE_MAX)};
    if (status == CONTINUE)
        bench_race_run(o, &race, rows);
    if (first == 0)
        say_warning(e);
    for (int i = first; i < rows->n; i++)
        rows->row[i].node = n;
    bench_rows_sum(rows, first, o->all);
    adj_exec_free(e);
    adj_graph_free(g);
    return status;
}

/* Adds rows for each node that the roots need and that has kernels. Returns CONTINUE or the exit
 * status. */
static int add_needed(const bench_opts *o, unsigned backends, const compared *c, bench_rows *rows)
{
    int status = CONTINUE;
    const adj_graph *g = c->m.graph;
    char *needed = bench_needed(g, c->n_root, c->root, NULL);
    for (int id = 0; status == CONTINUE && id < adj_graph_node_count(g); id++) {
        const adj_node *n = adj_graph_node_at(g, id);
        if (needed[id] && !(n->op->flags & (ADJ_OP_LEAF | ADJ_OP_VIEW)) &&
            adj_shape_elems(n->type.shape) > 0)
            status = add_node(o, backends, n, rows);
    }
    free(needed);
    return status;
}

int bench_op(const bench_opts *o)
{
    const compared_opts described = {.op = o->op};
    compared c;
    bench_rows rows = {0};
    unsigned backends;
    int status = CONTINUE;
    if (compared_open(&c, &described) != ADJ_OK)
        status = complain_of(&c.m.error);
    else if (!read_backends(o, &backends))
        status = EXIT_USAGE;
    else
        status = add_needed(o, backends, &c, &rows);
    if (status == CONTINUE)
        status = bench_rows_write(o, &rows);
    free(rows.row);
    compared_close(&c);
    return status;
}

/* ---- --raw ---- */

typedef struct {
    const adj_node *node; /* node of the executor's graph */
    int step;             /* index of the step in the plan */
} planned_conv;

typedef struct {
    int n;
    planned_conv *conv;     /* in the order of the plan */
    planned_choice *choice; /* room for n */
} planned_convs;

/* Lists the convolutions of the plan. */
static void list_convolutions(const adj_exec *e, planned_convs *all)
{
    int room = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        room += adj_exec_step_at(e, i).n_node;
    all->conv = allocate(room, sizeof *all->conv);
    all->choice = allocate(room, sizeof *all->choice);
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const adj_group *g = adj_exec_step_group(e, i);
        for (int k = 0; g != NULL && k < g->n_node; k++) {
            adj_conv conv;
            if (adj_node_conv(g->node[k], &conv) && g->node[k]->n_in <= MAX_OPERANDS)
                all->conv[all->n++] = (planned_conv){g->node[k], i};
        }
    }
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
static void time_convolutions(const bench_opts *o, adj_exec *e, unsigned backends, bench_rows *rows)
{
    planned_convs all = {0};
    const double end = seconds_now() + o->seconds;
    const adj_exec_info info = adj_exec_stats(e);
    const size_t cold = cold_bytes(o, info.arena_bytes + info.storage_bytes);
    int left = 0;
    list_convolutions(e, &all);
    for (int i = 0; i < all.n; i++)
        left += list_choices(e, &all, i) > 0;
    rows->convolutions = all.n;
    rows->different = left;
    for (int i = 0; i < all.n; i++) {
        const int first = rows->n, n = list_choices(e, &all, i);
        if (n == 0)
            continue;
        const double now = seconds_now();
        const bench_race race = {.node = all.conv[i].node,
                                 .exec = e,
                                 .backends = backends,
                                 .n_planned = n,
                                 .planned = all.choice,
                                 .seconds = (end - now) / left--,
                                 .cold = cold};
        bench_race_run(o, &race, rows);
        bench_rows_sum(rows, first, o->all);
    }
    free(all.conv);
    free(all.choice);
}

int bench_raw(const bench_opts *o)
{
    bench_net net;
    bench_rows rows = {0};
    bench_opts of_plan = *o;
    unsigned backends;
    if (!read_backends(o, &backends))
        return EXIT_USAGE;
    of_plan.backend = NULL; /* --backend selects candidates, not the plan's backends */
    int status = CONTINUE;
    if (bench_net_build(&net, o) != ADJ_OK || bench_net_plan(&net, &of_plan) != ADJ_OK)
        status = complain_of(&net.m.error);
    if (status == CONTINUE)
        time_convolutions(o, net.exec, backends, &rows);
    say_warning(net.exec);
    if (status == CONTINUE)
        status = bench_rows_write(o, &rows);
    free(rows.row);
    bench_net_close(&net);
    return status;
}
