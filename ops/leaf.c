/* leaf.c - nodes without operands: inputs, parameters, states, constants, fills. */
#include <string.h>

#include "grad.h"
#include "graph/op.h"

/* Common prefix of all leaves' attributes. */
typedef struct {
    int64_t dtype;
    adj_shape shape;
} leaf_type;

static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
{
    leaf_type t;
    memcpy(&t, attrs, sizeof t);
    *out = (adj_type){(adj_dtype)t.dtype, t.shape};
    return adj_check_type(n->graph, n->op->name, "shape", *out);
}

static const adj_schema leaf_schema = {.size = sizeof(adj_leaf_attrs)};
static const adj_schema const_schema = {.size = sizeof(adj_const_attrs)};
static const adj_schema fill_schema = {
    .size = sizeof(adj_fill_attrs),
    .attr = {{"dtype", ADJ_ATTR_DTYPE, .offset = offsetof(adj_fill_attrs, dtype),
              .flags = ADJ_ATTR_OF_RESULT},
             {"shape", ADJ_ATTR_SHAPE, .offset = offsetof(adj_fill_attrs, shape),
              .flags = ADJ_ATTR_OF_RESULT},
             {"value", ADJ_ATTR_REAL, .offset = offsetof(adj_fill_attrs, value), " ", .fallback = 1,
              .flags = ADJ_ATTR_ANY_NUMBER}}};

const adj_op adj_op_input = {
    .name = "input", .schema = &leaf_schema, .flags = ADJ_OP_LEAF | ADJ_OP_TYPED, .infer = infer};
const adj_op adj_op_param = {.name = "param",
                             .schema = &leaf_schema,
                             .flags = ADJ_OP_LEAF | ADJ_OP_KEPT | ADJ_OP_TYPED,
                             .infer = infer};
const adj_op adj_op_state = {.name = "state",
                             .schema = &leaf_schema,
                             .flags = ADJ_OP_LEAF | ADJ_OP_KEPT | ADJ_OP_TYPED,
                             .infer = infer};
const adj_op adj_op_const = {
    .name = "const", .schema = &const_schema, .flags = ADJ_OP_LEAF, .infer = infer};
const adj_op adj_op_fill = {.name = "fill",
                            .schema = &fill_schema,
                            .flags = ADJ_OP_NO_GRADIENT | ADJ_OP_TYPED,
                            .infer = infer};

/* Fails for initial values that cannot be drawn or copied. */
static adj_status check_init(adj_graph *g, const adj_op *op, const char *name, adj_init init)
{
    if ((unsigned)init.kind > ADJ_INIT_DATA)
        return adj_fail(g, ADJ_EARG, "%s: \"%.64s\" has no valid initializer (got kind %d)",
                        op->name, name, (int)init.kind);
    if (init.kind == ADJ_INIT_DATA && init.data == NULL)
        return adj_fail(g, ADJ_EARG, "%s: \"%.64s\" has no initial values (data is NULL)", op->name,
                        name);
    if (init.kind == ADJ_INIT_UNIFORM && !(init.a <= init.b))
        return adj_fail(g, ADJ_EARG,
                        "%s: \"%.64s\": its range is empty (got %g to %g, expected low <= high)",
                        op->name, name, init.a, init.b);
    if (init.kind == ADJ_INIT_NORMAL && !(init.b >= 0))
        return adj_fail(g, ADJ_EARG,
                        "%s: \"%.64s\": its deviation is out of range (got %g, expected 0 or more)",
                        op->name, name, init.b);
    return ADJ_OK;
}

/* Returns a copy of the values in the graph's memory; NULL on failure. */
static const void *copied(adj_graph *g, const adj_op *op, adj_type type, const void *data)
{
    if (adj_check_type(g, op->name, "shape", type) != ADJ_OK)
        return NULL;
    const size_t bytes = adj_type_bytes(type);
    if (data == NULL && bytes > 0) {
        adj_fail(g, ADJ_EARG, "%s: data is NULL (expected %zu bytes)", op->name, bytes);
        return NULL;
    }
    void *copy = adj_graph_alloc(g, bytes);
    return copy != NULL && bytes > 0 ? memcpy(copy, data, bytes) : copy;
}

static adj_node *new_leaf(adj_graph *g, const adj_op *op, const char *name, adj_type type,
                          adj_init init, int is_drawn)
{
    adj_leaf_attrs a = {.dtype = (int64_t)type.dtype,
                        .shape = adj_trimmed(type.shape),
                        .a = init.a,
                        .b = init.b,
                        .init = (int64_t)init.kind,
                        .is_drawn = is_drawn,
                        .serial = (uint64_t)adj_graph_node_count(g)};
    if (g == NULL || adj_graph_status(g) != ADJ_OK)
        return NULL;
    if (name == NULL || name[0] == '\0') {
        adj_fail(g, ADJ_EARG, "%s: name is missing", op->name);
        return NULL;
    }
    if (adj_find(g, name) != NULL) {
        adj_fail(g, ADJ_EARG, "%s: name \"%.64s\" is already in use", op->name, name);
        return NULL;
    }
    if (check_init(g, op, name, init) != ADJ_OK)
        return NULL;
    if (init.kind == ADJ_INIT_DATA) {
        a.data_dtype = (int64_t)type.dtype;
        if ((a.data = copied(g, op, type, init.data)) == NULL)
            return NULL;
    }
    return adj_label(adj_node_new(g, op, 0, NULL, &a), name);
}

adj_node *adj_input(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape)
{
    return new_leaf(g, &adj_op_input, name, (adj_type){dtype, shape},
                    (adj_init){.kind = ADJ_INIT_CONSTANT}, 0);
}

adj_node *adj_scalar_input(adj_graph *g, const char *name, adj_dtype dtype, double value)
{
    return new_leaf(g, &adj_op_input, name, (adj_type){.dtype = dtype},
                    (adj_init){.kind = ADJ_INIT_CONSTANT, .a = value}, 1);
}

adj_node *adj_param(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape, adj_init init)
{
    return new_leaf(g, &adj_op_param, name, (adj_type){dtype, shape}, init, 1);
}

adj_node *adj_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape, adj_init init)
{
    return new_leaf(g, &adj_op_state, name, (adj_type){dtype, shape}, init, 1);
}

int adj_node_is_param(const adj_node *n) { return n != NULL && n->op == &adj_op_param; }
int adj_node_is_state(const adj_node *n) { return n != NULL && n->op == &adj_op_state; }

adj_node *adj_const(adj_graph *g, adj_dtype dtype, adj_shape shape, const void *data)
{
    adj_const_attrs a = {.dtype = (int64_t)dtype, .shape = adj_trimmed(shape)};
    if (g == NULL || adj_graph_status(g) != ADJ_OK)
        return NULL;
    a.data = copied(g, &adj_op_const, (adj_type){dtype, shape}, data);
    return a.data != NULL ? adj_node_new(g, &adj_op_const, 0, NULL, &a) : NULL;
}

adj_node *adj_fill(adj_graph *g, adj_dtype dtype, adj_shape shape, double value)
{
    adj_fill_attrs a = {.dtype = (int64_t)dtype, .shape = adj_trimmed(shape), .value = value};
    return adj_node_new(g, &adj_op_fill, 0, NULL, &a);
}

adj_node *adj_fill_like(adj_node *v, double value)
{
    return v != NULL ? adj_fill(v->graph, v->type.dtype, v->type.shape, value) : NULL;
}

adj_node *adj_scalar_like(const adj_node *x, double value)
{
    return x != NULL ? adj_fill(x->graph, x->type.dtype, (adj_shape){0}, value) : NULL;
}

int adj_is_fill(const adj_node *n, double *value)
{
    if (n == NULL || n->op != &adj_op_fill)
        return 0;
    *value = ((const adj_fill_attrs *)n->attrs)->value;
    return 1;
}

adj_node *adj_simplify_selection(const adj_node *n, adj_node *const in[])
{
    double value;

    if (adj_shape_equal(n->type.shape, in[0]->type.shape))
        return in[0];
    if (adj_is_fill(in[0], &value))
        return adj_fill(in[0]->graph, in[0]->type.dtype, n->type.shape, value);
    return NULL;
}
