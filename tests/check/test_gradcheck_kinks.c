/* test_gradcheck_kinks.c - kinks are excluded and counted: a few pass, more than one in twenty are
 * inconclusive. */
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"

enum { N = 400 };

static int at_kink;         /* elements, from the first on */
static double kink;         /* where they are put */
static const adj_op *sound; /* what the op under test is a copy of */
static int kinked_operand;  /* the others get 0: where it meets maximum's kink */

/* Away from 0 and 6, and some on the kink. */
static void near_kink(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n;
    for (int64_t k = 0; k < count; k++)
        v[k] = i != kinked_operand ? kink
               : k < at_kink       ? kink
                                   : kink + (v[k] < 0 ? v[k] - 0.25 : v[k] + 0.25);
}

static adj_node *simplify(const adj_node *n, adj_node *const in[])
{
    return adj_node_new(in[0]->graph, sound, n->n_in, in, n->attrs);
}

/* Checks a copy of the node's op whose values are near a kink. */
static void expect_kinks(const adj_node *n, const char *label, double where, int kinks,
                         adj_gradcheck_result result, adj_gradcheck_method method)
{
    static adj_op op;
    const adj_gradcheck_opts o = {.draws = 1, .method = method, .exec.threads = 1};
    op = *(sound = n->op);
    op.domain = near_kink;
    op.simplify = simplify;
    at_kink = kinks;
    kink = where;
    kinked_operand = 0;
    adj_node *y = adj_node_new(n->graph, &op, n->n_in, n->in, n->attrs);
    const adj_gradcheck_report *r = checked(y, &o);
    const gradcheck_detail *w = adj_gradcheck_row_at(r, 0);
    cr_expect_eq(w->result, result, "%s, %d at %g, method %d: %s", label, kinks, where, (int)method,
                 adj_gradcheck_result_name(w->result));
    cr_expect_eq(w->kinks, kinks, "%s, %d at %g, method %d: counted %d", label, kinks, where,
                 (int)method, (int)w->kinks);
    cr_expect_eq(w->considered, N, "%s", label);
    cr_expect_eq(r->verdict, result, "%s, %d at %g", label, kinks, where);
    adj_gradcheck_free(r);
}

/* 5 % of 400 are 20. */
static const struct {
    int kinks;
    adj_gradcheck_result result;
} shares[] = {{0, ADJ_GRADCHECK_PASS},
              {1, ADJ_GRADCHECK_PASS},
              {20, ADJ_GRADCHECK_PASS},
              {21, ADJ_GRADCHECK_INCONCLUSIVE},
              {N, ADJ_GRADCHECK_INCONCLUSIVE}};

static void expect_shares(const adj_node *n, const char *label, double where)
{
    static const adj_gradcheck_method methods[] = {
        ADJ_GRADCHECK_DIRECTIONAL, ADJ_GRADCHECK_ELEMENTWISE, ADJ_GRADCHECK_RICHARDSON};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        for (int m = 0; m < 3; m++)
            expect_kinks(n, label, where, shares[i].kinks, shares[i].result, methods[m]);
}

Test(gradcheck_kinks, ops_of_one_operand)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {N}});
    expect_shares(adj_relu(x), "relu", 0);
    expect_shares(adj_relu6(x), "relu6", 0);
    expect_shares(adj_relu6(x), "relu6", 6);
    expect_shares(adj_leaky_relu(x, 0.25), "leaky_relu", 0);
    cr_expect_eq(adj_graph_status(g), ADJ_OK);
    adj_graph_free(g);
}

/* The first operand is at the second's value, which is the same everywhere. */
Test(gradcheck_kinks, maximum_and_minimum)
{
    adj_graph *g = adj_graph_new();
    adj_node *a = adj_input(g, "a", ADJ_F32, (adj_shape){1, {N}});
    adj_node *b = adj_input(g, "b", ADJ_F32, (adj_shape){1, {N}});
    const adj_node *ops[] = {adj_maximum(a, b), adj_minimum(a, b)};
    for (int i = 0; i < 2; i++) {
        static adj_op op;
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            op = *(sound = ops[i]->op);
            op.domain = near_kink;
            op.simplify = simplify;
            at_kink = shares[k].kinks;
            kink = 0.5;
            kinked_operand = 0;
            adj_node *y = adj_node_new(g, &op, 2, ops[i]->in, NULL);
            const adj_gradcheck_report *r = checked(y, &(adj_gradcheck_opts){.draws = 1});
            for (int w = 0; w < 2; w++) {
                cr_expect_eq(r->row[w].result, shares[k].result, "%s %d of %d", sound->name, w,
                             shares[k].kinks);
                cr_expect_eq(adj_gradcheck_row_at(r, w)->kinks, shares[k].kinks, "%s %d: %d",
                             sound->name, w, (int)adj_gradcheck_row_at(r, w)->kinks);
            }
            adj_gradcheck_free(r);
        }
    }
    adj_graph_free(g);
}

/* Windows of two, all apart by 1; in some both elements are equal. */
static void ties(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n, (void)i;
    for (int64_t k = 0; k < count; k++)
        v[k] = k / 2 < at_kink ? 0.5 : k % 2 ? 1 : 0;
}

Test(gradcheck_kinks, ties_in_max_pool_and_reduce_max)
{
    const adj_pool pair = {.ksize = {1, 1, 2, 1}};
    const adj_axes last = {.n = 1, .axis = {-1}};
    adj_graph *g = adj_graph_new();
    adj_node *image = adj_input(g, "image", ADJ_F32, (adj_shape){4, {1, N, 2, 1}});
    adj_node *rows = adj_input(g, "rows", ADJ_F32, (adj_shape){2, {N, 2}});
    const adj_node *ops[] = {adj_max_pool(image, &pair), adj_reduce_max(rows, last)};
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            static adj_op op;
            op = *(sound = ops[i]->op);
            op.domain = ties;
            op.simplify = simplify;
            at_kink = shares[k].kinks;
            adj_node *y = adj_node_new(g, &op, 1, ops[i]->in, ops[i]->attrs);
            const adj_gradcheck_report *r = checked(y, &(adj_gradcheck_opts){.draws = 1});
            const gradcheck_detail *w = adj_gradcheck_row_at(r, 0);
            cr_expect_eq(w->result, shares[k].result, "%s: %d of %d, %s", sound->name,
                         shares[k].kinks, N, adj_gradcheck_result_name(w->result));
            cr_expect_eq(w->kinks, shares[k].kinks, "%s: %d", sound->name, (int)w->kinks);
            cr_expect_eq(w->considered, N);
            adj_gradcheck_free(r);
        }
    adj_graph_free(g);
}
