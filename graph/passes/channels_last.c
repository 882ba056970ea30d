/* channels_last.c - the pass that converts NCHW images to NHWC, the layout that kernels are
 * written for.
 *
 * An op on NCHW images becomes the same op on NHWC images between transposes. Elementwise ops
 * accept either order, so adjacent transposes meet and cancel. The rest stand where values enter
 * and leave the graph, and around ops that depend on axis numbers. Nothing changes if only the
 * reference computes. */
#include <string.h>

#include "passes.h"

static const int to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};

/* State of the pass, by id of the rebuilt node: its NHWC image; NULL if there is none yet. */

static adj_node *channels_last(rewriting *w, const adj_node *v, adj_node *image)
{
    adj_node **last = w->state;
    if (last[v->id] == NULL)
        last[v->id] = adj_transpose(image, 4, to_nhwc);
    return last[v->id];
}

/* Adds the transpose back to NCHW; it is dead if all readers take y itself. */
static adj_node *channels_first(rewriting *w, const adj_node *n, adj_node *y)
{
    ((adj_node **)w->state)[n->id] = adj_label(y, n->name);
    return adj_transpose(y, 4, to_nchw);
}

/* ---- ops on images ---- */

/* Sets attrs to those of the same op in NHWC. Returns 0 if n does not work on NCHW images, or
 * only the reference computes its op. */
static int convert_attrs(const pass_target *target, const adj_node *n, void *attrs)
{
    if (n->op->images == 0 || !target->has_backend(target->backends, n->op))
        return 0;
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    return adj_set_format(n, attrs, ADJ_NHWC);
}

/* Returns the op on NHWC images. images: as adj_op.images; of them those of rank 4 are converted.
 */
static adj_node *on_images(rewriting *w, const adj_node *n, adj_node *in[], const void *attrs,
                           unsigned images)
{
    for (int k = 0; k < n->n_in; k++)
        if (has_operand_bit(images, k) && n->in[k]->type.shape.rank == 4)
            in[k] = channels_last(w, n->in[k], in[k]);
    adj_node *y = adj_node_new(w->to, n->op, n->n_in, in, attrs);
    return images & ADJ_IMAGE_RESULT ? channels_first(w, n, y) : y;
}

/* ---- elementwise ops ---- */

/* True if an operand of n's shape has an NHWC image already and the others can have one. */
static int follows_operands(const rewriting *w, const adj_node *n)
{
    adj_node *const *last = w->state;
    int found = 0;
    if (!(n->op->flags & ADJ_OP_ELEMENTWISE) || n->type.shape.rank != 4)
        return 0;
    for (int k = 0; k < n->n_in; k++) {
        const adj_node *v = n->in[k];
        if (v->type.shape.rank != 4 && adj_shape_elems(v->type.shape) != 1)
            return 0;
        found |= last[v->id] != NULL && adj_shape_equal(v->type.shape, n->type.shape);
    }
    return found;
}

static adj_node *to_channels_last(rewriting *w, const adj_node *n, adj_node *in[])
{
    _Alignas(16) char attrs[MAX_ATTR];
    if (convert_attrs(w->target, n, attrs))
        return on_images(w, n, in, attrs, n->op->images);
    return follows_operands(w, n) ? on_images(w, n, in, n->attrs, ADJ_ALL_IN) : rule_copy(w, n, in);
}

/* ---- the pass ---- */

static int has_channels_first(const pass_target *target, const adj_graph *g)
{
    _Alignas(16) char attrs[MAX_ATTR];
    for (int id = 0; id < g->n_node; id++)
        if (convert_attrs(target, g->node[id], attrs))
            return 1;
    return 0;
}

static adj_status prepare(rewriting *w)
{
    w->state = adj_graph_alloc(w->to, (size_t)w->from->n_node * sizeof(adj_node *));
    return w->state != NULL ? ADJ_OK : w->to->status;
}

const pass pass_channels_last = {.name = "channels last",
                                 .is_wanted = has_channels_first,
                                 .prepare = prepare,
                                 .rule = to_channels_last};
