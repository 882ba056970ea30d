/* finish.c - completes a data set after a reader: classes, selection of images, size, mean and
 * deviation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "folder.h"
#include "names.h"

static adj_status check_options(dataset *d, const adj_dataset_opts *o)
{
    if (o->image.size.h < 0 || o->image.size.h > ADJ_MAX_SIDE || o->image.size.w < 0 ||
        o->image.size.w > ADJ_MAX_SIDE)
        return io_dataset_fail(d, ADJ_EARG, "data: size is out of range (got %s, expected 1 to %d)",
                               sides_text(o->image.size).s, ADJ_MAX_SIDE);
    if (o->image.size.c != 0 && !io_is_channels(o->image.size.c))
        return io_dataset_fail(d, ADJ_EARG,
                               "data: invalid number of channels (got %lld, expected 1, 3 or 4)",
                               (long long)o->image.size.c);
    if (o->classes != 0 && (o->classes < 2 || o->classes > ADJ_MAX_CLASSES))
        return io_dataset_fail(d, ADJ_EARG,
                               "data: number of classes is out of range (got %d, expected 2 to %d)",
                               o->classes, ADJ_MAX_CLASSES);
    if (!(o->val_split >= 0 && o->val_split < 1) || o->limit < 0)
        return io_dataset_fail(d, ADJ_EARG,
                               "data: val_split or limit is out of range (got %g and %lld, "
                               "expected 0 to below 1 and at least 0)",
                               o->val_split, (long long)o->limit);
    return ADJ_OK;
}

int io_join(char path[PATH_MAX], const char *folder, const char *name)
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* ---- axes ---- */

static adj_status interleave(dataset *d, const char *name)
{
    int64_t c = d->stored.c, pixels = d->stored.h * d->stored.w, elems = c * pixels;
    size_t elem = d->floats != NULL ? sizeof *d->floats : sizeof *d->images;
    char *all = d->floats != NULL ? (char *)d->floats : (char *)d->images;
    char *image = malloc((size_t)elems * elem);

    if (image == NULL)
        return io_dataset_fail(d, ADJ_ENOMEM, "data: %s: out of memory", name);
    for (int64_t i = 0; i < d->public.n; i++, all += (size_t)elems * elem) {
        io_interleave(all, c, pixels, elem, image);
        memcpy(all, image, (size_t)elems * elem);
    }
    free(image);
    return ADJ_OK;
}

adj_status io_dataset_take_axes(dataset *d, const char *name, int rank, const int64_t size[])
{
    if (rank == 3 || io_is_channels(size[3])) {
        d->stored = (adj_image_size){size[1], size[2], rank == 4 ? size[3] : 1};
        return ADJ_OK;
    }
    if (!io_is_channels(size[1]))
        return io_dataset_fail(d, ADJ_EIO,
                               "data: %s: no axis of [%lld, %lld, %lld, %lld] can be the channels "
                               "(expected 1, 3 or 4 in the last or second place)",
                               name, (long long)size[0], (long long)size[1], (long long)size[2],
                               (long long)size[3]);
    d->stored = (adj_image_size){size[2], size[3], size[1]};
    return interleave(d, name);
}

/* ---- classes ---- */

static adj_status compare_names(dataset *d, const char *where, const adj_dataset *like)
{
    for (int i = 0; i < d->public.classes && i < like->classes; i++)
        if (strcmp(d->names[i], like->class_names[i]) != 0)
            return io_dataset_fail(d, ADJ_EIO,
                                   "data: %s: name of class %d differs (got %.80s, expected %.80s)",
                                   where, i, d->names[i], like->class_names[i]);
    return ADJ_OK;
}

static adj_status settle_classes(dataset *d, const char *where, const adj_dataset_opts *o)
{
    int32_t largest = 0;
    for (int64_t i = 0; i < d->public.n; i++)
        largest = d->labels[i] > largest ? d->labels[i] : largest;

    if (d->like != NULL && d->like->class_names != NULL) {
        adj_status status = d->names == NULL
                                ? io_dataset_copy_names(d, d->like->class_names, d->like->classes)
                                : compare_names(d, where, d->like);
        if (status != ADJ_OK)
            return status;
    }
    int classes = d->public.classes > 0 ? d->public.classes : largest + 1;
    if (d->like != NULL)
        classes = d->like->classes;
    else if (o->classes > 0)
        classes = o->classes;
    if (classes < 2 || classes > ADJ_MAX_CLASSES)
        return io_dataset_fail(
            d, ADJ_EIO,
            "data: %s: number of classes is out of range (got %d, expected 2 to %d)%s%s", where,
            classes, ADJ_MAX_CLASSES, d->public.left_out[0] != '\0' ? "; left out: " : "",
            d->public.left_out);
    if (largest >= classes || (d->names != NULL && d->public.classes > classes))
        return io_dataset_fail(d, ADJ_EIO,
                               "data: %s: label is out of range (got %d, expected 0 to %d)", where,
                               largest, classes - 1);
    if (d->names != NULL && d->public.classes < classes) /* some would have no name */
        d->public.class_names = NULL;
    d->public.classes = classes;
    return ADJ_OK;
}

/* ---- which images ----
 *
 * All images are visited in one order drawn from the seed; a class gives its first ones. So the
 * training and the validation images of a seed never overlap and together are all. */

enum { REST, VALIDATION, TAKEN };

/* A selection among n labeled images. */
typedef struct {
    int64_t n;
    const int32_t *labels;
    int classes;
    int64_t *order; /* [n] in which images are visited; then the selected ones, ascending */
    int64_t *quota; /* [classes] images that a class still gives */
    uint8_t *group; /* [n] REST, VALIDATION or TAKEN */
} drawing;

static void count_classes(const drawing *d, uint8_t group)
{
    for (int k = 0; k < d->classes; k++)
        d->quota[k] = 0;
    for (int64_t i = 0; i < d->n; i++)
        d->quota[d->labels[i]] += d->group[i] == group;
}

/* Moves the first quota[k] images of class k from one group to the other. */
static void move(const drawing *d, uint8_t from, uint8_t to)
{
    for (int64_t j = 0; j < d->n; j++) {
        int64_t i = d->order[j];
        if (d->group[i] == from && d->quota[d->labels[i]] > 0) {
            d->quota[d->labels[i]]--;
            d->group[i] = to;
        }
    }
}

/* Splits each class; a class of two or more images keeps at least one on either side. */
static void split(const drawing *d, double fraction)
{
    count_classes(d, REST);
    for (int k = 0; k < d->classes; k++) {
        int64_t have = d->quota[k], part = (int64_t)floor(fraction * (double)have + 0.5);
        if (have > 1)
            part = part < 1 ? 1 : part > have - 1 ? have - 1 : part;
        d->quota[k] = part;
    }
    move(d, REST, VALIDATION);
}

/* Distributes limit over the classes by their sizes, as differences of rounded cumulative sums, so
 * that the total is limit. */
static void take_share(const drawing *d, uint8_t group, int64_t limit)
{
    int64_t total = 0, before = 0, given = 0;

    count_classes(d, group);
    for (int k = 0; k < d->classes; k++)
        total += d->quota[k];
    for (int k = 0; k < d->classes; k++) {
        before += d->quota[k];
        int64_t until = limit >= total
                            ? before
                            : (int64_t)((double)limit * (double)before / (double)total + 1e-9);
        d->quota[k] = until - given;
        given = until;
    }
    move(d, group, TAKEN);
}

/* Selects the validation images (val_split of each class) or the others, of these at most o->limit
 * (0: all) with the class frequencies of the data. Returns how many. */
static int64_t draw(const drawing *d, const adj_dataset_opts *o, double val_split, uint8_t group)
{
    int64_t kept = 0;

    adj_shuffle(d->n, io_mix(o->seed), 0x73706c6974u, d->order);
    if (val_split > 0)
        split(d, val_split);
    take_share(d, group, o->limit > 0 ? o->limit : d->n);
    for (int64_t i = 0; i < d->n; i++)
        if (d->group[i] == TAKEN)
            d->order[kept++] = i;
    return kept;
}

void io_dataset_keep(dataset *d, const int64_t *keep, int64_t kept)
{
    const size_t elems = (size_t)size_elems(d->stored);

    for (int64_t j = 0; j < kept; j++) {
        const size_t from = (size_t)keep[j] * elems, to = (size_t)j * elems;
        d->labels[j] = d->labels[keep[j]];
        if (d->images != NULL)
            memmove(d->images + to, d->images + from, elems);
        if (d->floats != NULL)
            memmove(d->floats + to, d->floats + from, elems * sizeof *d->floats);
    }
    if (d->files != NULL)
        io_folder_keep(d, keep, kept);
    d->public.n = kept;
}

static adj_status choose(dataset *d, const char *where, adj_dataset_part part,
                         const adj_dataset_opts *o)
{
    const int is_split = !d->own_validation && part != ADJ_TEST;
    const double val_split = is_split ? o->val_split : 0;
    const uint8_t group = is_split && part == ADJ_VALIDATION ? VALIDATION : REST;
    if (o->limit == 0 && val_split <= 0 && group == REST)
        return ADJ_OK;

    const size_t n = (size_t)d->public.n, classes = (size_t)d->public.classes;
    const drawing w = {.n = d->public.n,
                       .labels = d->labels,
                       .classes = d->public.classes,
                       .order = malloc(n * sizeof *w.order + 1),
                       .quota = malloc(classes * sizeof *w.quota + 1),
                       .group = calloc(n + 1, 1)};
    adj_status status = ADJ_OK;
    if (w.order == NULL || w.quota == NULL || w.group == NULL)
        status = io_dataset_no_memory(d);
    else
        io_dataset_keep(d, w.order, draw(&w, o, val_split, group));
    free(w.order);
    free(w.quota);
    free(w.group);
    if (status == ADJ_OK && d->public.n == 0)
        return io_dataset_fail(d, ADJ_EARG,
                               "data: %s: val_split leaves no images for %s (got %g, expected at "
                               "least 2 images in a class)",
                               where, group == VALIDATION ? "validation" : "training", val_split);
    return status;
}

/* ---- sizes ---- */

adj_image_size io_wanted_size(adj_image_size own, const adj_dataset_opts *o)
{
    if (o->like != NULL && o->like->size.h > 0)
        return o->like->size;
    return size_or(o->image.size, own);
}

static adj_status show_memory(dataset *d, const char *where, const adj_dataset_opts *o)
{
    adj_image_size own = d->stored, size = io_wanted_size(own, o);

    if (own.h > ADJ_MAX_SIDE || own.w > ADJ_MAX_SIDE)
        return io_dataset_fail(d, ADJ_EIO,
                               "data: %s: image size is out of range (got %s, expected at most %d)",
                               where, sides_text(own).s, ADJ_MAX_SIDE);
    if (o->image.resize == ADJ_RESIZE_ERROR && !same_sides(own, size))
        return io_dataset_fail(d, ADJ_EIO, "data: %s: image size differs (got %s, expected %s)",
                               where, sides_text(own).s, sides_text(size).s);
    if (d->public.normalized && own.c != size.c && (own.c != 1 || size.c != 3))
        return io_dataset_fail(d, ADJ_EIO,
                               "data: %s: normalized values cannot change channels (got %lld, "
                               "expected %lld)",
                               where, (long long)own.c, (long long)size.c);
    d->stored_images = d->images;
    return io_dataset_use_memory(d, size, o->image.background);
}

/* Fails if one part has pixels and the other one values that are already normalized. */
static adj_status check_kind(dataset *d, const char *where, const adj_dataset_opts *o)
{
    static const char *const kinds[] = {"pixels", "values already normalized"};
    const int is_given = o->like != NULL && o->like->deviation[0] > 0;
    if (!is_given || !o->like->normalized == !d->public.normalized)
        return ADJ_OK;
    return io_dataset_fail(d, ADJ_EIO,
                           "data: %s: images are %s (expected %s, as in the training split)", where,
                           kinds[d->public.normalized], kinds[!d->public.normalized]);
}

static adj_status settle_moments(dataset *d, const adj_dataset_opts *o)
{
    const int is_given = o->like != NULL && o->like->deviation[0] > 0;
    const int is_known = is_given || d->has_moments;
    if (is_given) {
        memcpy(d->public.mean, o->like->mean, sizeof d->public.mean);
        memcpy(d->public.deviation, o->like->deviation, sizeof d->public.deviation);
    }
    return is_known && d->files == NULL ? ADJ_OK : io_dataset_measure(d, o, is_known);
}

/* Fails for data without images, which only a folder can be. */
static adj_status no_images(dataset *d, const char *where)
{
    if (io_cifar_refuse_pickle(d, where) != ADJ_OK)
        return ADJ_EIO;
    if (d->public.left_out[0] == '\0')
        return io_dataset_fail(d, ADJ_EIO, "data: %.200s: no images", where);
    return io_dataset_fail(
        d, ADJ_EIO, "data: %.80s: no images (left out: %.280s; expected files " IMAGE_ENDINGS ")",
        where, d->public.left_out);
}

adj_status io_dataset_finish(dataset *d, const char *where, adj_dataset_part part,
                             const adj_dataset_opts *options)
{
    adj_dataset_opts all = options != NULL ? *options : (adj_dataset_opts){0};
    const adj_dataset_opts *o = &all;
    if (all.like != NULL && all.like->resize == ADJ_RESIZE_ERROR)
        all.image.resize = ADJ_RESIZE_ERROR;

    adj_status status = check_options(d, o);
    if (status == ADJ_OK && d->public.n == 0)
        status = no_images(d, where);
    if (status == ADJ_OK)
        status = check_kind(d, where, o);
    if (status == ADJ_OK)
        status = settle_classes(d, where, o);
    if (status == ADJ_OK)
        status = choose(d, where, part, o);
    if (status != ADJ_OK)
        return status;
    d->public.labels = d->labels;
    d->public.resize = o->image.resize;
    status = d->files != NULL ? io_folder_show(d, o) : show_memory(d, where, o);
    return status == ADJ_OK ? settle_moments(d, o) : status;
}
