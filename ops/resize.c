/* resize.c - resizes images by nearest or bilinear sampling; and its adjoint.
 *
 * Along each axis output o is a weighted sum of at most two inputs (defined in adjoint.h); both
 * axes together are the product. The map is linear, and each of the two ops is the other's
 * gradient.
 *
 * Positions are fractions of whole numbers, so that no rounding decides which input is read:
 * with sizes within int32, all terms of 2 o in + ... fit 64 bits. */
#include "attr_lists.h"
#include "grad.h"
#include "graph/op.h"

static double twice(int64_t size) { return size < 1 << 30 ? 2 * (double)size : INT32_MAX; }

static double twice_height(adj_shape x, adj_format format, int axis)
{
    (void)axis;
    return twice(x.dim[axes_of(format).h]);
}

static double twice_width(adj_shape x, adj_format format, int axis)
{
    (void)axis;
    return twice(x.dim[axes_of(format).w]);
}

static const char *const modes[] = {[ADJ_NEAREST] = "nearest", [ADJ_BILINEAR] = "bilinear", NULL};
static const char *const coordinates[] = {[ADJ_HALF_PIXEL] = "half_pixel",
                                          [ADJ_ALIGN_CORNERS] = "align_corners",
                                          [ADJ_ASYMMETRIC] = "asymmetric",
                                          NULL};
static const adj_schema schema = {
    .size = sizeof(adj_resize_attrs),
    .attr = {{"height", ADJ_ATTR_INT, .offset = offsetof(adj_resize_attrs, oh),
              .fallback_of = twice_height},
             {"width", ADJ_ATTR_INT, .offset = offsetof(adj_resize_attrs, ow),
              .fallback_of = twice_width},
             {"mode", ADJ_ATTR_CHOICE, .offset = offsetof(adj_resize_attrs, mode), .words = modes,
              .fallback = ADJ_BILINEAR},
             {"coordinates", ADJ_ATTR_CHOICE, .offset = offsetof(adj_resize_attrs, coordinates),
              .words = coordinates},
             {"data_format", ADJ_ATTR_FORMAT, .offset = offsetof(adj_resize_attrs, format)}}};

static adj_status check_image_sizes(const adj_node *n, const char *image, int64_t h, int64_t w)
{
    if (h < 1 || h > INT32_MAX || w < 1 || w > INT32_MAX)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: height and width of %s must be at least 1 and within int32 (got %lld "
                        "and %lld)",
                        n->op->name, image, (long long)h, (long long)w);
    return ADJ_OK;
}

/* Sets *h and *w to the operand's height and width, and out to its type with *to_h and *to_w
 * instead. */
static adj_status infer_sizes(const adj_node *n, const char *operand, const adj_resize_attrs *a,
                              int64_t *h, int64_t *w, const int64_t *to_h, const int64_t *to_w,
                              adj_type *out)
{
    const image_axes ax = axes_of((adj_format)a->format);
    adj_status status = adj_check_same_dtype(n);
    *out = n->in[0]->type;
    if (status == ADJ_OK && out->shape.rank != 4)
        return adj_fail(n->graph, ADJ_ESHAPE, "%s: %s has a wrong rank (got %s, expected rank 4)",
                        n->op->name, operand, adj_shape_text(out->shape).s);
    if (status != ADJ_OK)
        return status;
    *h = out->shape.dim[ax.h];
    *w = out->shape.dim[ax.w];
    out->shape.dim[ax.h] = *to_h;
    out->shape.dim[ax.w] = *to_w;
    status = check_image_sizes(n, operand, *h, *w);
    if (status == ADJ_OK)
        status = check_image_sizes(n, "the result", *to_h, *to_w);
    return status == ADJ_OK ? adj_check_type(n->graph, n->op->name, "the result", *out) : status;
}

static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_resize_attrs *a = attrs;
    return infer_sizes(n, "x", a, &a->ih, &a->iw, &a->oh, &a->ow, out);
}

static adj_status grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_resize_attrs *a = attrs;
    return infer_sizes(n, "dy", a, &a->oh, &a->ow, &a->ih, &a->iw, out);
}

static adj_sampling sampling_of(const adj_resize_attrs *a)
{
    return (adj_sampling){(adj_resize_mode)a->mode, (adj_coordinates)a->coordinates,
                          (adj_format)a->format};
}

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_resize_attrs *a = y->attrs;
    const adj_sampling s = sampling_of(a);
    dx[0] = adj_resize_grad(dy, a->ih, a->iw, &s);
}

static void grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    const adj_resize_attrs *a = dx->attrs;
    const adj_sampling s = sampling_of(a);
    de[0] = adj_resize(e, a->oh, a->ow, &s);
}

/* Returns how many inputs an output reads. */
static double reads(const adj_resize_attrs *a) { return a->mode == ADJ_BILINEAR ? 4 : 1; }

static double flop(const adj_node *n)
{
    return 2 * reads(n->attrs) * (double)adj_shape_elems(n->type.shape);
}

static double grad_flop(const adj_node *n)
{
    return 2 * reads(n->attrs) * (double)adj_shape_elems(n->in[0]->type.shape);
}

static double sum_length(const adj_node *n) { return reads(n->attrs); }

/* Returns the most outputs that read one input: those whose position is less than 1 from it. */
static double readers(int64_t in, int64_t out)
{
    return in > 1 ? 2 * (double)out / (double)(in - 1) + 2 : (double)out;
}

static double grad_sum_length(const adj_node *n)
{
    const adj_resize_attrs *a = n->attrs;
    return readers(a->ih, a->oh) * readers(a->iw, a->ow);
}

const adj_op adj_op_resize = {.name = "resize",
                              .n_in = 1,
                              .schema = &schema,
                              .flags = ADJ_OP_HALF,
                              .linear_in = ADJ_IN(0),
                              .infer = infer,
                              .grad = rule,
                              .simplify =
                                  adj_simplify_selection, /* the weights of a result sum to 1 */
                              .flop = flop,
                              .operand = {"x"},
                              .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
                              .sum_length = sum_length};

const adj_op adj_op_resize_grad = {.name = "resize_grad",
                                   .example = {ADJ_EXAMPLE_LIKE_RESULT},
                                   .forward = &adj_op_resize,
                                   .n_in = 1,
                                   .schema = &schema,
                                   .flags = ADJ_OP_HALF,
                                   .linear_in = ADJ_IN(0),
                                   .infer = grad_infer,
                                   .grad = grad_rule,
                                   .flop = grad_flop,
                                   .operand = {"dy"},
                                   .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
                                   .sum_length = grad_sum_length};

static adj_resize_attrs attrs_of(const adj_sampling *s)
{
    return s != NULL ? (adj_resize_attrs){s->format, s->mode, s->coordinates, 0, 0, 0, 0}
                     : (adj_resize_attrs){0};
}

adj_node *adj_resize(adj_node *x, int64_t height, int64_t width, const adj_sampling *s)
{
    adj_resize_attrs a = attrs_of(s);
    a.oh = height;
    a.ow = width;
    return adj_node_new1(&adj_op_resize, x, &a);
}

adj_node *adj_resize_grad(adj_node *dy, int64_t height, int64_t width, const adj_sampling *s)
{
    adj_resize_attrs a = attrs_of(s);
    a.ih = height;
    a.iw = width;
    return adj_node_new1(&adj_op_resize_grad, dy, &a);
}
