/* test_verify.c - finished plans, each spoiled in one way: the verifier refuses them, and names the
 * step and both values. No sound plan is refused: the built-in models in training and in inference
 * under every option that changes a plan. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "adjoint_nn.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "ops/nn/model_list.h"
#include "tests/exec/corrupt.h"
#include "tests/plan.h"
#include "tests/reference.h"
#include "tests/training.h"

enum { N = 64, BYTES = 4 * N };
static const adj_shape vec = {1, {N}}, pair = {2, {2, N / 2}};

/* ---- a backend with a layout and scratch memory ---- */

static const adj_layout turned = {BYTES, "turned"}; /* elements in reverse order */

static adj_status prepare_tanh(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->n_node > 1 || strcmp(g->node[0]->op->name, "tanh") != 0 || candidate > 0)
        return ADJ_ENOKERNEL;
    p->in[0] = p->out[0] = &turned;
    p->scratch = BYTES;
    p->alias[0].operands = 1;
    return ADJ_OK;
}

static adj_status run_nothing(const adj_call *c)
{
    (void)c;
    return ADJ_OK;
}

static adj_status run_reorder(void *state, const void *in, void *out, void *scratch)
{
    (void)state, (void)in, (void)out, (void)scratch;
    return ADJ_OK;
}

static const adj_kernel turned_tanh = {.name = "tanh", .prepare = prepare_tanh, .run = run_nothing};
static const adj_kernel *const kernels[] = {&turned_tanh, NULL};
static const adj_backend turning = {.name = "turning",
                                    .kernels = kernels,
                                    .layout_bytes = layout_bytes,
                                    .layout_name = layout_name,
                                    .reorder_prepare = prepare_no_state,
                                    .reorder_run = run_reorder,
                                    .reorder_drop = drop_nothing};

/* ---- plans ---- */

typedef enum { PLAIN, CANARIES, ALONE } kind;

static adj_exec *plan_nodes(int n, adj_node *const fetch[], const adj_updates *u, kind kind)
{
    const adj_exec_opts o = {.n_fetch = n,
                             .fetch = fetch,
                             .updates = u,
                             .threads = 1,
                             .debug = &(adj_exec_debug){.no_fusion = 1,
                                                        .no_passes = 1,
                                                        .canaries = kind == CANARIES,
                                                        .no_sharing = kind == ALONE},
                             .backends = beside_naive(turning)};
    return plan_of(adj_node_graph(fetch[0]), &o);
}

/* y = sigmoid(x) * exp(sqrt(x)): a value lives while others come and go. */
static adj_exec *forward(adj_graph *g, kind kind)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, vec);
    adj_node *kept = adj_label(adj_sigmoid(x), "kept");
    adj_node *root = adj_label(adj_sqrt(x), "root");
    adj_node *y = adj_mul(kept, adj_label(adj_exp(root), "e"));
    return plan_nodes(1, &y, NULL, kind);
}

/* y = -tanh(exp(x)), tanh in a layout of its own. */
static adj_exec *layouts(adj_graph *g, kind kind)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, vec);
    adj_node *y = adj_neg(adj_label(adj_tanh(adj_label(adj_exp(x), "e")), "magnitude"));
    return plan_nodes(1, &y, NULL, kind);
}

/* y = exp(x * sigmoid(exp(w))), of which only the product changes with every run. */
static adj_exec *inference(adj_graph *g, kind kind)
{
    adj_node *w = adj_param(g, "w", ADJ_F32, vec, (adj_init){0});
    adj_node *x = adj_input(g, "x", ADJ_F32, vec), *y[2];
    y[0] = adj_exp(adj_mul(x, adj_label(adj_sigmoid(adj_label(adj_exp(w), "inner")), "packed")));
    return plan_nodes(1, y, NULL, kind);
}

/* A classifier whose parameter is trained, and averaged as it was before the step. */
static adj_exec *train(adj_graph *g, kind kind)
{
    adj_node *w = adj_param(g, "w", ADJ_F32, pair,
                            (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1}),
             *dw;
    adj_node *mean = adj_state(g, "mean", ADJ_F32, pair, (adj_init){0});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {2}});
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_loss_softmax(w, labels, NULL);
    adj_updates *u = adj_updates_new(g);
    adj_grad(loss, NULL, 1, &w, &dw);
    g->role = ADJ_ROLE_UPDATE;
    adj_updates_add(u, w, adj_label(adj_sgd_step(w, dw, lr, 0), "next"));
    adj_updates_add(u, mean, adj_ema(mean, w, 0.9));
    adj_node *fetch[] = {loss, w};
    return plan_nodes(2, fetch, u, kind);
}

/* ---- faults ---- */

static void overlap(adj_exec *e)
{
    slot_called(e, "sqrt")->offset = slot_called(e, "sigmoid")->offset;
}
static void overlap_partly(adj_exec *e)
{
    slot_called(e, "sqrt")->offset = slot_called(e, "sigmoid")->offset + BYTES / 2;
}
static void off_by_bytes(adj_exec *e) { slot_called(e, "sqrt")->offset += 32; }
static void no_gap(adj_exec *e) { slot_called(e, "sqrt")->offset -= 64; }
static void short_arena(adj_exec *e) { e->memory.arena.bytes -= 64; }
static void short_storage(adj_exec *e) { e->memory.storage.bytes -= 64; }
static void short_slot(adj_exec *e) { slot_called(e, "sigmoid")->bytes -= 4; }
static void missing(adj_exec *e) { remove_step(e, step_number(e, "sqrt")); }
static void swapped(adj_exec *e) { swap_steps(e, step_number(e, "exp"), step_number(e, "sqrt")); }
static void other_operand(adj_exec *e)
{
    step *s = step_called(e, "mul");
    ((const void **)s->call.in)[0] = s->call.in[1];
}
static void unclaimed(adj_exec *e) { step_called(e, "exp")->prep.alias[0].operands = 0; }
static void in_place_of_input(adj_exec *e)
{
    const buffer *x = &e->plan.buffer[leaf_called(e, "x")->buffer];
    e->plan.buffer[step_called(e, "sqrt")->out[0]].slot = x->slot;
}
static void lost_operand(adj_exec *e) { step_called(e, "mul")->group.n_in = 1; }
static void lost_fetch(adj_exec *e) { e->plan.fetch[0].buffer = step_called(e, "sigmoid")->out[0]; }
static void leaf_over_leaf(adj_exec *e)
{
    slot_of(&e->plan, leaf_called(e, "w")->buffer)->offset =
        slot_of(&e->plan, leaf_called(e, "mean")->buffer)->offset;
}

static void wrong_layout(adj_exec *e) { step_called(e, "tanh")->prep.in[0] = NULL; }
static void missing_reorder(adj_exec *e)
{
    step *s = step_called(e, "tanh");
    ((const void **)s->call.in)[0] = s[-1].call.in[0];
}
static void scratch_over_operand(adj_exec *e)
{
    step *s = step_called(e, "tanh");
    s->call.scratch = (void *)s->call.in[0];
}
static void scratch_over_result(adj_exec *e)
{
    step *s = step_called(e, "tanh");
    ((void **)s->call.out)[0] = s->call.scratch;
}
static void short_scratch(adj_exec *e)
{
    e->plan.slot[step_called(e, "tanh")->scratch].bytes = BYTES / 2;
}
static void no_scratch(adj_exec *e) { step_called(e, "tanh")->call.scratch = NULL; }

static void not_kept(adj_exec *e)
{
    slot *packed = slot_called(e, "sigmoid");
    packed->kept = 0;
    packed->offset = slot_of(&e->plan, e->plan.fetch[0].buffer)->offset;
}
static void too_invariant(adj_exec *e) { e->plan.n_invariant++; }
static void version_unseen(adj_exec *e)
{
    slot_of(&e->plan, leaf_called(e, "w")->buffer)->is_invariant = 0;
}

/* Computes the next parameter right in it, while the average is still to read it. */
static void updated_too_early(adj_exec *e)
{
    const step *s = step_called(e, "sgd_step");
    ((void **)s->call.out)[0] = leaf_data(&e->plan, leaf_called(e, "w"));
    e->plan.update[0].in_place = 1;
}
static void not_copied(adj_exec *e)
{
    const int copy = step_number(e, "copy");
    e->plan.fetch[1].buffer = e->plan.step[copy].in[0];
}
static void next_of_another(adj_exec *e) { e->plan.update[0].next = e->plan.update[1].next; }
static void leaf_of_another(adj_exec *e)
{
    const int leaf = e->plan.update[0].leaf;
    e->plan.update[0].leaf = e->plan.update[1].leaf;
    e->plan.update[1].leaf = leaf;
}
static void next_overwritten(adj_exec *e)
{
    e->plan.update[0].in_place = 1; /* though it is computed elsewhere */
}
/* The loss, which wrong labels can fail, behind an update that is computed in place. */
static void fails_late(adj_exec *e)
{
    const void *mean = leaf_data(&e->plan, leaf_called(e, "mean"));
    cr_assert(step_called(e, "ema")->call.out[0] == mean, "not in place");
    for (int i = step_number(e, "ema"); i > 0; i--)
        swap_steps(e, i, i - 1);
}

/* ---- messages ---- */

typedef struct {
    adj_exec *(*plan)(adj_graph *g, kind kind);
    kind kind;
    void (*spoil)(adj_exec *e);
    int is_pointed; /* pointers are spoiled, which must not be set anew */
    const char *says;
} spoiled;

static const spoiled list[] = {
    {forward, ALONE, overlap, 0,
     "(mul) reads sigmoid \"kept\", but its memory holds sqrt \"root\", "
     "written by step 1 (sqrt \"root\")"},
    {forward, ALONE, overlap_partly, 0, "(mul) reads sigmoid \"kept\""},
    {forward, ALONE, off_by_bytes, 0, "not a multiple of 64: sqrt \"root\""},
    {forward, CANARIES, no_gap, 0, "(mul) reads sigmoid \"kept\", but"},
    {forward, PLAIN, short_arena, 0, "outside the executor's memory: "},
    {forward, PLAIN, short_storage, 0, "outside the executor's memory: input \"x\""},
    {forward, PLAIN, short_slot, 0, "finds a slot of another size for sigmoid \"kept\""},
    {forward, ALONE, missing, 0, "(exp \"e\") reads sqrt \"root\" before it is written"},
    {forward, ALONE, swapped, 0, "(exp \"e\") reads sqrt \"root\" before it is written"},
    {forward, ALONE, other_operand, 1, "(mul) reads sigmoid \"kept\", but"},
    {forward, PLAIN, unclaimed, 1,
     "(exp \"e\") writes its result over an operand that it may not overwrite: sqrt \"root\""},
    {forward, ALONE, in_place_of_input, 0,
     "the next run reads input \"x\", but its memory holds sqrt \"root\", written by step 1"},
    {forward, PLAIN, lost_operand, 1, "(mul) is not given its operand exp \"e\""},
    {forward, ALONE, lost_fetch, 1, "a fetch reads mul"},
    {layouts, ALONE, wrong_layout, 1,
     "(tanh \"magnitude\") reads exp \"e\", but its memory holds exp \"e\" "
     "in turned, written by step 1 (reorder of exp \"e\")"},
    {layouts, ALONE, missing_reorder, 1,
     "(tanh \"magnitude\") reads exp \"e\" in turned, but its memory holds exp "
     "\"e\", written by step 0"},
    {layouts, ALONE, scratch_over_operand, 1,
     "has its scratch over its operand exp \"e\" in turned"},
    {layouts, ALONE, scratch_over_result, 1, "writes a result over its scratch"},
    {layouts, ALONE, short_scratch, 0, "finds a slot of another size for scratch"},
    {layouts, ALONE, no_scratch, 1, "outside the executor's memory: scratch"},
    {inference, ALONE, not_kept, 0,
     "(mul) reads sigmoid \"packed\", but its memory holds exp, written by step 3 (exp)"},
    {inference, PLAIN, too_invariant, 1,
     "(mul) runs only when a parameter has changed, but depends on a value that changes in every "
     "run: input \"x\""},
    {inference, PLAIN, version_unseen, 1,
     "runs only when a parameter has changed, but depends on a value that changes in every run: "
     "param \"w\""},
    {train, PLAIN, updated_too_early, 1,
     "(ema) reads param \"w\", but its memory holds sgd_step \"next\", written by step"},
    {train, PLAIN, not_copied, 1, "a fetch reads param \"w\", but"},
    {train, PLAIN, next_of_another, 1, "the update of param \"w\" reads sgd_step \"next\", but"},
    {train, PLAIN, leaf_of_another, 1, "assigns another leaf's next value to state \"mean\""},
    {train, PLAIN, next_overwritten, 1,
     "the update of param \"w\" reads sgd_step \"next\", but its memory "
     "holds param \"w\""},
    {train, PLAIN, leaf_over_leaf, 0, "the first step reads param \"w\""},
    {train, PLAIN, fails_late, 0,
     "can fail after an update was computed in place of state \"mean\""},
};

TestSuite(verify, .init = plan_as_usual);

Test(verify, spoiled_plans_are_refused)
{
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const spoiled *c = &list[i];
        scoped(release_graph) adj_graph *g = adj_graph_new();
        scoped(release_exec) adj_exec *e = c->plan(g, c->kind);
        cr_expect_eq(verify_plan(e), ADJ_OK, "%zu before: %s", i, adj_exec_message(e));
        c->spoil(e);
        if (!c->is_pointed)
            point_steps(e);
        cr_expect_eq(verify_plan(e), ADJ_EBACKEND, "%zu: %s", i, c->says);
        cr_expect_eq(strncmp(adj_exec_message(e), "adj_exec_new: plan: ", 20), 0, "%zu: %s", i,
                     adj_exec_message(e));
        expect_text(adj_exec_message(e), c->says);
    }
}

/* ---- sound plans ---- */

/* Options of the executor that change the plan; the model's type. */
typedef struct {
    const char *name;
    adj_dtype dtype;
    adj_exec_opts opts;
} planned;

static const planned plans[] = {
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
        for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
            expect_training(adj_model_at(m)->model.name, &plans[i]);
            expect_inference(adj_model_at(m)->model.name, &plans[i]);
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
