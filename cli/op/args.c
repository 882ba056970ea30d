/* args.c - see args.h. */
#include <string.h>

#include "args.h"
#include "ops/attr_lists.h"

enum { MAX_OPS = 256 };

/* Returns the i-th dtype for shell completion; invalid ones are reported when the op is read. */
static const char *dtype_at(int i)
{
    static const char *const names[] = {"f32", "f64", "f16", "bf16", NULL};
    return names[i];
}

void op_args_options(op_args *a, option to[OP_OPTIONS])
{
    const option options[] = {
        {"--op", "NAME", "op; see adjoint ops", .text = &a->op, .names = op_name_at},
        {"--in", "N,H,W,C", "shape of the first operand", .text = &a->in},
        {"--filter", "H,W,C,O",
         "shape of the filter or second operand; same: it is the first operand again",
         .text = &a->filter},
        {"--dtype", "TYPE",
         "element type of the graph and its parameters: f32 (default), f64, f16 or bf16",
         .text = &a->dtype, .names = dtype_at},
        {"--attr", "LIST", "attributes of the op: strides=1,2,2,1,padding=VALID; see adjoint ops",
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

static adj_status read_shape(const char *option, const char *text, adj_shape *shape,
                             adj_error *error)
{
    int64_t size[ADJ_MAX_RANK];
    *shape = (adj_shape){0};
    if (strcmp(text, "scalar") == 0)
        return ADJ_OK;
    const int n = op_read_list(text, ADJ_MAX_RANK, size);
    if (n > 0 && adj_shape_from_list(n, size, shape) == ADJ_OK && adj_shape_elems(*shape) >= 0)
        return ADJ_OK;
    return adj_error_set(error, ADJ_EARG,
                         "%s: not a shape (got \"%s\", expected up to %d sizes such as 2,8,8,3, "
                         "none negative, their product within 64 bits)",
                         option, text, ADJ_MAX_RANK);
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
        return adj_error_set(error, ADJ_EARG,
                             "%s is composed of %s (expected a single op; see adjoint ops)", name,
                             c->made_of);
    return adj_error_set(error, ADJ_EARG, "unknown op %.100s%s", name,
                         did_you_mean(name, names, n, sizeof names[0], "see adjoint ops").s);
}

static adj_status read_types(const op_args *args, op_attrs *attrs, adj_dtype *dtype,
                             adj_format *format, adj_error *error)
{
    const char *layout = op_attrs_value(attrs, "data_format");
    *format = layout != NULL && strcmp(layout, "NCHW") == 0 ? ADJ_NCHW : ADJ_NHWC;
    if (layout != NULL && *format == ADJ_NHWC && strcmp(layout, "NHWC") != 0)
        return adj_error_set(error, ADJ_EARG,
                             "--attr data_format: got \"%.100s\", expected NHWC or NCHW", layout);
    if (args->dtype != NULL && !dtype_from_name(args->dtype, dtype))
        return adj_error_set(error, ADJ_EARG, "--dtype: got \"%s\", expected f32, f64, f16 or bf16",
                             args->dtype);
    return ADJ_OK;
}

/* Fails if an attribute was given that the op does not have. */
static adj_status check_all_used(const op_attrs *a, const char *of, adj_error *error)
{
    const int is_op = op_find(of) != NULL;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; !a->item[i].is_used && k <= i; k++)
            if (k == i)
                return adj_error_set(error, ADJ_EARG,
                                     "--attr: %s has no attribute %.100s (see adjoint ops%s%s)", of,
                                     a->item[i].name, is_op ? " " : "", is_op ? of : "");
            else if (strcmp(a->item[k].name, a->item[i].name) == 0)
                return adj_error_set(error, ADJ_EARG, "--attr: %s is given twice", a->item[k].name);
    return ADJ_OK;
}

adj_status op_args_types(const op_args *args, adj_dtype *dtype, adj_format *format,
                         adj_error *error)
{
    op_attrs attrs;
    adj_status status = op_attrs_split(&attrs, NULL, args->attr, error);
    if (status == ADJ_OK)
        status = read_types(args, &attrs, dtype, format, error);
    return status == ADJ_OK ? check_all_used(&attrs, "a model", error) : status;
}

static adj_status read_case(const op_args *args, op_case *c, adj_error *error)
{
    const adj_op *op = op_find(args->op);
    adj_status status =
        op_attrs_split(&c->attrs, op->forward != NULL ? op->forward : op, args->attr, error);
    if (status == ADJ_OK)
        status = read_types(args, &c->attrs, &c->dtype, &c->format, error);
    for (int i = 0; i < c->attrs.n; i++)
        c->attrs.item[i].is_used = 0; /* the op may have no data_format */
    c->is_same = args->filter != NULL && strcmp(args->filter, "same") == 0;
    c->has_filter = args->filter != NULL && !c->is_same;
    if (status == ADJ_OK && c->has_filter)
        status = read_shape("--filter", args->filter, &c->filter, error);
    const char *usual = c->format == ADJ_NCHW ? "2,3,8,8" : "2,8,8,3";
    return status == ADJ_OK ? read_shape("--in", args->in != NULL ? args->in : usual, &c->in, error)
                            : status;
}

/* Returns n, or NULL with an error from the node, the options or the graph. */
static adj_node *result(const op_args *args, op_case *c, adj_node *n, adj_error *error)
{
    if (n != NULL && c->error.status == ADJ_OK)
        (void)check_all_used(&c->attrs, args->op, &c->error);
    if (n != NULL && (c->has_filter || c->is_same) && !c->used_filter)
        adj_error_set(&c->error, ADJ_EARG, "--filter: %s has no second operand", args->op);
    if (n != NULL && c->error.status == ADJ_OK)
        return n;
    if (c->error.status == ADJ_OK && adj_graph_status(c->g) == ADJ_OK)
        adj_error_set(&c->error, ADJ_ENOMEM, "out of memory");
    else if (c->error.status == ADJ_OK)
        adj_error_set(&c->error, adj_graph_status(c->g), "%s", adj_graph_message(c->g));
    if (c->error.status != ADJ_ENOMEM)
        c->error.status = ADJ_EARG;
    if (error != NULL)
        *error = c->error;
    return NULL;
}

static adj_node *build(const op_args *args, op_case *c, adj_error *error)
{
    if (op_check_name(args->op, error) != ADJ_OK || read_case(args, c, error) != ADJ_OK)
        return NULL;
    return result(args, c, op_build(c, args->op), error);
}

adj_node *op_args_build(const op_args *args, adj_graph *g, adj_error *error)
{
    op_case c = {.g = g, .dtype = ADJ_F32, .first = adj_graph_node_count(g)};
    return build(args, &c, error);
}

adj_node *op_args_build_given(const op_args *args, adj_graph *g,
                              adj_node *(*given)(void *user, const char *name), void *user,
                              adj_error *error)
{
    op_case c = {.g = g, .given = given, .user = user};
    return build(args, &c, error);
}
