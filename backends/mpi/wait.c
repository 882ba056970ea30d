/* wait.c - see mpi.h.
 *
 * A process that waits for long asks all others whether they are alive. A process that waits as
 * well, or runs steps, answers; one that was stopped or hangs does not. So the error names the
 * silent process, not the one that this process waits for, which may itself wait for a third. */
#include <sched.h>
#include <stdio.h>

#include "base/c_locale.h"
#include "base/clock.h"
#include "mpi.h"

enum { TAG_QUESTION = 30001, TAG_ANSWER = 30002 };
static const double look_every = 0.05; /* seconds */

/* Receives a message of that tag; returns its sender, or NO_RANK if there is none. */
static int take(const adj_mpi *g, int tag)
{
    MPI_Status status;
    int is_there = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, g->all, &is_there, &status) != MPI_SUCCESS || !is_there)
        return NO_RANK;
    const int from = status.MPI_SOURCE;
    return MPI_Recv(NULL, 0, MPI_BYTE, from, tag, g->all, MPI_STATUS_IGNORE) == MPI_SUCCESS
               ? from
               : NO_RANK;
}

/* Sends an empty message without blocking. */
static void send(const adj_mpi *g, int to, int tag)
{
    MPI_Request request;
    if (MPI_Isend(NULL, 0, MPI_BYTE, to, tag, g->all, &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
}

void mpi_answer(adj_mpi *g)
{
    const double now = seconds_now();
    if (now - g->answered < look_every)
        return;
    g->answered = now;
    for (int from; (from = take(g, TAG_QUESTION)) != NO_RANK;)
        send(g, from, TAG_ANSWER);
    for (int from; (from = take(g, TAG_ANSWER)) != NO_RANK;)
        g->has_answered[from] = 1;
}

static void ask_all(adj_mpi *g)
{
    for (int i = 0; i < g->size; i++) {
        g->has_answered[i] = i == g->rank;
        if (i != g->rank)
            send(g, i, TAG_QUESTION);
    }
}

static int find_silent(const adj_mpi *g)
{
    for (int i = 0; i < g->size; i++)
        if (!g->has_answered[i])
            return i;
    return NO_RANK;
}

/* Names all silent processes: one may be writing a file while another has died, which others
 * cannot distinguish. */
static void say_silent(const adj_mpi *g, char *text)
{
    char list[64] = "";
    size_t used = 0;
    int n = 0;
    for (int i = 0; i < g->size; i++) {
        if (g->has_answered[i])
            continue;
        if (used < sizeof list - 16) /* further ones are not listed */
            used += (size_t)snprintf(list + used, sizeof list - used, n > 0 ? ", %d" : "%d", i);
        n++;
    }
    c_snprintf(text, ADJ_WHY,
               n > 1 ? "ranks %s of %d have not answered for %.3g s"
                     : "rank %s of %d has not answered for %.3g s",
               list, g->size, g->patience);
}

/* Asks the other processes and collects answers. since: when this wait began, or when the last
 * questions were answered. *asked: when they were asked; 0 if not yet. ADJ_EBACKEND if a process
 * is lost. */
static adj_status look_around(adj_mpi *g, double *since, double *asked, char *text)
{
    const double now = seconds_now();
    mpi_answer(g);
    if (*asked == 0 && now - *since > g->patience / 2) {
        ask_all(g);
        *asked = now;
    }
    /* The time limit starts with the questions, since this process itself may have been
     * suspended before. */
    if (*asked == 0 || now - *asked < g->patience / 2)
        return ADJ_OK;
    g->lost = find_silent(g);
    if (g->lost != NO_RANK) {
        say_silent(g, text);
        return ADJ_EBACKEND;
    }
    *since = now;
    *asked = 0;
    return ADJ_OK;
}

static adj_status failed(int code, char *text)
{
    mpi_sentence(code, text, ADJ_WHY);
    return ADJ_EBACKEND;
}

adj_status mpi_wait(adj_mpi *g, mpi_test *test, void *user, char *text)
{
    enum { SPIN = 200 };
    const double began = seconds_now();
    double since = began, asked = 0;
    int code = MPI_SUCCESS;
    adj_status status = ADJ_OK;
    for (int i = 0; !test(user, &code) && status == ADJ_OK; i++) {
        if (code == MPI_SUCCESS)
            code = reductions_go_on(g);
        if (code != MPI_SUCCESS)
            break;
        if (i < SPIN)
            continue;
        sched_yield(); /* there may be more processes than processors */
        status = look_around(g, &since, &asked, text);
    }
    g->waited += seconds_now() - began;
    return code != MPI_SUCCESS ? failed(code, text) : status;
}

static int is_done(void *request, int *code)
{
    MPI_Status status;
    int done = 0;
    *code = MPI_Test(request, &done, &status);
    return *code == MPI_SUCCESS && done;
}

adj_status mpi_wait_request(adj_mpi *g, MPI_Request *request, char *text)
{
    return mpi_wait(g, is_done, request, text);
}
