/* read.c - reads a model file and unpacks it. The depth of nested messages is checked first,
 * because protobuf-c unpacks by recursion. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "import.h"

enum { MAX_DEPTH = 100 }; /* nesting of messages, as in protobuf's own readers */

/* ---- nesting ---- */

/* Bytes of a message that are not read yet. */
typedef struct {
    const uint8_t *at, *end;
} bytes;

static int read_varint(bytes *b, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        *value |= (uint64_t)(*b->at & 127) << shift;
        if ((*b->at++ & 128) == 0)
            return 1;
    }
    return 0;
}

/* Reads a field's key and skips its value, which *inside then is if it has a length. */
static int read_field(bytes *b, uint64_t *field, bytes *inside)
{
    uint64_t key, n;
    *inside = (bytes){NULL, NULL};
    if (!read_varint(b, &key))
        return 0;
    *field = key >> 3;
    switch (key & 7) {
    case 0: return read_varint(b, &n);
    case 1: n = 8; break;
    case 5: n = 4; break;
    case 2:
        if (!read_varint(b, &n))
            return 0;
        break;
    default: return 0;
    }
    if (n > (uint64_t)(b->end - b->at))
        return 0;
    if ((key & 7) == 2)
        *inside = (bytes){b->at, b->at + n};
    b->at += n;
    return 1;
}

/* True if messages are nested at most `depth` deep. A malformed message is left to protobuf-c,
 * which stops where this function does. */
static int is_shallow(bytes b, const ProtobufCMessageDescriptor *kind, int depth)
{
    uint64_t id;
    bytes inside;
    while (b.at < b.end && read_field(&b, &id, &inside)) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(kind, (unsigned)id);
        if (field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE && inside.at != NULL &&
            (depth == 0 || !is_shallow(inside, field->descriptor, depth - 1)))
            return 0;
    }
    return 1;
}

/* ---- the file ---- */

static uint8_t *read_bytes(import *f, size_t *n)
{
    FILE *file = fopen(f->path, "rbe");
    struct stat s;
    uint8_t *data = NULL;
    if (file == NULL || fstat(fileno(file), &s) != 0) {
        import_fail(f, ADJ_EIO, "cannot be read: %s", strerror(errno));
    } else if (!S_ISREG(s.st_mode)) {
        import_fail(f, ADJ_EIO, "is not a regular file");
    } else if (s.st_size > INT_MAX) {
        import_fail(f, ADJ_EIO, "is too large (got %lld bytes, expected at most %d)",
                    (long long)s.st_size, INT_MAX);
    } else if ((data = malloc((size_t)s.st_size + 1)) == NULL) {
        import_fail(f, ADJ_ENOMEM, "out of memory (%lld bytes)", (long long)s.st_size);
    } else {
        *n = fread(data, 1, (size_t)s.st_size, file);
        if (ferror(file))
            import_fail(f, ADJ_EIO, "cannot be read: %s", strerror(errno));
    }
    if (file != NULL)
        fclose(file);
    return data;
}

/* An allocator that notes a failure, as protobuf-c tells a lack of memory from a corrupt file only
 * so. The default one frees what it has allocated. */
static void *allocate_noting(void *has_failed, size_t n)
{
    void *p = malloc(n);
    if (p == NULL)
        *(int *)has_failed = 1;
    return p;
}

static void release(void *has_failed, void *p)
{
    (void)has_failed;
    free(p);
}

static Onnx__ModelProto *unpack(import *f, const uint8_t *data, size_t n)
{
    int has_failed = 0;
    ProtobufCAllocator a = {allocate_noting, release, &has_failed};
    Onnx__ModelProto *model = onnx__model_proto__unpack(&a, n, data);
    if (has_failed)
        import_fail(f, ADJ_ENOMEM, "out of memory");
    else if (model == NULL)
        import_fail(f, ADJ_EIO, "is not an ONNX file, or truncated (%zu bytes cannot be parsed)",
                    n);
    return model;
}

Onnx__ModelProto *read_model(import *f)
{
    size_t n = 0;
    uint8_t *data = read_bytes(f, &n);
    Onnx__ModelProto *model = NULL;
    if (data != NULL && f->status == ADJ_OK) {
        if (!is_shallow((bytes){data, data + n}, &onnx__model_proto__descriptor, MAX_DEPTH))
            import_fail(f, ADJ_EIO, "messages are nested too deeply (expected at most %d deep)",
                        MAX_DEPTH);
        else if ((model = unpack(f, data, n)) != NULL && model->graph == NULL)
            import_fail(f, ADJ_EIO, "has no graph");
    }
    free(data);
    if (f->status != ADJ_OK && model != NULL) {
        onnx__model_proto__free_unpacked(model, NULL);
        model = NULL;
    }
    return model;
}
