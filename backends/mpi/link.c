/* link.c - measures the speed of messages between the first two processes by a ping-pong. */
#include <stdlib.h>

#include "base/clock.h"
#include "mpi.h"

enum { TAG = 30003, SMALL_TURNS = 200, LARGE_TURNS = 10, LARGE = 4 << 20 };

/* Returns half of the least round-trip time; the first round trip is a warm-up. 0 if MPI failed. */
static double one_way(const adj_mpi *g, char *message, int bytes, int turns)
{
    double min = 1e9;
    int code = MPI_SUCCESS;
    for (int i = 0; i <= turns && code == MPI_SUCCESS; i++) {
        const double start = seconds_now();
        if (g->rank == 0)
            code = MPI_Send(message, bytes, MPI_BYTE, 1, TAG, g->all);
        if (code == MPI_SUCCESS)
            code = MPI_Recv(message, bytes, MPI_BYTE, 1 - g->rank, TAG, g->all, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && g->rank == 1)
            code = MPI_Send(message, bytes, MPI_BYTE, 0, TAG, g->all);
        const double seconds = (seconds_now() - start) / 2;
        min = i > 0 && seconds < min ? seconds : min;
    }
    return code == MPI_SUCCESS ? min : 0;
}

adj_status mpi_measure_link(void *group, double *latency, double *bits_per_second, adj_error *error)
{
    adj_mpi *g = group;
    double link[2] = {0};
    if (g->size < 2)
        return adj_error_set(error, ADJ_EARG, "a link needs two processes (got one)");
    char *message = calloc(1, LARGE);
    if (message == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "link: out of memory");
    if (g->rank < 2) {
        link[0] = one_way(g, message, 1, SMALL_TURNS);
        link[1] = one_way(g, message, LARGE, LARGE_TURNS);
    }
    free(message);
    adj_status status = mpi_broadcast(g, link, sizeof link, error);
    if (status != ADJ_OK)
        return status;
    if (link[0] <= 0 || link[1] <= link[0])
        return adj_error_set(error, ADJ_EBACKEND, "link: cannot time messages");
    *latency = link[0];
    *bits_per_second = 8.0 * LARGE / (link[1] - link[0]);
    return ADJ_OK;
}
