/* group_bound.c - how far a gradient may be from float64, as a whole and element by element.
 *
 * A factor times the largest element hides what is wrong with the small ones, and half types have a
 * large unit. So the gradient's nodes are taken for a group that adj_compare would find fused: each
 * may err by the rounding of what it stores and by what its sums in f32 do, and by what its
 * operands' errors become on their way through it. */
#include "check/compare/compare.h"
#include "gradcheck.h"

/* The value of a leaf of the tested graph, floats in f64; NULL: out of memory, or it has none. */
static void *value_of(const subject *s, const adj_node *n, region *p)
{
    const int64_t elems = node_elems(n);
    const adj_dtype dtype = n->type.dtype;
    const double *v = n == s->tested.dy ? s->dy : NULL;
    double fill, *filled = NULL;
    for (int i = 0; i < s->n_leaf; i++)
        v = s->tested.leaf[i] == n ? s->x[i] : v;
    if (n->op == &adj_op_const)
        v = convert(p, dtype, ((const adj_const_attrs *)n->attrs)->data, ADJ_F64, elems);
    if (adj_is_fill(n, &fill))
        v = filled = region_alloc(p, (size_t)elems + 1, sizeof *filled);
    for (int64_t i = 0; i < elems && filled != NULL; i++)
        filled[i] = fill;
    return v != NULL ? convert(p, ADJ_F64, v, adj_is_float(dtype) ? ADJ_F64 : dtype, elems) : NULL;
}

typedef struct {
    adj_group group;
    void **operand;
    int is_known; /* all operands have values */
} gradient_group;

static adj_status group_of(subject *s, const adj_node *const *dx, region *p, gradient_group *out)
{
    const adj_graph *g = s->tested.graph;
    const size_t n = (size_t)(*dx)->id + 1;
    char *need = region_alloc(p, (size_t)g->n_node, 1);
    const adj_node **node = region_alloc(p, n, sizeof(adj_node *));
    const adj_node **in = region_alloc(p, n, sizeof(adj_node *));
    int n_node = 0, n_in = 0;
    out->operand = region_alloc(p, n, sizeof(void *));
    if (need == NULL || node == NULL || in == NULL || out->operand == NULL)
        return ADJ_ENOMEM;
    mark_needed(g, 1, dx, need);
    out->is_known = 1;
    for (size_t id = 0; id < n; id++) {
        const adj_node *x = g->node[id];
        if (need[id] && x->n_in > 0) {
            node[n_node++] = x;
        } else if (need[id]) {
            out->operand[n_in] = value_of(s, x, p);
            out->is_known &= out->operand[n_in] != NULL;
            in[n_in++] = x;
        }
    }
    out->group = (adj_group){n_node, node, n_in, in, 1, dx};
    return ADJ_OK;
}

adj_status take_group_bound(subject *s, int leaf, bound *b)
{
    const adj_compare_opts opts = {.exec.threads = s->report->opts.exec.threads,
                                   .exec.backends = s->report->opts.exec.backends};
    const adj_compare_config tested = {.name = "tested"};
    const adj_node *dx = s->tested.dx[leaf];
    gradient_group g = {.is_known = 0};
    expectation e = {0};
    outcome o = {0};
    adj_status status = group_of(s, &dx, &s->region, &g);
    if (status != ADJ_OK || !g.is_known)
        return status;
    const runner in_f64 = {.opts = &opts, .reference = &naive_f64};
    const group_case alone = {&g.group, 0, g.operand, &tested};
    status = group_expect(&in_f64, &alone, &s->region, &e, &o);
    if (status == ADJ_OK && o.status == ADJ_OK) {
        b->half = adj_is_half(dx->type.dtype) ? e.bound : NULL;
        b->noise = e.noise;
    }
    return status;
}
