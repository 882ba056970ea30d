/* test_direct_parts.c - our own convolutions and gradients of f32 by three products of bf16 parts:
 * where one operand is exact in bf16, on integers bit for bit against the definition, each of the
 * three products among them; what is left out, against its bound; numbers that have no parts,
 * against naive; what is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/tile_cases.h"
#include "tests/isa.h"
#include "tests/repeat.h"

enum { DIRECTIONS = 3, OPERANDS = 3 }; /* operands: x, w, dy */

/* Which of x, w and dy a direction has none of. */
static int is_operand(int direction, int operand)
{
    static const int without[DIRECTIONS] = {[ORACLE_Y] = 2, [ORACLE_DX] = 0, [ORACLE_DW] = 1};
    return operand != without[direction];
}

static test_backend open_fast(const char *isa, int threads)
{
    setenv("ADJOINT_MAX_ISA", isa, 1);
    return backend_open_math("direct", threads, ADJ_MATH_FAST);
}

static int is_ours(const outcome *o)
{
    return o->status == ADJ_OK &&
           (strcmp(o->impl, "conv_bf16x3:amx") == 0 || strcmp(o->impl, "filter_bf16x3:amx") == 0);
}

/* Of the first candidate: our kernels come before direct's others. */
static double *run_ours(fixture *f, int threads, int n, const adj_node *const node[],
                        const char *text)
{
    test_backend t = open_fast("amx", threads);
    outcome o = run_candidate(f, &t, n, node, 0);
    cr_assert_eq(o.status, ADJ_OK, "%s: %s", text, o.why);
    cr_assert(is_ours(&o), "%s: %s", text, o.impl);
    backend_close(&t);
    return o.y;
}

/* ---- bit for bit ---- */

static const double two_parts = 257; /* 256 + 1: bf16 has 8 bits */

static void scale(double *v, int64_t n, double by)
{
    for (int64_t i = 0; i < n; i++)
        v[i] *= by;
}

/* An operand's integers are times `two_parts`, the others' have one part. */
static void expect_exact_with(conv_problem *p, int direction, int operand, int64_t n)
{
    scale(p->f.value[operand], n, two_parts);
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        const adj_node *node = p->result[direction];
        double *got = run_ours(&p->f, threads, 1, &node, p->text);
        for (int64_t i = 0; i < p->n[direction]; i++)
            cr_assert(got[i] == two_parts * p->want[direction][i],
                      "%s %s, operand %d: [%ld] is %g, not %g", node->op->name, p->text, operand,
                      (long)i, got[i], two_parts * p->want[direction][i]);
        free(got);
    }
    scale(p->f.value[operand], n, 1 / two_parts);
}

static void expect_row(oracle_conv row)
{
    row.in = row.c;
    const oracle_sizes s = oracle_sizes_of(row);
    const int64_t n[OPERANDS] = {adj_shape_elems(s.x), adj_shape_elems(s.w), adj_shape_elems(s.y)};
    conv_problem p = conv_problem_new(row, ADJ_F32);
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int operand = 0; operand < OPERANDS; operand++)
            if (is_operand(direction, operand))
                expect_exact_with(&p, direction, operand, n[operand]);
    conv_problem_free(&p);
}

Test(direct_parts, listed)
{
    need_isa("amx");
    for (int i = 0; i < TILE_CASES; i++)
        expect_row(tile_cases[i]);
}

Test(direct_parts, random)
{
    need_isa("amx");
    uint32_t k = 600000;
    for (int i = 0; i < repeats(25); i++)
        expect_row(draw_tile_case(&k));
}

/* Element i of the filter is `value`, if i is not negative. */
static void expect_bias(oracle_conv row, int64_t i, double value)
{
    row.in = row.c;
    conv_problem p = conv_problem_new(row, ADJ_F32);
    adj_node *bias = given_integers(&p.f, ADJ_F32, (adj_shape){1, {row.last}}, -900, 900);
    const adj_node *group[] = {p.result[ORACLE_Y],
                               adj_bias_add(p.result[ORACLE_Y], bias, ADJ_NHWC)};
    if (i >= 0)
        p.f.value[1][i] = value;
    double *want = by_naive(&p.f, group[1]), *got = run_ours(&p.f, 3, 2, group, p.text);
    expect_close(got, want, p.n[ORACLE_Y], 0, 0, p.text);
    free(want);
    free(got);
    conv_problem_free(&p);
}

Test(direct_parts, bias)
{
    need_isa("amx");
    check_tile_biases(expect_bias);
}

/* ---- numbers without parts ---- */

/* Against naive's: only a window that reads the value is not a number. */
static void expect_special(oracle_conv row, const char *isa, int operand, int64_t i, double value)
{
    (void)isa;
    conv_problem p = conv_problem_new(row, ADJ_F32);
    p.f.value[operand][i] = value;
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const adj_node *n = p.result[direction];
        double *want = by_naive(&p.f, n), *got = run_ours(&p.f, 2, 1, &n, p.text);
        expect_close(got, want, p.n[direction], 0, 0, p.text);
        free(want);
        free(got);
    }
    conv_problem_free(&p);
}

Test(direct_parts, specials)
{
    need_isa("amx");
    check_tile_specials(expect_special, "amx");
}

/* Numbers whose first part, or the product of it, would be Inf, though f32 has them and their sums.
 */
Test(direct_parts, largest)
{
    static const oracle_conv row = {
        .n = 2, .h = 5, .w = 6, .c = 3, .kh = 1, .kw = 1, .in = 3, .last = 5};
    static const double large[] = {0x1.fffffep127, 0x1.fffp126, 0x1.fep127, 0x1p50, 0x1.fffffep49};
    need_isa("amx");
    conv_problem p = conv_problem_new(row, ADJ_F32);
    for (size_t k = 0; k < OPERANDS * sizeof large / sizeof *large; k++) {
        const size_t operand = k % OPERANDS;
        const double was = p.f.value[operand][0];
        p.f.value[operand][0] = large[k / OPERANDS];
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            const adj_node *n = p.result[direction];
            double *want = by_naive(&p.f, n), *got = run_ours(&p.f, 2, 1, &n, p.text);
            expect_close(got, want, p.n[direction], 0x1p-22, 0, p.text);
            free(want);
            free(got);
        }
        p.f.value[operand][0] = was;
    }
    conv_problem_free(&p);
}

/* ---- errors ---- */

/* Of positive sums: 2^-15 of each product at most, which hides the rounding of sums in f32, that
 * cancels. Without one of the three products it would be up to 2^-8. */
Test(direct_parts, errors)
{
    need_isa("amx");
    random_sums r = random_sums_new(long_sums, ADJ_F32, 0, 1);
    for (int k = 0; k < DIRECTIONS; k++) {
        double *got = run_ours(&r.f, 2, 1, (const adj_node *const *)&r.n[k], "errors"), worst = 0;
        double *want =
            oracle_convolve(&r.s, (enum oracle_result)k, r.f.value[0], r.f.value[1], r.f.value[2]);
        for (int64_t i = 0; i < adj_shape_elems(r.n[k]->type.shape); i++)
            worst = fmax(worst, fabs(got[i] - want[i]) / want[i]);
        cr_assert_leq(worst, 0x1p-15, "%g", worst);
        free(got);
        free(want);
    }
    fixture_free(&r.f);
}

Test(direct_parts, same_bits_for_any_threads)
{
    need_isa("amx");
    random_sums r = random_sums_new(long_sums, ADJ_F32, -1, 1);
    for (int k = 0; k < DIRECTIONS; k++) {
        const adj_node *n = r.n[k];
        const size_t bytes = (size_t)adj_shape_elems(n->type.shape) * sizeof(double);
        double *want = run_ours(&r.f, 1, 1, &n, "one thread");
        for (int threads = 2; threads <= 8; threads++) {
            double *got = run_ours(&r.f, threads, 1, &n, "threads");
            cr_assert(memcmp(want, got, bytes) == 0, "%d threads", threads);
            free(got);
        }
        free(want);
    }
    fixture_free(&r.f);
}

/* ---- what is refused ---- */

/* How many of the directions have a candidate of ours. */
static int taken(adj_dtype dtype, const char *isa, adj_math math)
{
    random_sums r = random_sums_new(long_sums, dtype, -1, 1);
    setenv("ADJOINT_MAX_ISA", isa, 1);
    test_backend t = backend_open_math("direct", 2, math);
    int n = 0;
    for (int k = 0; k < DIRECTIONS; k++) {
        const adj_node *node = r.n[k];
        outcome o = run_candidate(&r.f, &t, 1, &node, 0);
        n += is_ours(&o);
        free(o.y);
    }
    backend_close(&t);
    fixture_free(&r.f);
    return n;
}

Test(direct_parts, only_in_fast_math_of_f32)
{
    need_isa("amx");
    cr_assert_eq(taken(ADJ_F32, "amx", ADJ_MATH_FAST), DIRECTIONS);
    cr_assert_eq(taken(ADJ_F32, "amx", ADJ_MATH_EXACT), 0);
    cr_assert_eq(taken(ADJ_BF16, "amx", ADJ_MATH_FAST), 0);
    cr_assert_eq(taken(ADJ_F64, "amx", ADJ_MATH_FAST), 0);
}

/* On every machine: ADJOINT_MAX_ISA allows no more. */
Test(direct_parts, needs_amx)
{
    static const char *const less[] = {"base", "avx2", "avx512", "avx512_bf16"};
    for (size_t i = 0; i < sizeof less / sizeof *less; i++)
        if (can_test(less[i]))
            cr_assert_eq(taken(ADJ_F32, less[i], ADJ_MATH_FAST), 0, "%s", less[i]);
}
