/* lines.c - reads and writes winners as lines of text; file.c describes the format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "tune.h"

enum { FIELDS = 6 };

/* ---- reading ---- */

/* Returns the whole number without sign from 0 to max, or -1 if the text is none. */
static long number(const char *text, long max)
{
    char *end;
    errno = 0;
    long v = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    return v >= 0 && *end == '\0' && errno == 0 && v <= max ? v : -1;
}

static const char *read_entry(tuner *t, char *line, tune_origin origin, adj_status *status)
{
    char *field[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line += strcspn(line, "\t");
        if (line == field[i] || (*line == '\t') != (i < FIELDS - 1))
            return "has not six fields";
        if (*line == '\t')
            *line++ = '\0';
    }
    if (strlen(field[4]) >= TUNE_IMPL || strlen(field[5]) >= TUNE_KEY)
        return "is too long";
    long candidate = number(field[2], MAX_CANDIDATES);
    char *end;
    double us = c_strtod(field[3], &end);
    if (candidate < 0 || *end != '\0' || !(us >= 0 && us < 1e12))
        return "has a number out of range";
    const int is_late = strcmp(field[0], "-") == 0 && strcmp(field[1], "-") == 0;
    const double too_few = is_late ? c_strtod(field[4], &end) : 0;
    if (is_late && (*end != '\0' || !(too_few > 0 && too_few < 1e7)))
        return "has a number out of range";
    tune_entry *entry = tune_new_entry(t);
    if (entry == NULL)
        *status = ADJ_ENOMEM;
    else if (is_late)
        *entry = (tune_entry){.key = field[5],
                              .impl = "",
                              .seconds = 1e-6 * us,
                              .too_few = too_few,
                              .origin = origin};
    else /* the strings are the text's, which the region keeps */
        *entry = (tune_entry){.key = field[5],
                              .backend = field[0],
                              .kernel = field[1],
                              .candidate = (int)candidate,
                              .impl = field[4],
                              .seconds = 1e-6 * us,
                              .origin = origin};
    return NULL;
}

int tune_is_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t' && c != '\n') || c >= 0x7f)
            return 0;
    }
    return 1;
}

const char *tune_read_lines(tuner *t, char *line, tune_origin origin, int *n_line,
                            adj_status *status)
{
    const char *wrong = NULL;
    int n = 0;
    while (wrong == NULL && *status == ADJ_OK) {
        char *next = strchr(line, '\n');
        ++*n_line;
        if (next == NULL)
            return "the end is missing";
        *next++ = '\0';
        if (strncmp(line, "end ", 4) == 0)
            return number(line + 4, TUNE_ENTRIES) == n && *next == '\0' ? NULL
                                                                        : "the count is wrong";
        if (n++ == TUNE_ENTRIES)
            return "there are too many lines";
        wrong = read_entry(t, line, origin, status);
        line = next;
    }
    return wrong;
}

/* ---- writing ---- */

void tune_write_entry(FILE *f, const tune_entry *x)
{
    if (x->kernel == NULL)
        c_fprintf(f, "-\t-\t0\t%.1f\t%.9g\t%s\n", 1e6 * x->seconds, x->too_few, x->key);
    else
        c_fprintf(f, "%s\t%s\t%d\t%.1f\t%s\t%s\n", x->backend, x->kernel, x->candidate,
                  1e6 * x->seconds, x->impl, x->key);
}
