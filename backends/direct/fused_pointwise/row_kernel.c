/* row_kernel.c - the loops of row_kernel.h: one function, inlined for each combination in use;
 * compiled once per instruction set, for f32 and bf16, with avx512_bf16's rounding where
 * available. With -DSMALL_CODE one loop serves all: sanitizer builds would take a minute for
 * each. */
#include <string.h>

#include "backends/direct/arith.h"
#include "row_columns.h"

enum {
    TAIL_ROWS = 16, /* rows processed at a time */
    SIZE = sizeof(T)
};

typedef struct { /* state of some columns */
    columns k[5], mean[2], sum, first[2], second[2];
} column_state;

ALWAYS column_state load_state(const row_kernel_args *s, ptrdiff_t i, int bits)
{
    column_state h = {0};
    int constants = (bits & (ROW_NORM | ROW_NORM_MASK) ? 3
                     : bits & ROW_GRAD                 ? 2
                                                       : 0) +
                    (bits & ROW_GRAD ? 2 : 0);
    for (int k = 0; k < constants; k++)
        h.k[k] = load_columns(s->constant[k] + i);
    for (int k = 0; k < row_kernel_sum_pairs(bits); k++) {
        if (!(bits & ROW_NORM_MASK))
            h.mean[k] = load_columns(s->constant[ROW_KERNEL_MEAN + k] + i);
        h.first[k] = load_columns(s->sum[1 + 2 * k] + i);
        h.second[k] = load_columns(s->sum[2 + 2 * k] + i);
    }
    if (bits & ROW_SUM)
        h.sum = load_columns(s->sum[0] + i);
    return h;
}

ALWAYS void store_state(const row_kernel_args *s, ptrdiff_t i, const column_state *h, int bits)
{
    for (int k = 0; k < row_kernel_sum_pairs(bits); k++) {
        store_columns(s->sum[1 + 2 * k] + i, h->first[k]);
        store_columns(s->sum[2 + 2 * k] + i, h->second[k]);
    }
    if (bits & ROW_SUM)
        store_columns(s->sum[0] + i, h->sum);
}

typedef struct {
    columns c;         /* values that are summed, and written unless NORM_OUT */
    columns norm;      /* NORM_OUT: values written */
    columns deviation; /* NORM_MASK: x[0] - mean */
} computed;

ALWAYS computed compute(const row_kernel_args *s, ptrdiff_t at, const column_state *h, int bits)
{
    computed r = {.c = load_row(s->x[0], at)};
    columns other = {{{0}}};
    const int q = bits & ROW_NORM_MASK ? 3 : 2;
    const float zero = IS_HALF ? 0x1p-134F : 0; /* the largest number that rounds to 0 */
    if (bits & (ROW_GRAD | ROW_ADD | ROW_NORM_MASK))
        other = load_row(s->x[1], at);
    for (int k = 0; k < WIDE; k++) {
        vector x = r.c.v[k] - h->k[0].v[k], z = x * h->k[1].v[k] + h->k[2].v[k];
        if (bits & ROW_NORM)
            r.c.v[k] = z;
        if (bits & ROW_NORM_MASK)
            r.c.v[k] = other.v[k] = (vector)((words)other.v[k] & (words)(z > zero));
        if (bits & ROW_GRAD)
            r.c.v[k] = h->k[1].v[k] * (other.v[k] - h->k[q + 1].v[k] - x * h->k[q].v[k]);
        if (bits & ROW_NORM_OUT)
            r.norm.v[k] = relu_vector(z);
        r.deviation.v[k] = x;
    }
    if ((bits & ROW_NORM) && (bits & ROW_ADD)) /* others are exact or rounded here */
        round_columns(&r.c);
    for (int k = 0; k < WIDE; k++) {
        if (bits & ROW_ADD)
            r.c.v[k] += other.v[k];
        if (bits & ROW_RELU)
            r.c.v[k] = relu_vector(r.c.v[k]);
    }
    if (bits & ROW_MASK) {
        columns y = load_row(s->x[2], at);
        for (int k = 0; k < WIDE; k++)
            r.c.v[k] = (vector)((words)r.c.v[k] & (words)(y.v[k] > 0));
    }
    return r;
}

ALWAYS void add_norm_sums(column_state *h, int number, columns deviation, columns dy)
{
    for (int k = 0; k < WIDE; k++) {
        h->first[number].v[k] += dy.v[k] * deviation.v[k];
        h->second[number].v[k] += dy.v[k];
    }
}

ALWAYS columns deviation(const column_state *h, int number, const void *x, ptrdiff_t at)
{
    columns c = load_row(x, at);
    for (int k = 0; k < WIDE; k++)
        c.v[k] -= h->mean[number].v[k];
    return c;
}

ALWAYS void add_sums(const row_kernel_args *s, ptrdiff_t at, const computed *r, column_state *h,
                     int bits)
{
    for (int k = 0; k < WIDE; k++) {
        if (bits & ROW_SUM)
            h->sum.v[k] += r->c.v[k];
        if (bits & ROW_STATS) {
            vector e = r->c.v[k] - h->mean[0].v[k];
            h->first[0].v[k] += e;
            h->second[0].v[k] += e * e;
        }
    }
    if ((bits & ROW_NORM_SUMS) && (bits & ROW_NORM_MASK))
        add_norm_sums(h, 0, r->deviation, r->c);
    else if (bits & ROW_NORM_SUMS)
        add_norm_sums(h, 0, deviation(h, 0, s->x[3], at), r->c);
    if (bits & ROW_MORE_NORM_SUMS)
        add_norm_sums(h, 1, deviation(h, 1, s->x[4], at), r->c);
}

/* Processes ROW_KERNEL_WIDTH columns, from i on, of some rows. */
ALWAYS void walk_columns(const row_kernel_args *s, ptrdiff_t i, ptrdiff_t first, ptrdiff_t end,
                         int bits)
{
    column_state h = load_state(s, i, bits);
    ptrdiff_t at = first * s->row + i, y_at = first * s->y_row + i;
    for (ptrdiff_t row = first; row < end; row++, at += s->row, y_at += s->y_row) {
        computed r = compute(s, at, &h, bits);
        if (bits & ROW_OUT)
            r.c = store_row(s->y, y_at, r.c);
        if (bits & ROW_NORM_OUT)
            store_row(s->y, y_at, r.norm);
        add_sums(s, at, &r, &h, bits);
    }
    store_state(s, i, &h, bits);
}

/* Returns how many rows are computed before the next ROW_KERNEL_WIDTH columns. All of them,
 * except for f32 rows of twice as many columns: those would skip every other four lines of
 * memory, so a few. */
ALWAYS ptrdiff_t rows_at_once(const row_kernel_args *s)
{
    const ptrdiff_t few = 8;
    const int is_every_other = s->width == (ptrdiff_t)2 * ROW_KERNEL_WIDTH;
    return is_every_other && !IS_HALF && VECTOR_BYTES == 32 ? few : s->rows;
}

/* Works on a copy of the arguments, since the compiler must assume that y aliases them. */
ALWAYS void walk(const row_kernel_args *args, int bits)
{
    const row_kernel_args s = *args;
    const ptrdiff_t at_once = rows_at_once(&s);
    for (ptrdiff_t first = 0; first < s.rows; first += at_once)
        for (ptrdiff_t i = 0; i < s.width; i += ROW_KERNEL_WIDTH)
            walk_columns(&s, i, first, min(first + at_once, s.rows), bits);
}

#ifdef SMALL_CODE

static void run_whole(const row_kernel_args *s, int bits) { walk(s, bits); }

#else

/* Dispatches to the loop of each of pattern.c's patterns. */
static void run_whole(const row_kernel_args *s, int bits)
{
    switch (bits) {
    case ROW_RELU | ROW_OUT: walk(s, ROW_RELU | ROW_OUT); break;
    case ROW_ADD | ROW_RELU | ROW_OUT: walk(s, ROW_ADD | ROW_RELU | ROW_OUT); break;
    case ROW_NORM | ROW_OUT: walk(s, ROW_NORM | ROW_OUT); break;
    case ROW_NORM | ROW_RELU | ROW_OUT: walk(s, ROW_NORM | ROW_RELU | ROW_OUT); break;
    case ROW_NORM | ROW_ADD | ROW_OUT: walk(s, ROW_NORM | ROW_ADD | ROW_OUT); break;
    case ROW_NORM | ROW_ADD | ROW_RELU | ROW_OUT:
        walk(s, ROW_NORM | ROW_ADD | ROW_RELU | ROW_OUT);
        break;
    case ROW_GRAD | ROW_OUT: walk(s, ROW_GRAD | ROW_OUT); break;
    case ROW_GRAD | ROW_OUT | ROW_SUM: walk(s, ROW_GRAD | ROW_OUT | ROW_SUM); break;
    case ROW_MASK | ROW_OUT: walk(s, ROW_MASK | ROW_OUT); break;
    case ROW_MASK | ROW_OUT | ROW_SUM: walk(s, ROW_MASK | ROW_OUT | ROW_SUM); break;
    case ROW_MASK | ROW_OUT | ROW_NORM_SUMS: walk(s, ROW_MASK | ROW_OUT | ROW_NORM_SUMS); break;
    case ROW_MASK | ROW_OUT | ROW_NORM_SUMS | ROW_MORE_NORM_SUMS:
        walk(s, ROW_MASK | ROW_OUT | ROW_NORM_SUMS | ROW_MORE_NORM_SUMS);
        break;
    case ROW_ADD | ROW_MASK | ROW_OUT: walk(s, ROW_ADD | ROW_MASK | ROW_OUT); break;
    case ROW_ADD | ROW_MASK | ROW_OUT | ROW_NORM_SUMS:
        walk(s, ROW_ADD | ROW_MASK | ROW_OUT | ROW_NORM_SUMS);
        break;
    case ROW_ADD | ROW_MASK | ROW_OUT | ROW_NORM_SUMS | ROW_MORE_NORM_SUMS:
        walk(s, ROW_ADD | ROW_MASK | ROW_OUT | ROW_NORM_SUMS | ROW_MORE_NORM_SUMS);
        break;
    case ROW_NORM_MASK | ROW_NORM_SUMS: walk(s, ROW_NORM_MASK | ROW_NORM_SUMS); break;
    case ROW_NORM_MASK | ROW_NORM_SUMS | ROW_NORM_OUT:
        walk(s, ROW_NORM_MASK | ROW_NORM_SUMS | ROW_NORM_OUT);
        break;
    case ROW_NORM_MASK | ROW_GRAD | ROW_OUT: walk(s, ROW_NORM_MASK | ROW_GRAD | ROW_OUT); break;
    case ROW_NORM_MASK | ROW_GRAD | ROW_OUT | ROW_SUM:
        walk(s, ROW_NORM_MASK | ROW_GRAD | ROW_OUT | ROW_SUM);
        break;
    case ROW_NORM_SUMS: walk(s, ROW_NORM_SUMS); break;
    case ROW_SUM: walk(s, ROW_SUM); break;
    case ROW_STATS: walk(s, ROW_STATS); break;
    default: break;
    }
}

#endif

/* ---- rows of any width ---- */

typedef struct { /* copies of a kernel's operands for which only some columns are valid */
    _Alignas(ROW_KERNEL_WIDTH) char x[ROW_KERNEL_OPERANDS]
                                     [ROW_KERNEL_WIDTH * sizeof(float)]; /* a short row */
    char y[sizeof(float) * TAIL_ROWS * ROW_KERNEL_WIDTH];
    float sum[ROW_KERNEL_SUMS][ROW_KERNEL_WIDTH];
} tail_columns;

/* Returns the arguments for the last ROW_KERNEL_WIDTH columns of s, from `at`; copies a shorter
 * row. */
static row_kernel_args tail_of(const row_kernel_args *s, ptrdiff_t at, tail_columns *c)
{
    row_kernel_args t = *s;
    t.width = t.y_row = ROW_KERNEL_WIDTH;
    t.y = c->y;
    for (int k = 0; k < ROW_KERNEL_OPERANDS; k++)
        if (s->x[k] != NULL && s->width < ROW_KERNEL_WIDTH)
            t.x[k] = memcpy(memset(c->x[k], 0, sizeof c->x[k]), s->x[k], (size_t)s->width * SIZE);
        else if (s->x[k] != NULL)
            t.x[k] = s->x[k] + at * SIZE;
    for (int k = 0; k < ROW_KERNEL_CONSTANTS; k++)
        t.constant[k] = s->constant[k] != NULL ? s->constant[k] + at : NULL;
    for (int k = 0; k < ROW_KERNEL_SUMS; k++)
        if (s->sum[k] != NULL)
            t.sum[k] = memcpy(c->sum[k], s->sum[k] + at, sizeof c->sum[k]);
    return t;
}

/* Computes the last columns of rows, fewer than the kernel's width. The excess results are
 * discarded, since y may be one of the x. */
static void run_tail(const row_kernel_args *s, int bits)
{
    const ptrdiff_t at = max(s->width - ROW_KERNEL_WIDTH, 0), rest = s->width % ROW_KERNEL_WIDTH;
    const ptrdiff_t skipped = s->width - rest - at;
    tail_columns c;
    row_kernel_args t = tail_of(s, at, &c);
    for (ptrdiff_t first = 0; first < s->rows; first += TAIL_ROWS) {
        for (int k = 0; k < ROW_KERNEL_OPERANDS; k++)
            if (first > 0 && t.x[k] != NULL)
                t.x[k] += TAIL_ROWS * s->row * SIZE;
        t.rows = min(TAIL_ROWS, s->rows - first);
        run_whole(&t, bits);
        for (ptrdiff_t i = 0; i < t.rows && s->y != NULL; i++)
            memcpy(s->y + ((first + i) * s->y_row + at + skipped) * SIZE,
                   c.y + (i * ROW_KERNEL_WIDTH + skipped) * SIZE, (size_t)rest * SIZE);
    }
    for (int k = 0; k < ROW_KERNEL_SUMS; k++)
        if (s->sum[k] != NULL)
            memcpy(s->sum[k] + at + skipped, c.sum[k] + skipped, (size_t)rest * sizeof(float));
}

void TYPED(row_kernel)(const row_kernel_args *s, int bits)
{
    row_kernel_args whole = *s;
    whole.width = s->width / ROW_KERNEL_WIDTH * ROW_KERNEL_WIDTH;
    run_whole(&whole, bits);
    if (s->rows > 0 && whole.width < s->width)
        run_tail(s, bits);
}
