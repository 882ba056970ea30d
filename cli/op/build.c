/* build.c - every op of the registry over operands that suit a shape: see args.h. */
#include <stdio.h>
#include <string.h>

#include "args.h"

enum { ATTR_BYTES = 1024, MAX_OPERANDS = 8 };

const op_composition op_compositions[N_COMPOSITION] = {
    {"abs", "x", "relu, neg, add"},
    {"conv2d_transpose", "x, w, output_shape", "conv2d_backprop_input"},
    {"global_avg_pool", "x", "reduce_mean"},
    {"layer_norm", "x, gamma, beta", "reshape, group_norm"},
    {"reduce_min", "x", "neg, reduce_max"},
    {"separable_conv2d", "x, depthwise, pointwise", "depthwise_conv2d_native, conv2d"},
};

const op_composition *op_composition_find(const char *name)
{
    for (int i = 0; i < N_COMPOSITION; i++)
        if (strcmp(op_compositions[i].name, name) == 0)
            return &op_compositions[i];
    return NULL;
}

const char *op_name_at(int i)
{
    for (const adj_op *const *op = adj_ops; *op != NULL; op++)
        if (!((*op)->flags & ADJ_OP_INTERNAL) && i-- == 0)
            return (*op)->name;
    return NULL;
}

adj_example op_example(const adj_op *op, int n)
{
    static const adj_example usual[] = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_X};
    if (op->example[0] != ADJ_EXAMPLE_NONE)
        return n < ADJ_NAMED_OPERANDS ? op->example[n] : ADJ_EXAMPLE_NONE;
    return n < (op->n_in == 2 ? 2 : 1) ? usual[n] : ADJ_EXAMPLE_NONE;
}

int is_from_filter(adj_example kind)
{
    return kind >= ADJ_EXAMPLE_FILTER_OR_X && kind <= ADJ_EXAMPLE_RIGHT_FACTOR;
}

/* Returns the number of operands of the op's example. */
static int count_operands(const adj_op *op)
{
    int n = 0;
    while (op->n_in != 0 && op_example(op, n) != ADJ_EXAMPLE_NONE)
        n++;
    return n;
}

void op_maker_operands(const adj_op *op, const adj_op *maker, int from[ADJ_NAMED_OPERANDS])
{
    for (int k = 0; k < maker->n_in; k++)
        for (from[k] = 0; strcmp(op->operand[from[k]], maker->operand[k]) != 0;)
            from[k]++;
}

const char *op_operand_name(const adj_op *op, int i, char name[OPERAND_NAME])
{
    const char *own = i < ADJ_NAMED_OPERANDS ? op->operand[i] : NULL;
    if (own != NULL)
        snprintf(name, OPERAND_NAME, "%s", own);
    else
        snprintf(name, OPERAND_NAME, "x%d", i);
    return name;
}

const adj_op *op_find(const char *name)
{
    const adj_op *const *op = adj_ops;
    while (*op != NULL && strcmp((*op)->name, name) != 0)
        op++;
    return *op;
}

/* ---- operands ---- */

static adj_node *operand(op_case *c, adj_type t)
{
    char name[16];
    if (c->operand != NULL)
        return c->operand(c->user, t);
    snprintf(name, sizeof name, "in%d", c->first + c->n++);
    return adj_input(c->g, name, t.dtype, t.shape);
}

static adj_shape second(op_case *c, adj_shape usual)
{
    c->used_filter = 1;
    return c->has_filter ? c->filter : usual;
}

static adj_shape matrix_of(adj_shape in)
{
    int64_t rows = in.rank > 0 ? in.dim[0] : 1, all = adj_shape_elems(in);
    return in.rank == 2 ? in : (adj_shape){2, {rows, rows > 0 && all > 0 ? all / rows : 1}};
}

static adj_shape factor_of(adj_shape a, const adj_matmul_attrs *t)
{
    int64_t inner = a.dim[t->transpose_a ? 0 : 1];
    return t->transpose_b ? (adj_shape){2, {4, inner}} : (adj_shape){2, {inner, 4}};
}

/* Returns the type of an operand of that kind. */
static adj_type type_of(op_case *c, adj_example kind, const void *attrs)
{
    const adj_shape in = c->in;
    const adj_dtype stats = c->dtype == ADJ_F64 ? ADJ_F64 : ADJ_F32;
    const int64_t first = in.rank > 0 ? in.dim[0] : 1;
    const int64_t last = in.rank > 0 ? in.dim[in.rank - 1] : 1;
    const int64_t channels = c->format == ADJ_NCHW && in.rank > 1 ? in.dim[1] : last;
    const adj_shape of_last = {in.rank > 0, {last}}, of_channels = {1, {channels}};
    switch (kind) {
    case ADJ_EXAMPLE_FILTER_OR_X: return (adj_type){c->dtype, second(c, in)};
    case ADJ_EXAMPLE_FILTER_OR_ROW: return (adj_type){c->dtype, second(c, of_last)};
    case ADJ_EXAMPLE_CONV_FILTER:
        return (adj_type){c->dtype, second(c, (adj_shape){4, {3, 3, channels, 4}})};
    case ADJ_EXAMPLE_DEPTHWISE_FILTER:
        return (adj_type){c->dtype, second(c, (adj_shape){4, {3, 3, channels, 2}})};
    case ADJ_EXAMPLE_FILTER_OR_CHANNELS: return (adj_type){c->dtype, second(c, of_channels)};
    case ADJ_EXAMPLE_MATRIX: return (adj_type){c->dtype, matrix_of(in)};
    case ADJ_EXAMPLE_RIGHT_FACTOR:
        return (adj_type){c->dtype, second(c, factor_of(matrix_of(in), attrs))};
    case ADJ_EXAMPLE_ROW_OR_X: return (adj_type){c->dtype, c->attrs.n > 0 ? in : of_last};
    case ADJ_EXAMPLE_CHANNELS: return (adj_type){c->dtype, of_channels};
    case ADJ_EXAMPLE_STATISTIC: return (adj_type){stats, of_channels};
    case ADJ_EXAMPLE_COMPUTED_STATISTICS:
    case ADJ_EXAMPLE_STATISTICS: return (adj_type){stats, {2, {2, channels}}};
    case ADJ_EXAMPLE_LABELS: return (adj_type){ADJ_I32, {1, {first}}};
    case ADJ_EXAMPLE_INTEGER: return (adj_type){ADJ_I32, {0}};
    case ADJ_EXAMPLE_NUMBER: return (adj_type){c->dtype, {0}};
    default: return (adj_type){c->dtype, in};
    }
}

/* Adds the maker of one of op's operands, over the operands before it. */
static adj_node *made(const adj_op *maker, const adj_op *op, adj_node *const in[],
                      const char *attrs)
{
    _Alignas(16) char its[ATTR_BYTES] = {0};
    adj_node *of[ADJ_NAMED_OPERANDS];
    int from[ADJ_NAMED_OPERANDS];
    op_maker_operands(op, maker, from);
    for (int k = 0; k < maker->n_in; k++)
        of[k] = in[from[k]];
    for (const adj_attr *a = maker->schema->attr; a->name != NULL; a++)
        for (const adj_attr *b = op->schema->attr; b->name != NULL; b++)
            if (strcmp(a->name, b->name) == 0) /* a number, of 8 bytes */
                memcpy(its + a->offset, attrs + b->offset, sizeof(int64_t));
    return in[0] != NULL ? adj_node_new(in[0]->graph, maker, maker->n_in, of, its) : NULL;
}

/* Returns operand i of the case by its name, or NULL with an error if it is not given. */
static adj_node *given(op_case *c, const adj_op *op, int i)
{
    char name[OPERAND_NAME];
    adj_node *n = c->given(c->user, op_operand_name(op, i, name));
    if (n == NULL && c->error.status == ADJ_OK)
        adj_error_set(&c->error, ADJ_EARG, "%s: operand %s is missing", op->name, name);
    return n;
}

/* Returns operand n: given, or else made by its maker. NULL without an error past the last of a
 * variable number. */
static adj_node *given_operand(op_case *c, const adj_op *op, int n, adj_node *const in[],
                               const char *attrs)
{
    char name[OPERAND_NAME];
    const adj_op *maker = n < ADJ_NAMED_OPERANDS ? op->maker[n] : NULL;
    adj_node *x = c->given(c->user, op_operand_name(op, n, name));
    if (x != NULL || op->n_in == ADJ_MANY)
        return x;
    return maker != NULL ? made(maker, op, in, attrs) : given(c, op, n);
}

/* Returns operand n of the op's own example. */
static adj_node *example_operand(op_case *c, const adj_op *op, int n, adj_node *const in[],
                                 const char *attrs)
{
    const adj_example kind = op_example(op, n);
    const adj_op *maker = n < ADJ_NAMED_OPERANDS ? op->maker[n] : NULL;
    const char *value = maker != NULL ? op_attrs_value(&c->attrs, op->operand[n]) : NULL;
    if (value != NULL && (strlen(value) != 1 || strchr("012", value[0]) == NULL))
        op_attr_refuse(c, op->operand[n], value, "0, 1 or 2");
    const char how = value != NULL ? value[0] : kind == ADJ_EXAMPLE_COMPUTED_STATISTICS ? '1' : '0';
    adj_node *other[MAX_OPERANDS] = {NULL};
    if (c->is_same && n == 1 && is_from_filter(kind)) {
        c->used_filter = 1;
        return in[0];
    }
    for (int k = 0; k < n && how == '2'; k++)
        other[k] = in[k] != NULL ? operand(c, in[k]->type) : NULL;
    return maker != NULL && how != '0' ? made(maker, op, how == '2' ? other : in, attrs)
                                       : operand(c, type_of(c, kind, attrs));
}

static adj_node *build_case(op_case *c, const adj_op *op)
{
    _Alignas(16) char attrs[ATTR_BYTES] = {0};
    adj_node *in[MAX_OPERANDS] = {NULL};
    const int is_given = c->given != NULL;
    const int n_in = is_given && op->n_in == ADJ_MANY ? MAX_OPERANDS
                     : is_given                       ? op->n_in
                                                      : count_operands(op);
    int n = 0;
    if (is_given && (in[0] = given(c, op, 0)) == NULL)
        return NULL;
    if (is_given) {
        c->dtype = in[0]->type.dtype;
        c->in = in[0]->type.shape;
    }
    op_attrs_read(c, op, attrs);
    if (c->error.status != ADJ_OK)
        return NULL;
    for (; n < n_in; n++) {
        in[n] =
            is_given ? given_operand(c, op, n, in, attrs) : example_operand(c, op, n, in, attrs);
        if (in[n] == NULL && op->n_in == ADJ_MANY)
            break;
    }
    return c->error.status == ADJ_OK ? adj_node_new(c->g, op, n, in, attrs) : NULL;
}

/* Returns operand n of a gradient op: given, or an operand of its forward op y. */
static adj_node *gradient_operand(op_case *c, const adj_op *op, int n, adj_node *y)
{
    char name[OPERAND_NAME];
    const adj_example kind = op->example[n];
    adj_node *x = c->given != NULL ? c->given(c->user, op_operand_name(op, n, name)) : NULL;
    if (x != NULL)
        return x;
    if (kind == ADJ_EXAMPLE_RESULT)
        return y;
    if (kind == ADJ_EXAMPLE_OPERAND_0 || kind == ADJ_EXAMPLE_OPERAND_1)
        return y->in[kind - ADJ_EXAMPLE_OPERAND_0];
    return c->given != NULL
               ? given(c, op, n)
               : operand(c, kind == ADJ_EXAMPLE_LIKE_RESULT ? y->type : y->in[0]->type);
}

/* Builds a gradient op over the operands, result and attributes of its forward op. */
static adj_node *build_gradient(op_case *c, const adj_op *op)
{
    adj_node *y = build_case(c, op->forward), *in[MAX_OPERANDS] = {NULL};
    int n = 0;
    for (; y != NULL && n < op->n_in; n++)
        in[n] = gradient_operand(c, op, n, y);
    return c->error.status == ADJ_OK && y != NULL ? adj_node_new(c->g, op, n, in, y->attrs) : NULL;
}

static adj_node *build_leaf(op_case *c, const adj_op *op)
{
    const double zero = 0; /* 0 in every type */
    if (op == &adj_op_param)
        return adj_param(c->g, "p", c->dtype, c->in, (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1});
    if (op == &adj_op_state)
        return adj_state(c->g, "s", c->dtype, c->in, (adj_init){.kind = ADJ_INIT_CONSTANT});
    if (op == &adj_op_const)
        return adj_const(c->g, c->dtype, (adj_shape){0}, &zero);
    return operand(c, (adj_type){c->dtype, c->in});
}

adj_node *op_build(op_case *c, const char *name)
{
    const adj_op *op = op_find(name);
    if (c->given != NULL && op->n_in == 0)
        return adj_error_set(&c->error, ADJ_EARG, "%s: a leaf has no operands to read", name), NULL;
    if (c->given == NULL && op->flags & ADJ_OP_LEAF)
        return build_leaf(c, op);
    return op->forward != NULL ? build_gradient(c, op) : build_case(c, op);
}
