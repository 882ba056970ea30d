/* run.c - the pass of a fused group over memory; compiled once per instruction set. */
#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "bands.h"
#include "loops.h"
#include "row_kernel.h"

enum {
    FLUSH = 64, /* rows that are summed in float */
    LINE = 64   /* bytes of a cache line */
};

/* ---- the pass ---- */

typedef struct { /* the elements being computed */
    const fused_group *p;
    const adj_call *c;
    char *buffers, *columns; /* this thread's */
    int64_t first, end;      /* end: the segment's */
    ptrdiff_t n;
} pass;

static float *buffer(const pass *s, int where) { return (float *)s->buffers + where * s->p->chunk; }

static const float *read_from(const pass *s, const fused_value *v)
{
    switch (v->at) {
    case AT_IN: return (const float *)s->c->in[v->where] + s->first;
    case AT_OUT: return (const float *)s->c->out[v->where] + s->first;
    case AT_TILED: return fused_tiled(s->p, s->c, v->where);
    default: return buffer(s, v->where);
    }
}

typedef struct { /* a sum's columns: in double, and in float since the last flush */
    double *total[2];
    float *sum[3]; /* the last: what is subtracted before squaring */
} columns;

static columns columns_of(const pass *s, const fused_node *d)
{
    int64_t n = s->p->sum_width;
    double *total = (double *)(s->columns + s->p->columns_each * (size_t)d->sum);
    float *sum = (float *)(total + 2 * n);
    return (columns){{total, total + n}, {sum, sum + n, sum + 2 * n}};
}

/* The columns of a sum, added modulo the channels. */
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
    flush_sums(2 * s->p->sum_width, sums.sum[0], sums.total[0]); /* both, side by side */
}

/* ---- row kernels ---- */

/* A value's elements, from the chunk's first on: as they lie in memory, or as floats. */
static char *elements(const pass *s, int value, int is_half)
{
    if (value < 0)
        return NULL;
    const fused_value *v = &s->p->value[value];
    if (!is_half)
        return (char *)read_from(s, v);
    const void *half = v->in >= 0 ? s->c->in[v->in] : s->c->out[v->out];
    return (char *)half + s->first * 2;
}

static void point_to_sums(const pass *s, const row_kernel_plan *plan, row_kernel_args *t)
{
    const fused_node *node = s->p->node;
    int bits = plan->bits;
    if (bits & ROW_SUM)
        t->sum[0] = columns_of(s, &node[plan->node[ROLE_SUM]]).sum[0];
    for (int i = 0; i < row_kernel_sum_pairs(bits); i++) {
        const fused_node *d = &node[plan->node[ROLE_SUMS + i]];
        columns sums = columns_of(s, d);
        t->sum[1 + 2 * i] = sums.sum[0];
        t->sum[2 + 2 * i] = sums.sum[1];
        t->constant[ROW_KERNEL_MEAN + i] =
            bits & ROW_STATS ? sums.sum[2] : fused_tiled(s->p, s->c, d->tiled);
    }
}

static void point_to_constants(const pass *s, const row_kernel_plan *plan, row_kernel_args *t)
{
    int n = 0;
    const int norm = s->p->node[plan->node[ROLE_NORM]].tiled;
    const int grad = s->p->node[plan->node[ROLE_GRAD]].tiled;
    for (; n < 3 && (plan->bits & (ROW_NORM | ROW_NORM_MASK)); n++)
        t->constant[n] = fused_tiled(s->p, s->c, norm + n);
    for (int i = n == 0 ? 0 : 2; i < 4 && (plan->bits & ROW_GRAD); i++)
        t->constant[n++] = fused_tiled(s->p, s->c, grad + i);
}

/* The chunk's whole rows, then what is left of a row behind them. */
static void run_rows(const pass *s, const row_kernel_plan *plan)
{
    row_kernel *half = s->p->half_kernel != NULL ? s->p->half_kernel : DIRECT(row_kernel_bf16);
    row_kernel *kernel = plan->is_half ? half : DIRECT(row_kernel_f32);
    const ptrdiff_t row = s->p->sum_width, rest = s->n % row;
    row_kernel_args t = {.rows = s->n / row, .row = row, .width = row, .y_row = row};
    for (int i = 0; i < ROW_KERNEL_OPERANDS; i++)
        t.x[i] = elements(s, plan->x[i], plan->is_half);
    t.y = elements(s, plan->y, plan->is_half);
    point_to_sums(s, plan, &t);
    point_to_constants(s, plan, &t);
    kernel(&t, plan->bits);
    const ptrdiff_t skipped = (s->n - rest) * (plan->is_half ? 2 : 4);
    for (int i = 0; i < ROW_KERNEL_OPERANDS; i++)
        t.x[i] = t.x[i] != NULL ? t.x[i] + skipped : NULL;
    t.y = t.y != NULL ? t.y + skipped : NULL;
    t.rows = 1;
    t.width = rest;
    if (rest > 0)
        kernel(&t, plan->bits);
}

/* A segment's first rows tell what to subtract before squaring: their own mean per channel. */
static void set_shift(pass s, const row_kernel_plan *stats)
{
    const fused_group *p = s.p;
    s.n = min(s.n, p->row);
    columns sums = columns_of(&s, &p->node[stats->node[ROLE_SUMS]]);
    float *shift = sums.sum[2];
    double share = (double)p->channels / (double)s.n;
    row_kernel_plan plan = *stats;
    plan.bits = ROW_SUM;
    plan.node[ROLE_SUM] = plan.node[ROLE_SUMS];
    run_rows(&s, &plan);
    for (int64_t k = 0; k < p->channels; k++) {
        double sum = 0;
        for (int64_t i = k; i < p->sum_width; i += p->channels)
            sum += (double)sums.sum[0][i];
        shift[k] = (float)(sum * share);
    }
    for (int64_t i = p->channels; i < p->sum_width; i++)
        shift[i] = shift[i - p->channels];
    memset(sums.sum[0], 0, (size_t)p->sum_width * sizeof(float));
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
        run_rows(s, &d->row_kernel);
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

/* Asks for a part of the next chunk, so that memory is read while this one is computed: a chunk is
 * too short for the processor to see a stream in it. */
static void prefetch_ahead(const pass *s, int part)
{
    const fused_group *p = s->p;
    int64_t first = s->first + s->n, parts = p->n_node, n = min(s->end - first, p->chunk);
    for (int i = 0; i < p->n_value && n > 0; i++) {
        const fused_value *v = &p->value[i];
        if (v->at != AT_CHUNK || v->in < 0)
            continue;
        ptrdiff_t size = 2;
        const char *at = (const char *)s->c->in[v->in] + first * size;
        for (ptrdiff_t k = n * size * part / parts; k < n * size * (part + 1) / parts; k += LINE)
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

/* How much is computed at once: by nodes a chunk; by a row kernel as many rows as are summed in
 * float, or as stay in the cache from one column to the next, of one column without sums all. */
static int64_t elements_at_once(const fused_group *p)
{
    const int is_one_column = p->sum_width <= ROW_KERNEL_WIDTH;
    if (p->row_kernel.bits == 0)
        return p->chunk;
    return p->n_sum == 0 && is_one_column ? p->n : FLUSH * p->row;
}

/* From s->first up to `end`: band number `number` of the segment. Where sums are flushed does not
 * depend on how much is computed at once: a chunk's rows are a part of FLUSH. */
static void run_band(pass *s, int64_t end, int64_t number)
{
    const fused_group *p = s->p;
    const int64_t begin = s->first, at_once = elements_at_once(p);
    const int64_t bands_summed = max(FLUSH / divide_up(p->band, p->row), 1);
    if (number > 0 && number % bands_summed == 0)
        flush_all(s);
    s->n = min(end - begin, p->chunk);
    if ((p->row_kernel.bits & ROW_STATS) && number == 0)
        set_shift(*s, &p->row_kernel);
    for (; s->first < end; s->first += s->n) {
        if (s->first > begin && (s->first - begin) % (FLUSH * p->row) == 0)
            flush_all(s);
        s->n = min(end - s->first, at_once);
        if (p->row_kernel.bits != 0)
            run_rows(s, &p->row_kernel);
        else
            run_nodes(s, number == 0 && s->first == begin);
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

static pass pass_of(const adj_call *c, const fused_group *p, int thread)
{
    const size_t sums = (size_t)(thread * p->n_sum);
    return (pass){.p = p,
                  .c = c,
                  .buffers = direct_scratch(c, p->buffers + p->buffers_each * (size_t)thread),
                  .columns = direct_scratch(c, p->columns + p->columns_each * sums)};
}

static void run_job(const adj_call *c, ptrdiff_t segment, int thread)
{
    const fused_group *p = c->state;
    pass s = pass_of(c, p, thread);
    fused_bounds(p, (int)segment, &s.first, &s.end);
    start_sums(&s);
    for (int64_t number = 0; s.first < s.end; number++)
        run_band(&s, p->n_sum > 0 ? min(s.first + p->band, s.end) : s.end, number);
    keep_sums(&s, (int)segment);
}

static void run_prologue(const adj_call *c) { fused_prologue(c, c->state); }

static void run_epilogue(const adj_call *c) { fused_epilogue(c, c->state); }

const direct_code DIRECT(fused_pointwise) = {
    .begin = run_prologue, .job = run_job, .end = run_epilogue};

/* ---- bands of what another kernel computes ---- */

static void start_part(const adj_call *c, const fused_group *p, int thread)
{
    const pass s = pass_of(c, p, thread);
    start_sums(&s);
}

static void add_band(const adj_call *c, const fused_group *p, int thread, int64_t band,
                     int64_t number)
{
    pass s = pass_of(c, p, thread);
    s.first = band * p->band;
    s.end = s.first + p->band;
    run_band(&s, s.end, number);
}

static void keep_part(const adj_call *c, const fused_group *p, int thread, ptrdiff_t part)
{
    const pass s = pass_of(c, p, thread);
    keep_sums(&s, (int)part);
}

const fused_bands_code DIRECT(fused_bands) = {start_part, add_band, keep_part};
