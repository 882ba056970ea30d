/* transpose.c - transpose, as oneDNN's reorder between two orders of the same axes. */
#include <string.h>

#include "onednn.h"

/* True for oneDNN's generic reorder of any types and orders, element by element through float;
 * for half types, CPUs without their instructions have no other. */
static int is_generic(const_pd d)
{
    return is_reference(d) || strcmp(pd_name(d), "simple:any") == 0;
}

/* Describes the result's axes, with their strides in the operand's memory or in the result's. */
static dnnl_status_t describe(onednn *o, const adj_node *n, int is_operand, md *out)
{
    const int64_t *perm = ((const adj_transpose_attrs *)n->attrs)->perm;
    const adj_shape *memory = is_operand ? &n->in[0]->type.shape : &n->type.shape;
    int64_t rank = memory->rank, step[ADJ_MAX_RANK] = {0}, axis[ADJ_MAX_RANK];
    for (int64_t i = rank - 1, elems = 1; i >= 0; elems *= memory->dim[i--])
        step[i] = elems;
    for (int64_t i = 0; i < rank; i++)
        axis[i] = step[is_operand ? perm[i] : i];
    return md_new(&o->allocator, out, (int)rank, n->type.shape.dim, onednn_type(n->type.dtype),
                  axis);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    onednn *o = backend;
    const adj_node *n = g->node[0];
    md from = NULL, to = NULL;
    pd d = NULL;
    if (n->op != &adj_op_transpose || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    adj_status status = onednn_check(n, p->why);
    if (status != ADJ_OK)
        return status;
    dnnl_status_t made = describe(o, n, 1, &from);
    if (made == dnnl_success)
        made = describe(o, n, 0, &to);
    if (made == dnnl_success)
        made = dnnl_reorder_primitive_desc_create(&d, from, o->engine, to, o->engine, o->attr);
    if (made == dnnl_success && is_generic(d))
        made = dnnl_unimplemented;
    const primitive_arg args[] = {
        {DNNL_ARG_FROM, AT_IN, 0, from}, {DNNL_ARG_TO, AT_OUT, 0, to}, {0}};
    status = made == dnnl_success ? primitive_prepare(o, n, d, args, p)
                                  : onednn_refuse(made, n->op->name, p->why);
    if (d != NULL)
        dnnl_primitive_desc_destroy(d);
    md_free(&o->allocator, to);
    md_free(&o->allocator, from);
    p->in[0] = p->out[0] = NULL;
    return status;
}

const adj_kernel onednn_transpose = {
    .name = "transpose", .prepare = prepare, .run = primitive_run, .drop = primitive_drop};
