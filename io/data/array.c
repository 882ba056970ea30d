/* array.c - see array.h; and the reader of arrays in NumPy's format. A file is 93 "NUMPY", a
 * version (two bytes), the header's length (2 bytes, from version 2 on 4, least significant first),
 * the header, the data. */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "io/json.h"
#include "packed.h"

int64_t array_elems(const file_array *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->size[i]; /* checked when it was read */
    return n;
}

int64_t array_integer(const file_array *a, int64_t i)
{
    const int unused = 64 - 8 * a->bytes; /* bits */
    uint64_t v = 0;
    for (int k = 0; k < a->bytes; k++) {
        int at = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? a->bytes - 1 - k : k;
        v = v << 8 | a->data[i * a->bytes + at];
    }
    if (a->kind == 'i') /* the sign's bit is repeated */
        return (int64_t)(v << unused) >> unused;
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

void array_swap(file_array *a)
{
    const int64_t elems = array_elems(a);
    for (int64_t i = 0; i < elems; i++)
        for (int k = 0; k < a->bytes / 2; k++) {
            uint8_t *first = a->data + i * a->bytes + k, kept = *first;
            uint8_t *last = a->data + i * a->bytes + a->bytes - 1 - k;
            *first = *last;
            *last = kept;
        }
}

adj_status array_take_labels(dataset *d, const file_array *a, const char *format, const char *name,
                             int64_t header)
{
    char offset[40] = "";
    const int64_t n = a->size[0], row = array_elems(a) / n;
    if (n != d->public.n)
        return io_dataset_fail(
            d, ADJ_EIO, "%s: %s: %snumber of labels differs (got %lld, expected %lld)", format,
            name, header > 0 ? "offset 4: " : "", (long long)n, (long long)d->public.n);
    d->labels = malloc((size_t)n * sizeof *d->labels);
    if (d->labels == NULL)
        return io_dataset_no_memory(d);
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = array_integer(a, i * row);
        const int is_label = label >= 0 && label < ADJ_MAX_CLASSES;
        if (!is_label && header > 0)
            snprintf(offset, sizeof offset,
                     "offset %lld: ", (long long)(header + i * row * a->bytes));
        if (!is_label)
            return io_dataset_fail(
                d, ADJ_EIO,
                "%s: %s: %sthe label of image %lld is out of range (got %lld, expected 0 to %d)",
                format, name, offset, (long long)i, (long long)label, ADJ_MAX_CLASSES - 1);
        d->labels[i] = (int32_t)label;
    }
    return ADJ_OK;
}

int64_t array_read_bytes(const array_stream *s, int64_t n, uint8_t **data)
{
    enum { FIRST = 1 << 16, LARGEST = 1 << 30 };
    int64_t have = 0, chunk = FIRST;

    for (int64_t got = 0, want = 0; have < n && got == want; chunk *= chunk < LARGEST ? 2 : 1) {
        want = n - have < chunk ? n - have : chunk;
        uint8_t *grown = realloc(*data, (size_t)(have + want));
        if (grown == NULL)
            return -1;
        *data = grown;
        got = s->read(s->from, grown + have, want);
        have += got > 0 ? got : 0;
    }
    return have;
}

/* ---- the header of a NumPy array ----
 *
 * It is a Python dictionary of three entries, such as
 * {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, and is read as JSON. */

/* Rewrites a Python dictionary as JSON, in place: quotes, tuples and truth values, without the
 * comma after a last element. */
static void to_json(char *text)
{
    static const char python[] = "'()TF", json[] = "\"[]tf";
    int quoted = 0;
    for (char *c = text; *c != '\0'; c++) {
        const char *at = strchr(python, *c);
        const char after = c[1 + strspn(c + 1, " \n\t")];
        quoted ^= *c == '\'';
        if (at != NULL && (!quoted || *c == '\''))
            *c = json[at - python];
        else if (*c == ',' && !quoted && (after == ')' || after == '}'))
            *c = ' ';
    }
}

/* Fails for an array that is valid but that this reader does not support. */
static const char *set_unsupported(file_array *a, const char *why) { return a->unsupported = why; }

static int is_one_of(char c, const char *set) { return c != '\0' && strchr(set, c) != NULL; }

/* Reads "<f4": byte order (| and = for none), kind, bytes. Sets *swapped to 1 for the other byte
 * order. */
static const char *read_descr(const json_t *descr, file_array *a, int *swapped)
{
    const char *text = json_string_value(descr);
    if (text == NULL || strlen(text) != 3 || !is_one_of(text[0], "<>|=") ||
        !is_one_of(text[1], "uifb") || !is_one_of(text[2], "1248"))
        return set_unsupported(a,
                               "its dtype is not a plain number (expected such as '|u1' or '<f4')");
    *swapped = text[0] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
    a->kind = text[1];
    a->bytes = text[2] - '0';
    return NULL;
}

static const char *read_shape(const json_t *shape, file_array *a)
{
    const size_t rank = json_array_size(shape);
    if (rank > NPY_MAX_RANK)
        return set_unsupported(a, "its rank is above 4");
    a->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size))
            return "its shape is not a list of sizes";
        a->size[i] = json_integer_value(size);
    }
    return json_is_array(shape) ? NULL : "its shape is not a list of sizes";
}

/* Reads a header, which is changed. Returns what is wrong, or NULL. */
static const char *read_entries(char *text, file_array *a, int *swapped)
{
    json_t *descr, *order, *shape;
    json_error_t where;

    to_json(text);
    json_t *header = io_json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &where);
    const char *wrong = NULL;
    if (header == NULL && json_error_code(&where) == json_error_numeric_overflow)
        wrong = "its shape is too large";
    else if (json_unpack(header, "{s:o, s:o, s:o}", "descr", &descr, "fortran_order", &order,
                         "shape", &shape) != 0)
        wrong = "the header is corrupt";
    else if (json_object_size(header) > 3)
        wrong = "the header has an unknown entry";
    else if (!json_is_boolean(order))
        wrong = "fortran_order is neither True nor False";
    else
        wrong = read_descr(descr, a, swapped);
    if (wrong == NULL && json_is_true(order))
        wrong = set_unsupported(
            a, "is in Fortran order (expected C order: save numpy.ascontiguousarray(a))");
    if (wrong == NULL)
        wrong = read_shape(shape, a);
    json_decref(header);
    return wrong;
}

/* ---- a NumPy array ---- */

enum { MAX_HEADER = 1 << 16 };
static const int64_t max_bytes = INT64_C(1) << 34; /* size limit of an array */

/* The sentence for a lack of memory. */
static const char no_memory[] = "out of memory";

/* Reads the text of the header, which is to be freed in every case. Returns what is wrong, or NULL.
 */
static const char *read_header(const array_stream *s, char **text)
{
    uint8_t start[12] = {0};
    *text = NULL;
    if (s->read(s->from, start, 8) != 8 || memcmp(start, "\x93NUMPY", 6) != 0)
        return "is not a NumPy array";
    int wide = start[6] >= 2 ? 4 : 2;
    if (start[6] < 1 || start[6] > 3 || s->read(s->from, start + 8, wide) != wide)
        return "the header has an unknown version or is truncated";
    int64_t length = (int64_t)start[8] | (int64_t)start[9] << 8 | (int64_t)start[10] << 16 |
                     (int64_t)start[11] << 24;
    if (length > MAX_HEADER)
        return "the header is too long (expected at most 65536 bytes)";
    *text = calloc((size_t)length + 1, 1);
    if (*text == NULL)
        return no_memory;
    const int is_whole = s->read(s->from, *text, length) == length;
    return is_whole && strlen(*text) == (size_t)length ? NULL : "the header is truncated";
}

static const char *read_data(const array_stream *s, file_array *a, int64_t bytes)
{
    const int64_t got = array_read_bytes(s, bytes, &a->data);
    uint8_t more;
    if (got < 0)
        return no_memory;
    if (got < bytes)
        return "the data are truncated or corrupt";
    int64_t behind = s->read(s->from, &more, 1); /* to the end: only there is a sum checked */
    if (behind > 0)
        return "has more bytes than its header says";
    return behind == 0 ? NULL : "the data are corrupt";
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
    char *text;
    *a = (file_array){0};
    const char *why = read_header(s, &text);
    if (why == NULL)
        why = read_entries(text, a, &swapped);
    free(text);
    if (why == NULL && !is_possible(a, &bytes))
        why = "its shape is empty or too large (expected at most 16 GB)";
    if (why == NULL)
        why = read_data(s, a, bytes);
    if (why == NULL && swapped)
        array_swap(a);
    if (why == NULL)
        return ADJ_OK;
    free(a->data);
    a->data = NULL;
    return adj_error_set(error, why == no_memory ? ADJ_ENOMEM : ADJ_EIO, "npy: %.300s: %s", s->name,
                         why);
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
