/* layouts.c - the direct backend's layouts, and the reorders to and from plain memory:
 *   bytes   an i32 value whose elements are 0 to 255, such as an argmax, one byte each. Only
 *           readers outside this backend need it plain.
 *   packed  a filter, packed for a kernel's products (gemm/gemm.c,
 *           winograd/winograd.c), under the kernel's name for it. No kernel writes it, so the
 *           plain filter exists beside it, and no reorder back is needed. */
#include <stdio.h>
#include <string.h>

#include "direct.h"

static adj_layout *add(direct *d, adj_layout layout)
{
    adj_layout *l = adj_alloc(&d->allocator, sizeof *l);
    if (l == NULL)
        return NULL;
    *l = layout;
    l->next = d->layouts;
    return d->layouts = l;
}

const adj_layout *direct_bytes(direct *d, int64_t elems)
{
    for (const adj_layout *l = d->layouts; l != NULL; l = l->next)
        if (l->packing == NULL && l->bytes == (size_t)elems)
            return l;
    return add(d, (adj_layout){.name = "bytes", .bytes = (size_t)elems});
}

const adj_layout *direct_packed_filter(direct *d, const direct_packing *packing, const void *of,
                                       const char *name)
{
    for (const adj_layout *l = d->layouts; l != NULL; l = l->next)
        if (l->packing == packing && packing->is_same(l->packed_of, of))
            return l;
    void *copy = adj_alloc(&d->allocator, packing->of_bytes);
    if (copy == NULL)
        return NULL;
    memcpy(copy, of, packing->of_bytes);
    adj_layout *l =
        add(d, (adj_layout){.bytes = packing->bytes(of), .packing = packing, .packed_of = copy});
    if (l == NULL)
        adj_release(&d->allocator, copy);
    else
        snprintf(l->name, sizeof l->name, "%s", name);
    return l;
}

int direct_packs_once(const adj_group *g, const adj_prep *prep, int in)
{
    int readers = 0;
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->node[i]->n_in; k++)
            readers += g->node[i]->in[k] == g->in[in];
    return in < 32 && (prep->invariant >> in & 1) && readers == 1;
}

void direct_free_layouts(direct *d)
{
    for (adj_layout *l = d->layouts, *next; l != NULL; l = next) {
        next = l->next;
        adj_release(&d->allocator, l->packed_of);
        adj_release(&d->allocator, l);
    }
}

size_t direct_layout_bytes(const adj_layout *l) { return l->bytes; }

const char *direct_layout_name(const adj_layout *l) { return l->name; }

/* ---- reorders ---- */

typedef struct {
    int64_t n; /* elements */
    int to_bytes;
    const adj_layout *packed; /* NULL for bytes */
} reorder;

adj_status direct_reorder_prepare(void *backend, const adj_layout *from, const adj_layout *to,
                                  adj_type type, void **state, size_t *scratch)
{
    direct *d = backend;
    const adj_layout *ours = to != NULL ? to : from;
    *state = NULL;
    *scratch = 0;
    if ((to != NULL && from != NULL) || (ours->packing != NULL && to == NULL))
        return ADJ_ENOKERNEL;
    reorder *s = *state = adj_alloc(&d->allocator, sizeof *s);
    if (s == NULL)
        return ADJ_ENOMEM;
    *s = (reorder){adj_shape_elems(type.shape), to != NULL, ours->packing != NULL ? ours : NULL};
    return ADJ_OK;
}

adj_status direct_reorder_run(void *state, const void *in, void *out, void *scratch)
{
    const reorder *s = state;
    (void)scratch;
    if (s->packed != NULL) {
        s->packed->packing->pack(s->packed->packed_of, in, out);
        return ADJ_OK;
    }
    for (int64_t i = 0; i < s->n && s->to_bytes; i++)
        ((uint8_t *)out)[i] = (uint8_t)((const int32_t *)in)[i];
    for (int64_t i = 0; i < s->n && !s->to_bytes; i++)
        ((int32_t *)out)[i] = ((const uint8_t *)in)[i];
    return ADJ_OK;
}
