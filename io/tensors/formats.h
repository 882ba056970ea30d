/* formats.h - element types and formats of tensors, for the libraries and the tool. */
#ifndef IO_FORMATS_H
#define IO_FORMATS_H

#include <string.h>

#include "adjoint_io.h"

/* Returns the value of the first entry with that key, or NULL if there is none. */
static inline const char *metadata_value(int n, const adj_metadata entry[], const char *key)
{
    for (int i = 0; i < n; i++)
        if (entry[i].key != NULL && strcmp(entry[i].key, key) == 0)
            return entry[i].value;
    return NULL;
}

/* Returns the name of a type, such as "f32", "i64" or "bool": a constant string, never NULL. */
ADJ_API const char *adj_elem_name(adj_elem elem);
/* Returns the bytes of one element; 0 for a value that is not an adj_elem. */
ADJ_API size_t adj_elem_size(adj_elem elem);

/* Returns a tensor of an executor's type. */
ADJ_API adj_tensor adj_tensor_of(const char *name, adj_type type, const void *data);
/* Returns 1 and sets *type to the tensor's type for an executor; returns 0 and leaves *type
 * unchanged if the element type is not an adj_dtype. */
ADJ_API int adj_tensor_type(const adj_tensor *t, adj_type *type);

/* Returns why tensor i cannot be read, such as "C64 [2, 3]: unknown type", or NULL if it can be.
 * Loading fails only if it needs such a tensor. */
ADJ_API const char *adj_tensors_unreadable(const adj_tensors *t, int i);

/* Reads a safetensors file like adj_tensors_read; fails on other kinds. */
ADJ_API adj_status adj_safetensors_read(const char *path, adj_tensors **t);

/* Writes tensors as NumPy's .npz, replacing the file; bf16 and F8 become f32. At most 4 GB and
 * 65535 tensors. */
ADJ_API adj_status adj_tensors_write_npz(const char *path, int n, const adj_tensor tensors[],
                                         adj_error *error);
/* Writes one tensor as NumPy's .npy, replacing the file. */
ADJ_API adj_status adj_tensors_write_npy(const char *path, const adj_tensor *tensor,
                                         adj_error *error);
/* Writes a header for C and C++, replacing the file: for each tensor a comment with its shape and
 * static const TYPE PREFIX_NAME[elements]. In names all characters other than letters and digits
 * become underscores; f16, bf16 and F8 become float, bool uint8_t. Metadata are in a comment; a
 * model card (adj_model_card) also gives the constants float PREFIX_mean[channels],
 * PREFIX_deviation[channels] and const char *PREFIX_classes[classes]. prefix: an identifier; NULL:
 * "weights". */
ADJ_API adj_status adj_tensors_write_header(const char *path, const char *prefix, int n,
                                            const adj_tensor tensors[], int n_metadata,
                                            const adj_metadata metadata[], adj_error *error);

#endif
