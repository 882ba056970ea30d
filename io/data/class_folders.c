/* class_folders.c - finds the images of a part of a folder, and their classes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "folder.h"
#include "names.h"

static adj_status too_long(dataset *d, const char *folder)
{
    return io_dataset_fail(d, ADJ_EIO, "data: %.300s: the name is too long", folder);
}

/* Fails with the reason why the folder could not be listed (errno). */
static adj_status cannot_list(dataset *d, const char *folder)
{
    return io_dataset_fail(d, errno == ENOMEM ? ADJ_ENOMEM : ADJ_EIO, "data: %.300s: %s", folder,
                           strerror(errno));
}

/* ---- folders ---- */

/* Returns the next entry but . and .., or NULL. */
static const struct dirent *next_entry(DIR *d)
{
    const struct dirent *e = readdir(d);
    while (e != NULL && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0))
        e = readdir(d);
    return e;
}

typedef enum { IMAGES, FOLDERS } entry_kind;

/* Lists the images of a class folder, or the folders in a folder of classes, that are not ignored,
 * and counts what else is there. Returns 0 if memory is short or the folder is unreadable (errno).
 */
static int list_entries(const char *folder, entry_kind wanted, string_list *names, left_out *l)
{
    char path[PATH_MAX];
    int is_good = 1;
    DIR *d = opendir(folder);

    if (d == NULL)
        return 0;
    for (const struct dirent *e; is_good && (e = next_entry(d)) != NULL;) {
        const int is_image = wanted == IMAGES && is_image_name(e->d_name);
        const int is_subfolder = !is_image && io_is_class_folder(folder, e, path);
        if (is_image || (is_subfolder && wanted == FOLDERS))
            is_good = strings_add(names, e->d_name);
        else if (is_ignored_name(e->d_name))
            l->ignored++;
        else if (wanted == FOLDERS)
            l->outside++;
        else if (is_subfolder)
            l->inside++;
        else
            left_out_file(l, e->d_name);
    }
    closedir(d);
    strings_sort(names);
    return is_good;
}

/* ---- classes ---- */

/* The listing of a part. */
typedef struct {
    dataset *d;
    const char *folder; /* folder of the data set */
    adj_dataset_part part;
    part_folders parts;
    char path[PATH_MAX]; /* folder that contains the split's class folders */
    string_list *paths;  /* paths of images */
    left_out left;
} listing;

/* Returns the folders of parts in path, or NULL if path is itself the folder of a part. */
static const part_folders *parts_in(const listing *p, const char *path)
{
    return strcmp(p->folder, path) == 0 ? &p->parts : NULL;
}

/* Lists the class folders in path, the data set's folder or a part's, and counts what else is
 * there. The data set's folder has no classes beside a folder of the training split. A folder train
 * without class folders is a class (a vehicle); such a folder test holds unlabeled images. */
static int list_class_folders(const listing *p, const char *path, string_list *names, left_out *l)
{
    const part_folders *parts = parts_in(p, path);
    const int has_classes = parts == NULL || parts->name[ADJ_TRAIN][0] == '\0';
    string_list all = {0};
    int is_good = list_entries(path, FOLDERS, &all, l);

    for (int64_t i = 0; i < all.n && is_good; i++) {
        const char *name = strings_at(&all, i);
        const int part = parts != NULL ? io_part_of_name(name) : -1;
        const int is_found = part >= 0 && parts->name[part][0] != '\0';
        if (is_found && strcmp(parts->name[part], name) == 0)
            continue;
        if (part >= 0 && part != ADJ_TRAIN && !is_found)
            left_out_folder(l, WITHOUT_CLASSES, name);
        else if (is_found || !has_classes)
            left_out_folder(l, NO_PART, name);
        else
            is_good = strings_add(names, name);
    }
    strings_free(&all);
    return is_good;
}

/* True if the class has images in some part. */
static int has_images_anywhere(const listing *p, const char *name)
{
    char folder[PATH_MAX], path[PATH_MAX];
    int has = 0;
    for (int part = ADJ_TRAIN; part <= ADJ_VALIDATION && !has; part++)
        has = io_find_part(p->folder, &p->parts, (adj_dataset_part)part, folder) &&
              io_join(path, folder, name) && is_folder(path) && io_has_images(path);
    return has;
}

/* The classes that labels may name. */
typedef struct {
    string_list names;
    int are_numbers; /* a class folder's name is its label */
    int64_t n, next; /* next: where the search in names goes on */
} class_list;

/* Lists the class folders of path that hold images in some part. */
static adj_status list_classes(const listing *p, const char *path, string_list *names)
{
    dataset *d = p->d;
    string_list all = {0};
    left_out uncounted = {0};
    adj_status status = ADJ_OK;

    if (!list_class_folders(p, path, &all, &uncounted))
        status = cannot_list(d, path);
    for (int64_t i = 0; i < all.n && status == ADJ_OK; i++)
        if (has_images_anywhere(p, strings_at(&all, i)) && !strings_add(names, strings_at(&all, i)))
            status = io_dataset_no_memory(d);
    strings_free(&all);
    if (status == ADJ_OK && names->n > ADJ_MAX_CLASSES)
        return io_dataset_fail(
            d, ADJ_EIO, "data: %s: number of classes is out of range (got %lld, expected 2 to %d)",
            path, (long long)names->n, ADJ_MAX_CLASSES);
    return status;
}

/* Returns a name's number, 0 to n-1, or -1. */
static int64_t number_of(const char *name, int64_t n)
{
    char *end;
    const long long value = name[0] >= '0' && name[0] <= '9' ? strtoll(name, &end, 10) : -1;
    return value >= 0 && *end == '\0' && value < n ? value : -1;
}

/* Matches class folders to classes without names: folders are named by the labels, or there is one
 * for each class, in order. */
static adj_status match_numbers(const listing *p, class_list *c)
{
    dataset *d = p->d;
    int64_t n_number = 0;
    for (int64_t i = 0; i < c->names.n; i++)
        n_number += number_of(strings_at(&c->names, i), d->like->classes) >= 0;
    c->are_numbers = n_number == c->names.n;
    c->n = d->like->classes;
    if (c->are_numbers || c->names.n == c->n)
        return ADJ_OK;
    return io_dataset_fail(d, ADJ_EIO,
                           "data: %s: number of class folders does not fit (got %lld, expected one "
                           "for each of %lld classes without names, or names from 0 to %lld)",
                           p->path, (long long)c->names.n, (long long)c->n, (long long)c->n - 1);
}

/* Finds the classes: those of like, else the training split's, which become d's names. */
static adj_status settle_names(const listing *p, class_list *c)
{
    dataset *d = p->d;
    char path[PATH_MAX];

    if (d->like != NULL && d->like->class_names != NULL) {
        while (c->n < d->like->classes && strings_add(&c->names, d->like->class_names[c->n]))
            c->n++;
        return c->n == d->like->classes ? ADJ_OK : io_dataset_no_memory(d);
    }
    const int is_own = d->like != NULL || !io_find_part(p->folder, &p->parts, ADJ_TRAIN, path);
    adj_status status = list_classes(p, is_own ? p->path : path, &c->names);
    if (status != ADJ_OK)
        return status;
    if (d->like != NULL)
        return match_numbers(p, c);
    c->n = c->names.n;
    return io_dataset_copy_names(d, (const char *const *)c->names.at, (int)c->n);
}

/* Returns the label of a class folder, or -1. Folders come sorted, and names mostly are. */
static int64_t find_class(class_list *c, const char *name)
{
    if (c->are_numbers)
        return number_of(name, c->n);
    for (int64_t i = 0; i < c->n; i++) {
        const int64_t at = (c->next + i) % c->n;
        if (strcmp(strings_at(&c->names, at), name) == 0)
            return c->next = at;
    }
    return -1;
}

static adj_status unknown_class(const listing *p, const char *name, const class_list *c)
{
    char expected[200] = "";
    int64_t i = 0;

    for (; i < c->n && strlen(expected) + strlen(strings_at(&c->names, i)) + 8 < sizeof expected;
         i++)
        c_append(expected, sizeof expected, "%s%s", i > 0 ? ", " : "", strings_at(&c->names, i));
    return io_dataset_fail(p->d, ADJ_EIO, "data: %.120s: unknown class %.80s (expected %s%s)",
                           p->path, name, expected, i < c->n ? ", ..." : "");
}

/* ---- images ---- */

static adj_status add_label(listing *p, int32_t label)
{
    dataset *d = p->d;
    if (d->public.n == INT32_MAX)
        return io_dataset_fail(d, ADJ_EIO, "data: more than %d images", INT32_MAX);
    int32_t *labels = with_room(d->labels, d->public.n, sizeof *labels);
    if (labels == NULL)
        return io_dataset_no_memory(d);
    d->labels = labels;
    d->labels[d->public.n++] = label;
    return ADJ_OK;
}

static adj_status add_images(listing *p, const char *folder, const string_list *names,
                             int32_t label)
{
    char path[PATH_MAX];
    adj_status status = ADJ_OK;

    for (int64_t i = 0; i < names->n && status == ADJ_OK; i++) {
        if (!io_join(path, folder, strings_at(names, i)))
            status = too_long(p->d, folder);
        else if (!strings_add(p->paths, path))
            status = io_dataset_no_memory(p->d);
        else
            status = add_label(p, label);
    }
    return status;
}

/* Adds the images of the class folder name, unless there are none. */
static adj_status add_class(listing *p, const char *name, class_list *c)
{
    char path[PATH_MAX];
    string_list images = {0};
    adj_status status = io_join(path, p->path, name) ? ADJ_OK : too_long(p->d, p->path);

    if (status == ADJ_OK && !list_entries(path, IMAGES, &images, &p->left))
        status = cannot_list(p->d, path);
    if (status == ADJ_OK && images.n == 0)
        left_out_folder(&p->left, WITHOUT_IMAGES, name);
    if (status == ADJ_OK && images.n > 0) {
        const int64_t label = find_class(c, name);
        status =
            label >= 0 ? add_images(p, path, &images, (int32_t)label) : unknown_class(p, name, c);
    }
    strings_free(&images);
    return status;
}

/* Adds the classes of the part. Of the training split, also counts what lies beside the folders of
 * parts. */
static adj_status add_classes(listing *p, class_list *c)
{
    string_list names = {0};
    adj_status status = ADJ_OK;

    if (!list_class_folders(p, p->path, &names, &p->left))
        status = cannot_list(p->d, p->path);
    for (int64_t i = 0; i < names.n && status == ADJ_OK; i++)
        status = add_class(p, strings_at(&names, i), c);
    if (status == ADJ_OK && p->part == ADJ_TRAIN && parts_in(p, p->path) == NULL &&
        !list_class_folders(p, p->folder, &names, &p->left))
        status = cannot_list(p->d, p->folder);
    left_out_text(&p->left, p->d->public.left_out);
    strings_free(&names);
    return status;
}

adj_status io_list_classes(dataset *d, const char *folder, adj_dataset_part part,
                           string_list *paths)
{
    listing *p = calloc(1, sizeof *p);
    class_list classes = {0};
    adj_status status = ADJ_OK;

    if (p == NULL)
        return io_dataset_no_memory(d);
    p->d = d;
    p->folder = folder;
    p->part = part;
    p->paths = paths;
    io_find_parts(folder, &p->parts);
    if (!io_find_part(folder, &p->parts, part, p->path))
        status = io_dataset_fail(d, ADJ_EIO, "data: %.300s: cannot be read", folder);
    if (status == ADJ_OK)
        status = settle_names(p, &classes);
    if (status == ADJ_OK)
        status = add_classes(p, &classes);
    strings_free(&classes.names);
    free(p);
    return status;
}
