/* folder.c - see folder.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "folder.h"
#include "image.h"
#include "names.h"

/* ---- splits ---- */

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

/* ---- files ---- */

/* The files of a data set, their paths in its order. */
struct image_files {
    string_list paths;
    adj_image_size *sizes;  /* sizes from the headers; NULL before these are read */
    adj_image_opts options; /* options for reading them */
};

int io_folder_has(const char *folder, adj_dataset_part part)
{
    char path[PATH_MAX];
    part_folders parts;
    io_find_parts(folder, &parts);
    return io_find_part(folder, &parts, part, path);
}

static void free_files(void *user)
{
    struct image_files *files = user;
    strings_free(&files->paths);
    free(files->sizes);
    free(files);
}

static adj_status read_image_at(void *user, int64_t i, float *pixels, adj_error *error)
{
    const struct image_files *files = user;
    return adj_image_read(strings_at(&files->paths, i), &files->options, pixels, NULL, error);
}

double io_folder_seconds(const adj_dataset *d)
{
    const int is_folder = origin_of(d)->source.read == read_image_at;
    return is_folder ? ((const dataset *)d)->seconds : 0; /* its first member is public */
}

adj_status io_folder_read(dataset *d, const char *folder, adj_dataset_part part)
{
    d->files = calloc(1, sizeof *d->files);
    if (d->files == NULL)
        return io_dataset_no_memory(d);
    d->origin.source = (adj_source){.read = read_image_at, .free = free_files, .user = d->files};
    return io_list_classes(d, folder, part, &d->files->paths);
}

/* Counts the images of another size than the data set's, and those that gain or lose color. Before
 * the size is settled, both are 0. */
static void count_changed(dataset *d)
{
    const adj_image_size *sizes = d->files->sizes;
    d->origin.resized = d->origin.recolored = 0;
    for (int64_t i = 0; sizes != NULL && d->public.size.h > 0 && i < d->files->paths.n; i++) {
        d->origin.resized += !same_sides(sizes[i], d->public.size);
        d->origin.recolored += io_is_color(sizes[i].c) != io_is_color(d->public.size.c);
    }
}

void io_folder_keep(dataset *d, const int64_t *keep, int64_t kept)
{
    adj_image_size *sizes = d->files->sizes;
    for (int64_t j = 0; sizes != NULL && j < kept; j++)
        sizes[j] = sizes[keep[j]];
    strings_keep(&d->files->paths, keep, kept);
    count_changed(d);
}

const char *io_folder_path(const dataset *d, int64_t i) { return strings_at(&d->files->paths, i); }

/* ---- headers ---- */

enum { FIRST_BYTES = 1 << 16 }; /* in which nearly every header ends */

/* Reads a file up to the end of its header and returns the header. */
static adj_status read_image_header(const char *path, image_header *header, adj_error *error)
{
    static const int64_t most[] = {FIRST_BYTES, IMAGE_MAX_BYTES};
    adj_status status = ADJ_EARG;
    for (int i = 0; i < 2 && status == ADJ_EARG; i++) {
        uint8_t *bytes;
        size_t n;
        status = io_image_load(path, most[i], &bytes, &n, error);
        if (status == ADJ_OK)
            status = io_image_header(bytes, n, path, header, error);
        free(bytes);
    }
    return status;
}

/* Reads the headers of all files, in threads. */
static void read_headers(const string_list *paths, adj_image_size *sizes, reading *each)
{
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t i = 0; i < paths->n; i++) {
        image_header header = {0};
        adj_error error = {0};
        const adj_status status = read_image_header(strings_at(paths, i), &header, &error);
        if (status != ADJ_OK)
            io_reading_set(&each[i], status == ADJ_EARG ? ADJ_EIO : status, &error);
        sizes[i] = header.size;
    }
}

/* Returns 3 if at least half of the images are in color, else 1. */
static int64_t most_channels(const dataset *d)
{
    int64_t in_color = 0, n = 0;
    for (int64_t i = 0; i < d->public.n; i++)
        if (d->readings[i].status == ADJ_OK) {
            in_color += io_is_color(d->files->sizes[i].c);
            n++;
        }
    return 2 * in_color >= n ? 3 : 1;
}

static adj_status settle_size(dataset *d, const adj_dataset_opts *o)
{
    const adj_image_size *sizes = d->files->sizes;
    int64_t first = 0; /* first file with a readable header */
    while (d->readings[first].status != ADJ_OK)
        first++;
    adj_image_size own = sizes[first];
    own.c = most_channels(d);
    const adj_image_size to = io_wanted_size(own, o);

    for (int64_t i = 0; i < d->public.n; i++)
        if (o->image.resize == ADJ_RESIZE_ERROR && d->readings[i].status == ADJ_OK &&
            !same_sides(sizes[i], to))
            return io_dataset_fail(d, ADJ_EIO,
                                   "data: %.300s: image size differs (got %s, expected %s)",
                                   io_folder_path(d, i), sides_text(sizes[i]).s, sides_text(to).s);
    d->public.size = to;
    d->files->options = (adj_image_opts){.size = to};
    memcpy(d->files->options.background, o->image.background, sizeof o->image.background);
    count_changed(d);
    return ADJ_OK;
}

/* Reads the headers to d->readings. Fails if memory is short or no header could be read. */
static adj_status show_headers(dataset *d)
{
    const int64_t n = d->public.n;
    int64_t good = 0;

    d->readings = calloc((size_t)n, sizeof *d->readings);
    d->files->sizes = calloc((size_t)n, sizeof *d->files->sizes);
    if (d->readings == NULL || d->files->sizes == NULL)
        return io_dataset_no_memory(d);
    read_headers(&d->files->paths, d->files->sizes, d->readings);
    for (int64_t i = 0; i < n; i++)
        good += d->readings[i].status == ADJ_OK;
    return good > 0 ? ADJ_OK : io_settle_broken(d, d->readings, 0);
}

adj_status io_folder_show(dataset *d, const adj_dataset_opts *o)
{
    const int64_t n = d->public.n;
    adj_status status = show_headers(d);
    if (status == ADJ_OK)
        status = settle_size(d, o);
    if (status != ADJ_OK) {
        io_readings_free(d->readings, n);
        d->readings = NULL;
    }
    return status;
}
