/* test_verify_models.c - no sound plan is refused: the built-in models in training and in inference
 * under every option that changes a plan. */
#include <stdlib.h>

#include "graph/op.h"
#include "ops/nn/model_list.h"
#include "tests/training.h"
#include "tests/plan.h"

/* Options of the executor that change the plan; the model's type. */
typedef struct {
    const char *name;
    adj_dtype dtype;
    adj_exec_opts opts;
} planned;

static const planned list[] = {
    {"as built", ADJ_F32, {.threads = 1}},
    {"two threads", ADJ_F32, {.threads = 2, .math = ADJ_MATH_FAST}},
    {"unfused", ADJ_F32, {.threads = 1, .debug = &(adj_exec_debug){.no_fusion = 1}}},
    {"no passes", ADJ_F32, {.threads = 1, .debug = &(adj_exec_debug){.no_passes = 1}}},
    {"memory of its own", ADJ_F32, {.threads = 1, .debug = &(adj_exec_debug){.no_sharing = 1}}},
    {"canaries", ADJ_F32, {.threads = 1, .debug = &(adj_exec_debug){.canaries = 1}}},
    {"unfused with canaries",
     ADJ_F32,
     {.threads = 1, .debug = &(adj_exec_debug){.no_fusion = 1, .canaries = 1}}},
    {"recomputed", ADJ_F32, {.threads = 1, .recompute = 1}},
    {"mixed bf16", ADJ_F32, {.threads = 1, .precision = ADJ_PRECISION_BF16}},
    {"mixed f16", ADJ_F32, {.threads = 1, .precision = ADJ_PRECISION_F16}},
    {"f64", ADJ_F64, {.threads = 1}},
    {"bf16", ADJ_BF16, {.threads = 2}},
    {"f16", ADJ_F16, {.threads = 1}},
    {"tuned", ADJ_F32, {.threads = 1, .tune = 1, .tune_seconds = 0.02}},
};
static const char *const backends[] = {"naive", "direct", "onednn"};

static const adj_optimizer_opts adam = {.kind = ADJ_ADAM, .clip_norm = 1};

static void expect_plans(adj_graph *g, const char *model, int n, adj_node *const fetch[],
                         const adj_updates *u, const planned *p)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        adj_exec_opts o = p->opts;
        o.n_fetch = n;
        o.fetch = fetch;
        o.updates = u;
        o.backend = backends[i];
        scoped(release_exec) adj_exec *e = NULL;
        cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_OK, "%s on %s, %s: %s", model, backends[i],
                     p->name, adj_exec_message(e));
    }
}

/* A training step that fetches its loss, and a parameter that it assigns. */
static void expect_training(const char *model, const planned *p)
{
    adj_model_opts o = {.batch = 2, .dtype = p->dtype};
    training t = training_of(model, o, p->dtype == ADJ_F32 ? &adam : &with_momentum);
    adj_node *fetch[] = {t.loss, adj_updates_leaf_at(t.updates, 0)};
    expect_plans(t.g, model, 2, fetch, t.updates, p);
    training_free(&t);
}

static void expect_inference(const char *model, const planned *p)
{
    adj_model_opts o = {.batch = 2, .dtype = p->dtype};
    const adj_model *m = adj_model_find(model, &o);
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits = adj_model_logits(g, m, &o);
    expect_plans(g, model, 1, &logits, NULL, p);
}

TestSuite(verify_models, .init = plan_as_usual);

Test(verify_models, all_plans_are_sound)
{
    for (int m = 0; adj_model_at(m) != NULL; m++)
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            expect_training(adj_model_at(m)->model.name, &list[i]);
            expect_inference(adj_model_at(m)->model.name, &list[i]);
        }
}

enum { MANY = 4000 };

/* Values of many sizes, each read last some steps later, sooner or later: more than are placed one
 * by one, and with holes between them. */
Test(verify_models, many_slots_of_many_sizes)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release) adj_node **value = calloc(MANY, sizeof(adj_node *));
    scoped(release) adj_node **sum = calloc(MANY, sizeof(adj_node *));
    const adj_shape row = {1, {4096}}, start = {1, {0}};
    adj_node *x = adj_input(g, "x", ADJ_F32, row);
    int n_sum = 0;
    for (int i = 0; i < MANY; i++) {
        const int elems = 16 * (1 + i * 37 % 97), age = 3 + i * 29 % 41;
        value[i] = adj_scale(adj_slice(x, start, (adj_shape){1, {elems}}), i + 1);
        if (i >= age && i % 3 > 0)
            sum[n_sum++] = adj_reduce_sum(value[i - age], (adj_axes){.n = ADJ_ALL, .keep_dims = 1});
    }
    adj_node *all = adj_concat(n_sum, sum, 0);
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &all,
                             .backend = "naive",
                             .debug = &(adj_exec_debug){.no_fusion = 1, .no_passes = 1}};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_expect_gt(adj_exec_stats(e).steps, MANY);
}
