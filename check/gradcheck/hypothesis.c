/* hypothesis.c - is a wrong value the right value of a slightly different node? A convolution or
 * pool is computed anew with its pads moved to the other side, and without its dilation: what comes
 * out equal, element by element, says what the kernel does. */
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

adj_status explain_node(subject *s, const lone_node *n, const source *right, adj_dtype dtype,
                        const double *value, double tolerance, const char **text)
{
    _Alignas(16) char attrs[MAX_ATTR];
    *text = "";
    for (size_t i = 0; i < sizeof hypotheses / sizeof *hypotheses; i++) {
        lone_node changed = *n;
        testimony t;
        if (!change(n->node, &hypotheses[i], attrs))
            continue;
        changed.attrs = attrs;
        adj_status status = run_alone(s, &changed, right, dtype, &t);
        if (status != ADJ_OK)
            return status;
        if (t.is_there && are_close(t.value, value, node_elems(n->node), tolerance)) {
            *text = text_of(s, &hypotheses[i]);
            return ADJ_OK;
        }
    }
    return ADJ_OK;
}
