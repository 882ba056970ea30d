/* test_direct_conv.c - the direct backend's dense convolutions and gradients on integers, bit for
 * bit against the definition: every instruction set and type, on one thread and on three. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static const tested_kernel ours = {.first = ORACLE_DX, .last = ORACLE_DW};

static void expect_row_on(oracle_conv row, const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtypes[k], INTEGERS);
        conv_problem_solve(&p);
        for (int threads = min_threads(); threads <= 3; threads += 2) {
            scoped(backend_close) test_backend t = direct_open(isa, threads, ADJ_MATH_EXACT);
            for (int r = ours.first; r <= ours.last; r++) {
                int n = expect_exact(&p, &t, r, isa);
                cr_assert_eq(n, p.n[r] > 0, "%d candidates: %s", n, p.text);
            }
        }
    }
}

/* Shapes at the limits of what loops are cut into. */
static const oracle_conv rows[] = {
    {2, 9, 11, 3, 3, 3, 16, .padding = ADJ_SAME},
    {2, 28, 28, 1, 5, 5, 6, .padding = ADJ_SAME},
    {1, 33, 30, 3, 7, 7, 20, .sh = 2, .sw = 2},
    {1, 20, 21, 4, 7, 7, 5, .padding = ADJ_SAME},
    {1, 15, 40, 2, 11, 11, 3, .sh = 4, .sw = 4},
    {3, 5, 5, 1, 1, 1, 33, .sh = 3, .sw = 3},
    {1, 6, 7, 8, 2, 4, 17, .sh = 1, .sw = 3},
    {1, 7, 6, 5, 4, 1, 9, .sh = 3, .sw = 2},
    {1, 3, 4, 3, 7, 7, 8, .padding = ADJ_SAME},
    {1, 3, 33, 1, 3, 32, 1, .padding = ADJ_SAME},
    {1, 33, 3, 1, 32, 2, 1, .sh = 2, .sw = 1},
    /* column tiles */
    {1, 8, 300, 4, 7, 7, 1, .padding = ADJ_SAME},
    {2, 4, 521, 3, 3, 7, 2, .sh = 1, .sw = 2, .padding = ADJ_SAME},
    {1, 2, 700, 8, 2, 5, 1, .sh = 1, .sw = 5},
    {1, 2, 3, 3, 2, 2, 1, .padding = ADJ_EXPLICIT, .pad = {5, 0, 0, 7}},
    {1, 2, 3, 2, 2, 2, 2, .sh = 3, .sw = 3, .padding = ADJ_EXPLICIT, .pad = {9, 4, 8, 1}},
    {2, 190, 180, 1, 2, 2, 2, .padding = ADJ_VALID}, /* more than one flush */
};

static void listed(const char *isa)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row_on(rows[i], isa);
}

Test(direct_conv, listed) { for_each_isa(N_ISA, all_isas, listed); }

static oracle_conv random_row(uint32_t *k)
{
    static const int outputs[] = {1, 2, 3, 8, 15, 16, 17, 24, 33, 48};
    static const oracle_conv most = {3, 14, 41, 5, 9, 9, .sh = 4, .sw = 4};
    oracle_conv a = draw_sizes(&most, k);
    a.last = outputs[draw(k, 0, 9)];
    draw_padding(&a, k);
    return a;
}

static void random_rows(const char *isa)
{
    uint32_t k = isa == all_isas[0] ? 0 : isa == all_isas[1] ? 100000 : 200000;
    for (int i = 0; i < repeats(25); i++)
        expect_row_on(random_row(&k), isa);
}

Test(direct_conv, random) { for_each_isa(N_ISA, all_isas, random_rows); }

/* Sums have one order, whatever the threads. */
Test(direct_conv, same_bits_for_any_threads)
{
    const oracle_conv row = {5, 19, 21, 3, 5, 3, 24, .padding = ADJ_SAME};
    expect_same_bits_for_any_threads(&ours, row, ADJ_F32, best_isa());
}

/* An infinity in dy's corner reaches no tap that lies in the padding there, which is no zero. */
static void infinity_at_the_border(const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64};
    enum { SIZE = 4, CHANNELS = 2, OUTPUTS = 3 };
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        scoped(fixture_free) fixture f = fixture_new();
        scoped(backend_close) test_backend t = direct_open(isa, 1, ADJ_MATH_EXACT);
        const adj_conv same = {.padding = ADJ_SAME};
        adj_node *x =
            given_integers(&f, dtypes[k], (adj_shape){4, {1, SIZE, SIZE, CHANNELS}}, 1, 1);
        adj_node *dy =
            given_integers(&f, dtypes[k], (adj_shape){4, {1, SIZE, SIZE, OUTPUTS}}, 0, 0);
        const adj_node *dw =
            adj_conv2d_backprop_filter(x, (adj_shape){4, {3, 3, CHANNELS, OUTPUTS}}, dy, &same);
        f.value[1][0] = INFINITY;
        outcome o = run_candidate(&f, &t, 1, &dw, 0);
        cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
        for (int i = 0; i < 9 * CHANNELS * OUTPUTS; i++) {
            const int tap = i / (CHANNELS * OUTPUTS), inside = tap / 3 > 0 && tap % 3 > 0;
            const double want = inside && i % OUTPUTS == 0 ? INFINITY : 0;
            cr_expect(o.y[i] == want, "%s, tap %d, element %d: %g, expected %g", isa, tap, i,
                      o.y[i], want);
        }
        free(o.y);
    }
}

Test(direct_conv, infinity) { for_each_isa(N_ISA, all_isas, infinity_at_the_border); }

/* Images in NCHW are refused with the reason. */
Test(direct_conv, refused)
{
    const oracle_conv row = {1, 8, 8, 3, 2, 2, 4, .format = ADJ_NCHW};
    scoped(backend_close) test_backend t = direct_open(best_isa(), 1, ADJ_MATH_EXACT);
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, INTEGERS);
    const adj_node *dx = p.result[ORACLE_DX];
    outcome o = run_kernel(&p.f, &t, "gemm", 1, &dx);
    cr_expect_eq(o.status, ADJ_ENOKERNEL);
    expect_text(o.why, "NHWC");
}
