/* safetensors_read.c - reads a safetensors file into memory.
 *
 * The file's real size bounds everything: the header's length is checked against it before the
 * header is read, and the header's tensors must cover the rest exactly before that is read. Data is
 * addressed only through offsets that passed these checks. Checksums are compared if the file has
 * any: then the header and every tensor must have one. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "io/json.h"
#include "safetensors.h"
#include "tensors.h"

/* Replaces control characters by question marks. */
static void remove_controls(char *text)
{
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

enum { NO_OFFSET = -1 }; /* offset of an error found before a byte is read */

/* Sets the message, with control characters from the file replaced; returns status. */
__attribute__((format(printf, 4, 5))) static adj_status
fail(tensor_list *t, adj_status status, int64_t offset, const char *format, ...)
{
    int n = snprintf(t->public.message, sizeof t->public.message, "safetensors: %.200s: ", t->path);
    if (offset != NO_OFFSET)
        n += snprintf(t->public.message + n, sizeof t->public.message - (size_t)n,
                      "offset %lld: ", (long long)offset);
    va_list args;
    va_start(args, format);
    c_vsnprintf(t->public.message + n, sizeof t->public.message - (size_t)n, format, args);
    va_end(args);
    remove_controls(t->public.message);
    return status;
}

/* Source of the bytes: a file or memory. */
typedef struct {
    int fd;            /* descriptor of a file, at its start */
    const char *bytes; /* in memory; NULL: a file */
    int64_t size;
} input;

/* Reads exactly n bytes; offset is that of the end of the previous read. */
static adj_status read_all(tensor_list *t, const input *in, void *to, int64_t n, int64_t offset)
{
    const int64_t left = in->size - offset;
    int64_t have = left < n ? left : n;
    if (in->bytes != NULL)
        memcpy(to, in->bytes + offset, (size_t)have);
    else
        have = io_read(in->fd, to, n);
    if (have < 0)
        return fail(t, ADJ_EIO, offset, "%s", strerror(errno));
    if (have < n)
        return fail(t, ADJ_EIO, offset + have, "the file is truncated (expected %lld bytes)",
                    (long long)(offset + n));
    return ADJ_OK;
}

/* Marks the tensor as unreadable, with a reason such as "C64 [2, 3]: unknown type". */
static void set_unreadable(entry *e, const char *type, const json_t *shape, const char *why)
{
    char sizes[64] = "";
    int fits = 1;
    for (size_t i = 0; i < json_array_size(shape) && fits; i++)
        fits = c_append(sizes, sizeof sizes, "%s%lld", i > 0 ? ", " : "",
                        (long long)json_integer_value(json_array_get(shape, i)));
    snprintf(e->unreadable, sizeof e->unreadable, "%.20s [%s%s]: %s", type, sizes,
             fits ? "" : "...", why);
    remove_controls(e->unreadable);
    e->public.elem = ADJ_ELEM_UNREADABLE;
    e->public.shape = (adj_shape){0};
}

/* Reads type and shape. A type or rank that the library does not have makes the tensor unreadable.
 */
static adj_status read_type(tensor_list *t, const char *name, const json_t *tensor, entry *e)
{
    const char *word = json_string_value(json_object_get(tensor, "dtype"));
    const json_t *list = json_object_get(tensor, "shape");
    const size_t rank = json_array_size(list);
    adj_shape *s = &e->public.shape;
    int elem = 0, is_list = json_is_array(list);

    if (word == NULL)
        return fail(t, ADJ_EIO, LENGTH_BYTES, "tensor %.80s: dtype is not a string", name);
    for (size_t i = 0; i < rank; i++)
        is_list &= json_integer_value(json_array_get(list, i)) >= 0 &&
                   json_is_integer(json_array_get(list, i));
    if (!is_list)
        return fail(t, ADJ_EIO, LENGTH_BYTES,
                    "tensor %.80s: shape is not a list of whole numbers from 0 on", name);
    while (elem_word(elem) != NULL && strcmp(word, elem_word(elem)) != 0)
        elem++;
    e->public.elem = (adj_elem)elem;
    if (elem_word(elem) == NULL || rank > ADJ_MAX_RANK) {
        set_unreadable(e, word, list, rank > ADJ_MAX_RANK ? "too many axes" : "unknown type");
        return ADJ_OK;
    }
    s->rank = (int64_t)rank;
    for (size_t i = 0; i < rank; i++)
        s->dim[i] = json_integer_value(json_array_get(list, i));
    return adj_shape_elems(*s) >= 0
               ? ADJ_OK
               : fail(t, ADJ_EIO, LENGTH_BYTES, "tensor %.80s: shape is too large", name);
}

/* Reads a tensor's entry in the header: type, and data_offsets that must match the type and the
 * file. */
static adj_status read_tensor(tensor_list *t, const char *name, const json_t *tensor, entry *e)
{
    *e = (entry){.public.name = name};
    if (!json_is_object(tensor))
        return fail(t, ADJ_EIO, LENGTH_BYTES, "tensor %.80s: is not an object", name);
    adj_status status = read_type(t, name, tensor, e);
    if (status != ADJ_OK)
        return status;

    const json_t *offsets = json_object_get(tensor, "data_offsets");
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return fail(t, ADJ_EIO, LENGTH_BYTES, "tensor %.80s: data_offsets are not two numbers",
                    name);
    e->begin = json_integer_value(begin);
    e->end = json_integer_value(end);
    if (e->begin < 0 || e->end < e->begin || e->end > t->data_bytes)
        return fail(t, ADJ_EIO, LENGTH_BYTES,
                    "tensor %.80s: data_offsets out of range (got %lld to %lld, expected within "
                    "%lld bytes)",
                    name, (long long)e->begin, (long long)e->end, (long long)t->data_bytes);
    if (e->unreadable[0] == '\0' && adj_tensor_bytes(&e->public) != e->end - e->begin)
        return fail(t, ADJ_EIO, LENGTH_BYTES,
                    "tensor %.80s: data_offsets do not fit its shape (got %lld bytes, expected "
                    "%lld elements of %zu)",
                    name, (long long)(e->end - e->begin),
                    (long long)adj_shape_elems(e->public.shape), adj_elem_size(e->public.elem));
    return ADJ_OK;
}

static int by_offset(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* Checks that, sorted by offset, each tensor begins at the end of the previous one and the last
 * ends with the file. */
static adj_status check_cover(tensor_list *t, int64_t data_at)
{
    int64_t end = 0;

    qsort(t->entry, (size_t)t->n, sizeof *t->entry, by_offset);
    for (int i = 0; i < t->n; i++) {
        if (t->entry[i].begin != end)
            return fail(t, ADJ_EIO, data_at + t->entry[i].begin,
                        "tensor %.80s: its data %s (begins at %lld, expected %lld)",
                        t->entry[i].public.name,
                        t->entry[i].begin < end ? "overlaps another's" : "leaves a gap",
                        (long long)t->entry[i].begin, (long long)end);
        end = t->entry[i].end;
    }
    if (end != t->data_bytes)
        return fail(t, ADJ_EIO, data_at + end, "%lld bytes that belong to no tensor",
                    (long long)(t->data_bytes - end));
    return ADJ_OK;
}

#define CHANGED ", or was changed by a program that kept the keys " SUM_KEY "*"

/* Checks the header's checksum; a file without any checksums is accepted. */
static adj_status check_header_sum(tensor_list *t)
{
    json_t *metadata = json_object_get(t->header, METADATA_KEY), *value;
    const char *key, *expected = json_string_value(json_object_get(metadata, SUM_KEY));
    char got[SUM_TEXT];

    json_object_foreach(metadata, key, value)
    {
        if (expected == NULL && is_sum_key(key))
            return fail(t, ADJ_EIO, LENGTH_BYTES, "the header's checksum is missing");
    }
    if (expected == NULL)
        return ADJ_OK;
    if (sum_header(t->header, got) != ADJ_OK)
        return fail(t, ADJ_ENOMEM, LENGTH_BYTES, "out of memory");
    if (strcmp(got, expected) != 0)
        return fail(t, ADJ_EIO, LENGTH_BYTES,
                    "the header is damaged (its checksum: got %s, expected %.8s)" CHANGED, got,
                    expected);
    return ADJ_OK;
}

static adj_status check_data_sum(tensor_list *t, const json_t *metadata, const entry *e,
                                 int64_t data_at)
{
    char got[SUM_TEXT], *key = sum_key(e->public.name);
    if (key == NULL)
        return fail(t, ADJ_ENOMEM, LENGTH_BYTES, "out of memory");
    const char *expected = json_string_value(json_object_get(metadata, key));
    free(key);
    if (expected == NULL)
        return fail(t, ADJ_EIO, LENGTH_BYTES, "tensor %.80s: its checksum is missing",
                    e->public.name);
    sum_data(t->data + e->begin, e->end - e->begin, got);
    if (strcmp(got, expected) != 0)
        return fail(t, ADJ_EIO, data_at + e->begin,
                    "tensor %.80s: its data is damaged (checksum: got %s, expected %.8s)" CHANGED,
                    e->public.name, got, expected);
    return ADJ_OK;
}

static adj_status check_data_sums(tensor_list *t, int64_t data_at)
{
    const json_t *metadata = json_object_get(t->header, METADATA_KEY);
    adj_status status = ADJ_OK;

    if (json_object_get(metadata, SUM_KEY) != NULL)
        for (int i = 0; i < t->n && status == ADJ_OK; i++)
            status = check_data_sum(t, metadata, &t->entry[i], data_at);
    return status;
}

static adj_status check_metadata(tensor_list *t, json_t *metadata)
{
    const char *key;
    json_t *value;

    if (!json_is_object(metadata))
        return fail(t, ADJ_EIO, LENGTH_BYTES, METADATA_KEY " is not an object");
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return fail(t, ADJ_EIO, LENGTH_BYTES, METADATA_KEY ": %.80s is not a string", key);
    }
    return ADJ_OK;
}

static adj_status read_header(tensor_list *t, const char *text, int64_t length)
{
    json_error_t error;
    const char *name;
    json_t *value;

    t->header = io_json_read(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (t->header == NULL)
        return fail(t, ADJ_EIO, LENGTH_BYTES + error.position, "the header is not JSON: %s",
                    error.text);
    if (!json_is_object(t->header))
        return fail(t, ADJ_EIO, LENGTH_BYTES, "the header is not an object");
    t->entry = calloc(json_object_size(t->header) + 1, sizeof *t->entry);
    if (t->entry == NULL)
        return fail(t, ADJ_ENOMEM, LENGTH_BYTES, "out of memory");
    json_object_foreach(t->header, name, value)
    {
        adj_status status = strcmp(name, METADATA_KEY) == 0
                                ? check_metadata(t, value)
                                : read_tensor(t, name, value, &t->entry[t->n++]);
        if (status != ADJ_OK)
            return status;
    }
    adj_status status = check_cover(t, LENGTH_BYTES + length);
    return status == ADJ_OK ? check_header_sum(t) : status;
}

/* Reads the header's length and checks it against the file's size. */
static adj_status read_length(tensor_list *t, const input *in, int64_t *length)
{
    uint8_t bytes[LENGTH_BYTES] = {0};
    uint64_t value = 0;

    adj_status status = read_all(t, in, bytes, LENGTH_BYTES, 0);
    if (status != ADJ_OK)
        return status;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    const int64_t rest = in->size - LENGTH_BYTES;
    const int64_t max = rest < max_header_bytes ? rest : max_header_bytes;
    if (value > (uint64_t)max)
        return fail(t, ADJ_EIO, 0, "header length out of range (got %llu, expected at most %lld)",
                    (unsigned long long)value, (long long)max);
    *length = (int64_t)value;
    t->data_bytes = rest - *length;
    return ADJ_OK;
}

/* Sets t->data to all data after the header, which in memory stay where they are. */
static adj_status read_data(tensor_list *t, const input *in, int64_t at)
{
    if (in->bytes != NULL) {
        t->data = in->bytes + at;
        return ADJ_OK;
    }
    t->data = t->own_data = malloc((size_t)t->data_bytes + 1);
    if (t->data == NULL)
        return fail(t, ADJ_ENOMEM, at, "out of memory");
    return read_all(t, in, t->own_data, t->data_bytes, at);
}

static adj_status read_input(tensor_list *t, const input *in)
{
    int64_t length = 0;
    adj_status status = read_length(t, in, &length);
    if (status != ADJ_OK)
        return status;

    char *text = malloc((size_t)length + 1);
    if (text == NULL)
        return fail(t, ADJ_ENOMEM, LENGTH_BYTES, "out of memory");
    if ((status = read_all(t, in, text, length, LENGTH_BYTES)) == ADJ_OK)
        status = read_header(t, text, length);
    free(text);
    if (status == ADJ_OK)
        status = read_data(t, in, LENGTH_BYTES + length);
    if (status == ADJ_OK)
        status = check_data_sums(t, LENGTH_BYTES + length);
    for (int i = 0; status == ADJ_OK && i < t->n; i++)
        if (t->entry[i].unreadable[0] == '\0')
            t->entry[i].public.data = t->data + t->entry[i].begin;
    if (status == ADJ_OK && !tensors_publish(t))
        status = fail(t, ADJ_ENOMEM, NO_OFFSET, "out of memory");
    t->path = NULL;
    return status;
}

adj_status adj_safetensors_read(const char *path, adj_tensors **out)
{
    tensor_list *t = out != NULL ? tensors_alloc(out) : NULL;
    input in = {0};

    if (t == NULL)
        return out != NULL ? ADJ_ENOMEM : ADJ_EARG;
    t->path = path != NULL ? path : "no file name";
    if (path == NULL)
        return fail(t, ADJ_EARG, NO_OFFSET, "expected a file name");
    const char *why = io_open(path, &in.fd, &in.size);
    if (why != NULL)
        return fail(t, ADJ_EIO, NO_OFFSET, "%s", why);
    adj_status status = read_input(t, &in);
    close(in.fd);
    return status;
}

adj_status adj_tensors_from_memory(const void *bytes, size_t n, adj_tensors **out)
{
    tensor_list *t = out != NULL ? tensors_alloc(out) : NULL;
    const input in = {.bytes = bytes, .size = (int64_t)n};

    if (t == NULL)
        return out != NULL ? ADJ_ENOMEM : ADJ_EARG;
    t->path = "memory";
    if (bytes == NULL || n > INT64_MAX)
        return fail(t, ADJ_EARG, NO_OFFSET, "expected the bytes of a file (got %s of %zu bytes)",
                    bytes == NULL ? "NULL" : "a buffer", n);
    return read_input(t, &in);
}
