/* test_models.c - built-in models as C: compiled without a warning, the same results as float64
 * with and without optimization, no error under sanitizers; the text is deterministic. Sums in
 * double: terms that cancel in float, and models. */
#include "emitted.h"

TestSuite(emit_models, .init = plan_as_usual);

typedef struct {
    const char *model;
    int64_t batch, height, width;
} sized;

static adj_node *build_model(adj_graph *g, adj_dtype dtype, const void *user)
{
    const sized *s = user;
    adj_model_opts o = {.batch = s->batch, .dtype = dtype};
    const adj_model *model = adj_model_find(s->model, &o);
    o.size.h = s->height > 0 ? s->height : o.size.h;
    o.size.w = s->width > 0 ? s->width : o.size.w;
    return adj_model_logits(g, model, &o);
}

/* Float32 has a unit of 6e-8; sums of up to 2304 terms add up to about a hundred of them. */
static const double tolerance = 1e-5;

/* How a net is compiled. is_told: its error is printed, whatever it is. */
static const struct {
    const char *flags;
    int is_told;
} builds[] = {{"-O2", 0},
              {"-O0 -fsanitize=address,undefined -fno-sanitize-recover=all", 0},
              {"-O3 -march=native -ffast-math", 1}};
enum { CHECKED = 2, ALL = sizeof builds / sizeof *builds };

/* A program that predicts from standard input to standard output, or with an argument runs the
 * file's own test. */
static void write_main(const char *folder, int64_t inputs, int64_t outputs)
{
    char path[160];
    snprintf(path, sizeof path, "%s/main.c", folder);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fprintf(f,
            "#include <stdio.h>\n"
            "int net_predict(const float *input, float *output);\nint net_test(void);\n"
            "static float x[%lld], y[%lld];\n"
            "int main(int n, char **word)\n{\n    (void)word;\n"
            "    if (n > 1)\n        return net_test();\n"
            "    return fread(x, sizeof x, 1, stdin) != 1 || net_predict(x, y) != 0 ||\n"
            "           fwrite(y, sizeof y, 1, stdout) != 1;\n}\n",
            (long long)inputs, (long long)outputs);
    fclose(f);
    snprintf(path, sizeof path, "%s/input", folder);
    f = fopen(path, "wb");
    cr_assert_not_null(f);
    for (int64_t i = 0; i < inputs; i++) {
        const float x = input_at(i, 0);
        cr_assert_eq(fwrite(&x, sizeof x, 1, f), 1);
    }
    fclose(f);
}

/* Returns the largest error of the written output, relative to the largest result. */
static double error_of_output(const char *folder, int64_t n, const double want[])
{
    scoped(release) float *y = malloc((size_t)n * sizeof *y);
    char path[160];
    snprintf(path, sizeof path, "%s/output", folder);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f);
    cr_assert_eq(fread(y, sizeof *y, (size_t)n, f), (size_t)n);
    fclose(f);
    return error_of(n, y, want);
}

/* n_build: as many of the list. */
static void expect_model(const sized *s, int n_build)
{
    scoped(temporary_remove) temporary folder = temporary_folder();
    scoped(net_free) net n = net_new(build_model, ADJ_F32, s);
    scoped(release) double *want = reference_of(build_model, s);
    const int64_t outputs = adj_shape_elems(adj_node_type(n.y).shape);
    char command[400];
    emit_to(folder.s, "net", &n, &(adj_emit_opts){.card = &(adj_model_card){.model = s->model}});
    write_main(folder.s, adj_shape_elems(adj_node_type(n.x).shape), outputs);
    for (int i = 0; i < n_build; i++) {
        snprintf(command, sizeof command,
                 "cc " STRICT " %s -DNET_TEST net.c main.c -o net -lm && ./net <input >output%s",
                 builds[i].flags, builds[i].is_told ? "" : " && ./net test");
        shell(folder.s, command);
        const double error = error_of_output(folder.s, outputs, want);
        if (builds[i].is_told)
            cr_log_info("%s, %s: error %.2g of the largest result", s->model, builds[i].flags,
                        error);
        else
            cr_expect_leq(error, tolerance, "%s, %s: error %.3g", s->model, builds[i].flags, error);
    }
}

Test(emit_models, lenet5) { expect_model(&(sized){"lenet5", 1, 0, 0}, ALL); }
Test(emit_models, lenet5_of_three_images) { expect_model(&(sized){"lenet5", 3, 28, 28}, CHECKED); }
Test(emit_models, lenet) { expect_model(&(sized){"lenet", 1, 12, 12}, ALL); }
Test(emit_models, resnet8) { expect_model(&(sized){"resnet8", 1, 0, 0}, ALL); }
Test(emit_models, resnet8_of_two_images) { expect_model(&(sized){"resnet8", 2, 9, 7}, CHECKED); }
Test(emit_models, resnet20) { expect_model(&(sized){"resnet20", 1, 8, 8}, ALL); }
Test(emit_models, ds_cnn) { expect_model(&(sized){"ds_cnn", 1, 0, 0}, ALL); }
Test(emit_models, mobilenet_v1) { expect_model(&(sized){"mobilenet_v1_0.1_33", 1, 0, 0}, ALL); }
Test(emit_models, vgg6) { expect_model(&(sized){"vgg6", 1, 8, 8}, CHECKED); }

/* A C++ compiler takes it, a freestanding one needs nothing else; the same bytes twice. */
Test(emit_models, other_compilers)
{
    const sized s = {"lenet5", 1, 0, 0};
    scoped(temporary_remove) temporary folder = temporary_folder();
    static const char *const classes[] = {"a \"b\" \\", "?\?/", "\xc3\xa9", "*/"};
    const adj_model_card card = {.model = "a */ name\n?\?/\n\\",
                                 .options = {.size.c = 1, .classes = 4},
                                 .mean = {33.25},
                                 .deviation = {78.5},
                                 .class_names = classes};
    const adj_emit_opts o = {.card = &card};
    scoped(net_free) net n = net_new(build_model, ADJ_F32, &s);
    emit_to(folder.s, "net", &n, &o);
    emit_to(folder.s, "again", &n, &o);
    shell(folder.s, "cmp net.c again.c");
    shell(folder.s, "c++ -x c++ -Wall -Wextra -Wpedantic -Wconversion -Werror -DNET_TEST "
                    "-fsyntax-only net.c");
    shell(folder.s, "! command -v clang || clang " STRICT " -DNET_TEST -fsyntax-only net.c");
    shell(folder.s, "! grep -E '\\b(double|malloc|alloca|printf|goto)\\b' net.c");
    shell(folder.s, "cc " STRICT " -O2 -shared -fPIC net.c -o net.so -lm");
    void *library = library_of(folder.s, "net");
    const char *const *names;
    *(void **)&names = symbol_of(library, "net_classes");
    for (int i = 0; i < 4; i++)
        cr_assert_str_eq(names[i], classes[i]);
    void (*normalize)(const uint8_t *, float *);
    *(void **)&normalize = symbol_of(library, "net_normalize");
    uint8_t pixels[1024];
    float input[1024];
    for (int i = 0; i < 1024; i++)
        pixels[i] = (uint8_t)i;
    normalize(pixels, input);
    for (int i = 0; i < 1024; i++)
        cr_assert_float_eq((double)input[i], ((i & 255) - 33.25) / 78.5, 1e-6);
    dlclose(library);
}

TestSuite(emit_sums, .init = plan_as_usual);

static const adj_emit_opts in_double = {.flags = ADJ_EMIT_DOUBLE_SUMS};

enum { LONG_ROW = 4001 };
typedef enum { CONV, DEPTHWISE, PRODUCT, TRANSPOSED, POOL, SUM, MEAN, SOFTMAX } kind;

static adj_node *param(adj_graph *g, adj_dtype dtype, adj_shape shape)
{
    return adj_param(g, "w", dtype, shape, adj_init_constant(1));
}

static adj_node *build(adj_graph *g, adj_dtype dtype, const void *user)
{
    static const adj_shape shapes[] = {
        [CONV] = {4, {1, 1, 1, 3}}, [DEPTHWISE] = {4, {1, 3, 1, 2}}, [PRODUCT] = {2, {1, 3}},
        [TRANSPOSED] = {2, {1, 3}}, [POOL] = {4, {1, 1, 3, 1}},      [SUM] = {1, {3}},
        [MEAN] = {2, {3, 2}},       [SOFTMAX] = {2, {1, LONG_ROW}},
    };
    const kind k = *(const kind *)user;
    const adj_conv a = {.stride = {1, 1, 1, 1}, .dilation = {1, 1, 1, 1}, .padding = ADJ_VALID};
    adj_node *x = adj_input(g, "x", dtype, shapes[k]);
    if (k == CONV)
        return adj_conv2d(x, param(g, dtype, (adj_shape){4, {1, 1, 3, 1}}), &a);
    if (k == DEPTHWISE)
        return adj_depthwise_conv2d_native(x, param(g, dtype, (adj_shape){4, {3, 1, 2, 1}}), &a);
    if (k == PRODUCT)
        return adj_matmul(x, param(g, dtype, (adj_shape){2, {3, 1}}), 0);
    if (k == TRANSPOSED)
        return adj_matmul(x, param(g, dtype, (adj_shape){2, {1, 3}}), ADJ_TRANSPOSE_B);
    if (k == POOL)
        return adj_avg_pool(
            x, &(adj_pool){.ksize = {1, 1, 3, 1}, .stride = {1, 1, 1, 1}, .padding = ADJ_VALID});
    if (k == SUM)
        return adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL});
    if (k == MEAN)
        return adj_reduce_mean(x, (adj_axes){.n = 1, .axis = {0}});
    return adj_log_softmax(x);
}

/* Computes the first n results of the net as C, with parameters of 1. */
static void compute(kind k, const adj_emit_opts *o, const float x[], int n, float y[])
{
    static float all[LONG_ROW];
    scoped(net_free) net a = net_new(build, ADJ_F32, &k);
    for (int i = 0; i < adj_exec_param_count(a.e); i++) {
        adj_node *p = adj_exec_param_at(a.e, i);
        float *w;
        cr_assert_eq(adj_set_in_place(a.e, p, (void **)&w), ADJ_OK);
        for (int64_t j = 0; j < adj_shape_elems(adj_node_type(p).shape); j++)
            w[j] = 1;
    }
    scoped(compiled_free) compiled c = compile_net(&a, o, "-O1");
    cr_expect_eq(has_text(&c.folder, "double"), o != NULL, "%d", (int)k);
    cr_assert_eq(c.predict(x, all), 0);
    memcpy(y, all, (size_t)n * sizeof *y);
}

/* 1e8 + 1 - 1e8 is 1; in float 1e8 + 1 is 1e8. */
Test(emit_sums, terms_that_cancel)
{
    static const float one[] = {1e8F, 1, -1e8F}, two[] = {1e8F, 2e8F, 1, 2, -1e8F, -2e8F};
    static const struct {
        kind k;
        const float *x;
        int n;
        float want[2];
    } cases[] = {{CONV, one, 1, {1}},
                 {DEPTHWISE, two, 2, {1, 2}},
                 {PRODUCT, one, 1, {1}},
                 {TRANSPOSED, one, 1, {1}},
                 {POOL, one, 1, {1.0F / 3}},
                 {SUM, one, 1, {1}},
                 {MEAN, two, 2, {1.0F / 3, 2.0F / 3}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float single[2], y[2];
        compute(cases[i].k, NULL, cases[i].x, cases[i].n, single);
        compute(cases[i].k, &in_double, cases[i].x, cases[i].n, y);
        for (int k = 0; k < cases[i].n; k++) {
            cr_expect_eq(single[k], 0, "%zu: got %g", i, (double)single[k]);
            cr_expect_float_eq(y[k], cases[i].want[k], 1e-7F, "%zu: got %g", i, (double)y[k]);
        }
    }
}

/* 4000 terms of 4e-8 beside 1, each of which float drops. */
Test(emit_sums, small_terms)
{
    static float x[LONG_ROW];
    float y;
    for (int i = 1; i < LONG_ROW; i++)
        x[i] = (float)log(4e-8);
    compute(SOFTMAX, NULL, x, 1, &y);
    cr_expect_eq(y, 0);
    compute(SOFTMAX, &in_double, x, 1, &y);
    cr_expect_float_eq((double)y, -log(1 + 4000 * 4e-8), 1e-7);
}

/* With padding, folded batch norms, and products; and in 8 bits without a warning. */
Test(emit_sums, models)
{
    static const char *const models[] = {"lenet5", "ds_cnn", "resnet8"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        scoped(net_free) net n = net_new(build_pair, ADJ_F32, models[i]);
        scoped(release) double *want = reference_of(build_pair, models[i]);
        scoped(compiled_free) compiled c = compile_net(&n, &in_double, "-O1");
        expect_output(&c, models[i], &n, want, 1e-5);
        emit_to(c.folder.s, "net", &n,
                &(adj_emit_opts){.flags = ADJ_EMIT_DOUBLE_SUMS | ADJ_EMIT_INT8_WEIGHTS});
        shell(c.folder.s, "cc " STRICT " -O0 -c net.c");
    }
}
