/* prepare.h - prepares the batches of a training: a pure function of epoch, step and place; with
 * random augmentation (adj_augment), whose random numbers follow from a key: equal keys give equal
 * images. */
#ifndef IO_PREPARE_H
#define IO_PREPARE_H

#include "data.h"

typedef struct {
    const adj_dataset *d;
    adj_loader_opts o; /* checked, sizes filled in; its pointers are not used */
    adj_image_size to;
    fitting fit;          /* from the data set's images to these */
    int64_t elems, steps; /* elements of an image in a batch; steps of an epoch */
    int64_t per_shard;    /* images */
    int64_t first, n;     /* images of a batch that are prepared */
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS], black[ADJ_MAX_CHANNELS];
} preparation;

/* Checks the options and prepares for batches. The caller closes p->fit, unless it fails. */
adj_status io_preparation(const adj_dataset *d, const adj_loader_opts *o, loader_shards shards,
                          preparation *p, adj_error *error);

/* Returns the number of images of a step without padding: of all, and of the n prepared ones. */
int64_t io_step_count(const preparation *p, int64_t step);
int64_t io_part_count(int64_t step_count, int64_t first, int64_t n);

/* Prepares image i of the batch of (epoch, step) in b->x and b->labels. order: the epoch's (NULL:
 * none); room: memory for one image of the data set. */
adj_status io_prepare_image(const preparation *p, const int64_t *order, const adj_loader_batch *b,
                            int64_t i, float *room, adj_error *error);
/* Applies mixup, after all images of the batch are prepared. */
void io_prepare_rest(const preparation *p, adj_loader_batch *b);

/* ---- augmentation (augment.c) ---- */

/* Returns the key of the random numbers of image k in an epoch; the next function that of a batch.
 */
uint64_t io_image_key(uint64_t seed, int64_t epoch, int64_t k);
uint64_t io_mixup_key(uint64_t seed, int64_t epoch, int64_t step);

/* Changes brightness, contrast and saturation of x [h, w, c] in pixel units by factors of up to 1
 * +- jitter. */
void io_color_jitter(double jitter, uint64_t key, adj_image_size size, float *x);

/* Applies flip, shift and cutout to the normalized x [h, w, c]. drawn: image counter for shift;
 * black: normalized value of a black pixel for each channel. */
void io_move(const adj_augment *a, uint64_t key, uint64_t seed, uint64_t drawn, const float black[],
             adj_image_size size, float *x);

/* Returns the larger of mix and 1 - mix for a random mix from Beta(alpha, alpha), alpha > 0. */
double io_mixup_share(double alpha, uint64_t key);
/* Replaces image i of n by mix * image i + (1 - mix) * image n-1-i; the middle image does not
 * change. */
void io_mixup(float *x, int64_t n, int64_t elems, float mix);

/* Indices of a key's random numbers, fixed so that one augmentation does not change the numbers of
 * another. */
enum { DRAW_FLIP, DRAW_CUTOUT_H, DRAW_CUTOUT_W, DRAW_BRIGHTNESS, DRAW_CONTRAST, DRAW_SATURATION };

#endif
