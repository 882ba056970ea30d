/* tensors.h - tensors in memory: read from a file, or made one by one. */
#ifndef IO_TENSORS_H
#define IO_TENSORS_H

#include <jansson.h>

#include "io/io.h"

/* What safetensors calls them, by adj_elem; NULL past the last. */
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

/* None yet. NULL: out of memory. */
adj_tensors *tensors_new(void);
/* Memory for one more, row-major, which is the caller's to fill; at least a byte. The name is
 * copied. NULL: an error is set. */
void *tensors_add(adj_tensors *t, const char *name, adj_elem elem, adj_shape shape,
                  adj_error *error);
/* Adds a tensor that cannot be read, with the reason. */
adj_status tensors_add_unreadable(adj_tensors *t, const char *name, const char *why,
                                  adj_error *error);
/* ADJ_EARG if they are no UTF-8. */
adj_status tensors_add_metadata(adj_tensors *t, const char *key, const char *value,
                                adj_error *error);

#endif
