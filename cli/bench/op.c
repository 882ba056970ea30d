/* op.c - adjoint bench --op: times the kernels of one op and its gradients. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/op/graph.h"
#include "exec/report.h"
#include "kernel.h"
#include "step.h"

/* ---- one node in a graph of its own ---- */

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
