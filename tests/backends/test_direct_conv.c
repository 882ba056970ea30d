/* test_direct_conv.c - the direct backend's dense convolutions and gradients and its depthwise ones
 * on integers, bit for bit against the definition: every instruction set, type and candidate, on
 * one thread and on three. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"

/* Types in which depthwise kernels are tested; dense ones: without the last. */
static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_BF16};
enum { DENSE = 2, DEPTHWISE = 3 };

static void expect_row_on(oracle_conv row, const char *isa)
{
    for (int k = 0; k < (row.depthwise ? DEPTHWISE : DENSE); k++) {
        scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtypes[k], INTEGERS);
        conv_problem_solve(&p);
        for (int threads = min_threads(); threads <= 3; threads += 2) {
            scoped(backend_close) test_backend t = direct_open(isa, threads, ADJ_MATH_EXACT);
            for (int r = row.depthwise ? ORACLE_Y : ORACLE_DX; r <= ORACLE_DW; r++) {
                int n = expect_exact_candidates(&p, &t, r, isa);
                int in_place = row.depthwise && dtypes[k] != ADJ_BF16 &&
                               row.c * row.last % 16 == 0 && (row.last == 1 || r == ORACLE_DX);
                cr_assert_eq(n, p.n[r] > 0 ? 1 + in_place : 0, "%d candidates: %s", n, p.text);
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
    uint32_t k = rows_from(0, isa);
    for (int i = 0; i < repeats(25); i++)
        expect_row_on(random_row(&k), isa);
}

Test(direct_conv, random) { for_each_isa(N_ISA, all_isas, random_rows); }

/* Sums have one order, whatever the threads. */
Test(direct_conv, same_bits_for_any_threads)
{
    static const tested_kernel ours = {.first = ORACLE_DX, .last = ORACLE_DW};
    const oracle_conv row = {5, 19, 21, 3, 5, 3, 24, .padding = ADJ_SAME};
    expect_same_bits_for_any_threads(&ours, row, ADJ_F32, best_isa());
}

/* An infinity in dy's corner reaches no tap that lies in the padding there, which is no zero. */
static void infinity_at_the_border(const char *isa)
{
    enum { SIZE = 4, CHANNELS = 2, OUTPUTS = 3 };
    for (int k = 0; k < DENSE; k++) {
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
    expect_refused_row(&(tested_kernel){"gemm", .first = ORACLE_DX}, row, "NHWC");
}

/* ---- depthwise ---- */

/* Shapes at the limits of what loops are cut into. */
static const oracle_conv depthwise_rows[] = {
    {2, 5, 6, 16, 3, 3, 1, .padding = ADJ_SAME},
    {1, 24, 24, 8, 3, 3, 1, .padding = ADJ_SAME},
    {3, 9, 8, 64, 3, 3, 1, .sh = 2, .sw = 2},
    {1, 9, 8, 64, 5, 5, 2, .padding = ADJ_SAME},
    {1, 12, 11, 33, 7, 7, 3, .padding = ADJ_SAME},
    {1, 3, 3, 16, 7, 7, 1, .padding = ADJ_SAME},
    {1, 4, 5, 16, 9, 11, 1, .padding = ADJ_SAME},
    {1, 13, 29, 3, 8, 15, 2, .dw = 2},
    {1, 13, 9, 128, 3, 3, 8, .sh = 2, .sw = 2},
    {1, 5, 5, 32, 1, 1, 1, .sh = 3, .sw = 3},
    {1, 7, 7, 5, 2, 2, 1, .sh = 5, .sw = 4},
    {1, 40, 40, 2, 3, 3, 1, .sh = 33, .sw = 32},
    {1, 4, 4, 16, 3, 3, 5, .dh = 9, .dw = 9, .padding = ADJ_SAME},
    {1, 2, 3, 16, 2, 2, 1, .padding = ADJ_EXPLICIT, .pad = {5, 0, 0, 7}},
    {1, 2, 3, 2, 2, 2, 2, .sh = 3, .sw = 3, .padding = ADJ_EXPLICIT, .pad = {9, 4, 8, 1}},
    {1, 300, 2, 1, 3, 2, 1, .padding = ADJ_VALID}, /* more than one flush */
    {0, 4, 4, 16, 2, 2, 1, .padding = ADJ_VALID},
    {2, 0, 3, 2, 1, 1, 3, .padding = ADJ_EXPLICIT, .pad = {1, 1, 1, 1}},
};

static void expect_depthwise(oracle_conv row, const char *isa)
{
    row.depthwise = 1;
    expect_row_on(row, isa);
}

static void depthwise_listed(const char *isa)
{
    for (size_t i = 0; i < sizeof depthwise_rows / sizeof *depthwise_rows; i++)
        expect_depthwise(depthwise_rows[i], isa);
}

Test(direct_depthwise, listed) { for_each_isa(N_ISA, all_isas, depthwise_listed); }

static oracle_conv random_depthwise(uint32_t *k)
{
    static const int channels[] = {1, 2, 3, 5, 8, 15, 16, 17, 24, 33, 64, 80, 100};
    static const int multipliers[] = {1, 1, 1, 2, 3, 4, 8};
    static const oracle_conv most = {3, 14, 27, 1, 7, 7, 1, .sh = 3, .sw = 3, .dh = 3, .dw = 3};
    oracle_conv a = draw_sizes(&most, k);
    a.c = channels[draw(k, 0, 12)];
    a.last = multipliers[draw(k, 0, 6)];
    if (draw(k, 0, 1)) {
        a.kw = a.kh;
        a.sw = a.sh;
        a.dw = a.dh;
    }
    draw_padding(&a, k);
    return a;
}

static void random_depthwise_rows(const char *isa)
{
    uint32_t k = rows_from(0, isa);
    for (int i = 0; i < repeats(25); i++)
        expect_depthwise(random_depthwise(&k), isa);
}

Test(direct_depthwise, random) { for_each_isa(N_ISA, all_isas, random_depthwise_rows); }

/* Columns and rows that no window reads hold a NaN and infinities: rows of few channels lie in
 * vectors that reach beyond their last window. */
static void unread_on(const char *isa, adj_dtype dtype, int channels)
{
    const oracle_conv row = {2, 13, 5, channels, 2, 2, 1, .sh = 2, .sw = 2, .depthwise = 1};
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, INTEGERS);
    conv_problem_solve(&p);
    static const double v[] = {NAN, INFINITY, -INFINITY};
    for (int64_t i = 0; i < (int64_t)row.n * row.h * row.w * row.c; i++) {
        const int64_t column = i / row.c % row.w, at = i / row.c / row.w % row.h;
        if (column == row.w - 1 || at == row.h - 1)
            p.f.value[0][i] = v[i % 3];
    }
    scoped(backend_close) test_backend t = direct_open(isa, 2, ADJ_MATH_EXACT);
    cr_expect_geq(expect_exact_candidates(&p, &t, ORACLE_DW, isa), 1);
}

static void unread(const char *isa)
{
    for (int k = 0; k < DEPTHWISE; k++)
        for (int channels = 1; channels <= 33; channels++)
            unread_on(isa, dtypes[k], channels);
}

Test(direct_depthwise, unread) { for_each_isa(N_ISA, all_isas, unread); }

/* Filter gradients are added up in one order, whatever the threads. */
Test(direct_depthwise, same_bits_for_any_threads)
{
    static const tested_kernel ours = {.first = ORACLE_DW, .last = ORACLE_DW};
    const oracle_conv row = {5, 19, 21, 24, 3, 3, 1, .padding = ADJ_SAME, .depthwise = 1};
    expect_same_bits_for_any_threads(&ours, row, ADJ_F32, best_isa());
}

/* Unsupported problems are refused with the reason. */
Test(direct_depthwise, refused)
{
    const oracle_conv row = {1, 4, 4, 3, 2, 2, 1, .format = ADJ_NCHW, .depthwise = 1};
    expect_refused_row(&(tested_kernel){.first = ORACLE_Y}, row, "NHWC");
}
