/* test_loss_scale.c - scaled gradients in f16: small ones survive, and results are unscaled after
 * any op. Reference: the same graph in f32. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/training.h"

enum { MAX = 128 };

static const char *const backends[] = {"naive", "direct", "onednn"};
enum { BACKENDS = sizeof backends / sizeof *backends };

typedef struct {
    adj_graph *g;
    int n; /* fetched */
    adj_node *fetch[MAX];
    int whole; /* inputs are small integers */
} subject;

static void subject_free(subject *s) { adj_graph_free(s->g); }

static int64_t elems(const adj_node *n) { return adj_shape_elems(adj_node_type(n).shape); }

/* Every f32 value fetched, one after the other; to be freed. */
static float *fetched(const subject *s, const char *backend, adj_precision precision, double scale)
{
    adj_exec_opts o = {.n_fetch = s->n,
                       .fetch = s->fetch,
                       .backend = backend,
                       .precision = precision,
                       .loss_scale = scale,
                       .threads = 1,
                       .debug = &(adj_exec_debug){.canaries = 1}};
    scoped(release_exec) adj_exec *e = plan_of(s->g, &o);
    for (int id = 0; id < adj_graph_node_count(s->g); id++) {
        const adj_node *x = adj_graph_node_at(s->g, id);
        adj_type t = adj_node_type(x);
        if (strcmp(adj_node_op(x), "input") != 0)
            continue;
        scoped(release) void *data = calloc((size_t)elems(x), 4);
        for (int64_t i = 0; i < elems(x); i++)
            if (t.dtype == ADJ_I32)
                ((int32_t *)data)[i] = (int32_t)(i % 2);
            else if (s->whole)
                ((float *)data)[i] = (float)((i * 5 + i / 7) % 3 - 1);
            else
                ((float *)data)[i] = (float)sin((double)(i * 7 + id));
        adj_set(e, x, data, (size_t)elems(x) * 4);
    }
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    int64_t n = 0;
    for (int i = 0; i < s->n; i++)
        n += elems(s->fetch[i]);
    float *v = malloc((size_t)n * sizeof *v), *at = v;
    for (int i = 0; i < s->n; at += elems(s->fetch[i++]))
        cr_assert_eq(adj_get(e, s->fetch[i], at, (size_t)elems(s->fetch[i]) * 4), ADJ_OK);
    return v;
}

/* Gradients of 2^-27 times small integers: f16's smallest number is 2^-24. With 1024 they are all
 * exact, without they are all 0. */
Test(loss_scale, tiny_gradients)
{
    scoped(subject_free) subject s = {.g = adj_graph_new(), .whole = 1};
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_pool half = {.ksize = {1, 2, 2, 1}};
    adj_node *x = adj_input(s.g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 8}});
    adj_node *w = adj_input(s.g, "w", ADJ_F32, (adj_shape){4, {3, 3, 8, 8}});
    adj_node *v = adj_input(s.g, "v", ADJ_F32, (adj_shape){4, {1, 1, 8, 4}});
    adj_node *b = adj_input(s.g, "b", ADJ_F32, (adj_shape){1, {8}});
    adj_node *d = adj_input(s.g, "d", ADJ_F32, (adj_shape){4, {3, 3, 8, 1}});
    adj_node *m = adj_input(s.g, "m", ADJ_F32, (adj_shape){2, {64, 3}});
    adj_node *h = adj_relu(adj_bias_add(adj_conv2d(x, w, &same), b, ADJ_NHWC));
    h = adj_max_pool(adj_add(h, adj_neg(x)), &half);
    h = adj_conv2d(adj_depthwise_conv2d_native(h, d, &same), v, &same);
    adj_node *y = adj_matmul(adj_reshape(h, (adj_shape){2, {2, -1}}), m, 0);
    adj_node *loss = adj_scale(adj_reduce_sum(y, (adj_axes){.n = ADJ_ALL}), 0x1p-27);
    adj_node *of[] = {x, w, v, b, m, d};
    s.n = 6;
    cr_assert_eq(adj_grad(loss, NULL, 6, of, s.fetch), ADJ_OK, "%s", adj_graph_message(s.g));
    int64_t n = 0;
    for (int i = 0; i < s.n; i++)
        n += elems(s.fetch[i]);
    for (int k = 0; k < BACKENDS; k++) {
        scoped(release) float *want = fetched(&s, "naive", ADJ_PRECISION_AS_BUILT, 0);
        scoped(release) float *got = fetched(&s, backends[k], ADJ_PRECISION_F16, 0);
        scoped(release) float *lost = fetched(&s, backends[k], ADJ_PRECISION_F16, 1);
        int n_not_zero = 0;
        for (int64_t i = 0; i < n; i++) {
            cr_assert_eq(got[i], want[i], "%s: gradient %d: %a, not %a", backends[k], (int)i,
                         (double)got[i], (double)want[i]);
            cr_assert_eq(lost[i], 0);
            n_not_zero += want[i] != 0;
        }
        cr_assert_gt(n_not_zero, n / 2);
    }
}

/* <got, want>, <want, want> and the square of the distance, of n elements. */
typedef struct {
    double product, square, error;
} sums;

static sums sums_of(const float *got, const float *want, int64_t n)
{
    sums s = {0};
    for (int64_t i = 0; i < n; i++) {
        s.product += (double)want[i] * (double)got[i];
        s.square += (double)want[i] * (double)want[i];
        s.error += (double)(want[i] - got[i]) * (double)(want[i] - got[i]);
    }
    return s;
}

/* <got, want> / <want, want> of each value fetched is near 1. */
static void expect_own_size(const subject *s, const char *label)
{
    static const double scales[] = {1, 1024, 100, 0x1p-3};
    scoped(release) float *want = fetched(s, "naive", ADJ_PRECISION_AS_BUILT, 0);
    for (int k = 0; k < BACKENDS; k++)
        for (size_t j = 0; j < sizeof scales / sizeof *scales; j++) {
            if (k == 0 && scales[j] != 100) /* naive is slow, and scales nothing by itself */
                continue;
            scoped(release) float *got = fetched(s, backends[k], ADJ_PRECISION_F16, scales[j]);
            for (int64_t i = 0, at = 0; i < s->n; at += elems(s->fetch[i++])) {
                const sums v = sums_of(got + at, want + at, elems(s->fetch[i]));
                if (v.square > 1e-12) /* not a bias before a batch norm: its gradient is rounding */
                    cr_expect(v.product > 0.85 * v.square && v.product < 1.15 * v.square &&
                                  v.error < 0.05 * v.square,
                              "%s on %s, scale %g: %d is %g times as large, error %g", label,
                              backends[k], scales[j], (int)i, v.product / v.square,
                              sqrt(v.error / v.square));
            }
        }
}

/* Whole networks: batch norm, residual sums, pools. */
Test(loss_scale, networks)
{
    static const char *const models[] = {"lenet", "resnet8"};
    for (int i = 0; i < 2; i++) {
        scoped(training_free) training t =
            training_of(models[i], (adj_model_opts){.batch = 2}, &with_momentum);
        subject s = {.g = t.g};
        adj_node *of[MAX];
        s.n = adj_trainable(t.loss, NULL, MAX - 1, of);
        cr_assert_eq(adj_grad(t.loss, NULL, s.n, of, s.fetch), ADJ_OK, "%s",
                     adj_graph_message(s.g));
        s.fetch[s.n++] = t.loss;
        expect_own_size(&s, models[i]);
    }
}

/* The gradient of a batch norm is linear in dy and in sums of dy, together. */
Test(loss_scale, tiny_through_batch_norm)
{
    scoped(subject_free) subject s = {.g = adj_graph_new()};
    adj_node *x = adj_input(s.g, "x", ADJ_F32, (adj_shape){4, {4, 6, 6, 8}});
    adj_node *w = adj_input(s.g, "w", ADJ_F32, (adj_shape){4, {1, 1, 8, 8}});
    adj_node *gamma = adj_input(s.g, "gamma", ADJ_F32, (adj_shape){1, {8}});
    adj_node *beta = adj_input(s.g, "beta", ADJ_F32, (adj_shape){1, {8}});
    adj_node *h = adj_conv2d(x, w, NULL);
    h = adj_batch_norm(h, adj_batch_norm_stats(h, ADJ_NHWC), gamma, beta, 1e-3, ADJ_NHWC);
    adj_node *y = adj_conv2d(adj_relu(h), w, NULL);
    adj_node *loss = adj_scale(adj_reduce_sum(adj_square(y), (adj_axes){.n = ADJ_ALL}), 0x1p-27);
    adj_node *of[] = {x, w, gamma, beta}, *dx[4];
    cr_assert_eq(adj_grad(loss, NULL, 4, of, dx), ADJ_OK, "%s", adj_graph_message(s.g));
    s.n = 4;
    memcpy(s.fetch, dx, sizeof dx);
    for (int k = 0; k < BACKENDS; k++) {
        scoped(release) float *want = fetched(&s, "naive", ADJ_PRECISION_AS_BUILT, 0);
        scoped(release) float *got = fetched(&s, backends[k], ADJ_PRECISION_F16, 0);
        for (int64_t i = 0, at = 0; i < s.n; at += elems(dx[i++])) {
            const sums v = sums_of(got + at, want + at, elems(dx[i]));
            cr_assert(v.square > 0 && v.error < 1e-3 * v.square, "%s: gradient %d: error %g of %g",
                      backends[k], (int)i, sqrt(v.error), sqrt(v.square));
        }
    }
}

/* Products of gradients with each other and with values, sums of gradients and values, and second
 * derivatives: scaled and unscaled values are kept apart. */
Test(loss_scale, mixtures)
{
    scoped(subject_free) subject s = {.g = adj_graph_new()};
    const adj_conv same = {.padding = ADJ_SAME};
    adj_node *x = adj_input(s.g, "x", ADJ_F32, (adj_shape){4, {2, 6, 6, 8}});
    adj_node *w = adj_input(s.g, "w", ADJ_F32, (adj_shape){4, {3, 3, 8, 8}});
    adj_node *b = adj_input(s.g, "b", ADJ_F32, (adj_shape){1, {8}});
    adj_node *y = adj_sigmoid(adj_bias_add(adj_conv2d(x, w, &same), b, ADJ_NHWC));
    y = adj_conv2d(adj_mul(y, x), w, &same);
    adj_node *of[] = {x, w, b}, *dx[3], *d2[3];
    adj_node *loss = adj_scale(adj_reduce_sum(adj_tanh(y), (adj_axes){.n = ADJ_ALL}), 0x1p-6);
    cr_assert_eq(adj_grad(loss, NULL, 3, of, dx), ADJ_OK, "%s", adj_graph_message(s.g));
    adj_node *square = adj_mul(dx[0], dx[0]), *both = adj_add(dx[0], x);
    adj_node *parts[] = {x, dx[0], y};
    adj_node *penalty = adj_reduce_sum(square, (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(penalty, NULL, 3, of, d2), ADJ_OK, "%s", adj_graph_message(s.g));
    adj_node *const all[] = {
        dx[0],
        dx[1],
        dx[2],
        d2[0],
        d2[1],
        d2[2],
        square,
        both,
        adj_concat(3, parts, 3),
        adj_sub(y, dx[0]),
        adj_relu(dx[0]),
        adj_conv2d(dx[0], dx[1], &same),
        adj_conv2d(adj_concat(3, parts, 3), adj_concat(3, (adj_node *[]){w, dx[1], w}, 2), &same),
        adj_bias_add(dx[0], b, ADJ_NHWC)};
    s.n = sizeof all / sizeof *all;
    memcpy(s.fetch, all, sizeof all);
    expect_own_size(&s, "mixtures");
}

Test(loss_scale, refused)
{
    const double wrong[] = {-1, NAN, INFINITY, 1e300, 1e-300};
    for (int i = 0; i < 5; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *y = adj_fill(g, ADJ_F32, (adj_shape){0}, 1);
        const adj_exec_opts o = {
            .n_fetch = 1, .fetch = &y, .precision = ADJ_PRECISION_F16, .loss_scale = wrong[i]};
        expect_no_plan(g, &o, ADJ_EARG, "loss_scale is wrong (got ");
    }
}
