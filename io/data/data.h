/* data.h - what the files of io/data/ share: a data set under construction. */
#ifndef IO_DATA_H
#define IO_DATA_H

#include "adjoint_data.h"
#include "io/io.h"

/* Mean and deviation of MNIST's pixels; the drawn digits are close to them. */
#define DIGIT_MEAN 33.3184f
#define DIGIT_DEVIATION 78.5675f

/* Height, width and channels of an image [h, w, c]. */
typedef struct {
    int64_t h, w, c;
} image_size;

static inline int64_t size_elems(image_size s) { return s.h * s.w * s.c; }
static inline int same_size(image_size a, image_size b)
{
    return a.h == b.h && a.w == b.w && a.c == b.c;
}

/* The public read-only part first, then what it owns. Images in memory are bytes or floats of the
 * size stored; where that is not the public size, they are resized as they are read. */
typedef struct {
    adj_dataset public;
    uint8_t *images;
    float *floats;
    const uint8_t *stored_images; /* images, or the caller's */
    image_size stored;
    const adj_dataset *like;   /* adj_dataset_opts.like, if it has classes */
    struct image_files *files; /* of a folder: the images, one file each */
    int own_validation;        /* the data have a validation part: the training part is whole */
    int has_moments;           /* mean and deviation are known */
    int32_t *labels;
    const char **names; /* public.class_names: into name_text */
    char *name_text;
    char **broken;            /* public.broken */
    struct reading *readings; /* of a folder\'s headers, until io_dataset_measure */
    adj_source source;        /* public.source */
} dataset;

/* A new one, also as *out. ADJ_EARG: out is NULL; ADJ_ENOMEM: *out is. */
adj_status io_dataset_new(adj_dataset **out, dataset **d);
/* Keeps the sentence, empties the data set, returns status. */
adj_status io_dataset_fail(dataset *d, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The data set reads its images through source, which it owns from now on; labels and the like are
 * not taken from it. */
void io_dataset_use_source(dataset *d, const adj_source *source);
/* Images in memory (d->stored_images or d->floats, of d->stored) become the public ones of the size
 * wanted: as they are, or through adj_dataset_read. */
void io_dataset_use_memory(dataset *d, image_size wanted);

/* Reads every image once, on OpenMP's threads. Sets mean and deviation by channel, the same for any
 * number of threads; where they are known, only finds broken images, and only for a few seconds.
 * Broken ones are a failure or, with o->skip_broken, left out (broken.h). */
adj_status io_dataset_measure(dataset *d, const adj_dataset_opts *o, int is_known);

/* The same mean and deviation for all channels. */
void io_dataset_set_moments(dataset *d, float mean, float deviation);
/* n class names, one behind another in text, each with its final 0. The data set owns text from now
 * on. */
adj_status io_dataset_set_names(dataset *d, char *text, int n);

/* An image in memory, [h, w, c] in pixel units: bytes, or floats where bytes is NULL. */
typedef struct {
    const uint8_t *bytes;
    const float *floats;
    image_size size;
} any_image;
/* To pixels [to]: channels first, then size (adj_resize_rule). Alpha is dropped, or made (255).
 * Whether there was memory, which is for a few rows. */
int io_fit(const any_image *x, float *pixels, image_size to);

/* The same as adj_batch does it, and without room: each axis enlarged by a whole factor and centred
 * on black, or shrunk by averaging; one channel repeated. */
void io_batch_fit(const float *image, image_size from, float *x, image_size to);
/* x [h, w, c] becomes (x - mean) / deviation; if these are of one channel only, all have it. */
void io_normalise(float *x, image_size size, int64_t channels, const float mean[],
                  const float deviation[]);

/* planes [c, pixels] to image [pixels, c], elements of elem bytes. */
void io_interleave(const void *planes, int64_t c, int64_t pixels, size_t elem, void *image);

/* ---- which images ---- */

/* What is drawn of n labelled images: the validation images (val_split of each class) or the
 * others, and of these at most limit (0: all), each class its share. */
typedef struct {
    double val_split;
    int validation;
    int64_t limit;
    uint64_t seed;
} selection;
/* Their numbers, ascending, to keep[n]; *kept: how many. */
adj_status io_select(int64_t n, const int32_t *labels, int classes, const selection *s,
                     int64_t *keep, int64_t *kept);

#endif
