/* canary.c - detects kernels that write outside their buffers: guard words before and after every
 * slot are checked after each step while the slot is in use. */
#include <string.h>

#include "exec.h"
#include "run.h"
#include "walk.h"

enum { WORD = 0xA5 };

/* Returns the guard bytes behind a slot, up to the next possible slot. */
static size_t behind(const slot *s) { return CANARY + (CANARY - s->bytes % CANARY) % CANARY; }

static int has_canaries(const slot *s) { return !s->foreign && s->bytes > 0; }

static void draw(const slot *s)
{
    memset(s->data - CANARY, WORD, CANARY);
    memset(s->data + s->bytes, WORD, behind(s));
}

/* True if all bytes have the guard value: the first one has it, and each equals the one before. */
static int is_whole(const char *p, size_t bytes)
{
    return (unsigned char)p[0] == WORD && memcmp(p, p + 1, bytes - 1) == 0;
}

/* Writes the guard words of slots whose lifetime begins at step, because their memory belonged to
 * other slots before. */
void draw_canaries(const plan *p, int step)
{
    for (const slot *s = p->slot; s < p->slot + p->n_slot; s++)
        if (has_canaries(s) && (s->kept ? step == NONE : s->first == step && step != NONE))
            draw(s);
}

/* Writes the name of the slot's first value, or "scratch". */
static void name_slot(const adj_exec *e, const slot *s, char text[NAME])
{
    place first = {0};
    for (int i = e->plan.n_buffer - 1; i >= 0; i--)
        if (slot_of(&e->plan, i) == s)
            first.value = e->plan.buffer[i].value;
    name_place(e, &first, text);
}

static int is_in_use(const slot *s, int step)
{
    return has_canaries(s) &&
           (s->kept || (s->first != NONE && s->first <= step && s->last >= step));
}

static adj_status tell_overrun(adj_exec *e, int step, const slot *s, int is_behind)
{
    const plan *p = &e->plan;
    const adj_node *n = p->buffer[p->step[step].out[0]].value;
    const char *where = is_behind ? "behind" : "before";
    char of[NAME];
    name_slot(e, s, of);
    return adj_exec_fail(e, ADJ_EBACKEND, "adj_run: step %d (%s, %s) wrote %s the %zu bytes of %s",
                         step, n->op->name, p->step[step].prep.impl, where, s->bytes, of);
}

adj_status check_canaries(adj_exec *e, int step)
{
    const plan *p = &e->plan;
    for (const slot *s = p->slot; s < p->slot + p->n_slot; s++) {
        if (!is_in_use(s, step))
            continue;
        const int before = is_whole(s->data - CANARY, CANARY),
                  after = is_whole(s->data + s->bytes, behind(s));
        if (before && after)
            continue;
        draw(s);
        e->run.overrun = 1;
        return tell_overrun(e, step, s, before);
    }
    return ADJ_OK;
}
