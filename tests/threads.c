/* threads.c - results that must not depend on threads: threads [BACKEND] [MODEL].
 *
 *   many executors of one graph, made and run at once in as many threads: the bits of one alone
 *   naive: the same bits on 1, 2, 4 and 8 threads, for whole training steps
 *   onednn: the same bits in every run
 *
 * threads BACKEND MODEL once: one training on two threads, short enough for valgrind, whose loss
 * must fall.
 *
 * A program, not a Criterion test, so that ThreadSanitizer can run it. Prints "N passed, M failed".
 */
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"

enum { STEPS = 2, AT_ONCE = 6 };

typedef struct {
    adj_graph *g;
    adj_node *images, *labels, *lr, *loss;
    const adj_updates *updates;
    float *x;
    int32_t *y;
    size_t x_bytes, y_bytes;
} task;

/* Result of a training: the losses, and a checksum of all parameters and states. */
typedef struct {
    adj_status status;
    float loss[STEPS];
    uint64_t sum;
} outcome;

static int passed, failed;

static void expect(int holds, const char *label, const char *model, const char *backend)
{
    if (!holds)
        printf("FAIL %s: %s on %s\n", label, model, backend);
    passed += holds;
    failed += !holds;
}

static task task_new(const char *model, int64_t batch)
{
    task t = {.g = adj_graph_new()};
    adj_model_opts options = {.batch = batch, .training = 1};
    adj_node *logits = adj_model_logits(t.g, adj_model_find(model, NULL), &options);
    t.images = adj_find(t.g, "images");
    t.labels = adj_input(t.g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    t.lr = adj_input(t.g, "learning_rate", ADJ_F32, (adj_shape){0});
    t.loss = adj_loss_softmax(logits, t.labels, NULL);
    adj_optimizer_opts optimizer = {.momentum = 0.9};
    t.updates = adj_training_updates(t.loss, &optimizer);
    int64_t n = adj_shape_elems(adj_node_type(t.images).shape);
    t.x_bytes = (size_t)n * sizeof *t.x;
    t.y_bytes = (size_t)batch * sizeof *t.y;
    t.x = malloc(t.x_bytes);
    t.y = malloc(t.y_bytes);
    if (t.x == NULL || t.y == NULL)
        exit(1);
    for (int64_t i = 0; i < n; i++)
        t.x[i] = (float)(i * 37 % 101) * 0.02F - 1;
    for (int64_t i = 0; i < batch; i++)
        t.y[i] = (int32_t)(i % 2);
    return t;
}

static void task_free(task *t)
{
    free(t->x);
    free(t->y);
    adj_graph_free(t->g);
}

static uint64_t checksum(adj_exec *e)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        adj_type type = adj_node_type(adj_exec_param_at(e, i));
        size_t bytes = (size_t)adj_shape_elems(type.shape) * adj_dtype_size(type.dtype);
        unsigned char *value = malloc(bytes);
        if (value == NULL || adj_get(e, adj_exec_param_at(e, i), value, bytes) != ADJ_OK)
            exit(1);
        for (size_t k = 0; k < bytes; k++)
            sum = (sum ^ value[k]) * UINT64_C(0x100000001b3); /* FNV-1a */
        free(value);
    }
    return sum;
}

static outcome train(const task *t, const char *backend, int threads)
{
    outcome o = {0};
    const float rate = 0.002F;
    adj_exec *e = NULL;
    adj_node *fetch[] = {t->loss};
    adj_exec_opts opts = {.n_fetch = 1,
                          .fetch = fetch,
                          .updates = t->updates,
                          .backend = backend,
                          .threads = threads,
                          .seed = 7};
    o.status = adj_exec_new(t->g, &opts, &e);
    for (int i = 0; i < STEPS && o.status == ADJ_OK; i++) {
        adj_set(e, t->images, t->x, t->x_bytes);
        adj_set(e, t->labels, t->y, t->y_bytes);
        adj_set(e, t->lr, &rate, sizeof rate);
        if ((o.status = adj_run(e)) == ADJ_OK)
            o.status = adj_get(e, t->loss, &o.loss[i], sizeof o.loss[i]);
    }
    if (o.status == ADJ_OK)
        o.sum = checksum(e);
    else
        printf("%s\n", adj_exec_message(e));
    adj_exec_free(e);
    return o;
}

static int same(outcome a, outcome b)
{
    return a.status == ADJ_OK && b.status == ADJ_OK && a.sum == b.sum &&
           memcmp(a.loss, b.loss, sizeof a.loss) == 0;
}

typedef struct {
    const task *t;
    const char *backend;
    outcome o;
} job;

static void *run_job(void *of)
{
    job *j = of;
    j->o = train(j->t, j->backend, 1);
    return NULL;
}

static void many_at_once(const char *model, const char *backend)
{
    task t = task_new(model, 2);
    outcome alone = train(&t, backend, 1);
    pthread_t thread[AT_ONCE];
    job jobs[AT_ONCE];
    int started = 0;

    for (; started < AT_ONCE; started++) {
        jobs[started] = (job){.t = &t, .backend = backend};
        if (pthread_create(&thread[started], NULL, run_job, &jobs[started]) != 0)
            break;
    }
    expect(started == AT_ONCE, "threads", model, backend);
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        expect(same(jobs[i].o, alone), "at once as alone", model, backend);
    }
    task_free(&t);
}

static void any_number_of_threads(const char *model)
{
    task t = task_new(model, 3);
    outcome one = train(&t, "naive", 1);
    for (int n = 2; n <= 8; n *= 2)
        expect(same(train(&t, "naive", n), one), "threads change nothing", model, "naive");
    task_free(&t);
}

static void run_to_run(const char *model, const char *backend)
{
    task t = task_new(model, 3);
    outcome first = train(&t, backend, 2);
    for (int i = 0; i < 3; i++)
        expect(same(train(&t, backend, 2), first), "run to run", model, backend);
    task_free(&t);
}

static void once(const char *model, const char *backend)
{
    task t = task_new(model, 2);
    const outcome o = train(&t, backend, 2);
    expect(o.status == ADJ_OK && o.loss[STEPS - 1] < o.loss[0], "the loss falls", model, backend);
    task_free(&t);
}

int main(int argc, char **argv)
{
    static const char *const backends[] = {"naive", "onednn"};
    static const char *const models[] = {"lenet", "ds_cnn"};
    const char *plan = getenv("ADJOINT_PLAN");
    if (plan != NULL && strcmp(plan, "tune") == 0)
        unsetenv("ADJOINT_PLAN"); /* a new tuning may choose other kernels, with other last bits */

    for (int m = 0; m < 2; m++)
        for (int b = 0; b < 2; b++) {
            if ((argc > 1 && strcmp(argv[1], backends[b]) != 0) ||
                (argc > 2 && strcmp(argv[2], models[m]) != 0))
                continue;
            if (argc > 3) {
                once(models[m], backends[b]);
                continue;
            }
            many_at_once(models[m], backends[b]);
            if (b == 0)
                any_number_of_threads(models[m]);
            else
                run_to_run(models[m], backends[b]);
        }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
