/* reorders.c - detects reorders of a plan that change values.
 *
 * To check a reorder from layout A to layout B, plain values are converted to A, then to B by the
 * reorder, and back to plain. The values have both signs and as many significant bits as their type
 * holds. A layout that cannot be converted back, such as that of a filter packed for one kernel, is
 * checked by that kernel. It is prepared once more for a plain operand, and both results must be
 * equal. For sums to be exact, values have half as many bits in that check, and the other operands
 * are 1 and -1. Memory is filled with NaN before it is written. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "exec/candidate.h"
#include "exec/run.h"
#include "shared.h"

/* Returns 64-aligned memory, each byte 0xff; NULL: out of memory. */
static char *new_bytes(region *r, size_t bytes)
{
    char *v = region_alloc(r, 1, bytes + 64);
    if (v == NULL)
        return NULL;
    v += (64 - (uintptr_t)v % 64) % 64;
    return memset(v, 0xff, bytes);
}

/* ---- values ---- */

/* Returns number i of a pseudo-random sequence: `bits` significant bits, magnitude 0.5 to 4; with 1
 * bit, magnitude 1. For integers, one byte. */
static double number_at(adj_dtype dtype, int bits, int64_t i)
{
    const uint64_t h = ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    if (!adj_is_float(dtype))
        return (double)(h >> 56);
    const double v = ldexp((double)(h >> 11 & ((UINT64_C(1) << (bits - 1)) - 1)), 1 - bits);
    return ldexp((h >> 63) != 0 ? -1 - v : 1 + v, bits > 1 ? (int)(h % 3) - 1 : 0);
}

static void *new_plain(region *r, adj_type type, int bits)
{
    void *v = new_bytes(r, adj_type_bytes(type));
    for (int64_t i = 0; v != NULL && i < adj_shape_elems(type.shape); i++)
        adj_store(type.dtype, v, i, number_at(type.dtype, bits, i));
    return v;
}

typedef struct {
    const adj_layout *from, *to; /* NULL: plain */
    adj_type type;               /* type of the value */
} conversion;

/* Converts a value between the layouts of two buffers. Returns memory of r, or NULL with the reason
 * in *status. */
static void *bring(const adj_exec *e, int backend, conversion way, const void *from, region *r,
                   adj_status *status)
{
    const adj_backend *b = e->backends.list[backend];
    void *state = NULL, *scratch = NULL, *opened = e->backends.opened[backend];
    size_t scratch_bytes = 0;
    void *to = new_bytes(r, layout_bytes_of(b, way.to, way.type));
    *status = to != NULL
                  ? b->reorder_prepare(opened, way.from, way.to, way.type, &state, &scratch_bytes)
                  : ADJ_ENOMEM;
    if (*status == ADJ_OK && (scratch = new_bytes(r, scratch_bytes)) == NULL)
        *status = ADJ_ENOMEM;
    if (*status == ADJ_OK)
        *status = b->reorder_run(state, from, to, scratch);
    if (state != NULL)
        b->reorder_drop(opened, state);
    return *status == ADJ_OK ? to : NULL;
}

/* ---- layouts that cannot be converted back ---- */

/* Runs a prepared kernel on generated operands and the given operand k. Returns the results, by
 * group->out; NULL on failure, with *status. */
static void **run_reader(const adj_exec *e, const step *reader, const adj_prep *prep, int k,
                         const void *operand, region *r, adj_status *status)
{
    const adj_group *g = &reader->group;
    char message[ADJ_WHY];
    const void **in = region_alloc(r, (size_t)g->n_in, sizeof *in);
    void **out = region_alloc(r, (size_t)g->n_out, sizeof *out);
    void *scratch = new_bytes(r, prep->scratch);
    int is_complete = in != NULL && out != NULL && scratch != NULL;
    for (int i = 0; i < g->n_in && is_complete; i++) {
        in[i] = i == k ? operand : new_plain(r, g->in[i]->type, 1);
        is_complete = in[i] != NULL;
    }
    for (int i = 0; i < g->n_out && is_complete; i++)
        is_complete = (out[i] = new_bytes(r, adj_type_bytes(g->out[i]->type))) != NULL;
    const adj_call call = {.group = g,
                           .state = prep->state,
                           .in = in,
                           .out = out,
                           .scratch = scratch,
                           .threads = e->opts.threads,
                           .message = message};
    *status = is_complete ? run_kernel(e, reader, &call) : ADJ_ENOMEM;
    return *status == ADJ_OK ? out : NULL;
}

enum { UNITS = 64 }; /* rounding units of the largest element, for kernels that round */

static int are_apart(adj_type type, const void *a, const void *b)
{
    double max = 0, apart = 0;
    for (int64_t i = 0; i < adj_shape_elems(type.shape) && adj_is_float(type.dtype); i++) {
        const double v = adj_load(type.dtype, a, i), difference = adj_load(type.dtype, b, i) - v;
        max = fmax(max, fabs(v));
        apart = isnan(difference) ? INFINITY : fmax(apart, fabs(difference));
    }
    return apart > UNITS * adj_traits_of(type.dtype)->unit * max;
}

/* True if operand k is in the expected layout, and all other operands and all results are plain. */
static int is_plain_but(const adj_group *g, const adj_prep *prep, int k, int is_plain)
{
    int is = (prep->in[k] == NULL) == is_plain;
    for (int i = 0; i < g->n_in; i++)
        is &= (i == k || prep->in[i] == NULL) && adj_is_float(g->in[i]->type.dtype);
    for (int i = 0; i < g->n_out; i++)
        is &= prep->out[i] == NULL;
    return is;
}

/* True if the results of the step, which reads the value as operand k in the layout, differ when it
 * is prepared for a plain operand k. */
static int reads_another(const adj_exec *e, const step *s, int k, const void *plain,
                         const void *packed, region *r, adj_status *status)
{
    const adj_group *g = &s->group;
    adj_prep prep = {.in = region_alloc(r, (size_t)g->n_in, sizeof(adj_layout *)),
                     .out = region_alloc(r, (size_t)g->n_out, sizeof(adj_layout *))};
    const candidate c = {.backend = e->backends.list[s->backend],
                         .opened = e->backends.opened[s->backend],
                         .group = g,
                         .kernel = s->kernel,
                         .prep = &prep};
    if (prep.in == NULL || prep.out == NULL)
        return *status = ADJ_ENOMEM, 0;
    if (!is_plain_but(g, &s->prep, k, 0) || (*status = prepare_candidate(&c)) != ADJ_OK)
        return 0;
    void **own = NULL, **given = NULL;
    if (is_plain_but(g, &prep, k, 1))
        own = run_reader(e, s, &prep, k, plain, r, status);
    drop_candidate(&c);
    if (own != NULL)
        given = run_reader(e, s, &s->prep, k, packed, r, status);
    int is_another = 0;
    for (int i = 0; i < g->n_out && given != NULL; i++)
        is_another |= are_apart(g->out[i]->type, own[i], given[i]);
    return is_another;
}

/* True if a reader shows that the reorder, from plain to a layout that cannot be converted back, is
 * wrong. */
static int is_packed_wrongly(const adj_exec *e, const step *s, conversion way, region *r,
                             adj_status *status)
{
    int is_wrong = 0;
    const void *plain = new_plain(r, way.type, adj_traits_of(way.type.dtype)->significand / 2);
    const void *packed = plain != NULL ? bring(e, s->backend, way, plain, r, status) : NULL;
    if (packed == NULL)
        return *status = plain != NULL ? *status : ADJ_ENOMEM, 0;
    for (const step *reader = s + 1; reader < e->plan.step + e->plan.n_step; reader++)
        for (int k = 0; k < reader->n_in && !is_wrong && *status != ADJ_ENOMEM; k++)
            if (reader->in[k] == s->out[0] && reader->kind == STEP_KERNEL)
                is_wrong = reads_another(e, reader, k, plain, packed, r, status);
    return is_wrong;
}

/* ---- a reorder ---- */

/* True if the step's reorder changes values. */
static int is_wrong(const adj_exec *e, const step *s, region *r, adj_status *status)
{
    const buffer *from = &e->plan.buffer[s->in[0]], *to = &e->plan.buffer[s->out[0]];
    const adj_type type = from->value->type;
    const conversion ways[] = {{.to = from->layout, .type = type},
                               {.from = from->layout, .to = to->layout, .type = type},
                               {.from = to->layout, .type = type}};
    const void *plain = new_plain(r, type, adj_traits_of(type.dtype)->significand), *v = plain;
    *status = plain != NULL ? ADJ_OK : ADJ_ENOMEM;
    int n = 0;
    for (; n < 3 && v != NULL; n++)
        if (ways[n].from != NULL || ways[n].to != NULL)
            v = bring(e, s->backend, ways[n], v, r, status);
    if (v != NULL)
        return memcmp(v, plain, adj_type_bytes(type)) != 0;
    return n == 3 && *status == ADJ_ENOKERNEL && from->layout == NULL &&
           is_packed_wrongly(e, s, ways[1], r, status);
}

int find_wrong_reorder(const adj_exec *e, char *text, size_t size)
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
