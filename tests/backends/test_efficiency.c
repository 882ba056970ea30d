/* test_efficiency.c - estimates of a planted table by literal numbers, and the backends' tables:
 * at most 60 shares each, and oneDNN's candidates in the order of their estimates. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "backends/efficiency.h"
#include "base/machine/isa_level.h"
#include "exec/candidate.h"
#include "tests/backends/candidates.h"
#include "tests/isa.h"
#include "tests/plan.h"

static const efficiency planted[] = {
    {"fast", "avx512", FORWARD | INPUT, DENSE, {0.25, 0.5, 1}},
    {"fast", "", ALL_DIRECTIONS, WINDOW, {0.125, 0.25, 0.5}},
    {"fast", "", ALL_DIRECTIONS, GROUPED_SMALL, {0.1, 0.2, 0.4}},
    {"fast", "", ALL_DIRECTIONS, GROUPED_LARGE, {0.05, 0.1, 0.2}},
    {"fast", "", FORWARD, MATMUL, {0.01, 0.02, 0.04}},
    {"fast", "", ALL_DIRECTIONS, PACKED, {0.25, 4, 4}},
    {0},
};

static adj_node *input(adj_graph *g, adj_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", adj_graph_node_count(g));
    return adj_input(g, name, ADJ_F32, shape);
}

/* A convolution of [2, 9, 9, ic] by [k, k, ic, oc], or its gradient with respect to that operand.
 */
static const adj_node *convolution(adj_graph *g, int direction, int64_t k, int64_t ic, int64_t oc,
                                   int64_t dilation)
{
    adj_node *x = input(g, (adj_shape){4, {2, 9, 9, ic}});
    adj_node *w = input(g, (adj_shape){4, {k, k, ic, oc}});
    const adj_conv c = {.padding = ADJ_SAME, .dilation = {1, dilation, dilation, 1}};
    adj_node *y = adj_conv2d(x, w, &c);
    adj_node *dy = input(g, (adj_shape){4, {2, 9, 9, oc}});
    if (direction == FORWARD)
        return y;
    return direction == INPUT ? adj_conv2d_backprop_input(x->type.shape, w, dy, &c)
                              : adj_conv2d_backprop_filter(x, w->type.shape, dy, &c);
}

/* 8 s of arithmetic on vectors of 16 floats, 3 s of memory, 99 s where no row is. */
static double seconds(const adj_node *n, const char *impl)
{
    const adj_group group = {.n_node = 1, .node = &n};
    const adj_prep p = {
        .arithmetic = 8.0 * 16 / machine_vector_floats(), .memory = 3, .seconds = 99};
    cr_assert_not_null(n);
    return efficiency_seconds(planted, &group, &p, impl);
}

#define EXPECT(got, wanted) cr_expect_float_eq(got, wanted, 1e-4, "got %g, wanted %g", got, wanted)

Test(efficiency, the_first_row_for_name_instructions_direction_and_kind)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_node *many = convolution(g, FORWARD, 3, 64, 64, 1);
    EXPECT(seconds(many, "fast:avx512"), 3 + 8.0);
    EXPECT(seconds(many, "faster:avx512_core_bf16"), 3 + 8.0);
    EXPECT(seconds(many, "fast:avx2"), 3 + 2 * 8 / 0.5); /* vectors of half as many floats */
    EXPECT(seconds(many, "slow:avx512"), 99.0);
    EXPECT(seconds(convolution(g, FILTER, 3, 64, 64, 1), "fast:avx512"), 3 + 8 / 0.5);
    EXPECT(seconds(convolution(g, INPUT, 1, 64, 64, 1), "fast:avx512"), 3 + 8.0);
    EXPECT(seconds(convolution(g, FILTER, 1, 64, 64, 1), "fast:avx512"), 99.0);
}

Test(efficiency, classes_of_the_side_with_fewer_channels)
{
    static const struct {
        int64_t ic, oc;
        double share;
    } cases[] = {{15, 64, 0.25}, {64, 15, 0.25}, {16, 64, 0.5}, {100, 63, 0.5}, {64, 100, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        EXPECT(seconds(convolution(g, FORWARD, 3, cases[i].ic, cases[i].oc, 1), "fast:avx512"),
               3 + 8 / cases[i].share);
    }
}

Test(efficiency, groups_dilations_and_matrices)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = input(g, (adj_shape){4, {2, 9, 9, 16}});
    const adj_conv plain = {.padding = ADJ_SAME};
    const adj_conv dilated = {.padding = ADJ_SAME, .dilation = {1, 2, 2, 1}};
    adj_node *w = input(g, (adj_shape){4, {3, 3, 16, 4}});
    EXPECT(seconds(adj_depthwise_conv2d_native(x, w, &plain), "fast:avx512"), 3 + 8 / 0.4);
    EXPECT(seconds(adj_depthwise_conv2d_native(x, w, &dilated), "fast:avx512"), 3 + 8 / 0.2);
    adj_node *a = input(g, (adj_shape){2, {17, 5}});
    adj_node *b = input(g, (adj_shape){2, {5, 7}});
    EXPECT(seconds(adj_matmul(a, b, 0), "fast:avx512"), 3 + 8 / 0.02);
    EXPECT(seconds(adj_relu(a), "fast:avx512"), 99.0);
}

Test(efficiency, a_reorder_reads_and_writes)
{
    const adj_prep p = {.byte = 0.5};
    EXPECT(efficiency_reorder(&p, 10), 10.0);
}

Test(efficiency, a_packed_filter)
{
    adj_prep p = {.byte = 0.5};
    strcpy(p.impl, "fast:base");
    EXPECT(efficiency_packed(planted, &p, 0, 16), 32.0);
    EXPECT(efficiency_packed(planted, &p, 1, 16), 2.0);
    strcpy(p.impl, "other:base");
    EXPECT(efficiency_packed(planted, &p, 0, 16), 16.0);
    EXPECT(efficiency_packed(planted, &p, 1, 16), 0.0);
}

static void expect_small(const efficiency *table)
{
    int n = 0;
    for (; table[n].family != NULL; n++)
        for (int i = 0; i < EFFICIENCY_CLASSES; i++)
            cr_expect(table[n].share[i] > 0 && table[n].share[i] < 10, "row %d", n);
    cr_expect(EFFICIENCY_CLASSES * n <= 60, "%d rows", n);
}

Test(efficiency, tables_have_at_most_60_shares)
{
    expect_small(direct_efficiencies);
    expect_small(onednn_efficiencies);
}

/* ---- oneDNN's candidates ---- */

/* Expects the estimates of all candidates for n in ascending order; returns their sum. byte:
 * seconds in which a byte passes memory; invariant: as in adj_prep. */
static double sum_of_estimates(const adj_node *n, double byte, uint32_t invariant)
{
    const adj_node *in[2];
    const adj_layout *in_layout[2], *out_layout[1];
    const adj_group g = {1, &n, list_operands(1, &n, in), in, 1, &n};
    adj_prep prep = {.in = in_layout, .out = out_layout};
    scoped(backend_close) test_backend onednn = backend_open("onednn");
    candidate c = {.backend = onednn.b,
                   .opened = onednn.opened,
                   .group = &g,
                   .nominal = {.arithmetic = 1e-3, .byte = byte, .seconds = 1},
                   .invariant = invariant,
                   .prep = &prep};
    double sum = 0, last = 0;
    while (next_kernel(&c))
        for (; prepare_candidate(&c) == ADJ_OK; c.number++) {
            cr_expect_geq(prep.seconds, last, "%s: candidate %d", n->op->name, c.number);
            sum += last = prep.seconds;
            drop_candidate(&c);
        }
    cr_expect_gt(sum, 0);
    return sum;
}

Test(efficiency, candidates_come_in_the_order_of_their_estimates)
{
    need_onednn_kernels();
    scoped(release_graph) adj_graph *g = adj_graph_new();
    for (int direction = FORWARD; direction <= FILTER; direction *= 2)
        sum_of_estimates(convolution(g, direction, 3, 32, 32, 1), 0, 0);
    /* a byte that takes a second: what is invariant is reordered once, which does not count */
    const adj_node *y = convolution(g, FORWARD, 3, 32, 32, 1);
    const double reordered = sum_of_estimates(y, 1, 0), kept = sum_of_estimates(y, 1, 2);
    cr_expect_lt(kept, reordered);
}
