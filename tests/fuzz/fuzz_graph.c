/* fuzz_graph.c - arbitrary sequences of builder calls, then a gradient, plans and runs on naive
 * and another backend.
 *
 * Input: flags, dtype, a seed, the number of steps, then builder calls (grow.h); what the input
 * does not say is drawn from the seed. Either the graph fails with a sentence, or: a plan that
 * computes in place what it can gives the values of one that keeps everything (twin.h): on naive
 * the same bits, on the other the same numbers where sums are exact; every update assigns what its
 * node was, and nothing else changes; no kernel writes outside its memory (canaries). */
#include <stdlib.h>
#include <string.h>

#include "fuzz/grow.h"
#include "fuzz/must.h"
#include "fuzz/twin.h"
#include "graph/op.h"

enum { STEPS = 24, RUNS = 2, FETCHES = 4, ROOTS = FETCHES + 2 * MAX_VALUES };

typedef struct {
    garden t;
    int n_fetch;
    adj_node *fetch[FETCHES];
    const char *other; /* backend beside naive; NULL: none */
    double step;       /* 0: all leaves are integers */
    int recompute;
} subject;

static int is_op(const adj_node *n, const char *op) { return strcmp(adj_node_op(n), op) == 0; }

static int is_assigned(const garden *t, const adj_node *leaf)
{
    for (int i = 0; i < adj_updates_count(t->updates); i++)
        if (adj_updates_leaf_at(t->updates, i) == leaf)
            return 1;
    return 0;
}

/* A scalar of everything that a value depends on, differentiated to the parameters. */
static void add_gradient(subject *s)
{
    garden *t = &s->t;
    adj_node *y = value_of(t, -1, -1), *p[FETCHES], *dp[FETCHES];
    int n = 0;
    if (adj_node_type(y).shape.rank > 0)
        y = adj_reduce_sum(y, (adj_axes){.n = ADJ_ALL});
    for (int i = 0; i < t->n && n < FETCHES; i++)
        if (adj_node_is_param(t->value[i]) && adj_node_type(t->value[i]).dtype != ADJ_I32)
            p[n++] = t->value[i];
    if (n == 0 || adj_grad(y, NULL, n, p, dp) != ADJ_OK)
        return;
    for (int i = 0; i < n; i++) {
        int kind = pick(&t->in, 4);
        keep(t, dp[i]);
        adj_graph_set_role(t->g, ADJ_ROLE_UPDATE);
        adj_node *next = keep(t, adj_sub(p[i], kind & 1 ? dp[i] : adj_scale(dp[i], 0.125)));
        adj_graph_set_role(t->g, ADJ_ROLE_FORWARD);
        if (kind & 2 && !is_assigned(t, p[i]))
            adj_updates_add(t->updates, p[i], next);
    }
}

static void build(subject *s)
{
    garden *t = &s->t;
    unsigned flags = take(&t->in), more = take(&t->in), seed = take(&t->in);
    int steps = 1 + pick(&t->in, STEPS);
    t->in.seed = seed * 2654435761U;
    t->wild = (flags & 3) == 3;
    s->other = flags & 128 ? NULL : more & 8 ? "direct" : "onednn";
    s->step = more >= 192 ? 0.375 : 0;
    s->recompute = more >> 5 & 1;
    t->dtype = more & 1 || more & 16 ? ADJ_F32 : (adj_dtype)(more >> 1 & 3);
    t->g = adj_graph_new();
    t->updates = adj_updates_new(t->g);
    for (int i = 0; i < steps && adj_graph_status(t->g) == ADJ_OK; i++) {
        if (flags & 4 && i % 3 == 0)
            adj_graph_set_role(t->g, ADJ_ROLE_UPDATE);
        grow(t);
        adj_graph_set_role(t->g, ADJ_ROLE_FORWARD);
    }
    if (t->n > 0 && adj_graph_status(t->g) == ADJ_OK && flags & 8)
        add_gradient(s);
    for (; t->n > 0 && s->n_fetch < 1 + (int)(flags >> 4 & 7) % FETCHES; s->n_fetch++)
        s->fetch[s->n_fetch] = s->n_fetch == 0 ? t->value[t->n - 1] : any_value(t);
}

/* Sets the same values for a leaf in every executor; labels are mostly valid. An executor has only
 * the leaves that it needs. */
static void set_leaves(const subject *s, adj_exec *e, int run)
{
    static double data[MAX_ELEMS];
    for (int id = 0; id < adj_graph_node_count(s->t.g); id++) {
        adj_node *n = adj_graph_node_at(s->t.g, id);
        adj_type type = adj_node_type(n);
        int64_t elems = adj_shape_elems(type.shape);
        int kept = adj_node_is_param(n) || adj_node_is_state(n);
        if (!is_op(n, "input") && (!kept || run > 0))
            continue;
        fill_data(data, type.dtype, elems, (unsigned)(id + 97 * run), s->step);
        for (int64_t i = 0; i < elems && type.dtype == ADJ_I32; i++)
            ((int32_t *)data)[i] = (int32_t)((i + run) % (s->t.wild ? 3 : 2)) - 1;
        adj_set(e, n, data, (size_t)elems * adj_dtype_size(type.dtype));
    }
}

static adj_exec *plan(const subject *s, const char *backend)
{
    adj_exec_opts o = {.n_fetch = s->n_fetch,
                       .fetch = s->fetch,
                       .updates = s->t.updates,
                       .backend = backend,
                       .threads = 1,
                       .recompute = s->recompute,
                       .debug = &(adj_exec_debug){.canaries = 1}};
    adj_exec *e = NULL;
    adj_status status = adj_exec_new(s->t.g, &o, &e);
    must(e != NULL && status == ADJ_OK && adj_exec_message(e)[0] == '\0');
    return e;
}

/* e has n, as `planned` has got it. */
static void must_have(const adj_exec *planned, adj_exec *e, const adj_node *n, const twin *t,
                      const adj_node *want, int bits)
{
    static double got[MAX_ELEMS];
    if (!bits && !twin_is_sure(t, want))
        return;
    must(adj_get(e, n, got, adj_type_bytes(adj_node_type(n))) == ADJ_OK);
    if (same_values(n, got, twin_value(t, want), bits))
        return;
    adj_exec_print(stderr, planned); /* so that the find can be read without a debugger */
    fprintf(stderr, "node %d %s of the graph", adj_node_id(want), adj_node_op(want));
    print_difference(stderr, n, got, twin_value(t, want));
    must(0);
}

/* The leaves after a run, which the twin has been given: next values, or what they were. */
static void check_leaves(const subject *s, const adj_exec *e, twin *t, adj_status status, int bits)
{
    const adj_updates *u = s->t.updates;
    for (int i = 0; i < t->n; i++) {
        adj_node *want = t->node[i];
        if (!adj_node_is_param(want) && !adj_node_is_state(want))
            continue;
        for (int k = 0; k < adj_updates_count(u) && status == ADJ_OK; k++)
            if (adj_updates_leaf_at(u, k) == t->node[i])
                want = adj_updates_next_at(u, k);
        must_have(e, t->exec, t->node[i], t, want, bits);
    }
}

/* True if e holds every parameter and state of the twin. A pass leaves out the condition of a
 * choice between equal values, which the twin computes. */
static int holds_all(adj_exec *e, const twin *t)
{
    for (int i = 0; i < t->n; i++)
        if ((adj_node_is_param(t->node[i]) || adj_node_is_state(t->node[i])) &&
            adj_data(e, t->node[i]) == NULL)
            return 0;
    return 1;
}

static void run_both(const subject *s, adj_exec *e, twin *t, int bits)
{
    set_leaves(s, e, 0);
    for (int run = 0; run < RUNS; run++) {
        if (run > 0)
            set_leaves(s, e, run);
        set_leaves(s, t->exec, run);
        must(adj_copy_params(t->exec, e) == ADJ_OK);
        adj_status status = adj_run(e), want = twin_run(t);
        must(status == want && (status == ADJ_OK || status == ADJ_EARG));
        for (int i = 0; i < s->n_fetch && status == ADJ_OK; i++)
            must_have(e, e, s->fetch[i], t, s->fetch[i], bits);
        must(adj_copy_params(t->exec, e) == ADJ_OK);
        check_leaves(s, e, t, status, bits);
    }
}

static void compare(const subject *s)
{
    const char *const backends[] = {"naive", s->other};
    adj_node *root[ROOTS];
    twin t;
    int n = 0;
    for (int i = 0; i < s->n_fetch; i++)
        root[n++] = s->fetch[i];
    for (int i = 0; i < adj_updates_count(s->t.updates) && n + 2 <= ROOTS; i++) {
        root[n++] = adj_updates_leaf_at(s->t.updates, i);
        root[n++] = adj_updates_next_at(s->t.updates, i);
    }
    int fits = twin_new(&t, s->t.g, n, root);
    for (int k = 0; k < 2 && backends[k] != NULL && fits; k++) {
        adj_exec *e = plan(s, backends[k]);
        if (holds_all(e, &t))
            run_both(s, e, &t, k == 0);
        adj_exec_free(e);
    }
    twin_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    subject s = {.t.in = {data, data + size, 0}};
    build(&s);
    adj_status status = adj_graph_status(s.t.g);
    must((status == ADJ_OK) == (adj_graph_message(s.t.g)[0] == '\0'));
    must(status != ADJ_ENOMEM);
    if (status == ADJ_OK && s.n_fetch > 0)
        compare(&s);
    adj_graph_free(s.t.g);
    return 0;
}
