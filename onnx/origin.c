/* origin.c - parameters as the notes of PyTorch's newer exporter have them. The graph's signature
 * names all parameters and buffers, and each node has the call that it was made from:
 *
 *     p_norm_weight: PARAMETER target='norm.weight'
 *     %layer_norm : call_function[...](args = (%x, [16], %p_norm_weight, %p_norm_bias), ...)
 *
 * Equal tensors are stored once, such as the ones of all norms before training. A node whose call
 * names a parameter that the file lacks reads one of its own with that name and those values.
 * A bias that is all zero is left out, and added again. Buffers are not trained. */
#include <stdlib.h>
#include <string.h>

#include "import.h"

enum { MAX_TOKEN = 256, MAX_ARGS = 16 };

/* A line of the signature. */
typedef struct {
    const char *token, *name;
    int is_buffer;
} origin;

typedef struct {
    origin *list;
    int64_t n;
} signature;

static int by_token(const void *a, const void *b)
{
    return strcmp(((const origin *)a)->token, ((const origin *)b)->token);
}

/* Reads a line in place: token, kind, name. Returns 0 if it is of neither kind. */
static int read_line(char *line, origin *to)
{
    char *kind = strstr(line, ": "), *name = strstr(line, " target='");
    char *end = name != NULL ? strchr(name + 9, '\'') : NULL;
    if (kind == NULL || end == NULL || kind >= name || end == name + 9)
        return 0;
    *kind = *end = '\0';
    *to = (origin){line, name + 9, strncmp(kind + 2, "PARAMETER", 9) != 0};
    return 1;
}

/* Reads the lines, sorted by token, and marks the initializers they name. Returns 0 on failure. */
static int read_signature(import *f, const char *text, signature *s)
{
    char *copy = import_alloc(f, (int64_t)strlen(text) + 1, 1);
    int64_t lines = 1;
    for (const char *c = text; (c = strchr(c, '\n')) != NULL; c++)
        lines++;
    s->list = import_alloc(f, lines, sizeof *s->list);
    if (copy == NULL || s->list == NULL)
        return 0;
    memcpy(copy, text, strlen(text) + 1);
    for (char *line = copy, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (!read_line(line, &s->list[s->n]))
            continue;
        const origin *o = &s->list[s->n++];
        value *v = find_value(f, o->name);
        if (v != NULL && v->known != NULL && elem_is_float(v->elem)) {
            v->is_listed = v->is_initial = 1;
            v->is_weight = !o->is_buffer;
        }
    }
    qsort(s->list, (size_t)s->n, sizeof *s->list, by_token);
    return 1;
}

/* Sets arg to the values that a call names: NULL for those of no line. Returns their number. */
static int read_call(const signature *s, const char *text, const origin *arg[])
{
    int n = 0;
    const char *c = strstr(text, "args = (");
    if (c == NULL)
        return 0;
    while (n < MAX_ARGS && (c = strpbrk(c, "%N")) != NULL) {
        char token[MAX_TOKEN];
        const int is_none = strncmp(c, "None", 4) == 0;
        const size_t length = strcspn(++c, ",)]");
        if (length >= sizeof token)
            break;
        memcpy(token, c, length);
        token[length] = '\0';
        const origin key = {.token = token};
        arg[n++] = !is_none ? bsearch(&key, s->list, (size_t)s->n, sizeof key, by_token) : NULL;
    }
    return n;
}

static int has_same_end(const char *a, const char *b)
{
    const char *x = strrchr(a, '.'), *y = strrchr(b, '.');
    return strcmp(x != NULL ? x + 1 : a, y != NULL ? y + 1 : b) == 0;
}

/* Returns the value that operand i stands for, if that is not v; else NULL. */
static const origin *true_origin(import *f, const value *v, int is_norm, size_t i, int n,
                                 const origin *const arg[])
{
    const origin *found = NULL;
    for (int k = 0; k < n; k++) {
        if (arg[k] == NULL)
            continue;
        const value *own = find_value(f, arg[k]->name);
        if (own == v && !is_norm)
            return NULL;
        const int is_missing = own == NULL || (own->is_listed && own->known == v->known);
        if (is_norm ? (size_t)k == i : has_same_end(arg[k]->name, v->name))
            return is_missing && own != v ? arg[k] : NULL;
        if (is_missing && found == NULL)
            found = arg[k];
    }
    return is_norm ? NULL : found;
}

/* Lets operand i read a value of its own. Returns 0 on failure. */
static int read_own(import *f, Onnx__NodeProto *n, size_t i, const value *v, const origin *o)
{
    value *own = find_value(f, o->name);
    if (own == NULL) {
        if ((own = add_value(f, o->name)) == NULL)
            return 0;
        const char *name = own->name;
        *own = *v;
        own->name = name;
        own->is_weight = !o->is_buffer;
    }
    char *name = strdup(o->name);
    if (name == NULL)
        return import_fail(f, ADJ_ENOMEM, "out of memory");
    free(n->input[i]);
    n->input[i] = name;
    return 1;
}

/* Adds the zero bias that the exporter left out. Returns 0 on failure. */
static int add_bias(import *f, Onnx__NodeProto *n, const origin *o)
{
    const value *w = n->input[1] != NULL ? find_value(f, n->input[1]) : NULL;
    if (w == NULL || w->known == NULL || w->known->shape.rank < 2 || !has_results_first(n))
        return 1;
    value *v = add_value(f, o->name);
    char **input = realloc(n->input, 3 * sizeof *input), *name = strdup(o->name);
    if (input != NULL)
        n->input = input;
    if (v == NULL || input == NULL || name == NULL) {
        free(name);
        return import_fail(f, ADJ_ENOMEM, "out of memory");
    }
    input[n->n_input++] = name;
    v->known = new_numbers(f, w->elem, (adj_shape){1, {w->known->shape.dim[0]}});
    v->elem = w->elem;
    v->is_weight = v->is_initial = v->is_listed = 1;
    return v->known != NULL;
}

/* True if the exporter has left out a bias that is all zero. */
static int lacks_bias(import *f, const Onnx__NodeProto *n, int n_arg, const origin *const arg[])
{
    const char *rule =
        entry_of(n->n_metadata_props, n->metadata_props, "pkg.onnxscript.rewriter.rule_name");
    return rule != NULL && strstr(rule, "RemoveOptionalBias") != NULL && n->n_input == 2 &&
           (is_op(n, "Conv") || is_op(n, "Gemm")) && n_arg > 2 && arg[2] != NULL &&
           find_value(f, arg[2]->name) == NULL;
}

static int name_operands(import *f, const signature *s, Onnx__NodeProto *n)
{
    const char *text = entry_of(n->n_metadata_props, n->metadata_props, "pkg.torch.onnx.fx_node");
    const int is_norm = is_op(n, "BatchNormalization");
    /* A convolution into which a norm is folded has the norm's call. */
    if (text == NULL || (strstr(text, "batch_norm") != NULL) != is_norm)
        return 1;
    const origin *arg[MAX_ARGS];
    const int n_arg = read_call(s, text, arg);
    for (size_t i = 0; i < n->n_input; i++) {
        const value *v = n->input[i] != NULL ? find_value(f, n->input[i]) : NULL;
        if (v == NULL || !v->is_listed)
            continue;
        const origin *o = true_origin(f, v, is_norm, i, n_arg, arg);
        if (o != NULL && !read_own(f, n, i, v, o))
            return 0;
    }
    return !lacks_bias(f, n, n_arg, arg) || add_bias(f, n, arg[2]);
}

int name_parameters(import *f)
{
    const Onnx__GraphProto *g = f->model->graph;
    const char *text = entry_of(g->n_metadata_props, g->metadata_props,
                                "pkg.torch.export.ExportedProgram.graph_signature");
    signature s = {0};
    if (text == NULL)
        return 1;
    if (!read_signature(f, text, &s))
        return 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (!name_operands(f, &s, g->node[i]))
            return 0;
    for (int64_t i = 0; i < s.n; i++)
        f->n_folded +=
            has_same_end(s.list[i].name, "running_var") && find_value(f, s.list[i].name) == NULL;
    return 1;
}
