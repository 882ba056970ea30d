/* fuzz_idx.c - the reader of IDX and .gz files against arbitrary bytes.
 *
 * Input: flags (1: gzip the images, 2: gzip the labels, so that what is inside is reached), two
 * bytes with the length of the images' file, that file, the labels' file. */
#include <string.h>
#include <zlib.h>

#include "adjoint_data.h"
#include "fuzz/memory_file.h"
#include "io/data/origin.h"

enum { ROOM = 1 << 17, BATCH = 3 };

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

/* Reads all images of the data set and makes batches. */
static void use(const adj_dataset *d)
{
    static float x[BATCH * 5 * 6 * 3];
    int32_t labels[BATCH];
    volatile unsigned sum = 0; /* so that the bytes are read */

    must(d->n > 0 && d->size.h > 0 && d->size.w > 0 && d->size.c > 0);
    for (int64_t i = 0; i < d->n * d->size.h * d->size.w * d->size.c; i++)
        sum = sum + d->images[i];
    for (int64_t i = 0; i < d->n; i++)
        must(d->labels[i] >= 0 && d->labels[i] < d->classes);
    adj_batch(d, NULL, d->n - 1, (adj_shape){4, {BATCH, 5, 6, 3}}, x, labels, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > ROOM / 2)
        return 0;
    size_t n = (size_t)data[1] << 8 | data[2];
    n = n < size - 3 ? n : size - 3;
    memory_file images = file_of(data + 3, n, data[0] & 1);
    memory_file labels = file_of(data + 3 + n, size - 3 - n, data[0] & 2);
    adj_dataset *d = NULL;

    put_link("train-images-idx3-ubyte", &images);
    put_link("train-labels-idx1-ubyte", &labels);
    adj_status status = adj_dataset_open(linked_folder(), ADJ_TRAIN, NULL, &d);
    must(d != NULL && (status == ADJ_OK) == (d->message[0] == '\0'));
    if (status == ADJ_OK)
        use(d);
    else
        must(d->n == 0 &&
             (strncmp(d->message, "idx: ", 5) == 0 || strncmp(d->message, "data: ", 6) == 0));
    adj_dataset_free(d);
    remove_link("train-images-idx3-ubyte");
    remove_link("train-labels-idx1-ubyte");
    memory_file_free(&images);
    memory_file_free(&labels);
    return 0;
}
