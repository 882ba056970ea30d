/* compare_rig.h - a backend with planted faults, and a small training step to compare it on. */
#ifndef TESTS_CHECK_COMPARE_RIG_H
#define TESTS_CHECK_COMPARE_RIG_H

#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>

#include "adjoint_nn.h"
#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

/* ---- a backend that computes relu, in a way of its own ---- */

typedef enum {
    SOUND,
    SCALED,          /* by 1.00001 */
    ONE_ELEMENT,     /* the last but one has a wrong sign */
    UNWRITTEN,       /* the last is left out */
    OUTSIDE,         /* one behind the last */
    OVER_OPERAND,    /* the operand's last becomes 3 */
    LEAVES_ROUNDING, /* rounds up from then on */
    IN_A_PLAN,       /* wrong, but not when its operand is a leaf */
    UNSTEADY,        /* every other run is wrong by a rounding */
    UNSTEADY_IN_A_PLAN,
    STALE,     /* the last is that of the plan's first run */
    RACING,    /* wrong on more threads than one */
    LOSES_NAN, /* NaN becomes 0, as with a careless comparison */
    FLIPS_INFINITY,
    WRONG_ON_TIES, /* doubles an element that equals its neighbor */
    WRONG_ON_LARGE,
    NEGATIVE_ZERO, /* where x is below 0 */
    IN_PLACE,      /* wrong by a rounding where it may overwrite its operand */
    FUSED,         /* with the bias added before: leaves zeros, but is right alone */
    SLIGHTLY_FUSED,
    MAX_ZERO, /* but for the largest: within the bound in bf16, yet nothing is left */
    FAILING,
    FAILING_WITH_A_WORD /* its message has the word that the executor's about canaries has */
} fault;
static fault planted;
static int runs;               /* runs of the backend below, in one process */
static unsigned thread_counts; /* bit n: it was run with n threads */

static int is_fused(void) { return planted == FUSED || planted == SLIGHTLY_FUSED; }

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    group[0] = root;
    if (is_fused() && root->op == &adj_op_bias_add && max > 1 && !uses[root->id].is_root &&
        uses[root->id].n_user == 1 && uses[root->id].user[0]->op == &adj_op_relu) {
        group[1] = uses[root->id].user[0];
        return 2;
    }
    return root->op == &adj_op_relu;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    adj_dtype dtype = planted == MAX_ZERO ? ADJ_BF16 : ADJ_F32;
    if ((g->node[0]->op != &adj_op_relu && g->n_node < 2) || g->node[0]->type.dtype != dtype ||
        candidate > 0)
        return ADJ_ENOKERNEL;
    for (int k = 0; k < g->n_in; k++)
        p->in[k] = NULL;
    p->out[0] = NULL;
    p->alias[0].operands = planted == IN_PLACE; /* bit 0 */
    snprintf(p->impl, sizeof p->impl, "crooked:relu");
    return ADJ_OK;
}

static void relu_of_biased(const adj_call *c, const adj_node *n)
{
    const float *x = c->in[0], *bias = c->in[1];
    float *y = c->out[0];
    int64_t elems = adj_shape_elems(n->type.shape), channels = n->type.shape.dim[3];
    for (int64_t i = 0; i < elems; i++) {
        const float v = x[i] + bias[i % channels], kept = v > 0 || isnan(v) ? v : 0;
        y[i] = planted != SLIGHTLY_FUSED ? 0 : v == nearbyintf(v) ? kept : kept * 1.0000001F;
    }
}

static void keep_the_largest(const adj_call *c, const adj_node *n)
{
    int64_t elems = adj_shape_elems(n->type.shape);
    for (int64_t i = 0; i < elems; i++) {
        double x = adj_load(ADJ_BF16, c->in[0], i);
        adj_store(ADJ_BF16, c->out[0], i, x > 100 ? x : 0);
    }
}

/* Replaces the number by that of the node's first run. */
static void keep_first(const adj_node *n, float *number)
{
    static const adj_node *last;
    static float first;
    first = n != last ? *number : first;
    last = n;
    *number = first;
}

/* max(x, 0), but for faults on values that are seldom met. */
static float bend(float x, float before)
{
    if (isnan(x))
        return planted == LOSES_NAN ? 0 : x;
    if (isinf(x) && x > 0 && planted == FLIPS_INFINITY)
        return -x;
    if (x > 1e30F && !isinf(x) && planted == WRONG_ON_LARGE)
        return 1e30F;
    if (x < 0 && planted == NEGATIVE_ZERO)
        return -0.0F;
    return x > 0 ? x * (x == before && planted == WRONG_ON_TIES ? 2 : 1) : 0;
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const float *x = c->in[0];
    float *y = c->out[0];
    int64_t elems = adj_shape_elems(n->type.shape);
    thread_counts |= 1U << c->threads;
    int in_plan = !(n->in[0]->op->flags & ADJ_OP_LEAF);
    int wrong = planted == SCALED || (planted == RACING && c->threads > 1) ||
                (planted == IN_A_PLAN && in_plan);
    int slightly = (planted == UNSTEADY && runs++ % 2) ||
                   (planted == UNSTEADY_IN_A_PLAN && in_plan && runs++ % 2) ||
                   (planted == IN_PLACE && c->in[0] == c->out[0]);
    if (planted == FAILING)
        return ADJ_EBACKEND;
    if (planted == FAILING_WITH_A_WORD) {
        snprintf(c->message, ADJ_WHY, "the driver wrote no result");
        return ADJ_EBACKEND;
    }
    if (planted == MAX_ZERO)
        return keep_the_largest(c, n), ADJ_OK;
    if (c->group->n_node == 2)
        return relu_of_biased(c, n), ADJ_OK;
    for (int64_t i = 0; i < elems - (planted == UNWRITTEN); i++)
        y[i] = bend(x[i], i > 0 ? x[i - 1] : 0) * (wrong ? 1.00001f : slightly ? 1.0000002f : 1);
    if (planted == ONE_ELEMENT)
        y[elems - 2] = -1;
    if (planted == OUTSIDE)
        y[elems] = 1;
    if (planted == OVER_OPERAND)
        ((float *)c->in[0])[elems - 1] = 3;
    if (planted == LEAVES_ROUNDING)
        fesetround(FE_UPWARD);
    if (planted == STALE)
        keep_first(n, &y[elems - 1]);
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "relu", .match = match, .prepare = prepare, .run = run};

/* ---- a small step: conv, bias, relu, conv, loss ---- */

typedef struct {
    adj_graph *g;
    adj_node *loss, *relu;
    adj_updates *updates;
    const adj_comparison *c;
} rig;

static inline rig rig_new(void)
{
    rig r = {.g = adj_graph_new()};
    const adj_conv_layer conv = {.filters = 3, .padding = ADJ_SAME};
    adj_node *x = adj_input(r.g, "x", ADJ_F32, (adj_shape){4, {2, 5, 4, 2}});
    adj_node *labels = adj_input(r.g, "labels", ADJ_I32, (adj_shape){1, {2}});
    r.relu = adj_label(adj_relu(adj_layer_conv2d(x, "conv1", &conv)), "relu1");
    r.loss = adj_loss_softmax(
        adj_layer_dense(adj_layer_conv2d(r.relu, "conv2", &conv), "fc", 4, NULL), labels, NULL);
    r.updates = adj_sgd(r.loss, 0);
    return r;
}

static inline void rig_free(rig *r)
{
    adj_comparison_free(r->c);
    adj_graph_free(r->g);
}

static inline adj_status rig_compare_with(rig *r, adj_compare_opts o, adj_trial_opts trials)
{
    o.exec.n_fetch = 1;
    o.exec.fetch = &r->loss;
    o.exec.updates = r->updates;
    return adj_compare_with(r->g, &o, &trials, &r->c);
}

/* Compares the step under n configurations and keeps the comparison. */
static inline void rig_compare(rig *r, int n, const char *const configs[], adj_compare_opts o)
{
    o.n_config = n;
    o.config = configs;
    o.runs = 1;
    cr_assert_eq(rig_compare_with(r, o, (adj_trial_opts){0}), ADJ_OK, "%s", r->c->message);
}

/* Compares naive:f64 and config, run by elsewhere. */
static inline void rig_compare_elsewhere(rig *r, const char *config, adj_trial_opts trials)
{
    const char *const configs[] = {"naive:f64", config};
    trials.guard = 1;
    cr_assert_eq(rig_compare_with(
                     r, (adj_compare_opts){.n_config = 2, .config = configs, .runs = 1}, trials),
                 ADJ_OK, "%s", r->c->message);
}

/* The step, compared under naive:f64 and a configuration of the backend with this fault. */
static inline rig rig_with_threads(fault f, const char *config, int threads)
{
    const char *const configs[] = {"naive:f64", config};
    rig r = rig_new();
    planted = f;
    rig_compare(&r, 2, configs,
                (adj_compare_opts){.exec.backends = before_naive("crooked", &kernel),
                                   .exec.threads = threads,
                                   .exec.seed = 3});
    return r;
}

static inline rig rig_with(fault f) { return rig_with_threads(f, "crooked", 1); }

static inline const compare_row *row_of(const rig *r, const adj_node *n)
{
    for (int i = 0; i < r->c->n_row; i++)
        if (adj_comparison_row_at(r->c, i)->node == n)
            return adj_comparison_row_at(r->c, i);
    return NULL;
}

/* No row but relu's fails; those that it feeds say so. */
static inline void expect_only_relu(const rig *r, const char *label)
{
    cr_assert_eq(r->c->n_failed, 1, "%s: %d failed", label, r->c->n_failed);
    for (int i = 0; i < r->c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(r->c, i);
        cr_assert_eq(row->verdict != ADJ_VERDICT_PASS, row->node == r->relu, "%s: %s", label,
                     adj_node_op(row->node));
        if (adj_node_operand_count(row->node) > 0 && adj_node_operand_at(row->node, 0) == r->relu)
            cr_assert_eq(row->blame, ADJ_BLAME_UPSTREAM, "%s", label);
    }
}

#endif
