/* batch.c - images in another order, as batches of a network's input. */
#include <stdlib.h>
#include <string.h>

#include "data.h"

/* Fisher and Yates: order[i] changes places with one of order[0 .. i]. */
void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[])
{
    uint64_t key = io_key(seed, 0x73687566666c65u, epoch);

    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = io_below(io_mix(key + (uint64_t)i), i + 1);
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
static float mean_of(const float *image, image_size size, span rows, span columns, int64_t c)
{
    int64_t count = (rows.to - rows.from) * (columns.to - columns.from);
    double sum = 0;

    for (int64_t h = rows.from; h < rows.to; h++)
        for (int64_t w = columns.from; w < columns.to; w++)
            sum += image[(h * size.w + w) * size.c + c];
    return count > 0 ? (float)sum / (float)count : 0;
}

void io_batch_fit(const float *image, image_size from, float *x, image_size to)
{
    if (same_size(from, to)) {
        memcpy(x, image, (size_t)size_elems(to) * sizeof *x);
        return;
    }
    for (int64_t oh = 0; oh < to.h; oh++) {
        span rows = span_for(oh, from.h, to.h);
        for (int64_t ow = 0; ow < to.w; ow++, x += to.c) {
            span columns = span_for(ow, from.w, to.w);
            for (int64_t oc = 0; oc < to.c; oc++)
                x[oc] = mean_of(image, from, rows, columns, from.c == 1 ? 0 : oc);
        }
    }
}

void io_normalise(float *x, image_size size, int64_t channels, const float mean[],
                  const float deviation[])
{
    for (int64_t i = 0; i < size.h * size.w; i++, x += size.c)
        for (int64_t c = 0; c < size.c; c++) {
            int64_t k = channels == 1 ? 0 : c;
            x[c] = (x[c] - mean[k]) / deviation[k];
        }
}

/* Image k to x; whether it could be read. */
static int read_image(const adj_dataset *d, int64_t k, adj_shape shape, float *x, adj_error *error)
{
    const image_size from = {d->h, d->w, d->c}, to = {shape.dim[1], shape.dim[2], shape.dim[3]};
    float *image = malloc((size_t)size_elems(from) * sizeof *image);
    int is_read = image != NULL && adj_dataset_read(d, k, image, error) == ADJ_OK;

    if (is_read) {
        io_batch_fit(image, from, x, to);
        io_normalise(x, to, d->c, d->mean, d->deviation);
    } else if (image == NULL)
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
