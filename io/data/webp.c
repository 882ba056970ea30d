/* webp.c - WEBP by libwebp: lossy or lossless, RGB with or without alpha. Animations are refused.
 */
#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>

#include "image.h"

enum { RIFF_HEADER = 12, CHUNK_HEADER = 8 };

static int is_webp(const uint8_t *bytes, size_t n)
{
    return n >= RIFF_HEADER && memcmp(bytes, "RIFF", 4) == 0 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

/* ---- the header ---- */

/* Returns the orientation in a chunk EXIF, which comes after the pixels; 1 if there is none, 0 if
 * the bytes end before it is known. Chunks are a name, a length (least significant byte first) and
 * a body of an even number of bytes; VP8X is the first of a file that has others than the pixels.
 */
static int find_orientation(const uint8_t *bytes, size_t n)
{
    enum { HAS_EXIF = 8 }; /* in VP8X's first byte */
    static const char prefix[6] = "Exif\0";
    const uint8_t *first = bytes + RIFF_HEADER;

    if (n < RIFF_HEADER + CHUNK_HEADER + 1)
        return 0;
    if (memcmp(first, "VP8X", 4) != 0 || (first[CHUNK_HEADER] & HAS_EXIF) == 0)
        return 1;
    for (size_t at = RIFF_HEADER; n - at >= CHUNK_HEADER;) {
        const uint8_t *b = bytes + at;
        const size_t length = (size_t)b[7] << 24 | (size_t)b[6] << 16 | (size_t)b[5] << 8 | b[4];
        at += CHUNK_HEADER;
        if (length > n - at)
            return 0;
        if (memcmp(b, "EXIF", 4) == 0) { /* some programs copy JPEG's prefix */
            const size_t skip =
                length > sizeof prefix && memcmp(bytes + at, prefix, sizeof prefix) == 0
                    ? sizeof prefix
                    : 0;
            return io_exif_orientation(bytes + at + skip, length - skip);
        }
        at += length;
        at += at < n ? length & 1 : 0;
    }
    return 0;
}

static adj_status webp_header(const uint8_t *bytes, size_t n, const io_place *p,
                              image_header *header)
{
    WebPBitstreamFeatures f = {0};
    const VP8StatusCode code = WebPGetFeatures(bytes, n, &f);

    if (code == VP8_STATUS_NOT_ENOUGH_DATA)
        return io_refuse(p, ADJ_EARG, "the file ends within its header");
    if (code != VP8_STATUS_OK)
        return io_refuse(p, ADJ_EIO, "the header is corrupt");
    if (f.has_animation)
        return io_refuse(p, ADJ_EIO, "is an animation (expected one image)");
    header->size = (adj_image_size){f.height, f.width, 3};
    header->orientation = find_orientation(bytes, n);
    return header->orientation != 0 ? ADJ_OK
                                    : io_refuse(p, ADJ_EARG, "the file ends before its EXIF data");
}

/* ---- the pixels ---- */

static adj_status decode_webp(const uint8_t *bytes, size_t n, const io_place *p,
                              adj_image_size size, image *result)
{
    WebPDecoderConfig c;
    if (!WebPInitDecoderConfig(&c) || WebPGetFeatures(bytes, n, &c.input) != VP8_STATUS_OK)
        return io_refuse(p, ADJ_EIO, "the header is corrupt");
    const int channels = c.input.has_alpha ? 4 : 3;
    result->size = (adj_image_size){size.h, size.w, channels};
    result->bytes = malloc((size_t)size_elems(result->size));
    if (result->bytes == NULL)
        return io_out_of_memory(p);
    c.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
    c.output.is_external_memory = 1;
    c.output.u.RGBA = (WebPRGBABuffer){.rgba = result->bytes,
                                       .stride = (int)size.w * channels,
                                       .size = (size_t)size_elems(result->size)};
    const VP8StatusCode code = WebPDecode(bytes, n, &c);
    WebPFreeDecBuffer(&c.output);
    switch (code) {
    case VP8_STATUS_OK: return ADJ_OK;
    case VP8_STATUS_OUT_OF_MEMORY: return io_out_of_memory(p);
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED: return io_refuse(p, ADJ_EIO, "the file ends before its last pixel");
    default: return io_refuse(p, ADJ_EIO, "the pixels are corrupt");
    }
}

const image_format webp_format = {"webp: ", is_webp, webp_header, decode_webp};
