/* test_models.c - built-in models as C: compiled without a warning, the same results as float64
 * with and without optimization, no error under sanitizers; the text is deterministic. */
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
static double error_of(const char *folder, int64_t outputs, const double want[])
{
    char path[160];
    double error = 0, largest = 0;
    snprintf(path, sizeof path, "%s/output", folder);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f);
    for (int64_t i = 0; i < outputs; i++) {
        float y = 0;
        cr_assert_eq(fread(&y, sizeof y, 1, f), 1);
        const double e = fabs((double)y - want[i]);
        error = e <= error ? error : e; /* NaN stays */
        largest = fmax(largest, fabs(want[i]));
    }
    fclose(f);
    cr_assert_gt(largest, 1e-3, "all results are 0");
    return error / largest;
}

/* n_build: as many of the list. */
static void expect_model(const sized *s, int n_build)
{
    const temporary folder = temporary_folder();
    net n = net_new(build_model, ADJ_F32, s);
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
        const double error = error_of(folder.s, outputs, want);
        if (builds[i].is_told)
            cr_log_info("%s, %s: error %.2g of the largest result", s->model, builds[i].flags,
                        error);
        else
            cr_expect_leq(error, tolerance, "%s, %s: error %.3g", s->model, builds[i].flags, error);
    }
    remove_folder(folder.s);
    net_free(&n);
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
    const temporary folder = temporary_folder();
    static const char *const classes[] = {"a \"b\" \\", "?\?/", "\xc3\xa9", "*/"};
    const adj_model_card card = {.model = "a */ name\n?\?/\n\\",
                                 .options = {.size.c = 1, .classes = 4},
                                 .mean = {33.25},
                                 .deviation = {78.5},
                                 .class_names = classes};
    const adj_emit_opts o = {.card = &card};
    net n = net_new(build_model, ADJ_F32, &s);
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
    *(void **)&names = dlsym(library, "net_classes");
    for (int i = 0; i < 4; i++)
        cr_assert_str_eq(names[i], classes[i]);
    void (*normalize)(const uint8_t *, float *);
    *(void **)&normalize = dlsym(library, "net_normalize");
    uint8_t pixels[1024];
    float input[1024];
    for (int i = 0; i < 1024; i++)
        pixels[i] = (uint8_t)i;
    normalize(pixels, input);
    for (int i = 0; i < 1024; i++)
        cr_assert_float_eq((double)input[i], ((i & 255) - 33.25) / 78.5, 1e-6);
    dlclose(library);
    remove_folder(folder.s);
    net_free(&n);
}
