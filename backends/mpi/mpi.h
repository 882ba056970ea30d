/* mpi.h - what the files of the MPI backend share. */
#ifndef ADJ_MPI_BACKEND_H
#define ADJ_MPI_BACKEND_H

#include <mpi.h>

#include "adjoint_mpi.h"

enum { MAX_BUILT_IN = 6 };

struct adj_mpi {
    adj_backend backend; /* first: adj_backend_opts.self is the group */
    const adj_backend *list[MAX_BUILT_IN + 2];
    MPI_Comm all; /* a communicator of its own: the program's messages are not ours */
    int rank, size, has_started_mpi;
};

/* The sentence for an MPI error. */
void mpi_sentence(int error, char *text, size_t size);

extern const adj_kernel mpi_all_reduce;

#endif
