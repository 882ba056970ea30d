/* spin.c - see spin.h.
 *
 * libgomp's threads spin some 300,000 turns for the next loop, milliseconds in which they take a
 * processor from whoever has work. A step's loops follow each other within microseconds. With fewer
 * turns they sleep sooner. Beside a busy process a step then takes a fraction of the time; alone it
 * takes about as long. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "spin.h"

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
