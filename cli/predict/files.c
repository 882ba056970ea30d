/* files.c - see predict.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "predict.h"
#include "io/data/names.h"

enum { MAX_DEPTH = 16 }; /* most nested folders, as a link may form a loop */

static adj_status append(file_list *list, const char *path, adj_error *error)
{
    return strings_add(&list->paths, path) ? ADJ_OK
                                           : adj_error_set(error, ADJ_ENOMEM, "out of memory");
}

static adj_status add_folder(file_list *list, const char *folder, int depth, adj_error *error);

static adj_status add_entry(file_list *list, const char *folder, const char *name, int depth,
                            adj_error *error)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    adj_status status = ADJ_OK;
    if (is_image_name(name) && !is_folder(path))
        status = append(list, path, error);
    else if (!is_ignored_name(name) && !is_folder(path))
        list->left_out++;
    else if (!is_ignored_name(name) && depth < MAX_DEPTH)
        status = add_folder(list, path, depth + 1, error);
    free(path);
    return status;
}

static adj_status add_folder(file_list *list, const char *folder, int depth, adj_error *error)
{
    struct dirent **entry = NULL;
    adj_status status = ADJ_OK;
    int n = scandir(folder, &entry, NULL, alphasort);

    if (n < 0)
        return adj_error_set(error, ADJ_EIO, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (status == ADJ_OK)
            status = add_entry(list, folder, entry[i]->d_name, depth, error);
        free(entry[i]);
    }
    free(entry);
    return status;
}

adj_status files_add(file_list *list, const char *path, adj_error *error)
{
    const int64_t before = list->paths.n;
    if (!is_folder(path))
        return append(list, path, error);
    adj_status status = add_folder(list, path, 0, error);
    if (status == ADJ_OK && list->paths.n == before)
        status =
            adj_error_set(error, ADJ_EIO,
                          "%s: no images in this folder (expected files " IMAGE_ENDINGS ")", path);
    return status;
}
