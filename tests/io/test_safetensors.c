/* test_safetensors.c - files written and read back, files in literal bytes, and hostile ones: read
 * from a file, and from memory, where tensors lie in it and nothing is read past its end.
 * Checksums: a flipped bit anywhere in a file is refused, or changes nothing; files without
 * checksums are read. */
#include <criterion/criterion.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "graph/op.h"
#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/scoped.h"

TestSuite(safetensors, .init = enter_folder, .fini = leave_folder);

enum { ROOM = 4096 };

/* Bytes that end where a page without access begins. */
typedef struct {
    uint8_t *pages, *bytes;
    size_t n;
} guarded;

static guarded guard(const void *bytes, size_t n)
{
    guarded g = {.n = n};
    cr_assert_leq(n, ROOM);
    g.pages =
        mmap(NULL, (size_t)ROOM * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(g.pages, MAP_FAILED);
    cr_assert_eq(mprotect(g.pages + ROOM, ROOM, PROT_NONE), 0);
    g.bytes = g.pages + ROOM - n;
    memcpy(g.bytes, bytes, n);
    return g;
}

static void unguard(const guarded *g) { munmap(g->pages, (size_t)ROOM * 2); }

/* Expects what is read from memory to be what is read from the file, without copies. */
static void expect_as_file(const guarded *g, const adj_tensors *t, const char *path,
                           adj_status status)
{
    scoped(release_tensors) adj_tensors *ours = NULL;
    cr_expect_eq(adj_tensors_from_memory(g->bytes, g->n, &ours), status, "%zu bytes: %s", g->n,
                 ours->message);
    if (status == ADJ_OK)
        cr_expect_str_empty(ours->message);
    else
        cr_expect_str_eq(strstr(ours->message, "memory") + strlen("memory"),
                         strstr(t->message, path) + strlen(path));
    cr_assert_eq(ours->n, t->n);
    for (int i = 0; i < t->n; i++) {
        const adj_tensor a = ours->tensor[i], b = t->tensor[i];
        const int64_t bytes = adj_tensor_bytes(&b);
        cr_expect_str_eq(a.name, b.name);
        if (a.data != NULL && bytes > 0)
            cr_expect((const uint8_t *)a.data >= g->bytes &&
                      (const uint8_t *)a.data + bytes <= g->bytes + g->n &&
                      memcmp(a.data, b.data, (size_t)bytes) == 0);
    }
    cr_assert_eq(ours->n_metadata, t->n_metadata);
    for (int i = 0; i < t->n_metadata; i++)
        cr_expect(strcmp(ours->metadata[i].key, t->metadata[i].key) == 0 &&
                  strcmp(ours->metadata[i].value, t->metadata[i].value) == 0);
}

/* Reads the first n bytes from a file and from memory; the answers must be the same. */
static adj_status read_twice(const file_bytes *file, size_t n, adj_tensors **t)
{
    const file_name path = in_folder(&here, "x.safetensors");
    guarded g = guard(file->bytes, n);
    put_file(path.s, file->bytes, n);
    const adj_status status = adj_safetensors_read(path.s, t);
    cr_assert_not_null(*t);
    expect_as_file(&g, *t, path.s, status);
    unguard(&g);
    return status;
}

static adj_tensors *read_bytes(const file_bytes *file, size_t n, adj_status expected)
{
    adj_tensors *t = NULL;
    cr_expect_eq(read_twice(file, n, &t), expected, "%s", t->message);
    if (expected != ADJ_OK) {
        expect_text(t->message, "x.safetensors");
        expect_text(t->message, "offset ");
        cr_expect_eq(t->n, 0);
        cr_expect_eq(adj_tensors_find(t, "a"), -1);
        cr_expect_null(adj_tensors_metadata(t, "k"));
    }
    return t;
}

Test(safetensors, reads_literal_bytes)
{
    file_bytes file = safetensors_of(good_header, 24);
    adj_tensors *t = read_bytes(&file, file.n, ADJ_OK);
    static const struct {
        const char *name;
        adj_dtype dtype;
        int64_t rank, dim0;
        uint8_t first;
    } want[] = {{"a", ADJ_BF16, 1, 3, 0},
                {"e", ADJ_I32, 2, 0, 6},
                {"b", ADJ_F32, 2, 2, 6},
                {"s", ADJ_F64, 0, 0, 14},
                {"h", ADJ_F16, 1, 1, 22}};

    cr_assert_eq(t->n, 5);
    for (int i = 0; i < 5; i++) {
        adj_tensor x = t->tensor[i];
        cr_expect_str_eq(x.name, want[i].name);
        cr_expect_eq(adj_tensors_find(t, want[i].name), i);
        cr_expect(x.elem == (adj_elem)want[i].dtype && x.shape.rank == want[i].rank &&
                  x.shape.dim[0] == want[i].dim0);
        if (adj_shape_elems(x.shape) > 0)
            cr_expect_eq(*(const uint8_t *)x.data, want[i].first);
    }
    cr_expect_str_eq(adj_tensors_metadata(t, "k"), "v");
    cr_expect_str_eq(adj_tensors_metadata(t, "l"), "w");
    cr_expect_null(adj_tensors_metadata(t, "m"));
    adj_tensors_free(t);

    file = safetensors_of("{}", 0); /* no tensors: an empty file of its kind */
    t = read_bytes(&file, file.n, ADJ_OK);
    cr_expect_eq(t->n, 0);
    adj_tensors_free(t);
}

/* A byte comes first, so that every other tensor begins at an odd address. The values are NumPy's:
 * numpy.frombuffer(bytes(range(29)), dtype, 1, offset). */
Test(safetensors, tensors_at_odd_addresses)
{
    static const char header[] =
        "{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9,13]},"
        "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[13,17]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[17,19]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[19,21]},"
        "\"l\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[21,29]}}";
    static const struct {
        adj_dtype dtype;
        double value;
    } want[] = {{ADJ_F64, 5.447603722011605e-270},
                {ADJ_F32, 1.0711190335780294e-31},
                {ADJ_I32, 269422093},
                {ADJ_F16, 0.0007405281066894531},
                {ADJ_BF16, 7.421603396319279e-27}};
    file_bytes file = safetensors_of(header, 29);
    scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_OK);

    for (int i = 0; i < 5; i++) {
        const adj_tensor x = t->tensor[i + 1];
        double real;
        float single;
        cr_expect_eq(adj_tensor_value(&x, 0), want[i].value, "%d: %.17g", i,
                     adj_tensor_value(&x, 0));
        adj_convert(want[i].dtype, x.data, ADJ_F32, &single, 1);
        cr_expect_eq(single, (float)want[i].value, "%d: %.9g", i, (double)single);
        adj_convert(want[i].dtype, x.data, ADJ_F64, &real, 1);
        cr_expect_eq(real, want[i].value, "%d: %.17g", i, real);
    }
    const adj_tensor last = t->tensor[6];
    cr_expect_eq(adj_tensor_value(&last, 0), 2025241152513840661.0, "%.17g",
                 adj_tensor_value(&last, 0));
}

/* The data are bytes 0, 1, 2, ...; the values are NumPy's and, of F8, those of the Open Compute
 * Project's specification. */
Test(safetensors, elements_that_no_executor_has)
{
    static const struct {
        const char *word, *name;
        size_t size;
        double second; /* element 1 */
    } want[] = {{"I64", "i64", 8, 1084818905618843912},
                {"I16", "i16", 2, 770},
                {"I8", "i8", 1, 1},
                {"U64", "u64", 8, 1084818905618843912},
                {"U32", "u32", 4, 117835012},
                {"U16", "u16", 2, 770},
                {"U8", "u8", 1, 1},
                {"BOOL", "bool", 1, 1},
                {"F8_E4M3", "f8_e4m3", 1, 0.001953125},
                {"F8_E5M2", "f8_e5m2", 1, 1.52587890625e-05}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char header[128];
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%zu]}}", want[i].word,
                 2 * want[i].size);
        file_bytes file = safetensors_of(header, 2 * want[i].size);
        scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_OK);
        adj_tensor x = t->tensor[0];
        adj_type type;
        cr_expect_str_eq(adj_elem_name(x.elem), want[i].name);
        cr_expect_eq(adj_tensor_bytes(&x), (int64_t)(2 * want[i].size));
        cr_expect_eq(adj_tensor_value(&x, 1), want[i].second, "%s: %.17g", want[i].word,
                     adj_tensor_value(&x, 1));
        cr_expect(!adj_tensor_type(&x, &type));
    }

    static const uint8_t e4m3[] = {0x38, 0xb8, 0x7e, 0x7f, 0x08, 0x87, 0x00},
                         e5m2[] = {0x3c, 0xbc, 0x7b, 0x7c, 0x7e, 0x04, 0x83};
    static const double want4[] = {1, -1, 448, NAN, 0.015625, -0.013671875, 0},
                        want5[] = {
                            1, -1, 57344, INFINITY, NAN, 6.103515625e-05, -4.57763671875e-05};
    const adj_tensor four = {"", ADJ_ELEM_F8_E4M3, {1, {7}}, e4m3},
                     five = {"", ADJ_ELEM_F8_E5M2, {1, {7}}, e5m2};
    for (int i = 0; i < 7; i++) {
        double v4 = adj_tensor_value(&four, i), v5 = adj_tensor_value(&five, i);
        cr_expect(v4 == want4[i] || (isnan(v4) && isnan(want4[i])), "%d: %g", i, v4);
        cr_expect(v5 == want5[i] || (isnan(v5) && isnan(want5[i])), "%d: %g", i, v5);
    }
    static const int64_t minus = -1;
    static const adj_elem negative[] = {ADJ_ELEM_I64, ADJ_ELEM_I32, ADJ_ELEM_I16, ADJ_ELEM_I8};
    for (int i = 0; i < 4; i++)
        cr_expect_eq(adj_tensor_value(&(adj_tensor){"", negative[i], {0}, &minus}, 0), -1);
    cr_expect_eq(adj_tensor_value(&(adj_tensor){"", ADJ_ELEM_U64, {0}, &minus}, 0), 0x1p64);
}

Test(safetensors, truncated_at_every_byte_and_oversized)
{
    file_bytes file = safetensors_of(good_header, 24);
    for (size_t n = 0; n < file.n; n++)
        adj_tensors_free(read_bytes(&file, n, ADJ_EIO));
    adj_tensors_free(read_bytes(&file, file.n + 1, ADJ_EIO));
}

Test(safetensors, changed_at_every_byte)
{
    static const uint8_t change[] = {0x01, 0x10, 0x80, 0xff};
    file_bytes file = safetensors_of(good_header, 24);
    size_t refused = 0;
    for (size_t i = 0; i < file.n - 24; i++)
        for (size_t k = 0; k < sizeof change; k++) {
            scoped(release_tensors) adj_tensors *t = NULL;
            file.bytes[i] ^= change[k];
            refused += read_twice(&file, file.n, &t) != ADJ_OK;
            file.bytes[i] ^= change[k];
        }
    cr_expect_gt(refused, 2 * strlen(good_header));
}

typedef struct {
    const char *word, *header;
    size_t data;
} lie;

#define F32(shape, offsets)                                                                        \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const lie lies[] = {
    {"not JSON", "", 0},
    {"not JSON", "{", 0},
    {"not JSON", "{\"a\":1,\"a\":2}", 0}, /* duplicate keys */
    {"not JSON", "{\"a\\u0000b\":1}", 0},
    {"not JSON", "{}x", 0},
    {"not JSON", "\xff\xfe{}", 0},
    {"not an object", "[]", 0},
    {"not an object", "{\"a\":[]}", 0},
    {"not an object", "{\"__metadata__\":1}", 0},
    {"not a string", "{\"__metadata__\":{\"k\":1}}", 0},
    {"dtype is not a string", "{\"a\":{}}", 0},
    {"shape is not a list", "{\"a\":{\"dtype\":\"7\"}}", 0},
    {"dtype is not a string", "{\"a\":{\"dtype\":7}}", 0},
    {"out of range", "{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,9]}}", 8},
    {"shape is not a list", "{\"a\":{\"dtype\":\"C64\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8},
    {"shape", F32("1", "[0,4]"), 4},
    {"shape", F32("[-1]", "[0,4]"), 4},
    {"shape", F32("[1.0]", "[0,4]"), 4},
    {"shape", F32("[\"1\"]", "[0,4]"), 4},
    {"shape", F32("[9223372036854775807,9223372036854775807]", "[0,4]"), 4},
    {"shape", F32("[4294967296,4294967296]", "[0,0]"), 0},
    {"fit its shape", F32("[4611686018427387905]", "[0,4]"), 4}, /* times 4 is 4 in 64 bits */
    {"not JSON", F32("[99999999999999999999]", "[0,4]"), 4},
    {"two numbers", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4},
    {"two numbers", F32("[1]", "[0]"), 4},
    {"two numbers", F32("[1]", "[0,4,4]"), 4},
    {"two numbers", F32("[1]", "[0,4.0]"), 4},
    {"two numbers", F32("[1]", "{\"0\":0}"), 4},
    {"out of range", F32("[1]", "[0,5]"), 4},
    {"out of range", F32("[1]", "[-4,0]"), 4},
    {"out of range", F32("[1]", "[4,0]"), 4},
    {"out of range", F32("[1]", "[9223372036854775804,9223372036854775807]"), 4},
    {"fit its shape", F32("[2]", "[0,4]"), 4},
    {"fit its shape", F32("[1]", "[0,8]"), 8},
    {"gap", F32("[1]", "[4,8]"), 8},
    {"no tensor", F32("[1]", "[0,4]"), 8},
    {"no tensor", "{}", 1},
    {"overlap",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12},
    {"overlap",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     8},
    {"tensor ?[31m", "{\"\\u001b[31m\":1}", 0}, /* no control characters reach a terminal */
};

Test(safetensors, hostile_headers)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        file_bytes file = safetensors_of(lies[i].header, lies[i].data);
        scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_EIO);
        cr_expect_not_null(strstr(t->message, lies[i].word), "%zu: %s in: %s", i, lies[i].word,
                           t->message);
    }
    static const uint8_t lengths[][8] = {{3, 0, 0, 0, 0, 0, 0, 0}, /* one more than there is */
                                         {0, 0, 0, 0, 0, 0, 0, 0x80},
                                         {255, 255, 255, 255, 255, 255, 255, 255},
                                         {0xf8, 255, 255, 255, 255, 255, 255, 255},
                                         {0, 0, 0, 0, 1, 0, 0, 0}};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        file_bytes file = safetensors_of("{}", 0);
        memcpy(file.bytes, lengths[i], 8);
        scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_EIO);
        expect_text(t->message, "header length");
    }
    /* 2,000 open brackets: the parser's stack */
    char deep[2001];
    memset(deep, '[', 2000);
    deep[2000] = '\0';
    file_bytes file = safetensors_of(deep, 0);
    adj_tensors_free(read_bytes(&file, file.n, ADJ_EIO));
}

Test(safetensors, what_is_not_a_file, .timeout = 60)
{
    const file_name none = in_folder(&here, "none"), pipe = in_folder(&here, "pipe");
    const char *const bad[] = {here.path, none.s, pipe.s};
    cr_assert_eq(mkfifo(pipe.s, 0600), 0);
    for (int i = 0; i < 3; i++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        cr_expect_eq(adj_safetensors_read(bad[i], &t), ADJ_EIO, "%s", bad[i]);
        if (i == 1)
            expect_text(t->message, "No such file");
    }
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_expect_eq(adj_safetensors_read(NULL, &t), ADJ_EARG);
    cr_expect_eq(adj_safetensors_read(here.path, NULL), ADJ_EARG);
    adj_tensors_free(NULL);
}

Test(safetensors, no_bytes_in_memory)
{
    static const uint8_t header[16] = {8, 0, 0, 0, 0, 0, 0, 0, '{'};
    static const struct {
        const void *bytes;
        size_t n;
    } cases[] = {{NULL, 0}, {NULL, 100}, {header, SIZE_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        cr_expect_eq(adj_tensors_from_memory(cases[i].bytes, cases[i].n, &t), ADJ_EARG);
        expect_text(t->message, "memory: expected the bytes of a file");
        cr_expect(t->n == 0 && t->n_metadata == 0 && adj_tensors_metadata(t, "k") == NULL);
    }
    cr_expect_eq(adj_tensors_from_memory("", 0, NULL), ADJ_EARG);
}

/* ---- checksums ---- */

enum { TENSORS = 4 };

static const adj_metadata entries[] = {{"epoch", "3"}, {"lr", "0x1.0624dd2f1a9fcp-10"}};

/* Four tensors, one of them empty, and two strings. */
static file_bytes write_example(void)
{
    static const float w[6] = {1, -2, 3.5f, 0, 1e-30f, -0.0f};
    static const double d[3] = {0.5, 1, -1};
    static const int32_t step = 17;
    const adj_tensor tensors[TENSORS] = {{"conv1/w", ADJ_ELEM_F32, {2, {2, 3}}, w},
                                         {"d", ADJ_ELEM_F64, {1, {3}}, d},
                                         {"empty", ADJ_ELEM_F32, {2, {0, 3}}, w},
                                         {"step", ADJ_ELEM_I32, {0}, &step}};
    const file_name path = in_folder(&here, "w");
    adj_error error = {0};
    file_bytes c;
    cr_assert_eq(adj_tensors_write(path.s, TENSORS, tensors, 2, entries, &error), ADJ_OK, "%s",
                 error.message);
    c.n = get_file(path.s, c.bytes, sizeof c.bytes);
    return c;
}

/* Whether both have the same tensors and strings. */
static int same(const adj_tensors *a, const adj_tensors *b)
{
    int equal = a->n == TENSORS && b->n == TENSORS;
    for (int i = 0; i < TENSORS && equal; i++) {
        adj_tensor x = a->tensor[i];
        adj_tensor y = b->tensor[adj_tensors_find(b, x.name)];
        size_t bytes = (size_t)adj_tensor_bytes(&x);
        equal = y.name != NULL && x.elem == y.elem &&
                memcmp(&x.shape, &y.shape, sizeof x.shape) == 0 &&
                memcmp(x.data, y.data, bytes) == 0;
    }
    for (int i = 0; i < 2 && equal; i++) {
        const char *x = adj_tensors_metadata(a, entries[i].key),
                   *y = adj_tensors_metadata(b, entries[i].key);
        equal = x != NULL && y != NULL && strcmp(x, y) == 0;
    }
    return equal;
}

/* The sentence names the tensor and both sums; the expected one is Python's zlib.crc32. */
Test(safetensors, every_flipped_bit_is_refused_or_equal)
{
    file_bytes c = write_example();
    scoped(release_tensors) adj_tensors *whole = NULL;
    const size_t header = 8 + c.bytes[0] + 256U * c.bytes[1], last = 8 * (c.n - 1) + 6;
    size_t refused = 0;
    cr_assert_eq(read_twice(&c, c.n, &whole), ADJ_OK, "%s", whole->message);
    cr_assert_gt(c.n, header);
    for (size_t bit = 0; bit < 8 * c.n; bit++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        c.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        const adj_status status = read_twice(&c, c.n, &t);
        if (status == ADJ_OK)
            cr_expect(bit / 8 < header && same(whole, t), "bit %zu gives other values", bit);
        else {
            cr_expect_eq(status, ADJ_EIO);
            refused++;
        }
        if (bit / 8 >= header)
            expect_text(t->message, "is damaged");
        if (bit == last) /* in the data of step, the last four bytes */
            expect_text(t->message, "tensor step: its data is damaged (checksum: got bf3dae76, "
                                    "expected c9e1efe6)");
        c.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cr_expect_gt(refused, 8 * (c.n - header));
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"

/* Sums of 4 zeros and of the header's content are Python's, over
 * {"__metadata__":{"adjoint.crc32:a":"2144df1c"},"a":{"dtype":"F32","shape":[1]}}. */
Test(safetensors, checksums_of_literal_headers)
{
    static const struct {
        const char *wrong, *header;
    } rows[] = {
        {NULL, "{" A "}"},
        {NULL, "{\"__metadata__\":{\"adjoint.crc\":\"x\"}," A "}"},
        {NULL, "{\"__metadata__\":{\"adjoint.crc32:a\":\"2144df1c\",\"adjoint.crc32\":"
               "\"d39cbb3a\"}," A "}"},
        {NULL, "{" A ", \"__metadata__\": {\"adjoint.crc32\":\"d39cbb3a\",\"adjoint.crc32:a\":"
               "\"2144df1c\"}}"},
        {"header's checksum is missing",
         "{\"__metadata__\":{\"adjoint.crc32:a\":\"2144df1c\"}," A "}"},
        {"the header is damaged", "{\"__metadata__\":{\"adjoint.crc32\":\"00000000\"}," A "}"},
        {"tensor a: its checksum is missing",
         "{\"__metadata__\":{\"adjoint.crc32\":\"b4576e19\"}," A "}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        file_bytes c = safetensors_of(rows[i].header, 4);
        memset(c.bytes + c.n - 4, 0, 4);
        const adj_status status = read_twice(&c, c.n, &t);
        cr_expect_eq(status, rows[i].wrong != NULL ? ADJ_EIO : ADJ_OK, "%zu: %s", i, t->message);
        if (rows[i].wrong != NULL)
            expect_text(t->message, rows[i].wrong);
    }
}

Test(safetensors, keys_of_checksums_are_taken)
{
    const adj_metadata taken[] = {{"adjoint.crc32", "0"}, {"adjoint.crc32:a", "0"}};
    for (int i = 0; i < 2; i++)
        cr_expect_eq(adj_tensors_write(in_folder(&here, "w").s, 0, NULL, 1, &taken[i], NULL),
                     ADJ_EARG);
    cr_expect_eq(files_in(&here), 0);
}

/* ---- what is written ---- */

/* The bytes written, spelled out: wider elements first, data aligned to 8. The checksums are
 * Python's. */
Test(safetensors, writes_these_bytes)
{
    file_name path = in_folder(&here, "w.safetensors");
    const float a[2] = {1, -2};
    const double d = 0.5;
    const adj_tensor tensors[] = {{"a", ADJ_ELEM_F32, {1, {2}}, a}, {"d", ADJ_ELEM_F64, {0}, &d}};
    const adj_metadata metadata[] = {{"k", "v\""}};
    static const char header[] = "{\"__metadata__\":{\"k\":\"v\\\"\","
                                 "\"adjoint.crc32:d\":\"8d3a01b8\","
                                 "\"adjoint.crc32:a\":\"c3872656\","
                                 "\"adjoint.crc32\":\"650ce209\"},"
                                 "\"d\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}";
    adj_error error = {0};
    put_file(path.s, "old", 3);
    cr_assert_eq(adj_tensors_write(path.s, 2, tensors, 1, metadata, &error), ADJ_OK, "%s",
                 error.message);

    uint8_t got[1024] = {0};
    const size_t n = get_file(path.s, got, sizeof got);
    const size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    cr_assert_eq(n, 8 + padded + 16);
    cr_expect(got[0] + 256U * got[1] == padded && got[2] == 0 && got[7] == 0);
    cr_expect_eq(memcmp(got + 8, header, sizeof header - 1), 0);
    for (size_t i = sizeof header - 1; i < padded; i++)
        cr_expect_eq(got[8 + i], ' ');
    static const uint8_t data[16] = {0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0};
    cr_expect_arr_eq(got + 8 + padded, data, sizeof data);
    cr_expect_eq(files_in(&here), 1);
}

Test(safetensors, round_trip_and_refusals)
{
    file_name path = in_folder(&here, "r.safetensors");
    enum { ELEMS = ADJ_ELEM_F8_E5M2 + 1 };
    uint8_t data[ELEMS][64];
    adj_tensor x[ELEMS];
    adj_error error;
    char names[ELEMS][8];
    for (int i = 0; i < ELEMS; i++) {
        for (int k = 0; k < 64; k++)
            data[i][k] = (uint8_t)(37 * i + 11 * k);
        snprintf(names[i], sizeof names[i], "n%d", i);
        x[i] = (adj_tensor){names[i], (adj_elem)i, {3, {2, 1, 3}}, data[i]};
    }
    cr_assert_eq(adj_tensors_write(path.s, ELEMS, x, 0, NULL, &error), ADJ_OK);
    adj_tensors *t = NULL;
    cr_assert_eq(adj_safetensors_read(path.s, &t), ADJ_OK);
    cr_assert_eq(t->n, ELEMS);
    for (int i = 0; i < ELEMS; i++) {
        adj_tensor y = t->tensor[adj_tensors_find(t, names[i])];
        cr_expect_eq(y.elem, x[i].elem);
        cr_expect_eq(memcmp(&y.shape, &x[i].shape, sizeof y.shape), 0);
        cr_expect_eq(memcmp(y.data, data[i], 6 * adj_elem_size(x[i].elem)), 0);
        cr_expect_eq((uintptr_t)y.data % adj_elem_size(x[i].elem), 0, "not aligned");
    }
    adj_tensors_free(t);

    adj_tensor bad[2] = {x[0], x[0]}; /* duplicate name */
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1].name = "__metadata__";
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1].name = "\xff";
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1] = (adj_tensor){"x", ADJ_ELEM_F32, {1, {-1}}, data};
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1] = (adj_tensor){"x", (adj_elem)99, {1, {1}}, data};
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_tensors_write(path.s, 1, NULL, 0, NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_tensors_write(path.s, 0, NULL, 1, NULL, &error), ADJ_EARG);
    expect_text(error.message, "(got 0 tensors, 1 metadata)");
    cr_assert_eq(adj_safetensors_read(path.s, &t), ADJ_OK,
                 "a refused write must leave the old file");
    cr_expect_eq(t->n, ELEMS);
    adj_tensors_free(t);
    cr_expect_eq(files_in(&here), 1);
}
