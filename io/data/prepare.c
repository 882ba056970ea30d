/* prepare.c - see prepare.h. */
#include <string.h>

#include "prepare.h"

static int is_between(double value, double min, double max) { return value >= min && value <= max; }

static adj_status check_augment(const adj_augment *a, const adj_dataset *d, adj_error *error)
{
    if (a->shift < 0 || a->shift > ADJ_MAX_SHIFT)
        return adj_error_set(error, ADJ_EARG,
                             "loader: shift is out of range (got %lld, expected 0 to %d)",
                             (long long)a->shift, ADJ_MAX_SHIFT);
    if (a->cutout < 0 || a->cutout > ADJ_MAX_SIDE)
        return adj_error_set(error, ADJ_EARG,
                             "loader: cutout is out of range (got %lld, expected 0 to %d)",
                             (long long)a->cutout, ADJ_MAX_SIDE);
    if (!is_between(a->jitter, 0, 1000))
        return adj_error_set(error, ADJ_EARG,
                             "loader: jitter is out of range (got %g, expected 0 to 1000)",
                             a->jitter);
    if (a->jitter > 0 && d->normalized)
        return adj_error_set(
            error, ADJ_EARG,
            "loader: jitter requires pixels, not normalized values (got %g, expected 0)",
            a->jitter);
    if (a->mixup != 0 && d->targets != NULL)
        return adj_error_set(
            error, ADJ_EARG,
            "loader: mixup requires labels, not float targets (got %g, expected 0)", a->mixup);
    if (a->mixup != 0 && !is_between(a->mixup, 0.001, 1000))
        return adj_error_set(
            error, ADJ_EARG,
            "loader: mixup is out of range (got %g, expected 0, or an alpha of 0.001 to 1000)",
            a->mixup);
    return ADJ_OK;
}

static adj_status check_sizes(const preparation *p, adj_error *error)
{
    const adj_image_size to = p->to;
    const adj_shape batch = {4, {p->o.batch, to.h, to.w, to.c}};
    const adj_type x = {ADJ_F32, batch};

    if (!is_net_size(to))
        return adj_error_set(error, ADJ_ESHAPE,
                             "loader: image size in a batch is out of range (got %s, "
                             "expected sides of 1 to %d and 1 to %d channels)",
                             full_text(to).s, ADJ_MAX_SIDE, ADJ_MAX_CHANNELS);
    adj_error why = {0};
    if (io_check_fit(p->d, to, p->o.mean != NULL && p->o.deviation != NULL, &why) != ADJ_OK)
        return adj_error_set(error, why.status, "loader: %.500s", why.message);
    if (p->o.batch < 1 || p->o.batch > INT32_MAX || adj_type_bytes(x) > PTRDIFF_MAX)
        return adj_error_set(error, ADJ_EARG,
                             "loader: batch is out of range (got %lld, expected 1 or more)",
                             (long long)p->o.batch);
    if (p->o.threads < 0 || p->o.threads > ADJ_MAX_LOADER_THREADS)
        return adj_error_set(error, ADJ_EARG,
                             "loader: threads is out of range (got %d, expected 0 to %d)",
                             p->o.threads, ADJ_MAX_LOADER_THREADS);
    return check_augment(&p->o.augment, p->d, error);
}

/* Sets which images of a batch are prepared. */
static adj_status take_shards(preparation *p, loader_shards s, adj_error *error)
{
    const adj_loader_opts *o = &p->o;
    const int64_t shards = s.shards > 0 ? s.shards : 1;
    const int64_t n = s.n > 0 ? s.n : shards - s.first;

    if (s.shards < 0 || o->batch % shards != 0)
        return adj_error_set(error, ADJ_EARG,
                             "loader: a batch of %lld cannot be divided into %lld equal shards",
                             (long long)o->batch, (long long)s.shards);
    if (s.first < 0 || s.n < 0 || n < 1 || s.first > shards - n)
        return adj_error_set(
            error, ADJ_EARG,
            "loader: shards are out of range (got %lld from %lld on, expected within %lld)",
            (long long)s.n, (long long)s.first, (long long)shards);
    p->per_shard = o->batch / shards;
    p->first = s.first * p->per_shard;
    p->n = n * p->per_shard;
    return ADJ_OK;
}

static void repeat_moments(preparation *p)
{
    io_repeat_moments(p->d, p->to.c, p->mean, p->deviation);
    if (p->o.mean != NULL)
        memcpy(p->mean, p->o.mean, (size_t)p->to.c * sizeof *p->mean);
    if (p->o.deviation != NULL)
        memcpy(p->deviation, p->o.deviation, (size_t)p->to.c * sizeof *p->deviation);
    io_normalize(p->black, (adj_image_size){1, 1, p->to.c}, p->mean, p->deviation);
}

adj_status io_preparation(const adj_dataset *d, const adj_loader_opts *o, loader_shards shards,
                          preparation *p, adj_error *error)
{
    if (d == NULL || d->n < 1 || o == NULL)
        return adj_error_set(error, ADJ_EARG,
                             "loader: expected a data set with images, and options");
    *p = (preparation){.d = d, .o = *o};
    p->to = size_or(o->size, d->size);
    adj_status status = check_sizes(p, error);
    if (status == ADJ_OK)
        status = take_shards(p, shards, error);
    if (status == ADJ_OK) {
        repeat_moments(p);
        status = io_check_moments(p->to.c, p->mean, p->deviation, error);
    }
    if (status != ADJ_OK)
        return status;
    if (!io_fitting_open(&p->fit, d->size, p->to, NULL))
        return adj_error_set(error, ADJ_ENOMEM, "loader: out of memory");
    p->elems = size_elems(p->to);
    p->steps = (d->n + o->batch - 1) / o->batch;
    return ADJ_OK;
}

int64_t io_step_count(const preparation *p, int64_t step)
{
    int64_t left = p->d->n - step * p->o.batch;
    return left < p->o.batch ? left : p->o.batch;
}

int64_t io_part_count(int64_t step_count, int64_t first, int64_t n)
{
    const int64_t left = step_count - first;
    return left < 0 ? 0 : left < n ? left : n;
}

adj_status io_prepare_image(const preparation *p, const int64_t *order, const adj_loader_batch *b,
                            int64_t i, float *room, adj_error *error)
{
    const adj_augment *a = &p->o.augment;
    const int64_t of_all = p->first + i, all = io_step_count(p, b->step);
    /* padding after the last image repeats images from the start */
    int64_t at = of_all < all ? b->step * p->o.batch + of_all : (of_all - all) % p->d->n;
    int64_t k = order != NULL ? order[at] : at;
    uint64_t drawn = (uint64_t)((b->epoch * p->steps + b->step) * p->o.batch + of_all);
    uint64_t key = io_image_key(p->o.seed, b->epoch, k);
    float *x = b->x + i * p->elems;

    b->labels[i] = of_all < all ? io_label(p->d, k) : -1;
    if (b->targets != NULL)
        memcpy(b->targets + i * p->d->classes, p->d->targets + k * p->d->classes,
               (size_t)p->d->classes * sizeof *b->targets);
    adj_status status = io_read_fitted(p->d, k, &p->fit, room, x, error);
    if (status != ADJ_OK)
        return status;
    if (a->jitter > 0)
        io_color_jitter(a->jitter, key, p->to, x);
    io_normalize(x, p->to, p->mean, p->deviation);
    io_move(a, key, p->o.seed, drawn, p->black, p->to, x);
    return ADJ_OK;
}

void io_prepare_rest(const preparation *p, adj_loader_batch *b)
{
    b->mix = 1;
    memcpy(b->other_labels, b->labels, (size_t)p->n * sizeof *b->labels);
    if (p->o.augment.mixup <= 0)
        return;
    uint64_t key = io_mixup_key(p->o.seed, b->epoch, b->step);
    b->mix = (float)io_mixup_share(p->o.augment.mixup, key);
    for (int64_t at = 0; at < p->n; at += p->per_shard) {
        const int64_t n = io_part_count(io_step_count(p, b->step), p->first + at, p->per_shard);
        io_mixup(b->x + at * p->elems, n, p->elems, b->mix);
        for (int64_t i = 0; i < n; i++)
            b->other_labels[at + i] = b->labels[at + n - 1 - i];
    }
}
