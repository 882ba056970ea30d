/* test_convert_onnx.c - weights as the network of an ONNX file, and back: each form computes what
 * the other does, and the statistics of batch norms go on being trained. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "adjoint_onnx.h"
#include "cli/rows.h"
#include "graph/op.h"
#include "small_data.h"

static void release_onnx(adj_onnx_net **net) { adj_onnx_free(*net); }

TestSuite(convert_onnx, .init = enter_small_data, .fini = leave);

/* Trains a model for an epoch. */
static void train(const char *model)
{
    tool(0, "train --model %s --data . --epochs 1 --threads 1 --out weights.safetensors", model);
}

enum { BATCH = 3, MOST = 3 * 32 * 32 * 3, CLASSES = 10 };

/* Fills out with the first results of the graph, which it frees. */
static void run(adj_graph *g, adj_node *x, adj_node *y, const adj_tensors *t, float out[])
{
    static float value[MOST];
    adj_error error = {0};
    const int64_t n = adj_shape_elems(adj_node_type(x).shape);
    cr_assert_leq(n, MOST);
    const int64_t results = adj_shape_elems(adj_node_type(y).shape);
    cr_assert_leq(results, BATCH * CLASSES);
    memset(out, 0, BATCH * CLASSES * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        value[i] = (float)(i * 7919 % 1009) / 1009 - 0.4F;
    adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
    if (t != NULL)
        cr_assert_eq(adj_weights_set(e, t, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert(adj_set(e, x, value, (size_t)n * sizeof *value) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_assert_eq(adj_get(e, y, out, (size_t)results * sizeof *out), ADJ_OK);
    adj_exec_free(e);
    adj_graph_free(g);
}

/* Runs a built-in model with the weights of a file. */
static void run_model(const char *model, int64_t side, int64_t channels, float out[])
{
    scoped(release_tensors) adj_tensors *t = tensors_of("weights.safetensors");
    adj_graph *g = adj_graph_new();
    const adj_model_opts o = {.batch = BATCH, .size.h = side, .size.w = side, .size.c = channels};
    adj_node *y = adj_model_logits(g, adj_model_find(model, NULL), &o);
    run(g, adj_find(g, "images"), y, t, out);
}

/* Runs the network of an ONNX file, with the weights of another file (NULL: its own). */
static void run_net(const char *path, const char *with, int64_t classes, float out[])
{
    scoped(release_tensors) adj_tensors *t = with != NULL ? tensors_of(with) : NULL;
    scoped(release_onnx) adj_onnx_net *n = NULL;
    adj_graph *g = adj_graph_new();
    adj_error error = {0};
    cr_assert_eq(
        adj_onnx_load(g, path, &(adj_onnx_opts){.batch = BATCH, .classes = classes}, &n, &error),
        ADJ_OK, "%s", error.message);
    run(g, n->input[0], n->output[0], t, out);
}

static void expect_close(const float a[], const float b[])
{
    for (int i = 0; i < BATCH * CLASSES; i++)
        cr_assert(fabsf(a[i] - b[i]) <= 1e-5F * (1 + fabsf(b[i])), "%d: %g, expected %g", i,
                  (double)a[i], (double)b[i]);
}

/* The network computes what the model does with these weights, and its own parameters, as a file of
 * weights, are those with which it does so. */
Test(convert_onnx, there_and_back)
{
    static float expected[BATCH * CLASSES], got[BATCH * CLASSES];
    train("resnet20");
    run_model("resnet20", 32, 3, expected);
    prints(0, "network written to ", "convert weights.safetensors net.onnx");
    run_net("net.onnx", NULL, 0, got);
    expect_close(got, expected);

    tool(0, "convert net.onnx back.safetensors");
    prints(0, "model: net.onnx\n", "inspect back.safetensors");
    expect_text(ran.out, "input: [32,32,3]\n");
    expect_text(ran.out, "bn1/running_var ");
    run_net("net.onnx", "back.safetensors", 0, got);
    expect_close(got, expected);
    tool(0, "eval --model net.onnx --weights back.safetensors --data .");

    /* a copy of the network */
    tool(0, "convert net.onnx other.onnx");
    run_net("other.onnx", NULL, 0, got);
    expect_close(got, expected);
}

/* The file's parameters have the names and shapes of the model's. */
Test(convert_onnx, weights_of_the_model)
{
    static float expected[BATCH * CLASSES], got[BATCH * CLASSES];
    train("lenet");
    run_model("lenet", 28, 1, expected);
    tool(0, "convert weights.safetensors net.onnx");
    tool(0, "convert net.onnx back.safetensors");
    tool(0, "convert back.safetensors other.onnx --model lenet");
    run_net("other.onnx", NULL, 0, got);
    expect_close(got, expected);
}

/* The file's last layer has 10 classes, that of the weights 2, and so has the written network. */
Test(convert_onnx, trained_network)
{
    static float expected[BATCH * CLASSES], got[BATCH * CLASSES];
    train("lenet");
    tool(0, "convert weights.safetensors net.onnx");
    put_class("data/a", "a", 6, 28, 28, 1);
    put_class("data/b", "b", 6, 28, 28, 1);
    tool(0, "train --model net.onnx --data data --epochs 1 --head new --out back.safetensors");
    tool(0, "convert back.safetensors other.onnx --model net.onnx");
    run_net("net.onnx", "back.safetensors", 2, expected);
    run_net("other.onnx", NULL, 0, got);
    cr_expect(got[0] != 0 && got[6] == 0);
    expect_close(got, expected);
}

/* Running statistics of a model of one's own are states after import, which training updates. */
Test(convert_onnx, statistics_are_trained_further)
{
    train("resnet20");
    tool(0, "convert weights.safetensors net.onnx");
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_onnx) adj_onnx_net *n = NULL;
    adj_error error = {0};
    cr_assert_eq(
        adj_onnx_load(g, "net.onnx", &(adj_onnx_opts){.batch = 2, .training = 1}, &n, &error),
        ADJ_OK, "%s", error.message);
    adj_node *mean = adj_find(g, "bn1/running_mean");
    cr_assert(mean != NULL && adj_node_is_state(mean));
    cr_expect_eq(adj_updates_count(adj_layer_updates(g)), 2 * 21);
}

/* Trains a small model on color images of the classes a and b, and writes it as an ONNX file. */
static void train_colors(void)
{
    put_class("colors/a", "a", 6, 28, 28, 3);
    put_class("colors/b", "b", 6, 28, 28, 3);
    tool(0, "train --model lenet --data colors --epochs 1 --threads 1 --out weights.safetensors");
    tool(0, "convert weights.safetensors net.onnx");
}

/* Mean, deviation and class names go with the network: it predicts as the weights do, and weights
 * made from it hold them. */
Test(convert_onnx, model_card_goes_along)
{
    static const char *const keys[] = {"mean",   "deviation", "class_names", "classes",
                                       "resize", "input",     "accuracy"};
    static const char back[] = "back.safetensors";
    static finished of_weights;
    train_colors();
    tool(ANY_STATUS, "predict --weights weights.safetensors --top 2 colors/b/b1.png");
    of_weights = ran;
    tool(0, "predict --model net.onnx --top 2 colors/b/b1.png");
    cr_expect_str_eq(ran.out, of_weights.out);
    cr_expect_str_empty(ran.err);
    cr_expect(strstr(ran.out, "\ta ") != NULL || strstr(ran.out, " a ") != NULL, "%s", ran.out);
    tool(0, "eval --model net.onnx --data colors");
    cr_expect_null(strstr(ran.err, "note: classes are matched by number"), "%s", ran.err);

    tool(0, "convert net.onnx back.safetensors");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cr_expect_str_eq(entry_of(back, keys[i]), entry_of("weights.safetensors", keys[i]));
    cr_expect_str_eq(entry_of(back, "class_names"), "[\"a\",\"b\"]");
    cr_expect_str_eq(entry_of(back, "model"), "net.onnx");
    prints(0, "class_names: [\"a\",\"b\"]", "inspect net.onnx");

    tool(0, "convert --mean 0.5,0.25,0 --deviation 1,0.2,1 net.onnx other.onnx");
    prints(0, "mean: [127.5,63.75,0.0]", "inspect other.onnx");
}

/* Writes other.onnx: the network with these metadata, which claim to be a card if version is 1. */
static void write_with(const char *key, const char *value, int version)
{
    const adj_metadata entries[] = {
        {key, value}, {"input", "[28,28,3]"}, {"deviation", "[1,1,1]"}, {"adjoint.version", "0"}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_onnx) adj_onnx_net *n = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_onnx_load(g, "net.onnx", NULL, &n, &error), ADJ_OK, "%s", error.message);
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = n->output});
    cr_assert_eq(adj_onnx_save(e, 1, n->output, "other.onnx", 0, 3 + version, entries, &error),
                 ADJ_OK, "%s", error.message);
}

/* Metadata that are no card, of which the message says why, are refused; another program's are none
 * of ours. */
Test(convert_onnx, bad_model_cards)
{
    static const struct {
        const char *key, *value, *said;
    } bad[] = {
        {"mean", "[1e999,0,0]", "metadata: entry mean is invalid (got [1e999,0,0]"},
        {"mean", "[1,2]", "metadata: entry mean is invalid"},
        {"mean", "[1,2,", "metadata: entry mean is invalid"},
        {"classes", "2000000000000", "metadata: entry classes is invalid"},
        {"classes", "3",
         "metadata: the number of channels or classes (got 3 and 3, expected the "
         "net's 3 and 2)"},
        {"class_names", "[\"a\",\"b\"]", "metadata: entry class_names is invalid"},
        {"resize", "\x1b[31m", "metadata: entry resize is invalid"},
    };
    train_colors();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_with(bad[i].key, bad[i].value, 1);
        tool(ANY_STATUS, "predict --model other.onnx colors/a/a0.png");
        cr_expect(ran.status == 1 && strstr(ran.err, bad[i].said) != NULL, "%s", ran.err);
        write_with(bad[i].key, bad[i].value, 0);
        complains(0, "other.onnx has no mean or deviation",
                  "predict --model other.onnx colors/a/a0.png");
    }
}

Test(convert_onnx, refused) { expect_rows("refused"); }

/* A net with a parameter of the batch's size is written for its batch, with a note. */
Test(convert_onnx, one_batch)
{
    const float list[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    adj_graph *g = adj_graph_new();
    adj_error error = {0};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {3, 3}});
    adj_node *y = adj_mul(x, adj_param(g, "own", ADJ_F32, (adj_shape){2, {3, 3}},
                                       (adj_init){.kind = ADJ_INIT_DATA, .data = list}));
    adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
    cr_assert_eq(adj_onnx_save(e, 1, &y, "net.onnx", ADJ_ONNX_FIXED_BATCH, 0, NULL, &error), ADJ_OK,
                 "%s", error.message);
    adj_exec_free(e);
    adj_graph_free(g);
    complains(0, "works with a batch of 3 only, and so does OUT", "convert net.onnx other.onnx");
}
