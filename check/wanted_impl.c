/* wanted_impl.c - see wanted_impl.h. */
#include "wanted_impl.h"

#include <stdio.h>
#include <string.h>

int is_wanted_impl(const char *implementation, const char *wanted)
{
    return wanted == NULL || strstr(implementation, wanted) != NULL;
}

void say_other_impl(char text[OTHER_IMPL], const char *wanted, const char *backend,
                    const char *implementation)
{
    int n = snprintf(text, OTHER_IMPL, "no implementation's name contains \"%.60s\"", wanted);
    if (implementation[0] != '\0')
        snprintf(text + n, OTHER_IMPL - (size_t)n, "; ran %.30s %.60s", backend, implementation);
    else
        snprintf(text + n, OTHER_IMPL - (size_t)n, "; no kernel computes it");
}
