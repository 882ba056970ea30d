/* draw.h - pictures of plans, and SVG by Graphviz. */
#ifndef CLI_GRAPH_DRAW_H
#define CLI_GRAPH_DRAW_H

#include <stdio.h>

#include "adjoint.h"

/* Prints the steps of a plan as DOT: a box for each step with the nodes that it computes, its
 * backend and kernel. Reorders, copies and what depends on parameters alone are left out. Returns 0
 * on success. */
int draw_plan(FILE *f, const adj_exec *e);
/* True if the program dot can be started. */
int can_draw_svg(void);
/* Lets the program dot convert a file in DOT, from its beginning, to SVG. Returns 0 on success. */
int draw_svg(FILE *dot, FILE *svg);

#endif
