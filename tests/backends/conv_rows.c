/* conv_rows.c - see conv_rows.h. */
#include "tests/backends/conv_rows.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/isa.h"

const oracle_conv tile_cases[] = {
    {1, 1, 1, 1, 1, 1, 1, .padding = ADJ_VALID},
    {3, 32, 32, 16, 3, 3, 16, .padding = ADJ_SAME},
    {3, 16, 16, 32, 3, 3, 32, .padding = ADJ_SAME},
    {19, 8, 8, 64, 3, 3, 64, .padding = ADJ_SAME},
    {2, 32, 32, 3, 3, 3, 16, .padding = ADJ_SAME},
    {2, 12, 15, 17, 3, 3, 33, .padding = ADJ_SAME},
    {2, 7, 7, 130, 3, 3, 70, .padding = ADJ_SAME},
    {1, 60, 62, 32, 3, 3, 48, .padding = ADJ_SAME},
    {2, 13, 40, 5, 5, 5, 40, .padding = ADJ_SAME},
    {5, 14, 14, 96, 1, 1, 130, .padding = ADJ_VALID},
    {4, 15, 14, 20, 1, 1, 24, .sh = 2, .sw = 2},
    {4, 32, 32, 16, 3, 3, 32, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {3, 16, 16, 32, 3, 3, 64, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {2, 17, 11, 18, 5, 4, 16, .sh = 2, .sw = 1},
    {1, 2, 2, 16, 5, 5, 16, .padding = ADJ_SAME},
    {2, 20, 19, 8, 3, 3, 16, .dh = 3, .dw = 2, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {2, 5, 6, 16, 2, 3, 16, .padding = ADJ_EXPLICIT, .pad = {7, 0, 5, 9}},
    {1, 3, 3000, 16, 3, 3, 16, .padding = ADJ_SAME},
    {1, 300, 33, 24, 11, 2, 9, .padding = ADJ_SAME},
    {3, 9, 7, 16, 3, 3, 16, .padding = ADJ_SAME},
    {2, 8, 8, 17, 3, 3, 33, .padding = ADJ_SAME},
    {37, 8, 8, 64, 3, 3, 64, .padding = ADJ_SAME},
    {2, 12, 10, 130, 3, 3, 70, .padding = ADJ_SAME},
    {1, 56, 60, 32, 3, 3, 48, .padding = ADJ_SAME},
    {2, 13, 40, 3, 5, 5, 40, .padding = ADJ_SAME},
    {4, 16, 16, 32, 3, 3, 64, .sh = 2, .sw = 2, .padding = ADJ_SAME},
};
const int n_tile_case = sizeof tile_cases / sizeof *tile_cases;

/* ---- random rows ---- */

uint32_t rows_from(uint32_t first, const char *isa)
{
    return first + (isa == all_isas[0] ? 0 : isa == all_isas[1] ? 100000 : 200000);
}

oracle_conv draw_tile_case(uint32_t *counter)
{
    static const oracle_conv most = {6, 20, 34, 40, 5, 5, 40, .sh = 2, .sw = 2, .dh = 2, .dw = 2};
    oracle_conv a = draw_sizes(&most, counter);
    draw_padding(&a, counter);
    return a;
}

/* ---- a kernel under test ---- */

static outcome run_number(const tested_kernel *k, fixture *f, const test_backend *t, int n,
                          const adj_node *const node[])
{
    return k->name != NULL ? run_kernel(f, t, k->name, n, node) : run_candidate(f, t, n, node, 0);
}

/* True if the outcome is from kernel k, for this ISA. */
static int is_of(const tested_kernel *k, const outcome *o, const char *isa)
{
    int found = k->impl[0] == NULL;
    for (int i = 0; i < 2 && k->impl[i] != NULL; i++) {
        char impl[64];
        snprintf(impl, sizeof impl, "%s:%s", k->impl[i], isa);
        found |= strcmp(o->impl, impl) == 0;
    }
    return o->status == ADJ_OK && found;
}

double *run_tested(const tested_kernel *k, fixture *f, const char *isa, int threads, int n,
                   const adj_node *const node[], const char *text)
{
    const int can_pack = node[0]->op != k->never_packed;
    scoped(backend_close) test_backend t = direct_open(isa, threads, k->math);
    double *y = NULL;
    for (int is_kept = 0; is_kept <= (k->packed != NULL); is_kept++) {
        t.invariant = is_kept ? UINT32_MAX : 0;
        outcome o = run_number(k, f, &t, n, node);
        cr_assert(is_of(k, &o, isa), "%s %s: %s", text, node[0]->op->name,
                  o.status == ADJ_OK ? o.impl : o.why);
        if (k->packed != NULL)
            cr_assert_eq(strstr(o.layouts, k->packed) != NULL, is_kept && can_pack, "%s: %s", text,
                         o.layouts);
        if (y != NULL)
            expect_same_bits(o.y, y, adj_shape_elems(node[n - 1]->type.shape), text);
        free(y);
        y = o.y;
        if (k->is_only)
            cr_assert_eq(run_candidate(f, &t, n, node, 1).status, ADJ_ENOKERNEL);
    }
    return y;
}

/* Result r by k, malloc'ed. */
static double *run_result(const tested_kernel *k, conv_problem *p, int r, const char *isa,
                          int threads)
{
    adj_node *y = p->result[r];
    const adj_node *const node[] = {y, k->is_cast ? adj_cast(y, ADJ_F32) : NULL};
    return run_tested(k, &p->f, isa, threads, k->is_cast ? 2 : 1, node, p->text);
}

void expect_exact_row(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, INTEGERS);
    for (int r = k->first; r <= k->last; r++) {
        scoped(release) double *want = conv_problem_exact(&p, r);
        for (int64_t i = 0; i < p.n[r] && !k->is_cast; i++)
            want[i] = as_stored(dtype, want[i]);
        for (int threads = min_threads(); p.n[r] > 0 && threads <= 3; threads += 2) {
            scoped(release) double *got = run_result(k, &p, r, isa, threads);
            expect_close(got, want, p.n[r], 0, 0, p.text);
        }
    }
}

void expect_special(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa,
                    int operand, int64_t element, double value)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, INTEGERS);
    p.f.value[operand][element] = value;
    for (int r = k->first; r <= k->last; r++) {
        const adj_node *node = p.result[r];
        scoped(release) double *want = by_naive(&p.f, node);
        scoped(release) double *got = run_tested(k, &p.f, isa, 2, 1, &node, p.text);
        expect_close(got, want, p.n[r], 0, 0, p.text);
    }
}

void expect_specials(const tested_kernel *k, adj_dtype dtype, const char *isa)
{
    static const oracle_conv some[] = {
        {3, 6, 7, 17, 3, 3, 19, .padding = ADJ_SAME},
        {2, 6, 32, 16, 3, 3, 16, .padding = ADJ_SAME},
        {2, 7, 6, 16, 3, 3, 32, .sh = 2, .sw = 2, .padding = ADJ_SAME},
        {1, 50, 48, 3, 5, 5, 16, .padding = ADJ_SAME},
        {2, 5, 5, 32, 1, 1, 16, .padding = ADJ_VALID},
        {2, 13, 5, 3, 2, 2, 16, .sh = 2, .sw = 2},
    };
    static const double values[] = {INFINITY, -INFINITY, NAN};
    for (size_t r = 0; r < sizeof some / sizeof *some; r++) {
        const oracle_sizes s = oracle_sizes_of(some[r]);
        const int64_t n[] = {adj_shape_elems(s.x), adj_shape_elems(s.w), adj_shape_elems(s.y)};
        for (int operand = 0; operand < 3; operand++)
            for (int place = 0; place < 3; place++)
                for (size_t v = 0; v < sizeof values / sizeof *values; v++)
                    expect_special(k, some[r], dtype, isa, operand, (n[operand] - 1) * place / 2,
                                   values[v]);
    }
}

void expect_refused_row(const tested_kernel *k, oracle_conv row, const char *words)
{
    scoped(backend_close) test_backend t = direct_open(best_isa(), 1, ADJ_MATH_EXACT);
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, INTEGERS);
    const adj_node *node = p.result[k->first];
    expect_no_kernel(&p.f, &t, k->name, 1, &node, words);
}

const int n_bias_case = sizeof tile_cases / sizeof *tile_cases + 2;

bias_case bias_case_at(int i)
{
    static const oracle_conv small = {2, 6, 16, 3, 3, 3, 17, .padding = ADJ_SAME};
    if (i < n_tile_case)
        return (bias_case){tile_cases[i], -1, 0};
    return i == n_tile_case ? (bias_case){small, 0, INFINITY} : (bias_case){small, 200, NAN};
}

static void expect_bias(const tested_kernel *k, adj_dtype dtype, const char *isa, bias_case c)
{
    const int most = dtype == ADJ_BF16 ? 9 : 900;
    scoped(conv_problem_free) conv_problem p = conv_problem_new(c.row, dtype, INTEGERS);
    adj_node *bias = given_integers(&p.f, dtype, (adj_shape){1, {c.row.last}}, -most, most);
    adj_node *y = p.result[ORACLE_Y];
    const adj_node *group[] = {y, adj_bias_add(y, bias, ADJ_NHWC)};
    if (c.element >= 0)
        p.f.value[1][c.element] = c.value;
    scoped(release) double *want =
        c.element >= 0 ? by_naive(&p.f, y) : conv_problem_exact(&p, ORACLE_Y);
    for (int64_t e = 0; e < p.n[ORACLE_Y]; e++)
        want[e] = as_stored(dtype, want[e] + p.f.value[3][e % c.row.last]);
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        scoped(release) double *got = run_tested(k, &p.f, isa, threads, 2, group, p.text);
        expect_close(got, want, p.n[ORACLE_Y], 0, 0, p.text);
    }
}

void expect_biases(const tested_kernel *k, adj_dtype dtype, const char *isa)
{
    for (int i = 0; i < n_bias_case; i++)
        expect_bias(k, dtype, isa, bias_case_at(i));
}

void expect_small_errors(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa,
                         double most)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, POSITIVE);
    for (int r = k->first; r <= k->last; r++) {
        double worst = 0;
        scoped(release) double *got = run_result(k, &p, r, isa, 2),
                               *want = conv_problem_exact(&p, r);
        for (int64_t i = 0; i < p.n[r]; i++)
            worst = fmax(worst, fabs(got[i] - want[i]) / want[i]);
        cr_assert_leq(worst, most, "%s %s: %g", isa, p.result[r]->op->name, worst);
    }
}

void expect_same_bits_for_any_threads(const tested_kernel *k, oracle_conv row, adj_dtype dtype,
                                      const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, REALS);
    for (int r = k->first; r <= k->last; r++) {
        scoped(release) double *want = run_result(k, &p, r, isa, 1);
        for (int threads = 2; threads <= 8; threads++) {
            scoped(release) double *got = run_result(k, &p, r, isa, threads);
            expect_same_bits(got, want, p.n[r], p.text);
        }
    }
}

unsigned results_of(const tested_kernel *k, oracle_conv row, adj_dtype dtype, const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, REALS);
    scoped(backend_close) test_backend t = direct_open(isa, 2, k->math);
    unsigned bits = 0;
    for (int r = 0; r < 3; r++) {
        const adj_node *node = p.result[r];
        outcome o = run_number(k, &p.f, &t, 1, &node);
        bits |= (unsigned)is_of(k, &o, isa) << r;
        free(o.y);
    }
    return bits;
}

void expect_only_bf16(const tested_kernel *k, const char *isa, int n_less, const char *const less[])
{
    static const oracle_conv row = {2, 8, 8, 32, 3, 3, 32, .padding = ADJ_SAME};
    static const oracle_conv bad[] = {
        {2, 8, 8, 32, 3, 3, 32, .in = 16},
        {2, 8, 8, 32, 3, 3, 32, .sw = 3},
        {2, 12, 8, 32, 12, 3, 32, .padding = ADJ_VALID},
        {2, 8, 8, 32, 3, 3, 32, .format = ADJ_NCHW},
        {0, 8, 8, 32, 3, 3, 32, .padding = ADJ_VALID},
    };
    for (int i = 0; i < n_less; i++)
        if (can_test(less[i]))
            cr_assert_eq(results_of(k, row, ADJ_BF16, less[i]), 0, "%s", less[i]);
    need_isa(isa);
    cr_assert_eq(results_of(k, row, ADJ_BF16, isa), (2U << k->last) - (1U << k->first));
    cr_assert_eq(results_of(k, row, ADJ_F32, isa), 0);
    cr_assert_eq(results_of(k, row, ADJ_F16, isa), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(results_of(k, bad[i], ADJ_BF16, isa), 0, "%zu", i);
}

int expect_exact_candidates(conv_problem *p, const test_backend *t, int direction, const char *isa)
{
    int candidate = 0;
    for (; p->n[direction] > 0; candidate++) {
        const adj_node *node = p->result[direction];
        outcome o = run_candidate(&p->f, t, 1, &node, candidate);
        if (o.status == ADJ_ENOKERNEL)
            break;
        cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
        expect_text(o.impl, isa);
        expect_close(o.y, p->want[direction], p->n[direction], 0, 0, p->text);
        free(o.y);
    }
    return candidate;
}
