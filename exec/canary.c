/* canary.c - finds kernels that write outside their buffers: known words stand before and after
 * every slot while it is in use, and are looked at after every step. */
#include <string.h>

#include "exec.h"

enum { WORD = 0xA5 };

/* The bytes behind a slot, up to where the next may begin. */
static size_t behind(const slot *s) { return CANARY + (CANARY - s->bytes % CANARY) % CANARY; }

static int has_canaries(const slot *s) { return !s->foreign && s->bytes > 0; }

static void draw(const slot *s)
{
    memset(s->data - CANARY, WORD, CANARY);
    memset(s->data + s->bytes, WORD, behind(s));
}

/* The first word is right, and each is like the one before it. */
static int is_whole(const char *p, size_t bytes)
{
    return (unsigned char)p[0] == WORD && memcmp(p, p + 1, bytes - 1) == 0;
}

/* A slot's are drawn when its life begins, as its memory was another's before. */
void draw_canaries(const adj_exec *e, int step)
{
    for (int i = 0; i < e->n_slot; i++) {
        const slot *s = &e->slot[i];
        if (has_canaries(s) && (s->kept ? step == NONE : s->first == step && step != NONE))
            draw(s);
    }
}

adj_status check_canaries(adj_exec *e, int step)
{
    for (int i = 0; i < e->n_slot; i++) {
        const slot *s = &e->slot[i];
        if (!has_canaries(s) ||
            (!s->kept && (s->first == NONE || s->first > step || s->last < step)))
            continue;
        int before = is_whole(s->data - CANARY, CANARY),
            after = is_whole(s->data + s->bytes, behind(s));
        if (before && after)
            continue;
        draw(s);
        e->overrun = 1;
        const adj_node *n = e->buffer[e->step[step].out[0]].value;
        return call_error(
            e, ADJ_EBACKEND, "adj_run: step %d (%s, %s) wrote %s a buffer of %zu bytes", step,
            n->op->name, e->step[step].prep.impl, before ? "behind" : "before", s->bytes);
    }
    return ADJ_OK;
}
