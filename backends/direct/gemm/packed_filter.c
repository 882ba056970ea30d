/* packed_filter.c - see packed_filter.h. */
#include "packed_filter.h"

#include <math.h>

int gemm_has_same_filter(const gemm *a, const gemm *b)
{
    return a->dtype == b->dtype && a->kh == b->kh && a->kw == b->kw && a->src.c == b->src.c &&
           a->dst.c == b->dst.c && a->lanes == b->lanes && a->vectors == b->vectors;
}

gemm gemm_of_filter(const gemm *p)
{
    return (gemm){
        .code = p->code,
        .threads = p->threads,
        .is_packed = 1,
        .has_margin = 1, /* of the padding's zeros, which the last element is for */
        .dtype = p->dtype,
        .kh = p->kh,
        .kw = p->kw,
        .src.c = p->src.c,
        .dst.c = p->dst.c,
        .lanes = p->lanes,
        .vectors = p->vectors,
        .n_pass = 1,
        .pass[0] = {.h = p->pass[0].h, .w = p->pass[0].w, .elements = p->pass[0].elements},
        .filter_jobs = min(GEMM_FILTER_JOBS, p->kh * p->kw * p->src.c)};
}

static ptrdiff_t packed_elements(const gemm *p)
{
    return p->pass[0].elements * round_up(p->dst.c, p->lanes);
}

size_t gemm_packed_bytes(const gemm *of)
{
    return (size_t)(packed_elements(of) + 1) * adj_dtype_size(of->dtype);
}

void gemm_pack_filter(const gemm *of, const void *filter, void *packed)
{
    const adj_call call = {.state = (void *)of, .in = &filter, .scratch = packed};
    int is_finite = 1;
#pragma omp parallel for schedule(static) num_threads(of->threads) if (of->threads > 1)            \
    reduction(& : is_finite)
    for (ptrdiff_t job = 0; job < of->filter_jobs; job++)
        is_finite &= of->code->prepare_filter(&call, job);
    adj_store(of->dtype, packed, packed_elements(of), is_finite ? 0 : NAN);
}

int gemm_is_packed_finite(const gemm *p, const void *packed)
{
    return isfinite(adj_load(p->dtype, packed, packed_elements(p)));
}
