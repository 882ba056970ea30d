/* updates.c - runs two training steps in the plan that assigns updates, possibly in place, and
 * compares the leaves with the next values of the plan without updates. */
#include <math.h>
#include <string.h>

#include "compare.h"
#include "exec/exec.h"
#include "exec/memory.h"

enum { STEPS = 2 };

/* Tolerance of a leaf, as both plans may use different kernels: a fraction of its change, units of
 * its norm, and a multiple of its sensitivity to parameter rounding. */
static const double fraction = 0.125, rounding_units = 64, times = 4;

typedef struct {
    const adj_node *leaf, *next;
    const void *held; /* the leaf's value in the plan with updates */
    void *now, *then; /* the value before a step; the next value */
    void *moved;      /* the next value if parameters move by a few units */
} assigned;

typedef struct {
    const trial *t;
    adj_exec *plain, *trained;
    int n;
    assigned *update;
    void *fetched; /* value of the first leaf, which is fetched */
} training;

/* Returns the norm of a - b; b == NULL: of a. Elements that are NaN in both count as equal. */
static double distance(adj_type type, const void *a, const void *b)
{
    double sum = 0;
    for (int64_t i = 0, n = adj_shape_elems(type.shape); i < n; i++) {
        const double v = adj_load(type.dtype, a, i), w = b != NULL ? adj_load(type.dtype, b, i) : 0;
        if (v != w && !(isnan(v) && isnan(w)))
            sum += (v - w) * (v - w);
    }
    return sqrt(sum);
}

static adj_status open_training(training *x, region *p)
{
    const trial *t = x->t;
    const plan *plan = &x->trained->plan;
    x->n = adj_updates_count(t->updates);
    x->update = region_alloc(p, (size_t)x->n, sizeof *x->update);
    for (int i = 0; i < x->n && x->update != NULL; i++) {
        assigned *u = &x->update[i];
        u->leaf = adj_updates_leaf_at(t->updates, i);
        u->next = adj_updates_next_at(t->updates, i);
        const size_t bytes = adj_type_bytes(u->leaf->type);
        void **const of_leaf[] = {&u->now, &u->then, &u->moved};
        for (size_t k = 0; k < sizeof of_leaf / sizeof *of_leaf; k++)
            if ((*of_leaf[k] = region_alloc(p, bytes + 1, 1)) == NULL)
                return ADJ_ENOMEM;
        u->held = leaf_data(plan, &plan->leaf[plan->leaf_of[plan->image[u->leaf->id]->id]]);
    }
    if (x->update != NULL)
        x->fetched = region_alloc(p, adj_type_bytes(x->update[0].leaf->type) + 1, 1);
    return x->fetched != NULL ? ADJ_OK : ADJ_ENOMEM;
}

/* Runs the plan without updates from leaves perturbed by -by, 0, +by units in turn. Sets `then` if
 * by is 0, else `moved`. */
static adj_status run_plain(training *x, double by)
{
    adj_status status = ADJ_OK;
    for (int i = 0; i < x->n && status == ADJ_OK; i++) {
        const assigned *u = &x->update[i];
        const adj_type type = u->leaf->type;
        const double unit = by * adj_traits_of(type.dtype)->unit;
        memcpy(u->moved, u->now, adj_type_bytes(type));
        for (int64_t k = 0, n = adj_shape_elems(type.shape); by > 0 && k < n; k++)
            adj_store(type.dtype, u->moved, k,
                      adj_load(type.dtype, u->now, k) * (1 + (double)(k % 3 - 1) * unit));
        status = adj_set(x->plain, u->leaf, u->moved, adj_type_bytes(type));
    }
    if (status == ADJ_OK)
        status = adj_run(x->plain);
    for (int i = 0; i < x->n && status == ADJ_OK; i++) {
        const assigned *u = &x->update[i];
        status =
            adj_get(x->plain, u->next, by > 0 ? u->moved : u->then, adj_type_bytes(u->leaf->type));
    }
    return status;
}

/* Runs both plans once, from the values of the plan with updates. */
static adj_status run_step(training *x)
{
    const assigned *first = &x->update[0];
    for (int i = 0; i < x->n; i++)
        memcpy(x->update[i].now, x->update[i].held, adj_type_bytes(x->update[i].leaf->type));
    adj_status status = run_plain(x, 0);
    if (status == ADJ_OK)
        status = run_plain(x, times);
    if (status == ADJ_OK)
        status = adj_run(x->trained);
    if (status == ADJ_OK)
        status = adj_get(x->trained, first->leaf, x->fetched, adj_type_bytes(first->leaf->type));
    return status;
}

static void report_update(const assigned *u, int step, const char *what, outcome *o)
{
    char name[80];
    name_node(u->leaf, name, sizeof name);
    o->fault_of = ADJ_BLAME_PLAN;
    snprintf(o->plan_fault, sizeof o->plan_fault, "plan: after step %d with updates, %s %s", step,
             name, what);
}

/* Compares the leaves after a step with their next values. Elements that are NaN in both are
 * equal; fmax leaves a NaN out of the limit. */
static void check_step(training *x, int step, outcome *o)
{
    const assigned *first = &x->update[0];
    if (memcmp(x->fetched, first->now, adj_type_bytes(first->leaf->type)) != 0)
        report_update(first, step, "is not fetched as it was before that step", o);
    for (int i = 0; i < x->n && o->plan_fault[0] == '\0'; i++) {
        const assigned *u = &x->update[i];
        const adj_type type = u->leaf->type;
        const double change = distance(type, u->then, u->now);
        const double carried = times * distance(type, u->then, u->moved);
        const double rounding =
            rounding_units * adj_traits_of(type.dtype)->unit * distance(type, u->then, NULL);
        if (!(distance(type, u->held, u->then) <= fmax(fmax(fraction * change, carried), rounding)))
            report_update(u, step, "is far from its next value", o);
    }
}

static adj_status run_steps(training *x, region *p, outcome *o)
{
    const trial *t = x->t;
    adj_status status = open_training(x, p);
    for (int i = 0; i < t->n_leaf && status == ADJ_OK; i++) {
        const size_t bytes = adj_type_bytes(t->leaf[i]->type);
        status = adj_set(x->plain, t->leaf[i], t->data[i], bytes);
        if (status == ADJ_OK)
            status = adj_set(x->trained, t->leaf[i], t->data[i], bytes);
    }
    for (int step = 1; step <= STEPS && status == ADJ_OK; step++) {
        status = run_step(x);
        if (status == ADJ_OK)
            check_step(x, step, o);
    }
    return status;
}

adj_status compare_updates(const trial *t, adj_exec *plain, const adj_exec_opts *opts, region *p,
                           outcome *o)
{
    adj_node *const fetch[] = {t->fetch[0], adj_updates_leaf_at(t->updates, 0)};
    adj_exec_opts with = *opts;
    training x = {.t = t, .plain = plain};
    with.n_fetch = 2;
    with.fetch = fetch;
    with.updates = t->updates;
    with.tune = 0;
    adj_status status = adj_exec_new(t->g, &with, &x.trained);
    if (status == ADJ_OK)
        status = run_steps(&x, p, o);
    if (status != ADJ_OK)
        outcome_message(o, adj_exec_message(x.trained));
    o->wrong_plan = x.trained != NULL && is_plan_wrong(x.trained);
    adj_exec_free(x.trained);
    return status;
}
