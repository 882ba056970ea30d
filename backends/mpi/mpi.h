/* mpi.h - declarations shared by the MPI backend. */
#ifndef ADJ_MPI_BACKEND_H
#define ADJ_MPI_BACKEND_H

#include <mpi.h>

#include "adjoint_mpi.h"

enum { MAX_BUILT_IN = 6, NO_RANK = -1 };

typedef struct reduction reduction;
typedef struct prepared prepared;

struct adj_mpi {
    adj_backend backend; /* first: adj_backend_opts.self is the group */
    const adj_backend *list[MAX_BUILT_IN + 2];
    adj_ranks ranks;
    MPI_Comm all; /* a communicator of its own, separate from the program's messages */
    int rank, size, has_started_mpi;
    double patience;                /* seconds after which a silent process counts as lost */
    reduction *flying;              /* pending reductions, the oldest first */
    unsigned started;               /* reductions started so far: equal in all processes */
    prepared *prepared;             /* list of all_reduce.c */
    double answered;                /* when this process last looked for questions */
    double waited;                  /* total seconds of waiting for other processes */
    double traveled, travels_since; /* total seconds with a pending reduction; its start */
    int n_traveling;
    int lost;           /* a process that did not answer; NO_RANK if none */
    char *has_answered; /* [size]: has answered since it was asked */
};

/* Writes the message of an MPI error. */
void mpi_sentence(int error, char *text, size_t size);

/* ---- wait.c: waits with a time limit ---- */

/* Tests a condition: returns 1 if it holds; sets *code to an MPI error. */
typedef int mpi_test(void *user, int *code);
/* Waits until the test returns 1, while pending reductions progress. ADJ_EBACKEND and a message
 * in text [ADJ_WHY] if MPI failed, or if a process was silent for longer than the group's
 * patience. A process that only waits itself answers, so it is not silent. */
adj_status mpi_wait(adj_mpi *g, mpi_test *test, void *user, char *text);
/* Waits for a request as mpi_wait does. */
adj_status mpi_wait_request(adj_mpi *g, MPI_Request *request, char *text);
/* Answers processes that ask whether this one is alive. Rate-limited, so it may be called often. */
void mpi_answer(adj_mpi *g);

/* ---- reduction.c: sums of vectors that overlap with computation ---- */

/* Creates a reduction of n doubles or floats; NULL if out of memory. */
reduction *reduction_new(adj_mpi *g, int64_t n, int is_double);
void reduction_free(reduction *r);
/* Starts to replace v by the sum over all processes, in the same bits for each. Until it is
 * finished, v must not be read or written. All processes start their reductions in the same
 * order. */
adj_status reduction_start(reduction *r, void *v, char *text);
adj_status reduction_finish(reduction *r, char *text);
/* Advances all pending reductions as far as possible. Returns an MPI error. */
int reductions_go_on(adj_mpi *g);

/* ---- exchange.c: members of adj_ranks ---- */

adj_status mpi_all_gather(void *group, const void *mine, size_t bytes, void *all, adj_error *error);
adj_status mpi_broadcast(void *group, void *data, size_t bytes, adj_error *error);
/* link.c. */
adj_status mpi_measure_link(void *group, double *latency, double *bits_per_second,
                            adj_error *error);

extern const adj_kernel mpi_all_reduce, mpi_all_reduce_start, mpi_all_reduce_wait;

/* group.c: lost processes, for the tool, which loads these functions by name. Sets the number of
 * seconds without a response after which a process counts as lost; 20 by default. */
ADJ_API void adj_mpi_set_patience(adj_mpi *group, double seconds);
/* Returns the rank of the first process that was lost; -1: none. */
ADJ_API int adj_mpi_lost_rank(const adj_mpi *group);

#endif
