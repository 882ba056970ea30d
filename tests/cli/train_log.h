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
    json_t *lines = json_array();
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_t *object = json_of(line);
        cr_assert(strchr(line, '\n') != NULL && json_is_object(object), "%s", line);
        json_array_append_new(lines, object);
    }
    if (file != NULL)
        fclose(file);
    return lines;
}

/* Trains on f by one thread with what more says besides; the outcome in r, and the log, which is
 * empty if it did not begin. */
static inline json_t *train_with(const folder *f, const char *const more[], finished *r)
{
    const file_name log = in_folder(f, "log");
    const char *words[ARGUMENTS] = {"train", "--data", f->path, "--threads", "1", "--log", log.s};
    int n = 7;

    remove(log.s);
    for (int i = 0; more[i] != NULL; i++)
        words[n++] = more[i];
    run_tool(words, r);
    json_t *lines = read_log(log.s);
    remove(log.s);
    return lines;
}

/* Trains likewise and expects success; out (NULL: none) is the file of the weights. */
static inline json_t *train_to(const folder *f, const char *const more[], const char *out)
{
    static finished r;
    const char *words[ARGUMENTS] = {NULL};
    int n = 0;
    if (out != NULL) {
        words[n++] = "--out";
        words[n++] = out;
    }
    for (int i = 0; more[i] != NULL; i++)
        words[n++] = more[i];
    json_t *log = train_with(f, words, &r);
    cr_assert_eq(r.status, 0, "%s", r.err);
    return log;
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

static inline int log_count(const json_t *log, const char *event)
{
    int n = 0;
    for (size_t k = 0; k < json_array_size(log); k++)
        n += strcmp(log_word(log, k, "event"), event) == 0;
    return n;
}

#endif
