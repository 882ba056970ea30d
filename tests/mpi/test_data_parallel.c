/* test_data_parallel.c - run by mpirun: reductions, by literal numbers; and training on parts of a
 * batch gives what one process gives on the whole of it.
 *
 * Prints what is wrong, and ends with 1 in the process that has seen it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_mpi.h"
#include "adjoint_nn.h"
#include "graph/op.h"
#include "tests/mpi/check.h"

enum { SIDE = 8, CLASSES = 4, PER_PROCESS = 6, STEPS = 4, MAX_PROCESSES = 8 };

/* ---- all_reduce ---- */

/* x is rank + 1, and half of it, and so on: sums that every type holds. dx of 3 y is 3 for each. */
static void reduce(const adj_mpi *group, adj_dtype dtype)
{
    enum { N = 5 };
    const int rank = adj_mpi_ranks(group)->rank, size = adj_mpi_ranks(group)->size;
    const double sum = size * (size + 1) / 2.0;
    double raw[N];
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){1, {N}}), *dx;
    adj_node *y = adj_all_reduce(x, ADJ_REDUCE_SUM);
    adj_node *dy = adj_fill(g, dtype, (adj_shape){1, {N}}, 3);
    adj_grad(y, dy, 1, &x, &dx);
    adj_node *const fetch[] = {y, dx};
    adj_exec *e;
    const adj_exec_opts o = {
        .n_fetch = 2, .fetch = fetch, .threads = 1, .backends = adj_mpi_ranks(group)->backends};
    check(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    for (int i = 0; i < N; i++)
        adj_store(dtype, raw, i, (rank + 1) * ldexp(1, -i));
    const size_t bytes = adj_type_bytes(adj_node_type(x));
    check(adj_set(e, x, raw, bytes) == ADJ_OK && adj_run(e) == ADJ_OK, "%s", adj_exec_message(e));
    adj_get(e, y, raw, bytes);
    for (int i = 0; i < N; i++)
        check(adj_load(dtype, raw, i) == sum * ldexp(1, -i), "%s: [%d] is %g",
              adj_dtype_name(dtype), i, adj_load(dtype, raw, i));
    adj_get(e, dx, raw, bytes);
    for (int i = 0; i < N; i++)
        check(adj_load(dtype, raw, i) == 3 * size, "%s: gradient [%d] is %g", adj_dtype_name(dtype),
              i, adj_load(dtype, raw, i));
    adj_exec_free(e);
    adj_graph_free(g);
}

/* ---- the order of sums ---- */

enum { LONG = 5003 };

static double draw_element(int rank, int i)
{
    double v;
    adj_draw(ADJ_F64, &v, 1, (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1}, 3,
             (uint64_t)(rank * LONG + i));
    return v;
}

/* Returns the sum of element i over ranks first to end - 1: halves of a power of two first, then
 * the rest. */
static double tree_sum(int i, int first, int end, int is_double)
{
    int half = 1;
    if (end - first == 1)
        return is_double ? draw_element(first, i) : (float)draw_element(first, i);
    while (2 * half < end - first)
        half *= 2;
    const double a = tree_sum(i, first, first + half, is_double);
    const double b = tree_sum(i, first + half, end, is_double);
    return is_double ? a + b : (float)a + (float)b;
}

/* Short vectors, long ones, and one that is waited for when others have been started. */
static void sums_in_order(const adj_mpi *group, adj_dtype dtype)
{
    static const int lengths[] = {1, 7, LONG, 2048};
    static const char *const names[] = {"a", "b", "c", "d"};
    enum { N = 4 };
    static double raw[LONG];
    adj_graph *g = adj_graph_new();
    adj_node *x[N], *y[N];
    adj_exec *e;
    for (int k = 0; k < N; k++) {
        x[k] = adj_input(g, names[k], dtype, (adj_shape){1, {lengths[k]}});
        y[k] = adj_all_reduce(adj_neg(adj_neg(x[k])), ADJ_REDUCE_SUM);
    }
    const adj_exec_opts o = {
        .n_fetch = N, .fetch = y, .threads = 1, .backends = adj_mpi_ranks(group)->backends};
    check(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    for (int k = 0; k < N; k++) {
        for (int i = 0; i < lengths[k]; i++)
            adj_store(dtype, raw, i, draw_element(adj_mpi_ranks(group)->rank, i));
        adj_set(e, x[k], raw, adj_type_bytes(adj_node_type(x[k])));
    }
    for (int run = 0; run < 3; run++)
        check(adj_run(e) == ADJ_OK, "%s", adj_exec_message(e));
    for (int k = 0; k < N; k++) {
        int wrong = 0;
        adj_get(e, y[k], raw, adj_type_bytes(adj_node_type(x[k])));
        for (int i = 0; i < lengths[k]; i++)
            wrong += adj_load(dtype, raw, i) !=
                     tree_sum(i, 0, adj_mpi_ranks(group)->size, dtype == ADJ_F64);
        check(wrong == 0, "%s: %d of %d sums have other bits", adj_dtype_name(dtype), wrong,
              lengths[k]);
    }
    adj_exec_free(e);
    adj_graph_free(g);
}

/* ---- training ---- */

/* One process's training of a net on so many images at a time. */
typedef struct {
    adj_graph *g;
    adj_node *x, *labels, *lr, *loss;
    adj_updates *updates;
    adj_exec *e;
} training;

/* How it is shared out; zero is the default. */
typedef struct {
    size_t bucket;
    int has_norms, shards; /* batch norms over the whole batch; of a process, 0: 1 */
} sharing;

static training training_new(const adj_mpi *group, int batch, const adj_optimizer_opts *optimizer,
                             sharing s)
{
    const adj_conv_layer conv = {.filters = 5, .padding = ADJ_SAME};
    const adj_norm_layer norm = {.training = 1};
    training t = {.g = adj_graph_new()};
    t.x = adj_input(t.g, "x", ADJ_F64, (adj_shape){4, {batch, SIDE, SIDE, 2}});
    t.labels = adj_input(t.g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    t.lr = adj_input(t.g, "learning_rate", ADJ_F64, (adj_shape){0});
    adj_node *h = adj_layer_conv2d(t.x, "conv", &conv);
    h = adj_relu(s.has_norms ? adj_layer_batch_norm(h, "norm", &norm) : h);
    h = s.has_norms ? adj_layer_batch_norm(h, "next", &norm) : h;
    t.loss = adj_loss_softmax(adj_layer_dense(h, "logits", CLASSES, NULL), t.labels, NULL);
    t.updates = adj_training_updates(t.loss, optimizer);
    if (group != NULL)
        t.updates = adj_data_parallel(
            t.updates, adj_mpi_ranks(group)->size, adj_mpi_ranks(group)->rank,
            &(adj_data_parallel_opts){.shards = s.shards * adj_mpi_ranks(group)->size,
                                      .bucket_bytes = s.bucket,
                                      .sync_batch_norm = s.has_norms});
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &t.loss,
                             .updates = t.updates,
                             .threads = 1,
                             .backend = group != NULL ? "mpi" : "naive",
                             .backends = group != NULL ? adj_mpi_ranks(group)->backends : NULL};
    check(adj_exec_new(t.g, &o, &t.e) == ADJ_OK, "%s", adj_exec_message(t.e));
    return t;
}

static void training_free(training *t)
{
    adj_exec_free(t->e);
    adj_graph_free(t->g);
}

/* Images first, first + 1, ... of those of the step. */
static void take_step(training *t, int step, int first, int n)
{
    static double x[MAX_PROCESSES * PER_PROCESS * SIDE * SIDE * 2];
    int32_t labels[MAX_PROCESSES * PER_PROCESS];
    const double lr = 0.05;
    const size_t image = (size_t)SIDE * SIDE * 2;
    adj_draw(ADJ_F64, x, (int64_t)image * (first + n), (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1},
             7, (uint64_t)step);
    for (size_t i = 0; i < image * (size_t)(first + n); i++)
        x[i] += 0.1 * (double)(i / image); /* parts have means of their own */
    for (int i = 0; i < n; i++)
        labels[i] = (first + i + step) % CLASSES;
    const int shards = adj_shard_count(t->updates), per = n / shards;
    for (int k = 0; k < shards; k++) {
        adj_set(t->e, adj_shard_node(t->updates, t->x, k), x + (size_t)(first + k * per) * image,
                (size_t)per * image * sizeof *x);
        adj_set(t->e, adj_shard_node(t->updates, t->labels, k), labels + k * per,
                (size_t)per * sizeof *labels);
    }
    adj_set(t->e, t->lr, &lr, sizeof lr);
    check(adj_run(t->e) == ADJ_OK, "%s", adj_exec_message(t->e));
}

static void compare(const training *a, const training *b, const char *label)
{
    for (int i = 0; i < adj_exec_param_count(a->e); i++) {
        const adj_node *p = adj_exec_param_at(a->e, i);
        const adj_node *q = adj_find(b->g, adj_node_name(p));
        const int64_t n = adj_shape_elems(adj_node_type(p).shape);
        const size_t bytes = adj_type_bytes(adj_node_type(p));
        double *v = malloc(bytes), *w = malloc(bytes), apart = 0;
        if (v == NULL || w == NULL || adj_node_type(p).dtype != ADJ_F64) {
            free(v);
            free(w);
            continue;
        }
        adj_get(a->e, p, v, bytes);
        adj_get(b->e, q, w, bytes);
        for (int64_t k = 0; k < n; k++)
            apart = fmax(apart, fabs(v[k] - w[k]));
        check(apart < 1e-12, "%s: %s is %g away", label, adj_node_name(p), apart);
        free(v);
        free(w);
    }
}

static void train(const adj_mpi *group, const adj_optimizer_opts *optimizer, sharing s,
                  const char *label)
{
    const int rank = adj_mpi_ranks(group)->rank, size = adj_mpi_ranks(group)->size;
    const int shards = s.shards > 0 ? s.shards : 1;
    training part = training_new(group, PER_PROCESS / shards, optimizer, s);
    training whole = training_new(NULL, PER_PROCESS * size, optimizer, s);
    for (int step = 0; step < STEPS; step++) {
        take_step(&part, step, rank * PER_PROCESS, PER_PROCESS);
        take_step(&whole, step, 0, PER_PROCESS * size);
    }
    compare(&part, &whole, label);
    training_free(&part);
    training_free(&whole);
}

/* ---- broadcast ---- */

static void broadcast(adj_mpi *group)
{
    enum { N = 3 * 3 * 2 * 5 };
    const adj_optimizer_opts momentum = {.momentum = 0.9};
    training t = training_new(group, PER_PROCESS, &momentum, (sharing){0});
    const adj_node *filter = adj_exec_param_at(t.e, 0);
    double v[N];
    int wrong = 0;
    adj_error error = {0};
    for (int i = 0; i < N; i++)
        v[i] = i + 100 * adj_mpi_ranks(group)->rank;
    check(adj_set(t.e, filter, v, sizeof v) == ADJ_OK, "%s", adj_exec_message(t.e));
    check(adj_mpi_broadcast(group, t.e, &error) == ADJ_OK, "%s", error.message);
    check(adj_get(t.e, filter, v, sizeof v) == ADJ_OK, "%s", adj_exec_message(t.e));
    for (int i = 0; i < N; i++)
        wrong += v[i] != i;
    check(wrong == 0, "broadcast: %d of %d are wrong", wrong, N);
    training_free(&t);
}

int main(void)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
    const adj_optimizer_opts momentum = {.momentum = 0.9, .weight_decay = 1e-3},
                             clipped = {.momentum = 0.9, .clip_norm = 0.5},
                             adam = {.kind = ADJ_ADAM};
    adj_error error = {0};
    adj_mpi *group;
    if (adj_mpi_open(&group, &error) != ADJ_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    check(adj_mpi_ranks(group)->size <= MAX_PROCESSES, "%d processes", adj_mpi_ranks(group)->size);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        reduce(group, dtypes[i]);
    sums_in_order(group, ADJ_F32);
    sums_in_order(group, ADJ_F64);
    train(group, &momentum, (sharing){0}, "momentum");
    train(group, &momentum, (sharing){.bucket = 1}, "momentum, no two gradients together");
    train(group, &clipped, (sharing){0}, "clipped");
    train(group, &adam, (sharing){.bucket = 2000}, "adam");
    for (int shards = 1; shards <= 3; shards++)
        train(group, &momentum, (sharing){.has_norms = 1, .shards = shards}, "batch norms");
    broadcast(group);
    if (adj_mpi_ranks(group)->rank == 0 && n_wrong == 0)
        printf("%d processes: all is right\n", adj_mpi_ranks(group)->size);
    adj_mpi_close(group);
    return n_wrong > 0;
}
