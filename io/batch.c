/* batch.c - images of a data set as one batch of a network's input.
 *
 * Size, each axis by itself: an image is enlarged by the largest whole factor that fits, centred
 * and surrounded by background (the value of a black pixel); an axis that is too long is shrunk by
 * averaging the pixels under each new one. */
#include "io.h"

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

static float mean_of(const adj_dataset *d, const uint8_t *image, span rows, span columns, int64_t c)
{
    int64_t sum = 0, count = (rows.to - rows.from) * (columns.to - columns.from);

    for (int64_t h = rows.from; h < rows.to; h++)
        for (int64_t w = columns.from; w < columns.to; w++)
            sum += image[(h * d->w + w) * d->c + c];
    return count > 0 ? (float)sum / (float)count : 0;
}

static void fill_image(const adj_dataset *d, const uint8_t *image, adj_shape shape, float *x)
{
    int64_t h = shape.dim[1], w = shape.dim[2], c = shape.dim[3];

    for (int64_t oh = 0; oh < h; oh++) {
        span rows = span_for(oh, d->h, h);
        for (int64_t ow = 0; ow < w; ow++, x += c) {
            span columns = span_for(ow, d->w, w);
            for (int64_t oc = 0; oc < c; oc++) {
                float pixel = mean_of(d, image, rows, columns, d->c == 1 ? 0 : oc);
                x[oc] = (pixel - d->mean) / d->deviation;
            }
        }
    }
}

int64_t adj_batch(const adj_dataset *d, const int64_t *order, int64_t first, adj_shape shape,
                  float *x, int32_t *labels)
{
    if (d == NULL || d->n < 1 || first < 0 || shape.rank != 4 || adj_shape_elems(shape) < 0 ||
        (d->c != 1 && d->c != shape.dim[3]))
        return -1;

    int64_t batch = shape.dim[0], elems = shape.dim[1] * shape.dim[2] * shape.dim[3];
    int64_t left = d->n > first ? d->n - first : 0, real = left < batch ? left : batch;
#pragma omp parallel for if (batch * elems > 1 << 16)
    for (int64_t i = 0; i < batch; i++) {
        int64_t at = i < real ? first + i : (i - real) % d->n;
        int64_t k = order != NULL ? order[at] : at;
        fill_image(d, d->images + k * d->h * d->w * d->c, shape, x + i * elems);
        labels[i] = i < real ? d->labels[k] : -1;
    }
    return real;
}
