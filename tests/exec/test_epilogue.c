/* test_epilogue.c - epilogues: the nodes that a plan adds to a selected kernel, and that none is
 * lost. The planted kernel negates, and takes {add, relu} behind that. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/plan.h"
#include "tests/reference.h"

enum { SIZE = 3 };
static const adj_shape vec = {1, {SIZE}};

/* ---- the planted kernel ---- */

static struct {
    int refuses; /* groups of more than one node */
    int prepared, dropped;
    const char *wider; /* the implementation of such groups */
} plant;

static void reset(void)
{
    plant.refuses = plant.prepared = plant.dropped = 0;
    plant.wider = "plain";
}

static int propose(const adj_node *last, const adj_uses *uses, int max, const adj_node **nodes)
{
    const adj_node *user = adj_only_user(last, uses);
    int n = 0;
    if (user != NULL && n < max && user->op == &adj_op_add) {
        nodes[n++] = user;
        user = adj_only_user(user, uses);
    }
    if (user != NULL && n < max && user->op == &adj_op_relu)
        nodes[n++] = user;
    return n;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_neg || candidate > 0 || (g->n_node > 1 && plant.refuses))
        return ADJ_ENOKERNEL;
    snprintf(p->impl, sizeof p->impl, "%s", g->n_node > 1 ? plant.wider : "plain");
    p->state = &plant;
    plant.prepared++;
    return ADJ_OK;
}

static void drop(void *backend, void *state)
{
    (void)backend;
    cr_assert_eq(state, &plant);
    plant.dropped++;
}

static float run_node(const adj_node *n, float v, float addend)
{
    return n->op == &adj_op_neg ? -v : n->op == &adj_op_add ? v + addend : v > 0 ? v : 0;
}

static adj_status run(const adj_call *c)
{
    const adj_group *g = c->group;
    const float *x = c->in[0], *addend = c->in[g->n_in - 1];
    float *y = c->out[0];
    cr_assert_eq(g->n_out, 1);
    for (int i = 0; i < SIZE; i++) {
        y[i] = x[i];
        for (int k = 0; k < g->n_node; k++)
            y[i] = run_node(g->node[k], y[i], addend[i]);
    }
    return ADJ_OK;
}

/* {relu, scale} or {relu, scale, scale}, which no kernel prepares: they are a group while the
 * negation is planned. */
static int match_pair(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[root->id];
    if (root->op != &adj_op_relu || max < 3 || u->n_user != 1 || u->user[0]->op != &adj_op_scale)
        return 0;
    group[0] = root;
    group[1] = u->user[0];
    group[2] = adj_only_user(group[1], uses);
    return group[2] != NULL ? 3 : 2;
}

static adj_status refuse(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g, (void)candidate, (void)p;
    return ADJ_ENOKERNEL;
}

static const adj_kernel negate = {
    .name = "negate", .epilogue = propose, .prepare = prepare, .run = run, .drop = drop};
static const adj_kernel pair = {.name = "pair", .match = match_pair, .prepare = refuse, .run = run};
static const adj_kernel *const kernels[] = {&negate, &pair, NULL};
static const adj_backend negating = {.version = ADJ_VERSION,
                                     .name = "negating",
                                     .open = open_nothing,
                                     .close = close_nothing,
                                     .kernels = kernels};

/* ---- plans ---- */

/* Slices are plans of their own, and tuning takes what is faster. */
static void begin(void)
{
    plan_as_usual();
    reset();
}
TestSuite(epilogue, .init = begin);

/* relu(-x + addend), the addend given, or made of what is given before the negation or after it. */
typedef enum { GIVEN, MADE_BEFORE, MADE_AFTER } addend_kind;

typedef struct {
    adj_graph *g;
    adj_node *x, *given, *negated, *sum, *y;
} net;

static net new_net(addend_kind kind)
{
    net n = {.g = adj_graph_new()};
    n.x = adj_input(n.g, "x", ADJ_F32, vec);
    n.given = adj_input(n.g, "given", ADJ_F32, vec);
    adj_node *addend = kind == MADE_BEFORE ? adj_scale(n.given, 2) : n.given;
    n.negated = adj_neg(n.x);
    if (kind == MADE_AFTER)
        addend = adj_scale(n.given, 2);
    n.sum = adj_add(n.negated, addend);
    n.y = adj_relu(n.sum);
    return n;
}

/* How many nodes the negation's step has. */
static int nodes_of_negation(const adj_exec *e)
{
    int nodes = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        if (strcmp(adj_exec_step_at(e, i).op, "neg") == 0)
            nodes = adj_exec_step_at(e, i).n_node;
    return nodes;
}

/* Plans and runs it; expects so many nodes in the step, and y as so many times the values of the
 * definition. */
static void expect_times(net n, addend_kind kind, adj_exec_opts o, int nodes, const char *label,
                         float times)
{
    static const float x[SIZE] = {1, -2, 3}, given[SIZE] = {5, -1, 2};
    const adj_backend *const both[] = {&negating, naive_backend(), NULL};
    float y[SIZE];
    adj_exec *e;
    if (o.n_fetch == 0) {
        o.fetch = &n.y;
        o.n_fetch = 1;
    }
    o.backends = both;
    cr_assert_eq(adj_exec_new(n.g, &o, &e), ADJ_OK, "%s: %s", label, adj_exec_message(e));
    cr_expect_eq(nodes_of_negation(e), nodes, "%s: %d nodes, expected %d", label,
                 nodes_of_negation(e), nodes);
    cr_assert_eq(adj_set(e, n.x, x, sizeof x), ADJ_OK);
    cr_assert_eq(adj_set(e, n.given, given, sizeof given), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s: %s", label, adj_exec_message(e));
    cr_assert_eq(adj_get(e, n.y, y, sizeof y), ADJ_OK);
    for (int i = 0; i < SIZE; i++) {
        const float addend = kind == GIVEN ? given[i] : 2 * given[i];
        const float v = addend - x[i];
        cr_expect_eq(y[i], v > 0 ? times * v : 0, "%s: %g", label, (double)y[i]);
    }
    adj_exec_free(e);
    cr_expect_eq(plant.prepared, plant.dropped, "%s", label);
    adj_graph_free(n.g);
    reset();
}

static void expect(net n, addend_kind kind, adj_exec_opts o, int nodes, const char *label)
{
    expect_times(n, kind, o, nodes, label, 1);
}

Test(epilogue, all_that_can_be_computed_there)
{
    expect(new_net(GIVEN), GIVEN, (adj_exec_opts){0}, 3, "given");
    expect(new_net(MADE_BEFORE), MADE_BEFORE, (adj_exec_opts){0}, 3, "made before");
}

Test(epilogue, not_what_has_to_wait)
{
    expect(new_net(MADE_AFTER), MADE_AFTER, (adj_exec_opts){0}, 1, "made after");
}

/* relu is in a group with nodes that are not proposed: it stays there, but where one node is left
 * that can be computed by itself. */
Test(epilogue, no_part_of_a_group)
{
    net n = new_net(GIVEN);
    adj_node *const scaled[] = {n.y, adj_scale(adj_scale(n.y, 3), 5)};
    expect(n, GIVEN, (adj_exec_opts){.fetch = scaled, .n_fetch = 2}, 2, "relu and two");
}

Test(epilogue, the_first_of_a_pair)
{
    for (int is_fetched = 0; is_fetched < 2; is_fetched++) {
        net n = new_net(GIVEN);
        adj_node *const scaled[] = {n.y, adj_scale(n.y, 3)};
        const adj_exec_opts o = {.fetch = is_fetched ? scaled : &scaled[1],
                                 .n_fetch = 1 + is_fetched};
        n.y = is_fetched ? n.y : scaled[1];
        expect_times(n, GIVEN, o, 3, "relu and scale", is_fetched ? 1 : 3);
    }
}

Test(epilogue, not_behind_a_value_that_is_wanted)
{
    net n = new_net(GIVEN);
    adj_node *const sum[] = {n.sum, n.y};
    expect(n, GIVEN, (adj_exec_opts){.fetch = sum, .n_fetch = 2}, 2, "the sum is fetched");
    n = new_net(GIVEN);
    adj_node *const negated[] = {n.negated, n.y};
    expect(n, GIVEN, (adj_exec_opts){.fetch = negated, .n_fetch = 2}, 1, "the group's is fetched");
}

Test(epilogue, not_against_the_options)
{
    expect(new_net(GIVEN), GIVEN, (adj_exec_opts){.debug = &(adj_exec_debug){.no_fusion = 1}}, 1,
           "unfused");
    expect(new_net(GIVEN), GIVEN, (adj_exec_opts){.backend = "negating,relu=naive"}, 2,
           "relu=naive");
}

Test(epilogue, not_against_the_kernel)
{
    plant.refuses = 1;
    expect(new_net(GIVEN), GIVEN, (adj_exec_opts){0}, 1, "it refuses");
    plant.wider = "other";
    expect(new_net(GIVEN), GIVEN, (adj_exec_opts){0}, 1, "another implementation");
}

/* The negation of a parameter is not computed in every run for an input's sake. */
Test(epilogue, not_what_changes_more_often)
{
    const adj_backend *const both[] = {&negating, naive_backend(), NULL};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1});
    adj_node *y = adj_add(adj_neg(p), adj_input(g, "x", ADJ_F32, vec));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backends = both};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_expect_eq(nodes_of_negation(e), 1);
}
