/* graph.c - see graph.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

enum { MAX_SIDE = 4096 }; /* largest side of compared images */

enum { DEFAULT_NEIGHBORS = 8 };

/* ---- options ---- */

void compared_options(compared_opts *o, int has_default_model, option to[COMPARED_OPTIONS + 1])
{
    const char *needs = has_default_model ? NULL : "--model";
    const char *excludes = has_default_model ? "--op" : NULL;
    const option own[COMPARED_OPTIONS - OP_OPTIONS] = {
        {"--model", "NAME", "model, see adjoint models; or an ONNX file", .text = &o->model,
         .names = model_name_at, .excludes = excludes},
        {"--node", "ID", "only this node of the model, 3, %3 or its name, and its operands",
         .text = &o->node, .needs = needs, .excludes = excludes},
        {"--optimizer", "NAME", "optimizer of the model's training step; default: momentum",
         .text = &o->optimizer, .names = optimizer_name_at, .needs = needs, .excludes = excludes},
        {"--batch", "N", "images per batch of the model; default: 2", .integer = &o->batch,
         .range = {1, 4096}, .needs = needs, .excludes = excludes},
        {"--neighbors", "N", "extra shapes close to the given one, with --op; default: 8",
         .integer = &o->neighbors, .range = {0, DEFAULT_NEIGHBORS}, .needs = "--op"},
    };
    memcpy(to, own, sizeof own);
    op_args_options(&o->op, to + COMPARED_OPTIONS - OP_OPTIONS);
    to[COMPARED_OPTIONS] = (option){0};
}

int compared_repeat(const compared_opts *o, char *line, size_t size)
{
    repeat_option(line, size, "--model", o->model);
    repeat_option(line, size, "--infer", o->infer ? "" : NULL);
    repeat_option(line, size, "--node", o->node);
    repeat_option(line, size, "--optimizer", o->optimizer);
    op_args_repeat(&o->op, line, size);
    if (o->model != NULL)
        repeat_number(line, size, "--batch", (double)o->batch, 0);
    else
        repeat_number(line, size, "--neighbors", (double)o->neighbors, DEFAULT_NEIGHBORS);
    repeat_option(line, size, "--size", o->size);
    return strlen(line) + 1 < size;
}

int op_is_possible(const op_args *args)
{
    adj_graph *alone = adj_graph_new();
    const int is_possible = op_args_build(args, alone, NULL) != NULL;
    adj_graph_free(alone);
    return is_possible;
}

/* ---- the graph ---- */

/* Adds a root and its gradients. */
static adj_status add_node(compared *c, adj_node *y, int with_gradients)
{
    c->root[c->n_root++] = y;
    adj_node *x[MAX_ROOTS_OF_OP], *dx[MAX_ROOTS_OF_OP];
    int n = 0;
    for (int k = 0; k < adj_node_operand_count(y) && with_gradients && n < MAX_ROOTS_OF_OP - 1; k++)
        if (adj_node_type(adj_node_operand_at(y, k)).dtype != ADJ_I32)
            x[n++] = adj_node_operand_at(y, k);
    if (n == 0 || adj_node_type(y).dtype == ADJ_I32)
        return ADJ_OK;
    adj_type t = adj_node_type(y);
    char name[16];
    snprintf(name, sizeof name, c->n_variant > 0 ? "dy%d" : "dy", c->n_variant);
    adj_status status = adj_grad(y, adj_input(c->m.graph, name, t.dtype, t.shape), n, x, dx);
    for (int k = 0; k < n && status == ADJ_OK; k++)
        c->root[c->n_root++] = dx[k];
    return status;
}

static adj_status add_op(compared *c, const op_args *args, int with_gradients)
{
    adj_node *y = op_args_build(args, c->m.graph, &c->m.error);
    return y != NULL ? add_node(c, y, with_gradients) : c->m.error.status;
}

static int has_room(const compared *c) { return c->n_root + MAX_ROOTS_OF_OP <= MAX_ROOTS; }

/* Adds the op over operands that rewriting rules look at. */
static adj_status add_behind(compared *c, adj_node *y, int with_gradients)
{
    adj_status status = ADJ_OK;
    adj_node *v;
    for (int i = 0; status == ADJ_OK && has_room(c) && (v = op_behind(y, i)) != NULL; i++)
        if (adj_position(c->n_root, (const adj_node *const *)c->root, v) < 0) {
            c->n_variant++;
            status = add_node(c, v, with_gradients);
        }
    return status == ADJ_OK ? adj_graph_status(c->m.graph) : status;
}

/* Adds a variant if its options can be built and there is room; has_rules: also over the operands
 * that rules look at. */
static adj_status add_variant(compared *c, const op_args *args, int with_gradients, int has_rules)
{
    if (!op_is_possible(args) || !has_room(c))
        return ADJ_OK;
    c->n_variant++;
    const int root = c->n_root;
    adj_status status = add_op(c, args, with_gradients);
    if (status == ADJ_OK && has_rules)
        status = add_behind(c, c->root[root], with_gradients);
    return status;
}

/* Adds the op with other values of its attributes over the same operands. */
static adj_status add_values(compared *c, adj_node *y, int with_gradients)
{
    adj_status status = ADJ_OK;
    adj_node *v;
    for (int next = 0; status == ADJ_OK && has_room(c) && (v = adj_node_variant(y, &next)) != NULL;)
        if (adj_position(c->n_root, (const adj_node *const *)c->root, v) < 0) {
            c->n_variant++;
            status = add_node(c, v, with_gradients);
        }
    return status;
}

/* Builds the op in a graph of its own, with its gradients if it has any, and its variants. */
static adj_status open_op(compared *c, const compared_opts *o, int with_gradients)
{
    const int has_rules = o->sets && !o->no_gradients; /* gradcheck makes leaves of operands */
    op_args set;
    op_line near;
    c->n_root = c->n_variant = 0;
    c->m.graph = adj_graph_new();
    adj_status status = add_op(c, &o->op, with_gradients);
    adj_node *y = c->root[0];
    if (status == ADJ_OK && o->sets && op_args_given(&o->op, "--dtype") == NULL)
        status = add_values(c, y, with_gradients);
    if (status == ADJ_OK && has_rules)
        status = add_behind(c, y, with_gradients);
    for (int i = 0; o->sets && status == ADJ_OK && op_attribute_set(&o->op, i, &set); i++)
        status = add_variant(c, &set, with_gradients, has_rules);
    for (int i = 0; i < o->neighbors && status == ADJ_OK && op_neighbor(y, i, &near); i++)
        status = add_variant(c, &near.args, with_gradients, 0);
    return status;
}

/* Returns the node of that id, as tables show it or as a number, or of that name. */
static adj_node *node_named(const adj_graph *g, const char *text)
{
    char *end;
    const char *number = text + (text[0] == '%');
    const long id = number[0] >= '0' && number[0] <= '9' ? strtol(number, &end, 10) : -1;
    if (id >= 0 && *end == '\0')
        return id < adj_graph_node_count(g) ? adj_graph_node_at(g, (int)id) : NULL;
    return adj_find(g, text);
}

static adj_status only_node(compared *c, const compared_opts *o)
{
    adj_node *n = node_named(c->m.graph, o->node);
    c->root[0] = n;
    c->m.updates = NULL;
    if (n != NULL && (o->no_gradients || adj_node_operand_count(n) > 0))
        return ADJ_OK;
    return adj_error_set(
        &c->m.error, ADJ_EARG, "--node: not a node of %s (got %.80s, expected 0 to %d or a name%s)",
        o->model, o->node, adj_graph_node_count(c->m.graph) - 1, o->no_gradients ? "" : ", an op");
}

static adj_status open_model(compared *c, const compared_opts *o)
{
    adj_model_opts options = {.batch = o->batch, .training = !o->infer};
    adj_optimizer_opts optimizer = model_momentum;
    if (op_args_types(&o->op, &options.dtype, &options.format, &c->m.error) != ADJ_OK)
        return ADJ_EARG;
    if (o->size != NULL && !parse_size(o->size, MAX_SIDE, &options.size.h, &options.size.w))
        return adj_error_set(&c->m.error, ADJ_EARG, "--size: expected N or HxW, 1 to %d (got %s)",
                             MAX_SIDE, o->size);
    if (o->optimizer != NULL && adj_optimizer_from_name(o->optimizer, &optimizer) != ADJ_OK)
        return adj_error_set(&c->m.error, ADJ_EARG, "--optimizer: unknown optimizer %s",
                             o->optimizer);
    adj_status status =
        model_build(&c->m, adj_graph_new(), o->model, &options, o->infer ? NULL : &optimizer);
    if (status != ADJ_OK)
        return status;
    c->root[c->n_root++] = o->infer ? adj_softmax(c->m.logits) : c->m.loss;
    c->label = model_labels(&c->m);
    if (c->root[0] == NULL)
        return adj_error_set(&c->m.error, ADJ_ENOMEM, "out of memory");
    return o->node != NULL ? only_node(c, o) : ADJ_OK;
}

adj_status compared_open(compared *c, const compared_opts *o)
{
    *c = (compared){0};
    if (o->op.op != NULL) {
        adj_status status = open_op(c, o, !o->no_gradients);
        if (status == ADJ_OK || c->m.error.status != ADJ_OK || o->no_gradients)
            return status;
        adj_graph_free(c->m.graph); /* no gradient: the op alone */
        return open_op(c, o, 0);
    }
    return open_model(c, o);
}

void compared_close(compared *c)
{
    free(c->label);
    adj_graph_free(c->m.graph);
}

void compared_compute(const compared *c, adj_leaf_value *labels, adj_compare_opts *o)
{
    *labels = (adj_leaf_value){c->m.labels, c->label};
    o->exec.n_fetch = c->n_root;
    o->exec.fetch = c->root;
    o->exec.updates = c->m.updates;
    o->n_value = c->m.labels != NULL;
    o->value = labels;
}
