/* budget.c - time limits for timing the candidates of a group.
 *
 * The time of the whole plan is divided among the groups that are still undecided: half of it by
 * their work, half equally, as preparing candidates takes time however small the group is. So time
 * remains for the last groups, and what one group does not use goes to the others. Groups of equal
 * work are timed and counted once. If the number of runs of the plan is known, the limit is also a
 * small fraction of the group's time in all these runs: timing could not save more. */
#include <math.h>
#include <string.h>

#include "tune.h"

static const double part_of_runs = 0.02;
enum { FEWEST_RUNS = 4 }; /* two candidates, twice each */

/* About what one run takes, in seconds: only the ratio counts, between groups of one graph. */
static double work_of(int n, const adj_node *const node[])
{
    double seconds = 0;
    for (int i = 0; i < n; i++) {
        const adj_node *const *in = (const adj_node *const *)node[i]->in;
        seconds +=
            nominal_of_group(&(adj_group){1, &node[i], node[i]->n_in, in, 1, &node[i]}).seconds;
    }
    return seconds;
}

static int is_same_node(const adj_node *a, const adj_node *b)
{
    int same = a->op == b->op && a->n_in == b->n_in && is_same_type(a->type, b->type) &&
               memcmp(a->attrs, b->attrs, adj_attr_size(a->op)) == 0;
    for (int k = 0; k < a->n_in && same; k++)
        same = is_same_type(a->in[k]->type, b->in[k]->type);
    return same;
}

static int is_same_work(const node_group *a, const node_group *b)
{
    int same = a->n == b->n;
    for (int i = 0; i < a->n && same; i++)
        same = is_same_node(a->node[i], b->node[i]);
    return same;
}

void budget_open(adj_exec *e, int64_t runs)
{
    tuner *t = e->planning->tuner;
    t->runs = runs > 0 ? (double)runs * part_of_runs : HUGE_VAL;
    for (int i = 0; i < e->planning->n_group && budget_is_open(t); i++) {
        const node_group *g = &e->planning->group[i];
        int k = 0;
        while (k < i && !is_same_work(&e->planning->group[k], g))
            k++;
        int is_view = g->n == 1 && (g->node[0]->op->flags & ADJ_OP_VIEW);
        if (k < i || is_view)
            continue;
        t->work_left += work_of(g->n, g->node);
        t->groups_left++;
    }
}

int budget_is_open(const tuner *t)
{
    return t->may_time && t->spent < t->seconds && t->runs >= FEWEST_RUNS;
}

double budget_for(const adj_exec *e, const adj_group *g, double untuned)
{
    const tuner *t = e->planning->tuner;
    const double left = t->seconds - t->spent, work = work_of(g->n_node, g->node);
    const double by_work = t->work_left > work ? work / t->work_left : 1;
    const double equal = t->groups_left > 1 ? 1.0 / t->groups_left : 1;
    const double share = left * (by_work + equal) / 2;
    const double gain = t->runs == HUGE_VAL ? HUGE_VAL : t->runs * untuned;
    return share < gain ? share : gain;
}

void budget_pass(adj_exec *e, const adj_group *g)
{
    e->planning->tuner->work_left -= work_of(g->n_node, g->node);
    e->planning->tuner->groups_left--;
}
