/* test_layers.c - layers against PyTorch in float64 (parameters are sines), names and shapes of
 * their parameters, initial values, what is refused. */
#include <string.h>

#include "expect.h"
#include "nn_test.h"
#include "tests/training.h"

/* ---- values ---- */

static adj_node *grouped_conv(adj_node *x)
{
    return adj_layer_conv2d(
        x, "l",
        &(adj_conv_layer){
            .filters = 6, .stride = {2, 1}, .padding = ADJ_EXPLICIT, .pad = {1, 2}, .groups = 2});
}

static adj_node *depthwise(adj_node *x)
{
    return adj_layer_depthwise_conv2d(x, "l",
                                      &(adj_conv_layer){.padding = ADJ_SAME, .multiplier = 2});
}

static adj_node *separable(adj_node *x)
{
    return adj_layer_separable_conv2d(
        x, "l", &(adj_conv_layer){.filters = 3, .padding = ADJ_SAME, .multiplier = 2});
}

static adj_node *dense(adj_node *x) { return adj_layer_dense(x, "l", 3, NULL); }

static adj_node *transposed_same(adj_node *x)
{
    const adj_conv_layer o = {.filters = 3, .stride = {2}, .padding = ADJ_SAME};
    return adj_layer_conv2d_transpose(x, "l", &o);
}

static adj_node *transposed_valid(adj_node *x)
{
    const adj_conv_layer o = {.filters = 2, .kernel = {2, 3}, .stride = {3, 1}, .dilation = {1, 2}};
    return adj_layer_conv2d_transpose(x, "l", &o);
}

static adj_node *transposed_explicit(adj_node *x)
{
    const adj_conv_layer o = {
        .filters = 2, .kernel = {4}, .stride = {2}, .padding = ADJ_EXPLICIT, .pad = {1, 2}};
    return adj_layer_conv2d_transpose(x, "l", &o);
}

static adj_node *group_norm(adj_node *x) { return adj_layer_group_norm(x, "l", 2, NULL); }
static adj_node *layer_norm(adj_node *x) { return adj_layer_layer_norm(x, "l", NULL); }
static adj_node *prelu(adj_node *x) { return adj_layer_prelu(x, "l", ADJ_NHWC); }
static adj_node *max_pool(adj_node *x) { return adj_label(adj_layer_max_pool(x, 2), "l"); }
static adj_node *avg_pool(adj_node *x) { return adj_label(adj_layer_avg_pool(x, 2), "l"); }
static adj_node *mean_pool(adj_node *x) { return adj_label(adj_layer_global_avg_pool(x), "l"); }
static adj_node *upsample(adj_node *x) { return adj_label(adj_layer_upsample(x, 3), "l"); }

/* x is [1, 5, 4, 4], sine with phase 0.5. Weights have phase 1 (pointwise 3), biases 2, scale 0.5.
 * want: n elements from first on, and the sum of all (NAN: not compared). PyTorch's. */
static const struct {
    struct {
        const char *name;
        adj_node *(*make)(adj_node *x);
        int64_t params, first;
        int n;
        double sum;
    } of;
    double want[8];
} values[] = {
    {{"conv2d", grouped_conv, 3 * 3 * 2 * 6 + 6, 36, 8, 10.385227237149037},
     {0.6037448361437938, 0.5247957437744339, 0.3748180094133318, 0.3193103410356413,
      0.3156355508409395, 0.2692409695532221, -0.1630035947916876, -0.05063085706240428}},
    {{"depthwise_conv2d", depthwise, 3 * 3 * 4 * 2 + 8, 48, 8, -4.529018734208119},
     {0.6999675190105644, 0.547207845727825, 0.4098933646765013, 0.1594902267299853,
      -0.005461104117604587, -0.2595131699552238, -0.3757138930640354, -0.5419070163077011}},
    {{"separable_conv2d", separable, 3 * 3 * 4 * 2 + 8 * 3 + 3, 18, 3, 19.55644200643869},
     {0.413223156072358, 0.2850472149734182, 0.1182914705447614}},
    {{"dense", dense, 80 * 3 + 3, 0, 3, 0.69995576772436 + 0.3196018135982892 - 0.1040087466784182},
     {0.69995576772436, 0.3196018135982892, -0.1040087466784182}},
    {{"transposed, SAME", transposed_same, 3 * 3 * 3 * 4 + 3, 60, 6, 81.94149171524126},
     {-2.133293317460346, 1.415368077357534, 2.976828560669452, -0.8555622115075144,
      -0.8914738259467008, 1.280767249206751}},
    {{"transposed, VALID", transposed_valid, 2 * 3 * 2 * 4 + 2, 30, 6, 89.96557951251991},
     {1.001136762737119, 1.481391017616343, 0.4546487134128409, 0.3486388691299689,
      0.4546487134128409, 0.3486388691299689}},
    {{"transposed, EXPLICIT", transposed_explicit, 4 * 4 * 2 * 4 + 2, 20, 6, 52.621626799285124},
     {-1.715071056112131, -2.556139181635837, 2.097606593795399, 3.551356239777225,
      0.148438098963668, 3.801450786164363}},
    {{"group_norm", group_norm, 8, 30, 6, 20.296877233858527},
     {-0.3754389838452655, -0.3258322128737166, 0.2913822035762634, 0.415821396147787,
      0.5224735173862387, 0.4680506094874883}},
    {{"layer_norm", layer_norm, 8, 30, 6, 20.295069456951538},
     {0.2360460082947444, 0.703258996102737, -0.130311755035591, 0.148770488621291,
      0.453053412101315, 0.5630904399650456}},
    {{"prelu", prelu, 4, 24, 6, 15.659698902901631},
     {0.04476299847674205, -0.1565497168010253, -0.315704148330285, -0.3753821366573503,
      -0.4168747706241414, -0.4765527589512062}},
    {{"max_pool", max_pool, 0, 0, 6, 7.427796115850656},
     {0.998941341839772, 0.9147052511191576, 0.945783999449539, 0.9992316344213905,
      0.04476299847674205, -0.3195191936222737}},
    {{"avg_pool", avg_pool, 0, 8, 6, 0.36094085096367956},
     {0.2367599470358256, 0.4690426374612562, 0.6378426072847877, 0.72031357246726,
      -0.1088597368746903, -0.3611769140558784}},
    {{"global_avg_pool", mean_pool, 0, 0, 4, 0.11973362659967574},
     {0.05330295480191958, 0.04102245906750594, 0.02318976594335988, 0.002218446786890316}},
    {{"upsample", upsample, 0, 200, 6, 21.55205278794162},
     {0.1363882699415976, 0.4853948156722903, 0.7687054501917558, 0.9479754081880525,
      0.998941341839772, 0.9147052511191576}},
};

static const struct {
    const char *param;
    double phase;
} phases[] = {{"l/w", 1},     {"l/depthwise", 1}, {"l/pointwise", 3}, {"l/b", 2},
              {"l/gamma", 1}, {"l/beta", 2},      {"l/slope", 1}};

Test(layers, values_like_torch)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F64, (adj_shape){4, {1, 5, 4, 4}});
        adj_node *y = values[i].of.make(x);
        scoped(release_exec) adj_exec *e = exec_new(g, 1, &y, NULL);
        double sum = 0;

        cr_assert_eq(adj_find(g, "l"), y);
        cr_assert_eq(adj_trainable_elems(y), values[i].of.params, "%s", values[i].of.name);
        set_sine(e, x, 0.5, 1);
        for (size_t k = 0; k < sizeof phases / sizeof *phases; k++)
            if (adj_find(g, phases[k].param) != NULL)
                set_sine(e, adj_find(g, phases[k].param), phases[k].phase, 0.5);
        run(e);
        scoped(release) double *got = fixture_get(e, y);
        for (int64_t k = 0; k < adj_shape_elems(adj_node_type(y).shape); k++)
            sum += got[k];
        expect_close(got + values[i].of.first, values[i].want, values[i].of.n, 1e-12, 1e-13,
                     values[i].of.name);
        expect_close(&sum, &values[i].of.sum, 1, 1e-11, 0, values[i].of.name);
    }
}

/* ---- losses ---- */

Test(layers, losses_like_torch)
{
    scoped(fixture_free) fixture f = fixture_new();
    double logits[12];
    const double labels[3] = {2, -1, 0}, want = 1.1635787090267, smoothed = 1.187376719746212;

    for (int i = 0; i < 12; i++)
        logits[i] = sine(i, 1, 2);
    adj_node *x = given(&f, ADJ_F64, (adj_shape){2, {3, 4}}, logits);
    adj_node *l = given(&f, ADJ_I32, (adj_shape){1, {3}}, labels);
    expect_values(&f, adj_loss_softmax(x, l, NULL), "naive", &want, 1e-13, 0);
    expect_values(&f, adj_loss_softmax(x, l, &(adj_loss_opts){.smoothing = 0.1}), "naive",
                  &smoothed, 1e-13, 0);
    adj_node *half = adj_loss_softmax(adj_cast(x, ADJ_BF16), l, NULL);
    cr_assert_eq(adj_node_type(half).dtype, ADJ_F32);
    expect_values(&f, half, "naive", &want, 2e-2, 0);
    cr_assert_null(adj_loss_softmax(NULL, l, NULL));
}

/* ---- initial values ---- */

static void expect_init(adj_init got, adj_init_kind kind, double a, double b)
{
    cr_assert_eq(got.kind, kind);
    cr_assert(fabs(got.a - a) < 1e-15 && fabs(got.b - b) < 1e-15, "got %g %g, want %g %g", got.a,
              got.b, a, b);
}

Test(layers, initializers)
{
    expect_init(adj_init_from_fans(ADJ_HE_NORMAL, 8, 3), ADJ_INIT_NORMAL, 0, 0.5);
    expect_init(adj_init_from_fans(ADJ_HE_UNIFORM, 24, 3), ADJ_INIT_UNIFORM, -0.5, 0.5);
    expect_init(adj_init_from_fans(ADJ_GLOROT_NORMAL, 3, 5), ADJ_INIT_NORMAL, 0, 0.5);
    expect_init(adj_init_from_fans(ADJ_GLOROT_UNIFORM, 10, 14), ADJ_INIT_UNIFORM, -0.5, 0.5);
    expect_init(adj_init_from_fans(ADJ_HE_NORMAL, 0, 0), ADJ_INIT_NORMAL, 0, sqrt(2));
    expect_init(adj_init_uniform(-1, 2), ADJ_INIT_UNIFORM, -1, 2);
    expect_init(adj_init_normal(1, 2), ADJ_INIT_NORMAL, 1, 2);
    expect_init(adj_init_constant(3), ADJ_INIT_CONSTANT, 3, 0);
}

/* The deviation of a parameter's elements from a mean. */
static double deviation_from(adj_exec *e, const adj_node *p, double mean)
{
    const int64_t n = elems_of(p);
    scoped(release) double *v = fixture_get(e, p);
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    return sqrt(squares / (double)n);
}

/* x has 16 channels: fan_in is 9 * 16 (8 with two groups), fan_out 9 * 64 (32). */
static const struct {
    adj_weight_init init;
    int64_t groups;
    double variance;
} fans[] = {
    {ADJ_HE_NORMAL, 0, 2.0 / 144},     {ADJ_HE_UNIFORM, 0, 2.0 / 144},
    {ADJ_GLOROT_NORMAL, 0, 2.0 / 720}, {ADJ_GLOROT_UNIFORM, 0, 2.0 / 720},
    {ADJ_HE_NORMAL, 2, 2.0 / 72},      {ADJ_GLOROT_UNIFORM, 2, 2.0 / 360},
    {ADJ_INIT_GIVEN, 0, 0.09},
};

Test(layers, fans)
{
    for (size_t i = 0; i < sizeof fans / sizeof *fans; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 3, 3, 16}});
        adj_node *y = adj_layer_conv2d(x, "l",
                                       &(adj_conv_layer){.filters = 64,
                                                         .groups = fans[i].groups,
                                                         .init = fans[i].init,
                                                         .given = adj_init_normal(0, 0.3)});
        scoped(release_exec) adj_exec *e = exec_new(g, 1, &y, NULL);
        double got = deviation_from(e, adj_find(g, "l/w"), 0), want = sqrt(fans[i].variance);
        cr_assert(fabs(got / want - 1) < 0.05, "case %zu: got %g, want %g", i, got, want);
    }
}

/* Mean and deviation of a drawn or constant parameter; fan_in is 9, 64 and 9 * 64 = 576. */
static const struct {
    const char *name;
    double mean, deviation;
} initial[] = {
    {"dw/w", 0, 0.4714},
    {"dw/b", 0, 0},
    {"sep/depthwise", 0, 0.4714},
    {"sep/pointwise", 0, 0.1768},
    {"sep/b", 0, 0},
    {"bn/gamma", 1, 0},
    {"bn/beta", 0, 0},
    {"fc/w", 0, 0.0589},
    {"fc/b", 0, 0},
};

Test(layers, initial_values)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F64, (adj_shape){4, {1, 3, 3, 64}});
    const adj_conv_layer same = {.filters = 64, .padding = ADJ_SAME};
    adj_node *h = adj_layer_depthwise_conv2d(x, "dw", &same);
    h = adj_layer_separable_conv2d(h, "sep", &same);
    h = adj_layer_batch_norm(h, "bn", NULL);
    adj_node *y = adj_layer_dense(h, "fc", 10, NULL);
    scoped(release_exec) adj_exec *e = exec_new(g, 1, &y, NULL);

    for (size_t i = 0; i < sizeof initial / sizeof *initial; i++) {
        const double got = deviation_from(e, adj_find(g, initial[i].name), initial[i].mean);
        const double want = initial[i].deviation;
        cr_assert(fabs(got - want) <= 0.1 * want, "%s: got %g, want %g", initial[i].name, got,
                  want);
    }
}

/* ---- half types ---- */

Test(layers, half_types_keep_f32_parameters)
{
    static const adj_dtype half[] = {ADJ_F16, ADJ_BF16};

    for (int i = 0; i < 2; i++) {
        adj_node *x = adj_input(adj_graph_new(), "images", half[i], (adj_shape){4, {2, 4, 4, 3}});
        adj_node *h = adj_layer_conv2d(x, "conv", &(adj_conv_layer){.filters = 4});
        h = adj_layer_batch_norm(h, "bn", &(adj_norm_layer){.training = 1});
        h = adj_layer_dropout(h, "dropout", 0.5, 1);
        adj_node *y = adj_layer_dense(h, "dense", 5, NULL);
        cr_assert_not_null(y, "%s", adj_graph_message(adj_node_graph(x)));
        cr_assert_eq(adj_node_type(y).dtype, half[i]);
        scoped(training_free) training t = training_on(y, &with_momentum);
        for (int k = 0; k < adj_updates_count(t.updates); k++) {
            adj_node *leaf = adj_updates_leaf_at(t.updates, k);
            int step = strcmp(adj_node_name(leaf), "dropout/step") == 0;
            cr_assert_eq(adj_node_type(leaf).dtype, step ? ADJ_I32 : ADJ_F32, "%s",
                         adj_node_name(leaf));
        }
        scoped(release_exec) adj_exec *e = exec_new(t.g, 1, &t.loss, t.updates);
        set_sine(e, x, 0, 1);
        set_values(e, t.lr, (double[]){0.01});
        set_values(e, t.labels, (double[]){1, 4});
        run(e);
        double value = get_scalar(e, t.loss);
        cr_assert(value > 0 && value < 20, "loss %g", value);
    }
}

/* ---- what is refused ---- */

static const char *const image = "f32[1, 5, 4, 4]";

static adj_node *conv_of(fixture *f, const char *x, adj_conv_layer o)
{
    return adj_layer_conv2d(input(f, x), "l", &o);
}

static adj_node *name_twice(fixture *f)
{
    const adj_conv_layer four = {.filters = 4};
    return adj_layer_conv2d(adj_layer_conv2d(input(f, image), "l", &four), "l", &four);
}

Test(layers, refusals)
{
    const adj_conv_layer three = {.filters = 3}, many = {.multiplier = INT64_MAX};
    const adj_norm_layer too_fast = {.training = 1, .momentum = 7};
    char name[400] = "";
    memset(name, 'x', sizeof name - 1);
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(&f, adj_layer_conv2d(input(&f, image), "l", NULL), ADJ_EARG,
                   "l: |filters|got 0");
    expect_refusal(&f, conv_of(&f, image, (adj_conv_layer){.filters = 2, .kernel = {-3}}), ADJ_EARG,
                   "l: |kernel|-3");
    expect_refusal(&f, adj_layer_depthwise_conv2d(input(&f, image), "l", &many), ADJ_EARG,
                   "l: |multiplier");
    expect_refusal(&f, conv_of(&f, image, (adj_conv_layer){.filters = 3, .groups = 3}), ADJ_ESHAPE,
                   "l: |groups|3 of 4");
    expect_refusal(&f, conv_of(&f, "f32[1, 5, 4]", three), ADJ_ESHAPE, "l: |input|rank");
    expect_refusal(
        &f, conv_of(&f, image, (adj_conv_layer){.filters = 3, .padding = ADJ_SAME, .pad = {1}}),
        ADJ_EARG, "l: |pad");
    expect_refusal(&f, adj_layer_conv2d(input(&f, image), NULL, &three), ADJ_EARG, "layer|name");
    expect_refusal(&f, name_twice(&f), ADJ_EARG, "l/w");
    expect_refusal(&f, adj_layer_dense(input(&f, image), name, 3, NULL), ADJ_EARG,
                   "xxx: |name is too long");
    expect_refusal(&f, adj_layer_dense(input(&f, image), "l", 0, NULL), ADJ_EARG, "l: |units");
    expect_refusal(&f, adj_layer_dense(input(&f, "f32[]"), "l", 2, NULL), ADJ_ESHAPE, "l: |input");
    expect_refusal(&f, adj_layer_batch_norm(input(&f, "f32[1, 5]"), "l", NULL), ADJ_ESHAPE,
                   "l: |input|rank");
    expect_refusal(&f, adj_layer_batch_norm(input(&f, image), "l", &too_fast), ADJ_EARG,
                   "l: momentum|got 7, expected 0 to 1");
    expect_refusal(&f, adj_layer_dropout(input(&f, "f32[1, 5]"), "", 0.5, 1), ADJ_EARG,
                   "dropout|name");
    expect_refusal(&f, adj_layer_dropout(input(&f, "f32[1, 5]"), "l", 1.5, 1), ADJ_EARG,
                   "l: dropout|rate");
    cr_assert_null(adj_layer_conv2d(NULL, "l", NULL));
    cr_assert_null(adj_layer_depthwise_conv2d(NULL, "l", NULL));
    cr_assert_null(adj_layer_separable_conv2d(NULL, "l", NULL));
    cr_assert_null(adj_layer_dense(NULL, "l", 3, NULL));
    cr_assert_null(adj_layer_batch_norm(NULL, "l", NULL));
    cr_assert_null(adj_layer_dropout(NULL, "l", 0.5, 1));
}

Test(layers, initial_values_that_cannot_be_drawn)
{
    const adj_shape two = {1, {2}};
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(&f, adj_param(f.g, "p", ADJ_F32, two, adj_init_uniform(1, -1)), ADJ_EARG,
                   "\"p\"|got 1 to -1, expected low <= high");
    expect_refusal(&f, adj_param(f.g, "p", ADJ_F32, two, adj_init_uniform(0, NAN)), ADJ_EARG,
                   "\"p\"|got 0 to nan");
    expect_refusal(&f, adj_param(f.g, "p", ADJ_F32, two, adj_init_normal(0, -1)), ADJ_EARG,
                   "\"p\"|deviation|got -1, expected 0 or more");
}

/* Errors of the ops that layers are made of, whose input is an image of 5 x 4 pixels. A layer's
 * name stands before no error but its own. */
Test(layers, refusals_of_their_ops)
{
    const adj_conv_layer large = {.filters = 4, .kernel = {7}}, four = {.filters = 4};
    const adj_pool pool = {.ksize = {1, 9, 9, 1}};
    const char *const negative = "computed output height is negative";
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(&f, adj_layer_conv2d(input(&f, image), "conv3", &large), ADJ_ESHAPE,
                   "conv3: conv2d: |%s", negative);
    expect_refusal(&f, adj_layer_depthwise_conv2d(input(&f, image), "dw3", &large), ADJ_ESHAPE,
                   "dw3: depthwise|%s", negative);
    expect_refusal(&f, adj_layer_separable_conv2d(input(&f, image), "sep3", &large), ADJ_ESHAPE,
                   "sep3: |%s", negative);
    expect_refusal(&f, adj_layer_conv2d(input(&f, "i32[1, 5, 4, 4]"), "conv3", &four), ADJ_EDTYPE,
                   "conv3: ");
    expect_refusal(&f, adj_layer_batch_norm(input(&f, "i32[1, 5, 4, 4]"), "bn3", NULL), ADJ_EDTYPE,
                   "bn3: ");
    cr_assert_null(adj_max_pool(adj_layer_conv2d(input(&f, image), "conv3", &four), &pool));
    cr_expect_eq(strncmp(adj_graph_message(f.g), "max_pool: ", 10), 0, "%s",
                 adj_graph_message(f.g));
}
