/* page.h - pieces of report.html: its head, pictures and curves. */
#ifndef CLI_PAGE_PAGE_H
#define CLI_PAGE_PAGE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the head of a page with that title, "MODEL on DATA", up to its first heading. */
void page_begin(FILE *f, const char *model, const char *data);

/* ---- pictures ---- */

typedef struct {
    int64_t w, h, c;       /* c: 1 gray, 3 RGB */
    const uint8_t *pixels; /* [h, w, c] */
} picture;

/* Returns the bytes of a PNG file, to be freed by free(); NULL when out of memory. */
uint8_t *png_encode(const picture *p, size_t *bytes);
/* "data:image/png;base64,..." 0 on success. */
int png_put_uri(FILE *f, const picture *p);
/* RFC 4648, section 4. */
void put_base64(FILE *f, size_t n, const uint8_t bytes[]);

/* ---- curves ---- */

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
