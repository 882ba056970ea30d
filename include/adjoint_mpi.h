/* adjoint_mpi.h - training by a group of processes over MPI, in a library of its own,
 * libadjoint_mpi; libadjoint does not depend on MPI.
 *
 *     adj_mpi *group;
 *     adj_mpi_open(&group, &error);
 *     const adj_ranks *ranks = adj_mpi_ranks(group);
 *     adj_updates *u = adj_data_parallel(updates, ranks->size, ranks->rank, NULL);
 *     adj_exec_opts o = {.updates = u, .backends = ranks->backends, ...};
 *
 * With adjoint_fit.h: adj_fit_opts.distributed.ranks = adj_mpi_ranks(group).
 *
 * Every process builds the same graph and calls adj_run equally often. The others wait for a slow
 * process as long as it responds. A process responds while it waits or runs a plan made with the
 * group's backends, but not while it reads or writes files. After 20 seconds without a response it
 * counts as lost. Messages name a process that has died, was stopped or hangs. Only one thread of a
 * process at a time may run executors of a group. */
#ifndef ADJOINT_MPI_H
#define ADJOINT_MPI_H

#include "adjoint_ext.h"
#include "adjoint_fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A group: all processes that mpirun started together. */
typedef struct adj_mpi adj_mpi;

/* Initializes MPI, if the program has not done so, and creates a group of all processes; a process
 * not started by mpirun is a group of one. All processes must call it. On failure it returns
 * ADJ_EBACKEND or ADJ_ENOMEM, and *out is NULL. error may be NULL. */
ADJ_API adj_status adj_mpi_open(adj_mpi **out, adj_error *error);
/* Finalizes MPI if adj_mpi_open has initialized it. All processes must call it, after freeing their
 * executors. NULL is allowed. */
ADJ_API void adj_mpi_close(adj_mpi *group);
/* Ends all processes of the group, with this exit status where MPI supports it, and does not
 * return. Call it after a failure while other processes wait, or after losing a process, before
 * freeing any executor, since MPI may still write to its memory. */
ADJ_API void adj_mpi_abort(adj_mpi *group, int exit_status);
/* Returns the rank of this process, the number of processes, the backends for
 * adj_exec_opts.backends (one that computes all_reduce over this group, followed by the built-in
 * ones) and the functions that adj_fit needs. Owned by the group; NULL for NULL. */
ADJ_API const adj_ranks *adj_mpi_ranks(const adj_mpi *group);
/* Copies all parameters and states of process 0 to all processes. All processes must call it, with
 * executors of the same graph. */
ADJ_API adj_status adj_mpi_broadcast(adj_mpi *group, adj_exec *e, adj_error *error);

#ifdef __cplusplus
}
#endif
#endif
