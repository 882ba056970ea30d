/* test_candidate_threads.c - every candidate of every kernel gives the same bits on 1, 2, 3, 4 and
 * 8 threads, unless it says that its sums depend on them (adj_prep.sums_by_threads): on the machine
 * at hand, whichever of them a plan would choose. Fast math has the candidates of exact math, and
 * more. oneDNN reads its instruction sets once a process,
 * so each has a test. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/candidates.h"
#include "tests/isa.h"

static const int all_threads[] = {1, 2, 3, 4, 8};
static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
enum { N_THREADS = 5, N_DTYPE = 3, MAX_SEEN = 400 };

/* ---- one problem ---- */

typedef struct {
    char key[320]; /* kernel, implementation, layouts */
    int sums_by_threads;
    double *y; /* on the first number of threads that has it */
} seen;

typedef struct {
    const char *label;
    int threads, n;
    size_t bytes;
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
        s->y = memcpy(malloc(r->bytes), o->y, r->bytes);
        return;
    }
    cr_expect_eq(o->sums_by_threads, s->sums_by_threads, "%s: %s: says another on %d threads",
                 r->label, key, r->threads);
    if (!s->sums_by_threads)
        cr_expect_eq(memcmp(s->y, o->y, r->bytes), 0, "%s: %s: other bits on %d threads", r->label,
                     key, r->threads);
}

static void expect_same_bits(fixture *f, const adj_node *y, const char *backend)
{
    static record r;
    char label[160];
    snprintf(label, sizeof label, "%s %s %s", backend, y->op->name, adj_dtype_name(y->type.dtype));
    r = (record){.label = label, .bytes = (size_t)adj_shape_elems(y->type.shape) * sizeof(double)};
    for (int i = 0; i < N_THREADS; i++) {
        r.threads = all_threads[i];
        omp_set_num_threads(r.threads);
        test_backend t = backend_open_math(backend, r.threads, ADJ_MATH_FAST);
        visit_candidates(f, &t, 1, &y, compare, &r);
        backend_close(&t);
    }
    for (int i = 0; i < r.n; i++)
        free(r.list[i].y);
}

/* ---- problems ---- */

typedef struct { /* images, sides, channels; filter, stride, channels out */
    int64_t n, h, w, c, k, stride, out;
} conv_case;

/* Few and many images, large and small ones: threads share out images, rows or channels. */
static const conv_case convs[] = {{5, 12, 10, 16, 3, 1, 32},
                                  {1, 24, 20, 3, 5, 1, 16},
                                  {8, 8, 8, 32, 3, 2, 32},
                                  {3, 7, 7, 64, 1, 1, 64}};

static void expect_conv(const conv_case *a, int depthwise, adj_dtype dtype, const char *backend)
{
    const adj_conv o = {.padding = ADJ_SAME, .stride = {1, a->stride, a->stride, 1}};
    const adj_shape image = {4, {a->n, a->h, a->w, a->c}};
    const adj_shape filter = {4, {a->k, a->k, a->c, depthwise ? 1 : a->out}};
    fixture f = fixture_new();
    adj_node *x = given_random(&f, dtype, image, -1, 1);
    adj_node *w = given_random(&f, dtype, filter, -1, 1), *y[3];
    y[0] = depthwise ? adj_depthwise_conv2d_native(x, w, &o) : adj_conv2d(x, w, &o);
    adj_node *dy = given_random(&f, dtype, y[0]->type.shape, -1, 1);
    y[1] = depthwise ? adj_depthwise_conv2d_native_backprop_input(image, w, dy, &o)
                     : adj_conv2d_backprop_input(image, w, dy, &o);
    y[2] = depthwise ? adj_depthwise_conv2d_native_backprop_filter(x, filter, dy, &o)
                     : adj_conv2d_backprop_filter(x, filter, dy, &o);
    for (int i = 0; i < 3; i++)
        expect_same_bits(&f, y[i], backend);
    fixture_free(&f);
}

static void expect_matmuls(adj_dtype dtype, const char *backend)
{
    static const int64_t sizes[][3] = {{64, 128, 10}, {3, 500, 7}, {4, 20000, 16}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned t = 0; t < 3; t++) { /* plain, and as the gradients of both operands */
            const int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
            fixture f = fixture_new();
            const unsigned flag = t == 0 ? 0 : t == 1 ? ADJ_TRANSPOSE_A : ADJ_TRANSPOSE_B;
            adj_node *a =
                given_random(&f, dtype, (adj_shape){2, {t == 1 ? k : m, t == 1 ? m : k}}, -1, 1);
            adj_node *b =
                given_random(&f, dtype, (adj_shape){2, {t == 2 ? n : k, t == 2 ? k : n}}, -1, 1);
            expect_same_bits(&f, adj_matmul(a, b, flag), backend);
            fixture_free(&f);
        }
}

static void expect_others(adj_dtype dtype, const char *backend)
{
    const adj_shape image = {4, {4, 17, 16, 33}}, channels = {1, {33}};
    const adj_pool pool = {.ksize = {1, 3, 3, 1}, .stride = {1, 2, 2, 1}, .padding = ADJ_SAME};
    fixture f = fixture_new();
    adj_node *x = given_random(&f, dtype, image, -1, 1), *e = given_random(&f, dtype, image, -1, 1);
    adj_node *gamma = given_random(&f, ADJ_F32, channels, 0.5, 1);
    adj_node *stats = given_random(&f, ADJ_F32, (adj_shape){2, {2, 33}}, 0.5, 1);
    adj_node *slope = given_random(&f, dtype, channels, 0, 1);
    adj_node *z = given_random(&f, dtype, (adj_shape){2, {300, 37}}, -1, 1);
    adj_node *y[] = {adj_max_pool(x, &pool),
                     adj_avg_pool(x, &pool),
                     adj_bias_add_grad(x, ADJ_NHWC),
                     adj_batch_norm_stats(x, ADJ_NHWC),
                     adj_batch_norm_grad_sums(x, stats, e, 1e-5, ADJ_NHWC),
                     adj_batch_norm(x, stats, gamma, gamma, 1e-5, ADJ_NHWC),
                     adj_prelu_grad_slope(e, x, 33, ADJ_NHWC),
                     adj_prelu_grad_slope(e, x, 1, ADJ_NHWC),
                     adj_mul(x, slope),
                     adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL}),
                     adj_softmax(z),
                     adj_gelu(x, ADJ_GELU_ERF)};
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        cr_assert_not_null(y[i], "%s", adj_graph_message(f.g));
        expect_same_bits(&f, y[i], backend);
    }
    fixture_free(&f);
}

static void expect_backend(const char *backend)
{
    for (int d = 0; d < N_DTYPE; d++) {
        for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
            expect_conv(&convs[i], 0, dtypes[d], backend);
        expect_conv(&convs[0], 1, dtypes[d], backend);
        expect_matmuls(dtypes[d], backend);
        expect_others(dtypes[d], backend);
    }
}

static void expect_direct(const char *isa)
{
    (void)isa;
    expect_backend("direct");
}

static void expect_onednn(const char *isa)
{
    setenv("ONEDNN_MAX_CPU_ISA", isa, 0);
    expect_backend("onednn");
}

Test(candidate_threads, naive) { expect_backend("naive"); }
Test(candidate_threads, direct)
{
    static const char *const isas[] = {"base", "avx2", "avx512", "avx512_bf16", "amx"};
    for_each_isa(5, isas, expect_direct);
}
Test(candidate_threads, onednn) { expect_onednn("ALL"); }
Test(candidate_threads, onednn_sse41) { expect_onednn("SSE41"); }
Test(candidate_threads, onednn_avx2) { expect_onednn("AVX2"); }
Test(candidate_threads, onednn_avx512) { expect_onednn("AVX512_CORE"); }
