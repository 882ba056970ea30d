/* test_direct_packed_filter.c - plans in which direct's gemm and Winograd kernels get filters that
 * are packed once, and so replace oneDNN's or gemm's kernels; against naive and literal values. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/harness.h"
#include "tests/isa.h"
#include "tests/plan.h"

/* Slices are plans of their own, and tuning takes what is faster. */
TestSuite(packed_filter, .init = plan_as_usual);

enum { FILTERS = 2, FETCHES = 4 };

typedef struct {
    adj_graph *g;
    adj_exec *e;
    adj_node *x, *w[FILTERS], *fetch[FETCHES];
    int n_w, n_fetch;
} rig;

static adj_node *filter_of(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape)
{
    return adj_param(g, name, dtype, shape, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1});
}

static void plan_by(rig *r, const char *backend, adj_math math, int is_trained)
{
    adj_updates *u = adj_updates_new(r->g);
    for (int k = 0; k < r->n_w && is_trained; k++)
        adj_updates_add(u, r->w[k], adj_scale(r->w[k], 1));
    r->e = plan_of(r->g, &(adj_exec_opts){.n_fetch = r->n_fetch,
                                          .fetch = r->fetch,
                                          .updates = u,
                                          .backend = backend,
                                          .math = math});
}

static void rig_free(rig *r)
{
    adj_exec_free(r->e);
    adj_graph_free(r->g);
}

/* Integers in f64; their sevenths in f32. */
static void set_leaf(const rig *r, const adj_node *n, int seed)
{
    const int64_t elems = adj_shape_elems(n->type.shape);
    scoped(release) double *v = malloc((size_t)elems * sizeof *v);
    for (int64_t i = 0; i < elems; i++)
        v[i] =
            (double)((i * 37 + seed * 11 + i / 41) % 23 - 11) / (n->type.dtype == ADJ_F64 ? 1 : 7);
    set_values(r->e, n, v);
}

/* A second run, before which nothing is packed. */
static void run_twice(const rig *r, int seed)
{
    set_leaf(r, r->x, seed);
    for (int k = 0; k < r->n_w; k++)
        set_leaf(r, r->w[k], seed + 1 + k);
    for (int run = 0; run < 2; run++)
        cr_assert_eq(adj_run(r->e), ADJ_OK, "%s", adj_exec_message(r->e));
}

/* Operands in a layout whose name begins so. */
static int packed_operands(const adj_exec *e, const char *layout)
{
    int n = 0;
    for (int k = 0; k < adj_exec_step_count(e); k++) {
        const adj_group *g = adj_exec_step_group(e, k);
        for (int j = 0; g != NULL && j < g->n_in; j++)
            n += strncmp(adj_exec_step_layout(e, k, g->in[j]), layout, strlen(layout)) == 0;
    }
    return n;
}

/* Three readers of one filter: rows of two lengths, and a gradient, which takes it as it lies. */
static rig infer_by(const char *backend, int is_trained)
{
    const adj_shape image = {4, {2, 9, 7, 5}};
    const adj_conv same = {.padding = ADJ_SAME},
                   apart = {.padding = ADJ_SAME, .stride = {1, 2, 2, 1}};
    rig r = {.g = adj_graph_new(), .n_w = 1, .n_fetch = 3};
    r.x = adj_input(r.g, "x", ADJ_F64, image);
    r.w[0] = filter_of(r.g, "w", ADJ_F64, (adj_shape){4, {3, 3, 5, 11}});
    r.fetch[0] = adj_conv2d(r.x, r.w[0], &same);
    r.fetch[1] = adj_conv2d(r.x, r.w[0], &apart);
    r.fetch[2] = adj_conv2d_backprop_input(image, r.w[0], r.fetch[0], &same);
    plan_by(&r, backend, ADJ_MATH_EXACT, is_trained);
    return r;
}

Test(packed_filter, a_filter_is_packed_once_where_no_run_changes_it)
{
    scoped(rig_free) rig ours = infer_by("direct", 0), naive = infer_by("naive", 0),
                         trained = infer_by("direct", 1);
    cr_assert_eq(packed_operands(ours.e, "panels"), 2);
    cr_assert_eq(packed_operands(trained.e, "panels"), 0);
    for (int seed = 0; seed < 3; seed++) {
        run_twice(&ours, seed);
        run_twice(&naive, seed);
        for (int k = 0; k < 3; k++) {
            scoped(release) double *got = fixture_get(ours.e, ours.fetch[k]),
                                   *want = fixture_get(naive.e, naive.fetch[k]);
            expect_same_bits(got, want, adj_shape_elems(ours.fetch[k]->type.shape), "gemm's");
        }
    }
}

/* A matrix that is both sides of a product, or multiplied by and added, stays as it lies. */
Test(packed_filter, an_operand_twice)
{
    static const double w[] = {1, 0, -1, 2, 1, 0, 0, 3, 1}, x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    static const double want[3][9] = {{1, -3, -2, 4, 1, -2, 6, 6, 1},
                                      {1, -3, -2, 4, 1, -2, 6, 6, 1},
                                      {6, 11, 1, 16, 24, 2, 23, 38, 3}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F64, (adj_shape){2, {3, 3}}, (adj_init){0});
    adj_node *in = adj_input(g, "x", ADJ_F64, (adj_shape){2, {3, 3}});
    adj_node *image = adj_reshape(p, (adj_shape){4, {1, 1, 3, 3}});
    adj_node *const y[] = {adj_matmul(p, p, 0),
                           adj_conv2d(image, image, &(adj_conv){.padding = ADJ_VALID}), /* 1x1 */
                           adj_relu(adj_add(adj_matmul(in, p, 0), p))};
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 3, .fetch = y, .backend = "direct"});
    set_values(e, p, w);
    set_values(e, in, x);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    int largest = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        largest = adj_exec_step_at(e, i).n_node > largest ? adj_exec_step_at(e, i).n_node : largest;
    cr_expect_eq(largest, 3, "product, sum and relu");
    for (int i = 0; i < 3; i++) {
        scoped(release) double *got = fixture_get(e, y[i]);
        expect_close(got, want[i], 9, 0, 0, "p");
    }
}

/* Few rows times a matrix that no run changes, where vectors are AVX2's. */
Test(packed_filter, few_rows_are_taken_unasked)
{
    static const struct {
        int64_t rows;
        const char *backend;
    } list[] = {{1, "direct"}, {15, "direct"}, {17, "onednn"}};
    need_isa("avx2");
    need_onednn_kernels();
    setenv("ADJOINT_MAX_ISA", "avx2", 1);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {list[i].rows, 64}});
        adj_node *w = filter_of(g, "w", ADJ_F32, (adj_shape){2, {64, 256}});
        adj_node *y = adj_matmul(x, w, 0);
        scoped(release_exec) adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
        const char *backend = adj_exec_step_at(e, adj_exec_step_count(e) - 1).backend;
        cr_expect_str_eq(backend, list[i].backend, "%zu", i);
    }
}

/* ---- Winograd's ---- */

/* y and dx, of y, of 3x3 and of 5x5. */
static rig winograd_by(const char *backend, adj_math math, int side, int is_trained)
{
    const int64_t channels = 32;
    const adj_shape x = {4, {1, side, side, channels}};
    const adj_conv same = {.padding = ADJ_SAME};
    rig r = {.g = adj_graph_new(), .n_w = FILTERS, .n_fetch = FETCHES};
    r.x = adj_input(r.g, "x", ADJ_F32, x);
    for (int k = 0; k < FILTERS; k++) {
        const int64_t size = 3 + 2 * k;
        r.w[k] = filter_of(r.g, k == 0 ? "w3" : "w5", ADJ_F32,
                           (adj_shape){4, {size, size, channels, channels}});
        r.fetch[2 * k] = adj_conv2d(r.x, r.w[k], &same);
        r.fetch[2 * k + 1] = adj_conv2d_backprop_input(x, r.w[k], r.fetch[2 * k], &same);
    }
    plan_by(&r, backend, math, is_trained);
    return r;
}

/* Errors are relative to the whole result: see test_direct_winograd.c. */
static void expect_near(const double *got, const double *want, int64_t n, double bound,
                        const char *label)
{
    double size = 0;
    for (int64_t i = 0; i < n; i++)
        size += want[i] * want[i];
    expect_close(got, want, n, 0, bound * sqrt(size / (double)n), label);
}

static void expect_transformed_once(const char *isa)
{
    /* bounds of y, and of dx, whose operand is inexact as well */
    static const double bound[FETCHES] = {3e-5, 6e-5, 6e-5, 12e-5};
    static const char *const layout[FETCHES] = {"points36", "points36dx", "points64", "points64dx"};
    scoped(rig_free) rig kept = winograd_by("direct", ADJ_MATH_FAST, 32, 0),
                         trained = winograd_by("direct", ADJ_MATH_FAST, 32, 1),
                         naive = winograd_by("naive", ADJ_MATH_EXACT, 32, 0);
    const int64_t n = adj_shape_elems(kept.x->type.shape);
    cr_assert_eq(packed_operands(kept.e, "points"), FETCHES, "%s", isa);
    cr_assert_eq(packed_operands(trained.e, "points"), 0, "%s", isa);
    for (int seed = 0; seed < 2; seed++) { /* packed anew when it is set */
        run_twice(&kept, seed);
        run_twice(&trained, seed);
        run_twice(&naive, seed);
        for (int k = 0; k < FETCHES; k++) {
            scoped(release) double *ours = fixture_get(kept.e, kept.fetch[k]),
                                   *each_time = fixture_get(trained.e, trained.fetch[k]),
                                   *want = fixture_get(naive.e, naive.fetch[k]);
            char label[64];
            snprintf(label, sizeof label, "%s, %s, seed %d", isa, layout[k], seed);
            cr_assert_geq(packed_operands(kept.e, layout[k]), 1, "%s", label);
            expect_same_bits(ours, each_time, n, label);
            expect_near(ours, want, n, bound[k], label);
        }
    }
}

Test(packed_filter, winograds_is_transformed_once_where_no_run_changes_it)
{
    static const char *const isas[] = {"avx2", "avx512"}; /* others' vectors are too small for it */
    for_each_isa(2, isas, expect_transformed_once);
}

static int count_winograd(int side, int is_trained)
{
    scoped(rig_free) rig r = winograd_by("direct", ADJ_MATH_FAST, side, is_trained);
    int n = 0;
    for (int k = 0; k < adj_exec_step_count(r.e); k++)
        n += strncmp(adj_exec_step_at(r.e, k).impl, "winograd", 8) == 0;
    return n;
}

/* Winograd is selected for two y and two dx with many tiles; with fewer tiles only for y, whose
 * filter is transformed once; with few tiles for none. */
Test(packed_filter, winograds_is_worth_fewer_tiles)
{
    need_isa("avx2");
    setenv("ADJOINT_MAX_ISA", "avx2", 1); /* with AMX other kernels are faster */
    cr_expect_eq(count_winograd(64, 1), 4);
    cr_expect_eq(count_winograd(4, 0), 0);
    int side = 64;
    while (side > 4 && count_winograd(side, 1) > 0)
        side--;
    cr_expect_gt(count_winograd(side, 0), 0, "%d", side);
}
