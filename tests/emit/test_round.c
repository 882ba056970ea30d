/* test_round.c - filters in 8 bits: the results are those of float64 with weights that the test
 * rounds itself; ties, channels of zeros, and filters that stay f32. */
#include "emitted.h"

TestSuite(emit_round, .init = plan_as_usual);

static const double tolerance = 1e-5;
static const adj_emit_opts int8 = {.flags = ADJ_EMIT_INT8_WEIGHTS};

/* Rounds element by element: the channel of element i is i / run % n. */
static void round_literally(double *w, int64_t elems, int64_t n, int64_t run)
{
    for (int64_t o = 0; o < n; o++) {
        float largest = 0;
        for (int64_t i = 0; i < elems; i++)
            if (i / run % n == o && (float)fabs(w[i]) > largest)
                largest = (float)fabs(w[i]);
        const float scale = largest / 127;
        for (int64_t i = 0; i < elems; i++)
            if (i / run % n == o && largest > 0) {
                const float ratio = (float)w[i] / scale;
                const int q = ratio < 0 ? -(int)(0.5 - (double)ratio) : (int)(0.5 + (double)ratio);
                w[i] = (double)(scale * (float)q);
            }
    }
}

/* The output in float64 with rounded parameters, to be freed. Filters are the parameters named
 * ".../w". Output channels are the last axis; in names with "turned" the first one; of filters of
 * depthwise convolutions the last two. */
static double *rounded_reference(build_net *build, const void *user)
{
    net n = net_new(build, ADJ_F64, user);
    double *w;
    for (int i = 0; i < adj_exec_param_count(n.e); i++) {
        adj_node *p = adj_exec_param_at(n.e, i);
        const adj_shape s = adj_node_type(p).shape;
        const char *name = adj_node_name(p);
        if (strstr(name, "/w") == NULL)
            continue;
        cr_assert_eq(adj_set_in_place(n.e, p, (void **)&w), ADJ_OK);
        const int is_turned = strstr(name, "turned") != NULL;
        const int64_t last = s.dim[s.rank - 1] * (strstr(name, "depthwise") ? s.dim[2] : 1);
        round_literally(w, adj_shape_elems(s), is_turned ? s.dim[0] : last,
                        is_turned ? adj_shape_elems(s) / s.dim[0] : 1);
    }
    return run_once(&n);
}

/* Compares a net with float64, and runs its own example. */
static void expect_rounded(build_net *build, const void *user)
{
    scoped(net_free) net n = net_new(build, ADJ_F32, user);
    scoped(release) double *want = rounded_reference(build, user);
    scoped(compiled_free) compiled c = compile_net(&n, &int8, "-O1 -DNET_TEST");
    expect_output(&c, "net", &n, want, tolerance);
    cr_expect(has_text(&c.folder, "static const int8_t"));
    cr_expect_not(has_text(&c.folder, "_w[") || has_text(&c.folder, "_w1["), "a filter is f32");
    int (*test)(void);
    *(void **)&test = symbol_of(c.library, "net_test");
    cr_expect_eq(test(), 0);
}

/* With folded batch norms, depthwise convolutions, and products. */
Test(emit_round, models)
{
    expect_rounded(build_pair, "lenet5");
    expect_rounded(build_pair, "ds_cnn");
    expect_rounded(build_pair, "resnet8");
}

static adj_node *filter(adj_graph *g, adj_dtype dtype, const char *name, adj_shape shape)
{
    return adj_param(g, name, dtype, shape, adj_init_constant(1));
}

/* A transposed filter with groups, one channel, a view, a product with the transposed matrix, and a
 * transpose that nothing reads. */
static adj_node *build_others(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_conv a = {.padding = ADJ_SAME};
    for (int i = 0; i < 4; i++)
        a.stride[i] = a.dilation[i] = 1;
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){4, {2, 5, 6, 4}});
    adj_node *w = filter(g, dtype, "turned/w1", (adj_shape){4, {6, 2, 3, 3}});
    adj_node *y = adj_conv2d(x, adj_transpose(w, 4, (int[]){2, 3, 1, 0}), &a);
    w = filter(g, dtype, "b/w", (adj_shape){2, {12, 1}});
    (void)adj_transpose(w, 2, (int[]){1, 0});
    y = adj_conv2d(adj_relu(y), adj_reshape(w, (adj_shape){4, {2, 1, 6, 1}}), &a);
    y = adj_reshape(y, (adj_shape){2, {2, 30}});
    return adj_matmul(adj_tanh(y), filter(g, dtype, "turned/w2", (adj_shape){2, {7, 30}}),
                      ADJ_TRANSPOSE_B);
}

Test(emit_round, groups_and_transposed) { expect_rounded(build_others, NULL); }

/* The sum of the filter is a term, too: the filter stays f32. */
static adj_node *build_shared(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){2, {3, 5}});
    adj_node *w = filter(g, dtype, "w", (adj_shape){2, {5, 4}});
    return adj_add(adj_matmul(x, w, 0), adj_reduce_sum(w, (adj_axes){.n = ADJ_ALL}));
}

Test(emit_round, a_filter_with_another_reader)
{
    scoped(net_free) net n = net_new(build_shared, ADJ_F32, NULL);
    scoped(release) double *want = reference_of(build_shared, NULL);
    scoped(compiled_free) compiled c = compile_net(&n, &int8, "-O1 -DNET_TEST");
    expect_output(&c, "net", &n, want, tolerance);
    cr_expect_not(has_text(&c.folder, "int8_t"));
}

static adj_node *build_small(adj_graph *g, adj_dtype dtype, const void *user)
{
    (void)user;
    return adj_matmul(adj_input(g, "x", dtype, (adj_shape){2, {1, 3}}),
                      filter(g, dtype, "w", (adj_shape){2, {3, 3}}), 0);
}

/* Scale 1: halves are rounded away from 0. A channel of zeros has scale 0. */
Test(emit_round, ties_and_zeros)
{
    static const float w[3][3] = {{127, 0, 4}, {2.5F, 0, 508}, {-2.5F, 0, -6}},
                       x[3] = {1, 10, 1000};
    static const float want[3] = {127 + 30 - 3000, 0, 4 + 5080 - 8000};
    float y[3] = {7, 7, 7}, kept[9];
    scoped(net_free) net n = net_new(build_small, ADJ_F32, NULL);
    adj_node *p = adj_exec_param_at(n.e, 0);
    cr_assert_eq(adj_set(n.e, p, w, sizeof w), ADJ_OK);
    scoped(compiled_free) compiled c = compile_net(&n, &int8, "-O1 -DNET_TEST");
    cr_assert_eq(adj_get(n.e, p, kept, sizeof kept), ADJ_OK);
    cr_expect_eq(memcmp(kept, w, sizeof w), 0, "the caller's weights changed");
    cr_assert_eq(c.predict(x, y), 0);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(y[i], want[i], "%d: got %g, expected %g", i, (double)y[i], (double)want[i]);
    cr_expect(has_text(&c.folder, "127, 0, 1, 3, 0, 127, -3, 0, -2,"));
}

/* Bytes of constants: a quarter, and the scales. lenet5 has 61470 weights of filters, 236 channels
 * and as many biases. */
Test(emit_round, bytes)
{
    scoped(temporary_remove) temporary folder = temporary_folder();
    scoped(net_free) net n = net_new(build_pair, ADJ_F32, "lenet5");
    emit_to(folder.s, "net", &n, &int8);
    cr_expect_eq(number_in(folder.s, "net.c", "Flash: "), 61470 + 2 * 4 * 236);
    cr_expect_eq(number_in(folder.s, "net.c", "constants,"), 0);
    emit_to(folder.s, "net", &n, NULL);
    cr_expect_eq(number_in(folder.s, "net.c", "Flash: "), 4 * (61470 + 236));
    cr_expect_not(has_text(&folder, "int8_t"));
}

/* A filter that an update assigns without reading it stays f32. */
Test(emit_round, an_assigned_filter)
{
    const adj_shape square = {2, {3, 3}};
    scoped(temporary_remove) temporary folder = temporary_folder();
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 3}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {2}});
    adj_node *w = filter(g, ADJ_F32, "w", square), *trained = filter(g, ADJ_F32, "v", square);
    adj_node *logits = adj_matmul(adj_matmul(x, w, 0), trained, 0);
    adj_node *loss = adj_loss_softmax(logits, labels, NULL);
    adj_updates *updates =
        adj_training_updates(loss, &(adj_optimizer_opts){.trained = &trained, .n_trained = 1});
    adj_updates_add(updates, w, filter(g, ADJ_F32, "next", square));
    scoped(net_free) net n = {.g = g, .y = adj_evaluation(logits)};
    n.e = plan_of(
        g, &(adj_exec_opts){.n_fetch = 1, .fetch = &n.y, .updates = updates, .backend = "naive"});
    const float values[9] = {0.3F, 1, 1, 1, 1, 1, 1, 1, 1}; /* 127 * 0.3 is no integer */
    cr_assert_eq(adj_set(n.e, w, values, sizeof values), ADJ_OK);
    emit_to(folder.s, "net", &n,
            &(adj_emit_opts){.updates = updates, .loss = loss, .flags = ADJ_EMIT_INT8_WEIGHTS});
    cr_expect(has_text(&folder, "    0.3f,") || has_text(&folder, "    0.300000012f,"));
    cr_expect_not(has_text(&folder, "static const int8_t"));
}

/* Frozen layers in front of the trained one are rounded; the trained one is not. */
Test(emit_round, training)
{
    adj_graph *g = adj_graph_new();
    adj_node *logits = build_pair(g, ADJ_F32, "lenet5"), *all[16];
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {2}});
    adj_node *loss = adj_loss_softmax(logits, labels, NULL);
    adj_optimizer_opts sgd = {.trained = all};
    sgd.n_trained = adj_trainable(loss, "conv?/*,fc?/*", 16, all);
    cr_assert_eq(sgd.n_trained, 2);
    scoped(net_free) net n = {.g = g, .y = adj_evaluation(logits)};
    const adj_emit_opts o = {
        .updates = adj_training_updates(loss, &sgd), .loss = loss, .flags = ADJ_EMIT_INT8_WEIGHTS};
    n.e = plan_of(
        g, &(adj_exec_opts){.n_fetch = 1, .fetch = &n.y, .updates = o.updates, .backend = "naive"});
    float *last;
    cr_assert_eq(adj_set_in_place(n.e, adj_find(g, "logits/w"), (void **)&last), ADJ_OK);
    for (int i = 0; i < 840; i++) /* integers times a scale as well */
        last[i] = (float)(i * 7 % 5 - 2);
    scoped(compiled_free) compiled c = compile_net(&n, &o, "-O1 -DNET_TEST");
    cr_expect(has_text(&c.folder, "conv1_w_int8[") && has_text(&c.folder, "fc2_w_int8["));
    cr_expect_not(has_text(&c.folder, "logits_w_int8"));
    cr_expect_not(has_text(&c.folder, "static const float net_fc2_w["));
    int (*step)(const float *, const int32_t *, float, float *);
    *(void **)&step = symbol_of(c.library, "net_train_step");
    static float x[2 * 1024];
    static const int32_t label[2] = {3, 8};
    float y[20], got;
    double want = 0;
    for (int i = 0; i < 2 * 1024; i++)
        x[i] = input_at(i, 0);
    c.predict(x, y);
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int k = 0; k < 10; k++)
            sum += exp((double)y[10 * i + k]);
        want += (log(sum) - (double)y[10 * i + label[i]]) / 2;
    }
    step(x, label, 0.1F, &got);
    cr_expect_float_eq((double)got, want, tolerance * want);
    const double before = want;
    step(x, label, 0.1F, &got);
    cr_expect_lt((double)got, before);

    cr_assert_eq(adj_set_in_place(n.e, adj_find(g, "logits/w"), (void **)&last), ADJ_OK);
    last[0] = 0.3F; /* 127 * 0.3 / 2 is no integer */
    emit_to(c.folder.s, "net", &n, &o);
    cr_expect(has_text(&c.folder, "    0.3f,") || has_text(&c.folder, "    0.300000012f,"));
}
