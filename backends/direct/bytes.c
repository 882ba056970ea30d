/* bytes.c - the direct backend's one layout: an i32 value of which each element is stored in a
 * byte, and the reorders to and from plain memory, which only readers outside this backend need. */
#include "direct.h"

struct adj_layout {
    int64_t elems;
    adj_layout *next;
};

const adj_layout *direct_bytes(direct *d, int64_t elems)
{
    for (const adj_layout *l = d->layouts; l != NULL; l = l->next)
        if (l->elems == elems)
            return l;
    adj_layout *l = adj_alloc(&d->allocator, sizeof *l);
    if (l == NULL)
        return NULL;
    *l = (adj_layout){elems, d->layouts};
    return d->layouts = l;
}

void direct_free_layouts(direct *d)
{
    for (adj_layout *l = d->layouts, *next; l != NULL; l = next) {
        next = l->next;
        adj_release(&d->allocator, l);
    }
}

size_t direct_layout_bytes(const adj_layout *l) { return (size_t)l->elems; }

const char *direct_layout_name(const adj_layout *l)
{
    (void)l;
    return "bytes";
}

typedef struct {
    int64_t n;
    int to_bytes;
} reorder;

adj_status direct_reorder_prepare(const adj_reorder *r, void **state, size_t *scratch)
{
    direct *d = r->backend;
    reorder *s = adj_alloc(&d->allocator, sizeof *s);
    *state = s;
    *scratch = 0;
    if (s == NULL)
        return ADJ_ENOMEM;
    *s = (reorder){adj_shape_elems(r->type.shape), r->to != NULL};
    return ADJ_OK;
}

adj_status direct_reorder_run(void *state, const void *in, void *out, void *scratch)
{
    const reorder *s = state;
    (void)scratch;
    for (int64_t i = 0; i < s->n && s->to_bytes; i++)
        ((uint8_t *)out)[i] = (uint8_t)((const int32_t *)in)[i];
    for (int64_t i = 0; i < s->n && !s->to_bytes; i++)
        ((int32_t *)out)[i] = ((const uint8_t *)in)[i];
    return ADJ_OK;
}
