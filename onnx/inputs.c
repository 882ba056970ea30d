/* inputs.c - the initial values of an import: initializers, inputs, the sizes of symbolic axes, and
 * a new last layer. */
#include <inttypes.h>
#include <string.h>

#include "adjoint_data.h"
#include "import.h"

static int has_number(const Onnx__TensorShapeProto__Dimension *d)
{
    return d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
}

/* True if images have their channels last: the second axis is symbolic or too long for channels,
 * and in the latter case the last is a number of channels. */
static int has_channels_last(const Onnx__TensorShapeProto *s)
{
    const Onnx__TensorShapeProto__Dimension *second = s->dim[1], *last = s->dim[3];
    return !has_number(second) || (second->dim_value > ADJ_MAX_CHANNELS && has_number(last) &&
                                   last->dim_value <= ADJ_MAX_CHANNELS);
}

/* Returns the size of a symbolic height or width, or -1. They follow the channels, or the batch
 * where the channels are last. */
static int64_t image_size(const import *f, const Onnx__TensorShapeProto *s, size_t axis)
{
    const adj_node *given = f->n_given < f->o->n_given ? f->o->given[f->n_given] : NULL;
    const adj_shape own = given != NULL ? adj_node_type(given).shape : (adj_shape){0};
    if (own.rank == (int64_t)s->n_dim)
        return own.dim[axis];
    if (s->n_dim != 4)
        return -1;
    const size_t height = has_channels_last(s) ? 1 : 2;
    const int64_t size = axis == height ? f->o->size.h : axis == height + 1 ? f->o->size.w : 0;
    return size > 0 ? size : -1;
}

static int64_t symbolic_size(const import *f, const Onnx__TensorShapeProto *s, const char *name,
                             size_t axis)
{
    for (int i = 0; i < f->o->n_dim; i++)
        if (name != NULL && strcmp(f->o->dim[i].name, name) == 0)
            return f->o->dim[i].size;
    if (axis != 0)
        return image_size(f, s, axis);
    return f->o->batch > 0 ? f->o->batch : 1;
}

static int input_type(import *f, const Onnx__ValueInfoProto *info, int *elem, adj_shape *shape)
{
    const Onnx__TypeProto *type = info->type;
    if (type == NULL || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        type->tensor_type->shape == NULL)
        return import_fail(f, ADJ_EIO, "input \"%s\" is not a tensor of known rank", info->name);
    const Onnx__TensorShapeProto *s = type->tensor_type->shape;
    *elem = type->tensor_type->elem_type;
    *shape = (adj_shape){.rank = s->n_dim < ADJ_MAX_RANK ? (int64_t)s->n_dim : ADJ_MAX_RANK};
    for (size_t i = 0; i < s->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = s->dim[i];
        const int is_number = has_number(d);
        const char *name = d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                               ? d->dim_param
                               : NULL;
        const int is_batch = i == 0 && f->o->batch > 0;
        if (is_number && i == 0 && f->file_batch == 0)
            f->file_batch = d->dim_value;
        const int64_t size = is_number && !is_batch ? d->dim_value : symbolic_size(f, s, name, i);
        const int is_merged = i >= ADJ_MAX_RANK;
        int64_t *to = &shape->dim[is_merged ? ADJ_MAX_RANK - 1 : i];
        if (size >= 0 && __builtin_mul_overflow(is_merged ? *to : 1, size, to))
            return import_fail(f, ADJ_ESHAPE, "input \"%s\": too many elements", info->name);
        if (size < 0)
            return import_fail(
                f, ADJ_ESHAPE,
                "input \"%s\": the size of axis %zu (\"%s\") is not known (expected a "
                "fixed size in the file, or %s)",
                info->name, i, name != NULL ? name : "",
                s->n_dim == 4 ? "--size HxW of train and compare; in C adj_onnx_opts.size or dim"
                              : "adj_onnx_opts.dim in C");
    }
    return 1;
}

const adj_tensor *known_input(const import *f, const char *name)
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
    const int is_float = adj_is_float(got.dtype) && adj_is_float(type.dtype);
    if (node == NULL || adj_node_graph(node) != f->g || !(is_float || got.dtype == type.dtype) ||
        !adj_shape_equal(got.shape, type.shape))
        return import_fail(f, ADJ_ESHAPE,
                           "input \"%s\": the given node does not fit (got %s %s, expected %s %s)",
                           v->name, adj_dtype_name(got.dtype), adj_shape_text(got.shape).s,
                           adj_dtype_name(type.dtype), adj_shape_text(type.shape).s);
    v->node = got.dtype != type.dtype ? adj_cast(node, type.dtype) : node;
    return v->node != NULL;
}

static int add_input(import *f, const Onnx__ValueInfoProto *info)
{
    if (info->name == NULL || info->name[0] == '\0')
        return import_fail(f, ADJ_EIO, "an input has no name");
    value *v = find_value(f, info->name);
    if (v != NULL && v->known != NULL)
        return 1; /* an initializer may be listed as an input, too */
    const adj_tensor *t = known_input(f, info->name);
    v = add_value(f, info->name);
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
        return import_fail(f, ADJ_EDTYPE, "input \"%s\": element type %s is not supported",
                           info->name, elem_name(v->elem));
    const adj_type type = {dtype_of_elem(f, v->elem), shape};
    v->is_merged = info->type->tensor_type->shape->n_dim > ADJ_MAX_RANK;
    v->is_rebatched = f->file_batch > 0 && f->o->batch > 0 && f->file_batch != f->o->batch;
    if (f->n_given < f->o->n_given)
        return take_given(f, v, type, f->o->given[f->n_given++]);
    v->node = adj_input(f->g, info->name, type.dtype, shape);
    return v->node != NULL;
}

/* True for a file of PyTorch's older exporter. */
static int is_traced(const import *f)
{
    const char *by = f->model->producer_name;
    return by != NULL && strcmp(by, "pytorch") == 0 && f->model->graph->n_metadata_props == 0;
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
    /* A number is a parameter if PyTorch's older exporter names no constant by it. */
    const int is_number = v->known->shape.rank == 0;
    v->is_initial = elem_is_float(v->elem) &&
                    (!is_number || (is_traced(f) && strncmp(t->name, "onnx::", 6) != 0));
    v->is_weight = v->is_initial;
    return 1;
}

int add_initializers(import *f, const Onnx__GraphProto *g)
{
    if (g->n_sparse_initializer > 0)
        return import_fail(f, ADJ_EARG, "sparse initializers are not supported");
    for (size_t i = 0; i < g->n_initializer; i++)
        if (!add_initializer(f, g->initializer[i]))
            return 0;
    return 1;
}

/* Gives an Identity of initial values a parameter of its own. PyTorch's older exporter stores a
 * tensor once if others equal it, such as copies of a layer, or the ones and zeros of all batch
 * norms before training. In files of others the values must all be equal. */
static int copy_initial(import *f, const Onnx__NodeProto *n)
{
    if (!is_op(n, "Identity") || n->n_input != 1 || n->n_output != 1 || n->input[0] == NULL ||
        n->output[0] == NULL)
        return 1;
    const value *from = find_value(f, n->input[0]);
    if (from == NULL || !from->is_weight || !(is_traced(f) || are_equal(from->known)))
        return 1;
    value *to = add_value(f, n->output[0]);
    if (to == NULL)
        return 0;
    to->elem = from->elem;
    to->known = from->known;
    to->is_weight = to->is_initial = 1;
    to->copied_by = n;
    return 1;
}

/* Counts the values of a graph and its branches. */
static void count_values(const Onnx__GraphProto *g, int64_t *n)
{
    *n += (int64_t)g->n_initializer + (int64_t)g->n_input;
    for (size_t i = 0; i < g->n_node; i++) {
        *n += (int64_t)g->node[i]->n_output + (int64_t)g->node[i]->n_input + 1;
        for (size_t k = 0; k < g->node[i]->n_attribute; k++)
            if (g->node[i]->attribute[k]->g != NULL)
                count_values(g->node[i]->attribute[k]->g, n);
    }
}

int add_values(import *f)
{
    const Onnx__GraphProto *g = f->model->graph;
    int64_t n = 0;
    count_values(g, &n);
    f->n_bucket = 16;
    while (f->n_bucket < 2 * (n + 1) && f->n_bucket < 1 << 30)
        f->n_bucket *= 2;
    f->value = import_alloc(f, f->n_bucket, sizeof *f->value);
    f->param = import_alloc(f, n + 1, sizeof *f->param);
    f->moved = import_alloc(f, n + 1, sizeof *f->moved);
    if (f->value == NULL || f->param == NULL || f->moved == NULL || !add_initializers(f, g))
        return 0;
    for (size_t i = 0; i < g->n_input; i++)
        if (!add_input(f, g->input[i]))
            return 0;
    int is_done = name_parameters(f);
    for (size_t i = 0; i < g->n_node && is_done; i++)
        is_done = copy_initial(f, g->node[i]);
    return is_done;
}

/* ---- a new last layer for another number of classes ----
 *
 * Its weights and bias get their new size before the nodes are imported. Their values are 0, and
 * value.c then initializes the weights at random. */

enum { MAX_SIZES = 8 };

/* The last layer, and the sizes of reshapes between it and the output. */
typedef struct {
    value *weight, *bias; /* bias NULL: none */
    int64_t axis;         /* axis of the weights that counts the classes */
    value *sizes[MAX_SIZES];
    int n_sizes;
} last_layer;

static const Onnx__NodeProto *producer_of(const import *f, const char *name)
{
    const Onnx__GraphProto *g = f->model->graph;
    for (size_t i = g->n_node; name != NULL && i-- > 0;)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            if (g->node[i]->output[k] != NULL && strcmp(g->node[i]->output[k], name) == 0)
                return g->node[i];
    return NULL;
}

/* Returns operand i if it is an initializer; else NULL. */
static value *initializer(import *f, const Onnx__NodeProto *n, size_t i)
{
    value *v = i < n->n_input && n->input[i] != NULL ? find_value(f, n->input[i]) : NULL;
    return v != NULL && v->known != NULL ? v : NULL;
}

/* Sets weights and bias of a layer. Returns 0 if the operator is no layer. */
static int take_layer(import *f, const Onnx__NodeProto *n, last_layer *l)
{
    const int is_matmul = is_op(n, "MatMul");
    if (!is_matmul && !is_op(n, "Conv") && !is_op(n, "Gemm"))
        return 0;
    l->weight = initializer(f, n, 1);
    if (!is_matmul && l->bias == NULL)
        l->bias = initializer(f, n, 2);
    l->axis = has_results_first(n) || l->weight == NULL ? 0 : l->weight->known->shape.rank - 1;
    return 1;
}

/* Returns the operand through which the classes come, having noted a bias or sizes; -1 for an
 * operator that does more than move them. */
static int classes_operand(import *f, const Onnx__NodeProto *n, last_layer *l)
{
    static const char *const ops[] = {"Softmax",     "LogSoftmax", "Identity", "Flatten",
                                      "Reshape",     "Squeeze",    "Dropout",  "Cast",
                                      "AveragePool", "ReduceMean", "Relu",     "GlobalAveragePool"};
    if (is_op(n, "Add") && n->n_input == 2 && l->bias == NULL) {
        const int is_first = initializer(f, n, 0) != NULL;
        l->bias = initializer(f, n, is_first ? 0 : 1);
        return l->bias != NULL ? is_first : -1;
    }
    value *sizes = is_op(n, "Reshape") ? initializer(f, n, 1) : NULL;
    if (sizes != NULL && l->n_sizes < MAX_SIZES)
        l->sizes[l->n_sizes++] = sizes;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (is_op(n, ops[i]) && n->n_input > 0)
            return 0;
    return -1;
}

/* Goes back from the output to the last layer. Returns 0 on failure. */
static int find_layer(import *f, last_layer *l)
{
    const Onnx__GraphProto *g = f->model->graph;
    const Onnx__NodeProto *n = g->n_output > 0 ? producer_of(f, g->output[0]->name) : NULL;
    for (size_t steps = 0; n != NULL && steps < g->n_node; steps++) {
        if (take_layer(f, n, l))
            break;
        const int next = classes_operand(f, n, l);
        if (next < 0)
            return import_fail(
                f, ADJ_EARG,
                "the last layer cannot be replaced: the output is computed by %s \"%s\" (expected "
                "Gemm, MatMul or Conv)",
                n->op_type != NULL ? n->op_type : "", n->name != NULL ? n->name : "");
        n = producer_of(f, n->input[next]);
    }
    const int is_weight =
        l->weight != NULL && l->weight->is_weight && l->weight->known->shape.rank >= 2;
    return is_weight ||
           import_fail(
               f, ADJ_EARG,
               "the last layer cannot be replaced: its weights are not an initializer of the file");
}

/* Gives the value another size along an axis, all zero. */
static int lengthen_axis(import *f, value *v, int64_t axis, int64_t size)
{
    adj_shape s = v->known->shape;
    s.dim[axis] = size;
    if ((v->known = new_numbers(f, v->elem, s)) == NULL)
        return 0;
    f->head[f->n_head++] = v;
    return 1;
}

/* Replaces the number of classes among the sizes of a reshape. */
static int resize_sizes(import *f, value *v, int64_t before)
{
    const numbers *from = v->known;
    numbers *to = new_numbers(f, v->elem, from->shape);
    for (int64_t i = 0; to != NULL && i < from->n; i++) {
        const double size = number_at(from, i);
        number_set(to, i, size == (double)before ? (double)f->o->classes : size);
    }
    v->known = to;
    return to != NULL;
}

int replace_head(import *f)
{
    last_layer l = {0};
    const int64_t classes = f->o->classes;
    if (classes == 0)
        return 1;
    if (classes < 0)
        return import_fail(f, ADJ_EARG, "classes (got %" PRId64 ", expected 0 or more)", classes);
    if (!find_layer(f, &l) || l.weight == NULL)
        return 0;
    const int64_t before = l.weight->known->shape.dim[l.axis];
    const adj_shape bias = l.bias != NULL ? l.bias->known->shape : (adj_shape){0};
    l.weight->is_random = 1;
    int is_done = lengthen_axis(f, l.weight, l.axis, classes);
    if (is_done && bias.rank > 0 && bias.dim[bias.rank - 1] == before)
        is_done = lengthen_axis(f, l.bias, bias.rank - 1, classes);
    for (int i = 0; is_done && i < l.n_sizes; i++)
        is_done = resize_sizes(f, l.sizes[i], before);
    return is_done;
}
