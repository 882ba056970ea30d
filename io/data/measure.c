/* measure.c - reads every image of a data set once: computes mean and standard deviation of the
 * pixels by channel, and names the images that cannot be read, or leaves them out.
 *
 * Every image has its own sums, which are added in the order of the images: the result does not
 * depend on the number of threads. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/clock.h"
#include "folder.h"

/* ---- broken images ---- */

void io_reading_set(reading *r, adj_status status, const adj_error *error)
{
    r->status = status;
    r->why = strdup(error->message[0] != '\0' ? error->message : "data: an image cannot be read");
    if (r->why == NULL)
        r->status = ADJ_ENOMEM;
}

void io_readings_free(reading *each, int64_t n)
{
    for (int64_t i = 0; each != NULL && i < n; i++)
        free(each[i].why);
    free(each);
}

/* Appends the sentences to origin.broken. Returns 0 if memory is short. */
static int list_broken(dataset *d, const reading each[], int64_t broken)
{
    char **all = realloc(d->broken, (size_t)broken * sizeof *all);
    if (all == NULL)
        return 0;
    d->broken = all;
    d->origin.broken = (const char *const *)all;
    for (int64_t i = 0; i < d->public.n; i++) {
        if (each[i].status == ADJ_OK)
            continue;
        all[d->origin.n_broken] = strdup(each[i].why);
        if (all[d->origin.n_broken] == NULL)
            return 0;
        d->origin.n_broken++;
    }
    return 1;
}

/* Returns the last two names of a path: the class and the file. */
static const char *short_name(const char *path)
{
    const char *at = path + strlen(path);
    for (int slashes = 0; at > path; at--)
        if (at[-1] == '/' && ++slashes == 2)
            break;
    return at;
}

enum { NAMED = 5, NAME_BYTES = 50 }; /* files behind the first in a sentence, bytes of each */

/* Fails with the reason of the first broken file, and names others behind it. */
static adj_status name_broken(dataset *d, const reading each[], int64_t first, int64_t broken)
{
    const adj_status status = each[first].status;
    char names[NAMED * (NAME_BYTES + 3)] = "", rest[40] = "";
    int named = 0;

    if (broken == 1)
        return io_dataset_fail(d, status, "%s", each[first].why);
    for (int64_t i = first + 1; i < d->public.n && named < NAMED; i++)
        if (each[i].status != ADJ_OK)
            c_append(names, sizeof names, "%s%.*s", named++ > 0 ? ", " : "", NAME_BYTES,
                     short_name(io_folder_path(d, i)));
    if (broken - 1 > named)
        snprintf(rest, sizeof rest, " and %lld more", (long long)broken - 1 - named);
    return io_dataset_fail(d, status, "%.240s, and %lld more of %lld files cannot be read: %s%s",
                           each[first].why, (long long)broken - 1, (long long)d->public.n, names,
                           rest);
}

enum { NO_CLASS = -1, NO_MEMORY = -2 };

/* Returns a class whose images are all broken, or NO_CLASS or NO_MEMORY. */
static int find_lost_class(const dataset *d, const reading each[])
{
    enum { BROKEN = 1, READ = 2 };
    int lost = NO_CLASS;
    char *best = calloc((size_t)d->public.classes, 1); /* by class: BROKEN | READ; 0: no images */
    if (best == NULL)
        return NO_MEMORY;
    for (int64_t i = 0; i < d->public.n; i++)
        best[d->labels[i]] |= each[i].status == ADJ_OK ? READ : BROKEN;
    for (int k = d->public.classes - 1; k >= 0; k--)
        lost = best[k] == BROKEN ? k : lost;
    free(best);
    return lost;
}

/* Removes the broken images from d; fails if a class of d's own has none left. */
static adj_status leave_out(dataset *d, const reading each[], int64_t first, int64_t broken)
{
    const int lost = d->like == NULL ? find_lost_class(d, each) : NO_CLASS;
    int64_t kept = 0;

    if (broken == d->public.n)
        return name_broken(d, each, first, broken);
    if (lost >= 0)
        return io_dataset_fail(d, ADJ_EIO,
                               "data: no image of class %.80s can be read (the first: %.300s)",
                               d->names[lost], each[first].why);
    int64_t *keep = lost == NO_MEMORY ? NULL : malloc((size_t)d->public.n * sizeof *keep);
    if (keep == NULL)
        return io_dataset_no_memory(d);
    for (int64_t i = 0; i < d->public.n; i++)
        if (each[i].status == ADJ_OK)
            keep[kept++] = i;
    io_dataset_keep(d, keep, kept);
    free(keep);
    return ADJ_OK;
}

adj_status io_settle_broken(dataset *d, const reading each[], int skip)
{
    int64_t first = -1, broken = 0;
    for (int64_t i = 0; i < d->public.n; i++) {
        if (each[i].status == ADJ_ENOMEM)
            return io_dataset_no_memory(d);
        if (each[i].status != ADJ_OK && broken++ == 0)
            first = i;
    }
    if (broken == 0)
        return ADJ_OK;
    if (d->files == NULL)
        return io_dataset_fail(d, each[first].status, "%s", each[first].why);
    if (!list_broken(d, each, broken))
        return io_dataset_no_memory(d);
    return skip ? leave_out(d, each, first, broken) : name_broken(d, each, first, broken);
}

/* ---- mean and deviation ---- */

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
    omp_lock_t lock; /* guards done and progress */
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
        /* Constant images have only rounding error: their deviation is 1. */
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
