/* attrs.c - the attributes of an op from --attr: see args.h. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "ops/attr_lists.h"

int dtype_from_name(const char *name, adj_dtype *dtype)
{
    adj_dtype found;
    if (adj_dtype_from_name(name, &found) != ADJ_OK || !adj_is_float(found))
        return 0;
    *dtype = found;
    return 1;
}

adj_status op_attrs_split(op_attrs *a, const adj_op *op, const char *text, adj_error *error)
{
    const char *first = op != NULL && op->schema != NULL ? op->schema->attr[0].name : NULL;
    *a = (op_attrs){0};
    if (text == NULL)
        return ADJ_OK;
    if (strlen(text) >= sizeof a->text)
        return adj_error_set(error, ADJ_EARG, "--attr: too long (got %zu characters)",
                             strlen(text));
    memcpy(a->text, text, strlen(text) + 1);
    for (char *word = a->text; word != NULL;) {
        char *next = strchr(word, ','), *equals = word + strcspn(word, "=,");
        const int is_named = *equals == '=';
        if (is_named || a->n == 0) {
            if (a->n == OP_ATTRS)
                return adj_error_set(error, ADJ_EARG, "--attr: more than %d attributes", OP_ATTRS);
            if (word > a->text)
                word[-1] = '\0';
            *equals = is_named ? '\0' : *equals;
            a->item[a->n++] = is_named ? (op_attr_item){word, equals + 1, 0}
                                       : (op_attr_item){first != NULL ? first : word, word, 0};
        }
        word = next != NULL ? next + 1 : NULL;
    }
    return ADJ_OK;
}

const char *op_attrs_value(op_attrs *a, const char *name)
{
    for (int i = 0; i < a->n; i++)
        if (strcmp(a->item[i].name, name) == 0) {
            a->item[i].is_used = 1;
            return a->item[i].value;
        }
    return NULL;
}

enum { LIST = 16 };
typedef struct {
    int n;
    int64_t number[LIST];
} list;

void op_attr_refuse(op_case *c, const char *name, const char *value, const char *expected)
{
    if (c->error.status == ADJ_OK)
        adj_error_set(&c->error, ADJ_EARG, "--attr %s: got \"%.100s\", expected %s", name, value,
                      expected);
}

int op_read_list(const char *text, int max, int64_t number[])
{
    int n = 0;
    for (const char *p = text[0] != '\0' ? text : NULL; p != NULL; n++) {
        char *end;
        errno = 0;
        const long long v = strtoll(p, &end, 10);
        if (end == p || errno != 0 || n == max || (*end != ',' && *end != '\0'))
            return -1;
        number[n] = v;
        p = *end == ',' ? end + 1 : NULL;
    }
    return n;
}

static list read_list(op_case *c, const char *name, const char *value)
{
    list l;
    l.n = op_read_list(value, LIST, l.number);
    if (l.n < 0)
        op_attr_refuse(c, name, value, "whole numbers such as 1,2,2,1");
    return l;
}

static double usual(const op_case *c, const adj_attr *a, int axis)
{
    return a->fallback_of != NULL ? a->fallback_of(c->in, c->format, axis) : a->fallback;
}

static double read_real(op_case *c, const adj_attr *a, const char *value)
{
    char *end;
    errno = 0;
    const double v = strtod(value, &end);
    if (end == value || *end != '\0' || isnan(v) || (errno != 0 && isinf(v)))
        op_attr_refuse(c, a->name, value, "a number");
    return v;
}

/* Reads one of the attribute's words, an element type, or a whole number. */
static int64_t read_whole(op_case *c, const adj_attr *a, const char *value)
{
    char *end;
    adj_dtype dtype;
    for (int i = 0; a->words != NULL && a->words[i] != NULL; i++)
        if (strcmp(a->words[i], value) == 0)
            return i;
    if (a->kind == ADJ_ATTR_DTYPE && dtype_from_name(value, &dtype))
        return dtype;
    errno = 0;
    const int64_t v = a->kind == ADJ_ATTR_SEED && value[0] != '-'
                          ? (int64_t)strtoull(value, &end, 10)
                          : strtoll(value, &end, 10);
    if (end == value || *end != '\0' || errno != 0 || a->kind == ADJ_ATTR_DTYPE)
        op_attr_refuse(c, a->name, value,
                       a->kind == ADJ_ATTR_DTYPE ? "f32, f64, f16 or bf16" : "a whole number");
    return v;
}

static list usual_list(const op_case *c, const adj_attr *a, int64_t rank)
{
    list l = {.n = (int)rank};
    for (int i = 0; i < l.n; i++) {
        const double v = usual(c, a, i);
        l.number[i] = fabs(v) < 0x1p62 ? (int64_t)v : INT64_MAX / 2;
    }
    return l;
}

/* The numbers of an attribute that is a list; value NULL: the defaults. */
static list read_sizes(op_case *c, const adj_attr *a, const char *value)
{
    const int64_t rank = c->in.rank < ADJ_MAX_RANK ? c->in.rank : ADJ_MAX_RANK;
    const int is_free = a->kind == ADJ_ATTR_SHAPE || a->kind == ADJ_ATTR_AXES;
    if (value == NULL && a->kind == ADJ_ATTR_AXES)
        return (list){1, {-1}};
    if (value == NULL)
        return usual_list(c, a, is_free && a->fallback_of == NULL ? 1 : rank);
    list l = read_list(c, a->name, value);
    if (l.n > ADJ_MAX_RANK || (!is_free && l.n != rank))
        op_attr_refuse(c, a->name, value, is_free ? "fewer numbers" : "a number for each axis");
    l.n = l.n < ADJ_MAX_RANK ? l.n : ADJ_MAX_RANK;
    return l;
}

static void store_sizes(const op_case *c, const adj_op *op, const adj_attr *a, const list *l,
                        void *to)
{
    const adj_node x = {.graph = c->g, .type = {c->dtype, c->in}};
    adj_axes axes = {.n = l->n > 0 ? l->n : ADJ_ALL};
    adj_shape shape = {.rank = l->n};
    if (a->kind == ADJ_ATTR_AXES) {
        for (int i = 0; i < l->n; i++)
            axes.axis[i] = l->number[i] == (int)l->number[i] ? (int)l->number[i] : INT_MAX;
        adj_axes_as_bits(&x, op, &axes, to);
        return;
    }
    for (int i = 0; i < l->n; i++)
        shape.dim[i] = l->number[i];
    if (a->kind == ADJ_ATTR_PERM)
        memcpy(to, shape.dim, sizeof shape.dim);
    else
        *(adj_shape *)to = shape;
}

/* Reads the attributes of a convolution or a pool. */
static void read_windows(op_case *c, int is_pool, void *to)
{
    static const char *const names[] = {"ksize", "strides", "dilations", "explicit_paddings"};
    list l[4] = {0};
    for (int i = 0; i < 4; i++) {
        const char *value = op_attrs_value(&c->attrs, names[i]);
        if (value != NULL)
            l[i] = read_list(c, names[i], value);
    }
    if (c->error.status != ADJ_OK)
        return;
    if (is_pool && l[0].n == 0)
        l[0] = c->format == ADJ_NCHW ? (list){4, {1, 1, 2, 2}} : (list){4, {1, 2, 2, 1}};
    if (is_pool && l[1].n == 0)
        l[1] = l[0];
    const char *padding = op_attrs_value(&c->attrs, "padding");
    const adj_attr_lists lists = {.n_ksize = l[0].n,
                                  .n_strides = l[1].n,
                                  .n_dilations = l[2].n,
                                  .n_explicit_paddings = l[3].n,
                                  .ksize = l[0].n > 0 ? l[0].number : NULL,
                                  .strides = l[1].n > 0 ? l[1].number : NULL,
                                  .dilations = l[2].n > 0 ? l[2].number : NULL,
                                  .explicit_paddings = l[3].n > 0 ? l[3].number : NULL,
                                  .padding = padding != NULL ? padding : "SAME",
                                  .data_format = op_attrs_value(&c->attrs, "data_format")};
    if (is_pool)
        adj_pool_from_attrs(&lists, to, &c->error);
    else
        adj_conv_from_attrs(&lists, to, &c->error);
}

int op_attr_has_default(const adj_attr *a)
{
    return a->fallback_of == NULL && a->kind != ADJ_ATTR_DTYPE && a->kind != ADJ_ATTR_AXES;
}

/* Requires attributes without a default to be given for an op over given operands. */
static void require_attr(op_case *c, const adj_op *op, const adj_attr *a)
{
    if (c->given != NULL && !op_attr_has_default(a) && c->error.status == ADJ_OK)
        adj_error_set(&c->error, ADJ_EARG,
                      "--attr: %s is missing (adjoint ops %s lists the attributes)", a->name,
                      op->name);
}

static void read_attr(op_case *c, const adj_op *op, const adj_attr *a, void *to)
{
    const int is_list = a->kind == ADJ_ATTR_SHAPE || a->kind == ADJ_ATTR_PER_AXIS ||
                        a->kind == ADJ_ATTR_PERM || a->kind == ADJ_ATTR_AXES;
    const adj_dtype other = c->dtype == ADJ_F32 ? ADJ_F64 : ADJ_F32;
    if ((a->flags & ADJ_ATTR_OF_RESULT) && a->kind == ADJ_ATTR_SHAPE)
        *(adj_shape *)to = c->in;
    else if (a->flags & ADJ_ATTR_OF_RESULT)
        *(int64_t *)to = c->dtype;
    if (a->kind == ADJ_ATTR_CONV || a->kind == ADJ_ATTR_POOL)
        read_windows(c, a->kind == ADJ_ATTR_POOL, to);
    if ((a->flags & ADJ_ATTR_OF_RESULT) || a->kind == ADJ_ATTR_CONV || a->kind == ADJ_ATTR_POOL)
        return;
    const char *value = op_attrs_value(&c->attrs, a->name);
    if (value == NULL && a->kind != ADJ_ATTR_FORMAT)
        require_attr(c, op, a);
    if (a->kind == ADJ_ATTR_FORMAT) {
        *(int64_t *)to = c->format;
    } else if (is_list) {
        const list l = read_sizes(c, a, value);
        if (c->error.status == ADJ_OK)
            store_sizes(c, op, a, &l, to);
    } else if (a->kind == ADJ_ATTR_REAL) {
        *(double *)to = value != NULL ? read_real(c, a, value) : usual(c, a, 0);
    } else if (value != NULL) {
        *(int64_t *)to = read_whole(c, a, value);
    } else {
        *(int64_t *)to = a->kind == ADJ_ATTR_DTYPE ? (int64_t)other : usual_list(c, a, 1).number[0];
    }
}

void op_attrs_read(op_case *c, const adj_op *op, char attrs[])
{
    if (op->schema != NULL)
        for (const adj_attr *a = op->schema->attr; a->name != NULL; a++)
            read_attr(c, op, a, attrs + a->offset);
}
