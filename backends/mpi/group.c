/* group.c - see adjoint_mpi.h: the processes, and the backend that knows them. */
#include <stdio.h>
#include <stdlib.h>

#include "mpi.h"

void mpi_sentence(int error, char *text, size_t size)
{
    char own[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(error, own, &n);
    snprintf(text, size, "%s", own);
}

static adj_status open_backend(const adj_backend_opts *opts, void **backend)
{
    const union {
        const adj_backend *backend;
        void *group;
    } self = {opts->self};
    *backend = self.group;
    return ADJ_OK;
}

static void close_backend(void *backend) { (void)backend; }

static const adj_kernel *const kernels[] = {&mpi_all_reduce, NULL};

static void list_backends(adj_mpi *g)
{
    g->backend = (adj_backend){.version = ADJ_VERSION,
                               .name = "mpi",
                               .open = open_backend,
                               .close = close_backend,
                               .kernels = kernels};
    g->list[0] = &g->backend;
    for (int i = 0; i < MAX_BUILT_IN && adj_backends[i] != NULL; i++)
        g->list[i + 1] = adj_backends[i];
}

static adj_status fail(adj_error *error, const char *what, int code)
{
    char text[200];
    mpi_sentence(code, text, sizeof text);
    return adj_error_set(error, ADJ_EBACKEND, "adj_mpi_open: %s: %s", what, text);
}

/* Errors come back as codes from here on; by default MPI ends the program. */
static adj_status join(adj_mpi *g, adj_error *error)
{
    int is_started = 0, threads = 0;
    int code = MPI_Initialized(&is_started);
    if (code == MPI_SUCCESS && !is_started) {
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads);
        g->has_started_mpi = code == MPI_SUCCESS;
    }
    if (code != MPI_SUCCESS)
        return fail(error, "MPI cannot be started", code);
    code = MPI_Comm_dup(MPI_COMM_WORLD, &g->all);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(g->all, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(g->all, &g->rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(g->all, &g->size);
    return code == MPI_SUCCESS ? ADJ_OK : fail(error, "the processes cannot be joined", code);
}

adj_status adj_mpi_open(adj_mpi **out, adj_error *error)
{
    if (out == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_mpi_open: out is NULL");
    adj_mpi *g = *out = calloc(1, sizeof *g);
    if (g == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "adj_mpi_open: out of memory");
    g->all = MPI_COMM_NULL;
    list_backends(g);
    adj_status status = join(g, error);
    if (status != ADJ_OK) {
        adj_mpi_close(g);
        *out = NULL;
    }
    return status;
}

void adj_mpi_close(adj_mpi *g)
{
    if (g == NULL)
        return;
    if (g->all != MPI_COMM_NULL)
        MPI_Comm_free(&g->all);
    if (g->has_started_mpi)
        MPI_Finalize();
    free(g);
}

int adj_mpi_rank(const adj_mpi *g) { return g != NULL ? g->rank : 0; }

int adj_mpi_size(const adj_mpi *g) { return g != NULL ? g->size : 1; }

const adj_backend *const *adj_mpi_backends(const adj_mpi *g) { return g != NULL ? g->list : NULL; }

static adj_status send_value(adj_mpi *g, adj_exec *e, const adj_node *leaf, void *value,
                             adj_error *error)
{
    const size_t bytes = adj_type_bytes(adj_node_type(leaf));
    adj_status status = adj_get(e, leaf, value, bytes);
    for (size_t at = 0; at < bytes && status == ADJ_OK; at += (size_t)1 << 30) {
        const size_t n = bytes - at < (size_t)1 << 30 ? bytes - at : (size_t)1 << 30;
        const int code = MPI_Bcast((char *)value + at, (int)n, MPI_BYTE, 0, g->all);
        if (code != MPI_SUCCESS) {
            char text[200];
            mpi_sentence(code, text, sizeof text);
            return adj_error_set(error, ADJ_EBACKEND, "adj_mpi_broadcast: %s: %s",
                                 adj_node_name(leaf), text);
        }
    }
    if (status == ADJ_OK)
        status = adj_set(e, leaf, value, bytes);
    return status == ADJ_OK ? ADJ_OK : adj_error_set(error, status, "%s", adj_exec_message(e));
}

adj_status adj_mpi_broadcast(adj_mpi *g, adj_exec *e, adj_error *error)
{
    if (g == NULL || e == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_mpi_broadcast: %s is NULL",
                             g == NULL ? "group" : "e");
    size_t most = 1;
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        const size_t bytes = adj_type_bytes(adj_node_type(adj_exec_param_at(e, i)));
        most = bytes > most ? bytes : most;
    }
    void *value = malloc(most);
    if (value == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "adj_mpi_broadcast: out of memory");
    adj_status status = ADJ_OK;
    for (int i = 0; i < adj_exec_param_count(e) && status == ADJ_OK; i++)
        status = send_value(g, e, adj_exec_param_at(e, i), value, error);
    free(value);
    return status;
}
