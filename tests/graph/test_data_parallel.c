/* test_data_parallel.c - what becomes of a training step that is shared out: how many reductions
 * there are, of what; and the same bits as before in a group of one. Several processes are in
 * tests/mpi. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"

enum { BATCH = 4, SIDE = 6 };

typedef struct {
    adj_graph *g;
    adj_node *x, *labels, *lr, *loss;
    adj_updates *updates;
} net;

/* Six gradients, of 18, 2, 2, 2, 216 and 3 elements, and running statistics. */
static net net_new(const adj_optimiser_opts *o)
{
    const adj_conv_layer conv = {.filters = 2, .padding = ADJ_SAME};
    const adj_batch_norm_layer norm = {.training = 1};
    net n = {.g = adj_graph_new()};
    n.x = adj_input(n.g, "x", ADJ_F32, (adj_shape){4, {BATCH, SIDE, SIDE, 1}});
    n.labels = adj_input(n.g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
    n.lr = adj_input(n.g, "lr", ADJ_F32, (adj_shape){0});
    adj_node *h = adj_layer_conv2d(n.x, "conv", &conv);
    h = adj_relu(adj_layer_batch_norm(h, "norm", &norm));
    n.loss = adj_loss_softmax(adj_layer_dense(h, "logits", 3), n.labels);
    n.updates = adj_training_updates(n.loss, n.lr, o);
    cr_assert_not_null(n.updates, "%s", adj_graph_message(n.g));
    return n;
}

static void count(const adj_node *n, char *seen, int *reductions, int64_t *elems)
{
    if (seen[adj_node_id(n)])
        return;
    seen[adj_node_id(n)] = 1;
    if (n->op == &adj_op_all_reduce) {
        ++*reductions;
        *elems += adj_shape_elems(n->type.shape);
    }
    for (int k = 0; k < n->n_in; k++)
        count(n->in[k], seen, reductions, elems);
}

static int reductions_of(const adj_graph *g, const adj_updates *u, int64_t *elems)
{
    char *seen = calloc((size_t)adj_graph_node_count(g), 1);
    int n = 0;
    *elems = 0;
    for (int i = 0; i < adj_updates_count(u); i++)
        count(adj_updates_next_at(u, i), seen, &n, elems);
    free(seen);
    return n;
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
    const adj_optimiser_opts options[] = {
        {.momentum = 0.9}, {.momentum = 0.9, .clip_norm = 1}, {.kind = ADJ_ADAM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            net n = net_new(&options[k]);
            int64_t elems;
            const adj_updates *u = adj_data_parallel(
                n.updates, 3, &(adj_data_parallel_opts){.bucket_bytes = cases[i].bytes});
            cr_assert_not_null(u, "%s", adj_graph_message(n.g));
            cr_expect_eq(adj_updates_count(u), adj_updates_count(n.updates));
            cr_expect_eq(reductions_of(n.g, n.updates, &elems), 0);
            cr_expect_eq(reductions_of(n.g, u, &elems), cases[i].reductions, "%zu bytes: %d",
                         cases[i].bytes, reductions_of(n.g, u, &elems));
            cr_expect_eq(elems, ALL, "%ld", (long)elems);
            adj_graph_free(n.g);
        }
}

/* Two steps; values of all parameters and states, one after the other. */
static size_t run(net *n, const adj_updates *u, const char *backend, char *values)
{
    float x[BATCH * SIDE * SIDE];
    const int32_t labels[BATCH] = {0, 1, 2, 1};
    const float lr = 0.1F;
    size_t bytes = 0;
    adj_exec *e;
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &n->loss, .updates = u, .backend = backend, .threads = 1};
    cr_assert_eq(adj_exec_new(n->g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    adj_draw(ADJ_F32, x, BATCH * SIDE * SIDE, (adj_init){ADJ_INIT_NORMAL, 0, 1}, 1, 2);
    for (int step = 0; step < 2; step++) {
        adj_set(e, n->x, x, sizeof x);
        adj_set(e, n->labels, labels, sizeof labels);
        adj_set(e, n->lr, &lr, sizeof lr);
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    }
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        const size_t more = adj_type_bytes(adj_node_type(p));
        cr_assert_eq(adj_get(e, p, values + bytes, more), ADJ_OK, "%s", adj_exec_message(e));
        bytes += more;
    }
    adj_exec_free(e);
    return bytes;
}

Test(data_parallel, of_one_gives_the_same_bits)
{
    static char plain[1 << 16], shared[1 << 16];
    const adj_optimiser_opts adam = {.kind = ADJ_ADAM, .clip_norm = 0.1};
    static const char *const backends[] = {"naive", "onednn"};
    for (int i = 0; i < 2; i++) {
        net n = net_new(&adam);
        const size_t bytes = run(&n, n.updates, backends[i], plain);
        const adj_updates *u = adj_data_parallel(n.updates, 1, NULL);
        cr_assert_eq(run(&n, u, backends[i], shared), bytes);
        cr_expect_eq(memcmp(plain, shared, bytes), 0, "%s", backends[i]);
        adj_graph_free(n.g);
    }
}

/* Updates that are written by hand have no role: what is made of gradients is made anew all the
 * same, and the gradient itself is what is reduced. */
Test(data_parallel, updates_by_hand)
{
    adj_graph *g = adj_graph_new();
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){1, {5}}, (adj_init){0});
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {5}}), *dw;
    adj_node *loss = adj_reduce_sum(adj_square(adj_mul(w, x)), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(loss, NULL, 1, &w, &dw), ADJ_OK);
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, w, adj_sub(w, adj_scale(adj_square(dw), 0.1)));
    const adj_updates *shared = adj_data_parallel(u, 2, NULL);
    cr_assert_not_null(shared, "%s", adj_graph_message(g));
    /* w - 0.1 (0.5 all_reduce(dw))^2 */
    const adj_node *next = adj_updates_next_at(shared, 0);
    const adj_node *half = next->in[1]->in[0]->in[0];
    cr_expect_str_eq(next->op->name, "sub");
    cr_expect_str_eq(half->op->name, "scale");
    cr_expect_str_eq(half->in[0]->op->name, "all_reduce");
    cr_expect_eq(half->in[0]->in[0], dw);
    adj_graph_free(g);
}

Test(data_parallel, refusals)
{
    adj_graph *g = adj_graph_new();
    const adj_updates *u = adj_updates_new(g);
    cr_expect_null(adj_data_parallel(NULL, 2, NULL));
    cr_expect_null(adj_data_parallel(u, 0, NULL));
    cr_expect_eq(adj_graph_status(g), ADJ_EARG);
    cr_expect_not_null(strstr(adj_graph_message(g), "got 0, expected 1 or more"), "%s",
                       adj_graph_message(g));
    cr_expect_null(adj_data_parallel(u, 2, NULL));
    adj_graph_free(g);
}
