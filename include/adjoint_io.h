/* adjoint_io.h - files that are whole or not there, tensors in files (safetensors), and weights.
 *
 * Readers trust no file: sizes are checked in 64-bit arithmetic before they are used, memory grows
 * with what was read and not with what a header claims, and a failure is a status and one sentence
 * that names the file and the byte offset. With adjoint_data.h it is a library of its own
 * (libadjoint_io); nothing here prints, and nothing is global. */
#ifndef ADJOINT_IO_H
#define ADJOINT_IO_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files that are whole or not there ---- */

/* Lets write fill FILE.partial, flushes it to the disk and renames it: the file is either the old
 * one or the whole new one. write returns 0 on success. A symbolic link stays: what it leads to is
 * replaced, or made. The new file has the old one's mode and owner as far as that is permitted; if
 * the group cannot be kept, the new one may do no more than everybody. What a killed process left
 * of FILE.partial is removed by the next; processes that write one file at once wait for each
 * other. */
ADJ_API adj_status adj_file_replace(const char *path, int (*write)(FILE *f, void *user), void *user,
                                    adj_error *error);
/* Whether a file could be written now: in place, or replaced as above. It and its folder are left
 * as they are, but for a FILE.partial that was left behind. What is there and is no regular file is
 * not replaced; in place, what is no folder and can be opened will do. A pipe is not opened: that
 * waits for its reader, and closing it tells the reader that it has ended. */
ADJ_API adj_status adj_file_check(const char *path, int in_place, adj_error *error);

typedef struct { /* equal (memcmp) for names of one file: by other spellings, links, hard links */
    uint64_t device, number; /* of the file; of one that is not there yet, of its folder, */
    char name[256];          /* and its name there */
} adj_file_id;
/* partial: not of the file, but of the FILE.partial that adj_file_replace would use. */
ADJ_API adj_status adj_file_identify(const char *path, int partial, adj_file_id *id,
                                     adj_error *error);

/* ---- tensors in files: safetensors ---- */

/* A named value in a file. Nothing is copied: name and data are the maker's. */
typedef struct {
    const char *name; /* not empty, and no other's */
    adj_type type;    /* of any dtype */
    const void *data; /* row-major; adj_shape_elems(type.shape) elements */
} adj_tensor;

typedef struct {             /* strings kept with the tensors, such as the model's name */
    const char *key, *value; /* UTF-8 */
} adj_metadata;

/* Replaces the file (adj_file_replace). Among its metadata are checksums of each tensor and of the
 * header: keys that begin with "adjoint.crc32" are taken. */
ADJ_API adj_status adj_tensors_write(const char *path, int n, const adj_tensor tensors[],
                                     int n_metadata, const adj_metadata metadata[],
                                     adj_error *error);

/* What a safetensors file holds. */
typedef struct adj_tensors adj_tensors;
/* Reads and checks a whole file, its checksums too if it has any. *t is a handle to ask for the
 * message even on failure (NULL only when out of memory) and must be freed in every case. */
ADJ_API adj_status adj_tensors_read(const char *path, adj_tensors **t);
/* What is wrong with the file; "" if nothing. It is t's. */
ADJ_API const char *adj_tensors_message(const adj_tensors *t);
/* How many tensors; 0 for NULL and for a file that was refused. */
ADJ_API int adj_tensors_count(const adj_tensors *t);
/* In the order of the data; name and data belong to t. All zero when i is out of range. */
ADJ_API adj_tensor adj_tensors_at(const adj_tensors *t, int i);
/* Index of the tensor of that name; -1: none. */
ADJ_API int adj_tensors_find(const adj_tensors *t, const char *name);
/* NULL: no such key. */
ADJ_API const char *adj_tensors_metadata(const adj_tensors *t, const char *key);
/* Frees them with their names and data. */
ADJ_API void adj_tensors_free(adj_tensors *t);

/* ---- weights ---- */

/* Writes every parameter and state that the executor holds, by name. */
ADJ_API adj_status adj_weights_save(adj_exec *e, const char *path, int n_metadata,
                                    const adj_metadata metadata[], adj_error *error);
/* Sets every parameter and state of the executor from the tensor of its name and type. One that is
 * missing or has another type is an error, and then none is set; tensors that the executor does not
 * know are passed over. */
ADJ_API adj_status adj_weights_load(adj_exec *e, const char *path, adj_error *error);
/* The same from tensors that have been read. */
ADJ_API adj_status adj_weights_set(adj_exec *e, const adj_tensors *t, adj_error *error);

#ifdef __cplusplus
}
#endif
#endif
