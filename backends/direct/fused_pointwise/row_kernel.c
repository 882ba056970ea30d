/* row_kernel.c - the loops of row_kernel.h: one function, inlined for each of the combinations that
 * occur; compiled once per instruction set, for f32 and bf16, which avx512_bf16 rounds to. With
 * -DSMALL_CODE there is one for all: sanitizers need a minute for each. */
#include <string.h>

#if defined(__x86_64__) && defined(ISA_avx512_bf16)
#define HAS_BF16_ROUNDING 1
#include <immintrin.h>
#else
#define HAS_BF16_ROUNDING 0
#endif

#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "row_kernel.h"

enum {
    WIDE = ROW_KERNEL_WIDTH / VECTOR,
    TAIL_ROWS = 16, /* at a time */
    SIZE = sizeof(T),
    IS_HALF = SIZE == 2
};

static const uint32_t UPPER = 0xffff0000;

typedef uint32_t words __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
/* Two neighbouring columns as one number: of bf16, of f32. */
typedef uint32_t half_pairs __attribute__((vector_size(VECTOR_BYTES), aligned(2), may_alias));
typedef uint64_t pairs __attribute__((vector_size(2 * VECTOR_BYTES), aligned(4), may_alias));

/* ROW_KERNEL_WIDTH columns; of bf16, the lower ones of WIDE / 2 vectors of pairs at even, the upper
 * ones at odd places: so widening and rounding move nothing from lane to lane. */
typedef struct {
    vector v[WIDE];
} columns;

ALWAYS columns load(const float *p)
{
    columns c;
    for (int k = 0; k < WIDE; k++)
        c.v[k] = ((const vector *)p)[k];
    return c;
}

ALWAYS void store(float *p, columns c)
{
    for (int k = 0; k < WIDE; k++)
        ((vector *)p)[k] = c.v[k];
}

/* Constants or sums of columns. */
ALWAYS columns load_columns(const float *p)
{
    columns c;
    if (!IS_HALF)
        return load(p);
    for (int k = 0; k < WIDE; k += 2) {
        pairs both = ((const pairs *)p)[k / 2];
        c.v[k] = (vector) __builtin_convertvector(both, words);
        c.v[k + 1] = (vector) __builtin_convertvector(both >> 32, words);
    }
    return c;
}

ALWAYS void store_columns(float *p, columns c)
{
    if (!IS_HALF) {
        store(p, c);
        return;
    }
    for (int k = 0; k < WIDE; k += 2)
        ((pairs *)p)[k / 2] = __builtin_convertvector((words)c.v[k], pairs) |
                              __builtin_convertvector((words)c.v[k + 1], pairs) << 32;
}

#if HAS_BF16_ROUNDING

/* Both rounded to nearest even, as pairs; numbers below 2^-126 become 0. */
ALWAYS void round_pairs(words *both, const vector *even, const vector *odd)
{
    static const uint16_t in_pairs[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                        21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                        11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh((__m512)*odd, (__m512)*even);
    *both = (words)_mm512_permutexvar_epi16(_mm512_loadu_si512(in_pairs), halves);
}

#else

/* To nearest even; the bf16 bits are the upper ones. What would make a NaN infinite or 0, ones in
 * all of its lower bits, does not occur: operands have zeros there, constants are plain NaNs.
 * By address: GCC 14 for aarch64 crashes on arguments and results of these types. */
ALWAYS void round_to_bf16(words *rounded, const vector *v)
{
    words b = (words)*v;
    *rounded = b + 0x7fff + (b >> 16 & 1);
}

ALWAYS void round_pairs(words *both, const vector *even, const vector *odd)
{
    words lower, upper;
    round_to_bf16(&lower, even);
    round_to_bf16(&upper, odd);
    *both = lower >> 16 | (upper & UPPER);
}

#endif

ALWAYS void widen_pairs(vector *even, vector *odd, const words *both)
{
    *even = (vector)(*both << 16);
    *odd = (vector)(*both & UPPER);
}

ALWAYS columns load_row(const void *p, ptrdiff_t at)
{
    columns c;
    if (!IS_HALF)
        return load((const float *)p + at);
    for (int k = 0; k < WIDE; k += 2) {
        words both = ((const half_pairs *)((const uint16_t *)p + at))[k / 2];
        widen_pairs(&c.v[k], &c.v[k + 1], &both);
    }
    return c;
}

/* Returns what has been written. */
ALWAYS columns store_row(void *p, ptrdiff_t at, columns c)
{
    if (!IS_HALF) {
        store((float *)p + at, c);
        return c;
    }
    for (int k = 0; k < WIDE; k += 2) {
        words both;
        round_pairs(&both, &c.v[k], &c.v[k + 1]);
        ((half_pairs *)((uint16_t *)p + at))[k / 2] = both;
        widen_pairs(&c.v[k], &c.v[k + 1], &both);
    }
    return c;
}

typedef struct { /* of some columns */
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

/* A NaN stays. */
ALWAYS void relu(vector *y, const vector *x) { *y = (vector)((words)*x & ~(words)(*x <= 0)); }

typedef struct {
    columns c;         /* what is summed, and written but with NORM_OUT */
    columns norm;      /* NORM_OUT: what is written */
    columns deviation; /* NORM_MASK: x[0] - mean */
} computed;

ALWAYS computed compute(const row_kernel_args *s, ptrdiff_t at, const column_state *h, int bits)
{
    computed r = {.c = load_row(s->x[0], at)};
    columns other = {{{0}}};
    const int q = bits & ROW_NORM_MASK ? 3 : 2;
    if (bits & (ROW_GRAD | ROW_ADD | ROW_NORM_MASK))
        other = load_row(s->x[1], at);
    for (int k = 0; k < WIDE; k++) {
        vector x = r.c.v[k] - h->k[0].v[k], z = x * h->k[1].v[k] + h->k[2].v[k];
        if (bits & ROW_NORM)
            r.c.v[k] = z;
        if (bits & ROW_NORM_MASK)
            r.c.v[k] = other.v[k] = (vector)((words)other.v[k] & (words)(z > 0));
        if (bits & ROW_GRAD)
            r.c.v[k] = h->k[1].v[k] * (other.v[k] - h->k[q + 1].v[k] - x * h->k[q].v[k]);
        if (bits & ROW_ADD)
            r.c.v[k] += other.v[k];
        if (bits & ROW_RELU)
            relu(&r.c.v[k], &r.c.v[k]);
        if (bits & ROW_NORM_OUT)
            relu(&r.norm.v[k], &z);
        r.deviation.v[k] = x;
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

/* ROW_KERNEL_WIDTH columns, from i on, of some rows. */
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

/* How many rows are taken before the next WIDTH columns: all, but of rows of twice as many, where
 * they would be every other four lines of memory, a few. All at once took 1.1 to 2.2 times as long
 * with 128 channels, and 0.8 to 1 times with 192, 256, 384 and 1,024 (AVX2, f32; AMD Zen 3,
 * 2026-11-27). Half types are level; other instruction sets were not measured. */
ALWAYS ptrdiff_t rows_at_once(const row_kernel_args *s)
{
    const ptrdiff_t few = 8;
    const int is_every_other = s->width == (ptrdiff_t)2 * ROW_KERNEL_WIDTH;
    return is_every_other && !IS_HALF && VECTOR_BYTES == 32 ? few : s->rows;
}

/* On a copy: for all that the compiler knows, y may be where the arguments are. */
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

/* For each of pattern.c's patterns a loop of its own. */
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

typedef struct { /* the operands of a kernel of which only some columns count */
    _Alignas(ROW_KERNEL_WIDTH) char x[ROW_KERNEL_OPERANDS]
                                     [ROW_KERNEL_WIDTH * sizeof(float)]; /* of a short row */
    char y[sizeof(float) * TAIL_ROWS * ROW_KERNEL_WIDTH];
    float sum[ROW_KERNEL_SUMS][ROW_KERNEL_WIDTH];
} tail_columns;

/* The arguments for the last ROW_KERNEL_WIDTH columns of s, from `at`; a shorter row is copied. */
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

/* The last columns of rows, fewer than the kernel takes. What else it computes is not kept: y may
 * be one of the x. */
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
