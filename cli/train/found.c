/* found.c - see found.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"
#include "data.h"
#include "found.h"

enum { LINE = 600, NAMED_CLASSES = 10, MAX_NAMES = 200, MAX_EMPTY = 5 };

__attribute__((format(printf, 2, 3))) static void append(char line[LINE], const char *format, ...)
{
    const size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, LINE - used, format, args);
    va_end(args);
}

/* Returns the number of images of each class, to be freed, or NULL if memory is short. */
static int64_t *count_classes(const adj_dataset *d)
{
    int64_t *count = calloc((size_t)d->classes, sizeof *count);
    for (int64_t i = 0; count != NULL && i < d->n; i++)
        count[d->labels[i]]++;
    return count;
}

static int count_present(const adj_dataset *d, const int64_t count[])
{
    int n = 0;
    for (int k = 0; k < d->classes; k++)
        n += count[k] > 0;
    return n;
}

/* True if the names of the classes are few and short enough for a line. */
static int can_name(const adj_dataset *d)
{
    size_t bytes = 0;
    for (int k = 0; d->class_names != NULL && d->classes <= NAMED_CLASSES && k < d->classes; k++)
        bytes += strlen(d->class_names[k]);
    return bytes > 0 && bytes <= MAX_NAMES;
}

/* Appends the number of images of each class, or the least and greatest number. */
static void append_counts(char line[LINE], const adj_dataset *d, const int64_t count[])
{
    int64_t least = INT64_MAX, most = 0;
    const char *before = " (";

    for (int k = 0; k < d->classes; k++) {
        if (count[k] == 0)
            continue;
        least = count[k] < least ? count[k] : least;
        most = count[k] > most ? count[k] : most;
        if (can_name(d)) {
            append(line, "%s%s %lld", before, d->class_names[k], (long long)count[k]);
            before = ", ";
        }
    }
    if (can_name(d))
        append(line, ")");
    else if (least == most)
        append(line, " (%lld each)", (long long)least);
    else
        append(line, " (%lld to %lld each)", (long long)least, (long long)most);
}

static void append_part(char line[LINE], const adj_dataset *d, const char *word, int is_first)
{
    int64_t *count = count_classes(d);
    const int present = count != NULL ? count_present(d, count) : d->classes;

    append(line, "%s%s %lld", is_first ? "" : ", ", word, (long long)d->n);
    if (is_first)
        append(line, d->n > 1 ? " images" : " image");
    if (present < d->classes)
        append(line, " in %d of %d classes", present, d->classes);
    else if (is_first)
        append(line, " in %d classes", d->classes);
    if (is_first && count != NULL)
        append_counts(line, d, count);
    free(count);
}

/* True if only class 0 of unnamed ones is empty: labels that count from 1. */
static int counts_from_one(const adj_dataset *d, const int64_t count[], int missing)
{
    return missing == 1 && count[0] == 0 && d->class_names == NULL;
}

void say_empty_classes(const adj_dataset *d)
{
    char line[LINE] = "";
    int64_t *count = count_classes(d);
    const int missing = count != NULL ? d->classes - count_present(d, count) : 0;

    for (int k = 0, n = 0; missing > 0 && n < MAX_EMPTY && k < d->classes; k++) {
        if (count[k] > 0)
            continue;
        if (d->class_names != NULL)
            append(line, "%s%.80s", n++ > 0 ? ", " : "", d->class_names[k]);
        else
            append(line, "%s%d", n++ > 0 ? ", " : "", k);
    }
    if (missing > 0 && counts_from_one(d, count, missing))
        say_wrapped(
            NULL,
            "note: class 0 of %d has no images; if the labels count from 1, subtract 1 for %d "
            "classes",
            d->classes, d->classes - 1);
    else if (missing > 0)
        say_wrapped(NULL, "note: class%s %s%s %s no images to train on", missing > 1 ? "es" : "",
                    line, missing > MAX_EMPTY ? ", ..." : "", missing > 1 ? "have" : "has");
    free(count);
}

/* Prints the files that the splits leave out: one line if it is the same for all, else one per
 * split. */
static void say_left_out(int n, const adj_dataset *const part[], const char *const word[])
{
    int is_same = 1;
    for (int i = 1; i < n; i++)
        is_same &= strcmp(part[i]->left_out, part[0]->left_out) == 0;
    if (is_same && part[0]->left_out[0] != '\0')
        say_wrapped(NULL, "left out: %s", part[0]->left_out);
    for (int i = 0; i < n && !is_same; i++)
        if (part[i]->left_out[0] != '\0')
            say_wrapped(NULL, "left out of %s: %s", word[i], part[i]->left_out);
}

void say_found(const char *path, int n, const adj_dataset *const part[], const char *const word[])
{
    char line[LINE] = "";
    for (int i = 0; i < n; i++)
        append_part(line, part[i], word[i], i == 0);
    say_wrapped(NULL, "%s: %s", data_name(path), line);
    say_left_out(n, part, word);
}
