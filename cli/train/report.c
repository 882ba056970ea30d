/* report.c - see report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "cli/page/chart.h"
#include "cli/page/style.h"
#include "report.h"

enum { CLASS_NUMBER = 24 };

static const char frame[] = "<div class=\"frame\" role=\"region\" tabindex=\"0\" aria-label=";

/* Returns a class's name, or its number in text. */
static const char *class_text(const report *r, int class, char text[CLASS_NUMBER])
{
    if (r->class_name != NULL && r->class_name[class] != NULL)
        return r->class_name[class];
    snprintf(text, CLASS_NUMBER, "%d", class);
    return text;
}

/* ---- curves ---- */

enum { EPOCH, LOSS, ACCURACY, HELD_OUT_LOSS, HELD_OUT_ACCURACY, EPOCH_COLUMNS };
enum { AT, STEP_LOSS, RATE, STEP_COLUMNS };

static void fill_columns(const history *h, double *epoch[], double *step[])
{
    for (int i = 0; i < h->n_epoch; i++) {
        const history_epoch_entry *e = &h->epoch[i];
        const double row[] = {(double)e->epoch, e->loss, e->accuracy, e->held_out_loss,
                              e->held_out_accuracy};
        for (int k = 0; k < EPOCH_COLUMNS; k++)
            epoch[k][i] = row[k];
    }
    for (int i = 0; i < h->n_step; i++) {
        step[AT][i] = h->step[i].at;
        step[STEP_LOSS][i] = h->step[i].loss;
        step[RATE][i] = h->step[i].lr;
    }
}

static void draw_curves(FILE *f, const report *r, double *const epoch[], double *const step[])
{
    const int n = r->history->n_epoch, steps = r->history->n_step;
    const char *held_out = r->held_out_name;
    const chart charts[] = {
        {"Loss",
         "epoch",
         2,
         {{"training", "one", steps, step[AT], step[STEP_LOSS]},
          {held_out, "two", n, epoch[EPOCH], epoch[HELD_OUT_LOSS]}}},
        {"Accuracy, %",
         "epoch",
         2,
         {{"training", "one", n, epoch[EPOCH], epoch[ACCURACY]},
          {held_out, "two", n, epoch[EPOCH], epoch[HELD_OUT_ACCURACY]}}},
        {"Learning rate", "epoch", 1, {{"of the steps", "one", steps, step[AT], step[RATE]}}}};

    fputs("<h2>Training</h2>\n<div class=\"columns\">\n", f);
    for (size_t i = 0; i < sizeof charts / sizeof charts[0]; i++)
        chart_draw(f, &charts[i]);
    fputs("</div>\n", f);
}

/* 0 on success. */
static int put_curves(FILE *f, const report *r)
{
    const history *h = r->history;
    if (h == NULL || h->n_epoch + h->n_step == 0)
        return 0;
    const size_t n = (size_t)h->n_epoch, steps = (size_t)h->n_step;
    double *all = calloc(EPOCH_COLUMNS * n + STEP_COLUMNS * steps, sizeof *all);
    double *epoch[EPOCH_COLUMNS], *step[STEP_COLUMNS];
    if (all == NULL)
        return -1;
    for (size_t k = 0; k < EPOCH_COLUMNS; k++)
        epoch[k] = all + k * n;
    for (size_t k = 0; k < STEP_COLUMNS; k++)
        step[k] = all + EPOCH_COLUMNS * n + k * steps;
    fill_columns(h, epoch, step);
    draw_curves(f, r, epoch, step);
    free(all);
    return 0;
}

/* ---- confused classes ---- */

/* A cell's shade: its share of the row's images. Mistakes, which are rarer, are shaded by the
 * root. */
static void put_row(FILE *f, const report *r, int i, const int64_t row[])
{
    char of[CLASS_NUMBER], as[CLASS_NUMBER], number[CLASS_NUMBER];
    int64_t images = 0;

    for (int j = 0; j < r->answers->classes; j++)
        images += row[j];
    snprintf(number, sizeof number, "%d", i);
    const char *name = class_text(r, i, of);
    put_escaped(f, FOR_XML, "<tr><th class=\"l\">%s %s</th>", number,
                strcmp(name, number) != 0 ? name : "");
    for (int j = 0; j < r->answers->classes; j++) {
        const double part = images > 0 ? (double)row[j] / (double)images : 0;
        put_escaped(f, FOR_XML,
                    "<td style=\"background:rgba(%s,%.3f)\" title=\"%s taken for %s: "
                    "%lld of %lld\">",
                    i == j ? "var(--cell)" : "224,96,16", 0.6 * (i == j ? part : sqrt(part)),
                    class_text(r, i, of), class_text(r, j, as), (long long)row[j],
                    (long long)images);
        if (row[j] > 0)
            fprintf(f, "%lld", (long long)row[j]);
        fputs("</td>", f);
    }
    fputs("</tr>\n", f);
}

/* 0 on success. */
static int put_matrix(FILE *f, const report *r)
{
    const int n = r->answers->classes;
    int64_t *count = malloc((size_t)n * (size_t)n * sizeof *count);
    if (count == NULL)
        return -1;
    count_confusion(r->answers, count);
    fputs("<p class=\"note\">A row for each class, a column for each that its images were taken "
          "for.</p>\n",
          f);
    fprintf(f, "%s\"Confusion matrix\">\n<table class=\"matrix\">\n<tr><th></th>", frame);
    for (int j = 0; j < n; j++)
        fprintf(f, "<th>%d</th>", j);
    fputs("</tr>\n", f);
    for (int i = 0; i < n; i++)
        put_row(f, r, i, count + (ptrdiff_t)i * n);
    fputs("</table></div>\n", f);
    free(count);
    return 0;
}

/* 0 on success. */
static int put_pairs(FILE *f, const report *r)
{
    confused_pair pair[REPORT_PAIRS];
    char of[CLASS_NUMBER], as[CLASS_NUMBER];
    const int n = list_confused(r->answers, REPORT_PAIRS, pair);

    fprintf(f,
            "%s\"Most confused classes\">\n<table>\n<tr><th class=\"l\">class</th>"
            "<th class=\"l\">taken for</th><th>images</th></tr>\n",
            frame);
    for (int i = 0; i < n; i++)
        put_escaped(f, FOR_XML,
                    "<tr><td class=\"l\">%s</td><td class=\"l\">%s</td><td>%lld</td></tr>\n",
                    class_text(r, pair[i].truth, of), class_text(r, pair[i].guess, as),
                    (long long)pair[i].count);
    fputs("</table></div>\n", f);
    return n < 0;
}

/* NaN: a dash. */
static void put_part(FILE *f, double part)
{
    if (isnan(part))
        fputs("<td>&ndash;</td>", f);
    else
        fprintf(f, "<td>%.1f %%</td>", 100 * part);
}

/* 0 on success. */
static int put_scores(FILE *f, const report *r)
{
    char number[CLASS_NUMBER];
    class_score *score = malloc((size_t)r->answers->classes * sizeof *score);
    if (score == NULL)
        return -1;
    score_classes(r->answers, score);
    fprintf(f,
            "<h2>Precision and recall</h2>\n%s\"Precision and recall of each class\">\n<table>\n"
            "<tr><th class=\"l\">class</th><th>images</th><th>precision</th><th>recall</th>"
            "<th>F1</th></tr>\n",
            frame);
    for (int k = 0; k < r->answers->classes; k++) {
        put_escaped(f, FOR_XML, "<tr><td class=\"l\">%s</td><td>%lld</td>",
                    class_text(r, k, number), (long long)score[k].images);
        put_part(f, score[k].precision);
        put_part(f, score[k].recall);
        put_part(f, score[k].f1);
        fputs("</tr>\n", f);
    }
    fputs("</table></div>\n", f);
    free(score);
    return 0;
}

/* 0 on success. */
static int put_classes(FILE *f, const report *r)
{
    int failed = 0;
    if (r->answers == NULL || r->answers->n < 1)
        return 0;
    put_escaped(f, FOR_XML,
                "<h2>Confused classes</h2>\n<p class=\"note\">%lld images of the %s part by the "
                "last weights.</p>\n",
                (long long)r->answers->n, r->held_out_name);
    if (r->answers->classes <= REPORT_MATRIX)
        failed = put_matrix(f, r);
    failed |= put_pairs(f, r);
    return failed | put_scores(f, r);
}

/* ---- confident mistakes ---- */

/* 0 on success. */
static int put_mistakes(FILE *f, const report *r)
{
    char of[CLASS_NUMBER], as[CLASS_NUMBER];
    const answers *a = r->answers;
    int failed = 0;

    if (r->n_mistake < 1)
        return 0;
    fputs("<h2>Most confident mistakes</h2>\n<ul class=\"pictures\">\n", f);
    for (int i = 0; i < r->n_mistake; i++) {
        const int64_t k = r->mistake[i];
        fputs("<li><img src=\"", f);
        failed |= png_put_uri(f, &r->image[i]);
        put_escaped(f, FOR_XML,
                    "\" alt=\"image %lld\"><b>%s</b>, taken for <b class=\"bad\">%s</b> with "
                    "%.1f %%<br><span class=\"sub\">image %lld</span></li>\n",
                    (long long)k, class_text(r, a->truth[k], of), class_text(r, a->guess[k], as),
                    100 * (double)a->probability[k], (long long)k);
    }
    fputs("</ul>\n", f);
    return failed;
}

/* ---- the page ---- */

int report_write(FILE *f, const void *source)
{
    const report *r = source;
    put_escaped(f, FOR_XML,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>%s</title>\n<style>\n",
                r->title);
    for (size_t i = 0; i < sizeof page_style / sizeof page_style[0]; i++)
        fputs(page_style[i], f);
    put_escaped(f, FOR_XML, "</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n<p>%s</p>\n", r->title,
                r->summary);
    const int failed = put_curves(f, r) | put_classes(f, r) | put_mistakes(f, r);
    put_escaped(f, FOR_XML, "<h2>This run</h2>\n<pre>%s</pre>\n<dl>\n", r->command);
    for (int i = 0; i < r->n_fact; i++)
        put_escaped(f, FOR_XML, "<dt>%s</dt><dd>%s</dd>\n", r->fact[i].name, r->fact[i].value);
    fputs("</dl>\n</main>\n</body>\n</html>\n", f);
    return failed || ferror(f);
}
