/* jpeg.c - JPEG by TurboJPEG: gray or RGB. */
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

#include "image.h"

static int is_jpeg(const uint8_t *bytes, size_t n)
{
    return n >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

/* ---- the header ----
 *
 * FF D8, then segments FF MARKER LENGTH (two bytes, with themselves), up to the frame header: SOF,
 * markers C0 to CF but C4, C8 and CC. EXIF is a segment E1 that begins with "Exif\0\0". */

typedef struct {
    uint8_t marker;
    const uint8_t *body;
    size_t length;
} segment;

/* Reads the segment at *at and moves *at past it. Returns 0 if the bytes end there, -1 if there is
 * no segment. */
static int next_segment(const uint8_t *bytes, size_t n, size_t *at, segment *s)
{
    while (*at + 1 < n && bytes[*at] == 0xff && bytes[*at + 1] == 0xff) /* fill bytes */
        ++*at;
    if (n - *at < 4)
        return 0;
    if (bytes[*at] != 0xff)
        return -1;
    size_t length = (size_t)bytes[*at + 2] << 8 | bytes[*at + 3];
    if (length < 2)
        return -1;
    if (length > n - *at - 2)
        return 0;
    *s = (segment){bytes[*at + 1], bytes + *at + 4, length - 2};
    *at += 2 + length;
    return 1;
}

static int is_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static adj_status jpeg_header(const uint8_t *bytes, size_t n, const io_place *p,
                              image_header *header)
{
    static const char exif[6] = "Exif\0";
    size_t at = 2;
    segment s = {0};
    int found;

    header->orientation = 1;
    while ((found = next_segment(bytes, n, &at, &s)) > 0 && !is_frame(s.marker))
        if (s.marker == 0xe1 && s.length > sizeof exif && memcmp(s.body, exif, sizeof exif) == 0)
            header->orientation = io_exif_orientation(s.body + sizeof exif, s.length - sizeof exif);
    if (found == 0)
        return io_refuse(p, ADJ_EARG, "the file ends within its header");
    if (found < 0 || s.length < 6)
        return io_refuse(p, ADJ_EIO, "the header is corrupt at offset %zu", at);
    header->size =
        (adj_image_size){s.body[1] << 8 | s.body[2], s.body[3] << 8 | s.body[4], s.body[5]};
    return header->size.c == 1 || header->size.c == 3
               ? ADJ_OK
               : io_refuse(p, ADJ_EIO, "its colors are CMYK (expected gray or RGB)");
}

/* ---- the pixels ---- */

/* Converts the failure of a call to a status. A warning, such as of bytes between segments, is
 * ADJ_OK unless the file ends early. */
static adj_status take_failure(tjhandle t, const io_place *p)
{
    const char *why = tjGetErrorStr2(t);
    if (tjGetErrorCode(t) == TJERR_WARNING && strstr(why, "remature end") == NULL)
        return ADJ_OK;
    const int lacks_memory = strstr(why, "emory") != NULL; /* "Insufficient memory (case 4)" */
    return lacks_memory ? io_out_of_memory(p) : io_refuse(p, ADJ_EIO, "%s", why);
}

static adj_status decompress(tjhandle t, const uint8_t *bytes, size_t n, const io_place *p,
                             adj_image_size size, image *result)
{
    /* Limit of pixels for a byte of the file: a block of 8x8 pixels takes at least one bit, so a
     * header with a larger size is wrong, and no memory is allocated for it. */
    enum { MAX_PIXELS = 1024 };
    int w, h, subsampling, colors = -1; /* stays where the bytes end before the pixels */
    adj_status status = ADJ_OK;

    if (tjDecompressHeader3(t, bytes, n, &w, &h, &subsampling, &colors) != 0)
        status = take_failure(t, p);
    if (status != ADJ_OK)
        return status;
    if (colors < 0)
        return io_refuse(p, ADJ_EIO, "the file ends before its pixels");
    if (!same_size(size, (adj_image_size){h, w, colors == TJCS_GRAY ? 1 : 3}))
        return io_refuse(p, ADJ_EIO, "the header is corrupt");
    if ((int64_t)h * w / MAX_PIXELS > (int64_t)n)
        return io_refuse(p, ADJ_EIO, "size %dx%d: the file is too short for that", h, w);
    result->size = size;
    /* zeros: of a damaged image libjpeg may leave rows out */
    result->bytes = calloc((size_t)size_elems(size), 1);
    if (result->bytes == NULL)
        return io_out_of_memory(p);
    if (tjDecompress2(t, bytes, n, result->bytes, w, 0, h, size.c == 1 ? TJPF_GRAY : TJPF_RGB,
                      TJFLAG_LIMITSCANS) != 0)
        status = take_failure(t, p);
    return status;
}

static adj_status decode_jpeg(const uint8_t *bytes, size_t n, const io_place *p,
                              adj_image_size size, image *result)
{
    tjhandle t = tjInitDecompress();
    if (t == NULL)
        return io_out_of_memory(p);
    adj_status status = decompress(t, bytes, n, p, size, result);
    tjDestroy(t);
    return status;
}

const image_format jpeg_format = {"jpeg: ", is_jpeg, jpeg_header, decode_jpeg};
