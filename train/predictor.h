/* predictor.h - the struct behind adj_predictor, and the networks that compute a batch for it. */
#ifndef TRAIN_PREDICTOR_H
#define TRAIN_PREDICTOR_H

#include "network.h"

/* ---- workers: networks that compute slices of a batch concurrently, one thread each. Threads do
 * not wait for each other between steps, and a slice's values stay in its core's cache. A small
 * batch is computed by one network with all threads (workers.c) ---- */

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

/* ---- the predictor ---- */

/* Gathers mine of all ranks into all; NULL: copies it (ranks.c). */
adj_status ranks_gather(const adj_ranks *r, const void *mine, size_t bytes, void *all,
                        adj_error *error);

/* Networks that are made when first needed and get the parameters again after a change. */
typedef struct {
    workers w;
    uint64_t version;
} planned;

/* Evaluation; predictions of one image, of up to WHOLE_BATCH, of more; and those within a network.
 */
enum { EVALUATION, ONE, FEW, MANY, INNER, GRADIENT, N_PLANNED };

struct adj_predictor {
    adj_net net; /* complete; its name is p's */
    char *name;
    plan_opts plan;
    const adj_ranks *ranks; /* that share out evaluations; NULL: this process alone */
    int64_t evaluations;    /* expected evaluations of the held-out data; 0: one */
    char *backend, *tune_file, *selection;
    char *inner; /* the node that INNER fetches; NULL: none yet */
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS]; /* by channel of net */
    adj_model_card card;
    char **class_names;
    planned planned[N_PLANNED];
    adj_exec *home;   /* executor that owns the parameters; NULL: none yet */
    uint64_t version; /* version of the parameters */
};

/* Creates a predictor for a completed net, without parameters. *out is NULL on failure. */
adj_status predictor_new(const adj_net *net, const plan_opts *plan, adj_predictor **out,
                         adj_error *error);
/* Sets mean and deviation from a data set with c channels; those of a single channel are repeated.
 */
void predictor_normalize(adj_predictor *p, const float mean[], const float deviation[], int64_t c);
/* Copies the n names. The card has no names if names is NULL or n is not the net's number of
 * classes. */
adj_status predictor_name_classes(adj_predictor *p, int64_t n, const char *const names[],
                                  adj_error *error);
/* Fails for a data set that the predictor cannot evaluate. confusion: as in adj_predictor_evaluate.
 */
adj_status predictor_check_data(const adj_predictor *p, const adj_dataset *d,
                                const int64_t confusion[], adj_error *error);
/* Makes the next evaluation plan use these kernels; returns 0 when out of memory. */
int predictor_select(adj_predictor *p, const char *selection);
/* Fails if the caller's metadata have a key twice, or one that the library writes itself: of the
 * model card, of the loss, or of the n_own entries. */
adj_status metadata_check(int n, const adj_metadata metadata[], int n_own, const adj_metadata own[],
                          adj_error *error);
/* Writes the parameters of e with the n metadata and what these do not have of the card, which gets
 * this accuracy; path NULL: only checks, as in adj_tensors_write. */
adj_status predictor_write(const adj_predictor *p, double accuracy, adj_exec *e, const char *path,
                           int n, const adj_metadata metadata[], adj_error *error);
/* Uses the parameters of from, which the caller owns. images: number of images of an evaluation. */
adj_status predictor_take(adj_predictor *p, const adj_exec *from, int64_t images, adj_error *error);
/* Sets *w to the networks of that kind with the parameters; they are made for that many images. */
adj_status predictor_workers(adj_predictor *p, int kind, int64_t images, workers **w,
                             adj_error *error);

#endif
