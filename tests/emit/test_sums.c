/* test_sums.c - sums in double: terms that cancel in float, and models. */
#include "emitted.h"

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
    char folder[] = "/tmp/adjoint-sums-XXXXXX";
    static float all[LONG_ROW];
    cr_assert_not_null(mkdtemp(folder));
    net a = net_new(build, ADJ_F32, &k);
    for (int i = 0; i < adj_exec_param_count(a.e); i++) {
        adj_node *p = adj_exec_param_at(a.e, i);
        float *w;
        cr_assert_eq(adj_set_in_place(a.e, p, (void **)&w), ADJ_OK);
        for (int64_t j = 0; j < adj_shape_elems(adj_node_type(p).shape); j++)
            w[j] = 1;
    }
    emit_to(folder, "net", &a, o);
    shell(folder, "cc " STRICT " -O1 -shared -fPIC net.c -o net.so -lm");
    cr_expect_eq(has_text(folder, "net.c", "double"), o != NULL, "%d", (int)k);
    void *library = library_of(folder, "net");
    int (*predict)(const float *, float *);
    *(void **)&predict = dlsym(library, "net_predict");
    cr_assert_eq(predict(x, all), 0);
    memcpy(y, all, (size_t)n * sizeof *y);
    dlclose(library);
    net_free(&a);
    remove_folder(folder);
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

static adj_node *build_model(adj_graph *g, adj_dtype dtype, const void *user)
{
    adj_model_opts o = {.batch = 2, .dtype = dtype};
    return adj_model_logits(g, adj_model_find(user, &o), &o);
}

/* With padding, folded batch norms, and products; and in 8 bits without a warning. */
Test(emit_sums, models)
{
    static const char *const models[] = {"lenet5", "ds_cnn", "resnet8"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char folder[] = "/tmp/adjoint-sums-XXXXXX";
        cr_assert_not_null(mkdtemp(folder));
        net n = net_new(build_model, ADJ_F32, models[i]);
        scoped(release) double *want = reference_of(build_model, models[i]);
        emit_to(folder, "net", &n, &in_double);
        shell(folder, "cc " STRICT " -O1 -shared -fPIC net.c -o net.so -lm");
        expect_output(folder, "net", &n, want, 1e-5);
        emit_to(folder, "net", &n,
                &(adj_emit_opts){.flags = ADJ_EMIT_DOUBLE_SUMS | ADJ_EMIT_INT8_WEIGHTS});
        shell(folder, "cc " STRICT " -O0 -c net.c");
        net_free(&n);
        remove_folder(folder);
    }
}
