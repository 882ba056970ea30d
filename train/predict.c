/* predict.c - predicts one image or several, fetches the value of a named node and the gradient of
 * a logit with respect to the pixels, and evaluates data sets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/data/origin.h"
#include "io/weights/weights.h"
#include "internal.h"
#include "predictor.h"

/* ---- images of the caller ---- */

typedef struct { /* one of bytes and floats is NULL */
    const adj_predictor *p;
    const uint8_t *bytes;
    const float *floats;
    int64_t first; /* number of the batch's first image */
} images;

/* x = (pixel - mean) / deviation, for count images of the batch from first on. */
static void normalize(const void *source, int64_t first, int64_t count, float x[])
{
    const images *from = source;
    const adj_predictor *p = from->p;
    const adj_image_size size = p->net.options.size;
    const int64_t c = size.c, at = (from->first + first) * size_elems(size);

    for (int64_t i = 0; i < count * size.h * size.w; i++)
        for (int64_t k = 0; k < c; k++) {
            const int64_t e = at + i * c + k;
            const float pixel = from->bytes != NULL ? (float)from->bytes[e] : from->floats[e];
            x[i * c + k] = (pixel - p->mean[k]) / p->deviation[k];
        }
}

/* Fails for the first image that has a probability that is not finite. */
static adj_status check_finite(int64_t n, int64_t classes, const float *probabilities,
                               adj_error *error)
{
    for (int64_t i = 0; i < n * classes; i++)
        if (!isfinite(probabilities[i]))
            return adj_error_set(error, ADJ_EARG,
                                 "predict: the net's result for image %lld is not finite: its "
                                 "weights or the image hold NaN or infinities",
                                 (long long)(i / classes));
    return ADJ_OK;
}

/* Copies the probabilities of the first count images. */
static void copy_scores(const workers *w, int64_t count, float *probabilities)
{
    const int64_t classes = w->each->classes;
    for (int i = 0; i < w->n && worker_count(w, i, count) > 0; i++)
        memcpy(probabilities + i * w->part * classes, w->each[i].scores,
               (size_t)(worker_count(w, i, count) * classes) * sizeof *probabilities);
}

static adj_status predict(adj_predictor *p, int64_t n, images from, float *probabilities,
                          adj_error *error)
{
    if (p == NULL || n < 0 ||
        (n > 0 && (probabilities == NULL || (from.bytes == NULL && from.floats == NULL))))
        return adj_error_set(
            error, ADJ_EARG,
            "predict: predictor, images or probabilities is NULL, or their number is "
            "negative (got %lld)",
            (long long)n);
    const int kind = n <= 1 ? ONE : workers_for(n, &p->plan) > 1 ? MANY : FEW;
    workers *w;

    adj_status status = predictor_workers(p, kind, kind == FEW ? WHOLE_BATCH : n, &w, error);
    if (status != ADJ_OK)
        return status;
    const int64_t batch = w->n * w->part;
    for (from.p = p; from.first < n && status == ADJ_OK; from.first += batch) {
        const int64_t count = n - from.first < batch ? n - from.first : batch;
        status = workers_run(w, normalize, &from, NULL, count, error);
        if (status == ADJ_OK)
            copy_scores(w, count, probabilities + from.first * p->net.options.classes);
    }
    return status == ADJ_OK ? check_finite(n, p->net.options.classes, probabilities, error)
                            : status;
}

adj_status adj_predict(adj_predictor *p, int64_t n, const uint8_t pixels[], float probabilities[],
                       adj_error *error)
{
    if (p != NULL && p->card.normalized)
        return adj_error_set(
            error, ADJ_EARG,
            "predict: the net takes normalized values, not pixels (use adj_predict_floats)");
    return predict(p, n, (images){.bytes = pixels}, probabilities, error);
}

adj_status adj_predict_floats(adj_predictor *p, int64_t n, const float pixels[],
                              float probabilities[], adj_error *error)
{
    return predict(p, n, (images){.floats = pixels}, probabilities, error);
}

/* ---- a node within, one image at a time ---- */

/* Runs the net on an image and copies its inner node. */
static adj_status run(const adj_predictor *p, network *n, const float pixels[], float value[],
                      adj_error *error)
{
    float *x;
    adj_status status = network_open_batch(n, NULL, 0, &x, error);
    if (status != ADJ_OK)
        return status;
    normalize(&(images){.p = p, .floats = pixels}, 0, 1, x);
    status = network_read(n, adj_run(n->exec), error);
    if (status != ADJ_OK)
        return status;
    status = adj_get(n->exec, n->inner, value, adj_type_bytes(adj_node_type(n->inner)));
    return network_failed(n, status, error);
}

/* Selects the node that INNER fetches; drops a network that fetches another. */
static adj_status choose_inner(adj_predictor *p, const char *name, adj_error *error)
{
    if (p->inner != NULL && strcmp(p->inner, name) == 0)
        return ADJ_OK;
    char *kept = strdup(name);
    if (kept == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "predictor: out of memory");
    free(p->inner);
    p->inner = kept;
    workers_close(&p->planned[INNER].w);
    p->planned[INNER].version = 0;
    return ADJ_OK;
}

adj_status adj_predictor_fetch(adj_predictor *p, const char *name, int64_t n, const float pixels[],
                               adj_shape *shape, float value[], adj_error *error)
{
    workers *w;

    if (p == NULL || name == NULL || shape == NULL || n < 0 ||
        (n > 0 && value != NULL && pixels == NULL))
        return adj_error_set(error, ADJ_EARG, "fetch: predictor, name, images or shape is NULL");
    adj_status status = choose_inner(p, name, error);
    if (status == ADJ_OK)
        status = predictor_workers(p, INNER, 1, &w, error);
    if (status != ADJ_OK)
        return status;
    network *net = w->each;
    *shape = adj_node_type(net->inner).shape;
    const int64_t each = adj_shape_elems(*shape), image = adj_shape_elems(net->shape);
    for (int64_t i = 0; value != NULL && i < n && status == ADJ_OK; i++)
        status = run(p, net, pixels + i * image, value + i * each, error);
    return status;
}

adj_status adj_predictor_gradient(adj_predictor *p, int64_t label, const float pixels[],
                                  float gradient[], adj_error *error)
{
    workers *w;

    if (p == NULL || pixels == NULL || gradient == NULL)
        return adj_error_set(error, ADJ_EARG, "gradient: predictor, image or gradient is NULL");
    if (label < 0 || label >= p->net.options.classes)
        return adj_error_set(error, ADJ_EARG,
                             "gradient: class is out of range (got %lld, expected 0 to %lld)",
                             (long long)label, (long long)p->net.options.classes - 1);
    adj_status status = predictor_workers(p, GRADIENT, 1, &w, error);
    if (status != ADJ_OK)
        return status;
    network *net = w->each;
    float *upstream = calloc((size_t)p->net.options.classes, sizeof *upstream);
    if (upstream == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "predictor: out of memory");
    upstream[label] = 1;
    status = adj_set(net->exec, net->upstream, upstream,
                     (size_t)p->net.options.classes * sizeof *upstream);
    status = status == ADJ_OK ? run(p, net, pixels, gradient, error)
                              : network_failed(net, status, error);
    free(upstream);
    for (int64_t i = 0; i < adj_shape_elems(net->shape) && status == ADJ_OK; i++)
        gradient[i] /= p->deviation[i % p->net.options.size.c]; /* x = (pixel - mean) / deviation */
    return status;
}

/* ---- a data set ---- */

/* Contribution of a batch to a score. */
typedef struct {
    double loss; /* the sum over its images */
    int64_t right, count;
} batch_score;

/* Scores the first count images of network n, those of b from image first on. */
static batch_score score_part(const adj_predictor *p, const network *n, int64_t count,
                              const adj_loader_batch *b, int64_t first, int64_t *confusion)
{
    const int32_t *labels = b->labels + first;
    batch_score own = {.loss = (double)n->losses[0] * (double)count, /* a mean over these */
                       .count = count};
    /* a decision of a multi-label net is right if output and target are on the same side */
    for (int64_t i = 0; p->net.loss == adj_loss_binary && i < count * n->classes; i++)
        own.right += (n->scores[i] > 0) == (b->targets[first * n->classes + i] > 0.5F);
    if (p->net.loss != NULL)
        return own;
    for (int64_t i = 0; confusion != NULL && i < count; i++)
        confusion[labels[i] * n->classes + best_class(n->scores + i * n->classes, n->classes)]++;
    own.right = adj_count_right(count, n->classes, n->scores, labels);
    return own;
}

static adj_status open_predict_loader(const adj_predictor *p, const workers *w,
                                      const adj_dataset *d, adj_loader **l, adj_error *error)
{
    const adj_loader_opts o = {.batch = w->n * w->part,
                               .size = p->net.options.size,
                               .threads = 1,
                               .mean = p->mean,
                               .deviation = p->deviation};
    return adj_loader_new(d, &o, l, error);
}

static void answer(const adj_ranks *r)
{
    if (r != NULL && r->answer != NULL)
        r->answer(r->group);
}

typedef struct {
    const float *x;
    int64_t image; /* elements */
} loaded;

static void copy_images(const void *source, int64_t first, int64_t count, float x[])
{
    const loaded *b = source;
    memcpy(x, b->x + first * b->image, (size_t)(count * b->image) * sizeof *x);
}

/* Scores batches first to end - 1 into list [end - first][w->n], a part without images as zeros.
 */
static adj_status score_batches(const adj_predictor *p, workers *w, adj_loader *l, int64_t first,
                                int64_t end, batch_score list[], int64_t confusion[],
                                adj_error *error)
{
    const int64_t image = adj_shape_elems(w->each->shape) / w->part;
    adj_loader_batch b;
    adj_status status = first < end ? adj_loader_seek(l, 0, first, error) : ADJ_OK;
    for (int64_t step = first; step < end && status == ADJ_OK; step++) {
        status = adj_loader_next(l, &b, error);
        if (status == ADJ_OK)
            status = workers_run(w, copy_images, &(loaded){b.x, image}, &b, b.count, error);
        for (int i = 0; i < w->n && status == ADJ_OK; i++, list++)
            if (worker_count(w, i, b.count) > 0)
                *list = score_part(p, &w->each[i], worker_count(w, i, b.count), &b, i * w->part,
                                   confusion);
        answer(p->ranks);
    }
    return status;
}

/* Adds n parts to score, in their order. Fails for a loss that is not finite. */
static adj_status add_up(int64_t n, const batch_score list[], adj_score *score, adj_error *error)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = score->count;
        score->loss += list[i].loss;
        score->right += list[i].right;
        score->count += list[i].count;
        if (!isfinite(list[i].loss))
            return adj_error_set(error, ADJ_EARG,
                                 "the net's loss for images %lld to %lld is not finite: "
                                 "its weights or the images hold NaN or infinities",
                                 (long long)first, (long long)score->count - 1);
    }
    return ADJ_OK;
}

/* Evaluates each rank's batches; sums are added in the order of batches, independent of the ranks.
 */
static adj_status score_all(const adj_predictor *p, workers *w, adj_loader *l, adj_score *score,
                            int64_t confusion[], adj_error *error)
{
    const int64_t size = ranks_size(p->ranks), steps = adj_loader_steps(l);
    const int64_t each = (steps + size - 1) / size, first = ranks_rank(p->ranks) * each;
    const int64_t end = first + each < steps ? first + each : steps;
    const int64_t parts = each * w->n;
    batch_score *all = calloc((size_t)(parts * (size + 1)), sizeof *all);
    if (all == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "evaluate: out of memory");
    batch_score *own = all + parts * size;
    adj_status status = score_batches(p, w, l, first, end, own, confusion, error);
    if (status == ADJ_OK)
        status = ranks_gather(p->ranks, own, (size_t)parts * sizeof *own, all, error);
    if (status == ADJ_OK) /* after the exchange: all ranks fail alike */
        status = add_up(steps * w->n, all, score, error);
    free(all);
    return status;
}

/* Fails for images that cannot be prepared as the training's were. */
static adj_status check_images(const adj_predictor *p, const adj_dataset *d, adj_error *error)
{
    if (p->card.deviation[0] > 0 && !p->card.normalized != !d->normalized)
        return adj_error_set(error, ADJ_ESHAPE,
                             p->card.normalized
                                 ? "its model takes normalized values (the data are pixels)"
                                 : "its model takes pixels (the data are normalized)");
    if (resize_rule(p->card.resize) == ADJ_RESIZE_AUTO || same_sides(d->size, p->net.options.size))
        return ADJ_OK;
    return adj_error_set(error, ADJ_ESHAPE,
                         "its model does not resize images (got %s, expected %s)",
                         sides_text(d->size).s, sides_text(p->net.options.size).s);
}

/* Fails if the data have labels but the net has a loss of float targets, or the reverse. */
static adj_status check_truth(const adj_predictor *p, const adj_dataset *d,
                              const int64_t confusion[], adj_error *error)
{
    if ((p->net.loss != NULL) != (d->targets != NULL))
        return adj_error_set(error, ADJ_ESHAPE, "evaluate: the data have %s (expected %s)",
                             d->targets != NULL ? "float targets" : "labels",
                             d->targets != NULL ? "labels, for a net without a loss of its own"
                                                : "float targets, for the net's loss");
    if (p->net.loss == NULL || confusion == NULL)
        return ADJ_OK;
    return adj_error_set(error, ADJ_EARG,
                         "evaluate: a net with a loss of its own has no confusion matrix (expected "
                         "NULL)");
}

adj_status predictor_check_data(const adj_predictor *p, const adj_dataset *d,
                                const int64_t confusion[], adj_error *error)
{
    adj_status status = check_truth(p, d, confusion, error);
    if (status == ADJ_OK)
        status = adj_model_card_check(&p->card, d->size.c, d->classes, d->class_names, error);
    if (status == ADJ_OK)
        status = check_images(p, d, error);
    if (status == ADJ_OK)
        status = io_check_labels(d, error);
    return status == ADJ_OK ? io_check_fit(d, p->net.options.size, 1, error) : status;
}

adj_status adj_predictor_evaluate(adj_predictor *p, const adj_dataset *d, adj_score *score,
                                  int64_t confusion[], adj_error *error)
{
    if (p == NULL || d == NULL || score == NULL || d->n < 1)
        return adj_error_set(error, ADJ_EARG,
                             "evaluate: expected a predictor, a data set with "
                             "images, and room for a score");
    *score = (adj_score){0};
    adj_status status = predictor_check_data(p, d, confusion, error);
    if (status != ADJ_OK)
        return status;
    workers *w;
    adj_loader *l = NULL;

    status = predictor_workers(p, EVALUATION, d->n, &w, error);
    if (status == ADJ_OK)
        status = open_predict_loader(p, w, d, &l, error);
    if (status == ADJ_OK)
        status = score_all(p, w, l, score, confusion, error);
    adj_loader_free(l);
    score->loss = score->count > 0 ? score->loss / (double)score->count : 0;
    const int64_t decisions = score->count * (p->net.loss != NULL ? p->net.options.classes : 1);
    score->accuracy = decisions > 0 ? (double)score->right / (double)decisions : 0;
    return status;
}
