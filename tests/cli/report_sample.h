/* report_sample.h - a report of so many classes whose every text is hostile: markup, quotes, bytes
 * that are no UTF-8, names without a place to break. */
#ifndef TESTS_CLI_REPORT_SAMPLE_H
#define TESTS_CLI_REPORT_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/train/report/report.h"

#define EVIL                                                                                       \
    "</title></style><script>console.error('in')</script><img src=x onerror=\"alert(1)\">'\""

enum { SAMPLE_CLASSES = 200, SAMPLE_IMAGES = 2000, SAMPLE_EPOCHS = 7 };

typedef struct {
    report report;
    answers answers;
    report_filters filters;
    report_plan plan;
    report_epoch epoch[SAMPLE_EPOCHS];
    report_step step[20 * SAMPLE_EPOCHS];
    report_mistake mistake[3];
    report_layer layer[2];
    report_kernel kernel[1];
    report_fallback fallback[1];
    page_fact fact[2];
    int32_t truth[SAMPLE_IMAGES], guess[SAMPLE_IMAGES];
    float probability[SAMPLE_IMAGES], weights[3 * 3 * 3 * 8];
    uint8_t pixels[8 * 8 * 3];
    char name[SAMPLE_CLASSES][160];
    const char *names[SAMPLE_CLASSES];
    char long_name[400];
} report_sample;

static inline void sample_course(report_sample *s)
{
    for (int i = 0; i < SAMPLE_EPOCHS; i++)
        s->epoch[i] = (report_epoch){2.0 / (i + 1), 100.0 - 50.0 / (i + 1),
                                     2.2 / (i + 1), 100.0 - 55.0 / (i + 1),
                                     1.5,           i + 1};
    for (int i = 0; i < 20 * SAMPLE_EPOCHS; i++)
        s->step[i] = (report_step){(i + 1) / 20.0, 40.0 / (i + 20), 0.1 * (1 - i / 140.0)};
}

static inline void sample_answers(report_sample *s, int classes)
{
    memset(s->long_name, 'W', sizeof s->long_name - 1);
    for (int k = 0; k < classes; k++) {
        snprintf(s->name[k], sizeof s->name[k], "%d %s", k, k % 7 == 0 ? EVIL : "cat & \xff dog");
        s->names[k] = k == 1 ? s->long_name : s->name[k];
    }
    for (int i = 0; i < SAMPLE_IMAGES; i++) {
        s->truth[i] = i % classes;
        s->guess[i] = i % 5 == 0 ? (i / 5) % classes : s->truth[i];
        s->probability[i] = (float)(i % 97) / 97;
    }
    s->answers = (answers){SAMPLE_IMAGES, classes, s->truth, s->guess, s->probability};
}

static inline void sample_pictures(report_sample *s)
{
    for (size_t i = 0; i < sizeof s->pixels; i++)
        s->pixels[i] = (uint8_t)(37 * i);
    for (size_t i = 0; i < sizeof s->weights / sizeof *s->weights; i++)
        s->weights[i] = (float)(i % 11) - 5;
    s->mistake[0] = (report_mistake){0, 1, 0.99, {8, 8, 3, s->pixels}, EVIL, 5};
    s->mistake[1] = (report_mistake){1, 0, 0.98, {8, 8, 1, s->pixels}, NULL, 7};
    s->mistake[2] = (report_mistake){1, 0, 0.97, {2, 8, 1, s->pixels}, s->long_name, 8};
    s->filters = (report_filters){EVIL, 3, 3, 3, 8, s->weights};
}

static inline void sample_plan(report_sample *s)
{
    s->layer[0] = (report_layer){EVIL, EVIL, EVIL, 1234, 5e6, 1e-3, 2e-3, 4096};
    s->layer[1] = (report_layer){s->long_name, s->long_name, "[1]", 1, 0, 0, 1e-6, 4};
    s->kernel[0] = (report_kernel){EVIL, EVIL, s->long_name, 3, 1e-3};
    s->fallback[0] = (report_fallback){EVIL, "naive", s->long_name, s->long_name, 2, 1e-4};
    s->plan = (report_plan){.batch = 64,
                            .n_layer = 2,
                            .n_kernel = 1,
                            .n_fallback = 1,
                            .layer = s->layer,
                            .kernel = s->kernel,
                            .fallback = s->fallback,
                            .steps = 5,
                            .naive_steps = 2,
                            .runs = 3,
                            .seconds = 3e-3};
}

/* NULL: out of memory. To be freed by free(). */
static inline report_sample *sample_report(int classes)
{
    report_sample *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    sample_course(s);
    sample_answers(s, classes);
    sample_pictures(s);
    sample_plan(s);
    s->fact[0] = (page_fact){EVIL, EVIL};
    s->fact[1] = (page_fact){"long", s->long_name};
    s->report = (report){.title = EVIL,
                         .summary = EVIL,
                         .command = EVIL,
                         .held_out_name = "test",
                         .n_tile = 2,
                         .n_fact = 2,
                         .tile = s->fact,
                         .fact = s->fact,
                         .n_epoch = SAMPLE_EPOCHS,
                         .n_step = 20 * SAMPLE_EPOCHS,
                         .n_range = 20,
                         .epoch = s->epoch,
                         .step = s->step,
                         .range = s->step,
                         .answers = &s->answers,
                         .class_name = s->names,
                         .n_mistake = 3,
                         .mistake = s->mistake,
                         .filters = &s->filters,
                         .plan = &s->plan};
    return s;
}

#endif
