/* test_data_parallel.c - a data-parallel training step: number and operands of reductions, and the
 * same bits in a group of one. Several processes are in tests/mpi. */
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/training.h"

enum { BATCH = 4, SIDE = 6, MAX_BYTES = 1 << 16 };

/* Tuning may choose other kernels for each of two plans whose bits are compared. */
TestSuite(data_parallel, .init = plan_as_usual);

/* Six gradients, of 18, 2, 2, 2, 216 and 3 elements, and running statistics. */
static training net_new(const adj_optimizer_opts *o)
{
    const adj_conv_layer conv = {.filters = 2, .padding = ADJ_SAME};
    const adj_norm_layer norm = {.training = 1};
    const adj_shape image = {4, {BATCH, SIDE, SIDE, 1}};
    adj_node *x = adj_input(adj_graph_new(), "images", ADJ_F32, image);
    adj_node *h = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv", &conv), "norm", &norm));
    return training_on(adj_layer_dense(h, "logits", 3, NULL), o);
}

typedef struct {
    char *seen; /* by id */
    int n;
    int64_t elems;
    size_t max_packed; /* bytes of the largest one of several values */
} reductions;

static void count(const adj_node *n, reductions *r)
{
    if (r->seen[adj_node_id(n)])
        return;
    r->seen[adj_node_id(n)] = 1;
    if (n->op == &adj_op_all_reduce) {
        const size_t packed = n->in[0]->op == &adj_op_concat ? adj_type_bytes(n->type) : 0;
        r->n++;
        r->elems += adj_shape_elems(n->type.shape);
        r->max_packed = packed > r->max_packed ? packed : r->max_packed;
    }
    for (int k = 0; k < n->n_in; k++)
        count(n->in[k], r);
}

static reductions reductions_of(const adj_updates *u, const adj_graph *g)
{
    scoped(release) char *seen = calloc((size_t)adj_graph_node_count(g), 1);
    reductions r = {.seen = seen};
    for (int i = 0; i < adj_updates_count(u); i++)
        count(adj_updates_next_at(u, i), &r);
    return r;
}

/* 18 + 2 + 2 + 2 + 216 + 3 elements of gradients, and [2, 2] statistics: each is reduced once,
 * whether one reads it or several. */
Test(data_parallel, buckets)
{
    enum { ALL = 18 + 2 + 2 + 2 + 216 + 3 + 4 };
    static const struct {
        size_t bytes;
        int reductions;
    } cases[] = {{0, 1}, {1, 7}, {ALL * 4, 1}};
    const adj_optimizer_opts options[] = {
        {.momentum = 0.9}, {.momentum = 0.9, .clip_norm = 1}, {.kind = ADJ_ADAM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            scoped(training_free) training n = net_new(&options[k]);
            const adj_updates *u = adj_data_parallel(
                n.updates, 3, 0, &(adj_data_parallel_opts){.bucket_bytes = cases[i].bytes});
            cr_assert_not_null(u, "%s", adj_graph_message(n.g));
            cr_expect_eq(adj_updates_count(u), adj_updates_count(n.updates));
            const reductions r = reductions_of(u, n.g);
            cr_expect_eq(reductions_of(n.updates, n.g).n, 0);
            cr_expect_eq(r.n, cases[i].reductions, "%zu bytes: %d", cases[i].bytes, r.n);
            cr_expect_eq(r.elems, ALL, "%ld", (long)r.elems);
        }
}

/* Packed values are at most bucket_bytes long. */
Test(data_parallel, bucket_bytes)
{
    for (size_t bytes = 4; bytes < 1200; bytes += 12) {
        scoped(training_free) training n = net_new(&with_momentum);
        const adj_updates *u =
            adj_data_parallel(n.updates, 3, 0, &(adj_data_parallel_opts){.bucket_bytes = bytes});
        cr_expect_leq(reductions_of(u, n.g).max_packed, bytes);
    }
}

/* Two steps; values of all parameters and states, one after the other. */
static size_t run(training *n, const adj_updates *u, const char *backend, char *values)
{
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &n->loss, .updates = u, .backend = backend, .threads = 1};
    scoped(release_exec) adj_exec *e = plan_of(n->g, &o);
    for (int step = 0; step < 2; step++)
        training_step(n, e, step);
    return copy_all_params(e, values, MAX_BYTES);
}

Test(data_parallel, of_one_gives_the_same_bits)
{
    static char plain[MAX_BYTES], shared[MAX_BYTES];
    const adj_optimizer_opts adam = {.kind = ADJ_ADAM, .clip_norm = 0.1};
    static const char *const backends[] = {"naive", "onednn"};
    for (int i = 0; i < 2; i++) {
        scoped(training_free) training n = net_new(&adam);
        const size_t bytes = run(&n, n.updates, backends[i], plain);
        const adj_updates *u = adj_data_parallel(n.updates, 1, 0, NULL);
        cr_assert_eq(run(&n, u, backends[i], shared), bytes);
        cr_expect_eq(memcmp(plain, shared, bytes), 0, "%s", backends[i]);
    }
}

/* Updates that are written by hand have no role: what is made of gradients is made anew all the
 * same, and the gradient itself is what is reduced. */
Test(data_parallel, updates_by_hand)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){1, {5}}, (adj_init){0});
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {5}}), *dw;
    adj_node *loss = adj_reduce_sum(adj_square(adj_mul(w, x)), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(loss, NULL, 1, &w, &dw), ADJ_OK);
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, w, adj_sub(w, adj_scale(adj_square(dw), 0.1)));
    const adj_updates *shared = adj_data_parallel(u, 2, 0, NULL);
    cr_assert_not_null(shared, "%s", adj_graph_message(g));
    /* w - 0.1 (0.5 all_reduce(dw))^2 */
    const adj_node *next = adj_updates_next_at(shared, 0);
    const adj_node *half = next->in[1]->in[0]->in[0];
    cr_expect_str_eq(next->op->name, "sub");
    cr_expect_str_eq(half->op->name, "scale");
    cr_expect_str_eq(half->in[0]->op->name, "all_reduce");
    cr_expect_eq(half->in[0]->in[0], dw);
}

Test(data_parallel, refusals)
{
    static const struct {
        int processes, rank, shards;
        const char *why;
    } cases[] = {
        {0, 0, 0, "got 0, expected 1 or more"},
        {2, 2, 0, "got 2, expected 0 to 1"},
        {2, -1, 0, "got -1, expected 0 to 1"},
        {2, 0, 3, "got 3, expected 0 or a multiple of 2 processes"},
        {2, 0, -2, "got -2, expected 0 or a multiple"},
        {1, 0, INT_MAX, "too many shards (got 2147483647, expected at most 10000)"},
        {10001, 0, 0, "too many shards (got 10001, expected at most 10000)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        const adj_updates *u = adj_updates_new(g);
        const adj_data_parallel_opts o = {.shards = cases[i].shards};
        cr_expect_null(adj_data_parallel(NULL, 2, 0, NULL));
        cr_expect_null(adj_data_parallel(u, cases[i].processes, cases[i].rank, &o));
        cr_expect_eq(adj_graph_status(g), ADJ_EARG);
        expect_text(adj_graph_message(g), cases[i].why);
        cr_expect_null(adj_data_parallel(u, 2, 0, NULL));
    }
}

/* ---- shards of one process ---- */

enum { IMAGE = SIDE * SIDE, MAX_SHARDS = 8 };

/* Dropout, a pool whose gradient reads three values, and a mean over images: nothing in which an
 * image knows the others. */
static training independent_net(adj_dtype dtype, int batch)
{
    const adj_conv_layer conv = {.filters = 2, .padding = ADJ_SAME};
    const adj_pool pool = {.ksize = {1, 2, 2, 1}, .stride = {1, 1, 1, 1}};
    const adj_shape image = {4, {batch, SIDE, SIDE, 1}};
    adj_node *x = adj_input(adj_graph_new(), "images", dtype, image);
    adj_node *h = adj_max_pool(adj_relu(adj_layer_conv2d(x, "conv", &conv)), &pool);
    h = adj_layer_dropout(h, "drop", 0.3, 5);
    return training_on(adj_layer_dense(h, "logits", 3, NULL), &with_momentum);
}

/* Batch norms, one behind the other. */
static training normalized_net(adj_dtype dtype, int batch)
{
    const adj_conv_layer conv = {.filters = 3, .padding = ADJ_SAME};
    const adj_norm_layer norm = {.training = 1};
    const adj_optimizer_opts optimizer = {.momentum = 0.9, .weight_decay = 1e-3};
    const adj_shape image = {4, {batch, SIDE, SIDE, 1}};
    adj_node *x = adj_input(adj_graph_new(), "images", dtype, image);
    adj_node *h = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv", &conv), "norm", &norm));
    h = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(h, "more", &conv), "most", &norm));
    return training_on(adj_layer_dense(h, "logits", 3, NULL), &optimizer);
}

/* Normal ones, brighter from one image to the next, so that shards have means of their own. */
static void draw_images(double x[], int images, int step)
{
    adj_draw(ADJ_F64, x, (int64_t)images * IMAGE, (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1}, 1,
             (uint64_t)step);
    for (int i = 0; i < images * IMAGE; i++)
        x[i] += 0.2 * (i / IMAGE);
}

/* Three steps of f64 on shards * per images; the mean of the losses of the last, and the values of
 * all parameters and states in *values. */
static double run_shards(training (*make)(adj_dtype, int), int shards, int per, double values[])
{
    double x[MAX_SHARDS * 4 * IMAGE], sum = 0;
    const double lr = 0.1;
    scoped(training_free) training n = make(ADJ_F64, per);
    const adj_data_parallel_opts o = {.shards = shards, .sync_batch_norm = 1};
    const adj_updates *u = shards > 1 ? adj_data_parallel(n.updates, 1, 0, &o) : n.updates;
    cr_assert_not_null(u, "%s", adj_graph_message(n.g));
    cr_assert_eq(adj_shard_count(u), shards);
    cr_expect_null(adj_shard_node(u, n.images, shards));
    cr_expect_eq(adj_shard_node(u, n.lr, 0), n.lr);
    adj_node *loss[MAX_SHARDS];
    for (int k = 0; k < shards; k++)
        loss[k] = adj_shard_node(u, n.loss, k);
    const adj_exec_opts opts = {
        .n_fetch = shards, .fetch = loss, .updates = u, .threads = 1, .backend = "naive"};
    scoped(release_exec) adj_exec *e = plan_of(n.g, &opts);
    for (int step = 0; step < 3; step++) {
        draw_images(x, shards * per, step);
        for (int k = 0; k < shards; k++) {
            int32_t labels[MAX_SHARDS * 4];
            for (int i = 0; i < per; i++)
                labels[i] = (k * per + i + step) % 3;
            const size_t bytes = (size_t)per * IMAGE * sizeof *x;
            adj_set(e, adj_shard_node(u, n.images, k), x + (size_t)k * per * IMAGE, bytes);
            adj_set(e, adj_shard_node(u, n.labels, k), labels, (size_t)per * sizeof *labels);
        }
        adj_set(e, n.lr, &lr, sizeof lr);
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    }
    for (int k = 0; k < shards; k++) {
        double own;
        adj_get(e, loss[k], &own, sizeof own);
        sum += own;
    }
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        const adj_type t = adj_node_type(adj_exec_param_at(e, i));
        double value[1024] = {0};
        cr_assert_leq(adj_type_bytes(t), sizeof value);
        adj_get(e, adj_exec_param_at(e, i), value, adj_type_bytes(t));
        for (int64_t j = 0; t.dtype == ADJ_F64 && j < adj_shape_elems(t.shape); j++)
            *values++ = value[j];
    }
    return sum / shards;
}

/* Expects the results of the whole batch, except for rounding: within `bound`, relative for values
 * that are not tiny. At least the given number of values must have changed. */
static void expect_whole(training (*make)(adj_dtype, int), int shards, int per, double bound,
                         double relative, int least)
{
    static double whole[2048], parts[2048];
    memset(whole, 0, sizeof whole);
    memset(parts, 0, sizeof parts);
    const double want = run_shards(make, 1, shards * per, whole);
    cr_expect_float_eq(run_shards(make, shards, per, parts), want, 1e-12, "%d shards", shards);
    int moved = 0;
    for (int k = 0; k < 2048; k++) {
        cr_assert_float_eq(parts[k], whole[k], fmax(bound, relative * fabs(whole[k])),
                           "%d shards, value %d: %g, not %g", shards, k, parts[k], whole[k]);
        moved += whole[k] != 0;
    }
    cr_expect_gt(moved, least);
}

/* Dropout's masks included. */
Test(data_parallel, shards_of_a_batch)
{
    static const int cases[][2] = {{2, 4}, {3, 4}, {4, 2}, {5, 1}, {6, 2}, {7, 1}, {8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_whole(independent_net, cases[i][0], cases[i][1], 1e-12, 0, 200);
}

/* ---- batch norms over all shards ---- */

/* Running statistics among the values; a bias before a batch norm is but noise, and stays small. */
Test(data_parallel, synchronized_batch_norm)
{
    static const int cases[][2] = {{2, 4}, {3, 3}, {4, 2}, {5, 1}, {8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_whole(normalized_net, cases[i][0], cases[i][1], 1e-14, 1e-11, 400);
}

/* Two reductions of each batch norm's statistics and one of its sums; gradients of gamma and beta
 * are made of these, and running statistics of those: they are not reduced again. */
Test(data_parallel, synchronized_reductions)
{
    scoped(training_free) training n = net_new(&with_momentum);
    const adj_data_parallel_opts o = {.sync_batch_norm = 1};
    const adj_updates *u = adj_data_parallel(n.updates, 2, 0, &o);
    cr_assert_not_null(u, "%s", adj_graph_message(n.g));
    const reductions r = reductions_of(u, n.g);
    cr_expect_eq(r.n, 1 + 2 + 1);
    cr_expect_eq(r.elems, 18 + 2 + 216 + 3 + 4 + 2 + 4, "%ld", (long)r.elems);
}

Test(data_parallel, nothing_to_synchronize)
{
    scoped(training_free) training n = independent_net(ADJ_F32, 2);
    adj_data_parallel_opts o = {0};
    const adj_updates *u = adj_data_parallel(n.updates, 2, 0, &o);
    o.sync_batch_norm = 1;
    const adj_updates *v = adj_data_parallel(n.updates, 2, 0, &o);
    cr_assert_not_null(v, "%s", adj_graph_message(n.g));
    for (int i = 0; i < adj_updates_count(u); i++)
        cr_expect_eq(adj_updates_next_at(u, i), adj_updates_next_at(v, i), "%d", i);
}

/* Far from 0, where the mean of squares is good for no digit of the variance in f32. */
Test(data_parallel, synchronized_variance_of_large_values)
{
    enum { SHARDS = 4, PER = 2, N = PER * IMAGE };
    float x[SHARDS][N], stats[2];
    double sum = 0, squares = 0;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *image = adj_input(g, "x", ADJ_F32, (adj_shape){4, {PER, SIDE, SIDE, 1}});
    adj_node *state = adj_state(g, "stats", ADJ_F32, (adj_shape){2, {2, 1}}, (adj_init){0});
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, state, adj_batch_norm_stats(image, ADJ_NHWC));
    const adj_data_parallel_opts o = {.shards = SHARDS, .sync_batch_norm = 1};
    const adj_updates *shared = adj_data_parallel(u, 1, 0, &o);
    cr_assert_not_null(shared, "%s", adj_graph_message(g));
    const adj_exec_opts opts = {.updates = shared, .threads = 1, .backend = "naive"};
    scoped(release_exec) adj_exec *e = plan_of(g, &opts);
    for (int k = 0; k < SHARDS; k++) {
        adj_draw(ADJ_F32, x[k], N, (adj_init){.kind = ADJ_INIT_NORMAL, .a = 4096 + k, .b = 1}, 1,
                 (uint64_t)k);
        adj_set(e, adj_shard_node(shared, image, k), x[k], sizeof x[k]);
        for (int i = 0; i < N; i++)
            sum += (double)x[k][i];
    }
    const double mean = sum / (SHARDS * N);
    for (int i = 0; i < SHARDS * N; i++)
        squares += pow((double)x[i / N][i % N] - mean, 2);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    adj_get(e, state, stats, sizeof stats);
    cr_expect_float_eq((double)stats[0], mean, 1e-3);
    cr_expect_float_eq((double)stats[1], squares / (SHARDS * N), 1e-3, "%g", (double)stats[1]);
}

/* The norm of a gradient as a part of the loss: its own gradient goes through the statistics. */
Test(data_parallel, no_second_derivatives)
{
    adj_data_parallel_opts o = {0};
    scoped(training_free) training n = net_new(&with_momentum);
    adj_node *w = adj_find(n.g, "conv/w"), *dw;
    cr_assert_eq(adj_grad(n.loss, NULL, 1, &w, &dw), ADJ_OK);
    adj_node *loss = adj_add(n.loss, adj_reduce_sum(adj_square(dw), (adj_axes){.n = ADJ_ALL}));
    adj_updates *u = adj_training_updates(loss, &(adj_optimizer_opts){.momentum = 0.5});
    cr_assert_not_null(u, "%s", adj_graph_message(n.g));
    cr_expect_not_null(adj_data_parallel(u, 2, 0, &o));
    o.sync_batch_norm = 1;
    cr_expect_null(adj_data_parallel(u, 2, 0, &o));
    cr_expect_eq(adj_graph_status(n.g), ADJ_EARG);
    expect_text(adj_graph_message(n.g), "expected first derivatives");
}

/* ---- the order of sums ---- */

/* (0 1)(2 3) and so on, as the bits of a counter are: what processes do as well. */
Test(data_parallel, tree_of_sums)
{
    static const char *const want[] = {
        "01+", "01+2+", "01+23++", "01+23++4+", "01+23++45++", "01+23++45+6++", "01+23++45+67+++"};
    for (int shards = 2; shards <= MAX_SHARDS; shards++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){1, {2}}, (adj_init){0});
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {2}}), *dw;
        adj_node *loss = adj_reduce_sum(adj_mul(w, x), (adj_axes){.n = ADJ_ALL});
        cr_assert_eq(adj_grad(loss, NULL, 1, &w, &dw), ADJ_OK);
        adj_updates *u = adj_updates_new(g);
        adj_updates_add(u, w, dw);
        const adj_data_parallel_opts o = {.shards = shards};
        const adj_updates *shared = adj_data_parallel(u, 1, 0, &o);
        cr_assert_not_null(shared, "%s", adj_graph_message(g));
        char text[64] = "";
        /* scale of all_reduce of the sum */
        adj_node *sum = adj_updates_next_at(shared, 0)->in[0]->in[0];
        adj_node *stack[64];
        int n = 1;
        size_t at = sizeof text - 1;
        for (stack[0] = sum; n > 0;) { /* postfix from the right */
            adj_node *top = stack[--n];
            if (top->op == &adj_op_add) {
                text[--at] = '+';
                stack[n++] = top->in[0];
                stack[n++] = top->in[1];
                continue;
            }
            for (int k = 0; k < shards; k++)
                if (adj_shard_node(shared, dw, k) == top)
                    text[--at] = (char)('0' + k);
        }
        cr_expect_str_eq(text + at, want[shards - 2], "%d shards", shards);
    }
}
