/* test_fusion.c - fused groups give the results of their nodes one by one: training steps on
 * integers to the last bit, whole models within the bounds of adj_compare. And fusion can be
 * disabled. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "check/inspect.h"
#include "exec/report.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/harness.h"
#include "tests/training.h"

enum { BATCH = 2, MAX_PARAMS = 16 };

/* ---- training steps whose sums are exact ---- */

/* A network under construction; its parameters take small integers, many of them 0. */
typedef struct {
    adj_graph *g;
    adj_dtype dtype;
    int n;
    adj_node *param[MAX_PARAMS];
} net;

static adj_node *param(net *r, adj_shape shape)
{
    char name[8];
    snprintf(name, sizeof name, "p%d", r->n);
    return r->param[r->n++] = adj_param(r->g, name, r->dtype, shape, (adj_init){0});
}

static int64_t channels(const adj_node *x) { return x != NULL ? adj_node_type(x).shape.dim[3] : 0; }

static adj_node *conv(net *r, adj_node *x, int64_t k, int64_t stride, int64_t out)
{
    const adj_conv c = {.padding = ADJ_SAME, .stride = {1, stride, stride, 1}};
    adj_node *w = param(r, (adj_shape){4, {k, k, channels(x), out}});
    return adj_bias_add(adj_conv2d(x, w, &c), param(r, (adj_shape){1, {out}}), ADJ_NHWC);
}

static adj_node *depthwise(net *r, adj_node *x)
{
    const adj_conv c = {.padding = ADJ_SAME};
    adj_node *w = param(r, (adj_shape){4, {3, 3, channels(x), 1}});
    return adj_bias_add(adj_depthwise_conv2d_native(x, w, &c),
                        param(r, (adj_shape){1, {channels(x)}}), ADJ_NHWC);
}

static adj_node *dense(net *r, adj_node *x, int64_t in, int64_t out)
{
    adj_node *y = adj_matmul(adj_reshape(x, (adj_shape){2, {BATCH, in}}),
                             param(r, (adj_shape){2, {in, out}}), 0);
    return adj_bias_add(y, param(r, (adj_shape){1, {out}}), ADJ_NHWC);
}

static const adj_pool half = {.ksize = {1, 2, 2, 1}};

static adj_node *lenet_like(net *r, adj_node *x)
{
    adj_node *y = adj_max_pool(adj_relu(conv(r, x, 5, 1, 8)), &half);
    y = adj_max_pool(adj_relu(conv(r, y, 3, 1, 16)), &half);
    return dense(r, adj_relu(dense(r, y, 2 * 2 * 16, 16)), 16, 4);
}

static adj_node *resnet_like(net *r, adj_node *x)
{
    adj_node *y = adj_relu(conv(r, x, 3, 1, 16));
    y = adj_relu(adj_add(conv(r, adj_relu(conv(r, y, 3, 1, 16)), 1, 1, 16), y));
    adj_node *shortcut = conv(r, y, 1, 2, 16);
    y = adj_relu(adj_add(adj_relu(conv(r, y, 3, 2, 16)), shortcut));
    return dense(r, adj_avg_pool(y, &half), 2 * 2 * 16, 4);
}

static adj_node *mobilenet_like(net *r, adj_node *x)
{
    adj_node *y = adj_relu6(conv(r, x, 3, 2, 16));
    y = adj_relu6(conv(r, adj_relu6(depthwise(r, y)), 1, 1, 32));
    return dense(r, adj_relu(depthwise(r, y)), 4 * 4 * 32, 4);
}

typedef adj_node *(*network)(net *r, adj_node *x);

typedef struct {
    double *value; /* after a step: the loss, momenta (the gradients), then the parameters */
    int64_t n;
    int n_param, n_zero; /* of parameters: how many, and how many have a gradient of zeros */
    int together;        /* nodes of the largest step */
} trained;

/* From low to high; of so many one is not 0. */
static void set_integers(adj_exec *e, const adj_node *leaf, uint64_t stream, int low, int high,
                         uint32_t one_of)
{
    const int64_t n = adj_shape_elems(adj_node_type(leaf).shape);
    uint32_t word[4], key[2] = {(uint32_t)stream, 11};
    scoped(release) double *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        adj_philox((uint32_t[]){(uint32_t)i, 0, 0, 0}, key, word);
        int value = low + (int)(word[0] % (uint32_t)(high - low + 1));
        v[i] = word[1] % one_of == 0 ? value : 0;
    }
    set_values(e, leaf, v);
}

static void append(trained *t, adj_exec *e, const adj_node *n)
{
    const int64_t elems = adj_shape_elems(adj_node_type(n).shape);
    scoped(release) double *v = fixture_get(e, n);
    t->value = realloc(t->value, (size_t)(t->n + elems) * sizeof *t->value);
    memcpy(t->value + t->n, v, (size_t)elems * sizeof *v);
    t->n += elems;
}

static int is_zero(const double *v, int64_t n)
{
    int64_t i = 0;
    while (i < n && v[i] == 0)
        i++;
    return i == n;
}

/* Nodes of the plan's largest step. */
static int largest_step(const adj_exec *e)
{
    int largest = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const int n = adj_exec_step_at(e, i).n_node;
        largest = n > largest ? n : largest;
    }
    return largest;
}

/* A step of SGD with momentum, the loss being linear in the logits. */
static trained train(network build, adj_dtype dtype, adj_exec_opts o)
{
    net r = {.g = adj_graph_new(), .dtype = dtype};
    adj_node *x = adj_input(r.g, "x", dtype, (adj_shape){4, {BATCH, 8, 8, 3}});
    adj_node *dy = adj_input(r.g, "dy", dtype, (adj_shape){2, {BATCH, 4}});
    adj_node *lr = adj_input(r.g, "lr", dtype, (adj_shape){0}), *dp[MAX_PARAMS], *m[MAX_PARAMS];
    adj_node *loss = adj_reduce_sum(adj_mul(build(&r, x), dy), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(loss, NULL, r.n, r.param, dp), ADJ_OK, "%s", adj_graph_message(r.g));
    adj_updates *u = adj_updates_new(r.g);
    adj_graph_set_role(r.g, ADJ_ROLE_UPDATE);
    for (int i = 0; i < r.n; i++) {
        char name[8];
        snprintf(name, sizeof name, "m%d", i);
        m[i] = adj_state(r.g, name, dtype, adj_node_type(r.param[i]).shape, (adj_init){0});
        adj_node *next = adj_momentum(m[i], dp[i], r.param[i], 0.5, 0);
        adj_updates_add(u, m[i], next);
        adj_updates_add(u, r.param[i], adj_sgd_step(r.param[i], next, lr, 0));
    }
    adj_graph_set_role(r.g, ADJ_ROLE_FORWARD);
    o.n_fetch = 1;
    o.fetch = &loss;
    o.updates = u;
    o.threads = 2;
    scoped(release_exec) adj_exec *e = plan_of(r.g, &o);
    set_integers(e, x, 1, -2, 2, 3);
    set_integers(e, dy, 2, 1, 3, 1);
    for (int i = 0; i < r.n; i++)
        set_integers(e, r.param[i], 10 + (uint64_t)i, -1, 1, 3);
    set_values(e, lr, &(double){0x1p-6});
    trained t = {0};
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    append(&t, e, loss);
    for (int i = 0; i < r.n; i++) {
        const int64_t first = t.n;
        append(&t, e, m[i]);
        t.n_zero += is_zero(t.value + first, t.n - first);
    }
    t.n_param = r.n;
    for (int i = 0; i < r.n; i++)
        append(&t, e, r.param[i]);
    t.together = largest_step(e);
    adj_graph_free(r.g);
    return t;
}

static void expect_same(const trained *got, const trained *want, const char *name, const char *how)
{
    cr_assert_eq(got->n, want->n);
    for (int64_t i = 0; i < want->n; i++)
        cr_assert_eq(got->value[i], want->value[i], "%s, %s: value %ld: got %.9g, expected %.9g",
                     name, how, (long)i, got->value[i], want->value[i]);
    cr_assert(!is_zero(want->value, 1), "%s: the loss is 0", name);
    cr_assert_eq(want->n_zero, 0, "%s: %d of %d gradients are 0", name, want->n_zero,
                 want->n_param);
}

TestSuite(fusion, .init = plan_as_usual);

Test(fusion, training_steps_on_integers_to_the_last_bit)
{
    static const struct {
        const char *name;
        network build;
    } nets[] = {{"lenet", lenet_like}, {"resnet", resnet_like}, {"mobilenet", mobilenet_like}};
    enum { UNFUSED, FUSED, DIRECT, DIRECT_F64, N_WAYS };
    const adj_exec_debug unfused = {.no_fusion = 1};
    const struct {
        const char *how;
        adj_dtype dtype;
        adj_exec_opts opts;
    } ways[N_WAYS] = {[UNFUSED] = {"unfused", ADJ_F32, {.debug = &unfused}},
                      [FUSED] = {"fused", ADJ_F32, {0}},
                      [DIRECT] = {"fused by direct", ADJ_F32, {.backend = "direct"}},
                      [DIRECT_F64] = {"by direct in f64", ADJ_F64, {.backend = "direct"}}};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        const adj_exec_opts naive = {.backend = "naive",
                                     .debug = &(adj_exec_debug){.no_fusion = 1}};
        trained exact = train(nets[i].build, ADJ_F64, naive);
        int together[N_WAYS];
        for (int k = 0; k < N_WAYS; k++) {
            trained t = train(nets[i].build, ways[k].dtype, ways[k].opts);
            expect_same(&t, &exact, nets[i].name, ways[k].how);
            together[k] = t.together;
            free(t.value);
        }
        cr_assert_eq(together[UNFUSED], 1);
        cr_assert(together[FUSED] > 1, "%s", nets[i].name);
        cr_assert(together[DIRECT] > 1 && together[DIRECT_F64] > 1, "%s", nets[i].name);
        free(exact.value);
    }
}

/* ---- models whose sums are rounded ---- */

Test(fusion, models_within_their_bounds)
{
    static const char *const configs[] = {"naive:f64", "onednn", "onednn:unfused"};
    static const struct {
        const char *name;
        int64_t size;
    } models[] = {{"lenet", 16}, {"resnet8", 8}, {"ds_cnn", 0}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const adj_model_opts size = {
            .batch = BATCH, .size.h = models[i].size, .size.w = models[i].size};
        scoped(training_free) training t = training_of(models[i].name, size, &with_momentum);
        const adj_compare_opts o = {.exec.n_fetch = 1,
                                    .exec.fetch = &t.loss,
                                    .exec.updates = t.updates,
                                    .n_config = 3,
                                    .config = configs,
                                    .runs = 1,
                                    .exec.threads = 1,
                                    .exec.seed = 1};
        scoped(release_comparison) const adj_comparison *c = NULL;
        cr_assert_eq(adj_compare(t.g, &o, &c), ADJ_OK, "%s", c->message);
        int grouped = 0;
        for (int k = 0; k < c->n_row; k++) {
            const compare_row *row = adj_comparison_row_at(c, k);
            cr_assert_eq(row->verdict, ADJ_VERDICT_PASS, "%s, %s: %s: %s", models[i].name,
                         configs[row->config], adj_compare_row_name(row), row->reason);
            grouped += row->group[0] != '\0';
            cr_assert(row->group[0] == '\0' || row->config == 1);
        }
        cr_assert(grouped > 5, "%d groups", grouped);
        cr_assert_eq(c->n_whole_failed, 0);
        cr_assert_eq(adj_comparison_result_at(c, 2).differs, 0); /* as when every node is kept */
    }
}

/* ---- the environment ---- */

typedef struct {
    adj_status status;
    int together, timed;
    char message[256], note[256];
} planned;

static planned plan_with(const char *words)
{
    net r = {.g = adj_graph_new(), .dtype = ADJ_F32};
    adj_node *x = adj_input(r.g, "x", ADJ_F32, (adj_shape){4, {BATCH, 8, 8, 16}});
    adj_node *y = adj_relu(conv(&r, x, 3, 1, 16));
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y};
    scoped(release_exec) adj_exec *e = NULL;
    setenv("ADJOINT_PLAN", words, 1);
    planned p = {.status = adj_exec_new(r.g, &o, &e)};
    p.together = largest_step(e);
    p.timed = adj_exec_details(e).timed;
    snprintf(p.message, sizeof p.message, "%s", adj_exec_message(e));
    snprintf(p.note, sizeof p.note, "%s", adj_exec_warning(e));
    adj_graph_free(r.g);
    return p;
}

Test(fusion, the_environment_adds_to_the_options)
{
    static const struct {
        const char *words;
        int is_fused, is_tuned;
    } cases[] = {{"", 1, 0}, {"unfused", 0, 0}, {"tune", 1, 1}, {"tune,unfused", 0, 1}};
    unsetenv("ADJOINT_TUNE");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const planned p = plan_with(cases[i].words);
        const int is_tuned = p.timed > 0 || strstr(p.note, "too short") != NULL;
        cr_assert_eq(p.status, ADJ_OK, "%s: %s", cases[i].words, p.message);
        cr_assert(cases[i].is_fused ? p.together > 1 : p.together == 1, "%s", cases[i].words);
        cr_assert(cases[i].is_tuned ? is_tuned : p.timed == 0, "%s", cases[i].words);
    }
    const planned p = plan_with("unfused,tuned");
    cr_assert_eq(p.status, ADJ_EARG);
    expect_text(p.message, "unknown word (got \"tuned\"");
}
