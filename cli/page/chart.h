/* chart.h - curves over two axes, as inline SVG. */
#ifndef CLI_PAGE_CHART_H
#define CLI_PAGE_CHART_H

#include <stdio.h>

typedef struct {
    const char *name, *colour; /* of the legend; a class: "one", "two", "good" */
    int n;
    const double *x, *y; /* x rises; a y that is not finite is left out */
} chart_curve;

enum { CHART_CURVES = 3, CHART_POINTS = 400 }; /* a curve of more points is drawn by their means */

typedef struct {
    const char *title, *x_name, *unit; /* unit: behind the numbers of the y axis, "" or " %" */
    int log_x, log_y, whole_x;         /* whole_x: ticks at whole numbers only */
    double y_max;                      /* the axis ends there at the latest; 0: anywhere */
    int n_curve;
    chart_curve curve[CHART_CURVES];
} chart;

/* Nothing where there is nothing to draw. */
void chart_draw(FILE *f, const chart *c);

/* An axis: numbers low to high, at places 0 to 1, with ticks at round numbers. */
enum { AXIS_TICKS = 12 };
typedef struct {
    int log, n_tick, decimals;
    double low, high, tick[AXIS_TICKS];
} axis;
/* Ends of the axis are ticks; about max_tick of them, min_step apart or more. low and high are
 * finite, and positive if log. */
axis axis_over(double low, double high, int log, double min_step, int max_tick);
double axis_place(const axis *a, double v);

#endif
