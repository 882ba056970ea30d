/* feature.c - what makes a convolution's kernel wrong? If the same kernel is right on the same
 * image without padding on one side, or without dilation, and what was wrong is where that can
 * reach, then that is what it gets wrong. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

/* What the result is: the image on the input's side, the filter, or the output; and which operand
 * is of the output's shape, if one is. */
typedef struct {
    const adj_op *op;
    char result; /* 'i', 'f', 'o' */
    int output;  /* an operand, or negative: the result */
} conv_place;

static const conv_place convolutions[] = {
    {&adj_op_conv2d, 'o', -1},
    {&adj_op_conv2d_backprop_input, 'i', 1},
    {&adj_op_conv2d_backprop_filter, 'f', 1},
    {&adj_op_depthwise_conv2d_native, 'o', -1},
    {&adj_op_depthwise_conv2d_native_backprop_input, 'i', 1},
    {&adj_op_depthwise_conv2d_native_backprop_filter, 'f', 1},
};

/* 1: it is taken away. */
typedef struct {
    const char *name;
    int top, bottom, left, right, dilation;
} feature;

static const feature features[] = {
    {.name = "padding-top", .top = 1},
    {.name = "padding-bottom", .bottom = 1},
    {.name = "padding-left", .left = 1},
    {.name = "padding-right", .right = 1},
    {.name = "padding", .top = 1, .bottom = 1, .left = 1, .right = 1},
    {.name = "dilation", .dilation = 1},
};

static int64_t outputs(int64_t in, int64_t pads, int64_t kernel, int64_t dilation, int64_t stride)
{
    const int64_t room = in + pads - ((kernel - 1) * dilation + 1);
    return room < 0 ? 0 : room / stride + 1;
}

/* The attributes without the feature, and the output's shape then; 0: it is not there, or nothing
 * is left of the output. */
static int take_away(const feature *f, adj_conv_attrs *a, adj_shape *output)
{
    const adj_conv_geom g = a->geom;
    const int h = a->conv.format == ADJ_NCHW ? 2 : 1;
    const int64_t pt = f->top ? 0 : g.pt, pb = f->bottom ? 0 : g.pb;
    const int64_t pl = f->left ? 0 : g.pl, pr = f->right ? 0 : g.pr;
    const int64_t dh = f->dilation ? 1 : g.dh, dw = f->dilation ? 1 : g.dw;
    const int same = pt == g.pt && pb == g.pb && pl == g.pl && pr == g.pr;
    a->conv.padding = ADJ_EXPLICIT;
    memset(a->conv.pad, 0, sizeof a->conv.pad);
    a->conv.pad[h][0] = pt;
    a->conv.pad[h][1] = pb;
    a->conv.pad[h + 1][0] = pl;
    a->conv.pad[h + 1][1] = pr;
    if (f->dilation)
        memset(a->conv.dilation, 0, sizeof a->conv.dilation);
    output->dim[h] = outputs(g.ih, pt + pb, g.kh, dh, g.sh);
    output->dim[h + 1] = outputs(g.iw, pl + pr, g.kw, dw, g.sw);
    return (!same || (g.kh > 1 && dh != g.dh) || (g.kw > 1 && dw != g.dw)) && output->dim[h] > 0 &&
           output->dim[h + 1] > 0;
}

/* ---- what padding can reach ---- */

/* Along one axis. */
typedef struct {
    int64_t in, out, kernel, stride, dilation, before;
} axis;

static axis axis_of(const adj_conv_geom *g, int is_w)
{
    return is_w ? (axis){g->iw, g->ow, g->kw, g->sw, g->dw, g->pl}
                : (axis){g->ih, g->oh, g->kh, g->sh, g->dh, g->pt};
}

/* Is the tap of output o in the padding before, or after? */
static int is_outside(const axis *a, int64_t o, int64_t k, int before, int after)
{
    const int64_t i = o * a->stride + k * a->dilation - a->before;
    return (before && i < 0) || (after && i >= a->in);
}

/* Does padding take part in row i of the value at the image's place, the filter's, or the output's?
 */
static int is_reached(const axis *a, char place, int64_t i, int before, int after)
{
    for (int64_t o = 0; o < a->out; o++) {
        int touches = 0, reads = 0;
        for (int64_t k = 0; k < a->kernel; k++) {
            if (place == 'f' && k != i)
                continue;
            touches |= is_outside(a, o, k, before, after);
            reads |= o * a->stride + k * a->dilation - a->before == i;
        }
        if (touches && (place == 'f' || (place == 'i' ? reads : o == i)))
            return 1;
    }
    return 0;
}

/* Is every wrong element one that this padding can reach? */
static int is_within_reach(const lone_node *n, const feature *f, const conv_place *at,
                           const double *value, const double *right, double tolerance)
{
    const adj_conv_geom *g = adj_node_geom(n->node);
    const adj_shape shape = n->node->type.shape;
    const int h = at->result == 'f' ? 0 : g->format == ADJ_NCHW ? 2 : 1;
    const axis rows = axis_of(g, 0), columns = axis_of(g, 1);
    int64_t inner = 1;
    for (int64_t a = h + 2; a < shape.rank; a++)
        inner *= shape.dim[a];
    for (int64_t i = 0; i < node_elems(n->node) && !f->dilation; i++) {
        const int64_t w = i / inner % shape.dim[h + 1], r = i / inner / shape.dim[h + 1];
        if (fabs(value[i] - right[i]) <= tolerance)
            continue;
        if (!is_reached(&rows, at->result, r % shape.dim[h], f->top, f->bottom) &&
            !is_reached(&columns, at->result, w, f->left, f->right))
            return 0;
    }
    return 1;
}

/* ---- all features ---- */

static const conv_place *place_of(const adj_node *n)
{
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        if (convolutions[i].op == n->op)
            return &convolutions[i];
    return NULL;
}

/* As many values as the shape has, from those that there are. */
static double *repeat_values(subject *s, const double *from, int64_t n, adj_shape shape)
{
    double *v = reals(s, adj_shape_elems(shape));
    for (int64_t i = 0; v != NULL && i < adj_shape_elems(shape); i++)
        v[i] = from[i % n];
    return v;
}

/* Is it right without the feature, by the same kernel? */
static adj_status is_right_without(subject *s, const lone_node *n, const conv_place *at,
                                   const feature *f, const suspicion *x, const char *impl, int *is)
{
    adj_conv_attrs attrs;
    double *operand[2] = {n->operand[0], n->operand[1]};
    adj_shape shape[] = {n->node->type.shape, n->node->in[0]->type.shape,
                         n->node->in[1]->type.shape};
    adj_shape *output = &shape[1 + at->output];
    testimony t, right = {0};
    *is = 0;
    memcpy(&attrs, n->node->attrs, sizeof attrs);
    if (!take_away(f, &attrs, output))
        return ADJ_OK;
    if (at->output >= 0) {
        const int64_t elems = node_elems(n->node->in[at->output]);
        operand[at->output] = repeat_values(s, n->operand[at->output], elems, *output);
        if (operand[at->output] == NULL)
            return ADJ_ENOMEM;
    }
    const lone_node changed = {n->node, &attrs, shape, operand};
    adj_status status = run_alone(s, &changed, &x->by, x->dtype, &t);
    if (status == ADJ_OK)
        status = run_alone(s, &changed, &x->judge, x->judge_dtype, &right);
    *is = status == ADJ_OK && t.is_there && right.is_there && strcmp(t.impl, impl) == 0 &&
          are_close(t.value, right.value, adj_shape_elems(shape[0]), x->tolerance);
    return status;
}

adj_status find_feature(subject *s, const lone_node *n, const suspicion *x, const char **name)
{
    const conv_place *at = place_of(n->node);
    testimony t, right = {0};
    *name = "";
    if (at == NULL)
        return ADJ_OK;
    adj_status status = run_alone(s, n, &x->by, x->dtype, &t);
    if (status == ADJ_OK)
        status = run_alone(s, n, &x->judge, x->judge_dtype, &right);
    if (status != ADJ_OK || !t.is_there || !right.is_there ||
        are_close(t.value, right.value, node_elems(n->node), x->tolerance))
        return status;
    for (size_t i = 0; i < sizeof features / sizeof *features && status == ADJ_OK; i++) {
        int is = 0;
        if (is_within_reach(n, &features[i], at, t.value, right.value, x->tolerance))
            status = is_right_without(s, n, at, &features[i], x, t.impl, &is);
        if (is) {
            *name = features[i].name;
            break;
        }
    }
    return status;
}
