/* op.c - kernels alone: of one op and its gradients (--op), or of every convolution that a
 * step of a model makes (--raw), whose sum bounds the step from below. */
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "bench.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/op/graph.h"

/* ---- one node in a graph of its own ---- */

static adj_type channels_last(adj_type t)
{
    const int64_t *d = t.shape.dim;
    return (adj_type){t.dtype, {4, {d[0], d[2], d[3], d[1]}}};
}

/* Images in NCHW are computed in NHWC (graph/passes/channels_last.c): that is what is timed. */
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
        const int same = adj_operand_position(n, n->in[k]); /* twice there, it is one leaf */
        snprintf(name, sizeof name, "in%d", k);
        adj_type t = images >> k & 1 ? channels_last(n->in[k]->type) : n->in[k]->type;
        in[k] = same < k ? in[same] : adj_input(g, name, t.dtype, t.shape);
    }
    return adj_node_new(g, n->op, n->n_in, in, attrs);
}

/* What an executor of the node alone takes. CONTINUE, or the exit status. */
static int ask_plan(const bench_opts *o, adj_graph *g, adj_node *n, planned_choice *p)
{
    adj_error error;
    adj_exec *e = NULL;
    bench_opts one = *o;
    if (o->all || o->raw)
        one.backend = NULL; /* it is a list of what is tried */
    *p = (planned_choice){0};
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

/* Of the rows from first on, those that are neither planned nor fastest go. */
static void keep_best(bench_rows *rows, int first)
{
    int n = first;
    for (int i = first; i < rows->n; i++)
        if (rows->row[i].planned || rows->row[i].fastest)
            rows->row[n++] = rows->row[i];
    rows->n = n;
}

/* Rows for the node, as it is in the caller's graph; count: how often it is there. CONTINUE, or the
 * exit status. */
static int add_node(bench_kernels *k, const bench_opts *o, const adj_node *n, int count,
                    bench_rows *rows)
{
    planned_choice p;
    int first = rows->n;
    adj_graph *g = adj_graph_new();
    adj_node *copy = g != NULL ? alone(g, n) : NULL;
    int status = copy != NULL
                     ? ask_plan(o, g, copy, &p)
                     : complain("bench", EXIT_FAILED, "%s: %s", n->op->name, adj_graph_message(g));
    if (status == CONTINUE && !bench_node(k, o, copy, &p, o->all || o->raw, rows))
        status = complain("bench", EXIT_FAILED, "out of memory");
    for (int i = first; i < rows->n; i++) {
        rows->row[i].node = n;
        rows->row[i].count = count;
    }
    bench_row *best = bench_fastest(rows, first);
    for (int i = first; i < rows->n; i++)
        rows->planned_seconds += rows->row[i].planned ? count * rows->row[i].time.median : 0;
    rows->fastest_seconds += best != NULL ? count * best->time.median : 0;
    if (!o->all && best != NULL)
        keep_best(rows, first);
    adj_graph_free(g);
    return status;
}

/* ---- the table ---- */

static void print_shapes(const adj_node *n)
{
    printf("%s %s", n->op->name, adj_dtype_name(n->type.dtype));
    adj_show_attrs(n, stdout);
    for (int i = 0; i < n->n_in; i++)
        printf("%s%s", i > 0 ? ", " : "  ", adj_shape_text(n->in[i]->type.shape).s);
    printf(" -> %s", adj_shape_text(n->type.shape).s);
}

static void print_row(const bench_row *r)
{
    char name[112];
    snprintf(name, sizeof name, "%s %s", r->backend, r->impl);
    if (r->time.n == 0) {
        say("  %-44s %s", name, r->why);
        return;
    }
    printf("  %-44s %10.2f %10.2f %9.4g %9.4g %7d  %s%s%s\n", name, 1e6 * r->time.median,
           1e6 * r->time.min, 1e-9 * r->flop / r->time.median,
           1e-9 * (double)r->bytes / r->time.median, r->time.n, r->layouts,
           r->planned ? "  planned" : "", r->fastest ? "  fastest" : "");
}

static void print_rows(const bench_opts *o, const bench_rows *rows)
{
    int cold = o->op.op != NULL ? !o->warm : o->cold;
    printf("%lld threads, %s\n", (long long)o->threads,
           cold ? "buffers in turn beyond the L3 cache (cold)" : "one set of buffers (warm)");
    printf("  %-44s %10s %10s %9s %9s %7s  layouts\n", "", "us", "minimum", "GFLOP/s", "GB/s",
           "runs");
    for (int i = 0; i < rows->n; i++) {
        const bench_row *r = &rows->row[i];
        if (i == 0 || r[-1].node != r->node) {
            print_shapes(r->node);
            printf(r->count > 1 ? "  (%d times)\n" : "\n", r->count);
        }
        print_row(r);
    }
    if (o->raw)
        printf("%d convolutions, %d different: the fastest take %.3f ms together, the planned %.3f "
               "ms\n",
               rows->convolutions, rows->different, 1e3 * rows->fastest_seconds,
               1e3 * rows->planned_seconds);
}

/* ---- the two ways ---- */

static int finish(const bench_opts *o, const bench_rows *rows)
{
    int measured = 0;
    for (int i = 0; i < rows->n; i++)
        measured += rows->row[i].time.n > 0;
    if (measured == 0 && o->impl != NULL)
        return complain("bench", EXIT_FAILED,
                        "--impl: no candidate's name contains \"%s\" (--all lists what exists)",
                        o->impl);
    if (measured == 0)
        return complain("bench", EXIT_FAILED, "no backend computes it%s%s", rows->n > 0 ? ": " : "",
                        rows->n > 0 ? rows->row[0].why : "");
    if (bench_prints(o))
        print_rows(o, rows);
    const bench_report report = {.o = o, .rows = rows};
    return write_output("bench", &(output_file){"--json", o->json, OUTPUT_OR_STDOUT},
                        bench_json_rows, &report);
}

/* Is there something to run? */
static int is_computed(const adj_node *n)
{
    return !(n->op->flags & (ADJ_OP_LEAF | ADJ_OP_VIEW)) && adj_shape_elems(n->type.shape) > 0;
}

int bench_op(const bench_opts *o)
{
    const compared_opts described = {.op = o->op, .node = -1};
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
            status = add_node(k, o, adj_graph_node_at(c.m.graph, id), 1, &rows);
    if (status == CONTINUE)
        status = finish(o, &rows);
    free(needed);
    free(rows.row);
    bench_kernels_close(k);
    compared_close(&c);
    return status;
}

/* How often the step makes the convolution n; 0: an earlier node is the same. */
static int count_same(const bench_net *net, const char *needed, const adj_node *n)
{
    int count = 0;
    for (int id = 0; id < adj_graph_node_count(net->m.graph); id++) {
        const adj_node *other = adj_graph_node_at(net->m.graph, id);
        adj_conv a;
        if (!needed[id] || !adj_node_conv(other, &a) || !adj_gradcheck_same(other, n))
            continue;
        if (other->id < n->id)
            return 0;
        count++;
    }
    return count;
}

static int time_convolutions(const bench_opts *o, const bench_net *net, bench_kernels *k,
                             bench_rows *rows)
{
    char *needed = bench_needed(net->m.graph, 1, &net->fetch, net->m.updates);
    int status = needed != NULL ? CONTINUE : complain("bench", EXIT_FAILED, "out of memory");
    for (int id = 0; status == CONTINUE && id < adj_graph_node_count(net->m.graph); id++) {
        adj_node *n = adj_graph_node_at(net->m.graph, id);
        adj_conv a;
        int count = needed[id] && adj_node_conv(n, &a) ? count_same(net, needed, n) : 0;
        rows->convolutions += count;
        rows->different += count > 0;
        if (count > 0)
            status = add_node(k, o, n, count, rows);
    }
    free(needed);
    return status;
}

int bench_raw(const bench_opts *o)
{
    bench_net net;
    bench_rows rows = {0};
    bench_kernels *k = bench_kernels_open(o);
    if (k == NULL)
        return EXIT_USAGE;
    int status = CONTINUE;
    if (bench_net_build(&net, o) != ADJ_OK)
        status = complain("bench", net.usage ? EXIT_USAGE : EXIT_FAILED, "%s", net.m.error.message);
    if (status == CONTINUE)
        status = time_convolutions(o, &net, k, &rows);
    if (status == CONTINUE)
        status = finish(o, &rows);
    free(rows.row);
    bench_net_close(&net);
    bench_kernels_close(k);
    return status;
}
