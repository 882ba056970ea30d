/* nonfinite.c - accepted differences in where NaN and infinities appear: in normalizations, and in
 * convolutions of backends other than naive. */
#include <math.h>
#include <string.h>

#include "check/formula.h"
#include "ops/attr_lists.h"
#include "compare.h"

typedef enum {
    AS_DEFINED,
    ANY_KIND, /* NaN may replace an infinity: sums are shifted or scaled first */
    PADDED,   /* ANY_KIND, and the padding's zeros are multiplied, too */
    IN_PLANE  /* PADDED, and a NaN or infinity spreads over its channel of an image, or its pair of
                 channels of a filter: adjacent terms are added and subtracted, or multiplied by 0 */
} nonfinite_rule;

static const adj_op *const norms[] = {&adj_op_batch_norm_stats,     &adj_op_batch_norm,
                                      &adj_op_batch_norm_grad_sums, &adj_op_batch_norm_grad,
                                      &adj_op_group_norm,           &adj_op_group_norm_grad_sums,
                                      &adj_op_group_norm_grad};

int may_be_any_kind(const adj_node *n)
{
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        if (norms[i] == n->op)
            return 1;
    return 0;
}

/* True if a tile that channels do not fill reads adjacent pixels, multiplied by 0. */
static int may_read_on(const adj_compare_config *c, const adj_node *n)
{
    enum { TILE = 32 };
    const adj_conv_geom *g = adj_node_geom(n);
    const int64_t channels = n->op == &adj_op_conv2d_backprop_input ? g->oc : g->ic;
    const int is_half = adj_is_half(config_dtype(c, n->type.dtype)) || mixed_type(c, n) != ADJ_F32;
    return is_half && channels / g->groups % TILE != 0 &&
           (n->op == &adj_op_conv2d || n->op == &adj_op_conv2d_backprop_input);
}

static nonfinite_rule leniency_of(const adj_compare_config *c, const adj_node *n)
{
    if (may_be_any_kind(n))
        return ANY_KIND;
    adj_conv conv;
    if (strcmp(c->backend, "naive") == 0 || !adj_node_conv(n, &conv))
        return AS_DEFINED;
    return may_be_winograd(c, n) || may_read_on(c, n) ? IN_PLANE : PADDED;
}

/* ---- convolutions ---- */

/* Returns the image's channel, or the filter's pair of channels, of element i. */
static int64_t plane_of(const adj_node *n, int64_t i)
{
    const adj_conv_geom *g = adj_node_geom(n);
    const int64_t *d = n->type.shape.dim;
    if (n->op == &adj_op_conv2d_backprop_filter)
        return i % (d[2] * d[3]);
    return g->format == ADJ_NCHW ? i / (d[2] * d[3]) : i / (d[1] * d[2] * d[3]) * d[3] + i % d[3];
}

/* Returns the expected result with NaN where a correct kernel may give one. */
static double *spread_of(const runner *b, const adj_compare_config *c, const node_case *n,
                         const expectation *e, region *p)
{
    const int in_plane = leniency_of(c, n->node) == IN_PLANE;
    const int64_t elems = node_elems(n->node);
    double **operand = real_operands(b, n, c, p);
    double *value = region_alloc(p, (size_t)elems + 1, sizeof *value);
    double *plane = region_alloc(p, (size_t)elems + 1, sizeof *plane);
    if (operand == NULL || value == NULL || plane == NULL)
        return NULL;
    for (int64_t i = 0; i < elems; i++)
        value[i] = formula_padded_conv(n->node, operand, i);
    for (int64_t i = 0; in_plane && i < elems; i++)
        plane[plane_of(n->node, i)] += 0 * (value[i] + adj_load(e->dtype, e->expected, i));
    for (int64_t i = 0; in_plane && i < elems; i++)
        value[i] = plane[plane_of(n->node, i)];
    return value;
}

/* ---- both ---- */

adj_status accept_nonfinite(const runner *b, const adj_compare_config *c, const node_case *n,
                            adj_type type, void *value, const expectation *e, region *p)
{
    const nonfinite_rule l = leniency_of(c, n->node);
    double *spread = NULL;
    for (int64_t i = 0; i < node_elems(n->node) && l != AS_DEFINED; i++) {
        const double expected = adj_load(e->dtype, e->expected, i);
        if (isfinite(adj_load(type.dtype, value, i)))
            continue;
        int may = !isfinite(rounded(type.dtype, expected));
        if (!may && l >= PADDED) {
            if (spread == NULL && (spread = spread_of(b, c, n, e, p)) == NULL)
                return ADJ_ENOMEM;
            may = !isfinite(spread[i]);
        }
        if (may)
            adj_store(type.dtype, value, i, expected);
    }
    return ADJ_OK;
}
