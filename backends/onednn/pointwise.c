/* pointwise.c - relu, its gradient and add of equal shapes in f32, in whatever layout the operands
 * have, by our own loops.
 *
 * They keep a graph's values in the layout of its convolutions, where naive would ask for plain
 * memory, and they treat NaN as the contract does, where oneDNN's relu gives 0. Element i of the
 * memory of the result needs element i of the operands' alone; the padding of a blocked layout is 0
 * in both. */
#include <stdio.h>

#include "onednn.h"

enum { PARALLEL = 1 << 15 };

static void relu(const float *x, const float *none, float *y, int64_t n)
{
    (void)none;
#pragma omp parallel for simd if (n > PARALLEL)
    for (int64_t i = 0; i < n; i++)
        y[i] = ((x[i] > 0) | (x[i] != x[i])) ? x[i] : 0;
}

static void relu_grad(const float *dy, const float *y, float *dx, int64_t n)
{
#pragma omp parallel for simd if (n > PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        float d = dy[i]; /* read in any case, or it would not vectorise */
        dx[i] = y[i] > 0 ? d : 0;
    }
}

static void add(const float *a, const float *b, float *y, int64_t n)
{
#pragma omp parallel for simd if (n > PARALLEL)
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

typedef void function(const float *a, const float *b, float *y, int64_t n);

static function *function_of(const adj_op *op)
{
    if (op == &adj_op_relu)
        return relu;
    if (op == &adj_op_relu_grad)
        return relu_grad;
    return op == &adj_op_add ? add : NULL;
}

/* What a run needs besides the buffers. */
typedef struct {
    function *f;
    int64_t n;
    int second; /* position of the second operand, or of the only one */
} pointwise;

static int equal_shapes(const adj_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (!adj_shape_equal(n->in[i]->type.shape, n->type.shape))
            return 0;
    return 1;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_node *n = g->node[0];
    function *f = function_of(n->op);
    if (f == NULL || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    adj_status status = onednn_check(n, p->why);
    if (status != ADJ_OK)
        return status;
    if (n->type.dtype != ADJ_F32 || !equal_shapes(n)) {
        snprintf(p->why, ADJ_WHY, "%s: only in f32 and without broadcasting", n->op->name);
        return ADJ_ENOKERNEL;
    }
    const adj_layout *layout = p->in[0];
    for (int i = 1; i < g->n_in && layout == NULL; i++)
        layout = p->in[i];
    for (int i = 0; i < g->n_in; i++)
        p->in[i] = layout;
    p->out[0] = layout;

    onednn *o = backend;
    pointwise *s = adj_alloc(&o->allocator, sizeof *s);
    if (s == NULL)
        return ADJ_ENOMEM;
    *s = (pointwise){.f = f,
                     .n = layout != NULL ? (int64_t)(layout->bytes / sizeof(float))
                                         : adj_shape_elems(n->type.shape),
                     .second = onednn_position(g, n->in[n->n_in - 1])};
    p->state = s;
    p->alias[0].operands = 1;
    p->rank = layout == NULL; /* in plain memory chains do it in fewer passes */
    snprintf(p->impl, sizeof p->impl, "own:any_layout");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const pointwise *s = c->state;
    s->f(c->in[0], c->in[s->second], c->out[0], s->n);
    return ADJ_OK;
}

static void drop(void *backend, void *state)
{
    onednn *o = backend;
    adj_release(&o->allocator, state);
}

const adj_kernel onednn_pointwise = {
    .name = "pointwise", .prepare = prepare, .run = run, .drop = drop};
