/* sample.h - small files of other programs, in tests/io/files. */
#ifndef TESTS_IO_SAMPLE_H
#define TESTS_IO_SAMPLE_H

#include <stdint.h>

#include "io/folder.h"

/* The bytes of such a file. */
typedef struct {
    uint8_t bytes[1024];
    size_t n;
} sample;

static inline sample sample_of(const char *name)
{
    sample s;
    char path[80];
    snprintf(path, sizeof path, "tests/io/files/%s", name);
    s.n = get_file(path, s.bytes, sizeof s.bytes);
    return s;
}

/* Write a copy of it in a folder, as put_in does; and of its first n bytes. */
static inline void put_sample(const folder *f, const char *name, const char *of)
{
    const sample s = sample_of(of);
    put_in(f, name, s.bytes, s.n);
}

static inline void put_start(const folder *f, const char *name, const char *of, size_t n)
{
    put_in(f, name, sample_of(of).bytes, n);
}

#endif
