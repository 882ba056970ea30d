/* origin.h - private members of a data set, and functions of io/data/ that only training and the
 * tool call. */
#ifndef IO_DATA_ORIGIN_H
#define IO_DATA_ORIGIN_H

#include <stdio.h>
#include <string.h>

#include "adjoint_data.h"

static inline int64_t size_elems(adj_image_size s) { return s.h * s.w * s.c; }
static inline int same_size(adj_image_size a, adj_image_size b)
{
    return a.h == b.h && a.w == b.w && a.c == b.c;
}
static inline int same_sides(adj_image_size a, adj_image_size b)
{
    return a.h == b.h && a.w == b.w;
}
/* True if an image may have these sides. */
static inline int has_sides(adj_image_size s)
{
    return s.h >= 1 && s.h <= ADJ_MAX_SIDE && s.w >= 1 && s.w <= ADJ_MAX_SIDE;
}
/* True if a net's images may have this size. */
static inline int is_net_size(adj_image_size s)
{
    return has_sides(s) && s.c >= 1 && s.c <= ADJ_MAX_CHANNELS;
}
typedef struct {
    char s[64];
} size_text;
/* Returns "HxW". */
static inline size_text sides_text(adj_image_size size)
{
    size_text t;
    snprintf(t.s, sizeof t.s, "%lldx%lld", (long long)size.h, (long long)size.w);
    return t;
}
/* Returns "HxWxC". */
static inline size_text full_text(adj_image_size size)
{
    size_text t;
    snprintf(t.s, sizeof t.s, "%lldx%lldx%lld", (long long)size.h, (long long)size.w,
             (long long)size.c);
    return t;
}
/* Returns the given size, with the other's numbers where it has 0. */
static inline adj_image_size size_or(adj_image_size given, adj_image_size other)
{
    return (adj_image_size){given.h != 0 ? given.h : other.h, given.w != 0 ? given.w : other.w,
                            given.c != 0 ? given.c : other.c};
}

/* The model card's words for adj_resize_rule; NULL: auto. */
static inline const char *resize_word(adj_resize_rule rule)
{
    return rule == ADJ_RESIZE_ERROR ? "error" : "auto";
}
static inline adj_resize_rule resize_rule(const char *word)
{
    return word != NULL && strcmp(word, "error") == 0 ? ADJ_RESIZE_ERROR : ADJ_RESIZE_AUTO;
}

/* Source of the images of a data set. */
typedef struct adj_dataset_origin {
    adj_source source; /* read is NULL if the images are in memory as bytes */
    int64_t resized;   /* number of images whose files have another size */
    int64_t recolored; /* number of images converted from gray to color or back */
    /* Minimum and maximum of the NumPy array, or IDX file of only 0 and 1, values_of; 0 and 0 for
     * other images. The scale is 0 to 1 if high is at most 1. Training stores both in the model
     * card. */
    float low, high;
    /* n_broken messages, one for each unreadable image file: the files skipped by
     * adj_dataset_opts.skip_broken, else the files that made opening fail. */
    const char *const *broken;
    int64_t n_broken;            /* number of unreadable image files */
    char values_of[ADJ_MESSAGE]; /* such as "data.npz: x_train"; "": none */
} adj_dataset_origin;

/* Returns the origin; one that is all zero if a program has filled in the data set. */
static inline const adj_dataset_origin *origin_of(const adj_dataset *d)
{
    static const adj_dataset_origin none;
    return d != NULL && d->origin != NULL ? d->origin : &none;
}

/* File layout of a data set. */
typedef enum {
    ADJ_DATA_NONE, /* no known layout */
    ADJ_DATA_DIGITS,
    ADJ_DATA_IDX,
    ADJ_DATA_CIFAR,
    ADJ_DATA_NUMPY,
    ADJ_DATA_FOLDER
} adj_data_layout;

/* Returns the layout of the data at path, as adj_dataset_open finds it. */
ADJ_API adj_data_layout adj_dataset_layout(const char *path);
/* True if the data at path have this split as files of their own, not held out from the training
 * split. */
ADJ_API int adj_dataset_has_part(const char *path, adj_dataset_part part);

/* Decodes an image of n bytes in memory like adj_image_read; name is used in messages. */
ADJ_API adj_status adj_image_decode(const void *bytes, size_t n, const char *name,
                                    const adj_image_opts *options, float *pixels, int *resized,
                                    adj_error *error);

/* Returns the class with the highest score. */
static inline int64_t best_class(const float score[], int64_t classes)
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        if (score[k] > score[best])
            best = k;
    return best;
}
/* Returns the number of rows of scores [n, classes] whose maximum is at their label; rows labeled
 * -1 are ignored. */
ADJ_API int64_t adj_count_right(int64_t n, int64_t classes, const float scores[],
                                const int32_t labels[]);

/* Fails with ADJ_ESHAPE if the images of d cannot become those of a batch. has_moments: mean and
 * deviation of the batch's channels are known. */
adj_status io_check_fit(const adj_dataset *d, adj_image_size to, int has_moments, adj_error *error);
/* Fails if a label is not the number of a class. */
adj_status io_check_labels(const adj_dataset *d, adj_error *error);
/* Fails if a mean is not finite, or a deviation not finite and above 0. */
adj_status io_check_moments(int64_t channels, const float mean[], const float deviation[],
                            adj_error *error);

/* Shards of a batch that a loader prepares, for data parallelism: the batch is divided into
 * `shards` shards of equal size (0: one), of which the loader prepares n (0: all) from first on.
 * Augmentation of an image does not depend on these numbers, except mixup, which mixes within a
 * shard. */
typedef struct {
    int64_t shards, first, n;
} loader_shards;
/* Creates a loader like adj_loader_new; its batches have the images of these shards. */
ADJ_API adj_status adj_loader_new_shards(const adj_dataset *d, const adj_loader_opts *options,
                                         loader_shards shards, adj_loader **l, adj_error *error);
/* Returns the number of images of a step without padding, in all shards. */
ADJ_API int64_t adj_loader_step_count(const adj_loader *l, int64_t step);
/* Returns the seconds spent in adj_loader_next so far. */
ADJ_API double adj_loader_waited(const adj_loader *l);

#endif
