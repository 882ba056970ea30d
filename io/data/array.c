/* array.c - see array.h. */
#include <stdlib.h>

#include "array.h"

int64_t array_elems(const file_array *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n *= a->size[i]; /* checked when it was read */
    return n;
}

int64_t array_integer(const file_array *a, int64_t i)
{
    const int unused = 64 - 8 * a->bytes; /* bits */
    uint64_t v = 0;
    for (int k = 0; k < a->bytes; k++) {
        int at = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? a->bytes - 1 - k : k;
        v = v << 8 | a->data[i * a->bytes + at];
    }
    if (a->kind == 'i') /* the sign's bit is repeated */
        return (int64_t)(v << unused) >> unused;
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

void array_swap(file_array *a)
{
    const int64_t elems = array_elems(a);
    for (int64_t i = 0; i < elems; i++)
        for (int k = 0; k < a->bytes / 2; k++) {
            uint8_t *first = a->data + i * a->bytes + k, kept = *first;
            uint8_t *last = a->data + i * a->bytes + a->bytes - 1 - k;
            *first = *last;
            *last = kept;
        }
}

int64_t array_read_bytes(const array_stream *s, int64_t n, uint8_t **data)
{
    enum { FIRST_CHUNK = 1 << 16 };
    int64_t have = 0, room = FIRST_CHUNK;

    for (int64_t want = 0; have == want && have < n; room *= 2) {
        want = room < n ? room : n;
        uint8_t *grown = realloc(*data, (size_t)want);
        if (grown == NULL)
            return -1;
        *data = grown;
        const int64_t got = s->read(s->from, grown + have, want - have);
        have += got > 0 ? got : 0;
    }
    return have;
}
