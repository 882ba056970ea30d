/* test_fit.c - adj_fit against the same training written by hand on the public API of graphs and
 * executors, bit for bit; stopped, resumed and prolonged; and predictors. */
#include <criterion/criterion.h>
#include <string.h>

#include "train/tiny.h"

enum { N = 70, M = 25, H = 6, W = 5, C = 2, CLASSES = 3, BATCH = 16, STEPS = 5, EPOCHS = 3 };

static adj_dataset *make_data(int64_t n, unsigned seed)
{
    static const char *const names[CLASSES] = {"red", "green", "blue"};
    adj_dataset *d = tiny_data(n, H, W, C, CLASSES, seed);
    d->class_names = names;
    return d;
}

static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    (void)user;
    return tiny_layers(x, classes, training, 1, 1);
}

static const adj_net net = {.name = "tiny", .build = build};

static adj_predictor *fit(const adj_dataset *train, const adj_dataset *test, const adj_fit_opts *o)
{
    return tiny_fit(&net, train, test, o);
}

/* ---- the same by hand ---- */

typedef struct {
    adj_graph *g;
    adj_node *images, *labels, *lr, *logits, *loss;
    adj_exec *e;
} hand;

static hand hand_new(int64_t batch, int training)
{
    hand h = {.g = adj_graph_new()};
    h.images = adj_input(h.g, "images", ADJ_F32, (adj_shape){4, {batch, H, W, C}});
    h.logits = build(h.images, CLASSES, training, NULL);
    h.labels = adj_input(h.g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    h.loss = adj_loss_softmax(h.logits, h.labels, NULL);
    adj_node *fetch[] = {h.loss, h.logits};
    adj_exec_opts o = {.n_fetch = 2, .fetch = fetch, .backend = "naive", .threads = 1, .seed = 3};
    if (training) {
        h.lr = adj_input(h.g, "learning_rate", ADJ_F32, (adj_shape){0});
        o.updates = adj_training_updates(h.loss, &(adj_optimizer_opts){.momentum = 0.9});
    }
    cr_assert_eq(adj_exec_new(h.g, &o, &h.e), ADJ_OK, "%s", adj_exec_message(h.e));
    return h;
}

static void hand_train(hand *h, const adj_dataset *d)
{
    static float x[BATCH * H * W * C];
    static int32_t labels[BATCH];
    int64_t order[N];
    const adj_shape shape = {4, {BATCH, H, W, C}};

    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        adj_shuffle(N, 3, (uint64_t)epoch, order);
        for (int step = 0; step < STEPS; step++) {
            /* half a cosine */
            const double at = (double)(epoch * STEPS + step) / (EPOCHS * STEPS);
            const float rate = (float)(0.05 * 0.5 * (1 + cos(M_PI * at)));
            cr_assert_gt(adj_batch(d, order, step * BATCH, shape, x, labels, NULL), 0);
            adj_set(h->e, h->images, x, sizeof x);
            adj_set(h->e, h->labels, labels, sizeof labels);
            adj_set(h->e, h->lr, &rate, sizeof rate);
            cr_assert_eq(adj_run(h->e), ADJ_OK, "%s", adj_exec_message(h->e));
        }
    }
}

static void hand_free(hand *h)
{
    adj_exec_free(h->e);
    adj_graph_free(h->g);
}

Test(fit, is_the_loop_by_hand)
{
    scoped(release_dataset) adj_dataset *train = make_data(N, 1), *test = make_data(M, 2);
    const adj_fit_opts o = tiny_opts();
    scoped(release_predictor) adj_predictor *p = fit(train, test, &o);
    hand trained = hand_new(BATCH, 1), tested = hand_new(M, 0);
    static float x[M * H * W * C], logits[M * CLASSES], got[M * CLASSES], one[CLASSES], loss;
    static int32_t labels[M];
    int right = 0;

    hand_train(&trained, train);
    cr_assert_eq(adj_copy_params(tested.e, trained.e), ADJ_OK);
    for (int i = 0; i < M * H * W * C; i++) /* as the training set was */
        x[i] = ((float)test->images[i] - train->mean[i % C]) / train->deviation[i % C];
    for (int i = 0; i < M; i++)
        labels[i] = test->labels[i];
    adj_set(tested.e, tested.images, x, sizeof x);
    adj_set(tested.e, tested.labels, labels, sizeof labels);
    cr_assert_eq(adj_run(tested.e), ADJ_OK);
    adj_get(tested.e, tested.logits, logits, sizeof logits);
    adj_get(tested.e, tested.loss, &loss, sizeof loss);

    cr_assert_eq(adj_predict(p, M, test->images, got, NULL), ADJ_OK);
    int64_t confusion[CLASSES * CLASSES] = {0}, expected[CLASSES * CLASSES] = {0};
    for (int i = 0; i < M; i++) {
        double want[CLASSES];
        int best = 0;
        softmax(CLASSES, logits + i * CLASSES, want);
        for (int k = 0; k < CLASSES; k++) {
            cr_expect_float_eq((double)got[i * CLASSES + k], want[k], 1e-6);
            best = want[k] > want[best] ? k : best;
        }
        right += best == labels[i];
        expected[labels[i] * CLASSES + best]++;
        cr_assert_eq(adj_predict(p, 1, test->images + i * H * W * C, one, NULL), ADJ_OK);
        cr_expect_arr_eq(one, got + i * CLASSES, sizeof one);
    }
    adj_score s;
    cr_assert_eq(adj_predictor_evaluate(p, test, &s, confusion, NULL), ADJ_OK);
    cr_expect_eq(s.loss, (double)loss);
    cr_expect_eq(s.right, right);
    cr_expect_eq(s.count, M);
    cr_expect_eq(s.accuracy, (double)right / M);
    cr_expect_arr_eq(confusion, expected, sizeof expected);
    cr_expect_gt(right, M / 2, "%d: it has learnt nothing", right);
    hand_free(&tested);
    hand_free(&trained);
}

/* ---- files ---- */

Test(fit, saved_and_loaded)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "weights");
    scoped(release_dataset) adj_dataset *train = make_data(N, 1), *test = make_data(M, 2);
    const adj_fit_opts o = tiny_opts();
    scoped(release_predictor) adj_predictor *p = fit(train, test, &o), *q = NULL;
    const adj_predictor_opts naive = {.exec.backend = "naive", .exec.threads = 1};
    adj_error error = {0};
    adj_score s;

    cr_assert_eq(adj_predictor_save(p, file.s, 1, &(adj_metadata){"note", "mine"}, &error), ADJ_OK);
    cr_assert_eq(adj_predictor_load(file.s, &net, &naive, &q, &error), ADJ_OK, "%s", error.message);
    expect_same_predictions(p, q, test);
    const adj_model_card *card = adj_predictor_card(q);
    cr_expect_str_eq(card->model, "tiny");
    cr_expect_eq(card->options.size.h, H);
    cr_expect_eq(card->options.size.w, W);
    cr_expect_eq(card->options.size.c, C);
    cr_expect_eq(card->options.classes, CLASSES);
    cr_expect_str_eq(card->class_names[2], "blue");
    cr_expect_eq(card->seed, 3);
    cr_assert_eq(adj_predictor_evaluate(q, test, &s, NULL, &error), ADJ_OK);
    cr_expect_float_eq(card->accuracy, 100 * s.accuracy, 1e-6);

    static float floats[M * H * W * C], a[M * CLASSES], b[M * CLASSES];
    for (int i = 0; i < M * H * W * C; i++)
        floats[i] = test->images[i];
    cr_assert_eq(adj_predict(q, M, test->images, a, NULL), ADJ_OK);
    cr_assert_eq(adj_predict_floats(q, M, floats, b, NULL), ADJ_OK);
    cr_expect_arr_eq(a, b, sizeof a);
    cr_expect_eq(adj_predict(q, 0, NULL, NULL, NULL), ADJ_OK);
}

static void expect_refused(const char *path, const adj_net *n, const char *words)
{
    adj_predictor *p = NULL;
    adj_error error = {0};
    cr_expect_neq(adj_predictor_load(path, n, NULL, &p, &error), ADJ_OK, "%s", words);
    cr_expect_null(p);
    expect_text(error.message, words);
    expect_text(error.message, path);
}

Test(fit, files_of_others)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "weights"), none = in_folder(&f, "none");
    scoped(release_dataset) adj_dataset *train = make_data(N, 1);
    adj_fit_opts o = tiny_opts();
    o.epochs = 1;
    scoped(release_predictor) adj_predictor *p = fit(train, NULL, &o);

    cr_assert_eq(adj_predictor_save(p, file.s, 0, NULL, NULL), ADJ_OK);
    cr_expect_eq(adj_predictor_card(p)->accuracy, 0); /* nothing was held out */
    expect_refused(none.s, &net, "No such file");
    expect_refused(file.s, NULL, "model tiny is not built in; in C, load it");
    expect_refused(file.s, &(adj_net){.name = "lenet"},
                   "holds another model (got tiny, expected lenet)");
    expect_refused(file.s, &(adj_net){.build = build},
                   "holds another model (got tiny, expected net)");
    expect_refused(file.s, &(adj_net){.name = "tiny", .build = build, .options.classes = 4},
                   "6x5x2 images of 3 classes (expected 6x5x2 and 4)");
    expect_refused(file.s, &(adj_net){.name = "tiny", .build = build, .options.size = {7, 5, 2}},
                   "6x5x2 images of 3 classes (expected 7x5x2 and 3)");
    /* Each size that is left open is the card's. */
    expect_refused(file.s, &(adj_net){.name = "tiny", .build = build, .options.size.w = 4},
                   "6x5x2 images of 3 classes (expected 6x4x2 and 3)");
    scoped(release_predictor) adj_predictor *q = NULL;
    adj_error error = {0};
    const adj_net without_c = {
        .name = "tiny", .build = build, .options.size.h = 6, .options.size.w = 5};
    cr_assert_eq(adj_predictor_load(file.s, &without_c, NULL, &q, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect_eq(adj_predictor_card(q)->options.size.c, 2);
}

/* ---- stopped and gone on with ---- */

static int on_step(void *user, const adj_fit_progress *p)
{
    cr_expect_eq(p->steps, STEPS);
    cr_expect_eq(p->train.count, p->step < STEPS ? p->step * BATCH : N);
    cr_expect(p->train.loss > 0 && p->train.accuracy >= 0 && p->train.accuracy <= 1);
    return course_step(user, p);
}

static int on_epoch(void *user, const adj_fit_progress *p)
{
    cr_expect_eq(p->step, STEPS);
    cr_expect_eq(p->held_out.count, M);
    return course_epoch(user, p);
}

static adj_fit_opts watching(course *c)
{
    adj_fit_opts o = tiny_watched(c);
    o.augment.shift = 1;
    o.on.step = on_step;
    o.on.epoch = on_epoch;
    return o;
}

Test(fit, resumed_after_any_step)
{
    scoped(release_dataset) adj_dataset *train = make_data(N, 1), *test = make_data(M, 2);
    course c = {0};
    const adj_fit_opts o = watching(&c);
    adj_predictor_free(fit(train, test, &o));
    cr_expect_eq(c.steps, STEPS * EPOCHS);
    cr_expect_eq(c.epochs, EPOCHS);
    expect_resumed_after_any_step(&net, train, test, o);
}

Test(fit, prolonged)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    scoped(release_dataset) adj_dataset *train = make_data(N, 1), *other = make_data(N, 5),
                                        *few = make_data(BATCH, 5), *test = make_data(M, 2);
    course w = {.stop = 7};
    adj_fit_opts o = watching(&w);
    o.checkpoint.path = file.s;
    adj_predictor_free(fit(train, test, &o));
    o.checkpoint.resume = 1;
    o.epochs = 5;
    expect_no_fit(&net, train, NULL, &o, ADJ_EARG,
                  "only after its run is complete (1 of 3 epochs are done)");
    o.epochs = 2;
    expect_no_fit(&net, train, NULL, &o, ADJ_EARG, "entry epochs differs (got 2, expected 3");
    o.epochs = 3;
    expect_no_fit(&net, other, NULL, &o, ADJ_EARG, "trained on other data");
    expect_no_fit(&net, few, NULL, &o, ADJ_EARG,
                  "trained on other data"); /* with one step, not two */
    o.augment.shift = 0;
    expect_no_fit(&net, train, NULL, &o, ADJ_EARG, "entry shift differs (got 0, expected 1)");
    o.augment.shift = 1;
    o.loss.smoothing = 0.5;
    expect_no_fit(&net, train, NULL, &o, ADJ_EARG, "entry smoothing differs (got 0.5, expected 0)");
    o.loss.smoothing = 0;
    w.stop = 0;
    adj_predictor_free(fit(train, test, &o));
    o.epochs = 5;
    o.optimizer.lr = 0.01; /* a cosine of its own: 10 steps from 0.01 on */
    adj_predictor_free(fit(train, test, &o));
    for (int s = 0; s < 25; s++)
        cr_expect_float_eq(w.rate[s],
                           s < 15 ? 0.05 * 0.5 * (1 + cos(M_PI * s / 15))
                                  : 0.01 * 0.5 * (1 + cos(M_PI * (s - 15) / 10)),
                           1e-12, "step %d: %g", s, w.rate[s]);
}

/* Nothing can become better than the first epoch at a rate of nearly 0. */
Test(fit, patience_and_best)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name best = in_folder(&f, "best");
    scoped(release_dataset) adj_dataset *train = make_data(N, 1), *test = make_data(M, 2);
    course w = {0};
    adj_fit_opts o = watching(&w);
    adj_predictor *p, *q = NULL;
    o.epochs = 10;
    o.optimizer.lr = 1e-12;
    o.checkpoint.patience = 2;
    o.checkpoint.best = best.s;
    p = fit(train, test, &o);
    cr_expect_eq(w.epochs, 1 + 2);
    cr_expect_eq(w.last.best_epoch, 1);
    cr_assert_eq(adj_predictor_load(best.s, &net, NULL, &q, NULL), ADJ_OK);
    cr_expect_float_eq(adj_predictor_card(q)->accuracy, 100 * w.last.best, 1e-6);
    adj_predictor_free(q);
    adj_predictor_free(p);
}

/* ---- what is not possible ---- */

static adj_node *no_logits(adj_node *x, int64_t classes, int training, void *user)
{
    (void)x, (void)classes, (void)training, (void)user;
    return NULL;
}

static adj_node *other_logits(adj_node *x, int64_t classes, int training, void *user)
{
    return build(x, classes + 1, training, user);
}

static adj_node *steep(adj_node *x, int64_t classes, int training, void *user)
{
    (void)training, (void)user;
    x = adj_layer_dense(x, "a", 8, NULL);
    return adj_layer_dense(adj_mul(x, adj_mul(x, x)), "logits", classes, NULL);
}

Test(fit, bad_arguments)
{
    scoped(release_dataset) adj_dataset *train = make_data(N, 1), *test = make_data(M, 2);
    adj_dataset empty = {.classes = 3}, others = *test;
    adj_predictor *p;
    adj_fit_opts o = tiny_opts();
    others.classes = 4;

    cr_expect_eq(adj_fit(&net, train, test, &o, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_predict(NULL, 1, test->images, (float[3]){0}, NULL), ADJ_EARG);
    cr_expect_eq(adj_predictor_load(NULL, NULL, NULL, &p, NULL), ADJ_EARG);
    expect_no_fit(NULL, train, test, &o, ADJ_EARG, "net or result pointer is NULL");
    expect_no_fit(&net, NULL, test, &o, ADJ_EARG, "expected data sets");
    expect_no_fit(&net, &empty, test, &o, ADJ_EARG, "expected data sets");
    expect_no_fit(&net, train, &others, &o, ADJ_ESHAPE,
                  "number of classes differs in the held-out data (got 4");
    expect_no_fit(&(adj_net){0}, train, test, &o, ADJ_EARG, "build is NULL and name is not");
    expect_no_fit(&(adj_net){.name = "lenett"}, train, test, &o, ADJ_EARG, "did you mean lenet?");
    expect_no_fit(&(adj_net){.build = no_logits}, train, test, &o, ADJ_EARG, "returned no logits");
    expect_no_fit(&(adj_net){.build = other_logits}, train, test, &o, ADJ_ESHAPE,
                  "(got rank 2, [16, 4], expected [16, 3])");
    expect_no_fit(&(adj_net){.build = build, .options.classes = 2}, train, test, &o, ADJ_ESHAPE,
                  "fewer classes than in the data (got 2, expected 3)");
    expect_no_fit(&(adj_net){.build = build, .options.size.h = 1 << 30}, train, test, &o, ADJ_EARG,
                  "image size is out of range");
    const struct {
        adj_fit_opts o;
        adj_status status;
        const char *words;
    } bad[] = {{{.batch = -1}, ADJ_EARG, "batch is out of range (got -1, expected 1 to 100000)"},
               {{.optimizer.lr = NAN}, ADJ_EARG, "lr is out of range (got nan"},
               {{.augment.shift = 9}, ADJ_EARG, "shift is out of range (got 9, expected 0 to 8)"},
               {{.checkpoint.path = "/nowhere/checkpoint"}, ADJ_EIO, "/nowhere/checkpoint"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_no_fit(&net, train, test, &bad[i].o, bad[i].status, bad[i].words);
    expect_no_fit(&(adj_net){.build = build, .options.freeze = "nothing/*"}, train, test, &o,
                  ADJ_EARG, "freeze nothing/*: matches no parameter (the first is conv/w)");
    o.optimizer.lr = 1e6;
    expect_no_fit(&(adj_net){.build = steep}, train, test, &o, ADJ_EARG, "not finite in step");
}
