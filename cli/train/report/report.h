/* report.h - a training as one HTML page (report.html), written from plain data.
 *
 * Whatever is not known is left NULL, 0 or NaN, and the page goes without it. All names are text
 * from anywhere and are escaped. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include "cli/page/page.h"
#include "cli/page/png.h"
#include "score.h"

typedef struct { /* after an epoch; accuracies in per cent */
    double loss, accuracy, held_out_loss, held_out_accuracy, seconds;
    int64_t epoch; /* 1, 2, ... */
} report_epoch;

typedef struct { /* the mean over some steps up to `at` */
    double at;   /* in epochs */
    double loss, lr;
} report_step;

typedef struct {
    int32_t truth, guess;
    double probability; /* of the guess */
    picture image;
    const char *file; /* its name; NULL: the data set's image `index` */
    int64_t index;
} report_mistake;

typedef struct { /* weights of the first layer, [h, w, c, n] */
    const char *name;
    int64_t h, w, c, n;
    const float *values;
} report_filters;

/* What belongs to a layer, which is the parameters of one prefix and what is computed of them. */
typedef struct {
    const char *name, *ops;   /* "conv1", "conv2d bias_add relu max_pool" */
    const char *shape;        /* of its result, "[64, 14, 14, 32]" */
    int64_t params;           /* trainable elements */
    double macs;              /* multiply-accumulates of the forward pass, of the whole batch */
    double forward, backward; /* seconds of a training step */
    size_t bytes;             /* of its results */
} report_layer;

/* Steps of the plan with the same op and implementation. */
typedef struct {
    const char *op, *backend, *impl;
    int steps;
    double seconds;
} report_kernel;

/* Steps of one op that the preferred backend does not compute, for one reason. */
typedef struct {
    const char *op, *backend, *why;
    char *names; /* of the steps' values, as many as there is room for */
    int steps;
    double seconds;
} report_fallback;

typedef struct {
    int64_t batch; /* 0: nothing is known of the plan */
    int n_layer, n_kernel, n_fallback;
    report_layer *layer;
    report_kernel *kernel;
    report_fallback *fallback;
    int steps, naive_steps, reorders;
    int runs;       /* over which times are medians */
    double seconds; /* of all steps */
    size_t arena_bytes, storage_bytes;
} report_plan;

typedef struct {
    const char *title, *summary, *command;
    const char *held_out_name; /* what accuracy was measured on beside the training part: "test" */
    int n_tile, n_fact;
    const page_fact *tile, *fact;
    int n_epoch, n_step, n_range;
    const report_epoch *epoch;
    const report_step *step;
    const report_step *range;      /* a range test: loss over lr */
    const answers *answers;        /* of the held-out part, by the last weights */
    const char *const *class_name; /* NULL: their numbers */
    int n_mistake;
    const report_mistake *mistake;
    const report_filters *filters;
    const report_plan *plan;
} report;

enum {
    REPORT_MATRIX = 40,   /* classes of a confusion matrix that is drawn; of more only the pairs */
    REPORT_PAIRS = 12,    /* of confused classes */
    REPORT_CLASSES = 100, /* rows of the table of classes; of more those with the lowest F1 */
    REPORT_MISTAKES = 24, /* as pictures */
    REPORT_FILTERS = 64
};

/* source: a report. 0 on success; not when out of memory. */
int report_write(FILE *f, const void *source);

/* The page's parts, each nothing where nothing is known. 0, or not when out of memory. */
int report_curves(FILE *f, const report *r);
int report_classes(FILE *f, const report *r);
void report_mistakes(FILE *f, const report *r);
int report_first_layer(FILE *f, const report_filters *l);
void report_model(FILE *f, const report_plan *p);
/* A class's name, or its number in text. */
const char *report_class(const report *r, int64_t class, char text[PAGE_NUMBER]);

#endif
