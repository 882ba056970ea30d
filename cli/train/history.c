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
    h->failed |= list == NULL;
    if (list == NULL)
        return;
    h->step = list;
    h->step[h->n_step++] = *s;
}

int history_step(history *h, int64_t epoch, int64_t step, int64_t steps, double loss, double lr)
{
    h->sum += loss;
    h->count++;
    int64_t part = (step + 1) * HISTORY_STEPS / steps, before = step * HISTORY_STEPS / steps;
    if (part == before)
        return 0;
    int known = h->n_step;
    add_step(h, &(history_step_entry){(double)epoch + (double)(step + 1) / (double)steps,
                                      h->sum / (double)h->count, lr});
    h->sum = 0;
    h->count = 0;
    return h->n_step > known;
}

void history_epoch(history *h, const history_epoch_entry *e)
{
    if (h->n_epoch > 0 && h->epoch[h->n_epoch - 1].epoch == e->epoch) {
        h->epoch[h->n_epoch - 1] = *e;
        return;
    }
    history_epoch_entry *list = grow(h->epoch, h->n_epoch, sizeof *list);
    h->failed |= list == NULL;
    if (list == NULL)
        return;
    h->epoch = list;
    h->epoch[h->n_epoch++] = *e;
}

/* ---- from a log ---- */

static double number(const json_t *line, const char *key)
{
    const json_t *v = json_object_get(line, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* A run that began anew, or went on from before what is known, tells these again. */
static void forget_from(history *h, double position)
{
    while (h->n_step > 0 && h->step[h->n_step - 1].at >= position)
        h->n_step--;
    while (h->n_epoch > 0 && (double)h->epoch[h->n_epoch - 1].epoch >= position)
        h->n_epoch--;
}

static void read_line(history *h, const json_t *line, int64_t epochs, double position)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    double at = number(line, "at"), epoch = number(line, "epoch");
    if (event != NULL && strcmp(event, "step") == 0 && at > 0 && at <= position) {
        forget_from(h, at);
        add_step(h, &(history_step_entry){at, number(line, "loss"), number(line, "lr")});
    }
    if (event != NULL && strcmp(event, "epoch") == 0 && epoch >= 1 && epoch <= (double)epochs)
        history_epoch(h,
                      &(history_epoch_entry){.loss = number(line, "loss"),
                                             .accuracy = number(line, "accuracy"),
                                             .held_out_loss = number(line, "held_out_loss"),
                                             .held_out_accuracy = number(line, "held_out_accuracy"),
                                             .seconds = number(line, "seconds"),
                                             .epoch = (int64_t)epoch});
}

void history_read(history *h, const char *path, int64_t epochs, double position)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "r");
    while (f != NULL && getline(&text, &size, f) > 0) {
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(line))
            read_line(h, line, epochs, position);
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
