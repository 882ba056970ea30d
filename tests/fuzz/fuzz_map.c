/* fuzz_map.c - map files, and what they do to tensors, against arbitrary text.
 *
 * Input: the text of a map. It is applied to fixed tensors there and back. */
#include <string.h>

#include "adjoint_io.h"
#include "fuzz/memory_file.h"
#include "io/tensors/formats.h"

enum { LONGEST = 1 << 12 };

static const float values[48];
static const adj_tensor tensors[] = {{"a", ADJ_ELEM_F32, {4, {2, 3, 4, 2}}, values},
                                     {"b", ADJ_ELEM_F32, {1, {5}}, values},
                                     {"c", ADJ_ELEM_F32, {1, {5}}, values},
                                     {"d", ADJ_ELEM_U8, {2, {0, 3}}, values},
                                     {"e", ADJ_ELEM_F64, {0}, values}};

static adj_tensors *make_tensors(void)
{
    adj_tensors *t = NULL;
    static char path[64];
    snprintf(path, sizeof path, "/tmp/adjoint-fuzz-map-%d.safetensors", (int)getpid());
    must(adj_tensors_write(path, 5, tensors, 0, NULL, NULL) == ADJ_OK);
    must(adj_tensors_read(path, &t) == ADJ_OK);
    unlink(path);
    return t;
}

/* Every tensor's bytes can be read. */
static void use(const adj_tensors *t)
{
    volatile unsigned sum = 0;
    for (int i = 0; i < t->n; i++) {
        adj_tensor x = t->tensor[i];
        if (adj_tensors_unreadable(t, i) != NULL)
            continue;
        int64_t n = adj_tensor_bytes(&x);
        must(n >= 0 && n <= 1 << 20);
        for (int64_t k = 0; k < n; k++)
            sum = sum + ((const uint8_t *)x.data)[k];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static adj_tensors *given;
    adj_tensors *there = NULL, *back = NULL;
    adj_error error = {0};

    if (size > LONGEST)
        return 0;
    if (given == NULL)
        given = make_tensors();
    memory_file f = memory_file_new(data, size);
    adj_status status = adj_weights_convert(given, NULL, f.path, 0, &there, &error);
    must((status == ADJ_OK) == (there != NULL) && (status == ADJ_OK) == (error.message[0] == '\0'));
    if (there != NULL) {
        use(there);
        if (adj_weights_convert(there, NULL, f.path, 1, &back, &error) == ADJ_OK)
            use(back);
    }
    adj_tensors_free(back);
    adj_tensors_free(there);
    memory_file_free(&f);
    return 0;
}
