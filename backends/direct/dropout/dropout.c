/* dropout.c - the kernel of dropout.h: the nodes it accepts. */
#include "dropout.h"

#include <math.h>

#include "backends/direct/arith.h"

static const int64_t parallel_above = 1 << 13; /* elements */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    const adj_node *n = g->node[0];
    const adj_dtype dtype = n->type.dtype;
    if (candidate > 0 || g->n_node > 1 || n->op != &adj_op_dropout)
        return ADJ_ENOKERNEL;
    if (dtype == ADJ_F64)
        return direct_refuse(prep, "%s: direct has no kernel for f64", n->op->name);
    const adj_dropout_attrs *a = n->attrs;
    const double threshold = ceil(a->rate * 0x1p32); /* words are integers */
    const int64_t elems = adj_shape_elems(n->type.shape);
    const dropout p = {.work = {.code = d->isa->dropout,
                                .jobs = divide_up((ptrdiff_t)elems, DROPOUT_CHUNK),
                                .threads = elems > parallel_above ? d->threads : 1},
                       .dtype = dtype,
                       .n = elems,
                       .first = a->first,
                       .key = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)},
                       .kept_from = (int64_t)threshold,
                       .scale = (float)(1 / (1 - a->rate))};
    prep->alias[0].operands = 1;
    return direct_accept(d, g, prep, "dropout", &p, sizeof p);
}

const adj_kernel direct_dropout = {
    .name = "dropout", .prepare = prepare, .run = direct_run, .drop = direct_drop};
