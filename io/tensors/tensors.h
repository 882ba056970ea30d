/* tensors.h - tensors in memory: read from a file, or made one by one. */
#ifndef IO_TENSORS_H
#define IO_TENSORS_H

#include <jansson.h>

#include "formats.h"
#include "io/io.h"

/* Returns the name of an element type in safetensors, by adj_elem; NULL past the last. */
const char *elem_word(int i);
/* Return the type of NumPy's ("<f4") and of C's ("float") that has all values of a readable one. */
const char *elem_in_numpy(adj_elem elem);
const char *elem_in_c(adj_elem elem);
/* Returns the type of NumPy's elements of this kind ('f') and size, or ADJ_ELEM_UNREADABLE. */
adj_elem elem_of_numpy(char kind, int bytes);

typedef struct {
    adj_tensor public;
    int64_t begin, end;   /* in the file's data */
    void *own;            /* data that is this tensor's alone; NULL: it lies in the file's */
    char unreadable[120]; /* the reason; "": it can be read */
} entry;

/* Memory of an adj_tensors. */
typedef struct {
    adj_tensors public; /* first; on failure without tensors and metadata */
    const char *path;   /* while reading */
    int n;
    entry *entry;
    adj_tensor *tensor; /* tensors of the entries, for the public list */
    adj_metadata *metadata;
    json_t *header;   /* owns names and metadata */
    const char *data; /* bytes of a file, or the caller's */
    char *own_data;   /* data read from a file */
    int64_t data_bytes;
} tensor_list;

static inline tensor_list *list_of(const adj_tensors *t) { return (tensor_list *)t; }

/* Creates a list of tensors that is all zero and sets *t to it; when out of memory returns NULL and
 * sets *t to a constant list with that message. */
tensor_list *tensors_alloc(adj_tensors **t);
/* Creates an empty list of tensors; returns NULL when out of memory. */
adj_tensors *tensors_new(void);
/* Makes the entries and the header's metadata public; returns 0 when out of memory. */
int tensors_publish(tensor_list *list);
/* Adds a copy of a tensor and of its name. */
adj_status tensors_add_copy(adj_tensors *t, const char *name, adj_elem elem, adj_shape shape,
                            const void *data, adj_error *error);
/* Adds a tensor that cannot be read, with the reason. */
adj_status tensors_add_unreadable(adj_tensors *t, const char *name, const char *why,
                                  adj_error *error);
/* Copies all metadata to a list that has none. */
adj_status tensors_copy_metadata(adj_tensors *to, const adj_tensors *from, adj_error *error);

#endif
