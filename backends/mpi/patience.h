/* patience.h - lost processes, for the tool, which loads these functions by name. */
#ifndef ADJ_MPI_PATIENCE_H
#define ADJ_MPI_PATIENCE_H

#include "adjoint_mpi.h"

/* Sets the number of seconds without a response after which a process counts as lost; 20 by
 * default. */
ADJ_API void adj_mpi_set_patience(adj_mpi *group, double seconds);
/* Returns the rank of the first process that was lost; -1: none. */
ADJ_API int adj_mpi_lost_rank(const adj_mpi *group);

#endif
