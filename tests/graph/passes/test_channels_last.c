/* test_channels_last.c - nets on NCHW images: computed in NHWC, the same numbers to the bit as
 * naive's in NCHW, for data of small integers. The transposes that stay are counted. And the
 * callback after each pass: each pass's graph, and a graph that no pass has changed. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/harness.h"
#include "tests/plan.h"

static const adj_conv same = {.padding = ADJ_SAME, .format = ADJ_NCHW};

/* The pass's result is inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
TestSuite(channels_last, .init = plan_as_usual);

static void expect_near(fixture *f, adj_node *y, double tolerance, const char *label)
{
    cr_assert_not_null(y, "%s: %s", label, adj_graph_message(f->g));
    scoped(release) double *want = evaluate(f, y, "naive"), *got = evaluate(f, y, "onednn");
    expect_close(got, want, adj_shape_elems(adj_node_type(y).shape), tolerance, tolerance, label);
}

static void expect_same(fixture *f, adj_node *y, const char *label) { expect_near(f, y, 0, label); }

/* How often a word stands in the executor's own graph, as its plan shows it. */
static int count(adj_graph *g, int n, adj_node *const y[], const char *backend, const char *word)
{
    adj_exec_opts o = {.n_fetch = n, .fetch = y, .backend = backend};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    scoped(release) char *plan = plan_text(e);
    return times_in(plan, word);
}

/* Convolutions of all kinds, a shortcut, a scale for each channel, a pool, a matrix product. */
static adj_node *network(fixture *f, adj_dtype dtype)
{
    adj_pool half = {
        .ksize = {1, 1, 2, 2}, .stride = {1, 1, 2, 2}, .padding = ADJ_VALID, .format = ADJ_NCHW};
    adj_conv strided = {.stride = {1, 1, 2, 1},
                        .dilation = {1, 1, 1, 2},
                        .padding = ADJ_EXPLICIT,
                        .format = ADJ_NCHW};
    strided.pad[2][0] = 1, strided.pad[3][0] = 2, strided.pad[3][1] = 1;
    adj_node *x = given_integers(f, dtype, (adj_shape){4, {2, 3, 8, 6}}, -2, 2);
    adj_node *w1 = given_integers(f, dtype, (adj_shape){4, {3, 3, 3, 5}}, -1, 1);
    adj_node *w2 = given_integers(f, dtype, (adj_shape){4, {3, 3, 5, 5}}, -1, 1);
    adj_node *w3 = given_integers(f, dtype, (adj_shape){4, {3, 2, 5, 2}}, -1, 1);
    adj_node *b = given_integers(f, dtype, (adj_shape){1, {5}}, -2, 2);
    adj_node *factor = given_integers(f, dtype, (adj_shape){4, {1, 5, 1, 1}}, -1, 2);
    adj_node *h = adj_relu(adj_bias_add(adj_conv2d(x, w1, &same), b, ADJ_NCHW));
    h = adj_relu(adj_add(adj_mul(adj_conv2d(h, w2, &same), factor), h));
    h = adj_depthwise_conv2d_native(h, w3, &strided);
    h = adj_max_pool(adj_sub(h, adj_fill(f->g, dtype, (adj_shape){0}, 1)), &half);
    int64_t n = adj_shape_elems(adj_node_type(h).shape) / 2;
    adj_node *m = given_integers(f, dtype, (adj_shape){2, {n, 3}}, -1, 1);
    return adj_matmul(adj_reshape(h, (adj_shape){2, {2, n}}), m, 0);
}

Test(channels_last, a_net_and_its_gradients)
{
    for (int dtype = ADJ_F32; dtype <= ADJ_F64; dtype += ADJ_F64 - ADJ_F32) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *y = network(&f, (adj_dtype)dtype), *dx[FIXTURE_INPUTS];
        cr_assert_not_null(y, "%s", adj_graph_message(f.g));
        int n = f.n_in;
        adj_node *dy = given_integers(&f, (adj_dtype)dtype, adj_node_type(y).shape, -1, 1);
        cr_assert_eq(adj_grad(y, dy, n, f.in, dx), ADJ_OK, "%s", adj_graph_message(f.g));
        expect_same(&f, y, "y");
        for (int i = 0; i < n; i++)
            expect_same(&f, dx[i], adj_node_name(f.in[i]));
    }
}

/* Transposes are at x, the factor, before the reshape, and at each value fetched in NCHW. */
Test(channels_last, transposes_stand_at_the_edges)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = network(&f, ADJ_F32);
    cr_assert_eq(count(f.g, 1, &y, "onednn", " perm="), 2);
    cr_assert_eq(count(f.g, 1, &y, "onednn", "NCHW"), 0);
    cr_assert_eq(count(f.g, 1, &y, "naive", " perm="), 0);
    cr_assert_eq(count(f.g, 1, &y, "naive,conv2d=onednn", " NCHW"), 3); /* bias, depthwise, pool */
    cr_assert_eq(count(f.g, 1, &y, "onednn,conv2d=naive", " conv2d SAME s1x1 NCHW"), 2);
    adj_node *dy = given_integers(&f, ADJ_F32, adj_node_type(y).shape, -1, 1);
    adj_node *dx = gradient_of(y, dy, f.in[0]);
    cr_assert_eq(count(f.g, 1, &dx, "onednn", " perm="), 3); /* x, dx, and the pool's dy */
}

/* A small operand with its channels last takes no image along that has them first. */
Test(channels_last, a_factor_alone_moves_nothing)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape image = {4, {2, 3, 4, 5}};
    adj_node *x = given_integers(&f, ADJ_F32, image, -2, 2);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 3, 3}}, -2, 2);
    adj_node *factor = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 3, 1, 1}}, -1, 2);
    adj_node *other = given_integers(&f, ADJ_F32, image, -2, 2);
    adj_node *y[] = {adj_mul(adj_conv2d(x, w, &same), factor), adj_mul(other, factor)};
    cr_assert_eq(count(f.g, 2, y, "onednn", " perm="), 2); /* x, y[0] */
    expect_same(&f, y[1], "other * factor");
}

/* Its channels come last: one transpose, of x. */
Test(channels_last, a_global_pool_reads_the_channels_last)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 3, 4, 8}}, -2, 2);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 3, 5}}, -2, 2);
    adj_node *y = adj_global_avg_pool(adj_relu(adj_conv2d(x, w, &same)), ADJ_NCHW);
    cr_assert_eq(count(f.g, 1, &y, "onednn", " perm="), 1);
    expect_same(&f, y, "global pool");
}

/* Channels of two convolutions, one behind the other: transposes only of x and of what is fetched.
 */
Test(channels_last, channels_are_joined_last)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 3, 4, 8}}, -2, 2);
    adj_node *w1 = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 3, 5}}, -2, 2);
    adj_node *w2 = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 1, 3, 4}}, -2, 2);
    adj_node *w3 = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 9, 2}}, -1, 1);
    for (int axis = 0; axis < 4; axis++) {
        adj_node *a = adj_conv2d(x, w1, &same), *b = adj_conv2d(x, axis == 1 ? w2 : w1, &same);
        adj_node *y = adj_concat(2, (adj_node *[]){a, adj_relu(b)}, axis);
        y = axis == 1 ? adj_conv2d(y, w3, &same)
                      : adj_max_pool(y, &(adj_pool){.ksize = {1, 1, 2, 2},
                                                    .stride = {1, 1, 2, 2},
                                                    .format = ADJ_NCHW});
        cr_assert_eq(count(f.g, 1, &y, "onednn", " perm="), 2);
        expect_same(&f, y, "joined");
    }
}

/* One channel, one pixel, one image: nothing moves. */
Test(channels_last, one_channel_is_a_view)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 1, 5, 4}}, -2, 2);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {5, 4, 1, 7}}, -2, 2);
    const adj_conv valid = {.padding = ADJ_VALID, .format = ADJ_NCHW};
    adj_node *y = adj_conv2d(x, w, &valid); /* [2,7,1,1] */
    cr_assert_eq(count(f.g, 1, &y, "onednn", " perm="), 0);
    expect_same(&f, y, "one channel, one pixel");
}

/* Two of ours, and a user's own, come to one or to none. */
Test(channels_last, transposes_meet)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 4, 6, 3}}, -2, 2);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 3, 5}}, -2, 2);
    adj_node *y =
        adj_transpose(adj_conv2d(adj_transpose(x, 4, (const int[]){0, 3, 1, 2}), w, &same), 4,
                      (const int[]){0, 2, 3, 1});
    cr_assert_eq(count(f.g, 1, &y, "onednn", " perm="), 0);
    expect_same(&f, y, "between transposes");
    adj_node *z =
        adj_transpose(adj_transpose(x, 4, (const int[]){1, 2, 3, 0}), 4, (const int[]){3, 1, 0, 2});
    cr_assert_eq(count(f.g, 1, &z, "naive", " perm="), 1);
    expect_same(&f, z, "two transposes");
}

/* Ops with axes and random ops, which depend on positions, keep their order of axes. */
Test(channels_last, what_counts_axes_stays)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 3, 4, 5}}, -2, 2);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 3, 6}}, -2, 2);
    adj_node *y = adj_relu(adj_conv2d(x, w, &same));
    expect_same(&f, adj_reduce_sum(y, (adj_axes){.n = 1, .axis = {1}}), "reduce_sum");
    expect_same(&f, adj_concat(2, (adj_node *[]){y, y}, 1), "concat");
    expect_same(&f, adj_pad(y, (adj_shape){4, {0, 1, 0, 2}}, (adj_shape){4, {1, 0, 0, 0}}), "pad");
    expect_same(&f, adj_slice(y, (adj_shape){4, {0, 2, 0, 1}}, (adj_shape){4, {2, 3, 4, 2}}),
                "slice");
    expect_same(&f, adj_mul(y, given_integers(&f, ADJ_F32, (adj_shape){1, {5}}, -2, 2)), "[w]");
    expect_same(&f, adj_mul(given_integers(&f, ADJ_F32, (adj_shape){4, {1, 1, 1, 5}}, -2, 2), y),
                "[1,1,1,w]");
    expect_same(
        &f,
        adj_broadcast_to(adj_reduce_max(y, (adj_axes){.n = 2, .axis = {2, 3}, .keep_dims = 1}),
                         (adj_shape){4, {2, 6, 4, 5}}),
        "broadcast_to");
    adj_node *step = adj_fill(f.g, ADJ_I32, (adj_shape){0}, 3);
    expect_same(&f, adj_dropout(y, step, 0.5, 7), "dropout");
}

static adj_pool window(int k, int s, adj_padding padding)
{
    return (adj_pool){
        .ksize = {1, 1, k, k}, .stride = {1, 1, s, s}, .padding = padding, .format = ADJ_NCHW};
}

/* Ties, overlaps, NaN and infinities. */
Test(channels_last, max_pool_of_extreme_values)
{
    static const int cases[][3] = {
        {2, 2, ADJ_VALID}, {3, 2, ADJ_SAME}, {3, 1, ADJ_SAME}, {2, 3, ADJ_VALID}, {5, 5, ADJ_SAME}};
    const adj_shape xs = {4, {3, 70, 9, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int wild = 0; wild < 2; wild++) {
            adj_pool a = window(cases[i][0], cases[i][1], (adj_padding)cases[i][2]);
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, ADJ_F32, xs, -2, 2);
            for (int64_t k = 0; wild && k < adj_shape_elems(xs); k++)
                if (f.value[0][k] != 0)
                    f.value[0][k] = f.value[0][k] > 1 ? NAN : -INFINITY;
            adj_node *y = adj_max_pool(x, &a);
            adj_node *dy = given_integers(&f, ADJ_F32, adj_node_type(y).shape, -3, 3);
            expect_same(&f, y, "max_pool");
            expect_same(&f, adj_max_pool_grad(x, y, dy, &a), "max_pool_grad");
        }
}

/* A kernel's own numbers with their rounding: norms in training, an average, a resized image. */
Test(channels_last, norms_pools_and_resize)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_pool a = window(2, 1, ADJ_SAME);
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {3, 6, 5, 4}}, -1, 1);
    adj_node *gamma = given_random(&f, ADJ_F32, (adj_shape){1, {6}}, 1, 2);
    adj_node *beta = given_random(&f, ADJ_F32, (adj_shape){1, {6}}, -1, 1);
    adj_node *y = adj_batch_norm(x, adj_batch_norm_stats(x, ADJ_NCHW), gamma, beta, 1e-3, ADJ_NCHW);
    y = adj_avg_pool(adj_group_norm(y, gamma, beta, 3, 1e-3, ADJ_NCHW), &a);
    y = adj_resize(y, 7, 9, &(adj_sampling){.mode = ADJ_BILINEAR, .format = ADJ_NCHW});
    adj_node *result[4] = {y}, *dy = given_random(&f, ADJ_F32, adj_node_type(y).shape, -1, 1);
    cr_assert_eq(adj_grad(y, dy, 3, f.in, result + 1), ADJ_OK, "%s", adj_graph_message(f.g));
    cr_assert_eq(count(f.g, 4, result, "onednn", "NCHW"), 0);
    for (int i = 0; i < 4; i++)
        expect_near(&f, result[i], 2e-5, "norms");
}

/* ---- the callback after each pass ---- */

typedef struct {
    char names[200];
    const adj_node *y;
    int scales; /* in the last graph */
} seen;

static void look(void *user, const char *pass, const adj_graph *g, adj_node *const image[])
{
    seen *s = user;
    strncat(strcat(s->names, " "), pass, 40);
    s->scales = 0;
    for (int i = 0; i < adj_graph_node_count(g); i++)
        s->scales += strcmp(adj_node_op(adj_graph_node_at(g, i)), "scale") == 0;
    cr_expect_not_null(image[adj_node_id(s->y)]);
}

TestSuite(after_pass, .init = plan_as_usual);

/* 3 (1 x) is one scale after the pass that simplifies, and two where no pass runs. */
Test(after_pass, graphs)
{
    for (int none = 0; none < 2; none++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F64, (adj_shape){1, {2}}, (double[]){1, -2});
        adj_node *y = adj_scale(adj_scale(x, 1), 3);
        seen s = {.y = y};
        const adj_exec_internal internal = {.after_pass = look, .pass_user = &s};
        const adj_exec_opts o = {.n_fetch = 1,
                                 .fetch = &y,
                                 .backend = "naive",
                                 .debug =
                                     &(adj_exec_debug){.no_passes = none, .internal = &internal}};
        scoped(release_exec) adj_exec *e = fixture_run(&f, &o);
        cr_expect_eq(strstr(s.names, " simplify") == NULL, none, "%s", s.names);
        cr_expect_eq(s.scales, none ? 2 : 1);
        cr_expect_eq(adj_exec_step_count(e), none ? 2 : 1);
        scoped(release) double *got = fixture_get(e, y);
        cr_expect(got[0] == 3 && got[1] == -6);
    }
}
