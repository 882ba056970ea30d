/* data.h - a data set under construction, which the files of io/data/ share. */
#ifndef IO_DATA_H
#define IO_DATA_H

#include <limits.h>

#include "adjoint_data.h"
#include "io/io.h"
#include "origin.h"

/* Mean and deviation of MNIST's pixels; the drawn digits are close to them. */
#define DIGIT_MEAN 33.3184f
#define DIGIT_DEVIATION 78.5675f

/* ---- an image for a net ---- */

/* An image in memory, [h, w, c] in pixel units: floats, or bytes where floats is NULL. */
typedef struct {
    const uint8_t *bytes;
    const float *floats;
} any_image;

/* New pixel i of an axis: the old ones at[i].first .. first+count-1, with the weights from
 * weight[at[i].weight] on. */
typedef struct {
    int64_t first, count, weight;
} fit_taps;
typedef struct {
    fit_taps *at;
    float *weight;
} fit_axis;

/* The resampling of images to another size and number of channels (adj_resize_rule): gray is
 * repeated, color becomes luma, alpha is laid over the background; a missing alpha is 255. */
typedef struct {
    adj_image_size from, to;
    float background[3]; /* whole numbers; of gray images the luma, in [0] */
    int resizes;         /* the axes below are there */
    fit_axis rows, columns;
} fitting;

static inline int io_is_color(int64_t channels) { return channels >= 3; }
/* True if an image can have so many channels: gray, color, or color with alpha. */
static inline int io_is_channels(int64_t c) { return c == 1 || c == 3 || c == 4; }
/* True if images with `from` channels can be converted to `to` channels: the same number, or both
 * of 1, 3 and 4. */
int io_can_convert(int64_t from, int64_t to);
/* Computes the weights for a pair of sizes. background: R, G, B; NULL: black. Returns 0 if memory
 * is short, and then there is nothing to close. */
int io_fitting_open(fitting *f, adj_image_size from, adj_image_size to,
                    const uint8_t background[3]);
void io_fitting_close(fitting *f);
/* Converts x [from] to pixels [to]; several threads may share f. */
void io_fit(const fitting *f, const any_image *x, float *pixels);
/* Reads image i of d, of the size f->from, as pixels [f->to]. room [f->from] may be NULL if both
 * sizes are the same. */
adj_status io_read_fitted(const adj_dataset *d, int64_t i, const fitting *f, float *room,
                          float *pixels, adj_error *error);

/* Copies the mean and deviation of d, those of one channel to all. */
void io_repeat_moments(const adj_dataset *d, int64_t channels, float mean[], float deviation[]);
/* Normalizes x [h, w, c] in place: (x - mean) / deviation by channel. */
void io_normalize(float *x, adj_image_size size, const float mean[], const float deviation[]);

/* ---- a data set ---- */

/* The outcome of reading one image; ADJ_OK also if it was not tried. */
typedef struct {
    adj_status status;
    char *why; /* the message; NULL when out of memory */
} reading;

/* The public read-only part first, then what it owns. Images in memory are bytes or floats of the
 * size stored; where that is not the public size, they are resized as they are read. */
typedef struct {
    adj_dataset public;
    uint8_t *images;
    float *floats;
    const uint8_t *stored_images; /* images, or the caller's */
    adj_image_size stored;
    const adj_dataset *like;   /* adj_dataset_opts.like, if it has classes */
    fitting fit;               /* from stored to the public size */
    struct image_files *files; /* images of a folder, one file each */
    int own_validation;        /* the data have a validation split: the training split is whole */
    int has_moments;           /* mean and deviation are known */
    int32_t *labels;
    float *targets;
    const char **names; /* public.class_names: into name_text */
    char *name_text;
    char **broken;             /* origin.broken */
    reading *readings;         /* headers of a folder, until io_dataset_measure */
    double seconds;            /* seconds that io_dataset_measure took to read the images */
    adj_dataset_origin origin; /* public.origin; owns its source */
} dataset;

/* Creates a data set, also as *out. ADJ_EARG if out is NULL; ADJ_ENOMEM with *out NULL. */
adj_status io_dataset_new(adj_dataset **out, dataset **d);
/* Returns the label of image i: 0 for data with float targets. */
static inline int32_t io_label(const adj_dataset *d, int64_t i)
{
    return d->labels != NULL ? d->labels[i] : 0;
}
/* Stores the message, empties the data set and returns status. */
adj_status io_dataset_fail(dataset *d, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Fails with ADJ_ENOMEM and its message. */
adj_status io_dataset_no_memory(dataset *d);

/* Publishes images in memory (d->stored_images or d->floats, of size d->stored) with the size
 * wanted: directly, or resized by adj_dataset_read. background as for io_fitting_open. */
adj_status io_dataset_use_memory(dataset *d, adj_image_size wanted, const uint8_t *background);

/* Reads every image once, on OpenMP's threads. Sets mean and deviation by channel, the same for any
 * number of threads. is_known: the moments are known, and images are read for a few seconds only,
 * to find broken ones. Broken images are a failure or, with o->skip_broken, left out. */
adj_status io_dataset_measure(dataset *d, const adj_dataset_opts *o, int is_known);

/* Stores a failure and its sentence. */
void io_reading_set(reading *r, adj_status status, const adj_error *error);
void io_readings_free(reading *each, int64_t n);

/* Returns ADJ_OK if all n images of d were read; else lists the broken ones in origin.broken.
 * Without skip it fails with a message that names the first ones. With skip it removes them, and
 * fails if a class that had images loses all of them, unless d takes its classes from another
 * split. Running out of memory always fails. Called once for a data set. */
adj_status io_settle_broken(dataset *d, const reading each[], int skip);

/* Sets one mean and deviation for all channels. */
void io_dataset_set_moments(dataset *d, float mean, float deviation);
/* Sets n class names, NUL-terminated one after another in text, which the data set owns from now
 * on. */
adj_status io_dataset_set_names(dataset *d, char *text, int n);
adj_status io_dataset_copy_names(dataset *d, const char *const *names, int n);

/* Converts planes [c, pixels] to an image [pixels, c] of elements of elem bytes. */
void io_interleave(const void *planes, int64_t c, int64_t pixels, size_t elem, void *image);

/* ---- the layouts of data sets in files ----
 *
 * Whether one has a part, and its reader, which fills what it stores in memory (images or floats,
 * stored, labels, n) or the list of its files, and class names if it knows them. io_dataset_finish
 * does the rest. */

adj_status io_digits_read(dataset *d, adj_dataset_part part, int64_t n, uint64_t seed);

int io_idx_has(const char *folder, adj_dataset_part part);
adj_status io_idx_read(dataset *d, const char *folder, adj_dataset_part part);

int io_cifar_has(const char *folder, adj_dataset_part part);
adj_status io_cifar_read(dataset *d, const char *folder, adj_dataset_part part);
/* Fails if where is, or holds, one of CIFAR's files as a Python pickle. */
adj_status io_cifar_refuse_pickle(dataset *d, const char *where);

/* where: an archive, or a folder with one or with .npy files. An archive that cannot be read counts
 * as any part, and one without parts as a training split: the reader reports why. */
int io_numpy_has(const char *where, adj_dataset_part part);
adj_status io_numpy_read(dataset *d, const char *where, adj_dataset_part part);

/* d->stored of images [n, h, w] or of rank 4: [n, h, w, c] where the last size is a number of
 * channels (1, 3 or 4), else [n, c, h, w], which is rearranged. */
adj_status io_dataset_take_axes(dataset *d, const char *name, int rank, const int64_t size[]);
adj_image_size io_wanted_size(adj_image_size own, const adj_dataset_opts *o);
/* Removes all images and labels but these, in ascending order. */
void io_dataset_keep(dataset *d, const int64_t *keep, int64_t kept);

/* Splits, limits, sizes, classes, mean and deviation as options say (NULL: default); where names
 * what the images come from in messages. A data set with d->own_validation is not split. */
adj_status io_dataset_finish(dataset *d, const char *where, adj_dataset_part part,
                             const adj_dataset_opts *options);

/* folder/name; whether it fits. */
int io_join(char path[PATH_MAX], const char *folder, const char *name);

#endif
