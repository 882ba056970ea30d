/* html.c - report.html: the order of its parts, and its curves. See report.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/page/chart.h"
#include "graph/printable.h"
#include "report.h"

const char *report_class(const report *r, int64_t class, char text[PAGE_NUMBER])
{
    if (r->class_name != NULL && r->class_name[class] != NULL)
        return r->class_name[class];
    snprintf(text, PAGE_NUMBER, "%lld", (long long)class);
    return text;
}

/* ---- curves ---- */

/* Columns of the epochs and steps, for curves. */
typedef struct {
    double *epoch, *loss, *accuracy, *held_out_loss, *held_out_accuracy; /* by epoch */
    double *at, *step_loss, *lr;                                         /* by step */
} columns;

static double *column(int n) { return malloc(((size_t)n + 1) * sizeof(double)); }

static void free_columns(const columns *c)
{
    double *all[] = {c->epoch, c->loss,      c->accuracy, c->held_out_loss, c->held_out_accuracy,
                     c->at,    c->step_loss, c->lr};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* 0: out of memory. */
static int fill_columns(const report *r, columns *c)
{
    *c = (columns){column(r->n_epoch), column(r->n_epoch), column(r->n_epoch), column(r->n_epoch),
                   column(r->n_epoch), column(r->n_step),  column(r->n_step),  column(r->n_step)};
    if (c->epoch == NULL || c->loss == NULL || c->accuracy == NULL || c->held_out_loss == NULL ||
        c->held_out_accuracy == NULL || c->at == NULL || c->step_loss == NULL || c->lr == NULL)
        return 0;
    for (int i = 0; i < r->n_epoch; i++) {
        c->epoch[i] = (double)r->epoch[i].epoch;
        c->loss[i] = r->epoch[i].loss;
        c->accuracy[i] = r->epoch[i].accuracy;
        c->held_out_loss[i] = r->epoch[i].held_out_loss;
        c->held_out_accuracy[i] = r->epoch[i].held_out_accuracy;
    }
    for (int i = 0; i < r->n_step; i++) {
        c->at[i] = r->step[i].at;
        c->step_loss[i] = r->step[i].loss;
        c->lr[i] = r->step[i].lr;
    }
    return 1;
}

/* Whether the largest positive value is so much larger than the smallest that only a logarithmic
 * axis shows both. */
static int is_wide(int n, const double *v, int m, const double *w)
{
    double low = INFINITY, high = 0;
    for (int i = 0; i < n + m; i++) {
        double x = i < n ? v[i] : w[i - n];
        if (isfinite(x) && x > 0) {
            low = fmin(low, x);
            high = fmax(high, x);
        }
    }
    return high > 20 * low;
}

static void draw_training(FILE *f, const report *r, const columns *c)
{
    int whole = r->n_epoch > 1, by_step = r->n_step > 1, n = by_step ? r->n_step : r->n_epoch;
    const double *x = by_step ? c->at : c->epoch, *y = by_step ? c->step_loss : c->loss;
    const chart loss = {
        .title = "Loss",
        .x_name = "epoch",
        .unit = "",
        .whole_x = whole,
        .log_y = is_wide(n, y, r->n_epoch, c->held_out_loss),
        .n_curve = 2,
        .curve = {{"training", "one", n, x, y},
                  {r->held_out_name, "two", r->n_epoch, c->epoch, c->held_out_loss}}};
    const chart accuracy = {
        .title = "Accuracy",
        .x_name = "epoch",
        .unit = " %",
        .whole_x = 1,
        .y_max = 100,
        .n_curve = 2,
        .curve = {{"training", "one", r->n_epoch, c->epoch, c->accuracy},
                  {r->held_out_name, "two", r->n_epoch, c->epoch, c->held_out_accuracy}}};
    const chart rate = {.title = "Learning rate",
                        .x_name = "epoch",
                        .unit = "",
                        .whole_x = whole,
                        .n_curve = 1,
                        .curve = {{"of the steps", "good", r->n_step, c->at, c->lr}}};
    chart_draw(f, &loss);
    chart_draw(f, &accuracy);
    chart_draw(f, &rate);
}

/* Loss over learning rate. */
static void draw_range(FILE *f, const report *r)
{
    double *lr = column(r->n_range), *loss = column(r->n_range);
    for (int i = 0; i < r->n_range && lr != NULL && loss != NULL; i++) {
        lr[i] = r->range[i].lr;
        loss[i] = r->range[i].loss;
    }
    const chart c = {.title = "Range test: loss over learning rate",
                     .x_name = "learning rate",
                     .unit = "",
                     .log_x = 1,
                     .n_curve = 1,
                     .curve = {{"loss", "one", r->n_range, lr, loss}}};
    if (lr != NULL && loss != NULL)
        chart_draw(f, &c);
    free(lr);
    free(loss);
}

int report_curves(FILE *f, const report *r)
{
    columns c;
    int filled = fill_columns(r, &c);
    if (filled && (r->n_epoch > 0 || r->n_step > 0 || r->n_range > 0)) {
        page_section(f, "curves", "Training");
        fputs("<div class=\"columns\">\n", f);
        draw_training(f, r, &c);
        if (r->n_range > 0)
            draw_range(f, r);
        fputs("</div>\n", f);
    }
    free_columns(&c);
    return !filled;
}

/* ---- the page ---- */

int report_write(FILE *f, const void *source)
{
    const report *r = source;
    page_begin(f, "adjoint train", r->title, r->summary);
    page_tiles(f, r->n_tile, r->tile);
    int failed = report_curves(f, r);
    failed |= report_classes(f, r);
    report_mistakes(f, r);
    failed |= report_first_layer(f, r->filters);
    report_model(f, r->plan);
    page_section(f, "run", "This run");
    if (r->command != NULL)
        page_code(f, r->command);
    page_facts(f, r->n_fact, r->fact);
    page_end(f);
    return failed || ferror(f);
}
