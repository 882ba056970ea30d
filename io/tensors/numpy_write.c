/* numpy_write.c - tensors as NumPy's files: an array (.npy), or an archive of them (.npz), not
 * compressed.
 *
 * bf16 and F8 have no type there and are written as f32, which has all their values. A zip file is,
 * for each member, a header, its name and data; then a directory of the same headers with offsets,
 * and its end. All of it is little-endian. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/io.h"
#include "tensors.h"

enum { LOCAL = 30, CENTRAL = 46, END = 22, NPY_START = 10, NPY_HEADER = 256 };

/* A .npy file in memory: start and header, and the data, which may be the tensor's own. */
typedef struct {
    char header[NPY_START + NPY_HEADER];
    size_t header_bytes, data_bytes;
    const void *data;
    float *widened;
} npy_file;

static int widen(npy_file *f, const adj_tensor *t)
{
    int64_t n = adj_shape_elems(t->shape);
    f->data_bytes = (size_t)n * sizeof(float);
    f->data = f->widened = malloc(f->data_bytes + 1);
    for (int64_t i = 0; i < n && f->widened != NULL; i++)
        f->widened[i] = (float)adj_tensor_value(t, i);
    return f->widened != NULL;
}

/* Makes a .npy file whose header is padded so that the data begin at a multiple of 64 bytes. */
static int make_npy(npy_file *f, const adj_tensor *t)
{
    const char *descr = elem_in_numpy(t->elem);
    char text[NPY_HEADER];
    int n =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int64_t i = 0; i < t->shape.rank; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%lld, ", (long long)t->shape.dim[i]);
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    size_t length = ((size_t)n + 1 + NPY_START + 63) / 64 * 64 - NPY_START;

    *f = (npy_file){.header_bytes = NPY_START + length,
                    .data_bytes = (size_t)adj_tensor_bytes(t),
                    .data = t->data};
    memcpy(f->header, "\x93NUMPY\1\0", 8);
    f->header[8] = (char)(length & 255);
    f->header[9] = (char)(length >> 8);
    memset(f->header + NPY_START, ' ', length);
    memcpy(f->header + NPY_START, text, (size_t)n);
    f->header[NPY_START + length - 1] = '\n';
    const int is_own = elem_of_numpy(descr[1], descr[2] - '0') == t->elem;
    return is_own || widen(f, t);
}

static int put(FILE *f, const void *bytes, size_t n) { return fwrite(bytes, 1, n, f) != n; }

/* ---- one array ---- */

static int write_npy(FILE *f, void *user)
{
    const npy_file *a = user;
    return put(f, a->header, a->header_bytes) || put(f, a->data, a->data_bytes);
}

static adj_status check(const adj_tensor *t, const char *kind, adj_error *error)
{
    if (t->name == NULL || t->name[0] == '\0' || strlen(t->name) > 200 || t->data == NULL ||
        adj_tensor_bytes(t) < 0)
        return adj_error_set(error, ADJ_EARG, "%s: tensor %.80s: bad name, type or data", kind,
                             t->name != NULL ? t->name : "");
    return ADJ_OK;
}

adj_status adj_tensors_write_npy(const char *path, const adj_tensor *tensor, adj_error *error)
{
    npy_file a;
    if (path == NULL || tensor == NULL)
        return adj_error_set(error, ADJ_EARG, "npy: expected a file name and a tensor");
    adj_status status = check(tensor, "npy", error);
    if (status != ADJ_OK)
        return status;
    if (!make_npy(&a, tensor))
        return adj_error_set(error, ADJ_ENOMEM, "npy: out of memory");
    status = adj_file_replace(path, write_npy, &a, error);
    free(a.widened);
    return status;
}

/* ---- an archive ---- */

typedef struct {
    int n;
    const adj_tensor *tensor;
    uint8_t *directory; /* n of CENTRAL bytes, without the names */
    uint64_t offset;    /* offset of the next member */
} archive;

static void put16(uint8_t *to, unsigned v)
{
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
}

static void put32(uint8_t *to, uint64_t v)
{
    put16(to, (unsigned)(v & 0xffff));
    put16(to + 2, (unsigned)(v >> 16 & 0xffff));
}

/* Writes the common fields of a member's two headers, from version to length of the name. */
static void put_common(uint8_t to[26], uint64_t crc, uint64_t bytes, size_t name)
{
    memset(to, 0, 26);
    put16(to, 20);          /* version 2.0 reads it */
    put16(to + 2, 1 << 11); /* names are UTF-8 */
    put16(to + 8, 0x21);    /* 1 January 1980: no clock */
    put32(to + 10, crc);
    put32(to + 14, bytes);
    put32(to + 18, bytes);
    put16(to + 22, (unsigned)name);
}

static int write_member(FILE *f, archive *a, int i)
{
    const adj_tensor *t = &a->tensor[i];
    uint8_t local[LOCAL] = "PK\3\4", *central = a->directory + (size_t)i * CENTRAL;
    npy_file npy;
    size_t name = strlen(t->name) + 4;

    if (!make_npy(&npy, t))
        return 1;
    uint64_t bytes = npy.header_bytes + npy.data_bytes, after = LOCAL + name + bytes;
    unsigned long crc = crc32_z(0, (const void *)npy.header, npy.header_bytes);
    crc = crc32_z(crc, npy.data, npy.data_bytes);
    put_common(local + 4, crc, bytes, name);
    put32(central, 0x02014b50); /* PK 1 2 */
    put16(central + 4, 20);
    memcpy(central + 6, local + 4, 26);
    put32(central + 42, a->offset);
    a->offset += after;
    int failed = a->offset > UINT32_MAX || put(f, local, LOCAL) || put(f, t->name, name - 4) ||
                 put(f, ".npy", 4) || put(f, npy.header, npy.header_bytes) ||
                 put(f, npy.data, npy.data_bytes);
    free(npy.widened);
    return failed;
}

static int write_npz(FILE *f, void *user)
{
    archive *a = user;
    uint8_t end[END] = "PK\5\6";
    uint64_t bytes = 0;

    for (int i = 0; i < a->n; i++)
        if (write_member(f, a, i))
            return 1;
    for (int i = 0; i < a->n; i++) {
        const char *name = a->tensor[i].name;
        if (put(f, a->directory + (size_t)i * CENTRAL, CENTRAL) || put(f, name, strlen(name)) ||
            put(f, ".npy", 4))
            return 1;
        bytes += CENTRAL + strlen(name) + 4;
    }
    put16(end + 8, (unsigned)a->n);
    put16(end + 10, (unsigned)a->n);
    put32(end + 12, bytes);
    put32(end + 16, a->offset);
    return put(f, end, END);
}

adj_status adj_tensors_write_npz(const char *path, int n, const adj_tensor tensors[],
                                 adj_error *error)
{
    archive a = {.n = n, .tensor = tensors};
    uint64_t bytes = 0;
    adj_status status = ADJ_OK;

    if (path == NULL || n < 0 || n > UINT16_MAX)
        return adj_error_set(error, ADJ_EARG, "npz: bad file name or count of tensors");
    for (int i = 0; i < n && status == ADJ_OK; i++) {
        status = check(&tensors[i], "npz", error);
        bytes += (uint64_t)adj_tensor_bytes(&tensors[i]) * 4; /* an F8 becomes four bytes */
    }
    if (status == ADJ_OK && bytes / 4 > UINT32_MAX)
        status = adj_error_set(error, ADJ_EARG, "npz: more than 4 GB of tensors");
    if (status != ADJ_OK)
        return status;
    a.directory = calloc((size_t)n + 1, CENTRAL);
    status = a.directory != NULL ? adj_file_replace(path, write_npz, &a, error)
                                 : adj_error_set(error, ADJ_ENOMEM, "npz: out of memory");
    free(a.directory);
    return status;
}
