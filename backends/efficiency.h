/* efficiency.h - estimates an implementation's time from a table: the fraction of the
 * processor's peak that its kind reaches. oneDNN and direct have a table each in efficiency.c,
 * which bench/efficiency.py measures. */
#ifndef BACKENDS_EFFICIENCY_H
#define BACKENDS_EFFICIENCY_H

#include "graph/op.h"

/* Directions: bits. */
enum { FORWARD = 1, INPUT = 2, FILTER = 4, ALL_DIRECTIONS = 7 };
/* Kinds: bits. Convolutions with 1x1 kernels, up to 3x3, and larger or dilated ones; grouped
 * ones, small and large; matrix products, which are FORWARD. PACKED: passes over a filter that
 * the kernel packs; the shares are fractions of the memory's bandwidth, the first where each run
 * packs it, the others where it is packed once. */
enum {
    POINT = 1,
    SMALL = 2,
    LARGE = 4,
    GROUPED_SMALL = 8,
    GROUPED_LARGE = 16,
    MATMUL = 32,
    PACKED = 64
};
enum { WINDOW = SMALL | LARGE, DENSE = POINT | WINDOW, GROUPED = GROUPED_SMALL | GROUPED_LARGE };

/* Classes: below 16, below 64, and 64 or more: channels of the narrower side; outputs of a
 * grouped convolution; rows of a matrix product. */
enum { EFFICIENCY_CLASSES = 3 };

typedef struct {
    const char *family; /* prefix of the implementation's name; NULL ends a table */
    const char *isa;    /* substring after the colon of the name */
    int directions, kinds;
    /* Fraction of the f32 peak of the implementation's vectors, by class. It exceeds 1 if the
     * processor has faster units than two vector multiply-adds, or if the algorithm needs fewer
     * products. */
    double share[EFFICIENCY_CLASSES];
} efficiency;

extern const efficiency direct_efficiencies[], onednn_efficiencies[];

/* Returns the direction of a convolution, dense or depthwise; 0 for any other op. */
int conv_direction(const adj_op *op);
/* Returns the estimated seconds in which an implementation, by its name ("jit:avx512_core"),
 * computes the group: arithmetic at the fraction of the peak in the first matching row, plus
 * bytes in and out. Returns p->seconds if no row matches. */
double efficiency_seconds(const efficiency *table, const adj_group *g, const adj_prep *p,
                          const char *impl);
/* Returns the estimated seconds of passes over that many bytes of a filter that the implementation
 * packs in each run or once. Without a row: one write and one read in each run. */
double efficiency_packed(const efficiency *table, const adj_prep *p, int is_once, double bytes);
/* Returns the estimated seconds of a reorder of that many bytes: one read, one write, and a
 * call. */
double efficiency_reorder(const adj_prep *p, double bytes);

#endif
