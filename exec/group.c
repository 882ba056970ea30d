/* group.c - divides the nodes into groups, one for each step, and orders the steps.
 *
 * Kernels propose groups (adj_kernel.match). A proposal is accepted if its nodes are free and the
 * groups stay acyclic. If no kernel can be prepared for a group, its nodes become single steps
 * (plan.c). The order is topological, by node id where there is a choice; updates come last.
 *
 * While groups are formed, a topological order of them is maintained. A cycle through a new group
 * can only pass through groups between the positions of its members. So only these are searched,
 * and only their positions change when the group is accepted. */
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "exec.h"
#include "invariant.h"
#include "planning.h"

typedef struct {
    adj_exec *e;
    const adj_uses *uses; /* by id */
    int n;                /* nodes, and so groups */
    int *of;              /* by id: the group's number; NONE for leaves */
    node_group *group;
    int *waits;       /* by group: pairs of an operand that is not computed yet and its reader */
    int *ready;       /* room for a heap of groups */
    int *place, *at;  /* by group: its place in the order; by place: the group, or NONE */
    int *mark, stamp; /* by group: the search that has seen it; negative: that was for it */
    int64_t *turn; /* by group: the number of the collective that it starts, from 1; 0: none. NULL:
                      the graph has none */
} grouping;

/* ---- the order of the steps ---- */

/* A priority queue of groups: the smallest key first, then the smallest number. */
typedef struct {
    const int64_t *key; /* by group */
    int n, *group;      /* a binary heap */
} heap;

static int comes_before(const heap *h, int a, int b)
{
    return h->key[a] != h->key[b] ? h->key[a] < h->key[b] : a < b;
}

static void push(heap *h, int group)
{
    int i = h->n++;
    for (; i > 0 && comes_before(h, group, h->group[(i - 1) / 2]); i = (i - 1) / 2)
        h->group[i] = h->group[(i - 1) / 2];
    h->group[i] = group;
}

static int pop(heap *h)
{
    const int first = h->group[0], last = h->group[--h->n];
    int i = 0;
    for (int child = 1; child < h->n; child = 2 * i + 1) {
        child += child + 1 < h->n && comes_before(h, h->group[child + 1], h->group[child]);
        if (comes_before(h, last, h->group[child]))
            break;
        h->group[i] = h->group[child];
        i = child;
    }
    h->group[i] = last;
    return first;
}

/* Groups whose operands have been computed. All processes must start collectives in the same order,
 * while their other steps may be ordered differently. So a collective that is not the next one
 * waits, unless nothing else is left. */
typedef struct {
    heap now, waiting; /* by the caller's key; by the number of the collective */
    int64_t turn;      /* of the next collective, from 1 */
} ready_groups;

static void add_ready(ready_groups *r, int group)
{
    const int64_t *turn = r->waiting.key;
    push(turn != NULL && turn[group] > r->turn ? &r->waiting : &r->now, group);
}

static int take_ready(ready_groups *r)
{
    const int64_t *turn = r->waiting.key;
    while (r->waiting.n > 0 && turn[r->waiting.group[0]] <= r->turn)
        push(&r->now, pop(&r->waiting));
    const int taken = pop(r->now.n > 0 ? &r->now : &r->waiting);
    r->turn += turn != NULL && turn[taken] > 0;
    return taken;
}

/* Counts, for each group, the pairs of operand and reader that it waits for. */
static void count_waits(grouping *w)
{
    for (int id = 0; id < w->n; id++)
        for (int i = 0; w->of[id] != NONE && i < w->uses[id].n_user; i++) {
            const int to = w->of[w->uses[id].user[i]->id];
            w->waits[to] += to != w->of[id];
        }
}

/* Writes the groups to out in topological order; of several that are ready, the one with the
 * smallest key comes first. Returns their number. */
static int order(grouping *w, const int64_t *key, node_group *out)
{
    ready_groups r = {.now = {.key = key, .group = w->ready},
                      .waiting = {.key = w->turn, .group = w->at},
                      .turn = 1};
    int done = 0;
    count_waits(w);
    for (int i = 0; i < w->n; i++)
        if (w->group[i].n > 0 && w->waits[i] == 0)
            add_ready(&r, i);
    while (r.now.n + r.waiting.n > 0) {
        const int taken = take_ready(&r);
        out[done++] = w->group[taken];
        for (int m = 0; m < w->group[taken].n; m++) {
            const adj_uses *u = &w->uses[w->group[taken].node[m]->id];
            for (int i = 0; i < u->n_user; i++) {
                const int to = w->of[u->user[i]->id];
                if (to != taken && --w->waits[to] == 0)
                    add_ready(&r, to);
            }
        }
    }
    return done;
}

/* ---- groups ---- */

/* Marks with the stamp the groups up to a place that depend on one of n nodes. Returns 0 if the
 * groups of the nodes themselves, marked with -stamp, are among them: a cycle. */
static int mark_users(grouping *w, int n, const adj_node *const node[], int last)
{
    int waiting = 0;
    for (int next = -1; next < waiting; next++) {
        const node_group *from = next >= 0 ? &w->group[w->ready[next]] : NULL;
        int n_node = from != NULL ? from->n : n;
        for (int m = 0; m < n_node; m++) {
            const adj_uses *u = &w->uses[(from != NULL ? from->node[m] : node[m])->id];
            for (int i = 0; i < u->n_user; i++) {
                int to = w->of[u->user[i]->id];
                if (w->mark[to] == -w->stamp && from != NULL)
                    return 0;
                if (abs(w->mark[to]) == w->stamp || w->place[to] > last)
                    continue;
                w->mark[to] = w->stamp;
                w->ready[waiting++] = to;
            }
        }
    }
    return 1;
}

/* Reorders the groups between two places, these included: first those without the stamp, then the
 * new group, then those with the stamp, each part in the old order. The places of the other members
 * become empty. */
static void move_apart(grouping *w, int into, int first, int last)
{
    int n_marked = 0, to = first;
    for (int i = first; i <= last; i++) {
        int g = w->at[i];
        if (g == NONE || w->mark[g] == -w->stamp)
            continue;
        if (w->mark[g] == w->stamp)
            w->ready[n_marked++] = g;
        else
            w->at[to++] = g;
    }
    w->at[to++] = into;
    for (int i = 0; i < n_marked; i++)
        w->at[to++] = w->ready[i];
    while (to <= last)
        w->at[to++] = NONE;
    for (int i = first; i <= last; i++)
        if (w->at[i] != NONE)
            w->place[w->at[i]] = i;
}

/* True if the proposed nodes are free, the backend may compute each, and the root is among them.
 * Recomputed nodes do not join forward nodes, because their values would then be stored until the
 * backward pass. */
static int is_acceptable(const grouping *w, const adj_node *root, int n, int backend)
{
    int has_root = 0, has_forward = 0, has_clone = 0;
    for (int i = 0; i < n; i++) {
        const adj_node *m = w->e->planning->proposed[i];
        if (w->of[m->id] == NONE || w->group[w->of[m->id]].n != 1 ||
            !may_compute(w->e, backend, m->op))
            return 0;
        has_root |= m == root;
        has_forward |= m->role == ADJ_ROLE_FORWARD && m->clone == 0;
        has_clone |= m->clone != 0;
    }
    return has_root && n > 1 && !(has_forward && has_clone);
}

/* Copies n nodes, operands before their readers. */
static void copy_sorted(const adj_node **to, int n, const adj_node *const from[])
{
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0 && to[k - 1]->id > from[i]->id; k--)
            to[k] = to[k - 1];
        to[k] = from[i];
    }
}

/* Moves the proposed nodes, which are single groups so far, to the root's group, unless a cycle
 * arises. */
static adj_status join(grouping *w, const adj_node *root, int n, const adj_kernel *kernel)
{
    const adj_node **node = exec_alloc(w->e, (size_t)n, sizeof(adj_node *));
    if (node == NULL)
        return w->e->status;
    copy_sorted(node, n, w->e->planning->proposed);
    int into = w->of[root->id], first = w->place[into], last = first;
    w->stamp++;
    for (int i = 0; i < n; i++) {
        int g = w->of[node[i]->id];
        w->mark[g] = -w->stamp;
        first = w->place[g] < first ? w->place[g] : first;
        last = w->place[g] > last ? w->place[g] : last;
    }
    if (!mark_users(w, n, node, last))
        return ADJ_OK;
    move_apart(w, into, first, last);
    for (int i = 0; i < n; i++) {
        if (node[i] != root)
            w->group[w->of[node[i]->id]].n = 0;
        w->of[node[i]->id] = into;
    }
    w->group[into] = (node_group){.n = n, .node = node, .kernel = kernel};
    return ADJ_OK;
}

/* Forms a group from root if a kernel of the backend proposes one. */
static adj_status propose(grouping *w, const adj_node *root, int backend)
{
    const adj_kernel *const *kernel = w->e->backends.list[backend]->kernels;
    for (; *kernel != NULL && w->group[w->of[root->id]].n == 1; kernel++) {
        if ((*kernel)->match == NULL)
            continue;
        int n = (*kernel)->match(root, w->uses, w->n, w->e->planning->proposed);
        if (n > 1 && n <= w->n && is_acceptable(w, root, n, backend) &&
            join(w, root, n, *kernel) != ADJ_OK)
            return w->e->status;
    }
    return ADJ_OK;
}

/* Makes a group of every node. */
static adj_status start(grouping *w)
{
    adj_exec *e = w->e;
    w->n = e->plan.graph->n_node;
    size_t n = (size_t)w->n;
    w->of = planning_alloc(e, n, sizeof *w->of);
    w->waits = planning_alloc(e, n, sizeof *w->waits);
    w->ready = planning_alloc(e, n, sizeof *w->ready);
    w->place = planning_alloc(e, n, sizeof *w->place);
    w->at = planning_alloc(e, n, sizeof *w->at);
    w->mark = planning_alloc(e, n, sizeof *w->mark);
    e->planning->proposed = planning_alloc(e, n, sizeof(adj_node *));
    w->group = planning_alloc(e, n, sizeof *w->group);
    const adj_node **single = exec_alloc(e, n, sizeof(adj_node *));
    if (e->status != ADJ_OK)
        return e->status;
    for (int id = 0; id < w->n; id++) {
        int is_leaf = (e->plan.graph->node[id]->op->flags & ADJ_OP_LEAF) != 0;
        single[id] = e->plan.graph->node[id];
        w->of[id] = is_leaf ? NONE : id;
        w->place[id] = w->at[id] = id; /* operands come first */
        w->group[id] = (node_group){.n = !is_leaf, .node = &single[id]};
    }
    return ADJ_OK;
}

#define LATE (INT64_C(1) << 56) /* a key after all that no update computes */

/* Returns the key of a group in the order of steps: its last id, or behind all others if the group
 * computes only updates. A group that also computes the cast of a gradient is no update: steps
 * behind the first update may overwrite parameters (memory.c). */
static int64_t key_of(const node_group *g)
{
    int64_t last = 0;
    int late = 1;
    for (int m = 0; m < g->n; m++) {
        last = g->node[m]->id > last ? g->node[m]->id : last;
        late &= g->node[m]->role == ADJ_ROLE_UPDATE;
    }
    return late ? last + LATE : last;
}

/* ---- collectives ---- */

static int is_wait(const adj_node *n) { return n->op == &adj_op_all_reduce_wait; }

static int is_start(const adj_node *n) { return (n->op->flags & ADJ_OP_COLLECTIVE) && !is_wait(n); }

/* True if only updates wait for the collective; one that the net itself reads keeps its place by
 * id. */
static int is_late_wait(const adj_node *n) { return is_wait(n) && n->role == ADJ_ROLE_UPDATE; }

/* Moves collectives. A start, and update nodes that only it reads, run as early as possible, so
 * that other steps run while the values travel, and gradients can be freed. Nodes that depend on a
 * late wait follow at the end, in the order of the starts: first those that need only the first
 * result. */
static adj_status order_collectives(grouping *w, int64_t key[])
{
    const adj_graph *g = w->e->plan.graph;
    char *at_once = planning_alloc(w->e, (size_t)w->n, 1);
    int *last_wait = planning_alloc(w->e, (size_t)w->n, sizeof *last_wait);
    int n_wait = 0, n_start = 0;
    w->turn = planning_alloc(w->e, (size_t)w->n, sizeof *w->turn);
    if (w->e->status != ADJ_OK)
        return w->e->status;
    for (int id = w->n - 1; id >= 0; id--) {
        const adj_node *n = g->node[id];
        at_once[id] |= is_start(n);
        for (int k = 0; k < n->n_in; k++)
            at_once[n->in[k]->id] |= at_once[id] && n->in[k]->role == ADJ_ROLE_UPDATE;
    }
    for (int id = 0; id < w->n; id++) {
        const adj_node *n = g->node[id];
        if (is_late_wait(n))
            last_wait[id] = ++n_wait;
        for (int k = 0; k < n->n_in; k++)
            if (last_wait[n->in[k]->id] > last_wait[id])
                last_wait[id] = last_wait[n->in[k]->id];
        const int i = w->of[id];
        if (i != NONE && is_start(n))
            w->turn[i] = ++n_start;
        const int64_t after = LATE + ((int64_t)last_wait[id] << 32) + id;
        if (i != NONE && at_once[id] && last_wait[id] == 0)
            key[i] = -1;
        else if (i != NONE && key[i] >= LATE && key[i] < after)
            key[i] = after;
    }
    return ADJ_OK;
}

adj_status form_groups(adj_exec *e)
{
    planning *c = e->planning;
    const adj_graph *g = e->plan.graph;
    grouping w = {.e = e};
    if ((w.uses = c->uses = find_uses(g, c->n_root, c->root, &c->region)) == NULL)
        return no_memory(e);
    if (start(&w) != ADJ_OK)
        return e->status;
    for (int id = 0; id < w.n && !e->debug.no_fusion; id++)
        for (int k = 0, b; w.of[id] == id && (b = backend_for(e, g->node[id]->op, k)) != NONE; k++)
            if (w.group[id].n == 1 && propose(&w, g->node[id], b) != ADJ_OK)
                return e->status;
    int64_t *key = planning_alloc(e, (size_t)w.n, sizeof *key);
    c->group = planning_alloc(e, (size_t)w.n, sizeof *c->group);
    c->group_of = planning_alloc(e, (size_t)w.n, sizeof *c->group_of);
    if (e->status != ADJ_OK)
        return e->status;
    for (int i = 0; i < w.n; i++)
        key[i] = key_of(&w.group[i]);
    if (has_collective(w.n, (const adj_node *const *)g->node) &&
        order_collectives(&w, key) != ADJ_OK)
        return e->status;
    c->n_group = order(&w, key, c->group);
    for (int i = 0; i < c->n_group; i++)
        for (int m = 0; m < c->group[i].n; m++)
            c->group_of[c->group[i].node[m]->id] = i;
    return ADJ_OK;
}
