/* matmul.c - op(a) op(b), with the nodes fused by tail_match.
 *
 * A transposed operand is the same memory with its strides swapped. Candidates: all operands
 * plain, and b in oneDNN's preferred layout; the latter first if a reorder of b runs only once. */
#include "onednn.h"

typedef struct {
    onednn *o;
    const adj_group *group;
    const adj_node *a, *b, *bias;
    md a_plain, b_plain, b_any, bias_plain, y_plain;
} matmul;

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    return root->op == &adj_op_matmul && max > 0 ? tail_match(root, uses, max, group) : 0;
}

static dnnl_status_t describe(matmul *m)
{
    const adj_allocator *a = &m->o->allocator;
    const adj_node *n = m->group->node[0];
    const adj_matmul_attrs *t = n->attrs;
    int64_t rows = n->type.shape.dim[0], columns = n->type.shape.dim[1];
    int64_t inner = m->a->type.shape.dim[t->transpose_a ? 0 : 1];
    dnnl_data_type_t type = onednn_type(n->type.dtype);
    dnnl_data_type_t y_type = onednn_type(m->group->out[0]->type.dtype);
    const int64_t a_dims[] = {rows, inner}, b_dims[] = {inner, columns}, y_dims[] = {rows, columns};
    const int64_t a_strides[] = {t->transpose_a ? 1 : inner, t->transpose_a ? rows : 1};
    const int64_t b_strides[] = {t->transpose_b ? 1 : columns, t->transpose_b ? inner : 1};
    const int64_t y_strides[] = {columns, 1}, bias_dims[] = {1, columns};

    dnnl_status_t status = md_new(a, &m->a_plain, 2, a_dims, type, a_strides);
    if (status == dnnl_success)
        status = md_new(a, &m->b_plain, 2, b_dims, type, b_strides);
    if (status == dnnl_success)
        status = md_new(a, &m->b_any, 2, b_dims, type, NULL);
    if (status == dnnl_success)
        status = md_new(a, &m->y_plain, 2, y_dims, y_type, y_strides);
    if (status == dnnl_success && m->bias != NULL)
        status = md_new(a, &m->bias_plain, 2, bias_dims, type, y_strides);
    return status;
}

static void free_descriptors(matmul *m)
{
    md_free(&m->o->allocator, m->a_plain);
    md_free(&m->o->allocator, m->b_plain);
    md_free(&m->o->allocator, m->b_any);
    md_free(&m->o->allocator, m->y_plain);
    md_free(&m->o->allocator, m->bias_plain);
}

/* Finds candidate number `candidate` among implementations that are not reference code. */
static dnnl_status_t find(const matmul *m, int prefers_any, int candidate, pd *out)
{
    const_md b[] = {prefers_any ? m->b_any : m->b_plain, prefers_any ? m->b_plain : m->b_any};
    pd_query q = {m->o->engine, m->o->attr};
    for (int i = 0; i < 2; i++) {
        dnnl_status_t status = pd_matmul(&q, m->a_plain, b[i], m->bias_plain, m->y_plain, out);
        if (status == dnnl_out_of_memory)
            return status;
        if (status != dnnl_success)
            continue;
        if (!is_reference(*out) && candidate-- == 0)
            return dnnl_success;
        dnnl_primitive_desc_destroy(*out);
        *out = NULL;
    }
    return dnnl_unimplemented;
}

static adj_status make_primitive(const matmul *m, const_pd d, adj_prep *p)
{
    const adj_group *g = m->group;
    const_md b = dnnl_primitive_desc_query_md(d, dnnl_query_weights_md, 0);
    const adj_layout *layout;
    adj_status status = layout_of(m->o, b, m->b_plain, "kn", &layout);
    if (status != ADJ_OK)
        return status;
    if (layout != NULL && m->a == m->b)
        return ADJ_ENOKERNEL; /* one value would need two layouts */
    for (int i = 0; i < g->n_in; i++)
        p->in[i] = NULL;
    p->out[0] = NULL;
    p->in[adj_group_in(g, m->b)] = layout;

    primitive_arg args[5] = {
        {DNNL_ARG_SRC, AT_IN, (size_t)adj_group_in(g, m->a), m->a_plain},
        {DNNL_ARG_WEIGHTS, AT_IN, (size_t)adj_group_in(g, m->b), b},
        {DNNL_ARG_DST, AT_OUT, 0, m->y_plain},
    };
    if (m->bias != NULL)
        args[3] =
            (primitive_arg){DNNL_ARG_BIAS, AT_IN, (size_t)adj_group_in(g, m->bias), m->bias_plain};
    p->sums_by_threads = 1; /* with less than a block per thread, sums are split among threads */
    return primitive_prepare(m->o, g->node[0], d, args, p);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_node *n = g->node[0];
    const adj_node *bias;
    pd d = NULL;
    if (n->op != &adj_op_matmul || !tail_of(g, &bias))
        return ADJ_ENOKERNEL;
    adj_status status = onednn_check(n, p->why);
    if (status == ADJ_OK)
        status = onednn_check_products(backend, n, p->why);
    if (status != ADJ_OK)
        return status;

    matmul m = {.o = backend, .group = g, .a = n->in[0], .b = n->in[1], .bias = bias};
    dnnl_status_t found = describe(&m);
    const int is_once = m.a != m.b && p->invariant >> adj_group_in(g, m.b) & 1;
    if (found == dnnl_success)
        found = find(&m, is_once, candidate, &d);
    status = found == dnnl_success ? make_primitive(&m, d, p)
                                   : onednn_refuse(found, n->op->name, p->why);
    if (d != NULL)
        dnnl_primitive_desc_destroy(d);
    free_descriptors(&m);
    return status;
}

const adj_kernel onednn_matmul = {.name = "matmul",
                                  .match = match,
                                  .prepare = prepare,
                                  .run = primitive_run,
                                  .drop = primitive_drop};
