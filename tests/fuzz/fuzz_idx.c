/* fuzz_idx.c - the reader of IDX and .gz files against arbitrary bytes.
 *
 * Input: flags (1: gzip the images, 2: gzip the labels, so that what is inside is reached), two
 * bytes with the length of the images' file, that file, the labels' file. */
#include <zlib.h>

#include "fuzz/read_data.h"

enum { ROOM = 1 << 17 };

static memory_file file_of(const uint8_t *bytes, size_t n, int compress_it)
{
    static uint8_t packed[ROOM];
    z_stream z = {0};

    if (!compress_it)
        return memory_file_new(bytes, n);
    must(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (uint8_t *)bytes;
    z.avail_in = (unsigned)n;
    z.next_out = packed;
    z.avail_out = ROOM;
    must(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return memory_file_new(packed, ROOM - z.avail_out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > ROOM / 2)
        return 0;
    size_t n = (size_t)data[1] << 8 | data[2];
    n = n < size - 3 ? n : size - 3;
    static const char *const names[2] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"};
    const memory_file files[2] = {file_of(data + 3, n, data[0] & 1),
                                  file_of(data + 3 + n, size - 3 - n, data[0] & 2)};
    read_pair(names, files, NULL, "idx: ");
    return 0;
}
