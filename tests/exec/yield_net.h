/* yield_net.h - a small training whose relu is computed by a backend that sleeps with a number of
 * threads, by which a test has an executor yield some. */
#ifndef TESTS_YIELD_NET_H
#define TESTS_YIELD_NET_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "tests/counter.h"
#include "tests/reference.h"

enum { ROWS = 4, INPUTS = 6, CLASSES = 3, THREADS = 2, MAX_RUNS = 4000, LARGE = 16 << 20 };

/* ---- a backend whose relu sleeps with that many threads ---- */

static struct {
    int slow_at;         /* threads; 0: never */
    long nap;            /* nanoseconds that it sleeps; 0: 3 ms */
    int large;           /* the net has a leaf of LARGE elements, which no kernel reads */
    int sums_by_threads; /* as adj_prep's */
    int names_threads;   /* another implementation for each number */
    int refuses_at;      /* threads with which it cannot be opened */
    int swaps_at;        /* threads with which two relus have each other's implementation */
    int no_sharing;      /* as the option */
    size_t scratch;      /* bytes, for each thread */
    int open, opened;    /* now, and ever */
    int tunes;           /* plans are tuned; there is a second, faster candidate */
} mock;

static adj_status open_mock(const adj_backend_opts *opts, void **backend)
{
    int *threads = adj_alloc(opts->allocator, sizeof *threads);
    if (threads == NULL || opts->threads == mock.refuses_at) {
        adj_release(opts->allocator, threads);
        return threads == NULL ? ADJ_ENOMEM : ADJ_EBACKEND;
    }
    *threads = opts->threads;
    *backend = threads;
    mock.open++;
    mock.opened++;
    return ADJ_OK;
}

static const adj_allocator *allocator; /* of the graph */

static void close_mock(void *backend)
{
    mock.open--;
    adj_release(allocator, backend);
}

static int is_of_neg(const adj_node *relu) { return relu->in[0]->op == &adj_op_neg; }

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    if (g->n_node > 1 || g->node[0]->op != &adj_op_relu || candidate > mock.tunes)
        return ADJ_ENOKERNEL;
    p->sums_by_threads = mock.sums_by_threads;
    p->scratch = mock.scratch * (size_t) * (int *)backend;
    const int named = mock.names_threads ? *(int *)backend
                      : mock.swaps_at ? (*(int *)backend == mock.swaps_at) ^ is_of_neg(g->node[0])
                                      : 0;
    snprintf(p->impl, sizeof p->impl, "mock:%d%s", named, candidate > 0 ? " fast" : "");
    p->state = candidate > 0 ? backend : NULL;
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    for (int64_t i = 0; i < adj_shape_elems(c->group->node[0]->type.shape); i++)
        y[i] = x[i] > 0 ? x[i] : 0;
    if (c->threads == mock.slow_at || (mock.tunes && c->state == NULL))
        nanosleep(&(struct timespec){0, mock.nap > 0 ? mock.nap : 3000000}, NULL);
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "mock", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend mock_backend = {.version = ADJ_VERSION,
                                         .name = "mock",
                                         .open = open_mock,
                                         .close = close_mock,
                                         .kernels = kernels};

/* ---- a net that has all that an executor keeps between runs ---- */

typedef struct {
    adj_graph *g;
    adj_node *x, *labels, *fixed, *loss, *negative, *large;
    adj_exec *e;
    counter memory;
    adj_allocator a;
} net;

/* Parameters, momentum, dropout's step; -fixed is invariant. */
static void build(net *n)
{
    n->a = (adj_allocator){count_alloc, count_free, &n->memory};
    allocator = &n->a;
    n->g = adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &n->a});
    n->x = adj_input(n->g, "x", ADJ_F32, (adj_shape){2, {ROWS, INPUTS}});
    n->labels = adj_input(n->g, "labels", ADJ_I32, (adj_shape){1, {ROWS}});
    n->fixed = adj_state(n->g, "fixed", ADJ_F32, (adj_shape){2, {ROWS, INPUTS}},
                         (adj_init){ADJ_INIT_UNIFORM, -1, 1});
    n->negative = adj_neg(n->fixed);
    if (mock.large)
        n->large = adj_state(n->g, "large", ADJ_F32, (adj_shape){1, {LARGE}},
                             (adj_init){.kind = ADJ_INIT_CONSTANT});
    adj_node *h = adj_relu(adj_layer_dense(adj_add(n->x, n->negative), "hidden", 8));
    if (mock.swaps_at)
        h = adj_relu(adj_neg(h));
    h = adj_layer_dropout(h, "dropout", 0.3, 1);
    n->loss = adj_loss_softmax(adj_layer_dense(h, "logits", CLASSES), n->labels);
}

static adj_status plan(net *n, adj_yield yield)
{
    static const adj_backend *both[3];
    adj_node *fetch[] = {n->loss, n->negative, n->large};
    both[0] = &mock_backend;
    both[1] = naive_backend();
    adj_node *lr = adj_fill(n->g, ADJ_F32, (adj_shape){0}, 0.05);
    const adj_exec_opts o = {
        .n_fetch = n->large != NULL ? 3 : 2,
        .fetch = fetch,
        .updates = adj_training_updates(n->loss, lr, &(adj_optimiser_opts){.momentum = 0.9}),
        .threads = THREADS,
        .yield = yield,
        .tune = mock.tunes,
        .tune_file = "",
        .debug = {.backends = both, .canaries = 1, .no_sharing = mock.no_sharing}};
    return adj_exec_new(n->g, &o, &n->e);
}

static void open_net(net *n, adj_yield yield)
{
    *n = (net){0};
    build(n);
    cr_assert_eq(plan(n, yield), ADJ_OK, "%s", adj_exec_message(n->e));
}

static void close_net(net *n)
{
    adj_exec_free(n->e);
    adj_graph_free(n->g);
    cr_assert_eq(n->memory.live, 0);
    cr_assert_eq(mock.open, 0);
}

/* The i-th run: other images each time, of which every other run's are written in place, other
 * labels often, the invariant's leaf seldom. */
static void set_inputs(const net *n, int i)
{
    float x[ROWS * INPUTS];
    void *to = x;
    if (i % 2 == 1)
        cr_assert_eq(adj_set_in_place(n->e, n->x, &to), ADJ_OK);
    adj_draw(ADJ_F32, to, ROWS * INPUTS, (adj_init){ADJ_INIT_NORMAL, 0, 1}, 1, (uint64_t)i);
    if (to == x)
        cr_assert_eq(adj_set(n->e, n->x, x, sizeof x), ADJ_OK);
    if (i % 3 == 0)
        cr_assert_eq(adj_set(n->e, n->labels, (int32_t[]){0, 1, 2, i % CLASSES}, 16), ADJ_OK);
    if (i % 50 == 49)
        cr_assert_eq(adj_set(n->e, n->fixed, to, sizeof x), ADJ_OK);
}

#endif
