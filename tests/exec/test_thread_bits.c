/* test_thread_bits.c - results do not depend on the number of threads, to the last bit, but where
 * the plan's printout says so; and nowhere with same_bits. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "tests/harness.h"

enum { MAX_THREADS = 4 };
static const char warning[] = "(sums depend on the number of threads)";

static int warns(const adj_exec *e)
{
    scoped(release) char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_exec_print(f, e);
    fclose(f);
    int found = strstr(text, warning) != NULL;
    return found;
}

/* y's bytes, malloc'ed. *warned: the plan says that they depend on the threads. */
static char *bytes_with(fixture *f, adj_node *y, adj_exec_opts o, int *warned)
{
    o.n_fetch = 1;
    o.fetch = &y;
    scoped(release_exec) adj_exec *e = plan_of(f->g, &o);
    for (int i = 0; i < f->n_in; i++) {
        adj_type t = adj_node_type(f->in[i]);
        int64_t n = adj_shape_elems(t.shape);
        scoped(release) char *data = malloc((size_t)n * adj_dtype_size(t.dtype));
        adj_convert(ADJ_F64, f->value[i], t.dtype, data, n);
        adj_set(e, f->in[i], data, (size_t)n * adj_dtype_size(t.dtype));
    }
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    adj_type t = adj_node_type(y);
    size_t bytes = (size_t)adj_shape_elems(t.shape) * adj_dtype_size(t.dtype);
    char *data = malloc(bytes);
    cr_assert_eq(adj_get(e, y, data, bytes), ADJ_OK);
    *warned = warns(e);
    return data;
}

/* Returns how many numbers of threads gave a plan without a warning. */
static int expect_same(fixture *f, adj_node *y, adj_exec_opts o)
{
    adj_type t = adj_node_type(y);
    size_t bytes = (size_t)adj_shape_elems(t.shape) * adj_dtype_size(t.dtype);
    int warned, same = 0;
    o.threads = 1;
    scoped(release) char *want = bytes_with(f, y, o, &warned);
    for (o.threads = 2; o.threads <= MAX_THREADS; o.threads++) {
        scoped(release) char *got = bytes_with(f, y, o, &warned);
        if (!warned)
            cr_expect_arr_eq(got, want, bytes, "%s %s, backend %s: %d threads give other bits",
                             y->op->name, adj_dtype_name(t.dtype), o.backend, o.threads);
        same += !warned;
    }
    return same;
}

/* A convolution or its gradients, and what stands around it in training. */
static void build(fixture *f, adj_dtype dtype, int64_t channels, int depthwise, adj_node *y[8])
{
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_shape image = {4, {5, 12, 12, channels}};
    const adj_shape filter = {4, {3, 3, channels, depthwise ? 1 : 2 * channels}};
    adj_node *x = given_random(f, dtype, image, -1, 1), *w = given_random(f, dtype, filter, -1, 1);
    adj_node *gamma = given_random(f, ADJ_F32, (adj_shape){1, {channels}}, 0.5, 1);
    y[0] = depthwise ? adj_depthwise_conv2d_native(x, w, &same) : adj_conv2d(x, w, &same);
    adj_node *dy = given_random(f, dtype, adj_node_type(y[0]).shape, -1, 1);
    y[1] = depthwise ? adj_depthwise_conv2d_native_backprop_input(image, w, dy, &same)
                     : adj_conv2d_backprop_input(image, w, dy, &same);
    y[2] = depthwise ? adj_depthwise_conv2d_native_backprop_filter(x, filter, dy, &same)
                     : adj_conv2d_backprop_filter(x, filter, dy, &same);
    y[3] = adj_bias_add_grad(dy, ADJ_NHWC);
    y[4] = adj_batch_norm_stats(x, ADJ_NHWC);
    y[5] = adj_batch_norm(x, y[4], gamma, gamma, 1e-5, ADJ_NHWC);
    y[6] = adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL});
    y[7] = adj_avg_pool(x, &(adj_pool){.ksize = {1, 3, 3, 1}, .stride = {1, 1, 1, 1}});
}

static void expect_all(const char *backend, adj_math math, int same_bits, int always)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16};
    static const int64_t channels[] = {3, 16, 64};
    for (int d = 0; d < 2; d++)
        for (int c = 0; c < 6; c++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *y[8];
            build(&f, dtypes[d], channels[c % 3], c >= 3, y);
            for (int i = 0; i < 8; i++) {
                cr_assert_not_null(y[i], "%s", adj_graph_message(f.g));
                int same = expect_same(
                    &f, y[i],
                    (adj_exec_opts){.backend = backend, .math = math, .same_bits = same_bits});
                cr_expect(!always || same == MAX_THREADS - 1, "%s warns", y[i]->op->name);
            }
        }
}

/* Two steps of training: what is fused, updates, and all that a network has. */
static float *train(const char *backend, int threads, adj_precision precision, int64_t *n)
{
    adj_model_opts m = {.batch = 4, .training = 1};
    if (strcmp(backend, "naive") == 0) /* slow, and shares out smaller images too */
        m.height = m.width = 16;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits = adj_model_logits(g, adj_model_find("resnet8", &m), &m);
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {4}});
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0}), *images = adj_find(g, "images");
    adj_node *loss = adj_loss_softmax(logits, labels);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &loss, .backend = backend, .threads = threads};
    o.precision = precision;
    o.same_bits = 1;
    o.updates = adj_training_updates(loss, lr, &(adj_optimiser_opts){.momentum = 0.9});
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    int64_t pixels = adj_shape_elems(adj_node_type(images).shape);
    float *x = malloc((size_t)pixels * sizeof *x), rate = 0.01F;
    adj_draw(ADJ_F32, x, pixels, (adj_init){ADJ_INIT_NORMAL, 0, 1}, 1, 0);
    adj_set(e, images, x, (size_t)pixels * sizeof *x);
    adj_set(e, labels, (int32_t[]){1, 7, 3, 0}, 16);
    adj_set(e, lr, &rate, sizeof rate);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    adj_node *first = adj_exec_param_at(e, 0);
    *n = adj_shape_elems(adj_node_type(first).shape);
    float *w = malloc((size_t)*n * sizeof *w);
    cr_assert_eq(adj_get(e, first, w, (size_t)*n * sizeof *w), ADJ_OK);
    free(x);
    return w;
}

static void expect_training(const char *backend, adj_precision precision)
{
    int64_t n;
    scoped(release) float *want = train(backend, 1, precision, &n);
    for (int threads = 2; threads <= MAX_THREADS; threads++) {
        scoped(release) float *got = train(backend, threads, precision, &n);
        cr_expect_arr_eq(got, want, (size_t)n * sizeof *got, "%s, %d threads", backend, threads);
    }
}

/* Tuning may choose other kernels for another number of threads. */
TestSuite(thread_bits, .init = plan_as_usual);

Test(thread_bits, training)
{
    expect_training("naive", ADJ_PRECISION_AS_BUILT);
    expect_training("direct", ADJ_PRECISION_AS_BUILT);
    expect_training("direct", ADJ_PRECISION_BF16);
    expect_training("direct", ADJ_PRECISION_F16);
    expect_training("onednn", ADJ_PRECISION_AS_BUILT);
    expect_training("onednn", ADJ_PRECISION_BF16);
    expect_training("onednn", ADJ_PRECISION_F16);
}

Test(thread_bits, naive) { expect_all("naive", ADJ_MATH_EXACT, 0, 1); }
Test(thread_bits, direct) { expect_all("direct", ADJ_MATH_EXACT, 0, 1); }
Test(thread_bits, direct_fast) { expect_all("direct", ADJ_MATH_FAST, 0, 1); }
Test(thread_bits, onednn) { expect_all("onednn", ADJ_MATH_EXACT, 0, 0); }
Test(thread_bits, onednn_same_bits) { expect_all("onednn", ADJ_MATH_EXACT, 1, 1); }
