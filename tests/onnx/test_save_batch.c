/* test_save_batch.c - files with a symbolic batch, read back with another one than that of the
 * graph: where reshapes and transposes move the batch, and where numbers and parameters stand
 * beside it. */
#include <math.h>

#include "graph/op.h"
#include "saved.h"
#include "tests/plan.h"

TestSuite(onnx_save_batch, .init = start, .fini = end);

typedef adj_node *build_fn(adj_node *x);

/* Saves build's graph of a batch of 2 for images [batch, 4, 3, 3]. Read back with a batch of 5 it
 * computes what build's graph of a batch of 5 does. */
static void expect_any_batch(build_fn *build)
{
    enum { IMAGE = 4 * 3 * 3, MOST = 4096 };
    static float expected[MOST], got[MOST];
    adj_error error = {0};
    adj_onnx_net *net;
    cr_assert(save(build(adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 4, 3, 3}})), &error) ==
                  ADJ_OK,
              "%s", error.message);
    adj_graph *other = adj_graph_new(), *again = adj_graph_new();
    adj_node *x = adj_input(other, "x", ADJ_F32, (adj_shape){4, {5, 4, 3, 3}}), *y = build(x);
    cr_assert(adj_onnx_load(again, path, &(adj_onnx_opts){.batch = 5}, &net, &error) == ADJ_OK,
              "%s", error.message);
    const adj_shape s = adj_node_type(y).shape;
    cr_assert(adj_shape_equal(adj_node_type(net->output[0]).shape, s), "%s",
              adj_shape_text(adj_node_type(net->output[0]).shape).s);
    cr_assert(adj_shape_elems(s) <= MOST);
    for (int k = 0; k < 2; k++) {
        scoped(release_exec) adj_exec *exec = NULL;
        const adj_exec_opts o = {.n_fetch = 1, .fetch = k == 0 ? &y : net->output};
        cr_assert(adj_exec_new(k == 0 ? other : again, &o, &exec) == ADJ_OK);
        run(exec, k == 0 ? x : net->input[0], o.fetch[0], k == 0 ? expected : got);
    }
    for (int64_t i = 0; i < adj_shape_elems(s); i++)
        cr_assert(fabsf(got[i] - expected[i]) <= 1e-6F * (1 + fabsf(expected[i])), "%d: %g, not %g",
                  (int)i, (double)got[i], (double)expected[i]);
    adj_onnx_free(net);
    adj_graph_free(other);
    adj_graph_free(again);
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
    adj_graph *graph = adj_node_graph(x);
    const int64_t b = adj_node_type(x).shape.dim[0];
    adj_node *ones = adj_fill(graph, ADJ_F32, (adj_shape){4, {b, 4, 2, 3}}, 1);
    adj_node *parts[] = {ones, x, ones};
    adj_node *padded = adj_concat(3, parts, 2);
    const float list[] = {1, 2, 3};
    adj_node *own = adj_param(graph, "own", ADJ_F32, (adj_shape){4, {1, 1, 1, 3}},
                              (adj_init){.kind = ADJ_INIT_DATA, .data = list});
    adj_node *both[] = {padded, adj_broadcast_to(own, (adj_shape){4, {b, 4, 1, 3}})};
    return adj_add(adj_concat(2, both, 2),
                   adj_fill(graph, ADJ_F32, (adj_shape){4, {b, 4, 8, 3}}, 2));
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

/* A part of the batch has another size in another batch. */
Test(onnx_save_batch, part_of_the_batch)
{
    adj_error error = {0};
    adj_node *y = part_of(adj_input(g, "x", ADJ_F32, (adj_shape){2, {4, 3}}), 0, 2);
    adj_node *parts[] = {y, y};
    y = adj_concat(2, parts, 0);
    cr_assert(save(y, &error) == ADJ_EARG);
    cr_assert(strstr(error.message, "it takes a part of the batch") != NULL, "%s", error.message);
    adj_exec_free(e);
    flags = ADJ_ONNX_FIXED_BATCH;
    cr_assert(save(y, &error) == ADJ_OK);
}

/* A convolution with a bias whose filter is computed. */
static adj_node *build_computed_filter(adj_node *x)
{
    adj_graph *graph = adj_node_graph(x);
    const float list[] = {1, -2, 3, 0.5F};
    adj_node *w = adj_param(graph, "w", ADJ_F32, (adj_shape){4, {1, 1, 4, 1}},
                            (adj_init){.kind = ADJ_INIT_DATA, .data = list});
    adj_node *b = adj_param(graph, "b", ADJ_F32, (adj_shape){1, {1}},
                            (adj_init){.kind = ADJ_INIT_DATA, .data = list});
    return adj_bias_add(adj_conv2d(x, adj_square(w), &(adj_conv){.format = ADJ_NCHW}), b, ADJ_NCHW);
}
Test(onnx_save_batch, computed_filter) { expect_any_batch(build_computed_filter); }

/* A parameter with the size of the batch works with no other batch. */
Test(onnx_save_batch, parameter_of_the_batch)
{
    adj_error error = {0};
    const float list[] = {1, 2, 3, 4, 5, 6};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 3}});
    adj_node *own = adj_param(g, "own", ADJ_F32, (adj_shape){2, {2, 3}},
                              (adj_init){.kind = ADJ_INIT_DATA, .data = list});
    adj_node *const both[] = {x, own};
    adj_node *y = adj_mul(adj_tanh(x), own), *list_of[] = {y, adj_concat(2, both, 1)};
    for (int i = 0; i < 2; i++) {
        cr_assert(save(list_of[i], &error) == ADJ_EARG);
        cr_assert(strstr(error.message, "\"own\" (node 1) has the size of the batch") != NULL, "%s",
                  error.message);
        adj_exec_free(e);
    }
    flags = ADJ_ONNX_FIXED_BATCH;
    cr_assert(save(y, &error) == ADJ_OK);
}
