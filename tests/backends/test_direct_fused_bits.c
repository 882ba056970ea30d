/* test_direct_fused_bits.c - a fused pointwise group gives the bits of its nodes one by one: where
 * a node's type is bf16 or f16, its result is rounded inside the group too. Against nodes that run
 * one by one, for every row kernel and every op that may be in a group; against arithmetic where it
 * is exact but for these roundings. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "exec/report.h"
#include "ops/grad.h"
#include "tests/backends/row_problem.h"
#include "tests/isa.h"
#include "tests/oracle.h"

TestSuite(direct_fused_bits, .init = plan_as_usual);

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16}, *const halves = dtypes + 1;
enum { N_DTYPE = 3 };

/* ---- against nodes that run one by one ---- */

typedef struct {
    int steps;
    double *value[4];
} results;

static results run(const fixture *f, int n, adj_node *const y[], int unfused)
{
    const adj_exec_opts o = {.n_fetch = n,
                             .fetch = y,
                             .backend = "direct",
                             .threads = unfused ? 1 : 3,
                             .debug = &(adj_exec_debug){.no_fusion = unfused}};
    results r = {0};
    scoped(release_exec) adj_exec *e = fixture_run(f, &o);
    r.steps = adj_exec_step_count(e);
    for (int i = 0; i < n; i++)
        r.value[i] = fixture_get(e, y[i]);
    return r;
}

/* One step on three threads gives what nodes one by one give on one. */
static void expect_same(const fixture *f, int n, adj_node *const y[], const char *label)
{
    results fused = run(f, n, y, 0), single = run(f, n, y, 1);
    cr_assert_eq(fused.steps, 1, "%s: %d steps", label, fused.steps);
    for (int i = 0; i < n; i++) {
        expect_same_bits(fused.value[i], single.value[i], adj_shape_elems(y[i]->type.shape), label);
        free(fused.value[i]);
        free(single.value[i]);
    }
}

/* Numbers that are rounded to 0, or are subnormal, in some places. */
static void put_small_numbers(fixture *f)
{
    for (int i = 0; i < f->n_in; i++)
        for (int64_t k = 5 + i; k < adj_shape_elems(f->in[i]->type.shape); k += 17)
            f->value[i][k] = ldexp(k % 2 ? 1 : -1, k % 3 ? -133 : -24);
}

static void expect_pattern(int bits, adj_dtype dtype, int64_t pixels, int64_t channels)
{
    char label[80];
    scoped(row_problem_free) row_problem s = row_problem_new(bits, dtype, pixels, channels);
    snprintf(label, sizeof label, "%s: %x %s %d", getenv("ADJOINT_MAX_ISA"), (unsigned)bits,
             adj_dtype_name(dtype), (int)channels);
    put_small_numbers(&s.f);
    expect_same(&s.f, s.n, s.out, label);
}

static void expect_patterns(const char *isa)
{
    static const int64_t sizes[][2] = {{201, 128}, {64, 3}, {5, 37}};
    (void)isa;
    for (int i = 0; i < n_row_pattern; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (int d = (row_patterns[i] & CAST) != 0; d < N_DTYPE; d++)
                expect_pattern(row_patterns[i], dtypes[d], sizes[j][0], sizes[j][1]);
}

Test(direct_fused_bits, row_kernels) { for_each_isa(N_ROW_ISA, row_isas, expect_patterns); }

/* Every op that may be in a group, of h, which a node of the group makes. */
enum { N_OP = 40 };

typedef struct {
    adj_node *h, *a, *b, *vector, *scalar, *counter; /* operands of the type, but for the counter */
    adj_node *wide, *stats;                          /* f32 */
} operands;

static adj_node *unary(int op, adj_node *h)
{
    switch (op) {
    case 0: return adj_relu(h);
    case 1: return adj_relu6(h);
    case 2: return adj_leaky_relu(h, 0.3);
    case 3: return adj_neg(h);
    case 4: return adj_scale(h, 0.7);
    case 5: return adj_square(h);
    case 6: return adj_sqrt(h);
    case 7: return adj_exp(h);
    case 8: return adj_log(h);
    case 9: return adj_clip(h, -0.3, 0.4);
    case 10: return adj_hard_sigmoid(h);
    case 11: return adj_hard_swish(h);
    case 12: return adj_elu(h, 0.9);
    case 13: return adj_gelu(h, ADJ_GELU_ERF);
    default: return adj_gelu(h, ADJ_GELU_TANH);
    }
}

static adj_node *gradient(int op, adj_node *dy, adj_node *x)
{
    switch (op) {
    case 15: return adj_relu_grad(dy, x);
    case 16: return adj_relu6_grad(dy, x);
    case 17: return adj_leaky_relu_grad(dy, x, 0.3);
    case 18: return adj_sigmoid_grad(dy, x);
    case 19: return adj_tanh_grad(dy, x);
    case 20: return adj_clip_grad(dy, x, -0.3, 0.4);
    case 21: return adj_hard_sigmoid_grad(dy, x);
    case 22: return adj_hard_swish_grad(dy, x);
    case 23: return adj_elu_grad(dy, x, 0.9);
    default: return adj_gelu_grad(dy, x, op == 24 ? ADJ_GELU_ERF : ADJ_GELU_TANH);
    }
}

static adj_node *any_op(int op, const operands *o)
{
    static const adj_adam_attrs adam = {.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-3};
    if (op < 26)
        return op < 15 ? unary(op, o->h) : gradient(op, o->h, o->a);
    switch (op) {
    case 26: return adj_sub(o->a, o->h);
    case 27: return adj_mul(o->h, o->vector);
    case 28: return adj_div(o->h, o->scalar);
    case 29: return adj_bias_add(o->h, o->vector, ADJ_NHWC);
    case 30: return adj_prelu(o->h, o->vector, ADJ_NHWC);
    case 31: return adj_prelu_grad(o->h, o->a, o->vector, ADJ_NHWC);
    case 32: return adj_momentum(o->a, o->h, o->b, 0.9, 0.01);
    case 33: return adj_sgd_step(o->a, o->h, o->scalar, 0.01);
    case 34: return adj_ema(o->a, o->h, 0.9);
    case 35: return adj_select(o->scalar, o->h, o->a);
    case 36: return adj_batch_norm(o->h, o->stats, o->wide, o->wide, epsilon, ADJ_NHWC);
    case 37: return adj_batch_norm_grad(o->h, o->stats, o->wide, o->a, o->stats, epsilon, ADJ_NHWC);
    case 38: return adj_adam_step(o->a, o->h, adj_square(o->b), o->counter, o->scalar, &adam);
    default: return adj_erf(o->h);
    }
}

static void expect_op(int op, adj_dtype dtype)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {67, 9}};
    operands o = {.a = given_random(&f, dtype, full, -1, 1),
                  .b = given_random(&f, dtype, full, -1, 1),
                  .vector = given_random(&f, dtype, (adj_shape){1, {9}}, -1, 1),
                  .scalar = given_random(&f, dtype, (adj_shape){0}, 0.1, 0.2),
                  .counter = given_integers(&f, ADJ_I32, (adj_shape){0}, 3, 3)};
    put_small_numbers(&f);
    o.wide = given_random(&f, ADJ_F32, (adj_shape){1, {9}}, -1, 1);
    o.stats = given_random(&f, ADJ_F32, (adj_shape){2, {2, 9}}, 0.5, 1.5);
    o.h = adj_add(adj_scale(o.a, 3), o.b);
    adj_node *y[] = {adj_add(any_op(op, &o), o.b), adj_cast(any_op(op, &o), ADJ_F32)};
    char label[80];
    snprintf(label, sizeof label, "%s: op %d %s", getenv("ADJOINT_MAX_ISA"), op,
             adj_dtype_name(dtype));
    expect_same(&f, 1, y, label);
    expect_same(&f, 1, y + 1, label);
    expect_same(&f, 2, y, label);
}

static void expect_ops(const char *isa)
{
    (void)isa;
    for (int op = 0; op < N_OP; op++)
        for (int d = 0; d < N_DTYPE; d++)
            expect_op(op, dtypes[d]);
}

Test(direct_fused_bits, ops) { for_each_isa(N_ISA, all_isas, expect_ops); }

/* Sums of h, which a node of the group makes, beside a node that knows channels. */
static void expect_sum(int op, adj_dtype dtype, int64_t channels)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {4, {8, 30, 31, channels}};
    adj_node *a = given_random(&f, dtype, full, -1, 1), *b = given_random(&f, dtype, full, -1, 1);
    adj_node *v = given_random(&f, dtype, (adj_shape){1, {channels}}, -1, 1);
    adj_node *stats = given_random(&f, ADJ_F32, (adj_shape){2, {2, channels}}, 0.5, 1.5);
    adj_node *h = adj_add(b, b), *y[] = {adj_bias_add(h, v, ADJ_NHWC), NULL};
    switch (op) {
    case 0: y[1] = adj_bias_add_grad(h, ADJ_NHWC); break;
    case 1: y[1] = adj_batch_norm_stats(h, ADJ_NHWC); break;
    case 2: y[1] = adj_batch_norm_grad_sums(h, stats, a, epsilon, ADJ_NHWC); break;
    case 3: y[1] = adj_prelu_grad_slope(h, a, channels, ADJ_NHWC); break;
    case 4: y[1] = adj_prelu_grad_slope(h, a, 1, ADJ_NHWC); break;
    default: y[1] = adj_bias_add_grad(y[0] = adj_relu_grad(h, a), ADJ_NHWC); break;
    }
    char label[80];
    snprintf(label, sizeof label, "%s: sum %d %s %d", getenv("ADJOINT_MAX_ISA"), op,
             adj_dtype_name(dtype), (int)channels);
    expect_same(&f, 2, y, label);
}

static void expect_sums(const char *isa)
{
    static const int64_t channels[] = {3, 16};
    (void)isa;
    for (int op = 0; op < 6; op++)
        for (int d = 0; d < N_DTYPE; d++)
            for (int c = 0; c < 2; c++)
                expect_sum(op, dtypes[d], channels[c]);
}

Test(direct_fused_bits, sums) { for_each_isa(N_ROW_ISA, row_isas, expect_sums); }

/* ---- against arithmetic ---- */

/* Half types in f32 kernels: the product in f32, cast, with a bias, and widened. */
static void expect_casts(const char *isa)
{
    enum { PIXELS = 100, CHANNELS = 5 };
    const adj_shape full = {2, {PIXELS, CHANNELS}}, vector = {1, {CHANNELS}};
    for (int d = 0; d < 2; d++) {
        const adj_dtype half = halves[d];
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *a = given_integers(&f, ADJ_F32, full, -3000, 3000);
        adj_node *v = given_integers(&f, half, vector, -100, 100);
        adj_node *h = adj_cast(adj_scale(a, 3), half);
        adj_node *y[] = {adj_scale(adj_cast(adj_bias_add(h, v, ADJ_NHWC), ADJ_F32), 0.5),
                         adj_scale(adj_cast(h, ADJ_F32), 2)};
        results got = run(&f, 2, y, 0);
        cr_assert_eq(got.steps, 1, "%d steps", got.steps);
        for (int i = 0; i < PIXELS * CHANNELS; i++) {
            const double cast = round_to_type(half, 3 * f.value[0][i]);
            const double want = 0.5 * round_to_type(half, cast + f.value[1][i % CHANNELS]);
            cr_assert_eq(got.value[0][i], want, "%s %s: %g gives %g, not %g", isa,
                         adj_dtype_name(half), f.value[0][i], got.value[0][i], want);
            cr_assert_eq(got.value[1][i], 2 * cast, "%s %s", isa, adj_dtype_name(half));
        }
        free(got.value[0]), free(got.value[1]);
    }
}

Test(direct_fused_bits, casts) { for_each_isa(N_ISA, all_isas, expect_casts); }

/* A mask by a batch norm that bf16 rounds to 0, as half of 2^-133 is: it lets nothing pass. */
static void expect_mask(const char *isa)
{
    static const double gamma[] = {0.5, 1, -1, 1.5};
    static const int passes[] = {0, 1, 0, 1};
    scoped(row_problem_free) row_problem s = row_problem_new(NORM_MASK | SUMS, ADJ_BF16, 8, 4);
    double *stats = row_input(&s, s.stats);
    row_fill(&s, s.x[0], 0x1p-133);
    row_fill(&s, s.b, 1);
    row_fill(&s, s.beta, 0);
    for (int k = 0; k < 4; k++) {
        row_input(&s, s.gamma)[k] = gamma[k];
        stats[k] = 0;
        stats[4 + k] = 1 - epsilon;
    }
    row_run(&s, 1);
    for (int k = 0; k < 4; k++)
        cr_expect_eq(s.got[0][4 + k], 8 * passes[k], "%s, channel %d: %g", isa, k, s.got[0][4 + k]);
}

Test(direct_fused_bits, mask_by_what_is_rounded_to_0)
{
    for_each_isa(N_ROW_ISA, row_isas, expect_mask);
}
