/* test_yield.c - an executor that changes to a plan for fewer threads computes what one computes
 * that never does, to the bit, and takes the plan that is faster. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "tests/counter.h"
#include "tests/reference.h"

enum { ROWS = 4, INPUTS = 6, CLASSES = 3, THREADS = 2, MOST_RUNS = 4000, LARGE = 16 << 20 };

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

/* The i-th run: other images each time, other labels often, the invariant's leaf seldom. */
static void set_inputs(const net *n, int i)
{
    float x[ROWS * INPUTS];
    adj_draw(ADJ_F32, x, ROWS * INPUTS, (adj_init){ADJ_INIT_NORMAL, 0, 1}, 1, (uint64_t)i);
    cr_assert_eq(adj_set(n->e, n->x, x, sizeof x), ADJ_OK);
    if (i % 3 == 0)
        cr_assert_eq(adj_set(n->e, n->labels, (int32_t[]){0, 1, 2, i % CLASSES}, 16), ADJ_OK);
    if (i % 50 == 49)
        cr_assert_eq(adj_set(n->e, n->fixed, x, sizeof x), ADJ_OK);
}

static adj_status step(const net *n, int i)
{
    set_inputs(n, i);
    return adj_run(n->e);
}

static void expect_same(const net *a, const net *b, const adj_node *x, const adj_node *y, int i)
{
    float v[64], w[64];
    const size_t bytes = adj_type_bytes(adj_node_type(x));
    cr_assert(bytes > 0 && bytes <= sizeof v);
    cr_assert_eq(adj_get(a->e, x, v, bytes), ADJ_OK, "%s", adj_exec_message(a->e));
    cr_assert_eq(adj_get(b->e, y, w, bytes), ADJ_OK, "%s", adj_exec_message(b->e));
    cr_assert_arr_eq((char *)v, (char *)w, bytes, "%s %s, run %d", adj_node_op(x), adj_node_name(x),
                     i);
}

static void expect_same_leaves(const net *a, const net *b, int i)
{
    const int n = adj_exec_param_count(a->e);
    cr_assert(n > 8, "momentum and dropout's step are missing");
    for (int k = 0; k < n; k++)
        expect_same(a, b, adj_exec_param_at(a->e, k), adj_exec_param_at(b->e, k), i);
}

static int threads_of(const net *n) { return adj_exec_stats(n->e).threads; }

static void reset(void)
{
    unsetenv("ADJOINT_PLAN");
    memset(&mock, 0, sizeof mock);
}
TestSuite(yield, .init = reset);

/* ---- tests ---- */

/* Slow with two threads, then with one, several times. Every run is compared. */
Test(yield, same_values)
{
    net n, never;
    int i = 0, changes = 0, before = THREADS;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const adj_allocator *own = allocator;
    open_net(&never, ADJ_YIELD_NEVER);
    for (int phase = 0; phase < 4; phase++) {
        const int wanted = phase % 2 == 0 ? 1 : THREADS, slow_at = THREADS + 1 - wanted;
        for (int stays = 0; stays < 20 && i < MOST_RUNS; i++) {
            mock.slow_at = slow_at;
            cr_assert_eq(step(&n, i), ADJ_OK, "%s", adj_exec_message(n.e));
            mock.slow_at = 0;
            cr_assert_eq(step(&never, i), ADJ_OK);
            changes += threads_of(&n) != before;
            before = threads_of(&n);
            stays = before == wanted ? stays + 1 : 0;
            expect_same(&n, &never, n.loss, never.loss, i);
            expect_same(&n, &never, n.negative, never.negative, i);
            if (i % 10 == 0)
                expect_same_leaves(&n, &never, i);
        }
        cr_expect_eq(before, wanted, "phase %d", phase);
    }
    cr_expect_geq(changes, 4);
    expect_same_leaves(&n, &never, i);
    cr_expect_eq(threads_of(&never), THREADS);
    adj_exec_free(never.e);
    adj_graph_free(never.g);
    allocator = own;
    close_net(&n);
}

static int runs_until(const net *n, int threads)
{
    int i = 0;
    mock.slow_at = THREADS + 1 - threads;
    for (int stays = 0; stays < 10 && i < MOST_RUNS; i++) {
        cr_assert_eq(step(n, i), ADJ_OK, "%s", adj_exec_message(n->e));
        stays = threads_of(n) == threads ? stays + 1 : 0;
    }
    return i;
}

/* Copying leaves takes many times what a run takes, and decides nothing. */
Test(yield, cost_of_changing)
{
    enum { RUNS = 500 };
    net n;
    mock.large = 1;
    mock.nap = 100000;
    mock.slow_at = THREADS;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const size_t bytes = LARGE * sizeof(float);
    float *data = calloc(LARGE, sizeof *data);
    cr_assert_not_null(data);
    int i = 0;
    for (int stays = 0; stays < 10 && i < RUNS; i++) {
        cr_assert_eq(adj_set(n.e, n.large, data, bytes), ADJ_OK, "%s", adj_exec_message(n.e));
        cr_assert_eq(step(&n, i), ADJ_OK, "%s", adj_exec_message(n.e));
        stays = threads_of(&n) == 1 ? stays + 1 : 0;
    }
    cr_expect_lt(i, RUNS);
    free(data);
    close_net(&n);
}

/* Where every value has memory of its own, the words around it stand from run to run, in other
 * places of each plan. */
Test(yield, no_sharing)
{
    net n;
    mock.no_sharing = 1;
    mock.scratch = 64;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    for (int twice = 0; twice < 2; twice++) {
        cr_expect_lt(runs_until(&n, 1), MOST_RUNS);
        cr_expect_lt(runs_until(&n, THREADS), MOST_RUNS);
    }
    close_net(&n);
}

/* They change neither plans nor values. */
Test(yield, failed_runs)
{
    net n, never;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const adj_allocator *own = allocator;
    open_net(&never, ADJ_YIELD_NEVER);
    mock.slow_at = THREADS;
    int stays = 0;
    for (int i = 0; stays < 20 && i < MOST_RUNS; i++) { /* every fifth fails */
        stays = threads_of(&n) == 1 ? stays + 1 : 0;
        cr_assert_eq(step(&n, i), ADJ_OK);
        cr_assert_eq(step(&never, i), ADJ_OK);
        if (i % 5 != 0)
            continue;
        const int32_t wrong[ROWS] = {0, 1, CLASSES, 0};
        const net *both[] = {&n, &never};
        for (int k = 0; k < 2; k++) {
            cr_assert_eq(adj_set(both[k]->e, both[k]->labels, wrong, sizeof wrong), ADJ_OK);
            cr_assert_neq(adj_run(both[k]->e), ADJ_OK);
            cr_assert_not_null(strstr(adj_exec_message(both[k]->e), "label"), "%s",
                               adj_exec_message(both[k]->e));
            cr_assert_eq(adj_set(both[k]->e, both[k]->labels, (int32_t[]){0, 1, 2, 0}, 16), ADJ_OK);
        }
        expect_same_leaves(&n, &never, i);
    }
    cr_expect_eq(stays, 20);
    expect_same_leaves(&n, &never, MOST_RUNS);
    adj_exec_free(never.e);
    adj_graph_free(never.g);
    allocator = own;
    close_net(&n);
}

/* The message of a call that failed stays when plans change. */
Test(yield, message)
{
    net n;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    cr_assert_eq(adj_set(n.e, n.x, NULL, 1), ADJ_EARG);
    char said[ADJ_MESSAGE];
    snprintf(said, sizeof said, "%s", adj_exec_message(n.e));
    cr_expect_lt(runs_until(&n, 1), MOST_RUNS);
    cr_expect_str_eq(adj_exec_message(n.e), said);
    const adj_exec_info info = adj_exec_stats(n.e);
    cr_expect(info.threads == 1 && info.second_threads == 1 && info.plan_seconds > 0 &&
              info.arena_bytes > 0);
    close_net(&n);
}

/* The second plan is made for SAME_BITS only where no bit can differ. */
Test(yield, same_bits_or_always)
{
    static const struct {
        adj_yield yield;
        int sums_by_threads, names_threads, swaps_at, plans, keeps;
    } cases[] = {
        {ADJ_YIELD_NEVER, 0, 0, 0, 1, 0},     {ADJ_YIELD_SAME_BITS, 0, 0, 0, 2, 1},
        {ADJ_YIELD_SAME_BITS, 1, 0, 0, 1, 0}, {ADJ_YIELD_SAME_BITS, 0, 1, 0, 2, 0},
        {ADJ_YIELD_SAME_BITS, 0, 0, 3, 2, 1}, {ADJ_YIELD_SAME_BITS, 0, 0, 1, 2, 0},
        {ADJ_YIELD_ALWAYS, 0, 0, 0, 2, 1},    {ADJ_YIELD_ALWAYS, 1, 1, 0, 2, 1},
        {ADJ_YIELD_ALWAYS, 0, 0, 1, 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        net n;
        reset();
        mock.swaps_at = cases[i].swaps_at;
        mock.sums_by_threads = cases[i].sums_by_threads;
        mock.names_threads = cases[i].names_threads;
        open_net(&n, cases[i].yield);
        cr_expect_eq(mock.opened, cases[i].plans, "case %zu", i);
        cr_expect_eq(mock.open, 1 + cases[i].keeps, "case %zu", i);
        cr_expect_eq(adj_exec_stats(n.e).second_threads, cases[i].keeps, "case %zu", i);
        close_net(&n);
    }
}

Test(yield, always)
{
    net n;
    mock.sums_by_threads = mock.names_threads = 1;
    open_net(&n, ADJ_YIELD_ALWAYS);
    cr_expect_str_eq(adj_exec_message(n.e), "");
    cr_expect_lt(runs_until(&n, 1), MOST_RUNS);
    cr_expect_lt(runs_until(&n, THREADS), MOST_RUNS);
    close_net(&n);
}

/* The second plan has the kernels that the first was tuned for, and is not tuned itself. */
Test(yield, tuned)
{
    net n;
    mock.tunes = 1;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    cr_expect_eq(mock.open, 2);
    const adj_exec_info before = adj_exec_stats(n.e);
    const char *selection = adj_exec_selection(n.e);
    cr_expect_not_null(strstr(selection, "mock:0 fast"), "%s", selection);
    cr_expect_lt(runs_until(&n, 1), MOST_RUNS);
    cr_expect_eq(adj_exec_stats(n.e).timed, before.timed);
    cr_expect_eq(adj_exec_selection(n.e), selection);
    int fast = 0;
    for (int i = 0; i < adj_exec_step_count(n.e); i++)
        fast += strcmp(adj_exec_step_at(n.e, i).impl, "mock:0 fast") == 0;
    cr_expect_eq(fast, 1);
    close_net(&n);
}

/* A second plan that cannot be had is none. */
Test(yield, refused)
{
    net n;
    mock.refuses_at = 1;
    open_net(&n, ADJ_YIELD_ALWAYS);
    cr_expect_str_eq(adj_exec_message(n.e), "");
    cr_expect_str_eq(adj_exec_warning(n.e), "");
    cr_expect_eq(mock.open, 1);
    for (int i = 0; i < 40; i++)
        cr_assert_eq(step(&n, i), ADJ_OK);
    cr_expect_eq(threads_of(&n), THREADS);
    close_net(&n);
}

Test(yield, bad_option)
{
    net n = {0};
    build(&n);
    cr_expect_eq(plan(&n, (adj_yield)7), ADJ_EARG);
    cr_expect_not_null(strstr(adj_exec_message(n.e), "yield is wrong (got 7"));
    close_net(&n);
}

/* Neither runs nor changes allocate. */
Test(yield, allocates_before)
{
    net n;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const long calls = n.memory.calls;
    cr_expect_lt(runs_until(&n, 1), MOST_RUNS);
    cr_expect_lt(runs_until(&n, THREADS), MOST_RUNS);
    cr_expect_eq(n.memory.calls, calls);
    close_net(&n);
}

/* Wherever memory runs out: the first plan needs it, the second is done without. */
Test(yield, out_of_memory)
{
    net n;
    open_net(&n, ADJ_YIELD_SAME_BITS);
    const long total = n.memory.calls;
    close_net(&n);
    int failed = 0, alone = 0;
    for (long at = 1; at <= total; at++) {
        n = (net){.memory.fail_at = at};
        build(&n);
        if (adj_graph_status(n.g) != ADJ_OK || plan(&n, ADJ_YIELD_SAME_BITS) != ADJ_OK)
            failed++;
        else {
            alone += mock.open == 1;
            cr_assert_str_eq(adj_exec_message(n.e), "");
            for (int i = 0; i < 2; i++)
                cr_assert_eq(step(&n, i), ADJ_OK);
        }
        close_net(&n);
    }
    cr_expect_eq(failed + alone, total, "%d and %d of %ld", failed, alone, total);
    cr_expect_gt(alone, 10);
}
