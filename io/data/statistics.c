/* statistics.c - reads every image of a data set once: computes mean and standard deviation of the
 * pixels by channel, and finds images that cannot be read.
 *
 * Every image has its own sums, which are added in the order of the images: the result does not
 * depend on the number of threads. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "base/clock.h"
#include "broken.h"
#include "folder.h"

typedef struct {
    double sum[ADJ_MAX_CHANNELS], squares[ADJ_MAX_CHANNELS];
} sums;

/* Images that are read without a time limit, so that a small data set gives the same result every
 * time. */
enum { READ_ALWAYS = 200 };

/* The outcome for each image. */
typedef struct {
    reading *readings;
    sums *sums; /* NULL: not wanted */
    double end; /* from seconds_now() == end on, only the first READ_ALWAYS images are read */
} pass;

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

/* Reads image i into room (NULL: there was no memory), unless its header could not be read. */
static void read_one(const adj_dataset *d, int64_t i, float *room, pass *p)
{
    adj_error error = {0};
    if (p->readings[i].status != ADJ_OK)
        return;
    const adj_status status = room != NULL ? adj_dataset_read(d, i, room, &error) : ADJ_ENOMEM;
    if (status != ADJ_OK)
        io_reading_set(&p->readings[i], status, &error);
    else if (p->sums != NULL)
        p->sums[i] = sums_of(room, d->size.h * d->size.w, d->size.c);
}

/* Reads all images, in threads. */
static void read_all(const adj_dataset *d, const adj_dataset_opts *o, pass *p)
{
    int64_t done = 0;
    omp_lock_t lock; /* of done and progress */
    omp_init_lock(&lock);
#pragma omp parallel
    {
        float *room = malloc((size_t)(d->size.h * d->size.w * d->size.c) * sizeof *room);
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < d->n; i++) {
            if (i >= READ_ALWAYS && seconds_now() > p->end)
                continue;
            read_one(d, i, room, p);
            if (o->progress == NULL)
                continue;
            omp_set_lock(&lock);
            o->progress(o->user, ++done, d->n);
            omp_unset_lock(&lock);
        }
        free(room);
    }
    omp_destroy_lock(&lock);
}

/* Sets mean and deviation from the images that were read. */
static void set_moments(dataset *d, const pass *p)
{
    const int64_t n = d->public.n;
    for (int64_t c = 0; c < d->public.size.c; c++) {
        double sum = 0, squares = 0, images = 0;
        for (int64_t i = 0; i < n; i++) {
            if (p->readings[i].status != ADJ_OK)
                continue;
            sum += p->sums[i].sum[c];
            squares += p->sums[i].squares[c];
            images++;
        }
        const double pixels = images * (double)(d->public.size.h * d->public.size.w);
        double mean = sum / pixels, variance = squares / pixels - mean * mean;
        d->public.mean[c] = (float)mean;
        /* of constant images it is rounding or 0: nothing to divide by */
        d->public.deviation[c] = variance > 1e-9 * mean * mean ? (float)sqrt(variance) : 1;
    }
}

/* Returns the time at which reading ends. If the moments are known or a header is broken, reading
 * only finds more broken images: it ends after a few seconds, or as long as like took, unless
 * o->skip_broken needs all of them. */
static double end_of(const dataset *d, const adj_dataset_opts *o, int is_known)
{
    enum { CHECK_SECONDS = 3 };
    int is_short = is_known;
    for (int64_t i = 0; d->readings != NULL && i < d->public.n && !is_short; i++)
        is_short = d->readings[i].status != ADJ_OK;
    return is_short && !o->skip_broken
               ? seconds_now() + fmax(CHECK_SECONDS, io_folder_seconds(o->like))
               : INFINITY;
}

adj_status io_dataset_measure(dataset *d, const adj_dataset_opts *o, int is_known)
{
    const int64_t n = d->public.n;
    pass p = {.readings = d->readings != NULL ? d->readings : calloc((size_t)n, sizeof *p.readings),
              .sums = is_known ? NULL : calloc((size_t)n, sizeof *p.sums),
              .end = end_of(d, o, is_known)};
    adj_status status = ADJ_ENOMEM;

    if (p.readings != NULL && (is_known || p.sums != NULL)) {
        const double began = seconds_now();
        read_all(&d->public, o, &p);
        d->seconds = seconds_now() - began;
        if (!is_known)
            set_moments(d, &p);
        status = io_settle_broken(d, p.readings, o->skip_broken);
    } else
        io_dataset_no_memory(d);
    io_readings_free(p.readings, n);
    d->readings = NULL;
    free(p.sums);
    return status;
}
