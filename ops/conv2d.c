/* conv2d.c - convolution and depthwise convolution, each with its two adjoints: shape rules,
 * gradient rules and builders.
 *
 * conv2d: y[n,oh,ow,o] = sum over kh, kw, c of x[n, oh*sh + kh*dh - ph, ow*sw + kw*dw - pw, c] *
 * w[kh,kw,c,o]. A filter whose in divides the input's channels is a grouped convolution.
 * depthwise_conv2d_native: y[.., c*multiplier + m] = sum over kh, kw of x[.., c] * w[kh,kw,c,m]:
 * every input channel has its own filters; the filter is [kh, kw, in, multiplier].
 *
 * The three ops of each family are closed under differentiation; d is the upstream gradient:
 *   y  = conv(x, w)              dx = backprop_input(w, d)     dw = backprop_filter(x, d)
 *   x' = backprop_input(w, e)    dw = backprop_filter(d, e)    de = conv(d, w)
 *   w' = backprop_filter(x, e)   dx = backprop_input(d, e)     de = conv(x, d)
 * So derivatives of any order need no further kernel.
 *
 * input_sizes and filter_sizes are attributes, not operands: a builder stores them in the
 * geometry, and the shape rule completes it. The rule leaves a complete geometry unchanged, so
 * that passes can rebuild nodes from their attributes. */
#include <inttypes.h>

#include "conv_geom.h"
#include "graph/op.h"

enum { FROM_OPERANDS = -1 }; /* value of geom.n: input_sizes had height and width only */

typedef struct {
    const adj_op *y, *dx, *dw; /* the convolution, its backprop_input and backprop_filter */
    int depthwise;
} family;

static const family conv2d = {&adj_op_conv2d, &adj_op_conv2d_backprop_input,
                              &adj_op_conv2d_backprop_filter, 0};
static const family depthwise = {&adj_op_depthwise_conv2d_native,
                                 &adj_op_depthwise_conv2d_native_backprop_input,
                                 &adj_op_depthwise_conv2d_native_backprop_filter, 1};

static const family *family_of(const adj_op *op)
{
    return op == depthwise.y || op == depthwise.dx || op == depthwise.dw ? &depthwise : &conv2d;
}

static conv_sizes sizes_of(const adj_node *n, const char *image_name, const char *filter_name)
{
    return (conv_sizes){.g = n->graph,
                        .op = n->op->name,
                        .image_name = image_name,
                        .filter_name = filter_name,
                        .depthwise = family_of(n->op)->depthwise};
}

static adj_status set_type(const adj_node *n, const char *name, adj_shape shape, adj_type *out)
{
    *out = (adj_type){n->in[0]->type.dtype, shape};
    return adj_check_type(n->graph, n->op->name, name, *out);
}

static adj_status conv_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_conv_attrs *a = attrs;
    conv_sizes s = sizes_of(n, "input", "filter");

    if (adj_check_same_dtype(n) != ADJ_OK ||
        conv_set_image(&s, n->in[0]->type.shape, a->conv.format) != ADJ_OK ||
        conv_set_filter(&s, n->in[1]->type.shape) != ADJ_OK || conv_resolve(&s, a) != ADJ_OK)
        return adj_graph_status(n->graph);
    return set_type(n, "output", conv_output_shape(&a->geom), out);
}

static adj_status conv_infer_backprop_input(const adj_node *n, void *attrs, adj_type *out)
{
    adj_conv_attrs *a = attrs;
    adj_shape w = n->in[0]->type.shape, dy = n->in[1]->type.shape;
    conv_sizes s = sizes_of(n, "input_sizes", "filter");

    s.k = a->geom;
    if (adj_check_same_dtype(n) != ADJ_OK || conv_set_filter(&s, w) != ADJ_OK)
        return adj_graph_status(n->graph);
    if (s.k.n == FROM_OPERANDS) { /* a dy of another rank is refused later */
        s.k.n = dy.rank == 4 ? dy.dim[0] : 0;
        s.k.ic = s.in;
    }
    if (conv_resolve(&s, a) != ADJ_OK || conv_check_out(&s, &a->geom, dy, "out_backprop") != ADJ_OK)
        return adj_graph_status(n->graph);
    return set_type(n, "input_sizes", conv_input_shape(&a->geom), out);
}

/* Returns filter_sizes as the builder stored them (groups is 0), or from a complete geometry. */
static adj_shape filter_sizes_of(const adj_conv_geom *k, int is_depthwise)
{
    int64_t groups = k->groups > 0 ? k->groups : 1;
    int64_t in = is_depthwise ? k->ic : k->ic / groups;
    int64_t last = is_depthwise ? k->oc / groups : k->oc;
    return (adj_shape){4, {k->kh, k->kw, in, last}};
}

static adj_status conv_infer_backprop_filter(const adj_node *n, void *attrs, adj_type *out)
{
    adj_conv_attrs *a = attrs;
    adj_shape filter = filter_sizes_of(&a->geom, family_of(n->op)->depthwise);
    conv_sizes s = sizes_of(n, "input", "filter_sizes");

    s.may_be_empty = 1;
    if (adj_check_same_dtype(n) != ADJ_OK ||
        conv_set_image(&s, n->in[0]->type.shape, a->conv.format) != ADJ_OK ||
        conv_set_filter(&s, filter) != ADJ_OK || conv_resolve(&s, a) != ADJ_OK ||
        conv_check_out(&s, &a->geom, n->in[1]->type.shape, "out_backprop") != ADJ_OK)
        return adj_graph_status(n->graph);
    return set_type(n, "filter_sizes", filter, out);
}

static adj_conv_attrs asked(const adj_conv *conv)
{
    adj_conv_attrs a = {0};
    if (conv != NULL)
        a.conv = *conv;
    return a;
}

static adj_node *conv_new(const adj_op *op, adj_node *x, adj_node *w, const adj_conv *conv)
{
    adj_conv_attrs a = asked(conv);
    return adj_node_new2(op, x, w, &a);
}

/* Checks sizes that a caller gave as numbers: the rank, and no negative entry. */
static adj_status check_sizes(adj_graph *g, const adj_op *op, const char *name, adj_shape sizes,
                              int may_be_spatial)
{
    if (sizes.rank != 4 && !(may_be_spatial && sizes.rank == 2))
        return adj_fail(g, ADJ_ESHAPE, "%s: %s must have 4 entries%s (got %" PRId64 ")", op->name,
                        name, may_be_spatial ? " or 2, height and width" : "", sizes.rank);
    for (int i = 0; i < sizes.rank; i++)
        if (sizes.dim[i] < 0)
            return adj_fail(g, ADJ_ESHAPE, "%s: %s must not be negative (got %s)", op->name, name,
                            adj_shape_text(sizes).s);
    return ADJ_OK;
}

/* input_sizes may be [height, width] for conv2d. */
static adj_node *conv_new_backprop_input(const adj_op *op, adj_shape input_sizes, adj_node *w,
                                         adj_node *dy, const adj_conv *conv)
{
    adj_conv_attrs a = asked(conv);
    image_axes ax = axes_of(a.conv.format);
    const int64_t *size = input_sizes.dim;

    if (w == NULL || dy == NULL)
        return NULL;
    if (check_sizes(w->graph, op, "input_sizes", input_sizes, op == conv2d.dx) != ADJ_OK)
        return NULL;
    if (input_sizes.rank == 2)
        a.geom = (adj_conv_geom){.n = FROM_OPERANDS, .ih = size[0], .iw = size[1]};
    else
        a.geom =
            (adj_conv_geom){.n = size[ax.n], .ih = size[ax.h], .iw = size[ax.w], .ic = size[ax.c]};
    return adj_node_new2(op, w, dy, &a);
}

static adj_node *conv_new_backprop_filter(const adj_op *op, adj_node *x, adj_shape filter_sizes,
                                          adj_node *dy, const adj_conv *conv)
{
    adj_conv_attrs a = asked(conv);
    const int64_t *size = filter_sizes.dim;

    if (x == NULL || dy == NULL)
        return NULL;
    if (check_sizes(x->graph, op, "filter_sizes", filter_sizes, 0) != ADJ_OK)
        return NULL;
    a.geom = (adj_conv_geom){.kh = size[0], .kw = size[1], .ic = size[2], .oc = size[3]};
    return adj_node_new2(op, x, dy, &a);
}

/* Counts taps in the padding too. */
static double conv_flop(const adj_node *n)
{
    const adj_conv_geom *k = adj_node_geom(n);
    return 2.0 * (double)k->n * (double)k->oh * (double)k->ow * (double)k->oc * (double)k->kh *
           (double)k->kw * (double)(k->ic / k->groups);
}

/* Returns the number of terms of one element of the input's gradient: a kernel's taps times the
 * outputs of its group. With a stride, some elements have fewer. */
static double terms_of_input(const adj_node *n)
{
    const adj_conv_geom *g = adj_node_geom(n);
    return (double)(g->kh * g->kw * g->oc / g->groups);
}

/* ---- gradients ---- */

static void conv_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const family *of = family_of(y->op);
    adj_node *x = y->in[0], *w = y->in[1];
    const adj_conv_attrs *a = y->attrs;

    dx[0] = conv_new_backprop_input(of->dx, x->type.shape, w, dy, &a->conv);
    dx[1] = conv_new_backprop_filter(of->dw, x, w->type.shape, dy, &a->conv);
}

static void conv_grad_backprop_input(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const family *of = family_of(y->op);
    adj_node *w = y->in[0], *e = y->in[1];
    const adj_conv_attrs *a = y->attrs;

    dx[0] = conv_new_backprop_filter(of->dw, dy, w->type.shape, e, &a->conv);
    dx[1] = conv_new(of->y, dy, w, &a->conv);
}

static void conv_grad_backprop_filter(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const family *of = family_of(y->op);
    adj_node *x = y->in[0], *e = y->in[1];
    const adj_conv_attrs *a = y->attrs;

    if (a->geom.oc == 0) { /* an empty filter gradient is legal, an empty filter is not */
        dx[0] = adj_fill_like(x, 0);
        dx[1] = adj_fill_like(e, 0);
        return;
    }
    dx[0] = conv_new_backprop_input(of->dx, x->type.shape, dy, e, &a->conv);
    dx[1] = conv_new(of->y, x, dy, &a->conv);
}

/* ---- conv2d ---- */

adj_node *adj_conv2d(adj_node *x, adj_node *w, const adj_conv *a)
{
    return conv_new(&adj_op_conv2d, x, w, a);
}

adj_node *adj_conv2d_backprop_input(adj_shape input_sizes, adj_node *w, adj_node *dy,
                                    const adj_conv *a)
{
    return conv_new_backprop_input(&adj_op_conv2d_backprop_input, input_sizes, w, dy, a);
}

adj_node *adj_conv2d_backprop_filter(adj_node *x, adj_shape filter_sizes, adj_node *dy,
                                     const adj_conv *a)
{
    return conv_new_backprop_filter(&adj_op_conv2d_backprop_filter, x, filter_sizes, dy, a);
}

const adj_op adj_op_conv2d = {.name = "conv2d",
                              .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_CONV_FILTER},
                              .n_in = 2,
                              .flags = ADJ_OP_HALF_ALWAYS,
                              .schema = &conv_schema,
                              .linear_in = ADJ_IN(0) | ADJ_IN(1),
                              .infer = conv_infer,
                              .grad = conv_grad,
                              .flop = conv_flop,
                              .operand = {"input", "filter"},
                              .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
                              .filter_axes = "hwco"};

const adj_op adj_op_conv2d_backprop_input = {
    .name = "conv2d_backprop_input",
    .example = {ADJ_EXAMPLE_OPERAND_1, ADJ_EXAMPLE_LIKE_RESULT},
    .forward = &adj_op_conv2d,
    .n_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS,
    .schema = &conv_schema,
    .linear_in = ADJ_IN(0) | ADJ_IN(1),
    .infer = conv_infer_backprop_input,
    .grad = conv_grad_backprop_input,
    .flop = conv_flop,
    .operand = {"filter", "out_backprop"},
    .images = ADJ_IN(1) | ADJ_IMAGE_RESULT,
    .filter_axes = "hwco",
    .sum_length = terms_of_input};

const adj_op adj_op_conv2d_backprop_filter = {
    .name = "conv2d_backprop_filter",
    .example = {ADJ_EXAMPLE_OPERAND_0, ADJ_EXAMPLE_LIKE_RESULT},
    .forward = &adj_op_conv2d,
    .n_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS | ADJ_OP_HALF_SUM,
    .schema = &conv_schema,
    .linear_in = ADJ_IN(0) | ADJ_IN(1),
    .infer = conv_infer_backprop_filter,
    .grad = conv_grad_backprop_filter,
    .flop = conv_flop,
    .operand = {"input", "out_backprop"},
    .images = ADJ_IN(0) | ADJ_IN(1)};

/* ---- depthwise_conv2d_native ---- */

adj_node *adj_depthwise_conv2d_native(adj_node *x, adj_node *w, const adj_conv *a)
{
    return conv_new(&adj_op_depthwise_conv2d_native, x, w, a);
}

adj_node *adj_depthwise_conv2d_native_backprop_input(adj_shape input_sizes, adj_node *w,
                                                     adj_node *dy, const adj_conv *a)
{
    return conv_new_backprop_input(&adj_op_depthwise_conv2d_native_backprop_input, input_sizes, w,
                                   dy, a);
}

adj_node *adj_depthwise_conv2d_native_backprop_filter(adj_node *x, adj_shape filter_sizes,
                                                      adj_node *dy, const adj_conv *a)
{
    return conv_new_backprop_filter(&adj_op_depthwise_conv2d_native_backprop_filter, x,
                                    filter_sizes, dy, a);
}

const adj_op adj_op_depthwise_conv2d_native = {
    .name = "depthwise_conv2d_native",
    .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_DEPTHWISE_FILTER},
    .n_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS,
    .schema = &conv_schema,
    .linear_in = ADJ_IN(0) | ADJ_IN(1),
    .infer = conv_infer,
    .grad = conv_grad,
    .flop = conv_flop,
    .operand = {"input", "filter"},
    .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
    .filter_axes = "hwcm"};

const adj_op adj_op_depthwise_conv2d_native_backprop_input = {
    .name = "depthwise_conv2d_native_backprop_input",
    .example = {ADJ_EXAMPLE_OPERAND_1, ADJ_EXAMPLE_LIKE_RESULT},
    .forward = &adj_op_depthwise_conv2d_native,
    .n_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS,
    .schema = &conv_schema,
    .linear_in = ADJ_IN(0) | ADJ_IN(1),
    .infer = conv_infer_backprop_input,
    .grad = conv_grad_backprop_input,
    .flop = conv_flop,
    .operand = {"filter", "out_backprop"},
    .images = ADJ_IN(1) | ADJ_IMAGE_RESULT,
    .filter_axes = "hwcm",
    .sum_length = terms_of_input};

const adj_op adj_op_depthwise_conv2d_native_backprop_filter = {
    .name = "depthwise_conv2d_native_backprop_filter",
    .example = {ADJ_EXAMPLE_OPERAND_0, ADJ_EXAMPLE_LIKE_RESULT},
    .forward = &adj_op_depthwise_conv2d_native,
    .n_in = 2,
    .flags = ADJ_OP_HALF_ALWAYS | ADJ_OP_HALF_SUM,
    .schema = &conv_schema,
    .linear_in = ADJ_IN(0) | ADJ_IN(1),
    .infer = conv_infer_backprop_filter,
    .grad = conv_grad_backprop_filter,
    .flop = conv_flop,
    .operand = {"input", "out_backprop"},
    .images = ADJ_IN(0) | ADJ_IN(1)};

/* ---- compositions: conv2d_transpose and separable_conv2d ----
 *
 * Sizes are checked here first, so that errors name the op and the arguments of the call. */

adj_node *adj_conv2d_transpose(adj_node *x, adj_node *w, adj_shape output_shape, const adj_conv *a)
{
    if (x == NULL || w == NULL)
        return NULL;
    adj_conv_attrs attrs = asked(a);
    conv_sizes s = {.g = w->graph,
                    .op = "conv2d_transpose",
                    .image_name = "output_shape",
                    .filter_name = "filter"};
    if (conv_set_image(&s, output_shape, attrs.conv.format) != ADJ_OK ||
        conv_set_filter(&s, w->type.shape) != ADJ_OK || conv_resolve(&s, &attrs) != ADJ_OK ||
        conv_check_out(&s, &attrs.geom, x->type.shape, "input") != ADJ_OK)
        return NULL;
    return adj_conv2d_backprop_input(output_shape, w, x, a);
}

/* Checks that pointwise is [1, 1, in * multiplier, out]. */
static adj_status check_pointwise(const adj_node *pointwise, const adj_node *depthwise_result)
{
    const adj_conv_attrs *a = depthwise_result->attrs;
    adj_shape shape = pointwise->type.shape;
    if (shape.rank == 4 && shape.dim[0] == 1 && shape.dim[1] == 1 && shape.dim[2] == a->geom.oc)
        return ADJ_OK;
    return adj_fail(pointwise->graph, ADJ_ESHAPE,
                    "separable_conv2d: pointwise_filter does not fit the depthwise result "
                    "(got %s, expected [1, 1, %" PRId64 ", out])",
                    adj_shape_text(shape).s, a->geom.oc);
}

adj_node *adj_separable_conv2d(adj_node *x, adj_node *depthwise, adj_node *pointwise,
                               const adj_conv *a)
{
    adj_conv unit = {.padding = ADJ_VALID, .format = a != NULL ? a->format : ADJ_NHWC};
    adj_node *middle = adj_depthwise_conv2d_native(x, depthwise, a);
    if (middle == NULL || pointwise == NULL || check_pointwise(pointwise, middle) != ADJ_OK)
        return NULL;
    return adj_conv2d(middle, pointwise, &unit);
}
