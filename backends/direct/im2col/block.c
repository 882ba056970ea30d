/* block.c - the loops of block.h, compiled for every size of the block.
 * With -DSMALL_CODE there is one loop for any size: sanitizers need minutes for all. */
#include "block.h"

#if defined(ISA_avx512)
enum { SUMS = 24 }; /* of 32 registers */
#else
enum { SUMS = 12 }; /* of 16 */
#endif
enum { MAX_ROWS = 12, MAX_VECTORS = 3, GROUP = 3 };

/* How many rows a block of so many vectors may have. */
ALWAYS ptrdiff_t block_rows(ptrdiff_t vectors)
{
    ptrdiff_t rows = SUMS / vectors;
    return rows < MAX_ROWS ? rows : MAX_ROWS;
}

/* Rows of a are reached from every third one's address: there are too few registers for all. */
ALWAYS void multiply_block(const int rows, const int vectors, const product *p)
{
    const ptrdiff_t pitch = p->a_pitch, depth = p->depth, step = (ptrdiff_t)vectors * VECTOR;
    const real *a[MAX_ROWS / GROUP], *b = p->b;
    vector sum[MAX_ROWS * MAX_VECTORS];
#pragma GCC unroll 8
    for (ptrdiff_t i = 0; i < MAX_ROWS / GROUP; i++)
        a[i] = p->a + i * GROUP * pitch;
#pragma GCC unroll 40
    for (int i = 0; i < rows * vectors; i++)
        sum[i] = (vector){0};
    for (ptrdiff_t k = 0; k < depth; k++, b += step) {
        vector y[MAX_VECTORS];
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++)
            y[j] = *(const vector *)(b + j * VECTOR);
#pragma GCC unroll 16
        for (ptrdiff_t i = 0; i < rows; i++) {
            real x = a[i / GROUP][k + i % GROUP * pitch];
#pragma GCC unroll 8
            for (ptrdiff_t j = 0; j < vectors; j++)
                sum[i * vectors + j] += x * y[j];
        }
    }
    real *c = p->c;
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows; i++, c += p->c_pitch)
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++)
            *(vector *)(c + j * VECTOR) = sum[i * vectors + j];
}

ALWAYS void correlate_block(const int rows, const int vectors, const product *p)
{
    const ptrdiff_t a_pitch = p->a_pitch, b_pitch = p->b_pitch;
    const real *a = p->a, *b = p->b;
    vector sum[MAX_ROWS * MAX_VECTORS];
#pragma GCC unroll 40
    for (int i = 0; i < rows * vectors; i++)
        sum[i] = (vector){0};
    for (ptrdiff_t left = p->depth; left > 0; left--, a += a_pitch, b += b_pitch) {
        vector y[MAX_VECTORS];
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++)
            y[j] = *(const vector *)(b + j * VECTOR);
#pragma GCC unroll 16
        for (ptrdiff_t i = 0; i < rows; i++)
#pragma GCC unroll 8
            for (ptrdiff_t j = 0; j < vectors; j++)
                sum[i * vectors + j] += a[i] * y[j];
    }
    real *c = p->c;
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows; i++, c += p->c_pitch)
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++)
            *(vector *)(c + j * VECTOR) += sum[i * vectors + j];
}

/* Sizes that do not fit into registers are not compiled. */
ALWAYS void fixed_block(const int correlate, const int rows, const int vectors, const product *p)
{
    if (rows > block_rows(vectors))
        return;
    if (correlate)
        correlate_block(rows, vectors, p);
    else
        multiply_block(rows, vectors, p);
}

#ifdef SMALL_CODE

ALWAYS void any_block(const int correlate, const int vectors, const product *p)
{
    fixed_block(correlate, (int)p->rows, vectors, p);
}

#else

ALWAYS void any_block(const int correlate, const int vectors, const product *p)
{
    switch (p->rows) {
    case 1: fixed_block(correlate, 1, vectors, p); break;
    case 2: fixed_block(correlate, 2, vectors, p); break;
    case 3: fixed_block(correlate, 3, vectors, p); break;
    case 4: fixed_block(correlate, 4, vectors, p); break;
    case 5: fixed_block(correlate, 5, vectors, p); break;
    case 6: fixed_block(correlate, 6, vectors, p); break;
    case 7: fixed_block(correlate, 7, vectors, p); break;
    case 8: fixed_block(correlate, 8, vectors, p); break;
    case 9: fixed_block(correlate, 9, vectors, p); break;
    case 10: fixed_block(correlate, 10, vectors, p); break;
    case 11: fixed_block(correlate, 11, vectors, p); break;
    default: fixed_block(correlate, 12, vectors, p); break;
    }
}

#endif

static void multiply_1(const product *p) { any_block(0, 1, p); }
static void multiply_2(const product *p) { any_block(0, 2, p); }
static void multiply_3(const product *p) { any_block(0, 3, p); }
static void correlate_1(const product *p) { any_block(1, 1, p); }
static void correlate_2(const product *p) { any_block(1, 2, p); }
static void correlate_3(const product *p) { any_block(1, 3, p); }

static void prefetch_rows(const product *p, ptrdiff_t first, ptrdiff_t rows)
{
    const char *at = p->prefetch + first * p->prefetch_bytes;
    for (ptrdiff_t i = 0; i < rows * p->prefetch_bytes; i += 64)
        __builtin_prefetch(at + i);
}

/* Cuts p into blocks of about the same number of rows. a_step, b_step: from a row, or a vector, to
 * the next. */
ALWAYS void each_block(void (*const loop[])(const product *), const product *p, ptrdiff_t a_step,
                       ptrdiff_t b_step)
{
    ptrdiff_t width;
    for (ptrdiff_t j = 0; j < p->vectors; j += width) {
        width = panel_width(p->vectors - j);
        ptrdiff_t max = block_rows(width), blocks = (p->rows + max - 1) / max;
        product block = *p;
        block.b += j * b_step;
        for (ptrdiff_t i = 0; i < blocks; i++) {
            ptrdiff_t first = p->rows * i / blocks;
            block.rows = p->rows * (i + 1) / blocks - first;
            block.a = p->a + first * a_step;
            block.c = p->c + first * p->c_pitch + j * VECTOR;
            if (j == 0 && p->prefetch != NULL)
                prefetch_rows(p, first, block.rows);
            loop[width - 1](&block);
        }
    }
}

void REAL(im2col_multiply)(const product *p)
{
    static void (*const loop[])(const product *) = {multiply_1, multiply_2, multiply_3};
    each_block(loop, p, p->a_pitch, p->depth * VECTOR);
}

void REAL(im2col_correlate)(const product *p)
{
    static void (*const loop[])(const product *) = {correlate_1, correlate_2, correlate_3};
    each_block(loop, p, 1, VECTOR);
}
