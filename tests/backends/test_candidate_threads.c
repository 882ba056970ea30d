/* test_candidate_threads.c - every candidate of every kernel, for single nodes and fused groups,
 * gives the same bits on 1, 2, 3, 4 and 8 threads, unless it says that its sums depend on them
 * (adj_prep.sums_by_threads). An image's results by naive and direct have the same bits in batches
 * of any size. Fast math has the candidates of exact math, and more. oneDNN reads its instruction
 * set once per process, so each has a test. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "ops/grad.h"
#include "tests/backends/candidates.h"
#include "tests/conv_problem.h"
#include "tests/isa.h"

static const int all_threads[] = {1, 2, 3, 4, 8};
/* The last one for naive alone. */
static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16, ADJ_F64};
enum { N_THREADS = 5, N_DTYPE = 4, MAX_SEEN = 400, MAX_GROUP = 4, MAX_GROUPS = 40 };

/* A node, or a group whose last node is the result. */
typedef struct {
    int n;
    const adj_node *node[MAX_GROUP];
} group;

typedef struct {
    fixture f;
    int n, is_fused; /* is_fused: direct has kernels for all groups of several nodes */
    group group[MAX_GROUPS];
} problem;

/* ---- one group ---- */

typedef struct {
    char key[320]; /* kernel, implementation, layouts */
    int sums_by_threads;
    double *y; /* values of the first run with the key; NULL: not run */
} seen;

typedef struct {
    char label[256], run[24]; /* run: what differs from run to run */
    int n;
    size_t bytes; /* that are compared */
    seen list[MAX_SEEN];
} record;

static void compare(void *user, const outcome *o)
{
    record *r = user;
    char key[sizeof r->list[0].key];
    cr_assert_eq(o->status, ADJ_OK, "%s: %s", r->label, o->why);
    snprintf(key, sizeof key, "%s %s %s", o->kernel, o->impl, o->layouts);
    int i = 0;
    while (i < r->n && strcmp(r->list[i].key, key) != 0)
        i++;
    seen *s = &r->list[i];
    if (i == r->n) {
        cr_assert_lt(r->n++, MAX_SEEN);
        memcpy(s->key, key, sizeof key);
        s->sums_by_threads = o->sums_by_threads;
        s->y = o->y != NULL ? memcpy(malloc(r->bytes), o->y, r->bytes) : NULL;
        return;
    }
    cr_expect_eq(o->sums_by_threads, s->sums_by_threads, "%s: %s: says another with %s", r->label,
                 key, r->run);
    if (s->y != NULL && o->y != NULL)
        cr_expect_eq(memcmp(s->y, o->y, r->bytes), 0, "%s: %s: other bits with %s", r->label, key,
                     r->run);
}

static const adj_node *result_of(const group *g) { return g->node[g->n - 1]; }
static size_t bytes_of(const group *g)
{
    return (size_t)adj_shape_elems(result_of(g)->type.shape) * sizeof(double);
}

static void describe(const group *g, const char *backend, char *label, size_t size)
{
    const adj_node *y = result_of(g);
    size_t at = (size_t)snprintf(label, size, "%s ", backend);
    for (int i = 0; i < g->n && at < size; i++)
        at += (size_t)snprintf(label + at, size - at, "%s, ", g->node[i]->op->name);
    if (at < size)
        snprintf(label + at, size - at, "%s %s", adj_dtype_name(y->type.dtype),
                 adj_shape_text(y->type.shape).s);
}

static void visit(record *r, fixture *f, const group *g, const char *backend, int threads)
{
    omp_set_num_threads(threads);
    scoped(backend_close) test_backend t = backend_open_math(backend, threads, ADJ_MATH_FAST);
    t.same_bits = 1;
    visit_candidates(f, &t, g->n, g->node, compare, r);
}

static void forget(record *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->list[i].y);
}

static void expect_group(problem *p, const group *g, const char *backend)
{
    static record r;
    r = (record){.bytes = bytes_of(g)};
    describe(g, backend, r.label, sizeof r.label);
    for (int i = 0; i < N_THREADS; i++) {
        snprintf(r.run, sizeof r.run, "%d threads", all_threads[i]);
        visit(&r, &p->f, g, backend, all_threads[i]);
    }
    const int must_be =
        g->n > 1 ? p->is_fused && strcmp(backend, "direct") == 0 : strcmp(backend, "naive") == 0;
    cr_expect(r.n > 0 || !must_be, "%s: no kernel", r.label);
    forget(&r);
}

static void expect_threads(problem *p, const char *backend)
{
    for (int i = 0; i < p->n; i++)
        expect_group(p, &p->group[i], backend);
    fixture_free(&p->f);
}

/* True if the result is images, each computed from the operands' images of its number alone. */
static int is_by_image(const group *few, const group *more)
{
    int is_by_image = result_of(few)->type.shape.dim[0] < result_of(more)->type.shape.dim[0];
    for (int i = 0; i < few->n; i++)
        is_by_image &= few->node[i]->op != &adj_op_batch_norm_grad; /* means of the batch */
    return is_by_image;
}

/* Expects of both problems, of which one has more images than the other, the same bits for the
 * images that both have. */
static void expect_images_alone(problem *few, problem *more, const char *backend)
{
    static record r;
    for (int i = 0; i < few->n; i++) {
        if (!is_by_image(&few->group[i], &more->group[i]))
            continue;
        r = (record){.run = "more images", .bytes = bytes_of(&few->group[i])};
        describe(&few->group[i], backend, r.label, sizeof r.label);
        visit(&r, &few->f, &few->group[i], backend, 2);
        visit(&r, &more->f, &more->group[i], backend, 2);
        forget(&r);
    }
    fixture_free(&few->f);
    fixture_free(&more->f);
}

static void add(problem *p, group g)
{
    cr_assert_lt(p->n, MAX_GROUPS);
    for (int i = 0; i < g.n; i++)
        cr_assert_not_null(g.node[i], "%s", adj_graph_message(p->f.g));
    p->group[p->n++] = g;
}

/* ---- convolutions ---- */

/* Few and many images, large and small ones: threads share out images, rows or channels. */
static const oracle_conv convs[] = {
    {5, 12, 10, 16, 3, 3, 32, .padding = ADJ_SAME},
    {1, 24, 20, 3, 5, 5, 16, .padding = ADJ_SAME},
    {8, 8, 8, 32, 3, 3, 32, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {3, 7, 7, 64, 1, 1, 64, .padding = ADJ_SAME},
    {2, 11, 9, 16, 3, 3, 24, .dh = 2, .dw = 2, .padding = ADJ_SAME},
    {3, 9, 8, 16, 3, 3, 32, .in = 4, .padding = ADJ_SAME},
    {3, 9, 8, 16, 3, 3, 16, .padding = ADJ_SAME, .format = ADJ_NCHW},
    {5, 12, 10, 16, 3, 3, 1, .padding = ADJ_SAME, .depthwise = 1},
    {2, 9, 11, 32, 3, 3, 1, .sh = 2, .sw = 2, .padding = ADJ_SAME, .depthwise = 1},
};
enum { N_CONV = sizeof convs / sizeof *convs };

/* The three directions, with a bias, relu and addend, and a masked gradient; of `more` images more.
 */
static problem conv_groups(oracle_conv row, adj_dtype dtype, int more)
{
    row.n += more;
    const conv_problem c = conv_problem_new(row, dtype, REALS);
    problem p = {.f = c.f};
    adj_node *x = p.f.in[0], *dy = p.f.in[2];
    adj_node *y = c.result[ORACLE_Y], *dx = c.result[ORACLE_DX];
    adj_node *b = given_random(&p.f, dtype, (adj_shape){1, {c.s.oc}}, -1, 1);
    adj_node *biased = adj_bias_add(y, b, row.format), *sum = adj_add(biased, dy);
    const group groups[] = {{1, {y}},
                            {1, {dx}},
                            {1, {c.result[ORACLE_DW]}},
                            {2, {y, biased}},
                            {3, {y, biased, adj_relu(biased)}},
                            {4, {y, biased, sum, adj_relu(sum)}},
                            {2, {dx, adj_relu_grad(dx, x)}}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        add(&p, groups[i]);
    return p;
}

/* Plain, and as the gradients of both operands. */
static problem matmul_problem(const int64_t size[3], adj_dtype dtype)
{
    const int64_t m = size[0], k = size[1], n = size[2];
    problem p = {.f = fixture_new()};
    fixture *f = &p.f;
    adj_node *a = given_random(f, dtype, (adj_shape){2, {m, k}}, -1, 1);
    adj_node *b = given_random(f, dtype, (adj_shape){2, {k, n}}, -1, 1);
    adj_node *dy = given_random(f, dtype, (adj_shape){2, {m, n}}, -1, 1);
    adj_node *bias = given_random(f, dtype, (adj_shape){1, {n}}, -1, 1);
    adj_node *y = adj_matmul(a, b, 0), *biased = adj_bias_add(y, bias, ADJ_NHWC);
    add(&p, (group){1, {y}});
    add(&p, (group){1, {adj_matmul(dy, b, ADJ_TRANSPOSE_B)}});
    add(&p, (group){1, {adj_matmul(a, dy, ADJ_TRANSPOSE_A)}});
    add(&p, (group){3, {y, biased, adj_relu(biased)}});
    return p;
}

/* ---- images: pools, resizes, norms, sums ---- */

static adj_dtype statistics_type(adj_dtype x) { return x == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

/* Sides that no block divides; four images are shared out by each of naive's kernels. */
static problem image_problem(adj_dtype dtype, adj_format format, int64_t n)
{
    enum { C = 33, H = 17, W = 15 };
    const int nchw = format == ADJ_NCHW;
    const adj_dtype wide = statistics_type(dtype);
    const adj_shape image = nchw ? (adj_shape){4, {n, C, H, W}} : (adj_shape){4, {n, H, W, C}};
    const adj_shape channels = {1, {C}};
    const adj_pool pool = {.ksize = {1, nchw ? 1 : 3, 3, nchw ? 3 : 1},
                           .stride = {1, nchw ? 1 : 2, 2, nchw ? 2 : 1},
                           .padding = ADJ_SAME,
                           .format = format};
    const adj_sampling linear = {.mode = ADJ_BILINEAR, .format = format};
    const adj_sampling nearest = {.format = format};
    problem p = {.f = fixture_new(), .is_fused = format == ADJ_NHWC};
    fixture *f = &p.f;
    adj_node *x = given_random(f, dtype, image, -1, 1), *e = given_random(f, dtype, image, -1, 1);
    adj_node *gamma = given_random(f, wide, channels, 0.5, 1);
    adj_node *stats = given_random(f, wide, (adj_shape){2, {2, C}}, 0.5, 1);
    adj_node *slope = given_random(f, dtype, channels, 0, 1);
    adj_node *pooled = adj_max_pool(x, &pool), *small = adj_resize(x, 9, 5, &linear);
    adj_node *dp = given_random(f, dtype, pooled->type.shape, -1, 1);
    adj_node *ds = given_random(f, dtype, small->type.shape, -1, 1);
    adj_node *sums = adj_batch_norm_grad_sums(x, stats, e, 1e-5, format);
    adj_node *norm = adj_batch_norm(x, stats, gamma, gamma, 1e-5, format);
    adj_node *relu = adj_relu(norm), *added = adj_add(norm, e), *mask = adj_relu_grad(e, norm);
    adj_node *sum = adj_add(x, e);
    adj_node *d = adj_relu_grad(e, x);
    const group groups[] = {
        {1, {pooled}},
        {1, {adj_avg_pool(x, &pool)}},
        {1, {adj_max_pool_grad(x, pooled, dp, &pool)}},
        {1, {adj_max_pool_grad_grad(x, pooled, e, &pool)}},
        {1, {adj_avg_pool_grad(image, dp, &pool)}},
        {1, {adj_global_avg_pool(x, format)}},
        {1, {small}},
        {1, {adj_resize(x, 23, 19, &nearest)}},
        {1, {adj_resize_grad(ds, H, W, &linear)}},
        {1, {adj_bias_add_grad(x, format)}},
        {1, {adj_batch_norm_stats(x, format)}},
        {1, {sums}},
        {1, {norm}},
        {1, {adj_batch_norm_grad(x, stats, gamma, e, stats, 1e-5, format)}},
        {1, {adj_group_norm(x, gamma, gamma, 3, 1e-5, format)}},
        {1, {adj_group_norm_grad_sums(x, e, 3, 1e-5, format)}},
        {1, {adj_group_norm_grad(x, gamma, e, 3, 1e-5, format)}},
        {1, {adj_prelu_grad_slope(e, x, C, format)}},
        {1, {adj_prelu_grad_slope(e, x, 1, format)}},
        {1, {adj_prelu(x, slope, format)}},
        {1, {adj_prelu_grad(e, x, slope, format)}},
        {1, {adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL})}},
        {1, {adj_reduce_sum(x, (adj_axes){.n = 1, .axis = {0}})}},
        {1, {adj_reduce_sum(x, (adj_axes){.n = 1, .axis = {3}})}},
        {1, {adj_reduce_mean(x, (adj_axes){.n = 2, .axis = {1, 2}})}},
        {1, {adj_gelu(x, ADJ_GELU_ERF)}},
        {2, {norm, relu}},
        {3, {norm, relu, adj_add(relu, e)}},
        {3, {norm, added, adj_relu(added)}},
        {2, {d, adj_bias_add_grad(d, format)}},
        {2, {d, adj_batch_norm_grad_sums(x, stats, d, 1e-5, format)}},
        {3, {norm, mask, adj_batch_norm_grad_sums(x, stats, mask, 1e-5, format)}},
        {3, {norm, mask, adj_batch_norm_grad(x, stats, gamma, mask, stats, 1e-5, format)}},
        {2, {sum, adj_batch_norm_stats(sum, format)}}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        add(&p, groups[i]);
    return p;
}

/* ---- rows: softmax, losses, a norm ---- */

static problem row_problem(adj_dtype dtype, int64_t n)
{
    enum { C = 37 };
    const adj_shape shape = {2, {n, C}};
    problem p = {.f = fixture_new()};
    fixture *f = &p.f;
    adj_node *z = given_random(f, dtype, shape, -1, 1);
    adj_node *q = given_random(f, dtype, shape, 0, 1);
    adj_node *gamma = given_random(f, statistics_type(dtype), (adj_shape){1, {C}}, 0.5, 1);
    adj_node *vector = given_random(f, dtype, (adj_shape){1, {C}}, 0.5, 1);
    adj_node *labels = given_integers(f, ADJ_I32, (adj_shape){1, {n}}, 0, C - 1);
    adj_node *s = adj_softmax_cross_entropy(z, q, 0.1);
    adj_node *t = adj_sparse_softmax_cross_entropy(z, labels, 0.1);
    const group groups[] = {{1, {adj_softmax(z)}},
                            {1, {adj_log_softmax(z)}},
                            {1, {s}},
                            {1, {t}},
                            {1, {adj_softmax_cross_entropy_grad(z, q, 0.1)}},
                            {1, {adj_sparse_softmax_cross_entropy_grad(z, labels, 0.1)}},
                            {1, {adj_group_norm(z, gamma, gamma, 1, 1e-5, ADJ_NHWC)}},
                            {1, {adj_mul(z, vector)}}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        add(&p, groups[i]);
    return p;
}

static void expect_backend(const char *backend)
{
    static const int64_t matmuls[][3] = {{64, 128, 10}, {3, 500, 7}, {4, 20000, 16}};
    const int n_dtype = strcmp(backend, "naive") == 0 ? N_DTYPE : N_DTYPE - 1;
    for (int d = 0; d < n_dtype; d++) {
        problem p;
        for (int i = 0; i < N_CONV; i++) {
            p = conv_groups(convs[i], dtypes[d], 0);
            expect_threads(&p, backend);
        }
        for (int i = 0; i < (dtypes[d] == ADJ_F32 ? 3 : 2); i++) { /* the last is slow to convert */
            p = matmul_problem(matmuls[i], dtypes[d]);
            expect_threads(&p, backend);
        }
        for (int nchw = 0; nchw < 2; nchw++) {
            p = image_problem(dtypes[d], nchw ? ADJ_NCHW : ADJ_NHWC, 4);
            expect_threads(&p, backend);
        }
        p = row_problem(dtypes[d], 300);
        expect_threads(&p, backend);
    }
}

/* Images in batches of two sizes. */
static void expect_batches(const char *backend)
{
    for (int i = 0; i < N_CONV + 3; i++) {
        const adj_format format = i == N_CONV ? ADJ_NHWC : ADJ_NCHW;
        problem p[2];
        for (int more = 0; more < 2; more++)
            p[more] = i < N_CONV       ? conv_groups(convs[i], ADJ_F32, 2 * more)
                      : i < N_CONV + 2 ? image_problem(ADJ_F32, format, 1 + 2 * more)
                                       : row_problem(ADJ_F32, 7 + 93 * more);
        expect_images_alone(&p[0], &p[1], backend);
    }
}

static void expect_direct(const char *isa)
{
    (void)isa;
    expect_backend("direct");
    expect_batches("direct");
}

static void expect_onednn(const char *isa)
{
    setenv("ONEDNN_MAX_CPU_ISA", isa, 0);
    expect_backend("onednn");
}

Test(candidate_threads, naive)
{
    expect_backend("naive");
    expect_batches("naive");
}
Test(candidate_threads, direct)
{
    static const char *const isas[] = {"base", "avx2", "avx512", "avx512_bf16", "amx"};
    for_each_isa(5, isas, expect_direct);
}
Test(candidate_threads, onednn) { expect_onednn("ALL"); }
Test(candidate_threads, onednn_sse41) { expect_onednn("SSE41"); }
Test(candidate_threads, onednn_avx2) { expect_onednn("AVX2"); }
Test(candidate_threads, onednn_avx512) { expect_onednn("AVX512_CORE"); }
