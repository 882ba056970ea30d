/* batch.c - images in another order, as batches of a network's input; and the count of those that a
 * network classifies correctly. */
#include <math.h>
#include <stdlib.h>

#include "data.h"

/* Fisher-Yates shuffle: swaps order[i] with a random one of order[0 .. i]. */
void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[])
{
    uint64_t key = io_key(seed, 0x73687566666c65u, epoch);

    if (order == NULL)
        return;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = io_below(io_mix(key + (uint64_t)i), i + 1);
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* ---- batches ---- */

void io_normalize(float *x, adj_image_size size, const float mean[], const float deviation[])
{
    for (int64_t i = 0; i < size.h * size.w; i++, x += size.c)
        for (int64_t c = 0; c < size.c; c++)
            x[c] = (x[c] - mean[c]) / deviation[c];
}

void io_repeat_moments(const adj_dataset *d, int64_t channels, float mean[], float deviation[])
{
    for (int64_t c = 0; c < channels; c++) {
        mean[c] = d->mean[d->size.c == 1 ? 0 : c];
        deviation[c] = d->deviation[d->size.c == 1 ? 0 : c];
    }
}

adj_status io_check_fit(const adj_dataset *d, adj_image_size to, int has_moments, adj_error *error)
{
    const char *why = NULL;
    char sides[64];
    snprintf(sides, sizeof sides, "expected sides of 1 to %d pixels", ADJ_MAX_SIDE);
    if (!has_sides(d->size) || !has_sides(to))
        why = sides;
    else if (!io_can_convert(d->size.c, to.c) || to.c > ADJ_MAX_CHANNELS)
        why = "expected the same number of channels, or 1, 3 or 4";
    else if (d->size.c != 1 && d->size.c != to.c && !has_moments)
        why = "mean and deviation belong to the original channels; open the data with the new ones";
    else if (d->normalized && d->size.c != to.c && to.c != 3)
        why = "normalized values cannot change channels";
    else if (d->resize == ADJ_RESIZE_ERROR && !same_sides(d->size, to))
        why = "the resize rule is error";
    if (why == NULL)
        return ADJ_OK;
    return adj_error_set(error, ADJ_ESHAPE, "images of %s cannot become %s: %s",
                         full_text(d->size).s, full_text(to).s, why);
}

adj_status io_check_moments(int64_t channels, const float mean[], const float deviation[],
                            adj_error *error)
{
    for (int64_t c = 0; c < channels; c++)
        if (!isfinite(mean[c]) || !isfinite(deviation[c]) || !(deviation[c] > 0))
            return adj_error_set(error, ADJ_EARG,
                                 "data: mean or deviation of channel %lld is out of range (got %g "
                                 "and %g, expected finite numbers, the deviation above 0)",
                                 (long long)c, (double)mean[c], (double)deviation[c]);
    return ADJ_OK;
}

/* A batch under construction. */
typedef struct {
    const adj_dataset *d;
    const int64_t *order;
    int64_t first, real; /* images without padding */
    fitting fit;
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS];
    float *x;
} batch;

/* Returns the number of the image at place i; padding after the last image repeats images from the
 * start. */
static int64_t image_at(const batch *b, int64_t i)
{
    int64_t at = i < b->real ? b->first + i : (i - b->real) % b->d->n;
    return b->order != NULL ? b->order[at] : at;
}

/* Returns 0 if the image at place i cannot be read. */
static int read_image(const batch *b, int64_t i, float *room, adj_error *error)
{
    float *x = b->x + i * size_elems(b->fit.to);

    if (io_read_fitted(b->d, image_at(b, i), &b->fit, room, x, error) != ADJ_OK)
        return 0;
    io_normalize(x, b->fit.to, b->mean, b->deviation);
    return 1;
}

/* Returns room for an image of the data set, to be freed. */
static float *new_room(const batch *b)
{
    return malloc((size_t)size_elems(b->fit.from) * sizeof(float));
}

/* Reads n images in threads; returns 0 if one of them cannot be read. */
static int read_in_threads(const batch *b, int64_t n)
{
    int failed = 0;
#pragma omp parallel if (n * size_elems(b->fit.to) > 1 << 16) reduction(| : failed)
    {
        float *room = new_room(b);
#pragma omp for
        for (int64_t i = 0; i < n; i++)
            failed |= room == NULL || !read_image(b, i, room, NULL);
        free(room);
    }
    return !failed;
}

/* Reads n images in order, so that the message is always that of the first failing image. */
static int read_serially(const batch *b, int64_t n, adj_error *error)
{
    float *room = new_room(b);
    int is_good = room != NULL;

    if (!is_good)
        adj_error_set(error, ADJ_ENOMEM, "batch: out of memory");
    for (int64_t i = 0; is_good && i < n; i++)
        is_good = read_image(b, i, room, error);
    free(room);
    return is_good;
}

int64_t adj_batch(const adj_dataset *d, const int64_t *order, int64_t first, adj_shape shape,
                  float *x, int32_t *labels, adj_error *error)
{
    if (d == NULL || d->n < 1 || first < 0 || shape.rank != 4 || adj_shape_elems(shape) < 1) {
        adj_error_set(error, ADJ_EARG, "batch: expected a data set and a shape [batch, h, w, c]");
        return -1;
    }
    if (x == NULL || labels == NULL) {
        adj_error_set(error, ADJ_EARG, "batch: x or labels is NULL");
        return -1;
    }
    const adj_image_size to = {shape.dim[1], shape.dim[2], shape.dim[3]};
    const int64_t n = shape.dim[0], left = d->n > first ? d->n - first : 0;
    batch b = {.d = d, .order = order, .first = first, .real = left < n ? left : n, .x = x};

    if (io_check_fit(d, to, 0, error) != ADJ_OK)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = image_at(&b, i);
        if (k < 0 || k >= d->n) {
            adj_error_set(error, ADJ_EARG,
                          "batch: an index in order is wrong (got %lld, expected 0 to %lld)",
                          (long long)k, (long long)d->n - 1);
            return -1;
        }
        labels[i] = i < b.real ? io_label(d, k) : -1;
    }
    io_repeat_moments(d, to.c, b.mean, b.deviation);
    if (!io_fitting_open(&b.fit, d->size, to, NULL)) {
        adj_error_set(error, ADJ_ENOMEM, "batch: out of memory");
        return -1;
    }
    const int is_read = read_in_threads(&b, n) || read_serially(&b, n, error);
    io_fitting_close(&b.fit);
    return is_read ? b.real : -1;
}

/* ---- evaluation ---- */

int64_t adj_count_right(int64_t n, int64_t classes, const float scores[], const int32_t labels[])
{
    int64_t right = 0;

    for (int64_t i = 0; i < n; i++)
        right += best_class(scores + i * classes, classes) == labels[i];
    return right;
}

typedef struct {
    adj_exec *e;
    const adj_node *images, *logits;
    adj_shape shape; /* shape of images */
    int64_t classes;
    int32_t *labels;
} evaluation;

/* Runs the batch of the images from first on and counts the right ones. */
static adj_status add_batch(const evaluation *v, const adj_dataset *d, int64_t first,
                            int64_t *right, adj_error *error)
{
    void *x;
    const float *scores;
    adj_status status = adj_set_in_place(v->e, v->images, &x);
    if (status == ADJ_OK && adj_batch(d, NULL, first, v->shape, x, v->labels, error) < 0)
        return error->status;
    if (status == ADJ_OK)
        status = adj_run(v->e);
    if (status == ADJ_OK && (scores = adj_data(v->e, v->logits)) == NULL)
        status = ADJ_EARG;
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%s", adj_exec_message(v->e));
    *right += adj_count_right(v->shape.dim[0], v->classes, scores, v->labels);
    return ADJ_OK;
}

/* True if the types are those of a batch and its scores. */
static int are_batch_and_scores(adj_type images, adj_type logits)
{
    return images.dtype == ADJ_F32 && images.shape.rank == 4 && images.shape.dim[0] > 0 &&
           logits.dtype == ADJ_F32 && logits.shape.rank == 2 && logits.shape.dim[1] > 0 &&
           logits.shape.dim[0] == images.shape.dim[0];
}

/* Fails for a data set that the net cannot be evaluated on. */
static adj_status check_data(const evaluation *v, const adj_dataset *d, adj_error *error)
{
    const adj_image_size to = {v->shape.dim[1], v->shape.dim[2], v->shape.dim[3]};

    if (d->n < 1 || d->labels == NULL)
        return adj_error_set(error, ADJ_EARG,
                             "evaluate: expected a data set with images and labels%s%s",
                             d->message[0] != '\0' ? ": " : "", d->message);
    if (d->classes > v->classes)
        return adj_error_set(error, ADJ_ESHAPE,
                             "evaluate: logits have fewer classes than the data (got %lld, "
                             "expected %d)",
                             (long long)v->classes, d->classes);
    adj_error why = {0};
    if (io_check_fit(d, to, 0, &why) != ADJ_OK)
        return adj_error_set(error, why.status, "evaluate: %.500s", why.message);
    return ADJ_OK;
}

adj_status adj_evaluate(adj_exec *e, const adj_node *images, const adj_node *logits,
                        const adj_dataset *d, int64_t *right, adj_error *error)
{
    if (e == NULL || d == NULL || right == NULL)
        return adj_error_set(error, ADJ_EARG, "evaluate: executor, data set or result is NULL");
    *right = 0;
    if (images == NULL || logits == NULL ||
        !are_batch_and_scores(adj_node_type(images), adj_node_type(logits)))
        return adj_error_set(
            error, ADJ_ESHAPE,
            "evaluate: images must be f32 [n, h, w, c] and logits f32 [n, classes]");
    evaluation v = {.e = e,
                    .images = images,
                    .logits = logits,
                    .shape = adj_node_type(images).shape,
                    .classes = adj_node_type(logits).shape.dim[1]};
    adj_status status = check_data(&v, d, error);
    if (status != ADJ_OK)
        return status;
    v.labels = calloc((size_t)v.shape.dim[0], sizeof *v.labels);

    adj_error why = {0};
    if (v.labels == NULL)
        status = adj_error_set(error, ADJ_ENOMEM, "evaluate: out of memory");
    for (int64_t first = 0; first < d->n && status == ADJ_OK; first += v.shape.dim[0])
        if ((status = add_batch(&v, d, first, right, &why)) != ADJ_OK)
            adj_error_set(error, status, "evaluate: %.500s", why.message);
    free(v.labels);
    return status;
}
