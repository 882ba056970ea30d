/* fuzz_cifar.c - the readers of CIFAR's binary files and of their class names.
 *
 * Input: a flag (1: CIFAR-100's records), the length of the names' file, that file, the images'. */
#include "adjoint_data.h"
#include "fuzz/memory_file.h"

static void use(const char *folder)
{
    volatile unsigned sum = 0; /* so that the bytes are read */
    adj_dataset *d = NULL;
    adj_status status = adj_dataset_open(folder, ADJ_TRAIN, NULL, &d);

    must(d != NULL && (status == ADJ_OK) == (d->message[0] == '\0'));
    for (int64_t i = 0; i < d->n * d->size.h * d->size.w * d->size.c; i++)
        sum = sum + d->images[i];
    for (int64_t i = 0; i < d->n; i++)
        must(d->labels[i] >= 0 && d->labels[i] < d->classes);
    for (int i = 0; status == ADJ_OK && d->class_names != NULL && i < d->classes; i++)
        must(strlen(d->class_names[i]) > 0);
    adj_dataset_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t n = data[1] < size - 2 ? data[1] : size - 2;
    const char *images = data[0] & 1 ? "train.bin" : "data_batch_1.bin",
               *names = data[0] & 1 ? "fine_label_names.txt" : "batches.meta.txt";
    memory_file text = memory_file_new(data + 2, n),
                file = memory_file_new(data + 2 + n, size - 2 - n);
    put_link(names, &text);
    put_link(images, &file);
    use(linked_folder());
    remove_link(images);
    remove_link(names);
    memory_file_free(&text);
    memory_file_free(&file);
    return 0;
}
