/* load.c - adj_onnx_load: values of the file, then its nodes one after the other.
 *
 * A node that is not supported does not end the import: its results are unknown, nodes that read
 * these are skipped, and the message lists all refused nodes. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "base/c_locale.h"
#include "import.h"
#include "memory.h"

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

/* ---- values ---- */

static int64_t symbolic_size(const import *f, const char *name, size_t axis)
{
    for (int i = 0; i < f->o->n_dim; i++)
        if (name != NULL && strcmp(f->o->dim[i].name, name) == 0)
            return f->o->dim[i].size;
    return axis != 0 ? -1 : f->o->batch > 0 ? f->o->batch : 1;
}

static int input_type(import *f, const Onnx__ValueInfoProto *info, int *elem, adj_shape *shape)
{
    const Onnx__TypeProto *type = info->type;
    if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        type->tensor_type->shape == NULL)
        return import_fail(f, ADJ_EIO, "input \"%s\" is no tensor of a known rank", info->name);
    const Onnx__TensorShapeProto *s = type->tensor_type->shape;
    *elem = type->tensor_type->elem_type;
    *shape = (adj_shape){.rank = (int64_t)s->n_dim};
    if (s->n_dim > ADJ_MAX_RANK)
        return import_fail(f, ADJ_ESHAPE, "input \"%s\": rank (got %zu, expected at most %d)",
                           info->name, s->n_dim, ADJ_MAX_RANK);
    for (size_t i = 0; i < s->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = s->dim[i];
        const int is_number = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        const char *name = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                               ? d->dim_param
                               : NULL;
        const int is_batch = i == 0 && f->o->batch > 0;
        if (is_number && is_batch && f->file_batch == 0)
            f->file_batch = d->dim_value;
        shape->dim[i] = is_number && !is_batch ? d->dim_value : symbolic_size(f, name, i);
        if (shape->dim[i] < 0)
            return import_fail(f, ADJ_ESHAPE,
                               "input \"%s\": the size of axis %zu (\"%s\") is not known (expected "
                               "it in adj_onnx_opts.dim)",
                               info->name, i, name != NULL ? name : "");
    }
    return 1;
}

static const adj_tensor *known_input(const import *f, const char *name)
{
    for (int i = 0; i < f->o->n_known; i++)
        if (strcmp(f->o->known[i].name, name) == 0)
            return &f->o->known[i];
    return NULL;
}

/* Makes a node of the caller's the value of an input. */
static int take_given(import *f, value *v, adj_type type, adj_node *node)
{
    const adj_type got = adj_node_type(node);
    if (node == NULL || adj_node_graph(node) != f->g || got.dtype != type.dtype ||
        !adj_shape_equal(got.shape, type.shape))
        return import_fail(f, ADJ_ESHAPE,
                           "input \"%s\": the given node does not fit (got %s %s, expected %s %s)",
                           v->name, adj_dtype_name(got.dtype), adj_shape_text(got.shape).s,
                           adj_dtype_name(type.dtype), adj_shape_text(type.shape).s);
    v->node = node;
    return 1;
}

static int add_input(import *f, const Onnx__ValueInfoProto *info)
{
    if (info->name == NULL || info->name[0] == '\0')
        return import_fail(f, ADJ_EIO, "an input has no name");
    if (find_value(f, info->name) != NULL)
        return 1; /* an initializer may be listed as an input, too */
    const adj_tensor *t = known_input(f, info->name);
    value *v = add_value(f, info->name);
    if (v == NULL)
        return 0;
    if (t != NULL) {
        v->known = known_tensor(f, t);
        v->elem = v->known != NULL ? v->known->elem : 0;
        return v->known != NULL;
    }
    adj_shape shape = {0};
    if (!input_type(f, info, &v->elem, &shape))
        return 0;
    if (!elem_is_float(v->elem) && !elem_is_integer(v->elem))
        return import_fail(f, ADJ_EDTYPE, "input \"%s\": element type %d is not supported",
                           info->name, v->elem);
    const adj_type type = {dtype_of_elem(f, v->elem), shape};
    if (f->n_given < f->o->n_given)
        return take_given(f, v, type, f->o->given[f->n_given++]);
    v->node = adj_input(f->g, info->name, type.dtype, shape);
    return v->node != NULL;
}

static int add_initializer(import *f, const Onnx__TensorProto *t)
{
    if (t->name == NULL || t->name[0] == '\0')
        return import_fail(f, ADJ_EIO, "an initializer has no name");
    value *v = add_value(f, t->name);
    if (v == NULL)
        return 0;
    v->known = read_tensor(f, t);
    if (v->known == NULL)
        return 0;
    v->elem = v->known->elem;
    v->is_weight = elem_is_float(v->elem) && v->known->shape.rank > 0;
    return 1;
}

static int add_values(import *f)
{
    const Onnx__GraphProto *g = f->model->graph;
    int64_t n = (int64_t)g->n_initializer + (int64_t)g->n_input;
    for (size_t i = 0; i < g->n_node; i++)
        n += (int64_t)g->node[i]->n_output;
    f->n_bucket = 16;
    while (f->n_bucket < 2 * (n + 1) && f->n_bucket < 1 << 30)
        f->n_bucket *= 2;
    f->value = import_alloc(f, f->n_bucket, sizeof *f->value);
    f->param = import_alloc(f, (int64_t)g->n_initializer + 1, sizeof *f->param);
    if (f->value == NULL || f->param == NULL)
        return 0;
    if (g->n_sparse_initializer > 0)
        return import_fail(f, ADJ_EARG, "sparse initializers are not supported");
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!add_initializer(f, g->initializer[i]))
            return 0;
    for (size_t i = 0; i < g->n_input; i++)
        if (!add_input(f, g->input[i]))
            return 0;
    return 1;
}

/* ---- nodes ---- */

/* Adds a line about a node that is not supported to the message. */
static void list_refused(const call *n)
{
    import *f = n->f;
    const size_t used = strlen(f->refused);
    c_snprintf(f->refused + used, sizeof f->refused - used, "%s\"%s\" (%s, opset %" PRId64 "): %s",
               f->n_refused > 0 ? "; " : "", n->proto->name != NULL ? n->proto->name : "",
               n->proto->op_type != NULL ? n->proto->op_type : "", n->opset, n->reason);
    f->n_refused++;
}

/* Looks up the operands. Returns 0 if one is unknown or missing. */
static int find_operands(call *n)
{
    int complete = 1;
    for (int i = 0; i < n->n_in; i++) {
        const char *name = n->proto->input[i];
        if (name == NULL || name[0] == '\0')
            continue;
        n->in[i] = find_value(n->f, name);
        if (n->in[i] == NULL)
            return import_fail(n->f, ADJ_EIO,
                               "node \"%s\" reads \"%s\", which no earlier node computes",
                               n->proto->name != NULL ? n->proto->name : "", name);
        complete &= n->in[i]->node != NULL || n->in[i]->known != NULL || n->in[i]->part != NULL;
    }
    return complete;
}

static int is_foldable(const call *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] != NULL && (n->in[i]->known == NULL || n->in[i]->is_weight))
            return 0;
    return 1;
}

/* Applies a builder of two operands from left to right. */
static void build_binary(call *n, const operator_row *row)
{
    adj_node *y = in_node(n, 0);
    for (int i = 1; i < n->n_in; i++)
        y = row->binary(y, in_node(n, i));
    give(n, y);
}

static void build(call *n)
{
    const operator_row *row = find_operator(n->proto->op_type);
    const char *domain = n->proto->domain;
    if (row == NULL || (domain != NULL && domain[0] != '\0' && strcmp(domain, "ai.onnx") != 0))
        refuse(n, "the operator is not supported");
    else if (row->fold != NULL && is_foldable(n))
        row->fold(n);
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
        v->known = n->out[i].known;
        v->part = n->out[i].part;
        v->n_part = n->out[i].n_part;
        v->node = n->out[i].node != NULL ? adj_label(n->out[i].node, name) : NULL;
    }
    return 1;
}

/* Reports the graph's error, with a remedy where the file has another batch. */
static int fail_node(import *f, const Onnx__NodeProto *proto)
{
    char remedy[120] = "";
    if (f->file_batch > 0 && f->file_batch != f->o->batch)
        c_snprintf(remedy, sizeof remedy,
                   "; the file was exported for batch %" PRId64
                   ": export it with a dynamic batch, or use that batch",
                   f->file_batch);
    return import_fail(f, adj_graph_status(f->g), "node \"%s\" (%s): %s%s",
                       proto->name != NULL ? proto->name : "", proto->op_type,
                       adj_graph_message(f->g), remedy);
}

int import_node(import *f, const Onnx__NodeProto *proto)
{
    call n = {.f = f,
              .proto = proto,
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
    if (is_complete || find_operator(proto->op_type) == NULL)
        build(&n);
    if (f->status != ADJ_OK)
        return 0;
    if (adj_graph_status(f->g) != ADJ_OK)
        return fail_node(f, proto);
    if (n.reason[0] != '\0')
        list_refused(&n);
    return add_results(f, &n);
}

/* ---- the net ---- */

static int64_t classes_of(const adj_node *y)
{
    const adj_shape s = adj_node_type(y).shape;
    return s.rank == 2 ? s.dim[1] : 0;
}

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
    return v->node;
}

/* Makes the net: the struct and its lists in one block. */
static adj_onnx_net *make_net(import *f)
{
    const Onnx__GraphProto *g = f->model->graph;
    const size_t n = g->n_input + g->n_output + (size_t)f->n_param;
    adj_onnx_net *net = calloc(1, sizeof *net + n * sizeof(adj_node *));
    if (net == NULL) {
        import_fail(f, ADJ_ENOMEM, "out of memory");
        return NULL;
    }
    adj_node **to = (adj_node **)(net + 1);
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
        free(net);
        return NULL;
    }
    net->classes = net->n_output > 0 ? classes_of(net->output[0]) : 0;
    return net;
}

static int find_opset(import *f)
{
    for (size_t i = 0; i < f->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = f->model->opset_import[i];
        if (o->domain == NULL || o->domain[0] == '\0' || strcmp(o->domain, "ai.onnx") == 0)
            f->opset = o->version;
    }
    if (f->opset < 7)
        return import_fail(f, ADJ_EARG, "opset (got %" PRId64 ", expected 7 or more)", f->opset);
    return 1;
}

static int import_all(import *f)
{
    const Onnx__GraphProto *g = f->model->graph;
    if (!find_opset(f) || !add_values(f))
        return 0;
    for (size_t i = 0; i < g->n_node; i++)
        if (!import_node(f, g->node[i]))
            return 0;
    if (f->n_refused > 0)
        return import_fail(f, ADJ_EARG, "%d node%s not supported: %s", f->n_refused,
                           f->n_refused == 1 ? " is" : "s are", f->refused);
    return 1;
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
}

static void free_import(import *f)
{
    chunk_free(f->memory);
    free(f->folder);
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
import f = {.g = g, .o = options != NULL ? options: & none, .path = path, .error = error };
    f.folder = folder_of(path);
    if (f.folder == NULL)
        import_fail(&f, ADJ_ENOMEM, "out of memory");
    Onnx__ModelProto *model = f.status == ADJ_OK ? read_model(&f) : NULL;
    f.model = model;
    if (model != NULL && import_all(&f))
        *net = make_net(&f);
    if (*net == NULL && f.status == ADJ_OK)
        import_fail(&f, adj_graph_status(g), "%s", adj_graph_message(g));
    free_import(&f);
    if (model != NULL)
        onnx__model_proto__free_unpacked(model, NULL);
    return f.status;
}

void adj_onnx_free(adj_onnx_net *net) { free(net); }
