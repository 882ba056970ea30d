/* load.c - adj_onnx_load: initializers and inputs (inputs.c), then the nodes one after the other.
 *
 * A node that is not supported does not end the import: its results are unknown, nodes that read
 * these are skipped, and the message lists all refused nodes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "details.h"
#include "import.h"

void *import_alloc(import *f, int64_t count, size_t size)
{
    void *data = chunk_alloc(&f->memory, count, size);
    if (data == NULL)
        import_fail(f, ADJ_ENOMEM, "out of memory (%" PRId64 " elements of %zu bytes)", count,
                    size);
    return data;
}

int import_fail(import *f, adj_status status, const char *format, ...)
{
    if (f->status != ADJ_OK)
        return 0;
    char what[ADJ_MESSAGE];
    va_list args;
    va_start(args, format);
    c_vsnprintf(what, sizeof what, format, args);
    va_end(args);
    f->status = adj_error_set(f->error, status, "%s: %s", f->path, what);
    return 0;
}

int refuse(call *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (n->reason[0] == '\0')
        c_vsnprintf(n->reason, sizeof n->reason, format, args);
    va_end(args);
    return 0;
}

/* ---- nodes ---- */

/* Adds a line about a node that is not supported to the message. */
static void list_refused(const call *n)
{
    import *f = n->f;
    const size_t used = strlen(f->refused);
    const char *domain = n->proto->domain != NULL ? n->proto->domain : "";
    c_snprintf(f->refused + used, sizeof f->refused - used,
               "%s\"%s\" (%s%s%s, opset %" PRId64 "): %s", f->n_refused > 0 ? "; " : "",
               n->proto->name != NULL ? n->proto->name : "", domain, domain[0] != '\0' ? "." : "",
               n->proto->op_type != NULL ? n->proto->op_type : "", n->opset, n->reason);
    f->n_refused++;
}

/* Looks up the operands. Returns 0 if one is unknown or missing. */
static int find_operands(call *n)
{
    int complete = 1;
    n->is_foldable = 1;
    for (int i = 0; i < n->n_in; i++) {
        const char *name = n->proto->input[i];
        if (name == NULL || name[0] == '\0')
            continue;
        n->in[i] = find_value(n->f, name);
        const value *v = n->in[i];
        if (v == NULL)
            return import_fail(n->f, ADJ_EIO,
                               "node \"%s\" reads \"%s\", which no earlier node computes",
                               n->proto->name != NULL ? n->proto->name : "", name);
        complete &= v->node != NULL || v->known != NULL || v->part != NULL;
        n->is_rebatched |= v->is_rebatched;
        n->has_merged |= v->is_merged;
        n->is_foldable &= v->known != NULL && !v->is_weight;
    }
    return complete;
}

/* Applies a builder of two operands from left to right. */
static void build_binary(call *n, const operator_row *row)
{
    adj_node *y = in_node(n, 0);
    for (int i = 1; i < n->n_in; i++)
        y = row->binary(y, in_beside(n, i));
    give(n, y);
}

/* Computes known results; returns 0 if the operator has no way to. */
static int fold(call *n, const operator_row *row)
{
    if (row->fold != NULL)
        row->fold(n);
    else if (row->operation != FOLD_NONE && !has_own_axis(n))
        fold_all(n, row->operation);
    else if (row->each != NULL)
        fold_each(n, row->each);
    else
        return 0;
    return 1;
}

static void build(call *n)
{
    const operator_row *row = n->row;
    const char *domain = n->proto->domain;
    if (row == NULL || (domain != NULL && domain[0] != '\0' && strcmp(domain, "ai.onnx") != 0))
        refuse(n, "the operator is not supported");
    else if (n->opset < row->since)
        refuse(n, "the operator in this opset (expected %d or more)", row->since);
    else if (n->has_merged && !row->takes_merged)
        refuse(n, "an operand of more than %d axes", ADJ_MAX_RANK);
    else if (n->is_foldable && fold(n, row))
        return;
    else if (row->build != NULL)
        row->build(n);
    else if (row->unary != NULL)
        give(n, row->unary(in_node(n, 0)));
    else if (row->binary != NULL)
        build_binary(n, row);
    else
        refuse(n, "its operands must be known when the file is read");
}

static int add_results(import *f, const call *n)
{
    for (int i = 0; i < n->n_out; i++) {
        const char *name = n->proto->output[i];
        if (name == NULL || name[0] == '\0')
            continue;
        value *v = add_value(f, name);
        if (v == NULL)
            return 0;
        v->elem = n->out[i].elem;
        v->is_merged = n->out[i].is_merged;
        v->is_rebatched = n->is_rebatched;
        v->known = n->out[i].known;
        v->part = n->out[i].part;
        v->n_part = n->out[i].n_part;
        v->node = n->out[i].node != NULL ? adj_label(n->out[i].node, name) : NULL;
    }
    return 1;
}

/* Reports the graph's error, with a remedy where the file has another batch. */
static int fail_node(import *f)
{
    char remedy[120] = "";
    if (f->file_batch > 0 && f->o->batch > 0 && f->file_batch != f->o->batch)
        c_snprintf(remedy, sizeof remedy,
                   "; the file was exported for batch %" PRId64
                   ": export it with a dynamic batch, or use that batch",
                   f->file_batch);
    return import_fail(f, adj_graph_status(f->g), "%s%s", adj_graph_message(f->g), remedy);
}

/* Builds the node, whose name then begins the graph's errors. */
static void build_named(call *n)
{
    char name[160];
    c_snprintf(name, sizeof name, "node \"%s\" (%s)", n->proto->name != NULL ? n->proto->name : "",
               n->proto->op_type);
    const char *before = adj_graph_set_layer(n->f->g, name);
    build(n);
    const value *y = &n->out[0];
    if (y->node == NULL && y->known == NULL && y->part == NULL)
        refuse(n, "an operand is missing, or is not a tensor");
    adj_graph_set_layer(n->f->g, before);
}

static int import_node(import *f, const Onnx__NodeProto *proto)
{
    call n = {.f = f,
              .proto = proto,
              .row = find_operator(proto->op_type),
              .opset = f->opset,
              .n_in = (int)proto->n_input,
              .n_out = (int)proto->n_output};
    n.in = import_alloc(f, n.n_in + 1, sizeof *n.in);
    n.out = import_alloc(f, n.n_out + 1, sizeof *n.out);
    if (n.in == NULL || n.out == NULL)
        return 0;
    if (proto->op_type == NULL || n.n_out < 1)
        return import_fail(f, ADJ_EIO, "node \"%s\" has no operator or no result",
                           proto->name != NULL ? proto->name : "");
    const int is_complete = find_operands(&n);
    if (f->status != ADJ_OK)
        return 0;
    if (is_complete || n.row == NULL)
        build_named(&n);
    if (f->status != ADJ_OK)
        return 0;
    if (adj_graph_status(f->g) != ADJ_OK)
        return fail_node(f);
    if (n.reason[0] != '\0')
        list_refused(&n);
    return add_results(f, &n);
}

/* ---- the net ---- */

static adj_node *output_node(import *f, const Onnx__ValueInfoProto *info)
{
    value *v = info->name != NULL ? find_value(f, info->name) : NULL;
    if (v == NULL) {
        import_fail(f, ADJ_EIO, "output \"%s\" is computed by no node",
                    info->name != NULL ? info->name : "");
        return NULL;
    }
    if (v->node == NULL && v->known != NULL)
        v->node = adj_label(const_node(f, v->known, dtype_of_elem(f, v->elem)), v->name);
    if (v->node == NULL)
        import_fail(f, ADJ_EARG, "output \"%s\" is a sequence, or depends on results of training",
                    info->name);
    return v->node;
}

typedef struct {
    adj_onnx_net public;
    onnx_details details;
} onnx_net;

onnx_details adj_onnx_details(const adj_onnx_net *net) { return ((const onnx_net *)net)->details; }

static int has_text(const Onnx__StringStringEntryProto *entry)
{
    return entry->key != NULL && entry->value != NULL;
}

/* Copies the model's metadata to `to`, strings last. */
static void copy_metadata(const Onnx__ModelProto *model, adj_onnx_net *net, adj_metadata *to)
{
    char *text = (char *)(to + model->n_metadata_props);
    net->metadata = to;
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *entry = model->metadata_props[i];
        if (!has_text(entry))
            continue;
        const size_t key = strlen(entry->key) + 1, all = key + strlen(entry->value) + 1;
        memcpy(text, entry->key, key);
        memcpy(text + key, entry->value, all - key);
        to[net->n_metadata++] = (adj_metadata){text, text + key};
        text += all;
    }
}

/* Returns the room that copy_metadata needs. */
static size_t metadata_bytes(const Onnx__ModelProto *model)
{
    size_t bytes = model->n_metadata_props * sizeof(adj_metadata);
    for (size_t i = 0; i < model->n_metadata_props; i++)
        if (has_text(model->metadata_props[i]))
            bytes +=
                strlen(model->metadata_props[i]->key) + strlen(model->metadata_props[i]->value) + 2;
    return bytes;
}

/* Makes the net: the struct, its lists and the metadata in one block. */
static adj_onnx_net *make_net(import *f)
{
    const Onnx__GraphProto *g = f->model->graph;
    const size_t n = g->n_input + g->n_output + (size_t)f->n_param;
    onnx_net *all = calloc(1, sizeof *all + n * sizeof(adj_node *) + metadata_bytes(f->model));
    if (all == NULL) {
        import_fail(f, ADJ_ENOMEM, "out of memory");
        return NULL;
    }
    adj_onnx_net *net = &all->public;
    adj_node **to = (adj_node **)(all + 1);
    copy_metadata(f->model, net, (adj_metadata *)(to + n));
    net->input = to;
    for (size_t i = 0; i < g->n_input; i++) {
        const value *v = find_value(f, g->input[i]->name);
        if (v != NULL && v->known == NULL)
            net->input[net->n_input++] = v->node;
    }
    net->output = net->input + net->n_input;
    for (size_t i = 0; i < g->n_output; i++)
        net->output[net->n_output++] = output_node(f, g->output[i]);
    net->param = net->output + net->n_output;
    for (int i = 0; i < f->n_param; i++)
        net->param[net->n_param++] = f->param[i];
    if (f->status != ADJ_OK || adj_graph_status(f->g) != ADJ_OK) {
        free(all);
        return NULL;
    }
    const adj_shape y = adj_node_type(net->n_output > 0 ? net->output[0] : NULL).shape;
    all->details = (onnx_details){.classes = y.rank == 2 ? y.dim[1] : 0,
                                  .opset = f->opset,
                                  .n_folded = f->n_folded,
                                  .batch = f->file_batch};
    onnx_details *d = &all->details;
    for (int i = 0; i < f->n_head; i++)
        if ((d->head[d->n_head] = adj_find(f->g, f->head[i]->name)) != NULL)
            d->n_head++;
    return net;
}

static int find_opset(import *f)
{
    for (size_t i = 0; i < f->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = f->model->opset_import[i];
        if (o->domain == NULL || o->domain[0] == '\0' || strcmp(o->domain, "ai.onnx") == 0)
            f->opset = o->version;
    }
    if (f->opset < 1)
        return import_fail(f, ADJ_EARG, "opset (got %" PRId64 ", expected 1 or more)", f->opset);
    return 1;
}

/* True if the node's result is initial values of its own. */
static int is_copy(import *f, const Onnx__NodeProto *n)
{
    const value *y = n->n_output == 1 && n->output[0] != NULL ? find_value(f, n->output[0]) : NULL;
    return y != NULL && y->copied_by == n;
}

int import_nodes(import *f, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        if (!is_copy(f, g->node[i]) && !import_node(f, g->node[i]))
            return 0;
    return 1;
}

static int import_all(import *f)
{
    if (!find_opset(f) || !add_values(f) || !replace_head(f) || !import_nodes(f, f->model->graph))
        return 0;
    for (int i = 0; i < f->n_moved; i++)
        adj_layer_update_add(f->moved[i]->node, f->moved[i]->next);
    if (f->n_refused > 0)
        return import_fail(f, ADJ_EARG, "%d node%s not supported: %s", f->n_refused,
                           f->n_refused == 1 ? " is" : "s are", f->refused);
    return 1;
}

/* Returns the path's folder, with a final slash. */
static char *folder_of(import *f)
{
    const char *slash = strrchr(f->path, '/');
    const size_t n = slash != NULL ? (size_t)(slash - f->path) + 1 : 2;
    char *folder = import_alloc(f, (int64_t)n + 1, 1);
    return folder != NULL ? memcpy(folder, slash != NULL ? f->path : "./", n) : NULL;
}

/* Fails if a list of the options is NULL, or an entry has no name. */
static adj_status check_lists(const adj_onnx_opts *o, adj_error *error)
{
    const char *missing = o->n_dim > 0 && o->dim == NULL       ? "dim"
                          : o->n_given > 0 && o->given == NULL ? "given"
                          : o->n_known > 0 && o->known == NULL ? "known"
                                                               : NULL;
    for (int i = 0; missing == NULL && i < o->n_dim; i++)
        missing = o->dim[i].name == NULL ? "the name of a dim" : NULL;
    for (int i = 0; missing == NULL && i < o->n_known; i++)
        missing = o->known[i].name == NULL ? "the name of a known tensor" : NULL;
    return missing == NULL ? ADJ_OK
                           : adj_error_set(error, ADJ_EARG, "adj_onnx_load: %s is NULL", missing);
}

adj_status adj_onnx_load(adj_graph *g, const char *path, const adj_onnx_opts *options,
                         adj_onnx_net **net, adj_error *error)
{
    const adj_onnx_opts none = {0};
    *net = NULL;
    if (g == NULL || path == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_onnx_load: graph or path is NULL");
    if (adj_graph_status(g) != ADJ_OK)
        return adj_error_set(error, adj_graph_status(g), "%s", adj_graph_message(g));
    if (options != NULL && check_lists(options, error) != ADJ_OK)
        return ADJ_EARG;
import f = {.g = g, .o = options != NULL ? options: & none, .path = path, .error = error };
    f.folder = folder_of(&f);
    Onnx__ModelProto *model = f.status == ADJ_OK ? read_model(&f) : NULL;
    f.model = model;
    if (model != NULL && import_all(&f))
        *net = make_net(&f);
    if (*net == NULL && f.status == ADJ_OK)
        import_fail(&f, adj_graph_status(g), "%s", adj_graph_message(g));
    chunk_free(f.memory);
    if (model != NULL)
        onnx__model_proto__free_unpacked(model, NULL);
    return f.status;
}

void adj_onnx_free(adj_onnx_net *net) { free(net); }
