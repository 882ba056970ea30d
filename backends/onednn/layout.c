/* layout.c - interned layouts and the reorders from and to plain memory.
 *
 * A layout is a pair of memory descriptors with the same logical dimensions (an activation's are
 * n, c, h, w whatever its shape in the graph): the memory itself, and plain row-major memory of
 * that value. */
#include <stdio.h>
#include <string.h>

#include "onednn.h"

/* Returns the stride of dimension i; -1 if it depends on the element. A dimension that is a
 * single block counts as plain: 16 channels in nChw16c are in the same memory as in nhwc. */
static int64_t step_along(const md_parts *p, int i)
{
    int64_t inner = 1, step = p->stride[i];
    int n_block = 0;
    for (int k = p->n_block - 1; k >= 0; k--) {
        if (p->block_dim[k] == i) {
            step = p->block[k] == p->padded[i] && n_block == 0 ? inner : -1;
            n_block++;
        }
        inner *= p->block[k];
    }
    return step;
}

/* True if both layouts are the same memory; strides of dimensions with one element are ignored. */
int layout_is_same(const_md a, const_md b)
{
    md_parts p = md_look(a), q = md_look(b);
    if (dnnl_memory_desc_equal(a, b))
        return 1;
    if (!p.blocked || !q.blocked || p.n_dim != q.n_dim || p.type != q.type)
        return 0;
    for (int i = 0; i < p.n_dim; i++) {
        int64_t step = step_along(&p, i);
        if (p.padded[i] != q.padded[i] ||
            (p.padded[i] > 1 && (step < 0 || step != step_along(&q, i))))
            return 0;
    }
    return 1;
}

/* True if there are blocks within blocks, so that no order of plain axes describes the memory. */
static int is_truly_blocked(const md_parts *p)
{
    for (int i = 0; i < p->n_dim; i++)
        if (p->padded[i] > 1 && step_along(p, i) < 0)
            return 1;
    return 0;
}

/* Orders the axes from the outermost to the innermost. An axis with a single element has no
 * defined place: it follows its predecessor in p's own order. */
static void order_axes(const md_parts *p, int blocked, int order[])
{
    int64_t step[DNNL_MAX_NDIMS];
    int n = 0;
    for (int i = 0; i < p->n_dim; i++) { /* insertion sort */
        int k = n;
        step[i] = blocked ? p->stride[i] : step_along(p, i);
        if (p->padded[i] == 1)
            continue;
        for (; k > 0 && step[order[k - 1]] < step[i]; k--)
            order[k] = order[k - 1];
        order[k] = i;
        n++;
    }
    for (int i = 0; i < p->n_dim; i++) {
        int at = 0;
        if (p->padded[i] > 1)
            continue;
        while (i > 0 && order[at++] != i - 1)
            ;
        memmove(order + at + 1, order + at, (size_t)(n - at) * sizeof *order);
        order[at] = i;
        n++;
    }
}

/* Writes a layout's name in oneDNN's notation: axes from the outermost in, a blocked axis in
 * capitals, then the blocks: nhwc, nChw16c. Layouts of the same memory (layout_is_same) get the
 * same name, whichever description came first, since a tune file identifies layouts by name. So
 * 16 channels in nChw16c are named nhwc. */
static void spell(const_md d, const char *axes, char *name, size_t size)
{
    md_parts p = md_look(d);
    int order[DNNL_MAX_NDIMS] = {0};
    size_t at = 0;

    if (!p.blocked) {
        snprintf(name, size, "opaque");
        return;
    }
    int n_block = is_truly_blocked(&p) ? p.n_block : 0;
    order_axes(&p, n_block > 0, order);
    for (int i = 0; i < p.n_dim && at + 1 < size; i++) {
        char letter = axes[order[i]];
        for (int k = 0; k < n_block; k++)
            if (p.block_dim[k] == order[i])
                letter = (char)(axes[order[i]] - 'a' + 'A');
        name[at++] = letter;
    }
    name[at] = '\0';
    for (int k = 0; k < n_block && at + 1 < size; k++)
        at += (size_t)snprintf(name + at, size - at, "%d%c", (int)p.block[k], axes[p.block_dim[k]]);
}

static adj_status add_layout(onednn *o, const_md memory, const_md plain, const char *axes,
                             const adj_layout **out)
{
    adj_layout *l = adj_alloc(&o->allocator, sizeof *l);
    if (l == NULL)
        return ADJ_ENOMEM;
    if (md_copy(&o->allocator, &l->memory, memory) != dnnl_success ||
        md_copy(&o->allocator, &l->plain, plain) != dnnl_success) {
        md_free(&o->allocator, l->memory);
        adj_release(&o->allocator, l);
        return ADJ_ENOMEM;
    }
    l->bytes = dnnl_memory_desc_get_size(memory);
    spell(memory, axes, l->name, sizeof l->name);
    l->next = o->layouts;
    o->layouts = l;
    *out = l;
    return ADJ_OK;
}

adj_status layout_of(onednn *o, const_md memory, const_md plain, const char *axes,
                     const adj_layout **out)
{
    *out = NULL;
    if (layout_is_same(memory, plain))
        return ADJ_OK;
    for (adj_layout *l = o->layouts; l != NULL; l = l->next)
        if (layout_is_same(l->memory, memory) && layout_is_same(l->plain, plain)) {
            *out = l;
            return ADJ_OK;
        }
    return add_layout(o, memory, plain, axes, out);
}

size_t layout_bytes(const adj_layout *l) { return l->bytes; }

const char *layout_name(const adj_layout *l) { return l->name; }

adj_status layout_reorder_prepare(void *backend, const adj_layout *from, const adj_layout *to,
                                  adj_type type, void **state, size_t *scratch)
{
    onednn *o = backend;
    const_md source = from != NULL ? from->memory : to->plain;
    const_md target = to != NULL ? to->memory : from->plain;
    const primitive_arg args[] = {
        {DNNL_ARG_FROM, AT_IN, 0, source}, {DNNL_ARG_TO, AT_OUT, 0, target}, {0}};
    pd d = NULL;

    (void)type; /* the layouts have it */
    *state = NULL;
    *scratch = 0;
    dnnl_status_t status =
        dnnl_reorder_primitive_desc_create(&d, source, o->engine, target, o->engine, o->attr);
    if (status == dnnl_success)
        status = primitive_new(o, d, args, state, scratch);
    if (d != NULL)
        dnnl_primitive_desc_destroy(d);
    return status == dnnl_success         ? ADJ_OK
           : status == dnnl_out_of_memory ? ADJ_ENOMEM
                                          : ADJ_EBACKEND;
}

adj_status layout_reorder_run(void *state, const void *in, void *out, void *scratch)
{
    return primitive_run(&(adj_call){.state = state,
                                     .in = (const void *const[]){in},
                                     .out = (void *const[]){out},
                                     .scratch = scratch});
}
