/* test_thread_bits.c - results do not depend on the number of threads or shards, to the last bit,
 * but where the plan's printout says so; and nowhere with same_bits. Small steps use one thread. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "ops/grad.h"
#include "tests/conv_problem.h"
#include "tests/training.h"

enum { BATCH = 4, MAX_THREADS = 4, MAX_SHARDS = 4, MAX_BYTES = 1 << 21 };
static const char warning[] = "(sums depend on the number of threads)";

static int warns(const adj_exec *e)
{
    scoped(release) char *text = plan_text(e);
    return strstr(text, warning) != NULL;
}

/* y's elements, malloc'ed. *warned: the plan says that they depend on the threads. */
static double *values_with(fixture *f, adj_node *y, adj_exec_opts o, int *warned)
{
    o.n_fetch = 1;
    o.fetch = &y;
    scoped(release_exec) adj_exec *e = fixture_run(f, &o);
    *warned = warns(e);
    return fixture_get(e, y);
}

/* Returns how many numbers of threads gave a plan without a warning. */
static int expect_same(fixture *f, adj_node *y, adj_exec_opts o)
{
    const size_t bytes = (size_t)adj_shape_elems(y->type.shape) * sizeof(double);
    int warned, same = 0;
    o.threads = 1;
    scoped(release) double *want = values_with(f, y, o, &warned);
    for (o.threads = 2; o.threads <= MAX_THREADS; o.threads++) {
        scoped(release) double *got = values_with(f, y, o, &warned);
        if (!warned)
            cr_expect_arr_eq(got, want, bytes, "%s %s, backend %s: %d threads give other bits",
                             y->op->name, adj_dtype_name(y->type.dtype), o.backend, o.threads);
        same += !warned;
    }
    return same;
}

/* A convolution and its gradients, and what stands around it in training. */
static conv_problem build(adj_dtype dtype, int channels, int depthwise, adj_node *y[8])
{
    const int outputs = depthwise ? 1 : 2 * channels;
    conv_problem p = conv_problem_new((oracle_conv){5, 12, 12, channels, 3, 3, outputs,
                                                    .padding = ADJ_SAME, .depthwise = depthwise},
                                      dtype, REALS);
    adj_node *x = p.f.in[0], *dy = p.f.in[2];
    adj_node *gamma = given_random(&p.f, ADJ_F32, (adj_shape){1, {channels}}, 0.5, 1);
    for (int i = 0; i < 3; i++)
        y[i] = p.result[i];
    y[3] = adj_bias_add_grad(dy, ADJ_NHWC);
    y[4] = adj_batch_norm_stats(x, ADJ_NHWC);
    y[5] = adj_batch_norm(x, y[4], gamma, gamma, 1e-5, ADJ_NHWC);
    y[6] = adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL});
    y[7] = adj_avg_pool(x, &(adj_pool){.ksize = {1, 3, 3, 1}, .stride = {1, 1, 1, 1}});
    return p;
}

static void expect_all(const char *backend, adj_math math, int same_bits, int always)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16};
    static const int channels[] = {3, 16, 64};
    for (int d = 0; d < 2; d++)
        for (int c = 0; c < 6; c++) {
            adj_node *y[8];
            scoped(conv_problem_free) conv_problem p = build(dtypes[d], channels[c % 3], c >= 3, y);
            for (int i = 0; i < 8; i++) {
                cr_assert_not_null(y[i], "%s", adj_graph_message(p.f.g));
                int same = expect_same(
                    &p.f, y[i],
                    (adj_exec_opts){.backend = backend, .math = math, .same_bits = same_bits});
                cr_expect(!always || same == MAX_THREADS - 1, "%s warns", y[i]->op->name);
            }
        }
}

/* ---- training: what is fused, updates, and all that a network has ---- */

typedef struct {
    const char *model, *backend;
    adj_precision precision;
    int side, threads,
        shards; /* side 0: the model's; shards 0: the whole batch, another each step */
    int same_bits;
} setting;

/* Trains two steps and copies all parameters and states to values; returns the number of bytes. */
static size_t train(const setting *s, char *values)
{
    const adj_model_opts m = {.batch = BATCH, .size.h = s->side, .size.w = s->side};
    const adj_data_parallel_opts d = {.shards = s->shards};
    scoped(training_free) training t = training_of(s->model, m, &with_momentum);
    adj_updates *u = s->shards > 0 ? adj_data_parallel(t.updates, 1, 0, &d) : t.updates;
    adj_node *fetch[MAX_SHARDS] = {t.loss};
    cr_assert_not_null(u, "%s", adj_graph_message(t.g));
    for (int k = 0; k < s->shards; k++)
        fetch[k] = adj_shard_node(u, t.loss, k);
    const adj_exec_opts o = {.n_fetch = s->shards > 0 ? s->shards : 1,
                             .fetch = fetch,
                             .updates = u,
                             .backend = s->backend,
                             .precision = s->precision,
                             .threads = s->threads,
                             .same_bits = s->same_bits};
    const float rate = 0.01F;
    scoped(release_exec) adj_exec *e = plan_of(t.g, &o);
    cr_assert_eq(adj_set(e, t.lr, &rate, sizeof rate), ADJ_OK);
    for (int i = 0; i < 2; i++) {
        if (s->shards == 0)
            training_batch(e, t.images, t.labels, i);
        for (int k = 0; k < s->shards && i == 0; k++)
            training_batch(e, adj_shard_node(u, t.images, k), adj_shard_node(u, t.labels, k), 0);
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    }
    return copy_all_params(e, values, MAX_BYTES);
}

/* Expects the values of one thread, or of one shard, for more of them. */
static void expect_same_training(setting s, int is_sharded)
{
    static char want[MAX_BYTES], got[MAX_BYTES];
    const size_t bytes = train(&s, want);
    for (int n = 2; n <= MAX_THREADS; n += is_sharded ? n : 1) {
        *(is_sharded ? &s.shards : &s.threads) = n;
        cr_assert_eq(train(&s, got), bytes);
        cr_expect_eq(memcmp(got, want, bytes), 0, "%s, precision %d, %s: %d threads, %d shards",
                     s.model, (int)s.precision, s.backend, s.threads, s.shards);
    }
}

static void expect_training(const char *backend, adj_precision precision)
{
    const int is_slow = strcmp(backend, "naive") == 0; /* and shares out smaller images too */
    expect_same_training(
        (setting){"resnet8", backend, precision, is_slow ? 16 : 0, .threads = 1, .same_bits = 1},
        0);
}

/* Tuning may choose other kernels for another number of threads. */
TestSuite(thread_bits, .init = plan_as_usual);

Test(thread_bits, training)
{
    expect_training("naive", ADJ_PRECISION_AS_BUILT);
    expect_training("direct", ADJ_PRECISION_AS_BUILT);
    expect_training("direct", ADJ_PRECISION_BF16);
    expect_training("direct", ADJ_PRECISION_F16);
    expect_training("onednn", ADJ_PRECISION_AS_BUILT);
    expect_training("onednn", ADJ_PRECISION_BF16);
    expect_training("onednn", ADJ_PRECISION_F16);
}

Test(thread_bits, naive) { expect_all("naive", ADJ_MATH_EXACT, 0, 1); }
Test(thread_bits, direct) { expect_all("direct", ADJ_MATH_EXACT, 0, 1); }
Test(thread_bits, direct_fast) { expect_all("direct", ADJ_MATH_FAST, 0, 1); }
Test(thread_bits, onednn) { expect_all("onednn", ADJ_MATH_EXACT, 0, 0); }
Test(thread_bits, onednn_same_bits) { expect_all("onednn", ADJ_MATH_EXACT, 1, 1); }

static int threads_of_process(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *d; (d = readdir(tasks)) != NULL;)
        n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* How many threads a run on four adds to the process, for an image of that size. */
static int started_for(int64_t size)
{
    const adj_conv same = {.padding = ADJ_SAME};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {1, size, size, 8}}, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, 8, 8}}, -1, 1);
    adj_node *y = adj_sigmoid(adj_conv2d(adj_silu(adj_conv2d(x, w, &same)), w, &same));
    adj_node *m = adj_reshape(y, (adj_shape){2, {8, size * size}});
    adj_node *product = adj_matmul(m, adj_transpose(m, 2, (int[]){1, 0}), 0);
    const int before = threads_of_process();
    free(evaluate_with(&f, product, "onednn", 4));
    return threads_of_process() - before;
}

Test(thread_bits, small_steps_start_no_thread)
{
    cr_expect_eq(started_for(8), 0);
    cr_expect_geq(started_for(128), 1);
}

/* ---- shards have the same images, so their gradients are equal, and the mean of 1, 2 or 4 equal
 * numbers is that number; another bit comes from shards that are computed by other kernels, or in
 * other groups of nodes ---- */

/* Without dropout, whose masks follow an image's number in the whole batch. */
static void expect_shards(const char *direct_isa, const char *onednn_isa)
{
    static const char *const models[] = {"lenet", "resnet8"};
    static const char *const backends[] = {"onednn", "direct"};
    static const adj_precision precisions[] = {ADJ_PRECISION_AS_BUILT, ADJ_PRECISION_BF16,
                                               ADJ_PRECISION_F16};
    setenv("ADJOINT_MAX_ISA", direct_isa, 0);
    setenv("ONEDNN_MAX_CPU_ISA", onednn_isa, 0); /* oneDNN reads it once, in each test's process */
    for (int m = 0; m < 2; m++)
        for (int b = 0; b < 2; b++)
            for (int p = 0; p < 3; p++)
                expect_same_training(
                    (setting){models[m], backends[b], precisions[p], 16, 1, .shards = 1}, 1);
}

/* Tuning may choose other kernels for another number of shards. */
TestSuite(shard_bits, .init = plan_as_usual);

/* A level that the CPU does not have runs as the highest one that it has. */
Test(shard_bits, base) { expect_shards("base", "SSE41"); }
Test(shard_bits, avx2) { expect_shards("avx2", "AVX2"); }
Test(shard_bits, avx512) { expect_shards("avx512", "AVX512_CORE"); }
Test(shard_bits, all) { expect_shards("amx", "ALL"); }
