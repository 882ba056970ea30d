/* linked_folder.h - a folder whose names lead to memory files, made once a process. */
#ifndef TESTS_FUZZ_LINKED_FOLDER_H
#define TESTS_FUZZ_LINKED_FOLDER_H

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/memory_file.h"
#include "tests/temporary.h"

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
