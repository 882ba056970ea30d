/* environment.c - see environment.h.
 *
 * By default libgomp's threads spin for long before they sleep, and keep a processor from other
 * processes. The loops of a step follow each other closely, so a short spin is enough: faster
 * beside busy processes, about as fast alone. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "environment.h"

/* ---- the tune file ---- */

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

/* ---- waiting threads ---- */

static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"};
enum { N_NAME = sizeof names / sizeof *names };

static const char *value_of(int i)
{
    const char *value = getenv(names[i]);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

void spin_shortly(char **argv)
{
    for (int i = 0; i < N_NAME; i++)
        if (getenv(names[i]) != NULL)
            return;
    char path[PATH_MAX]; /* the process is named after it, so /proc/self/exe itself does not do */
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || (size_t)n >= sizeof path - 1 || setenv("GOMP_SPINCOUNT", "10000", 1) != 0)
        return;
    path[n] = '\0';
    (void)execv(path, argv);
}

const char *spin_setting(char *text, int size)
{
    for (int i = 0; i < N_NAME; i++)
        if (value_of(i) != NULL) {
            snprintf(text, (size_t)size, "%s=%s", names[i], value_of(i));
            return text;
        }
    return NULL;
}
