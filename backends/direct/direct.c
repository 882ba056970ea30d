/* direct.c - the direct backend: opens with the best instruction set that this CPU has, or a lesser
 * one that ADJOINT_MAX_ISA names: base, avx2, avx512. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "direct.h"

#if defined(__x86_64__)
static int may_use(const char *isa)
{
    static const char *const order[] = {"base", "avx2", "avx512"};
    const char *most = getenv("ADJOINT_MAX_ISA");
    for (int i = 0; most != NULL && i < 3; i++) {
        if (strcmp(order[i], isa) == 0)
            return 1;
        if (strcmp(order[i], most) == 0)
            return 0;
    }
    return 1;
}
#endif

static const direct_isa *best_isa(void)
{
#if defined(__x86_64__)
    if (may_use("avx512") && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &direct_isa_avx512;
    if (may_use("avx2") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &direct_isa_avx2;
#endif
    return &direct_isa_base;
}

int direct_in(const adj_group *g, const adj_node *value)
{
    for (int i = 0; i < g->n_in; i++)
        if (g->in[i] == value)
            return i;
    return -1;
}

int direct_out(const adj_group *g, const adj_node *value)
{
    for (int i = 0; i < g->n_out; i++)
        if (g->out[i] == value)
            return i;
    return -1;
}

void direct_run(const direct_code *code, const adj_call *c, ptrdiff_t jobs, int threads)
{
    if (code->begin != NULL)
        code->begin(c);
    if (threads == 1 || jobs == 1)
        for (ptrdiff_t job = 0; job < jobs; job++)
            code->job(c, job, 0);
    else {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (ptrdiff_t job = 0; job < jobs; job++)
            code->job(c, job, omp_get_thread_num());
    }
    if (code->end != NULL)
        code->end(c);
}

void direct_drop(void *backend, void *state)
{
    direct *d = backend;
    adj_release(&d->allocator, state);
}

static adj_status open(const adj_backend_opts *opts, void **backend)
{
    direct *d = adj_alloc(opts->allocator, sizeof *d);
    *backend = d;
    if (d == NULL)
        return ADJ_ENOMEM;
    *d = (direct){.allocator = *opts->allocator,
                  .isa = best_isa(),
                  .threads = opts->threads,
                  .math = opts->math};
    return ADJ_OK;
}

static void close(void *backend)
{
    direct *d = backend;
    if (d == NULL)
        return;
    adj_allocator allocator = d->allocator;
    direct_free_layouts(d);
    adj_release(&allocator, d);
}

static const adj_kernel *const kernels[] = {&direct_chain,     &direct_conv_lowered,
                                            &direct_depthwise, &direct_max_pool,
                                            &direct_winograd,  NULL};

const adj_backend adj_backend_direct = {.name = "direct",
                                        .open = open,
                                        .close = close,
                                        .kernels = kernels,
                                        .layout_bytes = direct_layout_bytes,
                                        .layout_name = direct_layout_name,
                                        .reorder_prepare = direct_reorder_prepare,
                                        .reorder_run = direct_reorder_run,
                                        .reorder_drop = direct_drop};
