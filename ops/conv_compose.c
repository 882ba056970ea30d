/* conv_compose.c - convolutions composed of others: conv2d_transpose and separable_conv2d.
 *
 * Sizes are checked here first, so that errors name the op and the arguments of the call. */
#include <inttypes.h>

#include "conv_geom.h"
#include "graph/op.h"

adj_node *adj_conv2d_transpose(adj_node *x, adj_node *w, adj_shape output_shape, const adj_conv *a)
{
    if (x == NULL || w == NULL)
        return NULL;
    adj_conv_attrs attrs = {0};
    if (a != NULL)
        attrs.conv = *a;
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
