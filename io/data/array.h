/* array.h - one array of numbers from a file: in NumPy's format (array.c) or in IDX (idx.c).
 * Neither is trusted: sizes are multiplied in checked arithmetic and limited, and memory grows with
 * the bytes that were really read. */
#ifndef IO_DATA_ARRAY_H
#define IO_DATA_ARRAY_H

#include "data.h"

enum { NPY_MAX_RANK = 4 };

typedef struct {
    char kind; /* 'u', 'i', 'f' or 'b' (bool) */
    int bytes; /* size of an element: 1, 2, 4 or 8 */
    int rank;
    int64_t size[ADJ_MAX_RANK];
    const char *unsupported; /* why a valid array is not read; NULL: it is read, or corrupt */
    uint8_t *data;           /* row-major, of this machine's byte order; the caller's to free */
} file_array;

int64_t array_elems(const file_array *a);
/* Returns element i of an integer array, saturated at the largest int64_t. */
int64_t array_integer(const file_array *a, int64_t i);
/* Reverses the bytes of each element. */
void array_swap(file_array *a);
/* Makes the first element of each row, an integer, the label of an image of d. format and name:
 * those of the file in messages. header: bytes before the data, for offsets; 0: not known. */
adj_status array_take_labels(dataset *d, const file_array *a, const char *format, const char *name,
                             int64_t header);

typedef struct {
    /* Reads n bytes, at most 2^30; returns how many: fewer at the end, -1: corrupt. */
    int64_t (*read)(void *from, void *to, int64_t n);
    void *from;
    const char *name; /* for messages */
} array_stream;

/* Reads n bytes into *data, to be freed in every case, in chunks that double up to 2^30: a wrong
 * header costs at most twice the data in memory. Returns how many there were, or -1 if memory is
 * short. */
int64_t array_read_bytes(const array_stream *s, int64_t n, uint8_t **data);

/* ---- NumPy ---- */

/* Read a whole array; on failure a->data is NULL. The file may be a gzip. */
adj_status io_npy_read(const array_stream *s, file_array *a, adj_error *error);
adj_status io_npy_read_file(const char *path, file_array *a, adj_error *error);

/* ---- IDX ---- */

/* An expected content of a file. */
typedef struct {
    const char *part;                 /* its name in messages: "images" */
    int (*fits)(const file_array *a); /* true if it is one; NULL: any is */
    const char *magic;                /* the magic numbers for which it is: "00000803" */
} idx_content;

/* Reads a file, plain or gzip; on failure a->data is NULL. */
adj_status io_idx_read_file(const char *path, const idx_content *expected, file_array *a,
                            adj_error *error);

#endif
