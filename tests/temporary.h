/* temporary.h - unique names of temporary files for tests, in TMPDIR, or in /tmp if it is unset or
 * too long. */
#ifndef TESTS_TEMPORARY_H
#define TESTS_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    char s[64];
} temporary;

static inline temporary temporary_pattern(void)
{
    const char *folder = getenv("TMPDIR");
    temporary t;
    if (folder == NULL || folder[0] == '\0' ||
        snprintf(t.s, sizeof t.s, "%s/adjoint-XXXXXX", folder) >= (int)sizeof t.s)
        snprintf(t.s, sizeof t.s, "/tmp/adjoint-XXXXXX");
    return t;
}

/* A new folder, or an empty new file; "" if there can be none. */
static inline temporary temporary_folder(void)
{
    temporary t = temporary_pattern();
    if (mkdtemp(t.s) == NULL)
        t.s[0] = '\0';
    return t;
}

static inline temporary temporary_file(void)
{
    temporary t = temporary_pattern();
    int fd = mkstemp(t.s);
    if (fd < 0)
        t.s[0] = '\0';
    else
        close(fd);
    return t;
}

/* Removes a folder with all that is in it. */
static inline void temporary_remove(const temporary *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder->s);
    if (system(command) != 0) /* NOLINT(cert-env33-c) */
        abort();
}

/* A file that is gone when it is closed; NULL if there can be none. */
static inline FILE *temporary_stream(void)
{
    temporary t = temporary_pattern();
    int fd = mkstemp(t.s);
    FILE *f = fd >= 0 ? fdopen(fd, "w+") : NULL;
    if (fd >= 0)
        unlink(t.s);
    return f;
}

#endif
