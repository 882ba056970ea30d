/* feed.h - batches of a data set for a network: the one place where training, evaluation and
 * prediction get their images from. */
#ifndef IO_FIT_FEED_H
#define IO_FIT_FEED_H

#include "adjoint_data.h"

typedef struct {
    adj_dataset data; /* normalised as the training set was */
    adj_shape shape;  /* of a batch */
    int shuffle;
    int64_t seed;
    adj_augment augment;
    int64_t epoch, step, steps; /* of the next batch; steps: of an epoch */
    int64_t *order;             /* of epoch; NULL unless shuffled */
    float *x;
    int32_t *labels;
    double waited; /* seconds that feed_next took until now */
} feed;

/* mean, deviation: as of a data set. It begins at epoch 0, step 0; f is to be closed in every
 * case. */
adj_status feed_open(feed *f, const adj_dataset *d, const float mean[], const float deviation[],
                     adj_shape shape, adj_error *error);
/* Before the first batch: the images in a random order, changed at random. */
adj_status feed_shuffle(feed *f, int64_t seed, const adj_augment *augment, adj_error *error);
void feed_seek(feed *f, int64_t epoch, int64_t step);
/* x, labels: until the next call; *count: the images that count. After an epoch's last step comes
 * the next one's first. */
adj_status feed_next(feed *f, const float **x, const int32_t **labels, int64_t *count,
                     adj_error *error);
void feed_close(feed *f);

#endif
