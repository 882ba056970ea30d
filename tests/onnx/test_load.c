/* test_load.c - models in text: values by hand, parameters, shapes that are computed while loading,
 * and refusals. tests/test_onnx.sh runs ONNX's own cases and PyTorch's exports where these are
 * installed. */
#include <sys/stat.h>
#include <unistd.h>

#include "loaded.h"

TestSuite(onnx_load, .init = open_folder, .fini = close_folder);

/* A 2x2 convolution of one channel with bias, as PyTorch computes it: the filter stands as
 * [out, in, kh, kw] in the file and as [kh, kw, in, out] in the graph. */
static const char conv_model[] =
    "(float[batch,1,3,3] x) => (y)"
    "<float[2,1,2,2] w = {1, 2, 3, 4, 0, -1, 1, 0}, float[2] b = {0.5, -1}>"
    "{ y = Conv <pads = [0,0,1,1]> (x, w, b) }";
static const double conv_x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const double conv_y[] = {37.5, 47.5, 21.5, 67.5, 77.5, 33.5, 23.5, 26.5, 9.5,
                                1,    1,    5,    1,    1,    8,    -9,   -10,  -1};

Test(onnx_load, conv)
{
    load_text(17, conv_model, NULL);
    cr_assert(net->n_input == 1 && net->n_output == 1 && net->n_param == 2);
    const adj_shape w = adj_node_type(adj_find(g, "w")).shape;
    cr_assert(w.rank == 4 && w.dim[0] == 2 && w.dim[1] == 2 && w.dim[2] == 1 && w.dim[3] == 2);
    expect(conv_x, conv_y, 1e-5);
}

/* Keras's filter is [kh, kw, in, out] and turned by a node: the convolution reads the parameter. */
Test(onnx_load, turned_filter)
{
    load_text(17,
              "(float[batch,1,3,3] x) => (y)"
              "<float[2,2,1,2] w = {1, 0, 2, -1, 3, 1, 4, 0}, float[2] b = {0.5, -1}>"
              "{ t = Transpose <perm = [3,2,0,1]> (w)"
              "  y = Conv <pads = [0,0,1,1]> (x, t, b) }",
              NULL);
    adj_node *conv = adj_node_operand_at(net->output[0], 0);
    cr_assert_str_eq(adj_node_op(conv), "conv2d");
    cr_assert_eq(adj_node_operand_at(conv, 1), adj_find(g, "w"));
    expect(conv_x, conv_y, 1e-5);
}

/* Sizes that are known while loading: the output y has this shape. */
Test(onnx_load, shapes)
{
    static const struct {
        int64_t opset, batch;
        const char *model;
        adj_shape y;
    } cases[] = {
        {17, 5, conv_model, {4, {5, 2, 3, 3}}},
        /* Flatten as PyTorch's older exporter writes it: the shape [x.shape[0], -1] */
        {12,
         4,
         "(float[batch,2,3] x) => (y) <int64 zero = {0}, int64[1] rest = {-1}>"
         "{ shape = Shape (x)  size = Gather (shape, zero)  list = Unsqueeze <axes = [0]> (size)"
         "  all = Concat <axis = 0> (list, rest)  y = Reshape (x, all) }",
         {2, {4, 6}}},
        /* Clip: [9, 2] to [4, 2]; Sign: [-7, 4] to [-1, 1] */
        {18,
         0,
         "(float[8] x) => (y) <int64[2] sizes = {9, 2}, int64[1] most = {4}>"
         "{ clipped = Clip (sizes, , most)  y = Reshape (x, clipped) }",
         {2, {4, 2}}},
        {18,
         0,
         "(float[8] x) => (y) <int64[2] signs = {-7, 4}>"
         "{ sign = Sign (signs)  y = Reshape (x, sign) }",
         {2, {8, 1}}},
        /* a reshape of images to the file's batch is one to the caller's; that of a weight is not
         */
        {18,
         4,
         "(float[1,3,2] x) => (y) <int64[2] sizes = {1, -1}>"
         "{ u = Relu (x)  y = Reshape (u, sizes) }",
         {2, {4, 6}}},
        {18,
         4,
         "(float[1,3,2] x) => (z, y) <int64[2] sizes = {1, -1}, float[4,2] w>"
         "{ u = Relu (x)  y = Reshape (u, sizes)  z = Reshape (w, sizes) }",
         {2, {1, 8}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        load_text(cases[i].opset, cases[i].model, &(adj_onnx_opts){.batch = cases[i].batch});
        const adj_shape y = adj_node_type(net->output[0]).shape;
        cr_expect(adj_shape_equal(y, cases[i].y), "%zu: %s", i, adj_shape_text(y).s);
    }
}

/* A symbolic height and width, before or behind the channels, are those of the options or of the
 * node that takes the input's place. */
Test(onnx_load, symbolic_images)
{
    static const char *const models[] = {"(float[batch,3,batch,batch] x) => (y) { y = Relu (x) }",
                                         "(float[batch,batch,batch,3] x) => (y) { y = Relu (x) }"};
    const adj_shape shapes[] = {{4, {2, 3, 6, 5}}, {4, {2, 6, 5, 3}}};
    for (int i = 0; i < 2; i++) {
        load_text(17, models[i], &(adj_onnx_opts){.batch = 2, .size = {.h = 6, .w = 5}});
        cr_expect(adj_shape_equal(adj_node_type(net->output[0]).shape, shapes[i]), "%s", models[i]);
        new_net();
        adj_node *x = adj_input(g, "images", ADJ_F32, shapes[i]);
        const adj_onnx_opts given = {.batch = 2, .given = &x, .n_given = 1};
        cr_expect_eq(adj_onnx_load(g, path, &given, &net, &error), ADJ_OK, "%s", error.message);
        cr_expect(adj_shape_equal(adj_node_type(net->output[0]).shape, shapes[i]), "%s", models[i]);
        expect_file_refused(NULL, "(expected a fixed size in the file, or --size HxW");
    }
}

/* A fixed height is no number of channels, nor is a fixed width. Features may have many channels.
 */
Test(onnx_load, one_symbolic_side)
{
    static const struct {
        const char *shape;
        int64_t height, width;
    } cases[] = {{"batch,224,batch,3", 224, 5},
                 {"batch,batch,224,3", 6, 224},
                 {"batch,3,224,batch", 224, 5},
                 {"batch,3,batch,224", 6, 224},
                 {"batch,64,batch,batch", 6, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char model[96];
        snprintf(model, sizeof model, "(float[%s] x) => (y) { y = Relu (x) }", cases[i].shape);
        load_text(17, model, &(adj_onnx_opts){.size = {.h = 6, .w = 5}});
        const adj_shape y = adj_node_type(net->output[0]).shape;
        const int h = y.dim[3] == 3 ? 1 : 2;
        cr_expect(y.dim[h] == cases[i].height && y.dim[h + 1] == cases[i].width, "%s: %s", model,
                  adj_shape_text(y).s);
    }
}

/* --size sets the height and width of images alone. */
Test(onnx_load, symbolic_size_of_no_image)
{
    write_model(model_of(17, "(float[batch,batch,8] x) => (y) { y = Relu (x) }"), path);
    expect_file_refused(NULL, "(expected a fixed size in the file, or adj_onnx_opts.dim in C)");
}

/* A file for one batch that has a multiple of it in a Reshape: the message says what to do. */
Test(onnx_load, exported_for_one_batch)
{
    write_model(model_of(17, "(float[2,3,4] x) => (y) <int64[2] shape = {6, 4}>"
                             "{ y = Reshape (x, shape) }"),
                path);
    expect_file_refused(&(adj_onnx_opts){.batch = 5},
                        "; the file was exported for batch 2: export it with a dynamic batch, or "
                        "use that batch");
}

/* y = gamma (x - mean) / sqrt(variance + epsilon) + beta with the file's statistics; in training
 * with those of the batch, 1, 3 and 5: mean 3, variance 8/3, unbiased 4. */
static const char norm_model[] =
    "(float[3,1,1,1] x) => (y) <float[1] gamma = {2}, float[1] beta = {1}, float[1] mean = {1},"
    " float[1] variance = {4}> { y = BatchNormalization (x, gamma, beta, mean, variance) }";

/* In double what is computed while loading is not rounded to float; sizes are as in float, where
 * 0.29 * 100 is 29. */
Test(onnx_load, computed_in_double)
{
    const adj_onnx_opts wide = {.dtype = ADJ_F64};
    load_text(17,
              "(float[1] x) => (y)"
              "{ a = Constant <value_float = 0.1> ()  b = Constant <value_float = 3.0> ()"
              "  c = Div (a, b)  y = Mul (x, c) }",
              &wide);
    expect((double[]){1}, (double[]){0.1 / 3}, 0);
    load_text(17,
              "(float[29] x) => (y) <int64[1] axis = {0}>"
              "{ a = Constant <value_float = 0.29> ()  b = Constant <value_float = 100.0> ()"
              "  c = Mul (a, b)  d = Floor (c)  e = Cast <to = 7> (d)"
              "  f = Unsqueeze (e, axis)  y = Reshape (x, f) }",
              &wide);
    cr_expect_eq(adj_node_type(net->output[0]).shape.dim[0], 29);
}

Test(onnx_load, batch_norm)
{
    load_text(17, norm_model, NULL);
    expect((double[]){1, 3, 5}, (double[]){1, 3, 5}, 1e-5);
}

Test(onnx_load, batch_norm_in_training)
{
    load_text(17, norm_model, &(adj_onnx_opts){.training = 1});
    expect((double[]){1, 3, 5}, (double[]){1 - 2 * 1.2247425, 1, 1 + 2 * 1.2247425}, 1e-6);
    scoped(release) double *mean = fixture_get(e, adj_find(g, "mean"));
    scoped(release) double *variance = fixture_get(e, adj_find(g, "variance"));
    cr_assert(fabs(*mean - 1.2) < 1e-6 && fabs(*variance - 4) < 1e-5, "%g %g", *mean, *variance);
}

/* ---- refusals ---- */

Test(onnx_load, refused)
{
    static const struct {
        const char *model, *message;
    } cases[] = {
        /* all nodes that are not supported are listed; one that reads an unknown value is not */
        {"(float[1,2] x) => (y)"
         "{ a = Einsum (x)  b = Relu (a)  c = Det (x)  y = Add (b, c) }",
         "2 nodes are not supported: \"a\" (Einsum, opset 17): the operator is not supported; "
         "\"c\" (Det"},
        /* a constant is transposed while loading, where no builder checks the axes */
        {"(float[1,2] x) => (y) <int64[2,3] c = {0, 1, 2, 3, 4, 5}>"
         "{ t = Transpose <perm = [1,1]> (c)  y = Reshape (x, t) }",
         "perm is not a permutation (entry 1 is 1)"},
        {"(float[1,2] x) => (y) { y = Add (x, later)  later = Relu (x) }",
         "node \"y\" reads \"later\", which no earlier node computes"},
        {"(float[1,2] x) => (y) { y = Relu (x)  y = Neg (x) }", "two values have the name \"y\""},
        {"(float[1,1,3,3] x) => (y) <float[2,1,2,2] w = {1, 2, 3, 4, 0, -1, 1}>"
         "{ y = Conv (x, w) }",
         "tensor \"w\": length of the data (got 7 elements, expected 8 for [2, 1, 2, 2])"},
        {"(float[1,1,3,3] x) => (y)"
         "<float[9223372036854775807,9223372036854775807,2,2] w = {1}> { y = Conv (x, w) }",
         "tensor \"w\": shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(model_of(17, cases[i].model), cases[i].message);
    Onnx__ModelProto *m = model_of(17, "(float[1,2] x) => (y) { y = Relu (x) }");
    free(m->graph->node[0]->domain);
    m->graph->node[0]->domain = strdup("com.microsoft");
    expect_refused(m, "\"y\" (com.microsoft.Relu, opset 17): the operator is not supported");
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
    Onnx__ModelProto *m = model_of(17, conv_model);
    Onnx__TensorProto *w = initializer_of(m, "w");
    Onnx__StringStringEntryProto *entry = malloc(sizeof *entry);
    onnx__string_string_entry_proto__init(entry);
    entry->key = strdup("location");
    entry->value = strdup(location);
    w->n_float_data = 0;
    w->has_data_location = 1;
    w->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    w->n_external_data = 1;
    w->external_data = malloc(sizeof *w->external_data);
    w->external_data[0] = entry;
    write_model(m, path);
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
        expect_file_refused(NULL, "is outside of the model's folder");
    }
    write_with_external("link");
    expect_file_refused(NULL, "external data \"link\" cannot be read");
    write_with_external("w.bin");
    cr_assert_eq(load_file(NULL), ADJ_OK, "%s", error.message);
    expect(conv_x, conv_y, 1e-5);
}

Test(onnx_load, no_model)
{
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL && fputs("\x89PNG no model", f) >= 0 && fclose(f) == 0);
    expect_file_refused(NULL, "is not an ONNX file, or truncated (13 bytes cannot be parsed)");
    snprintf(path, sizeof path, "%s/none.onnx", folder.s);
    expect_file_refused(NULL, "cannot be read: No such file");
    snprintf(path, sizeof path, "%s", folder.s);
    expect_file_refused(NULL, "is not a regular file");
}

Test(onnx_load, lists_that_are_NULL)
{
    const struct {
        adj_onnx_opts o;
        const char *says;
    } cases[] = {
        {{.n_dim = 1}, "adj_onnx_load: dim is NULL"},
        {{.n_given = 1}, "adj_onnx_load: given is NULL"},
        {{.n_known = 1}, "adj_onnx_load: known is NULL"},
        {{.n_dim = 1, .dim = &(adj_onnx_dim){NULL, 3}}, "the name of a dim is NULL"},
        {{.n_known = 1, .known = &(adj_tensor){0}}, "the name of a known tensor is NULL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_eq(adj_onnx_load(g, path, &cases[i].o, &net, &error), ADJ_EARG);
        expect_text(error.message, cases[i].says);
    }
}
