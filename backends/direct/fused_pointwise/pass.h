/* pass.h - the pass of a fused group over memory (run.c), as used by its row kernels (rows.c) and
 * loops. */
#ifndef DIRECT_FUSED_POINTWISE_PASS_H
#define DIRECT_FUSED_POINTWISE_PASS_H

#include "backends/direct/isa.h"
#include "fused_pointwise.h"

typedef struct { /* the chunk being computed */
    const fused_group *p;
    const adj_call *c;
    char *buffers, *columns; /* buffers of this thread */
    int64_t first, end;      /* end: of the segment */
    ptrdiff_t n;
} pass;

static inline float *buffer(const pass *s, int where)
{
    return (float *)s->buffers + where * s->p->chunk;
}

static inline const float *read_from(const pass *s, const fused_value *v)
{
    switch (v->at) {
    case AT_IN: return (const float *)s->c->in[v->where] + s->first;
    case AT_OUT: return (const float *)s->c->out[v->where] + s->first;
    case AT_TILED: return fused_tiled(s->p, s->c, v->where);
    default: return buffer(s, v->where);
    }
}

typedef struct { /* a sum's columns: totals in double, and sums in float since the last flush */
    double *total[2];
    float *sum[3];               /* the last one: the shift subtracted before squaring */
    float *before[2], *after[2]; /* copies of sum, for sums that overflow float (rows.c) */
} columns;

static inline columns columns_of(const pass *s, const fused_node *d)
{
    int64_t n = s->p->sum_width;
    double *total = (double *)(s->columns + s->p->columns_each * (size_t)d->sum);
    float *sum = (float *)(total + 2 * n);
    return (columns){.total = {total, total + n},
                     .sum = {sum, sum + n, sum + 2 * n},
                     .before = {sum + 3 * n, sum + 4 * n},
                     .after = {sum + 5 * n, sum + 6 * n}};
}

/* Runs the plan's row kernel over the chunk: its whole rows, then the rest of a row. */
void DIRECT(fused_run_rows)(const pass *s, const row_kernel_plan *plan);

/* ---- loops.c: a node that is independent of channels ---- */

typedef struct {
    ptrdiff_t n;
    float *y;
    const float *x[FUSED_OPERANDS]; /* may be y; unused entries alias a used one */
    const float *k;                 /* the node's FUSED_CONSTANTS */
} fused_loop_args;

/* Computes y[i] from x[..][i]. */
void DIRECT(fused_loop)(fused_code code, const fused_loop_args *a);

#endif
