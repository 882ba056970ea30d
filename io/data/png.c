/* png.c - PNG by libpng's simplified interface: 8 bits a channel, whatever the file has. */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

int io_is_png(const uint8_t *bytes, size_t n)
{
    return n >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0;
}

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* The orientation in a chunk eXIf before the pixels; 0: the bytes end before it is known. */
static int find_orientation(const uint8_t *bytes, size_t n)
{
    enum { AROUND = 12 }; /* length, name and sum of a chunk */
    for (size_t at = sizeof signature; at + 8 <= n;) {
        size_t length = big_endian(bytes + at);
        if (memcmp(bytes + at + 4, "IDAT", 4) == 0 || memcmp(bytes + at + 4, "IEND", 4) == 0)
            return 1;
        if (length > n - at || AROUND > n - at - length)
            return 0;
        if (memcmp(bytes + at + 4, "eXIf", 4) == 0)
            return io_exif_orientation(bytes + at + 8, length);
        at += AROUND + length;
    }
    return 0;
}

adj_status io_png_header(const uint8_t *bytes, size_t n, const char *name, image_header *header,
                         adj_error *error)
{
    enum { IHDR_END = 8 + 8 + 13, COLOUR = 2 };
    if (n < IHDR_END)
        return adj_error_set(error, ADJ_EARG, "png: %.300s: the file ends within its header", name);
    if (memcmp(bytes + 12, "IHDR", 4) != 0)
        return adj_error_set(error, ADJ_EIO, "png: %.300s: the header is corrupt", name);
    int64_t w = big_endian(bytes + 16), h = big_endian(bytes + 20);
    const char *why = io_image_refused(h, w);
    if (why != NULL)
        return adj_error_set(error, ADJ_EIO, "png: %.300s: size %lldx%lld: %s", name, (long long)h,
                             (long long)w, why);
    header->size = (image_size){h, w, bytes[25] & COLOUR ? 3 : 1};
    header->orientation = find_orientation(bytes, n);
    if (header->orientation == 0)
        return adj_error_set(error, ADJ_EARG, "png: %.300s: the file ends before its pixels", name);
    return ADJ_OK;
}

/* After png_image_begin_read_...: the pixels as the file's channels. */
static adj_status finish(png_image *p, const char *name, image *result, adj_error *error)
{
    p->flags |= PNG_IMAGE_FLAG_16BIT_sRGB; /* as other programs read them: not as linear light */
    p->format &= PNG_FORMAT_FLAG_COLOR | PNG_FORMAT_FLAG_ALPHA;
    result->size = (image_size){p->height, p->width, PNG_IMAGE_PIXEL_CHANNELS(p->format)};
    result->pixels = malloc((size_t)size_elems(result->size));
    if (result->pixels == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "png: %.300s: out of memory", name);
    if (png_image_finish_read(p, NULL, result->pixels, 0, NULL))
        return ADJ_OK;
    free(result->pixels);
    *result = (image){0};
    return adj_error_set(error, ADJ_EIO, "png: %.300s: %s", name, p->message);
}

adj_status io_png_decode(const uint8_t *bytes, size_t n, const char *name, image *result,
                         adj_error *error)
{
    /* deflate makes at most 1032 bytes of one, and a byte is at most 8 pixels: a header that says
     * more than that lies, and no memory is taken for it. */
    enum { MAX_PIXELS = 1032 * 8 };
    png_image p = {.version = PNG_IMAGE_VERSION};

    if (!png_image_begin_read_from_memory(&p, bytes, n))
        return adj_error_set(error, ADJ_EIO, "png: %.300s: %s", name, p.message);
    const char *why = io_image_refused(p.height, p.width);
    if (why == NULL && (uint64_t)p.height * p.width / MAX_PIXELS > n)
        why = "the file is too short for that";
    adj_status status = why != NULL
                            ? adj_error_set(error, ADJ_EIO, "png: %.300s: size %ux%u: %s", name,
                                            (unsigned)p.height, (unsigned)p.width, why)
                            : finish(&p, name, result, error);
    png_image_free(&p);
    return status;
}
