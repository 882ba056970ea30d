/* save.c - adj_onnx_save: the nodes that the outputs depend on, in order, then inputs and outputs.
 */
#include "save.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "base/c_locale.h"
#include "base/new_file.h"
#include "memory.h"

enum { OPSET = 17, IR_VERSION = 8 };

void *writer_alloc(writer *w, int64_t count, size_t size)
{
    void *data = chunk_alloc(&w->memory, count, size);
    if (data == NULL)
        writer_fail(w, ADJ_ENOMEM, "adj_onnx_save: out of memory");
    return data;
}

int writer_fail(writer *w, adj_status status, const char *format, ...)
{
    char text[ADJ_MESSAGE];
    va_list args;
    if (w->status != ADJ_OK)
        return 0;
    va_start(args, format);
    c_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    w->status = adj_error_set(w->error, status, "%s", text);
    return 0;
}

int cannot_save(writer *w, const adj_node *n, const char *why)
{
    return writer_fail(w, ADJ_EARG, "adj_onnx_save: %s \"%s\" (node %u) cannot be saved: %s",
                       n->op->name, adj_node_name(n), n->id, why);
}

/* ---- messages ---- */

/* Appends to a list of pointers, which doubles. */
static int append(writer *w, void ***list, size_t *n, size_t *max, void *item)
{
    if (*n == *max) {
        const size_t more = *max > 0 ? 2 * *max : 64;
        void **bigger = writer_alloc(w, (int64_t)more, sizeof *bigger);
        if (bigger == NULL)
            return 0;
        if (*n > 0)
            memcpy(bigger, *list, *n * sizeof *bigger);
        *list = bigger;
        *max = more;
    }
    (*list)[(*n)++] = item;
    return 1;
}

Onnx__NodeProto *emit(writer *w, const char *op, const char *const in[], const char *out)
{
    enum { MAX_ATTRIBUTES = 8 };
    size_t n_in = 0;
    while (in[n_in] != NULL)
        n_in++;
    Onnx__NodeProto *n = writer_alloc(w, 1, sizeof *n);
    char **names = writer_alloc(w, (int64_t)n_in + 1, sizeof *names);
    Onnx__AttributeProto **attributes = writer_alloc(w, MAX_ATTRIBUTES, sizeof *attributes);
    if (n == NULL || names == NULL || attributes == NULL || out == NULL ||
        !append(w, (void ***)&w->graph.node, &w->graph.n_node, &w->max_node, n))
        return NULL;
    onnx__node_proto__init(n);
    n->op_type = (char *)op;
    n->name = (char *)out;
    memcpy(names, in, n_in * sizeof *names);
    n->input = names;
    n->n_input = n_in;
    names[n_in] = (char *)out;
    n->output = &names[n_in];
    n->n_output = 1;
    n->attribute = attributes;
    return n;
}

Onnx__NodeProto *emit1(writer *w, const char *op, const char *a, const char *out)
{
    return a != NULL ? emit(w, op, (const char *[]){a, NULL}, out) : NULL;
}

Onnx__NodeProto *emit2(writer *w, const char *op, const char *a, const char *b, const char *out)
{
    return a != NULL && b != NULL ? emit(w, op, (const char *[]){a, b, NULL}, out) : NULL;
}

static Onnx__AttributeProto *add_attribute(writer *w, Onnx__NodeProto *n, const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = n != NULL ? writer_alloc(w, 1, sizeof *a) : NULL;
    if (a == NULL)
        return NULL;
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    n->attribute[n->n_attribute++] = a;
    return a;
}

void set_int(writer *w, Onnx__NodeProto *n, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (a != NULL) {
        a->has_i = 1;
        a->i = value;
    }
}

void set_float(writer *w, Onnx__NodeProto *n, const char *name, double value)
{
    Onnx__AttributeProto *a =
        add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (a != NULL) {
        a->has_f = 1;
        a->f = (float)value;
    }
}

void set_ints(writer *w, Onnx__NodeProto *n, const char *name, int count, const int64_t list[])
{
    Onnx__AttributeProto *a =
        add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *copy = a != NULL ? writer_alloc(w, count + 1, sizeof *copy) : NULL;
    if (copy == NULL)
        return;
    memcpy(copy, list, (size_t)count * sizeof *copy);
    a->ints = copy;
    a->n_ints = (size_t)count;
}

void set_word(writer *w, Onnx__NodeProto *n, const char *name, const char *word)
{
    Onnx__AttributeProto *a =
        add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    if (a == NULL)
        return;
    a->has_s = 1;
    a->s.data = (uint8_t *)word;
    a->s.len = strlen(word);
}

/* ---- initializers ---- */

int32_t elem_of(adj_dtype dtype)
{
    static const int32_t elems[] = {
        [ADJ_F32] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
        [ADJ_F64] = ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE,
        [ADJ_F16] = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16,
        [ADJ_BF16] = ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16,
        [ADJ_I32] = ONNX__TENSOR_PROTO__DATA_TYPE__INT32,
    };
    return elems[dtype];
}

/* Adds an initializer whose data stay where they are. */
static const char *add_tensor(writer *w, const char *name, int32_t elem, adj_shape shape,
                              const void *data, size_t bytes)
{
    Onnx__TensorProto *t = writer_alloc(w, 1, sizeof *t);
    int64_t *dims = writer_alloc(w, ADJ_MAX_RANK, sizeof *dims);
    if (t == NULL || dims == NULL || data == NULL || name == NULL ||
        !append(w, (void ***)&w->graph.initializer, &w->graph.n_initializer, &w->max_initializer,
                t))
        return NULL;
    onnx__tensor_proto__init(t);
    memcpy(dims, shape.dim, sizeof shape.dim);
    t->name = (char *)name;
    t->has_data_type = 1;
    t->data_type = elem;
    t->dims = dims;
    t->n_dims = (size_t)shape.rank;
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)data;
    t->raw_data.len = bytes;
    return name;
}

const char *ints(writer *w, int count, const int64_t list[])
{
    int64_t *copy = writer_alloc(w, count + 1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    memcpy(copy, list, (size_t)count * sizeof *copy);
    return add_tensor(w, fresh_name(w), ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
                      (adj_shape){1, {count}}, copy, (size_t)count * sizeof *copy);
}

const char *ints_scalar(writer *w, int64_t value)
{
    int64_t *copy = writer_alloc(w, 1, sizeof *copy);
    if (copy == NULL)
        return NULL;
    *copy = value;
    return add_tensor(w, fresh_name(w), ONNX__TENSOR_PROTO__DATA_TYPE__INT64, (adj_shape){0}, copy,
                      sizeof *copy);
}

const char *factors(writer *w, double height, double width)
{
    float *list = writer_alloc(w, 4, sizeof *list);
    if (list == NULL)
        return NULL;
    list[0] = list[1] = 1;
    list[2] = (float)height;
    list[3] = (float)width;
    return add_tensor(w, fresh_name(w), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (adj_shape){1, {4}},
                      list, 4 * sizeof *list);
}

/* Writes `count` equal numbers of x's element type, of that shape. */
static const char *equal_numbers(writer *w, const adj_node *x, int64_t count, adj_shape shape,
                                 double value)
{
    const adj_dtype dtype = adj_node_type(x).dtype;
    void *data = writer_alloc(w, count, 8);
    if (data == NULL)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        adj_store(dtype, data, i, value);
    return add_tensor(w, fresh_name(w), elem_of(dtype), shape, data,
                      (size_t)count * adj_dtype_size(dtype));
}

const char *number(writer *w, const adj_node *x, double value)
{
    return equal_numbers(w, x, 1, (adj_shape){0}, value);
}

const char *repeated(writer *w, const adj_node *x, int64_t count, double value)
{
    return equal_numbers(w, x, count, (adj_shape){1, {count}}, value);
}

/* Returns the value of a leaf or fill; NULL if n is neither, or on failure. */
static const void *value_of(writer *w, const adj_node *n)
{
    const adj_type t = adj_node_type(n);
    const size_t bytes = adj_type_bytes(t);
    double fill;
    if (n->op == &adj_op_const)
        return ((const adj_const_attrs *)n->attrs)->data;
    if (!adj_node_is_param(n) && !adj_node_is_state(n) && n->op != &adj_op_fill)
        return NULL;
    void *data = writer_alloc(w, (int64_t)bytes + 1, 1);
    if (data == NULL)
        return NULL;
    if (adj_is_fill(n, &fill)) {
        for (int64_t i = 0; i < adj_shape_elems(t.shape); i++)
            adj_store(t.dtype, data, i, fill);
    } else if (adj_get(w->e, n, data, bytes) != ADJ_OK) {
        writer_fail(w, ADJ_EARG, "%s", adj_exec_message(w->e));
        return NULL;
    }
    return data;
}

/* Copies a value with its axes permuted. */
static void *permuted(writer *w, const void *from, adj_type t, const int perm[])
{
    const size_t size = adj_dtype_size(t.dtype);
    const int64_t n = adj_shape_elems(t.shape);
    int64_t stride[ADJ_MAX_RANK] = {0}, at[ADJ_MAX_RANK] = {0}, step = 1, place = 0;
    char *to = writer_alloc(w, n + 1, size);
    for (int i = (int)t.shape.rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= t.shape.dim[i];
    }
    for (int64_t k = 0; to != NULL && k < n; k++) {
        memcpy(to + (size_t)k * size, (const char *)from + (size_t)place * size, size);
        for (int i = (int)t.shape.rank - 1; i >= 0; i--) {
            place += stride[perm[i]];
            if (++at[i] < t.shape.dim[perm[i]])
                break;
            place -= stride[perm[i]] * at[i];
            at[i] = 0;
        }
    }
    return to;
}

static const char *name_in_graph(writer *w, const adj_node *n);

const char *arranged(writer *w, const adj_node *n, const int perm[], adj_shape shape)
{
    const adj_type t = adj_node_type(n);
    const void *data = value_of(w, n);
    if (data != NULL) {
        /* The parameter's own name goes to the form that is written first. */
        const int is_first = w->of[n->id].plain == NULL && w->of[n->id].turned == NULL;
        const char *name = is_first ? name_in_graph(w, n) : fresh_name(w);
        if (is_first)
            w->of[n->id].turned = name;
        return add_tensor(w, name, elem_of(t.dtype), shape, permuted(w, data, t, perm),
                          adj_type_bytes(t));
    }
    int64_t list[ADJ_MAX_RANK];
    for (int i = 0; i < t.shape.rank; i++)
        list[i] = perm[i];
    const char *moved = fresh_name(w), *out = fresh_name(w);
    set_ints(w, emit1(w, "Transpose", plain(w, n), moved), "perm", (int)t.shape.rank, list);
    emit2(w, "Reshape", moved, ints(w, (int)shape.rank, shape.dim), out);
    return out;
}

/* ---- names ---- */

const char *fresh_name(writer *w)
{
    char *name = writer_alloc(w, 24, 1);
    do
        c_snprintf(name != NULL ? name : (char[24]){""}, 24, "v%d", w->n_made++);
    while (name != NULL && adj_find(w->g, name) != NULL);
    return name;
}

/* The node's label if it alone bears it, else a new name. */
static const char *name_in_graph(writer *w, const adj_node *n)
{
    const char *name = adj_node_name(n);
    return name[0] != '\0' && adj_find(w->g, name) == n ? name : fresh_name(w);
}

const char *result(writer *w, const adj_node *n, int is_turned)
{
    saved *s = &w->of[n->id];
    const char *name = s->plain == NULL && s->turned == NULL ? name_in_graph(w, n) : fresh_name(w);
    *(is_turned ? &s->turned : &s->plain) = name;
    return name;
}

int is_turned(const writer *w, const adj_node *n)
{
    return w->of[n->id].turned != NULL && w->of[n->id].plain == NULL &&
           adj_node_type(n).shape.rank == 4 && (n->op->flags & ADJ_OP_LEAF) == 0;
}

static const char *transposed(writer *w, const char *from, const int64_t perm[4])
{
    const char *to = fresh_name(w);
    set_ints(w, emit1(w, "Transpose", from, to), "perm", 4, perm);
    return to;
}

const char *plain(writer *w, const adj_node *n)
{
    saved *s = &w->of[n->id];
    if (s->plain != NULL)
        return s->plain;
    const adj_type t = adj_node_type(n);
    const void *data = value_of(w, n);
    if (data != NULL)
        s->plain = add_tensor(w, s->turned == NULL ? name_in_graph(w, n) : fresh_name(w),
                              elem_of(t.dtype), t.shape, data, adj_type_bytes(t));
    else if (s->turned != NULL)
        s->plain = transposed(w, s->turned, (int64_t[]){0, 2, 3, 1});
    else
        cannot_save(w, n, "it is not computed");
    return s->plain;
}

const char *turned(writer *w, const adj_node *n)
{
    saved *s = &w->of[n->id];
    const int nchw[] = {0, 3, 1, 2};
    if (s->turned != NULL)
        return s->turned;
    const adj_shape d = adj_node_type(n).shape;
    if ((n->op->flags & ADJ_OP_LEAF) != 0 || n->op == &adj_op_fill)
        s->turned =
            n->op == &adj_op_input
                ? transposed(w, plain(w, n), (int64_t[]){0, 3, 1, 2})
                : arranged(w, n, nchw, (adj_shape){4, {d.dim[0], d.dim[3], d.dim[1], d.dim[2]}});
    else
        s->turned = transposed(w, plain(w, n), (int64_t[]){0, 3, 1, 2});
    return s->turned;
}

const char *in_form(writer *w, const adj_node *n, int is_turned)
{
    return is_turned ? turned(w, n) : plain(w, n);
}

const char *sizes(writer *w, const adj_node *x, adj_shape shape)
{
    const adj_shape from = adj_node_type(x).shape;
    if (w->batch > 0 && shape.rank > 0 && from.rank > 0 && from.dim[0] % w->batch == 0 &&
        shape.dim[0] % w->batch == 0 && adj_shape_elems(shape) > 0)
        shape.dim[0] = -1;
    return ints(w, (int)shape.rank, shape.dim);
}

/* ---- the model ---- */

static Onnx__ValueInfoProto *value_info(writer *w, const adj_node *n, const char *name)
{
    const adj_type t = adj_node_type(n);
    Onnx__ValueInfoProto *info = writer_alloc(w, 1, sizeof *info);
    Onnx__TypeProto *type = writer_alloc(w, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = writer_alloc(w, 1, sizeof *tensor);
    Onnx__TensorShapeProto *shape = writer_alloc(w, 1, sizeof *shape);
    Onnx__TensorShapeProto__Dimension **dims = writer_alloc(w, t.shape.rank + 1, sizeof *dims);
    if (info == NULL || type == NULL || tensor == NULL || shape == NULL || dims == NULL)
        return NULL;
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    onnx__tensor_shape_proto__init(shape);
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
        dims[i] = writer_alloc(w, 1, sizeof **dims);
        if (dims[i] == NULL)
            return NULL;
        onnx__tensor_shape_proto__dimension__init(dims[i]);
        const int is_batch = i == 0 && w->batch > 0 && t.shape.dim[0] == w->batch;
        dims[i]->value_case = is_batch ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                       : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (is_batch)
            dims[i]->dim_param = (char *)"batch";
        else
            dims[i]->dim_value = t.shape.dim[i];
    }
    return info;
}

/* Marks the nodes whose values are written, from the last to the first. */
static void mark_needed(writer *w, int n, adj_node *const output[])
{
    enum { MAX_NEEDED = 256 };
    const adj_node *needed[MAX_NEEDED];
    for (int i = 0; i < n; i++)
        w->of[output[i]->id].is_needed = 1;
    for (int id = adj_graph_node_count(w->g) - 1; id >= 0; id--) {
        const int count = w->of[id].is_needed
                              ? list_needed(w, adj_graph_node_at(w->g, id), MAX_NEEDED, needed)
                              : 0;
        for (int i = 0; i < count; i++)
            w->of[needed[i]->id].is_needed = 1;
    }
}

static void write_inputs(writer *w)
{
    const int n = adj_graph_node_count(w->g);
    w->graph.input = writer_alloc(w, n + 1, sizeof *w->graph.input);
    for (int id = 0; id < n && w->status == ADJ_OK; id++) {
        const adj_node *x = adj_graph_node_at(w->g, id);
        if (!w->of[id].is_needed || x->op != &adj_op_input)
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
        if ((output[i]->op->flags & ADJ_OP_LEAF) != 0) { /* an output is computed by a node */
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

static adj_status write_file(writer *w, const char *path)
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
    packed p = {.n = onnx__model_proto__get_packed_size(&model)};
    uint8_t *data = writer_alloc(w, (int64_t)p.n + 1, 1);
    if (data == NULL)
        return w->status;
    onnx__model_proto__pack(&model, data);
    p.data = data;
    const char *why = NULL;
    const adj_status status = new_file_write(path, 1, write_packed, &p, &why);
    return status == ADJ_OK ? ADJ_OK : adj_error_set(w->error, status, "%s: %s", path, why);
}

adj_status adj_onnx_save(adj_exec *e, int n, adj_node *const output[], const char *path,
                         const adj_onnx_save_opts *options, adj_error *error)
{
    const adj_onnx_save_opts none = {0}, *o = options != NULL ? options : &none;
    if (e == NULL || n < 1 || output == NULL || output[0] == NULL || path == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_onnx_save: executor, outputs or path missing");
    writer w = {.e = e, .g = adj_node_graph(output[0]), .error = error};
    onnx__graph_proto__init(&w.graph);
    w.graph.name = (char *)"adjoint";
    w.of = writer_alloc(&w, adj_graph_node_count(w.g) + 1, sizeof *w.of);
    if (w.of != NULL) {
        const adj_shape first = adj_node_type(output[0]).shape;
        w.batch = o->fixed_batch || first.rank == 0 ? 0 : first.dim[0];
        mark_needed(&w, n, output);
        write_inputs(&w);
    }
    for (int id = 0; id < adj_graph_node_count(w.g) && w.status == ADJ_OK; id++)
        if (w.of[id].is_needed && !save_node(&w, adj_graph_node_at(w.g, id)))
            writer_fail(&w, ADJ_ENOMEM, "adj_onnx_save: out of memory");
    if (w.status == ADJ_OK)
        write_outputs(&w, n, output);
    if (w.status == ADJ_OK)
        w.status = write_file(&w, path);
    chunk_free(w.memory);
    return w.status;
}
