/* test_load.c - models written message by message: values by hand, parameters, shapes that are
 * computed while loading, refusals, and files that lie. tests/test_onnx.sh runs ONNX's own cases
 * and PyTorch's exports where these are installed. */
#include <criterion/criterion.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adjoint_nn.h"
#include "loaded.h"
#include "tests/plan.h"

TestSuite(onnx_load, .init = open_folder, .fini = close_folder);

static void load(const maker *m, const adj_onnx_opts *o)
{
    maker_write(m, path);
    cr_assert(adj_onnx_load(g, path, o, &net, &error) == ADJ_OK, "%s", error.message);
}

/* Runs the first output on one input; returns nothing but asserts the values. */
static void expect(const float *x, size_t n_x, const float *want, int n)
{
    const adj_exec_opts o = {.n_fetch = 1, .fetch = net->output};
    scoped(release_exec) adj_exec *e = NULL;
    float y[64];
    cr_assert(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_set(e, net->input[0], x, n_x * sizeof *x) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_run(e) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_get(e, net->output[0], y, (size_t)n * sizeof *y) == ADJ_OK, "%s",
              adj_exec_message(e));
    for (int i = 0; i < n; i++)
        cr_assert(fabsf(y[i] - want[i]) <= 1e-5F, "%d: %g, expected %g", i, (double)y[i],
                  (double)want[i]);
}

/* A 2x2 convolution of one channel with bias, as PyTorch computes it: the filter stands as
 * [out, in, kh, kw] in the file and as [kh, kw, in, out] in the graph. */
static void conv_model(maker *m)
{
    static int64_t filter[] = {2, 1, 2, 2}, bias[] = {2}, x[] = {-1, 1, 3, 3},
                   pads[] = {0, 0, 1, 1};
    static float w[] = {1, 2, 3, 4, 0, -1, 1, 0}, b[] = {0.5F, -1};
    maker_x_to_y(m, 17, 4, x);
    maker_floats(m, "w", 4, filter, w);
    maker_floats(m, "b", 1, bias, b);
    maker_node(m, "Conv", "x w b", "y");
    maker_list(m, "pads", 4, pads);
}

static const float conv_x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const float conv_y[] = {37.5F, 47.5F, 21.5F, 67.5F, 77.5F, 33.5F, 23.5F, 26.5F, 9.5F,
                               1,     1,     5,     1,     1,     8,     -9,    -10,   -1};

Test(onnx_load, conv)
{
    maker m;
    conv_model(&m);
    load(&m, NULL);
    cr_assert(net->n_input == 1 && net->n_output == 1 && net->n_param == 2);
    const adj_shape w = adj_node_type(adj_find(g, "w")).shape;
    cr_assert(w.rank == 4 && w.dim[0] == 2 && w.dim[1] == 2 && w.dim[2] == 1 && w.dim[3] == 2);
    expect(conv_x, 9, conv_y, 18);
}

/* Keras's filter is [kh, kw, in, out] and turned by a node: the convolution reads the parameter. */
Test(onnx_load, turned_filter)
{
    static int64_t filter[] = {2, 2, 1, 2}, bias[] = {2}, turn[] = {3, 2, 0, 1};
    static float w[] = {1, 0, 2, -1, 3, 1, 4, 0}, b[] = {0.5F, -1};
    maker m;
    maker_x_to_y(&m, 17, 4, (int64_t[]){-1, 1, 3, 3});
    maker_floats(&m, "w", 4, filter, w);
    maker_floats(&m, "b", 1, bias, b);
    maker_node(&m, "Transpose", "w", "t");
    maker_list(&m, "perm", 4, turn);
    maker_node(&m, "Conv", "x t b", "y");
    maker_list(&m, "pads", 4, (int64_t[]){0, 0, 1, 1});
    load(&m, NULL);
    adj_node *conv = adj_node_operand_at(net->output[0], 0);
    cr_assert_str_eq(adj_node_op(conv), "conv2d");
    cr_assert_eq(adj_node_operand_at(conv, 1), adj_find(g, "w"));
    expect(conv_x, 9, conv_y, 18);
}

Test(onnx_load, symbolic_batch)
{
    maker m;
    conv_model(&m);
    load(&m, &(adj_onnx_opts){.batch = 5});
    cr_assert(adj_node_type(net->output[0]).shape.dim[0] == 5);
}

/* Flatten as PyTorch's older exporter writes it: the shape [x.shape[0], -1] by Shape, Gather,
 * Unsqueeze, Concat and Reshape. */
Test(onnx_load, shapes_are_computed_while_loading)
{
    int64_t x[] = {-1, 2, 3}, n_zero, zero[] = {0}, n_rest, rest[] = {-1};
    int64_t none[] = {0};
    maker m;
    maker_x_to_y(&m, 12, 3, x);
    maker_ints(&m, "zero", 1, &n_zero, zero)->n_dims = 0;
    maker_ints(&m, "rest", 1, &n_rest, rest);
    maker_node(&m, "Shape", "x", "shape");
    maker_node(&m, "Gather", "shape zero", "batch");
    maker_node(&m, "Unsqueeze", "batch", "list");
    maker_list(&m, "axes", 1, none);
    maker_node(&m, "Concat", "list rest", "all");
    maker_int(&m, "axis", 0);
    maker_node(&m, "Reshape", "x all", "y");
    load(&m, &(adj_onnx_opts){.batch = 4});
    const adj_shape s = adj_node_type(net->output[0]).shape;
    cr_assert(s.rank == 2 && s.dim[0] == 4 && s.dim[1] == 6);
}

/* A file for one batch that has a multiple of it in a Reshape: the message says what to do. */
Test(onnx_load, exported_for_one_batch)
{
    int64_t x[] = {2, 3, 4}, n_shape, shape[] = {6, 4};
    maker m;
    maker_x_to_y(&m, 17, 3, x);
    maker_ints(&m, "shape", 2, &n_shape, shape);
    maker_node(&m, "Reshape", "x shape", "y");
    maker_write(&m, path);
    cr_assert(adj_onnx_load(g, path, &(adj_onnx_opts){.batch = 5}, &net, &error) != ADJ_OK);
    cr_assert(strstr(error.message, "; the file was exported for batch 2: export it with a dynamic "
                                    "batch, or use that batch") != NULL,
              "%s", error.message);
}

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta with the file's statistics; in training
 * with those of the batch, 1, 3 and 5: mean 3, variance 8/3, unbiased 4. */
static void norm_model(maker *m)
{
    static int64_t one[] = {1}, x[] = {3, 1, 1, 1};
    static float gamma[] = {2}, beta[] = {1}, mean[] = {1}, variance[] = {4};
    maker_x_to_y(m, 17, 4, x);
    maker_floats(m, "gamma", 1, one, gamma);
    maker_floats(m, "beta", 1, one, beta);
    maker_floats(m, "mean", 1, one, mean);
    maker_floats(m, "variance", 1, one, variance);
    maker_node(m, "BatchNormalization", "x gamma beta mean variance", "y");
}

Test(onnx_load, batch_norm)
{
    maker m;
    norm_model(&m);
    load(&m, NULL);
    const float x[] = {1, 3, 5}, y[] = {1, 3, 5};
    expect(x, 3, y, 3);
}

Test(onnx_load, batch_norm_in_training)
{
    maker m;
    norm_model(&m);
    load(&m, &(adj_onnx_opts){.training = 1});
    const adj_exec_opts o = {.n_fetch = 1, .fetch = net->output, .updates = adj_layer_updates(g)};
    const float x[] = {1, 3, 5};
    float y[3], mean, variance;
    scoped(release_exec) adj_exec *e = NULL;
    cr_assert(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_assert(adj_get(e, net->output[0], y, sizeof y) == ADJ_OK);
    cr_assert(fabsf(y[0] - (1 - 2 * 1.2247425F)) < 1e-4F && fabsf(y[1] - 1) < 1e-6F);
    cr_assert(adj_get(e, adj_find(g, "mean"), &mean, sizeof mean) == ADJ_OK);
    cr_assert(adj_get(e, adj_find(g, "variance"), &variance, sizeof variance) == ADJ_OK);
    cr_assert(fabsf(mean - 1.2F) < 1e-6F && fabsf(variance - 4) < 1e-5F, "%g %g", (double)mean,
              (double)variance);
}

/* ---- refusals ---- */

/* All nodes that are not supported are listed at once; one that reads an unknown value is not. */
Test(onnx_load, lists_what_is_not_supported)
{
    maker m;
    maker_x_to_y(&m, 17, 2, (int64_t[]){1, 2});
    maker_node(&m, "Einsum", "x", "a");
    maker_node(&m, "Relu", "a", "b");
    maker_node(&m, "Det", "x", "c");
    maker_node(&m, "Add", "b c", "y");
    expect_refused(&m, "2 nodes are not supported: \"a\" (Einsum, opset 17): the operator is not "
                       "supported; \"c\" (Det");
}

/* A constant is transposed while loading, where no builder checks the axes. */
Test(onnx_load, perm_names_an_axis_twice)
{
    int64_t x[] = {1, 2}, twice[] = {1, 1}, sizes[] = {2, 3};
    int64_t n_to;
    maker m;
    maker_x_to_y(&m, 17, 2, x);
    maker_ints(&m, "c", 6, &n_to, (int64_t[]){0, 1, 2, 3, 4, 5})->dims = sizes;
    m.tensor[0].n_dims = 2;
    maker_node(&m, "Transpose", "c", "t");
    maker_list(&m, "perm", 2, twice);
    maker_node(&m, "Reshape", "x t", "y");
    expect_refused(&m, "perm is not a permutation (entry 1 is 1)");
}

Test(onnx_load, reads_what_no_node_computes)
{
    maker m;
    maker_x_to_y(&m, 17, 2, (int64_t[]){1, 2});
    maker_node(&m, "Add", "x later", "y");
    maker_node(&m, "Relu", "x", "later");
    expect_refused(&m, "node \"y\" reads \"later\", which no earlier node computes");
}

Test(onnx_load, duplicate_name)
{
    maker m;
    maker_x_to_y(&m, 17, 2, (int64_t[]){1, 2});
    maker_node(&m, "Relu", "x", "y");
    maker_node(&m, "Neg", "x", "y");
    expect_refused(&m, "two values have the name \"y\"");
}

Test(onnx_load, data_of_another_length)
{
    maker m;
    conv_model(&m);
    m.tensor[0].n_float_data = 7;
    expect_refused(
        &m, "tensor \"w\": length of the data (got 7 elements, expected 8 for [2, 1, 2, 2])");
}

Test(onnx_load, sizes_that_overflow)
{
    int64_t huge[] = {INT64_MAX, INT64_MAX, 2, 2};
    maker m;
    conv_model(&m);
    m.tensor[0].dims = huge;
    expect_refused(&m, "tensor \"w\": shape");
}

static void write_filter(const char *name)
{
    const float w[] = {1, 2, 3, 4, 0, -1, 1, 0};
    FILE *f = fopen(name, "wb");
    cr_assert(f != NULL && fwrite(w, sizeof *w, 8, f) == 8 && fclose(f) == 0);
}

/* Writes the model of `conv` with the filter in that file. */
static void write_with_external(const char *location)
{
    maker m;
    conv_model(&m);
    Onnx__StringStringEntryProto entry, *entries[] = {&entry};
    onnx__string_string_entry_proto__init(&entry);
    entry.key = (char *)"location";
    entry.value = (char *)location;
    m.tensor[0].n_float_data = 0;
    m.tensor[0].has_data_location = 1;
    m.tensor[0].data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    m.tensor[0].n_external_data = 1;
    m.tensor[0].external_data = entries;
    maker_write(&m, path);
}

/* External data is read from the model's folder only: not by "..", an absolute path or a link,
 * though these files exist. */
Test(onnx_load, external_data)
{
    char inside[128], outside[128], link[128];
    snprintf(outside, sizeof outside, "%s/secret", folder.s);
    write_filter(outside);
    snprintf(path, sizeof path, "%s/model", folder.s);
    cr_assert(mkdir(path, 0700) == 0);
    snprintf(inside, sizeof inside, "%s/w.bin", path);
    write_filter(inside);
    snprintf(link, sizeof link, "%s/link", path);
    cr_assert(symlink("w.bin", link) == 0);
    snprintf(path, sizeof path, "%s/model/net.onnx", folder.s);
    const char *const refused[] = {"../secret", outside, "./../secret"};
    for (int i = 0; i < 3; i++) {
        write_with_external(refused[i]);
        expect_refused(NULL, "is outside of the model's folder");
    }
    write_with_external("link");
    expect_refused(NULL, "external data \"link\" cannot be read");
    write_with_external("w.bin");
    cr_assert(adj_onnx_load(g, path, NULL, &net, &error) == ADJ_OK, "%s", error.message);
    expect(conv_x, 9, conv_y, 18);
}

/* A graph in an attribute in a graph in an attribute ...: 5,000 deep. */
Test(onnx_load, nested_graphs)
{
    enum { DEPTH = 5000, ROOM = DEPTH * 24 };
    uint8_t *bytes = malloc(ROOM), *at = bytes + ROOM;
    size_t n = 0;
    for (int i = 0; i <= 3 * DEPTH; i++) { /* from the inside: field, length, content */
        static const uint8_t field[] = {0x3a, 0x0a, 0x2a, 0x32};
        const uint8_t key = i == 3 * DEPTH ? field[0] : field[3 - i % 3];
        uint8_t length[4];
        int bytes_of_length = 0;
        size_t rest = n;
        do
            length[bytes_of_length++] = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
        while ((rest >>= 7) > 0);
        at -= bytes_of_length;
        memcpy(at, length, (size_t)bytes_of_length);
        *--at = key;
        n += (size_t)bytes_of_length + 1;
    }
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL && fwrite(at, 1, n, f) == n && fclose(f) == 0);
    free(bytes);
    expect_refused(NULL, "messages are nested too deeply");
}

Test(onnx_load, no_model)
{
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL && fputs("\x89PNG no model", f) >= 0 && fclose(f) == 0);
    expect_refused(NULL, "is not an ONNX file, or truncated (13 bytes cannot be parsed)");
    snprintf(path, sizeof path, "%s/none.onnx", folder.s);
    expect_refused(NULL, "cannot be read: No such file");
    snprintf(path, sizeof path, "%s", folder.s);
    expect_refused(NULL, "is not a regular file");
}

/* Sizes that are computed by Clip and Sign: [9, 2] to [4, 2], [-7, 4] to [-1, 1]. */
Test(onnx_load, clip_and_sign_of_known_values)
{
    static int64_t count[3], sizes[] = {9, 2}, signs[] = {-7, 4}, most[] = {4};
    maker m;
    maker_x_to_y(&m, 18, 1, (int64_t[]){8});
    maker_output(&m, "z");
    maker_ints(&m, "sizes", 2, &count[0], sizes);
    maker_ints(&m, "signs", 2, &count[1], signs);
    maker_ints(&m, "most", 1, &count[2], most);
    maker_node(&m, "Clip", "sizes - most", "clipped");
    maker_node(&m, "Sign", "signs", "sign");
    maker_node(&m, "Reshape", "x clipped", "y");
    maker_node(&m, "Reshape", "x sign", "z");
    maker_write(&m, path);
    cr_assert_eq(adj_onnx_load(g, path, NULL, &net, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_node_type(net->output[0]).shape.dim[0], 4);
    cr_expect_eq(adj_node_type(net->output[1]).shape.dim[0], 8);
}

/* A reshape of images to the file's batch is one to the caller's; that of a weight is not. */
Test(onnx_load, reshape_to_the_files_batch)
{
    static float weights[8];
    static int64_t count, sizes[] = {1, -1}, shape[] = {4, 2};
    maker m;
    maker_x_to_y(&m, 18, 3, (int64_t[]){1, 3, 2});
    maker_output(&m, "z");
    maker_ints(&m, "sizes", 2, &count, sizes);
    maker_floats(&m, "w", 2, shape, weights);
    maker_node(&m, "Relu", "x", "u");
    maker_node(&m, "Reshape", "u sizes", "y");
    maker_node(&m, "Reshape", "w sizes", "z");
    maker_write(&m, path);
    const adj_onnx_opts four = {.batch = 4};
    cr_assert_eq(adj_onnx_load(g, path, &four, &net, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_node_type(net->output[0]).shape.dim[0], 4);
    cr_expect_eq(adj_node_type(net->output[0]).shape.dim[1], 6);
    cr_expect_eq(adj_node_type(net->output[1]).shape.dim[0], 1);
}
