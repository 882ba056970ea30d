/* c_header.c - tensors as a C header of constant arrays, for machines without files.
 *
 * Floats are written with as many digits as bring them back bit by bit; bf16, f16 and F8 are floats
 * there, which have all their values. Fields of the model card become constants too. */
#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/printable.h"
#include "graph/op.h"
#include "io/json.h"
#include "io/io.h"
#include "tensors.h"

enum { IDENTIFIER = 256, A_LINE = 8, CONSTANTS = 3 };

/* Constants made from the model card (adj_model_card). */
static const struct {
    const char *key, *name, *comment;
    int is_text;
} constants[CONSTANTS] = {
    {"mean", "mean", "by channel: the input is (pixel - mean) / deviation, pixels 0 to 255", 0},
    {"deviation", "deviation", "by channel", 0},
    {"class_names", "classes", "what the outputs stand for", 1},
};

typedef struct {
    int n, n_metadata;
    const adj_tensor *tensor;
    const adj_metadata *metadata;
    const char *prefix;
    char (*name)[IDENTIFIER]; /* identifiers of the tensors, then of the constants; "": none */
    json_t *list[CONSTANTS];  /* their values; NULL: the metadata have none */
} header;

/* Writes prefix_name, with an underscore for each character that is not allowed in an identifier.
 */
static void make_name(char to[IDENTIFIER], const char *prefix, const char *name)
{
    snprintf(to, IDENTIFIER, "%.60s_%.150s", prefix, name);
    for (char *c = to; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127)
            *c = '_';
}

/* True if tensor i has the name of an earlier one or of a constant. */
static int is_taken(const header *h, int i)
{
    for (int k = 0; k < h->n + CONSTANTS; k++)
        if ((k < i || k >= h->n) && strcmp(h->name[k], h->name[i]) == 0)
            return 1;
    return 0;
}

/* Names all tensors; appends a number to names that would occur twice. */
static void name_all(header *h)
{
    for (int k = 0; k < CONSTANTS; k++)
        if (h->list[k] != NULL)
            make_name(h->name[h->n + k], h->prefix, constants[k].name);
    for (int i = 0; i < h->n; i++) {
        char base[IDENTIFIER];
        make_name(base, h->prefix, h->tensor[i].name);
        memcpy(h->name[i], base, sizeof base);
        for (int number = 2; is_taken(h, i); number++)
            snprintf(h->name[i], IDENTIFIER, "%.220s_%d", base, number);
    }
}

/* Sets *list to the values of a constant among the metadata, or leaves it NULL if there is no list
 * of the right type. Returns 0 if the text begins as a list and cannot be read. */
static int find_list(const header *h, int constant, json_t **list)
{
    const char *text = metadata_value(h->n_metadata, h->metadata, constants[constant].key);
    json_t *value;
    json_error_t why;
    size_t i;
    if (text == NULL || text[strspn(text, " \t\r\n")] != '[')
        return 1;
    *list = io_json_read(text, strlen(text), 0, &why);
    if (*list == NULL)
        return 0;
    int is_good = json_array_size(*list) > 0;
    json_array_foreach(*list, i, value)
    {
        is_good &= constants[constant].is_text
                       ? json_is_string(value)
                       : json_is_number(value) && fabs(json_number_value(value)) <= (double)FLT_MAX;
    }
    if (!is_good) {
        json_decref(*list);
        *list = NULL;
    }
    return 1;
}

static void put_real(FILE *f, double v, int is_double)
{
    const char *suffix = is_double ? "" : "F";
    char text[40];
    if (isnan(v) || isinf(v)) {
        fputs(isnan(v) ? "NAN" : v > 0 ? "INFINITY" : "-INFINITY", f);
        return;
    }
    c_snprintf(text, sizeof text, is_double ? "%.17g" : "%.9g", v);
    fprintf(f, "%s%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "", suffix);
}

/* Writes element i as a literal; the minimum of an integer type needs an expression, since its sign
 * is an operator. */
static void put_value(FILE *f, const adj_tensor *t, int64_t i)
{
    const char *type = elem_in_c(t->elem);
    int64_t whole = 0;
    if (type[0] == 'f' || type[0] == 'd') {
        put_real(f, adj_tensor_value(t, i), type[0] == 'd');
        return;
    }
    if (adj_elem_size(t->elem) == 8)
        memcpy(&whole, (const char *)t->data + 8 * i, 8);
    else
        whole = (int64_t)adj_tensor_value(t, i);
    if (t->elem == ADJ_ELEM_U64)
        fprintf(f, "UINT64_C(%" PRIu64 ")", (uint64_t)whole);
    else if (whole == INT64_MIN)
        fputs("INT64_MIN", f);
    else if (t->elem == ADJ_ELEM_I64)
        fprintf(f, "INT64_C(%" PRId64 ")", whole);
    else if (whole == INT32_MIN)
        fputs("INT32_MIN", f);
    else
        fprintf(f, "%" PRId64 "%s", whole, t->elem == ADJ_ELEM_U32 ? "U" : "");
}

/* Writes a tensor as an array of at least one element, since C has no empty arrays. */
static void put_tensor(FILE *f, const adj_tensor *t, const char *name)
{
    int64_t n = adj_shape_elems(t->shape);

    fputs("/* ", f);
    put_in_comment(f, t->name);
    fprintf(f, ": %s %s */\nstatic const %s %s[%lld] = {", adj_elem_name(t->elem),
            adj_shape_text(t->shape).s, elem_in_c(t->elem), name, (long long)(n > 0 ? n : 1));
    for (int64_t i = 0; i < n; i++) {
        fputs(i % A_LINE == 0 ? "\n    " : " ", f);
        put_value(f, t, i);
        fputc(',', f);
    }
    fputs(n > 0 ? "\n};\n\n" : "0};\n\n", f);
}

static void put_constant(FILE *f, const header *h, int k)
{
    json_t *value;
    size_t i;

    fprintf(f, "/* %s */\nstatic const %s%s[%zu] = {", constants[k].comment,
            constants[k].is_text ? "char *const " : "float ", h->name[h->n + k],
            json_array_size(h->list[k]));
    json_array_foreach(h->list[k], i, value)
    {
        fputs(i % A_LINE == 0 ? "\n    " : " ", f);
        if (constants[k].is_text)
            put_string(f, json_string_value(value));
        else
            put_real(f, json_number_value(value), 0);
        fputc(',', f);
    }
    fputs("\n};\n\n", f);
}

/* Writes a table of all tensors by name. */
static void put_list(FILE *f, const header *h)
{
    fprintf(f,
            "/* All of them: for (int i = 0; %s[i].name; i++)\n"
            " *     adj_set(e, adj_find(g, %s[i].name), %s[i].data, %s[i].bytes); */\n"
            "static const struct {\n    const char *name;\n    const void *data;\n"
            "    size_t bytes;\n} %s[%d] = {\n",
            h->prefix, h->prefix, h->prefix, h->prefix, h->prefix, h->n + 1);
    for (int i = 0; i < h->n; i++) {
        fputs("    {", f);
        put_string(f, h->tensor[i].name);
        fprintf(f, ", %s, %s%s},\n", h->name[i],
                adj_shape_elems(h->tensor[i].shape) > 0 ? "sizeof " : "0 * sizeof ", h->name[i]);
    }
    fputs("    {0, 0, 0},\n};\n\n", f);
}

static int needs_math(const adj_tensor *t)
{
    const char type = elem_in_c(t->elem)[0];
    for (int64_t i = 0; (type == 'f' || type == 'd') && i < adj_shape_elems(t->shape); i++)
        if (!isfinite(adj_tensor_value(t, i)))
            return 1;
    return 0;
}

static int write_header(FILE *f, void *user)
{
    const header *h = user;
    int math = 0;

    for (int i = 0; i < h->n; i++)
        math |= needs_math(&h->tensor[i]);
    fprintf(f, "/* Weights, written by adjoint %s. Row-major.\n", adj_version_text());
    for (int i = 0; i < h->n_metadata; i++) {
        fputs(" *   ", f);
        put_in_comment(f, h->metadata[i].key);
        fputs(": ", f);
        put_in_comment(f, h->metadata[i].value);
        fputc('\n', f);
    }
    fprintf(f,
            " */\n#ifndef ADJOINT_%s_H\n#define ADJOINT_%s_H\n\n%s#include <stddef.h>\n#include "
            "<stdint.h>\n\n",
            h->prefix, h->prefix, math ? "#include <math.h>\n" : "");
    for (int i = 0; i < h->n; i++)
        put_tensor(f, &h->tensor[i], h->name[i]);
    for (int k = 0; k < CONSTANTS; k++)
        if (h->list[k] != NULL)
            put_constant(f, h, k);
    put_list(f, h);
    fprintf(f, "#endif\n");
    return ferror(f);
}

adj_status adj_tensors_write_header(const char *path, const char *prefix, int n,
                                    const adj_tensor tensors[], int n_metadata,
                                    const adj_metadata metadata[], adj_error *error)
{
    header h = {n,    n_metadata, tensors, metadata, prefix != NULL ? prefix : "weights",
                NULL, {NULL}};

    if (path == NULL || n < 0 || n_metadata < 0)
        return adj_error_set(error, ADJ_EARG, "header: bad file name or counts");
    for (const char *c = h.prefix; *c != '\0' || c == h.prefix; c++)
        if (!(isalpha((unsigned char)*c) || *c == '_' ||
              (c > h.prefix && isdigit((unsigned char)*c))) ||
            c - h.prefix > 60)
            return adj_error_set(error, ADJ_EARG, "header: %.80s is not a C identifier", h.prefix);
    for (int i = 0; i < n; i++)
        if (tensors[i].name == NULL || tensors[i].data == NULL || adj_tensor_bytes(&tensors[i]) < 0)
            return adj_error_set(error, ADJ_EARG, "header: tensor %d: bad name, type or data", i);
    h.name = calloc((size_t)n + CONSTANTS, sizeof *h.name);
    if (h.name == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "header: out of memory");
    adj_status status = ADJ_OK;
    for (int k = 0; k < CONSTANTS && status == ADJ_OK; k++)
        if (!find_list(&h, k, &h.list[k]))
            status = adj_error_set(error, ADJ_EARG, "header: metadata %s: cannot be read as JSON",
                                   constants[k].key);
    name_all(&h);
    if (status == ADJ_OK)
        status = adj_file_replace(path, write_header, &h, error);
    for (int k = 0; k < CONSTANTS; k++)
        json_decref(h.list[k]);
    free(h.name);
    return status;
}
