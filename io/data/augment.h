/* augment.h - random augmentation (adj_augment) of one image or one batch. All random numbers
 * follow from a key: equal keys give equal images. */
#ifndef IO_AUGMENT_H
#define IO_AUGMENT_H

#include "data.h"

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
