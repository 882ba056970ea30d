/* naive.c - the naive backend: simple kernels for every op and dtype, the fallback and the
 * reference.
 *
 * One kernel object serves every op: prepare() looks the op up in the table of the node's
 * element type. Results do not depend on the number of threads. */
#include <stdio.h>

#include "naive.h"

extern const naive_entry naive_table_f32[], naive_table_f64[], naive_table_f16[],
    naive_table_bf16[], naive_elementwise_f32[], naive_elementwise_f64[], naive_elementwise_f16[],
    naive_elementwise_bf16[];

static const naive_entry *const tables[][2] = {
    [ADJ_F32] = {naive_table_f32, naive_elementwise_f32},
    [ADJ_F64] = {naive_table_f64, naive_elementwise_f64},
    [ADJ_F16] = {naive_table_f16, naive_elementwise_f16},
    [ADJ_BF16] = {naive_table_bf16, naive_elementwise_bf16},
    [ADJ_I32] = {naive_table_f32, naive_elementwise_f32}, /* integer ops are in every table */
};

static const naive_entry *look_up(adj_dtype dtype, const adj_op *op)
{
    for (int i = 0; i < 2; i++)
        for (const naive_entry *e = tables[dtype][i]; e->op != NULL; e++)
            if (e->op == op)
                return e;
    return NULL;
}

/* Returns the type that a node computes in: its own, or that of its first operand for an integer
 * result or if the table says so. */
static adj_dtype compute_dtype(const adj_node *n)
{
    if (n->n_in == 0 || !adj_is_float(n->in[0]->type.dtype))
        return n->type.dtype;
    const naive_entry *e = look_up(n->type.dtype, n->op);
    int by_operand = !adj_is_float(n->type.dtype) || (e != NULL && e->by_operand);
    return by_operand ? n->in[0]->type.dtype : n->type.dtype;
}

static const naive_entry *find(const adj_node *n) { return look_up(compute_dtype(n), n->op); }

/* True if operand 0 is as large as the result and, unless the op reads only elements i for
 * element i of the result, no other operand is. */
static int may_overwrite(const adj_node *n)
{
    if (n->n_in == 0 || n->in[0]->type.dtype != n->type.dtype ||
        !adj_shape_equal(n->in[0]->type.shape, n->type.shape))
        return 0;
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i] == n->in[0] && !(n->op->flags & ADJ_OP_ELEMENTWISE))
            return 0;
    return 1;
}

/* Fractions of the processor's and the memory's peak: elements are computed one by one. */
static const double share = 0.005, memory_share = 0.05;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    const adj_node *n = g->node[0];
    const naive_entry *e = g->n_node == 1 ? find(n) : NULL;

    if (e == NULL || candidate > 0) {
        snprintf(p->why, sizeof p->why, "naive has no kernel for %s", n->op->name);
        return ADJ_ENOKERNEL;
    }
    for (int i = 0; i < g->n_in; i++)
        p->in[i] = NULL;
    p->out[0] = NULL;
    p->scratch = e->scratch != NULL ? e->scratch(n) : 0;
    p->alias[0].operands = e->in_place && may_overwrite(n);
    p->seconds = p->arithmetic / share + p->memory / memory_share;
    snprintf(p->impl, sizeof p->impl, "naive:%s", adj_dtype_name(compute_dtype(n)));
    p->state = (void *)e; /* constant, not freed */
    return ADJ_OK;
}

static adj_status run(const adj_call *c) { return ((const naive_entry *)c->state)->run(c); }

static adj_status open(const adj_backend_opts *opts, void **backend)
{
    (void)opts;
    *backend = NULL;
    return ADJ_OK;
}

static void close(void *backend) { (void)backend; }

static const adj_kernel any = {.name = "naive", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&any, NULL};
const adj_backend adj_backend_naive = {
    .version = ADJ_VERSION, .name = "naive", .open = open, .close = close, .kernels = kernels};
