/* model_text.c - see model_text.h. A parser by recursive descent; every list has room for a fixed
 * number of items. */
#include "model_text.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 64 };

static char source[1024]; /* the text */
static const char *rest;  /* rest of the text, to be parsed */

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    cr_assert_not_null(p);
    return p;
}

static void skip_spaces(void) { rest += strspn(rest, " \n"); }

static int next_is(char c)
{
    skip_spaces();
    return *rest == c;
}

static int accept(char c)
{
    const int is_there = next_is(c);
    rest += is_there;
    return is_there;
}

static void expect_char(char c) { cr_assert(accept(c), "expected %c: %s", c, rest); }

static char *parse_word(void)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    skip_spaces();
    const size_t n = strspn(rest, letters);
    char *word = strndup(rest, n);
    rest += n;
    return word;
}

static int64_t parse_int(void)
{
    char *end;
    const int64_t value = strtoll(rest, &end, 10);
    cr_assert_neq(end, rest, "expected an integer: %s", rest);
    rest = end;
    return value;
}

static double parse_float(void)
{
    char *end;
    const double value = strtod(rest, &end);
    cr_assert_neq(end, rest, "expected a number: %s", rest);
    rest = end;
    return value;
}

/* Parses names up to a bracket. Returns their number. */
static size_t parse_names(char ***names, char end)
{
    size_t n = 0;
    *names = zeros(ROOM, sizeof **names);
    while (!accept(end)) {
        cr_assert_lt(n, ROOM, "%s", rest);
        (*names)[n++] = parse_word();
        (void)accept(',');
    }
    return n;
}

/* ---- types ---- */

typedef struct {
    int32_t element;
    size_t rank;
    int64_t size[8]; /* -1: the symbolic "batch" */
} type;

static type parse_type(void)
{
    static const struct {
        const char *name;
        int32_t element;
    } elements[] = {{"float", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT},
                    {"float16", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16},
                    {"int8", ONNX__TENSOR_PROTO__DATA_TYPE__INT8},
                    {"int64", ONNX__TENSOR_PROTO__DATA_TYPE__INT64},
                    {"string", ONNX__TENSOR_PROTO__DATA_TYPE__STRING}};
    char *name = parse_word();
    type t = {.rank = 0};
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(elements[i].name, name) == 0)
            t.element = elements[i].element;
    cr_assert_neq(t.element, 0, "unknown type %s: %s", name, rest);
    free(name);
    for (int is_more = accept('['); is_more; is_more = !accept(']')) {
        const int is_batch = next_is('b');
        t.size[t.rank++] = is_batch ? -1 : parse_int();
        if (is_batch)
            free(parse_word());
        (void)accept(',');
    }
    return t;
}

static Onnx__ValueInfoProto *parse_input(void)
{
    const type t = parse_type();
    Onnx__ValueInfoProto *info = zeros(1, sizeof *info);
    onnx__value_info_proto__init(info);
    info->name = parse_word();
    info->type = zeros(1, sizeof *info->type);
    onnx__type_proto__init(info->type);
    info->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    Onnx__TypeProto__Tensor *tensor = info->type->tensor_type = zeros(1, sizeof *tensor);
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = 1;
    tensor->elem_type = t.element;
    tensor->shape = zeros(1, sizeof *tensor->shape);
    onnx__tensor_shape_proto__init(tensor->shape);
    tensor->shape->n_dim = t.rank;
    tensor->shape->dim = zeros(t.rank, sizeof *tensor->shape->dim);
    for (size_t i = 0; i < t.rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = tensor->shape->dim[i] = zeros(1, sizeof *d);
        onnx__tensor_shape_proto__dimension__init(d);
        d->value_case = t.size[i] < 0 ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                      : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (t.size[i] < 0)
            d->dim_param = strdup("batch");
        else
            d->dim_value = t.size[i];
    }
    return info;
}

/* Parses values up to the bracket. Returns their number. */
static size_t parse_values(Onnx__TensorProto *w)
{
    size_t n = 0;
    for (expect_char('{'); !accept('}'); n++) {
        cr_assert_lt(n, ROOM, "%s", rest);
        if (w->float_data != NULL)
            w->float_data[n] = (float)parse_float();
        else if (w->int64_data != NULL)
            w->int64_data[n] = parse_int();
        else
            w->int32_data[n] = (int32_t)parse_int();
        (void)accept(',');
    }
    return n;
}

static Onnx__TensorProto *parse_initializer(void)
{
    const type t = parse_type();
    Onnx__TensorProto *w = zeros(1, sizeof *w);
    onnx__tensor_proto__init(w);
    w->name = parse_word();
    w->has_data_type = 1;
    w->data_type = t.element;
    w->n_dims = t.rank;
    w->dims = zeros(t.rank, sizeof *w->dims);
    memcpy(w->dims, t.size, t.rank * sizeof *w->dims);
    const int has_values = accept('=');
    size_t n = has_values ? ROOM : 1;
    for (size_t i = 0; i < t.rank && !has_values; i++)
        n *= (size_t)t.size[i];
    switch (t.element) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT: w->float_data = zeros(n, sizeof(float)); break;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64: w->int64_data = zeros(n, sizeof(int64_t)); break;
    default: w->int32_data = zeros(n, sizeof(int32_t));
    }
    if (has_values)
        n = parse_values(w);
    w->n_float_data = w->float_data != NULL ? n : 0;
    w->n_int64_data = w->int64_data != NULL ? n : 0;
    w->n_int32_data = w->int32_data != NULL ? n : 0;
    return w;
}

/* ---- nodes ---- */

static Onnx__GraphProto *parse_graph(void);

static Onnx__AttributeProto *parse_attribute(void)
{
    Onnx__AttributeProto *a = zeros(1, sizeof *a);
    onnx__attribute_proto__init(a);
    a->name = parse_word();
    a->has_type = 1;
    expect_char('=');
    if (next_is('(')) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
        a->g = parse_graph();
    } else if (accept('[')) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        for (a->ints = zeros(ROOM, sizeof *a->ints); !accept(']'); (void)accept(','))
            a->ints[a->n_ints++] = parse_int();
    } else if (strspn(rest, "-0123456789") == 0) {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        a->has_s = 1;
        a->s.data = (uint8_t *)parse_word();
        a->s.len = strlen((const char *)a->s.data);
    } else if (rest[strspn(rest, "-0123456789")] == '.') {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        a->has_f = 1;
        a->f = (float)parse_float();
    } else {
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        a->has_i = 1;
        a->i = parse_int();
    }
    return a;
}

static Onnx__NodeProto *parse_node(void)
{
    Onnx__NodeProto *n = zeros(1, sizeof *n);
    onnx__node_proto__init(n);
    n->n_output = parse_names(&n->output, '=');
    n->name = strdup(n->output[0]);
    n->op_type = parse_word();
    n->attribute = zeros(ROOM, sizeof *n->attribute);
    if (accept('<'))
        for (; !accept('>'); (void)accept(','))
            n->attribute[n->n_attribute++] = parse_attribute();
    expect_char('(');
    n->n_input = parse_names(&n->input, ')');
    return n;
}

static Onnx__GraphProto *parse_graph(void)
{
    Onnx__GraphProto *g = zeros(1, sizeof *g);
    char **outputs;
    onnx__graph_proto__init(g);
    g->input = zeros(ROOM, sizeof *g->input);
    g->output = zeros(ROOM, sizeof *g->output);
    g->initializer = zeros(ROOM, sizeof *g->initializer);
    g->node = zeros(ROOM, sizeof *g->node);
    for (expect_char('('); !accept(')'); (void)accept(','))
        g->input[g->n_input++] = parse_input();
    expect_char('=');
    expect_char('>');
    expect_char('(');
    g->n_output = parse_names(&outputs, ')');
    for (size_t i = 0; i < g->n_output; i++) {
        g->output[i] = zeros(1, sizeof *g->output[i]);
        onnx__value_info_proto__init(g->output[i]);
        g->output[i]->name = outputs[i];
    }
    free(outputs);
    if (accept('<'))
        for (; !accept('>'); (void)accept(','))
            g->initializer[g->n_initializer++] = parse_initializer();
    for (expect_char('{'); !accept('}');)
        g->node[g->n_node++] = parse_node();
    return g;
}

/* ---- models ---- */

static Onnx__ModelProto *parse_model(int64_t opset)
{
    Onnx__ModelProto *m = zeros(1, sizeof *m);
    rest = source;
    onnx__model_proto__init(m);
    m->n_opset_import = 1;
    m->opset_import = zeros(1, sizeof *m->opset_import);
    m->opset_import[0] = zeros(1, sizeof *m->opset_import[0]);
    onnx__operator_set_id_proto__init(m->opset_import[0]);
    m->opset_import[0]->has_version = 1;
    m->opset_import[0]->version = opset;
    m->graph = parse_graph();
    cr_assert(next_is('\0'), "expected the end: %s", rest);
    return m;
}

Onnx__ModelProto *model_of(int64_t opset, const char *text)
{
    return model_with(opset, "%s", text);
}

Onnx__ModelProto *model_with(int64_t opset, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(source, sizeof source, format, values);
    va_end(values);
    cr_assert_lt(n, (int)sizeof source);
    return parse_model(opset);
}

const char *model_source(void) { return source; }

Onnx__TensorProto *initializer_of(const Onnx__ModelProto *m, const char *name)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (strcmp(m->graph->initializer[i]->name, name) == 0)
            return m->graph->initializer[i];
    cr_assert_fail("no initializer %s", name);
    return NULL;
}

void write_model(Onnx__ModelProto *m, const char *path)
{
    const size_t n = onnx__model_proto__get_packed_size(m);
    uint8_t *bytes = malloc(n + 1);
    onnx__model_proto__pack(m, bytes);
    FILE *f = fopen(path, "wb");
    cr_assert(f != NULL && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    free(bytes);
    onnx__model_proto__free_unpacked(m, NULL);
}
