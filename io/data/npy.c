/* npy.c - an array in NumPy's format. A file is 93 "NUMPY", a version (two bytes), the header's
 * length (2 bytes, from version 2 on 4, least significant first), the header, the data. */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "unzip.h"

enum { MAX_HEADER = 1 << 16 };
static const int64_t max_bytes = INT64_C(1) << 34; /* of an array */

static adj_status fail(const array_stream *s, const char *why, adj_error *error)
{
    return adj_error_set(error, ADJ_EIO, "npy: %.300s: %s", s->name, why);
}

/* Returns the text of the header, to be freed, or NULL after a failure. */
static char *read_header(const array_stream *s, adj_error *error)
{
    uint8_t start[12] = {0};
    if (s->read(s->from, start, 8) != 8 || memcmp(start, "\x93NUMPY", 6) != 0) {
        fail(s, "is not a NumPy array", error);
        return NULL;
    }
    int wide = start[6] >= 2 ? 4 : 2;
    if (start[6] < 1 || start[6] > 3 || s->read(s->from, start + 8, wide) != wide) {
        fail(s, "the header has an unknown version or is truncated", error);
        return NULL;
    }
    int64_t length = (int64_t)start[8] | (int64_t)start[9] << 8 | (int64_t)start[10] << 16 |
                     (int64_t)start[11] << 24;
    if (length > MAX_HEADER) {
        fail(s, "the header is too long (expected at most 65536 bytes)", error);
        return NULL;
    }
    char *text = calloc((size_t)length + 1, 1);
    if (text == NULL)
        adj_error_set(error, ADJ_ENOMEM, "npy: %.300s: out of memory", s->name);
    else if (s->read(s->from, text, length) != length || strlen(text) != (size_t)length) {
        fail(s, "the header is truncated", error);
        free(text);
        text = NULL;
    }
    return text;
}

static adj_status read_data(const array_stream *s, file_array *a, int64_t bytes, adj_error *error)
{
    const int64_t got = array_read_bytes(s, bytes, &a->data);
    uint8_t more;
    if (got < 0)
        return adj_error_set(error, ADJ_ENOMEM, "npy: %.300s: out of memory", s->name);
    if (got < bytes)
        return fail(s, "the data are truncated or corrupt", error);
    int64_t behind = s->read(s->from, &more, 1); /* to the end: only there is a sum checked */
    if (behind != 0)
        return fail(s, behind > 0 ? "has more bytes than its header says" : "the data are corrupt",
                    error);
    return ADJ_OK;
}

static int is_possible(const file_array *a, int64_t *bytes)
{
    *bytes = a->bytes;
    for (int i = 0; i < a->rank; i++)
        if (a->size[i] < 1 || __builtin_mul_overflow(*bytes, a->size[i], bytes) ||
            *bytes > max_bytes)
            return 0;
    return 1;
}

adj_status io_npy_read(const array_stream *s, file_array *a, adj_error *error)
{
    int swapped = 0;
    int64_t bytes;
    *a = (file_array){0};
    char *text = read_header(s, error);
    if (text == NULL)
        return error != NULL ? error->status : ADJ_EIO;
    const char *why = io_npy_parse(text, a, &swapped);
    free(text);
    if (why != NULL)
        return fail(s, why, error);
    if (!is_possible(a, &bytes))
        return fail(s, "its shape is empty or too large (expected at most 16 GB)", error);
    adj_status status = read_data(s, a, bytes, error);
    if (status == ADJ_OK && swapped)
        array_swap(a);
    if (status != ADJ_OK) {
        free(a->data);
        a->data = NULL;
    }
    return status;
}

adj_status io_npy_read_file(const char *path, file_array *a, adj_error *error)
{
    const char *why;
    unzip *u;
    *a = (file_array){0};
    adj_status status = unzip_open(path, &u, &why);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "npy: %.300s: %s", path, why);
    status = io_npy_read(&(array_stream){unzip_read, u, path}, a, error);
    unzip_close(u);
    return status;
}
