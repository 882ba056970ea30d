/* memory_file.h - bytes as a file that has a name but no place on a disk, and a folder whose names
 * lead to such files. */
#ifndef TESTS_FUZZ_MEMORY_FILE_H
#define TESTS_FUZZ_MEMORY_FILE_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/must.h"
#include "tests/temporary.h"

typedef struct {
    int fd;
    char path[40];
} memory_file;

static inline memory_file memory_file_new(const void *bytes, size_t n)
{
    memory_file f = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};
    if (f.fd < 0 || write(f.fd, bytes, n) != (ssize_t)n)
        abort();
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    return f;
}

static inline void memory_file_free(const memory_file *f) { close(f->fd); }

/* ---- a folder, made once a process ---- */

/* The folder, removed when the process ends well. */
static char linked_path[128];

static inline void linked_folder_remove(void) { rmdir(linked_path); }

static inline const char *linked_folder(void)
{
    if (linked_path[0] == '\0') {
        snprintf(linked_path, sizeof linked_path, "%s", temporary_folder().s);
        must(linked_path[0] != '\0');
        atexit(linked_folder_remove);
    }
    return linked_path;
}

static inline void put_link(const char *name, const memory_file *to)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", linked_folder(), name);
    must(symlink(to->path, path) == 0);
}

static inline void remove_link(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", linked_folder(), name);
    unlink(path);
}

#endif
