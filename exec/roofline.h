/* roofline.h - estimates the time of a group of nodes: that of its arithmetic or of its memory
 * traffic, whichever is longer (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009).
 *
 * The machine is nominal: two cores of an ordinary processor with this instruction set. It depends
 * neither on measurements nor on the number of threads, because it selects kernels and so
 * determines the bits of results. Its ratios are right to about a factor of two. */
#ifndef ADJ_ROOFLINE_H
#define ADJ_ROOFLINE_H

#include "graph/op.h"

typedef struct {       /* of a group: seconds, as in adj_prep */
    double arithmetic; /* of its multiplications and additions */
    double memory;     /* of its operands and results: what it fuses does not pass through memory */
    double byte;       /* of a byte that passes through memory */
    double seconds;    /* of a good kernel, assumed to reach half of the roofline */
} nominal_time;

nominal_time nominal_of_group(const adj_group *g);
/* Returns the nominal multiplications and additions of a node. */
double flop_of(const adj_node *n);
/* Returns the seconds of a good kernel that reads and writes a value once. */
double nominal_copy(adj_type type);

#endif
