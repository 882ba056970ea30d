/* memory_file.h - bytes as a file that has a name but no place on a disk. */
#ifndef TESTS_FUZZ_MEMORY_FILE_H
#define TESTS_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/must.h"

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

#endif
