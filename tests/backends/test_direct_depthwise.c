/* test_direct_depthwise.c - the direct depthwise kernels on integers, bit for bit against the
 * definition: every instruction set, type, candidate, on one thread and on three. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/random_conv.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static void expect_row_on(oracle_conv row, const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F64};
    row.depthwise = 1;
    row.in = row.c;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        conv_problem p = conv_problem_new(row, dtypes[k]);
        for (int threads = min_threads(); threads <= 3; threads += 2) {
            test_backend t = direct_open_isa(isa, threads);
            for (int direction = 0; direction < 3; direction++) {
                int n = expect_exact(&p, &t, direction, isa);
                int in_place = dtypes[k] != ADJ_BF16 && row.c * row.last % 16 == 0 &&
                               (row.last == 1 || direction == ORACLE_DX);
                cr_assert_eq(n, p.n[direction] > 0 ? 1 + in_place : 0, "%d candidates: %s", n,
                             p.text);
            }
            backend_close(&t);
        }
        conv_problem_free(&p);
    }
}

/* Shapes at the limits of what loops are cut into. */
static const oracle_conv rows[] = {
    {.n = 2, .h = 5, .w = 6, .c = 16, .kh = 3, .kw = 3, .last = 1, .padding = ADJ_SAME},
    {.n = 1, .h = 24, .w = 24, .c = 8, .kh = 3, .kw = 3, .last = 1, .padding = ADJ_SAME},
    {.n = 3, .h = 9, .w = 8, .c = 64, .kh = 3, .kw = 3, .last = 1, .sh = 2, .sw = 2},
    {.n = 1, .h = 9, .w = 8, .c = 64, .kh = 5, .kw = 5, .last = 2, .padding = ADJ_SAME},
    {.n = 1, .h = 12, .w = 11, .c = 33, .kh = 7, .kw = 7, .last = 3, .padding = ADJ_SAME},
    {.n = 1, .h = 3, .w = 3, .c = 16, .kh = 7, .kw = 7, .last = 1, .padding = ADJ_SAME},
    {.n = 1, .h = 4, .w = 5, .c = 16, .kh = 9, .kw = 11, .last = 1, .padding = ADJ_SAME},
    {.n = 1, .h = 13, .w = 29, .c = 3, .kh = 8, .kw = 15, .last = 2, .dw = 2},
    {.n = 1, .h = 13, .w = 9, .c = 128, .kh = 3, .kw = 3, .last = 8, .sh = 2, .sw = 2},
    {.n = 1, .h = 5, .w = 5, .c = 32, .kh = 1, .kw = 1, .last = 1, .sh = 3, .sw = 3},
    {.n = 1, .h = 7, .w = 7, .c = 5, .kh = 2, .kw = 2, .last = 1, .sh = 5, .sw = 4},
    {.n = 1, .h = 40, .w = 40, .c = 2, .kh = 3, .kw = 3, .last = 1, .sh = 33, .sw = 32},
    {.n = 1,
     .h = 4,
     .w = 4,
     .c = 16,
     .kh = 3,
     .kw = 3,
     .last = 5,
     .dh = 9,
     .dw = 9,
     .padding = ADJ_SAME},
    {.n = 1,
     .h = 2,
     .w = 3,
     .c = 16,
     .kh = 2,
     .kw = 2,
     .last = 1,
     .padding = ADJ_EXPLICIT,
     .pad = {5, 0, 0, 7}},
    {.n = 1,
     .h = 2,
     .w = 3,
     .c = 2,
     .kh = 2,
     .kw = 2,
     .last = 2,
     .sh = 3,
     .sw = 3,
     .padding = ADJ_EXPLICIT,
     .pad = {9, 4, 8, 1}},
    {.n = 1, .h = 300, .w = 2, .c = 1, .kh = 3, .kw = 2, .last = 1}, /* more than one flush */
    {.n = 0, .h = 4, .w = 4, .c = 16, .kh = 2, .kw = 2, .last = 1},
    {.n = 2,
     .h = 0,
     .w = 3,
     .c = 2,
     .kh = 1,
     .kw = 1,
     .last = 3,
     .padding = ADJ_EXPLICIT,
     .pad = {1, 1, 1, 1}},
};

static void listed(const char *isa)
{
    need_isa(isa);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row_on(rows[i], isa);
}

Test(direct_depthwise, listed_base) { listed("base"); }
Test(direct_depthwise, listed_avx2) { listed("avx2"); }
Test(direct_depthwise, listed_avx512) { listed("avx512"); }

static oracle_conv random_row(uint32_t *k)
{
    static const int channels[] = {1, 2, 3, 5, 8, 15, 16, 17, 24, 33, 64, 80, 100};
    static const int multipliers[] = {1, 1, 1, 2, 3, 4, 8};
    oracle_conv a = {.n = draw(k, 1, 3),
                     .h = draw(k, 1, 14),
                     .w = draw(k, 1, 27),
                     .c = channels[draw(k, 0, 12)],
                     .kh = draw(k, 1, 7),
                     .kw = draw(k, 1, 7),
                     .last = multipliers[draw(k, 0, 6)],
                     .sh = draw(k, 1, 3),
                     .sw = draw(k, 1, 3),
                     .dh = draw(k, 1, 3),
                     .dw = draw(k, 1, 3)};
    if (draw(k, 0, 1)) {
        a.kw = a.kh;
        a.sw = a.sh;
        a.dw = a.dh;
    }
    draw_padding(&a, k);
    return a;
}

static void random_rows(const char *isa, uint32_t k)
{
    need_isa(isa);
    for (int i = 0; i < repeats(25); i++)
        expect_row_on(random_row(&k), isa);
}

Test(direct_depthwise, random_base) { random_rows("base", 0); }
Test(direct_depthwise, random_avx2) { random_rows("avx2", 100000); }
Test(direct_depthwise, random_avx512) { random_rows("avx512", 200000); }

/* Columns and rows that no window reads hold a NaN and infinities: rows of few channels lie in
 * vectors that reach beyond their last window. */
static void unread_on(const char *isa, adj_dtype dtype, int channels)
{
    const oracle_conv row = {.n = 2,
                             .h = 13,
                             .w = 5,
                             .c = channels,
                             .kh = 2,
                             .kw = 2,
                             .in = channels,
                             .last = 1,
                             .sh = 2,
                             .sw = 2,
                             .depthwise = 1};
    conv_problem p = conv_problem_new(row, dtype);
    static const double v[] = {NAN, INFINITY, -INFINITY};
    for (int64_t i = 0; i < (int64_t)row.n * row.h * row.w * row.c; i++) {
        const int64_t column = i / row.c % row.w, at = i / row.c / row.w % row.h;
        if (column == row.w - 1 || at == row.h - 1)
            p.f.value[0][i] = v[i % 3];
    }
    test_backend t = direct_open_isa(isa, 2);
    cr_expect_geq(expect_exact(&p, &t, ORACLE_DW, isa), 1);
    backend_close(&t);
    conv_problem_free(&p);
}

static void unread(const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F64};
    need_isa(isa);
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        for (int channels = 1; channels <= 33; channels++)
            unread_on(isa, dtypes[k], channels);
}

Test(direct_depthwise, unread_base) { unread("base"); }
Test(direct_depthwise, unread_avx2) { unread("avx2"); }
Test(direct_depthwise, unread_avx512) { unread("avx512"); }

/* Filter gradients are added up in one order, whatever the threads. */
Test(direct_depthwise, same_bits_for_any_threads)
{
    const oracle_conv row = {.n = 5,
                             .h = 19,
                             .w = 21,
                             .c = 24,
                             .kh = 3,
                             .kw = 3,
                             .in = 24,
                             .last = 1,
                             .padding = ADJ_SAME,
                             .depthwise = 1};
    oracle_sizes s = oracle_sizes_of(row);
    fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, s.x, -1, 1),
             *dy = given_random(&f, ADJ_F32, s.y, -1, 1);
    const adj_node *dw = adj_depthwise_conv2d_native_backprop_filter(x, s.w, dy, &s.attrs);
    expect_same_bits_for_any_threads(&f, dw, best_isa());
    fixture_free(&f);
}

/* What is not ours is refused with the reason. */
Test(direct_depthwise, refused)
{
    fixture f = fixture_new();
    test_backend t = direct_open_isa(best_isa(), 1);
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 3, 4, 4}}, -3, 3);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 2, 3, 1}}, -3, 3);
    const adj_node *y = adj_depthwise_conv2d_native(x, w, &(adj_conv){.format = ADJ_NCHW});
    outcome o = run_candidate(&f, &t, 1, &y, 0);
    cr_assert_eq(o.status, ADJ_ENOKERNEL);
    cr_assert_not_null(strstr(o.why, "NHWC"), "%s", o.why);
    backend_close(&t);
    fixture_free(&f);
}
