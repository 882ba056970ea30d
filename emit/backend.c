/* backend.c - the backend that plans a C file. Order of steps, recomputation, in-place results and
 * offsets are decided as for any plan.
 *
 * prepare() accepts every group that emit/ can write a function for. The kernels compute nothing. A
 * plan over this backend and the reference runs once, to compute the values that depend on
 * parameters alone; the reference computes those steps. */
#include "emit.h"

access_kind access_of(const adj_node *operand, const adj_node *result)
{
    const adj_shape x = operand->type.shape, y = result->type.shape;
    const int64_t n = adj_shape_elems(x), channels = y.rank > 0 ? y.dim[y.rank - 1] : 1;
    if (n == adj_shape_elems(y))
        return EACH;
    if (n == 1)
        return ONE;
    return n == channels && x.rank > 0 && x.dim[x.rank - 1] == channels ? BY_CHANNEL : OTHERWISE;
}

static int is_elementwise(const adj_node *n)
{
    const writer *w = writer_of(n->op);
    return w != NULL && w->expression != NULL;
}

/* True if both are of the forward pass, recomputed for the gradient, or of one other role: a group
 * of both would keep a value longer. */
static int is_of_same_time(const adj_node *a, const adj_node *b)
{
    return a->role == b->role && a->clone == b->clone;
}

/* Returns the node that changes each element of last before it is stored, or NULL. Behind a root
 * that is not elementwise, operands are read by the element or by its channel alone, and tanh is a
 * step of its own: its long loop becomes vectors, one over few channels does not. */
static const adj_node *next_in_chain(const adj_node *root, const adj_node *last,
                                     const adj_uses *uses)
{
    const adj_node *next = adj_only_user(last, uses);
    int times = 0;
    const int is_alone = next != NULL && next->op == &adj_op_tanh && !is_elementwise(root);
    if (next == NULL || is_alone || !is_elementwise(next) || !is_of_same_time(next, last) ||
        next->type.dtype != last->type.dtype ||
        !adj_shape_equal(next->type.shape, last->type.shape))
        return NULL;
    for (int i = 0; i < next->n_in; i++)
        times += next->in[i] == last                                                  ? 1
                 : access_of(next->in[i], next) == OTHERWISE && !is_elementwise(root) ? 2
                                                                                      : 0;
    return times == 1 ? next : NULL;
}

/* True if the node reads one value that runs change. */
static int reads_one_value(const adj_node *n)
{
    int values = 0;
    for (int i = 0; i < n->n_in; i++)
        values += access_of(n->in[i], n) == EACH && !(n->in[i]->op->flags & ADJ_OP_LEAF);
    return values == 1;
}

/* Proposes the root and the chain behind it, if short only up to a node that joins two values: the
 * chain behind the other value may have taken that. */
static int propose(const adj_node *root, const adj_uses *uses, int max, const adj_node **group,
                   int is_short)
{
    const writer *w = writer_of(root->op);
    int n = 0;
    if (w == NULL || max < 1)
        return 0;
    group[n++] = root;
    while (n < max && n < EMIT_OPERANDS / 4 && (w->has_chain || w->expression != NULL)) {
        const adj_node *next = next_in_chain(root, group[n - 1], uses);
        if (next == NULL || (is_short && !reads_one_value(next)))
            break;
        group[n++] = next;
    }
    return n;
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    return propose(root, uses, max, group, 0);
}

static int match_short(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    return propose(root, uses, max, group, 1);
}

/* Returns why no function can be written for the node, or NULL. */
static const char *refusal(const adj_node *n)
{
    const writer *w = writer_of(n->op);
    if (w == NULL)
        return "no C is written for this op";
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->type.dtype != ADJ_F32 && n->in[i]->type.dtype != ADJ_I32)
            return "an operand is not f32";
    for (int i = 0; i < n->n_in; i++)
        if (adj_shape_elems(n->in[i]->type.shape) == 0)
            return "an operand has no elements";
    if (n->type.dtype != ADJ_F32 && n->type.dtype != ADJ_I32)
        return "the result is not f32";
    return w->refuses != NULL ? w->refuses(n) : NULL;
}

/* True if the operand's memory may hold the result. */
static int may_overwrite(const adj_group *g, const adj_node *operand)
{
    const adj_node *root = g->node[0], *y = g->out[0];
    const writer *w = writer_of(root->op);
    if (w->has_chain == 2 || operand->type.dtype != y->type.dtype ||
        adj_type_bytes(operand->type) != adj_type_bytes(y->type))
        return 0;
    for (int i = 0; i < root->n_in; i++)
        if (root->in[i] == operand && w->expression == NULL && !(w->in_place & ADJ_IN(i)))
            return 0;
    return 1;
}

/* True if no leaf determines the value. */
static int is_constant(const adj_node *n)
{
    int constant = !(n->op->flags & ADJ_OP_LEAF);
    for (int i = 0; i < n->n_in && constant; i++)
        constant = is_constant(n->in[i]);
    return constant;
}

/* True if every operand is known when the file is written. */
static int has_known_operands(const adj_group *g, const adj_prep *p)
{
    int known = g->n_in > 0;
    for (int i = 0; i < g->n_in; i++)
        known &= (i < 32 && (p->invariant >> i & 1)) || is_constant(g->in[i]);
    return known;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    const writer *w = writer_of(g->node[0]->op);
    const char *why = candidate > 0              ? "there is one way to write it"
                      : g->n_in > EMIT_OPERANDS  ? "it has too many operands"
                      : g->n_out != 1            ? "it has several results"
                      : has_known_operands(g, p) ? "it is a constant"
                                                 : NULL;
    for (int i = 0; i < g->n_node && why == NULL; i++)
        why = refusal(g->node[i]);
    if (why != NULL) {
        snprintf(p->why, sizeof p->why, "%s", why);
        return ADJ_ENOKERNEL;
    }
    p->scratch = w->scratch != NULL ? w->scratch(g->node[0]) : 0;
    for (int i = 0; i < g->n_in && i < 32; i++)
        if (may_overwrite(g, g->in[i]))
            p->alias[0].operands |= UINT32_C(1) << i;
    p->seconds = 0;
    snprintf(p->impl, sizeof p->impl, "c:%d", g->n_node);
    return ADJ_OK;
}

/* Computes the one op that invariant steps of the reference may read. */
static adj_status run(const adj_call *c)
{
    double value;
    const adj_node *y = c->group->out[0];
    for (int64_t i = 0; adj_is_fill(y, &value) && i < adj_shape_elems(y->type.shape); i++)
        adj_store(y->type.dtype, c->out[0], i, value);
    return ADJ_OK;
}

static adj_status open_backend(const adj_backend_opts *opts, void **backend)
{
    (void)opts;
    *backend = NULL;
    return ADJ_OK;
}

static void close_backend(void *backend) { (void)backend; }

static const adj_kernel function_kernel = {
    .name = "emit", .match = match, .prepare = prepare, .run = run};
static const adj_kernel short_kernel = {
    .name = "emit", .match = match_short, .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&function_kernel, &short_kernel, NULL};
const adj_backend emit_backend = {.version = ADJ_VERSION,
                                  .name = "emit",
                                  .open = open_backend,
                                  .close = close_backend,
                                  .kernels = kernels};
