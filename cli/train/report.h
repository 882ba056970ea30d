/* report.h - a training as one HTML page (report.html): curves, confused classes, confident
 * mistakes, settings.
 *
 * The page needs no other file, no script and no network. Whatever is not known is left NULL, 0 or
 * NaN, and the page goes without it. All names are text from anywhere and are escaped. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include "cli/page/png.h"
#include "history.h"
#include "score.h"

typedef struct {
    const char *name, *value;
} report_fact;

typedef struct {
    const char *title, *summary, *command;
    const char *held_out_name; /* "test" or "validation" */
    const history *history;
    const answers *answers;        /* of the held-out part, by the last weights */
    const char *const *class_name; /* NULL: their numbers */
    int n_mistake, n_fact;
    const int64_t *mistake; /* indices into answers, and their images */
    const picture *image;
    const report_fact *fact; /* the last lines of the page */
} report;

enum {
    REPORT_MATRIX = 40, /* classes of a confusion matrix that is drawn; of more only the pairs */
    REPORT_PAIRS = 12,  /* of confused classes */
    REPORT_MISTAKES = 24
};

/* source: a report. 0 on success; not when out of memory. */
int report_write(FILE *f, const void *source);

#endif
