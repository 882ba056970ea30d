/* fuzz_graph.c - arbitrary sequences of builder calls, then a gradient, plans and runs on both
 * backends.
 *
 * Input: flags, dtype, then builder calls (grow.h). Either the graph fails with a sentence, or: a
 * plan that computes in place what it can gives on naive the same bits as one that must keep every
 * value; no kernel writes outside its memory (canaries); a second run from the same parameters
 * repeats the first. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/grow.h"
#include "fuzz/must.h"

enum { STEPS = 24, RUNS = 2, FETCHES = 4 };

typedef struct {
    garden t;
    adj_updates *updates;
    int n_fetch;
    adj_node *fetch[FETCHES];
    int backends; /* naive, or both */
} subject;

static int is_op(const adj_node *n, const char *op) { return strcmp(adj_node_op(n), op) == 0; }

/* A scalar of everything that a value depends on, differentiated to the parameters. */
static void add_gradient(subject *s)
{
    garden *t = &s->t;
    adj_node *y = value_of(t, -1, -1), *p[FETCHES], *dp[FETCHES];
    int n = 0;
    if (adj_node_type(y).shape.rank > 0)
        y = adj_reduce_sum(y, (adj_axes){0});
    for (int i = 0; i < t->n && n < FETCHES; i++)
        if (adj_node_is_param(t->value[i]) && adj_node_type(t->value[i]).dtype != ADJ_I32)
            p[n++] = t->value[i];
    if (n == 0 || adj_grad(y, NULL, n, p, dp) != ADJ_OK)
        return;
    for (int i = 0; i < n; i++) {
        adj_node *next = keep(t, adj_sub(p[i], adj_scale(dp[i], 0.125)));
        keep(t, dp[i]);
        if (pick(&t->in, 2))
            adj_updates_add(s->updates, p[i], next);
    }
}

static void build(subject *s)
{
    garden *t = &s->t;
    unsigned flags = take(&t->in);
    t->wild = (flags & 3) == 3;
    s->backends = flags & 128 ? 1 : 2;
    t->dtype = (adj_dtype)pick(&t->in, 4);
    t->g = adj_graph_new();
    s->updates = adj_updates_new(t->g);
    for (int i = 0; i < STEPS && t->in.at < t->in.end && adj_graph_status(t->g) == ADJ_OK; i++) {
        if (flags & 4 && i % 3 == 0)
            adj_update_begin(t->g);
        grow(t);
        adj_update_end(t->g);
    }
    if (t->n > 0 && adj_graph_status(t->g) == ADJ_OK && flags & 8)
        add_gradient(s);
    for (; t->n > 0 && s->n_fetch < 1 + (int)(flags >> 4 & 7) % FETCHES; s->n_fetch++)
        s->fetch[s->n_fetch] = any_value(t);
}

/* The same values for the same node in every executor; labels that are mostly right. */
static void set_inputs(const subject *s, adj_exec *e, int run)
{
    static double data[MOST_ELEMS];
    for (int id = 0; id < adj_graph_size(s->t.g); id++) {
        adj_node *n = adj_graph_node(s->t.g, id);
        adj_type type = adj_node_type(n);
        int64_t elems = adj_shape_elems(type.shape);
        if (!is_op(n, "input"))
            continue;
        memset(data, 0, sizeof data);
        for (int64_t i = 0; i < elems; i++)
            if (type.dtype == ADJ_I32)
                ((int32_t *)data)[i] = (int32_t)((i + run) % (s->t.wild ? 3 : 2)) - 1;
            else if (type.dtype == ADJ_F64)
                data[i] = (double)((i + id + run) % 7) * 0.5 - 1.25;
            else if (type.dtype == ADJ_F32)
                ((float *)data)[i] = (float)((i + id + run) % 7) * 0.5F - 1.25F;
            else
                ((uint16_t *)data)[i] = (uint16_t)(0x3c00 + (i + run) % 64);
        adj_set(e, n, data, (size_t)elems * adj_dtype_size(type.dtype));
    }
}

static adj_exec *plan(const subject *s, int n_fetch, adj_node *const *fetch, const char *backend)
{
    adj_exec_opts o = {.n_fetch = n_fetch,
                       .fetch = fetch,
                       .updates = s->updates,
                       .backend = backend,
                       .threads = 1,
                       .seed = 3,
                       .canaries = 1};
    adj_exec *e = NULL;
    adj_status status = adj_exec_new(s->t.g, &o, &e);
    must(e != NULL && (status == ADJ_OK) == (adj_exec_message(e)[0] == '\0'));
    must(status == ADJ_OK || status == ADJ_EARG);
    if (status == ADJ_OK)
        return e;
    adj_exec_free(e);
    return NULL;
}

static size_t bytes_of(const adj_node *n)
{
    adj_type type = adj_node_type(n);
    return (size_t)adj_shape_elems(type.shape) * adj_dtype_size(type.dtype);
}

/* NaN's bits are left open by C, and so is which operand's NaN a sum has. */
static int is_nan_at(const void *v, adj_dtype dtype, size_t i)
{
    uint16_t half;
    if (dtype == ADJ_F64)
        return ((const double *)v)[i] != ((const double *)v)[i];
    if (dtype == ADJ_F32)
        return ((const float *)v)[i] != ((const float *)v)[i];
    memcpy(&half, (const char *)v + 2 * i, 2);
    return dtype == ADJ_F16 ? (half & 0x7fff) > 0x7c00
                            : dtype == ADJ_BF16 && (half & 0x7fff) > 0x7f80;
}

static void must_agree(adj_exec *a, const adj_node *n, adj_exec *b, const adj_node *m)
{
    static double x[MOST_ELEMS], y[MOST_ELEMS];
    adj_dtype dtype = adj_node_type(n).dtype;
    size_t size = bytes_of(n), each = adj_dtype_size(dtype);
    must(adj_get(a, n, x, size) == ADJ_OK && adj_get(b, m, y, size) == ADJ_OK);
    for (size_t i = 0; i < size / each; i++)
        must(memcmp((char *)x + i * each, (char *)y + i * each, each) == 0 ||
             (is_nan_at(x, dtype, i) && is_nan_at(y, dtype, i)));
}

static int among(const adj_node *n, int count, adj_node *const list[])
{
    for (int i = 0; i < count; i++)
        if (list[i] == n)
            return 1;
    return 0;
}

/* Runs both; they succeed or fail together, and agree when they must. */
static void run_both(const subject *s, adj_exec *a, adj_exec *b, int same_bits)
{
    for (int run = 0; run < RUNS; run++) {
        must(adj_copy_params(b, a) == ADJ_OK);
        set_inputs(s, a, run);
        set_inputs(s, b, run);
        adj_status status = adj_run(a);
        must(status == ADJ_OK || status == ADJ_EARG);
        adj_status more = adj_run(b); /* whose labels may be wrong where a has none */
        must(more == ADJ_OK || more == ADJ_EARG);
        must(status == ADJ_OK || status == more);
        if (more != ADJ_OK)
            return;
        for (int i = 0; i < s->n_fetch && same_bits; i++)
            must_agree(a, s->fetch[i], b, s->fetch[i]);
    }
    for (int i = 0; i < adj_updates_size(s->updates) && same_bits; i++) {
        adj_node *leaf = adj_updates_leaf(s->updates, i), *next = adj_updates_next(s->updates, i);
        if (!among(leaf, s->n_fetch, s->fetch) && among(next, s->t.n, s->t.value))
            must_agree(a, leaf, b, next);
    }
}

/* Once for values shared in place and once for all of them kept. */
static void compare(const subject *s)
{
    static const char *const backends[] = {"naive", "onednn"};
    for (int k = 0; k < s->backends; k++) {
        adj_exec *plain = plan(s, s->n_fetch, s->fetch, backends[k]);
        adj_exec *all = plan(s, s->t.n, s->t.value, backends[k]);
        if (plain != NULL && all != NULL)
            run_both(s, plain, all, k == 0);
        adj_exec_free(plain);
        adj_exec_free(all);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    subject s = {.t.in = {data, data + size}};
    build(&s);
    adj_status status = adj_graph_status(s.t.g);
    must((status == ADJ_OK) == (adj_graph_message(s.t.g)[0] == '\0'));
    must(status != ADJ_ENOMEM);
    if (status == ADJ_OK && s.n_fetch > 0)
        compare(&s);
    adj_graph_free(s.t.g);
    return 0;
}
