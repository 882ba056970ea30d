/* safetensors_write.c - writes tensors atomically, with checksums.
 *
 * Tensors are written by falling element size and the header is padded with spaces, so that all
 * data is aligned. The metadata get a checksum for each tensor and one for the header. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/io.h"
#include "io/json.h"
#include "safetensors.h"
#include "tensors.h"

/* ---- checksums ----
 *
 * They are zlib's CRC-32, which finds every single flipped bit and every burst of up to 32. The
 * header's is one of its content, not of its bytes: a program that writes the same tensors and
 * metadata in another order keeps it. Where a tensor's data lie is left out: its own checksum and
 * the rule that the tensors cover the file hold that. */

int is_sum_key(const char *key)
{
    size_t n = strlen(SUM_KEY);
    return strncmp(key, SUM_KEY, n) == 0 && (key[n] == '\0' || key[n] == ':');
}

char *sum_key(const char *name)
{
    char *key;
    return asprintf(&key, SUM_KEY ":%s", name) >= 0 ? key : NULL;
}

void sum_data(const void *data, int64_t bytes, char sum[SUM_TEXT])
{
    snprintf(sum, SUM_TEXT, "%08lx", crc32_z(0, data, (size_t)bytes) & 0xffffffffUL);
}

/* Returns a copy of the header without the keys that the sum does not cover, or NULL if memory is
 * short. jansson's copy is compared, since it may lack members then. */
static json_t *summed_content(const json_t *header)
{
    json_t *content = json_deep_copy(header), *tensor;
    const char *name;

    if (!json_equal(content, header)) {
        json_decref(content);
        return NULL;
    }
    json_object_foreach(content, name, tensor)
    {
        if (strcmp(name, METADATA_KEY) != 0)
            json_object_del(tensor, "data_offsets");
    }
    json_object_del(json_object_get(content, METADATA_KEY), SUM_KEY);
    return content;
}

adj_status sum_header(const json_t *header, char sum[SUM_TEXT])
{
    json_t *content = summed_content(header);
    char *text = content != NULL ? io_json_text(content, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

    if (text != NULL)
        sum_data(text, (int64_t)strlen(text), sum);
    free(text);
    json_decref(content);
    return text != NULL ? ADJ_OK : ADJ_ENOMEM;
}

/* ---- the header ---- */

/* Returns the header's entry for a tensor, or NULL if memory is short. */
static json_t *header_entry(const adj_tensor *t, int64_t begin, int64_t end)
{
    json_t *shape = json_array();
    int failed = 0;
    for (int i = 0; i < t->shape.rank; i++)
        failed |= json_array_append_new(shape, json_integer(t->shape.dim[i])) != 0;
    if (failed) {
        json_decref(shape);
        return NULL;
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", elem_word((int)t->elem), "shape", shape,
                     "data_offsets", (json_int_t)begin, (json_int_t)end);
}

/* Adds the caller's metadata. */
static adj_status add_metadata(const io_place *p, json_t *all, int n, const adj_metadata *metadata)
{
    for (int i = 0; i < n; i++) {
        const char *key = metadata[i].key, *value = metadata[i].value;
        if (key == NULL || value == NULL || is_sum_key(key) || !io_is_utf8(key) ||
            !io_is_utf8(value))
            return io_refuse(p, ADJ_EARG,
                             "metadata %d is not two UTF-8 strings, or has the name of a checksum",
                             i);
        if (json_object_set_new(all, key, json_string(value)) != 0)
            return io_out_of_memory(p);
    }
    return ADJ_OK;
}

static adj_status add_sum(const io_place *p, json_t *metadata, const adj_tensor *t)
{
    char sum[SUM_TEXT], *key = sum_key(t->name);
    sum_data(t->data, adj_tensor_bytes(t), sum);
    int failed = key == NULL || json_object_set_new(metadata, key, json_string(sum)) != 0;
    free(key);
    return failed ? io_out_of_memory(p) : ADJ_OK;
}

/* Fills header and metadata, and order with the tensors' order in the file. */
static adj_status add_tensors(const io_place *p, json_t *header, json_t *metadata, int n,
                              const adj_tensor *t, int *order)
{
    adj_status status;
    int64_t end = 0;
    int k = 0;

    for (size_t each = 8; each > 0; each /= 2)
        for (int i = 0; i < n; i++) {
            if (t[i].name == NULL || t[i].data == NULL || adj_tensor_bytes(&t[i]) < 0 ||
                strcmp(t[i].name, METADATA_KEY) == 0 ||
                (each == adj_elem_size(t[i].elem) && json_object_get(header, t[i].name)))
                return io_refuse(p, ADJ_EARG, "tensor %d: bad name (got %.80s), type or data", i,
                                 t[i].name != NULL ? t[i].name : "none");
            if (adj_elem_size(t[i].elem) != each)
                continue;
            int64_t begin = end;
            if (__builtin_add_overflow(end, adj_tensor_bytes(&t[i]), &end) ||
                !io_is_utf8(t[i].name))
                return io_refuse(p, ADJ_EARG,
                                 "tensor %d: name is not UTF-8 (got %.80s), or too much data", i,
                                 t[i].name);
            if (json_object_set_new(header, t[i].name, header_entry(&t[i], begin, end)) != 0)
                return io_out_of_memory(p);
            if ((status = add_sum(p, metadata, &t[i])) != ADJ_OK)
                return status;
            order[k++] = i;
        }
    return ADJ_OK;
}

/* Contents of a file. */
typedef struct {
    const char *header;
    int n;
    const adj_tensor *tensor;
    const int *order; /* tensor indices in file order */
} contents;

static int put(FILE *f, const void *bytes, size_t n) { return fwrite(bytes, 1, n, f) != n; }

static int write_file(FILE *f, void *user)
{
    const contents *c = user;
    const size_t bytes = strlen(c->header), padding = -bytes % LENGTH_BYTES;
    uint8_t length[LENGTH_BYTES];

    for (int i = 0; i < LENGTH_BYTES; i++)
        length[i] = (uint8_t)((uint64_t)(bytes + padding) >> (8 * i));
    int failed =
        put(f, length, LENGTH_BYTES) || put(f, c->header, bytes) || put(f, "        ", padding);
    for (int k = 0; !failed && k < c->n; k++) {
        const adj_tensor *t = &c->tensor[c->order[k]];
        failed = put(f, t->data, (size_t)adj_tensor_bytes(t));
    }
    return failed;
}

/* Makes the whole header, with its own checksum as the last entry. */
static adj_status make_header(const io_place *p, json_t *header, int n, const adj_tensor tensors[],
                              int n_metadata, const adj_metadata metadata[], int *order)
{
    json_t *strings = json_object();
    if (json_object_set_new(header, METADATA_KEY, strings) != 0)
        return io_out_of_memory(p);
    adj_status status = add_metadata(p, strings, n_metadata, metadata);
    if (status == ADJ_OK)
        status = add_tensors(p, header, strings, n, tensors, order);
    char sum[SUM_TEXT];
    if (status == ADJ_OK && (sum_header(header, sum) != ADJ_OK ||
                             json_object_set_new(strings, SUM_KEY, json_string(sum)) != 0))
        return io_out_of_memory(p);
    return status;
}

adj_status adj_tensors_write(const char *path, int n, const adj_tensor tensors[], int n_metadata,
                             const adj_metadata metadata[], adj_error *error)
{
    const io_place p = {"safetensors: ", path != NULL ? path : "", error};
    if (n < 0 || n_metadata < 0 || (n > 0 && tensors == NULL) ||
        (n_metadata > 0 && metadata == NULL))
        return adj_error_set(
            error, ADJ_EARG,
            "safetensors: negative count, or a list is NULL (got %d tensors, %d metadata)", n,
            n_metadata);
    json_t *header = json_object();
    int *order = calloc((size_t)n + 1, sizeof *order);
    char *text = NULL;
    adj_status status = header != NULL && order != NULL ? ADJ_OK : ADJ_ENOMEM;

    if (status != ADJ_OK)
        io_out_of_memory(&p);
    if (status == ADJ_OK)
        status = make_header(&p, header, n, tensors, n_metadata, metadata, order);
    if (status == ADJ_OK && (text = io_json_text(header, JSON_COMPACT)) == NULL)
        status = io_out_of_memory(&p);
    if (status == ADJ_OK && path != NULL) {
        const char *why = "";
        contents c = {text, n, tensors, order};
        status = new_file_write(path, write_file, &c, &why);
        if (status != ADJ_OK)
            io_refuse(&p, status, "%s", why);
    }
    free(text);
    free(order);
    json_decref(header);
    return status;
}
