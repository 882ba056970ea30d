/* hypothesis.c - is a wrong value the right value of a slightly different node? A convolution or
 * pool is computed anew with its pads moved to the other side, without its dilation, or with a
 * depthwise convolution's outputs in the order [multiplier, channel]: what comes out equal, element
 * by element, says what the kernel does. */
#include <string.h>

#include "gradcheck.h"

typedef struct {
    int dt, dl; /* pads moved from the bottom to the top, from the right to the left */
    int sh, sw; /* its taps side by side along h, along w; the first where it was */
} hypothesis;

static const hypothesis hypotheses[] = {
    {.dt = 1},           {.dt = -1},          {.dl = 1},
    {.dl = -1},          {.dt = 1, .dl = 1},  {.dt = -1, .dl = -1},
    {.dt = 1, .dl = -1}, {.dt = -1, .dl = 1}, {.sh = 1, .sw = 1},
    {.sh = 1},           {.sw = 1},
};

static const char *text_of(subject *s, const hypothesis *h)
{
    if (h->sh || h->sw)
        return !h->sw   ? "; as without dilation of the rows"
               : !h->sh ? "; as without dilation of the columns"
                        : "; as without dilation";
    return gradcheck_text(s->report, "; as with pads on the other side: one more %s%s%s",
                          h->dt > 0   ? "at the top"
                          : h->dt < 0 ? "at the bottom"
                                      : "",
                          h->dt != 0 && h->dl != 0 ? " and " : "",
                          h->dl > 0   ? "on the left"
                          : h->dl < 0 ? "on the right"
                                      : "");
}

/* Pads {before, after} that leave the number of outputs as it is; 0: there are none. */
static int move_pads(int64_t before, int64_t after, int64_t by, int64_t cut, int64_t pad[2])
{
    pad[0] = before + by;
    pad[1] = after - by - cut;
    return pad[0] >= 0 && pad[1] >= 0;
}

static int change_conv(const hypothesis *h, adj_conv_attrs *a)
{
    const adj_conv_geom g = a->geom;
    const int rows = a->conv.format == ADJ_NCHW ? 2 : 1;
    const int64_t cut_h = h->sh ? (g.kh - 1) * (g.dh - 1) : 0;
    const int64_t cut_w = h->sw ? (g.kw - 1) * (g.dw - 1) : 0;
    if ((h->sh && cut_h == 0) || (h->sw && cut_w == 0))
        return 0;
    a->conv.padding = ADJ_EXPLICIT;
    memset(a->conv.pad, 0, sizeof a->conv.pad);
    a->conv.dilation[0] = a->conv.dilation[rows == 2 ? 1 : 3] = 1;
    a->conv.dilation[rows] = h->sh ? 1 : g.dh;
    a->conv.dilation[rows + 1] = h->sw ? 1 : g.dw;
    return move_pads(g.pt, g.pb, h->dt, cut_h, a->conv.pad[rows]) &&
           move_pads(g.pl, g.pr, h->dl, cut_w, a->conv.pad[rows + 1]);
}

static int change_pool(const hypothesis *h, adj_pool_attrs *a)
{
    const adj_conv_geom g = a->geom;
    const int rows = a->pool.format == ADJ_NCHW ? 2 : 1;
    a->pool.padding = ADJ_EXPLICIT;
    memset(a->pool.pad, 0, sizeof a->pool.pad);
    return !h->sh && !h->sw && move_pads(g.pt, g.pb, h->dt, 0, a->pool.pad[rows]) &&
           move_pads(g.pl, g.pr, h->dl, 0, a->pool.pad[rows + 1]);
}

/* The node's attributes, changed; 0: it has no windows, or they cannot be changed so. */
static int change(const adj_node *n, const hypothesis *h, void *attrs)
{
    if (n->op->schema == NULL || adj_node_geom(n) == NULL)
        return 0;
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    switch (n->op->schema->attr[0].kind) {
    case ADJ_ATTR_CONV: return change_conv(h, attrs);
    case ADJ_ATTR_POOL: return change_pool(h, attrs);
    default: return 0;
    }
}

static adj_status try_attributes(subject *s, const lone_node *n, const source *right,
                                 adj_dtype dtype, const double *value, double tolerance,
                                 explanation *found)
{
    _Alignas(16) char attrs[MAX_ATTR];
    for (size_t i = 0; i < sizeof hypotheses / sizeof *hypotheses; i++) {
        const hypothesis *h = &hypotheses[i];
        lone_node changed = *n;
        testimony t;
        if (!change(n->node, h, attrs))
            continue;
        changed.attrs = attrs;
        adj_status status = run_alone(s, &changed, right, dtype, &t);
        if (status != ADJ_OK)
            return status;
        if (t.is_there && are_close(t.value, value, node_elems(n->node), tolerance)) {
            *found = (explanation){text_of(s, h),
                                   h->sh || h->sw ? "dilation" : "pads on the other side"};
            return ADJ_OK;
        }
    }
    return ADJ_OK;
}

/* ---- the multiplier ---- */

/* Channel a * n_b + b of `to` is channel b * n_a + a of `from`; the channels are n_a * n_b long,
 * and inner elements apart. */
static void reorder(const double *from, int64_t elems, int64_t inner, const int64_t n[2],
                    double *to)
{
    for (int64_t i = 0; i < elems; i++) {
        const int64_t channel = i / inner % (n[0] * n[1]), a = channel / n[1], b = channel % n[1];
        to[i] = from[i + (b * n[0] + a - channel) * inner];
    }
}

/* Elements from one of a depthwise convolution's outputs to the next, in its filter or an image on
 * the output's side; 0: it is neither. */
static int64_t output_step(const adj_node *n, adj_shape shape)
{
    const adj_conv_geom *g = adj_node_geom(n);
    if (shape.rank != 4)
        return 0;
    if (shape.dim[0] == g->kh && shape.dim[1] == g->kw && shape.dim[2] * shape.dim[3] == g->oc)
        return 1;
    if (g->format == ADJ_NCHW)
        return shape.dim[1] == g->oc ? shape.dim[2] * shape.dim[3] : 0;
    return shape.dim[3] == g->oc ? 1 : 0;
}

static adj_status try_order(subject *s, const lone_node *n, const source *right, adj_dtype dtype,
                            int place, const int64_t order[2], testimony *t)
{
    const adj_type type = place < 0 ? n->node->type : n->node->in[place]->type;
    const int64_t elems = adj_shape_elems(type.shape);
    const int64_t step = output_step(n->node, type.shape);
    double **operand = region_alloc(&s->region, (size_t)n->node->n_in, sizeof *operand);
    double *other = reals(s, elems);
    lone_node changed = *n;
    *t = (testimony){0};
    if (operand == NULL || other == NULL)
        return ADJ_ENOMEM;
    if (step == 0)
        return ADJ_OK;
    memcpy(operand, n->operand, (size_t)n->node->n_in * sizeof *operand);
    if (place >= 0) {
        reorder(operand[place], elems, step, order, other);
        operand[place] = other;
    }
    changed.operand = operand;
    adj_status status = run_alone(s, &changed, right, dtype, t);
    if (status == ADJ_OK && t->is_there && place < 0) {
        reorder(t->value, elems, step, order, other);
        t->value = other;
    }
    return status;
}

static adj_status try_multiplier(subject *s, const lone_node *n, const source *right,
                                 adj_dtype dtype, const double *value, double tolerance,
                                 explanation *found)
{
    const adj_conv_geom *g = adj_node_geom(n->node);
    if (g == NULL || g->groups != g->ic || g->ic < 2 || g->oc <= g->ic || g->oc % g->ic != 0)
        return ADJ_OK;
    const int64_t orders[2][2] = {{g->ic, g->oc / g->ic}, {g->oc / g->ic, g->ic}};
    for (int place = -1; place < n->node->n_in; place++)
        for (int o = 0; o < 2; o++) {
            testimony t;
            adj_status status = try_order(s, n, right, dtype, place, orders[o], &t);
            if (status != ADJ_OK)
                return status;
            if (t.is_there && are_close(t.value, value, node_elems(n->node), tolerance)) {
                *found = (explanation){"; as with the multiplier transposed: [multiplier, channel]",
                                       "multiplier transposed"};
                return ADJ_OK;
            }
        }
    return ADJ_OK;
}

adj_status explain_node(subject *s, const lone_node *n, const source *right, adj_dtype dtype,
                        const double *value, double tolerance, explanation *found)
{
    *found = (explanation){"", ""};
    adj_status status = try_attributes(s, n, right, dtype, value, tolerance, found);
    if (status == ADJ_OK && found->text[0] == '\0')
        status = try_multiplier(s, n, right, dtype, value, tolerance, found);
    return status;
}
