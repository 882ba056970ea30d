/* workers.c - see workers.h. */
#include <stdlib.h>

#include "workers.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int workers_for(int64_t images, const plan_opts *plan)
{
    const int threads = plan->threads > 0 ? plan->threads : adj_default_threads();
    return images / WORKER_BATCH >= threads ? threads : 1;
}

adj_status workers_open(workers *w, network_kind kind, const adj_net *net, int n, int64_t part,
                        int64_t runs, const plan_opts *plan, adj_error *error)
{
    plan_opts p = *plan;
    adj_status status = ADJ_OK;

    *w = (workers){.n = n, .part = part};
    w->each = calloc((size_t)w->n, sizeof *w->each);
    w->exec = calloc((size_t)w->n, sizeof(adj_exec *));
    if (w->each == NULL || w->exec == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
    if (w->n > 1)
        p.threads = 1;
    for (int i = 0; i < w->n && status == ADJ_OK; i++) {
        status = network_open(&w->each[i], kind, net, w->part, runs, &p, NULL, error);
        w->exec[i] = w->each[i].exec;
        if (status == ADJ_OK && p.tune) {
            p.tune = 0;
            p.selection = adj_exec_selection(w->exec[0]);
        }
    }
    return status;
}

void workers_close(workers *w)
{
    for (int i = 0; w->each != NULL && i < w->n; i++)
        network_close(&w->each[i]);
    free(w->each);
    free(w->exec);
    *w = (workers){0};
}

int64_t worker_count(const workers *w, int i, int64_t count)
{
    const int64_t left = count - i * w->part;
    return left > 0 ? smaller(left, w->part) : 0;
}

/* The part of worker i. */
static adj_loader_batch part_of(const workers *w, int i, const adj_loader_batch *b)
{
    return (adj_loader_batch){.x = b->x + i * adj_shape_elems(w->each[i].shape),
                              .labels = b->labels != NULL ? b->labels + i * w->part : NULL};
}

adj_status workers_run(workers *w, const adj_loader_batch *b, int64_t count, adj_error *error)
{
    adj_status status = ADJ_OK;
    int n = 0;
    for (; n < w->n && worker_count(w, n, count) > 0 && status == ADJ_OK; n++) {
        const adj_loader_batch part = part_of(w, n, b);
        status = network_set(&w->each[n], &part, NULL, error);
    }
    if (status == ADJ_OK)
        status = w->n > 1 ? adj_run_each(n, w->exec) : adj_run(w->exec[0]);
    for (int i = 0; i < n; i++)
        status = network_read(&w->each[i], status, error);
    return status;
}
