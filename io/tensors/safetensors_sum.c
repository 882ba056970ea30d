/* safetensors_sum.c - checksums of a safetensors file: zlib's CRC-32, which finds every single
 * flipped bit and every burst of up to 32.
 *
 * The header's is one of its content, not of its bytes: a program that writes the same tensors and
 * metadata in another order keeps it. Where a tensor's data lie is left out: its own checksum and
 * the rule that the tensors cover the file hold that. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "io/json.h"
#include "safetensors.h"

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
