/* npy.h - one array in NumPy's file format, from a stream of bytes. */
#ifndef IO_DATA_NPY_H
#define IO_DATA_NPY_H

#include "data.h"

enum { NPY_MAX_RANK = 4 };

typedef struct {
    char kind; /* 'u', 'i', 'f' or 'b' (bool) */
    int bytes; /* of an element: 1, 2, 4 or 8 */
    int rank;
    int64_t size[NPY_MAX_RANK];
    const char *unsupported; /* why a valid array is not read; NULL: it is read, or corrupt */
    uint8_t *data;           /* row-major, of this machine's byte order; the caller's to free */
} npy_array;

typedef struct {
    int64_t (*read)(void *from, void *to, int64_t n); /* fewer at the end, -1: corrupt */
    void *from;
    const char *name; /* for messages */
} npy_stream;

/* Reads a whole array. */
adj_status io_npy_read(const npy_stream *s, npy_array *a, adj_error *error);
int64_t io_npy_elems(const npy_array *a);

/* Parses a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }. Sets
 * *swapped to 1 for the other byte order. Returns what is wrong, or NULL. */
const char *io_npy_parse(const char *text, npy_array *a, int *swapped);

#endif
