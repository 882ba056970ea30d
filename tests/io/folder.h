/* folder.h - a temporary folder for tests that read and write files, removed at the end. */
#ifndef TESTS_IO_FOLDER_H
#define TESTS_IO_FOLDER_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

/* With all that is in it. */
static inline void folder_remove(const folder *f)
{
    temporary t;
    memcpy(t.s, f->path, sizeof t.s);
    temporary_remove(&t);
}

/* ---- the folder of the running test, for suites with .init = enter_folder, .fini = leave_folder
 * ---- */

static folder here;

static inline void enter_folder(void) { here = folder_new(); }
static inline void leave_folder(void) { folder_remove(&here); }

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

/* Reads a file that is shorter than the room and ends it with 0. Returns its length. */
static inline size_t get_file(const char *path, void *bytes, size_t room)
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    const size_t n = fread(bytes, 1, room, f);
    cr_assert_lt(n, room, "%s", path);
    fclose(f);
    ((char *)bytes)[n] = '\0';
    return n;
}

static inline int same_file(const char *a, const char *b)
{
    char command[900];
    snprintf(command, sizeof command, "cmp -s '%s' '%s'", a, b);
    return system(command) == 0; // NOLINT(cert-env33-c): the tests' own words
}

/* Writes a file of the folder, and makes the folders that its name has. */
static inline void put_in(const folder *f, const char *name, const void *bytes, size_t n)
{
    file_name path = in_folder(f, name);
    for (char *slash = path.s + strlen(f->path); (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        (void)mkdir(path.s, 0700);
        *slash = '/';
    }
    if (path.s[strlen(path.s) - 1] != '/')
        put_file(path.s, bytes, n);
}

#endif
