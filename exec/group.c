/* group.c - divides the nodes into groups, one for each step, and orders the steps.
 *
 * Kernels propose groups (adj_kernel.match). A proposal is accepted if its nodes are free and the
 * groups stay acyclic. If no kernel can be prepared for a group, its nodes become single steps;
 * kernels that take an epilogue, such as an addition and a relu behind a convolution, take these
 * steps' nodes when the steps are planned (plan.c).
 *
 * While groups are formed, a topological order of them is maintained, at first that of the nodes. A
 * cycle through a new group can only pass through groups between the places of its members. So only
 * these are searched, and only their places change when the group is accepted. The steps run in
 * this order, but updates last and collectives early. All processes must start collectives in the
 * same order, so a start counts as a user of the one before it. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"
#include "invariant.h"
#include "planning.h"
#include "select_kernel.h"

typedef struct {
    adj_exec *e;
    const adj_uses *uses; /* by id */
    int n;                /* nodes, and so groups */
    int *of;              /* by id: the group's number; NONE for leaves */
    node_group *group;
    int *found;       /* room for the groups that a search has found */
    int *place, *at;  /* by group: its place in the order; by place: the group, or NONE */
    int *mark, stamp; /* by group: number of the last search that reached it; negative: it was a
                         start of that search */
    int *next_start;  /* by id of a collective's start: the next one, by id; 0: none */
} grouping;

static int is_wait(const adj_node *n) { return n->op == &adj_op_all_reduce_wait; }

static int is_start(const adj_node *n) { return (n->op->flags & ADJ_OP_COLLECTIVE) && !is_wait(n); }

/* Marks with the stamp the groups up to a place that depend on one of the n found groups, which are
 * marked with -stamp. Returns 0 if one of these is among them: a cycle. */
static int mark_users(grouping *w, int n, int last)
{
    for (int next = 0; next < n; next++) {
        const int from = w->found[next];
        for (int m = 0; m < w->group[from].n; m++) {
            const uint32_t id = w->group[from].node[m]->id;
            const adj_uses *u = &w->uses[id];
            for (int i = 0; i < u->n_user + (w->next_start[id] > 0); i++) {
                int to = w->of[i < u->n_user ? (int)u->user[i]->id : w->next_start[id]];
                if (w->mark[to] == -w->stamp && w->mark[from] == w->stamp)
                    return 0;
                if (abs(w->mark[to]) == w->stamp || w->place[to] > last)
                    continue;
                w->mark[to] = w->stamp;
                w->found[n++] = to;
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
            w->found[n_marked++] = g;
        else
            w->at[to++] = g;
    }
    w->at[to++] = into;
    for (int i = 0; i < n_marked; i++)
        w->at[to++] = w->found[i];
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
        w->found[i] = g;
        first = w->place[g] < first ? w->place[g] : first;
        last = w->place[g] > last ? w->place[g] : last;
    }
    if (!mark_users(w, n, last))
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
    w->found = planning_alloc(e, n, sizeof *w->found);
    w->place = planning_alloc(e, n, sizeof *w->place);
    w->at = planning_alloc(e, n, sizeof *w->at);
    w->mark = planning_alloc(e, n, sizeof *w->mark);
    w->next_start = planning_alloc(e, n, sizeof *w->next_start);
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
    for (int id = w->n - 1, next = 0; id >= 0; id--)
        if (is_start(single[id])) {
            w->next_start[id] = next;
            next = id;
        }
    return ADJ_OK;
}

/* ---- the order of the steps ---- */

#define LATE (INT64_C(1) << 56) /* key after all groups that compute no update */

typedef struct {
    int64_t key;
    int place;
} rank;

typedef struct {
    grouping *w;
    char *at_once; /* by id: a collective's start, or an update node that only starts need */
    int64_t *key; /* by group: groups with smaller keys run first, then those with smaller places */
    int *wait;    /* by group: number of the last late wait that it depends on, from 1; 0: none */
    int n_wait;
    int64_t started; /* key of the last start of a collective */
} ranking;

static int by_key(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->place - y->place;
}

/* True if only updates wait for the collective; one that the net itself reads keeps its place. */
static int is_late_wait(const adj_node *n) { return is_wait(n) && n->role == ADJ_ROLE_UPDATE; }

static void mark_at_once(const ranking *r)
{
    for (int id = r->w->n - 1; id >= 0; id--) {
        const adj_node *n = r->w->e->plan.graph->node[id];
        r->at_once[id] |= is_start(n);
        for (int k = 0; k < n->n_in; k++)
            r->at_once[n->in[k]->id] |= r->at_once[id] && n->in[k]->role == ADJ_ROLE_UPDATE;
    }
}

/* Finds the key of group i, at least that of its operands and, for a collective's start, of the
 * start before it. A start, and update nodes that only it reads, run as early as possible, so that
 * other steps run while the values travel, and gradients can be freed. A group that computes only
 * updates runs behind all others: first those that need only the first result of a late wait. A
 * group that also computes the cast of a gradient is no update: steps behind the first update may
 * overwrite parameters (memory.c). Requires: the keys of all groups at earlier places. */
static void find_key(ranking *r, int i)
{
    const grouping *w = r->w;
    int is_at_once = 0, is_update = 1;
    int64_t min = -1;
    for (int m = 0; m < w->group[i].n; m++) {
        const adj_node *n = w->group[i].node[m];
        is_at_once |= r->at_once[n->id];
        is_update &= n->role == ADJ_ROLE_UPDATE;
        if (is_late_wait(n))
            r->wait[i] = ++r->n_wait;
        if (is_start(n) && r->started > min)
            min = r->started;
        for (int k = 0; k < n->n_in; k++) {
            const int from = w->of[n->in[k]->id];
            if (from != NONE && r->key[from] > min)
                min = r->key[from];
            if (from != NONE && r->wait[from] > r->wait[i])
                r->wait[i] = r->wait[from];
        }
    }
    int64_t key = w->place[i];
    if (is_at_once && r->wait[i] == 0)
        key = min;
    else if (is_update)
        key += LATE + ((int64_t)r->wait[i] << 32);
    r->key[i] = key > min ? key : min;
    if (is_start(w->group[i].node[0]))
        r->started = r->key[i];
}

/* Writes the groups to c->group in the order in which they run. */
static adj_status order(grouping *w)
{
    planning *c = w->e->planning;
    const size_t n = (size_t)w->n;
    rank *list = planning_alloc(w->e, n, sizeof *list);
    ranking r = {.w = w, .started = -1};
    r.at_once = planning_alloc(w->e, n, sizeof *r.at_once);
    r.key = planning_alloc(w->e, n, sizeof *r.key);
    r.wait = planning_alloc(w->e, n, sizeof *r.wait);
    c->group = planning_alloc(w->e, n, sizeof *c->group);
    c->group_of = planning_alloc(w->e, n, sizeof *c->group_of);
    if (w->e->status != ADJ_OK)
        return w->e->status;
    mark_at_once(&r);
    for (int place = 0; place < w->n; place++) {
        const int i = w->at[place];
        if (i == NONE || w->group[i].n == 0)
            continue;
        find_key(&r, i);
        list[c->n_group++] = (rank){r.key[i], place};
    }
    qsort(list, (size_t)c->n_group, sizeof *list, by_key);
    for (int i = 0; i < c->n_group; i++) {
        c->group[i] = w->group[w->at[list[i].place]];
        for (int m = 0; m < c->group[i].n; m++)
            c->group_of[c->group[i].node[m]->id] = i;
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
        for (int b = first_backend(e, g->node[id]->op); b <= e->backends.fallback; b++)
            if (w.of[id] == id && w.group[id].n == 1 && propose(&w, g->node[id], b) != ADJ_OK)
                return e->status;
    return order(&w);
}
