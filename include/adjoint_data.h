/* adjoint_data.h - data sets of labeled images, from files or from the caller's memory, and
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

/* What the images of a data set are for. */
typedef enum { ADJ_TRAIN, ADJ_TEST, ADJ_VALIDATION } adj_dataset_part;

/* ---- what a data set is ---- */

/* Where images come from that are not in memory as bytes. */
typedef struct {
    int64_t n, h, w, c;    /* all images have one size */
    int classes;           /* that labels tell apart */
    const int32_t *labels; /* n of them, 0 .. classes-1; copied */
    /* Fills pixels [h, w, c] with image i, in pixel units (0 .. 255, black to white). Called by
     * several threads at once. On failure it returns a status and says why in *error. */
    adj_status (*read)(void *user, int64_t i, float *pixels, adj_error *error);
    void (*free)(void *user);      /* NULL: nothing to free */
    void *user;                    /* handed to read and free */
    const float *mean, *deviation; /* c of each, copied; NULL: every image is read once for them */
} adj_source;

/* The rule for images of another size than the one requested. It is the same for every format, in
 * training, evaluation and prediction. */
typedef enum {
    ADJ_RESIZE_AUTO, /* each axis: the mean of the area under a pixel where it shrinks, bilinear
                        between the centers of pixels (half-pixel) where it grows */
    ADJ_RESIZE_ERROR /* an image of another size is refused */
} adj_resize_rule;

/* n labeled images of h x w pixels with c channels. Made by the functions below, read-only, freed
 * by adj_dataset_free. A failed one has n == 0 and says why in message. A program may also fill one
 * in by itself over images of its own (source == NULL), and then does not free it. */
typedef struct {
    int64_t n, h, w, c;             /* images; height, width and channels of each */
    int classes;                    /* that labels tell apart */
    const char *const *class_names; /* classes of them; NULL: they have only their numbers */
    const int32_t *labels;          /* n of them, 0 .. classes-1 */
    const uint8_t *images;          /* [n, h, w, c]; NULL: adj_dataset_read has them */
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS]; /* by channel, in pixel units: a
                              batch has (pixel - mean) / deviation. The deviation is never 0 */
    adj_resize_rule resize; /* for images of another size than h x w, and for batches of another;
                               a training keeps it in the model card */
    int normalized;         /* the values are no pixels but already a net's input (ADJ_DATA_NUMPY):
                               mean 0, deviation 1, and image files do not fit such a net; a
                               training keeps it in the model card */
    /* Least and greatest value of the NumPy array values_of, or 0 and 0 for images that are no such
     * array, or all 0. Their scale is 0 to 1 if high is at most 1. A training keeps low and high in
     * the model card. */
    float low, high;
    char values_of[ADJ_MESSAGE]; /* "data.npz: x_train"; "": images of no NumPy array */
    int64_t resized;             /* images whose files had another size than h x w */
    int64_t recolored; /* images whose files are gray and become color, or the other way round */
    const adj_source *source;  /* where images are read when there are none in memory */
    char message[ADJ_MESSAGE]; /* why it failed; "" if it did not */
    /* One line about the files and folders that are not read: "40 files with other endings (.bmp
     * 40), folder misc without images"; "": all are. */
    char left_out[ADJ_MESSAGE];
    /* n_broken sentences, one for each image file that cannot be read: those that
     * adj_dataset_opts.skip_broken left out, else those that made opening fail. */
    const char *const *broken;
    int64_t n_broken; /* how many */
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
/* Its images and labels too, unless they are the caller's. NULL: nothing. */
ADJ_API void adj_dataset_free(adj_dataset *d);

/* Image i in pixel units, to pixels [h, w, c]. Several threads may call it at once. */
ADJ_API adj_status adj_dataset_read(const adj_dataset *d, int64_t i, float *pixels,
                                    adj_error *error);

/* ---- data sets in files ---- */

/* All zero is the default. */
typedef struct {
    int64_t h, w; /* of the images after reading; 0: as in the files, in a folder the first
                     image's */
    int64_t c;    /* 1 (luma, 0.299 R + 0.587 G + 0.114 B), 3, 4 (with alpha); 0: the files',
                     in a folder 3 if at least half of the images are in color, else 1 */
    adj_resize_rule resize; /* for images of another size, of any format */
    uint8_t background[3]; /* R, G, B that transparent pixels are laid over, unless c is 4: black */
    int classes;           /* 0: told from the data: as many as names, or the largest label + 1 */
    int64_t limit;         /* > 0: no more than so many images, drawn by seed, of every class its
                              share */
    double val_split;      /* 0 .. below 1: where the data have no validation part, this fraction of
                              each class of the training part, drawn by seed, becomes it */
    uint64_t seed;         /* of the split and of what limit takes */
    /* Another part of the same data, usually the training part: this one takes its sizes, classes,
     * names, mean and deviation. If h, classes or deviation[0] of like is 0, this part has its own
     * size, classes or moments, as with NULL. Class folders are matched by name; if like has no
     * names, by number, or by order if there is a folder for each class. If like refuses images of
     * another size, so does this part. */
    const adj_dataset *like;
    int skip_broken; /* 1: image files that cannot be read are left out; opening reads all files.
                        0: they are a failure. Of a part with like, opening then reads the first 200
                        files, and more for 3 s or as long as reading like took */
    /* Called while opening reads the images, with the number read so far and all n, by one thread
     * at a time; NULL: no calls. */
    void (*progress)(void *user, int64_t done, int64_t n);
    void *user; /* handed to progress */
} adj_dataset_opts;

/* How the files of a data set lie. */
typedef enum {
    ADJ_DATA_NONE, /* none of these */
    ADJ_DATA_DIGITS,
    ADJ_DATA_IDX,
    ADJ_DATA_CIFAR,
    ADJ_DATA_NUMPY,
    ADJ_DATA_FOLDER
} adj_data_layout;

/* What lies at path, by the names of the files there:
 *   DIGITS  NULL or "digits": adj_dataset_digits with seed 1
 *   IDX     a folder with [PREFIX-]train-images-idx3-ubyte (or .idx3-ubyte, idx4), ...-labels-idx1-
 *           ubyte (QMNIST: idx2-int) and t10k- or test- for the test part, each plain or with .gz
 *   CIFAR   a folder with CIFAR-10's data_batch_1.bin ... and test_batch.bin, or CIFAR-100's
 *           train.bin and test.bin (fine labels)
 *   NUMPY   a file .npz, or a folder with one or with a pair of .npy: images and labels by the keys
 *           x_train, y_train, x_test, y_test, x_val, y_val (or x_valid; X_train; train_images,
 *           train_labels and so on), or x and y, images and labels, arr_0 and arr_1 for the
 *           training part. Images are u1, f4 or f8 of the shapes of IDX. The range of all values
 *           decides: from 0 to 1 they are pixels divided by 255; from 0 to 255, of floats with some
 *           from 128 on, pixels; from -255 to 255 already normalized (adj_dataset.normalized);
 *           others are refused. All parts have one scale, that of the part like, which also
 *           decides for floats from 0 to 255 that are all below 128
 *   FOLDER  DIR/CLASS/ with image files, or such in DIR/train/, DIR/val/ and DIR/test/; also
 *           training, valid, validation, testing, in any case. The classes are the class folders of
 *           the training part that hold images in any part */
ADJ_API adj_data_layout adj_dataset_layout(const char *path);

/* Whether the data at path have the part as such, not as a split of the training part. */
ADJ_API int adj_dataset_has_part(const char *path, adj_dataset_part part);

/* The part of what lies at path. On failure the message says what was wrong where, or which
 * layouts were looked for. A part that the data do not have is ADJ_EARG (n == 0 and a message).
 * options may be NULL. */
ADJ_API adj_status adj_dataset_open(const char *path, adj_dataset_part part,
                                    const adj_dataset_opts *options, adj_dataset **d);

/* MNIST's four standard names in a folder, plain or with .gz: train-images-idx3-ubyte,
 * train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte. Ten classes, with the
 * mean and deviation of MNIST's training images. */
ADJ_API adj_status adj_dataset_mnist(const char *folder, adj_dataset_part part, adj_dataset **d);
/* Opens a pair of IDX files, plain or gzip whatever their names: images of unsigned bytes [n, h, w]
 * or [n, h, w, c], and labels, bytes [n] or QMNIST's int32 [n, m], whose column 0 counts; of rank 4
 * the last size is the channels if it is 1, 3 or 4, else the second is, as [n, c, h, w]. A label of
 * classes or more is refused; classes == 0: told from the labels. */
ADJ_API adj_status adj_dataset_idx(const char *images, const char *labels, int classes,
                                   adj_dataset **d);
/* 28x28 digits, of classes 0 to 9 by name, drawn from strokes, warped, in varying pens and with
 * noise. Image i of a part (train
 * or test) depends on (seed, part, i) only. n == 0: 8,000 to train on, 2,000 to test. */
ADJ_API adj_status adj_dataset_digits(adj_dataset_part part, int64_t n, uint64_t seed,
                                      adj_dataset **d);

/* ---- single images ---- */

/* What adj_image_read makes of an image. */
typedef struct {
    int64_t h, w, c;        /* as in adj_dataset_opts, but none may be 0 */
    adj_resize_rule resize; /* of one that has another size */
    uint8_t background[3];  /* red, green, blue: what an alpha channel lies over */
} adj_image_opts;

/* Reads a PNG, JPEG or WEBP file, known by its first bytes, turns it as its EXIF orientation says
 * and brings it to the size and channels of the options: pixels [h, w, c] in pixel units. Pixels
 * are as stored, whatever gAMA, iCCP, sRGB and cHRM say; 16-bit samples are divided by 257.
 * Sets *resized (may be NULL) to 1 if the file has another size, else to 0. */
ADJ_API adj_status adj_image_read(const char *path, const adj_image_opts *options, float *pixels,
                                  int *resized, adj_error *error);
/* The same of n bytes in memory; name stands in the sentence of a failure. */
ADJ_API adj_status adj_image_decode(const void *bytes, size_t n, const char *name,
                                    const adj_image_opts *options, float *pixels, int *resized,
                                    adj_error *error);

/* ---- batches ---- */

/* Fills order[0 .. n) with a permutation of 0 .. n-1 that depends on (n, seed, epoch) only. */
ADJ_API void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[]);

/* Fills one batch for an f32 input node of the given shape [batch, h, w, c] and an i32 label node
 * [batch] with the images order[first], order[first+1], ... (order == NULL: first, first+1, ...).
 * Images of another size are resized, or refused, by d->resize, exactly as adj_image_read does it;
 * one channel is repeated. Behind the last image the batch is filled up with images from the
 * start and labels -1, which a loss does not count. Returns how many images count (0 when first is
 * n or more), or -1 and why if the data cannot be made to fit or be read. */
ADJ_API int64_t adj_batch(const adj_dataset *d, const int64_t *order, int64_t first,
                          adj_shape shape, float *x, int32_t *labels, adj_error *error);

/* Counts the rows of scores [n, classes] that are largest at their label; rows labeled -1 are left
 * out. */
ADJ_API int64_t adj_count_right(int64_t n, int64_t classes, const float scores[],
                                const int32_t labels[]);

/* Runs the whole data set through an executor that needs the f32 input images [batch, h, w, c] and
 * fetches the f32 node logits [batch, classes]; *right: how many of its d->n images have their
 * largest logit at their label. Images are written in place (adj_set_in_place): the executor keeps
 * the last of them. */
ADJ_API adj_status adj_evaluate(adj_exec *e, const adj_node *images, const adj_node *logits,
                                const adj_dataset *d, int64_t *right, adj_error *error);

/* ---- augmentation, and batches ahead of the training step ---- */

enum { ADJ_MAX_SHIFT = 8, ADJ_MAX_LOADER_THREADS = 64 };

/* How training images are changed at random; all zero: not at all. In this order: jitter, on pixels
 * within 0 .. 255; flip, shift and cutout, on normalized images of the batch's size; mixup, on the
 * whole batch. Data that are already normalized refuse jitter, and a shift brings in 0. What
 * happens to image k in an epoch is drawn from (seed, epoch, k) alone, so it depends neither on
 * threads nor on the rest of the batch. Two are drawn from places instead: shift from the seed and
 * the number of images, fillers included, in all batches before this image; mixup from (seed,
 * epoch, step). */
typedef struct {
    int flip;       /* left and right change places, with probability 1/2 */
    int64_t shift;  /* moved by -shift .. shift pixels along each axis, all offsets alike in
                       probability, and black comes in: padding by as much and cropping. At most
                       ADJ_MAX_SHIFT */
    int64_t cutout; /* a square with sides of so many pixels becomes the mean (DeVries and Taylor
                       2017): its center is any pixel, and what lies outside the image is cut off */
    double jitter;  /* brightness, contrast, saturation are multiplied by factors drawn from
                       max(0, 1 - jitter) .. 1 + jitter each, as by torchvision's ColorJitter, but
                       always in this order; gray images have no saturation, alpha stays */
    double mixup; /* alpha > 0 (Zhang et al. 2018): image i of n that count becomes mix * image i +
                     (1 - mix) * image n-1-i, mix drawn from Beta(alpha, alpha) for each batch. */
} adj_augment;

/* All zero but batch is the default. */
typedef struct {
    int64_t batch;       /* images */
    int64_t h, w, c;     /* of the images in a batch; 0: the data set's. Images of another size are
                            resized, or refused, by the data set's rule. Color becomes luma and
                            alpha is laid over black only if mean and deviation are given */
    int threads;         /* that prepare batches ahead of adj_loader_next, at most
                            ADJ_MAX_LOADER_THREADS; 0: adj_loader_next does it. No bit of a batch depends
                            on it. One is enough where a batch takes less time than a step */
    int shuffle;         /* the images in adj_shuffle's order of (seed, epoch), else in their own */
    uint64_t seed;       /* of the order and of the augmentation */
    adj_augment augment; /* what changes training images, drawn by the seed */
    const float *mean, *deviation; /* by channel of the batch, copied; NULL: the data set's, where
                                      one channel's serve all */
    /* The batch is cut into so many shards of equal size, 0: one, and n_shard of them are prepared,
     * from first_shard on; 0: all. What an image becomes does not depend on who prepares it; but
     * mixup mixes each shard by itself. */
    int64_t shards, first_shard, n_shard;
} adj_loader_opts;

/* One batch, or its shards that are prepared: batch is how many images those have. With fillers
 * behind the last image as by adj_batch. Its memory is the caller's to read
 * and to change until the next call of adj_loader_next, adj_loader_seek or adj_loader_free. */
typedef struct {
    float *x;        /* [batch, h, w, c], normalized */
    int32_t *labels; /* [batch]; fillers: -1 */
    /* [batch] and 0.5 .. 1: labels of what was mixed in, and the share of what it was mixed to
     * (adj_loss_opts). Without mixup the labels again, and 1. */
    int32_t *other_labels;
    float mix;           /* the weight of labels, 0 .. 1; that of other_labels is 1 - mix */
    int64_t count;       /* images that count: batch, or less in the last of an epoch */
    int64_t step_count;  /* the same of all shards */
    int64_t epoch, step; /* of this batch, from 0 */
} adj_loader_batch;

/* Threads that prepare batches. */
typedef struct adj_loader adj_loader;

/* Batches of d, which outlives the loader, from epoch 0, step 0 on without an end; threads, if any,
 * begin at once. They are joined by adj_loader_free, and handle no signals. A loader is used by one
 * thread at a time. On failure *l is NULL. */
ADJ_API adj_status adj_loader_new(const adj_dataset *d, const adj_loader_opts *options,
                                  adj_loader **l, adj_error *error);
/* Also in the middle of a batch that is prepared. */
ADJ_API void adj_loader_free(adj_loader *l);
/* Steps of an epoch: n / batch, rounded up. */
ADJ_API int64_t adj_loader_steps(const adj_loader *l);
/* The next batch; after an epoch's last step, the next epoch's first. Waits until it is prepared.
 * If an image cannot be read, the status and sentence are the reader's, of the batch's first such
 * image; the batch is not passed over: the next call fails like this one. */
ADJ_API adj_status adj_loader_next(adj_loader *l, adj_loader_batch *batch, adj_error *error);
/* The next batch is that of (epoch, step), 0 <= step <= steps; the same as if all before it had
 * been taken. Seeking where the loader is reads a batch anew that failed. */
ADJ_API adj_status adj_loader_seek(adj_loader *l, int64_t epoch, int64_t step, adj_error *error);
/* Seconds that calls of adj_loader_next took until now. */
ADJ_API double adj_loader_waited(const adj_loader *l);

#ifdef __cplusplus
}
#endif
#endif
