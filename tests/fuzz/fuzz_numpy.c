/* fuzz_numpy.c - the readers of .npy and .npz files against arbitrary bytes.
 *
 * Input: flags (1: an archive, else a pair of files; 2: another image size), two bytes with the
 * length of the images' file, that file, the labels' file. */
#include "fuzz/read_data.h"

static void open_parts(const char *path, int other_size)
{
    adj_dataset_opts o = {.limit = 50};
    if (other_size)
        o.image.size.h = 3, o.image.size.w = 4, o.image.size.c = 3;
    for (int part = ADJ_TRAIN; part <= ADJ_TEST; part++)
        read_data(path, (adj_dataset_part)part, &o, "np");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t n = (size_t)data[1] << 8 | data[2];
    n = n < size - 3 && !(data[0] & 1) ? n : size - 3;
    memory_file x = memory_file_new(data + 3, n);
    if (data[0] & 1)
        open_parts(x.path, data[0] & 2);
    else {
        memory_file y = memory_file_new(data + 3 + n, size - 3 - n);
        put_link("x.npy", &x);
        put_link("y.npy", &y);
        open_parts(linked_folder(), data[0] & 2);
        remove_link("x.npy");
        remove_link("y.npy");
        memory_file_free(&y);
    }
    memory_file_free(&x);
    return 0;
}
