/* batch.c - images in another order, as batches of a network's input. */
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* Fisher and Yates: order[i] changes places with one of order[0 .. i]. The draw is the high half of
 * random * (i + 1), whose bias of (i + 1) / 2^64 is nothing. */
void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[])
{
    uint64_t key = io_key(seed, 0x73687566666c65u, epoch);

    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        __extension__ typedef unsigned __int128 wide;
        int64_t j = (int64_t)(((wide)io_mix(key + (uint64_t)i) * (uint64_t)(i + 1)) >> 64);
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* ---- batches ----
 *
 * Size, each axis by itself: an image is enlarged by the largest whole factor that fits, centred
 * and surrounded by background (the value of a black pixel); an axis that is too long is shrunk by
 * averaging the pixels under each new one. */

/* The image's pixels from .. to-1 that make one pixel of the batch; none: background. */
typedef struct {
    int64_t from, to;
} span;

static span span_for(int64_t i, int64_t have, int64_t want)
{
    if (want < have) /* to rounds up: every pixel is used */
        return (span){i * have / want, ((i + 1) * have + want - 1) / want};
    int64_t factor = want / have, inside = i - (want - have * factor) / 2;
    if (inside < 0 || inside >= have * factor)
        return (span){0, 0};
    return (span){inside / factor, inside / factor + 1};
}

/* Exact for bytes: sums of whole numbers below 2^53. */
static float mean_of(const adj_dataset *d, const float *image, span rows, span columns, int64_t c)
{
    int64_t count = (rows.to - rows.from) * (columns.to - columns.from);
    double sum = 0;

    for (int64_t h = rows.from; h < rows.to; h++)
        for (int64_t w = columns.from; w < columns.to; w++)
            sum += image[(h * d->w + w) * d->c + c];
    return count > 0 ? (float)sum / (float)count : 0;
}

static void fill_image(const adj_dataset *d, const float *image, adj_shape shape, float *x)
{
    int64_t h = shape.dim[1], w = shape.dim[2], c = shape.dim[3];

    for (int64_t oh = 0; oh < h; oh++) {
        span rows = span_for(oh, d->h, h);
        for (int64_t ow = 0; ow < w; ow++, x += c) {
            span columns = span_for(ow, d->w, w);
            for (int64_t oc = 0; oc < c; oc++) {
                int64_t ic = d->c == 1 ? 0 : oc;
                x[oc] = (mean_of(d, image, rows, columns, ic) - d->mean[ic]) / d->deviation[ic];
            }
        }
    }
}

/* Image k to x; whether it could be read. */
static int read_image(const adj_dataset *d, int64_t k, adj_shape shape, float *x, adj_error *error)
{
    float *image = malloc((size_t)(d->h * d->w * d->c) * sizeof *image);
    int is_read = image != NULL && adj_dataset_read(d, k, image, error) == ADJ_OK;

    if (is_read)
        fill_image(d, image, shape, x);
    else if (image == NULL)
        adj_error_set(error, ADJ_ENOMEM, "batch: out of memory");
    free(image);
    return is_read;
}

static int fits(const adj_dataset *d, int64_t first, adj_shape shape)
{
    return d != NULL && d->n >= 1 && first >= 0 && shape.rank == 4 && adj_shape_elems(shape) >= 0 &&
           (d->c == 1 || d->c == shape.dim[3]);
}

static int64_t refuse(const adj_dataset *d, adj_shape s, adj_error *error)
{
    if (d != NULL && s.rank == 4)
        adj_error_set(error, ADJ_ESHAPE,
                      "images of %lldx%lldx%lld cannot be made to fit the input of %lldx%lldx%lld",
                      (long long)d->h, (long long)d->w, (long long)d->c, (long long)s.dim[1],
                      (long long)s.dim[2], (long long)s.dim[3]);
    else
        adj_error_set(error, ADJ_EARG, "batch: expected a data set and a shape [batch, h, w, c]");
    return -1;
}

int64_t adj_batch(const adj_dataset *d, const int64_t *order, int64_t first, adj_shape shape,
                  float *x, int32_t *labels, adj_error *error)
{
    if (!fits(d, first, shape))
        return refuse(d, shape, error);

    int64_t batch = shape.dim[0], elems = shape.dim[1] * shape.dim[2] * shape.dim[3];
    int64_t left = d->n > first ? d->n - first : 0, real = left < batch ? left : batch;
    int failed = 0;
#pragma omp parallel for if (batch * elems > 1 << 16) reduction(| : failed)
    for (int64_t i = 0; i < batch; i++) {
        int64_t at = i < real ? first + i : (i - real) % d->n;
        int64_t k = order != NULL ? order[at] : at;
        failed |= !read_image(d, k, shape, x + i * elems, NULL);
        labels[i] = i < real ? d->labels[k] : -1;
    }
    /* one by one, so that the sentence is always the same one's */
    for (int64_t i = 0; failed && i < batch; i++) {
        int64_t at = i < real ? first + i : (i - real) % d->n;
        if (!read_image(d, order != NULL ? order[at] : at, shape, x + i * elems, error))
            return -1;
    }
    return real;
}
