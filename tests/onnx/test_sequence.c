/* test_sequence.c - sequences of tensors that are known while loading, and the broadcasting of
 * opset 6: values by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_onnx.h"
#include "model_maker.h"
#include "temporary.h"

static temporary folder;
static char path[96];
static adj_error error;
static maker m;
static const int64_t matrix[] = {2, 3};

static void open_folder(void)
{
    folder = temporary_folder();
    snprintf(path, sizeof path, "%s/net.onnx", folder.s);
    error = (adj_error){0};
}

static void close_folder(void)
{
    cr_assert(remove(path) == 0);
    cr_assert(remove(folder.s) == 0);
}

TestSuite(onnx_sequence, .init = open_folder, .fini = close_folder);

static void start(int64_t opset)
{
    maker_start(&m, opset);
    maker_input(&m, "x", 2, matrix);
    maker_output(&m, "y");
}

/* Loads the model and asserts its result for x = [[1, 2, 3], [4, 5, 6]]. */
static void expect(int n, const float want[])
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    float y[6];
    adj_graph *g = adj_graph_new();
    adj_onnx_net *net;
    adj_exec *e;
    maker_write(&m, path);
    cr_assert(adj_onnx_load(g, path, NULL, &net, &error) == ADJ_OK, "%s", error.message);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = net->output};
    cr_assert(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK &&
                  adj_get(e, net->output[0], y, (size_t)n * sizeof *y) == ADJ_OK,
              "%s", adj_exec_message(e));
    for (int i = 0; i < n; i++)
        cr_assert_eq(y[i], want[i], "%d: %g, expected %g", i, (double)y[i], (double)want[i]);
    adj_exec_free(e);
    adj_onnx_free(net);
    adj_graph_free(g);
}

static void expect_refused(const char *text)
{
    adj_graph *g = adj_graph_new();
    adj_onnx_net *net;
    maker_write(&m, path);
    cr_assert(adj_onnx_load(g, path, NULL, &net, &error) != ADJ_OK);
    cr_assert(strstr(error.message, text) != NULL, "%s", error.message);
    adj_graph_free(g);
}

/* The columns of x as three vectors. */
static void split_columns(void)
{
    start(17);
    maker_node(&m, "SplitToSequence", "x", "columns");
    maker_int(&m, "axis", 1);
    maker_int(&m, "keepdims", 0);
}

/* The last column first: insert takes a place from the end, erase one from the start. */
Test(onnx_sequence, columns_in_another_order)
{
    int64_t one, at[] = {1}, end[] = {-1};
    split_columns();
    maker_ints(&m, "at", 1, &one, at);
    maker_ints(&m, "end", 1, &one, end);
    maker_node(&m, "SequenceAt", "columns at", "second");
    maker_node(&m, "SequenceErase", "columns at", "two");
    maker_node(&m, "SequenceInsert", "two second end", "all");
    maker_node(&m, "ConcatFromSequence", "all", "y");
    maker_int(&m, "axis", 1);
    maker_int(&m, "new_axis", 1);
    expect(6, (float[]){1, 2, 3, 4, 5, 6});
}

Test(onnx_sequence, rows_one_below_the_other)
{
    start(17);
    maker_node(&m, "Neg", "x", "z");
    maker_node(&m, "SequenceConstruct", "x z", "both");
    maker_node(&m, "SequenceErase", "both", "first");
    maker_node(&m, "ConcatFromSequence", "first", "y");
    maker_int(&m, "axis", 0);
    expect(6, (float[]){1, 2, 3, 4, 5, 6});
}

Test(onnx_sequence, place_out_of_range)
{
    int64_t one, at[] = {3};
    split_columns();
    maker_ints(&m, "at", 1, &one, at);
    maker_node(&m, "SequenceAt", "columns at", "y");
    expect_refused("position 3 is out of range (expected below 3)");
}

Test(onnx_sequence, no_sequence)
{
    start(17);
    maker_node(&m, "SequenceLength", "x", "y");
    expect_refused("its operand is not a sequence");
}

/* Up to opset 6 an axis says where the second operand's axes begin. */
Test(onnx_sequence, broadcast_along_an_axis)
{
    int64_t two[] = {2};
    float b[] = {10, 20};
    start(6);
    maker_floats(&m, "b", 1, two, b);
    maker_node(&m, "Add", "x b", "y");
    maker_int(&m, "broadcast", 1);
    maker_int(&m, "axis", 0);
    expect(6, (float[]){11, 12, 13, 24, 25, 26});
}

Test(onnx_sequence, broadcast_beyond_the_axes)
{
    int64_t sizes[] = {2, 3};
    float b[6] = {0};
    start(6);
    maker_floats(&m, "b", 2, sizes, b);
    maker_node(&m, "Add", "x b", "y");
    maker_int(&m, "broadcast", 1);
    maker_int(&m, "axis", 1);
    expect_refused("its second operand exceeds the first's axes");
}

/* -1, 0 and 1; and 0 for values up to 1/2. */
Test(onnx_sequence, sign_and_shrink)
{
    int64_t two[] = {2, 3};
    float b[] = {3, 1.75F, 1, 4, 10, 12};
    start(17);
    maker_floats(&m, "b", 2, two, b);
    maker_node(&m, "Sub", "x b", "d"); /* -2 1/4 2 0 -5 -6 */
    maker_node(&m, "Sign", "d", "s");
    maker_node(&m, "Shrink", "d", "t");
    maker_node(&m, "Add", "s t", "y");
    expect(6, (float[]){-3, 1, 3, 0, -6, -7});
}
