/* test_slices.c - groups of nodes that run over the batch in slices (exec/slices/): what they give,
 * what they save, and where they are taken. Training steps on integers are in test_fusion.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "tests/harness.h"

static void plan_as_usual(void)
{
    unsetenv("ADJOINT_PLAN");
    unsetenv("ADJOINT_TUNE");
}
TestSuite(slices, .init = plan_as_usual);

/* ---- a training step with batch norms ---- */

typedef struct {
    adj_graph *g;
    adj_node *labels, *loss, *gradient; /* of the first filter */
    adj_updates *updates;
} net;

static net new_net(const char *model, int64_t batch, adj_format format)
{
    net n = {.g = adj_graph_new()};
    const adj_model_opts options = {.batch = batch, .training = 1, .format = format};
    adj_node *logits = adj_model_logits(n.g, adj_model_find(model, NULL), &options);
    n.labels = adj_input(n.g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    n.loss = adj_loss_softmax(logits, n.labels);
    adj_node *lr = adj_input(n.g, "lr", ADJ_F32, (adj_shape){0}), *filter = NULL;
    for (int i = 0; filter == NULL && i < adj_graph_node_count(n.g); i++)
        if (adj_node_is_param(adj_graph_node_at(n.g, i)))
            filter = adj_graph_node_at(n.g, i);
    adj_grad(n.loss, NULL, 1, &filter, &n.gradient);
    n.updates = adj_training_updates(n.loss, lr, NULL);
    cr_assert_eq(adj_graph_status(n.g), ADJ_OK, "%s", adj_graph_message(n.g));
    return n;
}

static adj_exec *plan_net(net *n, adj_exec_opts o)
{
    adj_node *const fetch[] = {n->loss, n->gradient};
    adj_exec *e;
    o.n_fetch = 2;
    o.fetch = fetch;
    o.updates = n->updates;
    cr_assert_eq(adj_exec_new(n->g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    const adj_node *images = adj_find(n->g, "images");
    const size_t bytes = adj_type_bytes(adj_node_type(images));
    float *x = malloc(bytes);
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        x[i] = (float)(i * 2654435761U >> 7 & 1023) / 512 - 1;
    const int64_t batch = adj_node_type(n->labels).shape.dim[0];
    int32_t *label = malloc((size_t)batch * sizeof *label);
    for (int64_t i = 0; i < batch; i++)
        label[i] = (int32_t)(i % 2);
    adj_set(e, images, x, bytes);
    adj_set(e, n->labels, label, (size_t)batch * sizeof *label);
    adj_set(e, adj_find(n->g, "lr"), &(float){0.05F}, sizeof(float));
    free(x);
    free(label);
    return e;
}

/* The loss, then the gradient, after so many steps; malloc'ed. */
static float *results_after(adj_exec *e, const net *n, int steps, int64_t *count)
{
    *count = 1 + adj_shape_elems(adj_node_type(n->gradient).shape);
    float *v = malloc((size_t)*count * sizeof *v);
    for (int i = 0; i < steps; i++)
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    cr_assert_eq(adj_get(e, n->loss, v, sizeof *v), ADJ_OK);
    cr_assert_eq(adj_get(e, n->gradient, v + 1, (size_t)(*count - 1) * sizeof *v), ADJ_OK);
    return v;
}

static int sliced_steps(const adj_exec *e)
{
    int n = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        n += strcmp(adj_exec_step_at(e, i).backend, "slices") == 0;
    return n;
}

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
        net n = new_net("resnet8", cases[i].batch, cases[i].format);
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
    net n = new_net("resnet8", 8, ADJ_NHWC);
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

/* ---- what they are for ---- */

static char *printed(const adj_exec *e)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_exec_print(f, e);
    fclose(f);
    return text;
}

static double moved_bytes(const adj_exec *e)
{
    const adj_exec_info info = adj_exec_stats(e);
    return (double)info.read_bytes + (double)info.written_bytes;
}

Test(slices, fewer_bytes_are_read_and_written)
{
    static const adj_precision precisions[] = {ADJ_PRECISION_AS_BUILT, ADJ_PRECISION_BF16};
    static const double at_most[] = {0.75, 0.70};
    net n = new_net("resnet20", 32, ADJ_NHWC);
    for (int i = 0; i < 2; i++) {
        adj_exec *usual = plan_net(&n, (adj_exec_opts){.precision = precisions[i]});
        adj_exec *sliced = plan_net(&n, (adj_exec_opts){.precision = precisions[i], .slices = 1});
        cr_expect(moved_bytes(sliced) < at_most[i] * moved_bytes(usual), "%.0f of %.0f",
                  moved_bytes(sliced), moved_bytes(usual));
        char *text = printed(sliced);
        cr_expect_not_null(strstr(text, " [slices "));
        cr_expect_not_null(strstr(text, "\n        0 "), "the steps of a slice are not printed");
        free(text);
        text = printed(usual);
        cr_expect_null(strstr(text, "slices"));
        free(text);
        adj_exec_free(usual);
        adj_exec_free(sliced);
    }
    adj_graph_free(n.g);
}

/* Multiplications and additions of the graph's forward convolutions, and how many there are. */
static double conv_flop(const adj_graph *g, int *n_conv)
{
    double flop = 0;
    *n_conv = 0;
    for (int i = 0; i < adj_graph_node_count(g); i++) {
        const adj_node *n = adj_graph_node_at(g, i);
        if (strcmp(n->op->name, "conv2d") != 0 || n->role != ADJ_ROLE_FORWARD)
            continue;
        const adj_shape w = n->in[1]->type.shape;
        flop +=
            2.0 * (double)adj_shape_elems(n->type.shape) * (double)(w.dim[0] * w.dim[1] * w.dim[2]);
        ++*n_conv;
    }
    return flop;
}

static double seconds_of_steps(const adj_exec *e)
{
    double sum = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        sum += adj_exec_step_at(e, i).seconds;
    return sum;
}

/* What slices run is listed in their step's place, as the user's nodes. */
static void expect_substeps(int64_t batch, int threads)
{
    net n = new_net("resnet8", batch, ADJ_NHWC);
    int n_conv, convs = 0, sliced = 0;
    double flop = 0, seconds = 0;
    const double all = conv_flop(n.g, &n_conv);
    adj_exec *e =
        plan_net(&n, (adj_exec_opts){.slices = 1, .threads = threads, .debug.profile = 1});
    for (int run = 0; run < 2; run++)
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    const int count = adj_exec_substep_count(e);
    for (int i = 0; i < count; i++) {
        const adj_step_info s = adj_exec_substep_at(e, i);
        seconds += s.seconds;
        cr_expect_str_neq(s.backend, "slices");
        if (strcmp(s.op, "conv2d") != 0)
            continue;
        const adj_node *y = s.n_node == 1 ? s.node : s.node->in[0], *x = y->in[0]; /* and a bias */
        const size_t images = adj_type_bytes(y->type) + adj_type_bytes(x->type),
                     filter = adj_type_bytes(y->in[1]->type);
        cr_expect(y->graph == n.g && strcmp(y->op->name, "conv2d") == 0);
        cr_expect_str_eq(s.name, adj_node_name(s.node));
        /* Layouts of whole vectors have up to 16 channels for three. */
        cr_expect(s.bytes >= images + filter &&
                  s.bytes <= 6 * (images + filter * (size_t)(s.slices > 0 ? s.slices : 1)));
        cr_expect_gt(s.seconds, 0);
        cr_expect(s.slices == 0 || (s.slices >= threads && batch % s.slices == 0), "%d", s.slices);
        flop += s.flop - (s.n_node - 1) * (double)adj_shape_elems(y->type.shape);
        convs++;
        sliced += s.slices > 0;
    }
    cr_expect_eq(convs, n_conv);
    cr_expect_eq(flop, all);
    cr_expect(sliced > n_conv / 2, "%d", sliced);
    cr_expect_float_eq(seconds, seconds_of_steps(e), 1e-9 * seconds);
    cr_expect_str_eq(adj_exec_substep_at(e, count).op, "");
    cr_expect_str_eq(adj_exec_substep_at(e, -1).op, "");
    adj_exec_free(e);
    adj_graph_free(n.g);
}

Test(slices, substeps)
{
    expect_substeps(8, 2);
    expect_substeps(7, 3);
    cr_expect_eq(adj_exec_substep_count(NULL), 0);
}

/* Nothing is timed unasked, and a plan without slices has the same steps. */
Test(slices, substeps_that_are_steps)
{
    net n = new_net("resnet8", 8, ADJ_NHWC);
    for (int slices = -1; slices <= 1; slices += 2) {
        adj_exec *e = plan_net(&n, (adj_exec_opts){.slices = slices});
        cr_assert_eq(adj_run(e), ADJ_OK);
        for (int i = 0; i < adj_exec_substep_count(e); i++)
            cr_expect_eq(adj_exec_substep_at(e, i).seconds, 0);
        cr_expect(slices > 0 || adj_exec_substep_count(e) == adj_exec_step_count(e));
        for (int i = 0; i < adj_exec_step_count(e) && slices < 0; i++)
            cr_expect(adj_exec_substep_at(e, i).node == adj_exec_step_at(e, i).node &&
                      adj_exec_substep_at(e, i).slices == 0);
        adj_exec_free(e);
    }
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

enum { N = 6, SIDE = 5, C = 4, MAX_VALUES = 4096 };
static const adj_conv same = {.padding = ADJ_SAME};

/* y's values, if they are wanted; returns how many steps of the plan run in slices. */
static int planned_values(fixture *f, adj_node *y, adj_exec_opts o, double *v)
{
    adj_exec *e;
    o.n_fetch = 1;
    o.fetch = &y;
    cr_assert_eq(adj_exec_new(f->g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    const int steps = sliced_steps(e);
    cr_expect_eq(adj_exec_stats(e).sliced, steps);
    for (int i = 0; i < f->n_in && v != NULL; i++) {
        const adj_type t = adj_node_type(f->in[i]);
        char *bytes = malloc(adj_type_bytes(t));
        adj_convert(ADJ_F64, f->value[i], t.dtype, bytes, adj_shape_elems(t.shape));
        adj_set(e, f->in[i], bytes, adj_type_bytes(t));
        free(bytes);
    }
    if (v != NULL) {
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
        const adj_type t = adj_node_type(y);
        char *bytes = malloc(adj_type_bytes(t));
        adj_get(e, y, bytes, adj_type_bytes(t));
        adj_convert(t.dtype, bytes, ADJ_F64, v, adj_shape_elems(t.shape));
        free(bytes);
    }
    adj_exec_free(e);
    return steps;
}

static int values_of(fixture *f, adj_node *y, adj_exec_opts o, double v[MAX_VALUES])
{
    o.threads = 2;
    return planned_values(f, y, o, v);
}

/* steps: how many of the plan run so; -1: any number, as types differ from CPU to CPU. */
static void expect_as_whole(fixture *f, adj_node *y, int steps, const char *what)
{
    static double want[MAX_VALUES], got[MAX_VALUES];
    values_of(f, y, (adj_exec_opts){.backend = "naive"}, want);
    const int n = values_of(f, y, (adj_exec_opts){.slices = 1}, got);
    const double rtol = adj_node_type(f->in[0]).dtype == ADJ_BF16 ? 1e-2 : 1e-4;
    cr_expect(n == steps || steps < 0, "%s: %d steps", what, n);
    expect_close(got, want, adj_shape_elems(adj_node_type(y).shape), rtol, 1e-4, what);
}

/* Nodes that are not what a slice's part of them is: a filter that is as long as the batch and is
 * read as images, too; statistics that are cast; a half sum whose cast is elsewhere. */
Test(slices, what_cannot_be_cut)
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

/* What one kernel computes anyway is no group of slices. */
Test(slices, one_pass_is_left_alone)
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

/* ---- what is not finite ---- */

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

/* ---- where they are taken ---- */

/* Nodes that draw numbers, that may fail, or that the reference is to compute, are outside. */
Test(slices, what_is_left_outside)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {4, 6, 6, 4}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 4, 4}});
    adj_node *state = adj_input(g, "step", ADJ_I32, (adj_shape){0});
    adj_node *y = adj_relu(adj_conv2d(adj_relu(x), w, &same));
    y = adj_relu(adj_conv2d(adj_dropout(y, state, 0.5, 1), w, &same));
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
Test(slices, unasked_in_inference)
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
Test(slices, unasked_in_fast_inference)
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
Test(slices, not_unasked_in_training)
{
    static const char *const models[] = {"lenet", "resnet8"};
    for (int i = 0; i < 2; i++) {
        net n = new_net(models[i], 64, ADJ_NHWC);
        adj_exec *e = plan_net(&n, (adj_exec_opts){.threads = 2});
        cr_expect_eq(sliced_steps(e), 0, "%s: %d", models[i], sliced_steps(e));
        adj_exec_free(e);
        adj_graph_free(n.g);
    }
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

/* Words around a slice's values are looked at as well, and nothing is found. */
Test(slices, with_canaries_and_without_sharing)
{
    net n = new_net("resnet8", 8, ADJ_NHWC);
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

/* A selection from elsewhere may say anything; what is none of ours is passed over. */
Test(slices, a_forged_selection)
{
    net n = new_net("resnet20", 32, ADJ_NHWC);
    adj_exec *tuned = plan_net(&n, (adj_exec_opts){.tune = 1, .tune_seconds = 3, .threads = 2});
    char *text = strdup(adj_exec_selection(tuned));
    for (char *at = text; (at = strstr(at, "slices\t")) != NULL; at++)
        at[5] = 'd';
    adj_exec *again = plan_net(&n, (adj_exec_opts){.selection = text, .threads = 2});
    cr_expect_eq(sliced_steps(again), 0);
    free(text);
    adj_exec_free(tuned);
    adj_exec_free(again);
    adj_graph_free(n.g);
}

/* What tuning has found is said by the selection, and taken from it without timing. */
Test(slices, a_selection_has_them)
{
    net n = new_net("resnet20", 32, ADJ_NHWC);
    adj_exec *tuned = plan_net(&n, (adj_exec_opts){.tune = 1, .tune_seconds = 3, .threads = 2});
    const char *selection = adj_exec_selection(tuned);
    cr_assert_not_null(strstr(selection, "slices\t"), "%s", selection);
    adj_exec *again = plan_net(&n, (adj_exec_opts){.selection = selection, .threads = 2});
    cr_expect_eq(sliced_steps(again), sliced_steps(tuned));
    int64_t count;
    float *want = results_after(tuned, &n, 2, &count), *got = results_after(again, &n, 2, &count);
    cr_expect_arr_eq(got, want, (size_t)count * sizeof *want);
    free(want);
    free(got);
    adj_exec_free(tuned);
    adj_exec_free(again);
    adj_graph_free(n.g);
}

/* ---- timing ---- */

/* Regions of one thread in which a kernel was run: what it opens within makes threads anew. */
static void count_lone_regions(void *user, const adj_node *first, const char *backend,
                               const char *impl)
{
    int *n = user;
    (void)first, (void)backend, (void)impl;
    *n += omp_get_level() > 0 && omp_get_num_threads() == 1;
}

/* The whole batch is timed as a plan runs it, else slices would win that are slower. */
Test(slices, the_whole_batch_is_timed_outside_of_regions)
{
    int n_lone = 0;
    net n = new_net("resnet8", 8, ADJ_NHWC);
    adj_exec *e = plan_net(
        &n, (adj_exec_opts){.tune = 1,
                            .tune_seconds = 3,
                            .threads = 2,
                            .debug = {.before_kernel = count_lone_regions, .user = &n_lone}});
    cr_expect_eq(n_lone, 0, "%d", n_lone);
    adj_exec_free(e);
    adj_graph_free(n.g);
}
