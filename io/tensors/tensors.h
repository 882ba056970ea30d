/* tensors.h - tensors in memory: read from a file, or made one by one. */
#ifndef IO_TENSORS_H
#define IO_TENSORS_H

#include <jansson.h>

#include "io/io.h"

/* Returns the name of an element type in safetensors, by adj_elem; NULL past the last. */
const char *elem_word(int i);

typedef struct {
    adj_tensor public;
    int64_t begin, end;   /* in the file's data */
    void *own;            /* data that is this tensor's alone; NULL: it lies in the file's */
    char unreadable[120]; /* the reason; "": it can be read */
} entry;

struct adj_tensors {
    const char *path; /* while reading */
    int n, room;
    entry *entry;
    json_t *header; /* owns names and metadata */
    char *data;
    int64_t data_bytes;
    char message[ADJ_MESSAGE];
};

/* Creates an empty list of tensors; returns NULL when out of memory. */
adj_tensors *tensors_new(void);
/* Adds a tensor and returns its memory, row-major, at least one byte, for the caller to fill, or
 * NULL with an error. The name is copied. */
void *tensors_add(adj_tensors *t, const char *name, adj_elem elem, adj_shape shape,
                  adj_error *error);
/* Adds a tensor that cannot be read, with the reason. */
adj_status tensors_add_unreadable(adj_tensors *t, const char *name, const char *why,
                                  adj_error *error);
/* Adds a metadata entry. ADJ_EARG if key or value is not UTF-8. */
adj_status tensors_add_metadata(adj_tensors *t, const char *key, const char *value,
                                adj_error *error);

#endif
