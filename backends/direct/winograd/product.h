/* product.h - the products of matrices of winograd.h. */
#ifndef DIRECT_WINOGRAD_PRODUCT_H
#define DIRECT_WINOGRAD_PRODUCT_H

#include <stddef.h>

#include "backends/direct/isa.h"

/* m[row][column] = (what is there, if add, +) sum over i < n of v(row, i) * u[i][column] */
typedef struct {
    ptrdiff_t rows, columns, n; /* columns: a multiple of 16 */
    const float *v;             /* v(row, i) is at row*v_row + i*v_n */
    ptrdiff_t v_row, v_n;
    const float *u;
    ptrdiff_t u_n;
    float *m;
    ptrdiff_t m_row;
    int add;
} winograd_product;

void DIRECT(winograd_multiply)(const winograd_product *p);

#endif
