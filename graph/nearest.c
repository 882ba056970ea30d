/* nearest.c - "did you mean": the name with the smallest edit distance. */
#include <string.h>

#include "command.h"

enum { LONGEST = 40 };

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

const char *nearest_name(const char *name, const void *names, int n, size_t stride)
{
    const char *nearest = NULL;
    size_t best = strlen(name) / 2 + 1; /* more than half of it wrong is no likeness */

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
