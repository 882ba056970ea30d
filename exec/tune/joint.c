/* joint.c - what was timed is decided for the whole plan together: a kernel that is fast in a
 * layout of its own is worth it where its neighbours take that layout, or where the reorders at its
 * borders cost less. The search is assign.c's; here a plan is put in its terms.
 *
 * A group whose kernel was not timed counts as plain: most take nothing else, and what one that
 * follows its operands would save is not known before it is prepared. */
#include <math.h>
#include <string.h>

#include "assign.h"
#include "exec/backends.h"
#include "tune.h"

typedef struct {
    const adj_layout *layout;
    int backend;
} known_layout;

typedef struct { /* [0]: plain */
    int n;
    known_layout list[ASSIGN_LAYOUTS];
} layouts;

typedef struct {
    adj_exec *e;
    layouts *of;      /* by node id */
    double **seconds; /* by decision, by way */
    assign_problem p;
} joint;

/* ---- layouts as numbers ---- */

/* NONE: there are too many. */
static int layout_number(layouts *l, const adj_layout *layout, int backend)
{
    if (layout == NULL)
        return 0;
    for (int i = 1; i < l->n; i++)
        if (l->list[i].layout == layout && l->list[i].backend == backend)
            return i;
    if (l->n == ASSIGN_LAYOUTS)
        return NONE;
    l->list[l->n] = (known_layout){layout, backend};
    return l->n++;
}

/* Between backends only plain passes. */
static double reorder_seconds(void *user, int value, int from, int to)
{
    const joint *j = user;
    const known_layout a = j->of[value].list[from], b = j->of[value].list[to];
    const int is_twofold = a.layout != NULL && b.layout != NULL && a.backend != b.backend;
    reorder_cost wanted = {.type = j->e->graph->node[value]->type,
                           .backend = a.layout != NULL ? a.backend : b.backend,
                           .from = a.layout,
                           .to = is_twofold ? NULL : b.layout,
                           .is_free = is_invariant(j->e, j->e->graph->node[value])};
    double seconds = 0;
    tune_reorder(j->e, &wanted, &seconds);
    if (is_twofold) {
        wanted.backend = b.backend;
        wanted.from = NULL;
        wanted.to = b.layout;
        tune_reorder(j->e, &wanted, &seconds);
    }
    return seconds;
}

/* ---- the plan as parts ---- */

static void *room(joint *j, int count, size_t size)
{
    void *data = region_alloc(&j->e->tuner->region, (size_t)count, size);
    if (data == NULL)
        no_memory(j->e);
    return data;
}

/* The layouts of a way in the part; 0: a value has too many already. */
static int number_layouts(joint *j, const assign_part *part, const tune_way *w, int *number)
{
    int n_wrong = 0;
    for (int i = 0; i < part->n_in + part->n_out; i++) {
        const adj_layout *l = i < part->n_in ? w->in[i] : w->out[i - part->n_in];
        number[i] = layout_number(&j->of[part->value[i]], l, w->index);
        n_wrong += number[i] == NONE;
    }
    return n_wrong == 0;
}

static adj_status add_part(joint *j, const tune_part *from, assign_part *to)
{
    const adj_group *g = &from->group;
    const tune_decision *d = from->decision != NONE ? &j->e->tuner->decision[from->decision] : NULL;
    const int n = g->n_in + g->n_out, n_way = d != NULL ? d->n : 0;
    int *value = room(j, n, sizeof *value), *layout = room(j, n, (size_t)n_way * sizeof *layout);
    if (value == NULL || layout == NULL)
        return j->e->status;
    *to = (assign_part){g->n_in, g->n_out, value, from->decision, layout};
    for (int i = 0; i < g->n_in; i++)
        value[i] = g->in[i]->id;
    for (int i = 0; i < g->n_out; i++)
        value[g->n_in + i] = g->out[i]->id;
    for (int i = 0; i < n_way; i++)
        if (!number_layouts(j, to, &d->way[i], layout + (ptrdiff_t)i * n)) {
            j->seconds[from->decision][i] = HUGE_VAL;
            memset(layout + (ptrdiff_t)i * n, 0, (size_t)n * sizeof *layout);
        }
    return ADJ_OK;
}

static adj_status add_choice(joint *j, int decision, assign_choice *to)
{
    const tune_decision *d = &j->e->tuner->decision[decision];
    double *seconds = j->seconds[decision] = room(j, d->n, sizeof *seconds);
    *to = (assign_choice){d->n, seconds};
    for (int i = 0; i < d->n && seconds != NULL; i++)
        seconds[i] = tune_weight(&d->way[i]);
    return j->e->status;
}

/* What is fetched, or assigned by an update. */
static adj_status add_ends(joint *j)
{
    const adj_exec *e = j->e;
    int *end = room(j, e->n_fetch + e->n_update, sizeof *end);
    if (end == NULL)
        return e->status;
    for (int i = 0; i < e->n_fetch; i++)
        end[i] = e->image[e->fetched[i]->id]->id;
    for (int i = 0; i < e->n_update; i++)
        end[e->n_fetch + i] = e->update[i].next;
    j->p.end = end;
    j->p.n_end = e->n_fetch + e->n_update;
    return ADJ_OK;
}

/* The one that is taken without timing, if it could be run, else the first. */
static int usual_way(const tune_decision *d)
{
    int i = 0;
    while (i < d->n && !d->way[i].is_usual)
        i++;
    return i < d->n ? i : 0;
}

adj_status tune_decide(adj_exec *e, int chosen[])
{
    const tuner *t = e->tuner;
    joint j = {.e = e};
    double seconds;
    j.of = room(&j, e->graph->n_node, sizeof *j.of);
    assign_part *part = room(&j, e->n_group, sizeof *part);
    assign_choice *choice = room(&j, t->n_decision, sizeof *choice);
    j.seconds = room(&j, t->n_decision, sizeof *j.seconds);
    if (e->status != ADJ_OK || add_ends(&j) != ADJ_OK)
        return e->status;
    for (int id = 0; id < e->graph->n_node; id++)
        j.of[id].n = 1;
    for (int i = 0; i < t->n_decision; i++)
        if (add_choice(&j, i, &choice[i]) != ADJ_OK)
            return e->status;
    for (int i = 0; i < e->n_group; i++)
        if (add_part(&j, &t->part[i], &part[i]) != ADJ_OK)
            return e->status;
    j.p.part = part;
    j.p.choice = choice;
    j.p.n_value = e->graph->n_node;
    j.p.n_part = e->n_group;
    j.p.n_choice = t->n_decision;
    j.p.reorder = reorder_seconds;
    j.p.user = &j;
    if (assign_cheapest(&j.p, &e->region.allocator, chosen, &seconds) != ADJ_OK)
        return no_memory(e);
    for (int i = 0; i < t->n_decision && !(seconds < HUGE_VAL); i++)
        chosen[i] = usual_way(&t->decision[i]);
    return e->status;
}
