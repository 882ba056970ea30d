/* png.c - see png.h. */
#include <png.h>
#include <stdlib.h>

#include "png.h" // NOLINT(readability-duplicate-include): the one above is libpng's

uint8_t *png_encode(const picture *p, size_t *bytes)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)p->w,
                       .height = (png_uint_32)p->h,
                       .format = p->c == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
    png_alloc_size_t n = 0;
    uint8_t *file = NULL;
    if (png_image_write_to_memory(&image, NULL, &n, 0, p->pixels, 0, NULL))
        file = malloc(n);
    if (file != NULL && !png_image_write_to_memory(&image, file, &n, 0, p->pixels, 0, NULL)) {
        free(file);
        return NULL;
    }
    *bytes = n;
    return file;
}

void put_base64(FILE *f, size_t n, const uint8_t bytes[])
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i;
        uint32_t v = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                     (left > 2 ? bytes[i + 2] : 0);
        fputc(letters[v >> 18], f);
        fputc(letters[v >> 12 & 63], f);
        fputc(left > 1 ? letters[v >> 6 & 63] : '=', f);
        fputc(left > 2 ? letters[v & 63] : '=', f);
    }
}

int png_put_uri(FILE *f, const picture *p)
{
    size_t n = 0;
    uint8_t *file = png_encode(p, &n);
    if (file == NULL)
        return -1;
    fputs("data:image/png;base64,", f);
    put_base64(f, n, file);
    free(file);
    return 0;
}
