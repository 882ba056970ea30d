/* report.h - a training as one HTML page (report.html): curves, confused classes, confident
 * mistakes, settings, from its metrics.jsonl and from the net's predictions for the held-out
 * images.
 *
 * The page needs no other file, no script and no network. Unknown values are NULL or 0 and are left
 * out of the page. All names are untrusted text and are escaped. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include <jansson.h>

#include "cli/page/png.h"
#include "score.h"

typedef struct {
    const char *held_out_name;     /* "test" or "validation" */
    json_t *events;                /* of report_events */
    const answers *answers;        /* predictions for the held-out split with the last weights */
    const char *const *class_name; /* NULL: their numbers */
    int n_mistake;
    const int64_t *mistake; /* indices into answers, and their images */
    const picture *image;
} report;

enum {
    REPORT_MATRIX =
        40, /* most classes of a drawn confusion matrix; with more, only pairs are listed */
    REPORT_PAIRS = 12, /* of confused classes */
    REPORT_MISTAKES = 24
};

/* Reads the objects of a metrics.jsonl, without those that a run wrote after the checkpoint from
 * which the next run resumed. Skips lines that are not objects, and an unreadable file. NULL: out
 * of memory. */
json_t *report_events(const char *path);
/* source: a report. 0 on success; not when out of memory. */
int report_write(FILE *f, const void *source);

#endif
