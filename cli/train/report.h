/* report.h - a training as one HTML page (report.html): curves, confused classes, confident
 * mistakes, settings, from its metrics.jsonl and from the net's predictions for the held-out
 * images.
 *
 * The page needs no other file, no script and no network. Unknown values are NULL or 0 and are left
 * out of the page. All names are untrusted text and are escaped. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "adjoint_fit.h"
#include "cli/page/page.h"

/* ---- statistics of a classifier's predictions: scores of classes, confused classes,
 * confident mistakes ----
 *
 * Of an answer, truth is the label and guess the class with the largest logit. */

typedef struct {
    int64_t n;
    int classes; /* labels and guesses: 0 .. classes-1 */
    int32_t *truth, *guess;
    float *probability; /* softmax probability of the guess */
} answers;

typedef struct {
    int64_t images, guessed, right; /* images of the class; guessed as the class; both */
    double precision, recall;       /* right / guessed, right / images; NaN: 0 / 0 */
    double f1;                      /* 2 right / (images + guessed); NaN: 0 / 0 */
} class_score;

/* score: a row for each class. */
void score_classes(const answers *a, class_score score[]);

/* count[truth * classes + guess], the caller's, classes^2 numbers. */
void count_confusion(const answers *a, int64_t count[]);

typedef struct {
    int32_t truth, guess;
    int64_t count;
} confused_pair;
/* Lists the most frequent mistakes, at most max, equally frequent ones ordered by truth and guess.
 * Returns their number. */
int list_confused(const answers *a, int max, confused_pair pair[]);

/* Lists the mistakes with the highest probability, at most max, equal ones in their order. Returns
 * their number. */
int list_confident_mistakes(const answers *a, int max, int64_t index[]);

/* ---- the page ---- */

enum {
    REPORT_MATRIX =
        40, /* most classes of a drawn confusion matrix; with more, only pairs are listed */
    REPORT_PAIRS = 12, /* most pairs of confused classes */
    REPORT_MISTAKES = 24
};

typedef struct {
    const char *held_out_name;     /* "test" or "validation" */
    json_t *events;                /* result of report_events */
    answers answers;               /* predictions for the held-out split with the last weights */
    const char *const *class_name; /* NULL: their numbers */
    int n_mistake;
    int64_t mistake[REPORT_MISTAKES]; /* indices into answers, and their images */
    picture image[REPORT_MISTAKES];
} report;

/* Reads the objects of a metrics.jsonl, without those that a run wrote after the checkpoint from
 * which the next run resumed. Skips lines that are not objects, and an unreadable file. NULL: out
 * of memory. */
json_t *report_events(const char *path);
/* source: a report. 0 on success; not when out of memory. */
int report_write(FILE *f, const void *source);

#endif
