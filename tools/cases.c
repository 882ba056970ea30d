/* cases.c - see cases.h. The number of a case is read as digits of mixed radix, one for each
 * property. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "cli/command.h"
#include "ops/grad.h"

enum { MAX_VALUES = 16, MAX_WORK = 45 * 1000 * 1000 /* multiplications, for larger sizes */ };

/* Values of the properties, in the order of sweep_property. */
static const struct {
    const char *name;
    const char *value[MAX_VALUES + 1];
} properties[N_PROPERTY] = {
    {"direction", {"forward", "backward_data", "backward_weights"}},
    {"dtype", {"f32", "bf16", "f16"}},
    {"variant", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}},
    {"padding", {"VALID", "SAME", "EXPLICIT"}},
    {"kernel", {"1", "3", "5", "7"}},
    {"stride", {"1", "2", "3"}},
    {"dilation", {"1", "2"}},
    {"channels",
     {"1", "2", "3", "4", "7", "8", "9", "12", "15", "16", "17", "24", "31", "32", "33", "64"}},
    {"size", {"15", "36", "64", "7", "6", "12"}},
};

/* Kinds of channels: dense with this many output channels; depthwise with a multiplier; grouped; a
 * pool. */
static const struct {
    int64_t oc, multiplier, groups;
    int pool;
} variants[] = {{3, 0, 1, 0},  {8, 0, 1, 0}, {16, 0, 1, 0}, {17, 0, 1, 0},
                {64, 0, 1, 0}, {0, 1, 0, 0}, {0, 2, 0, 0},  {0, 3, 0, 0},
                {8, 0, 2, 0},  {5, 0, 4, 0}, {0, 1, 0, 1}};
enum { DENSE = 0x31f, DEPTHWISE = 0x0e0, POOL = 0x400 }; /* masks of them */

/* Heights and widths by the values of SIZE. Some faults need wide images; some an image that a
 * stride steps over at once (7 x 1), 30 pixels (6 x 5), or 36 (12 x 3). */
static const int64_t heights[] = {15, 36, 64, 7, 6, 12}, widths[] = {14, 36, 64, 1, 5, 3};
enum { N_SIZE = 6, N_LARGE = 3 }; /* the first ones grow */

static const struct {
    const char *op;
    sweep_direction direction;
    unsigned variants;
} ops[] = {
    {"conv2d", FORWARD, DENSE},
    {"conv2d_backprop_input", BACKWARD_DATA, DENSE},
    {"conv2d_backprop_filter", BACKWARD_WEIGHTS, DENSE},
    {"depthwise_conv2d_native", FORWARD, DEPTHWISE},
    {"depthwise_conv2d_native_backprop_input", BACKWARD_DATA, DEPTHWISE},
    {"depthwise_conv2d_native_backprop_filter", BACKWARD_WEIGHTS, DEPTHWISE},
    {"avg_pool", FORWARD, POOL},
    {"avg_pool_grad", BACKWARD_DATA, POOL},
};
enum { N_OP = sizeof ops / sizeof *ops };

/* ---- parts of the sweep ---- */

static int values_of(int property)
{
    int n = 0;
    while (properties[property].value[n] != NULL)
        n++;
    return n;
}

sweep sweep_all(void)
{
    sweep s;
    for (int p = 0; p < N_PROPERTY; p++)
        s.mask[p] = (1U << values_of(p)) - 1;
    return s;
}

adj_status sweep_keep(sweep *s, sweep_property property, const char *list, adj_error *error)
{
    unsigned mask = 0;
    for (const char *p = list;; p++) {
        size_t length = strcspn(p, ",");
        int i = 0, n = values_of(property);
        while (i < n && (strncmp(p, properties[property].value[i], length) != 0 ||
                         properties[property].value[i][length] != '\0'))
            i++;
        if (i == n) {
            char known[128];
            for (int k = 0, used = 0; k < n; k++)
                used += snprintf(known + used, sizeof known - (size_t)used, " %s",
                                 properties[property].value[k]);
            return adj_error_set(error, ADJ_EARG,
                                 "is not in the sweep (got %.*s, expected some of%s)",
                                 (int)(length < 40 ? length : 40), p, known);
        }
        mask |= 1U << i;
        p += length;
        if (*p == '\0')
            break;
    }
    s->mask[property] &= mask;
    return ADJ_OK;
}

adj_status sweep_keep_op(sweep *s, const char *op, adj_error *error)
{
    for (int i = 0; i < N_OP; i++)
        if (strcmp(op, ops[i].op) == 0) {
            s->mask[DIRECTION] &= 1U << ops[i].direction;
            s->mask[VARIANT] &= ops[i].variants;
            return ADJ_OK;
        }
    return adj_error_set(
        error, ADJ_EARG, "%.60s is no op of the sweep%s", op,
        did_you_mean(op, &ops[0].op, N_OP, sizeof *ops,
                     "which has conv2d, depthwise_conv2d_native and their backprops")
            .s);
}

/* ---- cases ---- */

int64_t sweep_size(const sweep *s)
{
    int64_t n = 1;
    for (int p = 0; p < N_PROPERTY; p++)
        n *= __builtin_popcount(s->mask[p]);
    return n;
}

/* A permutation of 0 .. n-1: a Feistel network over the next power of 4, walked until it is below
 * n. */
static int64_t shuffled(int64_t i, int64_t n)
{
    int half = 1;
    while (INT64_C(1) << 2 * half < n)
        half++;
    uint32_t mask = (UINT32_C(1) << half) - 1;
    do {
        uint32_t left = (uint32_t)(i >> half), right = (uint32_t)i & mask;
        for (uint32_t round = 1; round <= 6; round++) {
            uint32_t mixed = (right + round) * UINT32_C(0x9e3779b1);
            mixed = (mixed ^ mixed >> 15) * UINT32_C(0x85ebca77);
            uint32_t next = left ^ ((mixed ^ mixed >> 13) & mask);
            left = right;
            right = next;
        }
        i = (int64_t)left << half | right;
    } while (i >= n);
    return i;
}

/* Returns the position of the mask's i-th set bit. */
static int place_of(unsigned mask, int64_t i)
{
    while (i-- > 0)
        mask &= mask - 1;
    return __builtin_ctz(mask);
}

/* The size chosen, or the largest below it that naive computes in reasonable time. */
static void set_size(sweep_case *c, int chosen)
{
    int64_t each = c->k * c->k * (c->ic / c->groups) * c->oc / (c->stride * c->stride);
    int i = chosen < N_LARGE ? 0 : chosen;
    c->n = 2;
    while (i < chosen && c->n * heights[i + 1] * widths[i + 1] * each <= MAX_WORK)
        i++;
    c->h = heights[i];
    c->w = widths[i];
}

/* Returns the attributes in NHWC, in which images in NCHW are computed as well. */
static adj_conv attributes(const sweep_case *c, adj_padding padding)
{
    adj_conv a = {.stride = {1, c->stride, c->stride, 1},
                  .dilation = {1, c->dilation, c->dilation, 1},
                  .padding = padding};
    if (padding == ADJ_EXPLICIT) {
        a.pad[1][0] = a.pad[2][1] = 1;
        a.pad[1][1] = 3;
    }
    return a;
}

static int64_t number(sweep_property p, const int at[N_PROPERTY])
{
    return strtol(properties[p].value[at[p]], NULL, 10);
}

sweep_case sweep_at(const sweep *s, int64_t i)
{
    static const adj_padding paddings[] = {ADJ_VALID, ADJ_SAME, ADJ_EXPLICIT};
    sweep_case c = {0};
    int at[N_PROPERTY];
    i = shuffled(i, sweep_size(s));
    for (int p = 0; p < N_PROPERTY; p++) {
        int64_t radix = __builtin_popcount(s->mask[p]);
        at[p] = place_of(s->mask[p], i % radix);
        i /= radix;
    }
    int v = at[VARIANT];
    c.direction = (sweep_direction)at[DIRECTION];
    c.dtype = (const adj_dtype[]){ADJ_F32, ADJ_BF16, ADJ_F16}[at[DTYPE]];
    c.pool = variants[v].pool;
    c.k = number(KERNEL, at);
    c.stride = number(STRIDE, at);
    c.dilation = number(DILATION, at);
    c.ic = number(CHANNELS, at);
    c.depthwise = variants[v].multiplier > 0;
    c.groups = c.depthwise ? c.ic : variants[v].groups;
    c.oc = c.depthwise ? c.ic * variants[v].multiplier : variants[v].oc * c.groups;
    if (!c.depthwise)
        c.ic *= c.groups;
    set_size(&c, at[SIZE]);
    c.conv = attributes(&c, paddings[at[PADDING]]);
    return c;
}

/* avg_pool in each channel, or its gradient. */
static adj_node *pool_node(adj_graph *g, const sweep_case *c)
{
    adj_pool p = {.ksize = {1, c->k, c->k, 1},
                  .stride = {1, c->stride, c->stride, 1},
                  .padding = c->conv.padding};
    memcpy(p.pad, c->conv.pad, sizeof p.pad);
    if (c->direction == BACKWARD_WEIGHTS || c->dilation > 1)
        return NULL;
    adj_shape in = {4, {c->n, c->h, c->w, c->ic}};
    adj_node *y = adj_avg_pool(adj_input(g, "x", c->dtype, in), &p);
    if (y == NULL || c->direction == FORWARD)
        return y;
    return adj_avg_pool_grad(in, adj_input(g, "dy", c->dtype, adj_node_type(y).shape), &p);
}

adj_node *sweep_node(adj_graph *g, const sweep_case *c)
{
    if (c->pool)
        return pool_node(g, c);
    adj_shape filter = {4, {c->k, c->k, c->ic / c->groups, c->oc}};
    if (c->depthwise)
        filter = (adj_shape){4, {c->k, c->k, c->ic, c->oc / c->ic}};
    adj_shape in = {4, {c->n, c->h, c->w, c->ic}};
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

void sweep_text(const sweep_case *c, char *text, size_t size)
{
    static const char *const tasks[] = {"forward", "backward_data", "backward_weights"};
    snprintf(text, size,
             "%s%s %s in=%lld,%lld,%lld,%lld out=%lld groups=%lld kernel=%lld stride=%lld "
             "dilation=%lld %s",
             c->pool ? "avg_pool " : "", tasks[c->direction], adj_dtype_name(c->dtype),
             (long long)c->n, (long long)c->h, (long long)c->w, (long long)c->ic, (long long)c->oc,
             (long long)c->groups, (long long)c->k, (long long)c->stride, (long long)c->dilation,
             c->conv.padding == ADJ_VALID  ? "VALID"
             : c->conv.padding == ADJ_SAME ? "SAME"
                                           : "EXPLICIT");
}
