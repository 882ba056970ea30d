/* head.c - a new last layer for another number of classes. Its weights and bias get their new size
 * before the nodes are imported. Their values are 0, and value.c then initializes the weights at
 * random. */
#include <inttypes.h>
#include <string.h>

#include "import.h"

enum { MAX_SIZES = 8 };

/* The last layer, and the sizes of reshapes between it and the output. */
typedef struct {
    value *weight, *bias; /* bias NULL: none */
    int64_t axis;         /* of the weights, along the classes */
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

static int is_op(const Onnx__NodeProto *n, const char *op)
{
    return n->op_type != NULL && strcmp(n->op_type, op) == 0;
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
    const int is_matmul = is_op(n, "MatMul"), is_conv = is_op(n, "Conv");
    if (!is_matmul && !is_conv && !is_op(n, "Gemm"))
        return 0;
    l->weight = initializer(f, n, 1);
    if (!is_matmul && l->bias == NULL)
        l->bias = initializer(f, n, 2);
    const int is_turned = is_conv || attr_int(&(call){.proto = n}, "transB", 0) != 0;
    l->axis = is_turned || l->weight == NULL ? 0 : l->weight->known->shape.rank - 1;
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
static int resize(import *f, value *v, int64_t axis, int64_t size)
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
    int is_done = resize(f, l.weight, l.axis, classes);
    if (is_done && bias.rank > 0 && bias.dim[bias.rank - 1] == before)
        is_done = resize(f, l.bias, bias.rank - 1, classes);
    for (int i = 0; is_done && i < l.n_sizes; i++)
        is_done = resize_sizes(f, l.sizes[i], before);
    return is_done;
}
