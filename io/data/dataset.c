/* dataset.c - a data set: made and freed, from memory or from a source, and its images one by
 * one. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "data.h"

adj_status io_dataset_new(adj_dataset **out, dataset **d)
{
    if (out == NULL)
        return ADJ_EARG;
    *d = calloc(1, sizeof **d);
    *out = (adj_dataset *)*d;
    if (*d == NULL)
        return ADJ_ENOMEM;
    (*d)->public.origin = &(*d)->origin;
    for (int i = 0; i < ADJ_MAX_CHANNELS; i++)
        (*d)->public.deviation[i] = 1;
    return ADJ_OK;
}

adj_status io_dataset_fail(dataset *d, adj_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c_vsnprintf(d->public.message, sizeof d->public.message, format, args);
    va_end(args);
    d->public.n = 0;
    d->public.images = NULL;
    d->public.labels = NULL;
    d->public.targets = NULL;
    return status;
}

adj_status io_dataset_no_memory(dataset *d)
{
    return io_dataset_fail(d, ADJ_ENOMEM, "data: out of memory");
}

void adj_dataset_free(adj_dataset *public)
{
    if (public == NULL)
        return;
    dataset *d = (dataset *)public; /* its first member */
    if (d->origin.source.free != NULL)
        d->origin.source.free(d->origin.source.user);
    io_fitting_close(&d->fit);
    free(d->images);
    free(d->floats);
    free(d->labels);
    free(d->targets);
    free(d->names);
    free(d->name_text);
    for (int64_t i = 0; i < d->origin.n_broken; i++)
        free(d->broken[i]);
    free(d->broken);
    free(d);
}

void io_dataset_set_moments(dataset *d, float mean, float deviation)
{
    for (int i = 0; i < ADJ_MAX_CHANNELS; i++) {
        d->public.mean[i] = mean;
        d->public.deviation[i] = deviation;
    }
    d->has_moments = 1;
}

adj_status io_dataset_set_names(dataset *d, char *text, int n)
{
    free(d->name_text);
    free(d->names);
    d->name_text = text;
    d->names = calloc((size_t)n + 1, sizeof *d->names);
    if (d->names == NULL)
        return io_dataset_no_memory(d);
    for (int i = 0; i < n; i++, text += strlen(text) + 1)
        d->names[i] = text;
    d->public.class_names = d->names;
    d->public.classes = n;
    return ADJ_OK;
}

adj_status io_dataset_copy_names(dataset *d, const char *const *names, int n)
{
    size_t bytes = 1;
    for (int i = 0; i < n; i++)
        bytes += strlen(names[i]) + 1;
    char *text = calloc(bytes, 1), *end = text;
    if (text == NULL)
        return io_dataset_no_memory(d);
    for (int i = 0; i < n; i++)
        end = stpcpy(end, names[i]) + 1;
    return io_dataset_set_names(d, text, n);
}

/* ---- images one by one ---- */

/* adj_source's read for images in memory whose size is not the public one, or that are floats. */
static adj_status read_memory(void *user, int64_t i, float *pixels, adj_error *error)
{
    const dataset *d = user;
    int64_t at = i * size_elems(d->stored);
    const any_image x = {.bytes = d->stored_images != NULL ? d->stored_images + at : NULL,
                         .floats = d->floats != NULL ? d->floats + at : NULL};
    (void)error;
    io_fit(&d->fit, &x, pixels);
    return ADJ_OK;
}

adj_status io_dataset_use_memory(dataset *d, adj_image_size wanted, const uint8_t *background)
{
    d->public.size = wanted;
    if (d->stored_images != NULL && same_size(d->stored, wanted)) {
        d->public.images = d->stored_images;
        return ADJ_OK;
    }
    if (!io_fitting_open(&d->fit, d->stored, wanted, background))
        return io_dataset_no_memory(d);
    d->origin.resized = !same_sides(d->stored, wanted) ? d->public.n : 0;
    d->origin.recolored = io_is_color(d->stored.c) != io_is_color(wanted.c) ? d->public.n : 0;
    d->origin.source = (adj_source){.read = read_memory, .user = d};
    return ADJ_OK;
}

adj_status adj_dataset_read(const adj_dataset *d, int64_t i, float *pixels, adj_error *error)
{
    if (d == NULL || pixels == NULL || i < 0 || i >= d->n)
        return adj_error_set(error, ADJ_EARG,
                             "data: image index is out of range (got %lld, expected 0 to %lld)",
                             (long long)i, d != NULL ? (long long)d->n - 1 : -1LL);
    const adj_source *source = &origin_of(d)->source;
    const int64_t elems = d->size.h * d->size.w * d->size.c;
    if (source->read != NULL)
        return source->read(source->user, i, pixels, error);
    if (d->images == NULL)
        return adj_error_set(error, ADJ_EARG, "data: the images are missing");
    for (int64_t k = 0; k < elems; k++)
        pixels[k] = d->images[i * elems + k];
    return ADJ_OK;
}

/* ---- from the caller ---- */

static int is_between(int64_t value, int64_t min, int64_t max)
{
    return value >= min && value <= max;
}

/* Sets the sizes, or refuses them. */
static adj_status take_sizes(dataset *d, const adj_dataset *s, int least_classes)
{
    if (!is_between(s->n, 1, INT32_MAX))
        return io_dataset_fail(
            d, ADJ_EARG, "data: number of images is out of range (got %lld, expected 1 to %d)",
            (long long)s->n, INT32_MAX);
    if (!is_net_size(s->size))
        return io_dataset_fail(d, ADJ_EARG,
                               "data: image size is out of range (got %s, expected "
                               "sides of 1 to %d and 1 to %d channels)",
                               full_text(s->size).s, ADJ_MAX_SIDE, ADJ_MAX_CHANNELS);
    if (!is_between(s->classes, least_classes, ADJ_MAX_CLASSES))
        return io_dataset_fail(
            d, ADJ_EARG, "data: number of %s is out of range (got %d, expected %d to %d)",
            least_classes > 1 ? "classes" : "targets", s->classes, least_classes, ADJ_MAX_CLASSES);
    d->public.size = d->stored = s->size;
    d->public.n = s->n;
    d->public.classes = s->classes;
    return ADJ_OK;
}

/* Returns a copy of these bytes, or NULL if memory is short. */
static void *copy_of(dataset *d, const void *from, size_t bytes)
{
    void *copy = malloc(bytes);
    if (copy == NULL)
        io_dataset_no_memory(d);
    return copy != NULL ? memcpy(copy, from, bytes) : NULL;
}

adj_status io_check_labels(const adj_dataset *d, adj_error *error)
{
    for (int64_t i = 0; d->labels != NULL && i < d->n; i++)
        if (d->labels[i] < 0 || d->labels[i] >= d->classes)
            return adj_error_set(error, ADJ_EARG,
                                 "the label of image %lld is out of range (got %d, expected 0 to "
                                 "%d)",
                                 (long long)i, d->labels[i], d->classes - 1);
    return ADJ_OK;
}

/* Sets the sizes and copies the labels, or refuses them. */
static adj_status take(dataset *d, const adj_dataset *s)
{
    const adj_status status = take_sizes(d, s, 2);
    if (status != ADJ_OK)
        return status;
    if (s->labels == NULL)
        return io_dataset_fail(d, ADJ_EARG, "data: the labels are missing");
    adj_error why;
    if (io_check_labels(s, &why) != ADJ_OK)
        return io_dataset_fail(d, why.status, "data: %s", why.message);
    d->public.labels = d->labels = copy_of(d, s->labels, (size_t)s->n * sizeof *d->labels);
    return d->labels != NULL ? ADJ_OK : ADJ_ENOMEM;
}

/* Uses images in memory, or a copy of them. */
static adj_status use_images(dataset *d, const uint8_t *images, int copy)
{
    const size_t bytes = (size_t)(d->public.n * size_elems(d->stored));
    d->stored_images = copy ? d->images = copy_of(d, images, bytes) : images;
    if (d->stored_images == NULL)
        return ADJ_ENOMEM;
    const adj_status status = io_dataset_use_memory(d, d->stored, NULL);
    return status == ADJ_OK ? io_dataset_measure(d, &(adj_dataset_opts){0}, 0) : status;
}

/* Uses float targets, or a copy of them; refuses those that are not finite. */
static adj_status take_targets(dataset *d, const float *targets, int copy)
{
    const int64_t k = d->public.classes, n = d->public.n * k;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(targets[i]))
            return io_dataset_fail(d, ADJ_EARG,
                                   "data: target %lld of image %lld is out of range (got %g, "
                                   "expected a finite number)",
                                   (long long)(i % k), (long long)(i / k), (double)targets[i]);
    const size_t bytes = (size_t)n * sizeof *targets;
    d->public.targets = copy ? d->targets = copy_of(d, targets, bytes) : targets;
    return d->public.targets != NULL ? ADJ_OK : ADJ_ENOMEM;
}

adj_status adj_dataset_new(int64_t n, int64_t h, int64_t w, int64_t c, int classes,
                           const uint8_t *images, const int32_t *labels, int copy,
                           adj_dataset **out)
{
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK)
        return status;
    if (images == NULL)
        return io_dataset_fail(d, ADJ_EARG, "data: the images are missing");
    status =
        take(d, &(adj_dataset){.n = n, .size = {h, w, c}, .classes = classes, .labels = labels});
    return status == ADJ_OK ? use_images(d, images, copy) : status;
}

adj_status adj_dataset_new_targets(int64_t n, int64_t h, int64_t w, int64_t c, int n_target,
                                   const uint8_t *images, const float *targets, int copy,
                                   adj_dataset **out)
{
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK)
        return status;
    if (images == NULL || targets == NULL)
        return io_dataset_fail(d, ADJ_EARG, "data: the %s are missing",
                               images == NULL ? "images" : "targets");
    status = take_sizes(d, &(adj_dataset){.n = n, .size = {h, w, c}, .classes = n_target}, 1);
    if (status == ADJ_OK)
        status = take_targets(d, targets, copy);
    return status == ADJ_OK ? use_images(d, images, copy) : status;
}

adj_status adj_dataset_from_source(const adj_dataset *like, const adj_source *source,
                                   adj_dataset **out)
{
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK) {
        if (source != NULL && source->free != NULL)
            source->free(source->user);
        return status;
    }
    if (source == NULL)
        return io_dataset_fail(d, ADJ_EARG, "data: the source is NULL");
    d->origin.source = *source;
    if (source->read == NULL)
        return io_dataset_fail(d, ADJ_EARG, "data: the source cannot be read");
    if (like == NULL)
        return io_dataset_fail(d, ADJ_EARG, "data: sizes and labels of the source are missing");
    status = take(d, like);
    if (status != ADJ_OK)
        return status;
    if (like->deviation[0] == 0)
        return io_dataset_measure(d, &(adj_dataset_opts){0}, 0);
    adj_error why;
    if (io_check_moments(like->size.c, like->mean, like->deviation, &why) != ADJ_OK)
        return io_dataset_fail(d, why.status, "%s", why.message);
    for (int64_t i = 0; i < like->size.c; i++) {
        d->public.mean[i] = like->mean[i];
        d->public.deviation[i] = like->deviation[i];
    }
    return ADJ_OK;
}
