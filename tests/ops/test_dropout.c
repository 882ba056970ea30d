/* test_dropout.c - dropout by naive and by direct against the Philox of tests/oracle.h, to the bit,
 * and its gradient. */
#include <math.h>

#include "expect.h"
#include "graph/op.h"
#include "tests/isa.h"
#include "tests/oracle.h"

static adj_node *step_of(fixture *f, int step) { return scalar(f, ADJ_I32, step); }

/* Philox4x32-10's published answer for counter 0, key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
Test(dropout, numbers)
{
    const struct {
        double rate, want[4];
    } cases[] = {
        {0.5, {0, 4, 6, 8}},
        {0.75, {0, 8, 0, 0}},
        {0.625, {0, 2 / 0.375, 3 / 0.375, 0}},
        {0.375, {1 / 0.625, 2 / 0.625, 3 / 0.625, 4 / 0.625}},
        {0, {1, 2, 3, 4}},
    };
    for (int i = 0; i < 5 * N_PRECISIONS; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x =
            given(&f, dtypes[i % N_PRECISIONS], (adj_shape){1, {4}}, (double[]){1, 2, 3, 4});
        adj_node *y = adj_dropout(x, step_of(&f, 0), cases[i / N_PRECISIONS].rate, 0);
        expect_values(&f, y, "naive", cases[i / N_PRECISIONS].want,
                      dtypes[i % N_PRECISIONS] == ADJ_BF16 ? 4e-3 : 1e-3, 0);
    }
}

enum { MAX_N = 20001, STEP = -7 };

/* Numbers that times 4 are exact in all types; NaNs and infinities. */
static double number(int64_t i)
{
    static const double special[] = {NAN, -INFINITY, INFINITY};
    return i % 61 < 3 ? special[i % 61] : (double)(i % 61) - 30;
}

/* Returns dropout of x, malloc'ed, by an implementation of direct's of this name. NULL: by naive.
 */
static double *drop_out(const char *impl, adj_dtype dtype, int64_t n, const adj_dropout_attrs *a,
                        int threads, const double *x)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *in = given(&f, dtype, (adj_shape){1, {n}}, x);
    adj_node *y = adj_node_new2(&adj_op_dropout, in, step_of(&f, STEP), a);
    if (impl == NULL)
        return evaluate(&f, y, "naive");
    return evaluate_by(&f, y, a->rate > 0 ? impl : "", threads); /* x itself for rate 0 */
}

static void expect_dropout(const char *isa, adj_dtype dtype, int64_t n, const adj_dropout_attrs *a,
                           int threads)
{
    double x[MAX_N];
    for (int64_t i = 0; i < n; i++)
        x[i] = number(i);
    char impl[32];
    snprintf(impl, sizeof impl, "dropout:%s", isa != NULL ? isa : "");
    scoped(release) double *got = drop_out(isa != NULL ? impl : NULL, dtype, n, a, threads, x);
    for (int64_t i = 0; i < n; i++) {
        const double want = dropped_out(x[i], a, STEP, i);
        cr_assert(got[i] == want || (isnan(got[i]) && isnan(want)),
                  "%d of %d from %lld, rate %g: %g, not %g", (int)i, (int)n, (long long)a->first,
                  a->rate, got[i], want);
        cr_assert(!signbit(got[i]) || !(x[i] >= 0));
    }
}

/* A mask is that of step, seed and the elements' numbers, from any on, also within a block of four.
 * Dropped NaNs and infinities are gone. */
Test(dropout, reference)
{
    for (int64_t first = 0; first < 7000; first = first * 3 + 1)
        for (int i = 0; i < N_PRECISIONS; i++) {
            const adj_dropout_attrs a = {
                .rate = 0.75, .seed = i % 2 ? 9 : 0xdeadbeefcafe1234u, .first = first};
            expect_dropout(NULL, dtypes[i], 5003, &a, 0);
        }
}

/* Linear and its own adjoint, of a seed of two words. */
Test(dropout, adjoint)
{
    for (int i = 0; i < N_PRECISIONS; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_integers(&f, dtypes[i], (adj_shape){2, {9, 7}}, -9, 9);
        expect_adjoint(&f, adj_dropout(x, step_of(&f, 5), 0.5, 6 + (UINT64_C(1) << 32)), 1);
    }
}

/* Gradients of dropout and of x times it, in which the mask is the same. */
Test(dropout, gradients)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {3, 7}}, -1, 1);
    expect_gradient(&f, adj_dropout(x, step_of(&f, -1), 0.3, 11), 0.5, 1e-12, 1e-12);
    expect_gradient(&f, adj_mul(x, adj_dropout(x, step_of(&f, 2), 0.3, 11)), 1e-4, 1e-8, 1e-10);
}

static adj_node *dropped(const char *x, const char *step, double rate)
{
    return adj_dropout(of_type(x), of_type(step), rate, 0);
}

Test(dropout, refused)
{
    expect_refused(dropped("f32[4]", "i32[]", 1), ADJ_EARG, "rate|got 1");
    expect_refused(dropped("f32[4]", "i32[]", -0.1), ADJ_EARG, "rate|-0.1");
    expect_refused(dropped("f32[4]", "i32[]", NAN), ADJ_EARG, "rate|nan");
    expect_refused(dropped("f32[4]", "f32[4]", 0.5), ADJ_EDTYPE, "step|i32");
    expect_refused(dropped("f32[4]", "i32[4]", 0.5), ADJ_ESHAPE, "step|scalar");
    expect_refused(dropped("i32[4]", "i32[]", 0.5), ADJ_EDTYPE, "x|i32");
    cr_assert_null(adj_dropout(NULL, NULL, 0.5, 0));
}

/* ---- by direct: wherever blocks, vectors and jobs begin and end ---- */

static const adj_dtype direct_dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
enum { DTYPES = 3 };

/* Also those whose block numbers pass 2^32 within a vector. */
static void expect_every_place(const char *isa)
{
    static const int64_t sizes[] = {1, 3, 4, 31, 2047, 2048, 2049, 8193, MAX_N},
                         firsts[] = {0, 1, 6, 2047, (INT64_C(1) << 34) - 10, INT64_C(1) << 53};
    for (int t = 0; t < DTYPES; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (size_t j = 0; j < sizeof firsts / sizeof *firsts; j++) {
                const adj_dropout_attrs a = {
                    .rate = 0.75, .seed = 0xdeadbeefcafe1234u, .first = firsts[j]};
                expect_dropout(isa, direct_dtypes[t], sizes[i], &a, (int)(i % 3) + 1);
            }
}

Test(direct_dropout, every_place) { for_each_isa(N_ISA, all_isas, expect_every_place); }

/* The next number below 1 keeps none; above 0 nearly all. */
static void expect_every_rate(const char *isa)
{
    static const double rates[] = {0, 0x1p-40, 0.5, 0x1.fffffffffffffp-1};
    for (int t = 0; t < DTYPES; t++)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
            if (rates[i] == 0x1p-40 && direct_dtypes[t] != ADJ_F32)
                continue;
            expect_dropout(isa, direct_dtypes[t], 5000,
                           &(adj_dropout_attrs){.rate = rates[i], .seed = 3}, 2);
        }
}

Test(direct_dropout, every_rate) { for_each_isa(N_ISA, all_isas, expect_every_rate); }

/* A threshold that is an element's word, and one between that and the next. */
Test(direct_dropout, a_word_that_is_the_threshold)
{
    const uint32_t word = philox_word(5, (uint32_t)STEP, 3, 2); /* element 22 */
    double x[32] = {0}, kept[2];
    for (int i = 0; i < 32; i++)
        x[i] = 1;
    for (int more = 0; more < 2; more++) {
        const adj_dropout_attrs a = {.rate = ((double)word + 0.5 * more) * 0x1p-32, .seed = 3};
        scoped(release) double *y = drop_out("dropout:", ADJ_F32, 32, &a, 1, x);
        kept[more] = y[22];
    }
    cr_expect_gt(kept[0], 0, "at the threshold: kept");
    cr_expect_eq(kept[1], 0, "below it: dropped");
}
