/* attr_lists.c - see attr_lists.h; and the public readers of attribute lists of convolutions, of
 * shapes, and of nodes' attributes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "conv_geom.h"

image_axes axes_of(adj_format format)
{
    return format == ADJ_NCHW ? (image_axes){0, 2, 3, 1} : (image_axes){0, 1, 2, 3};
}

int is_absent(const int64_t four[4])
{
    return four[0] == 0 && four[1] == 0 && four[2] == 0 && four[3] == 0;
}

/* Reads a list of four; an absent one (NULL, length 0) gives zeros, the default. Four given
 * zeros are refused, since they would be taken for the default. */
static adj_status read_four(const char *name, int n, const int64_t *list, int64_t four[4],
                            adj_error *error)
{
    memset(four, 0, 4 * sizeof *four);
    if (n == 0 && list == NULL)
        return ADJ_OK;
    if (n != 4 || list == NULL)
        return adj_error_set(error, ADJ_EARG, "%s must have 4 entries (got %d)", name,
                             list ? n : 0);
    if (is_absent(list))
        return adj_error_set(error, ADJ_EARG, "%s must be at least 1 (got all 0)", name);
    memcpy(four, list, 4 * sizeof *four);
    return ADJ_OK;
}

static const char *const paddings[] = {
    [ADJ_VALID] = "VALID", [ADJ_SAME] = "SAME", [ADJ_EXPLICIT] = "EXPLICIT"};

const char *padding_word(adj_padding padding) { return paddings[padding]; }

static adj_status read_padding(const char *word, adj_padding *padding, adj_error *error)
{
    *padding = ADJ_VALID;
    if (word == NULL)
        return adj_error_set(error, ADJ_EARG,
                             "padding is missing (expected SAME, VALID or EXPLICIT)");
    for (adj_padding p = ADJ_VALID; p <= ADJ_EXPLICIT; p++)
        if (strcmp(word, paddings[p]) == 0) {
            *padding = p;
            return ADJ_OK;
        }
    return adj_error_set(error, ADJ_EARG,
                         "padding is unknown (got \"%.40s\", expected SAME, VALID or EXPLICIT)",
                         word);
}

static adj_status read_format(const char *word, adj_format *format, adj_error *error)
{
    *format = word != NULL && strcmp(word, "NCHW") == 0 ? ADJ_NCHW : ADJ_NHWC;
    if (word == NULL || *format == ADJ_NCHW || strcmp(word, "NHWC") == 0)
        return ADJ_OK;
    return adj_error_set(error, ADJ_EARG,
                         "data_format is unknown (got \"%.40s\", expected NHWC or NCHW)", word);
}

/* Reads explicit_paddings: eight numbers if padding is EXPLICIT, else absent or empty. */
static adj_status read_pads(const adj_attr_lists *lists, adj_padding padding, int64_t pad[4][2],
                            adj_error *error)
{
    int n = lists->n_explicit_paddings;
    const int64_t *list = lists->explicit_paddings;
    int64_t given[8] = {0};

    memset(pad, 0, 8 * sizeof **pad);
    if (padding != ADJ_EXPLICIT) {
        if (n != 0)
            return adj_error_set(
                error, ADJ_EARG,
                "explicit_paddings must be empty unless padding is EXPLICIT (got %d numbers)", n);
        return ADJ_OK;
    }
    if (n != 8 || list == NULL)
        return adj_error_set(
            error, ADJ_EARG,
            "explicit_paddings must have 8 numbers when padding is EXPLICIT (got %d)",
            list ? n : 0);
    memcpy(given, list, sizeof given);
    for (int i = 0; i < 8; i++)
        pad[i / 2][i % 2] = given[i];
    return ADJ_OK;
}

adj_status attr_read(const adj_attr_lists *lists, adj_conv *to, int64_t *ksize, adj_error *error)
{
    adj_status status = read_padding(lists->padding, &to->padding, error);
    if (status == ADJ_OK)
        status = read_format(lists->data_format, &to->format, error);
    if (status == ADJ_OK && ksize != NULL)
        status = read_four("ksize", lists->n_ksize, lists->ksize, ksize, error);
    if (status == ADJ_OK)
        status = read_four("strides", lists->n_strides, lists->strides, to->stride, error);
    if (status == ADJ_OK)
        status = read_four("dilations", lists->n_dilations, lists->dilations, to->dilation, error);
    if (status == ADJ_OK)
        status = read_pads(lists, to->padding, to->pad, error);
    return status;
}

adj_status attr_check_enums(adj_padding padding, adj_format format, adj_error *error)
{
    if (padding != ADJ_VALID && padding != ADJ_SAME && padding != ADJ_EXPLICIT)
        return adj_error_set(error, ADJ_EARG,
                             "padding is unknown (got %d, expected SAME, VALID or EXPLICIT)",
                             (int)padding);
    if (format != ADJ_NHWC && format != ADJ_NCHW)
        return adj_error_set(error, ADJ_EARG,
                             "data_format is unknown (got %d, expected NHWC or NCHW)", (int)format);
    return ADJ_OK;
}

adj_status attr_check_pads(int64_t pad[4][2], adj_padding padding, adj_format format,
                           adj_error *error)
{
    image_axes ax = axes_of(format);
    for (int i = 0; i < 4; i++)
        for (int side = 0; side < 2; side++) {
            int64_t p = pad[i][side];
            if (p != 0 && padding != ADJ_EXPLICIT)
                return adj_error_set(error, ADJ_EARG,
                                     "explicit_paddings must be empty unless padding is EXPLICIT "
                                     "(got %" PRId64 " for dimension %d)",
                                     p, i);
            if (p < 0 || p > INT32_MAX)
                return adj_error_set(error, ADJ_EARG,
                                     "explicit_paddings must not be negative nor beyond int32 "
                                     "(got %" PRId64 " for dimension %d)",
                                     p, i);
            if (p != 0 && (i == ax.n || i == ax.c))
                return adj_error_set(error, ADJ_EARG,
                                     "explicit_paddings must be 0 in batch and depth "
                                     "(got %" PRId64 " for dimension %d)",
                                     p, i);
        }
    return ADJ_OK;
}

/* Fills in the default, ones. Checks that spatial entries are 1 to INT32_MAX and those of batch
 * and depth 1. */
static adj_status attr_check_steps(const char *name, int64_t step[4], adj_format format,
                                   adj_error *error)
{
    image_axes ax = axes_of(format);
    if (is_absent(step))
        for (int i = 0; i < 4; i++)
            step[i] = 1;
    for (int i = 0; i < 4; i++) {
        if ((i == ax.n || i == ax.c) && step[i] != 1)
            return adj_error_set(error, ADJ_EARG,
                                 "%s in batch and depth must be 1 (got %" PRId64
                                 " for dimension %d)",
                                 name, step[i], i);
        if (step[i] < 1 || step[i] > INT32_MAX)
            return adj_error_set(error, ADJ_EARG,
                                 "%s must be at least 1 and within int32 (got %" PRId64
                                 " for dimension %d)",
                                 name, step[i], i);
    }
    return ADJ_OK;
}

adj_status attr_check_conv(adj_conv *a, adj_error *error)
{
    adj_status status = attr_check_enums(a->padding, a->format, error);
    if (status == ADJ_OK)
        status = attr_check_steps("strides", a->stride, a->format, error);
    if (status == ADJ_OK)
        status = attr_check_steps("dilations", a->dilation, a->format, error);
    if (status == ADJ_OK)
        status = attr_check_pads(a->pad, a->padding, a->format, error);
    return status;
}

static adj_status read_conv(const adj_attr_lists *lists, adj_conv *a, adj_error *error)
{
    if (lists->n_ksize != 0)
        return adj_error_set(error, ADJ_EARG,
                             "ksize is not an attribute of a convolution (got %d entries)",
                             lists->n_ksize);
    adj_status status = attr_read(lists, a, NULL, error);
    return status == ADJ_OK ? attr_check_conv(a, error) : status;
}

adj_status adj_conv_from_attrs(const adj_attr_lists *lists, adj_conv *a, adj_error *error)
{
    adj_error why;
    if (lists == NULL || a == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_conv_from_attrs: %s is NULL",
                             lists == NULL ? "lists" : "a");
    *a = (adj_conv){0};
    adj_status status = read_conv(lists, a, &why);
    if (status == ADJ_OK)
        return ADJ_OK;
    return adj_error_set(error, status, "adj_conv_from_attrs: %s", why.message);
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

int adj_node_conv(const adj_node *n, adj_conv *a)
{
    if (n == NULL || a == NULL || n->op->schema != &conv_schema)
        return 0;
    *a = ((const adj_conv_attrs *)n->attrs)->conv;
    return 1;
}

int adj_node_pool(const adj_node *n, adj_pool *a)
{
    if (n == NULL || a == NULL || n->op->schema != &pool_schema || n->op->flags & ADJ_OP_INTERNAL)
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
