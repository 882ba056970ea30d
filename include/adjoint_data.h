/* adjoint_data.h - data sets of labeled images, from files or from the caller's memory, and
 * batches of them.
 *
 * Readers trust no file: sizes are checked in 64-bit arithmetic before they are used, memory grows
 * with what was read and not with what a header claims, and a failure is a status and a message
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

/* Split of a data set. */
typedef enum { ADJ_TRAIN, ADJ_TEST, ADJ_VALIDATION } adj_dataset_part;

/* ---- data sets ---- */

/* Source of images that are not in memory as bytes. */
typedef struct {
    /* Fills pixels [h, w, c] with image i, in pixel units (0 .. 255, black to white). Must be
     * thread-safe. On failure it returns a status and sets *error. */
    adj_status (*read)(void *user, int64_t i, float *pixels, adj_error *error);
    void (*free)(void *user); /* NULL: nothing to free */
    void *user;               /* handed to read and free */
} adj_source;

/* Rule for images of another size than the requested one, for all file formats, in training,
 * evaluation and prediction. */
typedef enum {
    ADJ_RESIZE_AUTO, /* along each axis: area averaging when shrinking, bilinear with half-pixel
                        centers when growing */
    ADJ_RESIZE_ERROR /* an image of another size is refused */
} adj_resize_rule;

/* A data set: n labeled images of one size. Created by the functions below,
 * read-only, freed by adj_dataset_free. After a failure n is 0 and message has the reason. A
 * program may also fill in this struct for images of its own (origin == NULL), without
 * adj_dataset_free. */
typedef struct {
    int64_t n;                      /* number of images */
    adj_image_size size;            /* size of each */
    int classes;                    /* number of classes; with targets: targets of an image */
    const char *const *class_names; /* `classes` names; NULL: the classes have no names */
    const int32_t *labels;          /* n labels from 0 to classes-1; NULL with targets */
    /* [n, classes]: float targets in place of labels, for regression and multi-label
     * classification; NULL: labels. */
    const float *targets;
    const uint8_t *images; /* [n, size.h, size.w, size.c]; NULL: read them by adj_dataset_read */
    /* For each channel, in pixel units: a batch holds (pixel - mean) / deviation. The deviation is
     * never 0. */
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS];
    adj_resize_rule resize; /* rule for images of another size and for batches of another size;
                               training stores it in the model card */
    /* 1: the values are normalized net input instead of pixels (NUMPY of adj_dataset_open): mean 0,
     * deviation 1. A net trained on them does not accept image files. Training stores it in the
     * model card. */
    int normalized;
    /* Source of the images. Private: NULL if a program has filled in this struct. */
    const struct adj_dataset_origin *origin;
    char message[ADJ_MESSAGE]; /* why it failed; "" if it did not */
    /* One line about files and folders that were ignored, such as "40 files with other endings
     * (.bmp 40), folder misc without images"; "": none. */
    char left_out[ADJ_MESSAGE];
} adj_dataset;

/* All functions that create a data set: *d holds the message even on failure (it is NULL only when
 * out of memory) and must be freed by adj_dataset_free in every case. */

/* Creates a data set from images [n, h, w, c] and labels [n], which are copied if copy is 1 and
 * must else outlive the data set. 2 to ADJ_MAX_CLASSES classes. */
ADJ_API adj_status adj_dataset_new(int64_t n, int64_t h, int64_t w, int64_t c, int classes,
                                   const uint8_t *images, const int32_t *labels, int copy,
                                   adj_dataset **d);
/* Creates a data set from images [n, h, w, c] and float targets [n, n_target], which are copied if
 * copy is 1. For a net with a loss of its own (adj_net in adjoint_fit.h): values for regression, 0
 * and 1 for multi-label classification. */
ADJ_API adj_status adj_dataset_new_targets(int64_t n, int64_t h, int64_t w, int64_t c, int n_target,
                                           const uint8_t *images, const float *targets, int copy,
                                           adj_dataset **d);
/* Creates a data set whose images are read from a source. like gives n, size, classes, the
 * labels, which are copied, and mean and deviation; if deviation[0] is 0, these are computed by
 * reading every image once. The data set owns source->user from this call on, even on failure. */
ADJ_API adj_status adj_dataset_from_source(const adj_dataset *like, const adj_source *source,
                                           adj_dataset **d);
/* Frees a data set, with its images and labels unless they are the caller's. */
ADJ_API void adj_dataset_free(adj_dataset *d);

/* Copies image i to pixels [h, w, c], in pixel units. Thread-safe. */
ADJ_API adj_status adj_dataset_read(const adj_dataset *d, int64_t i, float *pixels,
                                    adj_error *error);

/* ---- data sets in files ---- */

/* Size and kind of images after reading. */
typedef struct {
    adj_image_size size;    /* c: 1 (luma, 0.299 R + 0.587 G + 0.114 B), 3, 4 (with alpha) */
    adj_resize_rule resize; /* rule for images of another size */
    /* R, G, B behind transparent pixels, unless size.c is 4; all zero: black. */
    uint8_t background[3];
} adj_image_opts;

/* Options of adj_dataset_open. All zero is the default. */
typedef struct {
    /* Sizes of 0: as in the files; for a folder the size of the first image, and 3 channels if at
     * least half of the images are in color, else 1. */
    adj_image_opts image;
    int classes;   /* number of classes; 0: the number of class names, or the largest label + 1 */
    int64_t limit; /* > 0: maximum number of images, drawn at random by seed with the class
                      frequencies of the data */
    double val_split; /* 0 to below 1: if the data have no validation split, this fraction of each
                         class of the training split, drawn by seed, is held out as one */
    uint64_t seed;    /* seed of val_split and limit */
    /* Another split of the same data, normally the training split, from which this one takes sizes,
     * classes, names, mean and deviation. If size.h, classes or deviation[0] of like is 0, this
     * split computes its own size, classes or mean and deviation, as with NULL. Class folders are
     * matched by name; if like has no names, by number, or by order if there is a folder for each
     * class. If like refuses images of another size, so does this split. */
    const adj_dataset *like;
    int skip_broken; /* 1: skips unreadable image files; opening reads all files. 0: unreadable
                        files are an error. With like, opening then reads only the first 200 files,
                        and more for 3 s or as long as reading like took */
    /* Called while opening reads the images, by one thread at a time, with the number of images
     * read so far and in total; NULL: not called. */
    void (*progress)(void *user, int64_t done, int64_t n);
    void *user; /* handed to progress */
} adj_dataset_opts;

/* Opens a split of the data at path. On failure the message names the file and the problem, or the
 * layouts that were tried. ADJ_EARG if the data do not have the split. options may be NULL. The
 * names of the files decide which layout it is:
 *   DIGITS  path NULL or "digits": adj_dataset_digits with seed 1
 *   IDX     a folder with [PREFIX-]train-images-idx3-ubyte (or .idx3-ubyte, idx4), ...-labels-idx1-
 *           ubyte (QMNIST: idx2-int), and t10k- or test- for the test split, each plain or as .gz.
 *           Images with bytes of only 0 and 1 are pixels divided by 255
 *   CIFAR   a folder with CIFAR-10's data_batch_1.bin ... and test_batch.bin, or CIFAR-100's
 *           train.bin and test.bin (fine labels)
 *   NUMPY   a file .npz, or a folder with one .npz or a pair of .npy files: images and labels with
 *           the keys x_train, y_train, x_test, y_test, x_val, y_val (or x_valid; X_train;
 *           train_images, train_labels and so on), or for the training split x and y, images and
 *           labels, arr_0 and arr_1. Images are u1, f4 or f8 with the shapes of IDX. The range of
 *           all values decides what they are: from 0 to 1, pixels divided by 255; from 0 to 255,
 *           for floats with a value of 128 or more, pixels; from -255 to 255, normalized values
 *           (adj_dataset.normalized); others are refused. All splits have the scale of the split
 *           like, which also decides for floats from 0 to 255 that are all below 128
 *   FOLDER  DIR/CLASS/ with image files, or DIR/train/CLASS/, DIR/val/CLASS/ and DIR/test/CLASS/;
 *           also named training, valid, validation, testing, in upper or lower case. The classes
 *           are the class folders of the training split that have images in any split */
ADJ_API adj_status adj_dataset_open(const char *path, adj_dataset_part part,
                                    const adj_dataset_opts *options, adj_dataset **d);

/* Generates 28x28 images of the digits "0" to "9": strokes of varying width, warped and with noise.
 * Image i of a split (training or test) depends only on (seed, part, i). n is the number of images;
 * 0: 8,000 for training, 2,000 for test. */
ADJ_API adj_status adj_dataset_digits(adj_dataset_part part, int64_t n, uint64_t seed,
                                      adj_dataset **d);

/* ---- single images ---- */

/* Reads a PNG, JPEG or WEBP file, recognized by its first bytes, rotates it by its EXIF orientation
 * and converts it to the size of the options, in which h, w and c must not be 0: pixels [h, w, c]
 * in pixel units. Color profiles (gAMA, iCCP, sRGB, cHRM) are ignored; 16-bit samples are divided
 * by 257. Sets *resized (may be NULL) to 1 if the file has another size, else to 0. */
ADJ_API adj_status adj_image_read(const char *path, const adj_image_opts *options, float *pixels,
                                  int *resized, adj_error *error);

/* ---- batches ---- */

/* Fills order[0 .. n) with a permutation of 0 .. n-1 that depends on (n, seed, epoch) only. */
ADJ_API void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[]);

/* Fills one batch: x for an f32 input of the given shape [batch, h, w, c] and labels for an i32
 * input [batch], with the images order[first], order[first+1], ... (order == NULL: first, first+1,
 * ...). Images of another size are resized or refused by d->resize, like in adj_image_read; a
 * single channel is repeated. After the last image the batch is padded with images from the start
 * and labels -1, which losses ignore; with float targets all other labels are 0. Returns the number
 * of images without padding (0 if first is n or more), or -1 with a message if an image cannot be
 * read or converted. */
ADJ_API int64_t adj_batch(const adj_dataset *d, const int64_t *order, int64_t first,
                          adj_shape shape, float *x, int32_t *labels, adj_error *error);

/* Evaluates a data set with an executor that reads the f32 input images [batch, h, w, c] and
 * fetches the f32 node logits [batch, classes]. Sets *right to the number of the d->n images whose
 * largest logit is at their label. Overwrites the input images (adj_set_in_place). ADJ_EARG if e, d
 * or right is NULL, or d has no images or no labels. ADJ_ESHAPE for other images or logits, if d
 * has more classes than logits, or if its images do not fit (see adj_batch). */
ADJ_API adj_status adj_evaluate(adj_exec *e, const adj_node *images, const adj_node *logits,
                                const adj_dataset *d, int64_t *right, adj_error *error);

/* ---- augmentation, and batches ahead of the training step ---- */

enum { ADJ_MAX_SHIFT = 8, ADJ_MAX_LOADER_THREADS = 64 };

/* Random augmentation of training images; all zero: none. Order: jitter, on pixels within 0 .. 255;
 * flip, shift and cutout, on normalized images of the batch's size; mixup, on the whole batch.
 * Normalized data refuse jitter. The random numbers of image k depend only on (seed, epoch, k), not
 * on threads or the rest of the batch, with two exceptions: shift depends on the seed and the
 * number of images, padding included, in all batches before this image; mixup depends on (seed,
 * epoch, step). */
typedef struct {
    int flip;       /* 1: mirrors the image horizontally with probability 1/2 */
    int64_t shift;  /* moves the image by -shift .. shift pixels along each axis, uniformly
                       distributed (pad and crop). New pixels are black, of normalized data 0. At
                       most ADJ_MAX_SHIFT */
    int64_t cutout; /* side of a square in pixels that is set to the mean (DeVries and Taylor 2017).
                       Its center is any pixel; it is clipped to the image */
    double jitter; /* multiplies brightness, contrast and saturation, in this order, by factors from
                      max(0, 1 - jitter) .. 1 + jitter each, like torchvision's ColorJitter. Gray
                      images have no saturation; alpha does not change */
    /* Alpha of mixup (Zhang et al. 2018); 0: off. Image i of n becomes mix * image i + (1 - mix) *
     * image n-1-i, with one mix for each batch: max(m, 1 - m), m from Beta(alpha, alpha). */
    double mixup;
} adj_augment;

/* Options of a loader. batch is required; all zero is the default of the rest. */
typedef struct {
    int64_t batch; /* images in a batch */
    /* Size of the images in a batch; 0: the data set's. Images of another size are resized or
     * refused by the data set's rule. Color is converted to luma, and alpha removed over black,
     * only if mean and deviation are given. */
    adj_image_size size;
    int threads; /* threads that prepare batches ahead of adj_loader_next, at most
                    ADJ_MAX_LOADER_THREADS; 0: adj_loader_next prepares them itself. Batches are
                    bit-identical for any number. One thread is enough if a batch takes less time
                    than a training step */
    int shuffle; /* 1: images in adj_shuffle's order of (seed, epoch); 0: in the data set's order */
    uint64_t seed;       /* seed of the order and of the augmentation */
    adj_augment augment; /* random augmentation */
    /* For each channel of the batch, copied; NULL: the data set's, where the values of a single
     * channel apply to all. */
    const float *mean, *deviation;
} adj_loader_opts;

/* One batch; below, batch is its number of images. After the last image it is padded like in
 * adj_batch. The caller may read and change its memory until the next call of adj_loader_next,
 * adj_loader_seek or adj_loader_free. */
typedef struct {
    float *x;        /* [batch, h, w, c], normalized */
    int32_t *labels; /* [batch]; padding: -1; with float targets else 0 */
    float *targets;  /* [batch, classes]: float targets; NULL: the data have labels */
    /* [batch]: with mixup the labels of the second images (adj_loss_opts), else equal to labels. */
    int32_t *other_labels;
    float mix; /* weight of labels, 0.5 .. 1; that of other_labels is 1 - mix. Without mixup 1 */
    int64_t count;       /* images without padding: batch, or less in the last batch of an epoch */
    int64_t epoch, step; /* epoch and step of this batch, from 0 */
} adj_loader_batch;

/* A loader: prepares batches, optionally in threads. */
typedef struct adj_loader adj_loader;

/* Creates a loader for d, which must outlive it. Batches start at epoch 0, step 0 and never end.
 * Threads start at once, block all signals and are joined by adj_loader_free. Only one thread at a
 * time may use a loader. On failure *l is NULL. */
ADJ_API adj_status adj_loader_new(const adj_dataset *d, const adj_loader_opts *options,
                                  adj_loader **l, adj_error *error);
/* Stops the threads, also in the middle of a batch, and frees the loader. */
ADJ_API void adj_loader_free(adj_loader *l);
/* Returns the steps of an epoch: n / batch, rounded up. */
ADJ_API int64_t adj_loader_steps(const adj_loader *l);
/* Returns the next batch in *batch, after the last step of an epoch the first of the next epoch.
 * Waits until it is prepared. If an image cannot be read, status and message are those of the first
 * such image, and the batch is not skipped: the next call fails as well. */
ADJ_API adj_status adj_loader_next(adj_loader *l, adj_loader_batch *batch, adj_error *error);
/* Makes (epoch, step), 0 <= step <= steps, the next batch, with the same content as in sequence.
 * Seeking to the current position retries a batch that failed. */
ADJ_API adj_status adj_loader_seek(adj_loader *l, int64_t epoch, int64_t step, adj_error *error);

#ifdef __cplusplus
}
#endif
#endif
