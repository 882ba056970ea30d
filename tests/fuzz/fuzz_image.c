/* fuzz_image.c - the readers of PNG, JPEG and WEBP, EXIF with them, against arbitrary bytes.
 *
 * Input: one byte of options (1 to 4 channels; 4: only the size 5x6), the file. */
#include <string.h>
#include <webp/decode.h>

#include "adjoint_data.h"
#include "fuzz/must.h"
#include "io/data/origin.h"

/* True if the file is a WEBP of more pixels than are decoded in a moment, which a few bytes can
 * hold. */
static int is_slow(const uint8_t *file, size_t n)
{
    enum { MAX_PIXELS = 4000000 };
    int w = 0, h = 0;
    return WebPGetInfo(file, n, &w, &h) && (int64_t)w * h > MAX_PIXELS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t channels[] = {1, 3, 4, 3};
    float pixels[5 * 6 * 4];
    adj_error error = {0};
    int resized = -1;

    if (size < 1 || is_slow(data + 1, size - 1))
        return 0;
    adj_image_opts o = {.size = {5, 6, channels[data[0] & 3]},
                        .resize = data[0] & 4 ? ADJ_RESIZE_ERROR : ADJ_RESIZE_AUTO,
                        .background = {data[0], 7, 255}};
    adj_status status = adj_image_decode(data + 1, size - 1, "input", &o, pixels, &resized, &error);
    must((status == ADJ_OK) == (error.message[0] == '\0'));
    if (status != ADJ_OK) {
        must((status == ADJ_EIO || status == ADJ_ENOMEM) && strstr(error.message, "input") != NULL);
        return 0;
    }
    must(resized == 0 || resized == 1);
    for (int64_t i = 0; i < 5 * 6 * o.size.c; i++)
        must(pixels[i] >= -0.01f && pixels[i] <= 255.01f);
    return 0;
}
