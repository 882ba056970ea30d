/* list.c - adjoint ops: the ops with operands, attributes and element types, and the builders of
 * adjoint_ops.h that are composed of other ops. */
#include <inttypes.h>
#include <string.h>

#include "args.h"
#include "cli/json.h"

enum { N_DTYPE = 4 };
static const adj_dtype dtypes[N_DTYPE] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};

/* Returns the i-th name that adjoint ops accepts, or NULL past the last. */
static const char *listed_name_at(int i)
{
    int n = 0;
    while (op_name_at(n) != NULL)
        n++;
    return i < n ? op_name_at(i) : i < n + N_COMPOSITION ? op_compositions[i - n].name : NULL;
}

/* True if a backend can plan the op on example operands of that type. */
static int computes(const adj_op *op, adj_dtype dtype)
{
    const op_args args = {.op = op->name, .dtype = adj_dtype_name(dtype)};
    adj_graph *g = adj_graph_new();
    adj_node *y = op_args_build(&args, g, NULL);
    adj_exec *e = NULL;
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "naive", .threads = 1};
    int done = y != NULL && adj_exec_new(g, &o, &e) == ADJ_OK;
    adj_exec_free(e);
    adj_graph_free(g);
    return done;
}

/* ---- attributes ---- */

/* An attribute for --attr. */
typedef struct {
    const char *name, *kind; /* "epsilon"; "number" */
    const adj_attr *attr;    /* schema entry; NULL: a member of window attributes, or an operand */
} attr_row;

/* Attributes of windows: pools have all, convolutions all but the first, other ops on images the
 * last. */
static const attr_row windows[] = {{"ksize", "four whole numbers", NULL},
                                   {"strides", "four whole numbers", NULL},
                                   {"dilations", "four whole numbers", NULL},
                                   {"padding", "SAME, VALID or EXPLICIT", NULL},
                                   {"explicit_paddings", "eight whole numbers", NULL},
                                   {"data_format", "NHWC or NCHW", NULL}};
enum {
    WINDOWS = sizeof windows / sizeof *windows,
    ROWS = WINDOWS + ADJ_ATTRS + ADJ_NAMED_OPERANDS
};

static const char *kind_of(const adj_attr *a)
{
    switch (a->kind) {
    case ADJ_ATTR_REAL: return "number";
    case ADJ_ATTR_FLAG: return "0 or 1";
    case ADJ_ATTR_DTYPE: return "type";
    case ADJ_ATTR_SHAPE: return "sizes";
    case ADJ_ATTR_PER_AXIS: return "number for each axis";
    case ADJ_ATTR_PERM:
    case ADJ_ATTR_AXES: return "axes";
    default: return a->words != NULL ? "word" : "whole number";
    }
}

/* The rows of the op. Returns their number. */
static int list_rows(const adj_op *op, attr_row row[ROWS])
{
    int n = 0;
    for (const adj_attr *a = op->schema != NULL ? op->schema->attr : NULL;
         a != NULL && a->name != NULL; a++) {
        const int first = a->kind == ADJ_ATTR_POOL   ? 0
                          : a->kind == ADJ_ATTR_CONV ? 1
                                                     : WINDOWS - (a->kind == ADJ_ATTR_FORMAT);
        for (int i = first; i < WINDOWS; i++)
            row[n++] = windows[i];
        if (first == WINDOWS && !(a->flags & ADJ_ATTR_OF_RESULT))
            row[n++] = (attr_row){a->name, kind_of(a), a};
    }
    for (int i = 0; i < op->n_in && i < ADJ_NAMED_OPERANDS; i++)
        if (op->maker[i] != NULL)
            row[n++] =
                (attr_row){op->operand[i],
                           "1 computes it, 2 from others' values, 0 makes it an operand", NULL};
    return n;
}

enum { VALUE = 32 };

/* Writes the i-th number that checks try besides the default; returns 0 past the last. */
static int write_checked(const adj_attr *a, int i, char text[VALUE])
{
    int64_t value;
    double real;
    if (a == NULL || a->kind > ADJ_ATTR_SEED || !adj_attr_value(a, i, &value))
        return 0;
    memcpy(&real, &value, sizeof real);
    if (a->kind == ADJ_ATTR_REAL)
        snprintf(text, VALUE, "%.16g", real);
    else
        snprintf(text, VALUE, a->kind == ADJ_ATTR_SEED ? "%" PRIu64 : "%" PRId64, value);
    return 1;
}

static void print_attr(const attr_row *row)
{
    char text[VALUE];
    const adj_attr *a = row->attr;
    const int has_words = a != NULL && a->words != NULL;
    printf("    --attr %s: %s", row->name,
           a != NULL && a->expected != NULL && !has_words ? a->expected : row->kind);
    for (int i = 0; has_words && a->words[i] != NULL; i++)
        printf("%s%s", i == 0 ? ": " : ", ", a->words[i]);
    if (has_words)
        printf("; default %s", a->words[(int)a->fallback]);
    else if (a != NULL && op_attr_has_default(a))
        printf("; default %g", a->fallback);
    for (int i = 0; write_checked(a, i, text); i++)
        printf("%s%s", i == 0 ? "; checked at " : ", ", text);
    putchar('\n');
}

/* ---- the listing ---- */

static void print_op(const adj_op *op)
{
    char name[OPERAND_NAME];
    printf("%s(", op->name);
    for (int i = 0; i < op->n_in; i++)
        printf("%s%s", i > 0 ? ", " : "", op_operand_name(op, i, name));
    printf("%s)", op->n_in == ADJ_MANY ? "x0, x1, ..." : "");
    for (int i = 0; i < N_DTYPE; i++)
        if (computes(op, dtypes[i]))
            printf(" %s", adj_dtype_name(dtypes[i]));
    putchar('\n');
    attr_row row[ROWS];
    const int n = list_rows(op, row);
    for (int i = 0; i < n; i++)
        print_attr(&row[i]);
}

static json_t *attr_json(const attr_row *row)
{
    const adj_attr *a = row->attr;
    json_t *o = json_pack("{s:s, s:s}", "name", row->name, "kind", row->kind);
    if (a != NULL && a->expected != NULL)
        json_object_set_new(o, "expected", json_text(a->expected));
    if (a != NULL && op_attr_has_default(a))
        json_object_set_new(o, "default", json_number(a->fallback));
    json_t *checked = json_array();
    char text[VALUE];
    for (int i = 0; write_checked(a, i, text); i++)
        json_array_append_new(checked, json_text(text));
    json_object_set_new(o, "checked", checked);
    json_t *words = a != NULL && a->words != NULL ? json_array() : NULL;
    for (int i = 0; words != NULL && a->words[i] != NULL; i++)
        json_array_append_new(words, json_text(a->words[i]));
    if (words != NULL)
        json_object_set_new(o, "words", words);
    return o;
}

static json_t *op_json(const adj_op *op)
{
    char name[OPERAND_NAME];
    json_t *operands = json_array(), *attrs = json_array(), *types = json_array();
    for (int i = 0; i < op->n_in; i++)
        json_array_append_new(operands, json_text(op_operand_name(op, i, name)));
    attr_row row[ROWS];
    const int n = list_rows(op, row);
    for (int i = 0; i < n; i++)
        json_array_append_new(attrs, attr_json(&row[i]));
    for (int i = 0; i < N_DTYPE; i++)
        if (computes(op, dtypes[i]))
            json_array_append_new(types, json_text(adj_dtype_name(dtypes[i])));
    return json_pack("{s:s, s:o, s:b, s:o, s:o, s:s?}", "name", op->name, "operands", operands,
                     "any_number_of_operands", op->n_in == ADJ_MANY, "attributes", attrs, "dtypes",
                     types, "gradient_of", op->forward != NULL ? op->forward->name : NULL);
}

/* True if name is the wanted one; wanted NULL: true for all. */
static int is_wanted(const char *wanted, const char *name)
{
    return wanted == NULL || strcmp(wanted, name) == 0;
}

/* True if the op is listed: a wanted one that --op can name and that is not a leaf. */
static int is_listed(const char *wanted, const adj_op *op)
{
    return !(op->flags & (ADJ_OP_INTERNAL | ADJ_OP_LEAF)) && is_wanted(wanted, op->name);
}

/* Returns the op or composition of that name; NULL: all. */
static json_t *ops_json(const char *only)
{
    json_t *list = json_array();
    for (int i = 0; adj_ops[i] != NULL; i++)
        if (is_listed(only, adj_ops[i]))
            json_array_append_new(list, op_json(adj_ops[i]));
    for (int i = 0; i < N_COMPOSITION; i++) {
        const op_composition *c = &op_compositions[i];
        if (is_wanted(only, c->name))
            json_array_append_new(list, json_pack("{s:s, s:o, s:b, s:[], s:[], s:o}", "name",
                                                  c->name, "operands", json_words(c->operands),
                                                  "any_number_of_operands", 0, "attributes",
                                                  "dtypes", "made_of", json_words(c->made_of)));
    }
    return list;
}

static void print_ops(const char *only)
{
    for (int i = 0; adj_ops[i] != NULL; i++)
        if (is_listed(only, adj_ops[i]))
            print_op(adj_ops[i]);
    if (only == NULL)
        printf("\nbuilders that are made of other ops (adj_NAME in C):\n");
    for (int i = 0; i < N_COMPOSITION; i++) {
        const op_composition *c = &op_compositions[i];
        if (is_wanted(only, c->name))
            printf("%s(%s): %s\n", c->name, c->operands, c->made_of);
    }
}

int command_ops(int argc, char **argv)
{
    const char *json = NULL, *name = NULL;
    int n = 0;
    const option options[] = {{"--json", "FILE", JSON_HELP, .text = &json, .bare = "-"}, {0}};
    const remark examples[] = {{"adjoint ops conv2d", "One of them."},
                               {"adjoint ops --json=ops.json", "All ops, as JSON."},
                               {NULL, NULL}};
    const usage u = {
        .command = "ops",
        .summary =
            "Lists the ops: operands, element types and attributes, in the form that --attr takes "
            "(--attr epsilon=0.01,groups=4); then the builders composed of several ops.",
        .options = options,
        .arguments = "[NAME]",
        .argument = &name,
        .max_arguments = 1,
        .n_argument = &n,
        .names = listed_name_at,
        .examples = examples};
    int status = parse_options(&u, argc, argv);
    adj_error error = {0};
    if (status != CONTINUE)
        return status;
    if (name != NULL && op_composition_find(name) == NULL && op_check_name(name, &error) != ADJ_OK)
        return complain(EXIT_USAGE, "%s", error.message);
    if (json != NULL)
        return json_report(json, ops_json(name));
    print_ops(name);
    return EXIT_OK;
}
