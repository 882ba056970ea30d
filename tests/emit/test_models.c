/* test_models.c - built-in models as C: compiled without a warning, the same results as float64,
 * no error under sanitizers; the text is deterministic. */
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

/* is_sanitized: runs it under ASan and UBSan, too. */
static void expect_model(const sized *s, int is_sanitized)
{
    const temporary folder = temporary_folder();
    net n = net_new(build_model, ADJ_F32, s);
    scoped(release) double *want = reference_of(build_model, s);
    emit_to(folder.s, "net", &n, &(adj_emit_opts){.card = &(adj_model_card){.model = s->model}});
    shell(folder.s, "cc " STRICT " -O2 -DNET_TEST -shared -fPIC net.c -o net.so -lm");
    expect_output(folder.s, "net", &n, want, tolerance);
    if (is_sanitized)
        shell(folder.s,
              "echo 'int net_test(void); int main(void) { return net_test(); }' >main.c && "
              "cc -std=c99 -DNET_TEST -fsanitize=address,undefined -fno-sanitize-recover=all net.c "
              "main.c -o test -lm && ./test");
    remove_folder(folder.s);
    net_free(&n);
}

Test(emit_models, lenet5) { expect_model(&(sized){"lenet5", 1, 0, 0}, 0); }
Test(emit_models, lenet5_of_three_images) { expect_model(&(sized){"lenet5", 3, 28, 28}, 1); }
Test(emit_models, lenet) { expect_model(&(sized){"lenet", 1, 12, 12}, 0); }
Test(emit_models, resnet8) { expect_model(&(sized){"resnet8", 1, 0, 0}, 0); }
Test(emit_models, resnet8_of_two_images) { expect_model(&(sized){"resnet8", 2, 9, 7}, 1); }
Test(emit_models, resnet20) { expect_model(&(sized){"resnet20", 1, 8, 8}, 0); }
Test(emit_models, ds_cnn) { expect_model(&(sized){"ds_cnn", 1, 0, 0}, 1); }
Test(emit_models, mobilenet_v1) { expect_model(&(sized){"mobilenet_v1_0.1_33", 1, 0, 0}, 1); }
Test(emit_models, vgg6) { expect_model(&(sized){"vgg6", 1, 8, 8}, 0); }

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
    char path[160];
    snprintf(path, sizeof path, "%s/net.so", folder.s);
    void *library = dlopen(path, RTLD_NOW);
    cr_assert_not_null(library, "%s", dlerror());
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
