/* packed_filter.c - see packed_filter.h. */
#include "packed_filter.h"

#include <math.h>
#include <stdio.h>

static int is_same(const void *of, const void *other)
{
    const gemm *a = of, *b = other;
    return a->dtype == b->dtype && a->filter.kh == b->filter.kh && a->filter.kw == b->filter.kw &&
           a->src.c == b->src.c && a->dst.c == b->dst.c && a->lanes == b->lanes &&
           a->vectors == b->vectors;
}

/* Returns the part of p that packing needs: the filter is the only operand, and the result
 * begins the scratch. */
static gemm of_filter(const gemm *p)
{
    return (gemm){
        .code = p->code,
        .threads = p->threads,
        .has_margin = 1, /* for the last element, the products with the padding's zeros */
        .dtype = p->dtype,
        .filter = {.is_packed = 1,
                   .kh = p->filter.kh,
                   .kw = p->filter.kw,
                   .jobs = min(GEMM_FILTER_JOBS, p->filter.kh * p->filter.kw * p->src.c)},
        .src.c = p->src.c,
        .dst.c = p->dst.c,
        .lanes = p->lanes,
        .vectors = p->vectors,
        .n_pass = 1,
        .pass[0] = {.h = p->pass[0].h, .w = p->pass[0].w, .elements = p->pass[0].elements}};
}

static ptrdiff_t packed_elements(const gemm *p)
{
    return p->pass[0].elements * round_up(p->dst.c, p->lanes);
}

static size_t packed_bytes(const void *of)
{
    const gemm *p = of;
    return (size_t)(packed_elements(p) + 1) * adj_dtype_size(p->dtype);
}

static void pack(const void *of, const void *filter, void *packed)
{
    const gemm *p = of;
    const adj_call call = {.state = (void *)p, .in = &filter, .scratch = packed};
    int is_finite = 1;
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)            \
    reduction(& : is_finite)
    for (ptrdiff_t job = 0; job < p->filter.jobs; job++)
        is_finite &= p->code->prepare_filter(&call, job);
    adj_store(p->dtype, packed, packed_elements(p), is_finite ? 0 : NAN);
}

static const direct_packing packing = {sizeof(gemm), is_same, packed_bytes, pack};

const adj_layout *gemm_packed_filter(direct *d, const gemm *p)
{
    const gemm of = of_filter(p);
    char name[16];
    snprintf(name, sizeof name, "panels%dx%d", (int)p->vectors, (int)p->lanes);
    return direct_packed_filter(d, &packing, &of, name);
}

int gemm_is_packed_finite(const gemm *p, const void *packed)
{
    return isfinite(adj_load(p->dtype, packed, packed_elements(p)));
}
