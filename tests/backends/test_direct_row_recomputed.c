/* test_direct_row_recomputed.c - groups of one loop (direct/fused_pointwise/row_kernel.h) in which
 * a batch norm is computed again, for the mask of its relu or to be read once more: by which
 * statistics, in how many loops, and where it has to be written. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/backends/row_problem.h"

TestSuite(direct_row_recomputed, .init = plan_as_usual);

/* Sums over what one norm masks, by another's mean. */
Test(direct_row_recomputed, sums_by_another_mean_than_the_mask)
{
    scoped(row_problem_free) row_problem s = row_problem_new(NORM_MASK | SUMS, ADJ_F32, 64, 16);
    adj_node *other = given_random(&s.f, ADJ_F32, (adj_shape){2, {2, 16}}, 2.5, 3.5);
    adj_node *mask = adj_batch_norm(s.x[0], s.stats, s.gamma, s.beta, epsilon, ADJ_NHWC);
    s.out[0] = adj_batch_norm_grad_sums(s.x[0], other, adj_relu_grad(s.b, mask), epsilon, ADJ_NHWC);
    s.bits = 0;
    scoped(release) double *want = evaluate(&s.f, s.out[0], "naive");
    row_run(&s, 1);
    for (int i = 0; i < 2 * 16; i++)
        cr_expect_float_eq(s.got[0][i], want[i], 1e-4 + 1e-5 * fabs(want[i]), "%d: %g, not %g", i,
                           s.got[0][i], want[i]);
}

/* The norm that is recomputed for its relu is read by another node, too. */
Test(direct_row_recomputed, a_norm_that_others_read)
{
    scoped(row_problem_free) row_problem s =
        row_problem_new(NORM_MASK | SUMS | NORM_OUT, ADJ_F32, 64, 16);
    s.out[s.n++] = adj_tanh(s.out[0]->in[0]);
    s.bits = 0; /* no one kernel */
    row_run(&s, 1);
    for (int64_t i = 0; i < 64 * 16; i++) {
        const double z = row_wanted_norm(&s, i);
        cr_assert_float_eq(s.got[0][i], z > 0 ? z : 0, 1e-5, "relu, %d: %g", (int)i, s.got[0][i]);
        cr_assert_float_eq(s.got[2][i], tanh(z), 1e-5, "tanh, %d: %g", (int)i, s.got[2][i]);
    }
}

/* dx, dgamma and dbeta of a batch norm and a relu, channel by channel in double. */
static void expect_gradients(const row_problem *s)
{
    const double *x = s->f.value[0], *dy = s->f.value[1], *gamma = s->f.value[2],
                 *beta = s->f.value[3];
    const double u = s->a->type.dtype == ADJ_BF16 ? 0x1p-8 : 1e-5;
    const int64_t n = s->pixels * s->c;
    for (int64_t k = 0; k < s->c; k++) {
        double m = (double)s->pixels, mean = 0, var = 0, dbeta = 0, dgamma = 0;
        for (int64_t i = k; i < n; i += s->c)
            mean += x[i] / m;
        for (int64_t i = k; i < n; i += s->c)
            var += (x[i] - mean) * (x[i] - mean) / m;
        double r = 1 / sqrt(var + epsilon), slack = 1e-5 * m;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = k; i < n; i += s->c) {
                double hat = (x[i] - mean) * r;
                double d = hat * gamma[k] + beta[k] > 0 ? dy[i] : 0;
                double want = gamma[k] * r * (d - (dbeta + hat * dgamma) / m);
                if (pass == 1)
                    cr_assert_float_eq(s->got[0][i], want, u * fabs(want) + 1e-5);
                dbeta += pass == 0 ? d : 0;
                dgamma += pass == 0 ? d * hat : 0;
            }
        cr_assert_float_eq(s->got[1][k], dgamma, slack);
        cr_assert_float_eq(s->got[2][k], dbeta, slack);
    }
}

/* Each gradient is from two passes that read x and dy. */
static void expect_masked_twice(adj_dtype dtype, int64_t pixels, int64_t c)
{
    scoped(row_problem_free) row_problem s = {.f = fixture_new(), .pixels = pixels, .c = c, .n = 3};
    adj_node *x = s.a = given_random(&s.f, dtype, (adj_shape){2, {pixels, c}}, -1, 1);
    adj_node *dy = given_random(&s.f, dtype, (adj_shape){2, {pixels, c}}, -1, 1);
    adj_node *gamma = given_random(&s.f, ADJ_F32, (adj_shape){1, {c}}, -1, 1);
    adj_node *beta = given_random(&s.f, ADJ_F32, (adj_shape){1, {c}}, -1, 1);
    adj_node *stats = adj_batch_norm_stats(x, ADJ_NHWC);
    adj_node *y = adj_relu(adj_batch_norm(x, stats, gamma, beta, epsilon, ADJ_NHWC));
    cr_assert_eq(adj_grad(y, dy, 3, (adj_node *[]){x, gamma, beta}, s.out), ADJ_OK);
    cr_assert_eq(row_run_steps(&s, 2, 3), 2, "two steps of three nodes");
    expect_gradients(&s);
}

Test(direct_row_recomputed, a_mask_is_made_twice)
{
    for (int half = 0; half < 2; half++) {
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 1024, 16);
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 200, 128);
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 33, 5);
    }
}
