/* test_half_in_f32.c - graphs of f16: what only f32 kernels are fast for runs in them, between
 * casts, and is rounded once; the reference is the same graph in f64 on naive. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/harness.h"

static const adj_conv same = {.padding = ADJ_SAME};
static const adj_conv nchw = {.padding = ADJ_SAME, .format = ADJ_NCHW};
static const adj_pool half = {.ksize = {1, 2, 2, 1}, .stride = {1, 1, 1, 1}};

typedef enum {
    CONV,
    CONV_NCHW,
    CONV_INPUT,
    CONV_FILTER,
    DEPTHWISE,
    DEPTHWISE_INPUT,
    DEPTHWISE_FILTER,
    MATMUL,
    MATMUL_TWICE,
    MAX_POOL,
    AVG_POOL,
    LAYER
} kind;

static adj_node *layer(adj_node *x, adj_node *w, adj_node *dy)
{
    adj_node *b =
        adj_slice(adj_reshape(dy, (adj_shape){1, {-1}}), (adj_shape){1, {0}}, (adj_shape){1, {16}});
    return adj_relu(adj_bias_add(adj_conv2d(x, w, &same), b, ADJ_NHWC));
}

static adj_node *build(kind k, adj_node *x, adj_node *w, adj_node *dy)
{
    const adj_shape xs = adj_node_type(x).shape, ws = adj_node_type(w).shape;
    switch (k) {
    case CONV: return adj_conv2d(x, w, &same);
    case CONV_NCHW: return adj_conv2d(x, w, &nchw);
    case CONV_INPUT: return adj_conv2d_backprop_input(xs, w, dy, &same);
    case CONV_FILTER: return adj_conv2d_backprop_filter(x, ws, dy, &same);
    case DEPTHWISE: return adj_depthwise_conv2d_native(x, w, &same);
    case DEPTHWISE_INPUT: return adj_depthwise_conv2d_native_backprop_input(xs, w, dy, &same);
    case DEPTHWISE_FILTER: return adj_depthwise_conv2d_native_backprop_filter(x, ws, dy, &same);
    case MATMUL: return adj_matmul(x, w, ADJ_TRANSPOSE_B);
    case MATMUL_TWICE: return adj_matmul(x, x, ADJ_TRANSPOSE_B);
    case MAX_POOL: return adj_max_pool(x, &half);
    case AVG_POOL: return adj_avg_pool(x, &half);
    default: return layer(x, w, dy);
    }
}

static const struct {
    const char *name;
    kind kind;
    adj_shape x, w, dy;
    double roundings; /* roundings of intermediate values as large as any result, and its own */
    int all_fast;
} rows[] = {
    {"conv2d", CONV, {4, {2, 8, 8, 16}}, {4, {3, 3, 16, 16}}, {0}, 1, 1},
    {"conv2d 3", CONV, {4, {1, 7, 9, 3}}, {4, {5, 5, 3, 7}}, {0}, 1, 1},
    {"conv2d NCHW", CONV_NCHW, {4, {2, 16, 8, 8}}, {4, {3, 3, 16, 16}}, {0}, 1, 0}, /* transposes */
    {"input", CONV_INPUT, {4, {2, 8, 8, 16}}, {4, {3, 3, 16, 8}}, {4, {2, 8, 8, 8}}, 1, 1},
    {"filter", CONV_FILTER, {4, {2, 8, 8, 16}}, {4, {3, 3, 16, 8}}, {4, {2, 8, 8, 8}}, 1, 1},
    {"depthwise", DEPTHWISE, {4, {2, 8, 8, 16}}, {4, {3, 3, 16, 1}}, {0}, 1, 1},
    {"dw input", DEPTHWISE_INPUT, {4, {2, 8, 8, 16}}, {4, {3, 3, 16, 1}}, {4, {2, 8, 8, 16}}, 1, 1},
    {"dw filter",
     DEPTHWISE_FILTER,
     {4, {2, 8, 8, 16}},
     {4, {3, 3, 16, 1}},
     {4, {2, 8, 8, 16}},
     1,
     1},
    {"matmul", MATMUL, {2, {17, 65}}, {2, {33, 65}}, {0}, 1, 1},
    {"x x'", MATMUL_TWICE, {2, {17, 65}}, {0}, {0}, 1, 1},
    {"max_pool", MAX_POOL, {4, {2, 8, 8, 16}}, {0}, {0}, 1, 1},
    {"avg_pool", AVG_POOL, {4, {2, 8, 8, 16}}, {0}, {0}, 1, 1},
    {"layer", LAYER, {4, {2, 8, 8, 16}}, {4, {3, 3, 16, 16}}, {4, {1, 1, 1, 16}}, 2, 0},
};

/* Sets x to f16 values, whatever its type is. */
static void set_halves(adj_exec *e, adj_node *x, int seed)
{
    int64_t n = adj_shape_elems(adj_node_type(x).shape);
    scoped(release) double *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = as_stored(ADJ_F16, sin((double)(i * 7 + seed * 1000)));
    set_values(e, x, v);
}

/* Returns y's elements, *n of them. */
static double *result(size_t row, adj_dtype dtype, const char *backend, adj_exec_info *info,
                      int64_t *n)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", dtype, rows[row].x), *w = adj_input(g, "w", dtype, rows[row].w);
    adj_node *dy = adj_input(g, "dy", dtype, rows[row].dy), *y = build(rows[row].kind, x, w, dy);
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &y,
                       .backend = backend,
                       .threads = 1,
                       .debug = &(adj_exec_debug){.canaries = 1}};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    set_halves(e, x, 1);
    set_halves(e, w, 2);
    set_halves(e, dy, 3);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    *n = adj_shape_elems(adj_node_type(y).shape);
    *info = adj_exec_stats(e);
    return fixture_get(e, y);
}

/* Fused groups are inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
TestSuite(half_in_f32, .init = plan_as_usual);

static double largest_of(const double *v, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, fabs(v[i]));
    return max;
}

Test(half_in_f32, rounded_once)
{
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        adj_exec_info info, naive, ignored;
        int64_t n;
        scoped(release) double *want = result(row, ADJ_F64, "naive", &ignored, &n);
        scoped(release) double *got = result(row, ADJ_F16, "onednn", &info, &n);
        free(result(row, ADJ_F16, "naive", &naive, &n));
        cr_expect_eq(naive.steps, naive.naive_steps);
        cr_expect(!rows[row].all_fast || info.naive_steps == 0, "%s: %d steps on naive",
                  rows[row].name, info.naive_steps);
        cr_expect(!rows[row].all_fast || naive.steps == 1, "%s: %d steps alone", rows[row].name,
                  naive.steps);
        const double max = largest_of(want, n), inner = (rows[row].roundings - 1) * max;
        for (int64_t i = 0; i < n; i++)
            cr_assert_float_eq(got[i], want[i], 0x1p-11 * (inner + fabs(want[i])) + 0x1p-25 + 1e-5,
                               "%s: [%d] is %.9g, not %.9g", rows[row].name, (int)i, got[i],
                               want[i]);
    }
}

/* Sums that f16 cannot hold are infinite, those on the way to a smaller one are not. */
Test(half_in_f32, overflow)
{
    static const char *const backends[] = {"naive", "onednn"};
    for (int b = 0; b < 2; b++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F16, (adj_shape){2, {3, 2}},
                            (double[]){60000, 60000, 60000, -60000, 300, 0});
        adj_node *w = given(&f, ADJ_F16, (adj_shape){2, {2, 1}}, (double[]){2, 2});
        expect_values(&f, adj_matmul(x, w, 0), backends[b], (double[]){INFINITY, 0, 600}, 0, 0);
    }
}

/* The plan's steps are named after the user's nodes, whatever type they are computed in. */
Test(half_in_f32, steps_have_their_node)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F16, (adj_shape){4, {2, 8, 8, 16}});
    adj_node *w = adj_input(g, "w", ADJ_F16, (adj_shape){4, {3, 3, 16, 16}});
    adj_node *y = adj_conv2d(x, w, &same);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    int found = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        adj_step_info s = adj_exec_step_at(e, i);
        found += strcmp(s.op, "conv2d") == 0 && strcmp(s.backend, "onednn") == 0 && s.node == y &&
                 (s.dtype == ADJ_F32 || s.dtype == ADJ_F16); /* where a CPU has f16 kernels */
    }
    cr_assert_eq(found, 1);
}

/* A transpose computes nothing: of a half type it is one step, by a kernel made for the type. */
Test(half_in_f32, transpose_stays_of_its_type)
{
    for (int dtype = ADJ_F16; dtype <= ADJ_BF16; dtype++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", (adj_dtype)dtype, (adj_shape){4, {2, 16, 8, 8}});
        adj_node *y = adj_transpose(x, 4, (const int[]){0, 2, 3, 1});
        scoped(release_exec) adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
        cr_expect_eq(adj_exec_step_count(e), 1, "%s: %d steps", adj_dtype_name((adj_dtype)dtype),
                     adj_exec_step_count(e));
        cr_expect_str_neq(adj_exec_step_at(e, 0).impl, "simple:any");
    }
}

/* Plans a product in a precision and copies the warning to text. */
static void warning_of(adj_precision precision, const char *backend, char text[300])
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){2, {16, 32}}, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){2, {32, 16}}, -1, 1);
    adj_node *y = adj_matmul(x, w, 0);
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &y, .backend = backend, .precision = precision, .threads = 1};
    scoped(release_exec) adj_exec *e = plan_of(f.g, &o);
    snprintf(text, 300, "%s", adj_exec_warning(e));
}

/* A plan warns of a half type that saves no time. */
Test(half_in_f32, is_noted)
{
    static const char note[] =
        "note: 1 of 1 convolutions and products have no bf16 kernel on this CPU: they run in f32 "
        "between casts and gain no speed";
    char text[300];
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    setenv("ADJOINT_MAX_ISA", "avx2", 1);
    warning_of(ADJ_PRECISION_BF16, "onednn", text);
    cr_expect_str_eq(text, note);
    warning_of(ADJ_PRECISION_AS_BUILT, "onednn", text);
    cr_expect_str_eq(text, "");
    warning_of(ADJ_PRECISION_BF16, "naive", text);
    cr_expect_str_eq(text, "");
}
