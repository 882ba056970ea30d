/* test_from_memory.c - safetensors in memory: read where they lie, refused like files, and never
 * read past their end, where a page without access follows. Checksums: a flipped bit anywhere in a
 * file is refused, or changes nothing; files without checksums are read. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adjoint_io.h"
#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/scoped.h"
#include "tests/io/weights/net.h"

TestSuite(from_memory, .init = enter_folder, .fini = leave_folder);
TestSuite(safetensors_sum, .init = enter_folder, .fini = leave_folder);

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

Test(from_memory, tensors_lie_in_it)
{
    static const char header[] = "{\"__metadata__\":{\"k\":\"v\",\"l\":\"w\"},"
                                 "\"b\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[3,5]},"
                                 "\"a\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
    const file_bytes file = safetensors_of(header, 5);
    guarded g = guard(file.bytes, file.n);
    const uint8_t *data = g.bytes + 8 + strlen(header);
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_from_memory(g.bytes, g.n, &t), ADJ_OK, "%s", t->message);
    cr_assert_eq(t->n, 2);
    cr_expect_str_eq(t->tensor[0].name, "a");
    cr_expect_str_eq(t->tensor[1].name, "b");
    cr_expect_eq(t->tensor[0].data, (const void *)data);
    cr_expect_eq(t->tensor[1].data, (const void *)(data + 3));
    cr_expect_eq(adj_tensor_value(&t->tensor[0], 2), 2);
    cr_expect_eq(adj_tensor_value(&t->tensor[1], 1), 4);
    cr_assert_eq(t->n_metadata, 2);
    cr_expect_str_eq(t->metadata[1].key, "l");
    cr_expect_str_eq(t->metadata[1].value, "w");
    unguard(&g);
}

/* Reads the bytes from memory and from a file: the answers must be the same. */
static adj_status expect_as_file(const char *path, const void *bytes, size_t n)
{
    scoped(release_tensors) adj_tensors *in_memory = NULL;
    scoped(release_tensors) adj_tensors *in_file = NULL;
    guarded g = guard(bytes, n);
    put_file(path, bytes, n);
    const adj_status status = adj_tensors_from_memory(g.bytes, n, &in_memory);
    cr_expect_eq(status, adj_safetensors_read(path, &in_file), "%zu bytes: %s", n,
                 in_memory->message);
    const char *after = strstr(in_file->message, path),
               *ours = strstr(in_memory->message, "memory");
    if (status == ADJ_OK)
        cr_expect_str_eq(in_memory->message, "");
    else
        cr_expect_str_eq(ours + strlen("memory"), after + strlen(path));
    cr_expect_eq(in_memory->n, in_file->n);
    for (int i = 0; i < in_memory->n; i++) {
        const adj_tensor a = in_memory->tensor[i], b = in_file->tensor[i];
        cr_expect_str_eq(a.name, b.name);
        if (a.data != NULL)
            cr_expect_eq(memcmp(a.data, b.data, (size_t)adj_tensor_bytes(&a)), 0);
    }
    unguard(&g);
    return status;
}

Test(from_memory, truncated_at_every_byte)
{
    const file_name path = in_folder(&here, "x");
    const file_bytes file = safetensors_of(good_header, 24);
    for (size_t n = 0; n < file.n; n++)
        cr_expect_eq(expect_as_file(path.s, file.bytes, n), ADJ_EIO, "%zu bytes", n);
    cr_expect_eq(expect_as_file(path.s, file.bytes, file.n), ADJ_OK);
    cr_expect_eq(expect_as_file(path.s, file.bytes, file.n + 1), ADJ_EIO);
}

Test(from_memory, changed_at_every_byte)
{
    static const uint8_t change[] = {0x01, 0x10, 0x80, 0xff};
    const file_name path = in_folder(&here, "x");
    file_bytes file = safetensors_of(good_header, 24);
    size_t refused = 0;
    for (size_t i = 0; i < file.n - 24; i++)
        for (size_t k = 0; k < sizeof change; k++) {
            file.bytes[i] ^= change[k];
            refused += expect_as_file(path.s, file.bytes, file.n) != ADJ_OK;
            file.bytes[i] ^= change[k];
        }
    cr_expect_gt(refused, 2 * strlen(good_header));
}

Test(from_memory, what_is_no_file)
{
    static const uint8_t long_header[16] = {0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, '{'};
    static const struct {
        const void *bytes;
        size_t n;
        adj_status status;
        const char *word;
    } cases[] = {
        {NULL, 0, ADJ_EARG, "memory: expected the bytes of a file"},
        {NULL, 100, ADJ_EARG, "memory: expected the bytes of a file"},
        {long_header, SIZE_MAX, ADJ_EARG, "memory: expected the bytes of a file"},
        {long_header, 16, ADJ_EIO, "memory: offset 0: header length out of range"},
        {"", 0, ADJ_EIO, "memory: not a file of tensors (got an empty file"},
        {"and so on", 9, ADJ_EIO, "memory: not a file of tensors (got text, expected safetensors)"},
        {"\x93NUMPY\1\0v\0", 10, ADJ_EIO, "memory: not a file of tensors (got a NumPy array"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        cr_expect_eq(adj_tensors_from_memory(cases[i].bytes, cases[i].n, &t), cases[i].status);
        expect_text(t->message, cases[i].word);
        cr_expect(t->n == 0 && t->n_metadata == 0 && adj_tensors_metadata(t, "k") == NULL);
    }
    cr_expect_eq(adj_tensors_from_memory("", 0, NULL), ADJ_EARG);
}

/* A weights file in memory gives another executor the values of the first. */
Test(from_memory, weights)
{
    static uint8_t bytes[1 << 16];
    const file_name path = in_folder(&here, "w.safetensors");
    small_net from = net_of(ADJ_NHWC, ADJ_F32), to = net_of(ADJ_NHWC, ADJ_F32);
    adj_error error = {0};
    scoped(release_tensors) adj_tensors *t = NULL;
    for (int i = 0; i < adj_exec_param_count(to.e); i++) {
        const adj_node *p = adj_exec_param_at(to.e, i);
        cr_assert_eq(adj_set(to.e, p, bytes, adj_type_bytes(adj_node_type(p))), ADJ_OK); /* zeros */
    }
    cr_assert_eq(adj_weights_save(from.e, path.s, 0, NULL, &error), ADJ_OK, "%s", error.message);
    const size_t n = get_file(path.s, bytes, sizeof bytes);
    cr_assert_eq(adj_tensors_from_memory(bytes, n, &t), ADJ_OK, "%s", t->message);
    cr_expect_eq(t->n, adj_exec_param_count(to.e));
    cr_expect_eq(adj_weights_set(to.e, t, NULL, &error), ADJ_OK, "%s", error.message);
    for (int i = 0; i < adj_exec_param_count(to.e); i++) {
        const adj_node *p = adj_exec_param_at(to.e, i), *q = adj_exec_param_at(from.e, i);
        cr_expect_eq(
            memcmp(adj_data(to.e, p), adj_data(from.e, q), adj_type_bytes(adj_node_type(p))), 0,
            "%s", adj_node_name(p));
    }
    cr_expect_eq(adj_weights_set(to.e, NULL, NULL, &error), ADJ_EARG);
    net_free(&from);
    net_free(&to);

    bytes[n - 1] ^= 1; /* checksums hold in memory, too */
    scoped(release_tensors) adj_tensors *damaged = NULL;
    cr_expect_eq(adj_tensors_from_memory(bytes, n, &damaged), ADJ_EIO);
    expect_text(damaged->message, "is damaged");
}

/* ---- checksums ---- */

enum { TENSORS = 4 };

static const adj_metadata entries[] = {{"epoch", "3"}, {"lr", "0x1.0624dd2f1a9fcp-10"}};

/* Four tensors, one of them empty, and two strings, in path. */
static file_bytes write_example(const char *path)
{
    static const float w[6] = {1, -2, 3.5f, 0, 1e-30f, -0.0f};
    static const double d[3] = {0.5, 1, -1};
    static const int32_t step = 17;
    const adj_tensor tensors[TENSORS] = {{"conv1/w", ADJ_ELEM_F32, {2, {2, 3}}, w},
                                         {"d", ADJ_ELEM_F64, {1, {3}}, d},
                                         {"empty", ADJ_ELEM_F32, {2, {0, 3}}, w},
                                         {"step", ADJ_ELEM_I32, {0}, &step}};
    adj_error error = {0};
    file_bytes c;
    cr_assert_eq(adj_tensors_write(path, TENSORS, tensors, 2, entries, &error), ADJ_OK, "%s",
                 error.message);
    c.n = get_file(path, c.bytes, sizeof c.bytes);
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
    const file_name path = in_folder(&here, "w"), bad = in_folder(&here, "bad");
    file_bytes c = write_example(path.s);
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
            expect_text(t->message, "is damaged");
        c.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cr_expect_gt(refused, 8 * (c.n - header));
}

/* The sentence names the tensor and both sums; the expected one is Python's zlib.crc32. */
Test(safetensors_sum, sentence_names_the_tensor)
{
    const file_name path = in_folder(&here, "w");
    file_bytes c = write_example(path.s);
    scoped(release_tensors) adj_tensors *t = NULL;
    c.bytes[c.n - 1] ^= 0x40; /* of step, the last four bytes */
    put_file(path.s, c.bytes, c.n);
    cr_expect_eq(adj_safetensors_read(path.s, &t), ADJ_EIO);
    expect_text(t->message, "tensor step: its data is damaged (checksum: got bf3dae76, expected "
                            "c9e1efe6)");
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
    const file_name path = in_folder(&here, "x");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scoped(release_tensors) adj_tensors *t = NULL;
        file_bytes c = safetensors_of(rows[i].header, 4);
        memset(c.bytes + c.n - 4, 0, 4);
        put_file(path.s, c.bytes, c.n);
        const adj_status status = adj_safetensors_read(path.s, &t);
        cr_expect_eq(status, rows[i].wrong != NULL ? ADJ_EIO : ADJ_OK, "%zu: %s", i, t->message);
        if (rows[i].wrong != NULL)
            expect_text(t->message, rows[i].wrong);
    }
}

Test(safetensors_sum, keys_are_taken)
{
    const adj_metadata taken[] = {{"adjoint.crc32", "0"}, {"adjoint.crc32:a", "0"}};
    for (int i = 0; i < 2; i++)
        cr_expect_eq(adj_tensors_write(in_folder(&here, "w").s, 0, NULL, 1, &taken[i], NULL),
                     ADJ_EARG);
    cr_expect_eq(files_in(&here), 0);
}
