/* uses.c - the nodes that some roots need, and the users of each. */
#include <string.h>

#include "graph.h"

void mark_needed(const adj_graph *g, int n_root, const adj_node *const root[], char *needed)
{
    for (int i = 0; i < n_root; i++)
        needed[root[i]->id] = 1;
    for (int id = g->n_node - 1; id >= 0; id--)
        for (int k = 0; needed[id] && k < g->node[id]->n_in; k++)
            needed[g->node[id]->in[k]->id] = 1;
}

int max_operands(const adj_graph *g)
{
    int max = 1;
    for (int id = 0; id < g->n_node; id++)
        max = g->node[id]->n_in > max ? g->node[id]->n_in : max;
    return max;
}

/* Lists the users of each node: one counting pass sizes the lists, one fills them. last_user is
 * scratch, by id: a user that reads an operand twice is listed once. */
static int list_users(const adj_graph *g, const char *needed, region *p, int *last_user,
                      adj_uses *uses)
{
    for (int fill = 0; fill < 2; fill++) {
        memset(last_user, -1, (size_t)g->n_node * sizeof *last_user);
        for (int id = 0; id < g->n_node; id++) {
            const adj_node *user = g->node[id];
            for (int k = 0; k < user->n_in && needed[id]; k++) {
                adj_uses *u = &uses[user->in[k]->id];
                if (last_user[user->in[k]->id] == id)
                    continue;
                last_user[user->in[k]->id] = id;
                if (fill)
                    ((const adj_node **)u->user)[u->n_user] = user;
                u->n_user++;
            }
        }
        for (int id = 0; id < g->n_node && !fill; id++) {
            adj_uses *u = &uses[id];
            if ((u->user = region_alloc(p, (size_t)u->n_user, sizeof(adj_node *))) == NULL)
                return 0;
            u->n_user = 0;
        }
    }
    return 1;
}

adj_uses *find_uses(const adj_graph *g, int n_root, const adj_node *const root[], region *p)
{
    adj_uses *uses = region_alloc(p, (size_t)g->n_node, sizeof *uses);
    char *needed = region_alloc(p, (size_t)g->n_node, 1);
    int *last_user = region_alloc(p, (size_t)g->n_node, sizeof *last_user);
    if (uses == NULL || needed == NULL || last_user == NULL)
        return NULL;
    mark_needed(g, n_root, root, needed);
    if (!list_users(g, needed, p, last_user, uses))
        return NULL;
    for (int i = 0; i < n_root; i++)
        uses[root[i]->id].is_root = 1;
    return uses;
}

int adj_position(int n, const adj_node *const list[], const adj_node *node)
{
    for (int i = 0; i < n; i++)
        if (list[i] == node)
            return i;
    return -1;
}

const adj_node *adj_only_user(const adj_node *n, const adj_uses *uses)
{
    const adj_uses *u = &uses[n->id];
    return !u->is_root && u->n_user == 1 ? u->user[0] : NULL;
}

const adj_node *adj_sibling(const adj_node *n, const adj_op *op, const adj_uses *uses)
{
    const adj_uses *u = &uses[n->in[0]->id];
    for (int i = 0; i < u->n_user; i++)
        if (u->user[i]->op == op && u->user[i]->in[0] == n->in[0] &&
            memcmp(u->user[i]->attrs, n->attrs, adj_attr_size(op)) == 0)
            return u->user[i];
    return NULL;
}
