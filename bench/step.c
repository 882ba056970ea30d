/* step.c - how long one training step of a model takes: adj_set of a batch, adj_run, adj_get of the
 * loss.
 *
 *   build/bench/step [MODEL [BATCH [BACKEND [THREADS]]]] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "adjoint_nn.h"

enum { MOST_STEPS = 400, WARM_UP = 3 };
static const double most_seconds = 8;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int failed(const char *why) { return fprintf(stderr, "step: %s\n", why), 1; }

/* The loss's executor with everything set but the images; NULL after saying why. */
static adj_exec *training_step(adj_graph *g, adj_node *logits, const char *backend, int threads)
{
    int64_t batch = logits != NULL ? adj_node_type(logits).shape.dim[0] : 1;
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_label(adj_loss_softmax(logits, labels), "loss");
    adj_optimiser_opts momentum = {.momentum = 0.9};
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &loss,
                       .updates = adj_training_updates(loss, lr, &momentum),
                       .backend = backend,
                       .threads = threads};
    adj_exec *e = NULL;
    int32_t *label = calloc((size_t)batch, sizeof *label);
    float rate = 0.01F;
    int ready = label != NULL && adj_exec_new(g, &o, &e) == ADJ_OK &&
                adj_set(e, labels, label, (size_t)batch * sizeof *label) == ADJ_OK &&
                adj_set(e, lr, &rate, sizeof rate) == ADJ_OK;
    free(label);
    if (ready)
        return e;
    failed(adj_exec_message(e));
    adj_exec_free(e);
    return NULL;
}

/* Fills in the seconds of each step, sorted; returns how many there are, 0 after saying why. */
static int time_steps(adj_exec *e, adj_node *images, adj_node *loss, double seconds[MOST_STEPS])
{
    size_t elems = (size_t)adj_shape_elems(adj_node_type(images).shape);
    float *x = malloc(elems * sizeof *x), value;
    for (size_t i = 0; x != NULL && i < elems; i++)
        x[i] = (float)(i * 7919 % 1000) / 1000;
    double end = now() + most_seconds;
    int n = -WARM_UP, ok = x != NULL;
    for (; ok && n < MOST_STEPS && (n < 1 || now() < end); n++) {
        double start = now();
        ok = adj_set(e, images, x, elems * sizeof *x) == ADJ_OK && adj_run(e) == ADJ_OK &&
             adj_get(e, loss, &value, sizeof value) == ADJ_OK;
        if (n >= 0)
            seconds[n] = now() - start;
    }
    free(x);
    if (!ok)
        return failed(adj_exec_message(e)), 0;
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    return n;
}

/* The argument as a number of at least least; -1 if it is none. */
static int number(const char *text, long least)
{
    char *end;
    long v = strtol(text, &end, 10);
    return *text != '\0' && *end == '\0' && v >= least && v < 1 << 20 ? (int)v : -1;
}

int main(int argc, char **argv)
{
    static double seconds[MOST_STEPS];
    const char *name = argc > 1 ? argv[1] : "lenet", *backend = argc > 3 ? argv[3] : NULL;
    adj_model_opts o = {.batch = argc > 2 ? number(argv[2], 1) : 64, .training = 1};
    const adj_model *model = adj_model_find(name, &o);
    int threads = argc > 4 ? number(argv[4], 0) : 0;
    if (model == NULL || o.batch < 1 || threads < 0)
        return failed("usage: step [MODEL [BATCH [BACKEND [THREADS]]]]");
    adj_graph *g = adj_graph_new();
    adj_node *logits = adj_model_logits(g, model, &o);
    adj_exec *e = training_step(g, logits, backend, threads);
    int n = e != NULL ? time_steps(e, adj_find(g, "images"), adj_find(g, "loss"), seconds) : 0;
    if (n > 0) {
        adj_exec_info info = adj_exec_stats(e);
        printf("%s, batch %d: median %.2f ms, minimum %.2f ms, %.0f images/s over %d steps\n", name,
               (int)o.batch, 1e3 * seconds[n / 2], 1e3 * seconds[0],
               (double)o.batch / seconds[n / 2], n);
        printf("  arena %zu bytes (%zu live at most), kept %zu bytes; %d steps in the plan, %d "
               "reorders, %d on naive; planned in %.0f ms\n",
               info.arena_bytes, info.live_bytes, info.storage_bytes, info.steps, info.reorders,
               info.naive_steps, 1e3 * info.plan_seconds);
    }
    adj_exec_free(e);
    adj_graph_free(g);
    return n == 0;
}
