/* sweep.c - see sweep.h. The number of a case is read as digits of mixed radix, one for each
 * property. */
#include <stdio.h>

#include "sweep.h"

static const int64_t kernels[] = {1, 3, 5, 7}, strides[] = {1, 2, 3}, dilations[] = {1, 2};
static const int64_t channels[] = {1, 2, 3, 4, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 64};
static const adj_padding paddings[] = {ADJ_VALID, ADJ_SAME, ADJ_EXPLICIT};

/* Dense with so many output channels; depthwise with a multiplier; grouped. */
static const struct {
    int64_t oc, multiplier, groups;
} variants[] = {{3, 0, 1}, {8, 0, 1}, {16, 0, 1}, {17, 0, 1}, {64, 0, 1},
                {0, 1, 0}, {0, 2, 0}, {0, 3, 0},  {8, 0, 2},  {5, 0, 4}};

enum {
    N_KERNEL = 4,
    N_STRIDE = 3,
    N_DILATION = 2,
    N_CHANNEL = 16,
    N_PADDING = 3,
    N_VARIANT = 10,
    N_FORMAT = 2,
    N_DTYPE = 2,
    N_DIRECTION = 3,
    N_SIZE = 3,
    TOTAL = N_KERNEL * N_STRIDE * N_DILATION * N_CHANNEL * N_PADDING * N_VARIANT * N_FORMAT *
            N_DTYPE * N_DIRECTION * N_SIZE,
    STEP = 44449,                /* a prime that does not divide TOTAL */
    MOST_WORK = 45 * 1000 * 1000 /* multiplications, for the larger sizes */
};

int64_t sweep_size(void) { return TOTAL; }

static int64_t digit(int64_t *i, int64_t radix)
{
    int64_t d = *i % radix;
    *i /= radix;
    return d;
}

static void set_attributes(sweep_case *c, adj_padding padding, adj_format format)
{
    int h = format == ADJ_NHWC ? 1 : 2;
    for (int d = 0; d < 4; d++)
        c->conv.stride[d] = c->conv.dilation[d] = 1;
    c->conv.stride[h] = c->conv.stride[h + 1] = c->stride;
    c->conv.dilation[h] = c->conv.dilation[h + 1] = c->dilation;
    c->conv.padding = padding;
    c->conv.format = format;
    if (padding == ADJ_EXPLICIT) {
        c->conv.pad[h][0] = 1;
        c->conv.pad[h + 1][1] = 1;
    }
}

/* Some faults need wide images; naive has to compute them as well. */
static void set_size(sweep_case *c, int64_t size)
{
    static const int64_t heights[N_SIZE] = {15, 36, 64}, widths[N_SIZE] = {14, 36, 64};
    int64_t each = c->k * c->k * (c->ic / c->groups) * c->oc / (c->stride * c->stride);
    c->n = 2;
    for (int64_t i = 0; i < N_SIZE && i <= size; i++)
        if (i == 0 || c->n * heights[i] * widths[i] * each <= MOST_WORK) {
            c->h = heights[i];
            c->w = widths[i];
        }
}

sweep_case sweep_at(int64_t i)
{
    sweep_case c = {0};
    i = i % TOTAL * STEP % TOTAL;
    c.direction = (sweep_direction)digit(&i, N_DIRECTION);
    c.dtype = digit(&i, N_DTYPE) == 0 ? ADJ_F32 : ADJ_BF16;
    adj_format format = digit(&i, N_FORMAT) == 0 ? ADJ_NHWC : ADJ_NCHW;
    int64_t v = digit(&i, N_VARIANT), padding = digit(&i, N_PADDING);
    c.k = kernels[digit(&i, N_KERNEL)];
    c.stride = strides[digit(&i, N_STRIDE)];
    c.dilation = dilations[digit(&i, N_DILATION)];
    c.ic = channels[digit(&i, N_CHANNEL)];
    c.depthwise = variants[v].multiplier > 0;
    c.groups = c.depthwise ? c.ic : variants[v].groups;
    c.oc = c.depthwise ? c.ic * variants[v].multiplier : variants[v].oc * c.groups;
    if (!c.depthwise)
        c.ic *= c.groups;
    set_size(&c, digit(&i, N_SIZE));
    set_attributes(&c, paddings[padding], format);
    return c;
}

static adj_shape image(const sweep_case *c, int64_t channel)
{
    if (c->conv.format == ADJ_NHWC)
        return (adj_shape){4, {c->n, c->h, c->w, channel}};
    return (adj_shape){4, {c->n, channel, c->h, c->w}};
}

adj_node *sweep_node(adj_graph *g, const sweep_case *c)
{
    adj_shape filter = {4, {c->k, c->k, c->ic / c->groups, c->oc}};
    if (c->depthwise)
        filter = (adj_shape){4, {c->k, c->k, c->ic, c->oc / c->ic}};
    adj_shape in = image(c, c->ic);
    adj_node *x = adj_input(g, "x", c->dtype, in);
    adj_node *w = adj_input(g, "w", c->dtype, filter);
    adj_node *y =
        c->depthwise ? adj_depthwise_conv2d_native(x, w, &c->conv) : adj_conv2d(x, w, &c->conv);
    if (y == NULL || c->direction == FORWARD)
        return y;
    adj_node *dy = adj_input(g, "dy", c->dtype, adj_node_type(y).shape);
    if (c->direction == BACKWARD_DATA)
        return c->depthwise ? adj_depthwise_conv2d_native_backprop_input(in, w, dy, &c->conv)
                            : adj_conv2d_backprop_input(in, w, dy, &c->conv);
    return c->depthwise ? adj_depthwise_conv2d_native_backprop_filter(x, filter, dy, &c->conv)
                        : adj_conv2d_backprop_filter(x, filter, dy, &c->conv);
}

void sweep_text(const sweep_case *c, const char *implementation, char *text, size_t size)
{
    static const char *const directions[] = {"forward", "backward_data", "backward_weights"};
    snprintf(text, size,
             "%s %s %s ic=%lld,oc=%lld,kh=%lld,kw=%lld,sh=%lld,sw=%lld,dh=%lld,dw=%lld,groups=%lld",
             directions[c->direction], adj_dtype_name(c->dtype), implementation, (long long)c->ic,
             (long long)c->oc, (long long)c->k, (long long)c->k, (long long)c->stride,
             (long long)c->stride, (long long)c->dilation, (long long)c->dilation,
             (long long)c->groups);
}
