/* eltwise.c - sigmoid, tanh and silu, and silu's gradient: the elementwise functions that cost
 * more than their memory traffic.
 *
 * The others are left to direct, which fuses them with adjacent ops, or to naive. oneDNN's are
 * not always the same function: its relu turns NaN into 0, its exp turns NaN into infinity, its
 * log is wrong for subnormal numbers, and its softmax of a row with NaN has zeros. */
#include <stdio.h>

#include "onednn.h"

static const struct {
    const adj_op *op;
    dnnl_alg_kind_t kind;
    float alpha;
    int backward; /* in[0] is dy, in[1] is x */
} functions[] = {
    {&adj_op_sigmoid, dnnl_eltwise_logistic, 0, 0},
    {&adj_op_tanh, dnnl_eltwise_tanh, 0, 0},
    {&adj_op_silu, dnnl_eltwise_swish, 1, 0},
    {&adj_op_silu_grad, dnnl_eltwise_swish, 1, 1},
};
enum { N_FUNCTION = sizeof functions / sizeof *functions };

static adj_status make_primitive(onednn *o, const adj_group *g, int function, const_md data,
                                 adj_prep *p)
{
    const adj_node *n = g->node[0];
    eltwise_request r = {functions[function].kind, data, functions[function].alpha};
    pd_query q = {o->engine, o->attr};
    int backward = functions[function].backward;
    const primitive_arg forward_args[] = {
        {DNNL_ARG_SRC, AT_IN, 0, data}, {DNNL_ARG_DST, AT_OUT, 0, data}, {0}};
    const primitive_arg backward_args[] = {
        {DNNL_ARG_DIFF_DST, AT_IN, (size_t)adj_group_in(g, n->in[0]), data},
        {DNNL_ARG_SRC, AT_IN, (size_t)adj_group_in(g, n->in[n->n_in - 1]), data},
        {DNNL_ARG_DIFF_SRC, AT_OUT, 0, data},
        {0}};
    pd forward = NULL, gradient = NULL;

    dnnl_status_t made = pd_eltwise(&q, &r, &forward);
    if (made == dnnl_success && backward)
        made = pd_eltwise_backward(&q, &r, forward, &gradient);
    const_pd d = backward ? gradient : forward;
    if (made == dnnl_success && is_reference(d))
        made = dnnl_unimplemented;
    adj_status status = made == dnnl_success
                            ? primitive_prepare(o, n, d, backward ? backward_args : forward_args, p)
                            : onednn_refuse(made, n->op->name, p->why);
    if (gradient != NULL)
        dnnl_primitive_desc_destroy(gradient);
    if (forward != NULL)
        dnnl_primitive_desc_destroy(forward);
    return status;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    onednn *o = backend;
    const adj_node *n = g->node[0];
    int function = 0;
    if (n->op == &adj_op_softmax || n->op == &adj_op_log_softmax) {
        snprintf(p->why, ADJ_WHY, "%s: oneDNN's implementation loses NaN", n->op->name);
        return ADJ_ENOKERNEL;
    }
    while (function < N_FUNCTION && functions[function].op != n->op)
        function++;
    if (function == N_FUNCTION || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    adj_status status = onednn_check(n, p->why);
    if (status != ADJ_OK)
        return status;

    md data = NULL;
    int64_t elems = adj_shape_elems(n->type.shape), step = 1;
    dnnl_status_t made = md_new(&o->allocator, &data, 1, &elems, onednn_type(n->type.dtype), &step);
    status = made == dnnl_success ? make_primitive(o, g, function, data, p)
                                  : onednn_refuse(made, n->op->name, p->why);
    md_free(&o->allocator, data);
    if (status != ADJ_OK)
        return status;
    for (int i = 0; i < g->n_in; i++)
        p->in[i] = NULL;
    p->alias[0].operands = 1;
    return ADJ_OK;
}

const adj_kernel onednn_eltwise = {
    .name = "eltwise", .prepare = prepare, .run = primitive_run, .drop = primitive_drop};
