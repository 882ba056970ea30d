/* array.c - see array.h; and the reader of arrays in NumPy's format. A file is 93 "NUMPY", a
 * version (two bytes), the header's length (2 bytes, from version 2 on 4, least significant first),
 * the header, the data. */
#include <stdlib.h>
#include <string.h>

#include "array.h"
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

int64_t array_read_bytes(const array_stream *s, int64_t n, uint8_t **data)
{
    enum { FIRST_CHUNK = 1 << 16 };
    int64_t have = 0, room = FIRST_CHUNK;

    for (int64_t want = 0; have == want && have < n; room *= 2) {
        want = room < n ? room : n;
        uint8_t *grown = realloc(*data, (size_t)want);
        if (grown == NULL)
            return -1;
        *data = grown;
        const int64_t got = s->read(s->from, grown + have, want - have);
        have += got > 0 ? got : 0;
    }
    return have;
}

/* ---- the header of a NumPy array ----
 *
 * It is a Python dictionary of three known entries. Only what NumPy writes is accepted; nothing is
 * evaluated. */

typedef struct {
    const char *at;
    const char *wrong;
    file_array *a;
    int swapped, seen; /* seen: bits of the entries so far */
} parser;

static void skip_spaces(parser *p)
{
    while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t')
        p->at++;
}

/* Skips spaces and word, if the text continues so; returns whether it does. */
static int accept(parser *p, const char *word)
{
    size_t n = strlen(word);
    skip_spaces(p);
    if (strncmp(p->at, word, n) != 0)
        return 0;
    p->at += n;
    return 1;
}

static int set_error(parser *p, const char *why)
{
    if (p->wrong == NULL)
        p->wrong = why;
    return 0;
}

/* Fails for an array that is valid but that this reader does not support. */
static int set_unsupported(parser *p, const char *why)
{
    p->a->unsupported = why;
    return set_error(p, why);
}

static int is_one_of(char c, const char *set) { return c != '\0' && strchr(set, c) != NULL; }

/* Parses '<f4': byte order (| and = for none), kind, bytes. */
static int parse_descr(parser *p)
{
    if (!accept(p, "'") || !is_one_of(p->at[0], "<>|=") || !is_one_of(p->at[1], "uifb") ||
        !is_one_of(p->at[2], "1248") || p->at[3] != '\'')
        return set_unsupported(p,
                               "its dtype is not a plain number (expected such as '|u1' or '<f4')");
    p->swapped = p->at[0] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
    p->a->kind = p->at[1];
    p->a->bytes = p->at[2] - '0';
    p->at += 4;
    return 1;
}

static int parse_order(parser *p)
{
    if (accept(p, "True"))
        return set_unsupported(
            p, "is in Fortran order (expected C order: save numpy.ascontiguousarray(a))");
    return accept(p, "False") || set_error(p, "fortran_order is neither True nor False");
}

static int parse_size(parser *p, int64_t *size)
{
    skip_spaces(p);
    if (*p->at < '0' || *p->at > '9')
        return set_error(p, "its shape is not a list of sizes");
    for (*size = 0; *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, *p->at - '0', size))
            return set_error(p, "its shape is too large");
    return 1;
}

/* Parses (2, 3), (2,) or (). */
static int parse_shape(parser *p)
{
    if (!accept(p, "("))
        return set_error(p, "its shape is not a list of sizes");
    p->a->rank = 0;
    while (!accept(p, ")")) {
        if (p->a->rank == NPY_MAX_RANK)
            return set_unsupported(p, "its rank is above 4");
        if (!parse_size(p, &p->a->size[p->a->rank++]))
            return 0;
        if (!accept(p, ",")) {
            if (p->a->rank < 2 || !accept(p, ")"))
                return set_error(p, "its shape is not a list of sizes");
            break;
        }
    }
    return 1;
}

static int parse_entry(parser *p)
{
    static const struct {
        const char *key;
        int (*parse)(parser *p);
    } entries[] = {
        {"'descr'", parse_descr}, {"'fortran_order'", parse_order}, {"'shape'", parse_shape}};

    for (int i = 0; i < 3; i++)
        if (accept(p, entries[i].key)) {
            if (p->seen & 1 << i || !accept(p, ":"))
                return set_error(p, "the header is corrupt");
            p->seen |= 1 << i;
            return entries[i].parse(p);
        }
    return set_error(p, "the header has an unknown entry");
}

/* Parses a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. Sets
 * *swapped to 1 for the other byte order. Returns what is wrong, or NULL. */
static const char *parse_header(const char *text, file_array *a, int *swapped)
{
    parser p = {.at = text, .a = a};

    if (!accept(&p, "{"))
        return "the header is corrupt";
    while (p.wrong == NULL && !accept(&p, "}"))
        if (parse_entry(&p) && !accept(&p, ",")) {
            if (!accept(&p, "}"))
                set_error(&p, "the header is corrupt");
            break;
        }
    skip_spaces(&p);
    if (p.wrong == NULL && (*p.at != '\0' || p.seen != 7))
        return "the header is corrupt";
    *swapped = p.swapped;
    return p.wrong;
}

/* ---- a NumPy array ---- */

enum { MAX_HEADER = 1 << 16 };
static const int64_t max_bytes = INT64_C(1) << 34; /* of an array */

static adj_status fail(const array_stream *s, const char *why, adj_error *error)
{
    return adj_error_set(error, ADJ_EIO, "npy: %.300s: %s", s->name, why);
}

/* Reads the text of the header, which is to be freed; NULL where it fails. */
static adj_status read_header(const array_stream *s, char **text, adj_error *error)
{
    uint8_t start[12] = {0};
    *text = NULL;
    if (s->read(s->from, start, 8) != 8 || memcmp(start, "\x93NUMPY", 6) != 0)
        return fail(s, "is not a NumPy array", error);
    int wide = start[6] >= 2 ? 4 : 2;
    if (start[6] < 1 || start[6] > 3 || s->read(s->from, start + 8, wide) != wide)
        return fail(s, "the header has an unknown version or is truncated", error);
    int64_t length = (int64_t)start[8] | (int64_t)start[9] << 8 | (int64_t)start[10] << 16 |
                     (int64_t)start[11] << 24;
    if (length > MAX_HEADER)
        return fail(s, "the header is too long (expected at most 65536 bytes)", error);
    *text = calloc((size_t)length + 1, 1);
    if (*text == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "npy: %.300s: out of memory", s->name);
    if (s->read(s->from, *text, length) == length && strlen(*text) == (size_t)length)
        return ADJ_OK;
    free(*text);
    *text = NULL;
    return fail(s, "the header is truncated", error);
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
    char *text;
    adj_status status = read_header(s, &text, error);
    const char *why = text != NULL ? parse_header(text, a, &swapped) : NULL;
    free(text);
    if (status != ADJ_OK)
        return status;
    if (why != NULL)
        return fail(s, why, error);
    if (!is_possible(a, &bytes))
        return fail(s, "its shape is empty or too large (expected at most 16 GB)", error);
    status = read_data(s, a, bytes, error);
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
