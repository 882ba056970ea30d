/* test_hostile.c - files that lie: attributes and sizes that overflow, operands of other types than
 * an operator takes, messages that are nested deeply. Each is refused with a message. */
#include "loaded.h"

TestSuite(onnx_hostile, .init = open_folder, .fini = close_folder);

typedef struct {
    const char *model, *message;
} lie;

static const lie operands[] = {
    {"(float[3] x) => (y) { y = Relu () }",
     "\"y\" (Relu, opset 17): an operand is missing, or is not a tensor"},
    {"(float[3] x) => (y) { list = SequenceConstruct (x, x) y = Relu (list) }",
     "\"y\" (Relu, opset 17): an operand is missing, or is not a tensor"},
    /* Where of known integers and a known float */
    {"(float[3] x) => (y) <int64[3] i, float f = {1}> { w = Where (i, i, f) y = Expand (x, w) }",
     "\"w\" (Where, opset 17): its operands differ in type"},
    {"(float[3] x, float[3] x) => (y) { y = Add (x, x) }", "two values have the name \"x\""},
};

static const lie sizes[] = {
    /* 2^62 floats, of which not one is in the file */
    {"(float[3] x) => (y) <float[4611686018427387904] w = {}> { y = Add (x, w) }",
     "tensor \"w\": shape [4611686018427387904] is invalid or too large"},
    {"(float[1,1,2,2] x) => (y) <float[1,1,1,1] w = {1}> { y = ConvTranspose"
     "<output_padding = [9223372036854775807,9223372036854775807]> (x, w) }",
     "output_padding is out of range (got 9223372036854775807"},
    {"(float[1,1,2,2] x) => (y) <float[1,1,1,1] w = {1}> { y = ConvTranspose"
     "<output_shape = [-9223372036854775808,-9223372036854775808]> (x, w) }",
     "output_shape is out of range (got -9223372036854775808"},
    /* an image so wide that its strides overflow */
    {"(float[1,1,1,1099511627776] x) => (y) <float[1,1,1,1] w = {1}>"
     "{ y = ConvTranspose <strides = [1,2147483647]> (x, w) }",
     "the size of a spatial axis is out of range"},
    /* each plane that the attribute counts would be a node */
    {"(float[1,1,1,1,1] x) => (y) <float[1,1,1,1,1] w = {1}> { y = Conv"
     "<kernel_shape = [2147483647,1,1], pads = [2147483647,0,0,2147483647,0,0]> (x, w) }",
     "kernel_shape is not the filter's (got 2147483647, expected 1)"},
    {"(float[1,1,1,1,1] x, float[1,1,2147483647,1,1] w) => (y)"
     "{ y = Conv <pads = [2147483647,0,0,2147483647,0,0]> (x, w) }",
     "depth of the window is out of range (got 2147483647, expected at most 1024"},
    {"(float[16777216] x) => (y)"
     "{ list = SplitToSequence (x) y = ConcatFromSequence (list) }",
     "a sequence of 16777216 elements (expected at most 65536)"},
    {"(float[1099511627776,1] x) => (y) <int64[2] repeats = {2147483647, 2147483647}>"
     "{ y = Tile (x, repeats) }",
     "node \"y\" (Tile)"},
    /* 2^40 x 2^40 products of a batch */
    {"(float[1099511627776,1,1,1] x, float[1,1099511627776,1,1] z) => (y) { y = MatMul (x, z) }",
     "number of products of a batch"},
    /* 10^100 does not fit integers: it becomes the largest one */
    {"(float[3] x) => (y) <int64[1] ten = {10}, int64[1] hundred = {100}>"
     "{ p = Pow (ten, hundred) y = Reshape (x, p) }",
     "9223372036854775807"},
};

static void expect_all_refused(const lie list[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        expect_refused(model_of(17, list[i].model), list[i].message);
}

Test(onnx_hostile, operands) { expect_all_refused(operands, sizeof operands / sizeof *operands); }
Test(onnx_hostile, sizes) { expect_all_refused(sizes, sizeof sizes / sizeof *sizes); }

Test(onnx_hostile, parts_of_a_split)
{
    load_text(17, "(float[3] x) => (y) { y = Split <num_outputs = 9223372036854775807> (x) }",
              NULL);
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

/* Fields of messages from the inside: as deep as that, then around them. */
typedef struct {
    const char *inner, *outer;
    int depth;
} nest;

Test(onnx_hostile, nested_messages)
{
    static const nest nests[] = {
        /* a sequence of sequences of ...: elem_type of sequence_type, in the type of a
         * ValueInfoProto, which is an input of the graph of a model */
        {"\x0a\x22", "\x12\x5a\x3a", 100000},
        /* g of an attribute of a node of a graph ..., of a model */
        {"\x32\x2a\x0a", "\x3a", 5000},
    };
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++) {
        enum { ROOM = 100000 * 12 };
        uint8_t *bytes = malloc(ROOM), *at = bytes + ROOM;
        size_t n = 0;
        for (int k = 0; k < nests[i].depth; k++)
            for (const char *key = nests[i].inner; *key != '\0'; key++)
                n = wrap(&at, n, (uint8_t)*key);
        for (const char *key = nests[i].outer; *key != '\0'; key++)
            n = wrap(&at, n, (uint8_t)*key);
        FILE *f = fopen(path, "wb");
        cr_assert(f != NULL && fwrite(at, 1, n, f) == n && fclose(f) == 0);
        free(bytes);
        expect_file_refused(NULL, "messages are nested too deeply");
    }
}
