/* broken.c - see broken.h. */
#include "broken.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"

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

/* ---- naming ---- */

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
    size_t used = 0;
    int named = 0;

    if (broken == 1)
        return io_dataset_fail(d, status, "%s", each[first].why);
    for (int64_t i = first + 1; i < d->public.n && named < NAMED; i++)
        if (each[i].status != ADJ_OK)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s",
                                     named++ > 0 ? ", " : "", NAME_BYTES,
                                     short_name(io_folder_path(d, i)));
    if (broken - 1 > named)
        snprintf(rest, sizeof rest, " and %lld more", (long long)broken - 1 - named);
    return io_dataset_fail(d, status, "%.240s, and %lld more of %lld files cannot be read: %s%s",
                           each[first].why, (long long)broken - 1, (long long)d->public.n, names,
                           rest);
}

/* ---- leaving out ---- */

enum { NO_CLASS = -1, NO_MEMORY = -2 };

/* Returns a class whose images are all broken, or NO_CLASS or NO_MEMORY. */
static int find_lost_class(const dataset *d, const reading each[])
{
    int lost = NO_CLASS;
    char *had = calloc((size_t)d->public.classes, 1), *has = calloc((size_t)d->public.classes, 1);
    for (int64_t i = 0; had != NULL && has != NULL && i < d->public.n; i++) {
        had[d->labels[i]] = 1;
        has[d->labels[i]] |= each[i].status == ADJ_OK;
    }
    for (int k = 0; had != NULL && has != NULL && lost < 0 && k < d->public.classes; k++)
        if (had[k] && !has[k])
            lost = k;
    if (had == NULL || has == NULL)
        lost = NO_MEMORY;
    free(had);
    free(has);
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
    for (int64_t j = 0; j < kept; j++)
        d->labels[j] = d->labels[keep[j]];
    io_folder_keep(d, keep, kept);
    d->public.n = kept;
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
