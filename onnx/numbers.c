/* numbers.c - tensors of the file as numbers: typed fields, raw data, external data. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import.h"

/* Element types: where their values stand in a TensorProto, and how wide they are in raw data. */
typedef enum { FIELD_FLOAT, FIELD_DOUBLE, FIELD_INT32, FIELD_INT64, FIELD_UINT64 } tensor_field;
typedef struct {
    const char *name;
    size_t bytes;
    int elem;
    tensor_field field;
    int is_float, is_signed;
    adj_dtype dtype; /* type of raw floats; a dtype is saved as in its first row */
    adj_elem known;  /* type in the caller's tensors */
} elem_row;

#define ELEM(name) ONNX__TENSOR_PROTO__DATA_TYPE__##name
static const elem_row elems[] = {
    {"float", 4, ELEM(FLOAT), FIELD_FLOAT, 1, 1, ADJ_F32, ADJ_ELEM_F32},
    {"double", 8, ELEM(DOUBLE), FIELD_DOUBLE, 1, 1, ADJ_F64, ADJ_ELEM_F64},
    {"float16", 2, ELEM(FLOAT16), FIELD_INT32, 1, 1, ADJ_F16, ADJ_ELEM_F16},
    {"bfloat16", 2, ELEM(BFLOAT16), FIELD_INT32, 1, 1, ADJ_BF16, ADJ_ELEM_BF16},
    {"int32", 4, ELEM(INT32), FIELD_INT32, 0, 1, ADJ_I32, ADJ_ELEM_I32},
    {"int8", 1, ELEM(INT8), FIELD_INT32, 0, 1, ADJ_I32, ADJ_ELEM_I8},
    {"uint8", 1, ELEM(UINT8), FIELD_INT32, 0, 0, ADJ_I32, ADJ_ELEM_U8},
    {"int16", 2, ELEM(INT16), FIELD_INT32, 0, 1, ADJ_I32, ADJ_ELEM_I16},
    {"uint16", 2, ELEM(UINT16), FIELD_INT32, 0, 0, ADJ_I32, ADJ_ELEM_U16},
    {"uint32", 4, ELEM(UINT32), FIELD_UINT64, 0, 0, ADJ_I32, ADJ_ELEM_U32},
    {"int64", 8, ELEM(INT64), FIELD_INT64, 0, 1, ADJ_I32, ADJ_ELEM_I64},
    {"uint64", 8, ELEM(UINT64), FIELD_UINT64, 0, 0, ADJ_I32, ADJ_ELEM_U64},
    {"bool", 1, ELEM(BOOL), FIELD_INT32, 0, 0, ADJ_I32, ADJ_ELEM_BOOL},
};

static const elem_row *find_elem(int elem)
{
    for (size_t i = 0; i < sizeof elems / sizeof elems[0]; i++)
        if (elems[i].elem == elem)
            return &elems[i];
    return NULL;
}

int elem_is_float(int elem)
{
    const elem_row *row = find_elem(elem);
    return row != NULL && row->is_float;
}

int elem_is_integer(int elem)
{
    const elem_row *row = find_elem(elem);
    return row != NULL && !row->is_float;
}

const char *elem_name(int elem)
{
    static const char *const others[] = {[8] = "string",
                                         [14] = "complex64",
                                         [15] = "complex128",
                                         [17] = "float8e4m3fn",
                                         [18] = "float8e4m3fnuz",
                                         [19] = "float8e5m2",
                                         [20] = "float8e5m2fnuz",
                                         [21] = "uint4",
                                         [22] = "int4",
                                         [23] = "float4e2m1",
                                         [24] = "float8e8m0",
                                         [25] = "uint2",
                                         [26] = "int2"};
    const elem_row *row = find_elem(elem);
    const int is_other = elem >= 0 && elem < (int)(sizeof others / sizeof *others);
    const char *other = is_other ? others[elem] : NULL;
    return row != NULL ? row->name : other != NULL ? other : "unknown";
}

int32_t elem_of(adj_dtype dtype)
{
    const elem_row *row = elems;
    while (row->dtype != dtype)
        row++;
    return row->elem;
}

int elem_limits(int elem, double *low, double *high)
{
    const elem_row *row = find_elem(elem);
    if (row == NULL || row->is_float || row->bytes > 2 || elem == ELEM_BOOL)
        return 0;
    *low = row->is_signed ? -ldexp(1, 8 * (int)row->bytes - 1) : 0;
    *high = *low + ldexp(1, 8 * (int)row->bytes) - 1;
    return 1;
}

adj_dtype dtype_of_elem(const import *f, int elem)
{
    const elem_row *row = find_elem(elem);
    if (elem == ELEM_FLOAT || elem == ELEM_BOOL)
        return f->o->dtype;
    return row != NULL ? row->dtype : ADJ_I32;
}

/* Returns the type of floats in the file. */
static adj_dtype of_file(int elem)
{
    const elem_row *row = find_elem(elem);
    return row != NULL ? row->dtype : ADJ_F32;
}

static double rounded(adj_dtype dtype, double v)
{
    double element;
    adj_store(dtype, &element, 0, v);
    return adj_load(dtype, &element, 0);
}

static numbers *allocate(import *f, int elem, adj_shape shape)
{
    const int64_t n = adj_shape_elems(shape);
    numbers *v = import_alloc(f, 1, sizeof *v);
    void *data = v != NULL ? import_alloc(f, n > 0 ? n : 1, 8) : NULL;
    if (data == NULL)
        return NULL;
    const adj_dtype dtype = elem == ELEM_FLOAT && f->o->dtype == ADJ_F64 ? ADJ_F64 : of_file(elem);
    *v = (numbers){.elem = elem, .dtype = dtype, .shape = shape, .n = n};
    if (elem_is_float(elem))
        v->f = data;
    else
        v->i = data;
    return v;
}

numbers *new_numbers(import *f, int elem, adj_shape shape)
{
    const int64_t n = adj_shape_elems(shape);
    if (n >= 0 && n <= MAX_COMPUTED)
        return allocate(f, elem, shape);
    import_fail(f, ADJ_ESHAPE,
                "a tensor that is computed while reading has too many elements (got shape %s, "
                "expected at most %d elements)",
                adj_shape_text(shape).s, MAX_COMPUTED);
    return NULL;
}

double number_at(const numbers *v, int64_t i) { return v->f != NULL ? v->f[i] : (double)v->i[i]; }

double number_in_file(const numbers *v, int64_t i)
{
    return v->f != NULL ? rounded(of_file(v->elem), v->f[i]) : (double)v->i[i];
}

void number_set(numbers *v, int64_t i, double to)
{
    if (v->f != NULL) {
        v->f[i] = rounded(v->dtype, to);
    } else if (v->elem == ELEM_BOOL) {
        v->i[i] = to != 0;
    } else {
        v->i[i] = to >= 0x1p63 ? INT64_MAX : to >= -0x1p63 ? (int64_t)to : INT64_MIN;
    }
}

/* ---- tensors of the file ---- */

/* Converts elements of that width: little-endian, as on the machines that the library runs on. */
static void from_bytes(const elem_row *row, const void *data, size_t bytes, int is_signed,
                       numbers *v)
{
    const int unused = (int)(64 - 8 * bytes);
    for (int64_t i = 0; i < v->n; i++) {
        uint64_t element = 0;
        memcpy(&element, (const char *)data + (size_t)i * bytes, bytes);
        if (row->is_float)
            v->f[i] = adj_load(row->dtype, &element, 0);
        else
            v->i[i] = is_signed ? (int64_t)(element << unused) >> unused : (int64_t)element;
    }
}

static void from_raw(const elem_row *row, const void *raw, numbers *v)
{
    from_bytes(row, raw, row->bytes, row->is_signed, v);
}

/* A list of elements in a TensorProto, which may be wider there than their type. */
typedef struct {
    const void *data;
    size_t n, bytes;
} elements;

static elements listed_elements(const elem_row *row, const Onnx__TensorProto *t)
{
    switch (row->field) {
    case FIELD_FLOAT: return (elements){t->float_data, t->n_float_data, 4};
    case FIELD_DOUBLE: return (elements){t->double_data, t->n_double_data, 8};
    case FIELD_INT32: return (elements){t->int32_data, t->n_int32_data, 4};
    case FIELD_INT64: return (elements){t->int64_data, t->n_int64_data, 8};
    default: return (elements){t->uint64_data, t->n_uint64_data, 8};
    }
}

/* ---- external data ---- */

/* True if the path stays in its folder: relative, without "..". */
static int stays_inside(const char *path)
{
    if (path[0] == '/' || path[0] == '\0')
        return 0;
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == '\0'))
            return 0;
    }
    return 1;
}

/* Opens a file in the model's folder. No part of its path may be a symbolic link. */
static int open_inside(import *f, const char *path)
{
    int folder = open(f->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (const char *part = path; folder >= 0;) {
        const char *slash = strchr(part, '/');
        const size_t n = slash != NULL ? (size_t)(slash - part) : strlen(part);
        const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
        char name[256] = "";
        int next = -1;
        if (n >= sizeof name)
            errno = ENAMETOOLONG;
        else if (n == 0)
            next = dup(folder);
        else
            next =
                openat(folder, strncpy(name, part, n), flags | (slash != NULL ? O_DIRECTORY : 0));
        const int why = errno;
        close(folder);
        errno = why;
        if (slash == NULL)
            return next;
        folder = next;
        part = slash + 1;
    }
    return -1;
}

static int read_all(int fd, uint8_t *to, int64_t n, int64_t offset)
{
    while (n > 0) {
        const ssize_t got = pread(fd, to, (size_t)n, offset);
        if (got <= 0)
            return 0;
        to += got;
        n -= got;
        offset += got;
    }
    return 1;
}

/* Reads the bytes of a tensor whose data is in a file of its own. */
static uint8_t *read_external(import *f, const Onnx__TensorProto *t, int64_t bytes)
{
    const char *path = entry_of(t->n_external_data, t->external_data, "location");
    const char *from = entry_of(t->n_external_data, t->external_data, "offset");
    const char *name = t->name != NULL ? t->name : "";
    if (path == NULL || !stays_inside(path)) {
        import_fail(f, ADJ_EIO,
                    "tensor \"%s\": external data is outside of the model's folder (got \"%s\")",
                    name, path != NULL ? path : "");
        return NULL;
    }
    char *end = NULL;
    errno = 0;
    const long long offset = from != NULL ? strtoll(from, &end, 10) : 0;
    const int fd = open_inside(f, path);
    struct stat s = {0};
    uint8_t *data = NULL;
    if (errno == ERANGE || (end != NULL && *end != '\0') || offset < 0)
        import_fail(f, ADJ_EIO, "tensor \"%s\": offset of external data (got \"%s\")", name, from);
    else if (fd < 0 || fstat(fd, &s) != 0)
        import_fail(f, ADJ_EIO, "tensor \"%s\": external data \"%s\" cannot be read: %s", name,
                    path, strerror(errno));
    else if (!S_ISREG(s.st_mode) || s.st_size < offset || s.st_size - offset < bytes)
        import_fail(f, ADJ_EIO,
                    "tensor \"%s\": external data \"%s\" is too short (got %lld bytes, expected "
                    "%lld from byte %lld on)",
                    name, path, (long long)s.st_size, (long long)bytes, offset);
    else if ((data = malloc(bytes > 0 ? (size_t)bytes : 1)) == NULL)
        import_fail(f, ADJ_ENOMEM, "out of memory (%lld bytes)", (long long)bytes);
    else if (!read_all(fd, data, bytes, offset))
        import_fail(f, ADJ_EIO, "tensor \"%s\": external data \"%s\" cannot be read: %s", name,
                    path, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (f->status != ADJ_OK) {
        free(data);
        data = NULL;
    }
    return data;
}

/* ---- conversion ---- */

static int tensor_shape(import *f, const Onnx__TensorProto *t, adj_shape *shape)
{
    const char *name = t->name != NULL ? t->name : "";
    if (t->n_dims > ADJ_MAX_RANK)
        return import_fail(f, ADJ_ESHAPE, "tensor \"%s\": rank (got %zu, expected at most %d)",
                           name, t->n_dims, ADJ_MAX_RANK);
    *shape = (adj_shape){.rank = (int64_t)t->n_dims};
    for (size_t i = 0; i < t->n_dims; i++)
        shape->dim[i] = t->dims[i];
    const int64_t n = adj_shape_elems(*shape);
    if (n < 0 || n > INT64_MAX / 16)
        return import_fail(f, ADJ_ESHAPE, "tensor \"%s\": shape %s is invalid or too large", name,
                           adj_shape_text(*shape).s);
    return 1;
}

const numbers *read_tensor(import *f, const Onnx__TensorProto *t)
{
    const elem_row *row = find_elem(t->data_type);
    const char *name = t->name != NULL ? t->name : "";
    adj_shape shape = {0};
    if (row == NULL) {
        import_fail(f, ADJ_EDTYPE, "tensor \"%s\": element type %s is not supported", name,
                    elem_name(t->data_type));
        return NULL;
    }
    if (!tensor_shape(f, t, &shape))
        return NULL;
    const int64_t n = adj_shape_elems(shape), bytes = n * (int64_t)row->bytes;
    const int is_external = t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    const int is_raw = !is_external && t->has_raw_data;
    const elements listed = listed_elements(row, t);
    const int64_t got = is_external ? n : (int64_t)(is_raw ? t->raw_data.len : listed.n);
    const int64_t want = is_raw ? bytes : n;
    if (got != want) {
        import_fail(f, ADJ_EIO,
                    "tensor \"%s\": length of the data (got %" PRId64 " %s, expected %" PRId64
                    " for %s)",
                    name, got, is_raw ? "bytes" : "elements", want, adj_shape_text(shape).s);
        return NULL;
    }
    uint8_t *external = is_external ? read_external(f, t, bytes) : NULL;
    numbers *v = f->status == ADJ_OK ? allocate(f, t->data_type, shape) : NULL;
    if (v != NULL && (is_external || is_raw))
        from_raw(row, is_external ? external : t->raw_data.data, v);
    else if (v != NULL)
        from_bytes(row, listed.data, listed.bytes, 1, v);
    if (v != NULL && shape.rank == 0 && v->elem == ELEM_FLOAT)
        v->f[0] = meant_by(f, (float)v->f[0]);
    free(external);
    return v;
}

const numbers *known_tensor(import *f, const adj_tensor *t)
{
    for (size_t k = 0; k < sizeof elems / sizeof elems[0]; k++)
        if (elems[k].known == t->elem) {
            numbers *v = allocate(f, elems[k].elem, t->shape);
            if (v != NULL)
                from_raw(&elems[k], t->data, v);
            return v;
        }
    import_fail(f, ADJ_EDTYPE, "known input \"%s\": its element type is not supported", t->name);
    return NULL;
}
