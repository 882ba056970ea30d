/* reduction.c - sums of vectors over all processes, in a fixed order: a tree that adds adjacent
 * ranks first, then adjacent pairs, and so on, in every process. MPI_Allreduce guarantees the
 * same bits for the same processes, but no order, so the bits may differ for fewer processes.
 *
 * With a power of two processes, each exchanges with the rank that differs in the lowest bit,
 * then in the next. Short vectors are exchanged whole (recursive doubling). For long ones, each
 * rank sends the half that the other one sums, then a quarter, and so on, and the sums return
 * the same way: 2 (P - 1) / P times the vector passes each link, the least possible (R.
 * Rabenseifner, Optimization of collective reduction operations, ICCS 2004). With other numbers
 * of processes, sums go up the tree to rank 0, and down again.
 *
 * A schedule is a list of stages; a stage sends a message, receives one, and adds it or replaces
 * by it. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "mpi.h"

enum { MAX_DEPTH = 32, MAX_STAGES = 4 * MAX_DEPTH, SHORT = 2048 /* elements */, TAGS = 30000 };

typedef struct {
    int to, from; /* ranks; NO_RANK for no message */
    int64_t out, n_out, in, n_in;
    int adds; /* adds the received message; otherwise replaces by it */
} stage;

struct reduction {
    adj_mpi *group;
    int64_t n;
    int is_double;
    int n_stage, at; /* stages; the one in progress */
    stage stage[MAX_STAGES];
    char *received;     /* received values to be added */
    char *data;         /* the vector being reduced; NULL if none */
    int tag, n_request; /* tag of the stage; its requests that are not completed */
    MPI_Request request[2];
    reduction *next; /* in group->flying */
};

/* ---- schedules ---- */

static void add_stage(reduction *r, stage s)
{
    if (s.n_out == 0)
        s.to = NO_RANK;
    if (s.n_in == 0)
        s.from = NO_RANK;
    r->stage[r->n_stage++] = s;
}

static void exchange_whole(reduction *r)
{
    for (int bit = 1; bit < r->group->size; bit *= 2) {
        const int other = r->group->rank ^ bit;
        add_stage(r, (stage){other, other, 0, r->n, 0, r->n, 1});
    }
}

static void exchange_halves(reduction *r)
{
    const int rank = r->group->rank, size = r->group->size;
    int64_t first[MAX_DEPTH] = {0}, end[MAX_DEPTH] = {r->n};
    int depth = 0;
    for (int bit = 1; bit < size && depth + 1 < MAX_DEPTH; bit *= 2, depth++) {
        const int64_t a = first[depth], b = end[depth], half = a + (b - a) / 2;
        const int keeps_upper = (rank & bit) != 0;
        first[depth + 1] = keeps_upper ? half : a;
        end[depth + 1] = keeps_upper ? b : half;
        const int64_t out = keeps_upper ? a : half, n_out = keeps_upper ? half - a : b - half;
        add_stage(r, (stage){rank ^ bit, rank ^ bit, out, n_out, first[depth + 1],
                             end[depth + 1] - first[depth + 1], 1});
    }
    for (int bit = size / 2; bit > 0 && depth > 0; bit /= 2, depth--) {
        const int64_t a = first[depth], b = end[depth];
        const int is_upper = (rank & bit) != 0;
        const int64_t in = is_upper ? first[depth - 1] : b;
        const int64_t n_in = is_upper ? a - in : end[depth - 1] - b;
        add_stage(r, (stage){rank ^ bit, rank ^ bit, a, b - a, in, n_in, 0});
    }
}

static void go_up_and_down(reduction *r)
{
    const int rank = r->group->rank, size = r->group->size;
    int bit = 1;
    for (; bit < size && (rank & bit) == 0; bit *= 2)
        if (rank + bit < size)
            add_stage(r, (stage){NO_RANK, rank + bit, 0, 0, 0, r->n, 1});
    if (bit < size) {
        add_stage(r, (stage){rank - bit, NO_RANK, 0, r->n, 0, 0, 0});
        add_stage(r, (stage){NO_RANK, rank - bit, 0, 0, 0, r->n, 0});
    }
    for (bit /= 2; bit > 0; bit /= 2)
        if (rank + bit < size)
            add_stage(r, (stage){rank + bit, NO_RANK, 0, r->n, 0, 0, 0});
}

static size_t elem_bytes(const reduction *r)
{
    return r->is_double ? sizeof(double) : sizeof(float);
}

static void drop_reduction(reduction *r)
{
    free(r->received);
    free(r);
}

reduction *reduction_new(adj_mpi *g, int64_t n, int is_double)
{
    reduction *r = calloc(1, sizeof *r);
    int64_t received = 0;
    if (r == NULL)
        return NULL;
    r->group = g;
    r->n = n;
    r->is_double = is_double;
    if ((g->size & (g->size - 1)) != 0)
        go_up_and_down(r);
    else if (n < SHORT)
        exchange_whole(r);
    else
        exchange_halves(r);
    for (int i = 0; i < r->n_stage; i++) {
        const stage *at = &r->stage[i];
        if (at->adds && at->n_in > received)
            received = at->n_in;
    }
    r->received = malloc((size_t)received * elem_bytes(r) + 1);
    if (r->received == NULL) {
        drop_reduction(r);
        return NULL;
    }
    return r;
}

/* Frees the reduction. A pending one cannot be canceled; its process is about to end. */
void reduction_free(reduction *r)
{
    if (r == NULL)
        return;
    for (reduction **at = &r->group->flying; *at != NULL;)
        if (*at == r)
            *at = r->next;
        else
            at = &(*at)->next;
    drop_reduction(r);
}

/* ---- progress ---- */

static int post_stage(reduction *r)
{
    const stage *s = &r->stage[r->at];
    MPI_Datatype type = r->is_double ? MPI_DOUBLE : MPI_FLOAT;
    int code = MPI_SUCCESS;
    r->n_request = 0;
    if (s->from != NO_RANK)
        code =
            MPI_Irecv(s->adds ? r->received : r->data + (size_t)s->in * elem_bytes(r), (int)s->n_in,
                      type, s->from, r->tag, r->group->all, &r->request[r->n_request++]);
    if (s->to != NO_RANK && code == MPI_SUCCESS)
        code = MPI_Isend(r->data + (size_t)s->out * elem_bytes(r), (int)s->n_out, type, s->to,
                         r->tag, r->group->all, &r->request[r->n_request++]);
    return code;
}

static void add_doubles(double *sum, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void add_floats(float *sum, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

/* Adds the received message; one that replaces was received in place. */
static void take_message(const reduction *r, const stage *s)
{
    char *in = r->data + (size_t)s->in * elem_bytes(r);
    const void *message = r->received;
    if (s->adds && r->is_double)
        add_doubles((double *)(void *)in, message, s->n_in);
    else if (s->adds)
        add_floats((float *)(void *)in, message, s->n_in);
}

static int is_over(const reduction *r) { return r->at >= r->n_stage; }

/* Starts the clock of pending reductions, which counts overlapping ones once. */
static void depart(adj_mpi *g)
{
    if (g->n_traveling++ == 0)
        g->travels_since = seconds_now();
}

static void arrive(adj_mpi *g)
{
    if (--g->n_traveling == 0)
        g->traveled += seconds_now() - g->travels_since;
}

/* Advances by all completed stages. */
static int go_on(reduction *r)
{
    int code = MPI_SUCCESS;
    while (!is_over(r) && code == MPI_SUCCESS) {
        MPI_Status ignored[2]; /* MPICH's header triggers warnings for MPI_STATUSES_IGNORE */
        int done = 1;
        if (r->n_request > 0)
            code = MPI_Testall(r->n_request, r->request, &done, ignored);
        if (code != MPI_SUCCESS || !done)
            break;
        take_message(r, &r->stage[r->at]);
        r->n_request = 0;
        if (++r->at < r->n_stage)
            code = post_stage(r);
        else
            arrive(r->group);
    }
    return code;
}

int reductions_go_on(adj_mpi *g)
{
    int code = MPI_SUCCESS;
    for (reduction *r = g->flying; r != NULL && code == MPI_SUCCESS; r = r->next)
        code = go_on(r);
    return code;
}

adj_status reduction_start(reduction *r, void *v, char *text)
{
    reduction **end = &r->group->flying;
    if (r->data != NULL) {
        snprintf(text, ADJ_WHY, "an earlier run failed and its reductions are still in progress");
        return ADJ_EBACKEND;
    }
    while (*end != NULL)
        end = &(*end)->next;
    *end = r;
    r->next = NULL;
    r->data = v;
    r->at = 0;
    r->tag = (int)(r->group->started++ % TAGS);
    int code = MPI_SUCCESS;
    if (!is_over(r)) {
        depart(r->group);
        code = post_stage(r);
    }
    if (code == MPI_SUCCESS)
        code = go_on(r);
    if (code != MPI_SUCCESS) {
        mpi_sentence(code, text, ADJ_WHY);
        return ADJ_EBACKEND;
    }
    return ADJ_OK;
}

static int has_arrived(void *user, int *code)
{
    *code = MPI_SUCCESS;
    return is_over(user);
}

adj_status reduction_finish(reduction *r, char *text)
{
    reduction **at = &r->group->flying;
    adj_status status = mpi_wait(r->group, has_arrived, r, text);
    if (status != ADJ_OK)
        return status;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    r->data = NULL;
    return ADJ_OK;
}
