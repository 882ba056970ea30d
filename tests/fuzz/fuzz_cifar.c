/* fuzz_cifar.c - the readers of CIFAR's binary files and of their class names.
 *
 * Input: a flag (1: CIFAR-100's records), the length of the names' file, that file, the images'. */
#include "fuzz/read_data.h"

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
    read_data(linked_folder(), ADJ_TRAIN, NULL, "cifar: ");
    remove_link(images);
    remove_link(names);
    memory_file_free(&text);
    memory_file_free(&file);
    return 0;
}
