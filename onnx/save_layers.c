/* save_layers.c - layers with weights in an ONNX file: convolutions, products, biases, norms. */
#include <math.h>

#include "save.h"
#include "shared.h"

/* ---- convolutions ---- */

void set_windows(writer *w, Onnx__NodeProto *p, const adj_conv_geom *g, int has_dilations)
{
    set_ints(w, p, "kernel_shape", 2, (int64_t[]){g->kh, g->kw});
    set_ints(w, p, "strides", 2, (int64_t[]){g->sh, g->sw});
    if (has_dilations)
        set_ints(w, p, "dilations", 2, (int64_t[]){g->dh, g->dw});
    set_ints(w, p, "pads", 4, (int64_t[]){g->pt, g->pl, g->pb, g->pr});
}

static const adj_conv_geom *geom_of(const adj_node *n)
{
    return &((const adj_conv_attrs *)n->attrs)->geom;
}

/* Writes the filter of a convolution as [out, in / groups, kh, kw]; of a depthwise one as [out, 1,
 * kh, kw]. */
static const char *filter_name(writer *w, const adj_node *conv)
{
    const int dense[] = {3, 2, 0, 1}, depthwise[] = {2, 3, 0, 1};
    const adj_node *filter = conv->in[conv->op == &adj_op_conv2d_backprop_input ? 0 : 1];
    const adj_shape s = dims(filter);
    if (conv->op == &adj_op_depthwise_conv2d_native)
        return arranged(w, filter, depthwise,
                        (adj_shape){4, {s.dim[2] * s.dim[3], 1, s.dim[0], s.dim[1]}});
    return arranged(w, filter, dense, (adj_shape){4, {s.dim[3], s.dim[2], s.dim[0], s.dim[1]}});
}

static int is_nhwc_geom(const adj_conv_geom *g) { return g->format == ADJ_NHWC; }

static void set_conv(writer *w, Onnx__NodeProto *p, const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    set_windows(w, p, g, 1);
    set_int(w, p, "group", n->op == &adj_op_depthwise_conv2d_native ? g->ic : g->groups);
}

/* Writes a convolution; sum: the bias added to it, which becomes its operand B, or NULL. */
static void write_conv(writer *w, const adj_node *n, const adj_node *sum)
{
    const int is_transposed = n->op == &adj_op_conv2d_backprop_input;
    const adj_conv_geom *g = geom_of(n);
    const int form = is_nhwc_geom(g);
    const char *in[] = {in_form(w, n->in[is_transposed], form), NULL, NULL, NULL};
    in[1] = filter_name(w, n);
    if (sum != NULL)
        in[2] = arranged(w, sum->in[1], axes_in_order, dims(sum->in[1]));
    Onnx__NodeProto *p = emit(w, is_transposed ? "ConvTranspose" : "Conv", in,
                              result(w, sum != NULL ? sum : n, form));
    set_conv(w, p, n);
    if (is_transposed) {
        const int64_t reach_h = (g->kh - 1) * g->dh + 1, reach_w = (g->kw - 1) * g->dw + 1;
        const int64_t rest_h = g->ih + g->pt + g->pb - ((g->oh - 1) * g->sh + reach_h);
        const int64_t rest_w = g->iw + g->pl + g->pr - ((g->ow - 1) * g->sw + reach_w);
        set_ints(w, p, "output_padding", 2, (int64_t[]){rest_h, rest_w});
    }
}

/* A convolution, or the gradient of one with respect to its input, as a layer. */
void save_conv(writer *w, const adj_node *n) { write_conv(w, n, NULL); }

/* ---- bias, products ---- */

int can_join(writer *w, const adj_node *n)
{
    const adj_node *layer = n->op == &adj_op_bias_add ? n->in[0] : NULL;
    if (layer == NULL || w->of[layer->id].readers != 1 || stored(n->in[1]) == NULL)
        return 0;
    return (layer->op == &adj_op_conv2d || layer->op == &adj_op_depthwise_conv2d_native ||
            layer->op == &adj_op_conv2d_backprop_input) &&
           geom_of(layer)->format == ((const adj_format_attrs *)n->attrs)->format;
}

/* A bias that no convolution takes is added; the parameter is a list in the file, too. */
void save_bias_add(writer *w, const adj_node *n)
{
    if (w->of[n->id].is_folded) {
        write_conv(w, n->in[0], n);
        return;
    }
    const int is_nhwc = ((const adj_format_attrs *)n->attrs)->format == ADJ_NHWC;
    const int64_t sizes[] = {dims(n->in[1]).dim[0], 1, 1, 1, 1, 1};
    const int form = is_nhwc && is_turned(w, n->in[0]);
    const int rank = form || !is_nhwc ? (int)dims(n).rank - 1 : 1;
    const char *x = in_form(w, n->in[0], form);
    const char *bias = arranged(w, n->in[1], axes_in_order, dims(n->in[1]));
    if (rank > 1) {
        const char *list = bias;
        emit2(w, "Reshape", list, ints(w, rank, sizes), bias = fresh_name(w));
    }
    emit2(w, "Add", x, bias, result(w, n, form));
}

void save_matmul(writer *w, const adj_node *n)
{
    const adj_matmul_attrs *a = n->attrs;
    Onnx__NodeProto *p = emit2(w, a->transpose_a || a->transpose_b ? "Gemm" : "MatMul",
                               plain(w, n->in[0]), plain(w, n->in[1]), result(w, n, 0));
    if (a->transpose_a)
        set_int(w, p, "transA", 1);
    if (a->transpose_b)
        set_int(w, p, "transB", 1);
}

/* Returns x [count, m, k] if n is row i of it as [m, k]; else NULL. */
static const adj_node *whole_of(const adj_node *n, int64_t i, int64_t count)
{
    const adj_node *part = n->op == &adj_op_reshape ? n->in[0] : NULL;
    if (part == NULL || part->op != &adj_op_slice || dims(part).rank != 3)
        return NULL;
    const adj_range_attrs *a = part->attrs;
    const adj_shape s = dims(part->in[0]);
    const int is_row = s.dim[0] == count && a->a.dim[0] == i && a->b.dim[0] == 1 &&
                       a->b.dim[1] == s.dim[1] && a->b.dim[2] == s.dim[2] && dims(n).rank == 2 &&
                       dims(n).dim[0] == s.dim[1];
    return is_row ? part->in[0] : NULL;
}

int products_of(const adj_node *n, const adj_node *of[2])
{
    if (n->op != &adj_op_concat || ((const adj_axis_attrs *)n->attrs)->axis != 0)
        return 0;
    for (int i = 0; i < n->n_in; i++) {
        const adj_matmul_attrs *a = n->in[i]->attrs;
        if (n->in[i]->op != &adj_op_matmul || a->transpose_a || a->transpose_b)
            return 0;
        for (int k = 0; k < 2; k++) {
            const adj_node *x = whole_of(n->in[i]->in[k], i, n->n_in);
            if (x == NULL || (i > 0 && x != of[k]))
                return 0;
            of[k] = x;
        }
    }
    return n->n_in > 0;
}

/* ---- batch norms that become part of the layer before ---- */

const adj_node *layer_before(const adj_node *n, const adj_node **bias)
{
    const adj_node *x = n->in[0];
    *bias = x->op == &adj_op_bias_add ? x->in[1] : NULL;
    return *bias != NULL ? x->in[0] : x;
}

/* Factor and sum of each channel. */
typedef struct {
    int64_t c;
    double *scale, *shift;
} affine;

/* Sets what a batch norm and the bias before it do to the layer's result. Returns 0 if their values
 * are not stored or no finite numbers. */
static int affine_of(writer *w, const adj_node *n, affine *to)
{
    const adj_node *bias, *stats = n->in[1];
    const double epsilon = ((const adj_batch_norm_attrs *)n->attrs)->epsilon;
    const int is_joined = stats->op == &adj_op_concat && stats->n_in == 2;
    const int64_t c = dims(n->in[2]).dim[0];
    const adj_dtype dtype = adj_node_type(n).dtype;
    layer_before(n, &bias);
    const void *mean = value_of(w, is_joined ? stats->in[0] : stats);
    const void *variance = value_of(w, is_joined ? stats->in[1] : stats);
    const void *gamma = value_of(w, n->in[2]), *beta = value_of(w, n->in[3]);
    const void *sum = bias != NULL ? value_of(w, bias) : NULL;
    *to =
        (affine){c, writer_alloc(w, c + 1, sizeof(double)), writer_alloc(w, c + 1, sizeof(double))};
    if (mean == NULL || variance == NULL || gamma == NULL || beta == NULL ||
        (bias != NULL && sum == NULL) || to->scale == NULL || to->shift == NULL)
        return 0;
    int is_finite = 1;
    for (int64_t i = 0; i < c; i++) {
        const double at = adj_load(dtype, variance, is_joined ? i : c + i) + epsilon;
        const double before = sum != NULL ? adj_load(dtype, sum, i) : 0;
        to->scale[i] = adj_load(dtype, gamma, i) / sqrt(at);
        to->shift[i] =
            adj_load(dtype, beta, i) + (before - adj_load(dtype, mean, i)) * to->scale[i];
        is_finite &= isfinite(to->scale[i]) && isfinite(to->shift[i]);
    }
    return is_finite;
}

int can_fold(writer *w, const adj_node *n)
{
    if (n->op != &adj_op_batch_norm)
        return 0;
    const adj_node *bias, *layer = layer_before(n, &bias);
    const adj_dtype dtype = adj_node_type(n).dtype;
    const int is_conv =
        (layer->op == &adj_op_conv2d || layer->op == &adj_op_depthwise_conv2d_native) &&
        ((const adj_conv_attrs *)layer->attrs)->geom.format ==
            ((const adj_batch_norm_attrs *)n->attrs)->format;
    const int is_product =
        layer->op == &adj_op_matmul && !((const adj_matmul_attrs *)layer->attrs)->transpose_a;
    affine a;
    return (is_conv || is_product) && (dtype == ADJ_F32 || dtype == ADJ_F64) &&
           w->of[layer->id].readers == 1 && w->of[n->in[0]->id].readers == 1 &&
           stored(layer->in[1]) != NULL && affine_of(w, n, &a);
}

/* Multiplies the initializer that was written last by the factors, along its first or last axis. */
static void scale_last(writer *w, const affine *a, adj_dtype dtype, int is_first)
{
    Onnx__TensorProto *t = w->graph.initializer[w->graph.n_initializer - 1];
    const int64_t n = (int64_t)(t->raw_data.len / adj_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++) {
        const int64_t channel = is_first ? i / (n / a->c) : i % a->c;
        adj_store(dtype, t->raw_data.data, i,
                  adj_load(dtype, t->raw_data.data, i) * a->scale[channel]);
    }
}

/* Writes the layer with its weights scaled, and the rest of the batch norm as its bias. */
static void save_folded(writer *w, const adj_node *n)
{
    const adj_node *bias, *layer = layer_before(n, &bias);
    const adj_dtype dtype = adj_node_type(n).dtype;
    const int is_product = layer->op == &adj_op_matmul;
    const int is_turned = is_product && ((const adj_matmul_attrs *)layer->attrs)->transpose_b;
    const int form = !is_product && is_nhwc_geom(geom_of(layer));
    affine a;
    if (!affine_of(w, n, &a))
        return;
    const char *in[] = {in_form(w, layer->in[0], form), NULL, NULL, NULL};
    in[1] = is_product ? arranged(w, layer->in[1], axes_in_order, dims(layer->in[1]))
                       : filter_name(w, layer);
    if (in[1] != NULL)
        scale_last(w, &a, dtype, !is_product || is_turned);
    in[2] = listed(w, n, (adj_shape){1, {a.c}}, a.shift, 1);
    Onnx__NodeProto *p = emit(w, is_product ? "Gemm" : "Conv", in, result(w, n, form));
    if (is_turned)
        set_int(w, p, "transB", 1);
    if (!is_product)
        set_conv(w, p, layer);
}

/* ---- norms ---- */

/* Row i of statistics [2, c], as a list [c]. */
static const char *stats_row(writer *w, const adj_node *stats, int64_t i)
{
    const adj_node *row = stats->op == &adj_op_concat && stats->n_in == 2 ? stats->in[i] : NULL;
    if (row != NULL && row->op == &adj_op_reshape)
        return plain(w, row->in[0]);
    if (stats->op == &adj_op_state)
        return state_row(w, stats, i, i == 0 ? "mean" : "var");
    const char *out = fresh_name(w);
    Onnx__NodeProto *p = emit2(w, "Gather", plain(w, stats), ints_scalar(w, i), out);
    set_int(w, p, "axis", 0);
    return out;
}

/* Returns the form of a norm's images: in a file their channels are axis 1. */
static int norm_form(writer *w, const adj_node *n)
{
    const int is_nhwc = adj_format_of(n) == ADJ_NHWC;
    const int64_t rank = dims(n).rank;
    if (is_nhwc && rank != 4 && rank != 2)
        cannot_save(w, n, "its images are NHWC and not of rank 4");
    return is_nhwc && rank == 4;
}

void save_batch_norm(writer *w, const adj_node *n)
{
    if (w->of[n->id].is_folded) {
        save_folded(w, n);
        return;
    }
    const int form = norm_form(w, n);
    const char *in[] = {in_form(w, n->in[0], form), plain(w, n->in[2]),        plain(w, n->in[3]),
                        stats_row(w, n->in[1], 0),  stats_row(w, n->in[1], 1), NULL};
    Onnx__NodeProto *p = emit(w, "BatchNormalization", in, result(w, n, form));
    set_float(w, p, "epsilon", ((const adj_batch_norm_attrs *)n->attrs)->epsilon);
}

/* InstanceNormalization of the groups as channels, then a factor and a sum for each channel. */
void save_group_norm(writer *w, const adj_node *n)
{
    const adj_group_norm_attrs *a = n->attrs;
    const int form = norm_form(w, n);
    const char *x = in_form(w, n->in[0], form), *rows = fresh_name(w), *normed = fresh_name(w);
    const char *shape = fresh_name(w), *back = fresh_name(w), *scaled = fresh_name(w);
    emit1(w, "Shape", x, shape);
    emit2(w, "Reshape", x, ints(w, 3, (int64_t[]){0, a->groups, -1}), rows);
    const adj_shape groups = {1, {a->groups}};
    const char *in[] = {rows, listed(w, n, groups, (double[]){1}, 0),
                        listed(w, n, groups, (double[]){0}, 0), NULL};
    Onnx__NodeProto *p = emit(w, "InstanceNormalization", in, normed);
    set_float(w, p, "epsilon", a->epsilon);
    emit2(w, "Reshape", normed, shape, back);
    adj_shape list = {.rank = dims(n).rank - 1, .dim = {dims(n->in[1]).dim[0], 1, 1, 1, 1, 1}};
    emit2(w, "Mul", back, arranged(w, n->in[1], axes_in_order, list), scaled);
    emit2(w, "Add", scaled, arranged(w, n->in[2], axes_in_order, list), result(w, n, form));
}
