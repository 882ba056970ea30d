/* save.c - adj_onnx_save: selects the nodes, writes the inputs and outputs of the model, and the
 * file. */
#include "save.h"

#include <stdarg.h>

#include "base/c_locale.h"
#include "base/new_file.h"
#include "shared.h"

enum { OPSET = 17, IR_VERSION = 8 };

void *writer_alloc(writer *w, int64_t count, size_t size)
{
    void *data = chunk_alloc(&w->memory, count, size);
    if (data == NULL)
        writer_fail(w, ADJ_ENOMEM, "adj_onnx_save: out of memory");
    return data;
}

void writer_fail(writer *w, adj_status status, const char *format, ...)
{
    char text[ADJ_MESSAGE];
    va_list args;
    if (w->status != ADJ_OK)
        return;
    va_start(args, format);
    c_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->status = adj_error_set(w->error, status, "%s", text);
}

void cannot_save(writer *w, const adj_node *n, const char *why)
{
    writer_fail(w, ADJ_EARG, "adj_onnx_save: %s \"%s\" (node %u) cannot be saved: %s", n->op->name,
                adj_node_name(n), n->id, why);
}

/* Writes the size of an axis; a multiple of the batch stays unknown. */
static void set_size(const writer *w, Onnx__TensorShapeProto__Dimension *to, int64_t size,
                     int has_batch)
{
    if (!has_batch) {
        to->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        to->dim_value = size;
    } else if (size == w->batch) {
        to->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        to->dim_param = (char *)"batch";
    }
}

static Onnx__ValueInfoProto *value_info(writer *w, const adj_node *n, const char *name)
{
    const adj_type t = adj_node_type(n);
    Onnx__ValueInfoProto *info = new_message(w, &onnx__value_info_proto__descriptor);
    Onnx__TypeProto *type = new_message(w, &onnx__type_proto__descriptor);
    Onnx__TypeProto__Tensor *tensor = new_message(w, &onnx__type_proto__tensor__descriptor);
    Onnx__TensorShapeProto *shape = new_message(w, &onnx__tensor_shape_proto__descriptor);
    Onnx__TensorShapeProto__Dimension **dims = writer_alloc(w, t.shape.rank + 1, sizeof *dims);
    if (info == NULL || type == NULL || tensor == NULL || shape == NULL || dims == NULL)
        return NULL;
    info->name = (char *)name;
    info->type = type;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    tensor->has_elem_type = 1;
    tensor->elem_type = elem_of(t.dtype);
    tensor->shape = shape;
    shape->dim = dims;
    shape->n_dim = (size_t)t.shape.rank;
    for (int i = 0; i < t.shape.rank; i++) {
        dims[i] = new_message(w, &onnx__tensor_shape_proto__dimension__descriptor);
        if (dims[i] == NULL)
            return NULL;
        set_size(w, dims[i], t.shape.dim[i], batch_axis(w, n) == i);
    }
    return info;
}

/* Counts the readers of the nodes whose values are written, from the last to the first. */
static void count_readers(writer *w, int n, adj_node *const output[])
{
    const int n_node = adj_graph_node_count(w->g);
    int most = 0;
    for (int id = 0; id < n_node; id++) {
        const int n_in = adj_graph_node_at(w->g, id)->n_in;
        most = n_in > most ? n_in : most;
        w->of[id].readers = 0;
    }
    const adj_node **needed = writer_alloc(w, most + 2, sizeof *needed);
    if (needed == NULL)
        return;
    for (int i = 0; i < n; i++)
        w->of[output[i]->id].readers++;
    for (int id = n_node - 1; id >= 0; id--) {
        const int count =
            w->of[id].readers > 0 ? list_needed(w, adj_graph_node_at(w->g, id), needed) : 0;
        for (int i = 0; i < count; i++)
            w->of[needed[i]->id].readers++;
    }
}

/* Marks the nodes that are written with the layer before, which is then needed no more. */
static void fold_into_layers(writer *w, int (*can)(writer *w, const adj_node *n), int n,
                             adj_node *const output[])
{
    for (int id = 0; id < adj_graph_node_count(w->g); id++)
        w->of[id].is_folded |= w->of[id].readers > 0 && can(w, adj_graph_node_at(w->g, id));
    count_readers(w, n, output);
}

static void write_inputs(writer *w)
{
    const int n = adj_graph_node_count(w->g);
    w->graph.input = writer_alloc(w, n + 1, sizeof *w->graph.input);
    for (int id = 0; id < n && w->status == ADJ_OK; id++) {
        const adj_node *x = adj_graph_node_at(w->g, id);
        if (w->of[id].readers == 0 || x->op != &adj_op_input)
            continue;
        w->of[id].plain = adj_node_name(x);
        w->graph.input[w->graph.n_input++] = value_info(w, x, w->of[id].plain);
    }
}

static void write_outputs(writer *w, int n, adj_node *const output[])
{
    w->graph.output = writer_alloc(w, n + 1, sizeof *w->graph.output);
    for (int i = 0; i < n && w->status == ADJ_OK; i++) {
        const char *name = plain(w, output[i]);
        if ((output[i]->op->flags & ADJ_OP_LEAF) != 0 ||
            stored(output[i]) != NULL) { /* an output is computed by a node */
            const char *copy = fresh_name(w);
            emit1(w, "Identity", name, copy);
            name = copy;
        }
        w->graph.output[w->graph.n_output++] = value_info(w, output[i], name);
    }
}

/* The packed model, handed to the function that writes the file. */
typedef struct {
    const uint8_t *data;
    size_t n;
} packed;

static int write_packed(FILE *f, void *user)
{
    const packed *p = user;
    return fwrite(p->data, 1, p->n, f) == p->n ? 0 : -1;
}

static void add_metadata(writer *w, Onnx__ModelProto *model, int n, const adj_metadata metadata[])
{
    model->metadata_props = writer_alloc(w, n + 1, sizeof *model->metadata_props);
    for (int i = 0; i < n && w->status == ADJ_OK; i++) {
        Onnx__StringStringEntryProto *entry =
            new_message(w, &onnx__string_string_entry_proto__descriptor);
        if (entry == NULL)
            return;
        entry->key = (char *)metadata[i].key;
        entry->value = (char *)metadata[i].value;
        model->metadata_props[model->n_metadata_props++] = entry;
    }
}

static adj_status write_file(writer *w, const char *path, int n_metadata,
                             const adj_metadata metadata[])
{
    Onnx__ModelProto model;
    Onnx__OperatorSetIdProto opset, *opsets[] = {&opset};
    onnx__model_proto__init(&model);
    onnx__operator_set_id_proto__init(&opset);
    opset.domain = (char *)"";
    opset.has_version = 1;
    opset.version = OPSET;
    model.has_ir_version = 1;
    model.ir_version = IR_VERSION;
    model.producer_name = (char *)"adjoint";
    model.producer_version = (char *)ADJ_VERSION_TEXT;
    model.opset_import = opsets;
    model.n_opset_import = 1;
    model.graph = &w->graph;
    add_metadata(w, &model, n_metadata, metadata);
    if (w->status != ADJ_OK)
        return w->status;
    packed p = {.n = onnx__model_proto__get_packed_size(&model)};
    uint8_t *data = writer_alloc(w, (int64_t)p.n + 1, 1);
    if (data == NULL)
        return w->status;
    onnx__model_proto__pack(&model, data);
    p.data = data;
    const char *why = NULL;
    const adj_status status = new_file_write(path, write_packed, &p, &why);
    return status == ADJ_OK ? ADJ_OK : adj_error_set(w->error, status, "%s: %s", path, why);
}

adj_status adj_onnx_save(adj_exec *e, int n, adj_node *const output[], const char *path,
                         unsigned flags, int n_metadata, const adj_metadata metadata[],
                         adj_error *error)
{
    if (e == NULL || n < 1 || output == NULL || output[0] == NULL || path == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_onnx_save: executor, outputs or path missing");
    if (n_metadata < 0 || (n_metadata > 0 && metadata == NULL))
        return adj_error_set(error, ADJ_EARG,
                             "adj_onnx_save: n_metadata is wrong (got %d, expected the number of "
                             "entries in metadata)",
                             n_metadata);
    for (int i = 0; i < n_metadata; i++)
        if (metadata[i].key == NULL || metadata[i].value == NULL)
            return adj_error_set(error, ADJ_EARG,
                                 "adj_onnx_save: the key or value of metadata %d is NULL", i);
    writer w = {.e = e, .g = adj_node_graph(output[0]), .error = error};
    onnx__graph_proto__init(&w.graph);
    w.graph.name = (char *)"adjoint";
    w.of = writer_alloc(&w, adj_graph_node_count(w.g) + 1, sizeof *w.of);
    if (w.of != NULL) {
        const adj_shape first = adj_node_type(output[0]).shape;
        w.batch = flags & ADJ_ONNX_FIXED_BATCH || first.rank == 0 ? 0 : first.dim[0];
        find_batch(&w);
        count_readers(&w, n, output);
        if (flags & ADJ_ONNX_FOLD_BATCH_NORMS)
            fold_into_layers(&w, can_fold, n, output);
        fold_into_layers(&w, can_join, n, output);
        write_inputs(&w);
    }
    for (int id = 0; id < adj_graph_node_count(w.g) && w.status == ADJ_OK; id++)
        if (w.of[id].readers > 0)
            save_node(&w, adj_graph_node_at(w.g, id));
    if (w.status == ADJ_OK)
        write_outputs(&w, n, output);
    if (w.status == ADJ_OK)
        w.status = write_file(&w, path, n_metadata, metadata);
    chunk_free(w.memory);
    return w.status;
}
