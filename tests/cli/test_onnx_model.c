/* test_onnx_model.c - an ONNX file in place of a model's name: its nodes are checked, it is trained
 * and evaluated, a softmax at its end changes nothing, and what is no classifier is refused. */
#include <criterion/criterion.h>

#include "adjoint_nn.h"
#include "adjoint_onnx.h"
#include "cli/child.h"
#include "tests/plan.h"

static finished r;
static temporary folder;
static char path[160], weights[160];

static void open_folder(void)
{
    folder = temporary_folder();
    snprintf(path, sizeof path, "%s/net.onnx", folder.s);
    snprintf(weights, sizeof weights, "%s/weights.safetensors", folder.s);
}

static void remove_folder(void)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", folder.s);
    cr_assert_eq(system(command), 0);
}

TestSuite(onnx_model, .init = open_folder, .fini = remove_folder);

/* Writes a net of 28 x 28 gray images with n outputs: the logits, with a softmax if that is 1. */
static void write_net(int n, int has_softmax)
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
    cr_assert_eq(adj_onnx_save(e, n, output, path, 0, 0, NULL, &error), ADJ_OK, "%s",
                 error.message);
}

static void train(void)
{
    tool(&r, 0, "train --model %s --data digits --limit 60 --epochs 1 --threads 1 --out %s", path,
         weights);
}

Test(onnx_model, gradcheck)
{
    write_net(1, 0);
    tool(&r, 0, "gradcheck --model %s --batch 1 --threads 1", path);
    cr_assert(strstr(r.out, "conv2d") != NULL && strstr(r.out, "0 fail") != NULL, "%s", r.out);
}

/* The loss has a softmax of its own. */
Test(onnx_model, a_softmax_at_the_end_changes_nothing)
{
    char first[PRINTED];
    write_net(1, 0);
    train();
    const char *loss = strstr(r.out, "loss ");
    cr_assert(loss != NULL, "%s", r.out);
    snprintf(first, sizeof first, "%.12s", loss);
    write_net(1, 1);
    train();
    cr_assert(strstr(r.out, first) != NULL, "%s: %s", first, r.out);
}

Test(onnx_model, evaluated_by_its_file)
{
    write_net(1, 0);
    train();
    tool(&r, 0, "eval --model %s --weights %s --data digits --limit 20", path, weights);
    tool(&r, 1, "eval --weights %s --data digits --limit 20", weights);
    cr_assert(strstr(r.err, "net.onnx is not built in") != NULL &&
                  strstr(r.err, "(set --model to that ONNX file)") != NULL,
              "%s", r.err);
}

/* The file's size of images is the only one. */
Test(onnx_model, another_size)
{
    write_net(1, 0);
    tool(&r, 3, "train --model %s --data digits --size 32", path);
    cr_assert(strstr(r.err, "takes images of 28x28x1") != NULL, "%s", r.err);
}

/* Writes CIFAR-10's files with 20 images each. */
static void write_color_images(void)
{
    static const char *const names[] = {"data_batch_1", "data_batch_2", "data_batch_3",
                                        "data_batch_4", "data_batch_5", "test_batch"};
    for (int k = 0; k < 6; k++) {
        char name[200];
        snprintf(name, sizeof name, "%s/%s.bin", folder.s, names[k]);
        FILE *f = fopen(name, "wb");
        cr_assert(f != NULL);
        for (int i = 0; i < 20 * 3073; i++)
            fputc(i % 3073 == 0 ? i / 3073 % 10 : i * 7 % 256, f);
        cr_assert_eq(fclose(f), 0);
    }
}

/* A net of gray images takes color images without an option. */
Test(onnx_model, color_images)
{
    write_net(1, 0);
    write_color_images();
    tool(&r, 0, "train --model %s --data %s --epochs 1 --threads 1 --out %s", path, folder.s,
         weights);
    cr_assert(strstr(r.out, " are in color and become gray\n") != NULL, "%s", r.out);
    tool(&r, 0, "eval --model %s --weights %s --data %s", path, weights, folder.s);
}

Test(onnx_model, several_outputs)
{
    write_net(2, 0);
    tool(&r, 1, "train --model %s --data digits", path);
    cr_assert(strstr(r.err, "2 outputs") != NULL, "%s", r.err);
    tool(&r, 1, "gradcheck --model %s", path);
    cr_assert(strstr(r.err, "number of inputs or outputs (got 1 and 2, expected 1 of each)") !=
                  NULL,
              "%s", r.err);
}
