/* prediction.h - how long a training step takes on many ranks, predicted from one rank's and a
 * link. */
#ifndef CLI_BENCH_PREDICTION_H
#define CLI_BENCH_PREDICTION_H

typedef struct {
    double bits_per_second, latency; /* of a message between two ranks; seconds */
    double adds;                     /* bytes a second that a rank adds to what it has */
} scale_link;

typedef struct {
    double at, bytes; /* seconds after the step's beginning when it is complete; its size */
} scale_bucket;

/* One rank's step. */
typedef struct {
    double backward, updates; /* seconds until all gradients are there; of what comes then */
    int n;
    const scale_bucket *bucket; /* in the order in which they are complete */
} scale_step;

/* Seconds of a reduction as backends/mpi does it. Of a power of two P ranks: log2 P exchanges of
 * the whole if that is short, else halves there and back, 2 log2 P latencies, 2 (P - 1) / P times
 * the bytes, of which half are added (Rabenseifner, Optimization of collective reduction
 * operations, ICCS 2004; Thakur, Rabenseifner, Gropp, Optimization of collective communication
 * operations in MPICH, 2005). Of others: up and down a tree. */
double scale_reduction(const scale_link *l, int ranks, double bytes);
/* The same around a ring: 2 (P - 1) latencies and as many bytes (Patarasuk and Yuan, Bandwidth
 * optimal all-reduce algorithms, 2009). */
double scale_ring(const scale_link *l, int ranks, double bytes);
/* Seconds of a step: a bucket's reduction starts when it is complete and those before it have
 * arrived; its updates follow those of the bucket before. *exposed: seconds of them in which
 * nothing is computed. */
double scale_predict(const scale_step *s, const scale_link *l, int ranks, double *exposed);

#endif
