/* test_models.c - parameter counts as published, a few training steps of every model, the table;
 * and adj_evaluation of a net built for training against the same net built for evaluation in a
 * graph of its own: the same bits. */
#include "nn_test.h"
#include "ops/nn/model_list.h"
#include "tests/counter.h"
#include "tests/training.h"

/* ---- counts ---- */

static const struct {
    const char *name;
    adj_model_opts opts;
    int64_t trainable;
} counts[] = {
    {"lenet", {0}, 454922},
    {"lenet5", {0}, 61706},
    {"lenet5", {.size.h = 28, .size.w = 28}, 61706}, /* padded to 32x32 */
    {"resnet8", {0}, 78186},
    {"resnet20", {0}, 272474},
    {"mobilenet_v1", {0}, 213586},
    {"mobilenet_v1", {.classes = 1000, .multiplier = 1, .size.h = 224, .size.w = 224}, 4231976},
    {"vgg6", {0}, 2196810},
    {"ds_cnn", {0}, 23756},
};

Test(models, parameter_counts)
{
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int variant = 0; variant < 4; variant++) { /* formats, evaluation and training */
            scoped(release_graph) adj_graph *g = adj_graph_new();
            adj_model_opts o = counts[i].opts;
            const adj_model *m = adj_model_find(counts[i].name, NULL);
            o.format = variant & 1 ? ADJ_NCHW : ADJ_NHWC;
            o.training = variant >> 1;
            o.batch = 2;
            cr_assert_not_null(m);
            adj_node *y = adj_model_logits(g, m, &o);
            cr_assert_not_null(y, "%s: %s", m->name, adj_graph_message(g));
            cr_assert_eq(adj_trainable_elems(y), counts[i].trainable, "%s: got %ld", m->name,
                         (long)adj_trainable_elems(y));
            adj_shape s = adj_node_type(y).shape;
            int64_t classes = o.classes != 0 ? o.classes : m->defaults.classes;
            cr_assert(s.rank == 2 && s.dim[0] == 2 && s.dim[1] == classes);
            cr_assert_eq(adj_find(g, "logits"), y);
        }
    }
}

/* ---- training steps ---- */

static void set_drawn(adj_exec *e, const adj_node *images, adj_init init, uint64_t seed)
{
    const int64_t n = adj_shape_elems(adj_node_type(images).shape);
    scoped(release) double *v = malloc((size_t)n * sizeof *v);
    adj_draw(ADJ_F64, v, n, init, seed, 1);
    set_values(e, images, v);
}

/* The loss on one batch before, and after some steps on it. */
static void overfit(const char *name, adj_model_opts o, double rate, int steps, double loss_of[2])
{
    scoped(training_free) training t = training_of(name, o, &with_momentum);
    scoped(release_exec) adj_exec *e = exec_new(t.g, 1, &t.loss, t.updates);

    set_drawn(e, t.images, adj_init_normal(0, 1), 1);
    set_values(e, t.labels, (double[]){0, 1, 1, 0});
    set_values(e, t.lr, &rate);
    for (int i = 0; i < steps; i++) {
        run(e);
        loss_of[i > 0] = get_scalar(e, t.loss);
    }
}

/* Small images, where the model lets them be: it is the steps that are tested, not the speed. */
static const struct {
    const char *name;
    adj_model_opts opts;
    double rate;
} trained[] = {
    {"lenet", {0}, 0.001},
    {"lenet5", {.format = ADJ_NCHW}, 0.02},
    {"resnet8", {.size.h = 16, .size.w = 16}, 0.01},
    {"resnet20", {.size.h = 8, .size.w = 8}, 0.01},
    {"resnet20", {.size.h = 8, .size.w = 8, .format = ADJ_NCHW}, 0.01},
    {"mobilenet_v1_0.25_64", {0}, 0.002},
    {"vgg6", {.size.h = 8, .size.w = 8}, 0.002},
    {"ds_cnn", {0}, 0.01},
    {"resnet8", {.size.h = 16, .size.w = 16, .dtype = ADJ_BF16}, 0.01},
};

Test(models, train_a_batch)
{
    for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) {
        adj_model_opts o = trained[i].opts;
        double loss[2] = {NAN, NAN};
        o.batch = 4;
        overfit(trained[i].name, o, trained[i].rate, 8, loss);
        cr_assert(loss[0] > 0 && loss[0] < 30, "%s: first loss %g", trained[i].name, loss[0]);
        cr_assert(loss[1] < loss[0], "%s: loss went from %g to %g", trained[i].name, loss[0],
                  loss[1]);
    }
}

/* ---- the table ---- */

Test(models, found_by_name)
{
    adj_model_opts o = {.batch = 7};
    int n = 0;

    while (adj_model_at(n) != NULL) {
        const adj_model *m = &adj_model_at(n++)->model;
        cr_assert_eq(adj_model_find(m->name, &o), m);
        cr_assert_eq(adj_model_nearest(m->name), m);
    }
    cr_assert_eq(n, 7);
    cr_assert_null(adj_model_at(-1));
    cr_assert(o.multiplier == 0 && o.size.h == 0);
    cr_assert_str_eq(adj_model_find("mobilenet_v1_0.5_128", &o)->name, "mobilenet_v1");
    cr_assert(o.multiplier == 0.5 && o.size.h == 128 && o.size.w == 128 && o.batch == 7);
    cr_assert_not_null(adj_model_find("mobilenet_v1_1.0_224", NULL));

    static const char *const unknown[] = {"",
                                          "LeNet",
                                          "mobilenet_v1_",
                                          "mobilenet_v1_0.5",
                                          "mobilenet_v1_0.5_",
                                          "mobilenet_v1_0_128",
                                          "mobilenet_v1_nan_128",
                                          "mobilenet_v1_0.5_0",
                                          "mobilenet_v1_0.5_128x",
                                          "mobilenet_v1_0.5_99999999999999999999"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        cr_assert_null(adj_model_find(unknown[i], &o), "\"%s\"", unknown[i]);
    cr_assert_null(adj_model_find(NULL, &o));
    cr_assert_str_eq(adj_model_nearest("lenet-5")->name, "lenet5");
    cr_assert_str_eq(adj_model_nearest("mobilenet")->name, "mobilenet_v1");
    cr_assert_str_eq(adj_model_nearest("resnet18")->name, "resnet8");
    cr_assert_null(adj_model_nearest("transformer"));
    cr_assert_null(adj_model_nearest(NULL));
}

/* Images that are too small, of a wrong rank, or of a wrong type: an error, not a crash. */
Test(models, images_that_do_not_fit)
{
    for (int i = 0; adj_model_at(i) != NULL; i++) {
        for (int wrong = 0; wrong < 2; wrong++) {
            scoped(release_graph) adj_graph *g = adj_graph_new();
            adj_shape s = {wrong == 0 ? 3 : 4, {2, 32, 32, 3}};
            adj_node *x = adj_input(g, "x", wrong == 0 ? ADJ_F32 : ADJ_I32, s);
            cr_assert_null(adj_model_at(i)->model.build(x, NULL));
            cr_assert_neq(adj_graph_status(g), ADJ_OK);
        }
        cr_assert_null(adj_model_at(i)->model.build(NULL, NULL));
    }
    scoped(release_graph) adj_graph *g = adj_graph_new();
    cr_assert_null(adj_model_logits(g, adj_model_find("mobilenet_v1", NULL),
                                    &(adj_model_opts){.multiplier = 1e300}));
    cr_assert_eq(adj_graph_status(g), ADJ_EARG);
}

/* ---- memory that runs out ---- */

static adj_status build_and_train(counter *c)
{
    const adj_allocator a = {count_alloc, count_free, c};
    const adj_model_opts o = {.training = 1, .dtype = ADJ_BF16};
    scoped(release_graph) adj_graph *g =
        adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &a});
    adj_node *y = adj_model_logits(g, adj_model_find("ds_cnn", NULL), &o);
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {1}});
    adj_updates *u = adj_training_updates(adj_loss_softmax(y, labels, NULL),
                                          &(adj_optimizer_opts){ADJ_ADAM, .clip_norm = 1});
    const adj_status status = adj_graph_status(g);
    cr_assert((u != NULL) == (status == ADJ_OK));
    cr_assert(status != ADJ_OK || c->calls > 5, "%ld allocations", c->calls);
    return status;
}

Test(models, out_of_memory) { run_out_of_memory(build_and_train); }

enum { EVALUATED = 4, TRAINED = 2 };

/* Running statistics differ from their initial values: two steps are trained first. */
static void expect_separate_build(const char *name, adj_model_opts o)
{
    scoped(release_graph) adj_graph *other = adj_graph_new();
    o.batch = EVALUATED;
    scoped(training_free) training t = training_of(name, o, &with_momentum);
    adj_node *logits = adj_find(t.g, "logits"), *evaluated = adj_evaluation(logits);
    adj_node *expected = adj_model_logits(other, adj_model_find(name, &o), &o);
    scoped(release_exec) adj_exec *train = exec_new(t.g, 1, &t.loss, t.updates);
    scoped(release_exec) adj_exec *a = exec_new(t.g, 1, &evaluated, NULL);
    scoped(release_exec) adj_exec *b = exec_new(other, 1, &expected, NULL);

    set_values(train, t.labels, (double[]){0, 1, 1, 0});
    set_values(train, t.lr, (double[]){0.001});
    for (int i = 0; i < TRAINED; i++) {
        set_drawn(train, t.images, adj_init_normal(1, 2), 1 + (uint64_t)i);
        run(train);
    }
    cr_assert_eq(adj_copy_params(a, train), ADJ_OK, "%s", adj_exec_message(a));
    cr_assert_eq(adj_copy_params(b, train), ADJ_OK, "%s", adj_exec_message(b));
    set_drawn(a, t.images, adj_init_normal(1, 2), 9);
    set_drawn(b, adj_find(other, "images"), adj_init_normal(1, 2), 9);
    run(a);
    run(b);
    const size_t bytes = adj_type_bytes(adj_node_type(expected));
    cr_expect_arr_eq((const char *)adj_data(a, evaluated), (const char *)adj_data(b, expected),
                     bytes, "%s", name);
    cr_expect_eq(adj_find(t.g, "logits"), logits);
}

Test(evaluation, is_the_net_built_for_evaluation)
{
    expect_separate_build("resnet8", (adj_model_opts){.size.h = 8, .size.w = 8});
    expect_separate_build("ds_cnn",
                          (adj_model_opts){.size.h = 12, .size.w = 10}); /* dropout, too */
    expect_separate_build("mobilenet_v1",
                          (adj_model_opts){.size.h = 32, .size.w = 32, .format = ADJ_NCHW});
    expect_separate_build("resnet8", (adj_model_opts){.size.h = 8, .size.w = 8, .dtype = ADJ_BF16});
    expect_separate_build("resnet8", (adj_model_opts){.size.h = 8, .size.w = 8, .freeze = "stem*"});
}

/* (x - 0) / sqrt(1 + 0), plus x where nothing differs. */
Test(evaluation, by_hand)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_norm_layer norm = {.training = 1, .epsilon = 1e-30};
    adj_node *x = adj_input(g, "x", ADJ_F64, (adj_shape){4, {1, 1, 3, 1}});
    adj_node *y = adj_add(adj_layer_batch_norm(x, "norm", &norm), adj_relu(x));
    adj_node *z = adj_evaluation(adj_layer_dropout(y, "drop", 0.5, 1));
    cr_assert_neq(z, y);
    cr_expect_eq(adj_evaluation(z), z);
    scoped(release_exec) adj_exec *e = exec_new(g, 1, &z, NULL);
    const double in[] = {-2, 0.5, 3}, out[] = {-2, 1, 6};
    set_values(e, x, in);
    run(e);
    cr_expect_arr_eq((const char *)adj_data(e, z), (const char *)out, sizeof out);
}

Test(evaluation, nothing_differs)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_model_logits(g, adj_model_find("lenet", NULL), NULL);
    const int n = adj_graph_node_count(g);
    cr_expect_eq(adj_evaluation(y), y);
    cr_expect_eq(adj_graph_node_count(g), n);
    cr_expect_null(adj_evaluation(NULL));
}
