/* png.c - PNG by libpng's row interface: the samples as stored, as gray or RGB with or without
 * alpha.
 *
 * Palettes and 1, 2 and 4 bits are expanded to 8, tRNS becomes alpha, Adam7 is resolved. gAMA,
 * iCCP, sRGB, cHRM and all other ancillary chunks are ignored: samples are not transformed. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

static int is_png(const uint8_t *bytes, size_t n)
{
    return n >= sizeof signature && memcmp(bytes, signature, sizeof signature) == 0;
}

static uint32_t big_endian(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Returns the orientation in a chunk eXIf before the pixels; 0 if the bytes end before it is known.
 */
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

static adj_status png_header(const uint8_t *bytes, size_t n, const io_place *p,
                             image_header *header)
{
    enum { IHDR_END = 8 + 8 + 13, COLOR = 2 };
    if (n < IHDR_END)
        return io_refuse(p, ADJ_EARG, "the file ends within its header");
    if (memcmp(bytes + 12, "IHDR", 4) != 0)
        return io_refuse(p, ADJ_EIO, "the header is corrupt");
    header->size =
        (adj_image_size){big_endian(bytes + 20), big_endian(bytes + 16), bytes[25] & COLOR ? 3 : 1};
    header->orientation = find_orientation(bytes, n);
    return header->orientation != 0 ? ADJ_OK
                                    : io_refuse(p, ADJ_EARG, "the file ends before its pixels");
}

/* ---- the pixels ---- */

typedef struct {
    png_structp png;
    png_infop info;
    const uint8_t *bytes;
    size_t n, at;      /* the file, and where libpng is in it */
    size_t stored_row; /* bytes of a row in the file, before deflate */
    int passes;        /* over the rows: 7 of Adam7, else 1 */
    image *result;
    char message[128]; /* libpng's, of its error */
} reader;

static void on_error(png_structp png, png_const_charp message)
{
    reader *r = png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void on_read(png_structp png, png_bytep to, size_t n)
{
    reader *r = png_get_io_ptr(png);
    if (n > r->n - r->at)
        png_error(png, "the file ends before its last pixel");
    memcpy(to, r->bytes + r->at, n);
    r->at += n;
}

/* Reads up to the pixels. Of the ancillary chunks only tRNS is used. */
static void read_info(reader *r)
{
    static const png_byte transparency[] = "tRNS";

    png_set_user_limits(r->png, ADJ_MAX_SIDE, ADJ_MAX_SIDE);
    png_set_benign_errors(r->png, 1); /* are warnings */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_AS_DEFAULT, transparency, 1);
    png_read_info(r->png, r->info);
    r->stored_row = png_get_rowbytes(r->png, r->info);
    png_set_expand(r->png);
    r->passes = png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    r->result->size =
        (adj_image_size){png_get_image_height(r->png, r->info),
                         png_get_image_width(r->png, r->info), png_get_channels(r->png, r->info)};
}

static void read_rows(reader *r)
{
    const image *x = r->result;
    const size_t row = (size_t)(x->size.w * x->size.c);

    for (int pass = 0; pass < r->passes; pass++)
        for (size_t i = 0; i < (size_t)x->size.h; i++)
            png_read_row(r->png,
                         x->bytes != NULL ? x->bytes + i * row : (png_bytep)(x->floats + i * row),
                         NULL);
}

/* Calls read_info or read_rows. Returns 0 if libpng has failed; r has its message. */
static int try_step(reader *r, void (*step)(reader *r))
{
    if (setjmp(png_jmpbuf(r->png)) != 0)
        return 0;
    step(r);
    return 1;
}

/* Converts each row's 16-bit samples, which lie in its first half, to floats in place. It goes from
 * the last sample to the first, since a float overwrites samples behind its own. */
static void widen(image *x)
{
    const size_t row = (size_t)(x->size.w * x->size.c);
    for (size_t i = 0; i < (size_t)x->size.h; i++) {
        float *to = x->floats + i * row;
        const uint8_t *from = (const uint8_t *)to;
        for (size_t k = row; k-- > 0;)
            to[k] = (float)(from[2 * k] << 8 | from[2 * k + 1]) / 257;
    }
}

/* Allocates the pixels. */
static adj_status allocate(const reader *r, const io_place *p)
{
    enum {
        MAX_RATIO = 1032
    }; /* largest ratio of deflate; a header with a larger size is refused */
    image *x = r->result;
    const size_t samples = (size_t)size_elems(x->size);

    if (r->stored_row * (size_t)x->size.h / MAX_RATIO > r->n)
        return io_refuse(p, ADJ_EIO, "size %s: the file is too short for that",
                         sides_text(x->size).s);
    if (png_get_bit_depth(r->png, r->info) == 16)
        x->floats = malloc(samples * sizeof *x->floats);
    else
        x->bytes = malloc(samples);
    return x->bytes != NULL || x->floats != NULL ? ADJ_OK : io_out_of_memory(p);
}

static adj_status decode_steps(reader *r, const io_place *p)
{
    int is_read = try_step(r, read_info);
    adj_status status = is_read ? allocate(r, p) : ADJ_OK;
    if (status != ADJ_OK)
        return status;
    if (!is_read || !try_step(r, read_rows)) {
        const int lacks_memory = strstr(r->message, "emory") != NULL; /* "Insufficient memory" */
        return lacks_memory ? io_out_of_memory(p) : io_refuse(p, ADJ_EIO, "%s", r->message);
    }
    if (r->result->floats != NULL)
        widen(r->result);
    return ADJ_OK;
}

static adj_status decode_png(const uint8_t *bytes, size_t n, const io_place *p, adj_image_size size,
                             image *result)
{
    (void)size; /* libpng reads the same header */
    reader r = {.bytes = bytes, .n = n, .result = result};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png != NULL ? png_create_info_struct(r.png) : NULL;
    if (r.info != NULL)
        png_set_read_fn(r.png, &r, on_read);
    const adj_status status = r.info != NULL ? decode_steps(&r, p) : io_out_of_memory(p);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    return status;
}

const image_format png_format = {"png: ", is_png, png_header, decode_png};
