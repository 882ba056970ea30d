/* train_log.h - runs adjoint train on a folder and reads its log. */
#ifndef TESTS_CLI_TRAIN_LOG_H
#define TESTS_CLI_TRAIN_LOG_H

#include <jansson.h>

#include "cli/child.h"
#include "io/folder.h"

/* The lines of a log; none if there is no such file. */
static inline json_t *read_log(const char *path)
{
    static char line[1 << 16];
    json_t *lines = json_kept(json_array());
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_t *object = json_of(line);
        cr_assert(strchr(line, '\n') != NULL && json_is_object(object), "%s", line);
        json_array_append(lines, object);
    }
    if (file != NULL)
        fclose(file);
    return lines;
}

/* Trains on the working folder by one thread, with the words of the line besides, and expects that
 * exit status. Returns the log, which is empty if the training did not begin. */
__attribute__((format(printf, 2, 3))) static inline json_t *train_log(int status,
                                                                      const char *format, ...)
{
    char line[1 << 12] = "train --data . --threads 1 --log log ";
    const size_t n = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n, format, args);
    va_end(args);
    remove("log");
    run_to(status, line);
    json_t *lines = read_log("log");
    remove("log");
    return lines;
}

static inline const json_t *log_entry(const json_t *log, size_t i, const char *key)
{
    const json_t *value = json_object_get(json_array_get(log, i), key);
    cr_assert_not_null(value, "line %zu has no %s", i, key);
    return value;
}

static inline double log_number(const json_t *log, size_t i, const char *key)
{
    return json_number_value(log_entry(log, i, key));
}

static inline const char *log_word(const json_t *log, size_t i, const char *key)
{
    return json_string_value(log_entry(log, i, key));
}

/* The key of the i-th event of that kind, from 0. */
static inline double log_event_number(const json_t *log, const char *event, int i, const char *key)
{
    for (size_t k = 0; k < json_array_size(log); k++)
        if (strcmp(log_word(log, k, "event"), event) == 0 && i-- == 0)
            return log_number(log, k, key);
    cr_assert_fail("there is no such %s", event);
    return 0;
}

/* The end of the line that eval prints of so many images by the weights of that epoch, from 0. */
static inline const char *scores_of(const json_t *log, int epoch, const char *part, int images)
{
    static char text[120];
    const double percent = log_event_number(log, "epoch", epoch, "held_out_accuracy");
    snprintf(text, sizeof text, "%s loss %.4f  %s accuracy %.2f %% (%.0f of %d)", part,
             log_event_number(log, "epoch", epoch, "held_out_loss"), part, percent,
             percent * images / 100, images);
    return text;
}

static inline int log_count(const json_t *log, const char *event)
{
    int n = 0;
    for (size_t k = 0; k < json_array_size(log); k++)
        n += strcmp(log_word(log, k, "event"), event) == 0;
    return n;
}

#endif
