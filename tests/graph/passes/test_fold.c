/* test_fold.c - batch norm is folded into the convolution before it in inference only, and results
 * stay the same. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "graph/op.h"
#include "tests/harness.h"

/* Folded nodes are inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
TestSuite(fold, .init = plan_as_usual);

static void set_random(adj_exec *e, const adj_node *leaf, uint64_t stream, double low, double high)
{
    int64_t n = adj_shape_elems(adj_node_type(leaf).shape);
    scoped(release) double *v = malloc((size_t)n * sizeof *v);
    adj_draw(ADJ_F64, v, n, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = low, .b = high}, 5, stream);
    set_values(e, leaf, v);
}

/* How many nodes of this op the plan has. */
static int count(const adj_exec *e, const char *op)
{
    char word[64];
    scoped(release) char *text = plan_text(e);
    snprintf(word, sizeof word, " %s ", op);
    return times_in(text, word);
}

typedef struct {
    adj_graph *g;
    adj_node *x, *w, *raw, *b, *conv, *stats, *gamma, *beta, *y;
} layer;

typedef struct {
    int depthwise, has_bias;
    int64_t groups, multiplier;
    adj_format format, norm_format;
    adj_dtype dtype;
    int stats_are_input;
} form;

static layer layer_new(form f)
{
    layer l = {.g = adj_graph_new()};
    const int nchw = f.format == ADJ_NCHW;
    const adj_conv c = {.padding = ADJ_SAME, .format = f.format};
    const adj_shape image = {4, {2, nchw ? 8 : 6, 6, nchw ? 6 : 8}};
    const int64_t groups = f.groups > 0 ? f.groups : 1, out = f.depthwise ? 8 * f.multiplier : 16;
    const int64_t channels = f.norm_format == f.format ? out : 6;
    adj_init any = {.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1};
    l.x = adj_input(l.g, "x", f.dtype, image);
    if (f.depthwise) {
        l.w = adj_param(l.g, "w", f.dtype, (adj_shape){4, {3, 3, 8, f.multiplier}}, any);
        l.conv = adj_depthwise_conv2d_native(l.x, l.w, &c);
    } else {
        l.w = adj_param(l.g, "w", f.dtype, (adj_shape){4, {3, 3, 8 / groups, out}}, any);
        l.conv = adj_conv2d(l.x, l.w, &c);
    }
    l.raw = l.conv;
    if (f.has_bias) {
        l.b = adj_param(l.g, "b", f.dtype, (adj_shape){1, {out}}, any);
        l.conv = adj_bias_add(l.raw, l.b, f.format);
    }
    const adj_shape two = {2, {2, channels}}, one = {1, {channels}};
    l.stats = f.stats_are_input ? adj_input(l.g, "stats", f.dtype, two)
                                : adj_state(l.g, "stats", f.dtype, two,
                                            (adj_init){.kind = ADJ_INIT_UNIFORM, .a = 0.5, .b = 2});
    l.gamma = adj_param(l.g, "gamma", f.dtype, one, any);
    l.beta = adj_param(l.g, "beta", f.dtype, one, any);
    l.y = adj_batch_norm(l.conv, l.stats, l.gamma, l.beta, 1e-3, f.norm_format);
    cr_assert_not_null(l.y, "%s", adj_graph_message(l.g));
    return l;
}

static void layer_free(layer *l) { adj_graph_free(l->g); }

static adj_exec *plan(const layer *l, int n, adj_node *const fetch[], const adj_updates *u,
                      const char *backend)
{
    adj_exec_opts o = {.n_fetch = n, .fetch = fetch, .updates = u, .backend = backend};
    return plan_of(l->g, &o);
}

/* Runs the plan; the caller frees. */
static double *result(adj_exec *e, const adj_node *y)
{
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    return fixture_get(e, y);
}

/* Fetching the convolution's result too keeps the two apart. */
static void compare(const layer *l)
{
    adj_node *both[] = {l->y, l->conv};
    double tolerance = adj_node_type(l->y).dtype == ADJ_F64 ? 1e-12 : 2e-5;
    scoped(release_exec) adj_exec *folded = plan(l, 1, both, NULL, NULL),
                                  *apart = plan(l, 2, both, NULL, NULL);
    cr_assert_eq(count(folded, "batch_norm"), 0);
    cr_assert(count(folded, "bias_add") > 0);
    cr_assert_eq(count(apart, "batch_norm"), 1);
    const adj_node *const changed[] = {NULL, l->gamma, l->beta, l->stats, l->w, l->b};
    for (size_t k = 0; k < sizeof changed / sizeof *changed; k++) {
        for (int i = 0; i < 2; i++) {
            adj_exec *e = i > 0 ? apart : folded;
            set_random(e, l->x, k, -1, 1);
            if (changed[k] != NULL)
                set_random(e, changed[k], 20 + k, 0.3, 1.7);
        }
        scoped(release) double *got = result(folded, l->y), *want = result(apart, l->y);
        for (int64_t i = 0; i < adj_shape_elems(adj_node_type(l->y).shape); i++)
            cr_assert_float_eq(got[i], want[i], tolerance * fmax(1, fabs(want[i])),
                               "turn %d: [%d] is %.9g, not %.9g", (int)k, (int)i, got[i], want[i]);
    }
}

Test(fold, gives_what_batch_norm_gives)
{
    static const form forms[] = {
        {0},
        {.groups = 4},
        {.has_bias = 1},
        {.has_bias = 1, .depthwise = 1, .multiplier = 2},
        {.has_bias = 1, .format = ADJ_NCHW, .norm_format = ADJ_NCHW},
        {.format = ADJ_NCHW, .norm_format = ADJ_NCHW},
        {.depthwise = 1, .multiplier = 1},
        {.depthwise = 1, .multiplier = 3},
        {.depthwise = 1, .multiplier = 2, .format = ADJ_NCHW, .norm_format = ADJ_NCHW},
        {.dtype = ADJ_F64},
        {.dtype = ADJ_F64, .depthwise = 1, .multiplier = 2},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        scoped(layer_free) layer l = layer_new(forms[i]);
        compare(&l);
    }
}

static void expect_apart(const layer *l, int n, adj_node *const fetch[], const adj_updates *u,
                         const char *backend)
{
    scoped(release_exec) adj_exec *e = plan(l, n, fetch, u, backend);
    cr_assert_eq(count(e, "batch_norm"), 1);
}

Test(fold, only_where_nothing_is_lost)
{
    static const form forms[] = {{.stats_are_input = 1}, {.norm_format = ADJ_NCHW}};
    for (int i = 0; i < 2; i++) {
        scoped(layer_free) layer other = layer_new(forms[i]);
        expect_apart(&other, 1, &other.y, NULL, NULL);
    }
    scoped(layer_free) layer l = layer_new((form){0});
    adj_updates *u = adj_updates_new(l.g);
    adj_updates_add(u, l.beta, adj_scale(l.beta, 2));
    expect_apart(&l, 1, &l.y, u, NULL);
    adj_node *twice = adj_add(l.y, l.conv);
    expect_apart(&l, 1, &twice, NULL, NULL);
    expect_apart(&l, 1, &l.y, NULL, "naive"); /* the reference */
    adj_node *both[2] = {l.y}, *sum = adj_reduce_sum(l.y, (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(sum, NULL, 1, &l.gamma, &both[1]), ADJ_OK);
    scoped(release_exec) adj_exec *gradient = plan(&l, 2, both, NULL, NULL);
    cr_assert(count(gradient, "batch_norm") > 0);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &l.y, .debug = &(adj_exec_debug){.no_fusion = 1}};
    scoped(release_exec) adj_exec *unfused = plan_of(l.g, &o);
    cr_assert_eq(count(unfused, "batch_norm"), 1);
}

/* The convolution before a bias has another reader, or its filter depends on the input. */
Test(fold, only_where_the_convolution_is_free)
{
    scoped(layer_free) layer l = layer_new((form){.has_bias = 1});
    adj_node *const both[] = {l.y, l.raw};
    expect_apart(&l, 2, both, NULL, NULL);
    adj_node *twice = adj_add(l.y, l.raw);
    expect_apart(&l, 1, &twice, NULL, NULL);
    const adj_conv c = {.padding = ADJ_SAME};
    adj_node *scale = adj_reduce_mean(l.x, (adj_axes){.n = ADJ_ALL});
    adj_node *conv = adj_bias_add(adj_conv2d(l.x, adj_mul(l.w, scale), &c), l.b, ADJ_NHWC);
    adj_node *y = adj_batch_norm(conv, l.stats, l.gamma, l.beta, 1e-3, ADJ_NHWC);
    expect_apart(&l, 1, &y, NULL, NULL);
}

/* Whole models, in f32 and between casts. */
Test(fold, models)
{
    static const char *const names[] = {"resnet20", "mobilenet_v1", "resnet8"};
    for (int k = 0; k < 6; k++) {
        double *value[2];
        scoped(release_graph) adj_graph *g = adj_graph_new();
        const adj_model_opts options = {.batch = 2, .size.h = 32, .size.w = 32};
        adj_node *y = adj_model_logits(g, adj_model_find(names[k / 2], NULL), &options);
        adj_exec_opts o = {.n_fetch = 1,
                           .fetch = &y,
                           .precision = k % 2 ? ADJ_PRECISION_BF16 : ADJ_PRECISION_AS_BUILT};
        for (int unfused = 0; unfused < 2; unfused++) {
            o.debug = &(adj_exec_debug){.no_fusion = unfused};
            scoped(release_exec) adj_exec *e = plan_of(g, &o);
            cr_assert_eq(count(e, "batch_norm") > 0, unfused);
            for (int i = 0; i < adj_exec_param_count(e); i++) {
                const adj_node *p = adj_exec_param_at(e, i);
                if (strstr(adj_node_name(p), "/running") != NULL)
                    set_random(e, p, (uint64_t)i, 0.1, 1);
                if (strstr(adj_node_name(p), "/gamma") != NULL)
                    set_random(e, p, (uint64_t)i, 0.5, 1.5);
            }
            set_random(e, adj_find(g, "images"), 99, -1, 1);
            value[unfused] = result(e, y);
        }
        scoped(release) double *got = value[0], *want = value[1];
        double apart = 0, size = 0;
        for (int64_t i = 0; i < adj_shape_elems(adj_node_type(y).shape); i++) {
            apart += (got[i] - want[i]) * (got[i] - want[i]);
            size += want[i] * want[i];
        }
        cr_assert(size > 0 && sqrt(apart / size) < (k % 2 ? 0.05 : 1e-5), "%s: %g apart",
                  names[k / 2], sqrt(apart / size));
    }
}
