/* folder.c - see folder.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "class_folders.h"
#include "folder.h"
#include "image.h"
#include "layouts.h"
#include "part_folder.h"
#include "string_list.h"

/* The files of a data set, their paths in its order. */
struct image_files {
    string_list paths;
    adj_image_opts options; /* how they are read */
};

int io_folder_has(const char *folder, adj_dataset_part part)
{
    char path[PATH_MAX];
    part_folders parts;
    io_find_parts(folder, &parts);
    return io_find_part(folder, &parts, part, path);
}

static adj_status out_of_memory(dataset *d)
{
    return io_dataset_fail(d, ADJ_ENOMEM, "data: out of memory");
}

static void free_files(void *user)
{
    struct image_files *files = user;
    strings_free(&files->paths);
    free(files);
}

static adj_status read_file(void *user, int64_t i, float *pixels, adj_error *error)
{
    const struct image_files *files = user;
    return adj_image_read(strings_at(&files->paths, i), &files->options, pixels, NULL, error);
}

adj_status io_folder_read(dataset *d, const char *folder, adj_dataset_part part)
{
    d->files = calloc(1, sizeof *d->files);
    if (d->files == NULL)
        return out_of_memory(d);
    io_dataset_use_source(d,
                          &(adj_source){.read = read_file, .free = free_files, .user = d->files});
    return io_list_classes(d, folder, part, &d->files->paths);
}

void io_folder_keep(dataset *d, const int64_t *keep, int64_t kept)
{
    string_list *paths = &d->files->paths;
    for (int64_t j = 0; j < kept; j++)
        paths->at[j] = paths->at[keep[j]];
    paths->n = kept;
}

/* ---- headers ---- */

enum { FIRST_BYTES = 1 << 16 }; /* in which nearly every header ends */

/* The header of a file, of which no more is read than need be. */
static adj_status read_header(const char *path, image_header *header, adj_error *error)
{
    uint8_t *bytes = malloc(FIRST_BYTES);
    size_t n = 0;
    int64_t size;
    int fd;
    const char *why = bytes != NULL ? io_open(path, &fd, &size) : "out of memory";

    if (why != NULL) {
        free(bytes);
        return adj_error_set(error, ADJ_EIO, "image: %.300s: %s", path, why);
    }
    ssize_t got;
    while (n < FIRST_BYTES && (got = read(fd, bytes + n, FIRST_BYTES - n)) > 0)
        n += (size_t)got;
    close(fd);
    adj_status status = io_image_header(bytes, n, path, header, error);
    free(bytes);
    if (status != ADJ_EARG || n < FIRST_BYTES)
        return status;
    status = io_image_load(path, &bytes, &n, error);
    if (status == ADJ_OK)
        status = io_image_header(bytes, n, path, header, error);
    free(bytes);
    return status;
}

/* Of all files, in threads; a size of 0: it could not be read. */
static void read_headers(const string_list *paths, image_size *sizes)
{
#pragma omp parallel for schedule(dynamic, 16)
    for (int64_t i = 0; i < paths->n; i++) {
        image_header header;
        if (read_header(strings_at(paths, i), &header, NULL) == ADJ_OK)
            sizes[i] = header.size;
    }
}

/* A path's last two names: the class and the file. */
static const char *short_name(const char *path)
{
    const char *at = path + strlen(path);
    for (int slashes = 0; at > path; at--)
        if (at[-1] == '/' && ++slashes == 2)
            break;
    return at;
}

enum { MAX_TOLD = 3, TOLD_BYTES = 80 }; /* file names behind the first, and bytes of each */

/* Fails with why file first cannot be read; of the others behind it that cannot, how many they are
 * and the names of a few. */
static adj_status tell_broken(dataset *d, const image_size *sizes, int64_t first, const char *why)
{
    const string_list *paths = &d->files->paths;
    char names[MAX_TOLD * (TOLD_BYTES + 3)] = "";
    int64_t others = 0;
    size_t used = 0;

    for (int64_t i = first + 1; i < paths->n; i++)
        if (sizes[i].h == 0 && others++ < MAX_TOLD)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%.*s", used > 0 ? ", " : "",
                                 TOLD_BYTES, short_name(strings_at(paths, i)));
    if (others == 0)
        return io_dataset_fail(d, ADJ_EIO, "%s", why);
    return io_dataset_fail(d, ADJ_EIO, "%s, and %lld more of %lld files cannot be read: %s%s", why,
                           (long long)others, (long long)paths->n, names,
                           others > MAX_TOLD ? ", ..." : "");
}

/* The first file, by number, that cannot be read is read again, for the reason. */
static adj_status check_headers(dataset *d, image_size *sizes)
{
    const string_list *paths = &d->files->paths;
    for (int64_t i = 0; i < paths->n; i++) {
        image_header header;
        adj_error error = {0};
        if (sizes[i].h > 0)
            continue;
        if (read_header(strings_at(paths, i), &header, &error) != ADJ_OK)
            return tell_broken(d, sizes, i, error.message);
        sizes[i] = header.size;
    }
    return ADJ_OK;
}

static adj_status settle_channels(dataset *d, const image_size *sizes)
{
    const string_list *paths = &d->files->paths;
    for (int64_t i = 1; i < paths->n; i++)
        if (sizes[i].c != sizes[0].c)
            return io_dataset_fail(d, ADJ_EIO,
                                   "data: %.160s has %lld channel%s, %.160s has %lld (expected the "
                                   "same in all files, or a given number of channels: 1, 3 or 4)",
                                   strings_at(paths, i), (long long)sizes[i].c,
                                   sizes[i].c > 1 ? "s" : "", strings_at(paths, 0),
                                   (long long)sizes[0].c);
    return ADJ_OK;
}

static adj_status settle_size(dataset *d, const image_size *sizes, const adj_dataset_opts *o)
{
    image_size to = io_wanted_size(sizes[0], o);
    const string_list *paths = &d->files->paths;

    if ((o->like == NULL || o->like->h == 0) && o->c == 0 && settle_channels(d, sizes) != ADJ_OK)
        return ADJ_EIO;
    for (int64_t i = 0; i < paths->n; i++) {
        if (sizes[i].h == to.h && sizes[i].w == to.w)
            continue;
        d->public.resized++;
        if (o->resize == ADJ_RESIZE_ERROR)
            return io_dataset_fail(d, ADJ_EIO,
                                   "data: %.300s: size (got %lldx%lld, expected %lldx%lld)",
                                   strings_at(paths, i), (long long)sizes[i].h,
                                   (long long)sizes[i].w, (long long)to.h, (long long)to.w);
    }
    d->public.h = to.h;
    d->public.w = to.w;
    d->public.c = to.c;
    d->files->options = (adj_image_opts){.h = to.h, .w = to.w, .c = to.c};
    memcpy(d->files->options.background, o->background, sizeof o->background);
    return ADJ_OK;
}

adj_status io_folder_show(dataset *d, const adj_dataset_opts *o)
{
    image_size *sizes = calloc((size_t)d->public.n, sizeof *sizes);
    if (sizes == NULL)
        return out_of_memory(d);
    read_headers(&d->files->paths, sizes);
    adj_status status = check_headers(d, sizes);
    if (status == ADJ_OK)
        status = settle_size(d, sizes, o);
    free(sizes);
    return status;
}
