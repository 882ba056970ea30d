/* image.c - an image file of any format, decoded and turned; and the public reader of single
 * images. */
#include <stdlib.h>
#include <string.h>

#include "image.h"

static const image_format *find_format(const uint8_t *bytes, size_t n)
{
    static const image_format *const formats[] = {&png_format, &jpeg_format, &webp_format};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i]->is(bytes, n))
            return formats[i];
    return NULL;
}

static adj_status check_size(const io_place *p, adj_image_size size)
{
    const char *why = NULL;
    if (size.h < 1 || size.w < 1)
        why = "is empty";
    else if (!has_sides(size) || size.h * size.w > IMAGE_MAX_PIXELS)
        why = "is too large (expected sides up to 32768 and up to 100 million pixels)";
    return why == NULL ? ADJ_OK : io_refuse(p, ADJ_EIO, "size %s: %s", sides_text(size).s, why);
}

/* Finds the format, whose prefix p gets, and reads the header of an image before turning. */
static adj_status open_image(const uint8_t *bytes, size_t n, io_place *p, const image_format **f,
                             image_header *header)
{
    *f = find_format(bytes, n);
    if (*f == NULL)
        return io_refuse(p, ADJ_EIO, n > 0 ? "is neither PNG, JPEG nor WEBP" : "the file is empty");
    p->prefix = (*f)->prefix;
    const adj_status status = (*f)->header(bytes, n, p, header);
    return status == ADJ_OK ? check_size(p, header->size) : status;
}

adj_status io_image_header(const uint8_t *bytes, size_t n, const char *name, image_header *header,
                           adj_error *error)
{
    io_place p = {"image: ", name, error};
    const image_format *f;
    const adj_status status = open_image(bytes, n, &p, &f, header);
    if (status == ADJ_OK && header->orientation >= 5) {
        int64_t h = header->size.h;
        header->size.h = header->size.w;
        header->size.w = h;
    }
    return status;
}

/* ---- EXIF ----
 *
 * EXIF is a TIFF header ("II" or "MM" for the order of bytes, 42, the offset of a directory) and
 * directories of entries of 12 bytes. Orientation is tag 0x0112 of the first, one 16-bit number. */

typedef struct {
    const uint8_t *bytes;
    size_t n;
    int big; /* most significant byte first */
} tiff;

/* Returns the number of size bytes (2 or 4) at an offset; -1 beyond the end. */
static int64_t number_at(const tiff *t, size_t offset, size_t size)
{
    if (offset > t->n || size > t->n - offset)
        return -1;
    int64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value = value << 8 | t->bytes[offset + (t->big ? i : size - 1 - i)];
    return value;
}

int io_exif_orientation(const uint8_t *bytes, size_t n)
{
    enum { TAG = 0x0112, SHORT = 3, ENTRY = 12 };
    tiff t = {bytes, n, n > 0 && bytes[0] == 'M'};

    if (n < 8 || bytes[0] != bytes[1] || (bytes[0] != 'I' && bytes[0] != 'M') ||
        number_at(&t, 2, 2) != 42)
        return 1;
    size_t directory = (size_t)number_at(&t, 4, 4);
    int64_t entries = number_at(&t, directory, 2);
    for (int64_t i = 0; i < entries; i++) {
        size_t at = directory + 2 + (size_t)i * ENTRY;
        if (number_at(&t, at, 2) != TAG)
            continue;
        int64_t value = number_at(&t, at + 8, 2);
        return number_at(&t, at + 2, 2) == SHORT && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* ---- after decoding ---- */

static void free_image(image *x)
{
    free(x->bytes);
    free(x->floats);
    *x = (image){0};
}

/* Turns x so that its first row is the top and its first column the left side. EXIF's numbers: 2,
 * 3, 7 and 8 are read from the right, 3, 4, 6 and 7 from below, 5 to 8 by columns. */
static adj_status turn(image *x, int orientation, const io_place *p)
{
    const int from_right = (orientation >= 2 && orientation <= 3) || orientation >= 7;
    const int from_below =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    int64_t h = x->size.h, w = x->size.w, c = x->size.c;
    const adj_image_size size = orientation >= 5 ? (adj_image_size){w, h, c} : x->size;
    const size_t pixel = (size_t)c * (x->floats != NULL ? sizeof *x->floats : sizeof *x->bytes);
    const char *from = x->floats != NULL ? (const char *)x->floats : (const char *)x->bytes;

    if (orientation == 1)
        return ADJ_OK;
    void *turned = calloc((size_t)(h * w), pixel);
    char *to = turned;
    if (turned == NULL)
        return io_out_of_memory(p);
    for (int64_t oh = 0; oh < size.h; oh++)
        for (int64_t ow = 0; ow < size.w; ow++, to += pixel) {
            int64_t row = orientation >= 5 ? ow : oh, column = orientation >= 5 ? oh : ow;
            row = from_below ? h - 1 - row : row;
            column = from_right ? w - 1 - column : column;
            memcpy(to, from + (size_t)(row * w + column) * pixel, pixel);
        }
    const image y = {.bytes = x->floats == NULL ? turned : NULL,
                     .floats = x->floats != NULL ? turned : NULL,
                     .size = size};
    free_image(x);
    *x = y;
    return ADJ_OK;
}

/* Decodes and turns a file; alpha is kept: 1 to 4 channels. *result is empty before and to be freed
 * in every case. */
static adj_status decode(const uint8_t *bytes, size_t n, io_place p, image *result)
{
    const image_format *f;
    image_header header = {0};
    adj_status status = open_image(bytes, n, &p, &f, &header);
    if (status != ADJ_OK || f == NULL) /* the bytes are all there are */
        return status == ADJ_EARG && p.error != NULL ? (p.error->status = ADJ_EIO) : ADJ_EIO;
    status = f->decode(bytes, n, &p, header.size, result);
    return status == ADJ_OK ? turn(result, header.orientation, &p) : status;
}

/* ---- files ---- */

adj_status io_image_load(const char *path, int64_t most, uint8_t **bytes, size_t *n,
                         adj_error *error)
{
    const char *why;
    char *all;
    int64_t size;
    const adj_status status = io_load(path, most, &all, &size, &why);
    *bytes = (uint8_t *)all;
    *n = (size_t)size;
    return status == ADJ_OK ? ADJ_OK
                            : io_refuse(&(io_place){"image: ", path, error}, status, "%s", why);
}

/* ---- single images ---- */

static adj_status check(const adj_image_opts *o, const float *pixels, adj_error *error)
{
    if (o == NULL || pixels == NULL || !has_sides(o->size) || !io_is_channels(o->size.c))
        return adj_error_set(error, ADJ_EARG,
                             "image: expected room, a size of 1 to %d and 1, 3 or 4 channels",
                             ADJ_MAX_SIDE);
    return ADJ_OK;
}

static adj_status fit(const image *x, const io_place *p, const adj_image_opts *o, float *pixels)
{
    if (o->resize == ADJ_RESIZE_ERROR && !same_sides(x->size, o->size))
        return io_refuse(p, ADJ_EIO, "image size differs (got %s, expected %s)",
                         sides_text(x->size).s, sides_text(o->size).s);
    fitting f;
    if (!io_fitting_open(&f, x->size, o->size, o->background))
        return io_out_of_memory(p);
    io_fit(&f, &(any_image){.bytes = x->bytes, .floats = x->floats}, pixels);
    io_fitting_close(&f);
    return ADJ_OK;
}

adj_status adj_image_decode(const void *bytes, size_t n, const char *name, const adj_image_opts *o,
                            float *pixels, int *resized, adj_error *error)
{
    const io_place p = {"image: ", name != NULL ? name : "image", error};
    image x = {0};
    adj_status status = check(o, pixels, error);
    if (status == ADJ_OK && bytes == NULL)
        status = io_refuse(&p, ADJ_EARG, "the bytes are missing");
    if (status == ADJ_OK)
        status = decode(bytes, n, p, &x);
    if (status == ADJ_OK && resized != NULL)
        *resized = !same_sides(x.size, o->size);
    if (status == ADJ_OK)
        status = fit(&x, &p, o, pixels);
    free_image(&x);
    return status;
}

adj_status adj_image_read(const char *path, const adj_image_opts *o, float *pixels, int *resized,
                          adj_error *error)
{
    uint8_t *bytes;
    size_t n;
    if (path == NULL)
        return adj_error_set(error, ADJ_EARG, "image: the file name is missing");
    adj_status status = io_image_load(path, IMAGE_MAX_BYTES, &bytes, &n, error);
    if (status == ADJ_OK)
        status = adj_image_decode(bytes, n, path, o, pixels, resized, error);
    free(bytes);
    return status;
}
