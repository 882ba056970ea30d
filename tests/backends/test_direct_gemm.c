/* test_direct_gemm.c - the direct dense convolution, its input gradient and matmul on integers, bit
 * for bit against the definition: every instruction set and type, on one thread and on three; what
 * is not finite, against naive. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/tile_cases.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static const enum oracle_result results[] = {ORACLE_Y, ORACLE_DX};
enum { N_RESULT = sizeof results / sizeof *results };

/* The last node's value is what is wanted, whether the filter may change in every run or is packed
 * once for many. */
static void expect_ours(fixture *f, test_backend *t, int n, const adj_node *const node[],
                        const double *want, const char *text)
{
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        t->invariant = is_kept ? UINT32_MAX : 0;
        outcome o = run_kernel(f, t, "gemm", n, node);
        cr_assert_eq(o.status, ADJ_OK, "%s: %s", text, o.why);
        const int is_packed = strstr(o.layouts, "panels") != NULL;
        cr_assert_eq(is_packed, is_kept && node[0]->op != &adj_op_conv2d_backprop_input, "%s: %s",
                     text, o.layouts);
        expect_close(o.y, want, adj_shape_elems(node[n - 1]->type.shape), 0, 0, text);
        free(o.y);
    }
}

static void expect_row_on(oracle_conv row, const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64};
    row.in = row.c;
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        conv_problem p = conv_problem_new(row, dtypes[k]);
        for (int i = 0; i < N_RESULT; i++)
            for (int threads = min_threads(); p.n[results[i]] > 0 && threads <= 3; threads += 2) {
                test_backend t = direct_open_isa(isa, threads);
                const adj_node *node = p.result[results[i]];
                expect_ours(&p.f, &t, 1, &node, p.want[results[i]], p.text);
                backend_close(&t);
            }
        conv_problem_free(&p);
    }
}

/* Rows that are copied and such that lie as they are, short rows that are gathered, flat ones,
 * outputs that fill vectors and such that do not, windows beyond the image. */
static const oracle_conv rows[] = {
    {.n = 2, .h = 9, .w = 11, .c = 3, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
    {.n = 2, .h = 28, .w = 28, .c = 1, .kh = 5, .kw = 5, .last = 6, .padding = ADJ_SAME},
    {.n = 1, .h = 33, .w = 30, .c = 3, .kh = 7, .kw = 7, .last = 20, .sh = 2, .sw = 2},
    {.n = 2, .h = 17, .w = 13, .c = 24, .kh = 1, .kw = 1, .last = 40},
    {.n = 1, .h = 40, .w = 40, .c = 5, .kh = 1, .kw = 1, .last = 3},
    {.n = 3, .h = 5, .w = 5, .c = 1, .kh = 1, .kw = 1, .last = 33, .sh = 3, .sw = 3},
    {.n = 2, .h = 7, .w = 4, .c = 16, .kh = 3, .kw = 3, .last = 24, .padding = ADJ_SAME},
    {.n = 1, .h = 2, .w = 2, .c = 8, .kh = 3, .kw = 3, .last = 17, .padding = ADJ_SAME},
    {.n = 1,
     .h = 49,
     .w = 10,
     .c = 1,
     .kh = 10,
     .kw = 4,
     .last = 64,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME},
    {.n = 1, .h = 20, .w = 20, .c = 6, .kh = 3, .kw = 3, .last = 9, .dh = 3, .dw = 2},
    {.n = 2,
     .h = 9,
     .w = 9,
     .c = 4,
     .kh = 3,
     .kw = 2,
     .last = 5,
     .dh = 2,
     .dw = 5,
     .padding = ADJ_SAME},
    {.n = 1,
     .h = 6,
     .w = 5,
     .c = 4,
     .kh = 2,
     .kw = 2,
     .last = 8,
     .dh = 4,
     .dw = 3,
     .padding = ADJ_SAME},
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
    {.n = 1,
     .h = 3,
     .w = 9,
     .c = 2,
     .kh = 1,
     .kw = 1,
     .last = 8,
     .padding = ADJ_EXPLICIT,
     .pad = {2, 1, 3, 4}},
    {.n = 2, .h = 9, .w = 9, .c = 9, .kh = 5, .kw = 5, .last = 3, .sh = 4, .sw = 4},
};

static void listed(const char *isa)
{
    need_isa(isa);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row_on(rows[i], isa);
    for (int i = 0; i < TILE_CASES && strcmp(isa, "base") != 0; i++)
        expect_row_on(tile_cases[i], isa);
}

Test(direct_gemm, listed_base) { listed("base"); }
Test(direct_gemm, listed_avx2) { listed("avx2"); }
Test(direct_gemm, listed_avx512) { listed("avx512"); }

static oracle_conv random_row(uint32_t *k)
{
    static const int outputs[] = {1, 2, 3, 8, 15, 16, 17, 24, 33, 48};
    oracle_conv a = {.n = draw(k, 1, 3),
                     .h = draw(k, 1, 14),
                     .w = draw(k, 1, 21),
                     .c = draw(k, 1, 9),
                     .kh = draw(k, 1, 5),
                     .kw = draw(k, 1, 5),
                     .last = outputs[draw(k, 0, 9)],
                     .sh = draw(k, 1, 3),
                     .sw = draw(k, 1, 3)};
    if (a.sh == 1 && a.sw == 1) {
        a.dh = draw(k, 1, 3);
        a.dw = draw(k, 1, 3);
    }
    draw_padding(&a, k);
    return a;
}

static void random_rows(const char *isa, uint32_t k)
{
    need_isa(isa);
    for (int i = 0; i < repeats(40); i++)
        expect_row_on(random_row(&k), isa);
}

Test(direct_gemm, random_base) { random_rows("base", 0); }
Test(direct_gemm, random_avx2) { random_rows("avx2", 100000); }
Test(direct_gemm, random_avx512) { random_rows("avx512", 200000); }

/* ---- what is not finite ---- */

/* A window that does not read the value, or that has padding where the filter has it, stays a
 * number. */
static void expect_special_of(adj_dtype dtype, oracle_conv row, const char *isa, int operand,
                              int64_t i, double value)
{
    conv_problem p = conv_problem_new(row, dtype);
    p.f.value[operand][i] = value;
    for (int k = 0; k < N_RESULT; k++) {
        const adj_node *n = p.result[results[k]];
        double *want = by_naive(&p.f, n);
        test_backend t = direct_open_isa(isa, 2);
        expect_ours(&p.f, &t, 1, &n, want, p.text);
        backend_close(&t);
        free(want);
    }
    conv_problem_free(&p);
}

static void expect_special(oracle_conv row, const char *isa, int operand, int64_t i, double value)
{
    expect_special_of(ADJ_F32, row, isa, operand, i, value);
    expect_special_of(ADJ_F64, row, isa, operand, i, value);
}

Test(direct_gemm, specials_avx2)
{
    need_isa("avx2");
    check_tile_specials(expect_special, "avx2");
}

Test(direct_gemm, specials_avx512)
{
    need_isa("avx512");
    check_tile_specials(expect_special, "avx512");
}

/* The bias of positions that are computed anew, too. */
static void expect_bias(oracle_conv row, int64_t i, double value)
{
    row.in = row.c;
    conv_problem p = conv_problem_new(row, ADJ_F32);
    adj_node *bias = given_integers(&p.f, ADJ_F32, (adj_shape){1, {row.last}}, -9, 9);
    adj_node *y = p.result[ORACLE_Y];
    const adj_node *group[] = {y, adj_bias_add(y, bias, ADJ_NHWC)};
    if (i >= 0)
        p.f.value[1][i] = value;
    test_backend t = direct_open_isa(best_isa(), 2);
    double *want = by_naive(&p.f, y);
    for (int64_t k = 0; k < p.n[ORACLE_Y]; k++)
        want[k] += p.f.value[3][k % row.last];
    expect_ours(&p.f, &t, 2, group, want, p.text);
    backend_close(&t);
    free(want);
    conv_problem_free(&p);
}

Test(direct_gemm, bias) { check_tile_biases(expect_bias); }

/* ---- matmul and bias ---- */

/* a b + bias by the definition. */
static void expect_product(const char *isa, int64_t n, int64_t k, int64_t m, int with_bias)
{
    fixture f = fixture_new();
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {n, k}}, -3, 3);
    adj_node *b = given_integers(&f, ADJ_F32, (adj_shape){2, {k, m}}, -3, 3);
    adj_node *bias = given_integers(&f, ADJ_F32, (adj_shape){1, {m}}, -9, 9);
    const adj_node *node[2] = {adj_matmul(a, b, 0)};
    node[1] = adj_bias_add((adj_node *)node[0], bias, ADJ_NHWC);
    char text[64];
    snprintf(text, sizeof text, "%s, %ldx%ldx%ld", isa, (long)n, (long)k, (long)m);
    double *want = malloc((size_t)(n * m) * sizeof *want);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            want[i * m + j] = with_bias ? f.value[2][j] : 0;
            for (int64_t l = 0; l < k; l++)
                want[i * m + j] += f.value[0][i * k + l] * f.value[1][l * m + j];
        }
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        test_backend t = direct_open_isa(isa, threads);
        expect_ours(&f, &t, with_bias ? 2 : 1, node, want, text);
        backend_close(&t);
    }
    free(want);
    fixture_free(&f);
}

static void products(const char *isa)
{
    static const int64_t sizes[][3] = {{1, 400, 120}, {1, 7, 10},   {5, 33, 1},
                                       {64, 84, 10},  {97, 16, 64}, {193, 3, 47}};
    need_isa(isa);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int with_bias = 0; with_bias < 2; with_bias++)
            expect_product(isa, sizes[i][0], sizes[i][1], sizes[i][2], with_bias);
}

Test(direct_gemm, products_base) { products("base"); }
Test(direct_gemm, products_avx2) { products("avx2"); }
Test(direct_gemm, products_avx512) { products("avx512"); }

/* Sums have one order, whatever the threads, and however they share a single image: a large
 * filter's outputs, short rows, fewer panels than threads. */
Test(direct_gemm, same_bits_for_any_threads)
{
    static const oracle_conv list[] = {
        {.n = 3, .h = 19, .w = 21, .c = 13, .kh = 5, .kw = 3, .last = 29, .padding = ADJ_SAME},
        {.n = 1, .h = 8, .w = 8, .c = 160, .kh = 3, .kw = 3, .last = 256, .padding = ADJ_SAME},
        {.n = 1, .h = 4, .w = 4, .c = 40, .kh = 3, .kw = 3, .last = 72, .padding = ADJ_SAME},
        {.n = 1, .h = 9, .w = 30, .c = 16, .kh = 3, .kw = 3, .last = 8, .padding = ADJ_SAME},
        {.n = 1, .h = 7, .w = 5, .c = 64, .kh = 1, .kw = 1, .last = 48},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        oracle_conv row = list[i];
        row.in = row.c;
        oracle_sizes s = oracle_sizes_of(row);
        fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F32, s.x, -1, 1);
        adj_node *w = given_random(&f, ADJ_F32, s.w, -1, 1);
        adj_node *dy = given_random(&f, ADJ_F32, s.y, -1, 1);
        expect_same_bits_for_any_threads(&f, adj_conv2d(x, w, &s.attrs), best_isa());
        expect_same_bits_for_any_threads(&f, adj_conv2d_backprop_input(s.x, w, dy, &s.attrs),
                                         best_isa());
        fixture_free(&f);
    }
}

/* What is not ours is refused with the reason. */
Test(direct_gemm, refused)
{
    static const adj_conv nchw = {.format = ADJ_NCHW}, plain = {.format = ADJ_NHWC};
    static const adj_conv far = {.stride = {1, 5, 5, 1}};
    test_backend t = direct_open_isa(best_isa(), 1);
    fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 8, 8, 8}}, -3, 3);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 2, 8, 4}}, -3, 3);
    adj_node *half = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 2, 4, 4}}, -3, 3);
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {4, 4}}, -3, 3);
    adj_node *dy = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 2, 2, 4}}, -3, 3);
    const adj_node *node[] = {adj_conv2d(x, w, &nchw), adj_conv2d(x, half, &plain),
                              adj_matmul(a, a, ADJ_TRANSPOSE_B),
                              adj_conv2d_backprop_input((adj_shape){4, {1, 8, 8, 8}}, w, dy, &far)};
    for (size_t i = 0; i < sizeof node / sizeof *node; i++) {
        cr_assert_not_null(node[i], "%s", adj_graph_message(f.g));
        outcome o = run_kernel(&f, &t, "gemm", 1, &node[i]);
        cr_expect_eq(o.status, ADJ_ENOKERNEL);
        cr_expect_not_null(strstr(o.why, "f64 in NHWC"), "%s", o.why);
    }
    backend_close(&t);
    fixture_free(&f);
}
