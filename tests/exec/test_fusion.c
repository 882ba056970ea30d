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

enum { BATCH = 2 };

/* ---- training steps whose sums are exact ---- */

static adj_node *conv(adj_node *x, const char *name, int64_t size, int64_t stride, int64_t filters)
{
    return adj_layer_conv2d(
        x, name,
        &(adj_conv_layer){
            .filters = filters, .kernel = {size}, .stride = {stride}, .padding = ADJ_SAME});
}

static adj_node *depthwise(adj_node *x, const char *name)
{
    return adj_layer_depthwise_conv2d(x, name, &(adj_conv_layer){.padding = ADJ_SAME});
}

static adj_node *lenet_like(adj_node *x)
{
    adj_node *y = adj_layer_max_pool(adj_relu(conv(x, "a", 5, 1, 8)), 2);
    y = adj_layer_max_pool(adj_relu(conv(y, "b", 3, 1, 16)), 2);
    return adj_layer_dense(adj_relu(adj_layer_dense(y, "c", 16, NULL)), "d", 4, NULL);
}

static adj_node *resnet_like(adj_node *x)
{
    adj_node *y = adj_relu(conv(x, "a", 3, 1, 16));
    y = adj_relu(adj_add(conv(adj_relu(conv(y, "b", 3, 1, 16)), "c", 1, 1, 16), y));
    adj_node *shortcut = conv(y, "d", 1, 2, 16);
    y = adj_relu(adj_add(adj_relu(conv(y, "e", 3, 2, 16)), shortcut));
    return adj_layer_dense(adj_layer_avg_pool(y, 2), "f", 4, NULL);
}

static adj_node *mobilenet_like(adj_node *x)
{
    adj_node *y = adj_relu6(conv(x, "a", 3, 2, 16));
    y = adj_relu6(conv(adj_relu6(depthwise(y, "b")), "c", 1, 1, 32));
    return adj_layer_dense(adj_relu(depthwise(y, "d")), "e", 4, NULL);
}

typedef adj_node *(*network)(adj_node *x);

typedef struct {
    double *value; /* after a step: the loss, parameters and momenta, which are the gradients */
    int64_t n;
    int n_zero;   /* gradients of zeros */
    int together; /* nodes of the largest step */
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

static int is_zero(const double *v, int64_t n)
{
    int64_t i = 0;
    while (i < n && v[i] == 0)
        i++;
    return i == n;
}

static void append(trained *t, adj_exec *e, const adj_node *n)
{
    const int64_t elems = adj_shape_elems(adj_node_type(n).shape);
    scoped(release) double *v = fixture_get(e, n);
    t->value = realloc(t->value, (size_t)(t->n + elems) * sizeof *t->value);
    memcpy(t->value + t->n, v, (size_t)elems * sizeof *v);
    t->n += elems;
    t->n_zero += n->op == &adj_op_state && is_zero(v, elems);
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

/* A step of SGD with momentum, the loss being linear in the logits; parameters take small integers,
 * many of them 0. */
static trained train(network build, adj_dtype dtype, adj_exec_opts o)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){4, {BATCH, 8, 8, 3}});
    adj_node *dy = adj_input(g, "dy", dtype, (adj_shape){2, {BATCH, 4}});
    adj_node *loss = adj_reduce_sum(adj_mul(build(x), dy), (adj_axes){.n = ADJ_ALL});
    o.updates = adj_optimizer(loss, &(adj_optimizer_opts){.momentum = 0.5});
    o.n_fetch = 1;
    o.fetch = &loss;
    o.threads = 2;
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    set_integers(e, x, 1, -2, 2, 3);
    set_integers(e, dy, 2, 1, 3, 1);
    set_values(e, adj_find(g, "learning_rate"), &(double){0x1p-6});
    for (int i = 0; i < adj_exec_param_count(e); i++)
        if (adj_exec_param_at(e, i)->op == &adj_op_param)
            set_integers(e, adj_exec_param_at(e, i), 10 + (uint64_t)i, -1, 1, 3);
    trained t = {.together = largest_step(e)};
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    append(&t, e, loss);
    for (int i = 0; i < adj_exec_param_count(e); i++)
        append(&t, e, adj_exec_param_at(e, i));
    return t;
}

static void expect_same(const trained *got, const trained *want, const char *name, const char *how)
{
    cr_assert_eq(got->n, want->n);
    for (int64_t i = 0; i < want->n; i++)
        cr_assert_eq(got->value[i], want->value[i], "%s, %s: value %ld: got %.9g, expected %.9g",
                     name, how, (long)i, got->value[i], want->value[i]);
    cr_assert(!is_zero(want->value, 1), "%s: the loss is 0", name);
    cr_assert_eq(want->n_zero, 0, "%s: %d gradients are 0", name, want->n_zero);
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
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {BATCH, 8, 8, 16}});
    adj_node *y = adj_relu(conv(x, "conv", 3, 1, 16));
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y};
    scoped(release_exec) adj_exec *e = NULL;
    setenv("ADJOINT_PLAN", words, 1);
    planned p = {.status = adj_exec_new(g, &o, &e)};
    p.together = largest_step(e);
    p.timed = adj_exec_details(e).timed;
    snprintf(p.message, sizeof p.message, "%s", adj_exec_message(e));
    snprintf(p.note, sizeof p.note, "%s", adj_exec_warning(e));
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
