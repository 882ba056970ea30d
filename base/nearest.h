/* nearest.h - "did you mean": the name with the smallest edit distance. It depends on base/
 * alone; the library and the tool each compile a copy. */
#ifndef ADJ_NEAREST_H
#define ADJ_NEAREST_H

#include <stddef.h>

/* Returns the name that is nearest to the given one, or NULL if none is near. Names: n of them,
 * each a const char *, at stride bytes from each other. A near name differs in at most a third
 * of the given one's letters (in one of up to five), a swap of adjacent letters being one
 * difference; or it begins with all of them, at least two; or the given one is the name followed
 * by a dash and more. Leading dashes are ignored. */
const char *nearest_name(const char *name, const void *names, int n, size_t stride);

typedef struct {
    char s[384];
} guess;
/* Returns " (did you mean NAME?)" with the nearest name; without one " (OTHERWISE)", or "" if
 * otherwise is NULL. */
guess did_you_mean(const char *name, const void *names, int n, size_t stride,
                   const char *otherwise);

#endif
