/* attr_lists.c - see attr_lists.h; and the public readers of attribute lists of convolutions and
 * of shapes, and of the attributes that nodes have. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "adjoint.h"
#include "adjoint_ext.h"
#include "attr_lists.h"

image_axes axes_of(adj_format format)
{
    return format == ADJ_NCHW ? (image_axes){0, 2, 3, 1} : (image_axes){0, 1, 2, 3};
}

adj_status attr_fail(attr_message m, adj_status status, const char *format, ...)
{
    if (m.text != NULL && m.size > 0) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(m.text, m.size, format, arguments);
        va_end(arguments);
    }
    return status;
}

static int all_zero(int n, const int64_t *list)
{
    for (int i = 0; i < n; i++)
        if (list[i] != 0)
            return 0;
    return 1;
}

adj_status attr_four(const char *name, int n, const int64_t *list, int64_t four[4], attr_message m)
{
    memset(four, 0, 4 * sizeof *four);
    if (n == 0 && list == NULL)
        return ADJ_OK;
    if (n != 4 || list == NULL)
        return attr_fail(m, ADJ_EARG, "%s must have 4 entries (got %d)", name, list ? n : 0);
    if (all_zero(4, list))
        return attr_fail(m, ADJ_EARG, "%s must be at least 1 (got all 0)", name);
    memcpy(four, list, 4 * sizeof *four);
    return ADJ_OK;
}

adj_status attr_padding(const char *word, adj_padding *padding, attr_message m)
{
    *padding = ADJ_VALID;
    if (word == NULL)
        return attr_fail(m, ADJ_EARG, "padding is missing (expected SAME, VALID or EXPLICIT)");
    if (strcmp(word, "VALID") == 0)
        *padding = ADJ_VALID;
    else if (strcmp(word, "SAME") == 0)
        *padding = ADJ_SAME;
    else if (strcmp(word, "EXPLICIT") == 0)
        *padding = ADJ_EXPLICIT;
    else
        return attr_fail(m, ADJ_EARG,
                         "padding is unknown (got \"%.40s\", expected SAME, VALID or EXPLICIT)",
                         word);
    return ADJ_OK;
}

adj_status attr_format(const char *word, adj_format *format, attr_message m)
{
    *format = ADJ_NHWC;
    if (word == NULL || strcmp(word, "NHWC") == 0)
        return ADJ_OK;
    if (strcmp(word, "NCHW") != 0)
        return attr_fail(m, ADJ_EARG,
                         "data_format is unknown (got \"%.40s\", expected NHWC or NCHW)", word);
    *format = ADJ_NCHW;
    return ADJ_OK;
}

adj_status attr_pads(const adj_attr_lists *lists, adj_padding padding, int64_t pad[4][2],
                     attr_message m)
{
    int n = lists->n_explicit_paddings;
    const int64_t *list = lists->explicit_paddings;
    int64_t given[8] = {0};

    memset(pad, 0, 8 * sizeof **pad);
    if (padding != ADJ_EXPLICIT) {
        if (n != 0)
            return attr_fail(
                m, ADJ_EARG,
                "explicit_paddings must be empty unless padding is EXPLICIT (got %d numbers)", n);
        return ADJ_OK;
    }
    if (n != 8 || list == NULL)
        return attr_fail(m, ADJ_EARG,
                         "explicit_paddings must have 8 numbers when padding is EXPLICIT (got %d)",
                         list ? n : 0);
    memcpy(given, list, sizeof given);
    for (int i = 0; i < 8; i++)
        pad[i / 2][i % 2] = given[i];
    return ADJ_OK;
}

adj_status attr_check_enums(adj_padding padding, adj_format format, attr_message m)
{
    if (padding != ADJ_VALID && padding != ADJ_SAME && padding != ADJ_EXPLICIT)
        return attr_fail(m, ADJ_EARG,
                         "padding is unknown (got %d, expected SAME, VALID or EXPLICIT)",
                         (int)padding);
    if (format != ADJ_NHWC && format != ADJ_NCHW)
        return attr_fail(m, ADJ_EARG, "data_format is unknown (got %d, expected NHWC or NCHW)",
                         (int)format);
    return ADJ_OK;
}

adj_status attr_check_pads(int64_t pad[4][2], adj_padding padding, adj_format format,
                           attr_message m)
{
    image_axes ax = axes_of(format);
    for (int i = 0; i < 4; i++)
        for (int side = 0; side < 2; side++) {
            int64_t p = pad[i][side];
            if (p != 0 && padding != ADJ_EXPLICIT)
                return attr_fail(m, ADJ_EARG,
                                 "explicit_paddings must be empty unless padding is EXPLICIT "
                                 "(got %" PRId64 " for dimension %d)",
                                 p, i);
            if (p < 0 || p > INT32_MAX)
                return attr_fail(m, ADJ_EARG,
                                 "explicit_paddings must not be negative nor beyond int32 "
                                 "(got %" PRId64 " for dimension %d)",
                                 p, i);
            if (p != 0 && (i == ax.n || i == ax.c))
                return attr_fail(m, ADJ_EARG,
                                 "explicit_paddings must be 0 in batch and depth "
                                 "(got %" PRId64 " for dimension %d)",
                                 p, i);
        }
    return ADJ_OK;
}

adj_status attr_check_steps(const char *name, int64_t step[4], adj_format format, attr_message m)
{
    image_axes ax = axes_of(format);
    if (all_zero(4, step))
        for (int i = 0; i < 4; i++)
            step[i] = 1;
    for (int i = 0; i < 4; i++) {
        if ((i == ax.n || i == ax.c) && step[i] != 1)
            return attr_fail(m, ADJ_EARG,
                             "%s in batch and depth must be 1 (got %" PRId64 " for dimension %d)",
                             name, step[i], i);
        if (step[i] < 1 || step[i] > INT32_MAX)
            return attr_fail(m, ADJ_EARG,
                             "%s must be at least 1 and within int32 (got %" PRId64
                             " for dimension %d)",
                             name, step[i], i);
    }
    return ADJ_OK;
}

adj_status attr_check_conv(adj_conv *a, attr_message m)
{
    adj_status status = attr_check_enums(a->padding, a->format, m);
    if (status == ADJ_OK)
        status = attr_check_steps("strides", a->stride, a->format, m);
    if (status == ADJ_OK)
        status = attr_check_steps("dilations", a->dilation, a->format, m);
    if (status == ADJ_OK)
        status = attr_check_pads(a->pad, a->padding, a->format, m);
    return status;
}

static adj_status read_conv(const adj_attr_lists *lists, adj_conv *a, attr_message m)
{
    if (lists->n_ksize != 0)
        return attr_fail(m, ADJ_EARG, "ksize is not an attribute of a convolution (got %d entries)",
                         lists->n_ksize);
    adj_status status = attr_padding(lists->padding, &a->padding, m);
    if (status == ADJ_OK)
        status = attr_format(lists->data_format, &a->format, m);
    if (status == ADJ_OK)
        status = attr_four("strides", lists->n_strides, lists->strides, a->stride, m);
    if (status == ADJ_OK)
        status = attr_four("dilations", lists->n_dilations, lists->dilations, a->dilation, m);
    if (status == ADJ_OK)
        status = attr_pads(lists, a->padding, a->pad, m);
    if (status == ADJ_OK)
        status = attr_check_conv(a, m);
    return status;
}

adj_status adj_conv_from_attrs(const adj_attr_lists *lists, adj_conv *a, char *message, size_t size)
{
    char text[200];
    if (lists == NULL || a == NULL)
        return attr_fail((attr_message){message, size}, ADJ_EARG, "adj_conv_from_attrs: %s is NULL",
                         lists == NULL ? "lists" : "a");
    *a = (adj_conv){0};
    adj_status status = read_conv(lists, a, (attr_message){text, sizeof text});
    if (status == ADJ_OK)
        return ADJ_OK;
    return attr_fail((attr_message){message, size}, status, "adj_conv_from_attrs: %s", text);
}

adj_status adj_shape_from_list(int n, const int64_t *list, adj_shape *shape)
{
    if (shape == NULL)
        return ADJ_EARG;
    *shape = (adj_shape){0};
    if (n < 0 || (n > 0 && list == NULL))
        return ADJ_EARG;
    if (n > ADJ_MAX_RANK)
        return ADJ_ESHAPE;
    shape->rank = n;
    for (int i = 0; i < n; i++)
        shape->dim[i] = list[i];
    return ADJ_OK;
}

static int is_one_of(const adj_op *op, const adj_op *const ops[])
{
    while (*ops != NULL && *ops != op)
        ops++;
    return *ops != NULL;
}

int adj_node_conv(const adj_node *n, adj_conv *a)
{
    static const adj_op *const convs[] = {&adj_op_conv2d,
                                          &adj_op_conv2d_backprop_input,
                                          &adj_op_conv2d_backprop_filter,
                                          &adj_op_depthwise_conv2d_native,
                                          &adj_op_depthwise_conv2d_native_backprop_input,
                                          &adj_op_depthwise_conv2d_native_backprop_filter,
                                          NULL};
    if (n == NULL || a == NULL || !is_one_of(n->op, convs))
        return 0;
    *a = ((const adj_conv_attrs *)n->attrs)->conv;
    return 1;
}

int adj_node_pool(const adj_node *n, adj_pool *a)
{
    static const adj_op *const pools[] = {&adj_op_max_pool,           &adj_op_max_pool_grad,
                                          &adj_op_max_pool_grad_grad, &adj_op_avg_pool,
                                          &adj_op_avg_pool_grad,      NULL};
    if (n == NULL || a == NULL || !is_one_of(n->op, pools))
        return 0;
    *a = ((const adj_pool_attrs *)n->attrs)->pool;
    return 1;
}

void attr_move_axes(adj_format to, int64_t a[4], int64_t b[4], int64_t pad[4][2])
{
    static const int to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};
    const int *from = to == ADJ_NCHW ? to_nchw : to_nhwc;
    int64_t old[4][4];
    for (int i = 0; i < 4; i++) {
        const int64_t of_axis[4] = {a[i], b[i], pad[i][0], pad[i][1]};
        memcpy(old[i], of_axis, sizeof of_axis);
    }
    for (int i = 0; i < 4; i++) {
        a[i] = old[from[i]][0];
        b[i] = old[from[i]][1];
        pad[i][0] = old[from[i]][2];
        pad[i][1] = old[from[i]][3];
    }
}

int format_set(void *attrs, adj_format format)
{
    adj_format_attrs *a = attrs;
    int other = a->format != (int64_t)format;
    a->format = (int64_t)format;
    return other;
}
