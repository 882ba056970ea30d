/* nearest.c - see nearest.h. */
#include <stdint.h>
#include <string.h>

#include "nearest.h"

enum { LONGEST = 48 };

/* Levenshtein's distance: row i holds the distances of a's first i letters to all beginnings of
 * b. */
static size_t distance(const char *a, const char *b)
{
    size_t row[LONGEST + 1], n = strlen(b);

    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

/* Of those less than `best` away; NULL: none is. */
static const char *closest(const char *name, const void *names, int n, size_t stride, size_t best)
{
    const char *nearest = NULL;

    for (int i = 0; i < n && strlen(name) <= LONGEST; i++) {
        const char *candidate;
        memcpy(&candidate, (const char *)names + (size_t)i * stride, sizeof candidate);
        size_t d = strlen(candidate) <= LONGEST ? distance(name, candidate) : best;
        if (d < best) {
            best = d;
            nearest = candidate;
        }
    }
    return nearest;
}

const char *nearest_of(const char *name, const void *names, int n, size_t stride)
{
    const char *nearest = closest(name, names, n, stride, SIZE_MAX);
    if (nearest == NULL) /* of no length that can be compared */
        memcpy(&nearest, names, sizeof nearest);
    return nearest;
}

const char *nearest_name(const char *name, const void *names, int n, size_t stride)
{
    return closest(name, names, n, stride, strlen(name) / 2 + 1); /* more wrong is no likeness */
}
