/* row_ring.h - a thread's ring of rows that it has prepared, each in a slot; in the scratch, rows
 * and behind them what is in each slot. */
#ifndef DIRECT_ROW_RING_H
#define DIRECT_ROW_RING_H

#include "arith.h"
#include "element.h"

typedef struct {
    real *rows;
    ptrdiff_t *cached_row;  /* by slot; -1: none */
    ptrdiff_t slots, pitch; /* pitch: elements from a slot to the next */
} row_ring;

/* The ring at an offset that reserve_ring gave. */
static inline row_ring row_ring_at(char *at, ptrdiff_t slots, ptrdiff_t pitch)
{
    size_t rows = 0;
    reserve(&rows, slots * pitch, sizeof(real));
    return (row_ring){(real *)at, (ptrdiff_t *)(at + rows), slots, pitch};
}

static inline void row_ring_clear(const row_ring *r)
{
    memset(r->rows, 0, (size_t)(r->slots * r->pitch) * sizeof *r->rows);
}

static inline void row_ring_forget(const row_ring *r)
{
    for (ptrdiff_t i = 0; i < r->slots; i++)
        r->cached_row[i] = -1;
}

/* A slot, which is the row's from now on; is_cached: it was before, else the caller prepares it. */
static inline real *row_ring_slot(const row_ring *r, ptrdiff_t slot, ptrdiff_t row, int *is_cached)
{
    *is_cached = r->cached_row[slot] == row;
    r->cached_row[slot] = row;
    return r->rows + slot * r->pitch;
}

#endif
