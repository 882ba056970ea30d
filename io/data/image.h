/* image.h - PNG, JPEG and WEBP files, from their bytes to pixels. */
#ifndef IO_DATA_IMAGE_H
#define IO_DATA_IMAGE_H

#include <stddef.h>

#include "data.h"

enum { IMAGE_MAX_PIXELS = 100000000, IMAGE_MAX_BYTES = 1 << 29 /* read of a file */ };

/* An image as it is after turning. Channels: 1 gray, 3 color; alpha makes it one more. */
typedef struct {
    int orientation;     /* EXIF's, 1 .. 8 */
    adj_image_size size; /* without alpha */
} image_header;

/* Reads an image header from the first n bytes of a file. ADJ_EARG: more bytes are needed; any
 * other failure is final. name of the file is used in messages. */
adj_status io_image_header(const uint8_t *bytes, size_t n, const char *name, image_header *header,
                           adj_error *error);

/* Pixels [h, w, c] in pixel units: floats if the file has 16 bits, else bytes. The other is NULL.
 */
typedef struct {
    uint8_t *bytes;
    float *floats;
    adj_image_size size;
} image;

/* Reads a file, or its first `most` bytes, into *bytes, which the caller frees in every case. */
adj_status io_image_load(const char *path, int64_t most, uint8_t **bytes, size_t *n,
                         adj_error *error);

/* ---- the formats ---- */

typedef struct {
    const char *prefix;                        /* prefix of messages: "png: " */
    int (*is)(const uint8_t *bytes, size_t n); /* by a file's first bytes */
    /* Reads a header like io_image_header, of an image before turning; any size is accepted. */
    adj_status (*header)(const uint8_t *bytes, size_t n, const io_place *p, image_header *header);
    /* Decodes a file, without turning; alpha is kept: 1 to 4 channels. size: the header's. *result
     * is empty before and to be freed in every case. */
    adj_status (*decode)(const uint8_t *bytes, size_t n, const io_place *p, adj_image_size size,
                         image *result);
} image_format;
extern const image_format png_format, jpeg_format, webp_format;

/* Returns the orientation in the first directory of a TIFF header, as stored by EXIF; 1 if there is
 * none. */
int io_exif_orientation(const uint8_t *bytes, size_t n);

#endif
