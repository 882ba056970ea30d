/* test_onednn_conv.c - every implementation oneDNN offers for a convolution, in every layout,
 * against naive: exactly on integers, within the error of summing on random data. Layouts are
 * described by what they are: a candidate has one name for its implementation and its layouts,
 * whatever was prepared before it, and a tune file depends on it. For shapes with a quarantined
 * implementation, the implementations offered instead must agree with naive. Buffers are surrounded
 * by guards and NaN before (candidates.c). */
#include <criterion/criterion.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "ops/grad.h"
#include "tests/backends/candidates.h"
#include "tests/conv_problem.h"

static const oracle_conv rows[] = {
    {2, 9, 9, 3, 3, 3, 5, .padding = ADJ_SAME},
    {2, 28, 28, 1, 5, 5, 32, .padding = ADJ_SAME},                       /* LeNet's first */
    {2, 14, 14, 32, 5, 5, 64, .padding = ADJ_SAME},                      /* and second */
    {1, 12, 11, 16, 3, 3, 20, .sh = 2, .sw = 2, .padding = ADJ_SAME},    /* blocks with a rest */
    {3, 8, 10, 8, 1, 1, 16, .padding = ADJ_VALID},                       /* 1x1 */
    {3, 9, 9, 24, 1, 1, 33, .sh = 2, .sw = 2},                           /* 1x1, strided */
    {2, 7, 13, 4, 2, 5, 7, .sh = 2, .sw = 3, .padding = ADJ_SAME},       /* all unequal */
    {2, 13, 9, 6, 3, 3, 10, .dh = 2, .dw = 3},                           /* dilated */
    {2, 10, 10, 17, 3, 3, 3, .dh = 2, .dw = 2, .padding = ADJ_SAME},     /* odd channels */
    {2, 6, 7, 5, 3, 3, 6, .padding = ADJ_EXPLICIT, .pad = {2, 0, 0, 1}}, /* asymmetric */
    {1, 5, 5, 3, 3, 2, 4, .padding = ADJ_EXPLICIT, .pad = {4, 5, 3, 0}}, /* beyond it */
    {2, 8, 8, 8, 3, 3, 12, .in = 2, .padding = ADJ_SAME},
    {2, 8, 8, 32, 3, 3, 32, .in = 16, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {2, 3, 3, 4, 3, 3, 4, .padding = ADJ_VALID},  /* one output pixel */
    {8, 1, 1, 12, 1, 1, 9, .padding = ADJ_VALID}, /* a matrix */
    {2, 10, 10, 16, 3, 3, 1, .padding = ADJ_SAME, .depthwise = 1},
    {2, 11, 9, 20, 3, 3, 1, .sh = 2, .sw = 2, .padding = ADJ_SAME, .depthwise = 1},
    {2, 10, 10, 3, 3, 3, 2, .padding = ADJ_SAME, .depthwise = 1},
    {1, 12, 12, 8, 5, 3, 3, .dh = 2, .dw = 2, .padding = ADJ_SAME, .depthwise = 1},
    {2, 9, 9, 1, 3, 3, 4, .depthwise = 1},
    {2, 8, 9, 32, 3, 3, 1, .padding = ADJ_EXPLICIT, .pad = {1, 0, 0, 2}, .depthwise = 1},
};

/* Rounding of the result itself, in units of its size. */
static double half_unit(adj_dtype dtype) { return dtype == ADJ_BF16 ? 0x1p-8 : 0x1p-24; }

/* Products that one element of the result sums, at most. */
static double terms_of(const oracle_conv *r, int direction)
{
    const double taps = (double)r->kh * r->kw, in = r->in > 0 ? r->in : r->c;
    if (direction == ORACLE_Y)
        return taps * (r->depthwise ? 1 : in);
    if (direction == ORACLE_DX)
        return taps * r->last;
    return (double)r->n * (r->h + r->pad[0] + r->pad[1]) * (r->w + r->pad[2] + r->pad[3]);
}

static int expect_row(const oracle_conv *r, int direction, adj_dtype dtype, conv_fill fill)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(*r, dtype, fill);
    scoped(backend_close) test_backend onednn = backend_open("onednn");
    const adj_node *y = p.result[direction];
    double terms = terms_of(r, direction), rtol = 0, atol = 0;
    if (fill == REALS) { /* f32 sums of terms below 1: each partial sum rounds */
        rtol = 4 * half_unit(dtype);
        atol = terms * terms * FLT_EPSILON / 4 + half_unit(dtype) * 1e-3;
    }
    int n = expect_candidates(&p.f, &onednn, 1, &y, rtol, atol, p.text);
    return n;
}

/* Integers whose sums f32 holds exactly: no order of summing and no blocking may show. */
Test(onednn_conv, agrees_exactly_on_integers)
{
    int max = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int direction = ORACLE_Y; direction <= ORACLE_DW; direction++) {
            int n = expect_row(&rows[i], direction, ADJ_F32, INTEGERS);
            cr_assert_gt(n, 0, "row %d, direction %d: oneDNN takes no f32", (int)i, direction);
            max = n > max ? n : max;
            expect_row(&rows[i], direction, ADJ_BF16, INTEGERS); /* not on every CPU */
        }
    cr_assert_gt(max, 2, "there is more than one implementation and layout");
}

Test(onednn_conv, agrees_on_random_data)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += 3)
        for (int direction = ORACLE_Y; direction <= ORACLE_DW; direction++)
            for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype += ADJ_BF16 - ADJ_F32)
                expect_row(&rows[i], direction, (adj_dtype)dtype, REALS);
}

/* y and what adds an input along its channels are one group. */
static void expect_group(const oracle_conv *r, adj_dtype dtype)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(*r, dtype, INTEGERS);
    scoped(backend_close) test_backend onednn = backend_open("onednn");
    adj_node *y = p.result[ORACLE_Y];
    adj_node *b = given_integers(&p.f, dtype, (adj_shape){1, {p.s.oc}}, -9, 9);
    const adj_node *const group[] = {y, adj_bias_add(y, b, ADJ_NHWC)};
    int found = expect_candidates(&p.f, &onednn, 2, group, 0, 0, p.text);
    cr_assert(found > 0 || dtype != ADJ_F32, "%s: no fused implementation", p.text);
}

Test(onednn_conv, adds_the_bias)
{
    static const oracle_conv small[] = {
        {2, 6, 6, 3, 3, 3, 5, .padding = ADJ_SAME},
        {2, 6, 7, 16, 3, 3, 20, .sh = 2, .sw = 2, .padding = ADJ_SAME},
        {2, 6, 6, 4, 1, 1, 8, .in = 2},
        {2, 6, 6, 8, 3, 3, 1, .padding = ADJ_SAME, .depthwise = 1},
        {2, 7, 6, 20, 3, 3, 1, .sh = 2, .sw = 2, .padding = ADJ_SAME, .depthwise = 1},
    };
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype += ADJ_BF16 - ADJ_F32)
            expect_group(&small[i], (adj_dtype)dtype);
}

/* Problems that oneDNN does not support are left to naive, with a reason. */
Test(onednn_conv, refuses_with_a_reason)
{
    static const struct {
        oracle_conv row;
        adj_dtype dtype;
        int direction;
        const char *why;
    } bad[] = {
        {{1, 4, 4, 2, 3, 3, 3, .padding = ADJ_SAME},
         ADJ_F64,
         ORACLE_Y,
         "conv2d: oneDNN has no f64"},
        {{1, 4, 4, 2, 3, 3, 3, .padding = ADJ_SAME, .format = ADJ_NCHW},
         ADJ_F32,
         ORACLE_DX,
         "conv2d_backprop_input: only in NHWC"},
        {{0, 4, 4, 2, 3, 3, 3, .padding = ADJ_SAME}, ADJ_F32, ORACLE_DW, "size"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(conv_problem_free) conv_problem p =
            conv_problem_new(bad[i].row, bad[i].dtype, REALS);
        scoped(backend_close) test_backend onednn = backend_open("onednn");
        const adj_node *y = p.result[bad[i].direction];
        expect_no_kernel(&p.f, &onednn, NULL, 1, &y, bad[i].why);
    }
}

/* One value as input and filter, which want different layouts. */
Test(onednn_conv, one_value_twice)
{
    scoped(fixture_free) fixture f = fixture_new();
    scoped(backend_close) test_backend onednn = backend_open("onednn");
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 3, 3}}, -3, 3);
    const adj_node *y = adj_conv2d(x, x, NULL);
    outcome o = run_candidate(&f, &onednn, 1, &y, 0);
    cr_assert(o.status == ADJ_ENOKERNEL || o.status == ADJ_OK, "%s", o.why);
    free(o.y);
}

/* In bf16 the filter gradient of 16 to 16 channels is computed in nChw16c where there is AVX-512;
 * those are nhwc's bytes, so only the filter is reordered. Elsewhere nhwc is taken as it is. */
Test(onednn_conv, sixteen_channels_are_one_block)
{
    const oracle_conv row = {2, 8, 8, 16, 3, 3, 16, .padding = ADJ_SAME};
    unsetenv("ADJOINT_PLAN"); /* a tuned plan takes what was fastest, reorders or not */
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_BF16, INTEGERS);
    adj_node *dw = p.result[ORACLE_DW];
    adj_exec_opts o = {.n_fetch = 1, .fetch = &dw};
    adj_exec *e = plan_of(p.f.g, &o);
    int on_naive = adj_exec_stats(e).naive_steps;
    cr_assert_leq(adj_exec_details(e).reorders, 1, "%d reorders", adj_exec_details(e).reorders);
    adj_exec_free(e);
    scoped(release) double *got = evaluate(&p.f, dw, "onednn"), *want = evaluate(&p.f, dw, "naive");
    expect_close(got, want, 9 * 16 * 16, on_naive ? 0 : 0x1p-8, 0, "dw");
}

/* ---- layouts ---- */

enum { MAX_CANDIDATES = 100, TEXT = 256 };

/* Channels that are a single block in some layout, where descriptions differ though memory does
 * not: nChw8c of 8 channels is nhwc, ABcd8b8a of an 8 by 8 filter is cdba. */
static const oracle_conv layout_rows[] = {
    {2, 8, 8, 8, 3, 3, 8, .padding = ADJ_SAME},
    {2, 8, 8, 16, 3, 3, 16, .padding = ADJ_SAME},
    {2, 8, 8, 8, 1, 1, 16, .padding = ADJ_VALID},
    {2, 8, 8, 16, 3, 3, 8, .sh = 2, .sw = 2},
    {2, 8, 8, 3, 3, 3, 16, .padding = ADJ_SAME},
    {2, 8, 8, 32, 1, 1, 64,
     .padding = ADJ_VALID}, /* several blocks in both: OIhw16o16i is not IhwO16o16i */
    {1, 1, 1, 16, 1, 1, 32, .padding = ADJ_VALID},
    {2, 8, 8, 16, 3, 3, 1, .depthwise = 1},
};

/* Returns the implementation of candidate i, which computes `want`; 0 past the last. */
static int describe(fixture *f, const test_backend *t, const adj_node *y, int i, char text[TEXT],
                    const double *want)
{
    outcome o = run_candidate(f, t, 1, &y, i);
    snprintf(text, TEXT, "%s,%s", o.impl, o.layouts);
    if (o.status == ADJ_OK)
        expect_close(o.y, want, adj_shape_elems(y->type.shape), 0, 0, text);
    free(o.y);
    return o.status == ADJ_OK;
}

/* Each candidate first of all in a backend of its own must be what it was among the others. */
static void expect_names(const oracle_conv *row, int direction, adj_dtype dtype)
{
    char among[MAX_CANDIDATES][TEXT], alone[TEXT];
    scoped(conv_problem_free) conv_problem p = conv_problem_new(*row, dtype, INTEGERS);
    test_backend t = backend_open("onednn");
    const adj_node *y = p.result[direction];
    scoped(release) double *want = by_naive(&p.f, y);
    int n = 0;
    while (n < MAX_CANDIDATES && describe(&p.f, &t, y, n, among[n], want))
        n++;
    backend_close(&t);
    for (int i = 0; i < n; i++) {
        t = backend_open("onednn");
        cr_expect(describe(&p.f, &t, y, i, alone, want), "%s: candidate %d is gone", p.text, i);
        cr_expect_str_eq(alone, among[i], "%s: candidate %d is %s, was %s", p.text, i, alone,
                         among[i]);
        backend_close(&t);
    }
}

static void expect_all_names(adj_dtype dtype)
{
    for (size_t i = 0; i < sizeof layout_rows / sizeof *layout_rows; i++)
        for (int direction = ORACLE_Y; direction <= ORACLE_DW; direction++)
            expect_names(&layout_rows[i], direction, dtype);
}

Test(onednn_layout, has_one_name_f32) { expect_all_names(ADJ_F32); }
Test(onednn_layout, has_one_name_bf16) { expect_all_names(ADJ_BF16); }

/* oneDNN's oldest loops for x86 take blocks of eight channels, of which there are several here, or
 * plain memory; on other machines there are none of them. */
Test(onednn_layout, blocks_are_in_the_name)
{
    static const oracle_conv row = {2, 8, 8, 32, 3, 3, 64, .padding = ADJ_SAME};
    static const char *const names[][2] = {{"jit:sse41,", "jit:sse41,nChw8c OIhw8i8o -> nChw8c"},
                                           {"jit:avx2,", "jit:avx2,nChw8c OIhw8i8o -> nChw8c"}};
    int has[2][2] = {{0}};
    char text[TEXT];
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, INTEGERS);
    scoped(backend_close) test_backend t = backend_open("onednn");
    const adj_node *y = p.result[ORACLE_Y];
    scoped(release) double *want = by_naive(&p.f, y);
    for (int i = 0; i < MAX_CANDIDATES && describe(&p.f, &t, y, i, text, want); i++)
        for (int k = 0; k < 4; k++)
            has[k / 2][k % 2] |= strstr(text, names[k / 2][k % 2]) == text;
    for (int k = 0; k < 2; k++)
        cr_expect_eq(has[k][1], has[k][0], "there is no %s", names[k][1]);
}

/* ---- quarantine ---- */

/* 1x1 with a stride over fewer channels than a block (oneDNN issue 6035), and its neighbors. */
static const oracle_conv narrow[] = {
    {32, 64, 64, 12, 1, 1, 16, .sh = 2, .sw = 2},
    {32, 64, 64, 4, 1, 1, 16, .sh = 2, .sw = 2},
    {32, 64, 64, 7, 1, 1, 8, .sh = 2, .sw = 2},
    {32, 64, 64, 16, 1, 1, 16, .sh = 2, .sw = 2},
    {32, 64, 64, 12, 1, 1, 16, .padding = ADJ_VALID},
    {8, 33, 31, 12, 1, 1, 16, .sh = 3, .sw = 2},
    {4, 16, 16, 3, 1, 1, 5, .sh = 1, .sw = 2},
    {4, 16, 16, 24, 1, 1, 32, .in = 6, .sh = 2, .sw = 2},
};

/* bf16: dilated rows; a stride wider than the input. */
static const oracle_conv unwritten[] = {
    {32, 36, 36, 24, 2, 2, 24, .dh = 2, .dw = 2, .padding = ADJ_EXPLICIT, .pad = {0, 0, 1, 1}},
    {32, 29, 29, 48, 2, 2, 68, .in = 12, .dh = 2, .dw = 1, .padding = ADJ_SAME},
    {32, 36, 36, 17, 3, 3, 1, .dh = 2, .dw = 2, .depthwise = 1},
    {3, 7, 1, 3, 2, 3, 17, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {8, 9, 2, 4, 1, 1, 16, .sh = 2, .sw = 3},
};

/* bf16, 1x1 over an odd number of channels, and pixels in thirties. */
static const oracle_conv odd[] = {
    {1, 6, 5, 1, 1, 1, 1, .padding = ADJ_VALID},
    {2, 6, 5, 2, 1, 1, 3, .padding = ADJ_VALID},
    {2, 10, 6, 3, 1, 1, 2, .padding = ADJ_VALID},
    {1, 12, 10, 17, 1, 1, 33, .sh = 2, .sw = 2},
    {1, 5, 6, 9, 1, 1, 3, .in = 3},
    {1, 30, 30, 3, 1, 1, 21, .padding = ADJ_VALID},
    {1, 7, 5, 3, 1, 1, 1, .padding = ADJ_VALID},
    {1, 6, 5, 4, 1, 1, 2, .padding = ADJ_VALID},
};

/* bf16, 1x1 over images of three tiles of pixels, and their neighbors. */
static const oracle_conv three_tiles[] = {
    {3, 6, 6, 32, 1, 1, 16, .padding = ADJ_VALID},  {32, 6, 6, 64, 1, 1, 128, .padding = ADJ_VALID},
    {2, 3, 9, 32, 1, 1, 40, .padding = ADJ_VALID},  {5, 3, 13, 96, 1, 1, 48, .padding = ADJ_VALID},
    {2, 3, 16, 64, 1, 1, 32, .padding = ADJ_VALID}, {2, 6, 7, 64, 1, 1, 64, .padding = ADJ_VALID},
    {2, 7, 7, 64, 1, 1, 64, .padding = ADJ_VALID},  {2, 5, 8, 64, 1, 1, 64, .padding = ADJ_VALID},
};

static const struct {
    const oracle_conv *rows;
    size_t n;
    adj_dtype dtype;
    int first, last; /* directions */
} lists[] = {
    {narrow, sizeof narrow / sizeof *narrow, ADJ_F32, ORACLE_DW, ORACLE_DW},
    {narrow, sizeof narrow / sizeof *narrow, ADJ_BF16, ORACLE_DW, ORACLE_DW},
    {unwritten, sizeof unwritten / sizeof *unwritten, ADJ_BF16, ORACLE_DW, ORACLE_DW},
    {odd, sizeof odd / sizeof *odd, ADJ_BF16, ORACLE_Y, ORACLE_DW},
    {three_tiles, sizeof three_tiles / sizeof *three_tiles, ADJ_BF16, ORACLE_Y, ORACLE_Y},
};

Test(onednn_quarantine, agrees)
{
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (size_t i = 0; i < lists[k].n; i++) {
            scoped(conv_problem_free) conv_problem p =
                conv_problem_new(lists[k].rows[i], lists[k].dtype, INTEGERS);
            scoped(backend_close) test_backend onednn = backend_open("onednn");
            for (int direction = lists[k].first; direction <= lists[k].last; direction++) {
                const adj_node *y = p.result[direction];
                expect_candidates(&p.f, &onednn, 1, &y, 0, 0, p.text);
            }
        }
}

/* ---- which are used ---- */

/* Plans an average pool's gradient in bf16, whose windows overlap. why: the reasons of backends
 * that do not compute it. */
static adj_status plan_pool(char why[ADJ_WHY])
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_pool a = {.ksize = {1, 2, 2, 1}, .stride = {1, 1, 1, 1}};
    const adj_shape in = {4, {2, 8, 8, 16}}, out = {4, {2, 7, 7, 16}};
    adj_node *dx = adj_avg_pool_grad(in, adj_input(g, "dy", ADJ_BF16, out), &a);
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &dx,
                             .backend = "onednn",
                             .debug = &(adj_exec_debug){.no_passes = 1}};
    scoped(release_exec) adj_exec *e = NULL;
    const adj_status status = adj_exec_new(g, &o, &e);
    snprintf(why, ADJ_WHY, "%s", adj_exec_message(e));
    for (int i = 0; i < adj_exec_step_count(e); i++)
        if (adj_exec_step_at(e, i).why != NULL)
            snprintf(why, ADJ_WHY, "%s", adj_exec_step_at(e, i).why);
    return status;
}

Test(onednn_quarantine, by_the_environment)
{
    static const char reason[] = "adds overlapping windows";
    static const struct {
        const char *environment;
        int is_left_out;
    } rows[] = {{"", 1}, {"off", 0}};
    char why[ADJ_WHY];
    unsetenv("ADJOINT_QUARANTINE");
    cr_assert_eq(plan_pool(why), ADJ_OK, "%s", why);
    if (strstr(why, reason) == NULL)
        cr_skip_test("oneDNN has no such pool on this CPU\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv("ADJOINT_QUARANTINE", rows[i].environment, 1);
        cr_expect_eq(plan_pool(why), ADJ_OK, "%zu: %s", i, why);
        cr_expect_eq(strstr(why, reason) != NULL, rows[i].is_left_out, "%zu: %s", i, why);
    }
    setenv("ADJOINT_QUARANTINE", "of", 1);
    cr_expect_eq(plan_pool(why), ADJ_EARG);
    expect_text(why, "ADJOINT_QUARANTINE must be off or empty (got of)");
}
