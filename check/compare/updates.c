/* updates.c - two steps of training in the plan that a user would train by, where updates are
 * assigned and may be computed in place, beside the plan that returns their next values. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "compare.h"
#include "exec/exec.h"

enum { STEPS = 2 };

/* A leaf may be this part of its change away from its next value, as the plans may have other
 * kernels; and so many units of its norm, which a change may be smaller than. */
static const double part = 0.125, units = 64;

typedef struct {
    const adj_node *leaf, *next;
    void *now, *then, *got; /* the leaf's value before and after a step; and that of the plan with
                               updates */
} assigned;

typedef struct {
    const trial *t;
    adj_exec *plain, *trained;
    int n;
    assigned *update;
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
    x->n = adj_updates_count(t->updates);
    x->update = region_alloc(p, (size_t)x->n, sizeof *x->update);
    for (int i = 0; i < x->n && x->update != NULL; i++) {
        assigned *u = &x->update[i];
        u->leaf = adj_updates_leaf_at(t->updates, i);
        u->next = adj_updates_next_at(t->updates, i);
        const size_t bytes = adj_type_bytes(u->leaf->type);
        u->now = region_alloc(p, bytes + 1, 1);
        u->then = region_alloc(p, bytes + 1, 1);
        u->got = region_alloc(p, bytes + 1, 1);
        if (u->now == NULL || u->then == NULL || u->got == NULL)
            return ADJ_ENOMEM;
        for (int k = 0; k < t->n_leaf; k++)
            if (t->leaf[k] == u->leaf)
                memcpy(u->now, t->data[k], bytes);
    }
    return x->update != NULL ? ADJ_OK : ADJ_ENOMEM;
}

/* Runs both plans once, from the same values. The first leaf is fetched: it has its old value. */
static adj_status run_step(training *x)
{
    adj_status status = ADJ_OK;
    for (int i = 0; i < x->n && status == ADJ_OK; i++)
        status = adj_set(x->plain, x->update[i].leaf, x->update[i].now,
                         adj_type_bytes(x->update[i].leaf->type));
    if (status == ADJ_OK)
        status = adj_run(x->plain);
    if (status == ADJ_OK)
        status = adj_run(x->trained);
    for (int i = 0; i < x->n && status == ADJ_OK; i++) {
        const assigned *u = &x->update[i];
        const size_t bytes = adj_type_bytes(u->leaf->type);
        status = adj_get(x->plain, u->next, u->then, bytes);
        if (status == ADJ_OK)
            status = adj_get(x->trained, u->leaf, u->got, bytes);
    }
    return status;
}

/* Compares the leaves after a step. */
static void judge_step(training *x, int step, outcome *o)
{
    for (int i = 0; i < x->n && o->plan_fault[0] == '\0'; i++) {
        const assigned *u = &x->update[i];
        const adj_type type = u->leaf->type;
        const void *expected = i == 0 ? u->now : u->then;
        const double apart = distance(type, u->got, expected);
        const double change = distance(type, u->then, u->now);
        const double rounding =
            units * adj_traits_of(type.dtype)->unit * distance(type, expected, NULL);
        char name[80];
        if (apart <= fmax(part * change, rounding))
            continue;
        name_node(u->leaf, name, sizeof name);
        o->fault_of = ADJ_BLAME_PLAN;
        c_snprintf(o->plan_fault, sizeof o->plan_fault,
                   "plan: after step %d with updates, %s is %.2g of its change away from %s", step,
                   name, apart / change,
                   i == 0 ? "its value before that step, which is fetched" : "its next value");
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
            judge_step(x, step, o);
        for (int i = 0; i < x->n && status == ADJ_OK; i++) {
            void *before = x->update[i].now;
            x->update[i].now = x->update[i].then;
            x->update[i].then = before;
        }
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
    o->wrong_plan = x.trained != NULL && x.trained->plan_is_wrong;
    adj_exec_free(x.trained);
    return status;
}
