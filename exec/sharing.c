/* sharing.c - compares checksums of operands and results between two executors, with and without
 * shared memory: see inspect.h.
 *
 * verify.c has proved that the plan overwrites nothing that is read later. So a checksum that
 * differs from that of the executor without shared memory is the fault of a kernel. */
#include "base/hash.h"
#include "exec.h"
#include "inspect.h"
#include "run.h"

static void sum_buffers(const plan *p, int n, const int buffer[], uint64_t sum[])
{
    for (int k = 0; k < n; k++)
        sum[k] = hash_words(HASH_START, slot_of(p, buffer[k])->data, slot_of(p, buffer[k])->bytes);
}

void sum_operands(const adj_exec *e, const step *s)
{
    sum_buffers(&e->plan, s->n_in, s->in, e->run.sums + s->sums);
}

void sum_results(const adj_exec *e, const step *s)
{
    sum_buffers(&e->plan, s->n_out, s->out, e->run.sums + s->sums + s->n_in);
}

/* Returns buffer i of the fetched and next values, which are read after the steps. */
static int end_buffer(const plan *p, int i)
{
    return i < p->n_fetch ? p->fetch[i].buffer : p->update[i - p->n_fetch].next;
}

void sum_end(const adj_exec *e)
{
    const plan *p = &e->plan;
    for (int i = 0; i < p->n_fetch + p->n_update; i++) {
        const int b = end_buffer(p, i);
        sum_buffers(p, 1, &b, &e->run.sums[p->n_sum + i]);
    }
}

/* ---- the first difference ---- */

/* Returns the last node that the step computes, or NULL. */
static const adj_node *node_of(const step *s)
{
    return s->group.n_node > 0 ? s->group.node[s->group.n_node - 1] : NULL;
}

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
    return p->n_step == q->n_step && p->n_sum == q->n_sum && p->n_fetch == q->n_fetch &&
           p->n_update == q->n_update && exec_hash_kernels(a) == exec_hash_kernels(b);
}

/* Describes a difference: operand or result k of step i, or a value read after the last step. */
static exec_damage describe_damage(const plan *p, int i, int k)
{
    const step *s = i < p->n_step ? &p->step[i] : NULL;
    const int is_result = s != NULL && k >= s->n_in;
    const int at = s == NULL ? end_buffer(p, k) : is_result ? s->out[k - s->n_in] : s->in[k];
    const adj_node *value = p->buffer[at].value;
    return (exec_damage){.reader = s == NULL                ? NULL
                                   : s->kind == STEP_KERNEL ? node_of(s)
                                                            : value,
                         .damaged = is_result ? NULL : value,
                         .taken_over = is_result ? taken_over(p, s, at) : NULL};
}

int exec_find_damage(const adj_exec *shared, const adj_exec *alone, exec_damage *d)
{
    const plan *p = &shared->plan;
    if (!shared->internal.checksums || !alone->internal.checksums || !is_same_plan(shared, alone))
        return -1;
    const int n = p->n_sum + p->n_fetch + p->n_update;
    int k = 0, i = 0;
    while (k < n && shared->run.sums[k] == alone->run.sums[k])
        k++;
    if (k == n)
        return 0;
    while (i < p->n_step && k >= p->step[i].n_in + p->step[i].n_out) {
        k -= p->step[i].n_in + p->step[i].n_out;
        i++;
    }
    *d = describe_damage(p, i, k);
    return 1;
}
