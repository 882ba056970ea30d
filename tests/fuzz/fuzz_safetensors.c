/* fuzz_safetensors.c - the reader of safetensors files, and of checkpoints, which are such files,
 * against arbitrary bytes.
 *
 * Input: flags (1: the rest is the whole file; else it is the header up to the first 0, then the
 * data, and gets the length in front that it has). */
#include <string.h>

#include "adjoint_io.h"
#include "cli/train/weights.h"
#include "cli/command.h"
#include "fuzz/memory_file.h"
#include "io/tensors/formats.h"

enum { LENGTH_BYTES = 8, LONGEST = 1 << 16 };

static memory_file file_of(const uint8_t *data, size_t size, int whole)
{
    static uint8_t bytes[LENGTH_BYTES + LONGEST];
    if (whole)
        return memory_file_new(data, size);
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    size_t header = end != NULL ? (size_t)(end - data) : size,
           rest = end != NULL ? header + 1 : size;
    for (int i = 0; i < LENGTH_BYTES; i++)
        bytes[i] = (uint8_t)((uint64_t)header >> 8 * i);
    memcpy(bytes + LENGTH_BYTES, data, header);
    memcpy(bytes + LENGTH_BYTES + header, data + rest, size - rest);
    return memory_file_new(bytes, LENGTH_BYTES + header + size - rest);
}

/* Every byte that the handle offers can be read, and every tensor is found by its name. */
static void use(const adj_tensors *t, int64_t longest)
{
    volatile unsigned sum = 0; /* so that the bytes are read */
    for (int i = 0; i < t->n; i++) {
        adj_tensor x = t->tensor[i];
        if (adj_tensors_unreadable(t, i) != NULL)
            continue;
        int64_t n = adj_tensor_bytes(&x);
        must(n >= 0 && n <= longest && adj_tensors_find(t, x.name) == i);
        for (int64_t k = 0; k < n; k++)
            sum = sum + ((const uint8_t *)x.data)[k];
        for (int64_t k = 0; k < adj_shape_elems(x.shape); k++)
            sum = sum + adj_tensor_value(&x, k) > 0;
    }
    for (int i = 0; i < t->n_metadata; i++)
        sum = sum + (unsigned)strlen(t->metadata[i].value);
    adj_model_card *card = NULL;
    adj_error error;
    if (adj_model_card_read(t, &card, &error) == ADJ_OK) {
        must(card->options.classes >= 0 && card->options.classes <= 100000);
        for (int64_t i = 0; card->class_names != NULL && i < card->options.classes; i++)
            sum = sum + (unsigned)strlen(card->class_names[i]);
    }
    free(card);
}

static void resume(const char *path)
{
    train_opts o;
    char *argv[] = {"train", "--resume", "--checkpoint", (char *)path, NULL};
    adj_tensors *file = NULL;

    must(parse_train(&o, 4, argv) == CONTINUE);
    if (checkpoint_open(&o, &file) == CONTINUE)
        must(o.epochs > 0 && o.batch > 0 && o.lr > 0 && o.model[0] != '\0');
    adj_tensors_free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > LONGEST)
        return 0;
    memory_file f = file_of(data + 1, size - 1, data[0] & 1);
    adj_tensors *t = NULL;

    adj_tensors_read(f.path, &t); /* whatever it may be: NumPy's, IDX */
    if (t != NULL && t->n > 0)
        use(t, INT64_MAX); /* it may be compressed */
    adj_tensors_free(t);
    t = NULL;
    adj_status status = adj_safetensors_read(f.path, &t);
    must(t != NULL && (status == ADJ_OK) == (t->message[0] == '\0'));
    if (status == ADJ_OK) {
        use(t, LONGEST);
        resume(f.path);
    } else
        must(t->n == 0 && adj_tensors_metadata(t, "model") == NULL);
    adj_tensors_free(t);
    memory_file_free(&f);
    return 0;
}
