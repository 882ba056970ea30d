/* chart.h - curves over two linear axes, as inline SVG. */
#ifndef CLI_PAGE_CHART_H
#define CLI_PAGE_CHART_H

#include <stdio.h>

typedef struct {
    const char *name, *colour; /* of the legend; a class: "one" or "two" */
    int n;
    const double *x, *y; /* x rises; a y that is not finite is left out */
} chart_curve;

enum { CHART_CURVES = 2, CHART_POINTS = 400 }; /* a curve of more points is drawn by their means */

typedef struct {
    const char *title, *x_name;
    int n_curve;
    chart_curve curve[CHART_CURVES];
} chart;

/* Draws nothing if no point is finite. */
void chart_draw(FILE *f, const chart *c);

#endif
