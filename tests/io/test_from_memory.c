/* test_from_memory.c - safetensors in memory: read where they lie, refused like files, and never
 * read past their end, where a page without access follows. */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/scoped.h"
#include "tests/io/weights/net.h"

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

static const char header[] = "{\"__metadata__\":{\"k\":\"v\",\"l\":\"w\"},"
                             "\"b\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[3,5]},"
                             "\"a\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
enum { DATA = 5, HEADER = sizeof header - 1, WHOLE = 8 + HEADER + DATA };

/* The length, the header, and 1, 2, 3, ... */
static void make(uint8_t file[WHOLE])
{
    memset(file, 0, 8);
    file[0] = (uint8_t)HEADER;
    memcpy(file + 8, header, HEADER);
    for (int i = 0; i < DATA; i++)
        file[8 + HEADER + i] = (uint8_t)(i + 1);
}

Test(from_memory, tensors_lie_in_it)
{
    uint8_t file[WHOLE];
    make(file);
    guarded g = guard(file, WHOLE);
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_from_memory(g.bytes, g.n, &t), ADJ_OK, "%s", t->message);
    cr_assert_eq(t->n, 2);
    cr_expect_str_eq(t->tensor[0].name, "a");
    cr_expect_str_eq(t->tensor[1].name, "b");
    cr_expect_eq(t->tensor[0].data, (void *)(g.bytes + 8 + HEADER));
    cr_expect_eq(t->tensor[1].data, (void *)(g.bytes + 8 + HEADER + 3));
    cr_expect_eq(adj_tensor_value(&t->tensor[0], 2), 3);
    cr_expect_eq(adj_tensor_value(&t->tensor[1], 1), 5);
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
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "x");
    uint8_t file[WHOLE + 1] = {0};
    make(file);
    for (size_t n = 0; n < WHOLE; n++)
        cr_expect_eq(expect_as_file(path.s, file, n), ADJ_EIO, "%zu bytes", n);
    cr_expect_eq(expect_as_file(path.s, file, WHOLE), ADJ_OK);
    cr_expect_eq(expect_as_file(path.s, file, WHOLE + 1), ADJ_EIO);
}

Test(from_memory, changed_at_every_byte)
{
    static const uint8_t change[] = {0x01, 0x10, 0x80, 0xff};
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "x");
    uint8_t file[WHOLE];
    int refused = 0;
    make(file);
    for (size_t i = 0; i < 8 + HEADER; i++)
        for (size_t k = 0; k < sizeof change; k++) {
            file[i] ^= change[k];
            refused += expect_as_file(path.s, file, WHOLE) != ADJ_OK;
            file[i] ^= change[k];
        }
    cr_expect_gt(refused, 2 * HEADER);
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
        cr_expect_not_null(strstr(t->message, cases[i].word), "%s", t->message);
        cr_expect(t->n == 0 && t->n_metadata == 0 && adj_tensors_metadata(t, "k") == NULL);
    }
    cr_expect_eq(adj_tensors_from_memory("", 0, NULL), ADJ_EARG);
}

/* A weights file in memory gives another executor the values of the first. */
Test(from_memory, weights)
{
    static uint8_t bytes[1 << 16];
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "w.safetensors");
    small_net from = net_of(ADJ_NHWC, ADJ_F32), to = net_of(ADJ_NHWC, ADJ_F32);
    adj_error error = {0};
    scoped(release_tensors) adj_tensors *t = NULL;
    for (int i = 0; i < adj_exec_param_count(to.e); i++) {
        const adj_node *p = adj_exec_param_at(to.e, i);
        cr_assert_eq(adj_set(to.e, p, bytes, adj_type_bytes(adj_node_type(p))), ADJ_OK); /* zeros */
    }
    cr_assert_eq(adj_weights_save(from.e, path.s, 0, NULL, &error), ADJ_OK, "%s", error.message);
    FILE *file = fopen(path.s, "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
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
    cr_expect_not_null(strstr(damaged->message, "is damaged"), "%s", damaged->message);
}
