/* report.c - statistics of predictions and the page that shows them: see report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "cli/command.h"
#include "cli/page/page.h"
#include "io/json.h"
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

/* ---- statistics ---- */

static double ratio(int64_t a, int64_t b) { return b > 0 ? (double)a / (double)b : NAN; }

void score_classes(const answers *a, class_score score[])
{
    memset(score, 0, (size_t)a->classes * sizeof *score);
    for (int64_t i = 0; i < a->n; i++) {
        score[a->truth[i]].images++;
        score[a->guess[i]].guessed++;
        score[a->truth[i]].right += a->truth[i] == a->guess[i];
    }
    for (int k = 0; k < a->classes; k++) {
        class_score *s = &score[k];
        s->precision = ratio(s->right, s->guessed);
        s->recall = ratio(s->right, s->images);
        s->f1 = ratio(2 * s->right, s->images + s->guessed);
    }
}

void count_confusion(const answers *a, int64_t count[])
{
    memset(count, 0, (size_t)a->classes * (size_t)a->classes * sizeof *count);
    for (int64_t i = 0; i < a->n; i++)
        count[(int64_t)a->truth[i] * a->classes + a->guess[i]]++;
}

static int by_classes(const void *a, const void *b)
{
    const confused_pair *p = a, *q = b;
    return p->truth != q->truth ? (p->truth > q->truth) - (p->truth < q->truth)
                                : (p->guess > q->guess) - (p->guess < q->guess);
}

static int by_count(const void *a, const void *b)
{
    const confused_pair *p = a, *q = b;
    return p->count != q->count ? (p->count < q->count) - (p->count > q->count) : by_classes(a, b);
}

int list_confused(const answers *a, int max, confused_pair pair[])
{
    int64_t n = 0, different = 0;
    confused_pair *all = allocate(a->n, sizeof *all);
    for (int64_t i = 0; i < a->n; i++)
        if (a->truth[i] != a->guess[i])
            all[n++] = (confused_pair){a->truth[i], a->guess[i], 1};
    qsort(all, (size_t)n, sizeof *all, by_classes);
    for (int64_t i = 0; i < n; i++)
        if (different > 0 && by_classes(&all[different - 1], &all[i]) == 0)
            all[different - 1].count++;
        else
            all[different++] = all[i];
    qsort(all, (size_t)different, sizeof *all, by_count);
    int listed = different < max ? (int)different : max;
    memcpy(pair, all, (size_t)listed * sizeof *pair);
    free(all);
    return listed;
}

int list_confident_mistakes(const answers *a, int max, int64_t index[])
{
    int n = 0;
    for (int64_t i = 0; i < a->n; i++) {
        if (a->truth[i] == a->guess[i])
            continue;
        int k = n < max ? n++ : max;
        for (; k > 0 && a->probability[index[k - 1]] < a->probability[i]; k--)
            if (k < max)
                index[k] = index[k - 1];
        if (k < max)
            index[k] = i;
    }
    return n;
}

/* ---- events ---- */

static const char *text(const json_t *e, const char *key)
{
    const char *value = json_string_value(json_object_get(e, key));
    return value != NULL ? value : "";
}

static int is_event(const json_t *e, const char *name)
{
    return strcmp(text(e, "event"), name) == 0;
}

static double number(const json_t *e, const char *key)
{
    return json_number_value(json_object_get(e, key));
}

/* Returns the last event of that name, or NULL if there is none. */
static const json_t *last_event(const json_t *events, const char *name)
{
    for (size_t i = json_array_size(events); i-- > 0;)
        if (is_event(json_array_get(events, i), name))
            return json_array_get(events, i);
    return NULL;
}

static void forget_behind(json_t *events, double position)
{
    const double rounding = 1e-6; /* rounding of numbers in the log */
    for (size_t i = json_array_size(events); i-- > 0;) {
        const json_t *e = json_array_get(events, i);
        if ((is_event(e, "step") && number(e, "at") > position + rounding) ||
            (is_event(e, "epoch") && number(e, "epoch") > position + rounding))
            json_array_remove(events, i);
    }
}

json_t *report_events(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n = 0;
    json_error_t why;
    json_t *events = json_array();
    FILE *f = fopen(path, "r");
    while (f != NULL && (n = getline(&text, &size, f)) > 0) {
        json_t *line = io_json_read(text, (size_t)n, JSON_REJECT_DUPLICATES, &why);
        if (is_event(line, "resume"))
            forget_behind(events, number(line, "at"));
        if (json_is_object(line))
            json_array_append(events, line);
        json_decref(line);
    }
    if (f != NULL)
        fclose(f);
    free(text);
    return events;
}

/* ---- curves ---- */

static void put_curves(FILE *f, const report *r)
{
    const char *held_out = r->held_out_name;
    const chart charts[] = {
        {"Loss",
         "epoch",
         2,
         {{"training", "one", "step", "at", "loss"},
          {held_out, "two", "epoch", "epoch", "held_out_loss"}}},
        {"Accuracy, %",
         "epoch",
         2,
         {{"training", "one", "epoch", "epoch", "accuracy"},
          {held_out, "two", "epoch", "epoch", "held_out_accuracy"}}},
        {"Learning rate", "epoch", 1, {{"of the steps", "one", "step", "at", "lr"}}}};

    if (last_event(r->events, "step") == NULL && last_event(r->events, "epoch") == NULL)
        return;
    fputs("<h2>Training</h2>\n<div class=\"columns\">\n", f);
    for (size_t i = 0; i < sizeof charts / sizeof charts[0]; i++)
        chart_draw(f, &charts[i], r->events);
    fputs("</div>\n", f);
}

/* ---- confused classes ---- */

/* Writes a row of the matrix. A cell is shaded by its fraction of the row's images; mistakes, which
 * are rarer, by its square root. */
static void put_row(FILE *f, const report *r, int i, const int64_t row[])
{
    char of[CLASS_NUMBER], as[CLASS_NUMBER], number[CLASS_NUMBER];
    int64_t images = 0;

    for (int j = 0; j < r->answers.classes; j++)
        images += row[j];
    snprintf(number, sizeof number, "%d", i);
    const char *name = class_text(r, i, of);
    put_escaped(f, FOR_XML, "<tr><th class=\"l\">%s %s</th>", number,
                strcmp(name, number) != 0 ? name : "");
    for (int j = 0; j < r->answers.classes; j++) {
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

static void put_matrix(FILE *f, const report *r)
{
    const int n = r->answers.classes;
    int64_t *count = allocate((int64_t)n * n, sizeof *count);
    count_confusion(&r->answers, count);
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
}

static void put_pairs(FILE *f, const report *r)
{
    confused_pair pair[REPORT_PAIRS];
    char of[CLASS_NUMBER], as[CLASS_NUMBER];
    const int n = list_confused(&r->answers, REPORT_PAIRS, pair);

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
}

/* Writes a fraction; a dash for NaN. */
static void put_part(FILE *f, double part)
{
    if (isnan(part))
        fputs("<td>&ndash;</td>", f);
    else
        fprintf(f, "<td>%.1f %%</td>", 100 * part);
}

static void put_scores(FILE *f, const report *r)
{
    char number[CLASS_NUMBER];
    class_score *score = allocate(r->answers.classes, sizeof *score);
    score_classes(&r->answers, score);
    fprintf(f,
            "<h2>Precision and recall</h2>\n%s\"Precision and recall of each class\">\n<table>\n"
            "<tr><th class=\"l\">class</th><th>images</th><th>precision</th><th>recall</th>"
            "<th>F1</th></tr>\n",
            frame);
    for (int k = 0; k < r->answers.classes; k++) {
        put_escaped(f, FOR_XML, "<tr><td class=\"l\">%s</td><td>%lld</td>",
                    class_text(r, k, number), (long long)score[k].images);
        put_part(f, score[k].precision);
        put_part(f, score[k].recall);
        put_part(f, score[k].f1);
        fputs("</tr>\n", f);
    }
    fputs("</table></div>\n", f);
    free(score);
}

static void put_classes(FILE *f, const report *r)
{
    if (r->answers.n < 1)
        return;
    put_escaped(f, FOR_XML,
                "<h2>Confused classes</h2>\n<p class=\"note\">%lld images of the %s part by the "
                "last weights.</p>\n",
                (long long)r->answers.n, r->held_out_name);
    if (r->answers.classes <= REPORT_MATRIX)
        put_matrix(f, r);
    put_pairs(f, r);
    put_scores(f, r);
}

/* ---- confident mistakes ---- */

/* 0 on success. */
static int put_mistakes(FILE *f, const report *r)
{
    char of[CLASS_NUMBER], as[CLASS_NUMBER];
    const answers *a = &r->answers;
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

/* ---- words ---- */

static void put_outcome(FILE *f, const report *r, const json_t *start)
{
    const json_t *end = last_event(r->events, "end"), *epoch = last_event(r->events, "epoch");
    const double best = number(end, "best_epoch");
    put_escaped(f, FOR_XML, "<p>%s %g of %g epochs",
                json_is_true(json_object_get(end, "interrupted")) ? "Interrupted after"
                                                                  : "Trained for",
                number(epoch, "epoch"), number(start, "epochs"));
    if (epoch != NULL)
        put_escaped(f, FOR_XML, ": accuracy %.2f %% of the %s part, loss %.4f",
                    number(epoch, "held_out_accuracy"), r->held_out_name,
                    number(epoch, "held_out_loss"));
    if (best > 0)
        put_escaped(f, FOR_XML,
                    "; the best %.2f %% in epoch %g, chosen by the same part, which is then no "
                    "independent one",
                    number(end, "best_accuracy"), best);
    fprintf(f, ". %.1f s.</p>\n", number(end, "seconds"));
}

/* Writes the settings of the run: the members of its first event. */
static void put_settings(FILE *f, const json_t *start)
{
    const char *key = NULL;
    json_t *value = NULL;
    put_escaped(f, FOR_XML, "<h2>This run</h2>\n<pre>%s</pre>\n<dl>\n", text(start, "command"));
    json_object_foreach((json_t *)start, key, value)
    {
        if (strcmp(key, "event") == 0 || strcmp(key, "command") == 0)
            continue;
        put_escaped(f, FOR_XML, "<dt>%s</dt><dd>", key);
        if (json_is_string(value))
            put_escaped(f, FOR_XML, "%s", json_string_value(value));
        else if (json_is_boolean(value))
            fputs(json_is_true(value) ? "yes" : "no", f);
        else
            fprintf(f, "%.10g", json_number_value(value));
        fputs("</dd>\n", f);
    }
    fputs("</dl>\n", f);
}

/* ---- the page ---- */

int report_write(FILE *f, const void *source)
{
    const report *r = source;
    const json_t *start = last_event(r->events, "start");
    if (start == NULL)
        return -1;
    page_begin(f, text(start, "model"), text(start, "data"));
    put_outcome(f, r, start);
    put_curves(f, r);
    put_classes(f, r);
    const int failed = put_mistakes(f, r);
    put_settings(f, start);
    fputs("</main>\n</body>\n</html>\n", f);
    return failed || ferror(f);
}
