/* test_checking.c - an executor for checkers: custom backends, canaries, a profile, and a requested
 * implementation, which is found at any position among candidates and backends. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "adjoint_check.h"
#include "exec/internal.h"
#include "exec/report.h"
#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

static const adj_exec_internal profiled = {.profile = 1};

/* A backend that computes relu, with a fault of its own: it writes `reach` elements too many. */
static int reach;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_relu || candidate > 1)
        return ADJ_ENOKERNEL;
    p->in[0] = p->out[0] = NULL;
    snprintf(p->impl, sizeof p->impl, candidate == 0 ? "sloppy:first" : "sloppy:second");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    int n = (int)adj_shape_elems(c->group->node[0]->type.shape);
    for (int i = reach < 0 ? reach : 0; i < n + (reach > 0 ? reach : 0); i++)
        y[i] = i >= 0 && i < n && x[i] > 0 ? x[i] : 0;
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "sloppy", .prepare = prepare, .run = run};

typedef struct {
    adj_graph *g;
    adj_exec *e;
    adj_node *x, *y;
} rig;

static rig rig_new(adj_exec_opts o)
{
    rig r = {.g = adj_graph_new()};
    r.x = adj_input(r.g, "x", ADJ_F32, (adj_shape){1, {5}});
    r.y = adj_label(adj_scale(adj_relu(adj_neg(r.x)), 2), "y");
    o.n_fetch = 1;
    o.fetch = &r.y;
    o.backends = before_naive("sloppy", &kernel);
    cr_assert_eq(adj_exec_new(r.g, &o, &r.e), ADJ_OK, "%s", adj_exec_message(r.e));
    cr_assert_eq(adj_set(r.e, r.x, (float[]){1, -1, -2, 3, -4}, 20), ADJ_OK);
    return r;
}

static void rig_free(rig *r)
{
    adj_exec_free(r->e);
    adj_graph_free(r->g);
}

/* Counts on its kernels being run once: no other plans, whatever all tests are run with. */
TestSuite(checking, .init = plan_as_usual);

Test(checking, ones_own_backend_is_asked_first)
{
    reach = 0;
    rig r =
        rig_new((adj_exec_opts){.debug = &(adj_exec_debug){.canaries = 1, .internal = &profiled}});
    float y[5];
    cr_assert_eq(adj_run(r.e), ADJ_OK, "%s", adj_exec_message(r.e));
    cr_assert_eq(adj_get(r.e, r.y, y, sizeof y), ADJ_OK);
    cr_assert(y[0] == 0 && y[1] == 2 && y[2] == 4 && y[3] == 0 && y[4] == 8);
    cr_assert_eq(adj_exec_step_count(r.e), 3);
    adj_step_info info = adj_exec_step_at(r.e, 1);
    cr_assert_str_eq(info.op, "relu");
    cr_assert_str_eq(info.backend, "sloppy");
    cr_assert_str_eq(info.impl, "sloppy:first");
    cr_assert_null(info.why);
    cr_assert_eq(info.bytes, 40);
    cr_assert_eq(info.flop, 5);
    cr_assert(info.seconds > 0);
    info = adj_exec_step_at(r.e, 2);
    cr_assert_str_eq(info.backend, "naive");
    cr_assert_str_eq(info.why, "sloppy has no kernel for scale");
    cr_assert_eq(info.node, r.y);
    cr_assert_str_eq(adj_exec_step_at(r.e, 3).op, "");
    rig_free(&r);
}

Test(checking, canaries_see_what_is_written_outside)
{
    static const int reaches[] = {1, 16, -1, -16};
    for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) {
        reach = reaches[i];
        rig r = rig_new((adj_exec_opts){.debug = &(adj_exec_debug){.canaries = 1}});
        cr_assert_eq(adj_run(r.e), ADJ_EBACKEND, "a write of %d elements outside went unseen",
                     reach);
        expect_text(adj_exec_message(r.e), reach > 0 ? "wrote behind" : "wrote before");
        expect_text(adj_exec_message(r.e), "(relu, sloppy:first)");
        expect_text(adj_exec_message(r.e), "the 20 bytes of relu");
        rig_free(&r);
    }
}

Test(checking, a_wanted_implementation)
{
    reach = 0;
    rig r = rig_new((adj_exec_opts){.debug = &(adj_exec_debug){.impl = "second"}});
    cr_assert_str_eq(adj_exec_step_at(r.e, 1).impl, "sloppy:second");
    rig_free(&r);
    r = rig_new((adj_exec_opts){.debug = &(adj_exec_debug){.impl = "third"}});
    cr_assert_str_eq(adj_exec_step_at(r.e, 1).impl, "sloppy:first");
    rig_free(&r);
}

Test(checking, flop_of_a_convolution)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 4}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 2, 6}}, (adj_init){0});
    adj_node *y = adj_conv2d(x, w, NULL);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "naive"};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_assert_eq(adj_exec_step_at(e, 0).flop, 2.0 * 2 * 6 * 6 * 6 * 3 * 3 * 2);
}

/* Options of an executor that a checker does not read are refused, not ignored. */
Test(checking, options_that_are_not_read)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {8}}));
    const adj_exec_opts set[] = {{.math = ADJ_MATH_FAST},
                                 {.precision = ADJ_PRECISION_BF16},
                                 {.loss_scale = 2},
                                 {.allocator = &(adj_allocator){0}},
                                 {.tune = 1},
                                 {.tune_file = "t"},
                                 {.tune_seconds = 1},
                                 {.recompute = 1},
                                 {.same_bits = 1}};
    static const char *const names[] = {"math",         "precision", "loss_scale",
                                        "allocator",    "tune",      "tune_file",
                                        "tune_seconds", "recompute", "same_bits"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char said[60];
        snprintf(said, sizeof said, "exec.%s is set", names[i]);
        const adj_gradcheck_report *r = NULL;
        cr_expect_eq(adj_gradcheck(y, &(adj_gradcheck_opts){.exec = set[i]}, &r), ADJ_EARG);
        expect_text(r->message, said);
        adj_gradcheck_free(r);
        adj_compare_opts o = {.exec = set[i]};
        o.exec.n_fetch = 1;
        o.exec.fetch = &y;
        scoped(release_comparison) const adj_comparison *c = NULL;
        cr_expect_eq(adj_compare(g, &o, &c), ADJ_EARG);
        expect_text(c->message, said);
    }
}

/* The candidates of a backend's relu, the quickest by its own estimate first. */
typedef struct {
    const char *impl;
    float leaves;
} planted;
static const planted first[] = {{"first:one", 11}, {"first:two", 12}, {"first:three", 13}};
static const planted second[] = {{"second:one", 21}, {"second:two", 22}};

static adj_status offer(const planted list[], int n, double seconds, const adj_group *g,
                        int candidate, adj_prep *p)
{
    if (g->n_node > 1 || g->node[0]->op != &adj_op_relu || candidate >= n ||
        g->node[0]->type.dtype != ADJ_F32)
        return ADJ_ENOKERNEL;
    p->in[0] = p->out[0] = NULL;
    p->seconds = seconds * (candidate + 1);
    p->state = (void *)&list[candidate];
    snprintf(p->impl, sizeof p->impl, "%s", list[candidate].impl);
    return ADJ_OK;
}

static adj_status offer_first(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return offer(first, 3, 1e-9, g, candidate, p);
}

static adj_status offer_second(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return offer(second, 2, 1e-3, g, candidate, p);
}

static adj_status leave_number(const adj_call *c)
{
    const planted *p = c->state;
    for (int64_t i = 0; i < adj_shape_elems(c->group->node[0]->type.shape); i++)
        ((float *)c->out[0])[i] = p->leaves;
    return ADJ_OK;
}

static const adj_kernel first_kernel = {
    .name = "relu", .prepare = offer_first, .run = leave_number};
static const adj_kernel second_kernel = {
    .name = "relu", .prepare = offer_second, .run = leave_number};
static const adj_kernel *const first_kernels[] = {&first_kernel, NULL};
static const adj_kernel *const second_kernels[] = {&second_kernel, NULL};
static const adj_backend first_backend = {.name = "first", .kernels = first_kernels};
static const adj_backend second_backend = {.version = ADJ_VERSION,
                                           .name = "second",
                                           .open = open_nothing,
                                           .close = close_nothing,
                                           .kernels = second_kernels};

static const adj_backend *const *backends(void)
{
    return list_before(first_backend,
                       (const adj_backend *const[]){&second_backend, naive_backend(), NULL});
}

static const adj_comparison *compare_relu(adj_graph *g, const char *config)
{
    return compared(adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {6}})), config,
                    (adj_compare_opts){.exec.backends = backends()});
}

/* got: 0 where the result is right, as naive's. */
static const struct {
    const char *config, *implementation;
    double got;
    int other;
} cases[] = {
    {"first", "first:one", 11, 0},
    {"first:impl=two", "first:two", 12, 0}, /* not the second backend's: the first that has it */
    {"first:impl=three", "first:three", 13, 0},
    {"first:impl=second", "second:one", 21, 0},
    {"first:impl=naive", "naive:f32", 0, 0},
    {"second:impl=two", "second:two", 22, 0},
    {"first:impl=xyz", "first:one", 11, 1},
};

/* Plans are looked at here: no other ones, whatever all tests are run with. */
TestSuite(wanted_impl, .init = plan_as_usual);

Test(wanted_impl, is_reached)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        scoped(release_comparison) const adj_comparison *c = compare_relu(g, cases[i].config);
        const compare_row *row = adj_comparison_row_at(c, 0);
        cr_expect_str_eq(row->implementation, cases[i].implementation, "%s", cases[i].config);
        cr_expect_eq(row->isolated.got, cases[i].got, "%s: %g", cases[i].config, row->isolated.got);
        cr_expect_eq(row->other_impl, cases[i].other, "%s", cases[i].config);
        if (cases[i].other)
            cr_expect_str_eq(row->why,
                             "no implementation's name contains \"xyz\"; ran first first:one");
    }
}

/* The gradient is naive's. */
Test(wanted_impl, gradcheck_says_what_ran)
{
    static const struct {
        const char *impl, *reason;
        adj_gradcheck_result verdict;
        int nodes;
    } checks[] = {
        {NULL, "", ADJ_GRADCHECK_PASS, 0},
        {"naive", "", ADJ_GRADCHECK_PASS, 1},
        {"xyz", "no implementation's name contains \"xyz\"; ran naive naive:f32",
         ADJ_GRADCHECK_INCONCLUSIVE, 0},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {6}}));
        const adj_gradcheck_opts o = {.exec.backend = "naive",
                                      .exec.threads = 1,
                                      .exec.backends = backends(),
                                      .exec.debug = &(adj_exec_debug){.impl = checks[i].impl}};
        scoped(release_gradcheck) const adj_gradcheck_report *r = checked(y, &o);
        cr_expect_str_eq(r->row[0].reason, checks[i].reason);
        cr_expect_eq(r->verdict, checks[i].verdict);
        cr_expect_eq(adj_gradcheck_conditions(r).impl_nodes, checks[i].nodes);
    }
}
