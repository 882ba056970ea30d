/* check_sharing.c - detects kernels whose results differ when values share memory: see inspect.h.
 *
 * verify.c has proved that the plan overwrites nothing that is read later. So a value that differs
 * from that of an executor without shared memory is the fault of a kernel. */
#include <omp.h>
#include <string.h>

#include "exec.h"
#include "inspect.h"
#include "memory.h"
#include "run.h"

/* ---- two executors ---- */

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
             exec_hash_kernels(a) == exec_hash_kernels(b);
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
static int compare_step(adj_exec *shared, adj_exec *alone, int i, exec_damage *d)
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
    *d = (exec_damage){.reader = last >= 0 ? s->group.node[last] : value,
                       .damaged = in != NONE ? value : NULL,
                       .taken_over = out != NONE ? taken_over(p, s, out) : NULL};
    return 1;
}

int exec_find_damage(adj_exec *shared, adj_exec *alone, exec_damage *d)
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
    *d = (exec_damage){.damaged = p->buffer[end].value};
    return 1;
}

/* ---- one step, in place and not ---- */

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

/* Tries every in-place claim of step s, whose operands have been computed. */
static adj_status try_step(adj_exec *e, const step *s, exec_false_alias *f, int *found)
{
    adj_status status = ADJ_OK;
    for (int a = 0; a < ADJ_MAX_ALIASES && status == ADJ_OK; a++)
        for (int k = 0; k < s->n_in && k < 32 && status == ADJ_OK && !*found; k++) {
            const adj_alias alias = s->prep.alias[a];
            if (!(alias.operands >> k & 1) || !may_take_over(&e->plan, s, k, alias.out))
                continue;
            status = try_alias(e, s, k, alias.out, found);
            *f = (exec_false_alias){s->group.out[alias.out], s->group.in[k], s->prep.impl};
        }
    return status;
}

int exec_find_false_alias(adj_exec *e, exec_false_alias *f)
{
    int found = 0;
    const int callers = omp_get_max_threads();
    adj_status status = ADJ_OK;
    omp_set_num_threads(e->opts.threads);
    for (int i = 0; i < e->plan.n_step && status == ADJ_OK && !found; i++) {
        status = try_step(e, &e->plan.step[i], f, &found);
        if (status == ADJ_OK && !found)
            status = run_step(e, &e->plan.step[i]);
    }
    omp_set_num_threads(callers);
    return status == ADJ_ENOMEM ? -1 : status == ADJ_OK && found;
}
