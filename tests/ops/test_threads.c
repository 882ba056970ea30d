/* test_threads.c - pools, normalizations and losses are bit-identical for any number of threads:
 * sums that cross a batch have one order. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "graph/op.h"
#include "ops/grad.h"

enum { RESULTS = 12 };

/* Large enough that every kernel shares its work out. */
static void build(fixture *f, adj_dtype dtype, adj_node *y[RESULTS])
{
    const adj_shape image = {4, {6, 24, 22, 37}}, channels = {1, {37}};
    const adj_pool a = {.ksize = {1, 3, 3, 1}, .stride = {1, 2, 2, 1}, .padding = ADJ_SAME};
    adj_dtype wide = dtype == ADJ_F64 ? ADJ_F64 : ADJ_F32;
    adj_node *x = given_random(f, dtype, image, -1, 3), *e = given_random(f, dtype, image, -1, 1);
    adj_node *gamma = given_random(f, wide, channels, -1, 1);
    adj_node *dy = given_random(f, dtype, (adj_shape){4, {6, 12, 11, 37}}, -1, 1);
    adj_node *z = given_random(f, dtype, (adj_shape){2, {500, 37}}, -4, 4);
    adj_node *label = given_integers(f, ADJ_I32, (adj_shape){1, {500}}, -1, 36);
    adj_node *top = adj_max_pool(x, &a), *stats = adj_batch_norm_stats(x, ADJ_NHWC);
    adj_node *sums = adj_batch_norm_grad_sums(x, stats, e, 1e-5, ADJ_NHWC);
    adj_node *const all[RESULTS] = {top,
                                    adj_max_pool_grad(x, top, dy, &a),
                                    adj_max_pool_grad_grad(x, top, e, &a),
                                    adj_avg_pool(x, &a),
                                    adj_avg_pool_grad(image, dy, &a),
                                    stats,
                                    sums,
                                    adj_batch_norm(x, stats, gamma, gamma, 1e-5, ADJ_NHWC),
                                    adj_batch_norm_grad(x, stats, gamma, e, sums, 1e-5, ADJ_NHWC),
                                    adj_softmax(z),
                                    adj_sparse_softmax_cross_entropy(z, label, 0.1),
                                    adj_sparse_softmax_cross_entropy_grad(z, label, 0.1)};
    memcpy(y, all, sizeof all);
}

Test(threads, same_bits)
{
    const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
    for (int d = 0; d < 4; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *y[RESULTS];
        build(&f, dtypes[d], y);
        for (int i = 0; i < RESULTS; i++) {
            omp_set_num_threads(1);
            scoped(release) double *one = evaluate(&f, y[i], "naive");
            omp_set_num_threads(3);
            scoped(release) double *three = evaluate(&f, y[i], "naive");
            size_t bytes = (size_t)adj_shape_elems(adj_node_type(y[i]).shape) * sizeof *one;
            cr_assert(memcmp(one, three, bytes) == 0, "%s", adj_node_op(y[i]));
        }
    }
}
