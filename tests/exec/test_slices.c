/* test_slices.c - groups of nodes that run over the batch in slices (exec/slices/): what they give.
 * Training steps on integers are in test_fusion.c, where slices are taken in test_slices_taken.c,
 * what a plan says of them in test_slices_info.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "tests/exec/sliced_plan.h"

TestSuite(slices, .init = plan_as_usual);

/* ---- a training step with batch norms ---- */

/* The naive backend in f64 has the last word; a batch of 7 has slices of one image, and threads
 * that get fewer than others. */
Test(slices, a_step_with_batch_norms)
{
    static const struct {
        int64_t batch;
        int threads;
        adj_format format;
    } cases[] = {{8, 2, ADJ_NHWC}, {7, 3, ADJ_NHWC}, {6, 1, ADJ_NCHW}, {12, 4, ADJ_NCHW}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        training_net n = new_net("resnet8", cases[i].batch, cases[i].format);
        adj_exec *naive = plan_net(&n, (adj_exec_opts){.backend = "naive"});
        adj_exec *sliced = plan_net(&n, (adj_exec_opts){.slices = 1, .threads = cases[i].threads});
        cr_assert(sliced_steps(sliced) >= 10, "%d", sliced_steps(sliced));
        cr_assert_eq(sliced_steps(naive), 0);
        int64_t count;
        float *want = results_after(naive, &n, 1, &count),
              *got = results_after(sliced, &n, 1, &count);
        double norm = 0, error = 0;
        for (int64_t k = 0; k < count; k++) {
            norm += (double)want[k] * want[k];
            error += (got[k] - (double)want[k]) * (got[k] - (double)want[k]);
        }
        cr_expect(fabs(got[0] - (double)want[0]) < 1e-5 * want[0], "batch %d: loss %.9g, not %.9g",
                  (int)cases[i].batch, (double)got[0], (double)want[0]);
        /* A relu whose operand is rounded across 0 moves a gradient by so much. */
        cr_expect(error < 4e-4 * norm, "batch %d: the gradient differs by %g", (int)cases[i].batch,
                  sqrt(error / norm));
        free(want);
        free(got);
        adj_exec_free(naive);
        adj_exec_free(sliced);
        adj_graph_free(n.g);
    }
}

Test(slices, the_same_bits_again)
{
    training_net n = new_net("resnet8", 8, ADJ_NHWC);
    float *v[2];
    int64_t count;
    for (int i = 0; i < 2; i++) {
        adj_exec *e = plan_net(&n, (adj_exec_opts){.slices = 1, .threads = 3});
        v[i] = results_after(e, &n, 3, &count);
        adj_exec_free(e);
    }
    cr_expect_arr_eq(v[0], v[1], (size_t)count * sizeof(float));
    free(v[0]);
    free(v[1]);
    adj_graph_free(n.g);
}

/* Words around a slice's values are looked at as well, and nothing is found. */
Test(slices, with_canaries_and_without_sharing)
{
    training_net n = new_net("resnet8", 8, ADJ_NHWC);
    float *v[3];
    int64_t count;
    for (int i = 0; i < 3; i++) {
        const adj_exec_opts o = {
            .slices = 1, .threads = 2, .debug = {.canaries = i == 1, .no_sharing = i == 2}};
        adj_exec *e = plan_net(&n, o);
        v[i] = results_after(e, &n, 2, &count);
        adj_exec_free(e);
    }
    for (int i = 1; i < 3; i++) {
        cr_expect_arr_eq(v[i], v[0], (size_t)count * sizeof(float));
        free(v[i]);
    }
    free(v[0]);
    adj_graph_free(n.g);
}

/* ---- statistics of parts ---- */

/* Of {1, 2, 3, 4} and {10, 10, 10, 10}, from halves. */
Test(slices, statistics_of_parts)
{
    static const float part[] = {1.5F, 10, 0.25F, 0, 3.5F, 10, 0.25F, 0};
    static const float want[] = {2.5F, 10, 1.25F, 0};
    static const double part64[] = {1.5, 10, 0.25, 0, 3.5, 10, 0.25, 0};
    static const double want64[] = {2.5, 10, 1.25, 0};
    adj_graph *g = adj_graph_new();
    float got[4];
    double got64[4];
    for (int i = 0; i < 2; i++) {
        adj_node *x = adj_input(g, i == 0 ? "a" : "b", i == 0 ? ADJ_F32 : ADJ_F64,
                                (adj_shape){4, {4, 1, 1, 2}});
        adj_node *stats = adj_batch_norm_stats(x, ADJ_NHWC);
        stats->op->merge(stats, 2, i == 0 ? (const void *)part : part64,
                         i == 0 ? (void *)got : got64);
    }
    cr_expect_arr_eq(got, want, sizeof want);
    cr_expect_arr_eq(got64, want64, sizeof want64);
    adj_graph_free(g);
}

/* ---- by values: slices and none ---- */

/* A half sum is added up in f32, or not in slices where no kernel writes it so: never less exact.
 */
Test(slices, half_sums)
{
    static double want[MAX_VALUES], got[MAX_VALUES];
    fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_BF16, (adj_shape){4, {N, SIDE, SIDE, C}}, -2, 2);
    adj_node *w = given_integers(&f, ADJ_BF16, (adj_shape){4, {3, 3, C, C}}, -1, 1);
    adj_node *dw = adj_conv2d_backprop_filter(adj_relu(x), (adj_shape){4, {3, 3, C, C}},
                                              adj_conv2d(x, w, &same), &same);
    adj_node *y = adj_cast(dw, ADJ_F32);
    values_of(&f, y, (adj_exec_opts){.slices = -1}, want);
    values_of(&f, y, (adj_exec_opts){.slices = 1}, got);
    cr_expect_arr_eq(got, want, 9 * C * C * sizeof *want);
    fixture_free(&f);
}

/* What follows from parameters alone is kept from run to run, until one of them is set. */
Test(slices, parameters_that_are_set)
{
    enum { WHOLE, SLICED, WITH_CANARIES, N_PLAN };
    static const adj_exec_opts o[N_PLAN] = {
        {.backend = "naive"}, {.slices = 1}, {.slices = 1, .debug.canaries = 1}};
    enum { IMAGES = N * SIDE * SIDE * C, FILTER = 9 * C * C };
    adj_graph *g = adj_graph_new();
    const adj_shape filter = {4, {3, 3, C, C}};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {N, SIDE, SIDE, C}}), *w[2];
    for (int i = 0; i < 2; i++)
        w[i] = adj_param(g, i == 0 ? "v" : "w", ADJ_F32, filter,
                         (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1});
    adj_node *y = adj_conv2d(adj_relu(adj_conv2d(x, w[0], &same)), w[1], &same);
    adj_exec *e[N_PLAN];
    float v[IMAGES], got[N_PLAN][IMAGES];
    for (int i = 0; i < N_PLAN; i++) {
        adj_exec_opts opts = o[i];
        opts.n_fetch = 1;
        opts.fetch = &y;
        opts.threads = 2;
        cr_assert_eq(adj_exec_new(g, &opts, &e[i]), ADJ_OK, "%s", adj_exec_message(e[i]));
        cr_assert_eq(sliced_steps(e[i]), i != WHOLE);
    }
    for (int run = 0; run < 5; run++) { /* a filter is set before the third run, and the fourth */
        for (int k = 0; k < IMAGES; k++)
            v[k] = (float)((k * 7 + run * 3) % 5 - 2);
        for (int i = 0; i < N_PLAN; i++) {
            adj_set(e[i], x, v, sizeof v);
            if (run == 2 || run == 3)
                adj_set(e[i], w[run - 2], v, FILTER * sizeof *v);
            cr_assert_eq(adj_run(e[i]), ADJ_OK, "%s", adj_exec_message(e[i]));
            adj_get(e[i], y, got[i], sizeof got[i]);
            cr_expect_arr_eq(got[i], got[WHOLE], sizeof got[i], "run %d of plan %d", run, i);
        }
    }
    for (int i = 0; i < N_PLAN; i++)
        adj_exec_free(e[i]);
    adj_graph_free(g);
}

/* conv, relu, conv: an image's NaN and Inf are in its own results, and nowhere else. */
Test(slices, specials_stay_in_their_image)
{
    fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {N, SIDE, SIDE, C}}, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, C, C}}, -1, 1);
    adj_node *y = adj_conv2d(adj_relu(adj_conv2d(x, w, &same)), w, &same);
    adj_exec *e;
    cr_assert_eq(adj_exec_new(f.g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y, .slices = 1}, &e),
                 ADJ_OK, "%s", adj_exec_message(e));
    cr_assert_eq(sliced_steps(e), 1);
    float values[N][SIDE * SIDE * C], filter[9 * C * C], got[N][SIDE * SIDE * C];
    adj_convert(ADJ_F64, f.value[0], ADJ_F32, values, N * SIDE * SIDE * C);
    adj_convert(ADJ_F64, f.value[1], ADJ_F32, filter, 9 * C * C);
    values[2][0] = NAN;
    values[4][7] = INFINITY;
    adj_set(e, x, values, sizeof values);
    adj_set(e, w, filter, sizeof filter);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    adj_get(e, y, got, sizeof got);
    for (int i = 0; i < N; i++) {
        int finite = 0;
        for (int k = 0; k < SIDE * SIDE * C; k++)
            finite += isfinite(got[i][k]) != 0;
        cr_expect_eq(finite == SIDE * SIDE * C, i != 2 && i != 4, "image %d", i);
    }
    adj_exec_free(e);
    fixture_free(&f);
}

/* A backend that is called after every step is not, within a slice: a thread alone may. */
static int in_parallel, progressed;

static void progress(void *backend)
{
    (void)backend;
    progressed++;
    in_parallel += omp_get_level() > 0;
}

Test(slices, no_progress_within)
{
    adj_backend direct = *adj_backends[1];
    direct.progress = progress;
    const adj_backend *const list[] = {&direct, adj_backends[0], adj_backends[2], NULL};
    fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {N, SIDE, SIDE, C}}, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, C, C}}, -1, 1);
    adj_node *y = adj_conv2d(adj_relu(adj_conv2d(x, w, &same)), w, &same);
    static double v[MAX_VALUES];
    const adj_exec_opts o = {.slices = 1, .debug.backends = list};
    cr_expect_eq(values_of(&f, y, o, v), 1);
    cr_expect(progressed > 0);
    cr_expect_eq(in_parallel, 0);
    fixture_free(&f);
}
