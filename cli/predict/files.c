/* files.c - see predict.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "predict.h"
#include "io/data/names.h"

enum { MAX_DEPTH = 16 }; /* most nested folders, as a link may form a loop */

static void append(file_list *list, const char *path)
{
    if (!strings_add(&list->paths, path))
        or_exit(NULL);
}

static int add_folder(file_list *list, const char *folder, int depth);

/* Adds an entry of a folder; returns 0 after a complaint. */
static int add_entry(file_list *list, const char *folder, const char *name, int depth)
{
    char *path = NULL;
    int is_good = 1;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        or_exit(NULL);
    if (is_image_name(name) && !is_folder(path))
        append(list, path);
    else if (!is_ignored_name(name) && !is_folder(path))
        list->left_out++;
    else if (!is_ignored_name(name) && depth < MAX_DEPTH)
        is_good = add_folder(list, path, depth + 1);
    free(path);
    return is_good;
}

static int add_folder(file_list *list, const char *folder, int depth)
{
    struct dirent **entry = NULL;
    int is_good = 1, n = scandir(folder, &entry, NULL, alphasort);

    if (n < 0)
        return complain(0, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        is_good = is_good && add_entry(list, folder, entry[i]->d_name, depth);
        free(entry[i]);
    }
    free(entry);
    return is_good;
}

int files_add(file_list *list, const char *path)
{
    const int64_t before = list->paths.n;
    if (is_folder(path))
        return add_folder(list, path, 0) &&
               (list->paths.n > before ||
                complain(0, "%s: no images in this folder (expected files " IMAGE_ENDINGS ")",
                         path));
    append(list, path);
    return 1;
}
