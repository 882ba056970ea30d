/* files.c - see files.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "io/data/image_name.h"

enum { MAX_DEPTH = 16 }; /* most nested folders, as a link may form a loop */

static int make_room(file_list *list)
{
    if (list->n == list->room) {
        int64_t room = list->room > 0 ? 2 * list->room : 64;
        char **more = realloc(list->path, (size_t)room * sizeof *more);
        if (more != NULL) {
            list->path = more;
            list->room = room;
        }
    }
    return list->n < list->room;
}

static adj_status append(file_list *list, const char *path, adj_error *error)
{
    if (!make_room(list) || (list->path[list->n] = strdup(path)) == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    list->n++;
    return ADJ_OK;
}

static adj_status add_folder(file_list *list, const char *folder, int depth, adj_error *error);

static adj_status add_entry(file_list *list, const char *folder, const char *name, int depth,
                            adj_error *error)
{
    size_t length = strlen(folder) + strlen(name) + 2;
    char *path = malloc(length);
    if (path == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    snprintf(path, length, "%s/%s", folder, name);
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
    const int64_t before = list->n;
    if (!is_folder(path))
        return append(list, path, error);
    adj_status status = add_folder(list, path, 0, error);
    if (status == ADJ_OK && list->n == before)
        status =
            adj_error_set(error, ADJ_EIO,
                          "%s: no images in this folder (expected files " IMAGE_ENDINGS ")", path);
    return status;
}

void files_free(file_list *list)
{
    for (int64_t i = 0; i < list->n; i++)
        free(list->path[i]);
    free(list->path);
    *list = (file_list){0};
}
