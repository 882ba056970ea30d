/* prepare.h - prepares the batches of a training: a pure function of epoch, step and place. */
#ifndef IO_PREPARE_H
#define IO_PREPARE_H

#include "augment.h"
#include "origin.h"

typedef struct {
    const adj_dataset *d;
    adj_loader_opts o; /* checked, sizes filled in; its pointers are not used */
    adj_image_size to;
    fitting fit;          /* from the data set's images to these */
    int64_t elems, steps; /* of an image in a batch; of an epoch */
    int64_t per_shard;    /* images */
    int64_t first, n;     /* images of a batch that are prepared */
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS], black[ADJ_MAX_CHANNELS];
} preparation;

/* Checks the options and prepares for batches. On failure there is nothing to close. */
adj_status io_preparation(const adj_dataset *d, const adj_loader_opts *o, loader_shards shards,
                          preparation *p, adj_error *error);
void io_preparation_close(preparation *p);

/* Returns the number of images of a step without padding: of all, and of the n prepared ones. */
int64_t io_step_count(const preparation *p, int64_t step);
int64_t io_part_count(int64_t step_count, int64_t first, int64_t n);

/* Prepares image i of the batch of (epoch, step) in b->x and b->labels. order: the epoch's (NULL:
 * none); room: memory for one image of the data set. */
adj_status io_prepare_image(const preparation *p, const int64_t *order, const adj_loader_batch *b,
                            int64_t i, float *room, adj_error *error);
/* Applies mixup, after all images of the batch are prepared. */
void io_prepare_rest(const preparation *p, adj_loader_batch *b);

#endif
