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

static adj_status refuse_colors(const char *name, adj_error *error)
{
    return adj_error_set(error, ADJ_EIO, "jpeg: %.300s: its colors are CMYK (expected gray or RGB)",
                         name);
}

static adj_status jpeg_header(const uint8_t *bytes, size_t n, const char *name,
                              image_header *header, adj_error *error)
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
        return adj_error_set(error, ADJ_EARG, "jpeg: %.300s: the file ends within its header",
                             name);
    if (found < 0 || s.length < 6)
        return adj_error_set(error, ADJ_EIO, "jpeg: %.300s: the header is corrupt at offset %zu",
                             name, at);
    int64_t h = s.body[1] << 8 | s.body[2], w = s.body[3] << 8 | s.body[4];
    const char *why = io_image_refused(h, w);
    if (why != NULL)
        return adj_error_set(error, ADJ_EIO, "jpeg: %.300s: size %lldx%lld: %s", name, (long long)h,
                             (long long)w, why);
    if (s.body[5] != 1 && s.body[5] != 3)
        return refuse_colors(name, error);
    header->size = (adj_image_size){h, w, s.body[5] == 1 ? 1 : 3};
    return ADJ_OK;
}

/* ---- the pixels ---- */

/* Converts the failure of a call to a status. A warning, such as of bytes between segments, is
 * ADJ_OK unless the file ends early. */
static adj_status take_failure(tjhandle t, const char *name, adj_error *error)
{
    const char *why = tjGetErrorStr2(t);
    if (tjGetErrorCode(t) == TJERR_WARNING && strstr(why, "remature end") == NULL)
        return ADJ_OK;
    const int lacks_memory = strstr(why, "emory") != NULL; /* "Insufficient memory (case 4)" */
    return adj_error_set(error, lacks_memory ? ADJ_ENOMEM : ADJ_EIO, "jpeg: %.300s: %s", name,
                         lacks_memory ? "out of memory" : why);
}

static adj_status decompress(tjhandle t, const uint8_t *bytes, size_t n, const char *name,
                             image *result, adj_error *error)
{
    /* Limit of pixels for a byte of the file: a block of 8x8 pixels takes at least one bit, so a
     * header with a larger size is wrong, and no memory is allocated for it. */
    enum { MAX_PIXELS = 1024 };
    int w, h, subsampling, colors = -1; /* stays where the bytes end before the pixels */
    adj_status status = ADJ_OK;

    if (tjDecompressHeader3(t, bytes, n, &w, &h, &subsampling, &colors) != 0)
        status = take_failure(t, name, error);
    if (status != ADJ_OK)
        return status;
    if (colors < 0)
        return adj_error_set(error, ADJ_EIO, "jpeg: %.300s: the file ends before its pixels", name);
    const char *why = io_image_refused(h, w);
    if (why == NULL && (int64_t)h * w / MAX_PIXELS > (int64_t)n)
        why = "the file is too short for that";
    if (why != NULL)
        return adj_error_set(error, ADJ_EIO, "jpeg: %.300s: size %dx%d: %s", name, h, w, why);
    if (colors == TJCS_CMYK || colors == TJCS_YCCK)
        return refuse_colors(name, error);
    int gray = colors == TJCS_GRAY;
    result->size = (adj_image_size){h, w, gray ? 1 : 3};
    /* zeros: of a damaged image libjpeg may leave rows out */
    result->bytes = calloc((size_t)size_elems(result->size), 1);
    if (result->bytes == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "jpeg: %.300s: out of memory", name);
    if (tjDecompress2(t, bytes, n, result->bytes, w, 0, h, gray ? TJPF_GRAY : TJPF_RGB,
                      TJFLAG_LIMITSCANS) != 0)
        status = take_failure(t, name, error);
    return status;
}

static adj_status decode_jpeg(const uint8_t *bytes, size_t n, const char *name, image *result,
                              adj_error *error)
{
    tjhandle t = tjInitDecompress();
    if (t == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "jpeg: %.300s: out of memory", name);
    adj_status status = decompress(t, bytes, n, name, result, error);
    tjDestroy(t);
    return status;
}

const image_format jpeg_format = {is_jpeg, jpeg_header, decode_jpeg};
