/* test_safetensors_sum.c - checksums: a flipped bit anywhere in a file is refused, or changes
 * nothing; files without checksums are read. */
#include <criterion/criterion.h>

#include "adjoint_io.h"
#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/scoped.h"

enum { MAX = 4096, TENSORS = 4 };

typedef struct {
    uint8_t bytes[MAX];
    size_t n;
} content;

static const adj_metadata entries[] = {{"epoch", "3"}, {"lr", "0x1.0624dd2f1a9fcp-10"}};

/* Four tensors, one of them empty, and two strings, in path. */
static content write_example(const char *path)
{
    static const float w[6] = {1, -2, 3.5f, 0, 1e-30f, -0.0f};
    static const double d[3] = {0.5, 1, -1};
    static const int32_t step = 17;
    const adj_tensor tensors[TENSORS] = {{"conv1/w", ADJ_ELEM_F32, {2, {2, 3}}, w},
                                         {"d", ADJ_ELEM_F64, {1, {3}}, d},
                                         {"empty", ADJ_ELEM_F32, {2, {0, 3}}, w},
                                         {"step", ADJ_ELEM_I32, {0}, &step}};
    adj_error error = {0};
    content c;
    cr_assert_eq(adj_tensors_write(path, TENSORS, tensors, 2, entries, &error), ADJ_OK, "%s",
                 error.message);
    FILE *f = fopen(path, "rb");
    c.n = fread(c.bytes, 1, sizeof c.bytes, f);
    fclose(f);
    cr_assert_lt(c.n, sizeof c.bytes);
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

Test(safetensors_sum, every_flipped_bit_is_refused_or_equal)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "w"), bad = in_folder(&f, "bad");
    content c = write_example(path.s);
    scoped(release_tensors) adj_tensors *whole = NULL;
    size_t refused = 0, header = 8 + c.bytes[0] + 256U * c.bytes[1];
    cr_assert_eq(adj_safetensors_read(path.s, &whole), ADJ_OK, "%s", whole->message);
    cr_assert_gt(c.n, header);
    for (size_t bit = 0; bit < 8 * c.n; bit++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        c.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        put_file(bad.s, c.bytes, c.n);
        adj_status status = adj_safetensors_read(bad.s, &t);
        if (status == ADJ_OK)
            cr_expect(bit / 8 < header && same(whole, t), "bit %zu gives other values", bit);
        else {
            cr_expect_eq(status, ADJ_EIO);
            refused++;
        }
        if (bit / 8 >= header)
            cr_expect_not_null(strstr(t->message, "is damaged"), "%s", t->message);
        c.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cr_expect_gt(refused, 8 * (c.n - header));
}

/* The sentence names the tensor and both sums; the expected one is Python's zlib.crc32. */
Test(safetensors_sum, sentence_names_the_tensor)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "w");
    content c = write_example(path.s);
    scoped(release_tensors) adj_tensors *t = NULL;
    c.bytes[c.n - 1] ^= 0x40; /* of step, the last four bytes */
    put_file(path.s, c.bytes, c.n);
    cr_expect_eq(adj_safetensors_read(path.s, &t), ADJ_EIO);
    cr_expect_not_null(strstr(t->message,
                              "tensor step: its data is damaged (checksum: got bf3dae76, expected "
                              "c9e1efe6)"),
                       "%s", t->message);
}

/* length, header, then data_bytes zeros. */
static adj_status read_header(const folder *f, const char *header, size_t data_bytes,
                              adj_tensors **t)
{
    content c = {.n = 8 + strlen(header) + data_bytes};
    const file_name path = in_folder(f, "x");
    cr_assert_leq(c.n, sizeof c.bytes);
    memset(c.bytes, 0, sizeof c.bytes);
    c.bytes[0] = (uint8_t)strlen(header);
    c.bytes[1] = (uint8_t)(strlen(header) >> 8);
    memcpy(c.bytes + 8, header, strlen(header));
    put_file(path.s, c.bytes, c.n);
    return adj_safetensors_read(path.s, t);
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"

/* Sums of 4 zeros and of the header's content are Python's, over
 * {"__metadata__":{"adjoint.crc32:a":"2144df1c"},"a":{"dtype":"F32","shape":[1]}}. */
Test(safetensors_sum, literal_headers)
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
    scoped(folder_remove) folder f = folder_new();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        adj_status status = read_header(&f, rows[i].header, 4, &t);
        cr_expect_eq(status, rows[i].wrong != NULL ? ADJ_EIO : ADJ_OK, "%zu: %s", i, t->message);
        if (rows[i].wrong != NULL)
            cr_expect_not_null(strstr(t->message, rows[i].wrong), "%s", t->message);
    }
}

Test(safetensors_sum, keys_are_taken)
{
    scoped(folder_remove) folder f = folder_new();
    const adj_metadata taken[] = {{"adjoint.crc32", "0"}, {"adjoint.crc32:a", "0"}};
    for (int i = 0; i < 2; i++)
        cr_expect_eq(adj_tensors_write(in_folder(&f, "w").s, 0, NULL, 1, &taken[i], NULL),
                     ADJ_EARG);
    cr_expect_eq(files_in(&f), 0);
}
