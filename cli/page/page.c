/* page.c - see page.h. */
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "page.h"

/* ---- the beginning ---- */

/* The style sheet, with colors as variables for light and dark and widths in rem and per cent; in
 * several strings, since a longer literal is not portable C. */
static const char *const page_style[] = {
    ":root{color-scheme:light dark;--bg:#f7f7f5;--card:#fff;--ink:#1c1d1f;--soft:#5c6068;"
    "--line:#dfe0e3;--one:#2460c4;--two:#c24e0a;--bad:#b3261e;--cell:36,96,196}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#131519;--card:#1a1d22;--ink:#e7e8eb;"
    "--soft:#9ea4ae;--line:#30343c;--one:#78aeff;--two:#ff9d5c;--bad:#ff8b80;"
    "--cell:120,174,255}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\n"
    "main{max-width:84rem;margin:0 auto;padding:2rem clamp(1rem,4vw,3rem) 4rem}\n"
    "h1,p,pre,dd,td{overflow-wrap:anywhere}\n"
    "h1{font-size:1.8rem;line-height:1.2;margin:0 0 .4rem}\n"
    "h2{font-size:1.25rem;margin:2.5rem 0 .75rem}\n"
    "p{margin:.25rem 0 .75rem;max-width:46rem}\n"
    ".note,.sub,dt,th{color:var(--soft);font-size:.85rem}\n"
    "pre{padding:.75rem 1rem;background:var(--card);border:1px solid var(--line);"
    "border-radius:.5rem;white-space:pre-wrap}\n"
    "dl{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);"
    "gap:.3rem 1.25rem;font-size:.92rem}\n"
    "dd{margin:0}\n",

    ".frame{overflow-x:auto;background:var(--card);border:1px solid var(--line);"
    "border-radius:.6rem;margin:.5rem 0 1rem;max-width:max-content}\n"
    "table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.3rem .5rem;text-align:right;font-weight:400}\n"
    "tr+tr{border-top:1px solid var(--line)}\n"
    ".l{text-align:left;max-width:18rem;overflow-wrap:anywhere}\n"
    ".bad{color:var(--bad)}\n"
    ".columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,21rem),1fr));"
    "gap:1rem}\n"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:.6rem;"
    "padding:.9rem 1rem .6rem;min-width:0}\n"
    "figcaption{font-size:.9rem;font-weight:600}\n"
    ".key{font-weight:400;font-size:.8rem;margin-left:1rem;border-bottom:2px solid}\n"
    ".one{stroke:var(--one);border-color:var(--one)}.two{stroke:var(--two);border-color:var(--two)}"
    "\n"
    ".chart{display:block;width:100%;height:auto}\n"
    ".chart text{fill:var(--soft);font-size:12px}\n"
    ".grid{stroke:var(--line)}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    ".dot{stroke:none}.dot.one{fill:var(--one)}.dot.two{fill:var(--two)}\n"
    ".pictures{display:flex;flex-wrap:wrap;gap:.75rem;padding:0;list-style:none}\n"
    ".pictures li{width:8.2rem;background:var(--card);border:1px solid var(--line);"
    "border-radius:.6rem;padding:.5rem;font-size:.8rem;overflow-wrap:anywhere}\n"
    ".pictures img{display:block;width:100%;height:7rem;object-fit:contain;"
    "image-rendering:pixelated;margin-bottom:.4rem}\n"
    "@media print{body{background:#fff}figure,li,tr{break-inside:avoid}}\n",
};

void page_begin(FILE *f, const char *model, const char *data)
{
    put_escaped(f, FOR_XML,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>%s on %s</title>\n<style>\n",
                model, data);
    for (size_t i = 0; i < sizeof page_style / sizeof page_style[0]; i++)
        fputs(page_style[i], f);
    put_escaped(f, FOR_XML, "</style>\n</head>\n<body>\n<main>\n<h1>%s on %s</h1>\n", model, data);
}

/* ---- pictures ---- */

uint8_t *png_encode(const picture *p, size_t *bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)p->w,
                       .height = (png_uint_32)p->h,
                       .format = p->c == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    png_alloc_size_t n = 0;
    uint8_t *file = NULL;
    if (png_image_write_to_memory(&image, NULL, &n, 0, p->pixels, 0, NULL))
        file = malloc(n);
    if (file != NULL && !png_image_write_to_memory(&image, file, &n, 0, p->pixels, 0, NULL)) {
        free(file);
        return NULL;
    }
    *bytes = n;
    return file;
}

void put_base64(FILE *f, size_t n, const uint8_t bytes[])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                     (left > 2 ? bytes[i + 2] : 0);
        fputc(letters[v >> 18], f);
        fputc(letters[v >> 12 & 63], f);
        fputc(left > 1 ? letters[v >> 6 & 63] : '=', f);
        fputc(left > 2 ? letters[v & 63] : '=', f);
    }
}

int png_put_uri(FILE *f, const picture *p)
{
    size_t n = 0;
    uint8_t *file = png_encode(p, &n);
    if (file == NULL)
        return -1;
    fputs("data:image/png;base64,", f);
    put_base64(f, n, file);
    free(file);
    return 0;
}

/* ---- curves ---- */

enum { W = 440, H = 250, LEFT = 58, RIGHT = 12, TOP = 10, BOTTOM = 42, DOTS = 30, TICKS = 6 };

typedef struct {
    double low, high, step; /* step: between ticks, at multiples of it */
} axis;

typedef struct {
    int n;
    double x[CHART_POINTS], y[CHART_POINTS];
} points;

typedef struct {
    FILE *f;
    const chart *c;
    axis x, y;
    points curve[CHART_CURVES];
} drawing;

/* True if the event is a point of the curve. */
static int is_point(const json_t *event, const chart_curve *v, double *x, double *y)
{
    const char *name = json_string_value(json_object_get(event, "event"));
    const json_t *at = json_object_get(event, v->x), *value = json_object_get(event, v->y);
    *x = json_number_value(at);
    *y = json_number_value(value);
    return name != NULL && strcmp(name, v->event) == 0 && json_is_number(at) &&
           json_is_number(value);
}

/* Several points become their mean if there are too many. */
static void collect(points *p, const chart_curve *v, const json_t *events)
{
    double x, y;
    int all = 0, seen = 0;
    for (size_t i = 0; i < json_array_size(events); i++)
        all += is_point(json_array_get(events, i), v, &x, &y);
    const int together = all > 0 ? (all + CHART_POINTS - 1) / CHART_POINTS : 1;
    for (size_t i = 0; i < json_array_size(events); i++)
        if (is_point(json_array_get(events, i), v, &x, &y)) {
            const int k = seen / together, n = seen++ % together; /* the mean of n before it */
            p->x[k] += (x - p->x[k]) / (n + 1);
            p->y[k] += (y - p->y[k]) / (n + 1);
            p->n = k + 1;
        }
}

/* Returns 1, 2 or 5 times a power of ten, v or more. */
static double round_step(double v)
{
    const double ten = pow(10, floor(log10(v))), lead = v / ten;
    return ten * (lead <= 1.0001 ? 1 : lead <= 2.0001 ? 2 : lead <= 5.0001 ? 5 : 10);
}

static void widen(axis *a, double v)
{
    a->low = fmin(a->low, v);
    a->high = fmax(a->high, v);
}

/* Chooses the ticks; an axis of one value is widened on both sides. */
static void set_ticks(axis *a)
{
    if (a->high - a->low < 1e-9 * fmax(fabs(a->high), fabs(a->low)) || a->high == a->low) {
        const double half = a->high != 0 ? fabs(a->high) / 2 : 0.5;
        a->low -= half;
        a->high += half;
    }
    a->step = round_step((a->high - a->low) / (TICKS - 1));
}

/* Sets both axes; returns 0 if there is no point. */
static int set_axes(drawing *d)
{
    d->x = d->y = (axis){INFINITY, -INFINITY, 0};
    for (int k = 0; k < d->c->n_curve; k++)
        for (int i = 0; i < d->curve[k].n; i++) {
            widen(&d->x, d->curve[k].x[i]);
            widen(&d->y, d->curve[k].y[i]);
        }
    if (d->x.low > d->x.high)
        return 0;
    set_ticks(&d->x);
    set_ticks(&d->y);
    d->y.low = floor(d->y.low / d->y.step + 1e-9) * d->y.step;
    d->y.high = ceil(d->y.high / d->y.step - 1e-9) * d->y.step;
    return 1;
}

static double left_of(const drawing *d, double x)
{
    return LEFT + (W - LEFT - RIGHT) * (x - d->x.low) / (d->x.high - d->x.low);
}

static double top_of(const drawing *d, double y)
{
    return H - BOTTOM - (H - TOP - BOTTOM) * (y - d->y.low) / (d->y.high - d->y.low);
}

static long first_tick(const axis *a) { return (long)ceil(a->low / a->step - 1e-9); }

static long last_tick(const axis *a) { return (long)floor(a->high / a->step + 1e-9); }

static void draw_axes(const drawing *d)
{
    for (long i = first_tick(&d->y); i <= last_tick(&d->y); i++) {
        const double v = (double)i * d->y.step, y = top_of(d, v);
        fprintf(d->f,
                "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y, W - RIGHT, y, LEFT - 7, y + 4, v);
    }
    for (long i = first_tick(&d->x); i <= last_tick(&d->x); i++) {
        const double v = (double)i * d->x.step;
        fprintf(d->f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", left_of(d, v),
                H - BOTTOM + 18, v);
    }
    put_escaped(d->f, FOR_XML, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", W - RIGHT,
                H - 5, d->c->x_name);
}

static void draw_curve(const drawing *d, const chart_curve *v, const points *p)
{
    put_escaped(d->f, FOR_XML, "<polyline class=\"line %s\" points=\"", v->color);
    for (int i = 0; i < p->n; i++)
        fprintf(d->f, "%.1f,%.1f ", left_of(d, p->x[i]), top_of(d, p->y[i]));
    fputs("\"/>\n", d->f);
    for (int i = 0; i < p->n && p->n <= DOTS; i++)
        put_escaped(d->f, FOR_XML,
                    "<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"><title>%s, %s "
                    "%.6g: %.5g</title></circle>\n",
                    v->color, left_of(d, p->x[i]), top_of(d, p->y[i]), v->name, d->c->x_name,
                    p->x[i], p->y[i]);
}

void chart_draw(FILE *f, const chart *c, const json_t *events)
{
    drawing d = {.f = f, .c = c};
    for (int k = 0; k < c->n_curve; k++)
        collect(&d.curve[k], &c->curve[k], events);
    if (!set_axes(&d))
        return;
    put_escaped(f, FOR_XML, "<figure><figcaption>%s", c->title);
    for (int k = 0; k < c->n_curve; k++)
        put_escaped(f, FOR_XML, "<span class=\"key %s\">%s</span>", c->curve[k].color,
                    c->curve[k].name);
    put_escaped(f, FOR_XML,
                "</figcaption>\n<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\">"
                "<title>%s</title>\n",
                W, H, c->title);
    draw_axes(&d);
    for (int k = 0; k < c->n_curve; k++)
        draw_curve(&d, &c->curve[k], &d.curve[k]);
    fputs("</svg></figure>\n", f);
}
