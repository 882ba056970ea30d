/* test_group.c - the proposed groups that are taken: random graphs and proposals, against a count
 * of what can be ordered. The planted kernel refuses every group in the end, so its nodes run one
 * by one and the values must be those without any groups. The groups of a plan's steps: nodes of
 * the executor's graph, and layouts of operands and results. Epilogues: the nodes that a plan adds
 * to a selected kernel, and that none is lost. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/plan.h"
#include "tests/reference.h"

enum { NODES = 40, MAX = 4 };

static struct {
    uint64_t seed;
    const adj_node *leader[4 * NODES]; /* by id: the first node of its group, as expected */
    int size[4 * NODES];               /* by the leader's id */
    int taken, cycles, seen;           /* groups expected; refused for a cycle; prepared */
} plant;

static int draw(int n) { return draw_below(n, &plant.seed); }

static const adj_node *leader_of(const adj_node *n, int count, const adj_node *const set[])
{
    for (int i = 0; i < count; i++)
        if (set[i] == n)
            return set[0];
    return plant.leader[n->id] != NULL ? plant.leader[n->id] : n;
}

/* Can all groups be ordered if set becomes one? By taking away what waits for nothing. */
static int can_be_ordered(const adj_graph *g, int count, const adj_node *const set[])
{
    char done[4 * NODES] = {0};
    for (int changed = 1; changed;) {
        changed = 0;
        for (int id = 0; id < adj_graph_node_count(g); id++) {
            const adj_node *l = leader_of(adj_graph_node_at(g, id), count, set);
            int waits = done[l->id] != 0;
            for (int k = 0; k < adj_graph_node_count(g) && !waits; k++) {
                const adj_node *m = adj_graph_node_at(g, k);
                for (int i = 0; leader_of(m, count, set) == l && i < m->n_in && !waits; i++) {
                    const adj_node *from = leader_of(m->in[i], count, set);
                    waits = from != l && !done[from->id];
                }
            }
            if (!waits)
                done[l->id] = (char)(changed = 1);
        }
    }
    for (int id = 0; id < adj_graph_node_count(g); id++)
        if (!done[leader_of(adj_graph_node_at(g, id), count, set)->id])
            return 0;
    return 1;
}

/* The root and some other nodes that are near it. */
static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_graph *g = root->graph;
    int n = 0, free = 1, wanted = 2 + draw(MAX - 1);
    (void)uses;
    cr_assert(max >= MAX && adj_graph_node_count(g) <= 4 * NODES);
    group[n++] = root;
    for (int tries = 0; tries < 20 && n < wanted; tries++) {
        int id = (int)root->id - 3 + draw(12), known = 0;
        const adj_node *m = adj_graph_node_at(g, id);
        for (int i = 0; i < n && m != NULL; i++)
            known |= group[i] == m;
        if (m != NULL && !known && !(m->op->flags & ADJ_OP_LEAF))
            group[n++] = m;
    }
    for (int i = 0; i < n; i++)
        free &= plant.leader[group[i]->id] == NULL;
    if (n < 2 || !free)
        return n;
    if (!can_be_ordered(g, n, group)) {
        plant.cycles++;
        return n;
    }
    plant.taken++;
    for (int i = 0; i < n; i++)
        plant.leader[group[i]->id] = group[0];
    plant.size[group[0]->id] = n;
    return n;
}

static adj_status refuse(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)candidate, (void)p;
    if (g->n_node < 2)
        return ADJ_ENOKERNEL;
    const adj_node *leader = plant.leader[g->node[0]->id];
    cr_assert(leader != NULL && plant.size[leader->id] == g->n_node);
    for (int i = 0; i < g->n_node; i++)
        cr_assert_eq(plant.leader[g->node[i]->id], leader);
    plant.seen++;
    return ADJ_ENOKERNEL;
}

static adj_status run(const adj_call *c)
{
    (void)c;
    return ADJ_EBACKEND;
}

static const adj_kernel kernel = {.name = "any", .match = match, .prepare = refuse, .run = run};

static void values(adj_graph *g, adj_node *x, adj_node *y, const adj_backend *const *backends,
                   float out[4])
{
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backends = backends};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_assert_eq(adj_set(e, x, (float[]){0.1F, -0.2F, 0.3F, 0.4F}, 16), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    cr_assert_eq(adj_get(e, y, out, 16), ADJ_OK);
}

/* Fused groups are inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
TestSuite(group, .init = plan_as_usual);

Test(group, cycles_are_refused_and_nothing_else_is)
{
    const adj_backend *const *both = before_naive("planted", &kernel);
    const adj_backend *const alone[] = {naive_backend(), NULL};
    int taken = 0, cycles = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        memset(&plant, 0, sizeof plant);
        plant.seed = seed;
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}), *n[NODES + 1] = {x};
        for (int i = 1; i <= NODES; i++) {
            const adj_node *a = n[draw(i)], *b = n[i - 1 - draw(i < 4 ? i : 4)];
            n[i] = adj_scale(adj_add((adj_node *)a, (adj_node *)b), 0.5 + 0.01 * i);
        }
        float got[4], want[4];
        values(g, x, n[NODES], both, got);
        cr_assert_eq(plant.seen, plant.taken, "%d groups of %d, seed %d", plant.seen, plant.taken,
                     (int)seed);
        values(g, x, n[NODES], alone, want);
        cr_assert_arr_eq(got, want, sizeof got);
        taken += plant.taken;
        cycles += plant.cycles;
    }
    cr_assert(taken > 500 && cycles > 500, "%d taken, %d refused", taken, cycles);
}

/* ---- groups of steps ---- */

/* relu(conv2d(x, w)) on 8x6 images in NCHW. */
static adj_exec *plan(adj_graph *g, const char *backend)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 16, 8, 6}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 16, 32}});
    adj_node *y = adj_relu(adj_conv2d(x, w, &(adj_conv){.format = ADJ_NCHW}));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = backend, .threads = 1};
    return plan_of(g, &o);
}

TestSuite(step_group, .init = plan_as_usual);

/* The convolution's step; -1: there is none. */
static int conv_step(const adj_exec *e)
{
    int i = adj_exec_step_count(e) - 1;
    while (i >= 0 && strcmp(adj_exec_step_at(e, i).op, "conv2d") != 0)
        i--;
    return i;
}

Test(step_group, as_the_executor_computes_it)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = plan(g, "naive");
    int step = conv_step(e);
    const adj_group *group = adj_exec_step_group(e, step);
    cr_assert_not_null(group);
    cr_assert_eq(group->n_node, adj_exec_step_at(e, step).n_node);
    const adj_node *conv = group->node[0];
    cr_expect_str_eq(conv->op->name, "conv2d");
    cr_expect_neq(conv->graph, g);
    cr_expect_str_eq(adj_exec_step_layout(e, step, conv->in[0]), "plain");
    cr_expect_str_eq(adj_exec_step_layout(e, step, conv->in[1]), "plain");
    cr_expect_str_eq(adj_exec_step_layout(e, step, group->out[0]), "plain");
    const int n = adj_exec_step_count(e); /* nothing there: */
    cr_expect_null(adj_exec_step_group(e, -1));
    cr_expect_null(adj_exec_step_group(e, n));
    cr_expect_null(adj_exec_step_group(NULL, 0));
    cr_expect_str_empty(adj_exec_step_layout(e, step, adj_graph_node_at(g, 0)));
    cr_expect_str_empty(adj_exec_step_layout(e, n, adj_graph_node_at(g, 0)));
}

/* oneDNN lays out the filter as it likes: in a layout of its own after a reorder, or plain. */
Test(step_group, layouts)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = plan(g, "onednn");
    int step = conv_step(e);
    const adj_group *group = adj_exec_step_group(e, step);
    cr_assert_not_null(group);
    cr_expect(adj_shape_equal(group->node[0]->in[0]->type.shape, (adj_shape){4, {2, 8, 6, 16}}),
              "images are NHWC there");
    const char *filter = adj_exec_step_layout(e, step, group->node[0]->in[1]);
    cr_expect_str_not_empty(filter);
    cr_expect_eq(strcmp(filter, "plain") != 0, adj_exec_details(e).reorders > 0, "%s, %d reorders",
                 filter, adj_exec_details(e).reorders);
}

/* ---- epilogues; the planted kernel negates, and takes {add, relu} behind that ---- */

enum { SIZE = 3 };
static const adj_shape vec = {1, {SIZE}};

/* ---- the planted kernel ---- */

static struct {
    int refuses; /* groups of more than one node */
    int prepared, dropped;
    const char *wider; /* the implementation of such groups */
} plant_adds;

static void reset(void)
{
    plant_adds.refuses = plant_adds.prepared = plant_adds.dropped = 0;
    plant_adds.wider = "plain";
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
    if (g->node[0]->op != &adj_op_neg || candidate > 0 || (g->n_node > 1 && plant_adds.refuses))
        return ADJ_ENOKERNEL;
    snprintf(p->impl, sizeof p->impl, "%s", g->n_node > 1 ? plant_adds.wider : "plain");
    p->state = &plant_adds;
    plant_adds.prepared++;
    return ADJ_OK;
}

static void drop(void *backend, void *state)
{
    (void)backend;
    cr_assert_eq(state, &plant_adds);
    plant_adds.dropped++;
}

static float run_node(const adj_node *n, float v, float addend)
{
    return n->op == &adj_op_neg ? -v : n->op == &adj_op_add ? v + addend : v > 0 ? v : 0;
}

static adj_status run_negated(const adj_call *c)
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

static adj_status refuse_pair(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g, (void)candidate, (void)p;
    return ADJ_ENOKERNEL;
}

static const adj_kernel negate = {
    .name = "negate", .epilogue = propose, .prepare = prepare, .run = run_negated, .drop = drop};
static const adj_kernel pair = {
    .name = "pair", .match = match_pair, .prepare = refuse_pair, .run = run_negated};
static const adj_kernel *const kernels[] = {&negate, &pair, NULL};
static const adj_backend negating = {.name = "negating", .kernels = kernels};

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
    addend_kind kind;
    adj_node *x, *given, *negated, *sum, *y;
} net;

static net new_net(addend_kind kind)
{
    net n = {.g = adj_graph_new(), .kind = kind};
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
static void expect_times(net n, adj_exec_opts o, int nodes, const char *label, float times)
{
    static const float x[SIZE] = {1, -2, 3}, given[SIZE] = {5, -1, 2};
    float y[SIZE];
    adj_exec *e;
    if (o.n_fetch == 0) {
        o.fetch = &n.y;
        o.n_fetch = 1;
    }
    o.backends = beside_naive(negating);
    cr_assert_eq(adj_exec_new(n.g, &o, &e), ADJ_OK, "%s: %s", label, adj_exec_message(e));
    cr_expect_eq(nodes_of_negation(e), nodes, "%s: %d nodes, expected %d", label,
                 nodes_of_negation(e), nodes);
    cr_assert_eq(adj_set(e, n.x, x, sizeof x), ADJ_OK);
    cr_assert_eq(adj_set(e, n.given, given, sizeof given), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s: %s", label, adj_exec_message(e));
    cr_assert_eq(adj_get(e, n.y, y, sizeof y), ADJ_OK);
    for (int i = 0; i < SIZE; i++) {
        const float addend = n.kind == GIVEN ? given[i] : 2 * given[i];
        const float v = addend - x[i];
        cr_expect_eq(y[i], v > 0 ? times * v : 0, "%s: %g", label, (double)y[i]);
    }
    adj_exec_free(e);
    cr_expect_eq(plant_adds.prepared, plant_adds.dropped, "%s", label);
    adj_graph_free(n.g);
    reset();
}

static void expect(net n, adj_exec_opts o, int nodes, const char *label)
{
    expect_times(n, o, nodes, label, 1);
}

Test(epilogue, all_that_can_be_computed_there)
{
    expect(new_net(GIVEN), (adj_exec_opts){0}, 3, "given");
    expect(new_net(MADE_BEFORE), (adj_exec_opts){0}, 3, "made before");
}

Test(epilogue, not_what_has_to_wait)
{
    expect(new_net(MADE_AFTER), (adj_exec_opts){0}, 1, "made after");
}

/* relu is in a group with nodes that are not proposed: it stays there, but where one node is left
 * that can be computed by itself. */
Test(epilogue, no_part_of_a_group)
{
    net n = new_net(GIVEN);
    adj_node *const scaled[] = {n.y, adj_scale(adj_scale(n.y, 3), 5)};
    expect(n, (adj_exec_opts){.fetch = scaled, .n_fetch = 2}, 2, "relu and two");
}

Test(epilogue, the_first_of_a_pair)
{
    for (int is_fetched = 0; is_fetched < 2; is_fetched++) {
        net n = new_net(GIVEN);
        adj_node *const scaled[] = {n.y, adj_scale(n.y, 3)};
        const adj_exec_opts o = {.fetch = is_fetched ? scaled : &scaled[1],
                                 .n_fetch = 1 + is_fetched};
        n.y = is_fetched ? n.y : scaled[1];
        expect_times(n, o, 3, "relu and scale", is_fetched ? 1 : 3);
    }
}

Test(epilogue, not_behind_a_value_that_is_wanted)
{
    net n = new_net(GIVEN);
    adj_node *const sum[] = {n.sum, n.y};
    expect(n, (adj_exec_opts){.fetch = sum, .n_fetch = 2}, 2, "the sum is fetched");
    n = new_net(GIVEN);
    adj_node *const negated[] = {n.negated, n.y};
    expect(n, (adj_exec_opts){.fetch = negated, .n_fetch = 2}, 1, "the group's is fetched");
}

Test(epilogue, not_against_the_options)
{
    expect(new_net(GIVEN), (adj_exec_opts){.debug = &(adj_exec_debug){.no_fusion = 1}}, 1,
           "unfused");
    expect(new_net(GIVEN), (adj_exec_opts){.backend = "negating,relu=naive"}, 2, "relu=naive");
}

Test(epilogue, not_against_the_kernel)
{
    plant_adds.refuses = 1;
    expect(new_net(GIVEN), (adj_exec_opts){0}, 1, "it refuses");
    plant_adds.wider = "other";
    expect(new_net(GIVEN), (adj_exec_opts){0}, 1, "another implementation");
}

/* The negation of a parameter is not computed in every run for an input's sake. */
Test(epilogue, not_what_changes_more_often)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1});
    adj_node *y = adj_add(adj_neg(p), adj_input(g, "x", ADJ_F32, vec));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backends = beside_naive(negating)};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_expect_eq(nodes_of_negation(e), 1);
}
