/* mpirun.h - the group of processes started by mpirun. libadjoint_mpi is loaded when needed, so
 * that the tool runs without MPI. */
#ifndef CLI_MPIRUN_H
#define CLI_MPIRUN_H

#include "train/internal.h"

/* Exit status of a rank that ends all others because one does not respond. */
enum { EXIT_LOST = 4 };

/* All zero: a group of one. */
typedef struct {
    void *library; /* NULL: this process is alone */
    void *group;   /* adj_mpi */
    const adj_ranks *ranks;
    void (*abort)(void *group, int status);
    void (*close)(void *group);
    int (*lost_rank)(const void *group);
} mpirun_group;

/* Joins the others, if mpirun has started this process. patience: seconds until a silent rank
 * counts as lost; 0: the library's default. Output of other ranks than the first is dropped.
 * CONTINUE, or an exit status after a complaint; the caller leaves the group in every case. */
int mpirun_join(double patience, mpirun_group *g);
/* Leaves the group at the end of a command with this status. agreed: the other ranks end with it as
 * well; else a failure ends them. Returns the exit status. */
int mpirun_leave(mpirun_group *g, int status, int agreed);

/* Returns the rank assigned by mpirun, before joining; 0 for a single process or the first. */
int mpirun_rank_here(void);
/* Returns the number of threads for one of the processes that mpirun has started on this machine.
 */
int mpirun_threads(int processors);

#endif
