/* find.c - which nodes can run together slice by slice.
 *
 * A node of images may be in the slice that its operands are made in. A sum over the batch may,
 * too, but who reads it has to wait until it is there: the next level begins. So a level is the
 * number of such waits on the way from the leaves, and nodes of one level that hand images to each
 * other are a group. As nothing leads back to an earlier level, no cycle arises among groups. */
#include <string.h>

#include "exec/backends.h"
#include "find.h"

/* ---- what a node does with images ---- */

typedef enum { NO_IMAGES, EACH_IMAGE, OVER_IMAGES } image_kind;

/* A filter gradient of a half type is wanted in f32, in which slices are summed up. */
static int is_cast_of_sums(const adj_node *n)
{
    return n->op == &adj_op_cast && n->type.dtype == ADJ_F32 && n->in[0]->op->images != 0 &&
           !(n->in[0]->op->images & ADJ_IMAGE_RESULT) && n->in[0]->op->merge == NULL;
}

/* Images between types, too: a CPU without half types has many such casts. */
static int is_by_element(const adj_node *n)
{
    return (n->op->flags & ADJ_OP_ELEMENTWISE) || (n->op == &adj_op_cast && !is_cast_of_sums(n));
}

int is_batch_operand(const adj_node *n, int k)
{
    if (n->op->images != 0)
        return k < 8 && (n->op->images >> k & 1);
    return is_by_element(n) && n->type.shape.rank == 4 &&
           adj_shape_equal(n->in[k]->type.shape, n->type.shape);
}

int is_batch_result(const adj_node *n)
{
    return n->op->images != 0 ? (n->op->images & ADJ_IMAGE_RESULT) != 0 : !is_cast_of_sums(n);
}

static int64_t batch_of(const adj_node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (is_batch_operand(n, k))
            return n->in[k]->type.shape.rank == 4 ? n->in[k]->type.shape.dim[0] : 0;
    return 0;
}

/* Have all images the same number, and the other operands none that has to be cut? */
static int has_one_batch(const adj_node *n)
{
    const int64_t batch = batch_of(n);
    int has_one = batch > 0 && (!is_batch_result(n) ||
                                (n->type.shape.rank == 4 && n->type.shape.dim[0] == batch));
    for (int k = 0; k < n->n_in && has_one; k++) {
        const adj_shape s = n->in[k]->type.shape;
        if (is_batch_operand(n, k))
            has_one = s.rank == 4 && s.dim[0] == batch;
        else if (n->op->images == 0)
            has_one = s.rank < 4 || s.dim[0] == 1;
    }
    return has_one;
}

static int is_wide(adj_dtype t) { return t == ADJ_F32 || t == ADJ_F64; }

/* Leaves, updates and what draws numbers, fails or moves values between processes are outside. */
static int may_be_inside(const adj_exec *e, const adj_node *n)
{
    const unsigned never = ADJ_OP_LEAF | ADJ_OP_VIEW | ADJ_OP_RANDOM | ADJ_OP_CAN_FAIL |
                           ADJ_OP_COLLECTIVE | ADJ_OP_INTERNAL;
    return !(n->op->flags & never) && n->role != ADJ_ROLE_UPDATE && is_needed(&e->uses[n->id]) &&
           backend_for(e, n->op, 0) != e->fallback;
}

/* Is the value read by a cast to f32 alone, which is in the same group? */
static int is_only_cast(const adj_exec *e, const adj_node *n)
{
    const adj_node *user = adj_only_user(n, e->uses);
    return user != NULL && is_cast_of_sums(user) && may_be_inside(e, user);
}

static image_kind kind_of(const adj_exec *e, const adj_node *n)
{
    if (!may_be_inside(e, n))
        return NO_IMAGES;
    if (is_cast_of_sums(n)) {
        const int is_inside = may_be_inside(e, n->in[0]) && has_one_batch(n->in[0]);
        return is_inside && is_only_cast(e, n->in[0]) ? OVER_IMAGES : NO_IMAGES;
    }
    if ((n->op->images == 0 && !is_by_element(n)) || !has_one_batch(n))
        return NO_IMAGES;
    if (is_batch_result(n))
        return EACH_IMAGE;
    return is_wide(n->type.dtype) || is_only_cast(e, n) ? OVER_IMAGES : NO_IMAGES;
}

/* ---- levels and groups ---- */

/* Does n take operand k in the slice in which it is made? */
static int is_in_slice(const slice_search *s, const adj_node *n, int k)
{
    const adj_node *x = n->in[k];
    return s->kind[n->id] != NO_IMAGES &&
           ((s->kind[x->id] == EACH_IMAGE && is_batch_operand(n, k)) || is_cast_of_sums(n));
}

static void find_levels(slice_search *s)
{
    const adj_graph *g = s->e->graph;
    for (int id = 0; id < s->n; id++) {
        const adj_node *n = g->node[id];
        s->kind[id] = (char)kind_of(s->e, n);
        for (int k = 0; k < n->n_in; k++) {
            const int x = (int)n->in[k]->id;
            const int level = s->level[x] + (s->kind[x] != NO_IMAGES && !is_in_slice(s, n, k));
            s->level[id] = level > s->level[id] ? level : s->level[id];
        }
    }
}

/* The last level that n may be of for that reader. */
static int level_for(const slice_search *s, const adj_node *n, const adj_node *reader)
{
    int level = s->level[reader->id];
    for (int k = 0; k < reader->n_in; k++)
        if (reader->in[k] == n && s->kind[n->id] != NO_IMAGES && !is_in_slice(s, reader, k))
            level = s->level[reader->id] - 1;
    return level;
}

/* What is computed again for the gradient is of the level that reads it. */
static void delay_clones(slice_search *s)
{
    for (int id = s->n - 1; id >= 0; id--) {
        const adj_node *n = s->e->graph->node[id];
        const adj_uses *u = &s->e->uses[id];
        int level = -1;
        for (int i = 0; i < u->n_user && n->clone != 0; i++) {
            const int last = level_for(s, n, u->user[i]);
            level = level < 0 || last < level ? last : level;
        }
        if (level > s->level[id])
            s->level[id] = level;
    }
}

int is_member(const slice_search *s, const sliced_nodes *nodes, const adj_node *n)
{
    return s->group[n->id] == (int)nodes->node[0]->id;
}

static int first_of(const slice_search *s, int id)
{
    while (s->group[id] != id)
        id = s->group[id];
    return id;
}

static void join_nodes(slice_search *s)
{
    for (int id = 0; id < s->n; id++) {
        const adj_node *n = s->e->graph->node[id];
        s->group[id] = id;
        for (int k = 0; k < n->n_in; k++) {
            if (!is_in_slice(s, n, k) || s->level[n->in[k]->id] != s->level[id])
                continue;
            const int a = first_of(s, (int)n->in[k]->id), b = first_of(s, id);
            s->group[a > b ? a : b] = a > b ? b : a;
        }
    }
    for (int id = 0; id < s->n; id++) { /* the first node's is known by then */
        s->group[id] = s->group[s->group[id]];
        s->size[s->group[id]]++;
    }
}

/* What is computed again for the gradient is not computed with forward nodes: it would be kept from
 * then on. */
static int mixes_clones(const sliced_nodes *nodes)
{
    int has_forward = 0, has_clone = 0;
    for (int i = 0; i < nodes->n; i++) {
        has_forward |= nodes->node[i]->role == ADJ_ROLE_FORWARD && nodes->node[i]->clone == 0;
        has_clone |= nodes->node[i]->clone != 0;
    }
    return has_forward && has_clone;
}

/* Does every member take the value as one or the other, images or whole; and one that is made in
 * the group as images? */
static int is_taken_one_way(const slice_search *s, const sliced_nodes *nodes, const adj_node *value)
{
    const adj_uses *u = &s->e->uses[value->id];
    int as_images = is_member(s, nodes, value), as_whole = 0;
    for (int i = 0; i < u->n_user; i++)
        for (int k = 0; is_member(s, nodes, u->user[i]) && k < u->user[i]->n_in; k++) {
            if (u->user[i]->in[k] != value)
                continue;
            const int is_inside = is_batch_operand(u->user[i], k) || is_cast_of_sums(u->user[i]);
            as_images |= is_inside;
            as_whole |= !is_inside;
        }
    return !as_images || !as_whole;
}

/* True if each operand of a member is taken one way. Checks a value once for all its readers. */
static int can_be_cut(const slice_search *s, const sliced_nodes *nodes)
{
    const int group = (int)nodes->node[0]->id;
    int can = 1;
    for (int i = 0; i < nodes->n && can; i++)
        for (int k = 0; k < nodes->node[i]->n_in && can; k++) {
            const adj_node *value = nodes->node[i]->in[k];
            if (s->checked[value->id] == group)
                continue;
            s->checked[value->id] = group;
            can = is_taken_one_way(s, nodes, value);
        }
    return can;
}

static void list_group(const slice_search *s, int first, sliced_nodes *nodes)
{
    nodes->n = 0;
    nodes->batch = 0;
    for (int id = first; nodes->n < s->size[first]; id++)
        if (s->group[id] == first) {
            nodes->node[nodes->n++] = s->e->graph->node[id];
            const int64_t batch = batch_of(s->e->graph->node[id]);
            nodes->batch = batch > 0 ? batch : nodes->batch; /* a cast of sums has none */
        }
}

adj_status find_sliced_nodes(adj_exec *e, int large, sliced_nodes **list, int *n)
{
    const size_t count = (size_t)e->graph->n_node;
    slice_search s = {.e = e, .n = e->graph->n_node};
    s.kind = exec_alloc(e, count, 1);
    s.level = exec_alloc(e, count, sizeof *s.level);
    s.group = exec_alloc(e, count, sizeof *s.group);
    s.size = exec_alloc(e, count, sizeof *s.size);
    s.checked = exec_alloc(e, count, sizeof *s.checked);
    sliced_nodes *all = exec_alloc(e, count, sizeof *all);
    const adj_node **node = exec_alloc(e, count, sizeof(adj_node *));
    if (e->status != ADJ_OK)
        return e->status;
    memset(s.checked, NONE, count * sizeof *s.checked);
    find_levels(&s);
    delay_clones(&s);
    join_nodes(&s);
    *n = 0;
    for (int first = 0; first < s.n; first++) {
        sliced_nodes *nodes = &all[*n];
        if (s.size[first] < 2)
            continue;
        nodes->node = node;
        list_group(&s, first, nodes);
        if (mixes_clones(nodes) || !can_be_cut(&s, nodes) || !cut_slices(&s, large, nodes))
            continue;
        node += nodes->n;
        ++*n;
    }
    *list = all;
    return ADJ_OK;
}
