/* safetensors_write.c - writes tensors to a file that is whole or not there.
 *
 * The bytes go to FILE.partial beside the old one, are flushed to the disk, and the new file takes
 * the old one's name. A lock keeps two writers of one file apart. Tensors are written by falling
 * element size and the header is padded with spaces, so that all data is aligned. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "safetensors.h"

static const char partial[] = ".partial";

typedef struct {
    const char *path;
    char *message;
    size_t size;
} place;

static adj_status out_of_memory(const place *p)
{
    return io_fail(p->message, p->size, ADJ_ENOMEM, "safetensors: %.200s: out of memory", p->path);
}

static adj_status system_error(const place *p)
{
    return io_fail(p->message, p->size, ADJ_EIO, "safetensors: %.200s: %s", p->path,
                   strerror(errno));
}

static int64_t tensor_bytes(const adj_tensor *t)
{
    int64_t bytes, elems = adj_shape_elems(t->type.shape);
    size_t each = adj_dtype_size(t->type.dtype);
    if (elems < 0 || each == 0 || __builtin_mul_overflow(elems, (int64_t)each, &bytes))
        return -1;
    return bytes;
}

static json_t *describe(const adj_tensor *t, int64_t begin, int64_t end)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->type.shape.rank; i++)
        json_array_append_new(shape, json_integer(t->type.shape.dim[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_words[t->type.dtype], "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static adj_status add_metadata(const place *p, json_t *header, int n, const adj_metadata *metadata)
{
    json_t *all = json_object();
    for (int i = 0; i < n; i++)
        if (metadata[i].key == NULL || metadata[i].value == NULL ||
            json_object_set_new(all, metadata[i].key, json_string(metadata[i].value)) != 0) {
            json_decref(all);
            return io_fail(p->message, p->size, ADJ_EARG,
                           "safetensors: %.200s: metadata %d is not two UTF-8 strings", p->path, i);
        }
    return json_object_set_new(header, METADATA_KEY, all) == 0 ? ADJ_OK : out_of_memory(p);
}

/* Fills header, and order with the tensors' order in the file. */
static adj_status make_header(const place *p, json_t *header, int n, const adj_tensor *t,
                              int *order)
{
    int64_t end = 0;
    int k = 0;

    for (size_t each = 8; each > 0; each /= 2)
        for (int i = 0; i < n; i++) {
            if (t[i].name == NULL || t[i].data == NULL || tensor_bytes(&t[i]) < 0 ||
                strcmp(t[i].name, METADATA_KEY) == 0 ||
                (each == adj_dtype_size(t[i].type.dtype) && json_object_get(header, t[i].name)))
                return io_fail(p->message, p->size, ADJ_EARG,
                               "safetensors: %.200s: tensor %d: bad name (got %.80s), type or data",
                               p->path, i, t[i].name != NULL ? t[i].name : "none");
            if (adj_dtype_size(t[i].type.dtype) != each)
                continue;
            int64_t begin = end;
            if (__builtin_add_overflow(end, tensor_bytes(&t[i]), &end) ||
                json_object_set_new(header, t[i].name, describe(&t[i], begin, end)) != 0)
                return io_fail(
                    p->message, p->size, ADJ_EARG,
                    "safetensors: %.200s: tensor %d: name is not UTF-8, or too much data", p->path,
                    i);
            order[k++] = i;
        }
    return ADJ_OK;
}

static adj_status write_all(const place *p, int fd, const void *from, int64_t n)
{
    int64_t done = 0;
    while (done < n) {
        size_t want = (size_t)(n - done);
        ssize_t got = write(fd, (const char *)from + done, want < 1 << 30 ? want : 1 << 30);
        if (got < 0 && errno != EINTR)
            return system_error(p);
        done += got > 0 ? got : 0;
    }
    return ADJ_OK;
}

static adj_status write_file(const place *p, int fd, const char *text, const adj_tensor *t, int n,
                             const int *order)
{
    static const char spaces[LENGTH_BYTES] = "        ";
    uint8_t length[LENGTH_BYTES];
    size_t bytes = strlen(text), padding = -bytes % LENGTH_BYTES;

    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (uint8_t)((uint64_t)(bytes + padding) >> (8 * i));
    adj_status status = write_all(p, fd, length, LENGTH_BYTES);
    if (status == ADJ_OK)
        status = write_all(p, fd, text, (int64_t)bytes);
    if (status == ADJ_OK)
        status = write_all(p, fd, spaces, (int64_t)padding);
    for (int k = 0; status == ADJ_OK && k < n; k++)
        status = write_all(p, fd, t[order[k]].data, tensor_bytes(&t[order[k]]));
    if (status == ADJ_OK && fsync(fd) != 0)
        status = system_error(p);
    return status;
}

/* Waits for the lock, but not for ever. 0: it is held, or there are no locks on this file system.
 */
static int lock(int fd)
{
    enum { TRIES = 200, PAUSE = 50 * 1000 * 1000 };
    const struct timespec pause = {0, PAUSE};
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
            return 0;
        nanosleep(&pause, NULL);
    }
    errno = EBUSY;
    return -1;
}

/* The empty file of that name, for this process alone; -1 on failure. The name is always the same,
 * so what a killed process left behind is used by the next. Whoever held the lock before may have
 * renamed the file meanwhile: then it is the finished one, and the name is opened again. */
static int open_partial(const char *name)
{
    struct stat held, named;
    for (;;) {
        int fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (fd < 0)
            return -1;
        int failed = fstat(fd, &held) != 0 || lock(fd) != 0;
        if (!failed && !S_ISREG(held.st_mode)) {
            errno = EEXIST;
            failed = 1;
        }
        int same = !failed && lstat(name, &named) == 0 && named.st_ino == held.st_ino &&
                   named.st_dev == held.st_dev;
        if (same && ftruncate(fd, 0) == 0)
            return fd;
        int error = errno;
        close(fd);
        errno = error;
        if (failed || same)
            return -1;
    }
}

/* The rename itself reaches the disk with the folder. Not every file system can do that: no error.
 */
static void flush_folder(char *name)
{
    int fd = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

static adj_status replace_file(const place *p, const char *text, const adj_tensor *t, int n,
                               const int *order)
{
    size_t size = strlen(p->path) + sizeof partial;
    char *name = malloc(size);
    struct stat s;

    if (name == NULL)
        return out_of_memory(p);
    snprintf(name, size, "%s%s", p->path, partial);
    adj_status status = ADJ_OK;
    int fd = -1;
    if (stat(p->path, &s) == 0 && !S_ISREG(s.st_mode)) /* never rename over a device */
        status = io_fail(p->message, p->size, ADJ_EIO, "safetensors: %.200s: is not a regular file",
                         p->path);
    else if ((fd = open_partial(name)) < 0)
        status = system_error(p);
    if (fd >= 0) {
        status = write_file(p, fd, text, t, n, order);
        if (status == ADJ_OK && rename(name, p->path) != 0)
            status = system_error(p);
        if (status != ADJ_OK)
            unlink(name);
        close(fd); /* and with it the lock, not before the name is free for others */
        if (status == ADJ_OK)
            flush_folder(name);
    }
    free(name);
    return status;
}

adj_status adj_tensors_write(const char *path, int n, const adj_tensor tensors[], int n_metadata,
                             const adj_metadata metadata[], char *message, size_t size)
{
    place p = {path, message, size};
    if (path == NULL || n < 0 || n_metadata < 0)
        return io_fail(message, size, ADJ_EARG, "safetensors: bad file name or counts");
    json_t *header = json_object();
    int *order = calloc((size_t)n + 1, sizeof *order);
    char *text = NULL;
    adj_status status = header != NULL && order != NULL ? ADJ_OK : ADJ_ENOMEM;

    if (status != ADJ_OK)
        out_of_memory(&p);
    if (status == ADJ_OK && n_metadata > 0)
        status = add_metadata(&p, header, n_metadata, metadata);
    if (status == ADJ_OK)
        status = make_header(&p, header, n, tensors, order);
    if (status == ADJ_OK && (text = json_dumps(header, JSON_COMPACT)) == NULL)
        status = out_of_memory(&p);
    if (status == ADJ_OK)
        status = replace_file(&p, text, tensors, n, order);
    free(text);
    free(order);
    json_decref(header);
    return status;
}
