/* test_evaluation.c - adj_evaluation of a net built for training against the same net built for
 * evaluation in a graph of its own: the same bits. */
#include "nn_test.h"

enum { BATCH = 4, STEPS = 2 };

static void set_noise(adj_exec *e, const adj_node *images, uint64_t seed)
{
    const int64_t n = adj_shape_elems(adj_node_type(images).shape);
    scoped(release) double *v = malloc((size_t)n * sizeof *v);
    adj_draw(ADJ_F64, v, n, adj_init_normal(1, 2), seed, 1);
    set_values(e, images, v);
}

/* Running statistics differ from their initial values: two steps are trained first. */
static void expect_separate_build(const char *name, adj_model_opts o)
{
    scoped(release_graph) adj_graph *g = adj_graph_new(), *other = adj_graph_new();
    const adj_model *m = adj_model_find(name, &o);
    const double of_rows[BATCH] = {0, 1, 1, 0};
    o.batch = BATCH;
    o.training = 1;
    adj_node *logits = adj_model_logits(g, m, &o), *evaluated = adj_evaluation(logits);
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
    adj_node *loss = adj_loss_softmax(logits, labels, NULL);
    o.training = 0;
    adj_node *expected = adj_model_logits(other, m, &o);
    scoped(release_exec) adj_exec *train =
        exec_new(g, 1, &loss, adj_training_updates(loss, &(adj_optimizer_opts){.lr = 0.001}));
    scoped(release_exec) adj_exec *a = exec_new(g, 1, &evaluated, NULL);
    scoped(release_exec) adj_exec *b = exec_new(other, 1, &expected, NULL);

    set_values(train, labels, of_rows);
    for (int i = 0; i < STEPS; i++) {
        set_noise(train, adj_find(g, "images"), 1 + (uint64_t)i);
        run(train);
    }
    cr_assert_eq(adj_copy_params(a, train), ADJ_OK, "%s", adj_exec_message(a));
    cr_assert_eq(adj_copy_params(b, train), ADJ_OK, "%s", adj_exec_message(b));
    set_noise(a, adj_find(g, "images"), 9);
    set_noise(b, adj_find(other, "images"), 9);
    run(a);
    run(b);
    const size_t bytes = adj_type_bytes(adj_node_type(expected));
    cr_expect_arr_eq((const char *)adj_data(a, evaluated), (const char *)adj_data(b, expected),
                     bytes, "%s", name);
    cr_expect_eq(adj_find(g, "logits"), logits);
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
