/* args.c - see args.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "cli/repeat.h"

enum { LIST = 16, MAX_OPS = 256 };

/* For shells: what is wrong is said where these are read, with the rest of the op. */
static const char *word_at(const char *const words[], int i) { return words[i]; }

static const char *data_format_at(int i)
{
    return word_at((const char *const[]){"NHWC", "NCHW", NULL}, i);
}

static const char *padding_at(int i)
{
    return word_at((const char *const[]){"SAME", "VALID", "EXPLICIT", NULL}, i);
}

static const char *dtype_at(int i)
{
    return word_at((const char *const[]){"f32", "f64", "f16", "bf16", NULL}, i);
}

void op_args_options(op_args *a, option to[OP_OPTIONS])
{
    const option options[] = {
        {"--op", "NAME", "one of adjoint ops", .text = &a->op, .names = op_name_at},
        {"--in", "N,H,W,C", "its first operand's shape", .text = &a->in},
        {"--filter", "H,W,C,O", "its filter's (or second operand's) shape", .text = &a->filter},
        {"--data-format", "F", "of images: NHWC (default) or NCHW", .text = &a->data_format,
         .names = data_format_at},
        {"--padding", "P", "SAME (default), VALID or EXPLICIT", .text = &a->padding,
         .names = padding_at},
        {"--explicit-paddings", "LIST", "eight numbers", .text = &a->explicit_paddings},
        {"--strides", "LIST", "four numbers in data format order", .text = &a->strides},
        {"--dilations", "LIST", "four numbers", .text = &a->dilations},
        {"--ksize", "LIST", "four numbers", .text = &a->ksize},
        {"--dtype", "TYPE",
         "element type of the whole graph, parameters too: f32 (default), f64, f16 or bf16",
         .text = &a->dtype, .names = dtype_at},
        {"--attr", "LIST",
         "its other attributes, in the order of adjoint ops, or by name: 0.5,groups=4",
         .text = &a->attr},
    };
    memcpy(to, options, sizeof options);
}

int op_args_repeat(const op_args *args, char *line, size_t size)
{
    op_args a = *args;
    option options[OP_OPTIONS];
    op_args_options(&a, options);
    for (int i = 0; i < OP_OPTIONS; i++)
        repeat_option(line, size, options[i].name, *options[i].text);
    return strlen(line) + 1 < size;
}

const char *op_args_given(const op_args *args, const char *except)
{
    op_args a = *args;
    option options[OP_OPTIONS];
    op_args_options(&a, options);
    for (int i = 1; i < OP_OPTIONS; i++)
        if (*options[i].text != NULL && strstr(except, options[i].name) == NULL)
            return options[i].name;
    return NULL;
}

typedef struct {
    int n;
    int64_t number[LIST];
} list;

/* "1,8,9,9" */
static adj_status read_list(const char *option, const char *text, list *l, adj_error *error)
{
    *l = (list){0};
    for (const char *p = text; p != NULL;) {
        char *end;
        errno = 0;
        long long v = strtoll(p, &end, 10);
        if (end == p || errno != 0 || l->n == LIST || (*end != ',' && *end != '\0'))
            return adj_error_set(error, ADJ_EARG,
                                 "%s: not a list of whole numbers such as 1,2,2,1 (got \"%s\")",
                                 option, text);
        l->number[l->n++] = v;
        p = *end == ',' ? end + 1 : NULL;
    }
    return ADJ_OK;
}

static adj_status read_shape(const char *option, const char *text, adj_shape *shape,
                             adj_error *error)
{
    list l;
    *shape = (adj_shape){0};
    if (strcmp(text, "scalar") == 0)
        return ADJ_OK;
    adj_status status = read_list(option, text, &l, error);
    if (status != ADJ_OK)
        return status;
    if (adj_shape_from_list(l.n, l.number, shape) == ADJ_OK && adj_shape_elems(*shape) >= 0)
        return ADJ_OK;
    return adj_error_set(
        error, ADJ_EARG,
        "%s: no shape (got \"%s\", expected at most %d sizes, none negative, whose product fits "
        "64 bits)",
        option, text, ADJ_MAX_RANK);
}

int dtype_from_name(const char *name, adj_dtype *dtype)
{
    adj_dtype found;
    if (adj_dtype_from_name(name, &found) != ADJ_OK || !adj_is_float(found))
        return 0;
    *dtype = found;
    return 1;
}

/* Stores the value of one word: "1e-4", "f64". Returns 0 if it is neither a number nor a type. */
static int read_value(const char *word, double *v)
{
    char *end;
    adj_dtype dtype;
    *v = strtod(word, &end);
    if (dtype_from_name(word, &dtype))
        *v = (double)dtype;
    else if (end == word || *end != '\0' || !isfinite(*v))
        return 0;
    return 1;
}

/* "0.9,1e-4", "f64", "groups=4". A number without a name is the next in the order of adjoint ops.
 */
static adj_status read_attr(const op_args *args, op_case *c, adj_error *error)
{
    int next = 0;
    for (int i = 0; i < ATTRS; i++)
        c->attr[i] = NAN;
    for (const char *p = args->attr; p != NULL;) {
        char word[40];
        const size_t n = strcspn(p, ","), name = strcspn(p, "=,");
        const int fits = n > 0 && n < sizeof word, is_named = fits && p[name] == '=';
        double v;
        snprintf(word, sizeof word, "%.*s", fits ? (int)n : 0, p);
        if (is_named)
            word[name] = '\0';
        const int at = is_named ? op_attr_position(args->op, word) : next++;
        if (at < 0)
            return adj_error_set(error, ADJ_EARG,
                                 "--attr: no single number of %s is named %s "
                                 "(adjoint ops %s lists them)",
                                 args->op, word, args->op);
        if (at >= ATTRS || !read_value(word + (is_named ? name + 1 : 0), &v))
            return adj_error_set(error, ADJ_EARG,
                                 "--attr: not a list of at most %d numbers (got \"%.100s\")", ATTRS,
                                 args->attr);
        if (!isnan(c->attr[at]))
            return adj_error_set(error, ADJ_EARG,
                                 "--attr: number %d is given twice (got \"%.100s\")", at + 1,
                                 args->attr);
        c->attr[at] = v;
        c->n_attr = at >= c->n_attr ? at + 1 : c->n_attr;
        p = p[n] == ',' ? p + n + 1 : NULL;
    }
    return ADJ_OK;
}

adj_status op_check_name(const char *name, adj_error *error)
{
    const char *names[MAX_OPS];
    int n = 0;
    for (; n < MAX_OPS && (names[n] = op_name_at(n)) != NULL; n++)
        if (strcmp(names[n], name) == 0)
            return ADJ_OK;
    const op_composition *c = op_composition_find(name);
    if (c != NULL)
        return adj_error_set(error, ADJ_EARG, "%s is composed of %s (expected an op: adjoint ops)",
                             name, c->made_of);
    return adj_error_set(error, ADJ_EARG, "unknown op %.100s%s", name,
                         did_you_mean(name, names, n, sizeof names[0], "adjoint ops lists them").s);
}

adj_status op_args_types(const op_args *args, adj_dtype *dtype, adj_format *format,
                         adj_error *error)
{
    const char *layout = args->data_format != NULL ? args->data_format : "NHWC";
    *format = strcmp(layout, "NCHW") == 0 ? ADJ_NCHW : ADJ_NHWC;
    if (*format == ADJ_NHWC && strcmp(layout, "NHWC") != 0)
        return adj_error_set(error, ADJ_EARG, "--data-format: got \"%s\", expected NHWC or NCHW",
                             layout);
    if (args->dtype != NULL && !dtype_from_name(args->dtype, dtype))
        return adj_error_set(error, ADJ_EARG, "--dtype: got \"%s\", expected f32, f64, f16 or bf16",
                             args->dtype);
    return ADJ_OK;
}

static adj_status read_case(const op_args *args, op_case *c, list lists[4], adj_error *error)
{
    const struct {
        const char *option, *text;
        int *n;
        const int64_t **to;
    } attrs[] = {
        {"--ksize", args->ksize, &c->lists.n_ksize, &c->lists.ksize},
        {"--strides", args->strides, &c->lists.n_strides, &c->lists.strides},
        {"--dilations", args->dilations, &c->lists.n_dilations, &c->lists.dilations},
        {"--explicit-paddings", args->explicit_paddings, &c->lists.n_explicit_paddings,
         &c->lists.explicit_paddings},
    };
    adj_status status = ADJ_OK;
    for (int i = 0; i < 4 && status == ADJ_OK; i++) {
        status = read_list(attrs[i].option, attrs[i].text, &lists[i], error);
        *attrs[i].n = lists[i].n;
        *attrs[i].to = lists[i].n > 0 ? lists[i].number : NULL;
    }
    c->lists.padding = args->padding != NULL ? args->padding : "SAME";
    c->lists.data_format = args->data_format;
    if (status == ADJ_OK)
        status = op_args_types(args, &c->dtype, &c->format, error);
    c->has_filter = args->filter != NULL;
    if (status == ADJ_OK && c->has_filter)
        status = read_shape("--filter", args->filter, &c->filter, error);
    if (status == ADJ_OK)
        status = read_attr(args, c, error);
    const char *usual = c->format == ADJ_NCHW ? "2,3,8,8" : "2,8,8,3";
    return status == ADJ_OK ? read_shape("--in", args->in != NULL ? args->in : usual, &c->in, error)
                            : status;
}

/* n, or NULL and what is wrong with it, with the options, or with the graph. */
static adj_node *result(const op_args *args, op_case *c, adj_node *n, adj_error *error)
{
    if (n != NULL && c->n_attr > c->used_attrs)
        adj_error_set(&c->error, ADJ_EARG, "--attr: %s has %d such attributes (got %d)", args->op,
                      c->used_attrs, c->n_attr);
    if (n != NULL && c->has_filter && !c->used_filter)
        adj_error_set(&c->error, ADJ_EARG, "--filter: %s takes no second shape", args->op);
    if (n != NULL && c->error.status == ADJ_OK)
        return n;
    if (c->error.status == ADJ_OK && adj_graph_status(c->g) == ADJ_OK)
        adj_error_set(&c->error, ADJ_ENOMEM, "out of memory");
    else if (c->error.status == ADJ_OK)
        adj_error_set(&c->error, adj_graph_status(c->g), "%s", adj_graph_message(c->g));
    if (error != NULL)
        *error = c->error;
    return NULL;
}

adj_node *op_args_build(const op_args *args, adj_graph *g, adj_error *error)
{
    op_case c = {.g = g, .dtype = ADJ_F32, .first = adj_graph_node_count(g)};
    list lists[4];
    if (op_check_name(args->op, error) != ADJ_OK || read_case(args, &c, lists, error) != ADJ_OK)
        return NULL;
    return result(args, &c, op_build(&c, args->op), error);
}

adj_node *op_args_build_given(const op_args *args, adj_graph *g,
                              adj_node *(*given)(void *user, const char *name), void *user,
                              adj_error *error)
{
    op_case c = {.g = g, .given = given, .user = user};
    list lists[4];
    if (op_check_name(args->op, error) != ADJ_OK || read_case(args, &c, lists, error) != ADJ_OK)
        return NULL;
    return result(args, &c, op_build(&c, args->op), error);
}
