/* adjoint_mpi.h - a group of processes that train together, over MPI. In a library of its own,
 * libadjoint_mpi; libadjoint knows nothing of MPI.
 *
 *     adj_mpi *group;
 *     adj_mpi_open(&group, &error);
 *     adj_data_parallel_opts d = {.processes = adj_mpi_size(group), .rank = adj_mpi_rank(group)};
 *     adj_updates *u = adj_data_parallel(updates, &d);
 *     adj_exec_opts o = {.updates = u, .debug.backends = adj_mpi_backends(group), ...};
 *
 * Or, of adjoint_fit.h, adj_fit_opts.ranks = adj_mpi_ranks(group).
 *
 * Every process builds the same graph, and calls adj_run as often as the others: a process that
 * does not is waited for, as long as it answers. One that has died, was stopped or hangs is named.
 * One thread of a process at a time may run executors of a group. */
#ifndef ADJOINT_MPI_H
#define ADJOINT_MPI_H

#include "adjoint_ext.h"
#include "adjoint_fit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All processes that were started together. */
typedef struct adj_mpi adj_mpi;

/* Starts MPI, if the program has not, and makes a group of all its processes; one that was not
 * started by mpirun is a group of one. All processes call it. On failure ADJ_EBACKEND or ADJ_ENOMEM
 * with a sentence in *error, and *out is NULL. error may be NULL. */
ADJ_API adj_status adj_mpi_open(adj_mpi **out, adj_error *error);
/* Ends MPI if adj_mpi_open has started it. All processes call it, after their executors are freed.
 * NULL is allowed. */
ADJ_API void adj_mpi_close(adj_mpi *group);
/* Ends all processes of the group, with this exit status where MPI can: for one that has failed
 * while the others wait for it, or to which another was lost - before it frees an executor, whose
 * memory MPI may still write to. Does not return. */
ADJ_API void adj_mpi_abort(adj_mpi *group, int exit_status);
/* Which of the processes this is, from 0 on; 0 for NULL. */
ADJ_API int adj_mpi_rank(const adj_mpi *group);
/* How many there are; 1 for NULL. */
ADJ_API int adj_mpi_size(const adj_mpi *group);
/* For how many seconds another process may be silent: 20 at first. One that runs a plan made
 * with adj_mpi_backends, or waits itself, is not silent; one that reads or writes files for so long
 * is. */
ADJ_API void adj_mpi_set_patience(adj_mpi *group, double seconds);
/* Seconds until now in which this process has waited for others. */
ADJ_API double adj_mpi_waited(const adj_mpi *group);
/* The process that did not answer, which made something fail, the first if there were several; -1:
 * none. */
ADJ_API int adj_mpi_lost_rank(const adj_mpi *group);
/* For adj_exec_debug.backends: one that computes all_reduce over this group, and the built-in ones
 * behind it. The group's; NULL for NULL. */
ADJ_API const adj_backend *const *adj_mpi_backends(const adj_mpi *group);
/* For adj_fit_opts.ranks. The group's; NULL for NULL. */
ADJ_API const adj_ranks *adj_mpi_ranks(const adj_mpi *group);
/* Process 0's values of all parameters and states become everybody's. All processes call it, with
 * executors of the same graph. */
ADJ_API adj_status adj_mpi_broadcast(adj_mpi *group, adj_exec *e, adj_error *error);

#ifdef __cplusplus
}
#endif
#endif
