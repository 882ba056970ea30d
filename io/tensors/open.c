/* open.c - reads tensors from a file of any known kind, recognized by its first bytes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/data/array.h"
#include "io/data/packed.h"
#include "tensors.h"

enum { MAX_ARRAYS = 100000 };
static const char kinds[] = "safetensors, .npz, .npy or IDX";

/* Writes "file" for "folder/file.npy". */
static void name_after(const char *path, const char *ending, char name[256])
{
    const char *slash = strrchr(path, '/');
    snprintf(name, 256, "%.200s", slash != NULL ? slash + 1 : path);
    size_t n = strlen(name), end = strlen(ending);
    if (n > end && strcmp(name + n - end, ending) == 0)
        name[n - end] = '\0';
}

/* ---- NumPy ---- */

/* Adds an array and frees its data. */
static adj_status add_array(adj_tensors *t, const file_array *a, const char *name, adj_error *error)
{
    const adj_elem elem = elem_of_numpy(a->kind, a->bytes);
    adj_shape shape = {.rank = a->rank};
    void *data = NULL;

    memcpy(shape.dim, a->size, sizeof shape.dim);
    if (elem == ADJ_ELEM_UNREADABLE)
        adj_error_set(error, ADJ_EIO, "npy: %.300s: its elements have an unknown type", name);
    else
        data = tensors_add(t, name, elem, shape, error);
    if (data != NULL)
        memcpy(data, a->data, (size_t)array_elems(a) * (size_t)a->bytes);
    free(a->data);
    return data != NULL ? ADJ_OK : error->status;
}

/* Adds an archive's member; a valid array that is not supported becomes an unreadable tensor. */
static adj_status add_member(adj_tensors *t, const array_stream *s, const char *name,
                             adj_error *error)
{
    file_array a;
    adj_error why = {0};
    const adj_status status = io_npy_read(s, &a, &why);
    if (status == ADJ_OK)
        return add_array(t, &a, name, error);
    return a.unsupported != NULL ? tensors_add_unreadable(t, name, a.unsupported, error)
                                 : adj_error_set(error, status, "%s", why.message);
}

static adj_status read_npz(adj_tensors *t, const char *path, zip_t *z, adj_error *error)
{
    adj_status status = ADJ_OK;
    zip_int64_t n = zip_get_num_entries(z, 0);
    if (n > MAX_ARRAYS)
        status =
            adj_error_set(error, ADJ_EIO, "npz: %.300s: has %lld members (expected at most %d)",
                          path, (long long)n, MAX_ARRAYS);
    for (zip_int64_t i = 0; i < n && status == ADJ_OK; i++) {
        const char *member = zip_get_name(z, (zip_uint64_t)i, 0);
        if (member == NULL) {
            status = adj_error_set(error, ADJ_ENOMEM, "npz: %.300s: out of memory", path);
            break;
        }
        const size_t length = strlen(member);
        if (length < 5 || strcmp(member + length - 4, ".npy") != 0)
            continue;
        char name[256], full[400];
        snprintf(full, sizeof full, "%.200s: %.150s", path, member);
        snprintf(name, sizeof name, "%.*s", (int)(length - 4 < 250 ? length - 4 : 250), member);
        zip_file_t *f = zip_fopen_index(z, (zip_uint64_t)i, 0);
        status = f != NULL ? add_member(t, &(array_stream){zipped_read, f, full}, name, error)
                           : adj_error_set(error, ADJ_EIO, "npz: %s: %s", full, zip_strerror(z));
        if (f != NULL)
            zip_fclose(f);
    }
    return status;
}

/* ---- a file of one array ---- */

static adj_status read_array(adj_tensors *t, const char *path, int is_npy, adj_error *error)
{
    static const idx_content any = {"data", NULL, "0000, a type and up to 6 axes"};
    file_array a;
    char name[256];
    const adj_status status =
        is_npy ? io_npy_read_file(path, &a, error) : io_idx_read_file(path, &any, &a, error);
    if (status != ADJ_OK)
        return status;
    name_after(path, is_npy ? ".npy" : ".gz", name);
    return add_array(t, &a, name, error);
}

/* ---- any of them ---- */

/* Reads the first four bytes, of a gzip file after decompression; returns 0 if there are fewer. */
static int peek(const char *path, uint8_t start[4], adj_error *error)
{
    const char *why;
    unzip *u;
    const adj_status status = unzip_open(path, &u, &why);
    if (status != ADJ_OK) {
        adj_error_set(error, status, "%.200s: %s", path, why);
        return 0;
    }
    const int64_t got = unzip_read(u, start, 4);
    unzip_close(u);
    if (got < 4)
        adj_error_set(error, ADJ_EIO,
                      "%.200s: is too short for a file of tensors (expected safetensors, npy, npz "
                      "or idx)",
                      path);
    return got == 4;
}

adj_status adj_tensors_read(const char *path, adj_tensors **out)
{
    uint8_t start[4] = {0};
    adj_error error = {0};

    if (out == NULL)
        return ADJ_EARG;
    if (path == NULL)
        return adj_safetensors_read(NULL, out);
    int can_read = peek(path, start, &error);
    int is_npy = memcmp(start, "\x93NUM", 4) == 0, is_zip = memcmp(start, "PK\3\4", 4) == 0,
        is_idx = start[0] == 0 && start[1] == 0 && start[2] >= 8 && start[2] <= 14 && start[3] > 0;
    if (can_read && !is_npy && !is_zip && !is_idx) {
        adj_status status = adj_safetensors_read(path, out);
        if (status == ADJ_EIO && list_of(*out)->header == NULL)
            (void)file_kind_sentence(path, kinds, (*out)->message);
        return status;
    }
    tensor_list *list = tensors_alloc(out);
    if (list == NULL)
        return ADJ_ENOMEM;
    adj_tensors *t = *out;
    if ((list->header = json_object()) == NULL) {
        adj_error_set(&error, ADJ_ENOMEM, "%.200s: out of memory", path);
        can_read = 0;
    }
    zip_t *z = can_read && is_zip ? zipped_open(path, &error) : NULL;
    if (z != NULL) {
        read_npz(t, path, z, &error);
        zip_discard(z);
    } else if (can_read && is_zip)
        can_read = error.status != ADJ_EIO;
    else if (can_read)
        read_array(t, path, is_npy, &error);
    if (error.status == ADJ_OK && t->n == 0) {
        adj_error_set(&error, ADJ_EIO, "%.200s: has no tensors", path);
        can_read = 0;
    }
    if (error.status != ADJ_OK) {
        t->n = 0; /* adj_tensors_free frees them */
        if (can_read || !file_kind_sentence(path, kinds, t->message))
            snprintf(t->message, sizeof t->message, "%s", error.message);
    }
    return error.status;
}
