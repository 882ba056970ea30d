/* exif.c - the orientation tag of EXIF.
 *
 * EXIF is a TIFF header ("II" or "MM" for the order of bytes, 42, the offset of a directory) and
 * directories of entries of 12 bytes. Orientation is tag 0x0112 of the first, one 16-bit number. */
#include "image.h"

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
