/* sharing.c - checksums of what steps read and write, and what they find: see inspect.h.
 *
 * A value that is needed later and has been written over is seen when it is read: its checksum is
 * no longer the one of the executor where nobody could write there. What wrote is whatever lies, in
 * whole or in part, in the same bytes and was written in between. */
#include <string.h>

#include "exec.h"
#include "inspect.h"
#include "run.h"

/* Eight bytes at a time: values are large, and nobody attacks. */
static uint64_t checksum(const char *data, size_t bytes)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325), word;
    for (; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
        memcpy(&word, data, sizeof word);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    word = 0;
    memcpy(&word, data, bytes);
    sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

static uint64_t sum_of(const adj_exec *e, int buffer)
{
    const slot *s = slot_of(e, buffer);
    return checksum(s->data, s->bytes);
}

void sum_operands(const adj_exec *e, step *s)
{
    for (int k = 0; k < s->n_in; k++)
        e->run.sums[s->sums + k] = sum_of(e, s->in[k]);
}

void sum_results(const adj_exec *e, step *s)
{
    for (int k = 0; k < s->n_out; k++)
        e->run.sums[s->sums + s->n_in + k] = sum_of(e, s->out[k]);
}

/* Buffer i of what is read when the steps are done. */
static int end_buffer(const adj_exec *e, int i)
{
    return i < e->plan.n_fetch ? e->plan.fetch[i] : e->plan.update[i - e->plan.n_fetch].next;
}

void sum_end(const adj_exec *e)
{
    for (int i = 0; i < e->plan.n_fetch + e->plan.n_update; i++)
        e->run.sums[e->plan.n_sum + i] = sum_of(e, end_buffer(e, i));
}

/* ---- where they differ ---- */

static int overlap(const slot *a, const slot *b)
{
    const char *end_a = a->data + a->bytes, *end_b = b->data + b->bytes;
    return a->data < end_b && b->data < end_a;
}

static const adj_node *node_of(const step *s)
{
    return s->group.n_node > 0 ? s->group.node[s->group.n_node - 1] : NULL;
}

/* What a view shows. */
static const adj_node *viewed(const adj_node *n)
{
    while (n->n_in > 0 && (n->op->flags & ADJ_OP_VIEW))
        n = n->in[0];
    return n;
}

/* The last step before `to` that wrote into the buffer's memory and does not give the value. */
static void find_writer(const adj_exec *e, int damaged, int to, exec_damage *d)
{
    const buffer *b = &e->plan.buffer[damaged];
    const slot *there = slot_of(e, damaged);
    for (int i = to - 1; i >= 0; i--) {
        const step *s = &e->plan.step[i];
        for (int k = 0; k < s->n_out; k++) {
            const buffer *out = &e->plan.buffer[s->out[k]];
            if (viewed(out->value) == viewed(b->value) && out->slot == b->slot)
                return;
            if (overlap(slot_of(e, s->out[k]), there)) {
                d->by = out->value;
                return;
            }
        }
        if (s->scratch != NONE && overlap(&e->plan.slot[s->scratch], there)) {
            d->by = node_of(s);
            d->scratch = 1;
            return;
        }
    }
}

/* The operand in whose memory the result lies, or the step if its scratch lies in either's, in
 * whole or in part. */
static void find_operand(const adj_exec *e, const step *s, int out, exec_damage *d)
{
    const slot *scratch = s->scratch != NONE ? &e->plan.slot[s->scratch] : NULL;
    int over = scratch != NULL && overlap(scratch, slot_of(e, out));
    for (int k = 0; k < s->n_in && d->by == NULL; k++) {
        if (overlap(slot_of(e, s->in[k]), slot_of(e, out)))
            d->by = e->plan.buffer[s->in[k]].value;
        over |= scratch != NULL && overlap(scratch, slot_of(e, s->in[k]));
    }
    if (d->by == NULL && over) {
        d->by = node_of(s);
        d->scratch = 1;
    }
}

static int has_same_layouts(const adj_exec *a, const adj_exec *b, const int x[], const int y[],
                            int n)
{
    for (int k = 0; k < n; k++) {
        const buffer *p = &a->plan.buffer[x[k]], *q = &b->plan.buffer[y[k]];
        if (p->backend != q->backend || strcmp(layout_text(a, p), layout_text(b, q)) != 0)
            return 0;
    }
    return 1;
}

/* The same kernel on the same layouts? */
static int is_same_step(const adj_exec *a, const adj_exec *b, int i)
{
    const step *s = &a->plan.step[i], *t = &b->plan.step[i];
    return s->kind == t->kind && s->backend == t->backend && s->n_in == t->n_in &&
           s->n_out == t->n_out && strcmp(s->prep.impl, t->prep.impl) == 0 &&
           has_same_layouts(a, b, s->in, t->in, s->n_in) &&
           has_same_layouts(a, b, s->out, t->out, s->n_out);
}

static int is_same_plan(const adj_exec *a, const adj_exec *b)
{
    int same = a->plan.n_step == b->plan.n_step && a->plan.n_fetch == b->plan.n_fetch &&
               a->plan.n_update == b->plan.n_update;
    for (int i = 0; i < a->plan.n_step && same; i++)
        same = is_same_step(a, b, i);
    return same;
}

/* Is something of step i different? */
static int is_damaged(const adj_exec *shared, const adj_exec *alone, int i, exec_damage *d)
{
    const step *a = &shared->plan.step[i], *b = &alone->plan.step[i];
    for (int k = 0; k < a->n_in + a->n_out; k++) {
        if (shared->run.sums[a->sums + k] == alone->run.sums[b->sums + k])
            continue;
        const int is_operand = k < a->n_in;
        const int at = is_operand ? a->in[k] : a->out[k - a->n_in];
        *d = (exec_damage){.reader =
                               a->kind == STEP_KERNEL ? node_of(a) : shared->plan.buffer[at].value,
                           .damaged = is_operand ? shared->plan.buffer[at].value : NULL};
        if (is_operand)
            find_writer(shared, at, i, d);
        else
            find_operand(shared, a, at, d);
        return 1;
    }
    return 0;
}

/* Is something that is read after the last step different? */
static int is_damaged_at_end(const adj_exec *shared, const adj_exec *alone, exec_damage *d)
{
    for (int i = 0; i < shared->plan.n_fetch + shared->plan.n_update; i++) {
        const int at = end_buffer(shared, i);
        if (shared->run.sums[shared->plan.n_sum + i] == alone->run.sums[alone->plan.n_sum + i])
            continue;
        *d = (exec_damage){.damaged = shared->plan.buffer[at].value};
        find_writer(shared, at, shared->plan.n_step, d);
        return 1;
    }
    return 0;
}

int exec_find_damage(const adj_exec *shared, const adj_exec *alone, exec_damage *d)
{
    if (!shared->opts.debug.checksums || !alone->opts.debug.checksums ||
        !is_same_plan(shared, alone))
        return -1;
    for (int i = 0; i < shared->plan.n_step; i++)
        if (is_damaged(shared, alone, i, d))
            return 1;
    return is_damaged_at_end(shared, alone, d);
}
