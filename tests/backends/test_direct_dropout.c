/* test_direct_dropout.c - direct dropout against the Philox of tests/philox.h, to the bit: every
 * instruction set and type, wherever blocks, vectors and jobs begin and end. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/isa.h"
#include "tests/philox.h"
#include "tests/plan.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
enum { DTYPES = 3, MAX_N = 20001, STEP = -7 };

/* Numbers that times 4 are exact in all types. */
static double number(int64_t i) { return (double)(i % 61) - 30; }

/* adj_run of dropout on the direct backend; malloc'ed. */
static void *run(const char *impl, adj_dtype dtype, int64_t n, const adj_dropout_attrs *attrs,
                 int threads, const void *x)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *in = adj_input(g, "x", dtype, (adj_shape){1, {n}});
    adj_node *step = adj_input(g, "step", ADJ_I32, (adj_shape){0});
    adj_node *y = adj_node_new2(&adj_op_dropout, in, step, attrs);
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &y,
                       .backend = "direct",
                       .threads = threads,
                       .debug = &(adj_exec_debug){.canaries = 1}};
    const size_t bytes = (size_t)n * adj_dtype_size(dtype);
    void *got = malloc(bytes);
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    if (attrs->rate > 0) /* else it is x */
        cr_assert_not_null(strstr(adj_exec_step_at(e, 0).impl, impl), "it is a %s",
                           adj_exec_step_at(e, 0).impl);
    cr_assert_eq(adj_set(e, in, x, bytes), ADJ_OK);
    cr_assert_eq(adj_set(e, step, &(int32_t){STEP}, sizeof(int32_t)), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_get(e, y, got, bytes), ADJ_OK);
    return got;
}

static void expect_dropout(const char *isa, adj_dtype dtype, int64_t n, const adj_dropout_attrs *a,
                           int threads)
{
    scoped(release) double *x = malloc((size_t)n * sizeof *x);
    scoped(release) void *data = malloc((size_t)n * adj_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++)
        x[i] = number(i);
    adj_convert(ADJ_F64, x, dtype, data, n);
    char impl[32];
    snprintf(impl, sizeof impl, "dropout:%s", isa);
    scoped(release) void *got = run(impl, dtype, n, a, threads, data);
    const float scale = (float)(1 / (1 - a->rate));
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = a->first + i;
        const double word = philox_word((uint64_t)at / 4, (uint32_t)STEP, a->seed, at % 4);
        const double want = word >= a->rate * 0x1p32 ? x[i] * (double)scale : 0;
        const double y = adj_load(dtype, got, i);
        cr_assert_eq(y, want, "%d of %d from %lld, rate %g: %g, not %g", (int)i, (int)n,
                     (long long)a->first, a->rate, y, want);
        cr_assert(!signbit(y) || x[i] < 0);
    }
}

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
                expect_dropout(isa, dtypes[t], sizes[i], &a, (int)(i % 3) + 1);
            }
}

Test(direct_dropout, every_place) { for_each_isa(N_ISA, all_isas, expect_every_place); }

/* The next number below 1 keeps none; above 0 nearly all. */
static void expect_every_rate(const char *isa)
{
    static const double rates[] = {0, 0x1p-40, 0.5, 0x1.fffffffffffffp-1};
    for (int t = 0; t < DTYPES; t++)
        for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
            if (rates[i] == 0x1p-40 && dtypes[t] != ADJ_F32)
                continue;
            expect_dropout(isa, dtypes[t], 5000, &(adj_dropout_attrs){.rate = rates[i], .seed = 3},
                           2);
        }
}

Test(direct_dropout, every_rate) { for_each_isa(N_ISA, all_isas, expect_every_rate); }

/* A threshold that is an element's word, and one between that and the next. */
Test(direct_dropout, a_word_that_is_the_threshold)
{
    const uint32_t word = philox_word(5, (uint32_t)STEP, 3, 2); /* element 22 */
    float x[32] = {0}, kept[2];
    for (int i = 0; i < 32; i++)
        x[i] = 1;
    for (int more = 0; more < 2; more++) {
        const adj_dropout_attrs a = {.rate = ((double)word + 0.5 * more) * 0x1p-32, .seed = 3};
        scoped(release) float *y = run("dropout:", ADJ_F32, 32, &a, 1, x);
        kept[more] = y[22];
    }
    cr_expect_gt(kept[0], 0, "at the threshold: kept");
    cr_expect_eq(kept[1], 0, "below it: dropped");
}

/* Dropped NaNs and infinities become 0; kept ones do not change. */
Test(direct_dropout, nan_and_infinity)
{
    float x[64] = {0};
    for (int i = 0; i < 64; i++)
        x[i] = i % 2 == 0 ? NAN : -INFINITY;
    scoped(release) float *y =
        run("dropout:", ADJ_F32, 64, &(adj_dropout_attrs){.rate = 0.5, .seed = 1}, 1, x);
    for (int i = 0; i < 64; i++) {
        const int keep = philox_word((uint64_t)i / 4, (uint32_t)STEP, 1, i % 4) >= 1u << 31;
        cr_expect(!keep        ? y[i] == 0
                  : i % 2 == 0 ? isnan(y[i])
                               : y[i] == -INFINITY,
                  "%d: %g", i, y[i]);
    }
}
