/* test_graph.c - summary, graph and inspect of built-in models and of ONNX files: tables, nodes,
 * plans, pictures. An ONNX file in place of a model's name: its nodes are checked, it is trained
 * and evaluated, a softmax at its end changes nothing, and what is no classifier is refused. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "adjoint_nn.h"
#include "adjoint_onnx.h"
#include "cli/rows.h"
#include "cli/same_images.h"
#include "tests/plan.h"

TestSuite(graph_cli, .init = enter_empty, .fini = leave);

/* Writes net.onnx: a convolution of 4 filters over 8 x 8 color images and a layer of 5 classes. */
static void write_net(void)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "pixels", ADJ_F32, (adj_shape){4, {2, 3, 8, 8}});
    const adj_conv_layer c = {.filters = 4, .format = ADJ_NCHW};
    adj_node *h = adj_global_avg_pool(adj_layer_conv2d(x, "conv1", &c), ADJ_NCHW);
    adj_node *y = adj_layer_dense(h, "fc", 5, NULL);
    adj_error error = {0};
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y, .seed = 7});
    cr_assert_eq(adj_onnx_save(e, 1, &y, "net.onnx", 0, 0, NULL, &error), ADJ_OK, "%s",
                 error.message);
}

/* 3 * 3 * 3 * 4 + 4 parameters; 6 * 6 * 108 multiply-adds. */
Test(graph_cli, summary)
{
    write_net();
    expect_rows("summary");
}

/* The filter's gradient is one node, and forward nodes are not marked. */
Test(graph_cli, text)
{
    write_net();
    expect_rows("text");
}

Test(graph_cli, plan) { expect_rows("plan"); }

Test(graph_cli, picture)
{
    char path[4096];
    const char *search = getenv("PATH");
    snprintf(path, sizeof path, "%s", search != NULL ? search : "");
    setenv("PATH", "/nowhere", 1);
    complains(1, "dot is missing (install Graphviz, or use --format dot)",
              "graph --model lenet --format svg");
    setenv("PATH", path, 1);
    prints(0, "digraph adjoint {", "graph --model lenet --format dot");
    const int nodes = times_in(ran.out, "[shape=");
    if (shell("command -v dot") != 0)
        cr_skip_test("there is no dot");
    prints(0, "<svg", "graph --model lenet --format svg");
    cr_expect_eq(times_in(ran.out, "<g id=\"node"), nodes);
}

/* The format follows from the name of the file. */
Test(graph_cli, format_by_name) { expect_rows("format by name"); }

Test(graph_cli, inspect)
{
    write_net();
    expect_rows("inspect");
}

/* ---- an ONNX file in place of a model's name ---- */

TestSuite(onnx_model, .init = enter_empty, .fini = leave);

/* Writes net.onnx for 28 x 28 gray images with n outputs: the logits, with a softmax if that is 1.
 */
static void write_classifier(int n, int has_softmax)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 1, 28, 28}});
    adj_conv_layer c = {.filters = 4, .format = ADJ_NCHW};
    adj_node *h = adj_relu(adj_layer_conv2d(x, "conv1", &c));
    adj_node *pooled = adj_global_avg_pool(h, ADJ_NCHW);
    adj_node *y = adj_layer_dense(pooled, "logits", 10, NULL);
    adj_node *output[] = {has_softmax ? adj_softmax(y) : y, h};
    adj_error error = {0};
    const adj_exec_opts o = {.n_fetch = n, .fetch = output, .seed = 7};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_assert_eq(adj_onnx_save(e, n, output, "net.onnx", 0, 0, NULL, &error), ADJ_OK, "%s",
                 error.message);
}

static void train(void)
{
    tool(0, "train --model net.onnx --data digits --limit 60 --epochs 1 --threads 1 --out "
            "w.safetensors");
}

Test(onnx_model, in_place_of_a_name)
{
    write_classifier(1, 0);
    expect_rows("in place of a name");
    complains(1, "net.onnx is not built in",
              "eval --weights w.safetensors --data digits --limit 20");
    expect_text(ran.err, "(set --model to that ONNX file)");
}

/* The loss has a softmax of its own. */
Test(onnx_model, a_softmax_at_the_end_changes_nothing)
{
    char first[PRINTED];
    write_classifier(1, 0);
    train();
    const char *loss = strstr(ran.out, "loss ");
    cr_assert(loss != NULL, "%s", ran.out);
    snprintf(first, sizeof first, "%.12s", loss);
    write_classifier(1, 1);
    train();
    cr_assert(strstr(ran.out, first) != NULL, "%s: %s", first, ran.out);
}

/* A net of gray images takes color images without an option. */
Test(onnx_model, color_images)
{
    write_classifier(1, 0);
    write_cifar(&here, 32, 32, 3);
    expect_rows("color images");
}

Test(onnx_model, several_outputs)
{
    write_classifier(2, 0);
    expect_rows("several outputs");
}
