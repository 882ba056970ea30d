/* report_sample.h - a report of many classes with hostile texts: markup, quotes, invalid UTF-8,
 * names without a place to break. */
#ifndef TESTS_CLI_REPORT_SAMPLE_H
#define TESTS_CLI_REPORT_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/train/report.h"

#define EVIL                                                                                       \
    "</title></style><script>console.error('in')</script><img src=x onerror=\"alert(1)\">'\""

enum { SAMPLE_CLASSES = 200, SAMPLE_IMAGES = 2000, SAMPLE_EPOCHS = 7 };

typedef struct {
    report report;
    int32_t truth[SAMPLE_IMAGES], guess[SAMPLE_IMAGES];
    float probability[SAMPLE_IMAGES];
    uint8_t pixels[8 * 8 * 3];
    char name[SAMPLE_CLASSES][160];
    const char *names[SAMPLE_CLASSES];
    char long_name[400];
} report_sample;

static inline json_t *sample_events(const report_sample *s)
{
    json_t *list = json_array();
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "event", "start",
                                          "model", EVIL, "data", EVIL, "command", EVIL, EVIL, EVIL,
                                          "epochs", SAMPLE_EPOCHS));
    json_object_set_new(json_array_get(list, 0), "long", json_string(s->long_name));
    for (int i = 0; i < 20 * SAMPLE_EPOCHS; i++)
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f}", "event", "step", "at",
                                              (i + 1) / 20.0, "loss", 40.0 / (i + 20), "lr",
                                              0.1 * (1 - i / 140.0)));
    for (int i = 0; i < SAMPLE_EPOCHS; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "event", "epoch", "epoch",
                                        i + 1, "loss", 2.0 / (i + 1), "accuracy",
                                        100.0 - 50.0 / (i + 1), "held_out_loss", 2.2 / (i + 1),
                                        "held_out_accuracy", 100.0 - 55.0 / (i + 1)));
    return list;
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
    s->report.answers = (answers){SAMPLE_IMAGES, classes, s->truth, s->guess, s->probability};
}

static inline void sample_pictures(report_sample *s)
{
    static const picture shapes[] = {{8, 8, 3, NULL}, {8, 8, 1, NULL}, {2, 8, 1, NULL}};
    for (size_t i = 0; i < sizeof s->pixels; i++)
        s->pixels[i] = (uint8_t)(37 * i);
    for (int i = 0; i < 3; i++) {
        s->report.image[i] = shapes[i];
        s->report.image[i].pixels = s->pixels;
        s->report.mistake[i] = 5 * (i + 1);
    }
    s->report.n_mistake = 3;
}

/* NULL: out of memory. To be freed by sample_free. */
static inline report_sample *sample_report(int classes)
{
    report_sample *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    sample_answers(s, classes);
    sample_pictures(s);
    s->report.held_out_name = "test";
    s->report.events = sample_events(s);
    s->report.class_name = s->names;
    return s;
}

static inline void sample_free(report_sample *s)
{
    if (s != NULL)
        json_decref(s->report.events);
    free(s);
}

#endif
