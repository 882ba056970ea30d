/* png.c - see png.h. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "png.h"

/* Bytes of IHDR's data; and of a file beside the packed rows: the signature, that, and length, type
 * and checksum of three chunks. */
enum { HEADER = 13, BESIDE = 8 + HEADER + 3 * 12 };

static uint8_t *put32(uint8_t *at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(v >> (24 - 8 * i));
    return at + 4;
}

/* The data may stand where it goes already. Returns what follows the chunk. */
static uint8_t *put_chunk(uint8_t *at, const char type[4], const uint8_t *data, size_t n)
{
    uint8_t *checked = put32(at, (uint32_t)n);
    memcpy(checked, type, 4);
    memmove(checked + 4, data, n);
    return put32(checked + 4 + n, (uint32_t)crc32(0, checked, (uInt)(4 + n)));
}

/* Rows, each behind a byte that says it is not filtered. */
static uint8_t *list_rows(const picture *p, size_t row)
{
    uint8_t *rows = malloc((row + 1) * (size_t)p->h);
    for (int64_t i = 0; i < p->h && rows != NULL; i++) {
        rows[(size_t)i * (row + 1)] = 0;
        memcpy(rows + (size_t)i * (row + 1) + 1, p->pixels + (size_t)i * row, row);
    }
    return rows;
}

uint8_t *png_encode(const picture *p, size_t *bytes)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t header[HEADER] = {[8] = 8, [9] = p->c == 3 ? 2 : 0};
    if (p->w < 1 || p->h < 1 || p->w > PICTURE_SIDE || p->h > PICTURE_SIDE ||
        (p->c != 1 && p->c != 3))
        return NULL;
    size_t row = (size_t)(p->w * p->c), n = (row + 1) * (size_t)p->h;
    uLongf packed = compressBound((uLong)n);
    uint8_t *rows = list_rows(p, row);
    uint8_t *file = malloc(BESIDE + packed), *at = file;
    if (rows != NULL && file != NULL) {
        memcpy(at, signature, sizeof signature);
        at += sizeof signature;
        put32(put32(header, (uint32_t)p->w), (uint32_t)p->h);
        at = put_chunk(at, "IHDR", header, sizeof header);
        if (compress2(at + 8, &packed, rows, (uLong)n, Z_BEST_COMPRESSION) == Z_OK) {
            at = put_chunk(at, "IDAT", at + 8, packed);
            at = put_chunk(at, "IEND", at, 0);
            *bytes = (size_t)(at - file);
            free(rows);
            return file;
        }
    }
    free(rows);
    free(file);
    return NULL;
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
