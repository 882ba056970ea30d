/* test_ops.c - ops as C, one after the other, beside float64: geometries of windows, axes, chains
 * of elementwise ops, and every op that has a row. */
#include "emitted.h"
#include "tests/host_locale.h"

TestSuite(emit_ops, .init = plan_as_usual);

static adj_node *image(adj_graph *g, adj_dtype dtype, int64_t n, int64_t h, int64_t w, int64_t c)
{
    return adj_input(g, "x", dtype, (adj_shape){4, {n, h, w, c}});
}

static adj_node *param(adj_graph *g, adj_dtype dtype, const char *name, adj_shape shape)
{
    return adj_param(g, name, dtype, shape, adj_init_constant(1));
}

/* ---- convolutions and pools ---- */

typedef struct {
    int64_t n, h, w, c;          /* images */
    int64_t kh, kw, groups, out; /* filters */
    int64_t stride[2], dilation[2], pad[2][2];
    adj_padding padding;
    adj_format format;
} conv_case;

static adj_node *build_conv(adj_graph *g, adj_dtype dtype, const void *user)
{
    const conv_case *k = user;
    adj_node *x = k->format == ADJ_NCHW ? image(g, dtype, k->n, k->c, k->h, k->w)
                                        : image(g, dtype, k->n, k->h, k->w, k->c);
    const int h = k->format == ADJ_NCHW ? 2 : 1;
    adj_conv a = {.padding = k->padding, .format = k->format};
    for (int i = 0; i < 4; i++)
        a.stride[i] = a.dilation[i] = 1;
    for (int i = 0; i < 2; i++) {
        a.stride[h + i] = k->stride[i] > 0 ? k->stride[i] : 1;
        a.dilation[h + i] = k->dilation[i] > 0 ? k->dilation[i] : 1;
        a.pad[h + i][0] = k->pad[i][0];
        a.pad[h + i][1] = k->pad[i][1];
    }
    adj_node *w =
        param(g, dtype, "conv/w", (adj_shape){4, {k->kh, k->kw, k->c / k->groups, k->out}});
    if (k->groups == k->c && k->groups > 1) {
        w = adj_reshape(w, (adj_shape){4, {k->kh, k->kw, k->c, k->out / k->c}});
        return adj_depthwise_conv2d_native(x, w, &a);
    }
    return adj_conv2d(x, w, &a);
}

static adj_node *build_pool(adj_graph *g, adj_dtype dtype, const conv_case *k, int is_maximum)
{
    adj_node *x = image(g, dtype, k->n, k->h, k->w, k->c);
    const adj_pool a = {.ksize = {1, k->kh, k->kw, 1},
                        .stride = {1, k->stride[0], k->stride[1], 1},
                        .padding = k->padding};
    return is_maximum ? adj_max_pool(x, &a) : adj_avg_pool(x, &a);
}

static adj_node *build_max_pool(adj_graph *g, adj_dtype dtype, const void *user)
{
    return build_pool(g, dtype, user, 1);
}

static adj_node *build_avg_pool(adj_graph *g, adj_dtype dtype, const void *user)
{
    return build_pool(g, dtype, user, 0);
}

/* ---- gradients ---- */

typedef struct {
    build_net *build;
    const void *user;
} gradient_case;

/* The gradients of the sum of y^2 for the input and all parameters, one after the other. */
static adj_node *build_gradient(adj_graph *g, adj_dtype dtype, const void *user)
{
    enum { LEAVES = 16 };
    const gradient_case *k = user;
    adj_node *y = k->build(g, dtype, k->user), *leaf[LEAVES], *d[LEAVES];
    int n = 0;
    for (int i = 0; i < adj_graph_node_count(g); i++) {
        adj_node *node = adj_graph_node_at(g, i);
        if (n < LEAVES && (adj_node_is_param(node) || strcmp(adj_node_op(node), "input") == 0))
            leaf[n++] = node;
    }
    adj_node *sum = adj_reduce_sum(adj_square(y), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(sum, NULL, n, leaf, d), ADJ_OK, "%s", adj_graph_message(g));
    for (int i = 0; i < n; i++)
        d[i] = adj_reshape(d[i], (adj_shape){1, {-1}});
    return adj_concat(n, d, 0);
}

enum { FORWARD = 1, GRADIENT = 2, BOTH = 3 };

static void expect_case(const char *name, build_net *build, const void *user)
{
    scoped(net_free) net n = net_new(build, ADJ_F32, user);
    scoped(release) double *want = reference_of(build, user);
    scoped(compiled_free) compiled c = compile_net(&n, NULL, "-O1");
    expect_output(&c, name, &n, want, 1e-5);
}

static void expect_passes(const char *name, build_net *build, const void *user, int passes)
{
    char gradient[40];
    snprintf(gradient, sizeof gradient, "%s_gradient", name);
    if (passes & FORWARD)
        expect_case(name, build, user);
    if (passes & GRADIENT)
        expect_case(gradient, build_gradient, &(gradient_case){build, user});
}

Test(emit_ops, convolutions)
{
    static const conv_case cases[] = {
        {1, 7, 5, 3, 3, 3, 1, 4, .padding = ADJ_SAME},
        {2, 7, 6, 3, 3, 2, 1, 33, .stride = {2, 3}, .padding = ADJ_SAME},
        {1, 9, 8, 2, 3, 3, 1, 5, .stride = {1, 2}, .dilation = {2, 3}, .padding = ADJ_SAME},
        {1, 5, 6, 2, 2, 3, 1, 64, .pad = {{3, 0}, {1, 4}}, .padding = ADJ_EXPLICIT},
        {2, 4, 5, 8, 1, 1, 1, 40, .stride = {2, 2}},
        {1, 6, 6, 6, 3, 3, 3, 12, .padding = ADJ_SAME},
        {1, 6, 5, 5, 3, 3, 5, 5, .stride = {2, 1}, .padding = ADJ_SAME},
        {2, 6, 5, 4, 3, 3, 4, 8, .dilation = {2, 1}, .padding = ADJ_SAME},
        {1, 3, 3, 2, 3, 3, 1, 2, .padding = ADJ_VALID},
        {1, 6, 1, 3, 3, 3, 1, 4, .padding = ADJ_SAME},
        {1, 1, 1, 3, 5, 5, 1, 4, .padding = ADJ_SAME},
        {1, 5, 4, 48, 3, 3, 48, 48, .padding = ADJ_SAME},
        {2, 6, 5, 3, 3, 3, 1, 4, .padding = ADJ_SAME, .format = ADJ_NCHW},
        /* Blocks of pixels: first, inner and last ones, a shorter last one, bounds of each pixel.
         */
        {1, 4, 24, 3, 3, 3, 1, 16, .padding = ADJ_SAME},
        {2, 3, 23, 2, 3, 5, 1, 32, .padding = ADJ_SAME},
        {1, 3, 19, 3, 3, 3, 1, 16, .padding = ADJ_VALID},
        {1, 5, 31, 20, 3, 3, 20, 20, .stride = {1, 2}, .padding = ADJ_SAME},
        {1, 3, 27, 4, 2, 3, 2, 48, .padding = ADJ_SAME},
        {1, 2, 40, 3, 2, 3, 1, 16, .dilation = {1, 4}, .pad = {{0, 1}, {8, 0}},
         .padding = ADJ_EXPLICIT},
        {1, 2, 40, 3, 2, 3, 1, 16, .dilation = {1, 2}, .padding = ADJ_SAME},
        {1, 4, 1, 3, 3, 3, 1, 16, .pad = {{1, 1}, {4, 5}}, .padding = ADJ_EXPLICIT},
        {2, 3, 3, 5, 1, 1, 1, 100, .padding = ADJ_SAME},
        {1, 1, 1, 7, 1, 1, 1, 130, .padding = ADJ_SAME},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[24];
        snprintf(name, sizeof name, "conv%zu", i);
        expect_passes(name, build_conv, &cases[i], BOTH);
    }
}

Test(emit_ops, pools)
{
    static const conv_case cases[] = {
        {1, 6, 6, 3, 2, 2, .stride = {2, 2}},
        {2, 7, 5, 40, 3, 2, .stride = {2, 1}, .padding = ADJ_SAME},
        {1, 4, 4, 2, 4, 4, .stride = {4, 4}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[24];
        snprintf(name, sizeof name, "max%zu", i);
        expect_passes(name, build_max_pool, &cases[i], BOTH);
        snprintf(name, sizeof name, "avg%zu", i);
        expect_passes(name, build_avg_pool, &cases[i], BOTH);
    }
}

/* All modes and coordinates, to larger and smaller images. */
static adj_node *build_resizes(adj_graph *g, adj_dtype dtype, const void *user)
{
    enum { MODES = 2, COORDINATES = 3 };
    adj_node *x = image(g, dtype, 2, 5, 4, 3), *y[2 * MODES * COORDINATES];
    int n = 0;
    (void)user;
    for (int mode = 0; mode < MODES; mode++)
        for (int k = 0; k < COORDINATES; k++) {
            const adj_sampling a = {.mode = (adj_resize_mode)mode,
                                    .coordinates = (adj_coordinates)k};
            y[n++] = adj_reshape(adj_relu(adj_resize(x, 8, 12, &a)), (adj_shape){1, {-1}});
            y[n++] = adj_reshape(adj_resize(x, 1, 3, &a), (adj_shape){1, {-1}});
        }
    return adj_concat(n, y, 0);
}

/* Images of one row or column. */
static adj_node *build_narrow_resizes(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = image(g, dtype, 1, 5, 1, 2), *y[2];
    adj_node *row = adj_reshape(x, (adj_shape){4, {1, 1, 5, 2}});
    for (int mode = 0; mode < 2; mode++)
        y[mode] = adj_add(adj_resize(x, 7, 3, &(adj_sampling){.mode = (adj_resize_mode)mode}),
                          adj_resize(row, 7, 3, &(adj_sampling){.mode = (adj_resize_mode)mode}));
    return adj_concat(2, y, 0);
}

/* ---- chains of elementwise ops ---- */

/* All activations of one value, behind each other. */
static adj_node *build_activations(adj_graph *g, adj_dtype dtype, const void *user)
{
    const int has_gradients = user != NULL;
    adj_node *x = image(g, dtype, 1, 4, 3, 5);
    adj_node *slope = param(g, dtype, "prelu/slope", (adj_shape){1, {5}});
    adj_node *const y[] = {
        adj_relu(x),
        adj_relu6(adj_scale(x, 5)),
        adj_leaky_relu(x, 0.125),
        adj_sigmoid(x),
        adj_tanh(adj_scale(x, -0.7)),
        adj_tanh(adj_scale(x, 90)),
        adj_silu(x),
        adj_hard_sigmoid(adj_scale(x, 4)),
        adj_hard_swish(adj_scale(x, 4)),
        adj_clip(x, -0.5, 0.625),
        adj_elu(x, 1.5),
        adj_gelu(x, ADJ_GELU_ERF),
        adj_softplus(x),
        adj_erf(x),
        adj_prelu(x, slope, ADJ_NHWC),
        adj_neg(x),
        adj_square(x),
        adj_sqrt(adj_add(adj_square(x), adj_fill(g, dtype, (adj_shape){0}, 0.25))),
        adj_exp(x),
        adj_log(adj_add(adj_square(x), adj_fill(g, dtype, (adj_shape){0}, 0.5))),
        adj_abs(x),
        adj_gelu(x, ADJ_GELU_TANH)}; /* the only one without its gradient */
    enum { ALL = sizeof y / sizeof *y };
    return adj_concat(has_gradients ? ALL - 1 : ALL, y, 3);
}

static adj_node *build_binary(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *a = image(g, dtype, 2, 3, 2, 6);
    adj_node *b = param(g, dtype, "b/w", (adj_shape){4, {2, 3, 2, 6}});
    adj_node *one = param(g, dtype, "one/w", (adj_shape){1, {1}});
    adj_node *channel = param(g, dtype, "channel/w", (adj_shape){1, {6}});
    adj_node *image_scale = adj_reduce_mean(adj_square(a), (adj_axes){3, {0, 1, 2}, 1});
    adj_node *gate = adj_reduce_mean(a, (adj_axes){2, {1, 2}, 1}); /* squeeze and excitation */
    adj_node *rows = param(g, dtype, "rows/w", (adj_shape){3, {3, 1, 1}});
    adj_node *const y[] = {adj_add(a, b),
                           adj_mul(a, image_scale),
                           adj_relu(adj_mul(a, adj_sigmoid(gate))),
                           adj_mul(adj_sub(rows, a), channel),
                           adj_sub(a, one),
                           adj_sub(channel, a),
                           adj_mul(a, channel),
                           adj_div(one, adj_add(adj_square(a), one)),
                           adj_maximum(a, b),
                           adj_minimum(adj_tanh(a), channel),
                           adj_equal(a, a),
                           adj_greater_equal(b, a),
                           adj_pow(adj_exp(a), b),
                           adj_select(adj_reshape(one, (adj_shape){0}), a, b),
                           adj_bias_add(adj_relu(a), channel, ADJ_NHWC)};
    return adj_concat(sizeof y / sizeof *y, y, 1);
}

/* An expression that reads an element five times, at an index of four axes. */
static adj_node *build_gated(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = image(g, dtype, 2, 12, 11, 10);
    adj_node *gate = adj_reduce_mean(x, (adj_axes){2, {1, 2}, 1});
    return adj_mul(adj_gelu(x, ADJ_GELU_TANH), gate);
}

/* Two convolutions whose results are added: one of the chains ends at the sum. */
static adj_node *build_residual(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = image(g, dtype, 1, 5, 5, 4);
    const adj_conv_layer c = {.filters = 4, .padding = ADJ_SAME};
    const adj_norm_layer norm = {0};
    adj_node *y = adj_layer_batch_norm(adj_layer_conv2d(x, "a", &c), "bn", &norm);
    adj_node *z = adj_layer_conv2d(x, "b", &c);
    adj_node *sum = adj_relu(adj_add(y, z));
    return adj_add(adj_mul(sum, x), adj_layer_batch_norm(sum, "bn2", &norm));
}

/* Batch norms of training around a strided depthwise convolution, down to one pixel. */
static adj_node *build_normalized(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = image(g, dtype, 6, 4, 4, 3);
    const adj_norm_layer norm = {.training = 1};
    const adj_conv_layer strided = {
        .filters = 8, .stride = {2}, .padding = ADJ_EXPLICIT, .pad = {1}, .no_bias = 1};
    const adj_conv_layer pointwise = {.filters = 9, .kernel = {1}, .no_bias = 1};
    adj_node *h = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "a", &strided), "bn1", &norm));
    h = adj_layer_depthwise_conv2d(h, "b", &strided);
    h = adj_relu(adj_layer_batch_norm(h, "bn2", &norm));
    h = adj_layer_batch_norm(adj_layer_conv2d(h, "c", &pointwise), "bn3", &norm);
    return adj_layer_global_avg_pool(adj_relu(h));
}

static adj_node *drawn(adj_graph *g, adj_dtype dtype, const char *name, int64_t n)
{
    return adj_param(g, name, dtype, (adj_shape){1, {n}}, adj_init_uniform(0.5, 2));
}

/* Norms of images, or of sequences (NCHW, which plans do not transpose), with an operand of the
 * last axis behind them. */
static adj_node *build_norms(adj_graph *g, adj_dtype dtype, const void *user)
{
    const adj_format format = *(const adj_format *)user;
    adj_node *x = format == ADJ_NCHW ? adj_input(g, "x", dtype, (adj_shape){3, {2, 6, 4}})
                                     : image(g, dtype, 2, 3, 4, 6);
    adj_node *last = drawn(g, dtype, "last", format == ADJ_NCHW ? 4 : 6);
    adj_node *gamma = drawn(g, dtype, "gamma", 6), *beta = drawn(g, dtype, "beta", 6);
    adj_node *h = adj_batch_norm(x, adj_batch_norm_stats(x, format), gamma, beta, 1e-5, format);
    h = adj_tanh(adj_mul(h, last));
    h = adj_tanh(adj_mul(adj_group_norm(h, gamma, beta, 2, 1e-5, format), last));
    return adj_mul(adj_tanh(adj_group_norm(h, gamma, beta, 6, 1e-5, format)), x);
}

/* The mean of a row of channels. */
static adj_node *build_row_norm(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){2, {5, 7}});
    adj_node *gamma = drawn(g, dtype, "gamma", 7), *beta = drawn(g, dtype, "beta", 7);
    return adj_mul(adj_group_norm(x, gamma, beta, 1, 1e-5, ADJ_NHWC), x);
}

/* A number in every place: of elementwise ops, and as the memory that a root reads. */
static adj_node *build_filled(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = image(g, dtype, 1, 4, 3, 2);
    adj_node *box = adj_fill(g, dtype, (adj_shape){4, {2, 2, 2, 3}}, 0.375);
    adj_node *scale = adj_fill(g, dtype, (adj_shape){1, {3}}, -1.5);
    return adj_mul(adj_conv2d(x, box, NULL), scale);
}

/* ---- rows, axes, copies ---- */

static adj_node *build_rows(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){2, {3, 20}});
    adj_node *h = adj_layer_dense(x, "fc", 37, NULL);
    adj_node *w = param(g, dtype, "t/w", (adj_shape){2, {11, 37}});
    adj_node *y = adj_matmul(adj_relu(h), w, ADJ_TRANSPOSE_B);
    adj_node *const all[] = {y, adj_softmax(y), adj_log_softmax(y)};
    return adj_concat(3, all, 1);
}

static adj_node *build_axes(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = image(g, dtype, 2, 3, 4, 5);
    const adj_shape flat = {1, {-1}};
    adj_node *const y[] = {
        adj_reshape(adj_global_avg_pool(x, ADJ_NHWC), flat),
        adj_reshape(adj_reduce_sum(x, (adj_axes){.n = 2, .axis = {0, 3}}), flat),
        adj_reshape(adj_reduce_max(x, (adj_axes){.n = 1, .axis = {1}}), flat),
        adj_reshape(adj_reduce_mean(x, (adj_axes){.n = ADJ_ALL}), flat),
        adj_reshape(adj_relu(adj_reduce_mean(x, (adj_axes){.n = 1, .axis = {3}})), flat),
        adj_reshape(adj_transpose(x, 4, (const int[]){0, 3, 1, 2}), flat),
        adj_reshape(adj_pad(x, (adj_shape){4, {0, 1, 2, 0}}, (adj_shape){4, {0, 0, 1, 1}}), flat),
        adj_reshape(adj_slice(x, (adj_shape){4, {1, 0, 1, 2}}, (adj_shape){4, {1, 3, 2, 3}}), flat),
        adj_reshape(adj_broadcast_to(adj_global_avg_pool(x, ADJ_NHWC), (adj_shape){3, {3, 2, 5}}),
                    flat)};
    return adj_concat(sizeof y / sizeof *y, y, 0);
}

Test(emit_ops, others)
{
    static const adj_format images = ADJ_NHWC, planes = ADJ_NCHW;
    static const struct {
        const char *name;
        build_net *build;
        const void *user;
        int passes;
    } cases[] = {
        {"activations", build_activations, NULL, FORWARD},
        {"activations", build_activations, "without gelu of form tanh", GRADIENT},
        {"resizes", build_resizes, NULL, BOTH},
        {"narrow_resizes", build_narrow_resizes, NULL, BOTH},
        {"binary", build_binary, NULL, FORWARD},
        {"gated", build_gated, NULL, FORWARD},
        {"filled", build_filled, NULL, FORWARD},
        {"residual", build_residual, NULL, BOTH},
        {"rows", build_rows, NULL, BOTH},
        {"axes", build_axes, NULL, FORWARD},
        {"normalized", build_normalized, NULL, BOTH},
        {"norms", build_norms, &images, BOTH},
        {"planes", build_norms, &planes, BOTH},
        {"row_norm", build_row_norm, NULL, BOTH},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_passes(cases[i].name, cases[i].build, cases[i].user, cases[i].passes);
}

/* ---- NaN ---- */

static adj_node *build_clamped(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = image(g, dtype, 1, 4, 4, 2);
    adj_node *pooled = adj_max_pool(x, &(adj_pool){.ksize = {1, 2, 2, 1}});
    adj_node *const y[] = {adj_reshape(pooled, (adj_shape){1, {-1}}),
                           adj_reshape(adj_relu(x), (adj_shape){1, {-1}}),
                           adj_reshape(adj_clip(adj_relu6(x), 0.25, 0.5), (adj_shape){1, {-1}})};
    return adj_concat(3, y, 0);
}

/* A NaN stays one, in maxima and in what limits values. */
Test(emit_ops, a_nan_stays)
{
    enum { ELEMS = 32, RESULTS = 8 + 2 * ELEMS };
    scoped(net_free) net n = net_new(build_clamped, ADJ_F32, NULL);
    scoped(compiled_free) compiled c = compile_net(&n, NULL, "-O2");
    float x[ELEMS], y[RESULTS], want[RESULTS];
    for (int at = 0; at < ELEMS; at++) {
        for (int i = 0; i < ELEMS; i++)
            x[i] = i == at ? NAN : input_at(i, 0);
        cr_assert_eq(adj_set(n.e, n.x, x, sizeof x), ADJ_OK);
        cr_assert_eq(adj_run(n.e), ADJ_OK);
        cr_assert_eq(adj_get(n.e, n.y, want, sizeof want), ADJ_OK);
        cr_assert_eq(c.predict(x, y), 0);
        for (int i = 0; i < RESULTS; i++)
            cr_assert(isnan(want[i]) ? isnan(y[i]) : y[i] == want[i], "NaN at %d: [%d] is %g", at,
                      i, (double)y[i]);
    }
}

/* ---- names ---- */

/* Parameters named like keywords, macros and other text. */
static adj_node *build_named(adj_graph *g, adj_dtype dtype, const void *user)
{
    static const char *const names[] = {
        "float", "int32_t",   "NAN", "M_PI", "static_cast", "x",     "net_test", "arena",
        "*/",    "7\n#error", "a b", "a.b",  "expf",        "__a__", "and_eq",   "co_await"};
    (void)user;
    adj_node *y = adj_input(g, "int", dtype, (adj_shape){2, {2, 3}});
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        y = adj_add(adj_tanh(y), param(g, dtype, names[i], (adj_shape){1, {3}}));
    return adj_label(y, "return");
}

Test(emit_ops, names)
{
    scoped(temporary_remove) temporary folder = temporary_folder();
    scoped(net_free) net n = net_new(build_named, ADJ_F32, NULL);
    expect_case("named", build_named, NULL);
    emit_to(folder.s, "named", &n, NULL);
    shell(folder.s,
          "c++ -std=c++20 -x c++ -Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only named.c");
}

/* True if a locale with a decimal comma, or with a dotted capital I, leaves every byte unchanged.
 */
Test(emit_ops, locale)
{
    scoped(temporary_remove) temporary folder = temporary_folder();
    const temporary locale = temporary_folder();
    const adj_emit_opts o = {.prefix = "digits"};
    scoped(net_free) net n = net_new(build_clamped, ADJ_F32, NULL);
    emit_to(folder.s, "here", &n, &o);
    set_host_locale(locale.s, "tr_TR", "ISO-8859-9");
    emit_to(folder.s, "there", &n, &o);
    remove_host_locale(locale.s);
    shell(folder.s, "grep -q DIGITS_INPUT_SIZE here.c && cmp here.c there.c");
}

/* ---- what is refused ---- */

static void expect_refused(build_net *build, adj_dtype dtype, const adj_emit_opts *o,
                           adj_status status, const char *words)
{
    scoped(net_free) net n = net_new(build, dtype, NULL);
    adj_error error = {0};
    FILE *f = temporary_stream();
    cr_assert_not_null(f);
    cr_expect_eq(adj_emit(n.e, n.y, o, f, &error), status, "%s", error.message);
    expect_text(error.message, words);
    cr_expect_eq(ftell(f), 0, "%s: something is written", words);
    fclose(f);
}

static adj_node *build_argmax(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    return adj_cast(adj_label(adj_argmax(image(g, dtype, 1, 2, 2, 4), 3), "most"), dtype);
}

static adj_node *build_two_inputs(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    return adj_add(image(g, dtype, 1, 2, 2, 1),
                   adj_input(g, "z", dtype, (adj_shape){4, {1, 2, 2, 1}}));
}

static adj_node *build_copy(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    return image(g, dtype, 1, 2, 2, 1);
}

static adj_node *build_empty(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){2, {2, 0}});
    return adj_matmul(x, param(g, dtype, "w", (adj_shape){2, {0, 3}}), 0);
}

static adj_node *build_long_resize(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    return adj_resize(image(g, dtype, 1, 20000, 1, 1), 40000, 1, NULL);
}

/* A small file, which lies in a buffer until it is flushed. */
Test(emit_ops, full_disk)
{
    scoped(net_free) net n = net_new(build_clamped, ADJ_F32, NULL);
    adj_error error = {0};
    FILE *f = fopen("/dev/full", "w");
    cr_assert_not_null(f);
    cr_assert_eq(setvbuf(f, NULL, _IOFBF, 1 << 20), 0);
    cr_expect_eq(adj_emit(n.e, n.y, NULL, f, &error), ADJ_EIO);
    cr_expect_str_eq(error.message, "adj_emit: the file cannot be written");
    fclose(f);
}

Test(emit_ops, refused)
{
    expect_refused(build_long_resize, ADJ_F32, NULL, ADJ_ENOKERNEL,
                   "cannot be written: its coordinates exceed an int");
    expect_refused(build_argmax, ADJ_F32, NULL, ADJ_ENOKERNEL,
                   "argmax \"most\" cannot be written: no C is written for this op");
    expect_refused(build_empty, ADJ_F32, NULL, ADJ_ENOKERNEL,
                   "cannot be written: an operand has no elements");
    expect_refused(build_rows, ADJ_F64, NULL, ADJ_EDTYPE, "got f64, expected f32");
    expect_refused(build_two_inputs, ADJ_F32, NULL, ADJ_EARG, "got 2, expected 1");
    expect_refused(build_copy, ADJ_F32, NULL, ADJ_EARG, "is not computed from the input");
    static const char *const prefixes[] = {
        "", "9x", "a-b", "_a", "a\n", "\xc3\xa9", "a1234567890123456789012345678901234567890"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        expect_refused(build_rows, ADJ_F32, &(adj_emit_opts){.prefix = prefixes[i]}, ADJ_EARG,
                       "not an identifier");
    adj_error error = {0};
    cr_expect_eq(adj_emit(NULL, NULL, NULL, NULL, &error), ADJ_EARG);
    expect_text(error.message, "the executor is NULL");
}
