/* test_groups.c - faults planted in fused kernels alone are found, named and blamed by both
 * checkers; rounding and kinks inside a group are not reported. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "adjoint_nn.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

/* ---- a backend that takes only pairs: bias_add with relu, add with relu_grad, and those of
 * square's rule, scale with mul ---- */

typedef enum {
    SOUND,
    ONE_ELEMENT, /* one of 10,000 is off by a thousandth of the largest */
    LAST_BIT,    /* the same, by a rounding or two */
    NO_BIAS,
    UNSTEADY,
    SHAKEN,  /* the sum inside is off by a rounding: masks at the kink flip */
    DOUBLED, /* doubles the values that the mask lets through */
    LOSES_NAN,
    OFF_ON_INTEGERS, /* by a rounding */
    FAILING
} fault;
static fault planted;
static int runs;
static int takes_fetched; /* also a scale that is fetched */

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[root->id];
    const int is_scale = root->op == &adj_op_scale;
    if (max < 2 || u->n_user != 1 || (u->is_root && !(is_scale && takes_fetched)))
        return 0;
    group[0] = root;
    group[1] = u->user[0];
    if (is_scale)
        return group[1]->op == &adj_op_mul ? 2 : 0;
    int biased = root->op == &adj_op_bias_add && group[1]->op == &adj_op_relu;
    int masked =
        root->op == &adj_op_add && group[1]->op == &adj_op_relu_grad && group[1]->in[1] == root;
    return biased || masked ? 2 : 0;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->n_node != 2 || candidate > 0)
        return ADJ_ENOKERNEL;
    snprintf(p->impl, sizeof p->impl, "welded:pair");
    return ADJ_OK;
}

/* A sum of integers is exact. */
static float first_value(adj_dtype dtype, float sum, int is_integer)
{
    if (planted != SHAKEN || is_integer)
        return sum;
    return sum == 0 ? 1e-8F : sum * (dtype == ADJ_F32 ? 1 + 0x1p-23F : 1);
}

/* 2 x dy, and 2 x where it is fetched; the first element of the product is off by 1. */
static adj_status run_scale(const adj_call *c)
{
    const adj_node *scale = c->group->node[0];
    const int x = adj_group_in(c->group, scale->in[0]);
    for (int out = 0; out < c->group->n_out; out++)
        for (int64_t i = 0; i < adj_shape_elems(scale->type.shape); i++) {
            const float v = 2 * ((const float *)c->in[x])[i], dy = ((const float *)c->in[!x])[i];
            ((float *)c->out[out])[i] = c->group->out[out] == scale ? v : v * dy + (float)(i == 0);
        }
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const adj_node *inner = c->group->node[0], *outer = c->group->node[1];
    if (inner->op == &adj_op_scale)
        return run_scale(c);
    const adj_dtype dtype = outer->type.dtype;
    int64_t n = adj_shape_elems(outer->type.shape);
    const void *a = c->in[adj_group_in(c->group, inner->in[0])],
               *b = c->in[adj_group_in(c->group, inner->in[1])];
    int64_t period = adj_shape_elems(inner->in[1]->type.shape);
    int masked = outer->op == &adj_op_relu_grad;
    const void *dy = masked ? c->in[adj_group_in(c->group, outer->in[0])] : NULL;
    double max = 0;
    if (planted == FAILING)
        return ADJ_EBACKEND;
    for (int64_t i = 0; i < n; i++) {
        const float term = (float)adj_load(dtype, a, i);
        const float sum = term + (planted == NO_BIAS ? 0 : (float)adj_load(dtype, b, i % period));
        const float x = first_value(dtype, sum, term == nearbyintf(term));
        float y = x > 0 || (isnan(x) && planted != LOSES_NAN) ? x : 0;
        if (planted == OFF_ON_INTEGERS && term == nearbyintf(term))
            y *= 1 + 0x1p-23F;
        if (masked)
            y = x > 0 ? (float)adj_load(dtype, dy, i) * (planted == DOUBLED ? 2 : 1) : 0;
        adj_store(dtype, c->out[0], i, y);
        max = fmax(max, y);
    }
    double last = adj_load(dtype, c->out[0], n / 2);
    if (planted == ONE_ELEMENT)
        adj_store(dtype, c->out[0], n / 2, last + max * 1e-3);
    if (planted == LAST_BIT || (planted == UNSTEADY && runs++ % 2))
        adj_store(dtype, c->out[0], n / 2, last + max * 0x1p-22);
    return ADJ_OK;
}

static const adj_kernel pair = {.name = "pair", .match = match, .prepare = prepare, .run = run};

/* ---- what is compared on it ---- */

enum { CHANNELS = 4, ELEMS = 10000 };

typedef struct {
    adj_graph *g;
    const adj_comparison *c;
    const compare_row *row; /* the group's; NULL: none */
} group_row;

static group_row compare_with(fault f, adj_node *y, adj_compare_opts o)
{
    static const char *const usual[] = {"naive:f64", "welded"};
    group_row r = {.g = adj_node_graph(y)};
    planted = f;
    runs = 0;
    o.exec.backends = before_naive("welded", &pair);
    r.c = comparison_of(1, &y, 2, o.config != NULL ? o.config : usual, o);
    for (int i = 0; i < r.c->n_row; i++)
        if (adj_comparison_row_at(r.c, i)->group[0] != '\0')
            r.row = adj_comparison_row_at(r.c, i);
    return r;
}

static void close_compared(group_row *r)
{
    adj_comparison_free(r->c);
    adj_graph_free(r->g);
}

static adj_node *biased_relu(void)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 50, 50, CHANNELS}});
    adj_node *b = adj_input(g, "b", ADJ_F32, (adj_shape){1, {CHANNELS}});
    return adj_scale(adj_relu(adj_bias_add(x, b, ADJ_NHWC)), 0.5);
}

/* Makes default plans even if ADJOINT_PLAN is set, since fused groups are inspected. */
TestSuite(compare_group, .init = plan_as_usual);

Test(compare_group, faults_of_the_fused_form)
{
    static const struct {
        fault planted;
        int exact;
        int64_t min, max; /* elements wrong */
    } cases[] = {{SOUND, 0, 0, 0},
                 {SOUND, 1, 0, 0},
                 {ONE_ELEMENT, 0, 1, 1},
                 {ONE_ELEMENT, 1, 1, 1},
                 {LAST_BIT, 1, 1, 1},
                 {NO_BIAS, 0, ELEMS / 3, ELEMS},
                 {NO_BIAS, 1, ELEMS / 5, ELEMS}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t seed = 1; seed < 4; seed++) {
            group_row r =
                compare_with(cases[i].planted, biased_relu(),
                             (adj_compare_opts){.exact = cases[i].exact, .exec.seed = seed});
            cr_assert_not_null(r.row);
            cr_assert_str_eq(r.row->group, "bias_add+relu");
            cr_assert_str_eq(adj_compare_row_name(r.row), "bias_add+relu");
            cr_assert_str_eq(adj_node_op(r.row->node), "relu");
            cr_assert_str_eq(r.row->implementation, "welded:pair");
            cr_assert_eq(r.row->exact, cases[i].exact);
            cr_assert_eq(r.row->isolated.n, ELEMS);
            cr_assert_geq(r.row->isolated.wrong, cases[i].min, "%zu", i);
            cr_assert_leq(r.row->isolated.wrong, cases[i].max, "%zu", i);
            int fails = r.row->isolated.wrong > 0;
            cr_assert_eq(r.row->verdict, fails ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS);
            cr_assert_eq(r.row->blame, fails ? ADJ_BLAME_KERNEL : ADJ_BLAME_NONE);
            cr_assert_eq(r.c->n_failed, fails, "the nodes alone are right");
            if (cases[i].planted == ONE_ELEMENT)
                cr_assert_eq(r.row->isolated.at, ELEMS / 2);
            close_compared(&r);
        }
}

Test(compare_group, faults_on_values_that_are_never_drawn)
{
    static const struct {
        fault planted;
        const char *says;
    } cases[] = {{LOSES_NAN, "on a NaN, infinities, values at kinks: "},
                 {OFF_ON_INTEGERS, "on integers: "}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        group_row r = compare_with(cases[i].planted, biased_relu(), (adj_compare_opts){0});
        cr_assert_not_null(r.row);
        cr_expect_eq(r.row->isolated.wrong, 0);
        cr_expect_eq(r.row->verdict, ADJ_VERDICT_FAIL);
        cr_expect_eq(r.row->blame, ADJ_BLAME_KERNEL);
        expect_text(r.row->reason, cases[i].says);
        close_compared(&r);
    }
}

Test(compare_group, what_cannot_run_or_changes)
{
    group_row r = compare_with(FAILING, biased_relu(), (adj_compare_opts){.exec.seed = 1});
    cr_assert_null(r.row, "the whole run says so");
    cr_assert_eq(adj_comparison_result_at(r.c, 1).verdict, ADJ_VERDICT_ERROR);
    close_compared(&r);
    r = compare_with(UNSTEADY, biased_relu(), (adj_compare_opts){.exec.seed = 1});
    cr_assert(!r.row->repeats && r.row->verdict == ADJ_VERDICT_FAIL);
    expect_text(r.row->reason, "not repeatable");
    close_compared(&r);
}

/* relu_grad whose mask is a sum inside the group. */
static group_row compare_masked(fault f, const char *config, double moved)
{
    const char *const configs[] = {"naive:f64", config};
    float a[ELEMS], b[ELEMS];
    adj_graph *g = adj_graph_new();
    const adj_shape shape = {1, {ELEMS}};
    adj_node *x = adj_input(g, "a", ADJ_F32, shape), *z = adj_input(g, "b", ADJ_F32, shape);
    adj_node *dy = adj_input(g, "dy", ADJ_F32, shape);
    const adj_leaf_value given[] = {{x, a}, {z, b}};
    for (int i = 0; i < ELEMS; i++) { /* every tenth sum is 0 */
        a[i] = 1 + (float)(i % 7) / 8;
        b[i] = i % 10 == 0 ? -a[i] : (float)moved * (i % 3 == 0 ? 1 : -2);
    }
    adj_node *y = adj_scale(adj_relu_grad(dy, adj_add(x, z)), 0.5);
    return compare_with(
        f, y, (adj_compare_opts){.config = configs, .n_value = 2, .value = given, .exec.seed = 7});
}

Test(compare_group, kinks_inside)
{
    static const char *const configs[] = {"welded", "welded:bf16"};
    for (int i = 0; i < 2; i++) {
        group_row r = compare_masked(SHAKEN, configs[i], 1);
        cr_assert_not_null(r.row);
        cr_assert_str_eq(r.row->group, "add+relu_grad");
        cr_assert_eq(r.row->isolated.wrong, 0);
        cr_assert_gt(r.row->isolated.max_abs, 0.1, "masks did flip");
        cr_assert_eq(r.c->n_failed, 0);
        close_compared(&r);
        r = compare_masked(DOUBLED, configs[i], 1);
        cr_assert_gt(r.row->isolated.wrong, ELEMS / 5, "the others are judged");
        cr_assert_eq(r.row->verdict, ADJ_VERDICT_FAIL);
        close_compared(&r);
    }
}

/* ---- groups that the library's own backends make ---- */

/* conv2d+bias_add, and fused groups with several results, sums, batch norm and masks inside. */
Test(compare_group, sound_groups_pass)
{
    static const char *const configs[] = {"naive:f64", "onednn", "onednn:bf16", "onednn:nchw",
                                          "direct"};
    for (uint64_t seed = 1; seed < 4; seed++)
        for (int exact = 0; exact < 2; exact++) {
            scoped(release_graph) adj_graph *g = adj_graph_new();
            adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 6, 5, 8}});
            adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 8, 16}});
            adj_node *b = adj_input(g, "b", ADJ_F32, (adj_shape){1, {16}});
            adj_node *dy = adj_input(g, "dy", ADJ_F32, (adj_shape){4, {2, 6, 5, 16}});
            adj_node *y =
                adj_bias_add(adj_conv2d(x, w, &(adj_conv){.padding = ADJ_SAME}), b, ADJ_NHWC);
            adj_node *sum = adj_add(dy, adj_scale(dy, -0.75)), *z = adj_relu(sum);
            adj_node *dz = adj_relu_grad(dy, z), *stats = adj_batch_norm_stats(z, ADJ_NHWC);
            adj_node *sums = adj_bias_add_grad(adj_square(dz), ADJ_NHWC);
            adj_node *roots[] = {y, dz, stats, sums, z};
            scoped(release_comparison) const adj_comparison *c = comparison_of(
                5, roots, 5, configs, (adj_compare_opts){.exec.seed = seed, .exact = exact});
            cr_assert_eq(c->n_failed, 0);
            for (int i = 0; i < c->n_row; i++)
                cr_assert_str_eq(adj_comparison_row_at(c, i)->group[0] != '\0'
                                     ? adj_comparison_row_at(c, i)->why
                                     : "",
                                 "");
            const compare_row *row = row_named(c, 1, "conv2d+bias_add");
            cr_assert(row != NULL && row->node == y && row->exact == exact);
            cr_assert_str_eq(row->backend, "onednn");
            int fused = 0;
            for (int i = 0; i < c->n_row; i++)
                fused += strchr(adj_comparison_row_at(c, i)->group, '+') != NULL &&
                         adj_comparison_row_at(c, i)->config == 4;
            cr_assert_gt(fused, 3, "%d results of fused groups", fused);
        }
}

/* Two elements a channel: batch_norm_grad's terms cancel. One element in all: 0.9 v + g may be an
 * integer by chance. Neither is a fault, alone or fused. */
Test(compare_group, bounds_of_what_cancels)
{
    static const char *const configs[] = {"naive:f64", "direct"};
    for (uint64_t seed = 1; seed < 80; seed++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 1, 1, 16}});
        adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){1, {1}},
                                (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1});
        adj_node *y = adj_layer_batch_norm(adj_scale(x, 4096), "bn", NULL);
        adj_node *loss = adj_add(adj_reduce_sum(adj_square(y), (adj_axes){.n = ADJ_ALL}),
                                 adj_reduce_sum(adj_square(w), (adj_axes){.n = ADJ_ALL}));
        adj_node *dx = NULL;
        cr_assert_eq(adj_grad(loss, NULL, 1, &x, &dx), ADJ_OK);
        const adj_optimizer_opts momentum = {.kind = ADJ_SGD, .momentum = 0.9};
        scoped(release_comparison) const adj_comparison *c =
            comparison_of(1, &dx, 2, configs,
                          (adj_compare_opts){.exec.updates = adj_training_updates(loss, &momentum),
                                             .exec.seed = seed,
                                             .exact = seed % 2 == 0});
        expect_all_pass(c, "what cancels");
    }
}

/* gradcheck blames the kernel of a fused group that is wrong, by the names of its nodes: of one
 * that leaves no value of its nodes, and of one that gives them all. */
Test(gradcheck_group, a_wrong_pair)
{
    const adj_backend *const *backends = before_naive("welded", &pair);
    const adj_gradcheck_opts o = {
        .exec.backend = "welded", .exec.threads = 1, .exec.backends = backends};
    for (takes_fetched = 0; takes_fetched < 2; takes_fetched++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        scoped(release_gradcheck) const adj_gradcheck_report *r =
            checked(adj_square(adj_input(g, "x", ADJ_F32, (adj_shape){2, {5, 7}})), &o);
        cr_assert_eq(r->n_row, 1);
        cr_expect_eq(r->row[0].result, ADJ_GRADCHECK_FAIL);
        cr_expect_eq(r->row[0].fault, ADJ_FAULT_KERNEL);
        cr_expect_str_eq(r->row[0].blame,
                         "naive float64 backward agrees with numeric -> fault is in backend "
                         "welded's kernel for scale+mul (welded:pair)");
    }
}
