/* run.c - the pass of a chain over memory; compiled once per instruction set. */
#include <string.h>

#include "loops.h"
#include "strip.h"
#include "backends/direct/half.h"

enum {
    FLUSH = 64, /* rows that are summed in float */
    LINE = 64   /* bytes of a cache line */
};

/* ---- the pass ---- */

typedef struct { /* the chunk being computed */
    const chain *p;
    const adj_call *c;
    char *buffers, *columns; /* this thread's */
    int64_t first;
    ptrdiff_t n;
    int64_t rows; /* summed in float since the last flush */
} pass;

static float *buffer(const pass *s, int where) { return (float *)s->buffers + where * s->p->chunk; }

static float *period(const pass *s, int where)
{
    return (float *)((char *)s->c->scratch + s->p->periods) + where * s->p->row;
}

static const float *read_from(const pass *s, const chain_value *v)
{
    switch (v->at) {
    case AT_IN: return (const float *)s->c->in[v->where] + s->first;
    case AT_OUT: return (const float *)s->c->out[v->where] + s->first;
    case AT_PERIOD: return period(s, v->where);
    default: return buffer(s, v->where);
    }
}

typedef struct { /* a sum's columns: in double, and in float since the last flush */
    double *total[2];
    float *sum[3]; /* the last: what is subtracted before squaring */
} columns;

static columns columns_of(const pass *s, const chain_node *d)
{
    int64_t n = s->p->narrow;
    double *total = (double *)(s->columns + s->p->columns_each * (size_t)d->sum);
    float *sum = (float *)(total + 2 * n);
    return (columns){{total, total + n}, {sum, sum + n, sum + 2 * n}};
}

/* The columns of a sum, added modulo the channels. */
static void fold(const chain *p, const double *column, double *channel)
{
    memset(channel, 0, (size_t)p->channels * sizeof *channel);
    for (int64_t first = 0; first < p->narrow; first += p->channels)
        for (int64_t k = 0; k < p->channels; k++)
            channel[k] += column[first + k];
}

static void flush(const pass *s, const chain_node *d)
{
    columns sums = columns_of(s, d);
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < s->p->narrow; k++) {
            sums.total[i][k] += (double)sums.sum[i][k];
            sums.sum[i][k] = 0;
        }
}

/* The whole rows of a chunk, and what is left of a row behind them. */
static chain_block whole_rows(const pass *s)
{
    int64_t row = s->p->narrow;
    return (chain_block){s->n / row, row, row};
}

static chain_block last_row(const pass *s)
{
    int64_t row = s->p->narrow;
    return (chain_block){1, row, s->n % row};
}

/* What a loop reads behind the whole rows. */
static void skip_rows(const pass *s, int n, const float *const x[], const int is_period[],
                      const float *rest[])
{
    ptrdiff_t skipped = s->n - s->n % s->p->narrow;
    for (int i = 0; i < n; i++)
        rest[i] = is_period[i] ? x[i] : x[i] + skipped;
}

static void add_chunk(const pass *s, const chain_node *d, chain_code code, const float *const x[],
                      const int is_period[], int n_x)
{
    const float *rest[CHAIN_READ] = {0};
    columns sums = columns_of(s, d);
    skip_rows(s, n_x, x, is_period, rest);
    DIRECT(chain_add)(whole_rows(s), code, sums.sum, x);
    DIRECT(chain_add)(last_row(s), code, sums.sum, rest);
}

/* A segment's first chunk tells what to subtract before squaring: its own mean per channel. */
static void set_shift(const pass *s, const chain_node *d, const float *const x[],
                      const int is_period[])
{
    const chain *p = s->p;
    columns sums = columns_of(s, d);
    float *shift = sums.sum[2];
    double share = (double)p->channels / (double)s->n;
    add_chunk(s, d, CHAIN_SUM, x, is_period, 1);
    for (int64_t k = 0; k < p->channels; k++) {
        double sum = 0;
        for (int64_t i = k; i < p->narrow; i += p->channels)
            sum += (double)sums.sum[0][i];
        shift[k] = (float)(sum * share);
    }
    for (int64_t i = p->channels; i < p->narrow; i++)
        shift[i] = shift[i - p->channels];
    memset(sums.sum[0], 0, (size_t)p->narrow * sizeof(float));
}

static void compute_node(const pass *s, const chain_node *d, float *y, const float *const x[],
                         const int is_period[], int n_x)
{
    const float *k = (const float *)((const char *)s->c->scratch + s->p->constants) +
                     (d - s->p->node) * CHAIN_CONSTANTS;
    const float *at[CHAIN_READ] = {0};
    chain_column_loop *loop = DIRECT(chain_column_loop)(d->code);
    ptrdiff_t step = s->n;
    if (loop != NULL) {
        skip_rows(s, n_x, x, is_period, at);
        loop(whole_rows(s), y, x);
        loop(last_row(s), y + s->n - s->n % s->p->narrow, at);
        return;
    }
    for (int i = 0; i < n_x; i++)
        step = is_period[i] ? (ptrdiff_t)s->p->row : step;
    for (ptrdiff_t first = 0; first < s->n; first += step) {
        for (int i = 0; i < n_x; i++)
            at[i] = is_period[i] ? x[i] : x[i] + first;
        DIRECT(chain_loops)[d->code](s->n - first < step ? s->n - first : step, y + first, at, k);
    }
}

static void run_node(const pass *s, const chain_node *d, int is_first)
{
    const float *x[CHAIN_READ] = {0};
    int is_period[CHAIN_READ] = {0}, n = d->n_x;
    for (int i = 0; i < n; i++) {
        const chain_value *v = &s->p->value[d->x[i]];
        x[i] = read_from(s, v);
        is_period[i] = v->at == AT_PERIOD;
    }
    for (int i = 0; i < d->n_period; i++, n++) {
        x[n] = period(s, d->period + i);
        is_period[n] = 1;
    }
    if (d->sum >= 0) {
        if (d->code == CHAIN_STATS && is_first)
            set_shift(s, d, x, is_period);
        add_chunk(s, d, d->code, x, is_period, n);
        return;
    }
    const chain_value *y = &s->p->value[d->y];
    compute_node(s, d, (float *)read_from(s, y), x, is_period, n);
    if (y->out >= 0 && y->at == AT_CHUNK) {
        uint16_t *out = (uint16_t *)s->c->out[y->out] + s->first;
        store_half(y->dtype, s->n, out, buffer(s, y->where));
        if (y->is_read)
            load_half(y->dtype, s->n, buffer(s, y->where), out);
    }
}

/* Asks for a part of the next chunk, so that memory is read while this one is computed: a chunk is
 * too short for the processor to see a stream in it. */
static void fetch_ahead(const pass *s, int part, int64_t end)
{
    const chain *p = s->p;
    int64_t first = s->first + p->chunk, parts = p->n_node;
    int64_t n = end - first < p->chunk ? end - first : p->chunk;
    for (int i = 0; i < p->n_value && n > 0; i++) {
        const chain_value *v = &p->value[i];
        if (v->at != AT_CHUNK || v->in < 0)
            continue;
        ptrdiff_t size = 2;
        const char *at = (const char *)s->c->in[v->in] + first * size;
        for (ptrdiff_t k = n * size * part / parts; k < n * size * (part + 1) / parts; k += LINE)
            __builtin_prefetch(at + k, 0, 3);
    }
}

static void run_chunk(const pass *s, int is_first, int64_t end)
{
    const chain *p = s->p;
    for (int i = 0; i < p->n_value; i++)
        if (p->value[i].at == AT_CHUNK && p->value[i].in >= 0)
            load_half(p->value[i].dtype, s->n, buffer(s, p->value[i].where),
                      (const uint16_t *)s->c->in[p->value[i].in] + s->first);
    for (int i = 0; i < p->n_node; i++) {
        fetch_ahead(s, i, end);
        run_node(s, &p->node[i], is_first);
    }
}

/* ---- a chain that is one loop ---- */

static const void *element(const void *data, adj_dtype dtype, int64_t at)
{
    return (const char *)data + at * (dtype == ADJ_F32 ? 4 : 2);
}

static void point_to_sums(const pass *s, chain_strip *t)
{
    const chain *p = s->p;
    int what = p->strip.what;
    int pairs = what & STRIP_NORM_SUMS_TOO ? 2 : what & (STRIP_NORM_SUMS | STRIP_STATS) ? 1 : 0;
    if (what & STRIP_SUM)
        t->sum = columns_of(s, &p->node[p->strip.sum]).sum[0];
    for (int i = 0; i < pairs; i++) {
        const chain_node *d = &p->node[p->strip.norm_sums[i]];
        columns sums = columns_of(s, d);
        t->first[i] = sums.sum[0];
        t->second[i] = sums.sum[1];
        t->mean[i] = what & STRIP_STATS ? sums.sum[2] : period(s, d->period);
    }
}

static void point_to_constants(const pass *s, chain_strip *t)
{
    const chain_plan *plan = &s->p->strip;
    int n = 0;
    for (; n < 3 && (plan->what & (STRIP_NORM | STRIP_NORM_MASK)); n++)
        t->constant[n] = period(s, plan->norm + n);
    for (int i = n == 0 ? 0 : 2; i < 4 && (plan->what & STRIP_GRAD); i++)
        t->constant[n++] = period(s, plan->grad + i);
}

/* Rows of the strip, from an element on. */
static void run_rows(const pass *s, chain_strip *t, chain_block b, int64_t first)
{
    const chain_plan *plan = &s->p->strip;
    adj_dtype dtype = (adj_dtype)plan->dtype;
    t->rows = b.rows;
    t->row = b.row;
    t->width = b.width;
    for (int i = 0; i < STRIP_IN; i++)
        t->x[i] = element(s->c->in[plan->in[i]], dtype, first);
    if (plan->out >= 0)
        t->y = (void *)element(s->c->out[plan->out], dtype, first);
    s->p->strip_loop(t);
}

/* From the segment's first chunk. */
static void set_strip_shift(const pass *s)
{
    const chain_node *d = &s->p->node[s->p->strip.norm_sums[0]];
    const chain_value *v = &s->p->value[d->x[0]];
    if (v->at == AT_CHUNK)
        load_half(v->dtype, s->n, buffer(s, v->where),
                  (const uint16_t *)s->c->in[v->in] + s->first);
    set_shift(s, d, (const float *const[]){read_from(s, v)}, (const int[]){0});
}

static void flush_all(const pass *s)
{
    for (int i = 0; i < s->p->n_node; i++)
        if (s->p->node[i].sum >= 0)
            flush(s, &s->p->node[i]);
}

/* The segment, as many rows at a time as are summed in float. */
static void run_strip(pass *s, int64_t to)
{
    const chain *p = s->p;
    chain_strip t = {0};
    s->n = (ptrdiff_t)(to - s->first < p->chunk ? to - s->first : p->chunk);
    if ((p->strip.what & STRIP_STATS) && s->n > 0)
        set_strip_shift(s);
    point_to_sums(s, &t);
    point_to_constants(s, &t);
    for (; s->first < to; s->first += s->n) {
        s->n = (ptrdiff_t)(to - s->first < FLUSH * p->row ? to - s->first : FLUSH * p->row);
        chain_block whole = whole_rows(s), last = last_row(s);
        run_rows(s, &t, whole, s->first);
        if (last.width > 0)
            run_rows(s, &t, last, s->first + whole.rows * whole.row);
        flush_all(s);
    }
}

static void start_sums(const pass *s)
{
    memset(s->columns, 0, s->p->columns_each * (size_t)s->p->n_sum);
}

static void keep_sums(const pass *s, int segment)
{
    const chain *p = s->p;
    for (int i = 0; i < p->n_node; i++) {
        const chain_node *d = &p->node[i];
        if (d->sum < 0)
            continue;
        flush(s, d);
        columns sums = columns_of(s, d);
        double *to = (double *)((char *)s->c->scratch + p->partials +
                                p->partials_each * (size_t)(segment * p->n_sum + d->sum));
        fold(p, sums.total[0], to);
        fold(p, sums.total[1], to + p->channels);
        for (int64_t k = 0; k < p->channels; k++)
            to[2 * p->channels + k] = (double)sums.sum[2][k];
    }
}

void DIRECT(chain_segment)(const chain *p, const adj_call *c, int segment, int thread)
{
    int64_t from, to;
    pass s = {.p = p, .c = c};
    s.buffers = (char *)c->scratch + p->buffers + p->buffers_each * (size_t)thread;
    s.columns = (char *)c->scratch + p->columns + p->columns_each * (size_t)(thread * p->n_sum);
    chain_bounds(p, segment, &from, &to);
    start_sums(&s);
    s.first = from;
    if (p->strip_loop != NULL)
        run_strip(&s, to);
    for (; s.first < to; s.first += p->chunk) {
        s.n = (ptrdiff_t)(to - s.first < p->chunk ? to - s.first : p->chunk);
        run_chunk(&s, s.first == from, to);
        s.rows += p->chunk / p->row;
        if (s.rows >= FLUSH) {
            flush_all(&s);
            s.rows = 0;
        }
    }
    keep_sums(&s, segment);
}
