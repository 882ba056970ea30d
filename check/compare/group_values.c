/* group_values.c - operands of a fused group: values of the plan's graph; integers, whose sums are
 * exact; or special values, where each affects only single elements of the results. */
#include <math.h>

#include "compare.h"

/* True if every member that reads x is linear in it. */
static int is_read_linearly(const adj_group *g, const adj_node *x)
{
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->node[i]->n_in; k++)
            if (g->node[i]->in[k] == x && !is_linear_in(g->node[i], k))
                return 0;
    return 1;
}

/* Half types hold sums of the smaller ones, which stay exact on their way through a group. */
enum { SMALL = 3, SMALL_OF_HALF = 1 };

/* Draws integers if only linear nodes read the operand; else maps its values to integers. */
static void draw_integers(const adj_group *g, uint64_t seed, void *const operand[])
{
    double max = 0;
    for (int i = 0; i < g->n_in; i++)
        if (adj_is_float(g->in[i]->type.dtype) && !is_read_linearly(g, g->in[i]))
            max = fmax(max, max_magnitude(operand[i], node_elems(g->in[i])));
    for (int i = 0; i < g->n_in; i++)
        if (adj_is_float(g->in[i]->type.dtype))
            to_integers(ADJ_F64, operand[i], node_elems(g->in[i]),
                        is_read_linearly(g, g->in[i]) ? NULL : &max,
                        adj_is_half(g->in[i]->type.dtype) ? SMALL_OF_HALF : SMALL, seed,
                        g->in[i]->id);
}

/* True if x is read only by elementwise nodes and bias_add, so that a special value affects single
 * elements or channels. */
static int is_read_by_element(const adj_group *g, const adj_node *x)
{
    for (int i = 0; i < g->n_node; i++) {
        const adj_node *n = g->node[i];
        const int is_by_element = (n->op->flags & ADJ_OP_ELEMENTWISE) || n->op == &adj_op_bias_add;
        if (adj_operand_position(n, x) >= 0 && !(is_by_element && is_read_by_element(g, n)))
            return 0;
    }
    return 1;
}

/* Returns the first member that reads x. */
static const adj_node *first_reader(const adj_group *g, const adj_node *x)
{
    for (int i = 0; i < g->n_node; i++)
        if (adj_operand_position(g->node[i], x) >= 0)
            return g->node[i];
    return NULL;
}

/* Puts special values into the operands that are read by element. Returns whether there are any. */
static int add_special(const adj_group *g, void *const operand[])
{
    int n = 0;
    for (int i = 0; i < g->n_in; i++) {
        const adj_node *x = g->in[i], *reader = first_reader(g, x);
        if (reader == NULL || !adj_is_float(x->type.dtype) || x->type.shape.rank == 0 ||
            !is_read_by_element(g, x))
            continue;
        make_special(reader, adj_operand_position(reader, x), x->type.dtype, WITH_INFINITIES,
                     ADJ_F64, operand[i]);
        n++;
    }
    return n > 0;
}

adj_status group_operands(const adj_group *g, void *const value[], group_values kind, uint64_t seed,
                          region *p, void *operand[], int *is_case)
{
    for (int i = 0; i < g->n_in; i++) {
        const adj_node *x = g->in[i];
        const adj_dtype dtype = adj_is_float(x->type.dtype) ? ADJ_F64 : x->type.dtype;
        if ((operand[i] = convert(p, dtype, value[x->id], dtype, node_elems(x))) == NULL)
            return ADJ_ENOMEM;
    }
    *is_case = 1;
    if (kind == ON_INTEGERS)
        draw_integers(g, seed, operand);
    else if (kind == ON_SPECIAL)
        *is_case = add_special(g, operand);
    for (int i = 0; i < g->n_in; i++)
        for (int64_t e = 0, n = node_elems(g->in[i]); adj_is_float(g->in[i]->type.dtype) && e < n;
             e++)
            ((double *)operand[i])[e] = rounded(g->in[i]->type.dtype, ((double *)operand[i])[e]);
    return ADJ_OK;
}
