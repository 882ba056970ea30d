/* classes.c - the report's confusion matrix, confused pairs, classes and confident mistakes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/printable.h"
#include "report.h"

/* ---- the matrix ---- */

enum {
    MIN_CELL = 22, /* pixels: on a phone the matrix of many classes is moved in its frame */
    CELL = 30,     /* side of a cell in the picture's units */
    LETTER = 8,    /* width of a letter there */
    LABEL = 12,    /* letters of a class's name beside the matrix; what is longer is cut */
    COUNTED = 15   /* classes up to which counts are written into the cells */
};

/* The first characters of the name, at most LABEL, the last a mark that it was cut; returns how
 * many. */
static int cut_label(const char *name, char label[4 * LABEL + 4])
{
    size_t from[LABEL + 1], at = 0;
    int n = 0;
    uint32_t code;
    for (; name[at] != '\0' && n <= LABEL; n++) {
        int bytes = utf8_character(name + at, &code);
        from[n] = at;
        at += bytes > 0 ? (size_t)bytes : 1;
    }
    if (n <= LABEL) {
        snprintf(label, 4 * LABEL + 4, "%s", name);
        return n;
    }
    memcpy(label, name, from[LABEL - 1]);
    memcpy(label + from[LABEL - 1], "\xe2\x80\xa6", 4);
    return LABEL;
}

static int longest_label(const report *r)
{
    char number[PAGE_NUMBER], label[4 * LABEL + 4];
    int max = 1;
    for (int k = 0; k < r->answers->classes; k++) {
        int n = cut_label(report_class(r, k, number), label);
        max = n > max ? n : max;
    }
    return max;
}

/* Names to the left and above; those above stand upright when they are short. */
static void draw_labels(FILE *f, const report *r, int left, int top)
{
    char number[PAGE_NUMBER], label[4 * LABEL + 4];
    for (int k = 0; k < r->answers->classes; k++) {
        int middle = k * CELL + CELL / 2;
        (void)cut_label(report_class(r, k, number), label);
        put_escaped(f, FOR_XML, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", left - 6,
                    top + middle + 4, label);
        if (top > CELL)
            put_escaped(f, FOR_XML, "<text transform=\"translate(%d %d) rotate(-90)\">%s</text>\n",
                        left + middle + 4, top - 6, label);
        else
            put_escaped(f, FOR_XML, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                        left + middle, top - 6, label);
    }
}

/* A cell's shade: the count's part of the images of its row's class. Mistakes, which are rarer, are
 * shaded by the root. */
static void draw_cell(FILE *f, const report *r, int i, int j, const int64_t *row, int64_t images,
                      const int place[2])
{
    char of[PAGE_NUMBER], as[PAGE_NUMBER];
    double part = images > 0 ? (double)row[j] / (double)images : 0;
    double shade = i == j ? part : sqrt(part);
    put_escaped(f, FOR_XML,
                "<g><title>%s taken for %s: %lld of %lld</title><rect class=\"%s\" x=\"%d\" "
                "y=\"%d\" width=\"%d\" height=\"%d\" fill-opacity=\"%.3f\"/>",
                report_class(r, i, of), report_class(r, j, as), (long long)row[j],
                (long long)images, i == j ? "right" : "wrong", place[0], place[1], CELL - 1,
                CELL - 1, row[j] > 0 ? 0.06 + 0.94 * shade : 0.03);
    if (r->answers->classes <= COUNTED && row[j] > 0)
        fprintf(f, "<text class=\"%s\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%lld</text>",
                shade > 0.5 ? "over" : "ink", place[0] + CELL / 2, place[1] + CELL / 2 + 4,
                (long long)row[j]);
    fputs("</g>\n", f);
}

static void draw_matrix(FILE *f, const report *r, const int64_t *count)
{
    int n = r->answers->classes, letters = longest_label(r);
    int left = 8 + letters * LETTER + 4, top = letters > 3 ? left : 20, side = n * CELL;
    put_escaped(
        f, FOR_XML,
        "<svg class=\"matrix\" viewBox=\"0 0 %d %d\" style=\"max-width:%dpx;min-width:%dpx\" "
        "role=\"img\"><title>Confusion matrix of %d classes</title>\n",
        left + side + 8, top + side + 8, left + side + 8, left + n * MIN_CELL, n);
    draw_labels(f, r, left, top);
    for (int i = 0; i < n; i++) {
        int64_t images = 0;
        for (int j = 0; j < n; j++)
            images += count[i * n + j];
        for (int j = 0; j < n; j++)
            draw_cell(f, r, i, j, &count[(ptrdiff_t)i * n], images,
                      (const int[]){left + j * CELL, top + i * CELL});
    }
    fputs("</svg>\n", f);
}

/* ---- tables ---- */

static int put_pairs(FILE *f, const report *r)
{
    confused_pair pair[REPORT_PAIRS];
    char of[PAGE_NUMBER], as[PAGE_NUMBER];
    int n = list_confused(r->answers, REPORT_PAIRS, pair);
    if (n < 0)
        return -1;
    if (n == 0) {
        page_note(f, "No mistake among %lld images.", (long long)r->answers->n);
        return 0;
    }
    page_frame_begin(f, "Most confused classes");
    fputs("<table>\n<thead><tr><th class=\"l\">class</th><th class=\"l\">taken for</th>"
          "<th>images</th></tr></thead>\n<tbody>\n",
          f);
    for (int i = 0; i < n; i++) {
        fputs("<tr>", f);
        page_cell_text(f, "l name", report_class(r, pair[i].truth, of));
        page_cell_text(f, "l name", report_class(r, pair[i].guess, as));
        page_cell_number(f, "", "%.0f", (double)pair[i].count);
        fputs("</tr>\n", f);
    }
    fputs("</tbody></table>\n", f);
    page_frame_end(f);
    return 0;
}

typedef struct {
    class_score score;
    int class;
} class_row;

static int by_f1(const void *a, const void *b)
{
    const class_row *p = a, *q = b;
    double x = isnan(p->score.f1) ? 2 : p->score.f1, y = isnan(q->score.f1) ? 2 : q->score.f1;
    return x != y ? (x > y) - (x < y) : p->class - q->class;
}

static void put_part(FILE *f, double part)
{
    page_cell_number(f, "", "%.1f %%", 100 * part);
    fprintf(f,
            "<td class=\"more\"><svg width=\"90\" height=\"10\" role=\"img\"><title>%.3f</title>"
            "<rect class=\"track\" width=\"90\" height=\"10\"/><rect class=\"fill one\" "
            "width=\"%.1f\" height=\"10\"/></svg></td>",
            isnan(part) ? 0 : part, isnan(part) ? 0 : 90 * part);
}

static void put_class(FILE *f, const report *r, const class_row *c)
{
    char number[PAGE_NUMBER];
    fputs("<tr>", f);
    page_cell_text(f, "l name", report_class(r, c->class, number));
    page_cell_number(f, "", "%.0f", (double)c->score.images);
    put_part(f, c->score.precision);
    put_part(f, c->score.recall);
    page_cell_number(f, "", "%.3f", c->score.f1);
    fputs("</tr>\n", f);
}

static int put_classes(FILE *f, const report *r)
{
    int n = r->answers->classes, shown = n < REPORT_CLASSES ? n : REPORT_CLASSES;
    class_score *score = malloc((size_t)n * sizeof *score);
    class_row *row = malloc((size_t)n * sizeof *row);
    if (score != NULL && row != NULL) {
        score_classes(r->answers, score);
        for (int k = 0; k < n; k++)
            row[k] = (class_row){score[k], k};
        if (shown < n) {
            qsort(row, (size_t)n, sizeof *row, by_f1);
            page_note(f, "The %d of %d classes with the lowest F1.", shown, n);
        }
        page_frame_begin(f, "Precision and recall of each class");
        fputs("<table>\n<thead><tr><th class=\"l\">class</th><th>images</th><th>precision</th>"
              "<th class=\"more\"></th><th>recall</th><th class=\"more\"></th><th>F1</th></tr>"
              "</thead>\n<tbody>\n",
              f);
        for (int k = 0; k < shown; k++)
            put_class(f, r, &row[k]);
        fputs("</tbody></table>\n", f);
        page_frame_end(f);
    }
    int failed = score == NULL || row == NULL;
    free(row);
    free(score);
    return failed;
}

/* ---- the sections ---- */

static int put_matrix(FILE *f, const report *r)
{
    int n = r->answers->classes;
    int64_t *count = malloc((size_t)n * (size_t)n * sizeof *count);
    if (count == NULL)
        return -1;
    count_confusion(r->answers, count);
    page_frame_begin(f, "Confusion matrix");
    draw_matrix(f, r, count);
    page_frame_end(f);
    free(count);
    return 0;
}

int report_classes(FILE *f, const report *r)
{
    int failed = 0;
    if (r->answers == NULL || r->answers->n < 1)
        return 0;
    int drawn = r->answers->classes <= REPORT_MATRIX;
    page_section(f, "confusion", "Confused classes");
    if (drawn)
        page_note(f,
                  "%lld images of the %s part by the last weights: a row for each class, a column "
                  "for each that they were taken for.",
                  (long long)r->answers->n, r->held_out_name);
    else
        page_note(f,
                  "%lld images of the %s part by the last weights. With more than %d classes (here "
                  "%d) only the pairs confused most often are listed.",
                  (long long)r->answers->n, r->held_out_name, REPORT_MATRIX, r->answers->classes);
    fputs("<div class=\"sides\">\n", f);
    if (drawn)
        failed = put_matrix(f, r);
    fputs("<div>\n", f);
    failed |= put_pairs(f, r);
    fputs("</div>\n</div>\n", f);
    page_section(f, "classes", "Precision and recall");
    return failed | put_classes(f, r);
}

static void put_mistake(FILE *f, const report *r, const report_mistake *m)
{
    char of[PAGE_NUMBER], as[PAGE_NUMBER], where[PAGE_NUMBER];
    const char *truth = report_class(r, m->truth, of), *guess = report_class(r, m->guess, as);
    snprintf(where, sizeof where, "image %lld", (long long)m->index);
    fprintf(f, "<li><img width=\"%lld\" height=\"%lld\" src=\"", (long long)m->image.w,
            (long long)m->image.h);
    (void)png_put_uri(f, &m->image);
    put_escaped(f, FOR_XML,
                "\" alt=\"%s\"><b>%s</b>, taken for <b class=\"bad\">%s</b> with %.1f %%<br>"
                "<span class=\"sub\">%s</span></li>\n",
                m->file != NULL ? m->file : where, truth, guess, 100 * m->probability,
                m->file != NULL ? m->file : where);
}

void report_mistakes(FILE *f, const report *r)
{
    if (r->n_mistake < 1)
        return;
    page_section(f, "mistakes", "Most confident mistakes");
    fputs("<ul class=\"pictures\">\n", f);
    for (int i = 0; i < r->n_mistake; i++)
        put_mistake(f, r, &r->mistake[i]);
    fputs("</ul>\n", f);
}
