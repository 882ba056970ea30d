/* test_training.c - training steps as C: after five steps parameters, states and losses are those
 * of the library on naive; a wrong label changes nothing; predictions use the trained parameters.
 */
#include "emitted.h"
#include "tests/training.h"

TestSuite(emit_training, .init = plan_as_usual);

enum { STEPS = 5, ROOM = 1 << 22 };

/* A model with its training step, in the library and compiled. */
typedef struct {
    training t;
    adj_node *output;
    adj_exec *e, *predict;
    compiled c;
    int (*step)(const float *, const int32_t *, float, float *);
} trained;

static trained trained_new(training t)
{
    trained n = {.t = t};
    n.output = adj_evaluation(adj_find(n.t.g, "logits"));
    cr_assert_not_null(n.output, "%s", adj_graph_message(n.t.g));
    n.e = plan_of(n.t.g, &(adj_exec_opts){.n_fetch = 1,
                                          .fetch = &n.t.loss,
                                          .updates = n.t.updates,
                                          .backend = "naive",
                                          .seed = 3});
    n.predict =
        plan_of(n.t.g, &(adj_exec_opts){.n_fetch = 1, .fetch = &n.output, .backend = "naive"});
    const net all = {n.t.g, n.t.images, n.output, n.e};
    n.c = compile_net(&all, &(adj_emit_opts){.updates = n.t.updates, .loss = n.t.loss}, "-O2");
    *(void **)&n.step = symbol_of(n.c.library, "net_train_step");
    return n;
}

static void trained_free(trained *n)
{
    compiled_free(&n->c);
    adj_exec_free(n->predict);
    adj_exec_free(n->e);
    training_free(&n->t);
}

/* The values of a leaf that the last step's executor has been given. */
static const void *given_data(const trained *n, adj_node *leaf) { return adj_data(n->e, leaf); }

/* The largest difference of the net's outputs, relative to the largest output. */
static double output_error(const trained *n)
{
    const int64_t n_y = adj_shape_elems(adj_node_type(n->output).shape);
    scoped(release) float *y = malloc((size_t)n_y * sizeof *y);
    scoped(release) double *want = malloc((size_t)n_y * sizeof *want);
    cr_assert_eq(adj_copy_params(n->predict, n->e), ADJ_OK, "%s", adj_exec_message(n->predict));
    const void *x = given_data(n, n->t.images);
    cr_assert_eq(adj_set(n->predict, n->t.images, x, adj_type_bytes(adj_node_type(n->t.images))),
                 ADJ_OK);
    cr_assert_eq(adj_run(n->predict), ADJ_OK);
    for (int64_t i = 0; i < n_y; i++)
        want[i] = adj_load(ADJ_F32, adj_data(n->predict, n->output), i);
    cr_assert_eq(n->c.predict(x, y), 0);
    return error_of(n_y, y, want);
}

/* Five steps: losses, and the outputs before and after. */
static void expect_steps(const char *name, trained *n, double tolerance)
{
    training_batch(n->e, n->t.images, n->t.labels, 0);
    cr_expect_leq(output_error(n), 1e-5, "%s", name);
    for (int step = 0; step < STEPS; step++) {
        float loss;
        const double want = (double)training_step(&n->t, n->e, step);
        cr_assert_eq(n->step(given_data(n, n->t.images), given_data(n, n->t.labels), 0.02F, &loss),
                     0);
        cr_expect_float_eq((double)loss, want, tolerance * fmax(1, want), "%s, step %d: %g, not %g",
                           name, step, (double)loss, want);
    }
    cr_expect_leq(output_error(n), tolerance, "%s: outputs are %g apart", name, output_error(n));
}

Test(emit_training, models)
{
    static const struct {
        const char *model;
        adj_model_opts m;
        adj_optimizer_opts o;
        double tolerance;
    } cases[] = {
        {"lenet5", {.batch = 4}, {.momentum = 0.9}, 1e-5},
        {"lenet5", {.batch = 1}, {.lr = 0.01}, 1e-5},
        {"lenet5", {.batch = 2, .classes = 3}, {.clip_norm = 0.5, .weight_decay = 1e-4}, 1e-5},
        {"lenet", {.batch = 3, .size.h = 12, .size.w = 12}, {.weight_decay = 1e-3}, 1e-5},
        /* AdamW not for a net with batch norm: the gradient of a bias before one is 0 but for
         * rounding, which Adam makes steps of the learning rate's size. */
        {"lenet5", {.batch = 2}, {.kind = ADJ_ADAMW, .weight_decay = 0.01}, 1e-4},
        {"resnet8", {.batch = 4, .size.h = 8, .size.w = 8}, {.momentum = 0.9}, 1e-4},
        /* With larger batches of these images the third step depends on the order of sums in the
         * library, too. */
        {"mobilenet_v1_0.1_16", {.batch = 2}, {.clip_norm = 0.5}, 5e-5},
        {"ds_cnn", {.batch = 3, .size.h = 12, .size.w = 6}, {.momentum = 0.9}, 1e-4}, /* dropout */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(trained_free) trained n =
            trained_new(training_of(cases[i].model, cases[i].m, &cases[i].o));
        expect_steps(cases[i].model, &n, cases[i].tolerance);
    }
}

/* Only the last layer is trained: other parameters are constants, without gradients. */
Test(emit_training, the_last_layer)
{
    adj_graph *g = adj_graph_new();
    const adj_model_opts m = {.batch = 2, .training = 1, .freeze = "conv1/*,bn1/*,block*"};
    adj_node *logits = adj_model_logits(g, adj_model_find("resnet8", NULL), &m);
    adj_node *head[] = {adj_find(g, "logits/w"), adj_find(g, "logits/b")};
    scoped(trained_free) trained n = trained_new(training_on(
        logits, &(adj_optimizer_opts){.momentum = 0.9, .trained = head, .n_trained = 2}));
    expect_steps("the last layer", &n, 1e-5);
    shell(n.c.folder.s, "grep -q '^static const float net_block1_conv1_w' net.c && "
                        "grep -q '^static float net_logits_w' net.c && "
                        "grep -q '^static float net_logits_w_momentum' net.c && "
                        "! grep -E '^static void (conv|block).*(backprop|grad)' net.c");
}

/* A loss of the user's own, labels as numbers, and updates whose next values no step computes: a
 * state is copied, and what follows from a parameter that is not trained. The output depends on
 * both. */
Test(emit_training, own_loss_and_updates)
{
    const adj_shape one = {1, {1}};
    training t = {.g = adj_graph_new()};
    t.images = adj_input(t.g, "images", ADJ_F32, (adj_shape){2, {4, 3}});
    t.labels = adj_input(t.g, "labels", ADJ_I32, (adj_shape){1, {4}});
    t.lr = adj_input(t.g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *w =
        adj_param(t.g, "learning/rate", ADJ_F32, (adj_shape){2, {3, 1}}, adj_init_constant(0.5));
    adj_node *fixed = adj_param(t.g, "fixed", ADJ_F32, one, adj_init_constant(3));
    adj_node *source = adj_state(t.g, "source", ADJ_F32, one, adj_init_constant(7));
    adj_node *scale = adj_state(t.g, "scale", ADJ_F32, one, adj_init_constant(0.25));
    adj_node *shift = adj_state(t.g, "shift", ADJ_F32, one, adj_init_constant(-2));
    adj_node *y = adj_add(adj_mul(adj_matmul(t.images, w, 0), scale), shift);
    adj_node *error = adj_sub(adj_reshape(adj_label(y, "logits"), (adj_shape){1, {4}}),
                              adj_cast(t.labels, ADJ_F32));
    t.loss = adj_reduce_mean(adj_square(error), (adj_axes){.n = ADJ_ALL});
    t.updates = adj_training_updates(
        t.loss, &(adj_optimizer_opts){.trained = (adj_node *[]){w}, .n_trained = 1});
    adj_updates_add(t.updates, scale, source);
    adj_updates_add(t.updates, shift, adj_square(fixed));
    scoped(trained_free) trained n = trained_new(t);
    expect_steps("own loss", &n, 1e-5);
}

/* ---- parameters and states ---- */

/* The compiled functions for parameters and states that training changes. */
typedef struct {
    void (*init)(uint64_t), (*save)(uint8_t *);
    int (*load)(const uint8_t *);
} state_functions;

static state_functions state_functions_of(const trained *n)
{
    state_functions s;
    *(void **)&s.init = symbol_of(n->c.library, "net_init");
    *(void **)&s.save = symbol_of(n->c.library, "net_save");
    *(void **)&s.load = symbol_of(n->c.library, "net_load");
    return s;
}

/* Loads the file, compiled so that its arrays can be found. */
static void *visible(const temporary *folder)
{
    shell(folder->s, "cc -std=c99 -O1 -Dstatic= -shared -fPIC net.c -o visible.so -lm");
    return library_of(folder->s, "visible");
}

/* The array of a parameter or state. */
static const void *array_of(void *library, const adj_node *leaf)
{
    char name[100];
    snprintf(name, sizeof name, "net_%s", adj_node_name(leaf));
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    return symbol_of(library, name);
}

/* Parameters and states are those of an executor, relative to the largest element of each, or to
 * 0.001: the gradient of a bias before a batch norm is 0 but for rounding. */
static void expect_arrays(void *library, adj_exec *e, double tolerance)
{
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        const adj_type type = adj_node_type(p);
        double largest = 1e-3;
        for (int64_t k = 0; k < adj_shape_elems(type.shape); k++)
            largest = fmax(largest, fabs(adj_load(type.dtype, adj_data(e, p), k)));
        for (int64_t k = 0; k < adj_shape_elems(type.shape); k++) {
            const double want = adj_load(type.dtype, adj_data(e, p), k);
            const double got = adj_load(type.dtype, array_of(library, p), k);
            cr_assert_leq(fabs(got - want), tolerance * largest,
                          "%s[%lld]: got %.9g, expected %.9g", adj_node_name(p), (long long)k, got,
                          want);
        }
    }
}

/* Initial values after a step are those of an executor with the seed, but for rounding: an angle of
 * up to 2 pi is off by 5.6e-7, its cosine's radius by 2e-7 of itself, which is at most 1.5 times
 * the larger one of the pair. */
static void expect_initial(training t)
{
    const uint64_t seed = UINT64_C(0xfedcba9876543210);
    static float x[1 << 16];
    static const int32_t labels[8];
    float loss;
    scoped(trained_free) trained n = trained_new(t);
    dlclose(n.c.library);
    n.c.library = visible(&n.c.folder);
    *(void **)&n.step = symbol_of(n.c.library, "net_train_step");
    cr_assert_eq(n.step(x, labels, 0.1F, &loss), 0);
    state_functions_of(&n).init(seed);
    scoped(release_exec) adj_exec *e = plan_of(n.t.g, &(adj_exec_opts){.n_fetch = 1,
                                                                       .fetch = &n.t.loss,
                                                                       .updates = n.t.updates,
                                                                       .backend = "naive",
                                                                       .seed = seed});
    expect_arrays(n.c.library, e, 1.2e-6);
}

/* One parameter with given values and one with a name of its own. */
static training own_training(const char *name, adj_shape shape)
{
    static const float given[6] = {1, -2, 3, 0.1F, -7, 1e-3F};
    training t = {.g = adj_graph_new()};
    t.images = adj_input(t.g, "images", ADJ_F32, (adj_shape){2, {1, 6}});
    t.labels = adj_input(t.g, "labels", ADJ_I32, (adj_shape){1, {1}});
    t.lr = adj_input(t.g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *w =
        adj_param(t.g, name, ADJ_F32, shape, (adj_init){.kind = ADJ_INIT_DATA, .data = given});
    adj_node *b =
        adj_param(t.g, "own/b", ADJ_F32, (adj_shape){1, {1}}, adj_init_uniform(2, 2.0000002));
    adj_node *y = adj_matmul(t.images, adj_reshape(w, (adj_shape){2, {6, 1}}), 0);
    y = adj_reshape(adj_label(adj_add(y, b), "logits"), (adj_shape){1, {1}});
    t.loss = adj_reduce_mean(adj_square(adj_sub(y, adj_cast(t.labels, ADJ_F32))),
                             (adj_axes){.n = ADJ_ALL});
    t.updates = adj_training_updates(t.loss, &with_momentum);
    return t;
}

/* Uniform and normal ones; given values, and a range with one number, which no draw may leave. */
Test(emit_training, initial_values)
{
    expect_initial(training_of("lenet5", (adj_model_opts){.batch = 1}, &with_momentum));
    expect_initial(training_of("ds_cnn", (adj_model_opts){.batch = 2, .size.h = 12, .size.w = 6},
                               &(adj_optimizer_opts){.kind = ADJ_ADAM}));
    expect_initial(own_training("own/w", (adj_shape){1, {6}}));
}

/* Training goes on from what is saved; other bytes are refused and change nothing. */
Test(emit_training, save_and_load)
{
    enum { HEAD = 16, BYTES = HEAD + 2 * 61706 * 4 };
    static uint8_t saved[BYTES], now[BYTES], wrong[BYTES];
    static float x[1024];
    float want = 0, got = 0;
    trained n = trained_new(training_of("lenet5", (adj_model_opts){.batch = 1}, &with_momentum));
    const state_functions s = state_functions_of(&n);
    shell(n.c.folder.s, "grep -q ' NET_STATE_BYTES = 493664,' net.c");
    for (int i = 0; i < 1024; i++)
        x[i] = input_at(i, 1);
    for (int32_t label = 0; label < 3; label++)
        cr_assert_eq(n.step(x, &label, 0.05F, &want), 0);
    s.save(saved);
    for (int32_t label = 3; label < 6; label++)
        cr_assert_eq(n.step(x, &label, 0.05F, &want), 0);
    s.init(1);
    cr_assert_eq(s.load(saved), 0);
    for (int32_t label = 3; label < 6; label++)
        cr_assert_eq(n.step(x, &label, 0.05F, &got), 0);
    cr_expect_eq((double)got, (double)want);
    s.save(saved);
    for (int at = 0; at < BYTES; at += at < HEAD ? 1 : BYTES / 7) {
        memcpy(wrong, saved, BYTES);
        wrong[at] ^= 0x40;
        cr_expect_eq(s.load(wrong), -1, "byte %d", at);
        s.save(now);
        cr_assert_arr_eq(now, saved, BYTES);
    }
    trained_free(&n);
}

/* Buffers of nets that differ in the name, or in the shape, of a parameter. */
Test(emit_training, buffer_of_another_net)
{
    enum { BYTES = 16 + 2 * 7 * 4 };
    uint8_t saved[BYTES], other[BYTES];
    trained n = trained_new(own_training("own/w", (adj_shape){1, {6}}));
    trained named = trained_new(own_training("own/v", (adj_shape){1, {6}}));
    trained shaped = trained_new(own_training("own/w", (adj_shape){2, {2, 3}}));
    state_functions_of(&n).save(saved);
    cr_expect_eq(state_functions_of(&n).load(saved), 0);
    state_functions_of(&named).save(other);
    cr_expect_eq(state_functions_of(&n).load(other), -1);
    state_functions_of(&shaped).save(other);
    cr_expect_eq(state_functions_of(&n).load(other), -1);
    cr_expect_arr_eq(saved + 16, other + 16, BYTES - 16);
    trained_free(&shaped);
    trained_free(&named);
    trained_free(&n);
}

/* The caller's arena: the same results as with a static one, whatever is in it, in no more than its
 * bytes. net_test has one of its own. */
Test(emit_training, arena_of_the_caller)
{
    enum { GUARD = 16 };
    static float x[1024], y[2][10], loss[2];
    trained n = trained_new(training_of("lenet5", (adj_model_opts){.batch = 1}, &with_momentum));
    adj_emit_opts emit = {.updates = n.t.updates, .loss = n.t.loss, .flags = ADJ_EMIT_CALLER_ARENA};
    const net all = {n.t.g, n.t.images, n.output, n.e};
    emit_to(n.c.folder.s, "caller", &all, &emit);
    emit.updates = NULL;
    emit.loss = NULL;
    emit_to(n.c.folder.s, "tested", &all, &emit);
    shell(n.c.folder.s,
          "! grep '^static float arena' caller.c && cc " STRICT
          " -O2 -shared -fPIC caller.c -o caller.so -lm && "
          "echo 'int net_test(void); int main(void) { return net_test(); }' >main.c && "
          "cc " STRICT " -O2 -DNET_TEST tested.c main.c -o test -lm && ./test");
    void *library = library_of(n.c.folder.s, "caller");
    int (*step)(const float *, const int32_t *, float, float *, float *);
    int (*infer)(const float *, float *, float *);
    *(void **)&step = symbol_of(library, "net_train_step");
    *(void **)&infer = symbol_of(library, "net_predict");
    const size_t bytes = number_in(n.c.folder.s, "caller.c", "NET_ARENA_BYTES = ");
    cr_assert_gt(bytes, 100000);
    scoped(release) float *arena = malloc(bytes + GUARD);
    for (int i = 0; i < 1024; i++)
        x[i] = input_at(i, 2);
    for (int32_t label = 1; label < 4; label++) {
        memset(arena, label == 2 ? 0xff : 0, bytes + GUARD); /* NaN */
        memset((char *)arena + bytes, 0x5a, GUARD);
        cr_assert_eq(n.step(x, &label, 0.05F, &loss[0]), 0);
        cr_assert_eq(step(x, &label, 0.05F, &loss[1], arena), 0);
        cr_expect_eq((double)loss[0], (double)loss[1]);
        cr_assert_eq(n.c.predict(x, y[0]), 0);
        cr_assert_eq(infer(x, y[1], arena), 0);
        cr_expect_arr_eq(y[0], y[1], sizeof y[0]);
        for (int i = 0; i < GUARD; i++)
            cr_assert_eq(((char *)arena)[bytes + (size_t)i], 0x5a);
    }
    dlclose(library);
    trained_free(&n);
}

/* ---- gradient accumulation ---- */

enum { SHARDS = 3 };

/* A training that accumulates gradients, compiled, beside an executor whose step has as many shards
 * as batches are accumulated. */
typedef struct {
    training t;
    temporary folder;
    adj_updates *whole;
    adj_exec *e;
    void *library;
    int (*add)(const float *, const int32_t *, float *), (*update)(float);
} accumulated;

static accumulated accumulated_new(training t)
{
    accumulated a = {.t = t, .folder = temporary_folder()};
    adj_updates *accumulate, *apply;
    net all = {t.g, t.images, adj_evaluation(adj_find(t.g, "logits")), NULL};
    a.whole = adj_data_parallel(t.updates, 1, 0, &(adj_data_parallel_opts){.shards = SHARDS});
    cr_assert_eq(adj_emit_accumulation(t.updates, &accumulate, &apply), ADJ_OK, "%s",
                 adj_graph_message(t.g));
    a.e = all.e = plan_of(
        t.g,
        &(adj_exec_opts){
            .n_fetch = 1, .fetch = &t.loss, .updates = a.whole, .backend = "naive", .seed = 5});
    emit_to(a.folder.s, "net", &all,
            &(adj_emit_opts){.updates = apply, .accumulate = accumulate, .loss = t.loss});
    shell(a.folder.s, "cc " STRICT " -O2 -c net.c && ! grep -q train_step net.c");
    a.library = visible(&a.folder);
    *(void **)&a.add = symbol_of(a.library, "net_accumulate");
    *(void **)&a.update = symbol_of(a.library, "net_update");
    return a;
}

static void accumulated_free(accumulated *a)
{
    dlclose(a->library);
    temporary_remove(&a->folder);
    adj_exec_free(a->e);
    training_free(&a->t);
}

/* Three batches for each of three updates, beside the library's step of three shards. */
static void expect_accumulated(training t, double tolerance)
{
    enum { UPDATES = 3 };
    scoped(accumulated_free) accumulated a = accumulated_new(t);
    for (int step = 0; step < UPDATES; step++) {
        float loss[SHARDS], want, rate = 0.02F;
        for (int k = 0; k < SHARDS; k++) {
            adj_node *x = adj_shard_node(a.whole, t.images, k);
            adj_node *labels = adj_shard_node(a.whole, t.labels, k);
            training_batch(a.e, x, labels, step * SHARDS + k);
            cr_assert_eq(a.add(adj_data(a.e, x), adj_data(a.e, labels), &loss[k]), 0);
        }
        cr_assert_eq(adj_set(a.e, t.lr, &rate, sizeof rate), ADJ_OK);
        cr_assert_eq(adj_run(a.e), ADJ_OK, "%s", adj_exec_message(a.e));
        cr_assert_eq(adj_get(a.e, t.loss, &want, sizeof want), ADJ_OK);
        cr_assert_eq(a.update(rate), 0);
        cr_expect_float_eq((double)loss[0], (double)want, tolerance * fmax(1, (double)want));
    }
    expect_arrays(a.library, a.e, tolerance);
}

/* Clipping applies to the mean; Adam counts updates: with a large epsilon, for otherwise steps of
 * tiny gradients are as large as others and rounding decides on them. Running statistics take the
 * mean of the batches' statistics. */
Test(emit_training, accumulated)
{
    const adj_model_opts one = {.batch = 1}, pair = {.batch = 2, .size.h = 8, .size.w = 8};
    const adj_optimizer_opts adam = {.kind = ADJ_ADAM, .clip_norm = 0.3, .epsilon = 0.01},
                             sgd = {0};
    expect_accumulated(training_of("lenet5", one, &with_momentum), 1e-5);
    expect_accumulated(training_of("lenet5", one, &adam), 1e-5);
    expect_accumulated(training_of("resnet8", pair, &sgd), 1e-4);
}

/* Each batch has another dropout. */
Test(emit_training, accumulated_with_dropout)
{
    scoped(accumulated_free) accumulated a = accumulated_new(training_of(
        "ds_cnn", (adj_model_opts){.batch = 1, .size.h = 12, .size.w = 6}, &with_momentum));
    static float x[72];
    float loss;
    const adj_node *step = NULL;
    for (int i = 0; i < adj_graph_node_count(a.t.g) && step == NULL; i++)
        if (adj_node_is_state(adj_graph_node_at(a.t.g, i)) &&
            adj_node_type(adj_graph_node_at(a.t.g, i)).dtype == ADJ_I32)
            step = adj_graph_node_at(a.t.g, i);
    cr_assert_not_null(step);
    for (int32_t label = 0; label < 3; label++)
        cr_assert_eq(a.add(x, &label, &loss), 0);
    cr_assert_eq(a.update(0.1F), 0);
    cr_expect_eq(*(const int32_t *)array_of(a.library, step), 3);
}

Test(emit_training, wrong_labels)
{
    trained n = trained_new(training_of("lenet5", (adj_model_opts){.batch = 2}, &with_momentum));
    static float x[2 * 1024];
    float loss = 7, before[20], after[20];
    cr_assert_eq(n.c.predict(x, before), 0);
    cr_expect_eq(n.step(x, (int32_t[]){3, 10}, 0.1F, &loss), -1);
    cr_expect_eq(n.step(x, (int32_t[]){-2, 1}, 0.1F, &loss), -1);
    cr_expect_eq(n.step(x, (int32_t[]){INT32_MAX, 1}, 0.1F, &loss), -1);
    cr_expect_eq((double)loss, 7);
    cr_assert_eq(n.c.predict(x, after), 0);
    cr_expect_arr_eq(before, after, sizeof before);
    cr_expect_eq(n.step(x, (int32_t[]){-1, 9}, 0.1F, &loss), 0);
    trained_free(&n);
}
