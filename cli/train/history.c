/* history.c - see history.h. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"

/* Room for one more of n: when n is a power of two, and at first. NULL when out of memory. */
static void *grow(void *list, int n, size_t size)
{
    if (n > 0 && (n & (n - 1)) != 0)
        return list;
    return realloc(list, (n > 0 ? 2 * (size_t)n : 1) * size);
}

static void add_step(history *h, const history_step_entry *s)
{
    history_step_entry *list = grow(h->step, h->n_step, sizeof *list);
    if (list == NULL)
        return;
    h->step = list;
    h->step[h->n_step++] = *s;
}

static void add_epoch(history *h, const history_epoch_entry *e)
{
    history_epoch_entry *list = grow(h->epoch, h->n_epoch, sizeof *list);
    if (list == NULL)
        return;
    h->epoch = list;
    h->epoch[h->n_epoch++] = *e;
}

static double number(const json_t *line, const char *key)
{
    const json_t *v = json_object_get(line, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* Drops what a run made after the checkpoint that the next one went on from. */
static void forget_behind(history *h, double position)
{
    const double rounding = 1e-6; /* of numbers in the log */
    while (h->n_step > 0 && h->step[h->n_step - 1].at > position + rounding)
        h->n_step--;
    while (h->n_epoch > 0 && (double)h->epoch[h->n_epoch - 1].epoch > position + rounding)
        h->n_epoch--;
}

static void read_line(history *h, const json_t *line)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    const double at = number(line, "at"), epoch = number(line, "epoch");

    if (event == NULL)
        return;
    if (strcmp(event, "resume") == 0 && isfinite(at))
        forget_behind(h, at);
    if (strcmp(event, "step") == 0 && at > 0)
        add_step(h, &(history_step_entry){at, number(line, "loss"), number(line, "lr")});
    if (strcmp(event, "epoch") == 0 && epoch >= 1)
        add_epoch(h, &(history_epoch_entry){.loss = number(line, "loss"),
                                            .accuracy = number(line, "accuracy"),
                                            .held_out_loss = number(line, "held_out_loss"),
                                            .held_out_accuracy = number(line, "held_out_accuracy"),
                                            .seconds = number(line, "seconds"),
                                            .epoch = (int64_t)epoch});
}

void history_read(history *h, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "r");
    while (f != NULL && getline(&text, &size, f) > 0) {
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(line))
            read_line(h, line);
        json_decref(line);
    }
    if (f != NULL)
        fclose(f);
    free(text);
}

void history_free(history *h)
{
    free(h->epoch);
    free(h->step);
    *h = (history){0};
}
