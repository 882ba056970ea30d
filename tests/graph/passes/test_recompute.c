/* test_recompute.c - recomputed activations: no result changes by a bit, memory shrinks, and
 * nothing is recomputed without saving memory. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/counter.h"
#include "tests/training.h"

enum { BATCH = 4, STEPS = 2 };

/* Returns a net like VGG with batch norm, in which the pool's gradient also reads recomputed
 * values. */
static adj_node *vgg_like(adj_graph *g, adj_format format)
{
    const adj_pool half = {.ksize = {1, format == ADJ_NCHW ? 1 : 2, 2, format == ADJ_NCHW ? 2 : 1},
                           .format = format};
    adj_shape shape = {4, {BATCH, 32, 32, 3}};
    if (format == ADJ_NCHW)
        shape = (adj_shape){4, {BATCH, 3, 32, 32}};
    adj_node *h = adj_input(g, "images", ADJ_F32, shape);
    for (int i = 0; i < 6; i++) {
        char conv[16], norm[16];
        snprintf(conv, sizeof conv, "conv%d", i);
        snprintf(norm, sizeof norm, "norm%d", i);
        adj_conv_layer layer = {.filters = 8 << i / 2, .kernel = {3}, .padding = ADJ_SAME};
        layer.format = format;
        h = adj_layer_conv2d(h, conv, &layer);
        h = adj_layer_batch_norm(h, norm, &(adj_norm_layer){.training = 1, .format = format});
        h = i % 3 == 2 ? adj_leaky_relu(h, 0.1) : adj_relu(h);
        h = i % 2 == 1 ? adj_max_pool(h, &half) : h;
    }
    return adj_layer_dense(h, "logits", 10, NULL);
}

/* The first batch norm is read by relu, and by a convolution that passes no gradient on. */
static adj_node *norm_read_twice(adj_graph *g)
{
    const adj_conv_layer layer = {.filters = 16, .kernel = {3}, .padding = ADJ_SAME};
    const adj_norm_layer norm = {.training = 1};
    adj_node *images = adj_input(g, "images", ADJ_F32, (adj_shape){4, {BATCH, 16, 16, 3}});
    adj_node *z = adj_layer_batch_norm(adj_layer_conv2d(images, "conv1", &layer), "norm", &norm);
    adj_node *aside = adj_layer_conv2d(adj_stop_gradient(z), "conv2", &layer);
    adj_node *h = adj_layer_conv2d(adj_relu(z), "conv3", &layer);
    return adj_layer_dense(adj_add(h, aside), "logits", 10, NULL);
}

static training network_of(const char *model, int64_t batch)
{
    if (strncmp(model, "vgg like", 8) == 0)
        return training_on(
            vgg_like(adj_graph_new(), strstr(model, "NCHW") != NULL ? ADJ_NCHW : ADJ_NHWC),
            &with_momentum);
    if (strcmp(model, "norm read twice") == 0)
        return training_on(norm_read_twice(adj_graph_new()), &with_momentum);
    return training_of(model, (adj_model_opts){.batch = batch}, &with_momentum);
}

static adj_exec *planned(const training *n, adj_exec_opts o)
{
    o.n_fetch = 1;
    o.fetch = &n->loss;
    o.updates = n->updates;
    o.seed = 3;
    o.threads = 1;
    o.debug = &(adj_exec_debug){.canaries = 1};
    return plan_of(n->g, &o);
}

/* Parameters, optimizer state and running statistics. */
static void expect_same_params(adj_exec *a, adj_exec *b, const char *label)
{
    enum { ROOM = 1 << 22 };
    scoped(release) char *x = malloc(ROOM), *y = malloc(ROOM);
    const size_t bytes = copy_all_params(a, x, ROOM);
    cr_expect_eq(copy_all_params(b, y, ROOM), bytes, "%s", label);
    cr_expect_eq(memcmp(x, y, bytes), 0, "%s: parameters or states differ", label);
}

/* Returns the live memory of a plan on naive with that setting of recompute. */
static size_t live(const training *n, adj_precision precision, int recompute)
{
    const adj_exec_opts o = {.backend = "naive", .precision = precision, .recompute = recompute};
    scoped(release_exec) adj_exec *e = planned(n, o);
    return adj_exec_details(e).live_bytes;
}

/* No more memory, and the same bits after some steps. */
static void check_steps_of(const char *model, int64_t batch, const char *backend,
                           adj_precision precision, int recompute)
{
    char label[128];
    adj_exec_opts o = {.backend = backend, .precision = precision, .recompute = -1};
    scoped(training_free) training n = network_of(model, batch);
    snprintf(label, sizeof label, "%s, %s, precision %d", model, backend, (int)precision);
    scoped(release_exec) adj_exec *plain = planned(&n, o);
    o.recompute = recompute;
    scoped(release_exec) adj_exec *again = planned(&n, o);
    if (recompute == 0)
        cr_assert_gt(adj_exec_details(again).recomputed, 0, "%s: nothing is compared", label);
    for (int i = 0; i < STEPS; i++)
        cr_expect_eq(training_step(&n, plain, i), training_step(&n, again, i), "%s: loss", label);
    expect_same_params(plain, again, label);
    cr_expect_leq(adj_exec_details(again).live_bytes, adj_exec_details(plain).live_bytes, "%s",
                  label);
}

static void check_steps(const char *model, const char *backend, adj_precision precision)
{
    check_steps_of(model, BATCH, backend, precision, 1);
}

/* How much is saved is a fact of the graph only where kernels need no scratch memory and no
 * layouts of their own, which differ with the CPU and with oneDNN's version: on naive. */
static void check_share(const char *model, adj_precision precision, double max)
{
    scoped(training_free) training n = network_of(model, BATCH);
    const double again = (double)live(&n, precision, 1);
    const double share = again / (double)live(&n, precision, -1);
    cr_expect(share <= max, "%s, precision %d: %g of the memory, expected at most %g", model,
              (int)precision, share, max);
}

/* The pass's result is inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
TestSuite(recompute, .init = plan_as_usual);

Test(recompute, saves_memory)
{
    check_share("vgg like", ADJ_PRECISION_AS_BUILT, 0.84);
    check_share("vgg like", ADJ_PRECISION_BF16, 0.86);
    check_share("vgg like", ADJ_PRECISION_F16, 0.86);
    check_share("vgg like NCHW", ADJ_PRECISION_AS_BUILT, 0.84);
    check_share("resnet8", ADJ_PRECISION_AS_BUILT, 0.85);
    check_share("resnet8", ADJ_PRECISION_BF16, 0.86);
    check_share("mobilenet_v1", ADJ_PRECISION_AS_BUILT, 0.54);
    check_share("mobilenet_v1", ADJ_PRECISION_BF16, 0.61);
    /* nothing changes: recomputation would need values that are not stored */
    check_share("lenet", ADJ_PRECISION_AS_BUILT, 1);
}

/* Half of mobilenet_v1's activations must be stored; of a residual net's more. */
Test(recompute, unasked_where_it_saves_time)
{
    static const struct {
        const char *model;
        int64_t batch;
        int expected;
    } list[] = {{"mobilenet_v1", 8, 1}, {"mobilenet_v1", 4, -1}, {"resnet20", 16, -1}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        scoped(training_free) training n = network_of(list[i].model, list[i].batch);
        const size_t got = live(&n, ADJ_PRECISION_AS_BUILT, 0);
        const size_t always = live(&n, ADJ_PRECISION_AS_BUILT, 1);
        const size_t never = live(&n, ADJ_PRECISION_AS_BUILT, -1);
        cr_expect_lt(always, never);
        cr_expect_eq(got, list[i].expected > 0 ? always : never, "%s: %zu, %zu and %zu bytes",
                     list[i].model, got, always, never);
    }
}

Test(recompute, changes_no_bit)
{
    check_steps("vgg like", "naive", ADJ_PRECISION_AS_BUILT);
    check_steps("vgg like NCHW", "naive", ADJ_PRECISION_AS_BUILT);
    check_steps("vgg like", "onednn", ADJ_PRECISION_AS_BUILT);
    check_steps("vgg like NCHW", "onednn", ADJ_PRECISION_AS_BUILT);
    check_steps("vgg like", "onednn", ADJ_PRECISION_BF16);
    check_steps("vgg like", "onednn", ADJ_PRECISION_F16);
    check_steps("norm read twice", "direct", ADJ_PRECISION_AS_BUILT);
    check_steps("norm read twice", "onednn", ADJ_PRECISION_AS_BUILT);
    check_steps("norm read twice", "onednn", ADJ_PRECISION_BF16);
    check_steps("resnet8", "naive", ADJ_PRECISION_AS_BUILT);
    check_steps("resnet8", "onednn", ADJ_PRECISION_AS_BUILT);
    check_steps("resnet8", "onednn", ADJ_PRECISION_BF16);
    check_steps("resnet8", "onednn", ADJ_PRECISION_F16);
    check_steps("resnet8", "direct", ADJ_PRECISION_BF16);
    check_steps("mobilenet_v1", "onednn", ADJ_PRECISION_AS_BUILT);
    check_steps("mobilenet_v1", "onednn", ADJ_PRECISION_BF16);
    check_steps("lenet", "onednn", ADJ_PRECISION_AS_BUILT);
    /* unasked */
    const char *model = "mobilenet_v1";
    check_steps_of(model, 8, "onednn", ADJ_PRECISION_AS_BUILT, 0);
    check_steps_of(model, 16, "onednn", ADJ_PRECISION_BF16, 0);
    check_steps_of(model, 16, "onednn", ADJ_PRECISION_F16, 0);
}

/* Where the gradient needs relu(batch_norm(x)) and another batch norm's sums its mask, one step
 * reads x and computes both: all relus but the last, which nothing recomputes. */
Test(recompute, goes_with_the_sums_of_what_it_masks)
{
    scoped(training_free) training n = network_of("mobilenet_v1", 8);
    scoped(release_exec) adj_exec *e = planned(&n, (adj_exec_opts){.backend = "direct"});
    int both = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const adj_step_info step = adj_exec_step_at(e, i);
        both += step.n_node == 5 && strstr(step.impl, "fused_row_kernel") != NULL;
    }
    cr_expect_eq(both, 26, "got %d", both);
}

/* ---- what is computed again ---- */

/* Number of the op's nodes in the executor's graph, for the forward pass and for the gradient. */
typedef struct {
    int forward, again;
} count;

static count count_op(adj_graph *g, int n, adj_node *const fetch[], const char *op)
{
    char *text = NULL, call[64];
    size_t size = 0;
    count found = {0};
    FILE *f = open_memstream(&text, &size);
    adj_exec_opts o = {.n_fetch = n,
                       .fetch = fetch,
                       .backend = "naive",
                       .recompute = 1,
                       .debug = &(adj_exec_debug){.trace = f}};
    adj_exec *e = plan_of(g, &o);
    adj_exec_free(e);
    fclose(f);
    snprintf(call, sizeof call, "= %s(", op);
    char *line = strstr(text, "after copy:");
    cr_assert_not_null(line);
    for (; (line = strchr(line, '\n')) != NULL && line[1] != '\0'; line++) {
        char one[512];
        snprintf(one, sizeof one, "%.*s", (int)strcspn(line + 1, "\n"), line + 1);
        if (strstr(one, call) != NULL)
            *(one[0] == 'g' ? &found.again : &found.forward) += 1;
    }
    free(text);
    return found;
}

static void expect_count(adj_graph *g, int n, adj_node *const fetch[], const char *op, int forward,
                         int again)
{
    cr_assert_eq(adj_graph_status(g), ADJ_OK, "%s", adj_graph_message(g));
    count c = count_op(g, n, fetch, op);
    cr_expect(c.forward == forward && c.again == again, "%s: %d and %d again, expected %d and %d",
              op, c.forward, c.again, forward, again);
}

static adj_node *weight(adj_graph *g, const char *name)
{
    return adj_param(g, name, ADJ_F32, (adj_shape){2, {4, 4}}, (adj_init){0});
}

static adj_node *sum(adj_node *x) { return adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL}); }

/* silu's gradient reads h = x w, so relu(h) can be had again, and a view of it. */
Test(recompute, copies_chains_that_begin_with_what_is_kept)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = weight(g, "x"), *w = weight(g, "w"), *v = weight(g, "v");
    adj_node *h = adj_matmul(x, w, 0), *r = adj_relu6(adj_relu(h));
    adj_node *t = adj_reshape(adj_reshape(r, (adj_shape){1, {16}}), (adj_shape){2, {4, 4}});
    adj_node *y = adj_add(adj_silu(h), adj_matmul(t, v, 0)), *dv, *dw;
    adj_grad(sum(adj_square(y)), NULL, 1, &v, &dv);
    adj_grad(sum(adj_square(y)), NULL, 1, &w, &dw);
    adj_node *const gradients[] = {dv, dw}, *const and_value[] = {dv, dw, r};
    expect_count(g, 2, gradients, "relu", 1, 1);
    expect_count(g, 2, gradients, "relu6", 1, 1);
    expect_count(g, 2, gradients, "silu", 1, 0);
    expect_count(g, 2, gradients, "matmul", 2, 3); /* dv, and two of dw */
    /* It is there until the end, as it is fetched; and so it is of no use to copy what it is of. */
    expect_count(g, 3, and_value, "relu6", 1, 0);
    /* Without silu nothing keeps h, and relu's result is kept instead. */
    y = adj_matmul(r, v, 0);
    adj_grad(sum(adj_square(y)), NULL, 1, &v, &dv);
    expect_count(g, 1, &dv, "relu6", 1, 0);
}

/* Elementwise nodes are computed together, but a copy not with what it is copied from: it would be
 * there from then on. silu's gradient keeps each h. */
Test(recompute, copies_come_late)
{
    enum { LAYERS = 6 };
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_shape square = {2, {64, 64}};
    adj_node *z = adj_input(g, "x", ADJ_F32, square), *w[2 * LAYERS], *dw[2 * LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        char name[2][16];
        for (int k = 0; k < 2; k++) {
            snprintf(name[k], sizeof name[k], "w%d.%d", i, k);
            w[2 * i + k] = adj_param(g, name[k], ADJ_F32, square,
                                     (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1});
        }
        adj_node *h = adj_scale(adj_matmul(z, w[2 * i], 0), 0.5);
        z = adj_add(adj_matmul(adj_relu(h), w[2 * i + 1], 0), adj_silu(h));
    }
    cr_assert_eq(adj_grad(sum(z), NULL, 2 * LAYERS, w, dw), ADJ_OK);
    /* The gradients' sum, so that they need no memory. */
    adj_node *all = sum(dw[0]);
    for (int i = 1; i < 2 * LAYERS; i++)
        all = adj_add(sum(dw[i]), all);
    const char *const backends[] = {"naive", "onednn"};
    const double max[] = {0.85, 1}; /* as for the models: what holds for any kernels */
    for (int i = 0; i < 2; i++) {
        double live[2];
        for (int again = 0; again < 2; again++) {
            adj_exec_opts o = {
                .n_fetch = 1, .fetch = &all, .backend = backends[i], .recompute = again ? 1 : -1};
            scoped(release_exec) adj_exec *e = plan_of(g, &o);
            live[again] = (double)adj_exec_details(e).live_bytes;
        }
        cr_expect(live[1] <= max[i] * live[0], "%s: %g and %g", backends[i], live[1], live[0]);
    }
}

/* A long chain is cut: a copy is no longer than four nodes, whatever the graph is. */
Test(recompute, chains_are_bounded)
{
    enum { LONG = 2000 };
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = weight(g, "x"), *w = weight(g, "w"), *dw;
    adj_node *h = adj_matmul(x, w, 0), *y = adj_square(h);
    for (int i = 0; i < LONG; i++)
        h = adj_leaky_relu(h, i % 2 ? 0.5 : 0.25);
    adj_grad(sum(adj_mul(h, y)), NULL, 1, &w, &dw);
    adj_node *const fetch[] = {dw, h};
    count c = count_op(g, 2, fetch, "leaky_relu");
    cr_expect(c.forward == LONG && c.again > LONG / 2 && c.again < LONG, "%d and %d", c.forward,
              c.again);
}

/* ---- memory that runs out ---- */

static adj_status plan_in(counter *c)
{
    scoped(training_free) training n = network_of("vgg like", BATCH);
    const adj_allocator a = {count_alloc, count_free, c};
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &n.loss,
                             .updates = n.updates,
                             .backend = "naive",
                             .recompute = 1,
                             .allocator = &a};
    scoped(release_exec) adj_exec *e = NULL;
    return adj_exec_new(n.g, &o, &e);
}

Test(recompute, memory_may_run_out_anywhere) { run_out_of_memory(plan_in); }
