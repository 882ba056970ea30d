/* tune_folder.h - the folder in which a test of tuning keeps its file. */
#ifndef TESTS_TUNE_FOLDER_H
#define TESTS_TUNE_FOLDER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/report.h"
#include "tests/temporary.h"

static char folder[64], file[128];

static void make_folder(void)
{
    memcpy(folder, temporary_folder().s, sizeof folder);
    cr_assert_str_not_empty(folder);
    snprintf(file, sizeof file, "%s/tune", folder);
}

static void remove_folder(void)
{
    char partial[160];
    snprintf(partial, sizeof partial, "%s.partial", file);
    unlink(partial);
    unlink(file);
    cr_assert_eq(rmdir(folder), 0, "something is left in %s", folder);
}

/* The file's bytes, malloc'ed and ended by 0. */
static inline char *read_text(size_t *n)
{
    FILE *f = fopen(file, "r");
    cr_assert_not_null(f);
    char *text = calloc(1, 1 << 16);
    *n = fread(text, 1, (1 << 16) - 1, f);
    fclose(f);
    return text;
}

static inline void write_text(const char *text, size_t n)
{
    FILE *f = fopen(file, "w");
    cr_assert_eq(fwrite(text, 1, n, f), n);
    cr_assert_eq(fclose(f), 0);
}

static adj_exec_opts tuned(void)
{
    return (adj_exec_opts){.tune = 1, .tune_file = file, .tune_seconds = 1, .threads = 1};
}

#endif
