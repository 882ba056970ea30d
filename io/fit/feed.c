/* feed.c - see feed.h. */
#include <stdlib.h>
#include <string.h>

#include "exec/clock.h"
#include "feed.h"
#include "shift.h"

adj_status feed_open(feed *f, const adj_dataset *d, const float mean[], const float deviation[],
                     adj_shape shape, adj_error *error)
{
    *f = (feed){.data = *d, .shape = shape};
    memcpy(f->data.mean, mean, sizeof f->data.mean);
    memcpy(f->data.deviation, deviation, sizeof f->data.deviation);
    f->steps = (d->n + shape.dim[0] - 1) / shape.dim[0];
    f->x = calloc((size_t)adj_shape_elems(shape), sizeof *f->x);
    f->labels = calloc((size_t)shape.dim[0], sizeof *f->labels);
    if (f->x == NULL || f->labels == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "data: out of memory");
    return ADJ_OK;
}

static void draw_order(feed *f)
{
    if (f->shuffle)
        adj_shuffle(f->data.n, (uint64_t)f->seed, (uint64_t)f->epoch, f->order);
}

adj_status feed_shuffle(feed *f, int64_t seed, const adj_augment *augment, adj_error *error)
{
    if (augment->shift < 0 || augment->shift > ADJ_MAX_SHIFT)
        return adj_error_set(error, ADJ_EARG, "augment: shift (got %lld, expected 0 to %d)",
                             (long long)augment->shift, ADJ_MAX_SHIFT);
    f->order = calloc((size_t)f->data.n, sizeof *f->order);
    if (f->order == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "data: out of memory");
    f->shuffle = 1;
    f->seed = seed;
    f->augment = *augment;
    draw_order(f);
    return ADJ_OK;
}

void feed_seek(feed *f, int64_t epoch, int64_t step)
{
    f->epoch = step < f->steps ? epoch : epoch + 1;
    f->step = step < f->steps ? step : 0;
    draw_order(f);
}

adj_status feed_next(feed *f, const float **x, const int32_t **labels, int64_t *count,
                     adj_error *error)
{
    const double began = seconds_now();
    const int64_t batch = f->shape.dim[0], first = f->step * batch;
    adj_error why = {0};

    *count = adj_batch(&f->data, f->order, first, f->shape, f->x, f->labels, &why);
    if (*count < 1)
        return adj_error_set(error, *count < 0 ? why.status : ADJ_EARG, "%s",
                             *count < 0 ? why.message : "no images to compute with");
    if (f->augment.shift > 0)
        shift_images(f->x, f->shape, f->augment.shift, -f->data.mean[0] / f->data.deviation[0],
                     (uint64_t)f->seed, (uint64_t)(f->epoch * f->steps * batch + first));
    *x = f->x;
    *labels = f->labels;
    if (++f->step == f->steps)
        feed_seek(f, f->epoch + 1, 0);
    f->waited += seconds_now() - began;
    return ADJ_OK;
}

void feed_close(feed *f)
{
    free(f->order);
    free(f->x);
    free(f->labels);
    *f = (feed){0};
}
