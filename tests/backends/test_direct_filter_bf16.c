/* test_direct_filter_bf16.c - our own filter gradient in bf16: on integers bit for bit against the
 * definition, both kinds of instructions, one thread and three, results in bf16 and in f32; what is
 * not finite; how far sums of many pixels are off. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/tile_cases.h"
#include "tests/isa.h"
#include "tests/repeat.h"

/* dw of the only candidate, in f32 if it is asked for with the cast. */
static double *run_ours(fixture *f, const char *isa, int threads, const adj_node *dw, int is_f32)
{
    const adj_node *group[] = {dw, adj_cast((adj_node *)dw, ADJ_F32)};
    const int n = is_f32 ? 2 : 1;
    char impl[64];
    snprintf(impl, sizeof impl, "filter_bf16:%s", isa);
    test_backend t = direct_open_isa(isa, threads);
    outcome o = run_candidate(f, &t, n, group, 0);
    cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
    cr_assert_str_eq(o.impl, impl);
    cr_assert_eq(run_candidate(f, &t, n, group, 1).status, ADJ_ENOKERNEL);
    backend_close(&t);
    return o.y;
}

static void expect_row_on(oracle_conv row, const char *isa)
{
    row.in = row.c;
    conv_problem p = conv_problem_new(row, ADJ_BF16);
    const adj_node *dw = p.result[ORACLE_DW];
    const oracle_sizes s = oracle_sizes_of(row);
    double *exact = oracle_convolve(&s, ORACLE_DW, p.f.value[0], p.f.value[1], p.f.value[2]);
    for (int threads = min_threads(); threads <= 3; threads += 2)
        for (int is_f32 = 0; is_f32 <= 1; is_f32++) {
            double *got = run_ours(&p.f, isa, threads, dw, is_f32);
            expect_close(got, is_f32 ? exact : p.want[ORACLE_DW], p.n[ORACLE_DW], 0, 0, p.text);
            free(got);
        }
    free(exact);
    conv_problem_free(&p);
}

static void listed(const char *isa)
{
    need_isa(isa);
    for (int i = 0; i < TILE_CASES; i++)
        expect_row_on(tile_cases[i], isa);
}

Test(direct_filter_bf16, listed_avx512_bf16) { listed("avx512_bf16"); }
Test(direct_filter_bf16, listed_amx) { listed("amx"); }

static void random_rows(const char *isa, uint32_t k)
{
    need_isa(isa);
    for (int i = 0; i < repeats(25); i++)
        expect_row_on(draw_tile_case(&k), isa);
}

Test(direct_filter_bf16, random_avx512_bf16) { random_rows("avx512_bf16", 300000); }
Test(direct_filter_bf16, random_amx) { random_rows("amx", 400000); }

/* ---- what is not finite ---- */

/* Against naive's: a tap that does not read the value, and one that reads padding there, stays a
 * number. */
static void expect_special(oracle_conv row, const char *isa, int operand, int64_t i, double value)
{
    conv_problem p = conv_problem_new(row, ADJ_BF16);
    const adj_node *dw = p.result[ORACLE_DW];
    p.f.value[operand][i] = value;
    double *want = by_naive(&p.f, dw), *got = run_ours(&p.f, isa, 2, dw, 0);
    expect_close(got, want, p.n[ORACLE_DW], 0, 0, p.text);
    free(want);
    free(got);
    conv_problem_free(&p);
}

static void specials(const char *isa)
{
    need_isa(isa);
    check_tile_specials(expect_special, isa);
}

Test(direct_filter_bf16, specials_avx512_bf16) { specials("avx512_bf16"); }
Test(direct_filter_bf16, specials_amx) { specials("amx"); }

/* ---- sums ---- */

static const oracle_conv many_pixels = {
    .n = 25, .h = 30, .w = 33, .c = 16, .kh = 3, .kw = 3, .last = 24, .padding = ADJ_SAME};

/* Products are exact: all of the error is that of sums of 24,750 terms of one sign. */
static void expect_small_errors(const char *isa)
{
    need_isa(isa);
    random_sums r = random_sums_new(many_pixels, ADJ_BF16, 0, 1);
    double *got = run_ours(&r.f, isa, 2, r.n[ORACLE_DW], 1), worst = 0;
    double *want = oracle_convolve(&r.s, ORACLE_DW, r.f.value[0], NULL, r.f.value[2]);
    for (int64_t i = 0; i < adj_shape_elems(r.s.w); i++)
        worst = fmax(worst, fabs(got[i] - want[i]) / want[i]);
    cr_assert_leq(worst, 2e-6, "%g", worst);
    free(got);
    free(want);
    fixture_free(&r.f);
}

Test(direct_filter_bf16, errors_avx512_bf16) { expect_small_errors("avx512_bf16"); }
Test(direct_filter_bf16, errors_amx) { expect_small_errors("amx"); }

static void expect_same_bits(const char *isa)
{
    need_isa(isa);
    random_sums r = random_sums_new(many_pixels, ADJ_BF16, -1, 1);
    double *one = run_ours(&r.f, isa, 1, r.n[ORACLE_DW], 1);
    for (int threads = 2; threads <= 7; threads++) {
        double *other = run_ours(&r.f, isa, threads, r.n[ORACLE_DW], 1);
        cr_assert(memcmp(one, other, (size_t)adj_shape_elems(r.s.w) * sizeof *one) == 0,
                  "%d threads", threads);
        free(other);
    }
    free(one);
    fixture_free(&r.f);
}

Test(direct_filter_bf16, same_bits_for_any_threads_avx512_bf16) { expect_same_bits("avx512_bf16"); }
Test(direct_filter_bf16, same_bits_for_any_threads_amx) { expect_same_bits("amx"); }

/* ---- what is refused ---- */

static int is_taken(oracle_conv row, adj_dtype dtype, const char *isa)
{
    row.in = row.in > 0 ? row.in : row.c;
    const oracle_sizes s = oracle_sizes_of(row);
    fixture f = fixture_new();
    adj_node *x = given_random(&f, dtype, s.x, -1, 1), *dy = given_random(&f, dtype, s.y, -1, 1);
    const adj_node *dw = adj_conv2d_backprop_filter(x, s.w, dy, &s.attrs);
    cr_assert_not_null(dw, "%s", adj_graph_message(f.g));
    test_backend t = direct_open_isa(isa, 2);
    outcome o = run_candidate(&f, &t, 1, &dw, 0);
    backend_close(&t);
    free(o.y);
    fixture_free(&f);
    return o.status == ADJ_OK && strncmp(o.impl, "filter_bf16:", 12) == 0;
}

Test(direct_filter_bf16, refused)
{
    static const oracle_conv usual = {
        .n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32, .padding = ADJ_SAME};
    static const oracle_conv bad[] = {
        {.n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .in = 16, .last = 32},
        {.n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32, .sw = 3},
        {.n = 2, .h = 12, .w = 8, .c = 32, .kh = 12, .kw = 3, .last = 32},
        {.n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32, .format = ADJ_NCHW},
        {.n = 0, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32},
    };
    need_isa("avx512_bf16");
    cr_assert(is_taken(usual, ADJ_BF16, "avx512_bf16"));
    cr_assert(!is_taken(usual, ADJ_BF16, "avx512"));
    cr_assert(!is_taken(usual, ADJ_F32, "avx512_bf16"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert(!is_taken(bad[i], ADJ_BF16, "avx512_bf16"), "%zu", i);
}
