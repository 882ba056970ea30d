/* test_direct_conv_bf16.c - our own y and dx in bf16: on integers bit for bit against the
 * definition, with one thread and three; what is not finite, against naive; how far sums are off;
 * what is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/tile_cases.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static const int results[] = {ORACLE_Y, ORACLE_DX};
enum { N_RESULT = sizeof results / sizeof *results };

static int is_ours(const outcome *o)
{
    return o->status == ADJ_OK && strcmp(o->impl, "conv_bf16:amx") == 0;
}

/* Of the first candidate: our kernel comes before direct's others. */
static double *run_ours(fixture *f, int threads, const adj_node *n, const char *text)
{
    test_backend t = direct_open_isa("amx", threads);
    outcome o = run_candidate(f, &t, 1, &n, 0);
    cr_assert_eq(o.status, ADJ_OK, "%s: %s", text, o.why);
    cr_assert(is_ours(&o), "%s: %s", text, o.impl);
    backend_close(&t);
    return o.y;
}

static void expect_row(oracle_conv row)
{
    row.in = row.c;
    conv_problem p = conv_problem_new(row, ADJ_BF16);
    for (int k = 0; k < N_RESULT; k++)
        for (int threads = min_threads(); threads <= 3; threads += 2) {
            const int r = results[k];
            double *got = run_ours(&p.f, threads, p.result[r], p.text);
            for (int64_t i = 0; i < p.n[r]; i++)
                cr_assert(got[i] == p.want[r][i], "%s %s: [%ld] is %g, not %g",
                          p.result[r]->op->name, p.text, (long)i, got[i], p.want[r][i]);
            free(got);
        }
    conv_problem_free(&p);
}

Test(direct_conv_bf16, listed)
{
    need_isa("amx");
    for (int i = 0; i < TILE_CASES; i++)
        expect_row(tile_cases[i]);
}

Test(direct_conv_bf16, random)
{
    need_isa("amx");
    uint32_t k = 500000;
    for (int i = 0; i < repeats(40); i++)
        expect_row(draw_tile_case(&k));
}

/* ---- a bias behind y ---- */

/* Element i of the filter is `value`, if i is not negative: padding is mended with the bias, too.
 */
static void expect_bias(oracle_conv row, int64_t i, double value)
{
    row.in = row.c;
    conv_problem p = conv_problem_new(row, ADJ_BF16);
    const oracle_sizes s = oracle_sizes_of(row);
    adj_node *bias = given_integers(&p.f, ADJ_BF16, (adj_shape){1, {row.last}}, -9, 9);
    adj_node *y = p.result[ORACLE_Y];
    const adj_node *group[] = {y, adj_bias_add(y, bias, ADJ_NHWC)};
    const double *const b = p.f.value[3];
    if (i >= 0)
        p.f.value[1][i] = value;
    double *sums = i >= 0 ? by_naive(&p.f, y)
                          : oracle_convolve(&s, ORACLE_Y, p.f.value[0], p.f.value[1], NULL);
    for (int64_t k = 0; k < p.n[ORACLE_Y]; k++) {
        char stored[2];
        adj_store(ADJ_BF16, stored, 0, sums[k] + b[k % row.last]);
        sums[k] = adj_load(ADJ_BF16, stored, 0);
    }
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        test_backend t = direct_open_isa("amx", threads);
        outcome o = run_candidate(&p.f, &t, 2, group, 0);
        cr_assert(is_ours(&o), "%s: %s", p.text, o.status == ADJ_OK ? o.impl : o.why);
        expect_close(o.y, sums, p.n[ORACLE_Y], 0, 0, p.text);
        free(o.y);
        backend_close(&t);
    }
    free(sums);
    conv_problem_free(&p);
}

Test(direct_conv_bf16, bias)
{
    need_isa("amx");
    check_tile_biases(expect_bias);
}

/* ---- what is not finite ---- */

/* Against naive's: a window that does not read the value, or that has padding where the filter has
 * it, stays a number. */
static void expect_special(oracle_conv row, const char *isa, int operand, int64_t i, double value)
{
    (void)isa;
    conv_problem p = conv_problem_new(row, ADJ_BF16);
    p.f.value[operand][i] = value;
    for (int k = 0; k < N_RESULT; k++) {
        const adj_node *n = p.result[results[k]];
        double *want = by_naive(&p.f, n), *got = run_ours(&p.f, 2, n, p.text);
        expect_close(got, want, p.n[results[k]], 0, 0, p.text);
        free(want);
        free(got);
    }
    conv_problem_free(&p);
}

Test(direct_conv_bf16, specials)
{
    need_isa("amx");
    check_tile_specials(expect_special, "amx");
}

/* ---- sums ---- */

/* Products are exact: what is left is the last rounding to 8 bits, and that of sums in f32. */
Test(direct_conv_bf16, errors)
{
    need_isa("amx");
    random_sums r = random_sums_new(long_sums, ADJ_BF16, 0, 1);
    for (int k = 0; k < N_RESULT; k++) {
        double *got = run_ours(&r.f, 2, r.n[results[k]], "errors"), worst = 0;
        double *want = oracle_convolve(&r.s, (enum oracle_result)results[k], r.f.value[0],
                                       r.f.value[1], r.f.value[2]);
        for (int64_t i = 0; i < adj_shape_elems(r.n[results[k]]->type.shape); i++)
            worst = fmax(worst, fabs(got[i] - want[i]) / want[i]);
        cr_assert_leq(worst, 0x1p-8 * 1.001, "%g", worst);
        free(got);
        free(want);
    }
    fixture_free(&r.f);
}

Test(direct_conv_bf16, same_bits_for_any_threads)
{
    need_isa("amx");
    random_sums r = random_sums_new(long_sums, ADJ_BF16, -1, 1);
    for (int k = 0; k < N_RESULT; k++)
        expect_same_bits_for_any_threads(&r.f, r.n[results[k]], "amx");
    fixture_free(&r.f);
}

/* ---- what is refused ---- */

/* Whether our kernel takes y, and dx: bits. */
static int taken(oracle_conv row, adj_dtype dtype, const char *isa)
{
    row.in = row.in > 0 ? row.in : row.c;
    const oracle_sizes s = oracle_sizes_of(row);
    fixture f = fixture_new();
    adj_node *x = given_random(&f, dtype, s.x, -1, 1), *w = given_random(&f, dtype, s.w, -1, 1);
    adj_node *dy = given_random(&f, dtype, s.y, -1, 1);
    const adj_node *n[] = {adj_conv2d(x, w, &s.attrs),
                           adj_conv2d_backprop_input(s.x, w, dy, &s.attrs)};
    test_backend t = direct_open_isa(isa, 2);
    int bits = 0;
    for (int k = 0; k < N_RESULT; k++) {
        cr_assert_not_null(n[k], "%s", adj_graph_message(f.g));
        outcome o = run_candidate(&f, &t, 1, &n[k], 0);
        bits |= is_ours(&o) << k;
        free(o.y);
    }
    backend_close(&t);
    fixture_free(&f);
    return bits;
}

static const oracle_conv usual = {
    .n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32, .padding = ADJ_SAME};

Test(direct_conv_bf16, refused)
{
    static const oracle_conv bad[] = {
        {.n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .in = 16, .last = 32},
        {.n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32, .sw = 3},
        {.n = 2, .h = 12, .w = 8, .c = 32, .kh = 12, .kw = 3, .last = 32},
        {.n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32, .format = ADJ_NCHW},
        {.n = 0, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .last = 32},
    };
    need_isa("amx");
    cr_assert_eq(taken(usual, ADJ_BF16, "amx"), 3);
    cr_assert_eq(taken(usual, ADJ_F32, "amx"), 0);
    cr_assert_eq(taken(usual, ADJ_F16, "amx"), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(taken(bad[i], ADJ_BF16, "amx"), 0, "%zu", i);
}

/* On every machine: ADJOINT_MAX_ISA allows no more. */
Test(direct_conv_bf16, needs_amx)
{
    static const char *const less[] = {"base", "avx2", "avx512", "avx512_bf16"};
    for (size_t i = 0; i < sizeof less / sizeof *less; i++)
        if (can_test(less[i]))
            cr_assert_eq(taken(usual, ADJ_BF16, less[i]), 0, "%s", less[i]);
}
