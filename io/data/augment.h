/* augment.h - training images changed at random: what adj_augment says, one image or one batch at a
 * time. All draws come from a key, so a caller that has the same keys gets the same images. */
#ifndef IO_AUGMENT_H
#define IO_AUGMENT_H

#include "data.h"

/* The key of all that is drawn for image k in an epoch, and of what is drawn for a whole batch. */
uint64_t io_image_key(uint64_t seed, int64_t epoch, int64_t k);
uint64_t io_mixup_key(uint64_t seed, int64_t epoch, int64_t step);

/* Brightness, contrast and saturation of x [h, w, c] in pixel units, by up to jitter. */
void io_color_jitter(double jitter, uint64_t key, image_size size, float *x);

/* Flip, shift and cutout of the normalized x [h, w, c]. drawn: shift's image counter; black: what a
 * black pixel is after normalizing, by channel. */
void io_move(const adj_augment *a, uint64_t key, uint64_t seed, uint64_t drawn, const float black[],
             image_size size, float *x);

/* The larger of mix and 1 - mix for mix drawn from Beta(alpha, alpha), alpha > 0. */
double io_mixup_share(double alpha, uint64_t key);
/* Image i of n becomes mix * image i + (1 - mix) * image n-1-i; the middle one stays. */
void io_mixup(float *x, int64_t n, int64_t elems, float mix);

/* Which of a key's draws is for what: one that is off leaves the others as they are. */
enum { DRAW_FLIP, DRAW_CUTOUT_H, DRAW_CUTOUT_W, DRAW_BRIGHTNESS, DRAW_CONTRAST, DRAW_SATURATION };

#endif
