/* test_direct_conv.c - the direct dense kernels for few channels on integers, bit for bit against
 * the definition: every instruction set and type, on one thread and on three. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/random_conv.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static const enum oracle_result ours[] = {ORACLE_DX, ORACLE_DW};
enum { N_OURS = sizeof ours / sizeof *ours };

static void expect_row_on(oracle_conv row, const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64};
    row.in = row.c;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        conv_problem p = conv_problem_new(row, dtypes[k]);
        for (int threads = min_threads(); threads <= 3; threads += 2) {
            test_backend t = direct_open_isa(isa, threads);
            for (int i = 0; i < N_OURS; i++) {
                int n = expect_exact(&p, &t, ours[i], isa);
                cr_assert_eq(n, p.n[ours[i]] > 0, "%d candidates: %s", n, p.text);
            }
            backend_close(&t);
        }
        conv_problem_free(&p);
    }
}

/* Shapes at the limits of what loops are cut into. */
static const oracle_conv rows[] = {
    {.n = 2, .h = 9, .w = 11, .c = 3, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
    {.n = 2, .h = 28, .w = 28, .c = 1, .kh = 5, .kw = 5, .last = 6, .padding = ADJ_SAME},
    {.n = 1, .h = 33, .w = 30, .c = 3, .kh = 7, .kw = 7, .last = 20, .sh = 2, .sw = 2},
    {.n = 1, .h = 20, .w = 21, .c = 4, .kh = 7, .kw = 7, .last = 5, .padding = ADJ_SAME},
    {.n = 1, .h = 15, .w = 40, .c = 2, .kh = 11, .kw = 11, .last = 3, .sh = 4, .sw = 4},
    {.n = 3, .h = 5, .w = 5, .c = 1, .kh = 1, .kw = 1, .last = 33, .sh = 3, .sw = 3},
    {.n = 1, .h = 6, .w = 7, .c = 8, .kh = 2, .kw = 4, .last = 17, .sh = 1, .sw = 3},
    {.n = 1, .h = 7, .w = 6, .c = 5, .kh = 4, .kw = 1, .last = 9, .sh = 3, .sw = 2},
    {.n = 1, .h = 3, .w = 4, .c = 3, .kh = 7, .kw = 7, .last = 8, .padding = ADJ_SAME},
    {.n = 1, .h = 3, .w = 33, .c = 1, .kh = 3, .kw = 32, .last = 1, .padding = ADJ_SAME},
    {.n = 1, .h = 33, .w = 3, .c = 1, .kh = 32, .kw = 2, .last = 1, .sh = 2, .sw = 1},
    /* column tiles */
    {.n = 1, .h = 8, .w = 300, .c = 4, .kh = 7, .kw = 7, .last = 1, .padding = ADJ_SAME},
    {.n = 2,
     .h = 4,
     .w = 521,
     .c = 3,
     .kh = 3,
     .kw = 7,
     .last = 2,
     .sh = 1,
     .sw = 2,
     .padding = ADJ_SAME},
    {.n = 1, .h = 2, .w = 700, .c = 8, .kh = 2, .kw = 5, .last = 1, .sh = 1, .sw = 5},
    {.n = 1,
     .h = 2,
     .w = 3,
     .c = 3,
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
    {.n = 2, .h = 190, .w = 180, .c = 1, .kh = 2, .kw = 2, .last = 2}, /* more than one flush */
};

static void listed(const char *isa)
{
    need_isa(isa);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row_on(rows[i], isa);
}

Test(direct_conv, listed_base) { listed("base"); }
Test(direct_conv, listed_avx2) { listed("avx2"); }
Test(direct_conv, listed_avx512) { listed("avx512"); }

static oracle_conv random_row(uint32_t *k)
{
    static const int outputs[] = {1, 2, 3, 8, 15, 16, 17, 24, 33, 48};
    oracle_conv a = {.n = draw(k, 1, 3),
                     .h = draw(k, 1, 14),
                     .w = draw(k, 1, 41),
                     .c = draw(k, 1, 5),
                     .kh = draw(k, 1, 9),
                     .kw = draw(k, 1, 9),
                     .last = outputs[draw(k, 0, 9)],
                     .sh = draw(k, 1, 4),
                     .sw = draw(k, 1, 4)};
    draw_padding(&a, k);
    return a;
}

static void random_rows(const char *isa, uint32_t k)
{
    need_isa(isa);
    for (int i = 0; i < repeats(25); i++)
        expect_row_on(random_row(&k), isa);
}

Test(direct_conv, random_base) { random_rows("base", 0); }
Test(direct_conv, random_avx2) { random_rows("avx2", 100000); }
Test(direct_conv, random_avx512) { random_rows("avx512", 200000); }

/* Sums have one order, whatever the threads. */
Test(direct_conv, same_bits_for_any_threads)
{
    const oracle_conv row = {.n = 5,
                             .h = 19,
                             .w = 21,
                             .c = 3,
                             .kh = 5,
                             .kw = 3,
                             .in = 3,
                             .last = 24,
                             .padding = ADJ_SAME};
    oracle_sizes s = oracle_sizes_of(row);
    fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, s.x, -1, 1), *w = given_random(&f, ADJ_F32, s.w, -1, 1),
             *dy = given_random(&f, ADJ_F32, s.y, -1, 1);
    const adj_node *result[] = {adj_conv2d(x, w, &s.attrs),
                                adj_conv2d_backprop_input(s.x, w, dy, &s.attrs),
                                adj_conv2d_backprop_filter(x, s.w, dy, &s.attrs)};
    for (int i = 0; i < N_OURS; i++)
        expect_same_bits_for_any_threads(&f, result[ours[i]], best_isa());
    fixture_free(&f);
}

/* An infinity in dy's corner reaches no tap that lies in the padding there, which is no zero. */
static void infinity_at_the_border(const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64};
    enum { SIZE = 4, CHANNELS = 2, OUTPUTS = 3 };
    need_isa(isa);
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        fixture f = fixture_new();
        test_backend t = direct_open_isa(isa, 1);
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
        backend_close(&t);
        fixture_free(&f);
    }
}

Test(direct_conv, infinity_base) { infinity_at_the_border("base"); }
Test(direct_conv, infinity_avx2) { infinity_at_the_border("avx2"); }
Test(direct_conv, infinity_avx512) { infinity_at_the_border("avx512"); }

/* Images in NCHW are refused with the reason. */
Test(direct_conv, refused)
{
    const adj_conv nchw = {.format = ADJ_NCHW};
    const adj_shape size = {4, {1, 3, 8, 8}};
    test_backend t = direct_open_isa(best_isa(), 1);
    fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, size, -3, 3);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 2, 3, 4}}, -3, 3);
    adj_node *y = adj_conv2d(x, w, &nchw);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    adj_node *dy = given_integers(&f, ADJ_F32, y->type.shape, -3, 3);
    const adj_node *dx = adj_conv2d_backprop_input(size, w, dy, &nchw);
    outcome o = run_kernel(&f, &t, "gemm", 1, &dx);
    cr_expect_eq(o.status, ADJ_ENOKERNEL);
    cr_expect_not_null(strstr(o.why, "NHWC"), "%s", o.why);
    fixture_free(&f);
    backend_close(&t);
}
