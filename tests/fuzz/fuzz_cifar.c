/* fuzz_cifar.c - the readers of CIFAR's binary files and of their class names.
 *
 * Input: a flag (1: CIFAR-100's records), the length of the names' file, that file, the images'. */
#include "fuzz/read_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t n = data[1] < size - 2 ? data[1] : size - 2;
    static const char *const names[2][2] = {{"batches.meta.txt", "data_batch_1.bin"},
                                            {"fine_label_names.txt", "train.bin"}};
    const memory_file files[2] = {memory_file_new(data + 2, n),
                                  memory_file_new(data + 2 + n, size - 2 - n)};
    read_pair(names[data[0] & 1], files, NULL, "cifar: ");
    return 0;
}
