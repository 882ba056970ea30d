/* test_direct_max_pool.c - the direct pools bit for bit against naive: every instruction set, both
 * types, on one thread and on three; NaN, infinities, zeros of both signs and ties among the
 * values. Literals: tests/ops/test_pool_argmax.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "exec/report.h"
#include "ops/grad.h"
#include "tests/backends/candidates.h"
#include "tests/isa.h"

typedef struct {
    int n, h, w, c;
    int kh, kw, sh, sw; /* strides of 0: the window's */
    adj_padding padding;
    int pad[4]; /* top, bottom, left, right */
} pool_row;

static adj_pool attrs_of(const pool_row *r)
{
    return (adj_pool){.ksize = {1, r->kh, r->kw, 1},
                      .stride = {1, r->sh ? r->sh : r->kh, r->sw ? r->sw : r->kw, 1},
                      .pad = {{0}, {r->pad[0], r->pad[1]}, {r->pad[2], r->pad[3]}, {0}},
                      .padding = r->padding};
}

/* Contents of x. */
typedef enum { FEW_VALUES, SPECIAL, LOWEST, VALUES } values;

static uint32_t random_word(uint32_t key, int64_t i)
{
    uint32_t word[4];
    adj_philox((uint32_t[]){(uint32_t)i, 0, 0, 0}, (uint32_t[]){key, 5}, word);
    return word[0];
}

static double value_at(values kind, uint32_t word)
{
    static const double special[] = {-INFINITY, -INFINITY, -0.0, 0, INFINITY, NAN, -1, -3};
    if (kind == LOWEST)
        return word % 64 != 0 ? -INFINITY : NAN;
    return kind == SPECIAL ? special[word % 8] : (double)(word % 5) - 2;
}

/* Integers, so that sums in any type are exact before they are rounded, and now and then -0, an
 * infinity or a NaN. */
static double gradient_at(uint32_t word)
{
    static const double special[] = {-0.0, INFINITY, -INFINITY, NAN};
    return word % 23 == 0 ? special[word / 23 % 4] : (double)(word / 23 % 401) - 200;
}

static adj_node *filled(fixture *f, adj_dtype dtype, adj_shape shape, int kind, uint32_t key)
{
    int64_t n = adj_shape_elems(shape);
    scoped(release) double *v = malloc((size_t)n * sizeof *v + 1);
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = random_word(key, i);
        v[i] = kind == VALUES ? gradient_at(word) : value_at((values)kind, word);
    }
    adj_node *x = given(f, dtype, shape, v);
    return x;
}

/* The group of n nodes, of which the last is the result. */
static void expect_same(fixture *f, int n, const adj_node *const node[], const double *want,
                        const char *isa, const char *label)
{
    const adj_node *y = node[n - 1];
    char text[240];
    snprintf(text, sizeof text, "%s by %s: %s", y->op->name, isa, label);
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        scoped(release) double *got = run_direct(f, "max_pool:", isa, threads, n, node);
        expect_same_bits(got, want, adj_shape_elems(y->type.shape), text);
    }
}

static void expect_naive(fixture *f, int n, const adj_node *const node[], const char *isa,
                         const char *label)
{
    scoped(release) double *want = by_naive(f, node[n - 1]);
    expect_same(f, n, node, want, isa, label);
}

/* The argmax is kept for windows that do not overlap. */
static void expect_argmax(fixture *f, adj_node *y, adj_node *dy, const char *isa, const char *text)
{
    const adj_pool_attrs *a = y->attrs;
    const adj_node *at = adj_node_new1(&adj_op_max_pool_argmax, y->in[0], a);
    const adj_node *dx = adj_node_new2(&adj_op_max_pool_grad_argmax, (adj_node *)at, dy, a);
    cr_assert_not_null(dx, "%s", adj_graph_message(f->g));
    if (a->geom.sh >= a->geom.kh && a->geom.sw >= a->geom.kw) {
        expect_naive(f, 1, &at, isa, text);
        expect_naive(f, 1, &dx, isa, text);
        return;
    }
    scoped(backend_close) test_backend t = direct_open(isa, 1, ADJ_MATH_EXACT);
    cr_assert_eq(run_candidate(f, &t, 1, &at, 0).status, ADJ_ENOKERNEL, "%s", text);
}

static void expect_row(pool_row r, const char *isa)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16};
    const adj_pool a = attrs_of(&r);
    for (int k = 0; k < 2 * VALUES; k++) {
        int kind = k / 2;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x =
            filled(&f, dtypes[k % 2], (adj_shape){4, {r.n, r.h, r.w, r.c}}, kind, (uint32_t)r.w);
        adj_node *y = adj_max_pool(x, &a);
        cr_assert_not_null(y, "%s", adj_graph_message(f.g));
        adj_node *dy = filled(&f, dtypes[k % 2], y->type.shape, VALUES, (uint32_t)r.h);
        /* Neither gradient reads y, which is there for its shape. */
        adj_node *dx = adj_max_pool_grad(x, dy, dy, &a);
        char text[160];
        snprintf(text, sizeof text, "%s n%d %dx%d c%d k%dx%d s%dx%d padding %d, values %d",
                 adj_dtype_name(dtypes[k % 2]), r.n, r.h, r.w, r.c, r.kh, r.kw, r.sh, r.sw,
                 (int)r.padding, kind);
        const adj_node *const shut[] = {y, adj_relu(y)};
        expect_naive(&f, 1, shut, isa, text);
        expect_naive(&f, 1, (const adj_node *const[]){dx}, isa, text);
        expect_naive(&f, 2, shut, isa, text);
        expect_argmax(&f, y, dy, isa, text);
    }
}

/* Windows that overlap, touch, leave gaps, and hang over the edge; channels around a vector's and a
 * chunk's. */
static const pool_row rows[] = {
    {2, 8, 6, 32, 2, 2, .padding = ADJ_VALID},
    {1, 9, 7, 1, 2, 2, .padding = ADJ_VALID},
    {1, 9, 7, 17, 2, 2, .padding = ADJ_SAME},
    {3, 7, 9, 64, 3, 3, .sh = 2, .sw = 2},
    {1, 56, 28, 24, 3, 3, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {2, 5, 6, 65, 3, 3, .sh = 1, .sw = 1, .padding = ADJ_SAME},
    {1, 11, 12, 130, 2, 2, .sh = 3, .sw = 4},
    {1, 40, 31, 16, 2, 2, .sh = 2, .sw = 2},
    {1, 11, 12, 3, 3, 2, .sh = 2, .sw = 3},
    {1, 7, 12, 8, 1, 5, .sh = 4, .sw = 1},
    {2, 6, 6, 20, 6, 6, .padding = ADJ_VALID},
    {2, 2, 3, 5, 7, 5, .sh = 1, .sw = 1, .padding = ADJ_SAME},
    {1, 2, 3, 48, 5, 4, .sh = 2, .sw = 1, .padding = ADJ_EXPLICIT, .pad = {4, 3, 3, 0}},
    {2, 6, 5, 66, 3, 3, .sh = 3, .sw = 5, .padding = ADJ_EXPLICIT, .pad = {2, 1, 1, 2}},
    {1, 5, 5, 9, 2, 2, .sh = 2, .sw = 2, .padding = ADJ_EXPLICIT, .pad = {1, 1, 1, 1}},
};

static void listed(const char *isa)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row(rows[i], isa);
}

Test(direct_max_pool, listed) { for_each_isa(N_ISA, all_isas, listed); }

static int draw(uint32_t *counter, int lo, int hi)
{
    return lo + (int)(random_word(1, (*counter)++) % (uint32_t)(hi - lo + 1));
}

/* EXPLICIT has room for the window. */
static pool_row random_row(uint32_t *k)
{
    static const int channels[] = {1, 2, 3, 7, 15, 16, 24, 33, 63, 64, 96, 129};
    pool_row r = {.n = draw(k, 1, 3),
                  .h = draw(k, 1, 14),
                  .w = draw(k, 1, 14),
                  .c = channels[draw(k, 0, 11)],
                  .kh = draw(k, 1, 4),
                  .kw = draw(k, 1, 4),
                  .sh = draw(k, 1, 4),
                  .sw = draw(k, 1, 4),
                  .padding = draw(k, 0, 1) ? ADJ_SAME : ADJ_EXPLICIT};
    for (int i = 0; i < 4 && r.padding == ADJ_EXPLICIT; i++)
        r.pad[i] = draw(k, 0, i < 2 ? r.kh - 1 : r.kw - 1);
    if (r.padding == ADJ_EXPLICIT) {
        r.h = r.h < r.kh ? r.kh : r.h;
        r.w = r.w < r.kw ? r.kw : r.w;
    }
    return r;
}

static void random_rows(const char *isa)
{
    uint32_t k = isa == all_isas[0] ? 0 : isa == all_isas[1] ? 100000 : 200000;
    for (int i = 0; i < repeats(25); i++)
        expect_row(random_row(&k), isa);
}

Test(direct_max_pool, random) { for_each_isa(N_ISA, all_isas, random_rows); }

/* Sums of fractions: naive adds in double, and both round. */
Test(direct_max_pool, overlapping_fractions)
{
    const adj_pool a = {.ksize = {1, 3, 3, 1}, .stride = {1, 1, 1, 1}, .padding = ADJ_SAME};
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape shape = {4, {2, 9, 11, 40}};
    adj_node *x = given_random(&f, ADJ_F32, shape, -1, 1);
    adj_node *dy = given_random(&f, ADJ_F32, shape, -1, 1);
    const adj_node *dx = adj_max_pool_grad(x, dy, dy, &a);
    scoped(backend_close) test_backend t = direct_open(best_isa(), 2, ADJ_MATH_EXACT);
    cr_assert_eq(expect_candidates(&f, &t, 1, &dx, 1e-6, 1e-6, "3x3"), 1);
}

/* In plain memory the plan takes these rather than the onednn backend's or naive. */
Test(direct_max_pool, chosen, .init = plan_as_usual)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16};
    for (int k = 0; k < 2; k++) {
        scoped(fixture_free) fixture f = fixture_new();
        const adj_pool a = {.ksize = {1, 2, 2, 1}};
        adj_node *x = given_integers(&f, dtypes[k], (adj_shape){4, {1, 4, 4, 8}}, -3, 3);
        adj_node *dy = given_integers(&f, dtypes[k], (adj_shape){4, {1, 2, 2, 8}}, -3, 3);
        adj_node *y = adj_max_pool(x, &a);
        adj_node *fetch[] = {y, adj_max_pool_grad(x, y, dy, &a)};
        scoped(release_exec) adj_exec *e =
            plan_of(f.g, &(adj_exec_opts){.n_fetch = 2, .fetch = fetch});
        cr_assert_eq(adj_exec_step_count(e), 2);
        for (int i = 0; i < 2; i++)
            cr_assert_str_eq(adj_exec_step_at(e, i).backend, "direct");
    }
}

/* Unsupported problems are refused with the reason. */
Test(direct_max_pool, refused)
{
    scoped(fixture_free) fixture f = fixture_new();
    scoped(backend_close) test_backend t = direct_open(best_isa(), 1, ADJ_MATH_EXACT);
    const adj_shape shape = {4, {1, 4, 4, 4}};
    const struct {
        adj_dtype dtype;
        adj_pool a;
    } other[] = {{ADJ_F32, {.ksize = {1, 1, 2, 2}, .format = ADJ_NCHW}},
                 {ADJ_F64, {.ksize = {1, 2, 2, 1}}},
                 {ADJ_F16, {.ksize = {1, 2, 2, 1}}},
                 {ADJ_F32, {.ksize = {1, 1, 1, 2}}}};
    for (int i = 0; i < 4; i++) {
        adj_node *x = given_integers(&f, other[i].dtype, shape, -3, 3);
        const adj_node *y = adj_max_pool(x, &other[i].a);
        expect_no_kernel(&f, &t, NULL, 1, &y, "max_pool: direct takes f32 and bf16 in NHWC");
    }
}
