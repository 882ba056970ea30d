/* mpi.h - what the files of the MPI backend share. */
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
    MPI_Comm all; /* a communicator of its own: the program's messages are not ours */
    int rank, size, has_started_mpi;
    double patience;                /* seconds for which another process may be silent */
    reduction *flying;              /* started and not waited for, the oldest first */
    unsigned started;               /* reductions, ever: all processes count alike */
    prepared *prepared;             /* all_reduce.c's */
    double answered;                /* when this process last looked for questions */
    double waited;                  /* seconds, ever, for other processes */
    double traveled, travels_since; /* seconds, ever, with a reduction under way; since when */
    int n_traveling;
    int lost;           /* a process that did not answer; NO_RANK: none */
    char *has_answered; /* [size]: since it was asked */
};

/* The sentence for an MPI error. */
void mpi_sentence(int error, char *text, size_t size);

/* ---- wait.c: nobody is waited for without end ---- */

/* What is waited for: 1 when it is there; an MPI error in *code. */
typedef int mpi_test(void *user, int *code);
/* Waits until the test says 1, and lets what flies go on. ADJ_EBACKEND and a sentence in text
 * [ADJ_WHY]: MPI failed, or a process was silent for longer than the group's patience. One that
 * only waits itself answers, and is waited for. */
adj_status mpi_wait(adj_mpi *g, mpi_test *test, void *user, char *text);
/* The same for a request. */
adj_status mpi_wait_request(adj_mpi *g, MPI_Request *request, char *text);
/* Answers those who ask whether this process is there; once in a while, so it may be called
 * often. */
void mpi_answer(adj_mpi *g);

/* ---- reduction.c: a sum of vectors that travels while its process does something else ---- */

/* Creates a reduction of n doubles or floats; NULL if out of memory. */
reduction *reduction_new(adj_mpi *g, int64_t n, int is_double);
void reduction_free(reduction *r);
/* v becomes the sum over all processes, in the same bits for each, when it is finished: until then
 * nobody reads or writes it. Processes start their reductions in the same order. */
adj_status reduction_start(reduction *r, void *v, char *text);
adj_status reduction_finish(reduction *r, char *text);
/* All that fly go on as far as they can. Returns an MPI error. */
int reductions_go_on(adj_mpi *g);

/* ---- exchange.c: adj_ranks' ---- */

adj_status mpi_all_gather(void *group, const void *mine, size_t bytes, void *all, adj_error *error);
adj_status mpi_broadcast(void *group, void *data, size_t bytes, adj_error *error);
/* link.c. */
adj_status mpi_measure_link(void *group, double *latency, double *bits_per_second,
                            adj_error *error);

extern const adj_kernel mpi_all_reduce, mpi_all_reduce_start, mpi_all_reduce_wait;

#endif
