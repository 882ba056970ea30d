/* check.h - for the programs that mpirun starts: counts and prints what is wrong. */
#ifndef TESTS_MPI_CHECK_H
#define TESTS_MPI_CHECK_H

#include <stdarg.h>
#include <stdio.h>

static int n_wrong;

static inline void check(int is_right, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void check(int is_right, const char *format, ...)
{
    va_list args;
    if (is_right)
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    n_wrong++;
}

#endif
