/* nearest.c - see nearest.h. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "nearest.h"

enum { LONGEST = 48 };

/* The optimal string alignment distance: insertions, deletions, substitutions and swaps of
 * adjacent letters that turn a into b. row[i][j]: distance of a's first i letters to b's first
 * j. */
static size_t distance(const char *a, const char *b)
{
    size_t row[3][LONGEST + 1], n = strlen(b), i = 0;

    for (size_t j = 0; j <= n; j++)
        row[0][j] = j;
    for (i = 1; a[i - 1] != '\0'; i++) {
        size_t *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);
            if (before[j] + 1 < best)
                best = before[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                earlier[j - 2] + 1 < best)
                best = earlier[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[(i + 2) % 3][n];
}

static int is_near(const char *name, const char *candidate, size_t away)
{
    size_t n = strlen(name);
    const size_t length = strlen(candidate);
    if (n >= 2 && strncmp(candidate, name, n) == 0)
        return 1;
    if (length >= 3 && strncmp(name, candidate, length) == 0 && name[length] == '-')
        return 1;
    return away < n && away <= (n > 3 ? n : 3) / 3;
}

const char *nearest_name(const char *name, const void *names, int n, size_t stride)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;

    name += strspn(name, "-");
    for (int i = 0; i < n && strlen(name) <= LONGEST; i++) {
        const char *candidate;
        memcpy(&candidate, (const char *)names + (size_t)i * stride, sizeof candidate);
        const char *plain = candidate + strspn(candidate, "-");
        size_t d = strlen(plain) <= LONGEST ? distance(name, plain) : SIZE_MAX;
        if (d < best && is_near(name, plain, d)) {
            best = d;
            nearest = candidate;
        }
    }
    return nearest;
}

guess did_you_mean(const char *name, const void *names, int n, size_t stride, const char *otherwise)
{
    guess g = {""};
    const char *near = nearest_name(name, names, n, stride);
    if (near != NULL)
        snprintf(g.s, sizeof g.s, " (did you mean %s?)", near);
    else if (otherwise != NULL)
        snprintf(g.s, sizeof g.s, " (%s)", otherwise);
    return g;
}
