/* text.c - see text.h.
 *
 * The options are written down by a table. op_text_of tries them: built again, the node has to come
 * out. So what the table does not know is refused, never written wrongly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "adjoint_ext.h"
#include "text.h"

/* ---- lists ---- */

static void add_integer(char *list, size_t size, int64_t v)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%lld", used > 0 ? "," : "", (long long)v);
}

void write_real(char text[REAL_TEXT], double v)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, REAL_TEXT, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            return;
    }
}

static void add_real(char *list, size_t size, double v)
{
    char text[REAL_TEXT];
    size_t used = strlen(list);
    write_real(text, v);
    snprintf(list + used, size - used, "%s%s", used > 0 ? "," : "", text);
}

static const char *write_shape(char *list, size_t size, adj_shape shape)
{
    list[0] = '\0';
    for (int i = 0; i < shape.rank; i++)
        add_integer(list, size, shape.dim[i]);
    if (shape.rank == 0)
        snprintf(list, size, "scalar");
    return list;
}

static const char *write_four(char *list, size_t size, const int64_t v[4])
{
    return write_shape(list, size, (adj_shape){4, {v[0], v[1], v[2], v[3]}});
}

static void real(op_text *t, double v) { add_real(t->attr, sizeof t->attr, v); }
static void integer(op_text *t, int64_t v) { add_integer(t->attr, sizeof t->attr, v); }
static void sizes(op_text *t, adj_shape s)
{
    for (int i = 0; i < s.rank; i++)
        integer(t, s.dim[i]);
}

/* ---- attributes ---- */

static void write_format(op_text *t, adj_format format)
{
    t->args.data_format = format == ADJ_NCHW ? "NCHW" : NULL;
}

static void write_padding(op_text *t, adj_padding padding, const int64_t pad[4][2])
{
    static const char *const words[] = {
        [ADJ_VALID] = "VALID", [ADJ_SAME] = "SAME", [ADJ_EXPLICIT] = "EXPLICIT"};
    t->args.padding = padding != ADJ_SAME ? words[padding] : NULL; /* the tool's default */
    if (padding != ADJ_EXPLICIT)
        return;
    t->pads[0] = '\0';
    for (int i = 0; i < 8; i++)
        add_integer(t->pads, sizeof t->pads, pad[i / 2][i % 2]);
    t->args.explicit_paddings = t->pads;
}

/* NULL, the default, where all are 1. */
static const char *write_steps(char *list, size_t size, const int64_t v[4])
{
    int ones = v[0] == 1 && v[1] == 1 && v[2] == 1 && v[3] == 1;
    return ones ? NULL : write_four(list, size, v);
}

void op_text_conv(op_text *t, const adj_conv *a)
{
    t->args.strides = write_steps(t->strides, sizeof t->strides, a->stride);
    t->args.dilations = write_steps(t->dilations, sizeof t->dilations, a->dilation);
    write_padding(t, a->padding, a->pad);
    write_format(t, a->format);
}

void op_text_pool(op_text *t, const adj_pool *a)
{
    t->args.ksize = write_four(t->ksize, sizeof t->ksize, a->ksize);
    t->args.strides = write_four(t->strides, sizeof t->strides, a->stride);
    write_padding(t, a->padding, a->pad);
    write_format(t, a->format);
}

static void write_conv(const adj_node *n, op_text *t)
{
    op_text_conv(t, &((const adj_conv_attrs *)n->attrs)->conv);
}
static void write_pool(const adj_node *n, op_text *t)
{
    op_text_pool(t, &((const adj_pool_attrs *)n->attrs)->pool);
}
static void write_resize(const adj_node *n, op_text *t)
{
    const adj_resize_attrs *a = n->attrs;
    write_format(t, (adj_format)a->format);
    integer(t, a->oh);
    integer(t, a->ow);
    integer(t, a->mode);
    integer(t, a->coordinates);
}
static void write_bias(const adj_node *n, op_text *t)
{
    write_format(t, ((const adj_format_attrs *)n->attrs)->format);
}

static void write_prelu(const adj_node *n, op_text *t)
{
    write_format(t, ((const adj_prelu_attrs *)n->attrs)->format);
    integer(t, ((const adj_prelu_attrs *)n->attrs)->slopes);
}

static int is_made_by(const adj_node *n, int operand, const adj_op *op)
{
    return operand < n->n_in && n->in[operand]->op == op;
}

static void write_batch_norm(const adj_node *n, op_text *t)
{
    const adj_batch_norm_attrs *a = n->attrs;
    write_format(t, a->format);
    real(t, a->epsilon);
    integer(t, !(is_made_by(n, 1, &adj_op_batch_norm_stats) && n->in[1]->in[0] == n->in[0]));
    if (n->op == &adj_op_batch_norm_grad)
        integer(t, is_made_by(n, 4, &adj_op_batch_norm_grad_sums) && n->in[4]->in[2] == n->in[3]);
}

static void write_group_norm(const adj_node *n, op_text *t)
{
    const adj_group_norm_attrs *a = n->attrs;
    write_format(t, (adj_format)a->format);
    real(t, a->epsilon);
    integer(t, a->groups);
}

static void write_value(const adj_node *n, op_text *t)
{
    real(t, ((const adj_value_attrs *)n->attrs)->value);
}
static void write_clip(const adj_node *n, op_text *t)
{
    real(t, ((const adj_clip_attrs *)n->attrs)->min);
    real(t, ((const adj_clip_attrs *)n->attrs)->max);
}
static void write_gelu(const adj_node *n, op_text *t)
{
    integer(t, ((const adj_gelu_attrs *)n->attrs)->form);
}
static void write_fill(const adj_node *n, op_text *t)
{
    real(t, ((const adj_fill_attrs *)n->attrs)->value);
}
static void write_cast(const adj_node *n, op_text *t)
{
    snprintf(t->attr, sizeof t->attr, "%s", adj_dtype_name(n->type.dtype));
}
static void write_matmul(const adj_node *n, op_text *t)
{
    const adj_matmul_attrs *a = n->attrs;
    integer(t, a->transpose_a);
    integer(t, a->transpose_b);
}
static void write_result_shape(const adj_node *n, op_text *t) { sizes(t, n->type.shape); }
static void write_transpose(const adj_node *n, op_text *t)
{
    for (int i = 0; i < n->type.shape.rank; i++)
        integer(t, ((const adj_transpose_attrs *)n->attrs)->perm[i]);
}
static void write_axis(const adj_node *n, op_text *t)
{
    integer(t, ((const adj_axis_attrs *)n->attrs)->axis);
}
static void write_range(const adj_node *n, op_text *t)
{
    sizes(t, ((const adj_range_attrs *)n->attrs)->a);
    sizes(t, ((const adj_range_attrs *)n->attrs)->b);
}
static void write_reduce(const adj_node *n, op_text *t)
{
    const adj_reduce_attrs *a = n->attrs;
    for (int i = 0; i < ADJ_MAX_RANK; i++)
        if (a->axes >> i & 1)
            integer(t, i);
    integer(t, a->keep_dims);
}
static void write_dropout(const adj_node *n, op_text *t)
{
    const adj_dropout_attrs *a = n->attrs;
    real(t, a->rate);
    real(t, (double)a->seed);
}
static void write_momentum(const adj_node *n, op_text *t)
{
    real(t, ((const adj_decay_attrs *)n->attrs)->mu);
    real(t, ((const adj_decay_attrs *)n->attrs)->decay);
}
static void write_decay(const adj_node *n, op_text *t)
{
    real(t, ((const adj_decay_attrs *)n->attrs)->decay);
}
static void write_adam(const adj_node *n, op_text *t)
{
    const adj_adam_attrs *a = n->attrs;
    real(t, a->beta1);
    real(t, a->beta2);
    real(t, a->epsilon);
    real(t, a->decay);
}

/* ---- the ops whose options are not just --in, the first operand's shape ---- */

enum { RESULT = -1, NONE = -2 };

typedef struct {
    const adj_op *op;
    int in, filter; /* operands whose shapes --in and --filter are */
    void (*attrs)(const adj_node *n, op_text *t);
} writer;

static const writer writers[] = {
    {&adj_op_conv2d, 0, 1, write_conv},
    {&adj_op_conv2d_backprop_input, RESULT, 0, write_conv},
    {&adj_op_conv2d_backprop_filter, 0, RESULT, write_conv},
    {&adj_op_depthwise_conv2d_native, 0, 1, write_conv},
    {&adj_op_depthwise_conv2d_native_backprop_input, RESULT, 0, write_conv},
    {&adj_op_depthwise_conv2d_native_backprop_filter, 0, RESULT, write_conv},
    {&adj_op_max_pool, 0, NONE, write_pool},
    {&adj_op_max_pool_grad, 0, NONE, write_pool},
    {&adj_op_max_pool_grad_grad, 0, NONE, write_pool},
    {&adj_op_avg_pool, 0, NONE, write_pool},
    {&adj_op_avg_pool_grad, RESULT, NONE, write_pool},
    {&adj_op_resize, 0, NONE, write_resize},
    {&adj_op_resize_grad, RESULT, NONE, write_resize},
    {&adj_op_bias_add, 0, NONE, write_bias},
    {&adj_op_bias_add_grad, 0, NONE, write_bias},
    {&adj_op_prelu, 0, 1, write_bias},
    {&adj_op_prelu_grad, 0, 2, write_bias},
    {&adj_op_prelu_grad_slope, 0, NONE, write_prelu},
    {&adj_op_batch_norm_stats, 0, NONE, write_bias},
    {&adj_op_batch_norm, 0, NONE, write_batch_norm},
    {&adj_op_batch_norm_grad_sums, 0, NONE, write_batch_norm},
    {&adj_op_batch_norm_grad, 0, NONE, write_batch_norm},
    {&adj_op_group_norm, 0, NONE, write_group_norm},
    {&adj_op_group_norm_grad_sums, 0, NONE, write_group_norm},
    {&adj_op_group_norm_grad, 0, NONE, write_group_norm},
    {&adj_op_leaky_relu, 0, NONE, write_value},
    {&adj_op_leaky_relu_grad, 0, 1, write_value},
    {&adj_op_elu, 0, NONE, write_value},
    {&adj_op_elu_grad, 0, 1, write_value},
    {&adj_op_gelu, 0, NONE, write_gelu},
    {&adj_op_gelu_grad, 0, 1, write_gelu},
    {&adj_op_clip, 0, NONE, write_clip},
    {&adj_op_clip_grad, 0, 1, write_clip},
    {&adj_op_scale, 0, NONE, write_value},
    {&adj_op_ema, 0, NONE, write_value},
    {&adj_op_softmax_cross_entropy, 0, NONE, write_value},
    {&adj_op_softmax_cross_entropy_grad, 0, NONE, write_value},
    {&adj_op_sparse_softmax_cross_entropy, 0, NONE, write_value},
    {&adj_op_sparse_softmax_cross_entropy_grad, 0, NONE, write_value},
    {&adj_op_fill, RESULT, NONE, write_fill},
    {&adj_op_cast, 0, NONE, write_cast},
    {&adj_op_matmul, 0, 1, write_matmul},
    {&adj_op_reshape, 0, NONE, write_result_shape},
    {&adj_op_broadcast_to, 0, NONE, write_result_shape},
    {&adj_op_transpose, 0, NONE, write_transpose},
    {&adj_op_concat, 0, 1, write_axis},
    {&adj_op_pad, 0, NONE, write_range},
    {&adj_op_slice, 0, NONE, write_range},
    {&adj_op_reduce_sum, 0, NONE, write_reduce},
    {&adj_op_reduce_mean, 0, NONE, write_reduce},
    {&adj_op_reduce_max, 0, NONE, write_reduce},
    {&adj_op_dropout, 0, NONE, write_dropout},
    {&adj_op_momentum, 0, NONE, write_momentum},
    {&adj_op_sgd_step, 0, NONE, write_decay},
    {&adj_op_adam_step, 0, NONE, write_adam},
};

static writer writer_of(const adj_node *n)
{
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (writers[i].op == n->op)
            return writers[i];
    int is_binary = n->n_in == 2 && (n->op->flags & ADJ_OP_ELEMENTWISE);
    return (writer){.in = 0, .filter = is_binary ? 1 : NONE};
}

static adj_shape shape_of(const adj_node *n, int operand)
{
    return operand == RESULT ? n->type.shape : n->in[operand]->type.shape;
}

int op_text_write(const adj_node *n, op_text *t)
{
    *t = (op_text){.args = {.op = ""}};
    if (n == NULL || (n->n_in == 0 && n->op != &adj_op_fill))
        return 0;
    writer w = writer_of(n);
    adj_dtype dtype = n->type.dtype;
    if (n->n_in > 0 && adj_is_float(n->in[0]->type.dtype))
        dtype = n->in[0]->type.dtype;
    t->args = (op_args){.op = n->op->name};
    if (adj_is_float(dtype) && dtype != ADJ_F32)
        t->args.dtype = adj_dtype_name(dtype);
    if (w.attrs != NULL)
        w.attrs(n, t);
    t->args.attr = t->attr[0] != '\0' ? t->attr : NULL;
    t->has_filter = w.filter != NONE;
    op_text_shapes(t, shape_of(n, w.in), t->has_filter ? shape_of(n, w.filter) : (adj_shape){0});
    return 1;
}

void op_text_shapes(op_text *t, adj_shape in, adj_shape filter)
{
    t->in_shape = in;
    t->filter_shape = filter;
    t->args.in = write_shape(t->in, sizeof t->in, in);
    t->args.filter = t->has_filter ? write_shape(t->filter, sizeof t->filter, filter) : NULL;
}

void op_text_copy(op_text *to, const op_text *t)
{
    const struct {
        const char **word;
        const char *text;
    } words[] = {{&to->args.in, to->in},           {&to->args.filter, to->filter},
                 {&to->args.strides, to->strides}, {&to->args.dilations, to->dilations},
                 {&to->args.ksize, to->ksize},     {&to->args.explicit_paddings, to->pads},
                 {&to->args.attr, to->attr}};
    *to = *t;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (*words[i].word != NULL)
            *words[i].word = words[i].text;
}

int op_text_of(const adj_node *n, op_text *t)
{
    char message[256];
    if (!op_text_write(n, t))
        return 0;
    adj_graph *g = adj_graph_new();
    int same =
        g != NULL && adj_gradcheck_same(n, op_args_build(&t->args, g, message, sizeof message));
    adj_graph_free(g);
    return same;
}
