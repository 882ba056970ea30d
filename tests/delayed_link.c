/* delayed_link.c - part of the communication that a training step hides behind its backward pass,
 * over a link that this program makes up: a backend whose reductions are done so many bytes per
 * second later, one after the other, and take no processor.
 *
 *     build/tests/delayed_link MODEL BATCH THREADS PART...
 *
 * PART: what all reductions take, as a part of the step without them. Prints a line for each: the
 * step alone, communication, the step with it, and the part of the communication that is hidden, 1
 * - (what waits took) / (what it takes altogether). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adjoint_nn.h"
#include "base/clock.h"
#include "graph/op.h"
#include "tests/reference.h"

enum { RUNS = 15, WARM_UP = 3 };

/* ---- the link ---- */

static struct {
    double seconds_per_byte, free_at; /* when the last reduction that was started is done */
    double waited, busy;              /* seconds, of a run */
    struct {
        const void *value;
        double done_at;
    } flight[4096];
    int n;
} wire;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_op *op = g->node[0]->op;
    (void)backend;
    if (g->n_node > 1 || candidate > 0 ||
        (op != &adj_op_all_reduce_start && op != &adj_op_all_reduce_wait))
        return ADJ_ENOKERNEL;
    p->alias[0] = (adj_alias){0, 1};
    return ADJ_OK;
}

static void sleep_until(double at)
{
    const double left = at - seconds_now();
    if (left > 0)
        nanosleep(&(struct timespec){(time_t)left, (long)((left - (double)(time_t)left) * 1e9)},
                  NULL);
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const size_t bytes = adj_type_bytes(n->type);
    const double now = seconds_now(), takes = (double)bytes * wire.seconds_per_byte;
    if (c->out[0] != c->in[0])
        memcpy(c->out[0], c->in[0], bytes);
    if (n->op == &adj_op_all_reduce_start) {
        wire.free_at = (wire.free_at > now ? wire.free_at : now) + takes;
        wire.flight[wire.n].value = c->out[0];
        wire.flight[wire.n++].done_at = wire.free_at;
        wire.busy += takes;
        return ADJ_OK;
    }
    for (int i = 0; i < wire.n; i++)
        if (wire.flight[i].value == c->in[0])
            sleep_until(wire.flight[i].done_at);
    wire.waited += seconds_now() - now;
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "link", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend link_backend = {.version = ADJ_VERSION,
                                         .name = "link",
                                         .open = open_nothing,
                                         .close = close_nothing,
                                         .kernels = kernels};

/* ---- a training step ---- */

typedef struct {
    adj_graph *g;
    adj_exec *e;
} training;

static void fill(adj_exec *e, const adj_node *input)
{
    const adj_type t = adj_node_type(input);
    void *data = calloc(1, adj_type_bytes(t));
    if (data != NULL && t.dtype == ADJ_F32)
        adj_draw(ADJ_F32, data, adj_shape_elems(t.shape),
                 (adj_init){.kind = ADJ_INIT_NORMAL, .b = 0.1}, 1, 2);
    if (data == NULL || adj_set(e, input, data, adj_type_bytes(t)) != ADJ_OK)
        exit(1);
    free(data);
}

static training training_new(const char *model, int64_t batch, int threads)
{
    static const adj_backend *list[8] = {&link_backend};
    training t = {.g = adj_graph_new()};
    adj_model_opts m = {.batch = batch, .training = 1};
    adj_node *logits = adj_model_logits(t.g, adj_model_find(model, &m), &m);
    adj_node *labels = adj_input(t.g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    adj_node *lr = adj_input(t.g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_loss_softmax(logits, labels, NULL);
    adj_updates *u = adj_training_updates(loss, &(adj_optimizer_opts){.momentum = 0.9});
    for (int i = 0; adj_backends[i] != NULL && i < 6; i++)
        list[i + 1] = adj_backends[i];
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &loss,
                             .updates = adj_data_parallel(u, 2, 0, NULL),
                             .threads = threads,
                             .backends = list};
    if (adj_exec_new(t.g, &o, &t.e) != ADJ_OK) {
        fprintf(stderr, "%s\n", adj_exec_message(t.e));
        exit(1);
    }
    fill(t.e, adj_find(t.g, "images"));
    fill(t.e, labels);
    fill(t.e, lr);
    return t;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Medians, in seconds. */
static double measure(const training *t, double *waited, double *busy)
{
    double all[RUNS], waits[RUNS];
    for (int i = -WARM_UP; i < RUNS; i++) {
        wire.n = 0;
        wire.waited = wire.busy = wire.free_at = 0;
        const double start = seconds_now();
        if (adj_run(t->e) != ADJ_OK)
            exit(1);
        if (i >= 0) {
            all[i] = seconds_now() - start;
            waits[i] = wire.waited;
        }
    }
    qsort(all, RUNS, sizeof *all, compare);
    qsort(waits, RUNS, sizeof *waits, compare);
    *waited = waits[RUNS / 2];
    *busy = wire.busy;
    return all[RUNS / 2];
}

int main(int argc, char **argv)
{
    double waited, busy;
    if (argc < 5 || adj_model_find(argv[1], NULL) == NULL) {
        fprintf(stderr, "usage: delayed_link MODEL BATCH THREADS PART...\n");
        return 1;
    }
    training t = training_new(argv[1], strtoll(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10));
    const double alone = measure(&t, &waited, &busy);
    wire.seconds_per_byte = 1e-15;
    measure(&t, &waited, &busy);
    const double bytes = busy / wire.seconds_per_byte;
    for (int i = 4; i < argc; i++) {
        wire.seconds_per_byte = strtod(argv[i], NULL) * alone / bytes;
        const double step = measure(&t, &waited, &busy);
        printf("%s, batch %s, %s thread: step %.2f ms, communication %.2f ms, together %.2f ms, "
               "hidden %.1f %%\n",
               argv[1], argv[2], argv[3], 1e3 * alone, 1e3 * busy, 1e3 * step,
               100 * (1 - waited / busy));
    }
    adj_exec_free(t.e);
    adj_graph_free(t.g);
    return 0;
}
