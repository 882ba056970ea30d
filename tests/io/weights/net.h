/* net.h - fixtures that the tests of this folder share: a small net with a layer of each kind, and
 * its weights as a PyTorch program has them. */
#ifndef TESTS_IO_WEIGHTS_NET_H
#define TESTS_IO_WEIGHTS_NET_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "io/folder.h"
#include "tests/harness.h"

enum { BATCH = 2, HEIGHT = 6, WIDTH = 4, CHANNELS = 2, CLASSES = 3 };

/* Convolution, batch norm, relu, depthwise with multiplier 2, max_pool, dense of a flattened image
 * of 3 x 2 x 8, relu, dense. */
typedef struct {
    adj_graph *g;
    adj_node *x, *y;
    adj_exec *e;
} small_net;

static inline small_net net_of(adj_format format, adj_dtype dtype)
{
    small_net n = {.g = adj_graph_new()};
    adj_shape s = {4, {BATCH, HEIGHT, WIDTH, CHANNELS}};
    adj_pool half = {.ksize = {1, 2, 2, 1}, .format = format};
    if (format == ADJ_NCHW) {
        s = (adj_shape){4, {BATCH, CHANNELS, HEIGHT, WIDTH}};
        half.ksize[1] = 1;
        half.ksize[3] = 2;
    }
    n.x = adj_input(n.g, "x", dtype, s);
    adj_node *h = adj_layer_conv2d(
        n.x, "conv1", &(adj_conv_layer){.filters = 4, .padding = ADJ_SAME, .format = format});
    h = adj_relu(adj_layer_batch_norm(h, "bn1", &(adj_norm_layer){.format = format}));
    h = adj_layer_depthwise_conv2d(
        h, "dw",
        &(adj_conv_layer){.multiplier = 2, .padding = ADJ_SAME, .format = format, .no_bias = 1});
    h = adj_relu(adj_layer_dense(adj_max_pool(h, &half), "fc1", 5, NULL));
    n.y = adj_layer_dense(h, "logits", CLASSES, NULL);
    n.e =
        plan_of(n.g, &(adj_exec_opts){.n_fetch = 1, .fetch = &n.y, .backend = "naive", .seed = 3});
    return n;
}

static inline void net_free(small_net *n)
{
    adj_exec_free(n->e);
    adj_graph_free(n->g);
}

/* float32 of sin(0.37 i + phase) * scale, as NumPy computes it. */
static inline float sine(int64_t i, double phase, double scale)
{
    return (float)(sin(0.37 * (double)i + phase) * scale);
}

/* The state_dict: names and shapes; entry k holds sines of phase 0.3 k + 0.1, running_var their
 * absolute values and a half. */
static const struct {
    const char *name;
    adj_shape shape;
    int k;
} state_dict[] = {
    {"conv1.weight", {4, {4, 2, 3, 3}}, 0},
    {"conv1.bias", {1, {4}}, 1},
    {"bn1.weight", {1, {4}}, 2},
    {"bn1.bias", {1, {4}}, 3},
    {"bn1.running_mean", {1, {4}}, 4},
    {"bn1.running_var", {1, {4}}, 5},
    {"dw.weight", {4, {8, 1, 3, 3}}, 7},
    {"fc1.weight", {2, {5, 48}}, 8},
    {"fc1.bias", {1, {5}}, 9},
    {"fc2.weight", {2, {3, 5}}, 10},
    {"fc2.bias", {1, {3}}, 11},
};
enum { DICT = sizeof state_dict / sizeof state_dict[0], MOST = 300 };

typedef struct {
    adj_tensor tensor[DICT + 1];
    float value[DICT][MOST];
    int64_t batches; /* num_batches_tracked */
} torch_weights;

static inline void fill_torch(torch_weights *w)
{
    for (int i = 0; i < DICT; i++) {
        int is_var = strstr(state_dict[i].name, "running_var") != NULL;
        int64_t n = adj_shape_elems(state_dict[i].shape);
        for (int64_t j = 0; j < n; j++) {
            float v = sine(j, 0.3 * state_dict[i].k + 0.1, 0.5);
            w->value[i][j] = is_var ? fabsf(v) + 0.5F : v;
        }
        w->tensor[i] =
            (adj_tensor){state_dict[i].name, ADJ_ELEM_F32, state_dict[i].shape, w->value[i]};
    }
    w->batches = 7;
    w->tensor[DICT] = (adj_tensor){"bn1.num_batches_tracked", ADJ_ELEM_I64, {0}, &w->batches};
}

/* PyTorch 1.13's logits for sines of phase 0.9, [2, 2, 6, 4]. */
static const double torch_logits[BATCH * CLASSES] = {-1.94589245,   -1.57294893, 2.10278821,
                                                     -0.0809252635, -3.06649375, 1.06103373};

/* Returns this library's logits of the same net and images; the caller frees. */
static inline double *run_net(const small_net *n)
{
    double x[BATCH * HEIGHT * WIDTH * CHANNELS], nhwc[BATCH * HEIGHT * WIDTH * CHANNELS];
    int at = 0;
    for (int64_t i = 0; i < BATCH * HEIGHT * WIDTH * CHANNELS; i++)
        x[i] = (double)sine(i, 0.9, 1);
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < HEIGHT * WIDTH; i++)
            for (int c = 0; c < CHANNELS; c++)
                nhwc[at++] = x[(b * CHANNELS + c) * HEIGHT * WIDTH + i];
    set_values(n->e, n->x, adj_node_type(n->x).shape.dim[3] == CHANNELS ? nhwc : x);
    cr_assert_eq(adj_run(n->e), ADJ_OK, "%s", adj_exec_message(n->e));
    return fixture_get(n->e, n->y);
}

/* ---- what a suite with .init = enter_weights, .fini = leave_folder has ---- */

static torch_weights torch;
static file_name path; /* file of weights, in the folder of the running test */

static inline void enter_weights(void)
{
    enter_folder();
    path = in_folder(&here, "w.safetensors");
    fill_torch(&torch);
}

static inline void write_weights(int n, const adj_tensor tensors[])
{
    adj_error error = {0};
    cr_assert_eq(adj_tensors_write(path.s, n, tensors, 0, NULL, &error), ADJ_OK, "%s",
                 error.message);
}

static inline adj_status load_weights(const small_net *n, const char *map, adj_error *error)
{
    return adj_weights_load(n->e, path.s, &(adj_weights_opts){.map = map}, error);
}

/* Loads the file's weights into a new net, which then computes what PyTorch does. */
static inline void expect_torch_weights(const char *map, adj_format format)
{
    adj_error error = {0};
    scoped(net_free) small_net n = net_of(format, ADJ_F32);
    cr_assert_eq(load_weights(&n, map, &error), ADJ_OK, "%s", error.message);
    scoped(release) double *logits = run_net(&n);
    expect_close(logits, torch_logits, BATCH * CLASSES, 0, 1e-5, "logits");
}

#endif
