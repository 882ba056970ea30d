/* part_folder.c - finds the folder of a data set that holds a part. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/c_locale.h"
#include "folder.h"
#include "names.h"

/* Returns the index into part_names, or -1 for another name. */
static int find_name(const char *name)
{
    for (int i = 0; i < PART_NAMES; i++)
        if (c_strcasecmp(name, part_names[i].name) == 0)
            return i;
    return -1;
}

int io_part_of_name(const char *name)
{
    const int i = find_name(name);
    return i >= 0 ? (int)part_names[i].part : -1;
}

int io_is_class_folder(const char *folder, const struct dirent *e, char path[PATH_MAX])
{
    return e->d_type != DT_REG && !is_ignored_name(e->d_name) && io_join(path, folder, e->d_name) &&
           is_folder(path);
}

int io_has_images(const char *folder)
{
    DIR *d = opendir(folder);
    int has = d == NULL;
    for (struct dirent *e; !has && (e = readdir(d)) != NULL;)
        has = is_image_name(e->d_name);
    if (d != NULL)
        closedir(d);
    return has;
}

/* True if a folder that may be a class lies in folder; also if folder cannot be read. */
static int has_folders(const char *folder)
{
    char path[PATH_MAX];
    DIR *d = opendir(folder);
    int has = d == NULL;
    for (struct dirent *e; !has && (e = readdir(d)) != NULL;)
        has = io_is_class_folder(folder, e, path);
    if (d != NULL)
        closedir(d);
    return has;
}

/* True if name has precedence over the folder that was found for its part. */
static int is_preferred(const char *name, const char *found)
{
    const int a = find_name(name), b = find_name(found);
    return found[0] == '\0' || a < b || (a == b && strcmp(name, found) < 0);
}

void io_find_parts(const char *folder, part_folders *p)
{
    char path[PATH_MAX];
    DIR *d = opendir(folder);

    *p = (part_folders){0};
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        const int i = find_name(e->d_name);
        char *found = i >= 0 ? p->name[part_names[i].part] : NULL;
        if (found != NULL && is_preferred(e->d_name, found) &&
            io_is_class_folder(folder, e, path) && has_folders(path))
            memcpy(found, e->d_name, strlen(e->d_name) + 1);
    }
    if (d != NULL)
        closedir(d);
}

/* True if folder itself has class folders. Beside folders of parts a class folder must hold images:
 * a folder of notes is no training split. */
static int has_classes(const char *folder, const part_folders *p)
{
    const int is_alone = p->name[ADJ_TEST][0] == '\0' && p->name[ADJ_VALIDATION][0] == '\0';
    char path[PATH_MAX];
    DIR *d = opendir(folder);
    int has = d == NULL && errno == EACCES;

    for (struct dirent *e; d != NULL && !has && (e = readdir(d)) != NULL;)
        has = io_part_of_name(e->d_name) < 0 && io_is_class_folder(folder, e, path) &&
              (is_alone || io_has_images(path));
    if (d != NULL)
        closedir(d);
    return has;
}

int io_find_part(const char *folder, const part_folders *p, adj_dataset_part part,
                 char path[PATH_MAX])
{
    if (p->name[part][0] != '\0')
        return io_join(path, folder, p->name[part]);
    if (part != ADJ_TRAIN || strlen(folder) >= PATH_MAX)
        return 0;
    memcpy(path, folder, strlen(folder) + 1);
    return has_classes(folder, p);
}
