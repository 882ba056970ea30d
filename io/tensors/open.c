/* open.c - reads tensors from a file of any known kind, recognized by its first bytes; names the
 * kind of a file that is none of the readers' formats. */
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "io/data/array.h"
#include "io/data/packed.h"
#include "io/io.h"
#include "tensors.h"

/* ---- the kinds of other programs' files, which are recognized, never read ---- */

enum { START = 512, ZIP_NAME_LENGTH = 26, ZIP_NAME = 30 };

typedef struct {
    const char *is, *cure; /* cure: "" if none is known */
} kind;

#define FROM_TORCH "export with safetensors.torch.save_file(model.state_dict(), \"w.safetensors\")"
#define FROM_KERAS                                                                                 \
    "export with numpy.savez(\"w.npz\", **{v.path: v.numpy() for v in model.weights})"

/* Files that begin with these bytes from offset at on. */
static const struct {
    size_t at, n;
    const char *bytes;
    kind kind;
} signatures[] = {
    {0, 14, "\200\2\212\nl\374\234F\371 j\250P\31", {"an old PyTorch pickle", FROM_TORCH}},
    {0, 8, "\x89HDF\r\n\x1a\n", {"HDF5, as Keras writes .h5", FROM_KERAS}},
    {0,
     9,
     "\0\0\6\x08\1\x1a\2\x08\1",
     {"the index of a TensorFlow checkpoint",
      "export its variables with tf.train.load_checkpoint and numpy.savez"}},
    {0, 2, "\x1f\x8b", {"gzip of something else", "unpack it with gunzip or tar"}},
    {0, 4, "GGUF", {"GGUF", "export as safetensors with the program that wrote it"}},
    {4, 4, "TFL3", {"a TensorFlow Lite model", "export from the model that it was made of"}},
    {0,
     19,
     "version https:"
     "//git",
     {"a pointer of Git LFS", "fetch the file with git lfs pull"}},
};

static const kind empty = {"an empty file", ""}, text = {"text", ""},
                  unknown = {"an unknown kind", ""},
                  pickle = {"a Python pickle", "export with numpy.savez"},
                  onnx = {"an ONNX model", "make one with adjoint convert NET.onnx w.safetensors"},
                  saved_model = {"a TensorFlow SavedModel",
                                 "export with numpy.savez(\"w.npz\", **{v.name: v.numpy() for v in "
                                 "model.variables})"},
                  zip = {"a zip archive without .npy files", "unpack it"},
                  torch_zip = {"a PyTorch archive", FROM_TORCH},
                  keras_zip = {"a Keras 3 .keras archive", FROM_KERAS};

/* Returns the kind of an archive, by its first member; NULL for NumPy's, and if the archive ends
 * before. */
static const kind *zip_kind(const uint8_t *start, size_t n)
{
    const size_t length = start[ZIP_NAME_LENGTH] | (size_t)start[ZIP_NAME_LENGTH + 1] << 8;
    const char *name = (const char *)start + ZIP_NAME;
    if (memcmp(start, "PK\3\4", 4) != 0)
        return &zip;
    if (n < ZIP_NAME + length + 2)
        return NULL;
    if (memcmp(name + length, "FB", 2) == 0) /* PyTorch's padding, an extra field */
        return &torch_zip;
    if (length > 4 && memcmp(name + length - 4, ".npy", 4) == 0)
        return NULL;
    const int is_metadata = length == 13 && memcmp(name, "metadata.json", 13) == 0,
              is_config = length == 11 && memcmp(name, "config.json", 11) == 0;
    return is_metadata || is_config ? &keras_zip : &zip;
}

/* True if the bytes are printable, or UTF-8's beyond ASCII. */
static int is_text(const uint8_t *start, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (start[i] == 0x7f || start[i] > 0xf4 ||
            (start[i] < ' ' && (start[i] < '\t' || start[i] > '\r')))
            return 0;
    return 1;
}

/* True if a JSON object begins where a safetensors file has its header. */
static int has_header(const uint8_t *start, size_t n)
{
    static const char after[] = "\"} \t\r\n";
    return n > 8 && start[8] == '{' &&
           (memcmp(start + 4, "\0\0\0", 4) == 0 ||
            memchr(after, start[9], sizeof after - 1) != NULL);
}

/* Returns the kind of a file that has a short signature, or &unknown; NULL for a damaged
 * safetensors file, which may begin with the same bytes. */
static const kind *guess_kind(const uint8_t *start, size_t n)
{
    if (has_header(start, n))
        return NULL;
    if (start[0] == 0x80 && start[1] >= 2 && start[1] <= 5)
        return &pickle;
    /* protobufs: a version in field 1, then field 2, or one of the fields 2 to 8 */
    if (memcmp(start, "\x08\x01\x12", 3) == 0)
        return &saved_model;
    if (start[0] == 8 && start[1] >= 2 && start[1] < 32 && start[2] != 0 &&
        strchr("\x12\x1a\"(2:B", start[2]) != NULL)
        return &onnx;
    return &unknown;
}

/* Returns the kind of a file that begins with these bytes, or NULL. */
static const kind *find_kind(const uint8_t start[START + 1], size_t n)
{
    if (n == 0)
        return &empty;
    for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++)
        if (n >= signatures[i].at + signatures[i].n &&
            memcmp(start + signatures[i].at, signatures[i].bytes, signatures[i].n) == 0)
            return &signatures[i].kind;
    if (memcmp(start, "PK\3\4", 4) == 0 || memcmp(start, "PK\5\6", 4) == 0)
        return zip_kind(start, n);
    return is_text(start, n) ? &text : guess_kind(start, n);
}

/* Writes a sentence that names the file, its kind and how its tensors are exported. Returns 0,
 * without a sentence, if the file cannot be read or is a damaged one of the readers' kinds. */
static int write_sentence(const char *path, char message[ADJ_MESSAGE])
{
    uint8_t start[START + 1] = {0};
    const char *why;
    const int64_t n = io_read_start(path, start, START, &why);
    const kind *k = n >= 0 ? find_kind(start, (size_t)n) : NULL;

    if (k == NULL)
        return 0;
    snprintf(message, ADJ_MESSAGE,
             "%.200s: not a file of tensors (got %s, expected safetensors, .npz, .npy or IDX)%s%s",
             path, k->is, k->cure[0] != '\0' ? "; " : "", k->cure);
    return 1;
}

/* ---- the readers' kinds ---- */

enum { MAX_ARRAYS = 100000 };

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

    memcpy(shape.dim, a->size, sizeof shape.dim);
    const adj_status status =
        elem != ADJ_ELEM_UNREADABLE
            ? tensors_add_copy(t, name, elem, shape, a->data, error)
            : adj_error_set(error, ADJ_EIO, "npy: %.300s: its elements have an unknown type", name);
    free(a->data);
    return status;
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

/* Reads the first four bytes, of a gzip file after decompression; fails if there are fewer. */
static adj_status peek(const char *path, uint8_t start[4], adj_error *error)
{
    const char *why;
    unzip *u;
    const adj_status status = unzip_open(path, &u, &why);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%.200s: %s", path, why);
    const int64_t got = unzip_read(u, start, 4);
    unzip_close(u);
    if (got == 4)
        return ADJ_OK;
    return adj_error_set(error, ADJ_EIO,
                         "%.200s: is too short for a file of tensors (expected safetensors, npy, "
                         "npz or idx)",
                         path);
}

adj_status adj_tensors_read(const char *path, adj_tensors **out)
{
    uint8_t start[4] = {0};
    adj_error error = {0};

    if (out == NULL)
        return ADJ_EARG;
    if (path == NULL)
        return adj_safetensors_read(NULL, out);
    int can_read = peek(path, start, &error) == ADJ_OK;
    int is_npy = memcmp(start, "\x93NUM", 4) == 0, is_zip = memcmp(start, "PK\3\4", 4) == 0,
        is_idx = start[0] == 0 && start[1] == 0 && start[2] >= 8 && start[2] <= 14 && start[3] > 0;
    if (can_read && !is_npy && !is_zip && !is_idx) {
        adj_status status = adj_safetensors_read(path, out);
        if (status == ADJ_EIO && list_of(*out)->header == NULL)
            (void)write_sentence(path, (*out)->message);
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
        if (can_read || !write_sentence(path, t->message))
            snprintf(t->message, sizeof t->message, "%s", error.message);
    }
    return error.status;
}
