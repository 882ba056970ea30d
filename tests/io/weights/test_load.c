/* test_load.c - loading in part, what is reported of it, and training executors; model cards:
 * written as metadata, read back, and rejected. */
#include <math.h>

#include "io/weights/net.h"
#include "io/weights/weights.h"
#include "tests/io/scoped.h"
#include "tests/training.h"

TestSuite(load, .init = enter_weights, .fini = leave_folder);
TestSuite(card, .init = enter_weights, .fini = leave_folder);

enum { REPORTS = 64 };

typedef struct {
    int n;
    struct {
        adj_weight_fate fate;
        char name[32], tensor[32], why[200];
    } of[REPORTS];
} reports;

static void keep(void *user, const adj_weight_report *r)
{
    reports *all = user;
    cr_assert_lt(all->n, REPORTS);
    all->of[all->n].fate = r->fate;
    snprintf(all->of[all->n].name, 32, "%s", r->name != NULL ? r->name : "");
    snprintf(all->of[all->n].tensor, 32, "%s", r->tensor);
    snprintf(all->of[all->n].why, 200, "%s", r->why);
    all->n++;
}

/* The report of that parameter, or of that tensor if it is not used. */
static int find(const reports *all, const char *name)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->of[i].name, name) == 0 ||
            (all->of[i].fate == ADJ_WEIGHT_UNUSED && strcmp(all->of[i].tensor, name) == 0))
            return i;
    cr_assert_fail("no report of %s", name);
    return -1;
}

/* PyTorch's file with a head of four classes, without dw.weight. */
Test(load, in_part)
{
    static reports all;
    adj_error error = {0};
    torch.tensor[9].shape = (adj_shape){2, {4, 5}};
    torch.tensor[10].shape = (adj_shape){1, {4}};
    torch.tensor[6].name = "other.weight";
    write_weights(DICT + 1, torch.tensor);
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    const adj_node *head = adj_find(n.g, "logits/w");
    scoped(release) double *before = fixture_get(n.e, head);
    adj_weights_opts o = {.map = "pytorch", .report = keep, .user = &all};
    cr_expect_eq(adj_weights_load(n.e, path.s, &o, &error), ADJ_EIO);
    expect_text(error.message, "no tensor dw.weight (for dw/w)");
    cr_expect_eq(all.n, 0);

    o.partial = 1;
    o.fresh = "fc1/b,nothing/*";
    cr_assert_eq(adj_weights_load(n.e, path.s, &o, &error), ADJ_OK, "%s", error.message);
    scoped(release) double *after = fixture_get(n.e, head);
    scoped(release) double *conv = fixture_get(n.e, adj_find(n.g, "conv1/w"));
    expect_close(after, before, 15, 0, 0, "head");
    cr_expect_eq(conv[1], (double)torch.value[0][18]); /* [0][0][0][1] is [1][0][0][0] of theirs */
    static const struct {
        const char *name, *tensor, *why;
        adj_weight_fate fate;
    } want[] = {
        {"conv1/w", "conv1.weight", "", ADJ_WEIGHT_LOADED},
        {"bn1/running", "bn1.running_mean", "", ADJ_WEIGHT_LOADED},
        {"dw/w", "dw.weight", "the file has no tensor dw.weight", ADJ_WEIGHT_MISSING},
        {"fc1/b", "fc1/b", "", ADJ_WEIGHT_FRESH},
        {"logits/w", "fc2.weight", "got f32 [4, 5], [5, 4] mapped, expected f32 [5, 3]",
         ADJ_WEIGHT_UNFIT},
        {"logits/b", "fc2.bias", "got f32 [4], expected f32 [3]", ADJ_WEIGHT_UNFIT},
        {"other.weight", "other.weight", "", ADJ_WEIGHT_UNUSED},
        {"bn1.num_batches_tracked", "bn1.num_batches_tracked", "", ADJ_WEIGHT_UNUSED},
        {"fc1.bias", "fc1.bias", "", ADJ_WEIGHT_UNUSED},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        int k = find(&all, want[i].name);
        cr_expect_eq(all.of[k].fate, want[i].fate, "%s", want[i].name);
        cr_expect_str_eq(all.of[k].tensor, want[i].tensor);
        expect_text(all.of[k].why, want[i].why);
    }
    cr_expect_eq(all.n, 10 + 3);

    o = (adj_weights_opts){.partial = 1}; /* their names, no map */
    cr_expect_eq(adj_weights_load(n.e, path.s, &o, &error), ADJ_EIO);
    expect_text(error.message, "expected adjoint's names; for the file's, use --map pytorch");
}

/* y = x w + b trained by momentum. */
static adj_exec *trainer(adj_graph *g, uint64_t seed)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {1, 3}});
    adj_node *lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *loss =
        adj_reduce_sum(adj_square(adj_layer_dense(x, "fc", 2, NULL)), (adj_axes){.n = ADJ_ALL});
    adj_updates *u = adj_training_updates(loss, &(adj_optimizer_opts){.momentum = 0.9});
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &loss, .updates = u, .backend = "naive", .seed = seed};
    adj_exec *e = plan_of(g, &o);
    set_values(e, x, (double[]){1, 1, 1});
    set_values(e, lr, (double[]){0.01});
    cr_assert_eq(adj_run(e), ADJ_OK);
    return e;
}

Test(load, a_training_executor_from_weights_alone)
{
    file_name all = in_folder(&here, "all.safetensors"),
              some = in_folder(&here, "some.safetensors");
    const float w[6] = {1, 2, 3, 4, 5, 6}, b[2] = {7, 8};
    const adj_tensor t[3] = {{"fc/w", ADJ_ELEM_F32, {2, {3, 2}}, w},
                             {"fc/b", ADJ_ELEM_F32, {1, {2}}, b},
                             {"fc/w/momentum", ADJ_ELEM_F32, {2, {3, 2}}, w}};
    adj_error error = {0};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = trainer(g, 1);
    float got[6], zero[6] = {0};
    cr_assert_eq(adj_weights_save(e, all.s, 0, NULL, &error), ADJ_OK, "%s", error.message);
    write_weights(2, t);
    cr_assert_eq(adj_tensors_write(some.s, 3, t, 0, NULL, &error), ADJ_OK);

    cr_assert_eq(adj_get(e, adj_find(g, "fc/w/momentum"), got, sizeof got), ADJ_OK);
    cr_assert_neq(memcmp(got, zero, sizeof got), 0);
    cr_assert_eq(adj_weights_load(e, path.s, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_get(e, adj_find(g, "fc/w"), got, sizeof got), ADJ_OK);
    cr_expect_arr_eq(got, w, sizeof w);
    cr_assert_eq(adj_get(e, adj_find(g, "fc/w/momentum"), got, sizeof got), ADJ_OK);
    cr_expect_arr_eq(got, zero, sizeof zero);

    /* one state of two is a damaged checkpoint; and a checkpoint has to have them */
    cr_expect_eq(adj_weights_load(e, some.s, NULL, &error), ADJ_EIO);
    expect_text(error.message, "no tensor fc/b/momentum");
    const adj_weights_opts exact = {.exact = 1};
    cr_expect_eq(adj_weights_load(e, path.s, &exact, &error), ADJ_EIO);
    cr_expect_eq(adj_weights_load(e, all.s, &exact, &error), ADJ_OK, "%s", error.message);
}

Test(load, elements_that_cannot_be_had)
{
    const double w[6] = {1, 2, 3, 4, 5, 0.1};
    const int64_t b[2] = {7, 8};
    adj_tensor t[2] = {{"fc/w", ADJ_ELEM_F64, {2, {3, 2}}, w}, {"fc/b", ADJ_ELEM_F64, {1, {2}}, w}};
    adj_error error = {0};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = trainer(g, 1);
    float got[6];
    write_weights(2, t);
    cr_assert_eq(adj_weights_load(e, path.s, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_get(e, adj_find(g, "fc/w"), got, sizeof got), ADJ_OK);
    cr_expect_eq(got[5], 0.1F);
    const adj_weights_opts exact = {.exact = 1};
    cr_expect_eq(adj_weights_load(e, path.s, &exact, &error), ADJ_ESHAPE);
    expect_text(error.message, "got f64 [3, 2], expected f32 [3, 2]");
    t[1] = (adj_tensor){"fc/b", ADJ_ELEM_I64, {1, {2}}, b};
    write_weights(2, t);
    cr_expect_eq(adj_weights_load(e, path.s, NULL, &error), ADJ_ESHAPE);
    expect_text(error.message, "got i64 [2], expected f32 [2]");
}

/* A parameter and a state, which differ with the seed. */
static adj_exec *executor(adj_graph *g, uint64_t seed, int64_t width)
{
    const adj_init normal = {.kind = ADJ_INIT_NORMAL, .b = 1};
    adj_node *w = adj_param(g, "fc/w", ADJ_F32, (adj_shape){2, {3, width}}, normal);
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {1, 3}});
    adj_node *s = adj_state(g, "fc/s", ADJ_F32, (adj_shape){2, {1, width}}, normal);
    adj_node *y = adj_add(adj_matmul(x, w, 0), s);
    return plan_of(g,
                   &(adj_exec_opts){.n_fetch = 1, .fetch = &y, .backend = "naive", .seed = seed});
}

/* Both, one after the other. */
typedef struct {
    char bytes[64];
} values;

static values values_of(adj_exec *e)
{
    values v = {{0}};
    copy_all_params(e, v.bytes, sizeof v.bytes);
    return v;
}

static int has_values(adj_exec *e, const values *v)
{
    const values now = values_of(e);
    return memcmp(&now, v, sizeof now) == 0;
}

Test(load, what_was_saved)
{
    enum { N = 4 };
    static const int64_t width[N] = {2, 2, 2, 4};
    adj_graph *g[N];
    adj_exec *e[N];
    values own[N];
    adj_error error = {0};
    for (int i = 0; i < N; i++) {
        g[i] = adj_graph_new();
        e[i] = executor(g[i], (uint64_t)i + 1, width[i]);
        own[i] = values_of(e[i]);
        cr_assert(i == 0 || !has_values(e[0], &own[i]));
    }
    cr_assert_eq(adj_weights_save(e[0], path.s, 1, &(adj_metadata){"model", "m"}, &error), ADJ_OK,
                 "%s", error.message);
    cr_assert_eq(adj_weights_load(e[1], path.s, NULL, &error), ADJ_OK, "%s", error.message);
    cr_expect(has_values(e[1], &own[0]));

    uint8_t bytes[1024];
    scoped(release_tensors) adj_tensors *t = NULL;
    const size_t n = get_file(path.s, bytes, sizeof bytes);
    cr_assert_eq(adj_tensors_from_memory(bytes, n, &t), ADJ_OK, "%s", t->message);
    cr_expect_eq(adj_weights_set(e[2], t, NULL, &error), ADJ_OK, "%s", error.message);
    cr_expect(has_values(e[2], &own[0]));
    cr_expect_eq(adj_weights_set(e[2], NULL, NULL, &error), ADJ_EARG);

    /* another shape: refused, nothing set */
    cr_expect_eq(adj_weights_load(e[3], path.s, NULL, &error), ADJ_ESHAPE);
    expect_text(error.message, "got f32 [3, 2], expected f32 [3, 4]");
    cr_expect(has_values(e[3], &own[3]));
    /* a parameter missing */
    cr_assert_eq(adj_tensors_write(path.s, 0, NULL, 0, NULL, NULL), ADJ_OK);
    cr_expect_eq(adj_weights_load(e[1], path.s, NULL, &error), ADJ_EIO);
    expect_text(error.message, "no tensor fc/");
    cr_expect_eq(adj_weights_load(e[1], in_folder(&here, "none").s, NULL, &error), ADJ_EIO);
    /* no executor, and one without a plan: the file stays */
    scoped(release_exec) adj_exec *failed = NULL;
    adj_node *w = adj_find(g[0], "fc/w");
    const adj_exec_opts unknown = {.n_fetch = 1, .fetch = &w, .backend = "typo"};
    cr_assert_eq(adj_exec_new(g[0], &unknown, &failed), ADJ_EARG);
    cr_expect_eq(adj_exec_stats(failed).threads, 0);
    cr_assert_eq(adj_weights_save(e[0], path.s, 0, NULL, &error), ADJ_OK);
    adj_exec *const none[] = {NULL, failed};
    static const char *const why[] = {"weights: the executor is NULL",
                                      "weights: adj_exec_new: unknown backend"};
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(adj_weights_save(none[i], path.s, 0, NULL, &error), ADJ_EARG);
        expect_text(error.message, why[i]);
        cr_expect_eq(adj_weights_load(none[i], path.s, NULL, &error), ADJ_EARG);
        expect_text(error.message, why[i]);
    }
    cr_expect_eq(adj_weights_load(e[0], path.s, NULL, &error), ADJ_OK, "%s", error.message);
    for (int i = 0; i < N; i++) {
        adj_exec_free(e[i]);
        adj_graph_free(g[i]);
    }
}

/* ---- model cards ---- */

static const char *const names[] = {"cat", "dog \"two\"", "M\xc3\xa4use"};
static const adj_model_card card = {.model = "mobilenet_v1_0.5_128",
                                    .options.multiplier = 0.5,
                                    .options.size = {128, 96, 3},
                                    .options.format = ADJ_NCHW,
                                    .mean = {0.5, 100, 3},
                                    .deviation = {1.5, 2, 255},
                                    .options.classes = 3,
                                    .class_names = names,
                                    .resize = "auto",
                                    .normalized = 1,
                                    .low = -2.5,
                                    .high = 2,
                                    .precision = ADJ_PRECISION_BF16,
                                    .math = ADJ_MATH_FAST,
                                    .accuracy = 98.75,
                                    .seed = INT64_MAX};

static const adj_metadata expected[] = {
    {"adjoint.version", ADJ_VERSION_TEXT},
    {"model", "mobilenet_v1_0.5_128"},
    {"multiplier", "0.5"},
    {"input", "[128,96,3]"},
    {"format", "NCHW"},
    {"mean", "[0.5,100.0,3.0]"},
    {"deviation", "[1.5,2.0,255.0]"},
    {"adjoint.input", "normalized"},
    {"adjoint.range", "[-2.5,2.0]"},
    {"classes", "3"},
    {"class_names", "[\"cat\",\"dog \\\"two\\\"\",\"M\xc3\xa4use\"]"},
    {"resize", "auto"},
    {"precision", "bf16"},
    {"math", "fast"},
    {"accuracy", "98.75"},
    {"seed", "9223372036854775807"},
};
enum { ENTRIES = sizeof expected / sizeof expected[0] };

Test(card, there_and_back)
{
    adj_metadata *list = NULL;
    adj_model_card *back = NULL;
    adj_error error = {0};
    int n = 0;
    cr_assert_eq(adj_model_card_write(&card, &list, &n, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(n, ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
        cr_expect_str_eq(list[i].key, expected[i].key);
        cr_expect_str_eq(list[i].value, expected[i].value);
    }
    adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_write(path.s, 0, NULL, n, list, NULL), ADJ_OK);
    cr_assert_eq(adj_tensors_read(path.s, &t), ADJ_OK);
    cr_expect_eq(t->n_metadata, ENTRIES);
    cr_expect_str_eq(t->metadata[1].value, card.model);
    cr_assert_eq(adj_model_card_read(t, &back, &error), ADJ_OK, "%s", error.message);
    cr_expect_str_eq(back->model, card.model);
    cr_expect_str_eq(back->resize, "auto");
    cr_expect_eq(back->normalized, 1);
    cr_expect(back->low == -2.5 && back->high == 2);
    cr_expect(back->options.multiplier == 0.5 && back->options.size.h == 128 &&
              back->options.size.w == 96 && back->options.size.c == 3 &&
              back->options.format == ADJ_NCHW && back->options.classes == 3 &&
              back->precision == ADJ_PRECISION_BF16 && back->math == ADJ_MATH_FAST &&
              back->accuracy == 98.75 && back->seed == INT64_MAX);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(back->mean[i], card.mean[i]);
        cr_expect_eq(back->deviation[i], card.deviation[i]);
        cr_expect_str_eq(back->class_names[i], names[i]);
    }
    free(back);
    free(list);
    adj_tensors_free(t);

    /* a file of others: nothing is known */
    cr_assert_eq(adj_model_card_from_metadata(0, NULL, &back, &error), ADJ_OK, "%s", error.message);
    cr_expect(back->model == NULL && back->options.classes == 0 && back->class_names == NULL &&
              back->options.size.h == 0 && back->deviation[0] == 0 && back->accuracy == 0);
    free(back);

    const adj_metadata old[] = {/* a checkpoint of version 0.2.0 */
                                {"checkpoint", "adjoint 2"},
                                {"height", "20"},
                                {"width", "24"},
                                {"channels", "3"}};
    cr_assert_eq(adj_model_card_from_metadata(4, old, &back, &error), ADJ_OK, "%s", error.message);
    cr_expect(back->options.size.h == 20 && back->options.size.w == 24 &&
              back->options.size.c == 3 && back->deviation[0] == 0);
    free(back);

    const adj_metadata theirs = {"format", "pt"}; /* as PyTorch's programs write */
    cr_assert_eq(adj_model_card_from_metadata(1, &theirs, &back, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect(back->model == NULL && back->options.format == ADJ_NHWC);
    free(back);
}

static const adj_metadata lies[] = {
    {"input", "[128,96]"},
    {"input", "[128,96,0]"},
    {"input", "[1.5,96,3]"},
    {"input", "[1e9,96,3]"},
    {"input", "128"},
    {"input", "[\"1\",2,3]"},
    {"input", "["},
    {"resize", "crop"},
    {"adjoint.input", "bytes"},
    {"adjoint.range", "[0]"},
    {"adjoint.range", "[0,256]"},
    {"mean", "[1,2]"},
    {"mean", "[1e999,2,3]"},
    {"deviation", "[1,0,1]"},
    {"deviation", "[-1,1,1]"},
    {"classes", "0"},
    {"classes", "100001"},
    {"classes", "two"},
    {"classes", "4"},
    {"class_names", "[1,2,3]"},
    {"class_names", "{}"},
    {"class_names", "[\"a\",\"b\"]"},
    {"multiplier", "-1"},
    {"multiplier", "nan"},
    {"accuracy", "101"},
    {"seed", "-1"},
    {"seed", "1.5"},
    {"format", "NWHC"},
    {"precision", "f8"},
    {"math", "slow"},
};

Test(card, is_not_believed)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        adj_metadata list[ENTRIES];
        adj_model_card *back = NULL;
        adj_error error = {0};
        char words[80];
        memcpy(list, expected, sizeof list);
        for (int k = 0; k < ENTRIES; k++)
            if (strcmp(list[k].key, lies[i].key) == 0)
                list[k].value = lies[i].value;
        cr_expect_eq(adj_model_card_from_metadata(ENTRIES, list, &back, &error), ADJ_EIO, "%s %s",
                     lies[i].key, lies[i].value);
        snprintf(words, sizeof words, "entry %s is invalid (got ",
                 strcmp(lies[i].value, "4") == 0 ? "class_names" : lies[i].key);
        cr_expect_not_null(strstr(error.message, words), "%s: %s", words, error.message);
        cr_expect_null(back);
    }
}

Test(card, cannot_be_written)
{
    adj_metadata *list = NULL;
    int n = 1;
    adj_error error;
    const char *bad[] = {"a", "\xff", NULL};
    adj_model_card c = {.model = "\xff"};
    cr_expect_eq(adj_model_card_write(&c, &list, &n, &error), ADJ_EARG);
    c = (adj_model_card){.model = "lenet", .options.classes = 2, .class_names = bad};
    cr_expect_eq(adj_model_card_write(&c, &list, &n, &error), ADJ_EARG);
    c = (adj_model_card){.model = "lenet", .accuracy = INFINITY};
    cr_expect_eq(adj_model_card_write(&c, &list, &n, &error), ADJ_EARG);
    c = (adj_model_card){.model = "lenet", .options.classes = 3, .class_names = bad};
    bad[1] = "b";
    cr_expect_eq(adj_model_card_write(&c, &list, &n, &error), ADJ_EARG);
    expect_text(error.message, "model card: the name of class 2 is not UTF-8 (got NULL");
    cr_expect(list == NULL && n == 0);
    adj_model_card *none;
    cr_expect_eq(adj_model_card_from_metadata(1, NULL, &none, &error), ADJ_EARG);
    expect_text(error.message, "model card: metadata is NULL (got n 1)");
    cr_expect_null(none);
}

Test(card, fits_the_data)
{
    static const char *const others[] = {"cat", "dog \"two\"", "mouse"};
    const adj_model_card none = {0};
    adj_error error;
    cr_expect_eq(adj_model_card_check(&card, 3, 3, names, &error), ADJ_OK);
    cr_expect_eq(adj_model_card_check(&card, 1, 3, NULL, &error), ADJ_OK); /* gray is repeated */
    cr_expect_eq(adj_model_card_check(&card, 4, 3, NULL, &error), ADJ_OK); /* alpha is laid over */
    cr_expect_eq(adj_model_card_check(&none, 4, 7, names, &error), ADJ_OK);
    cr_expect_eq(adj_model_card_check(&card, 3, 10, NULL, &error), ADJ_ESHAPE);
    cr_expect_str_eq(error.message, "its model has 3 classes (the data have 10)");
    cr_expect_eq(adj_model_card_check(&card, 2, 3, NULL, &error), ADJ_ESHAPE);
    cr_expect_str_eq(error.message, "its model takes images of 3 channels (the data have 2)");
    cr_expect_eq(adj_model_card_check(&card, 3, 3, others, &error), ADJ_ESHAPE);
    cr_expect_str_eq(error.message, "class 2 of its model is M\xc3\xa4use (in the data mouse)");
}
