/* mpirun.c - see mpirun.h. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adjoint_mpi.h"
#include "command.h"
#include "mpirun.h"

#define LIBRARY "libadjoint_mpi.so.0.3"

/* ---- what mpirun says, in variables of Open MPI, of PMI (MPICH and others), of PMIx ---- */

static int first_number(const char *const names[])
{
    for (int i = 0; names[i] != NULL; i++) {
        const char *text = getenv(names[i]);
        if (text != NULL && text[0] >= '0' && text[0] <= '9')
            return (int)strtol(text, NULL, 10);
    }
    return -1;
}

int mpirun_rank_here(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", NULL};
    const int rank = first_number(names);
    return rank > 0 ? rank : 0;
}

static int is_started_together(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", NULL};
    return first_number(names) >= 0;
}

/* A process bound to some processors uses all of them. */
int mpirun_threads(int processors)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
    const int here = first_number(names);
    const int is_bound = processors < (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (here < 2 || is_bound)
        return processors;
    return processors > here ? processors / here : 1;
}

/* ---- the library ---- */

/* Opens the library beside the tool, in ../lib, or on the system's search path. */
static void *open_library(void)
{
    static const char *const places[] = {"/", "/../lib/"};
    char tool[PATH_MAX], path[PATH_MAX + 64];
    const ssize_t n = readlink("/proc/self/exe", tool, sizeof tool - 1);
    void *library = NULL;
    tool[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(tool, '/');
    for (int i = 0; i < 2 && slash != NULL && library == NULL; i++) {
        *slash = '\0';
        snprintf(path, sizeof path, "%s%s" LIBRARY, tool, places[i]);
        library = access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    }
    return library != NULL ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

typedef adj_status open_function(adj_mpi **out, adj_error *error);
typedef const adj_ranks *ranks_function(const adj_mpi *group);
typedef void patience_function(adj_mpi *group, double seconds);

/* Stores the library's function of that name in *to; returns 0 if there is none. */
static int find(void *library, const char *name, void *to, size_t size)
{
    void *function = dlsym(library, name);
    memcpy(to, &function, size);
    return function != NULL;
}

static int join(double patience, mpirun_group *g)
{
    open_function *open;
    ranks_function *ranks;
    patience_function *set_patience;
    adj_error error = {0};
    adj_mpi *group = NULL;
    if (!find(g->library, "adj_mpi_open", &open, sizeof open) ||
        !find(g->library, "adj_mpi_ranks", &ranks, sizeof ranks) ||
        !find(g->library, "adj_mpi_set_patience", &set_patience, sizeof set_patience) ||
        !find(g->library, "adj_mpi_abort", &g->abort, sizeof g->abort) ||
        !find(g->library, "adj_mpi_lost_rank", &g->lost_rank, sizeof g->lost_rank) ||
        !find(g->library, "adj_mpi_close", &g->close, sizeof g->close))
        return complain(EXIT_FAILED, "%s has a different version", LIBRARY);
    if (open(&group, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s", error.message);
    g->group = group;
    g->ranks = ranks(group);
    if (patience > 0)
        set_patience(group, patience);
    return CONTINUE;
}

int mpirun_join(double patience, mpirun_group *g)
{
    *g = (mpirun_group){0};
    if (!is_started_together())
        return patience > 0 ? complain(EXIT_USAGE, "--parallel timeout requires mpirun") : CONTINUE;
    g->library = open_library();
    if (g->library == NULL)
        return complain(EXIT_FAILED,
                        "started by mpirun, but " LIBRARY
                        " cannot be loaded: %s (build it with ninja mpi)",
                        dlerror());
    int status = join(patience, g);
    if (status != CONTINUE)
        return status;
    if (ranks_rank(g->ranks) > 0 && freopen("/dev/null", "w", stdout) == NULL)
        return complain(EXIT_FAILED, "/dev/null cannot be opened");
    return CONTINUE;
}

int mpirun_leave(mpirun_group *g, int status, int agreed)
{
    if (g->group == NULL)
        return status;
    if (ranks_size(g->ranks) > 1 && g->lost_rank(g->group) >= 0)
        status = EXIT_LOST;
    if (ranks_size(g->ranks) > 1 && status != EXIT_OK && !agreed) {
        fflush(stdout);
        /* MPICH's mpirun drops unread output of processes that it ends. The pause is shorter than
         * other ranks wait before they print (say.c). */
        usleep(200000);
        g->abort(g->group, status);
    }
    g->close(g->group); /* the library stays: MPI's own threads may be in it until the end */
    *g = (mpirun_group){0};
    return status;
}
