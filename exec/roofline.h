/* roofline.h - estimates the time of a group of nodes: that of its arithmetic or of its memory
 * traffic, whichever is longer (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009). */
#ifndef ADJ_ROOFLINE_H
#define ADJ_ROOFLINE_H

#include "graph/op.h"

typedef struct {                /* throughput of all cores together */
    double f32, f64, bf16, f16; /* multiplications and additions per second in that type */
    double memory;              /* bytes per second */
} roofline;

/* Returns the nominal roofline of two cores of an ordinary processor with this instruction set. It
 * depends neither on measurements nor on the number of threads, because it selects kernels and so
 * determines the bits of results. Its ratios are right to about a factor of two. */
roofline roofline_nominal(void);

/* Returns the bytes of n values together. */
double bytes_of_values(int n, const adj_node *const value[]);
/* Returns the nominal multiplications and additions of a node. */
double flop_of(const adj_node *n);
/* Returns the seconds of a node for a kernel at the roofline. */
double roofline_node(const roofline *r, const adj_node *n);
/* Returns the seconds of a fused group: only its operands and results pass through memory. */
double roofline_group(const roofline *r, const adj_group *g);
/* The two terms of roofline_group: seconds of arithmetic, and of memory traffic. */
double roofline_arithmetic(const roofline *r, const adj_group *g);
double roofline_memory(const roofline *r, const adj_group *g);
/* Returns the seconds of a good kernel, assumed to reach half of the roofline. */
double nominal_seconds(const roofline *r, const adj_group *g);
/* Returns the seconds to read and write a value once. */
double roofline_copy(const roofline *r, adj_type type);

#endif
