/* adjoint_data.h - data sets of labelled images, from files or from the caller's memory, and
 * batches of them.
 *
 * Readers trust no file: sizes are checked in 64-bit arithmetic before they are used, memory grows
 * with what was read and not with what a header claims, and a failure is a status and one sentence
 * that names the file. Part of libadjoint_io; nothing here prints, and nothing is global. */
#ifndef ADJOINT_DATA_H
#define ADJOINT_DATA_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ADJ_MAX_CHANNELS = 4,
    ADJ_MAX_CLASSES = 100000,
    ADJ_MAX_SIDE = 32768 /* pixels of an image's height or width */
};

typedef enum { ADJ_TRAIN, ADJ_TEST, ADJ_VALIDATION } adj_dataset_part;

/* ---- what a data set is ---- */

/* Where images come from that are not in memory as bytes. */
typedef struct {
    int64_t n, h, w, c; /* all images have one size */
    int classes;
    const int32_t *labels; /* n of them, 0 .. classes-1; copied */
    /* Fills pixels [h, w, c] with image i, in pixel units (0 .. 255, black to white). Called by
     * several threads at once. On failure it returns a status and says why in *error. */
    adj_status (*read)(void *user, int64_t i, float *pixels, adj_error *error);
    void (*free)(void *user); /* NULL: nothing to free */
    void *user;
    const float *mean, *deviation; /* c of each, copied; NULL: every image is read once for them */
} adj_source;

/* n labelled images of h x w pixels with c channels. Made by the functions below, read-only, freed
 * by adj_dataset_free. A failed one has n == 0 and says why in message. A program may also fill one
 * in by itself over images of its own (source == NULL), and then does not free it. */
typedef struct {
    int64_t n, h, w, c;
    int classes;
    const char *const *class_names; /* classes of them; NULL: they have only their numbers */
    const int32_t *labels;          /* n of them, 0 .. classes-1 */
    const uint8_t *images;          /* [n, h, w, c]; NULL: adj_dataset_read has them */
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS]; /* by channel, in pixel units: a
                              batch has (pixel - mean) / deviation. The deviation is never 0 */
    int64_t resized;          /* images whose files had another size than h x w */
    const adj_source *source; /* where images are read when there are none in memory */
    char message[ADJ_MESSAGE];
} adj_dataset;

/* All that make a data set: *d is a handle to ask for the message even on failure (NULL only when
 * out of memory) and must be freed in every case. */

/* Over the caller's images [n, h, w, c] and labels [n], which outlive the data set, or over copies
 * of them. 2 .. ADJ_MAX_CLASSES classes. */
ADJ_API adj_status adj_dataset_new(int64_t n, int64_t h, int64_t w, int64_t c, int classes,
                                   const uint8_t *images, const int32_t *labels, int copy,
                                   adj_dataset **d);
/* Images from anywhere. The data set owns source->user from this call on, even if it fails. */
ADJ_API adj_status adj_dataset_from_source(const adj_source *source, adj_dataset **d);
ADJ_API void adj_dataset_free(adj_dataset *d);

/* Image i in pixel units, to pixels [h, w, c]. Several threads may call it at once. */
ADJ_API adj_status adj_dataset_read(const adj_dataset *d, int64_t i, float *pixels,
                                    adj_error *error);

/* ---- data sets in files, and drawn ones ---- */

/* MNIST's four standard names in a folder, plain or with .gz: train-images-idx3-ubyte,
 * train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte. Ten classes, with the
 * mean and deviation of MNIST's training images. */
ADJ_API adj_status adj_dataset_mnist(const char *folder, adj_dataset_part part, adj_dataset **d);
/* A pair of IDX files of unsigned bytes, [n, h, w] and [n], plain or gzip whatever their names. A
 * label of classes or more is refused. */
ADJ_API adj_status adj_dataset_idx(const char *images, const char *labels, int classes,
                                   adj_dataset **d);
/* 28x28 digits drawn from strokes, warped, in varying pens and with noise. Image i of a part (train
 * or test) depends on (seed, part, i) only. n == 0: 8,000 to train on, 2,000 to test. */
ADJ_API adj_status adj_dataset_digits(adj_dataset_part part, int64_t n, uint64_t seed,
                                      adj_dataset **d);

/* ---- batches ---- */

/* Fills order[0 .. n) with a permutation of 0 .. n-1 that depends on (n, seed, epoch) only. */
ADJ_API void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[]);

/* Fills one batch for an f32 input node of the given shape [batch, h, w, c] and an i32 label node
 * [batch] with the images order[first], order[first+1], ... (order == NULL: first, first+1, ...).
 * To another size, each axis is enlarged by a whole factor and centred on background, or shrunk by
 * averaging; one channel is repeated. Behind the last image the batch is filled up with images from
 * the start and labels -1, which a loss does not count. Returns how many images count (0 when first
 * is n or more), or -1 and why if the data cannot be made to fit or be read. */
ADJ_API int64_t adj_batch(const adj_dataset *d, const int64_t *order, int64_t first,
                          adj_shape shape, float *x, int32_t *labels, adj_error *error);

/* How many of n rows of scores [n, classes] are largest at their label; a row labelled -1 is not
 * counted. */
ADJ_API int64_t adj_count_right(int64_t n, int64_t classes, const float scores[],
                                const int32_t labels[]);

/* Runs the whole data set through an executor that needs the f32 input images [batch, h, w, c] and
 * fetches the f32 node logits [batch, classes]; *right: how many of its d->n images have their
 * largest logit at their label. */
ADJ_API adj_status adj_evaluate(adj_exec *e, const adj_node *images, const adj_node *logits,
                                const adj_dataset *d, int64_t *right, adj_error *error);

#ifdef __cplusplus
}
#endif
#endif
