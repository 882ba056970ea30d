/* chart.c - see chart.h. */
#include <math.h>

#include "chart.h"
#include "graph/printable.h"

enum { W = 440, H = 250, LEFT = 58, RIGHT = 12, TOP = 10, BOTTOM = 42, DOTS = 30 };

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, v or more. */
static double round_step(double v)
{
    double ten = pow(10, floor(log10(v)));
    double lead = v / ten;
    return ten * (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10);
}

static axis linear_axis(double low, double high, double min_step, int max_tick)
{
    if (high - low < 1e-9 * fmax(fabs(high), fabs(low)) || high == low) {
        double half = high != 0 ? fabs(high) / 2 : 0.5;
        low -= half;
        high += half;
    }
    double step = fmax(min_step, round_step((high - low) / (max_tick - 1)));
    axis a = {.low = floor(low / step + 1e-9) * step, .high = ceil(high / step - 1e-9) * step};
    a.decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    for (int i = 0; i < AXIS_TICKS && a.low + i * step < a.high + step / 2; i++)
        a.tick[a.n_tick++] = a.low + i * step;
    return a;
}

/* Powers of ten. */
static axis log_axis(double low, double high, int max_tick)
{
    double first = floor(log10(low) + 1e-9), last = ceil(log10(high) - 1e-9);
    if (last <= first)
        last = first + 1;
    double step = ceil((last - first) / (max_tick - 1));
    last = first + step * ceil((last - first) / step);
    axis a = {.log = 1, .low = pow(10, first), .high = pow(10, last), .decimals = -1};
    for (int i = 0; i < AXIS_TICKS && first + i * step < last + step / 2; i++)
        a.tick[a.n_tick++] = pow(10, first + i * step);
    return a;
}

axis axis_over(double low, double high, int log, double min_step, int max_tick)
{
    return log ? log_axis(low, high, max_tick) : linear_axis(low, high, min_step, max_tick);
}

double axis_place(const axis *a, double v)
{
    return a->log ? log(v / a->low) / log(a->high / a->low) : (v - a->low) / (a->high - a->low);
}

static void put_tick(FILE *f, const axis *a, double v, const char *unit)
{
    if (a->decimals < 0)
        put_escaped(f, FOR_XML, "%g%s", v, unit);
    else
        put_escaped(f, FOR_XML, "%.*f%s", a->decimals, v, unit);
}

/* ---- the range of what is drawn ---- */

typedef struct {
    double low, high;
} range;

static int is_drawn(const chart *c, double x, double y)
{
    return isfinite(x) && isfinite(y) && (!c->log_x || x > 0) && (!c->log_y || y > 0);
}

static void widen(range *r, double v)
{
    r->low = fmin(r->low, v);
    r->high = fmax(r->high, v);
}

/* 0: there is nothing to draw. */
static int find_ranges(const chart *c, range *x, range *y)
{
    *x = *y = (range){INFINITY, -INFINITY};
    for (int k = 0; k < c->n_curve; k++)
        for (int i = 0; i < c->curve[k].n; i++)
            if (is_drawn(c, c->curve[k].x[i], c->curve[k].y[i])) {
                widen(x, c->curve[k].x[i]);
                widen(y, c->curve[k].y[i]);
            }
    return x->low <= x->high;
}

/* ---- drawing ---- */

typedef struct {
    FILE *f;
    const chart *c;
    axis x, y;
} drawing;

static double left_of(const drawing *d, double x)
{
    return LEFT + (W - LEFT - RIGHT) * axis_place(&d->x, x);
}

static double top_of(const drawing *d, double y)
{
    return H - BOTTOM - (H - TOP - BOTTOM) * axis_place(&d->y, y);
}

static void draw_axes(const drawing *d)
{
    for (int i = 0; i < d->y.n_tick; i++) {
        double y = top_of(d, d->y.tick[i]);
        fprintf(d->f,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                LEFT, y, W - RIGHT, y, LEFT - 7, y + 4);
        put_tick(d->f, &d->y, d->y.tick[i], d->c->unit);
        fputs("</text>\n", d->f);
    }
    for (int i = 0; i < d->x.n_tick; i++) {
        double x = left_of(d, d->x.tick[i]);
        if (x < LEFT - 0.5 || x > W - RIGHT + 0.5)
            continue;
        fprintf(d->f,
                "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                x, H - BOTTOM, x, H - BOTTOM + 5, x, H - BOTTOM + 18);
        put_tick(d->f, &d->x, d->x.tick[i], "");
        fputs("</text>\n", d->f);
    }
    put_escaped(d->f, FOR_XML, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", W - RIGHT,
                H - 5, d->c->x_name);
}

/* Of the points from i on: the mean of as many as are drawn as one; moves i behind them. 0: none of
 * them can be drawn. */
static int next_point(const drawing *d, const chart_curve *v, int *i, double *x, double *y)
{
    int together = (v->n + CHART_POINTS - 1) / CHART_POINTS, n = 0;
    *x = *y = 0;
    for (int end = *i + together; *i < end && *i < v->n; ++*i)
        if (is_drawn(d->c, v->x[*i], v->y[*i])) {
            *x += v->x[*i];
            *y += v->y[*i];
            n++;
        }
    *x /= n > 0 ? n : 1;
    *y /= n > 0 ? n : 1;
    return n > 0;
}

static void draw_curve(const drawing *d, const chart_curve *v)
{
    double x, y;
    put_escaped(d->f, FOR_XML, "<polyline class=\"line %s\" points=\"", v->colour);
    for (int i = 0, n = 0; i < v->n;)
        if (next_point(d, v, &i, &x, &y))
            fprintf(d->f, "%s%.1f,%.1f", n++ > 0 ? " " : "", left_of(d, x), top_of(d, y));
    fputs("\"/>\n", d->f);
    for (int i = 0; i < v->n && v->n <= DOTS;)
        if (next_point(d, v, &i, &x, &y))
            put_escaped(d->f, FOR_XML,
                        "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%s, %s "
                        "%.6g: %.5g%s</title></circle>\n",
                        v->colour, left_of(d, x), top_of(d, y), v->name, d->c->x_name, x, y,
                        d->c->unit);
}

void chart_draw(FILE *f, const chart *c)
{
    range x, y;
    if (!find_ranges(c, &x, &y))
        return;
    drawing d = {f, c, axis_over(x.low, x.high, c->log_x, c->whole_x, 7),
                 axis_over(y.low, y.high, c->log_y, 0, 6)};
    if (!c->log_x) { /* the curves reach to the frame's sides */
        d.x.low = x.low < x.high ? x.low : d.x.low;
        d.x.high = x.low < x.high ? x.high : d.x.high;
    }
    if (c->y_max > 0 && d.y.high > c->y_max)
        d.y.high = c->y_max;
    put_escaped(f, FOR_XML, "<figure><figcaption>%s", c->title);
    for (int k = 0; k < c->n_curve; k++)
        put_escaped(f, FOR_XML, "<span class=\"key %s\">%s</span>", c->curve[k].colour,
                    c->curve[k].name);
    put_escaped(f, FOR_XML,
                "</figcaption>\n<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\">"
                "<title>%s</title>\n",
                W, H, c->title);
    draw_axes(&d);
    for (int k = 0; k < c->n_curve; k++)
        draw_curve(&d, &c->curve[k]);
    fputs("</svg></figure>\n", f);
}
