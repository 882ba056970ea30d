/* test_verify_random.c - finished plans, spoiled at random: each that the verifier lets pass is run
 * twice, and must give the bits of the plan in which no value shares memory. */
#include <criterion/criterion.h>

#include "adjoint_nn.h"
#include "ops/grad.h"
#include "tests/exec/corrupt.h"
#include "tests/plan.h"

enum { ROOM = 16384, N = 2, SIDE = 6 };

typedef struct {
    adj_graph *g;
    adj_node *x, *labels, *lr, *fetch[3];
    adj_updates *updates;
} net;

static const adj_init uniform = {.kind = ADJ_INIT_UNIFORM, .a = -0.5, .b = 0.5};

/* Trains a small net, averages one of its filters, and has a part that follows from parameters
 * alone. */
static net build(void)
{
    net t = {.g = adj_graph_new()};
    adj_graph *g = t.g;
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_pool half = {.ksize = {1, 2, 2, 1}};
    t.x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {N, SIDE, SIDE, 3}});
    t.labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {N}});
    t.lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 3, 4}}, uniform);
    adj_node *v = adj_param(g, "v", ADJ_F32, (adj_shape){4, {3, 3, 4, 4}}, uniform);
    adj_node *d = adj_param(g, "d", ADJ_F32, (adj_shape){2, {36, 3}}, uniform);
    adj_node *frozen = adj_param(g, "frozen", ADJ_F32, (adj_shape){4, {3, 3, 3, 4}}, uniform);
    adj_node *mean = adj_state(g, "mean", ADJ_F32, (adj_shape){4, {3, 3, 3, 4}}, uniform);
    adj_node *h = adj_relu(adj_conv2d(t.x, w, &same));
    h = adj_add(adj_tanh(adj_conv2d(h, v, &same)), h);
    h = adj_reshape(adj_max_pool(h, &half), (adj_shape){2, {N, 36}});
    adj_node *const trained[] = {w, v, d};
    t.fetch[0] = adj_loss_softmax(adj_matmul(h, d, 0), t.labels, NULL);
    t.fetch[1] = w; /* as it was before the step */
    t.fetch[2] =
        adj_reduce_sum(adj_conv2d(t.x, adj_tanh(adj_exp(frozen)), &same), (adj_axes){.n = ADJ_ALL});
    t.updates = adj_training_updates(
        t.fetch[0], &(adj_optimizer_opts){.momentum = 0.9, .trained = trained, .n_trained = 3});
    g->role = ADJ_ROLE_UPDATE;
    adj_updates_add(t.updates, mean, adj_ema(mean, w, 0.9));
    return t;
}

static adj_exec *plan_net(const net *t, int no_sharing)
{
    const adj_exec_opts o = {.n_fetch = 3,
                             .fetch = t->fetch,
                             .updates = t->updates,
                             .backend = "naive",
                             .threads = 1,
                             .debug = &(adj_exec_debug){.no_sharing = no_sharing}};
    return plan_of(t->g, &o);
}

/* Sets parameters and states, wherever a spoiled plan has them. */
static void set_parameters(adj_exec *e)
{
    float value[N * SIDE * SIDE * 3];
    for (int i = 0; i < e->plan.n_leaf; i++) {
        const leaf *l = &e->plan.leaf[i];
        const int64_t n = node_elems(l->node);
        for (int64_t k = 0; k < n && l->node->op != &adj_op_const; k++)
            value[k] = (float)((k * 3 + i) % 11) / 11 - 0.4F;
        if (l->node->op->flags & ADJ_OP_KEPT)
            cr_assert_eq(adj_set(e, l->user, value, 4 * (size_t)n), ADJ_OK);
    }
}

/* Runs twice on other values; writes all results and parameters. 0: a run failed. */
static size_t run_twice(const net *t, adj_exec *e, char results[ROOM])
{
    float x[N * SIDE * SIDE * 3];
    size_t used = 0;
    set_parameters(e);
    for (int run = 0; run < 2; run++) {
        const float lr = 0.1F;
        for (int i = 0; i < N * SIDE * SIDE * 3; i++)
            x[i] = (float)((i * 7 + run * 5) % 23) / 23 - 0.4F;
        cr_assert_eq(adj_set(e, t->x, x, sizeof x), ADJ_OK);
        if (run == 0) { /* these stay as they are */
            cr_assert_eq(adj_set(e, t->lr, &lr, 4), ADJ_OK);
            cr_assert_eq(adj_set(e, t->labels, (int32_t[]){0, 2}, 4 * N), ADJ_OK);
        }
        if (adj_run(e) != ADJ_OK)
            return 0;
        for (int i = 0; i < 3; i++) {
            const size_t bytes = adj_type_bytes(adj_node_type(t->fetch[i]));
            cr_assert_eq(adj_get(e, t->fetch[i], results + used, bytes), ADJ_OK);
            used += bytes;
        }
    }
    for (int i = 0; i < e->plan.n_leaf; i++) {
        const leaf *l = &e->plan.leaf[i];
        const size_t bytes = slot_of(&e->plan, l->buffer)->bytes;
        cr_assert_leq(used + bytes, ROOM);
        if (l->node->op == &adj_op_const || l->user == t->fetch[1])
            continue;
        memcpy(results + used, leaf_data(&e->plan, l), bytes);
        used += bytes;
    }
    return used;
}

/* ---- faults ---- */

static uint64_t seed = 1;

static int draw(int n) { return draw_below(n, &seed); }

/* Returns another buffer of the same size as b, or b where ten draws find none. */
static int other_buffer(const plan *p, int b)
{
    for (int i = 0; i < 10; i++) {
        const int k = draw(p->n_buffer);
        if (k != b && slot_of(p, k)->bytes == slot_of(p, b)->bytes)
            return k;
    }
    return b;
}

static void move_slot(adj_exec *e)
{
    slot *s = &e->plan.slot[draw(e->plan.n_slot)];
    if (s->foreign || s->bytes == 0)
        return;
    if (draw(4) == 0)
        s->kept = !s->kept;
    const size_t bytes = (s->kept ? e->memory.storage : e->memory.arena).bytes;
    const size_t needed = slot_footprint(&e->plan, s);
    s->offset = bytes > needed ? (size_t)draw((int)((bytes - needed) / 64 + 1)) * 64 : 0;
}

static void change_step(adj_exec *e)
{
    plan *p = &e->plan;
    const int i = draw(p->n_step), k = draw(2) ? draw(p->n_step) : i + (i + 1 < p->n_step);
    step *s = &p->step[i];
    int *const buffer = draw(2) && s->n_in > 0 ? &s->in[draw(s->n_in)] : &s->out[draw(s->n_out)];
    switch (draw(5)) {
    case 0: remove_step(e, i); break;
    case 1: swap_steps(e, i, k); break;
    case 2: p->buffer[*buffer].slot = p->buffer[other_buffer(p, *buffer)].slot; break;
    case 3: *buffer = other_buffer(p, *buffer); break;
    default: s->prep.alias[0].operands = (uint32_t)draw(4);
    }
}

static void change_end(adj_exec *e)
{
    plan *p = &e->plan;
    update *u = &p->update[draw(p->n_update)];
    fetch *f = &p->fetch[draw(p->n_fetch)];
    switch (draw(4)) {
    case 0: u->in_place = !u->in_place; break;
    case 1: u->next = other_buffer(p, u->next); break;
    case 2: f->buffer = other_buffer(p, f->buffer); break;
    default: p->n_invariant += p->n_invariant > 0 && draw(2) ? -1 : 1;
    }
}

static void spoil(adj_exec *e)
{
    static void (*const ways[])(adj_exec * e) = {move_slot, move_slot, change_step, change_end};
    ways[draw(4)](e);
    point_steps(e);
}

TestSuite(verify_random, .init = plan_as_usual);

Test(verify_random, what_passes_computes_the_same)
{
    enum { TRIALS = 4000 };
    int refused = 0;
    net t = build();
    char expected[ROOM], got[ROOM];
    adj_exec *alone = plan_net(&t, 1);
    const size_t bytes = run_twice(&t, alone, expected);
    cr_assert_gt(bytes, 0);
    adj_exec_free(alone);
    for (int i = 0; i < TRIALS; i++) {
        scoped(release_exec) adj_exec *e = plan_net(&t, draw(4) == 0);
        spoil(e);
        if (verify_plan(e) != ADJ_OK)
            refused++;
        else
            cr_expect(run_twice(&t, e, got) == bytes && memcmp(got, expected, bytes) == 0,
                      "trial %d passes", i);
    }
    cr_expect(refused > TRIALS / 3 && refused < TRIALS * 9 / 10, "%d of %d are refused", refused,
              TRIALS);
    adj_graph_free(t.g);
}
