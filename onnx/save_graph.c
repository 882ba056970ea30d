/* save_graph.c - messages of the graph under construction, and the names and forms of its values.
 */
#include <string.h>

#include "base/c_locale.h"
#include "save.h"
#include "shared.h"

/* ---- messages ---- */

void *new_message(writer *w, const ProtobufCMessageDescriptor *kind)
{
    void *message = writer_alloc(w, 1, kind->sizeof_message);
    if (message != NULL)
        protobuf_c_message_init(kind, message);
    return message;
}

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
    Onnx__NodeProto *n = new_message(w, &onnx__node_proto__descriptor);
    char **names = writer_alloc(w, (int64_t)n_in + 1, sizeof *names);
    Onnx__AttributeProto **attributes = writer_alloc(w, MAX_ATTRIBUTES, sizeof *attributes);
    if (n == NULL || names == NULL || attributes == NULL || out == NULL ||
        !append(w, (void ***)&w->graph.node, &w->graph.n_node, &w->max_node, n))
        return NULL;
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

/* Returns a new attribute of the node, after a failure one that is dropped. */
static Onnx__AttributeProto *add_attribute(writer *w, Onnx__NodeProto *n, const char *name,
                                           Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = n != NULL ? new_message(w, &onnx__attribute_proto__descriptor) : NULL;
    if (a == NULL)
        return &w->dropped;
    a->name = (char *)name;
    a->has_type = 1;
    a->type = type;
    n->attribute[n->n_attribute++] = a;
    return a;
}

void set_int(writer *w, Onnx__NodeProto *n, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = value;
}

void set_float(writer *w, Onnx__NodeProto *n, const char *name, double value)
{
    Onnx__AttributeProto *a =
        add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = (float)value;
}

/* Returns a copy of the data, NULL when out of memory. */
static void *copied(writer *w, const void *data, size_t bytes)
{
    void *copy = writer_alloc(w, (int64_t)bytes + 1, 1);
    return copy != NULL ? memcpy(copy, data, bytes) : NULL;
}

void set_ints(writer *w, Onnx__NodeProto *n, const char *name, int count, const int64_t list[])
{
    Onnx__AttributeProto *a =
        add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->ints = copied(w, list, (size_t)count * sizeof *list);
    a->n_ints = (size_t)count;
}

void set_word(writer *w, Onnx__NodeProto *n, const char *name, const char *word)
{
    Onnx__AttributeProto *a =
        add_attribute(w, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.data = (uint8_t *)word;
    a->s.len = strlen(word);
}

/* ---- initializers ---- */

/* Adds an initializer whose data stay where they are. */
static const char *add_tensor(writer *w, const char *name, int32_t elem, adj_shape shape,
                              const void *data, size_t bytes)
{
    Onnx__TensorProto *t = new_message(w, &onnx__tensor_proto__descriptor);
    int64_t *dims = copied(w, shape.dim, sizeof shape.dim);
    if (t == NULL || dims == NULL || data == NULL || name == NULL ||
        !append(w, (void ***)&w->graph.initializer, &w->graph.n_initializer, &w->max_initializer,
                t))
        return NULL;
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
    const size_t bytes = (size_t)count * sizeof *list;
    return add_tensor(w, fresh_name(w), ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
                      (adj_shape){1, {count}}, copied(w, list, bytes), bytes);
}

const char *ints_scalar(writer *w, int64_t value)
{
    return add_tensor(w, fresh_name(w), ONNX__TENSOR_PROTO__DATA_TYPE__INT64, (adj_shape){0},
                      copied(w, &value, sizeof value), sizeof value);
}

const char *factors(writer *w, double height, double width)
{
    const float list[4] = {1, 1, (float)height, (float)width};
    return add_tensor(w, fresh_name(w), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, (adj_shape){1, {4}},
                      copied(w, list, sizeof list), sizeof list);
}

const char *listed(writer *w, const adj_node *x, adj_shape shape, const double list[], int step)
{
    const adj_dtype dtype = adj_node_type(x).dtype;
    const int64_t count = adj_shape_elems(shape);
    void *data = writer_alloc(w, count + 1, 8);
    for (int64_t i = 0; data != NULL && i < count; i++)
        adj_store(dtype, data, i, list[i * step]);
    return add_tensor(w, fresh_name(w), elem_of(dtype), shape, data,
                      (size_t)count * adj_dtype_size(dtype));
}

const char *number(writer *w, const adj_node *x, double value)
{
    return listed(w, x, (adj_shape){0}, &value, 0);
}

const adj_node *stored(const adj_node *n)
{
    while (n->op == &adj_op_reshape)
        n = n->in[0];
    return adj_node_is_param(n) || adj_node_is_state(n) || n->op == &adj_op_const ||
                   n->op == &adj_op_fill
               ? n
               : NULL;
}

const void *value_of(writer *w, const adj_node *n)
{
    double fill;
    if ((n = stored(n)) == NULL)
        return NULL;
    if (n->op == &adj_op_const)
        return ((const adj_const_attrs *)n->attrs)->data;
    const adj_type t = adj_node_type(n);
    const size_t bytes = adj_type_bytes(t);
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
    order o = order_permuted(t.shape, perm);
    char *to = writer_alloc(w, n + 1, size);
    for (int64_t k = 0; to != NULL && k < n; k++, order_next(&o))
        memcpy(to + (size_t)k * size, (const char *)from + (size_t)o.from * size, size);
    return to;
}

static const char *name_in_graph(writer *w, const adj_node *n);

const char *state_row(writer *w, const adj_node *n, int64_t i, const char *part)
{
    const adj_type t = adj_node_type(n);
    const size_t bytes = adj_type_bytes(t) / (size_t)t.shape.dim[0];
    const size_t room = strlen(adj_node_name(n)) + strlen(part) + 2;
    const char *data = value_of(w, n);
    char *name = writer_alloc(w, (int64_t)room, 1);
    if (data == NULL || name == NULL)
        return NULL;
    c_snprintf(name, room, "%s_%s", adj_node_name(n), part);
    for (size_t k = 0; k < w->graph.n_initializer; k++)
        if (strcmp(w->graph.initializer[k]->name, name) == 0)
            return name;
    return add_tensor(w, name, elem_of(t.dtype), (adj_shape){1, {t.shape.dim[1]}},
                      data + (size_t)i * bytes, bytes);
}

const char *arranged(writer *w, const adj_node *n, const int perm[], adj_shape shape)
{
    const adj_type t = adj_node_type(n);
    const void *data = value_of(w, n);
    const adj_node *leaf = stored(n);
    if (data != NULL && leaf != NULL) {
        /* The parameter's own name goes to the form that is written first. */
        saved *s = &w->of[leaf->id];
        const int is_first = s->plain == NULL && s->turned == NULL;
        const char *name = is_first ? name_in_graph(w, leaf) : fresh_name(w);
        if (is_first)
            s->turned = name;
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
    const int is_kept = (n->op->flags & ADJ_OP_LEAF) != 0 && n->op != &adj_op_input;
    s->turned = is_kept || n->op == &adj_op_fill
                    ? arranged(w, n, nchw, (adj_shape){4, {d.dim[0], d.dim[3], d.dim[1], d.dim[2]}})
                    : transposed(w, plain(w, n), (int64_t[]){0, 3, 1, 2});
    return s->turned;
}

const char *in_form(writer *w, const adj_node *n, int is_turned)
{
    return is_turned ? turned(w, n) : plain(w, n);
}
