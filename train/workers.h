/* workers.h - networks that compute slices of a batch concurrently, one thread each. Threads do not
 * wait for each other between steps, and a slice's values stay in its core's cache. A small batch
 * is computed by one network with all threads. */
#ifndef TRAIN_WORKERS_H
#define TRAIN_WORKERS_H

#include "network.h"

/* Images of a worker's part, and of a network with all threads at most. */
enum { WORKER_BATCH = 16, WHOLE_BATCH = 32 };

typedef struct {
    int n;         /* networks; 0: not made yet */
    int64_t part;  /* images of each */
    network *each; /* [n], by their part of the batch */
    adj_exec **exec;
    float **images; /* [n]: where the parts of the next run are written */
} workers;

/* Returns the number of networks for that many images: one, or as many as there are threads. */
int workers_for(int64_t images, const plan_opts *plan);
/* Opens n networks of part images each, of one thread each unless n is 1. runs as in network_open.
 * Only the first network is tuned; the others take its kernels. w is to be closed in every case. */
adj_status workers_open(workers *w, network_kind kind, const adj_net *net, int n, int64_t part,
                        int64_t runs, const plan_opts *plan, adj_error *error);
void workers_close(workers *w);
/* Writes count images, normalized, from that one of source on to x [count, h, w, c]. Threads call
 * it for different images at a time. */
typedef void (*fill_images)(const void *source, int64_t first, int64_t count, float x[]);
/* Runs the networks on the first count images of a batch of n * part; a slice without images is not
 * run. b: its labels or targets in an evaluation, else NULL. */
adj_status workers_run(workers *w, fill_images fill, const void *source, const adj_loader_batch *b,
                       int64_t count, adj_error *error);
/* Returns the number of images in worker i's slice of the first count images of a batch. */
int64_t worker_count(const workers *w, int i, int64_t count);

#endif
