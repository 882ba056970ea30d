/* test_group.c - which proposed groups are taken: random graphs and proposals, against a count of
 * what can be ordered. The planted kernel refuses every group in the end, so its nodes run one by
 * one and the values must be those without any groups. And the groups of a plan's steps: nodes of
 * the executor's graph, and layouts of operands and results. */
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

static int draw(int n)
{
    plant.seed = plant.seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (int)((plant.seed >> 33) % (uint64_t)n);
}

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

Test(step_group, nothing)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = plan(g, "naive");
    int step = conv_step(e), n = adj_exec_step_count(e);
    const adj_node *elsewhere = adj_graph_node_at(g, 0);
    cr_expect_null(adj_exec_step_group(e, -1));
    cr_expect_null(adj_exec_step_group(e, n));
    cr_expect_null(adj_exec_step_group(NULL, 0));
    cr_expect_str_empty(adj_exec_step_layout(e, step, elsewhere));
    cr_expect_str_empty(adj_exec_step_layout(e, n, elsewhere));
}
