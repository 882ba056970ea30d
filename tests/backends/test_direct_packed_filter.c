/* test_direct_packed_filter.c - plans in which direct's gemm and Winograd kernels get filters that
 * are packed once, and so replace oneDNN's or gemm's kernels; against naive and literal values. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/isa.h"
#include "tests/plan.h"

/* Slices are plans of their own, and tuning takes what is faster. */
TestSuite(packed_filter, .init = plan_as_usual);

static const adj_shape image = {4, {2, 9, 7, 5}}, filter = {4, {3, 3, 5, 11}};

typedef struct {
    adj_exec *e;
    adj_node *x, *w, *fetch[3];
} inference;

/* Three readers of one filter: rows of two lengths, and a gradient, which takes it as it lies. */
static inference infer_by(adj_graph *g, const char *backend, int is_trained)
{
    inference i = {
        .x = adj_input(g, "x", ADJ_F64, image),
        .w = adj_param(g, "w", ADJ_F64, filter, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1})};
    i.fetch[0] = adj_conv2d(i.x, i.w, &(adj_conv){.padding = ADJ_SAME});
    i.fetch[1] = adj_conv2d(i.x, i.w, &(adj_conv){.padding = ADJ_SAME, .stride = {1, 2, 2, 1}});
    i.fetch[2] =
        adj_conv2d_backprop_input(image, i.w, i.fetch[0], &(adj_conv){.padding = ADJ_SAME});
    adj_updates *u = adj_updates_new(g);
    if (is_trained)
        adj_updates_add(u, i.w, adj_scale(i.w, 2));
    const adj_exec_opts o = {.n_fetch = 3, .fetch = i.fetch, .updates = u, .backend = backend};
    cr_assert_eq(adj_exec_new(g, &o, &i.e), ADJ_OK, "%s", adj_exec_message(i.e));
    return i;
}

static void run_with(inference *i, uint64_t seed)
{
    double x[2 * 9 * 7 * 5], w[3 * 3 * 5 * 11];
    for (size_t k = 0; k < sizeof x / sizeof *x; k++)
        x[k] = (double)((k * 7 + seed) % 9) - 4;
    for (size_t k = 0; k < sizeof w / sizeof *w; k++)
        w[k] = (double)((k * 5 + seed) % 7) - 3;
    cr_assert_eq(adj_set(i->e, i->x, x, sizeof x), ADJ_OK);
    cr_assert_eq(adj_set(i->e, i->w, w, sizeof w), ADJ_OK);
    for (int run = 0; run < 2; run++)
        cr_assert_eq(adj_run(i->e), ADJ_OK, "%s", adj_exec_message(i->e));
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

Test(packed_filter, a_filter_is_packed_once_where_no_run_changes_it)
{
    adj_graph *g[3] = {adj_graph_new(), adj_graph_new(), adj_graph_new()};
    inference ours = infer_by(g[0], "direct", 0), naive = infer_by(g[1], "naive", 0);
    cr_assert_eq(packed_operands(ours.e, "panels"), 2);
    for (uint64_t seed = 0; seed < 3; seed++) {
        run_with(&ours, seed);
        run_with(&naive, seed);
        for (int k = 0; k < 3; k++) {
            double got[2 * 9 * 7 * 11], want[2 * 9 * 7 * 11];
            const size_t bytes = (size_t)adj_shape_elems(ours.fetch[k]->type.shape) * sizeof *got;
            cr_assert_eq(adj_get(ours.e, ours.fetch[k], got, bytes), ADJ_OK);
            cr_assert_eq(adj_get(naive.e, naive.fetch[k], want, bytes), ADJ_OK);
            cr_assert_eq(memcmp(got, want, bytes), 0, "seed %d, result %d", (int)seed, k);
        }
    }
    adj_exec_free(ours.e);
    adj_exec_free(naive.e);
    const inference trained = infer_by(g[2], "direct", 1);
    cr_assert_eq(packed_operands(trained.e, "panels"), 0);
    adj_exec_free(trained.e);
    for (int i = 0; i < 3; i++)
        adj_graph_free(g[i]);
}

/* An operand that is both sides of a product stays as it lies. */
Test(packed_filter, an_operand_twice)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const double w[] = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                 want[] = {30, 36, 42, 66, 81, 96, 102, 126, 150};
    double got[9];
    adj_node *p = adj_param(g, "p", ADJ_F64, (adj_shape){2, {3, 3}}, (adj_init){0});
    adj_node *image = adj_reshape(p, (adj_shape){4, {1, 1, 3, 3}});
    adj_node *const y[] = {adj_matmul(p, p, 0),
                           adj_conv2d(image, image, &(adj_conv){.padding = ADJ_VALID})}; /* 1x1 */
    const adj_exec_opts o = {.n_fetch = 2, .fetch = y, .backend = "direct"};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_assert_eq(adj_set(e, p, w, sizeof w), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(adj_get(e, y[i], got, sizeof got), ADJ_OK);
        cr_expect_eq(memcmp(got, want, sizeof got), 0, "%d", i);
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
        const adj_shape b = {2, {64, 256}};
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {list[i].rows, 64}});
        adj_node *w = adj_param(g, "w", ADJ_F32, b, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1});
        adj_node *y = adj_matmul(x, w, 0);
        scoped(release_exec) adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
        const char *backend = adj_exec_step_at(e, adj_exec_step_count(e) - 1).backend;
        cr_expect_str_eq(backend, list[i].backend, "%zu", i);
    }
}

/* ---- Winograd's ---- */

enum { KERNELS = 2, FETCHES = 2 * KERNELS };

typedef struct {
    adj_graph *g;
    adj_exec *e;
    adj_node *x, *w[KERNELS], *fetch[FETCHES]; /* y and dx, of y, of 3x3 and of 5x5 */
} winograd_plan;

static const int64_t channels = 32;

static winograd_plan winograd_by(const char *backend, adj_math math, int side, int is_trained)
{
    winograd_plan p = {.g = adj_graph_new()};
    const adj_shape x = {4, {1, side, side, channels}};
    const adj_conv same = {.padding = ADJ_SAME};
    adj_updates *u = adj_updates_new(p.g);
    p.x = adj_input(p.g, "x", ADJ_F32, x);
    for (int k = 0; k < KERNELS; k++) {
        const int64_t size = 3 + 2 * k;
        const adj_shape w = {4, {size, size, channels, channels}};
        p.w[k] = adj_param(p.g, k == 0 ? "w3" : "w5", ADJ_F32, w,
                           (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1});
        p.fetch[2 * k] = adj_conv2d(p.x, p.w[k], &same);
        p.fetch[2 * k + 1] = adj_conv2d_backprop_input(x, p.w[k], p.fetch[2 * k], &same);
        if (is_trained)
            adj_updates_add(u, p.w[k], adj_scale(p.w[k], 1));
    }
    const adj_exec_opts o = {
        .n_fetch = FETCHES, .fetch = p.fetch, .updates = u, .backend = backend, .math = math};
    cr_assert_eq(adj_exec_new(p.g, &o, &p.e), ADJ_OK, "%s", adj_exec_message(p.e));
    return p;
}

static void winograd_free(winograd_plan *p)
{
    adj_exec_free(p->e);
    adj_graph_free(p->g);
}

static void set_sevenths(const winograd_plan *p, const adj_node *n, int seed)
{
    const int64_t elems = adj_shape_elems(n->type.shape);
    scoped(release) float *v = malloc((size_t)elems * sizeof *v);
    for (int64_t i = 0; i < elems; i++)
        v[i] = (float)((i * 37 + seed * 11 + i / 41) % 23 - 11) / 7;
    cr_assert_eq(adj_set(p->e, n, v, (size_t)elems * sizeof *v), ADJ_OK);
}

/* The results, one behind the other, of a second run, before which nothing is packed. */
static float *run_winograd(const winograd_plan *p, int seed, int64_t each)
{
    const size_t bytes = (size_t)each * sizeof(float);
    float *got = malloc(FETCHES * bytes);
    set_sevenths(p, p->x, seed);
    for (int k = 0; k < KERNELS; k++)
        set_sevenths(p, p->w[k], seed + 1 + k);
    for (int run = 0; run < 2; run++)
        cr_assert_eq(adj_run(p->e), ADJ_OK, "%s", adj_exec_message(p->e));
    for (int k = 0; k < FETCHES; k++)
        cr_assert_eq(adj_get(p->e, p->fetch[k], got + k * each, bytes), ADJ_OK);
    return got;
}

/* Errors are relative to the whole result: see test_direct_winograd.c. */
static void expect_near(const float *got, const float *want, int64_t n, double bound,
                        const char *label)
{
    double size = 0;
    for (int64_t i = 0; i < n; i++)
        size += (double)want[i] * (double)want[i];
    for (int64_t i = 0; i < n; i++)
        cr_assert_leq(fabs((double)got[i] - (double)want[i]), bound * sqrt(size / (double)n),
                      "%s: [%d] is %g, not %g", label, (int)i, (double)got[i], (double)want[i]);
}

static void expect_transformed_once(const char *isa)
{
    /* of y, and of dx, whose operand is inexact as well */
    static const double bound[FETCHES] = {3e-5, 6e-5, 6e-5, 12e-5};
    static const char *const layout[FETCHES] = {"points36", "points36dx", "points64", "points64dx"};
    winograd_plan kept = winograd_by("direct", ADJ_MATH_FAST, 32, 0),
                  trained = winograd_by("direct", ADJ_MATH_FAST, 32, 1),
                  naive = winograd_by("naive", ADJ_MATH_EXACT, 32, 0);
    const int64_t each = adj_shape_elems(kept.x->type.shape);
    cr_assert_eq(packed_operands(kept.e, "points"), FETCHES, "%s", isa);
    cr_assert_eq(packed_operands(trained.e, "points"), 0, "%s", isa);
    for (int seed = 0; seed < 2; seed++) { /* packed anew when it is set */
        scoped(release) float *ours = run_winograd(&kept, seed, each);
        scoped(release) float *each_time = run_winograd(&trained, seed, each);
        scoped(release) float *want = run_winograd(&naive, seed, each);
        for (int k = 0; k < FETCHES; k++) {
            cr_assert_geq(packed_operands(kept.e, layout[k]), 1, "%s", layout[k]);
            cr_expect_eq(memcmp(ours + k * each, each_time + k * each, (size_t)each * sizeof *ours),
                         0, "%s, %s, seed %d", isa, layout[k], seed);
            expect_near(ours + k * each, want + k * each, each, bound[k], layout[k]);
        }
    }
    winograd_free(&kept);
    winograd_free(&trained);
    winograd_free(&naive);
}

Test(packed_filter, winograds_is_transformed_once_where_no_run_changes_it)
{
    static const char *const isas[] = {"avx2", "avx512"}; /* others' vectors are too small for it */
    for_each_isa(2, isas, expect_transformed_once);
}

static int count_winograd(int side, int is_trained)
{
    winograd_plan p = winograd_by("direct", ADJ_MATH_FAST, side, is_trained);
    int n = 0;
    for (int k = 0; k < adj_exec_step_count(p.e); k++)
        n += strncmp(adj_exec_step_at(p.e, k).impl, "winograd", 8) == 0;
    winograd_free(&p);
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
