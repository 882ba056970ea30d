/* test_predictor.c - any number of images through a predictor of any number of threads:
 * probabilities, loss and right answers of a net of one matrix, by their formulas in f64; and a
 * built-in model's weights as other programs write them: without a card, and of other channels and
 * classes than the model's own three and ten. Extended trainings: a step or exponential schedule
 * continues as in a longer run; patience counts from the start of the new schedule; and a tuned
 * training keeps its kernels without timing, and its bits. */
#include <criterion/criterion.h>
#include <math.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "tests/reference.h"
#include "train/internal.h"
#include "train/tiny.h"

enum { MAX_N = 100, OUTPUTS = 3 };
static const float w[OUTPUTS] = {0.5F, -0.25F, 0.125F}, b[OUTPUTS] = {-1, 2, 0.5F};

static const adj_net net = {
    .build = linear_build, .name = "line", .options.size = {1, 1, 1}, .options.classes = 3};

static adj_predictor *predictor_of(const folder *f, int threads)
{
    const adj_tensor tensors[] = {
        {.name = "logits/w", .elem = ADJ_ELEM_F32, .shape = {2, {1, OUTPUTS}}, .data = w},
        {.name = "logits/b", .elem = ADJ_ELEM_F32, .shape = {1, {OUTPUTS}}, .data = b}};
    const file_name path = in_folder(f, "line.safetensors");
    adj_predictor *p = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_tensors_write(path.s, 2, tensors, 0, NULL, NULL), ADJ_OK);
    cr_assert_eq(adj_predictor_load(path.s, &net, &(adj_predictor_opts){.exec.threads = threads},
                                    &p, &error),
                 ADJ_OK, "%s", error.message);
    return p;
}

static uint8_t pixel(int i) { return (uint8_t)(i * 5 % 13); }

/* Sets the probabilities of a pixel. */
static void softmax_of(int x, double p[OUTPUTS])
{
    float logits[OUTPUTS];
    for (int k = 0; k < OUTPUTS; k++)
        logits[k] = w[k] * (float)x + b[k]; /* exact */
    softmax(OUTPUTS, logits, p);
}

static void expect_probabilities(adj_predictor *p, int n, const uint8_t pixels[])
{
    float got[MAX_N * OUTPUTS];
    adj_error error = {0};
    cr_assert_eq(adj_predict(p, n, pixels, got, &error), ADJ_OK, "%s", error.message);
    for (int i = 0; i < n; i++) {
        double want[OUTPUTS];
        softmax_of(pixels[i], want);
        for (int k = 0; k < OUTPUTS; k++)
            cr_expect_float_eq((double)got[i * OUTPUTS + k], want[k], 1e-6, "%d of %d: class %d", i,
                               n, k);
    }
}

static void expect_score(adj_predictor *p, int n, const uint8_t pixels[], const int32_t labels[])
{
    const adj_dataset d = {.n = n,
                           .size = {1, 1, 1},
                           .classes = OUTPUTS,
                           .images = pixels,
                           .labels = labels,
                           .deviation = {1}};
    int64_t confusion[OUTPUTS * OUTPUTS] = {0}, expected[OUTPUTS * OUTPUTS] = {0};
    adj_score s;
    adj_error error = {0};
    double loss = 0;
    for (int i = 0; i < n; i++) {
        double p_i[OUTPUTS];
        softmax_of(pixels[i], p_i);
        int best = 0;
        for (int k = 1; k < OUTPUTS; k++)
            best = p_i[k] > p_i[best] ? k : best;
        expected[labels[i] * OUTPUTS + best]++;
        loss -= log(p_i[labels[i]]) / n;
    }
    cr_assert_eq(adj_predictor_evaluate(p, &d, &s, confusion, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(s.count, n);
    cr_expect_eq(s.right, expected[0] + expected[4] + expected[8]);
    cr_expect_float_eq(s.loss, loss, 1e-6, "%d images: %.9g", n, s.loss);
    cr_expect_arr_eq(confusion, expected, sizeof expected);
}

Test(many, any_number_on_any_threads)
{
    static const int counts[] = {1, 2, 15, 16, 31, 32, 33, 48, 63, 100};
    scoped(folder_remove) folder f = folder_new();
    uint8_t pixels[MAX_N];
    int32_t labels[MAX_N];
    for (int i = 0; i < MAX_N; i++) {
        pixels[i] = pixel(i);
        labels[i] = i * i % OUTPUTS;
    }
    for (int threads = 1; threads <= 3; threads++) {
        scoped(release_predictor) adj_predictor *whole = predictor_of(&f, threads);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            scoped(release_predictor) adj_predictor *p = predictor_of(&f, threads);
            expect_probabilities(whole, counts[k], pixels);
            expect_probabilities(p, counts[k], pixels);
            expect_score(p, counts[k], pixels, labels);
            expect_score(whole, counts[k], pixels, labels);
        }
        adj_error error = {0};
        cr_expect_eq(adj_predictor_save(whole, NULL, 1, NULL, &error), ADJ_EARG);
        expect_text(error.message, "the list is NULL (got 1)");
    }
}

/* ---- weights of other programs ---- */

enum { CHANNELS = 1, FOREIGN_CLASSES = 4, ROOM = 128 };
static const adj_net foreign = {.name = "resnet8"};

/* Initial weights of resnet8 for gray images of four classes, in a file that says nothing of them
 * but that PyTorch wrote it; theirs: with PyTorch's names and layouts. */
static void put_weights(const char *path, int theirs)
{
    const adj_metadata note = {"format", "pt"};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits =
        adj_model_logits(g, adj_model_find(foreign.name, NULL),
                         &(adj_model_opts){.size.c = CHANNELS, .classes = FOREIGN_CLASSES});
    scoped(release_tensors) adj_tensors *file = NULL, *converted = NULL;
    adj_tensor tensor[ROOM];

    scoped(release_exec) adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &logits});
    cr_assert_eq(adj_weights_save(e, path, 1, &note, NULL), ADJ_OK);
    if (theirs) {
        cr_assert_eq(adj_tensors_read(path, &file), ADJ_OK);
        cr_assert_eq(adj_weights_convert(file, g, "pytorch", 1, &converted, NULL), ADJ_OK);
        const int n = converted->n;
        cr_assert_leq(n, ROOM);
        for (int i = 0; i < n; i++)
            tensor[i] = converted->tensor[i];
        cr_assert_eq(adj_tensors_write(path, n, tensor, 1, &note, NULL), ADJ_OK);
    }
}

/* ---- a backend of the caller, in front of the built-in ones ---- */

static int relus; /* that it has computed */

static adj_status prepare_relu(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return prepare_one(&adj_op_relu, ADJ_F32, "own", g, candidate, p);
}

/* Fails where an operand is larger than a pixel. */
static adj_status run_relu(const adj_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    const int64_t n = adj_shape_elems(c->group->node[0]->type.shape);
    relus++;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] > 255)
            return snprintf(c->message, ADJ_WHY, "too large"), ADJ_EBACKEND;
        y[i] = x[i] > 0 ? x[i] : 0;
    }
    return ADJ_OK;
}

static const adj_kernel own_relu = {.name = "own", .prepare = prepare_relu, .run = run_relu};

static adj_node *relu_build(adj_node *x, int64_t classes, int training, void *user)
{
    return linear_build(adj_relu(x), classes, training, user);
}

/* It trains without being named; and the message of the thread that fails is returned. */
Test(own_backend, trains_and_fails)
{
    enum { N = 32 };
    const adj_net own = {.name = "own", .build = relu_build};
    scoped(release_dataset) adj_dataset *d = tiny_data(N, 2, 2, 1, 2, 1);
    const adj_fit_opts o = {
        .epochs = 1, .exec.threads = 2, .exec.backends = before_naive("mine", &own_relu)};
    scoped(release_predictor) adj_predictor *p = tiny_fit(&own, d, NULL, &o);
    cr_expect_gt(relus, 0);
    for (int image = 0; image < N; image += N - 1) {
        float x[N * 4] = {0}, y[N * 2];
        adj_error error = {0};
        x[4 * image] = 1e9F;
        cr_expect_eq(adj_predict_floats(p, N, x, y, &error), ADJ_EBACKEND);
        cr_expect_not_null(strstr(error.message, "too large"), "%s", error.message);
    }
}

Test(foreign_weights, tell_their_channels_and_classes)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "pt.safetensors");
    for (int theirs = 0; theirs < 2; theirs++) {
        const adj_weights_opts load = {.map = theirs ? "pytorch" : NULL};
        const adj_predictor_opts o = {.weights = &load};
        adj_predictor *p = NULL;
        adj_error error = {0};
        put_weights(path.s, theirs);
        cr_assert_eq(adj_predictor_load(path.s, &foreign, &o, &p, &error), ADJ_OK, "%s",
                     error.message);
        cr_expect_eq(adj_predictor_card(p)->options.classes, FOREIGN_CLASSES);
        cr_expect_eq(adj_predictor_card(p)->options.size.c, CHANNELS);
        adj_predictor_free(p);
        p = NULL;
        cr_expect_eq(adj_predictor_load(path.s, &(adj_net){.name = "resnet8", .options.classes = 5},
                                        &o, &p, &error),
                     ADJ_ESHAPE);
        cr_expect_null(p);
        expect_text(error.message, "4 classes (expected ");
        cr_expect_eq(adj_predictor_load(path.s, &(adj_net){.name = "lenet"}, &o, &p, &error),
                     ADJ_ESHAPE);
        expect_text(error.message, "[5, 5, 1, 32]");
    }
}

/* ---- extended trainings ---- */

enum { N = 40, SIDE = 4, CLASSES = 2, BATCH = 8, STEPS = 5 };

/* The probabilities of all images. */
static void train(const adj_fit_opts *o, float probabilities[N * CLASSES])
{
    scoped(release_dataset) adj_dataset *d = tiny_data(N, SIDE, SIDE, 1, CLASSES, 7);
    scoped(release_predictor) adj_predictor *p = tiny_fit(&linear_net, d, d, o);
    cr_assert_eq(adj_predict(p, N, d->images, probabilities, NULL), ADJ_OK);
}

/* Two epochs and then two more, and four at once: the same rates and bits. */
static void expect_as_if_planned(const adj_schedule *s)
{
    static float whole[N * CLASSES], parts[N * CLASSES];
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    course at_once = {0}, in_parts = {0};
    adj_fit_opts o = tiny_opts();
    o.batch = BATCH;
    o.optimizer.lr = 0.1;
    o.schedule = s;
    o.on.step = course_step;
    o.epochs = 4;
    o.on.user = &at_once;
    train(&o, whole);
    o.on.user = &in_parts;
    o.checkpoint.path = file.s;
    o.epochs = 2;
    train(&o, parts);
    cr_expect_neq(memcmp(whole, parts, sizeof whole), 0);
    o.checkpoint.resume = 1;
    o.epochs = 4;
    train(&o, parts);
    cr_expect_eq(memcmp(whole, parts, sizeof whole), 0);
    cr_expect_eq(at_once.steps, 4 * STEPS);
    cr_expect_eq(in_parts.steps, 4 * STEPS);
    cr_expect_eq(memcmp(at_once.rate, in_parts.rate, sizeof at_once.rate), 0);
    /* step 18: 15 after the warm-up, of which 4 are a period */
    const double fallen = s->kind == ADJ_SCHEDULE_STEP ? 1e-4 : 0.1 * pow(0.1, 3.75);
    cr_expect_float_eq(in_parts.rate[18], fallen, 1e-12);
}

Test(prolong, a_falling_rate_goes_on)
{
    expect_as_if_planned(
        &(adj_schedule){.kind = ADJ_SCHEDULE_STEP, .warmup = 3, .period = 4, .factor = 0.1});
    expect_as_if_planned(
        &(adj_schedule){.kind = ADJ_SCHEDULE_EXPONENTIAL, .warmup = 3, .period = 4, .factor = 0.1});
}

/* At a rate of nearly 0 no epoch is better than the first. */
Test(prolong, patience_is_counted_anew)
{
    static float probabilities[N * CLASSES];
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    const adj_schedule constant = {.kind = ADJ_SCHEDULE_CONSTANT};
    course c = {0};
    adj_fit_opts o = {.epochs = 3,
                      .batch = BATCH,
                      .optimizer.lr = 1e-12,
                      .schedule = &constant,
                      .exec.backend = "naive",
                      .exec.threads = 1,
                      .checkpoint.path = file.s,
                      .on.step = course_step,
                      .on.user = &c};
    train(&o, probabilities);
    cr_expect_eq(c.steps, 3 * STEPS);
    o.checkpoint.resume = 1;
    o.epochs = 8;
    o.checkpoint.patience = 2;
    train(&o, probabilities);
    cr_expect_eq(c.steps, 5 * STEPS);
}

/* ---- kernels that were timed ---- */

enum { IMAGES = 48, PER_STEP = 16, EPOCHS = 4, HALF = 2 };

static adj_node *two_convolutions(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_conv_layer first = {.filters = 8, .padding = ADJ_SAME},
                         second = {.filters = 16, .padding = ADJ_SAME};
    (void)training;
    (void)user;
    x = adj_relu(adj_layer_conv2d(x, "one", &first));
    x = adj_relu(adj_layer_conv2d(x, "two", &second));
    return adj_layer_dense(x, "logits", classes, NULL);
}

static const adj_net conv_net = {.name = "tiny", .build = two_convolutions};

static void run_epochs(adj_trainer *t, int epochs)
{
    adj_error error = {0};
    for (int e = 0; e < epochs; e++) {
        for (int i = 0; i < IMAGES / PER_STEP; i++)
            cr_assert_eq(adj_trainer_step(t, &error), ADJ_OK, "%s", error.message);
        cr_assert_eq(adj_trainer_end_epoch(t, &error), ADJ_OK, "%s", error.message);
    }
}

static void expect_same_params(adj_exec *a, adj_exec *b)
{
    cr_assert_eq(adj_exec_param_count(a), adj_exec_param_count(b));
    for (int i = 0; i < adj_exec_param_count(a); i++) {
        adj_node *x = adj_exec_param_at(a, i), *y = adj_exec_param_at(b, i);
        const size_t bytes = adj_type_bytes(adj_node_type(x));
        const void *p = adj_data(a, x), *q = adj_data(b, y);
        cr_assert(p != NULL && q != NULL);
        cr_expect_eq(memcmp(p, q, bytes), 0, "%s", adj_node_name(x));
    }
}

static void expect_same_steps(const adj_exec *a, const adj_exec *b)
{
    cr_assert_eq(adj_exec_step_count(a), adj_exec_step_count(b));
    for (int i = 0; i < adj_exec_step_count(a); i++) {
        const adj_step_info x = adj_exec_step_at(a, i), y = adj_exec_step_at(b, i);
        cr_expect(strcmp(x.impl, y.impl) == 0 && strcmp(x.backend, y.backend) == 0,
                  "step %d, %s: %s %s, and %s %s", i, x.op, x.backend, x.impl, y.backend, y.impl);
    }
}

/* Kernels are timed in one training; what goes on from its middle is as if it had never stopped. */
Test(selection, a_checkpoint_keeps_it)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    scoped(release_dataset) adj_dataset *d = tiny_data(IMAGES, 16, 16, 1, 4, 5);
    adj_error error = {0};
    adj_fit_opts o = {.epochs = EPOCHS,
                      .batch = PER_STEP,
                      .optimizer.lr = 0.05,
                      .exec.threads = 1,
                      .exec.tune = 1};
    unsetenv("ADJOINT_PLAN");
    unsetenv("ADJOINT_TUNE");

    scoped(release_trainer) adj_trainer *first = tiny_trainer(&conv_net, d, d, &o);
    cr_assert_str_not_empty(adj_exec_selection(adj_trainer_exec(first)));
    run_epochs(first, HALF);
    cr_assert_eq(adj_trainer_save(first, file.s, &error), ADJ_OK, "%s", error.message);
    run_epochs(first, EPOCHS - HALF);

    o.exec.tune = 0;
    scoped(release_trainer) adj_trainer *second = tiny_trainer(&conv_net, d, d, &o);
    cr_expect_str_empty(adj_exec_selection(adj_trainer_exec(second)));
    cr_assert_eq(adj_trainer_resume(second, file.s, &error), ADJ_OK, "%s", error.message);
    adj_exec *resumed = adj_trainer_exec(second);
    cr_expect_eq(adj_exec_details(resumed).timed, 0);
    cr_expect_str_eq(adj_exec_selection(resumed), adj_exec_selection(adj_trainer_exec(first)));
    expect_same_steps(adj_trainer_exec(first), resumed);
    run_epochs(second, EPOCHS - HALF);
    expect_same_params(adj_trainer_exec(first), resumed);
    const adj_fit_progress a = adj_trainer_progress(first), b = adj_trainer_progress(second);
    cr_expect(a.best_epoch == b.best_epoch && a.held_out.loss == b.held_out.loss, "%.9g and %.9g",
              a.held_out.loss, b.held_out.loss);

    /* one that was saved again still has them */
    cr_assert_eq(adj_trainer_save(second, file.s, &error), ADJ_OK, "%s", error.message);
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(file.s, &t), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(t, "selection"),
                     adj_exec_selection(adj_trainer_exec(first)));
}
