/* memory.c - whether kernels write where values share memory. A plan proves that it overwrites
 * nothing that is read later (exec/verify.c), so a difference is a kernel's fault. The plan that a
 * user runs must give exactly the bits of the same plan with every value in memory of its own. A
 * node or a group alone, whose operands are leaves that no plan overwrites, is computed in place of
 * each operand that its kernel says it may overwrite. */
#include <omp.h>
#include <string.h>

#include "compare.h"
#include "exec/memory.h"
#include "exec/run.h"

/* ---- with shared memory and without ---- */

typedef struct {            /* where two plans of one graph differ first */
    const adj_node *reader; /* the first node with a different operand or result; NULL: a value
                               fetched at the end of the run differs */
    const adj_node
        *damaged; /* the different operand; NULL: the operands were equal, but not the result */
    const adj_node *taken_over; /* the operand whose memory holds the result, or NULL */
} damage;

/* Returns the operand whose memory holds the result, or NULL. */
static const adj_node *taken_over(const plan *p, const step *s, int out)
{
    for (int k = 0; k < s->n_in; k++)
        if (slot_of(p, s->in[k]) == slot_of(p, out))
            return p->buffer[s->in[k]].value;
    return NULL;
}

/* True if the plans' steps are the same kernels on the same layouts. */
static int is_same_plan(const adj_exec *a, const adj_exec *b)
{
    const plan *p = &a->plan, *q = &b->plan;
    int is = p->n_step == q->n_step && p->n_fetch == q->n_fetch && p->n_update == q->n_update &&
             hash_kernels(a) == hash_kernels(b);
    for (int i = 0; i < p->n_step && is; i++)
        is = p->step[i].n_in == q->step[i].n_in && p->step[i].n_out == q->step[i].n_out;
    return is;
}

/* Returns the first of n buffers whose bytes differ between the plans, or NONE. */
static int first_different(const plan *p, const plan *q, int n, const int a[], const int b[])
{
    for (int k = 0; k < n; k++) {
        const slot *x = slot_of(p, a[k]), *y = slot_of(q, b[k]);
        if (x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0)
            return a[k];
    }
    return NONE;
}

/* Runs step i of both plans. Returns 1 if an operand or a result differs, with the difference in
 * *d; a negative number if the step fails. */
static int compare_step(adj_exec *shared, adj_exec *alone, int i, damage *d)
{
    const plan *p = &shared->plan, *q = &alone->plan;
    const step *s = &p->step[i], *same = &q->step[i];
    const int in = first_different(p, q, s->n_in, s->in, same->in);
    if (in == NONE && (run_step(shared, s) != ADJ_OK || run_step(alone, same) != ADJ_OK))
        return -1;
    const int out = in == NONE ? first_different(p, q, s->n_out, s->out, same->out) : NONE;
    if (in == NONE && out == NONE)
        return 0;
    const adj_node *value = p->buffer[in != NONE ? in : out].value;
    const int last = s->group.n_node - 1;
    *d = (damage){.reader = last >= 0 ? s->group.node[last] : value,
                  .damaged = in != NONE ? value : NULL,
                  .taken_over = out != NONE ? taken_over(p, s, out) : NULL};
    return 1;
}

/* Runs the steps of two executors of one graph side by side, after equal numbers of runs on the
 * same values; they have the same kernels, and the second shares no memory. Returns 1 if a value
 * differs, with the first one in *d; 0 if none does; a negative number if the plans differ or a
 * step fails. Assigns no update. Nodes belong to the executors' private graphs. */
static int compare_plans(adj_exec *shared, adj_exec *alone, damage *d)
{
    const plan *p = &shared->plan, *q = &alone->plan;
    const int callers = omp_get_max_threads();
    int found = is_same_plan(shared, alone) ? 0 : -1, end = NONE;
    omp_set_num_threads(shared->opts.threads);
    for (int i = 0; i < p->n_step && found == 0; i++)
        found = compare_step(shared, alone, i, d);
    omp_set_num_threads(callers);
    for (int i = 0; i < p->n_fetch && found == 0 && end == NONE; i++)
        end = first_different(p, q, 1, &p->fetch[i].buffer, &q->fetch[i].buffer);
    for (int i = 0; i < p->n_update && found == 0 && end == NONE; i++)
        end = first_different(p, q, 1, &p->update[i].next, &q->update[i].next);
    if (end == NONE)
        return found;
    *d = (damage){.damaged = p->buffer[end].value};
    return 1;
}

/* Runs the trial's graph once: what outlives a run is read when the steps run again. *e is to be
 * freed in every case. */
static adj_status run_once(const trial *t, adj_exec_opts opts, int no_sharing, adj_exec **e)
{
    adj_exec_debug debug = *opts.debug;
    debug.no_sharing = no_sharing;
    opts.debug = &debug;
    opts.tune = 0;
    adj_status status = adj_exec_new(t->g, &opts, e);
    if (status == ADJ_OK)
        status = give_leaves(t, *e);
    return status == ADJ_OK ? adj_run(*e) : status;
}

static int repeats(const trial *t, const outcome *o)
{
    for (int i = 0; i < t->n_fetch; i++)
        if (!o->info[i].repeats)
            return 0;
    return 1;
}

void name_node(const adj_node *n, char *text, size_t size)
{
    const char *name = adj_node_name(n);
    snprintf(text, size, name[0] != '\0' ? "%s \"%.40s\"" : "%s", adj_node_op(n), name);
}

static void describe_damage(const damage *d, outcome *o)
{
    char reader[80] = "the run's end", other[80];
    if (d->reader != NULL)
        name_node(d->reader, reader, sizeof reader);
    if (d->damaged != NULL || d->taken_over != NULL)
        name_node(d->damaged != NULL ? d->damaged : d->taken_over, other, sizeof other);
    if (d->damaged != NULL)
        snprintf(o->plan_fault, sizeof o->plan_fault,
                 "memory: a kernel writes over %s before %s reads it", other, reader);
    else if (d->taken_over != NULL)
        snprintf(o->plan_fault, sizeof o->plan_fault,
                 "memory: %s computed in place of %s differs from its result in separate memory",
                 reader, other);
    else /* of the same operands, by the same kernel */
        snprintf(o->plan_fault, sizeof o->plan_fault,
                 "%s depends on what its memory held before: its kernel leaves some of it "
                 "unwritten, or reads uninitialized memory",
                 reader);
}

adj_status find_damage(const trial *t, adj_exec_opts opts, outcome *o)
{
    damage d;
    adj_exec *shared = NULL, *alone = NULL, *again = NULL;
    adj_status status = run_once(t, opts, 0, &shared);
    if (status == ADJ_OK)
        status = run_once(t, opts, 1, &alone);
    /* A kernel's fault, or that of shared memory? Where one reads what it never wrote, its result
     * depends on memory, too, but no value is written over. */
    if (status == ADJ_OK && !repeats(t, o))
        status = run_once(t, opts, 1, &again);
    if (status != ADJ_OK)
        outcome_message(o, adj_exec_message(again != NULL   ? again
                                            : alone != NULL ? alone
                                                            : shared));
    else if ((again == NULL || compare_plans(again, alone, &d) == 0) &&
             compare_plans(shared, alone, &d) > 0 && (again == NULL || d.damaged != NULL))
        describe_damage(&d, o);
    adj_exec_free(shared);
    adj_exec_free(alone);
    adj_exec_free(again);
    return status;
}

/* ---- claims to work in place ---- */

void name_operand(const adj_node *n, int k, char *text, size_t size)
{
    const char *name = k < ADJ_NAMED_OPERANDS ? n->op->operand[k] : NULL;
    snprintf(text, size, name != NULL ? "operand %d (%.40s)" : "operand %d", k, name);
}

/* Returns zeroed, 64-aligned memory for the results of s, of which `out` has the operand's bytes;
 * NULL: out of memory. */
static void **new_results(const adj_exec *e, region *r, const step *s, int out, const void *operand)
{
    void **result = region_alloc(r, (size_t)s->n_out, sizeof *result);
    for (int i = 0; i < s->n_out && result != NULL; i++) {
        char *bytes = region_alloc(r, 1, slot_of(&e->plan, s->out[i])->bytes + 64);
        if (bytes == NULL)
            return NULL;
        result[i] = bytes + (64 - (uintptr_t)bytes % 64) % 64;
    }
    if (result != NULL)
        memcpy(result[out], operand, slot_of(&e->plan, s->out[out])->bytes);
    return result;
}

/* Computes the step with result `out` in separate memory, then in place of operand k. Sets *differs
 * to 1 if any result differs in a bit. */
static adj_status try_alias(adj_exec *e, const step *s, int k, int out, int *differs)
{
    region r = {.allocator = e->region.allocator};
    const void **in = region_alloc(&r, (size_t)s->n_in, sizeof *in);
    void **plain = new_results(e, &r, s, out, s->call.in[k]);
    void **shared = new_results(e, &r, s, out, s->call.in[k]);
    if (in == NULL || plain == NULL || shared == NULL) {
        region_free(&r);
        return no_memory(e);
    }
    adj_call call = s->call;
    memcpy(in, s->call.in, (size_t)s->n_in * sizeof *in);
    call.in = in;
    call.out = plain;
    adj_status status = run_kernel(e, s, &call);
    in[k] = shared[out];
    call.out = shared;
    if (status == ADJ_OK)
        status = run_kernel(e, s, &call);
    for (int i = 0; i < s->n_out && status == ADJ_OK; i++)
        *differs |= memcmp(plain[i], shared[i], slot_of(&e->plan, s->out[i])->bytes) != 0;
    region_free(&r);
    return status;
}

static void describe_alias(const step *s, int k, int out, outcome *o)
{
    const adj_node *result = s->group.out[out], *operand = s->group.in[k];
    const int position = adj_operand_position(result, operand);
    char name[80];
    if (position >= 0)
        name_operand(result, position, name, sizeof name);
    else /* in a group, and after transposes */
        snprintf(name, sizeof name, "%s", adj_node_op(operand));
    snprintf(
        o->plan_fault, sizeof o->plan_fault,
        "memory: %s by %.60s computed in place of %s differs from its result in separate memory",
        adj_node_op(result), s->prep.impl, name);
}

/* Tries every in-place claim of step s, whose operands have been computed, also those that the plan
 * does not use. */
static adj_status try_step(adj_exec *e, const step *s, outcome *o, int *found)
{
    adj_status status = ADJ_OK;
    for (int a = 0; a < ADJ_MAX_ALIASES && status == ADJ_OK; a++)
        for (int k = 0; k < s->n_in && k < 32 && status == ADJ_OK && !*found; k++) {
            const adj_alias alias = s->prep.alias[a];
            if (!(alias.operands >> k & 1) || !may_take_over(&e->plan, s, k, alias.out))
                continue;
            status = try_alias(e, s, k, alias.out, found);
            if (status == ADJ_OK && *found)
                describe_alias(s, k, alias.out, o);
        }
    return status;
}

adj_status find_false_alias(adj_exec *e, outcome *o)
{
    int found = 0;
    const int callers = omp_get_max_threads();
    adj_status status = ADJ_OK;
    omp_set_num_threads(e->opts.threads);
    for (int i = 0; i < e->plan.n_step && status == ADJ_OK && !found; i++) {
        status = try_step(e, &e->plan.step[i], o, &found);
        if (status == ADJ_OK && !found)
            status = run_step(e, &e->plan.step[i]);
    }
    omp_set_num_threads(callers);
    return status == ADJ_ENOMEM ? status : ADJ_OK;
}

void report_plan_fault(comparison *c, const outcome *o, compare_row *row)
{
    const int has_other =
        row->verdict != ADJ_VERDICT_PASS || is_wrong(&row->isolated) || !row->repeats;
    if (o->plan_fault[0] == '\0' || (has_other && !o->wrong_reorder))
        return;
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = o->wrong_reorder ? ADJ_BLAME_PLAN : ADJ_BLAME_KERNEL;
    row->reason = log_text(&c->log, "%s", o->plan_fault);
}
