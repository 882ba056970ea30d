/* folder.h - a temporary folder for tests that read and write files, removed at the end. */
#ifndef TESTS_IO_FOLDER_H
#define TESTS_IO_FOLDER_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/temporary.h"

typedef struct {
    char path[64];
} folder;

typedef struct {
    char s[400];
} file_name;

static inline folder folder_new(void)
{
    folder f;
    memcpy(f.path, temporary_folder().s, sizeof f.path);
    cr_assert_str_not_empty(f.path);
    return f;
}

static inline file_name in_folder(const folder *f, const char *name)
{
    file_name path;
    snprintf(path.s, sizeof path.s, "%s/%s", f->path, name);
    return path;
}

static inline void folder_remove(const folder *f)
{
    DIR *d = opendir(f->path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        unlink(in_folder(f, e->d_name).s);
    if (d != NULL)
        closedir(d);
    rmdir(f->path);
}

static inline int files_in(const folder *f)
{
    int n = 0;
    DIR *d = opendir(f->path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d != NULL)
        closedir(d);
    return n;
}

static inline void put_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

#endif
