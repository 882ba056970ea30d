/* data.h - what the files of io/data/ share: a data set under construction. */
#ifndef IO_DATA_H
#define IO_DATA_H

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

/* Fails with ADJ_ESHAPE if the images of d cannot become those of a batch. has_moments: mean and
 * deviation of the batch's channels are known. */
adj_status io_check_fit(const adj_dataset *d, adj_image_size to, int has_moments, adj_error *error);
/* Copies the mean and deviation of d, those of one channel to all. */
void io_repeat_moments(const adj_dataset *d, int64_t channels, float mean[], float deviation[]);
/* Normalizes x [h, w, c] in place: (x - mean) / deviation by channel. */
void io_normalize(float *x, adj_image_size size, const float mean[], const float deviation[]);

/* ---- a data set ---- */

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
    struct image_files *files; /* of a folder: the images, one file each */
    int own_validation;        /* the data have a validation split: the training split is whole */
    int has_moments;           /* mean and deviation are known */
    int32_t *labels;
    float *targets;
    const char **names; /* public.class_names: into name_text */
    char *name_text;
    char **broken;             /* origin.broken */
    struct reading *readings;  /* of a folder's headers, until io_dataset_measure */
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
 * to find broken ones. Broken images are a failure or, with o->skip_broken, left out (broken.h). */
adj_status io_dataset_measure(dataset *d, const adj_dataset_opts *o, int is_known);

/* Sets one mean and deviation for all channels. */
void io_dataset_set_moments(dataset *d, float mean, float deviation);
/* Sets n class names, NUL-terminated one after another in text, which the data set owns from now
 * on. */
adj_status io_dataset_set_names(dataset *d, char *text, int n);

/* Converts planes [c, pixels] to an image [pixels, c] of elements of elem bytes. */
void io_interleave(const void *planes, int64_t c, int64_t pixels, size_t elem, void *image);

/* ---- which images ---- */

/* Selection among n labeled images: the validation images (val_split of each class) or the others,
 * of these at most limit (0: all) with the class frequencies of the data. */
typedef struct {
    double val_split;
    int validation;
    int64_t limit;
    uint64_t seed;
} selection;
/* Writes the numbers of the selected images, ascending, to keep[n] and their count to *kept. */
adj_status io_select(int64_t n, const int32_t *labels, int classes, const selection *s,
                     int64_t *keep, int64_t *kept);

#endif
