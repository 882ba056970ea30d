/* workers.c - networks that share out a batch: see predictor.h. */
#include <stdlib.h>

#include "base/limits.h"
#include "exec/internal.h"
#include "predictor.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int workers_for(int64_t images, const plan_opts *plan)
{
    const int threads = plan->exec.threads > 0 ? plan->exec.threads : adj_default_threads();
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
    w->images = calloc((size_t)w->n, sizeof(float *));
    if (w->each == NULL || w->exec == NULL || w->images == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
    if (w->n > 1)
        p.exec.threads = 1;
    for (int i = 0; i < w->n && status == ADJ_OK; i++) {
        status = network_open(&w->each[i], kind, net, w->part, runs, &p, NULL, error);
        w->exec[i] = w->each[i].exec;
        if (status == ADJ_OK && p.exec.tune) {
            p.exec.tune = 0;
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
    free(w->images);
    *w = (workers){0};
}

int64_t worker_count(const workers *w, int i, int64_t count)
{
    const int64_t left = count - i * w->part;
    return left > 0 ? smaller(left, w->part) : 0;
}

/* Gives each of n networks its part of the batch. */
static adj_status set_parts(workers *w, int n, fill_images fill, const void *source,
                            const adj_loader_batch *b, int64_t count, adj_error *error)
{
    adj_status status = ADJ_OK;
    float **x = w->images;
    for (int i = 0; i < n && status == ADJ_OK; i++)
        status = network_open_batch(&w->each[i], b, i * w->part, &x[i], error);
    if (status != ADJ_OK)
        return status;
#pragma omp parallel for num_threads(n) schedule(static, 1)
    for (int i = 0; i < n; i++)
        fill(source, i * w->part, worker_count(w, i, count), x[i]);
    return ADJ_OK;
}

/* Reports the message of the first network whose run failed. */
static adj_status report_failure(const workers *w, int n, adj_status status, adj_error *error)
{
    for (int i = 0; i < n; i++) {
        char message[ADJ_MESSAGE];
        snprintf(message, sizeof message, "%s", adj_exec_message(w->exec[i]));
        if (message[0] != '\0' && /* adj_data replaces it */
            adj_data(w->exec[i], network_scores(&w->each[i])) == NULL)
            return adj_error_set(error, status, "%s", message);
    }
    return adj_error_set(error, status, "%s", adj_exec_message(w->exec[0]));
}

adj_status workers_run(workers *w, fill_images fill, const void *source, const adj_loader_batch *b,
                       int64_t count, adj_error *error)
{
    const int n = (int)smaller(w->n, (count + w->part - 1) / w->part);
    adj_status status = set_parts(w, n, fill, source, b, count, error);
    if (status != ADJ_OK)
        return status;
    status = w->n > 1 ? adj_run_each(n, w->exec) : adj_run(w->exec[0]);
    if (status != ADJ_OK)
        return report_failure(w, n, status, error);
    for (int i = 0; i < n && status == ADJ_OK; i++)
        status = network_read(&w->each[i], status, error);
    return status;
}
