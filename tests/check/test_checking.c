/* test_checking.c - an executor's features for checkers: custom backends, canaries, a requested
 * implementation, a profile. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "exec/internal.h"
#include "exec/report.h"
#include "graph/op.h"
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
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend sloppy = {.version = ADJ_VERSION,
                                   .name = "sloppy",
                                   .open = open_nothing,
                                   .close = close_nothing,
                                   .kernels = kernels};

typedef struct {
    adj_graph *g;
    adj_exec *e;
    adj_node *x, *y;
    const adj_backend *backends[3];
} rig;

static rig rig_new(adj_exec_opts o)
{
    rig r = {.g = adj_graph_new(), .backends = {&sloppy, naive_backend(), NULL}};
    r.x = adj_input(r.g, "x", ADJ_F32, (adj_shape){1, {5}});
    r.y = adj_label(adj_scale(adj_relu(adj_neg(r.x)), 2), "y");
    o.n_fetch = 1;
    o.fetch = &r.y;
    o.backends = r.backends;
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
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
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
        cr_assert_not_null(
            strstr(adj_exec_message(r.e), reach > 0 ? "wrote behind" : "wrote before"), "%s",
            adj_exec_message(r.e));
        cr_assert_not_null(strstr(adj_exec_message(r.e), "(relu, sloppy:first)"));
        cr_assert_not_null(strstr(adj_exec_message(r.e), "the 20 bytes of relu, towards "), "%s",
                           adj_exec_message(r.e));
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
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 4}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 2, 6}}, (adj_init){0});
    adj_node *y = adj_conv2d(x, w, NULL);
    adj_exec *e;
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "naive"};
    cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_OK);
    cr_assert_eq(adj_exec_step_at(e, 0).flop, 2.0 * 2 * 6 * 6 * 6 * 3 * 3 * 2);
    adj_exec_free(e);
    adj_graph_free(g);
}

/* Options of an executor that a checker does not read are refused, not ignored. */
Test(checking, options_that_are_not_read)
{
    adj_graph *g = adj_graph_new();
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
        cr_expect_not_null(strstr(r->message, said), "%s", r->message);
        adj_gradcheck_free(r);
        adj_compare_opts o = {.exec = set[i]};
        o.exec.n_fetch = 1;
        o.exec.fetch = &y;
        const adj_comparison *c = NULL;
        cr_expect_eq(adj_compare(g, &o, &c), ADJ_EARG);
        cr_expect_not_null(strstr(c->message, said), "%s", c->message);
        adj_comparison_free(c);
    }
    adj_graph_free(g);
}
