/* shift.h - training images moved a little, so that a net does not learn their places. */
#ifndef IO_FIT_SHIFT_H
#define IO_FIT_SHIFT_H

#include "adjoint_data.h"

/* Moves each image of the batch x by up to max pixels (0 .. ADJ_MAX_SHIFT) along each axis, all
 * offsets alike in probability; what comes in is background. Depends on (seed, first + i) only,
 * first being the number of images drawn before. */
void shift_images(float *x, adj_shape shape, int64_t max, float background, uint64_t seed,
                  uint64_t first);

#endif
