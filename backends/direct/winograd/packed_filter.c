/* packed_filter.c - see packed_filter.h. */
#include "packed_filter.h"

#include <stdio.h>

static int is_same(const void *of, const void *other)
{
    const winograd *a = of, *b = other;
    return a->code == b->code && a->is_dx == b->is_dx && a->kernel == b->kernel &&
           a->src.c == b->src.c && a->dst.c == b->dst.c;
}

static size_t packed_bytes(const void *of)
{
    const winograd *p = of;
    return (size_t)(p->points * p->src.c * p->dst.c) * sizeof(float);
}

static void pack(const void *of, const void *filter, void *packed)
{
    const winograd *p = of;
    const adj_call call = {.state = (void *)p, .in = &filter, .scratch = packed};
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)
    for (ptrdiff_t job = 0; job < p->src.c / WINOGRAD_LANES; job++)
        p->code->filter(p, &call, job);
}

static const direct_packing packing = {sizeof(winograd), is_same, packed_bytes, pack};

const adj_layout *winograd_packed_filter(direct *d, const winograd *p)
{
    /* The filter is the only operand, and u begins the scratch. */
    const winograd of = {.code = p->code,
                         .is_dx = p->is_dx,
                         .kernel = p->kernel,
                         .points = p->points,
                         .src.c = p->src.c,
                         .dst.c = p->dst.c,
                         .threads = p->threads};
    char name[16];
    snprintf(name, sizeof name, "points%d%s", (int)p->points, p->is_dx ? "dx" : "");
    return direct_packed_filter(d, &packing, &of, name);
}
