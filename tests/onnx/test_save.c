/* test_save.c - files that adj_onnx_save writes, read back message by message and as a network.
 * tests/test_onnx.sh has ONNX Runtime run such files where it is installed. Files with a symbolic
 * batch are read back with another one than that of the graph: where reshapes and transposes move
 * the batch, and where numbers and parameters stand beside it. */
#include "graph/op.h"
#include "loaded.h"

/* Arguments of adj_onnx_save, and the file that it wrote last, read back. */
static unsigned flags;
static int n_metadata;
static const adj_metadata *metadata;
static Onnx__ModelProto *file;

static void start(void)
{
    open_folder();
    flags = 0;
    n_metadata = 0;
    metadata = NULL;
    file = NULL;
}

static void end(void)
{
    onnx__model_proto__free_unpacked(file, NULL);
    close_folder();
}

TestSuite(onnx_save, .init = start, .fini = end);

static adj_status try_to_save(adj_node *y)
{
    adj_exec_free(e);
    e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y, .seed = 3});
    return adj_onnx_save(e, 1, &y, path, flags, n_metadata, metadata, &error);
}

static void save(adj_node *y)
{
    static uint8_t bytes[1 << 22];
    cr_assert_eq(try_to_save(y), ADJ_OK, "%s", error.message);
    FILE *f = fopen(path, "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    onnx__model_proto__free_unpacked(file, NULL);
    file = onnx__model_proto__unpack(NULL, n, bytes);
    cr_assert(file != NULL && file->graph != NULL);
}

/* Asserts that y is refused with a message that has this part. */
static void refuse(adj_node *y, const char *part)
{
    cr_expect_eq(try_to_save(y), ADJ_EARG);
    expect_text(error.message, part);
}

static int count_ops(const char *op)
{
    int n = 0;
    for (size_t i = 0; i < file->graph->n_node; i++)
        n += strcmp(file->graph->node[i]->op_type, op) == 0;
    return n;
}

/* Returns y of numbered images x; the caller frees. */
static double *run_on_images(adj_node *x, const adj_node *y)
{
    const int64_t n = adj_shape_elems(adj_node_type(x).shape);
    scoped(release) double *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (double)(i % 101) / 101 - 0.4;
    set_values(e, x, v);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    return fixture_get(e, y);
}

/* Loads the file for a batch, and runs it on numbered images. */
static double *run_loaded(int64_t batch)
{
    cr_assert_eq(load_file(&(adj_onnx_opts){.batch = batch}), ADJ_OK, "%s", error.message);
    e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = net->output});
    return run_on_images(net->input[0], net->output[0]);
}

/* A convolution of NHWC images: one transpose before it and one after, the filter w[kh, kw, in,
 * out] as [out, in, kh, kw], SAME as pads. */
Test(onnx_save, conv)
{
    const float w[] = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 5, 5, 1}});
    adj_node *f = adj_param(g, "w", ADJ_F32, (adj_shape){4, {2, 3, 1, 2}},
                            (adj_init){.kind = ADJ_INIT_DATA, .data = w});
    adj_node *y = adj_label(adj_conv2d(x, f, &(adj_conv){.padding = ADJ_SAME}), "y");
    save(y);
    const Onnx__GraphProto *p = file->graph;
    cr_assert(file->n_opset_import == 1 && file->opset_import[0]->version == 17);
    cr_assert(p->n_node == 3 && strcmp(p->node[1]->op_type, "Conv") == 0);
    cr_assert(p->n_initializer == 1 && strcmp(p->initializer[0]->name, "w") == 0);
    const int64_t dims[] = {2, 1, 2, 3}, pads[] = {0, 1, 1, 1};
    const float turned[] = {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
    cr_assert(p->initializer[0]->n_dims == 4 &&
              memcmp(p->initializer[0]->dims, dims, sizeof dims) == 0);
    cr_assert(memcmp(p->initializer[0]->raw_data.data, turned, sizeof turned) == 0);
    int n_pads = 0;
    for (size_t i = 0; i < p->node[1]->n_attribute; i++) {
        const Onnx__AttributeProto *a = p->node[1]->attribute[i];
        n_pads += strcmp(a->name, "pads") == 0 && a->n_ints == 4 &&
                  memcmp(a->ints, pads, sizeof pads) == 0;
    }
    cr_assert(n_pads == 1);
    const Onnx__TensorShapeProto *s = p->input[0]->type->tensor_type->shape;
    cr_assert(s->n_dim == 4 && strcmp(s->dim[0]->dim_param, "batch") == 0);
}

/* save(load(x)) runs as x does: each built-in model. */
static void expect_same_after(const char *name, adj_format format)
{
    adj_model_opts o = {.batch = 2, .format = format};
    adj_node *y = adj_model_logits(g, adj_model_find(name, &o), &o);
    const int64_t n = adj_shape_elems(adj_node_type(y).shape);
    double most = 0;
    save(y);
    scoped(release) double *first = run_on_images(adj_find(g, "images"), y),
                           *second = run_loaded(2);
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(first[i]));
    expect_close(second, first, n, 0, 1e-5 * most, name);
}

Test(onnx_save, lenet) { expect_same_after("lenet", ADJ_NHWC); }
Test(onnx_save, lenet5_nchw) { expect_same_after("lenet5", ADJ_NCHW); }
Test(onnx_save, resnet8) { expect_same_after("resnet8", ADJ_NHWC); }
Test(onnx_save, resnet8_nchw) { expect_same_after("resnet8", ADJ_NCHW); }
Test(onnx_save, mobilenet_v1) { expect_same_after("mobilenet_v1", ADJ_NHWC); }
Test(onnx_save, ds_cnn) { expect_same_after("ds_cnn", ADJ_NHWC); }

/* ---- metadata ---- */

Test(onnx_save, metadata)
{
    const adj_metadata list[] = {
        {"mean", "[1,2]"}, {"", "an empty key"}, {"class_names", "[\"é\"]"}};
    metadata = list;
    n_metadata = 3;
    save(adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){2, {4, 3}})));
    cr_assert_eq(load_file(NULL), ADJ_OK, "%s", error.message);
    cr_assert_eq(net->n_metadata, 3);
    for (int i = 0; i < 3; i++) {
        cr_expect_str_eq(net->metadata[i].key, list[i].key);
        cr_expect_str_eq(net->metadata[i].value, list[i].value);
    }
    metadata = (adj_metadata[]){{"key", NULL}};
    n_metadata = 1;
    refuse(adj_input(g, "z", ADJ_F32, (adj_shape){1, {1}}), "value of metadata 0 is NULL");
    metadata = (adj_metadata[]){{NULL, "value"}};
    refuse(adj_input(g, "z2", ADJ_F32, (adj_shape){1, {1}}), "value of metadata 0 is NULL");
}

/* ---- batch norms that are folded ---- */

static void expect_folded(const char *name, adj_format format)
{
    flags = ADJ_ONNX_FOLD_BATCH_NORMS;
    expect_same_after(name, format);
    cr_assert_eq(count_ops("BatchNormalization"), 0);
}

Test(onnx_save, folds_resnet8) { expect_folded("resnet8", ADJ_NHWC); }
Test(onnx_save, folds_resnet8_nchw) { expect_folded("resnet8", ADJ_NCHW); }
Test(onnx_save, folds_mobilenet_v1) { expect_folded("mobilenet_v1", ADJ_NHWC); }
Test(onnx_save, folds_mobilenet_v1_nchw) { expect_folded("mobilenet_v1", ADJ_NCHW); }
Test(onnx_save, keeps_batch_norms)
{
    expect_same_after("resnet8", ADJ_NHWC);
    cr_assert(count_ops("BatchNormalization") > 0);
}

static adj_node *values(const char *name, adj_shape s, const float list[])
{
    return adj_param(g, name, ADJ_F32, s, (adj_init){.kind = ADJ_INIT_DATA, .data = list});
}

/* 3 (y + 1 - mean) / sqrt(variance + 1) + 5 of channel 0, with mean 7 and variance 3, and
 * 1 (y + 2 - 0) / 1 + 0 of channel 1. */
static adj_node *norm(adj_node *y, adj_format format)
{
    const adj_shape two = {1, {2}};
    adj_node *sum = adj_bias_add(y, values("b", two, (float[]){1, 2}), format);
    adj_node *stats = values("stats", (adj_shape){2, {2, 2}}, (float[]){7, 0, 3, 0});
    adj_node *gamma = values("gamma", two, (float[]){3, 1});
    adj_node *beta = values("beta", two, (float[]){5, 0});
    return adj_label(adj_batch_norm(sum, stats, gamma, beta, 1, format), "y");
}

/* The one operator that is written has these weights and this bias. */
static void expect_layer(const char *op, size_t n, const float weights[], const float bias[2])
{
    const Onnx__GraphProto *p = file->graph;
    cr_assert(p->n_node == 1 && strcmp(p->node[0]->op_type, op) == 0, "%zu nodes", p->n_node);
    cr_assert(p->n_initializer == 2 && strcmp(p->initializer[0]->name, "w") == 0);
    const float *w = (const float *)p->initializer[0]->raw_data.data;
    const float *b = (const float *)p->initializer[1]->raw_data.data;
    for (size_t i = 0; i < n; i++)
        cr_assert(fabsf(w[i] - weights[i]) < 1e-6F, "%zu: %g", i, (double)w[i]);
    cr_assert(fabsf(b[0] - bias[0]) < 1e-6F && fabsf(b[1] - bias[1]) < 1e-6F, "%g %g", (double)b[0],
              (double)b[1]);
}

static const float four[] = {2, 10, 4, 20};

static adj_node *wide_conv(void)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 1, 3, 3}});
    adj_node *w = values("w", (adj_shape){4, {1, 2, 1, 2}}, four);
    return adj_conv2d(x, w, &(adj_conv){.format = ADJ_NCHW});
}

/* The filters of channel 0 become 3 / 2 times as large; biases (1 - 7) 3 / 2 + 5 and 2. */
Test(onnx_save, folds_conv)
{
    flags = ADJ_ONNX_FOLD_BATCH_NORMS;
    save(norm(wide_conv(), ADJ_NCHW));
    expect_layer("Conv", 4, (float[]){3, 6, 10, 20}, (float[]){-4, 2});
}

static void fold_product(unsigned transpose, const float folded[4])
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {3, 2}});
    adj_node *y = adj_matmul(x, values("w", (adj_shape){2, {2, 2}}, four), transpose);
    flags = ADJ_ONNX_FOLD_BATCH_NORMS;
    save(norm(y, ADJ_NHWC));
    expect_layer("Gemm", 4, folded, (float[]){-4, 2});
    const Onnx__NodeProto *p = file->graph->node[0];
    cr_assert(transpose == 0 ? p->n_attribute == 0 : strcmp(p->attribute[0]->name, "transB") == 0);
}

Test(onnx_save, folds_product) { fold_product(0, (float[]){3, 10, 6, 20}); }
Test(onnx_save, folds_product_by_rows) { fold_product(ADJ_TRANSPOSE_B, (float[]){3, 15, 4, 20}); }

/* A convolution that something else reads, too, stays. */
Test(onnx_save, keeps_a_batch_norm_beside_another_reader)
{
    adj_node *y = wide_conv();
    flags = ADJ_ONNX_FOLD_BATCH_NORMS;
    save(adj_add(y, norm(y, ADJ_NCHW)));
    cr_assert_eq(count_ops("BatchNormalization"), 1);
}

/* A depthwise convolution that was imported: its filter keeps name and shape, and nothing but the
 * convolution and the batch norm is written. */
static void save_imported(void)
{
    load_text(17,
              "(float[1,2,3,3] x) => (y) <float[2,1,1,2] w = {2, 4, 10, 20},"
              " float[2] gamma = {3, 1}, float[2] beta = {5, 0}, float[2] mean = {6, -2},"
              " float[2] variance = {4, 1}>"
              "{ c = Conv <group = 2> (x, w)"
              "  y = BatchNormalization <epsilon = 0.0> (c, gamma, beta, mean, variance) }",
              NULL);
    save(net->output[0]);
}

Test(onnx_save, imported_depthwise)
{
    save_imported();
    cr_assert(file->graph->n_node == 2 && file->graph->n_initializer == 5);
    const Onnx__TensorProto *w = file->graph->initializer[0];
    cr_assert(strcmp(w->name, "w") == 0 && w->n_dims == 4 && w->dims[0] == 2 && w->dims[3] == 2);
    cr_assert(memcmp(w->raw_data.data, (float[]){2, 4, 10, 20}, 16) == 0);
}

Test(onnx_save, folds_imported_depthwise)
{
    flags = ADJ_ONNX_FOLD_BATCH_NORMS;
    save_imported();
    expect_layer("Conv", 4, (float[]){3, 6, 10, 20}, (float[]){-4, 2});
}

Test(onnx_save, refuses_training)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 5, 5, 3}});
    refuse(adj_layer_batch_norm(x, "bn1", &(adj_norm_layer){.training = 1}),
           "batch_norm_stats \"\" (node");
    expect_text(error.message, "cannot be saved");
}

/* ---- biases ---- */

/* The file has the bias b [2], which an operator `op` reads as operand `at`, and `adds` additions.
 */
static void expect_bias(adj_node *y, const char *op, size_t at, int adds)
{
    int n_list = 0, n_reader = 0;
    save(y);
    cr_assert_eq(count_ops("Add"), adds, "%s: %d", op, count_ops("Add"));
    for (size_t i = 0; i < file->graph->n_initializer; i++) {
        const Onnx__TensorProto *t = file->graph->initializer[i];
        n_list += strcmp(t->name, "b") == 0 && t->n_dims == 1 && t->dims[0] == 2 &&
                  memcmp(t->raw_data.data, (float[]){1, 2}, 8) == 0;
    }
    for (size_t i = 0; i < file->graph->n_node; i++) {
        const Onnx__NodeProto *p = file->graph->node[i];
        n_reader +=
            strcmp(p->op_type, op) == 0 && p->n_input > at && strcmp(p->input[at], "b") == 0;
    }
    cr_assert(n_list == 1 && n_reader == 1, "%s: %d lists, %d readers", op, n_list, n_reader);
    new_net();
}

static adj_node *add_bias(adj_node *y, adj_format format)
{
    return adj_bias_add(y, values("b", (adj_shape){1, {2}}, (float[]){1, 2}), format);
}

/* A convolution of [1, 2, 2, 2] in either format; kind 1: depthwise, 2: transposed. */
static adj_node *conv_of(adj_format format, int kind)
{
    const adj_conv a = {.format = format};
    const adj_shape s = {4, {1, 2, 2, 2}};
    adj_node *x = adj_input(g, "x", ADJ_F32, s);
    adj_node *f = values("w", (adj_shape){4, {1, 1, 2, kind == 1 ? 1 : 2}}, four);
    return kind == 0   ? adj_conv2d(x, f, &a)
           : kind == 1 ? adj_depthwise_conv2d_native(x, f, &a)
                       : adj_conv2d_backprop_input(s, f, x, &a);
}

Test(onnx_save, bias_of_a_convolution)
{
    static const char *const ops[] = {"Conv", "Conv", "ConvTranspose"};
    for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++)
        for (int kind = 0; kind < 3; kind++)
            expect_bias(add_bias(conv_of((adj_format)format, kind), (adj_format)format), ops[kind],
                        2, 0);
}

/* A convolution that something else reads, too, stays without the bias, which is still a list. */
Test(onnx_save, bias_beside_another_reader)
{
    adj_node *y = conv_of(ADJ_NCHW, 0);
    expect_bias(adj_mul(y, add_bias(y, ADJ_NCHW)), "Reshape", 0, 1);
}

/* A bias of another format than the convolution's belongs to another axis. */
Test(onnx_save, bias_of_another_axis)
{
    expect_bias(add_bias(conv_of(ADJ_NCHW, 0), ADJ_NHWC), "Add", 1, 1);
}

TestSuite(onnx_save_batch, .init = start, .fini = end);

typedef adj_node *build_fn(adj_node *x);

/* Saves build's graph of a batch of 2 for images [batch, 4, 3, 3]. Read back with a batch of 5 it
 * computes what build's graph of a batch of 5 does. */
static void expect_any_batch(build_fn *build)
{
    save(build(adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 4, 3, 3}})));
    scoped(release) double *got = run_loaded(5);
    const adj_shape s = adj_node_type(net->output[0]).shape;
    new_net();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {5, 4, 3, 3}}), *y = build(x);
    cr_assert(adj_shape_equal(adj_node_type(y).shape, s), "%s", adj_shape_text(s).s);
    e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
    scoped(release) double *expected = run_on_images(x, y);
    expect_close(got, expected, adj_shape_elems(s), 1e-6, 1e-6, "another batch");
}

static adj_node *part_of(adj_node *x, int64_t begin, int64_t size)
{
    adj_shape from = {.rank = adj_node_type(x).shape.rank}, length = adj_node_type(x).shape;
    from.dim[0] = begin;
    length.dim[0] = size;
    return adj_slice(x, from, length);
}

/* Twice the batch is a size of the first axis, and the batch is the second axis of the halves. */
static adj_node *build_moved(adj_node *x)
{
    const int64_t b = adj_node_type(x).shape.dim[0];
    const int halves_first[] = {1, 0, 2, 3};
    adj_node *h = adj_transpose(adj_reshape(x, (adj_shape){4, {b, 2, 6, 3}}), 4, halves_first);
    adj_node *first = adj_reshape(part_of(h, 0, 1), (adj_shape){2, {b * 6, 3}});
    adj_node *second = adj_reshape(part_of(h, 1, 1), (adj_shape){2, {b * 6, 3}});
    return adj_reshape(adj_mul(first, second), (adj_shape){2, {b, 18}});
}
Test(onnx_save_batch, batch_of_another_axis) { expect_any_batch(build_moved); }

/* Numbers around images, and an image of its own beside each. */
static adj_node *build_padded(adj_node *x)
{
    const int64_t b = adj_node_type(x).shape.dim[0];
    adj_node *ones = adj_fill(g, ADJ_F32, (adj_shape){4, {b, 4, 2, 3}}, 1);
    adj_node *parts[] = {ones, x, ones};
    adj_node *padded = adj_concat(3, parts, 2);
    adj_node *own = values("own", (adj_shape){4, {1, 1, 1, 3}}, (float[]){1, 2, 3});
    adj_node *both[] = {padded, adj_broadcast_to(own, (adj_shape){4, {b, 4, 1, 3}})};
    return adj_add(adj_concat(2, both, 2), adj_fill(g, ADJ_F32, (adj_shape){4, {b, 4, 8, 3}}, 2));
}
Test(onnx_save_batch, numbers_beside_a_batch)
{
    expect_any_batch(build_padded);
    cr_assert(count_ops("Pad") == 1 && count_ops("Expand") == 1);
}

static adj_node *build_resized(adj_node *x)
{
    const adj_sampling a = {.mode = ADJ_BILINEAR, .format = ADJ_NCHW};
    return adj_resize(x, 5, 7, &a);
}
Test(onnx_save_batch, sizes_that_are_no_multiples) { expect_any_batch(build_resized); }

/* The products of the channels with themselves, one after the other as the import has them. */
static adj_node *build_products(adj_node *x)
{
    enum { MOST = 5 * 4 };
    const int64_t count = adj_node_type(x).shape.dim[0] * 4;
    adj_node *all = adj_reshape(x, (adj_shape){3, {count, 3, 3}}), *part[MOST];
    for (int64_t i = 0; i < count; i++) {
        adj_node *one = adj_reshape(part_of(all, i, 1), (adj_shape){2, {3, 3}});
        part[i] = adj_matmul(one, one, 0);
    }
    return adj_reshape(adj_concat((int)count, part, 0), (adj_shape){4, {count / 4, 4, 3, 3}});
}
Test(onnx_save_batch, products_of_a_batch)
{
    expect_any_batch(build_products);
    cr_assert(count_ops("MatMul") == 1 && count_ops("Slice") == 0);
}

/* An epsilon beside which the variances are small. */
static adj_node *build_group_norm(adj_node *x)
{
    const adj_shape channels = {1, {4}};
    adj_node *gamma = values("gamma", channels, (float[]){1, 2, 3, 4});
    adj_node *beta = values("beta", channels, (float[]){4, 3, 2, 1});
    return adj_group_norm(x, gamma, beta, 2, 0.5, ADJ_NCHW);
}
Test(onnx_save_batch, group_norm)
{
    expect_any_batch(build_group_norm);
    cr_assert_eq(count_ops("InstanceNormalization"), 1);
}

/* The batch is the columns of the first matrix, and the rows of the product. */
static adj_node *build_turned_product(adj_node *x)
{
    const int turned[] = {1, 0};
    const int64_t b = adj_node_type(x).shape.dim[0];
    adj_node *columns = adj_transpose(adj_reshape(x, (adj_shape){2, {b, 36}}), 2, turned);
    adj_node *w = adj_fill(g, ADJ_F32, (adj_shape){2, {36, 6}}, 0.5);
    return adj_reshape(adj_matmul(columns, w, ADJ_TRANSPOSE_A), (adj_shape){3, {b, 2, 3}});
}
Test(onnx_save_batch, columns_of_a_product) { expect_any_batch(build_turned_product); }

/* A part of the batch has another size in another batch. */
Test(onnx_save_batch, part_of_the_batch)
{
    adj_node *y = part_of(adj_input(g, "x", ADJ_F32, (adj_shape){2, {4, 3}}), 0, 2);
    adj_node *parts[] = {y, y};
    y = adj_concat(2, parts, 0);
    refuse(y, "it takes a part of the batch");
    flags = ADJ_ONNX_FIXED_BATCH;
    save(y);
}

/* A convolution with a bias whose filter is computed. */
static adj_node *build_computed_filter(adj_node *x)
{
    adj_node *w = values("w", (adj_shape){4, {1, 1, 4, 1}}, (float[]){1, -2, 3, 0.5F});
    adj_node *b = values("b", (adj_shape){1, {1}}, (float[]){1});
    return adj_bias_add(adj_conv2d(x, adj_square(w), &(adj_conv){.format = ADJ_NCHW}), b, ADJ_NCHW);
}
Test(onnx_save_batch, computed_filter) { expect_any_batch(build_computed_filter); }

/* A parameter with the size of the batch works with no other batch. */
Test(onnx_save_batch, parameter_of_the_batch)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 3}});
    adj_node *own = values("own", (adj_shape){2, {2, 3}}, (float[]){1, 2, 3, 4, 5, 6});
    adj_node *const both[] = {x, own};
    adj_node *y = adj_mul(adj_tanh(x), own);
    refuse(y, "\"own\" (node 1) has the size of the batch");
    refuse(adj_concat(2, both, 1), "\"own\" (node 1) has the size of the batch");
    flags = ADJ_ONNX_FIXED_BATCH;
    save(y);
}
