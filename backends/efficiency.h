/* efficiency.h - how long an implementation takes, by a table of the share of the processor's peak
 * that its kind reaches. Each backend has one table; bench/efficiency.py measures it. */
#ifndef BACKENDS_EFFICIENCY_H
#define BACKENDS_EFFICIENCY_H

#include "adjoint_ext.h"

/* Directions: bits. */
enum { FORWARD = 1, INPUT = 2, FILTER = 4, ALL_DIRECTIONS = 7 };
/* Kinds: bits. Kernels of 1x1, up to 3x3, and larger or dilated ones; with groups, small and large;
 * products of matrices, which are FORWARD. */
enum { POINT = 1, SMALL = 2, LARGE = 4, GROUPED_SMALL = 8, GROUPED_LARGE = 16, MATMUL = 32 };
enum { WINDOW = SMALL | LARGE, DENSE = POINT | WINDOW, GROUPED = GROUPED_SMALL | GROUPED_LARGE };

/* Below 16, below 64 and from 64 on: channels of the side with fewer, of both sides of a grouped
 * convolution its outputs, of a product of matrices the rows. */
enum { EFFICIENCY_CLASSES = 3 };

typedef struct {
    const char *family; /* how the implementation's name begins; NULL ends a table */
    const char *isa;    /* contained in what follows the name's colon */
    int directions, kinds;
    /* Share of the f32 peak of the implementation's vectors, by class of channels: above 1 where
     * the processor has faster units than two multiply-adds of vectors, or the algorithm needs
     * fewer products. */
    double share[EFFICIENCY_CLASSES];
} efficiency;

/* The tables, in shares.c of each backend. */
extern const efficiency direct_shares[], onednn_shares[];

/* Returns the estimated seconds in which an implementation, by its name ("jit:avx512_core"),
 * computes the group: arithmetic at its share of the peak by the first row of the table for it, and
 * bytes in and out. p->seconds if the table has no row for it. */
double efficiency_seconds(const efficiency *table, const adj_group *g, const adj_prep *p,
                          const char *impl);
/* Returns the seconds of a reorder of that many bytes: read once and written once, and a call. */
double efficiency_reorder(const adj_prep *p, double bytes);

#endif
