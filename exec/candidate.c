/* candidate.c - see candidate.h. */
#include <stdio.h>
#include <string.h>

#include "candidate.h"

enum { ALIGNMENT = 64 };

static int is_among(int n, const adj_node *const list[], const adj_node *node)
{
    for (int i = 0; i < n; i++)
        if (list[i] == node)
            return 1;
    return 0;
}

int list_operands(int n, const adj_node *const node[], const adj_node *in[])
{
    int n_in = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < node[i]->n_in; k++)
            if (!is_among(n, node, node[i]->in[k]) && !is_among(n_in, in, node[i]->in[k]))
                in[n_in++] = node[i]->in[k];
    return n_in;
}

/* ---- kernels ---- */

int next_kernel(candidate *c)
{
    if (c->kernel_list == NULL)
        c->kernel_list = c->backend->kernels;
    c->kernel = *c->kernel_list;
    c->kernel_list += c->kernel != NULL;
    c->number = 0;
    return c->kernel != NULL;
}

static void init_prep(const candidate *c)
{
    const adj_layout **in = c->prep->in, **out = c->prep->out;
    *c->prep = (adj_prep){.in = in, .out = out};
    for (int i = 0; i < c->group->n_in; i++)
        in[i] = c->have != NULL ? c->have[i] : NULL;
    for (int i = 0; i < c->group->n_out; i++)
        out[i] = NULL;
}

adj_status prepare_candidate(const candidate *c)
{
    init_prep(c);
    adj_status status = c->kernel->prepare(c->opened, c->group, c->number, c->prep);
    c->prep->why[ADJ_WHY - 1] = '\0';
    return status;
}

void drop_candidate(const candidate *c)
{
    if (c->kernel->drop != NULL)
        c->kernel->drop(c->opened, c->prep->state);
}

/* ---- memory ---- */

size_t layout_bytes_of(const adj_backend *b, const adj_layout *l, adj_type type)
{
    return l != NULL ? b->layout_bytes(l)
                     : (size_t)adj_shape_elems(type.shape) * adj_dtype_size(type.dtype);
}

const char *layout_name_of(const adj_backend *b, const adj_layout *l)
{
    if (l == NULL)
        return "plain";
    return b->layout_name != NULL ? b->layout_name(l) : "packed";
}

void name_layouts(const candidate *c, char *text, size_t size)
{
    const adj_group *g = c->group;
    size_t used = 0;
    for (int i = 0; i < g->n_in + g->n_out && used < size; i++) {
        const adj_layout *l = i < g->n_in ? c->prep->in[i] : c->prep->out[i - g->n_in];
        used += (size_t)snprintf(text + used, size - used, "%s%s%s", i > 0 ? " " : "",
                                 i == g->n_in ? "-> " : "", layout_name_of(c->backend, l));
    }
}

static size_t padded(const candidate *c, const adj_layout *l, adj_type type)
{
    return (layout_bytes_of(c->backend, l, type) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static area_kind area_of(const adj_node *operand)
{
    return adj_is_float(operand->type.dtype) ? FLOAT_AREA : INTEGER_AREA;
}

void measure_areas(const candidate *c, size_t gap, size_t bytes[N_AREA])
{
    const adj_group *g = c->group;
    for (int k = 0; k < N_AREA; k++)
        bytes[k] = gap;
    for (int i = 0; i < g->n_in; i++)
        bytes[area_of(g->in[i])] += padded(c, c->prep->in[i], g->in[i]->type) + gap;
    for (int i = 0; i < g->n_out; i++)
        bytes[RESULT_AREA] += padded(c, c->prep->out[i], g->out[i]->type) + gap;
}

void bind_areas(const candidate *c, size_t gap, char *const area[N_AREA], const void *in[],
                void *out[])
{
    const adj_group *g = c->group;
    size_t used[N_AREA] = {gap, gap, gap};
    for (int i = 0; i < g->n_in; i++) {
        area_kind k = area_of(g->in[i]);
        in[i] = area[k] + used[k];
        used[k] += padded(c, c->prep->in[i], g->in[i]->type) + gap;
    }
    for (int i = 0; i < g->n_out; i++) {
        out[i] = area[RESULT_AREA] + used[RESULT_AREA];
        used[RESULT_AREA] += padded(c, c->prep->out[i], g->out[i]->type) + gap;
    }
}
