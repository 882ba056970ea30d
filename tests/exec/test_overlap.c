/* test_overlap.c - where a plan starts reductions and where it waits for them, recorded by a
 * backend that only counts: every start as soon as its values exist, every wait before the first
 * update that needs it, and a call for progress after each step between them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/reference.h"
#include "tests/training.h"

enum { BATCH = 4, SIDE = 8, LAYERS = 6, CHANNELS = 8, ROOM = 1 << 17 };
/* Bytes of a bucket: a layer each, but for the first; all in one. */
enum { PER_LAYER = 2400, ALL = 1 << 20 };

/* ---- a backend of two processes, both of which this one is ---- */

static struct {
    int flying, max_flying, progress, fails; /* fails: the wait of that number, from 1 */
    int waited, asked; /* asked: for progress, whether something flies or not */
} link;

static void progress(void *backend)
{
    (void)backend;
    link.progress += link.flying > 0;
    link.asked++;
}

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

/* Twice the value, with the wrong sign until the wait, to expose an early reader. */
static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const float *x = c->in[0];
    float *y = c->out[0];
    const int is_wait = n->op == &adj_op_all_reduce_wait;
    const int64_t elems = adj_shape_elems(n->type.shape);
    for (int64_t i = 0; i < elems; i++)
        y[i] = is_wait ? -x[i] : -2 * x[i];
    link.flying += is_wait ? -1 : 1;
    link.max_flying = link.flying > link.max_flying ? link.flying : link.max_flying;
    link.waited += is_wait;
    return is_wait && link.waited == link.fails ? ADJ_EBACKEND : ADJ_OK;
}

/* {tanh, sigmoid} of one value, which no kernel prepares: the nodes run one after the other. */
static int match_pair(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[root->n_in > 0 ? root->in[0]->id : root->id];
    int n = 0;
    for (int i = 0; i < u->n_user && n < max && root->op == &adj_op_tanh; i++)
        if (u->user[i]->op == &adj_op_tanh || u->user[i]->op == &adj_op_sigmoid)
            group[n++] = u->user[i];
    return n;
}

static const adj_kernel kernel = {
    .name = "link", .match = match_pair, .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend link_backend = {.name = "link", .kernels = kernels, .progress = progress};

/* ---- a net of several layers ---- */

typedef struct {
    training t;
    adj_exec *e;
} net;

typedef enum { ALONE, SHARED, SYNCHRONISED } kind; /* the last one has batch norms */

static adj_node *images_in(adj_graph *g)
{
    return adj_input(g, "images", ADJ_F32, (adj_shape){4, {BATCH, SIDE, SIDE, 1}});
}

static net net_new(const adj_optimizer_opts *o, kind kind, size_t bucket)
{
    const adj_conv_layer conv = {.filters = CHANNELS, .padding = ADJ_SAME};
    const adj_norm_layer norm = {.training = 1};
    adj_node *h = images_in(adj_graph_new());
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "conv%d", i);
        h = adj_layer_conv2d(h, name, &conv);
        snprintf(name, sizeof name, "norm%d", i);
        h = adj_relu(kind == SYNCHRONISED ? adj_layer_batch_norm(h, name, &norm) : h);
    }
    net n = {.t = training_on(adj_layer_dense(h, "logits", 3, NULL), o)};
    const adj_data_parallel_opts d = {.bucket_bytes = bucket,
                                      .sync_batch_norm = kind == SYNCHRONISED};
    const adj_exec_opts opts = {.n_fetch = 1,
                                .fetch = &n.t.loss,
                                .updates = kind != ALONE ? adj_data_parallel(n.t.updates, 2, 0, &d)
                                                         : n.t.updates,
                                .threads = 1,
                                .backend = "naive",
                                .backends = beside_naive(link_backend)};
    memset(&link, 0, sizeof link);
    n.e = plan_of(n.t.g, &opts);
    return n;
}

static void net_free(net *n)
{
    adj_exec_free(n->e);
    training_free(&n->t);
}

static adj_status take_step(net *n, int i)
{
    const float lr = 0.1F;
    training_batch(n->e, n->t.images, n->t.labels, i);
    cr_assert_eq(adj_set(n->e, n->t.lr, &lr, sizeof lr), ADJ_OK);
    return adj_run(n->e);
}

static int count_steps(const net *n, const char *op, int from, int to)
{
    int count = 0;
    for (int i = from; i < to; i++)
        count += strcmp(adj_exec_step_at(n->e, i).op, op) == 0;
    return count;
}

static int find_step(const net *n, const char *op, int from)
{
    const int steps = adj_exec_step_count(n->e);
    while (from < steps && strcmp(adj_exec_step_at(n->e, from).op, op) != 0)
        from++;
    return from;
}

TestSuite(overlap, .init = plan_as_usual);

/* ---- tests ---- */

/* One process times kernels for all: it answers the others between two runs. */
Test(overlap, answers_while_kernels_are_timed)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 16, 16, 8}});
    adj_node *y = adj_layer_conv2d(x, "conv", &(adj_conv_layer){.filters = 8});
    const adj_exec_opts opts = {.n_fetch = 1,
                                .fetch = &y,
                                .threads = 1,
                                .tune = 1,
                                .backends = list_before(link_backend, adj_backends)};
    setenv("ADJOINT_TUNE", "off", 1);
    memset(&link, 0, sizeof link);
    scoped(release_exec) adj_exec *e = plan_of(g, &opts);
    cr_expect_gt(adj_exec_details(e).timed, 0);
    cr_expect_geq(link.asked, adj_exec_details(e).timed);
}

/* The last layer's gradient travels while the others are computed. */
Test(overlap, starts_early_and_waits_late)
{
    scoped(net_free) net n = net_new(&with_momentum, SHARED, PER_LAYER);
    const int steps = adj_exec_step_count(n.e), all = count_steps(&n, "all_reduce_start", 0, steps);
    cr_assert_geq(all, LAYERS - 1);
    cr_expect_eq(count_steps(&n, "all_reduce_wait", 0, steps), all);
    cr_expect_eq(count_steps(&n, "all_reduce", 0, steps), 0);
    /* between two starts a layer's backward pass: but for the two of the last layer */
    const int first = find_step(&n, "all_reduce_start", 0);
    int at = find_step(&n, "all_reduce_start", first + 1);
    for (int i = 2; i < all; i++) {
        const int next = find_step(&n, "all_reduce_start", at + 1);
        cr_expect_geq(count_steps(&n, "conv2d_backprop_filter", at, next), 1, "start %d", i);
        at = next;
    }
    cr_expect_geq(count_steps(&n, "conv2d_backprop_filter", first, steps), LAYERS);
    /* no wait before the last start, and between two waits the updates of what has arrived */
    at = find_step(&n, "all_reduce_wait", 0);
    cr_expect_eq(count_steps(&n, "all_reduce_start", at, steps), 0);
    for (int i = 1; i < all; i++) {
        const int next = find_step(&n, "all_reduce_wait", at + 1);
        cr_expect_geq(count_steps(&n, "sgd_step", at, next), 1, "wait %d", i);
        at = next;
    }
    cr_assert_eq(take_step(&n, 0), ADJ_OK, "%s", adj_exec_message(n.e));
    cr_expect_eq(link.max_flying, all);
    cr_expect_eq(link.flying, 0);
    cr_expect_geq(link.progress, LAYERS * 2);
}

/* Reductions that the net itself waits for do not keep those of gradients from traveling. */
Test(overlap, synchronized_batch_norms)
{
    net n = net_new(&with_momentum, SYNCHRONISED, PER_LAYER);
    const int steps = adj_exec_step_count(n.e);
    int last = 0;
    for (int i = 0; i < steps; i++)
        last = strcmp(adj_exec_step_at(n.e, i).op, "conv2d_backprop_filter") == 0 ? i : last;
    cr_assert_gt(last, 0);
    const int before = count_steps(&n, "all_reduce_start", 0, last);
    cr_expect_geq(before, 3 * LAYERS + LAYERS - 2, "%d", before);
    cr_expect_eq(count_steps(&n, "all_reduce_wait", 0, last), 3 * LAYERS);
    cr_assert_eq(take_step(&n, 0), ADJ_OK, "%s", adj_exec_message(n.e));
    cr_expect_eq(link.flying, 0);
    net_free(&n);
}

/* Two equal processes assign what one by itself does: 2 x / 2 is exact. */
Test(overlap, same_bits)
{
    static const adj_optimizer_opts options[] = {
        {.momentum = 0.9}, {.momentum = 0.9, .clip_norm = 0.1}, {.kind = ADJ_ADAM}};
    for (size_t i = 0; i < 2 * sizeof options / sizeof *options; i++) {
        const size_t k = i / 2, bucket = i % 2 ? PER_LAYER : ALL;
        net alone = net_new(&options[k], ALONE, 0), shared = net_new(&options[k], SHARED, bucket);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(take_step(&alone, i), ADJ_OK, "%s", adj_exec_message(alone.e));
            cr_assert_eq(take_step(&shared, i), ADJ_OK, "%s", adj_exec_message(shared.e));
        }
        static char one[ROOM], two[ROOM];
        const size_t bytes = copy_all_params(alone.e, one, ROOM);
        cr_assert_eq(copy_all_params(shared.e, two, ROOM), bytes);
        cr_assert_arr_eq(one, two, bytes, "optimizer %zu, buckets of %zu bytes", k, bucket);
        net_free(&alone);
        net_free(&shared);
    }
}

/* Two branches, of which one draws numbers: those are other nodes in process 1, and so is all that
 * is made of them. Writes what is started, as bytes, to started; returns how many are. */
static int starts_of_branches(int rank, size_t started[64])
{
    const adj_norm_layer norm = {.training = 1};
    adj_node *x = images_in(adj_graph_new()), *logits[2];
    adj_node *step = adj_input(adj_node_graph(x), "step", ADJ_I32, (adj_shape){0});
    for (int i = 0; i < 2; i++) {
        const adj_conv_layer conv = {.filters = 4 + 2 * i, .padding = ADJ_SAME};
        adj_node *h = i == 0 ? adj_dropout(x, step, 0.5, 3) : x;
        h = adj_layer_conv2d(h, i == 0 ? "a" : "b", &conv);
        h = adj_layer_batch_norm(h, i == 0 ? "norm_a" : "norm_b", &norm);
        logits[i] = adj_layer_dense(h, i == 0 ? "dense_a" : "dense_b", 3, NULL);
    }
    scoped(training_free) training t = training_on(adj_add(logits[0], logits[1]), &with_momentum);
    const adj_data_parallel_opts d = {.bucket_bytes = 1};
    const adj_exec_opts opts = {.n_fetch = 1,
                                .fetch = &t.loss,
                                .updates = adj_data_parallel(t.updates, 2, rank, &d),
                                .threads = 1,
                                .backend = "naive",
                                .backends = beside_naive(link_backend)};
    int n = 0;
    scoped(release_exec) adj_exec *e = plan_of(t.g, &opts);
    for (int i = 0; i < adj_exec_step_count(e) && n < 64; i++)
        if (strcmp(adj_exec_step_at(e, i).op, "all_reduce_start") == 0)
            started[n++] = adj_exec_step_at(e, i).bytes;
    return n;
}

/* Processes start reductions in one order, even if they compute the values in another. */
Test(overlap, all_processes_start_in_one_order)
{
    size_t first[64] = {0}, second[64] = {0};
    const int n = starts_of_branches(0, first);
    cr_assert_geq(n, 8);
    cr_expect_eq(starts_of_branches(1, second), n);
    for (int i = 0; i < n; i++)
        cr_expect_eq(first[i], second[i], "start %d: %zu and %zu bytes", i, first[i], second[i]);
}

/* A group that joins an early node with a late one moves the early node's readers behind others: a
 * start among them still comes before the starts behind it. */
Test(overlap, groups_keep_the_order_of_starts)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}), *y[3];
    y[0] = adj_all_reduce(adj_tanh(x), ADJ_REDUCE_SUM);
    y[1] = adj_all_reduce(adj_concat(2, (adj_node *const[]){x, x}, 0), ADJ_REDUCE_SUM);
    y[2] = adj_sigmoid(x);
    const adj_exec_opts opts = {
        .n_fetch = 3, .fetch = y, .backend = "link", .backends = beside_naive(link_backend)};
    const net n = {.e = plan_of(g, &opts)};
    const int first = find_step(&n, "all_reduce_start", 0);
    cr_expect_eq(adj_exec_step_at(n.e, first).bytes, 2 * 4 * sizeof(float));
    cr_expect_lt(find_step(&n, "sigmoid", 0), first, "not in one group with tanh");
    adj_exec_free(n.e);
}

Test(overlap, failed_wait)
{
    scoped(net_free) net n = net_new(&with_momentum, SHARED, PER_LAYER);
    link.fails = 2;
    cr_expect_eq(take_step(&n, 0), ADJ_EBACKEND);
    expect_text(adj_exec_message(n.e), "all_reduce_wait");
}
