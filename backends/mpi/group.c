/* group.c - see adjoint_mpi.h: the group of processes and its backend. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranks_meter.h"
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

static void progress(void *backend)
{
    adj_mpi *g = backend;
    if (g->size == 1)
        return;
    (void)reductions_go_on(g); /* the next wait reports an error again */
    mpi_answer(g);
}

static const adj_kernel *const kernels[] = {&mpi_all_reduce, &mpi_all_reduce_start,
                                            &mpi_all_reduce_wait, NULL};

static void list_backends(adj_mpi *g)
{
    g->backend = (adj_backend){.version = ADJ_VERSION,
                               .name = "mpi",
                               .open = open_backend,
                               .close = close_backend,
                               .kernels = kernels,
                               .progress = progress};
    g->list[0] = &g->backend;
    for (int i = 0; i < MAX_BUILT_IN && adj_backends[i] != NULL; i++)
        g->list[i + 1] = adj_backends[i];
}

static double waited(void *group) { return ((const adj_mpi *)group)->waited; }
static double traveled(void *group) { return ((const adj_mpi *)group)->traveled; }
static const adj_ranks_meter meter = {waited, traveled, mpi_measure_link};

static adj_status fail_call(adj_error *error, const char *failure, int code)
{
    char text[200];
    mpi_sentence(code, text, sizeof text);
    return adj_error_set(error, ADJ_EBACKEND, "adj_mpi_open: %s: %s", failure, text);
}

/* Fails if this process was started by another MPI's mpirun. Such processes do not see each
 * other: each would train alone and write the same files. */
static adj_status check_size(const adj_mpi *g, adj_error *error)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    char own[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && g->size == 1; i++) {
        const char *text = getenv(names[i]);
        const long started = text != NULL ? strtol(text, NULL, 10) : 1;
        if (started < 2 || MPI_Get_library_version(own, &n) != MPI_SUCCESS)
            continue;
        own[strcspn(own, ",\n")] = '\0';
        return adj_error_set(error, ADJ_EBACKEND,
                             "adj_mpi_open: mpirun started %ld processes, but belongs to another "
                             "MPI than this library (%.80s)",
                             started, own);
    }
    return ADJ_OK;
}

/* Joins the processes; from here on errors are returned as codes. By default MPI ends the
 * program. */
static adj_status join(adj_mpi *g, adj_error *error)
{
    int is_started = 0, threads = 0;
    int code = MPI_Initialized(&is_started);
    if (code == MPI_SUCCESS && !is_started) {
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads);
        g->has_started_mpi = code == MPI_SUCCESS;
    }
    if (code != MPI_SUCCESS)
        return fail_call(error, "MPI cannot be started", code);
    code = MPI_Comm_dup(MPI_COMM_WORLD, &g->all);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(g->all, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(g->all, &g->rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(g->all, &g->size);
    if (code != MPI_SUCCESS)
        return fail_call(error, "the processes cannot be joined", code);
    adj_status status = check_size(g, error);
    if (status != ADJ_OK)
        return status;
    g->has_answered = calloc((size_t)g->size, 1);
    if (g->has_answered == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "adj_mpi_open: out of memory");
    g->ranks = (adj_ranks){.rank = g->rank,
                           .size = g->size,
                           .backends = g->list,
                           .all_gather = mpi_all_gather,
                           .broadcast = mpi_broadcast,
                           .answer = progress,
                           .group = g,
                           .meter = &meter};
    return ADJ_OK;
}

adj_status adj_mpi_open(adj_mpi **out, adj_error *error)
{
    if (out == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_mpi_open: out is NULL");
    adj_mpi *g = *out = calloc(1, sizeof *g);
    if (g == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "adj_mpi_open: out of memory");
    g->all = MPI_COMM_NULL;
    g->patience = 20;
    g->lost = NO_RANK;
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
    free(g->has_answered);
    free(g);
}

void adj_mpi_abort(adj_mpi *g, int exit_status)
{
    /* Not g->all: MPICH 4.2's mpirun sometimes exits with 0 when a duplicate is aborted. */
    (void)g;
    MPI_Abort(MPI_COMM_WORLD, exit_status); /* does not return */
}

void adj_mpi_set_patience(adj_mpi *g, double seconds)
{
    if (g != NULL && seconds > 0)
        g->patience = seconds;
}

int adj_mpi_lost_rank(const adj_mpi *g) { return g != NULL ? g->lost : NO_RANK; }

const adj_ranks *adj_mpi_ranks(const adj_mpi *g) { return g != NULL ? &g->ranks : NULL; }
