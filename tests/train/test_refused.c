/* test_refused.c - trainings that adj_fit refuses before the first step, because they would fail at
 * the end or leave weights that were never trained; and what ranks refuse to train with, by name.
 * The other rank is simulated: it sends this rank's numbers with one changed. Real ones are in
 * tests/mpi. */
#include <criterion/criterion.h>

#include "train/tiny.h"

static adj_dataset *make_data(void) { return tiny_data(12, 4, 4, 1, 2, 1); }

static int count_steps(void *user, const adj_fit_progress *now)
{
    (void)now;
    ++*(int *)user;
    return 0;
}

/* Expects adj_fit to refuse before a step, and returns the error. */
static adj_error refused(const adj_net *net, const adj_dataset *train, const adj_dataset *held_out,
                         adj_fit_opts o)
{
    adj_predictor *p = NULL;
    adj_error error = {0};
    int steps = 0;
    o.epochs = 2;
    o.batch = 4;
    o.exec.backend = "naive";
    o.exec.threads = 1;
    o.on.step = count_steps;
    o.on.user = &steps;
    cr_expect_neq(adj_fit(net, train, held_out, &o, &p, &error), ADJ_OK, "it is trained");
    cr_expect_neq(error.status, ADJ_ENOMEM, "%s", error.message);
    cr_expect_null(p);
    cr_expect_eq(steps, 0, "%d steps were made", steps);
    return error;
}

/* ---- names that depend on what the graph is built for ---- */

static adj_node *renamed(adj_node *x, int64_t classes, int training, void *user)
{
    (void)user;
    x = adj_relu(adj_layer_dense(x, training ? "train/hidden" : "test/hidden", 3, NULL));
    return adj_layer_dense(x, "logits", classes, NULL);
}

static adj_node *resized(adj_node *x, int64_t classes, int training, void *user)
{
    (void)user;
    x = adj_relu(adj_layer_dense(x, "hidden", training ? 3 : 5, NULL));
    return adj_layer_dense(x, "logits", classes, NULL);
}

/* A batch norm of training alone, and as many other parameters as *user says. */
static adj_node *only_trained(adj_node *x, int64_t classes, int training, void *user)
{
    static const char *const more[] = {"a", "b"};
    const adj_shape one = {1, {1}};
    if (training)
        x = adj_layer_batch_norm(x, "bn", &(adj_norm_layer){.training = 1});
    for (int i = 0; training && i < *(int *)user; i++)
        x = adj_add(x, adj_param(adj_node_graph(x), more[i], ADJ_F32, one, (adj_init){0}));
    return adj_layer_dense(x, "logits", classes, NULL);
}

/* They would be trained, and the predictor would compute without them. */
Test(refused, parameters_of_training_alone)
{
    scoped(release_dataset) adj_dataset *d = make_data();
    int more[] = {0, 2};
    const adj_net net = {.name = "mine", .build = only_trained, .user = &more[0]},
                  frozen = {.name = "mine",
                            .build = only_trained,
                            .user = &more[0],
                            .options.freeze = "bn/*"},
                  many = {.name = "mine", .build = only_trained, .user = &more[1]};
    static const char expected[] =
        "net mine: its training graph has parameters that its evaluation graph lacks: "
        "\"bn/gamma\", \"bn/beta\"";
    cr_expect_str_eq(refused(&net, d, d, (adj_fit_opts){0}).message, expected);
    cr_expect_str_eq(refused(&net, d, NULL, (adj_fit_opts){0}).message, expected);
    cr_expect_str_eq(refused(&frozen, d, NULL, (adj_fit_opts){0}).message, expected);
    expect_text(refused(&many, d, NULL, (adj_fit_opts){0}).message,
                "lacks: \"bn/gamma\", \"bn/beta\", \"a\", \"b\"");
}

Test(refused, parameters_of_other_names_in_evaluation)
{
    scoped(release_dataset) adj_dataset *d = make_data();
    const adj_net net = {.name = "mine", .build = renamed}, other = {.build = resized};
    static const char expected[] =
        "net mine: adj_copy_params: the source executor lacks \"test/hidden/w\", \"test/hidden/b\" "
        "(only the source has \"train/hidden/w\", \"train/hidden/b\")";
    /* without held-out data, too: the evaluation graph is the one whose parameters are kept */
    cr_expect_str_eq(refused(&net, d, d, (adj_fit_opts){0}).message, expected);
    cr_expect_str_eq(refused(&net, d, NULL, (adj_fit_opts){0}).message, expected);
    cr_expect_str_eq(refused(&other, d, NULL, (adj_fit_opts){0}).message,
                     "net net: adj_copy_params: \"hidden/w\" differs in type (got f32 [16, 3], "
                     "expected f32 [16, 5])");
}

/* ---- a checkpoint of other parameter groups ---- */

Test(refused, other_parameter_groups_than_the_checkpoint)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    scoped(release_dataset) adj_dataset *d = make_data();
    const adj_param_group groups[] = {{.pattern = "*/b"}, {.pattern = "*/w", .rate = 2}};
    const adj_optimizer_opts
        one = {.kind = ADJ_SGD, .weight_decay = 0.1, .groups = groups, .n_groups = 1},
        two = {.kind = ADJ_SGD, .weight_decay = 0.1, .groups = groups, .n_groups = 2},
        none = {.kind = ADJ_SGD, .weight_decay = 0.1};
    adj_fit_opts o = {.epochs = 2,
                      .batch = 4,
                      .exec.backend = "naive",
                      .exec.threads = 1,
                      .checkpoint.path = file.s,
                      .optimizer = one};
    adj_predictor_free(tiny_fit(&linear_net, d, NULL, &o));
    o.checkpoint.resume = 1;
    adj_predictor_free(tiny_fit(&linear_net, d, NULL, &o));
    o.optimizer = two;
    expect_text(refused(&linear_net, d, NULL, o).message, "entry groups differs");
    o.optimizer = none;
    expect_text(refused(&linear_net, d, NULL, o).message, "(got none, expected ");
}

/* ---- names and words that no file can hold ---- */

/* The data's second class has this name. */
static adj_error refused_name(const char *name, adj_fit_opts o)
{
    const char *const names[] = {"a", name};
    scoped(release_dataset) adj_dataset *d = make_data();
    d->class_names = names;
    return refused(&linear_net, d, NULL, o);
}

Test(refused, class_names)
{
    cr_expect_str_eq(refused_name("caf\xe9", (adj_fit_opts){0}).message,
                     "model card: the name of class 1 is not UTF-8 (got caf\xe9; rename the class "
                     "or its folder)");
    cr_expect_str_eq(refused_name(NULL, (adj_fit_opts){0}).message,
                     "fit: the name of class 1 is NULL");
}

static adj_node *named(adj_node *x, int64_t classes, int training, void *user)
{
    (void)training;
    return adj_layer_dense(adj_relu(adj_layer_dense(x, user, 2, NULL)), "logits", classes, NULL);
}

static adj_node *reserved(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_shape one = {1, {1}};
    (void)training;
    (void)user;
    adj_node *w = adj_param(adj_node_graph(x), "__metadata__", ADJ_F32, one, (adj_init){0});
    return adj_add(adj_layer_dense(x, "logits", classes, NULL), w);
}

Test(refused, names_of_parameters_and_of_the_net)
{
    scoped(release_dataset) adj_dataset *d = make_data();
    const adj_net odd = {.build = named, .user = (void *)"caf\xe9"}, taken = {.build = reserved},
                  net = {.name = "caf\xe9", .build = linear_build};
    expect_text(refused(&odd, d, d, (adj_fit_opts){0}).message, "name is not UTF-8 (got caf\xe9/");
    expect_text(refused(&taken, d, d, (adj_fit_opts){0}).message, "bad name (got __metadata__)");
    cr_expect_str_eq(refused(&net, d, d, (adj_fit_opts){0}).message,
                     "model card: the model's name is not UTF-8 (got caf\xe9)");
}

/* A checkpoint with such words could not be resumed. */
Test(refused, words_of_a_checkpoint)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    char patterns[300];
    const adj_net lines = {.name = "a\nb", .build = linear_build},
                  frozen = {.name = "mine", .build = linear_build, .options.freeze = patterns};
    adj_metadata note = {"note", "\xff"};
    const adj_fit_opts o = {
        .checkpoint.path = file.s, .checkpoint.n_metadata = 1, .checkpoint.metadata = &note};
    scoped(release_dataset) adj_dataset *d = make_data();
    memset(patterns, ',', sizeof patterns);
    memcpy(patterns, "*/b", 3);
    patterns[sizeof patterns - 1] = '\0';
    expect_text(refused(&linear_net, d, NULL, o).message, "is not two UTF-8 strings");
    note.key = NULL;
    expect_text(refused(&linear_net, d, NULL, o).message, "is not two UTF-8 strings");
    expect_text(refused(&lines, d, NULL, (adj_fit_opts){0}).message,
                "fit: model is invalid (got \"a\nb\", expected 1 to 199 bytes");
    expect_text(refused(&frozen, d, NULL, (adj_fit_opts){0}).message,
                "fit: freeze is invalid (got \"*/b,,");
    cr_expect_eq(files_in(&f), 0);
}

Test(refused, files_that_cannot_be_written)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name nowhere = in_folder(&f, "none/best");
    scoped(release_dataset) adj_dataset *d = make_data();
    expect_text(refused(&linear_net, d, d, (adj_fit_opts){.checkpoint.best = nowhere.s}).message,
                "none/best: No suc");
    expect_text(refused(&linear_net, d, d, (adj_fit_opts){.checkpoint.path = f.path}).message,
                "is not a regular file");
}

/* ---- data that the net cannot be trained on or evaluated with ---- */

Test(refused, data_of_another_net)
{
    const adj_net net = {.name = "mine", .build = linear_build, .options.classes = 2};
    const adj_net more = {.name = "mine", .build = linear_build, .options.classes = 5};
    const adj_net color = {.name = "mine", .build = linear_build, .options.size.c = 3};
    const char *const names[] = {"a", "b"}, *const others[] = {"a", "c"};
    scoped(release_dataset) adj_dataset *d = make_data(), *same = make_data();
    scoped(release_dataset) adj_dataset *two = tiny_data(12, 4, 4, 2, 2, 1);
    scoped(release_dataset) adj_dataset *wide = tiny_data(12, 4, 5, 1, 2, 1);
    adj_dataset no_size = *d, fixed = *d;
    no_size.size.h = 0;
    fixed.resize = ADJ_RESIZE_ERROR;
    d->class_names = names;
    same->class_names = others;
    const struct {
        const adj_net *net;
        const adj_dataset *train, *held_out;
        const char *words;
    } cases[] = {
        {&color, two, NULL, "net mine: images of 4x4x2 cannot become 4x4x3: expected the same num"},
        {&net, &no_size, NULL, "image size is out of range (got 0x4x1"},
        {&net, d, two, "held-out data: its model takes images of 1 channel (the data have 2)"},
        {&net, d, &no_size, "held-out data: images of 0x4x1 cannot become 4x4x1: expected sides"},
        {&net, d, same, "held-out data: class 1 of its model is b (in the data c)"},
        {&net, &fixed, wide, "held-out data: its model does not resize images (got 4x5, expected"},
        {&more, d, d, "held-out data: its model has 5 classes (the data have 2)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const adj_error e =
            refused(cases[i].net, cases[i].train, cases[i].held_out, (adj_fit_opts){0});
        expect_text(e.message, cases[i].words);
    }
}

/* A data set that the caller has filled. */
Test(refused, labels_and_moments_out_of_range)
{
    int32_t labels[12];
    scoped(release_dataset) adj_dataset *d = make_data();
    adj_dataset filled = *d, negative = *d;
    memcpy(labels, d->labels, sizeof labels);
    filled.labels = labels;
    negative.deviation[0] = -5;
    labels[7] = -1;
    expect_text(refused(&linear_net, &filled, NULL, (adj_fit_opts){0}).message,
                "fit: the label of image 7 is out of range (got -1, expected 0 to 1)");
    labels[7] = 2;
    expect_text(refused(&linear_net, d, &filled, (adj_fit_opts){0}).message,
                "held-out data: the label of image 7 is out of range (got 2");
    expect_text(refused(&linear_net, &negative, NULL, (adj_fit_opts){0}).message,
                "deviation of channel 0 is out of range (got ");

    const adj_fit_opts o = {.epochs = 1, .batch = 4, .exec.backend = "naive", .exec.threads = 1};
    scoped(release_predictor) adj_predictor *p = tiny_fit(&linear_net, d, NULL, &o);
    int64_t guarded[5] = {7};
    adj_score score;
    adj_error error;
    labels[7] = -1;
    cr_expect_eq(adj_predictor_evaluate(p, &filled, &score, guarded + 1, &error), ADJ_EARG);
    expect_text(error.message, "the label of image 7");
    cr_expect(guarded[0] == 7 && guarded[1] + guarded[2] + guarded[3] + guarded[4] == 0);
    cr_expect_eq(adj_predictor_save(p, NULL, 1, &(adj_metadata){"model", "other"}, &error),
                 ADJ_EARG);
    cr_expect_eq(adj_predictor_save(p, NULL, 1, &(adj_metadata){"optimizer", "x"}, &error), ADJ_OK);
}

Test(refused, options_that_cannot_be)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    scoped(release_dataset) adj_dataset *d = make_data();
    const adj_metadata epoch = {"epoch", "first"}, mean = {"mean", "1"},
                       kernels = {"selection", ""}, twice[] = {{"a", "1"}, {"a", "2"}};
    const struct {
        adj_fit_opts o;
        const char *words;
    } cases[] = {
        {{.loss.class_weights = (float[]){0, 0}}, "class_weights are all 0"},
        {{.loss.class_weights = (float[]){1, -1}}, "class_weights[1] is out of range (got -1"},
        {{.loss.class_weights = (float[]){NAN, 1}}, "class_weights[0] is out of range (got "},
        {{.checkpoint = {.path = file.s, .best = file.s}}, "are the same file (got "},
        {{.checkpoint = {.path = file.s, .n_metadata = 1, .metadata = &epoch}},
         "key \"epoch\" is "},
        {{.checkpoint = {.path = file.s, .n_metadata = 1, .metadata = &mean}}, "key \"mean\" is "},
        {{.checkpoint = {.path = file.s, .n_metadata = 1, .metadata = &kernels}},
         "\"selection\" is"},
        {{.checkpoint = {.path = file.s, .n_metadata = 2, .metadata = twice}}, "is given twice"},
        {{.checkpoint = {.path = file.s, .n_metadata = 1}}, "the list is NULL (got 1)"},
        {{.distributed.ranks = &(adj_ranks){.rank = 3, .size = 2}}, "got rank 3 of 2"},
        {{.distributed.ranks = &(adj_ranks){0}}, "got rank 0 of 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_text(refused(&linear_net, d, NULL, cases[i].o).message, cases[i].words);
    cr_expect_eq(files_in(&f), 0);
}

Test(refused, no_trainer)
{
    adj_error error;
    cr_expect_eq(adj_trainer_step(NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_trainer_end_epoch(NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_trainer_run(NULL, &error), ADJ_EARG);
    cr_expect_null(adj_trainer_predictor(NULL, &error));
    cr_expect_eq(adj_trainer_progress(NULL).epoch, 0);
}

/* More outputs than the data have classes and names: the card has no names. */
Test(refused, not_a_net_of_more_classes)
{
    const adj_net net = {.name = "mine", .build = linear_build, .options.classes = 5};
    const char *const names[] = {"a", "b"};
    scoped(release_dataset) adj_dataset *d = make_data();
    d->class_names = names;
    const adj_fit_opts o = {.epochs = 1, .batch = 4, .exec.backend = "naive", .exec.threads = 1};
    scoped(release_predictor) adj_predictor *p = tiny_fit(&net, d, NULL, &o);
    cr_expect_eq(adj_predictor_card(p)->options.classes, 5);
    cr_expect_null(adj_predictor_card(p)->class_names);
}

/* ---- a rank that is made up ---- */

typedef struct {
    int call, number; /* number of the all_gather call, and of the integer in it, that differs */
    int calls;
} other_rank;

static adj_status all_gather(void *group, const void *mine, size_t bytes, void *all,
                             adj_error *error)
{
    other_rank *o = group;
    char *its = (char *)all + bytes;
    (void)error;
    memcpy(all, mine, bytes);
    memcpy(its, mine, bytes);
    if (o->calls++ == o->call) {
        cr_assert_lt((size_t)o->number * sizeof(uint64_t), bytes, "number %d", o->number);
        its[(size_t)o->number * sizeof(uint64_t)] ^= 1;
    }
    return ADJ_OK;
}

static adj_status broadcast(void *group, void *data, size_t bytes, adj_error *error)
{
    (void)group, (void)data, (void)bytes, (void)error;
    return ADJ_OK;
}

Test(ranks, refused_by_name)
{
    enum { VERSION, SETTINGS, KERNELS, NOTHING };
    static const struct {
        int call, number;
        const char *label;
    } cases[] = {{VERSION, 0, "version of the library"}, {SETTINGS, 0, "model"},
                 {SETTINGS, 1, "training data"},         {SETTINGS, 2, "held-out data"},
                 {KERNELS, 0, "choice of kernels"},      {NOTHING, 0, NULL}};
    scoped(release_dataset) adj_dataset *d = make_data();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        other_rank other = {.call = cases[i].call, .number = cases[i].number};
        const adj_ranks ranks = {
            .size = 2, .all_gather = all_gather, .broadcast = broadcast, .group = &other};
        const adj_fit_opts o = {
            .epochs = 1, .batch = 4, .exec.threads = 1, .distributed.ranks = &ranks};
        scoped(release_trainer) adj_trainer *t = NULL;
        adj_error error = {0};
        char expected[100];
        const adj_status status = adj_trainer_new(&linear_net, d, d, &o, &t, &error);
        if (cases[i].label != NULL) {
            snprintf(expected, sizeof expected, "rank 1: its %s differs from rank 0's",
                     cases[i].label);
            cr_expect_eq(status, ADJ_EARG);
            cr_expect_str_eq(error.message, expected);
            cr_expect_null(t);
            cr_expect_eq(other.calls, cases[i].call + 1);
        } else {
            cr_expect_eq(status, ADJ_OK, "%s", error.message);
        }
    }
}
