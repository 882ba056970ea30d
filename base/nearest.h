/* nearest.h - "did you mean": the name with the smallest edit distance. It needs nothing of the
 * graph's and is compiled into the library and into the tool, each with its own copy. */
#ifndef ADJ_NEAREST_H
#define ADJ_NEAREST_H

#include <stddef.h>

/* The one of n names (at stride bytes from each other, each a const char *) that is near name: it
 * differs in at most a third of name's letters (in one of up to five), two neighbors in the wrong
 * order being one difference, or begins with all of them, two at least; or name is it with a dash
 * and more behind. Dashes in front do not count. NULL: none is. */
const char *nearest_name(const char *name, const void *names, int n, size_t stride);

typedef struct {
    char s[384];
} guess;
/* " (did you mean NAME?)" of the name that is near; without one " (OTHERWISE)", or "" where that is
 * NULL. */
guess did_you_mean(const char *name, const void *names, int n, size_t stride,
                   const char *otherwise);

#endif
