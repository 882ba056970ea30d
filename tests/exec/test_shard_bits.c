/* test_shard_bits.c - a training step gives the same bits for any number of shards
 * (adj_data_parallel). Each shard has the same images, so their gradients are equal, and the mean
 * of 1, 2 or 4 equal numbers is that number: another bit comes from shards that are computed by
 * other kernels, or in other groups of nodes. */
#include <string.h>

#include "graph/op.h"
#include "tests/training.h"

enum { BATCH = 4, MAX_SHARDS = 4, STEPS = 2, MAX_BYTES = 1 << 21 };

typedef struct {
    const char *model, *backend;
    adj_precision precision;
} setting;

/* Trains some steps and copies all parameters and states to values; returns the number of bytes. */
static size_t train(const setting *s, int shards, char *values)
{
    const adj_model_opts m = {.batch = BATCH, .size.h = 16, .size.w = 16};
    const adj_data_parallel_opts d = {.shards = shards};
    scoped(training_free) training t = training_of(s->model, m, &with_momentum);
    adj_updates *u = adj_data_parallel(t.updates, 1, 0, &d);
    adj_node *fetch[MAX_SHARDS];
    cr_assert_not_null(u, "%s", adj_graph_message(t.g));
    for (int k = 0; k < shards; k++)
        fetch[k] = adj_shard_node(u, t.loss, k);
    const adj_exec_opts o = {.n_fetch = shards,
                             .fetch = fetch,
                             .updates = u,
                             .backend = s->backend,
                             .precision = s->precision,
                             .threads = 1};
    const float rate = 0.01F;
    scoped(release_exec) adj_exec *e = plan_of(t.g, &o);
    for (int k = 0; k < shards; k++)
        training_batch(e, adj_shard_node(u, t.images, k), adj_shard_node(u, t.labels, k), 0);
    cr_assert_eq(adj_set(e, t.lr, &rate, sizeof rate), ADJ_OK);
    for (int i = 0; i < STEPS; i++)
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    return copy_all_params(e, values, MAX_BYTES);
}

static void expect_same(const setting *s)
{
    static char whole[MAX_BYTES], shared[MAX_BYTES];
    const size_t bytes = train(s, 1, whole);
    for (int shards = 2; shards <= MAX_SHARDS; shards *= 2) {
        cr_assert_eq(train(s, shards, shared), bytes);
        cr_expect_eq(memcmp(shared, whole, bytes), 0, "%s, precision %d, %s: %d shards", s->model,
                     (int)s->precision, s->backend, shards);
    }
}

/* Without dropout, whose masks follow an image's number in the whole batch. */
static void expect_all(const char *direct_isa, const char *onednn_isa)
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
                expect_same(&(setting){models[m], backends[b], precisions[p]});
}

/* Tuning may choose other kernels for another number of shards. */
TestSuite(shard_bits, .init = plan_as_usual);

/* A level that the CPU does not have runs as the highest one that it has. */
Test(shard_bits, base) { expect_all("base", "SSE41"); }
Test(shard_bits, avx2) { expect_all("avx2", "AVX2"); }
Test(shard_bits, avx512) { expect_all("avx512", "AVX512_CORE"); }
Test(shard_bits, all) { expect_all("amx", "ALL"); }
