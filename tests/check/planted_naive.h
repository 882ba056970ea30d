/* planted_naive.h - backends whose naive calls the real one and spoils the result of one op in
 * every type, like a fault in its templates. For tests linked with library.o. */
#ifndef TESTS_CHECK_PLANTED_NAIVE_H
#define TESTS_CHECK_PLANTED_NAIVE_H

#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/counter.h"
#include "tests/reference.h"

extern const adj_backend adj_backend_direct, adj_backend_naive, adj_backend_onednn;

/* SLIGHTLY: in every type but f64, by more than it rounds. LOSES_NAN: it becomes 0. */
typedef enum { SCALED, ONE_ROW, OTHER_PADS, UNCORRECTED, SLIGHTLY, LOSES_NAN } fault;

static struct {
    const char *op, *also; /* names; also: NULL, or another that is as wrong */
    fault fault;
} planted;

static int is_planted(const adj_node *n)
{
    return planted.op != NULL && (strcmp(n->op->name, planted.op) == 0 ||
                                  (planted.also != NULL && strcmp(n->op->name, planted.also) == 0));
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    return adj_backend_naive.kernels[0]->prepare(backend, g, candidate, p);
}

/* The pads before and after change places. */
static adj_status run_with_other_pads(const adj_call *c)
{
    adj_node n = *c->group->node[0];
    const adj_node *const node[] = {&n};
    adj_group g = *c->group;
    adj_call call = *c;
    adj_conv_attrs a = *(const adj_conv_attrs *)n.attrs;
    a.geom.pt = a.geom.pb;
    n.attrs = &a;
    g.node = node;
    call.group = &g;
    return adj_backend_naive.kernels[0]->run(&call);
}

/* Adam's step at a number so large that its bias correction is 1. */
static adj_status run_uncorrected(const adj_call *c)
{
    const int32_t late = 1000000000;
    const void *in[] = {c->in[0], c->in[1], c->in[2], &late, c->in[4]};
    adj_call call = *c;
    call.in = in;
    return adj_backend_naive.kernels[0]->run(&call);
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    if (is_planted(n) && planted.fault == UNCORRECTED)
        return run_uncorrected(c);
    if (is_planted(n) && planted.fault == OTHER_PADS)
        return run_with_other_pads(c);
    adj_status status = adj_backend_naive.kernels[0]->run(c);
    const int64_t elems = adj_shape_elems(n->type.shape);
    const double slightly = n->type.dtype == ADJ_F64     ? 1
                            : adj_is_half(n->type.dtype) ? 1.01
                                                         : 1.00001;
    const double factor = planted.fault == SLIGHTLY ? slightly : 0.75;
    for (int64_t i = 0; is_planted(n) && i < elems; i++) {
        const double v = adj_load(n->type.dtype, c->out[0], i);
        const int is_spoiled = planted.fault == SCALED || planted.fault == SLIGHTLY ||
                               (planted.fault == ONE_ROW && i < elems / 3);
        const double finite = planted.fault == LOSES_NAN && v != v ? 0 : v;
        adj_store(n->type.dtype, c->out[0], i, is_spoiled ? factor * v : finite);
    }
    return status;
}

static const adj_kernel kernel = {.name = "naive", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend spoiled_naive = {.version = ADJ_VERSION,
                                          .name = "naive",
                                          .open = open_nothing,
                                          .close = close_nothing,
                                          .kernels = kernels};
const adj_backend *const adj_backends[] = {&adj_backend_onednn, &adj_backend_direct, &spoiled_naive,
                                           NULL};

typedef struct {
    op_args args;
    const char *op, *also;
    fault fault;
} plant;

#define CONV .op = "conv2d", .in = "2,8,8,4", .filter = "3,3,4,6", .attr = "strides=1,2,2,1"
#define DEEP .op = "depthwise_conv2d_native", .in = "2,8,8,4", .filter = "3,3,4,2"
#define NORM .op = "batch_norm", .in = "2,5,6,4"
#define POOL .in = "2,8,8,4", .attr = "ksize=1,2,2,1"

/* ---- out of memory while other backends recompute ---- */

/* Each allocation in turn, and later ones less often. */
static inline void run_out_of_memory(adj_status (*check)(adj_node *y))
{
    counter c = {0};
    adj_allocator allocator = {count_alloc, count_free, &c};
    long total = 0;
    planted.op = "relu";
    planted.also = NULL;
    planted.fault = SCALED;
    for (long n = 0; n <= total; n += 1 + n / 40) {
        adj_graph *g = adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &allocator});
        adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 3}}));
        const long before = c.live;
        c.calls = 0;
        c.fail_at = n;
        adj_status status = check(y);
        total = n == 0 ? c.calls : total;
        cr_assert_eq(status, n == 0 ? ADJ_OK : ADJ_ENOMEM, "allocation %ld of %ld: %s", n, total,
                     adj_status_name(status));
        cr_assert_eq(c.live, before, "allocation %ld of %ld: %ld leaked", n, total,
                     c.live - before);
        c.fail_at = 0;
        adj_graph_free(g);
    }
    cr_assert_gt(total, 40);
}

#endif
