/* roofline.h - estimates the time of a group of nodes: that of its arithmetic or of its memory
 * traffic, whichever is longer (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009). */
#ifndef ADJ_ROOFLINE_H
#define ADJ_ROOFLINE_H

#include "graph/op.h"

typedef struct {                /* of all cores together */
    double f32, f64, bf16, f16; /* multiplications and additions a second, in that type */
    double memory;              /* bytes a second */
} roofline;

/* Returns the roofline of two cores of an ordinary processor of this instruction set. Nothing is
 * measured, and the number of threads does not count, as choices by it decide results' bits. The
 * ratios are right to about a factor of two. */
roofline roofline_nominal(void);

/* Returns the bytes of n values together. */
double bytes_of_values(int n, const adj_node *const value[]);
/* A node's nominal multiplications and additions. */
double flop_of(const adj_node *n);
/* Seconds, of a kernel that reaches all that the machine can. */
double roofline_node(const roofline *r, const adj_node *n);
/* Seconds of nodes that are computed together: only what enters and leaves passes memory. */
double roofline_group(const roofline *r, const adj_group *g);
/* Its two sides: seconds of the group's arithmetic, and of what enters and leaves. */
double roofline_arithmetic(const roofline *r, const adj_group *g);
double roofline_memory(const roofline *r, const adj_group *g);
/* Seconds of a good kernel, which is taken to reach half of that. */
double nominal_seconds(const roofline *r, const adj_group *g);
/* A value is read and written once. */
double roofline_copy(const roofline *r, adj_type type);

#endif
