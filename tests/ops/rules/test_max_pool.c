/* test_max_pool.c - relu, bias and max pooling in a training step: the rewritten graph
 * (ops/rules/max_pool.c), and naive's numbers for the original graph. Values are small integers, so
 * that sums in any order are equal; -0, ties, windows that relu shuts, and NaN are among them. */
#include <math.h>
#include <stdio.h>

#include "expect.h"
#include "graph/op.h"

/* Values fetched besides y, dv and db, or further readers of values that else only the pool reads.
 */
typedef enum {
    PLAIN,
    FETCH_X,       /* relu's result */
    FETCH_D,       /* the gradient before the mask */
    X_HAS_READER,  /* y2 = -x */
    D_HAS_READER,  /* d2 = -d */
    NO_MASK,       /* dv = d */
    SECOND_ORDER,  /* the gradient of dv as well */
    FORWARD_ALONE, /* y */
    N_VARIANT
} variant;

typedef struct {
    adj_graph *g;
    adj_node *x0, *b, *dy;
    int n;
    adj_node *fetch[6];
} layer;

typedef struct {
    adj_dtype dtype;
    adj_format format;
    int64_t h, w, c;
    adj_pool pool; /* NHWC */
    variant variant;
} test_case;

static layer layer_new(const test_case *t)
{
    layer l = {.g = adj_graph_new()};
    adj_pool pool = t->pool;
    adj_type type = {t->dtype, {4, {2, t->h, t->w, t->c}}};
    pool.format = t->format;
    if (t->format == ADJ_NCHW)
        to_nchw(pool.ksize), to_nchw(pool.stride), to_nchw(type.shape.dim);
    l.x0 = adj_input(l.g, "x0", type.dtype, type.shape);
    l.b = adj_input(l.g, "b", t->dtype, (adj_shape){1, {t->c}});
    adj_node *x = adj_relu(adj_bias_add(l.x0, l.b, t->format)), *y = adj_max_pool(x, &pool);
    cr_assert_not_null(y, "%s", adj_graph_message(l.g));
    l.dy = adj_input(l.g, "dy", t->dtype, adj_node_type(y).shape);
    adj_node *d = adj_max_pool_grad(x, y, l.dy, &pool);
    adj_node *dv = t->variant == NO_MASK ? d : adj_relu_grad(d, x);
    l.fetch[l.n++] = y;
    if (t->variant == FORWARD_ALONE)
        return l;
    l.fetch[l.n++] = dv;
    l.fetch[l.n++] = adj_bias_add_grad(dv, t->format);
    if (t->variant == FETCH_X || t->variant == FETCH_D)
        l.fetch[l.n++] = t->variant == FETCH_X ? x : d;
    if (t->variant == X_HAS_READER || t->variant == D_HAS_READER)
        l.fetch[l.n++] = adj_neg(t->variant == X_HAS_READER ? x : d);
    if (t->variant == SECOND_ORDER)
        l.fetch[l.n++] = gradient_of(dv, l.x0, l.dy);
    return l;
}

static void set_leaf(adj_exec *e, const adj_node *n, int seed, int special)
{
    static const double odd[] = {-0.0, NAN, 2, 2};
    const int64_t elems = adj_shape_elems(adj_node_type(n).shape);
    scoped(release) double *value = malloc((size_t)elems * sizeof *value);
    uint32_t state = (uint32_t)seed * 2654435761u + 1;
    for (int64_t i = 0; i < elems; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t word = state >> 8;
        /* runs of 40 elements that are all negative: shut windows */
        double v = (double)(word % 7) - (i / 40 % 3 == 0 && special ? 7 : 3);
        value[i] = special && word % 29 == 0 ? odd[word / 29 % 4] : v;
    }
    set_values(e, n, value);
}

/* Results one after the other, as doubles; *text: the graph that was planned. */
static double *run(const layer *l, const char *backend, int64_t *n, char **text)
{
    size_t size;
    FILE *trace = open_memstream(text, &size);
    adj_exec_opts opts = {.n_fetch = l->n,
                          .fetch = (adj_node *const *)l->fetch,
                          .backend = backend,
                          .threads = 2,
                          .debug = &(adj_exec_debug){.canaries = 1, .trace = trace}};
    scoped(release_exec) adj_exec *e = plan_of(l->g, &opts);
    set_leaf(e, l->x0, 1, 1);
    set_leaf(e, l->b, 2, 0);
    set_leaf(e, l->dy, 3, 0);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    fprintf(trace, "plan:\n");
    adj_exec_print(trace, e);
    fclose(trace);
    *n = 0;
    for (int i = 0; i < l->n; i++)
        *n += adj_shape_elems(adj_node_type(l->fetch[i]).shape);
    double *v = malloc((size_t)*n * sizeof *v);
    for (int64_t i = 0, at = 0; i < l->n; i++) {
        scoped(release) double *one = fixture_get(e, l->fetch[i]);
        const int64_t elems = adj_shape_elems(adj_node_type(l->fetch[i]).shape);
        memcpy(v + at, one, (size_t)elems * sizeof *v);
        at += elems;
    }
    return v;
}

/* The graph that was planned; what follows it is the plan. */
static const char *planned(const char *text) { return strstr(text, "after copy"); }

static int count(const char *text, const char *word)
{
    const char *p = planned(text), *end = strstr(p, "plan:");
    int n = 0;
    for (; (p = strstr(p, word)) != NULL && p < end; p++)
        n++;
    return n;
}

/* The number of the node that a line makes, of which `at` is a part. */
static int number_of(const char *at)
{
    int id = -1;
    while (*at != '\n')
        at--;
    sscanf(strchr(at, '%'), "%%%d", &id);
    return id;
}

static void name_case(const test_case *t, char *text, size_t size)
{
    snprintf(text, size, "%s %s %ldx%ldx%ld k%ld s%ld padding %d variant %d",
             adj_dtype_name(t->dtype), t->format == ADJ_NHWC ? "NHWC" : "NCHW", (long)t->h,
             (long)t->w, (long)t->c, (long)t->pool.ksize[1], (long)t->pool.stride[1],
             (int)t->pool.padding, (int)t->variant);
}

/* True if the pool can read relu's operand. */
static int hides_relu(const test_case *t)
{
    return t->variant == PLAIN || t->variant == FORWARD_ALONE;
}

static int keeps_argmax(const test_case *t)
{
    return t->variant != FORWARD_ALONE && t->dtype != ADJ_F64 &&
           t->pool.stride[1] >= t->pool.ksize[1];
}

/* Nothing is computed twice, and relu follows the pool if no other node reads it. */
static void expect_graph(const test_case *t, const char *graph, const char *label)
{
    char pool_of_relu[64];
    int gradients = t->variant == FORWARD_ALONE ? 0 : t->variant == SECOND_ORDER ? 2 : 1;
    cr_assert_eq(count(graph, "= relu("), 1, "%s\n%s", label, graph);
    cr_expect_eq(count(graph, "= max_pool("), 1, "%s\n%s", label, graph);
    cr_expect_eq(count(graph, "= max_pool_grad"), gradients, "%s\n%s", label, graph);
    cr_expect_eq(count(graph, "= max_pool_grad_argmax("), keeps_argmax(t), "%s\n%s", label, graph);
    snprintf(pool_of_relu, sizeof pool_of_relu, "= max_pool(%%%d)",
             number_of(strstr(planned(graph), "= relu(")));
    if (t->dtype != ADJ_F16) /* there is a cast between them */
        cr_expect_eq(count(graph, pool_of_relu), !hides_relu(t), "%s\n%s", label, graph);
}

static void expect_case(const test_case *t)
{
    char label[160], *graph, *plain;
    layer l = layer_new(t);
    int64_t n;
    double *want = run(&l, "naive", &n, &plain), *got = run(&l, NULL, &n, &graph);
    name_case(t, label, sizeof label);
    expect_same_bits(got, want, n, label);
    cr_expect_eq(count(plain, "argmax"), 0, "%s", label);
    expect_graph(t, graph, label);
    free(want), free(got), free(graph), free(plain);
    adj_graph_free(l.g);
}

static const adj_pool pools[] = {
    {.ksize = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}},
    {.ksize = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}, .padding = ADJ_SAME},
    {.ksize = {1, 3, 3, 1}, .stride = {1, 3, 3, 1}, .padding = ADJ_SAME},
    {.ksize = {1, 3, 3, 1}, .stride = {1, 2, 2, 1}, .padding = ADJ_SAME},
};
static const int64_t sizes[][3] = {{6, 8, 20}, {7, 5, 32}, {9, 3, 3}};

static void expect_type(adj_dtype dtype, adj_format format)
{
    for (size_t p = 0; p < sizeof pools / sizeof *pools; p++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int v = 0; v < N_VARIANT; v++)
                expect_case(&(test_case){dtype, format, sizes[s][0], sizes[s][1], sizes[s][2],
                                         pools[p], (variant)v});
}

/* The pass's result is inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
TestSuite(max_pool_rules, .init = plan_as_usual);

Test(max_pool_rules, f32) { expect_type(ADJ_F32, ADJ_NHWC); }
Test(max_pool_rules, f32_nchw) { expect_type(ADJ_F32, ADJ_NCHW); }
Test(max_pool_rules, bf16) { expect_type(ADJ_BF16, ADJ_NHWC); }
Test(max_pool_rules, f64) { expect_type(ADJ_F64, ADJ_NHWC); }
Test(max_pool_rules, f16) { expect_type(ADJ_F16, ADJ_NHWC); }
