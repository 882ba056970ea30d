/* reorders.c - finds reorders that change values: see inspect.h.
 *
 * A reorder from layout A to layout B is run on whole numbers that every type holds, which its
 * backend has brought from plain to A, and brings back from B to plain. Where the backend knows no
 * way there or back, as for a filter packed for one kernel, nothing is found. */
#include <omp.h>
#include <string.h>

#include "exec.h"
#include "inspect.h"

enum { NUMBERS = 251 }; /* a bf16 holds each, and so does a byte */

/* Returns zeroed, 64-aligned memory; NULL: out of memory. */
static char *new_bytes(region *r, size_t bytes)
{
    char *v = region_alloc(r, 1, bytes + 64);
    return v != NULL ? v + (64 - (uintptr_t)v % 64) % 64 : NULL;
}

static size_t bytes_of(const adj_backend *b, const adj_layout *layout, adj_type type)
{
    return layout != NULL ? b->layout_bytes(layout) : adj_type_bytes(type);
}

/* Brings the value from one layout to another; from and to are those of the buffers. Returns memory
 * of r, or NULL: status says why. */
static void *bring(const adj_exec *e, int backend, adj_reorder way, const void *from, region *r,
                   adj_status *status)
{
    const adj_backend *b = e->backends.list[backend];
    void *state = NULL, *scratch = NULL;
    size_t scratch_bytes = 0;
    way.backend = e->backends.opened[backend];
    void *to = new_bytes(r, bytes_of(b, way.to, way.type));
    *status = to != NULL ? b->reorder_prepare(&way, &state, &scratch_bytes) : ADJ_ENOMEM;
    if (*status == ADJ_OK && (scratch = new_bytes(r, scratch_bytes)) == NULL)
        *status = ADJ_ENOMEM;
    if (*status == ADJ_OK)
        *status = b->reorder_run(state, from, to, scratch);
    if (state != NULL)
        b->reorder_drop(way.backend, state);
    return *status == ADJ_OK ? to : NULL;
}

/* True if the step's reorder gives other values. */
static int is_wrong(const adj_exec *e, const step *s, region *r, adj_status *status)
{
    const buffer *from = &e->plan.buffer[s->in[0]], *to = &e->plan.buffer[s->out[0]];
    const adj_type type = from->value->type;
    const adj_reorder ways[] = {{.to = from->layout, .type = type},
                                {.from = from->layout, .to = to->layout, .type = type},
                                {.from = to->layout, .type = type}};
    const size_t bytes = adj_type_bytes(type);
    void *plain = new_bytes(r, bytes);
    if (plain == NULL)
        return *status = ADJ_ENOMEM, 0;
    for (int64_t i = 0; i < adj_shape_elems(type.shape); i++)
        adj_store(type.dtype, plain, i, (double)(i % NUMBERS));
    const void *v = plain;
    for (int i = 0; i < 3 && v != NULL; i++)
        if (ways[i].from != NULL || ways[i].to != NULL)
            v = bring(e, s->backend, ways[i], v, r, status);
    return v != NULL && memcmp(v, plain, bytes) != 0;
}

int exec_find_wrong_reorder(const adj_exec *e, char *text, size_t size)
{
    const int callers = omp_get_max_threads();
    int found = 0;
    adj_status status = ADJ_OK;
    omp_set_num_threads(e->opts.threads);
    for (int i = 0; i < e->plan.n_step && !found && status != ADJ_ENOMEM; i++) {
        region r = {.allocator = e->region.allocator};
        const step *s = &e->plan.step[i];
        found = s->kind == STEP_REORDER && is_wrong(e, s, &r, &status);
        if (found)
            snprintf(
                text, size, "the reorder of %s from %s to %s by %s is wrong",
                e->plan.buffer[s->in[0]].value->op->name, layout_text(e, &e->plan.buffer[s->in[0]]),
                layout_text(e, &e->plan.buffer[s->out[0]]), e->backends.list[s->backend]->name);
        region_free(&r);
    }
    omp_set_num_threads(callers);
    return status == ADJ_ENOMEM ? -1 : found;
}
