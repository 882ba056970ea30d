/* model_maker.c - see model_maker.h. */
#include "model_maker.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void maker_start(maker *m, int64_t opset)
{
    memset(m, 0, sizeof *m);
    onnx__model_proto__init(&m->model);
    onnx__graph_proto__init(&m->graph);
    onnx__operator_set_id_proto__init(&m->opset);
    m->opset.has_version = 1;
    m->opset.version = opset;
    m->opsets[0] = &m->opset;
    m->model.opset_import = m->opsets;
    m->model.n_opset_import = 1;
    m->model.graph = &m->graph;
    m->graph.node = m->nodes;
    m->graph.initializer = m->tensors;
    m->graph.input = m->inputs;
    m->graph.output = m->outputs;
}

static Onnx__ValueInfoProto *add_info(maker *m, const char *name)
{
    Onnx__ValueInfoProto *info = &m->info[m->n_info++];
    onnx__value_info_proto__init(info);
    info->name = (char *)name;
    return info;
}

void maker_input(maker *m, const char *name, int rank, const int64_t sizes[])
{
    const int k = m->n_info;
    Onnx__ValueInfoProto *info = add_info(m, name);
    onnx__type_proto__init(&m->type[k]);
    onnx__type_proto__tensor__init(&m->of[k]);
    onnx__tensor_shape_proto__init(&m->shape[k]);
    info->type = &m->type[k];
    m->type[k].value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    m->type[k].tensor_type = &m->of[k];
    m->of[k].has_elem_type = 1;
    m->of[k].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    m->of[k].shape = &m->shape[k];
    m->shape[k].dim = &m->dims[m->n_dim];
    m->shape[k].n_dim = (size_t)rank;
    for (int i = 0; i < rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = &m->dim[m->n_dim];
        m->dims[m->n_dim++] = d;
        onnx__tensor_shape_proto__dimension__init(d);
        d->value_case = sizes[i] < 0 ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                     : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (sizes[i] < 0)
            d->dim_param = (char *)"batch";
        else
            d->dim_value = sizes[i];
    }
    m->inputs[m->graph.n_input++] = info;
}

void maker_output(maker *m, const char *name)
{
    m->outputs[m->graph.n_output++] = add_info(m, name);
}

void maker_x_to_y(maker *m, int64_t opset, int rank, const int64_t sizes[])
{
    maker_start(m, opset);
    maker_input(m, "x", rank, sizes);
    maker_output(m, "y");
}

static Onnx__TensorProto *add_tensor(maker *m, const char *name)
{
    Onnx__TensorProto *t = &m->tensor[m->graph.n_initializer];
    m->tensors[m->graph.n_initializer++] = t;
    onnx__tensor_proto__init(t);
    t->name = (char *)name;
    t->has_data_type = 1;
    return t;
}

Onnx__TensorProto *maker_floats(maker *m, const char *name, int rank, int64_t sizes[],
                                float values[])
{
    Onnx__TensorProto *t = add_tensor(m, name);
    t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    t->dims = sizes;
    t->n_dims = (size_t)rank;
    t->float_data = values;
    t->n_float_data = 1;
    for (int i = 0; i < rank; i++)
        t->n_float_data *= (size_t)sizes[i];
    return t;
}

Onnx__TensorProto *maker_ints(maker *m, const char *name, int64_t n, int64_t *count,
                              int64_t values[])
{
    Onnx__TensorProto *t = add_tensor(m, name);
    *count = n;
    t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    t->dims = count;
    t->n_dims = 1;
    t->int64_data = values;
    t->n_int64_data = (size_t)n;
    return t;
}

/* Splits names at spaces; "-" is an operand left out. */
static size_t split(maker *m, const char *text, char ***list)
{
    static char kept[64][32];
    size_t n = 0;
    *list = &m->names[m->n_name];
    while (*text != '\0') {
        const size_t length = strcspn(text, " ");
        char *name = kept[m->n_name];
        snprintf(name, sizeof kept[0], "%.*s", (int)length, text[0] == '-' ? "" : text);
        m->names[m->n_name++] = name;
        text += length + (text[length] == ' ');
        n++;
    }
    return n;
}

Onnx__NodeProto *maker_node(maker *m, const char *op, const char *inputs, const char *outputs)
{
    Onnx__NodeProto *n = &m->node[m->graph.n_node];
    m->nodes[m->graph.n_node++] = n;
    onnx__node_proto__init(n);
    n->op_type = (char *)op;
    n->name = (char *)outputs;
    n->n_input = split(m, inputs, &n->input);
    n->n_output = split(m, outputs, &n->output);
    n->attribute = &m->attributes[m->n_attribute];
    return n;
}

static Onnx__AttributeProto *add_attribute(maker *m, const char *name)
{
    Onnx__AttributeProto *a = &m->attribute[m->n_attribute];
    m->attributes[m->n_attribute++] = a;
    onnx__attribute_proto__init(a);
    a->name = (char *)name;
    a->has_type = 1;
    m->node[m->graph.n_node - 1].n_attribute++;
    return a;
}

Onnx__AttributeProto *maker_int(maker *m, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = add_attribute(m, name);
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    a->has_i = 1;
    a->i = value;
    return a;
}

Onnx__AttributeProto *maker_float(maker *m, const char *name, float value)
{
    Onnx__AttributeProto *a = add_attribute(m, name);
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    a->has_f = 1;
    a->f = value;
    return a;
}

Onnx__AttributeProto *maker_word(maker *m, const char *name, const char *value)
{
    Onnx__AttributeProto *a = add_attribute(m, name);
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    a->has_s = 1;
    a->s.data = (uint8_t *)value;
    a->s.len = strlen(value);
    return a;
}

Onnx__AttributeProto *maker_list(maker *m, const char *name, int n, int64_t values[])
{
    Onnx__AttributeProto *a = add_attribute(m, name);
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    a->n_ints = (size_t)n;
    a->ints = values;
    return a;
}

void maker_write(const maker *m, const char *path)
{
    const size_t n = onnx__model_proto__get_packed_size(&m->model);
    uint8_t *bytes = malloc(n + 1);
    onnx__model_proto__pack(&m->model, bytes);
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    free(bytes);
}
