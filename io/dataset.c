/* dataset.c - a data set: made and freed, its images in another order, as batches of a network's
 * input, and how many of them a network gets right. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

adj_status io_dataset_new(adj_dataset **out, dataset **d)
{
    if (out == NULL)
        return ADJ_EARG;
    *d = calloc(1, sizeof **d);
    *out = (adj_dataset *)*d;
    if (*d == NULL)
        return ADJ_ENOMEM;
    (*d)->public.mean = DIGIT_MEAN;
    (*d)->public.deviation = DIGIT_DEVIATION;
    return ADJ_OK;
}

adj_status io_dataset_fail(dataset *d, adj_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->public.message, sizeof d->public.message, format, args);
    va_end(args);
    d->public.n = 0;
    return status;
}

const char *io_open(const char *path, int *fd, int64_t *size)
{
    struct stat s;
    /* O_NONBLOCK: opening a pipe that nobody writes to must not hang. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return strerror(errno);
    const char *why = fstat(*fd, &s) != 0   ? strerror(errno)
                      : !S_ISREG(s.st_mode) ? "is not a regular file"
                                            : NULL;
    if (why != NULL)
        close(*fd);
    else
        *size = s.st_size;
    return why;
}

void adj_dataset_free(adj_dataset *public)
{
    if (public == NULL)
        return;
    dataset *d = (dataset *)public; /* its first member */
    free(d->images);
    free(d->labels);
    free(d);
}

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

/* ---- evaluation ---- */

int64_t adj_count_right(int64_t n, int64_t classes, const float scores[], const int32_t labels[])
{
    int64_t right = 0;

    for (int64_t i = 0; i < n; i++) {
        const float *score = scores + i * classes;
        int64_t best = 0;
        for (int64_t k = 1; k < classes; k++)
            if (score[k] > score[best])
                best = k;
        right += best == labels[i];
    }
    return right;
}

typedef struct {
    adj_exec *e;
    const adj_node *images, *logits;
    adj_shape shape; /* of images */
    int64_t classes;
    float *x, *scores; /* values of images and logits */
    int32_t *labels;
} evaluation;

/* The batch of the images from first on. */
static adj_status add_batch(const evaluation *v, const adj_dataset *d, int64_t first,
                            int64_t *right)
{
    size_t n = (size_t)v->shape.dim[0], pixels = (size_t)adj_shape_elems(v->shape);

    adj_batch(d, NULL, first, v->shape, v->x, v->labels);
    adj_status status = adj_set(v->e, v->images, v->x, pixels * sizeof *v->x);
    if (status == ADJ_OK)
        status = adj_run(v->e);
    if (status == ADJ_OK)
        status = adj_get(v->e, v->logits, v->scores, n * (size_t)v->classes * sizeof *v->scores);
    if (status == ADJ_OK)
        *right += adj_count_right((int64_t)n, v->classes, v->scores, v->labels);
    return status;
}

/* Types that a batch and its scores have. */
static int fits(adj_type images, adj_type logits)
{
    return images.dtype == ADJ_F32 && images.shape.rank == 4 && images.shape.dim[0] > 0 &&
           logits.dtype == ADJ_F32 && logits.shape.rank == 2 && logits.shape.dim[1] > 0 &&
           logits.shape.dim[0] == images.shape.dim[0];
}

adj_status adj_evaluate(adj_exec *e, const adj_node *images, const adj_node *logits,
                        const adj_dataset *d, int64_t *right, adj_error *error)
{
    *right = 0;
    if (images == NULL || logits == NULL || !fits(adj_node_type(images), adj_node_type(logits)))
        return adj_error_set(
            error, ADJ_ESHAPE,
            "evaluate: images must be f32 [n, h, w, c] and logits f32 [n, classes]");
    evaluation v = {.e = e,
                    .images = images,
                    .logits = logits,
                    .shape = adj_node_type(images).shape,
                    .classes = adj_node_type(logits).shape.dim[1]};
    size_t n = (size_t)v.shape.dim[0];
    v.x = malloc((size_t)adj_shape_elems(v.shape) * sizeof *v.x + 1);
    v.scores = malloc(n * (size_t)v.classes * sizeof *v.scores);
    v.labels = calloc(n, sizeof *v.labels);

    adj_status status = ADJ_OK;
    if (v.x == NULL || v.scores == NULL || v.labels == NULL)
        status = adj_error_set(error, ADJ_ENOMEM, "evaluate: out of memory");
    else if (adj_batch(d, NULL, 0, v.shape, v.x, v.labels) < 0)
        status = adj_error_set(error, ADJ_ESHAPE,
                               "evaluate: images of %lldx%lldx%lld cannot be made to fit the input",
                               (long long)d->h, (long long)d->w, (long long)d->c);
    for (int64_t first = 0; first < d->n && status == ADJ_OK; first += v.shape.dim[0])
        if ((status = add_batch(&v, d, first, right)) != ADJ_OK)
            adj_error_set(error, status, "evaluate: %s", adj_exec_message(e));
    free(v.labels);
    free(v.scores);
    free(v.x);
    return status;
}
