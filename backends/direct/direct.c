/* direct.c - the direct backend and its layouts. It opens with the best instruction set that this
 * CPU has, or a lower one named by ADJOINT_MAX_ISA: base, avx2, avx512, avx512_bf16, amx. */
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/efficiency.h"
#include "base/c_locale.h"
#include "base/machine/cache_size.h"
#include "base/machine/isa_level.h"
#include "direct.h"

enum { UNKNOWN = -1 };

/* ---- instruction sets ---- */

static const struct {
    const char *name;
    const direct_isa *isa;
} levels[N_ISA_LEVEL] = {{"base", &direct_isa_base},
                         {"avx2", &direct_isa_avx2},
                         {"avx512", &direct_isa_avx512},
                         {"avx512_bf16", &direct_isa_avx512},
                         {"amx", &direct_isa_avx512}};

/* Returns the highest level that ADJOINT_MAX_ISA allows; the highest of all if it is not set. */
static int max_allowed(const char *name)
{
    if (name == NULL || name[0] == '\0')
        return ISA_LEVEL_AMX;
    for (int level = ISA_LEVEL_BASE; level < N_ISA_LEVEL; level++)
        if (strcmp(levels[level].name, name) == 0)
            return level;
    return UNKNOWN;
}

static int best_level(int max)
{
    int level = machine_isa_level();
    return level < max ? level : max;
}

/* ---- helpers of kernels ---- */

int direct_conv_fits(const adj_conv_geom *g, int64_t max)
{
    const int64_t sizes[] = {g->ih, g->iw, g->oh, g->ow, g->oc, g->pt, g->pb, g->pl, g->pr};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > max)
            return 0;
    return g->format == ADJ_NHWC;
}

int direct_conv_has_sizes(const adj_conv_geom *g, int64_t max)
{
    const int64_t sizes[] = {g->n,  g->ih, g->iw, g->ic, g->oh, g->ow, g->oc,
                             g->kh, g->kw, g->sh, g->sw, g->dh, g->dw};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] < 1 || sizes[i] > max)
            return 0;
    return direct_conv_fits(g, max) && g->groups == 1;
}

int direct_conv_threads(const direct *d, const adj_node *n)
{
    const double parallel_above = 2e5; /* operations */
    return n->op->flop(n) > parallel_above ? d->threads : 1;
}

adj_status direct_refuse(adj_prep *prep, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c_vsnprintf(prep->why, ADJ_WHY, format, args);
    va_end(args);
    return ADJ_ENOKERNEL;
}

adj_status direct_accept(const direct *d, const adj_group *g, adj_prep *prep, const char *impl,
                         const void *state, size_t size)
{
    return direct_accept_as(d, g, prep, impl, d->isa->name, state, size);
}

adj_status direct_accept_packed(const direct *d, const adj_group *g, adj_prep *prep,
                                const char *impl, const void *state, size_t size, int in,
                                const adj_layout *layout)
{
    if (layout == NULL)
        return ADJ_ENOMEM;
    const adj_status status = direct_accept(d, g, prep, impl, state, size);
    prep->in[in] = layout;
    return status;
}

adj_status direct_accept_as(const direct *d, const adj_group *g, adj_prep *prep, const char *impl,
                            const char *isa, const void *state, size_t size)
{
    for (int i = 0; i < g->n_in; i++)
        prep->in[i] = NULL;
    for (int i = 0; i < g->n_out; i++)
        prep->out[i] = NULL;
    prep->state = adj_alloc(&d->allocator, size);
    if (prep->state == NULL)
        return ADJ_ENOMEM;
    memcpy(prep->state, state, size);
    snprintf(prep->impl, sizeof prep->impl, "%s:%s", impl, isa);
    prep->seconds = efficiency_seconds(direct_efficiencies, g, prep, prep->impl);
    return ADJ_OK;
}

void direct_count_packed(adj_prep *prep, int is_once, double bytes)
{
    prep->seconds += efficiency_packed(direct_efficiencies, prep, is_once, bytes);
}

/* Runs in each thread. */
static void run_jobs(const adj_call *c, job_shares *shares, int thread)
{
    const direct_work *w = c->state;
    for (job_range r; take_jobs(shares, thread, &r);)
        for (ptrdiff_t job = r.first; job < r.end; job++)
            w->code->job(c, job, thread);
    if (w->ends == 0)
        return;
#pragma omp barrier
#pragma omp for schedule(static)
    for (ptrdiff_t job = 0; job < w->ends; job++)
        w->code->end(c, job);
}

adj_status direct_run(const adj_call *c)
{
    const direct_work *w = c->state;
    const int threads = w->jobs == 1 && w->ends == 0 ? 1 : w->threads;
    job_shares shares;
    share_jobs(&shares, w->jobs, threads);
    if (w->code->begin != NULL)
        w->code->begin(c);
    if (threads == 1)
        run_jobs(c, &shares, 0);
    else {
#pragma omp parallel num_threads(threads)
        run_jobs(c, &shares, omp_get_thread_num());
    }
    if (w->ends == 0 && w->code->end != NULL)
        w->code->end(c, 0);
    return ADJ_OK;
}

void direct_drop(void *backend, void *state)
{
    direct *d = backend;
    adj_release(&d->allocator, state);
}

/* ---- layouts, and the reorders to and from plain memory ----
 *
 *   bytes   an i32 value whose elements are 0 to 255, such as an argmax, one byte each. Only
 *           readers outside this backend need it plain.
 *   packed  a filter, packed for a kernel's products (gemm/gemm.c, winograd/winograd.c), under the
 *           kernel's name for it. No kernel writes it, so the plain filter exists beside it, and no
 *           reorder back is needed. */

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

static void free_layouts(direct *d)
{
    for (adj_layout *l = d->layouts, *next; l != NULL; l = next) {
        next = l->next;
        adj_release(&d->allocator, l->packed_of);
        adj_release(&d->allocator, l);
    }
}

static size_t layout_bytes(const adj_layout *l) { return l->bytes; }

static const char *layout_name(const adj_layout *l) { return l->name; }

typedef struct {
    int64_t n; /* elements */
    int to_bytes;
    const adj_layout *packed; /* NULL for bytes */
} reorder;

static adj_status reorder_prepare(void *backend, const adj_layout *from, const adj_layout *to,
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

static adj_status reorder_run(void *state, const void *in, void *out, void *scratch)
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

/* ---- the backend ---- */

static adj_status open_backend(const adj_backend_opts *opts, void **backend)
{
    const char *limit = getenv("ADJOINT_MAX_ISA");
    int max = max_allowed(limit);
    *backend = NULL;
    if (max == UNKNOWN) {
        snprintf(opts->message, ADJ_WHY,
                 "ADJOINT_MAX_ISA: unknown (got \"%.64s\", expected base, avx2, avx512, "
                 "avx512_bf16 or amx)",
                 limit);
        return ADJ_EARG;
    }
    const int level = best_level(max);
    direct *d = *backend = adj_alloc(opts->allocator, sizeof *d);
    if (d == NULL)
        return ADJ_ENOMEM;
    *d = (direct){.allocator = *opts->allocator,
                  .isa = levels[level].isa,
                  .has_avx512_bf16 = level >= ISA_LEVEL_AVX512_BF16,
                  .has_amx = level >= ISA_LEVEL_AMX,
                  .threads = opts->threads,
                  .second_cache = (ptrdiff_t)machine_second_cache(),
                  .math = opts->math};
    return ADJ_OK;
}

static void close_backend(void *backend)
{
    direct *d = backend;
    if (d == NULL)
        return;
    adj_allocator allocator = d->allocator;
    free_layouts(d);
    adj_release(&allocator, d);
}

static void describe(char *text, size_t size)
{
    int max = max_allowed(getenv("ADJOINT_MAX_ISA"));
    snprintf(text, size, "* %s", max != UNKNOWN ? levels[best_level(max)].name : "*");
}

static const adj_kernel *const kernels[] = {&direct_fused_pointwise,
                                            &direct_conv_bf16,
                                            &direct_filter_bf16,
                                            &direct_depthwise,
                                            &direct_group_norm,
                                            &direct_max_pool,
                                            &direct_dropout,
                                            &direct_winograd,
                                            &direct_gemm,
                                            &direct_filter_gemm,
                                            &direct_resize,
                                            &direct_softmax,
                                            NULL};

const adj_backend adj_backend_direct = {.version = ADJ_VERSION,
                                        .name = "direct",
                                        .open = open_backend,
                                        .close = close_backend,
                                        .kernels = kernels,
                                        .describe = describe,
                                        .layout_bytes = layout_bytes,
                                        .layout_name = layout_name,
                                        .reorder_prepare = reorder_prepare,
                                        .reorder_run = reorder_run,
                                        .reorder_drop = direct_drop};
