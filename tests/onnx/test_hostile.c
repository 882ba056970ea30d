/* test_hostile.c - files that lie: attributes and sizes that overflow, operands of other types than
 * an operator takes, messages that are nested deeply. Each is refused with a message. */
#include <criterion/criterion.h>

#include "loaded.h"

TestSuite(onnx_hostile, .init = open_folder, .fini = close_folder);

static maker m;

/* Starts a model of the input x and the output y. */
static void start(int rank, const int64_t sizes[])
{
    maker_start(&m, 17);
    maker_input(&m, "x", rank, sizes);
    maker_output(&m, "y");
}

static void refused(const char *part) { expect_refused(&m, part); }

/* ---- operands ---- */

Test(onnx_hostile, no_operand)
{
    start(1, (int64_t[]){3});
    maker_node(&m, "Relu", "", "y");
    refused("\"y\" (Relu, opset 17): an operand is missing, or is not a tensor");
}

Test(onnx_hostile, sequence_in_place_of_a_tensor)
{
    start(1, (int64_t[]){3});
    maker_node(&m, "SequenceConstruct", "x x", "list");
    maker_node(&m, "Relu", "list", "y");
    refused("\"y\" (Relu, opset 17): an operand is missing, or is not a tensor");
}

/* Where of known integers and a known float. */
Test(onnx_hostile, known_operands_of_two_types)
{
    int64_t n, list[] = {0, 0, 0};
    float f = 1;
    start(1, (int64_t[]){3});
    maker_ints(&m, "i", 3, &n, list);
    maker_floats(&m, "f", 0, NULL, &f);
    maker_node(&m, "Where", "i i f", "w");
    maker_node(&m, "Expand", "x w", "y");
    refused("\"w\" (Where, opset 17): its operands differ in type");
}

Test(onnx_hostile, two_inputs_of_one_name)
{
    start(1, (int64_t[]){3});
    maker_input(&m, "x", 1, (int64_t[]){3});
    maker_node(&m, "Add", "x x", "y");
    refused("two values have the name \"x\"");
}

/* ---- sizes ---- */

/* 2^62 floats, of which not one is in the file. */
Test(onnx_hostile, bytes_overflow)
{
    int64_t huge[] = {INT64_C(1) << 62};
    start(1, (int64_t[]){3});
    maker_floats(&m, "w", 0, huge, NULL);
    m.tensor[0].n_dims = 1;
    m.tensor[0].n_float_data = 0;
    maker_node(&m, "Add", "x w", "y");
    refused("tensor \"w\": shape [4611686018427387904] is invalid or too large");
}

Test(onnx_hostile, output_padding)
{
    int64_t filter[] = {1, 1, 1, 1}, extra[] = {INT64_MAX, INT64_MAX};
    float w[] = {1};
    start(4, (int64_t[]){1, 1, 2, 2});
    maker_floats(&m, "w", 4, filter, w);
    maker_node(&m, "ConvTranspose", "x w", "y");
    maker_list(&m, "output_padding", 2, extra);
    refused("output_padding is out of range (got 9223372036854775807");
}

Test(onnx_hostile, output_shape)
{
    int64_t filter[] = {1, 1, 1, 1}, shape[] = {INT64_MIN, INT64_MIN};
    float w[] = {1};
    start(4, (int64_t[]){1, 1, 2, 2});
    maker_floats(&m, "w", 4, filter, w);
    maker_node(&m, "ConvTranspose", "x w", "y");
    maker_list(&m, "output_shape", 2, shape);
    refused("output_shape is out of range (got -9223372036854775808");
}

/* An image so wide that its strides overflow. */
Test(onnx_hostile, width)
{
    int64_t filter[] = {1, 1, 1, 1}, strides[] = {1, INT32_MAX};
    float w[] = {1};
    start(4, (int64_t[]){1, 1, 1, INT64_C(1) << 40});
    maker_floats(&m, "w", 4, filter, w);
    maker_node(&m, "ConvTranspose", "x w", "y");
    maker_list(&m, "strides", 2, strides);
    refused("the size of a spatial axis is out of range");
}

/* Each plane that the attribute counts would be a node. */
Test(onnx_hostile, planes_of_a_window)
{
    int64_t filter[] = {1, 1, 1, 1, 1}, kernel[] = {INT32_MAX, 1, 1};
    int64_t pads[] = {INT32_MAX, 0, 0, INT32_MAX, 0, 0};
    float w[] = {1};
    start(5, (int64_t[]){1, 1, 1, 1, 1});
    maker_floats(&m, "w", 5, filter, w);
    maker_node(&m, "Conv", "x w", "y");
    maker_list(&m, "kernel_shape", 3, kernel);
    maker_list(&m, "pads", 6, pads);
    refused("kernel_shape is not the filter's (got 2147483647, expected 1)");
}

Test(onnx_hostile, planes_of_a_filter_without_values)
{
    int64_t pads[] = {INT32_MAX, 0, 0, INT32_MAX, 0, 0};
    start(5, (int64_t[]){1, 1, 1, 1, 1});
    maker_input(&m, "w", 5, (int64_t[]){1, 1, INT32_MAX, 1, 1});
    maker_node(&m, "Conv", "x w", "y");
    maker_list(&m, "pads", 6, pads);
    refused("depth of the window is out of range (got 2147483647, expected at most 1024");
}

Test(onnx_hostile, parts_of_a_split)
{
    start(1, (int64_t[]){3});
    maker_node(&m, "Split", "x", "y");
    maker_int(&m, "num_outputs", INT64_MAX);
    maker_write(&m, path);
    cr_assert(adj_onnx_load(g, path, NULL, &net, &error) == ADJ_OK, "%s", error.message);
}

Test(onnx_hostile, parts_of_a_sequence)
{
    start(1, (int64_t[]){1 << 24});
    maker_node(&m, "SplitToSequence", "x", "list");
    maker_node(&m, "ConcatFromSequence", "list", "y");
    refused("a sequence of 16777216 elements (expected at most 65536)");
}

Test(onnx_hostile, tiles)
{
    int64_t n, repeats[] = {INT32_MAX, INT32_MAX};
    start(2, (int64_t[]){INT64_C(1) << 40, 1});
    maker_ints(&m, "repeats", 2, &n, repeats);
    maker_node(&m, "Tile", "x repeats", "y");
    refused("node \"y\" (Tile)");
}

/* 2^40 x 2^40 products of a batch. */
Test(onnx_hostile, products_of_a_batch)
{
    const int64_t large = INT64_C(1) << 40;
    start(4, (int64_t[]){large, 1, 1, 1});
    maker_input(&m, "z", 4, (int64_t[]){1, large, 1, 1});
    maker_node(&m, "MatMul", "x z", "y");
    refused("number of products of a batch");
}

/* 10^100 does not fit integers: it becomes the largest one. */
Test(onnx_hostile, power_of_integers)
{
    int64_t n, ten[] = {10}, hundred[] = {100};
    start(1, (int64_t[]){3});
    maker_ints(&m, "ten", 1, &n, ten);
    maker_ints(&m, "hundred", 1, &n, hundred);
    maker_node(&m, "Pow", "ten hundred", "p");
    maker_node(&m, "Reshape", "x p", "y");
    refused("9223372036854775807");
}

/* ---- nesting ---- */

/* Wraps n bytes before *at as the field of a message. */
static size_t wrap(uint8_t **at, size_t n, uint8_t key)
{
    uint8_t length[8];
    size_t of_length = 0;
    for (size_t rest = n; rest > 0 || of_length == 0; rest >>= 7)
        length[of_length++] = (uint8_t)((rest & 127) | (rest > 127 ? 128 : 0));
    *at -= of_length;
    memcpy(*at, length, of_length);
    *--*at = key;
    return n + of_length + 1;
}

/* A sequence of sequences of ... in the type of an input: 100,000 deep. */
Test(onnx_hostile, nested_types)
{
    enum { DEPTH = 100000, ROOM = DEPTH * 12 };
    uint8_t *bytes = malloc(ROOM), *at = bytes + ROOM;
    size_t n = 0;
    for (int i = 0; i < DEPTH; i++)
        n = wrap(&at, wrap(&at, n, 0x0a), 0x22); /* elem_type of sequence_type */
    n = wrap(&at, n, 0x12);                      /* type of a ValueInfoProto */
    n = wrap(&at, n, 0x5a);                      /* input of a graph */
    n = wrap(&at, n, 0x3a);                      /* graph of a model */
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL && fwrite(at, 1, n, f) == n && fclose(f) == 0);
    free(bytes);
    expect_refused(NULL, "messages are nested too deeply");
}
