/* cache.c - see cache.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"

/* Returns a variable's absolute path, as required by the XDG base directory specification, or NULL.
 */
static const char *folder_of(const char *variable)
{
    const char *path = getenv(variable);
    return path != NULL && path[0] == '/' ? path : NULL;
}

const char *tune_cache(char path[CACHE_PATH])
{
    const char *file = getenv("ADJOINT_TUNE"), *cache = folder_of("XDG_CACHE_HOME"),
               *home = folder_of("HOME");
    if ((file != NULL && file[0] != '\0') || (cache == NULL && home == NULL))
        return NULL;
    int n = snprintf(path, CACHE_PATH, "%s%s/adjoint/", cache != NULL ? cache : home,
                     cache != NULL ? "" : "/.cache");
    return n < CACHE_PATH ? path : NULL;
}

int tuning_is_off(void)
{
    const char *file = getenv("ADJOINT_TUNE");
    return file != NULL && strcmp(file, "off") == 0;
}
