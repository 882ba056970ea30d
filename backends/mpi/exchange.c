/* exchange.c - exchanges between processes outside of a graph: gathers a few bytes of each,
 * broadcasts those of process 0, its parameters. */
#include <stdio.h>
#include <stdlib.h>

#include "mpi.h"

enum { AT_ONCE = 1 << 30 }; /* bytes per message: MPI counts in int */

static adj_status fail_exchange(adj_error *error, const char *operation, const char *why)
{
    return adj_error_set(error, ADJ_EBACKEND, "%s: %s", operation, why);
}

/* Finishes a request; code: of the call that started it. */
static adj_status finish_request(adj_mpi *g, int code, MPI_Request *request, const char *operation,
                                 adj_error *error)
{
    char text[ADJ_WHY] = "";
    if (code != MPI_SUCCESS) {
        mpi_sentence(code, text, sizeof text);
        return fail_exchange(error, operation, text);
    }
    return mpi_wait_request(g, request, text) == ADJ_OK ? ADJ_OK
                                                        : fail_exchange(error, operation, text);
}

adj_status mpi_all_gather(void *group, const void *mine, size_t bytes, void *all, adj_error *error)
{
    adj_mpi *g = group;
    MPI_Request request;
    if (bytes > AT_ONCE)
        return adj_error_set(error, ADJ_EARG,
                             "all_gather: too many bytes (got %zu, expected at most %d)", bytes,
                             AT_ONCE);
    const int code =
        MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, g->all, &request);
    return finish_request(g, code, &request, "all_gather", error);
}

adj_status mpi_broadcast(void *group, void *data, size_t bytes, adj_error *error)
{
    adj_mpi *g = group;
    adj_status status = ADJ_OK;
    for (size_t at = 0; at < bytes && status == ADJ_OK; at += AT_ONCE) {
        const size_t n = bytes - at < AT_ONCE ? bytes - at : AT_ONCE;
        MPI_Request request;
        const int code = MPI_Ibcast((char *)data + at, (int)n, MPI_BYTE, 0, g->all, &request);
        status = finish_request(g, code, &request, "broadcast", error);
    }
    return status;
}

static adj_status send_value(adj_mpi *g, adj_exec *e, const adj_node *leaf, void *value,
                             adj_error *error)
{
    const size_t bytes = adj_type_bytes(adj_node_type(leaf));
    adj_status status = adj_get(e, leaf, value, bytes);
    if (status == ADJ_OK) {
        status = mpi_broadcast(g, value, bytes, error);
        if (status != ADJ_OK)
            return status;
        status = adj_set(e, leaf, value, bytes);
    }
    return status == ADJ_OK ? ADJ_OK : adj_error_set(error, status, "%s", adj_exec_message(e));
}

adj_status adj_mpi_broadcast(adj_mpi *g, adj_exec *e, adj_error *error)
{
    if (g == NULL || e == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_mpi_broadcast: %s is NULL",
                             g == NULL ? "group" : "e");
    size_t max = 1;
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        const size_t bytes = adj_type_bytes(adj_node_type(adj_exec_param_at(e, i)));
        max = bytes > max ? bytes : max;
    }
    void *value = malloc(max);
    if (value == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "adj_mpi_broadcast: out of memory");
    adj_status status = ADJ_OK;
    for (int i = 0; i < adj_exec_param_count(e) && status == ADJ_OK; i++)
        status = send_value(g, e, adj_exec_param_at(e, i), value, error);
    free(value);
    return status;
}
