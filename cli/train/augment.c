/* augment.c - see augment.h. */
#include <stdlib.h>
#include <string.h>

#include "adjoint_data.h"
#include "augment.h"

static void fill(float *to, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = value;
}

/* image[h][w] = image[h - dy][w - dx] in place: rows are visited so that none is read after it was
 * written. */
static void shift_image(float *image, adj_shape shape, int64_t dy, int64_t dx, float background)
{
    int64_t rows = shape.dim[1], c = shape.dim[3], row = shape.dim[2] * c;
    int64_t moved = llabs(dx) * c < row ? llabs(dx) * c : row;

    for (int64_t k = 0; k < rows; k++) {
        int64_t h = dy > 0 ? rows - 1 - k : k, from = h - dy;
        float *to = image + h * row;
        if (from < 0 || from >= rows) {
            fill(to, row, background);
            continue;
        }
        memmove(to + (dx > 0 ? moved : 0), image + from * row + (dx < 0 ? moved : 0),
                (size_t)(row - moved) * sizeof *to);
        fill(to + (dx > 0 ? 0 : row - moved), moved, background);
    }
}

void shift_images(float *x, adj_shape shape, int64_t max, float background, uint64_t seed,
                  uint64_t first)
{
    int64_t side = 2 * max + 1, offsets[(2 * MAX_SHIFT + 1) * (2 * MAX_SHIFT + 1)];
    int64_t elems = shape.dim[1] * shape.dim[2] * shape.dim[3];

    for (int64_t i = 0; max > 0 && i < shape.dim[0]; i++) {
        /* the first of the offsets in a random order; ~seed: not the order of the images */
        adj_shuffle(side * side, ~seed, first + (uint64_t)i, offsets);
        shift_image(x + i * elems, shape, offsets[0] / side - max, offsets[0] % side - max,
                    background);
    }
}
