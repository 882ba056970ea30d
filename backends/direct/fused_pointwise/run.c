/* run.c - the pass of a fused group over memory; compiled once per instruction set. */
#include <math.h>
#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "pass.h"
#include "row_kernel.h"

enum {
    FLUSH = 64, /* rows summed in float before a flush */
    LINE = 64   /* bytes of a cache line */
};

/* Adds the columns of a sum modulo the channels. */
static void fold(const fused_group *p, const double *column, double *channel)
{
    memset(channel, 0, (size_t)p->channels * sizeof *channel);
    for (int64_t first = 0; first < p->sum_width; first += p->channels)
        for (int64_t k = 0; k < p->channels; k++)
            channel[k] += column[first + k];
}

static void flush(const pass *s, const fused_node *d)
{
    columns sums = columns_of(s, d);
    flush_sums(2 * s->p->sum_width, sums.sum[0], sums.total[0]); /* both sums are contiguous */
}

/* ---- the shift of statistics ---- */

/* Sets the shift that is subtracted before squaring: the mean per channel of the segment's first
 * rows, or 0 if that is not finite, so that an infinity reaches the sum. */
static void set_shift(pass s, const row_kernel_plan *stats)
{
    const fused_group *p = s.p;
    s.n = min(s.n, p->row);
    const fused_node *d = &p->node[stats->node[ROLE_SUMS]];
    columns sums = columns_of(&s, d);
    float *shift = sums.sum[2];
    double share = (double)p->channels / (double)s.n;
    row_kernel_plan plan = *stats;
    plan.bits = ROW_SUM;
    plan.node[ROLE_SUM] = plan.node[ROLE_SUMS];
    DIRECT(fused_run_rows)(&s, &plan);
    flush(&s, d);
    for (int64_t k = 0; k < p->channels; k++) {
        double sum = 0;
        for (int64_t i = k; i < p->sum_width; i += p->channels)
            sum += sums.total[0][i];
        shift[k] = isfinite(sum) ? (float)(sum * share) : 0;
    }
    for (int64_t i = p->channels; i < p->sum_width; i++)
        shift[i] = shift[i - p->channels];
    memset(sums.total[0], 0, (size_t)p->sum_width * sizeof(double));
}

/* ---- node by node ---- */

static void run_loop(const pass *s, const fused_node *d)
{
    fused_loop_args a = {.k = fused_constants(s->p, s->c, d)};
    const fused_value *v[FUSED_OPERANDS];
    float *y = (float *)read_from(s, &s->p->value[d->y]);
    ptrdiff_t step = s->n;
    for (int i = 0; i < FUSED_OPERANDS; i++) {
        v[i] = &s->p->value[d->x[i < d->n_x ? i : 0]];
        step = v[i]->at == AT_TILED ? (ptrdiff_t)s->p->row : step;
    }
    for (ptrdiff_t first = 0; first < s->n; first += step) {
        for (int i = 0; i < FUSED_OPERANDS; i++)
            a.x[i] = read_from(s, v[i]) + (v[i]->at == AT_TILED ? 0 : first);
        a.y = y + first;
        a.n = min(s->n - first, step);
        DIRECT(fused_loop)(d->code, &a);
    }
}

static void run_node(const pass *s, const fused_node *d, int is_first)
{
    if (d->code == FUSED_STATS && is_first)
        set_shift(*s, &d->row_kernel);
    if (d->row_kernel.bits != 0)
        DIRECT(fused_run_rows)(s, &d->row_kernel);
    else
        run_loop(s, d);
    if (d->y < 0)
        return;
    const fused_value *y = &s->p->value[d->y];
    if (y->at != AT_CHUNK)
        return;
    if (y->is_read)
        round_reals(y->dtype, s->n, buffer(s, y->where));
    if (y->out >= 0)
        store_reals(y->dtype, s->n, (uint16_t *)s->c->out[y->out] + s->first, buffer(s, y->where));
}

/* Prefetches some of the next chunk while this one is computed: a chunk is too short for
 * hardware prefetching to detect a stream. */
static void prefetch_ahead(const pass *s, int job)
{
    const fused_group *p = s->p;
    int64_t first = s->first + s->n, jobs = p->n_node, n = min(s->end - first, p->chunk);
    for (int i = 0; i < p->n_value && n > 0; i++) {
        const fused_value *v = &p->value[i];
        if (v->at != AT_CHUNK || v->in < 0)
            continue;
        ptrdiff_t size = 2;
        const char *at = (const char *)s->c->in[v->in] + first * size;
        for (ptrdiff_t k = n * size * job / jobs; k < n * size * (job + 1) / jobs; k += LINE)
            __builtin_prefetch(at + k, 0, 3);
    }
}

static void run_nodes(const pass *s, int is_first)
{
    const fused_group *p = s->p;
    for (int i = 0; i < p->n_value; i++)
        if (p->value[i].at == AT_CHUNK && p->value[i].in >= 0)
            load_reals(p->value[i].dtype, s->n, buffer(s, p->value[i].where),
                       (const uint16_t *)s->c->in[p->value[i].in] + s->first);
    for (int i = 0; i < p->n_node; i++) {
        prefetch_ahead(s, i);
        run_node(s, &p->node[i], is_first);
    }
}

/* ---- a segment ---- */

static void flush_all(const pass *s)
{
    for (int i = 0; i < s->p->n_node; i++)
        if (s->p->node[i].sum >= 0)
            flush(s, &s->p->node[i]);
}

/* Returns how many elements are computed at once. Node by node: a chunk. A row kernel: as many
 * rows as are summed in float, or as stay in the cache from one block of columns to the next;
 * all if there is one block and no sum. */
static int64_t elements_at_once(const fused_group *p)
{
    const int is_one_column = p->sum_width <= ROW_KERNEL_WIDTH;
    if (p->row_kernel.bits == 0)
        return p->chunk;
    return p->n_sum == 0 && is_one_column ? p->n : FLUSH * p->row;
}

/* Computes a segment in chunks. Sums are flushed after every FLUSH rows; chunk sizes divide
 * FLUSH, so they do not affect results. */
static void run_segment(pass *s)
{
    const fused_group *p = s->p;
    const int64_t begin = s->first, at_once = elements_at_once(p);
    s->n = min(s->end - begin, p->chunk);
    if (p->row_kernel.bits & ROW_STATS)
        set_shift(*s, &p->row_kernel);
    for (; s->first < s->end; s->first += s->n) {
        if (s->first > begin && (s->first - begin) % (FLUSH * p->row) == 0)
            flush_all(s);
        s->n = min(s->end - s->first, at_once);
        if (p->row_kernel.bits != 0)
            DIRECT(fused_run_rows)(s, &p->row_kernel);
        else
            run_nodes(s, s->first == begin);
    }
}

static void start_sums(const pass *s)
{
    memset(s->columns, 0, s->p->columns_each * (size_t)s->p->n_sum);
}

static void keep_sums(const pass *s, int segment)
{
    const fused_group *p = s->p;
    for (int i = 0; i < p->n_node; i++) {
        const fused_node *d = &p->node[i];
        if (d->sum < 0)
            continue;
        flush(s, d);
        columns sums = columns_of(s, d);
        double *dst = fused_partial(p, s->c, segment, d);
        fold(p, sums.total[0], dst);
        fold(p, sums.total[1], dst + p->channels);
        for (int64_t k = 0; k < p->channels; k++)
            dst[2 * p->channels + k] = (double)sums.sum[2][k];
    }
}

static void run_job(const adj_call *c, ptrdiff_t segment, int thread)
{
    const fused_group *p = c->state;
    const size_t sums = (size_t)(thread * p->n_sum);
    pass s = {.p = p,
              .c = c,
              .buffers = direct_scratch(c, p->buffers + p->buffers_each * (size_t)thread),
              .columns = direct_scratch(c, p->columns + p->columns_each * sums)};
    fused_bounds(p, (int)segment, &s.first, &s.end);
    start_sums(&s);
    run_segment(&s);
    keep_sums(&s, (int)segment);
}

const direct_code DIRECT(fused_pointwise) = {
    .begin = fused_prologue, .job = run_job, .end = fused_epilogue};
