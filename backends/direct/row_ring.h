/* row_ring.h - a thread's ring of prepared rows, each in a slot; the scratch holds the rows,
 * followed by the row number of each slot. */
#ifndef DIRECT_ROW_RING_H
#define DIRECT_ROW_RING_H

#include "arith.h"
#include "element.h"

typedef struct {
    real *rows;
    ptrdiff_t *cached_row;  /* by slot; -1 if empty */
    ptrdiff_t slots, pitch; /* pitch: elements from a slot to the next */
} row_ring;

/* Returns the ring at an offset that reserve_ring returned. */
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

/* Assigns a slot to the row; *is_cached: it had the row already, else the caller prepares it. */
static inline real *row_ring_slot(const row_ring *r, ptrdiff_t slot, ptrdiff_t row, int *is_cached)
{
    *is_cached = r->cached_row[slot] == row;
    r->cached_row[slot] = row;
    return r->rows + slot * r->pitch;
}

#endif
