/* statistics.c - mean and standard deviation of a data set's pixels, by channel.
 *
 * Every image has its own sums, which are added in the order of the images: the result does not
 * depend on the number of threads. */
#include <math.h>
#include <stdlib.h>

#include "data.h"

typedef struct {
    double sum[ADJ_MAX_CHANNELS], squares[ADJ_MAX_CHANNELS];
    int known;
} sums;

static sums sums_of(const float *image, int64_t pixels, int64_t channels)
{
    sums s = {0};

    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c++) {
            double v = image[i * channels + c];
            s.sum[c] += v;
            s.squares[c] += v * v;
        }
    return s;
}

/* Of the images from first on, until one cannot be read: returns its number, n if there is none. */
static int64_t measure_serially(const adj_dataset *d, int64_t first, float *image, sums *each,
                                adj_error *error)
{
    int64_t i = first;
    for (; i < d->n && adj_dataset_read(d, i, image, error) == ADJ_OK; i++)
        each[i] = sums_of(image, d->h * d->w, d->c);
    return i;
}

/* Of all images, in threads; each counts for itself whether it was read. */
static void measure_in_threads(const adj_dataset *d, sums *each)
{
#pragma omp parallel
    {
        float *image = malloc((size_t)(d->h * d->w * d->c) * sizeof *image);
        int go_on = image != NULL;
#pragma omp for schedule(dynamic, 16)
        for (int64_t i = 0; i < d->n; i++) {
            go_on = go_on && adj_dataset_read(d, i, image, NULL) == ADJ_OK;
            if (go_on) {
                each[i] = sums_of(image, d->h * d->w, d->c);
                each[i].known = 1;
            }
        }
        free(image);
    }
}

/* The error is that of the first image, by number, that cannot be read. */
static adj_status measure_images(const adj_dataset *d, sums *each, adj_error *error)
{
    float *image = malloc((size_t)(d->h * d->w * d->c) * sizeof *image);
    if (image == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "data: out of memory");
    measure_in_threads(d, each);
    int64_t first = 0;
    while (first < d->n && each[first].known)
        first++;
    first = measure_serially(d, first, image, each, error);
    free(image);
    return first < d->n ? error->status : ADJ_OK;
}

static void set_moments(dataset *d, const sums *each)
{
    double pixels = (double)d->public.n * (double)(d->public.h * d->public.w);

    for (int64_t c = 0; c < d->public.c; c++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < d->public.n; i++) {
            sum += each[i].sum[c];
            squares += each[i].squares[c];
        }
        double mean = sum / pixels, variance = squares / pixels - mean * mean;
        d->public.mean[c] = (float)mean;
        /* of constant images it is rounding or 0: nothing to divide by */
        d->public.deviation[c] = variance > 1e-9 * mean * mean ? (float)sqrt(variance) : 1;
    }
}

adj_status io_dataset_measure(dataset *d)
{
    adj_error error = {0};
    sums *each = calloc((size_t)d->public.n, sizeof *each);
    if (each == NULL)
        return io_dataset_fail(d, ADJ_ENOMEM, "data: out of memory");
    adj_status status = measure_images(&d->public, each, &error);
    if (status == ADJ_OK)
        set_moments(d, each);
    else
        io_dataset_fail(d, status, "%s", error.message);
    free(each);
    return status;
}
