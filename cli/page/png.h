/* png.h - small pictures as PNG, by libpng, and within a page as a data URI. */
#ifndef CLI_PAGE_PNG_H
#define CLI_PAGE_PNG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    int64_t w, h, c;       /* c: 1 gray, 3 RGB */
    const uint8_t *pixels; /* [h, w, c] */
} picture;

/* Returns the bytes of a PNG file, to be freed by free(); NULL when out of memory. */
uint8_t *png_encode(const picture *p, size_t *bytes);
/* "data:image/png;base64,..." 0 on success. */
int png_put_uri(FILE *f, const picture *p);
/* RFC 4648, section 4. */
void put_base64(FILE *f, size_t n, const uint8_t bytes[]);

#endif
