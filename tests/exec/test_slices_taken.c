/* test_slices_taken.c - which nodes run over the batch in slices (exec/slices/): what can be cut,
 * and is worth it; when slices are taken unasked, by tuning, and from a selection. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/exec/sliced_plan.h"

TestSuite(slices_taken, .init = plan_as_usual);

/* ---- what can be cut ---- */

/* steps: how many of the plan run so; -1: any number, as types differ from CPU to CPU. */
static void expect_as_whole(fixture *f, adj_node *y, int steps, const char *label)
{
    static double want[MAX_VALUES], got[MAX_VALUES];
    values_of(f, y, (adj_exec_opts){.backend = "naive"}, want);
    const int n = values_of(f, y, (adj_exec_opts){.slices = 1}, got);
    const double rtol = adj_node_type(f->in[0]).dtype == ADJ_BF16 ? 1e-2 : 1e-4;
    cr_expect(n == steps || steps < 0, "%s: %d steps", label, n);
    expect_close(got, want, adj_shape_elems(adj_node_type(y).shape), rtol, 1e-4, label);
}

/* Nodes that are not what a slice's part of them is: a filter that is as long as the batch and is
 * read as images, too; statistics that are cast; a half sum whose cast is elsewhere. */
Test(slices_taken, what_cannot_be_cut)
{
    fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {C, C, C, C}}, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, C, C}}, -1, 1);
    adj_node *y = adj_conv2d(adj_relu(adj_conv2d(x, x, &same)), w, &same);
    expect_as_whole(&f, y, 0, "images that are a filter");
    fixture_free(&f);

    f = fixture_new();
    x = given_random(&f, ADJ_F64, (adj_shape){4, {N, SIDE, SIDE, C}}, -1, 1);
    w = given_random(&f, ADJ_F64, (adj_shape){4, {3, 3, C, C}}, -1, 1);
    y = adj_cast(adj_batch_norm_stats(adj_conv2d(adj_relu(x), w, &same), ADJ_NHWC), ADJ_F32);
    expect_as_whole(&f, y, 1, "statistics that are cast");
    fixture_free(&f);

    f = fixture_new();
    x = given_random(&f, ADJ_BF16, (adj_shape){4, {N, SIDE, SIDE, C}}, -1, 1);
    w = given_random(&f, ADJ_BF16, (adj_shape){4, {3, 3, C, C}}, -1, 1);
    adj_node *dw = adj_conv2d_backprop_filter(adj_relu(x), (adj_shape){4, {3, 3, C, C}},
                                              adj_conv2d(x, w, &same), &same);
    adj_graph_set_role(f.g, ADJ_ROLE_UPDATE);
    y = adj_cast(dw, ADJ_F32);
    adj_graph_set_role(f.g, ADJ_ROLE_FORWARD);
    expect_as_whole(&f, y, -1, "a half sum that an update casts");
    fixture_free(&f);
}

/* What one kernel computes anyway is no group of slices. */
Test(slices_taken, one_pass_is_left_alone)
{
    fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {N, SIDE, SIDE, C}}, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, C, C}}, -1, 1);
    adj_node *b = given_random(&f, ADJ_F32, (adj_shape){1, {C}}, -1, 1);
    adj_node *y = adj_bias_add(adj_conv2d(x, w, &same), b, ADJ_NHWC);
    expect_as_whole(&f, y, 0, "a convolution and its bias");
    expect_as_whole(&f, adj_conv2d(adj_relu6(y), w, &same), 1, "two convolutions");
    fixture_free(&f);
}

/* Nodes that draw numbers, that may fail, or that the reference is to compute, are outside. */
Test(slices_taken, what_is_left_outside)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {4, 6, 6, 4}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 4, 4}});
    adj_node *state = adj_input(g, "step", ADJ_I32, (adj_shape){0});
    adj_node *y = adj_relu(adj_conv2d(adj_relu(x), w, &same));
    /* relu6: relu might be computed along with the convolution, as one pass */
    y = adj_relu6(adj_conv2d(adj_dropout(y, state, 0.5, 1), w, &same));
    static const struct {
        adj_exec_opts o;
        int steps;
    } cases[] = {{{.slices = 1}, 2},
                 {{.slices = 0}, 0},
                 {{.slices = 1, .debug.no_fusion = 1}, 0},
                 {{.slices = 1, .backend = "naive"}, 0},
                 {{.slices = 1, .backend = "onednn,conv2d=naive"}, 0},
                 {{.slices = 1, .debug.impl = "jit"}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adj_exec_opts o = cases[i].o;
        adj_exec *e;
        o.n_fetch = 1;
        o.fetch = &y;
        o.threads = 2;
        cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
        cr_expect_eq(sliced_steps(e), cases[i].steps, "case %zu: %d", i, sliced_steps(e));
        adj_exec_free(e);
    }
    adj_graph_free(g);
}

/* ---- unasked ---- */

/* A residual block on integers, which are exact in f32: *gradient is of its first filter. */
static adj_node *residual_block(fixture *f, int64_t batch, int64_t stride, adj_node **gradient)
{
    const adj_conv second = {.padding = ADJ_SAME, .stride = {1, stride, stride, 1}};
    adj_node *x = given_integers(f, ADJ_F32, (adj_shape){4, {batch, 32, 32, 16}}, -2, 2), *w[2];
    for (int i = 0; i < 2; i++)
        w[i] = given_integers(f, ADJ_F32, (adj_shape){4, {3, 3, 16, 16}}, -1, 1);
    adj_node *first = adj_relu(adj_conv2d(x, w[0], &same));
    adj_node *sum = adj_conv2d(first, w[1], &second);
    adj_node *y = adj_relu(stride == 1 ? adj_add(sum, first) : sum);
    adj_grad(adj_reduce_sum(y, (adj_axes){.n = ADJ_ALL}), NULL, 1, &w[0], gradient);
    return y;
}

/* Inference with many images; nothing but the order of steps differs. */
Test(slices_taken, unasked_in_inference)
{
    static const struct {
        int64_t batch, stride;
        int of_gradient, steps;
        adj_exec_opts o;
    } cases[] = {{32, 1, 0, 1, {.threads = 2}},
                 {32, 1, 0, 1, {.threads = 1}},
                 {32, 1, 0, 0, {.threads = 2, .slices = -1}},
                 {32, 1, 0, 0, {.threads = 4}}, /* which would have a slice each */
                 {8, 1, 0, 0, {.threads = 2}},  /* which the second caches hold */
                 {8, 1, 0, 1, {.threads = 8, .slices = 1}},
                 {31, 1, 0, 0, {.threads = 2}}, /* an image at a time */
                 {64, 1, 0, 0, {.threads = 3}}, /* 8 slices: one thread would have two of them */
                 {32, 1, 1, 0, {.threads = 2}},
                 {96, 8, 0, 1, {.threads = 2}}}; /* 16 pixels each: enough, but for what follows */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f = fixture_new();
        adj_node *gradient, *y = residual_block(&f, cases[i].batch, cases[i].stride, &gradient);
        adj_node *wanted = cases[i].of_gradient ? gradient : y;
        const int64_t n = adj_shape_elems(adj_node_type(y).shape);
        double *got = malloc((size_t)n * sizeof *got);
        const int is_sliced = cases[i].steps > 0;
        const int steps = planned_values(&f, wanted, cases[i].o, is_sliced ? got : NULL);
        cr_expect_eq(steps, cases[i].steps, "case %zu: %d steps", i, steps);
        if (is_sliced) {
            double *want = evaluate(&f, y, "naive");
            expect_close(got, want, n, 0, 0, "a residual block");
            free(want);
        }
        free(got);
        fixture_free(&f);
    }
}

/* With math fast where slices have the 1,024 pixels that its kernels want; those round. */
Test(slices_taken, unasked_in_fast_inference)
{
    const adj_exec_opts o = {.threads = 2, .math = ADJ_MATH_FAST};
    fixture f = fixture_new();
    adj_node *gradient, *y = residual_block(&f, 64, 1, &gradient);
    const int64_t n = adj_shape_elems(adj_node_type(y).shape);
    double *got = malloc((size_t)n * sizeof *got), *want = evaluate(&f, y, "naive");
    cr_expect_eq(planned_values(&f, y, o, got), 1);
    expect_close(got, want, n, 1e-5, 0.05, "a residual block"); /* of up to 40,000 */
    free(want);
    free(got);
    fixture_free(&f);

    f = fixture_new();
    y = residual_block(&f, 96, 8, &gradient);
    cr_expect_eq(planned_values(&f, y, o, NULL), 0, "of 16 pixels an image");
    fixture_free(&f);
}

/* Nor in training: what a layer gives is read again by the gradient. */
Test(slices_taken, not_unasked_in_training)
{
    static const char *const models[] = {"lenet", "resnet8"};
    for (int i = 0; i < 2; i++) {
        training_net n = new_net(models[i], 64, ADJ_NHWC);
        adj_exec *e = plan_net(&n, (adj_exec_opts){.threads = 2});
        cr_expect_eq(sliced_steps(e), 0, "%s: %d", models[i], sliced_steps(e));
        adj_exec_free(e);
        adj_graph_free(n.g);
    }
}

/* ---- by tuning ---- */

/* A selection from elsewhere may say anything; what is none of ours is passed over. */
Test(slices_taken, a_forged_selection)
{
    training_net n = new_net("resnet20", 32, ADJ_NHWC);
    adj_exec *tuned = plan_net(&n, (adj_exec_opts){.tune = 1, .tune_seconds = 3, .threads = 2});
    char *text = strdup(adj_exec_selection(tuned));
    for (char *at = text; (at = strstr(at, "slices\t")) != NULL; at++)
        at[5] = 'd';
    adj_exec *second = plan_net(&n, (adj_exec_opts){.selection = text, .threads = 2});
    cr_expect_eq(sliced_steps(second), 0);
    free(text);
    adj_exec_free(tuned);
    adj_exec_free(second);
    adj_graph_free(n.g);
}

/* What tuning has found is said by the selection, and taken from it without timing. */
Test(slices_taken, a_selection_has_them)
{
    training_net n = new_net("resnet20", 32, ADJ_NHWC);
    adj_exec *tuned = plan_net(&n, (adj_exec_opts){.tune = 1, .tune_seconds = 3, .threads = 2});
    const char *selection = adj_exec_selection(tuned);
    cr_assert_not_null(strstr(selection, "slices\t"), "%s", selection);
    adj_exec *second = plan_net(&n, (adj_exec_opts){.selection = selection, .threads = 2});
    cr_expect_eq(sliced_steps(second), sliced_steps(tuned));
    int64_t count;
    float *want = results_after(tuned, &n, 2, &count), *got = results_after(second, &n, 2, &count);
    cr_expect_arr_eq(got, want, (size_t)count * sizeof *want);
    free(want);
    free(got);
    adj_exec_free(tuned);
    adj_exec_free(second);
    adj_graph_free(n.g);
}

/* Regions of one thread in which a kernel was run: what it opens within makes threads anew. */
static void count_lone_regions(void *user, const adj_node *first, const char *backend,
                               const char *impl)
{
    int *n = user;
    (void)first, (void)backend, (void)impl;
    *n += omp_get_level() > 0 && omp_get_num_threads() == 1;
}

/* The whole batch is timed as a plan runs it, else slices would win that are slower. */
Test(slices_taken, the_whole_batch_is_timed_outside_of_regions)
{
    int n_lone = 0;
    training_net n = new_net("resnet8", 8, ADJ_NHWC);
    adj_exec *e = plan_net(
        &n, (adj_exec_opts){.tune = 1,
                            .tune_seconds = 3,
                            .threads = 2,
                            .debug = {.before_kernel = count_lone_regions, .user = &n_lone}});
    cr_expect_eq(n_lone, 0, "%d", n_lone);
    adj_exec_free(e);
    adj_graph_free(n.g);
}
