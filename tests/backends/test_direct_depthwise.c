/* test_direct_depthwise.c - the direct backend's depthwise convolutions and gradients on integers,
 * bit for bit against the definition: every instruction set, type and candidate, on one thread and
 * on three. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_BF16};
enum { N_DTYPE = 3 };

static void expect_row(oracle_conv row, const char *isa)
{
    row.depthwise = 1;
    for (int k = 0; k < N_DTYPE; k++) {
        scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtypes[k], INTEGERS);
        conv_problem_solve(&p);
        for (int threads = min_threads(); threads <= 3; threads += 2) {
            scoped(backend_close) test_backend t = direct_open(isa, threads, ADJ_MATH_EXACT);
            for (int r = ORACLE_Y; r <= ORACLE_DW; r++) {
                int n = expect_exact_candidates(&p, &t, r, isa);
                int in_place = dtypes[k] != ADJ_BF16 && row.c * row.last % 16 == 0 &&
                               (row.last == 1 || r == ORACLE_DX);
                cr_assert_eq(n, p.n[r] > 0 ? 1 + in_place : 0, "%d candidates: %s", n, p.text);
            }
        }
    }
}

/* Shapes at the limits of what loops are cut into. */
static const oracle_conv rows[] = {
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

static void listed(const char *isa)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row(rows[i], isa);
}

Test(direct_depthwise, listed) { for_each_isa(N_ISA, all_isas, listed); }

static oracle_conv random_row(uint32_t *k)
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

static void random_rows(const char *isa)
{
    uint32_t k = rows_from(0, isa);
    for (int i = 0; i < repeats(25); i++)
        expect_row(random_row(&k), isa);
}

Test(direct_depthwise, random) { for_each_isa(N_ISA, all_isas, random_rows); }

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
    for (int k = 0; k < N_DTYPE; k++)
        for (int channels = 1; channels <= 33; channels++)
            unread_on(isa, dtypes[k], channels);
}

Test(direct_depthwise, unread) { for_each_isa(N_ISA, all_isas, unread); }

/* Unsupported problems are refused with the reason. */
Test(direct_depthwise, refused)
{
    const oracle_conv row = {1, 4, 4, 3, 2, 2, 1, .format = ADJ_NCHW, .depthwise = 1};
    expect_refused_row(&(tested_kernel){.first = ORACLE_Y}, row, "NHWC");
}
