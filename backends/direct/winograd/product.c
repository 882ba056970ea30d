/* product.c - products of small matrices: a block of rows by columns stays in registers.
 * Compiled once per instruction set. */
#include "product.h"
#include "transform.h"

/* Vectors of columns in a block, at most, and rows for so many vectors: sums, a row of u and an
 * element of v fill the registers. */
#if defined(ISA_avx512)
enum { WIDEST = 4 };
#define ROWS(vectors) ((vectors) == 4 ? 6 : (vectors) == 3 ? 8 : 12)
#elif defined(ISA_avx2)
enum { WIDEST = 2 };
#define ROWS(vectors) 6
#else
enum { WIDEST = 2 };
#define ROWS(vectors) 4
#endif
enum { MAX = 24 }; /* sums */

ALWAYS void multiply_block(const int rows, const int vectors, const winograd_product *p,
                           ptrdiff_t row, ptrdiff_t column)
{
    const ptrdiff_t v_row = p->v_row, v_n = p->v_n, u_n = p->u_n;
    const float *v = p->v + row * v_row, *u = p->u + column;
    vector sum[MAX];
#pragma GCC unroll 24
    for (int i = 0; i < rows * vectors; i++)
        sum[i] = (vector){0};
    for (ptrdiff_t left = p->n; left > 0; left--) {
        vector w[WIDEST];
#pragma GCC unroll 4
        for (ptrdiff_t k = 0; k < vectors; k++)
            w[k] = *(const vector *)(u + k * VECTOR);
#pragma GCC unroll 12
        for (ptrdiff_t i = 0; i < rows; i++) {
            float x = v[i * v_row];
#pragma GCC unroll 4
            for (ptrdiff_t k = 0; k < vectors; k++)
                sum[i * vectors + k] += x * w[k];
        }
        v += v_n;
        u += u_n;
    }
#pragma GCC unroll 12
    for (ptrdiff_t i = 0; i < rows; i++) {
        float *m = p->m + (row + i) * p->m_row + column;
#pragma GCC unroll 4
        for (ptrdiff_t k = 0; k < vectors; k++) {
            vector *dst = (vector *)(m + k * VECTOR);
            if (p->add)
                sum[i * vectors + k] += *dst;
            *dst = sum[i * vectors + k];
        }
    }
}

/* Rows in full blocks, the rest in blocks of 4, 2 and 1. */
ALWAYS void multiply_columns(const int vectors, const winograd_product *p, ptrdiff_t column)
{
    ptrdiff_t row = 0;
    for (; row + ROWS(vectors) <= p->rows; row += ROWS(vectors))
        multiply_block(ROWS(vectors), vectors, p, row, column);
    for (; row + 4 <= p->rows; row += 4)
        multiply_block(4, vectors, p, row, column);
    for (; row + 2 <= p->rows; row += 2)
        multiply_block(2, vectors, p, row, column);
    if (row < p->rows)
        multiply_block(1, vectors, p, row, column);
}

#if defined(ISA_avx512)
static void multiply_1(const winograd_product *p, ptrdiff_t at) { multiply_columns(1, p, at); }
static void multiply_3(const winograd_product *p, ptrdiff_t at) { multiply_columns(3, p, at); }
static void multiply_4(const winograd_product *p, ptrdiff_t at) { multiply_columns(4, p, at); }
#endif
static void multiply_2(const winograd_product *p, ptrdiff_t at) { multiply_columns(2, p, at); }

void DIRECT(winograd_multiply)(const winograd_product *p)
{
    for (ptrdiff_t at = 0; at < p->columns; at += (ptrdiff_t)WIDEST * VECTOR) {
#if defined(ISA_avx512)
        switch ((p->columns - at) / VECTOR) {
        case 1: multiply_1(p, at); break;
        case 2: multiply_2(p, at); break;
        case 3: multiply_3(p, at); break;
        default: multiply_4(p, at); break;
        }
#else
        multiply_2(p, at);
#endif
    }
}
