/* npy_header.c - the header of a NumPy array: a Python dictionary of three known entries. Only what
 * NumPy writes is accepted; nothing is evaluated. */
#include <string.h>

#include "array.h"

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

/* Parses '<f4': byte order (| and = for none), kind, bytes. */
static int parse_descr(parser *p)
{
    static const char kinds[] = "uifb";
    if (!accept(p, "'"))
        return set_unsupported(p,
                               "its dtype is not a plain number (expected such as '|u1' or '<f4')");
    char order = *p->at, kind = order != '\0' ? p->at[1] : '\0';
    char digit = kind != '\0' ? p->at[2] : '\0';
    if (strchr("<>|=", order) == NULL || strchr(kinds, kind) == NULL ||
        strchr("1248", digit) == NULL || order == '\0' || kind == '\0' || digit == '\0' ||
        p->at[3] != '\'')
        return set_unsupported(p,
                               "its dtype is not a plain number (expected such as '|u1' or '<f4')");
    p->at += 4;
    p->a->kind = kind;
    p->a->bytes = digit - '0';
    p->swapped = order == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
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

const char *io_npy_parse(const char *text, file_array *a, int *swapped)
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
