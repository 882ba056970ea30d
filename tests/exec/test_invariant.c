/* test_invariant.c - values that depend on parameters alone are computed only after a parameter has
 * changed, and no run uses an old value. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "graph/op.h"
#include "tests/counter.h"
#include "tests/plan.h"
#include "tests/reference.h"

static const adj_exec_internal profiled = {.profile = 1};

enum { SIZE = 4, NODES = 14, LEAVES = 5 };

static const adj_shape vec = {1, {SIZE}};
static const adj_init two = {.kind = ADJ_INIT_CONSTANT, .a = 2},
                      three = {.kind = ADJ_INIT_CONSTANT, .a = 3};

/* ---- a backend that counts how often it negates ---- */

static int negated;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    p->alias[0].operands = 1;
    return prepare_one(&adj_op_neg, ADJ_F32, "count", g, candidate, p);
}

static adj_status negate(const adj_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    for (int64_t i = 0; i < adj_shape_elems(c->group->node[0]->type.shape); i++)
        y[i] = -x[i];
    negated++;
    return ADJ_OK;
}

static const adj_kernel counting_kernel = {.name = "count", .prepare = prepare, .run = negate};

static adj_exec *plan(adj_graph *g, int n, adj_node *const fetch[], const adj_updates *u)
{
    const adj_backend *const *both = before_naive("counting", &counting_kernel);
    adj_exec_opts o = {.n_fetch = n,
                       .fetch = fetch,
                       .updates = u,
                       .backends = both,
                       .debug = &(adj_exec_debug){.canaries = 1, .internal = &profiled}};
    adj_exec *e = plan_of(g, &o);
    negated = 0;
    return e;
}

static void set(adj_exec *e, const adj_node *leaf, float v)
{
    cr_assert_eq(adj_set(e, leaf, (float[]){v, v, v, v}, SIZE * sizeof v), ADJ_OK);
}

static void run(adj_exec *e, int n)
{
    int before = negated;
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    cr_assert_eq(negated - before, n, "negated %d times, expected %d", negated - before, n);
}

static void expect(adj_exec *e, const adj_node *n, float want)
{
    float v[SIZE];
    cr_assert_eq(adj_get(e, n, v, sizeof v), ADJ_OK, "%s", adj_exec_message(e));
    for (int i = 0; i < SIZE; i++)
        cr_assert_eq(v[i], want, "got %g, expected %g", (double)v[i], (double)want);
}

static int steps_without_time(const adj_exec *e)
{
    int n = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        n += adj_exec_step_at(e, i).seconds == 0;
    return n;
}

/* y = x - p + pq, where -p could be overwritten by the sum, and a view of it is fetched. */
Test(invariant, is_computed_when_a_parameter_changes)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec), *p = adj_param(g, "p", ADJ_F32, vec, two);
    adj_node *q = adj_state(g, "q", ADJ_F32, vec, three);
    adj_node *minus = adj_neg(p), *product = adj_neg(adj_mul(minus, q));
    adj_node *y = adj_add(adj_add(minus, x), product);
    adj_node *view = adj_reshape(minus, (adj_shape){2, {2, 2}}), *fetch[] = {y, view};
    scoped(release_exec) adj_exec *e = plan(g, 2, fetch, NULL), *other = plan(g, 1, &y, NULL);
    set(e, x, 1);
    run(e, 2);
    expect(e, y, 1 - 2 + 6);
    cr_assert_eq(steps_without_time(e), 0);
    for (int i = 2; i < 5; i++) {
        set(e, x, (float)i);
        run(e, 0);
        expect(e, y, (float)(i - 2 + 6));
        expect(e, view, -2);
        cr_assert_eq(steps_without_time(e), 3);
    }
    set(e, p, 5);
    run(e, 2);
    expect(e, y, 4 - 5 + 15);
    expect(e, view, -5);
    set(e, q, 7);
    run(e, 2);
    expect(e, y, 4 - 5 + 35);
    run(e, 0);
    set(other, p, 10);
    cr_assert_eq(adj_copy_params(e, other), ADJ_OK);
    run(e, 2);
    expect(e, y, 4 - 10 + 30);
}

/* p is trained, q is frozen, r is assigned what follows from q alone. */
Test(invariant, what_an_update_assigns_is_not)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec, two), *q = adj_param(g, "q", ADJ_F32, vec, three);
    adj_node *r = adj_param(g, "r", ADJ_F32, vec, two);
    adj_node *minus_q = adj_neg(q), *y = adj_add(adj_neg(p), minus_q);
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, p, adj_add(p, p));
    adj_updates_add(u, r, minus_q);
    scoped(release_exec) adj_exec *e = plan(g, 1, &y, u);
    run(e, 2);
    expect(e, y, -2 - 3);
    expect(e, r, -3);
    set(e, r, 9);
    run(e, 1);
    expect(e, y, -4 - 3);
    expect(e, r, -3);
    set(e, q, 1);
    run(e, 2);
    expect(e, y, -8 - 1);
    expect(e, r, -1);
}

/* A fill that only varying steps read is made in every run: its memory is worth more. */
Test(invariant, constants_are_there_in_time)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec), *p = adj_param(g, "p", ADJ_F32, vec, two);
    adj_node *minus = adj_neg(adj_fill(g, ADJ_F32, vec, 4)); /* simplified or not */
    adj_node *c = adj_reshape(adj_reshape(minus, (adj_shape){2, {2, 2}}), vec);
    adj_node *y = adj_mul(adj_add(x, c), adj_neg(adj_add(p, c)));
    adj_exec *e = plan(g, 1, &y, NULL);
    for (int i = 0; i < 3; i++) {
        set(e, x, (float)i);
        cr_assert_eq(adj_run(e), ADJ_OK);
        expect(e, y, (float)(2 * (i - 4)));
        cr_assert_eq(steps_without_time(e) > 0, i > 0);
    }
    adj_exec_free(e);
    adj_node *z = adj_sub(x, adj_maximum(adj_fill(g, ADJ_F32, vec, 4), x));
    e = plan(g, 1, &z, NULL);
    for (int i = 0; i < 2; i++) {
        set(e, x, 1);
        run(e, 0);
        expect(e, z, -3);
        cr_assert_eq(steps_without_time(e), 0);
    }
    adj_exec_free(e);
}

/* A failed invariant step fails again in each run until its parameter is set. */
Test(invariant, a_failure_is_not_forgotten)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *labels = adj_state(g, "labels", ADJ_I32, (adj_shape){1, {1}}, (adj_init){0});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){2, {1, SIZE}}, two);
    adj_node *loss = adj_sparse_softmax_cross_entropy(w, labels, 0), *y = adj_neg(loss);
    scoped(release_exec) adj_exec *e = plan(g, 1, &y, NULL);
    run(e, 1);
    cr_assert_eq(adj_set(e, labels, (int32_t[]){SIZE}, 4), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_EARG);
    cr_assert_eq(adj_run(e), ADJ_EARG);
    cr_assert_eq(adj_set(e, labels, (int32_t[]){1}, 4), ADJ_OK);
    run(e, 1);
    run(e, 0);
}

/* ---- an inference in bf16: casts and packed filters ---- */

static void draw(adj_exec *e, const adj_node *leaf, uint64_t seed)
{
    float v[3 * 3 * 16 * 16];
    int64_t n = adj_shape_elems(leaf->type.shape);
    adj_draw(ADJ_F32, v, n, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1}, seed, 1);
    cr_assert_eq(adj_set(e, leaf, v, (size_t)n * sizeof *v), ADJ_OK);
}

Test(invariant, an_inference_casts_its_filters_once)
{
    unsetenv("ADJOINT_PLAN"); /* two plans that are timed apart may differ in bits */
    counter c = {0};
    const adj_allocator a = {count_alloc, count_free, &c};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 6, 6, 16}});
    adj_node *w[2], *y = x;
    for (int i = 0; i < 2; i++) {
        w[i] = adj_param(g, i > 0 ? "w1" : "w0", ADJ_F32, (adj_shape){4, {3, 3, 16, 16}},
                         (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1});
        y = adj_relu(adj_conv2d(y, w[i], &(adj_conv){.padding = ADJ_SAME}));
    }
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &y,
                       .precision = ADJ_PRECISION_BF16,
                       .allocator = &a,
                       .debug = &(adj_exec_debug){.internal = &profiled}};
    float got[6 * 6 * 16], want[6 * 6 * 16];
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    for (int turn = 0; turn < 4; turn++) {
        long before = c.calls;
        draw(e, x, 7);
        if (turn > 1)
            draw(e, w[turn - 2], 9);
        cr_assert_eq(adj_run(e), ADJ_OK);
        cr_assert_eq(adj_get(e, y, got, sizeof got), ADJ_OK);
        cr_assert_eq(c.calls, before, "adj_run allocated");
        cr_assert_eq(steps_without_time(e) >= 2, turn == 1);
        scoped(release_exec) adj_exec *fresh = plan_of(g, &o);
        cr_assert_eq(adj_copy_params(fresh, e), ADJ_OK);
        draw(fresh, x, 7);
        cr_assert_eq(adj_run(fresh), ADJ_OK);
        cr_assert_eq(adj_get(fresh, y, want, sizeof want), ADJ_OK);
        cr_assert_eq(memcmp(got, want, sizeof got), 0, "turn %d", turn);
    }
    scoped(release) char *text = plan_text(e);
    expect_text(text, "(only when a parameter has changed)");
}

/* ---- random graphs, sets and updates against plain C ---- */

typedef struct {
    uint64_t seed;
    adj_graph *g;
    int n;
    adj_node *node[NODES];
    float leaf[LEAVES][SIZE]; /* the leaves are the first nodes: two inputs, then parameters */
    int next[LEAVES];         /* assigned to the leaf; 0: nothing */
} garden;

static int draw_int(garden *r, int n) { return draw_below(n, &r->seed); }

static void plant(garden *r)
{
    static const char *const name[LEAVES] = {"a", "b", "c", "d", "e"};
    r->g = adj_graph_new();
    for (int i = 0; i < LEAVES; i++)
        r->node[i] = i < 2 ? adj_input(r->g, name[i], ADJ_F32, vec)
                           : adj_param(r->g, name[i], ADJ_F32, vec, two);
    for (int i = LEAVES; i < NODES; i++) {
        adj_node *a = r->node[draw_int(r, i)], *b = r->node[draw_int(r, i)];
        switch (draw_int(r, 5)) {
        case 0: r->node[i] = adj_neg(a); break;
        case 1: r->node[i] = adj_maximum(a, b); break;
        case 2: r->node[i] = adj_reshape(adj_reshape(a, (adj_shape){2, {SIZE, 1}}), vec); break;
        case 3: r->node[i] = adj_sub(a, adj_fill(r->g, ADJ_F32, vec, draw_int(r, 3))); break;
        default: r->node[i] = adj_sub(a, b); break;
        }
    }
    for (int i = 2; i < LEAVES; i++)
        r->next[i] = draw_int(r, 3) == 0 ? draw_int(r, NODES) : 0;
}

static float value(const garden *r, const adj_node *n, int i)
{
    double fill;
    for (int k = 0; k < LEAVES; k++)
        if (r->node[k] == n)
            return r->leaf[k][i];
    if (adj_is_fill(n, &fill))
        return (float)fill;
    float a = value(r, n->in[0], i), b = n->n_in > 1 ? value(r, n->in[1], i) : 0;
    if (n->op == &adj_op_neg)
        return -a;
    if (n->op == &adj_op_maximum)
        return a > b ? a : b;
    return n->op == &adj_op_sub ? a - b : a;
}

static void assign(garden *r)
{
    float next[LEAVES][SIZE];
    for (int k = 0; k < LEAVES; k++)
        for (int i = 0; i < SIZE; i++)
            next[k][i] = r->next[k] > 0 ? value(r, r->node[r->next[k]], i) : r->leaf[k][i];
    memcpy(r->leaf, next, sizeof next);
}

static void grow(uint64_t seed, const char *backend)
{
    garden r = {.seed = seed};
    plant(&r);
    adj_node *fetch[3] = {r.node[NODES - 1], r.node[draw_int(&r, NODES)],
                          r.node[draw_int(&r, NODES)]};
    adj_updates *u = adj_updates_new(r.g);
    for (int k = 0; k < LEAVES; k++)
        if (r.next[k] > 0)
            adj_updates_add(u, r.node[k], r.node[r.next[k]]);
    adj_exec_opts o = {.n_fetch = 3,
                       .fetch = fetch,
                       .updates = u,
                       .backend = backend,
                       .debug = &(adj_exec_debug){.canaries = 1}};
    scoped(release_exec) adj_exec *e = plan_of(r.g, &o);
    for (int turn = 0; turn < 6; turn++) {
        for (int k = 0; k < LEAVES; k++) {
            if (turn > 0 && draw_int(&r, 4) > 0)
                continue;
            for (int i = 0; i < SIZE; i++)
                r.leaf[k][i] = (float)draw_int(&r, 9) - 4;
            adj_set(e, r.node[k], r.leaf[k], sizeof r.leaf[k]); /* refused where it is not read */
        }
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
        for (int f = 0; f < 3; f++) {
            float got[SIZE];
            cr_assert_eq(adj_get(e, fetch[f], got, sizeof got), ADJ_OK);
            for (int i = 0; i < SIZE; i++)
                cr_assert_eq(got[i], value(&r, fetch[f], i), "seed %d, turn %d, fetch %d",
                             (int)seed, turn, f);
        }
        assign(&r);
    }
    adj_graph_free(r.g);
}

Test(invariant, random_graphs_are_never_out_of_date)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        grow(seed, "naive");
        grow(seed, NULL);
    }
}
