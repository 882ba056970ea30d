/* adjoint_io.h - data sets of small images, batches of them, and weights in files (safetensors).
 *
 * Readers trust no file: sizes are checked in 64-bit arithmetic before they are used, memory grows
 * with what was read and not with what a header claims, and a failure is a status and one sentence
 * that names the file and the byte offset. This part needs zlib and jansson and is a library of its
 * own (libadjoint_io); nothing here prints, and nothing is global. */
#ifndef ADJOINT_IO_H
#define ADJOINT_IO_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets ---- */

typedef enum { ADJ_TRAIN, ADJ_TEST } adj_dataset_part;

/* n images of h x w pixels with c channels, row-major [n, h, w, c], and a label 0 .. classes-1 for
 * each. Made by the functions below, read-only, freed by adj_dataset_free. A failed one has n == 0
 * and says why in message. */
typedef struct {
    int64_t n, h, w, c;
    int classes;
    const uint8_t *images;
    const int32_t *labels;
    float mean, deviation; /* of the kind of data, in pixel units: a batch has (pixel - mean) /
                              deviation */
    char message[ADJ_MESSAGE];
} adj_dataset;

/* All three: *d is a handle to ask for the message even on failure (NULL only when out of memory)
 * and must be freed in every case. */

/* MNIST's four standard names in a folder, plain or with .gz: train-images-idx3-ubyte,
 * train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte. */
ADJ_API adj_status adj_dataset_mnist(const char *folder, adj_dataset_part part, adj_dataset **d);
/* A pair of IDX files of unsigned bytes, [n, h, w] and [n], plain or gzip whatever their names. A
 * label of classes or more is refused. */
ADJ_API adj_status adj_dataset_idx(const char *images, const char *labels, int classes,
                                   adj_dataset **d);
/* 28x28 digits drawn from strokes, warped, in varying pens and with noise. Image i of a part
 * depends on (seed, part, i) only. n == 0: 8,000 to train on, 2,000 to test. */
ADJ_API adj_status adj_dataset_digits(adj_dataset_part part, int64_t n, uint64_t seed,
                                      adj_dataset **d);
ADJ_API void adj_dataset_free(adj_dataset *d);

/* Fills order[0 .. n) with a permutation of 0 .. n-1 that depends on (n, seed, epoch) only. */
ADJ_API void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[]);

/* Fills one batch for an f32 input node of the given shape [batch, h, w, c] and an i32 label node
 * [batch] with the images order[first], order[first+1], ... (order == NULL: first, first+1, ...).
 * To another size, each axis is enlarged by a whole factor and centred on background, or shrunk by
 * averaging; one channel is repeated. Behind the last image the batch is filled up with images from
 * the start and labels -1, which a loss does not count. Returns how many images count (0 when first
 * is n or more), or -1 if the data cannot be made to fit. */
ADJ_API int64_t adj_batch(const adj_dataset *d, const int64_t *order, int64_t first,
                          adj_shape shape, float *x, int32_t *labels);

/* How many of n rows of scores [n, classes] are largest at their label; a row labelled -1 is not
 * counted. */
ADJ_API int64_t adj_count_right(int64_t n, int64_t classes, const float scores[],
                                const int32_t labels[]);

/* Runs the whole data set through an executor that needs the f32 input images [batch, h, w, c] and
 * fetches the f32 node logits [batch, classes]; *right: how many of its d->n images have their
 * largest logit at their label. */
ADJ_API adj_status adj_evaluate(adj_exec *e, const adj_node *images, const adj_node *logits,
                                const adj_dataset *d, int64_t *right, adj_error *error);

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
