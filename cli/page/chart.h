/* chart.h - curves over two linear axes, as inline SVG. */
#ifndef CLI_PAGE_CHART_H
#define CLI_PAGE_CHART_H

#include <jansson.h>
#include <stdio.h>

/* The points of those events (JSON objects) whose member "event" is this one and whose members x
 * and y are numbers. */
typedef struct {
    const char *name, *color; /* name in the legend; CSS class: "one" or "two" */
    const char *event, *x, *y;
} chart_curve;

enum { CHART_CURVES = 2, CHART_POINTS = 400 }; /* most points of a curve; more are averaged */

typedef struct {
    const char *title, *x_name;
    int n_curve;
    chart_curve curve[CHART_CURVES];
} chart;

/* Draws nothing if there is no point. */
void chart_draw(FILE *f, const chart *c, const json_t *events);

#endif
