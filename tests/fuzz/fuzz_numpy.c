/* fuzz_numpy.c - the readers of .npy and .npz files against arbitrary bytes.
 *
 * Input: flags (1: an archive, else a pair of files; 2: another image size), two bytes with the
 * length of the images' file, that file, the labels' file. */
#include "fuzz/read_data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[2] = {"x.npy", "y.npy"};
    if (size < 3)
        return 0;
    size_t n = (size_t)data[1] << 8 | data[2];
    n = n < size - 3 ? n : size - 3;
    adj_dataset_opts o = {.limit = 50};
    if (data[0] & 2)
        o.image.size.h = 3, o.image.size.w = 4, o.image.size.c = 3;
    if (data[0] & 1) {
        const memory_file x = memory_file_new(data + 3, size - 3);
        for (int part = ADJ_TRAIN; part <= ADJ_TEST; part++)
            read_data(x.path, (adj_dataset_part)part, &o, "np");
        memory_file_free(&x);
    } else {
        const memory_file files[2] = {memory_file_new(data + 3, n),
                                      memory_file_new(data + 3 + n, size - 3 - n)};
        read_pair(names, files, &o, "np");
    }
    return 0;
}
