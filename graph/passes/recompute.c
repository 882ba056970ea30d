/* recompute.c - the pass that recomputes (rematerializes) cheap activations for the gradient, so
 * that they need not stay in memory from the forward pass until then.
 *
 * The gradient of relu(batch_norm(conv)) reads the results of the convolution and of relu. The
 * first is saved; the second can be recomputed from it by two cheap nodes (ADJ_OP_CHEAP). So
 * gradient nodes read a chain of copies of cheap nodes, which begins with leaves and with values
 * that are saved anyway. A copy comes right before its first reader, in id and therefore in time
 * (exec/group.c); or it is fused with another gradient's sums, which read the same values
 * (backends/direct/fused_pointwise/match.c).
 *
 * Nothing is recomputed that would only cause another value to be saved: each operand of a
 * copied node is a leaf, a copy, or a value that gradient nodes read and that is not copied
 * itself. Chains are short, so that in a residual network every other sum is saved and the
 * copies die soon. Copies run the same kernels on the same values: no result changes.
 *
 * By default the pass runs only where it saves time. A saved value leaves the caches and returns
 * much later, while a copy is read right after it was written. That pays if much is saved and
 * about half of it remains (mobilenet_v1). It does not pay if more remains (ds_cnn and resnets
 * save their sums), or if everything stays in the caches anyway. The rule depends on no machine
 * property, so plans are the same everywhere. */
#include <string.h>

#include "passes.h"

enum { NOT_COPIED = 0, MAX_LENGTH = 4 }; /* nodes in a chain; also bounds the recursion */
static const size_t much = 12 << 20;     /* bytes of saved values from which on the pass pays */
static const double share_left = 0.55;

typedef struct {     /* by id of the rebuilt node */
    char *length;    /* length of the chain of copies that gradient nodes read instead */
    adj_node **copy; /* the last copy of the chain */
} copies;

/* True if n is live in the backward pass for another reason. */
static int is_at_hand(const copies *c, const char *kept, const adj_node *n)
{
    return n->op->flags & ADJ_OP_LEAF || kept[n->id] || c->length[n->id] != NOT_COPIED;
}

/* Returns the length of the chain of copies that ends with n; NOT_COPIED if n cannot be
 * recomputed. Views cost nothing, but are no reason to save the viewed value. */
static char chain_length(const copies *c, const char *kept, const adj_node *n)
{
    int is_view = (n->op->flags & ADJ_OP_VIEW) != 0, max = 0, only_leaves = 1;
    if (n->role != ADJ_ROLE_FORWARD || n->op->flags & ADJ_OP_LEAF ||
        !(is_view || n->op->flags & ADJ_OP_CHEAP))
        return NOT_COPIED;
    for (int k = 0; k < n->n_in; k++) {
        const adj_node *x = n->in[k];
        if (!is_at_hand(c, kept, x) || (is_view && k == 0 && c->length[x->id] == NOT_COPIED))
            return NOT_COPIED;
        only_leaves &= (x->op->flags & ADJ_OP_LEAF) != 0;
        max = c->length[x->id] > max ? c->length[x->id] : max;
    }
    return (char)(only_leaves || max >= MAX_LENGTH ? NOT_COPIED : max + 1);
}

/* Marks the values that gradient nodes read, directly or through a view, and those that are
 * fetched. */
static void mark_kept(const rewriting *w, char *kept)
{
    for (int i = 0; i < w->n_root; i++)
        kept[w->root[i]->id] = 1;
    for (int id = w->from->n_node - 1; id >= 0; id--) {
        const adj_node *n = w->from->node[id];
        int is_view = kept[id] && n->op->flags & ADJ_OP_VIEW;
        for (int k = 0; is_needed(&w->uses[id]) && k < n->n_in; k++)
            if (n->role == ADJ_ROLE_GRADIENT || (is_view && k == 0))
                kept[n->in[k]->id] = 1;
    }
}

/* True if recomputing saves time. */
static int pays(const rewriting *w, const copies *c, const char *kept)
{
    size_t all = 0, left = 0;
    for (int id = 0; id < w->from->n_node; id++) {
        const adj_node *n = w->from->node[id];
        if (n->role != ADJ_ROLE_FORWARD || n->op->flags & (ADJ_OP_LEAF | ADJ_OP_VIEW) || !kept[id])
            continue;
        all += adj_type_bytes(n->type);
        left += c->length[id] == NOT_COPIED ? adj_type_bytes(n->type) : 0;
    }
    return all >= much && (double)left <= share_left * (double)all;
}

static adj_status find_repeatable(rewriting *w)
{
    const adj_graph *from = w->from;
    size_t n = (size_t)from->n_node;
    copies *c = w->state = adj_graph_alloc(w->to, sizeof *c);
    char *kept = adj_graph_alloc(w->to, n);
    if (c == NULL || kept == NULL || (c->length = adj_graph_alloc(w->to, n)) == NULL ||
        (c->copy = adj_graph_alloc(w->to, n * sizeof(adj_node *))) == NULL)
        return w->to->status;
    mark_kept(w, kept);
    for (int id = 0; id < from->n_node; id++)
        if (w->uses[id].n_user > 0 && !w->uses[id].is_root)
            c->length[id] = chain_length(c, kept, from->node[id]);
    if (w->target->opts->recompute == 0 && !pays(w, c, kept))
        memset(c->length, NOT_COPIED, n);
    return ADJ_OK;
}

static adj_node *copy_of(rewriting *w, const adj_node *n);

/* Returns n rebuilt on its operands' images, or on their recomputed copies. */
static adj_node *over_copies(rewriting *w, const adj_node *n)
{
    adj_node **operand = adj_graph_alloc(w->to, (size_t)n->n_in * sizeof *operand);
    if (operand == NULL)
        return NULL;
    for (int k = 0; k < n->n_in; k++)
        operand[k] = copy_of(w, n->in[k]);
    return adj_node_new(w->to, n->op, n->n_in, operand, n->attrs);
}

/* Returns what a gradient node reads in place of n. */
static adj_node *copy_of(rewriting *w, const adj_node *n)
{
    const copies *c = w->state;
    if (c->length[n->id] == NOT_COPIED)
        return w->image[n->id];
    adj_node **copy = &c->copy[n->id];
    if (*copy == NULL) {
        int outer = w->to->clone;
        w->to->clone = 1;
        *copy = adj_label(over_copies(w, n), n->name);
        w->to->clone = outer;
    }
    return *copy;
}

static adj_node *recompute(rewriting *w, const adj_node *n, adj_node *in[])
{
    const copies *c = w->state;
    int reads = 0;
    for (int k = 0; k < n->n_in && n->role == ADJ_ROLE_GRADIENT; k++)
        reads |= c->length[n->in[k]->id] != NOT_COPIED;
    return reads ? over_copies(w, n) : rule_copy(w, n, in);
}

/* True if the options request it, or leave it to the library in a training step that saves much. */
static int is_wanted(const pass_target *target, const adj_graph *g)
{
    size_t forward = 0;
    int has_gradient = 0;
    for (int id = 0; id < g->n_node; id++) {
        const adj_node *n = g->node[id];
        forward += n->role == ADJ_ROLE_FORWARD ? adj_type_bytes(n->type) : 0;
        has_gradient |= n->role == ADJ_ROLE_GRADIENT;
    }
    const int may_pay = has_gradient && forward >= much;
    return target->opts->recompute > 0 || (target->opts->recompute == 0 && may_pay);
}

const pass pass_recompute = {
    .name = "recompute", .is_wanted = is_wanted, .prepare = find_repeatable, .rule = recompute};
