/* test_bounds.c - the bounds of a result: its RMS error as a whole, one rounding of half types, and
 * norms of groups of few values, whose terms cancel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "ops/grad.h"
#include "tests/check/checked.h"
#include "tests/check/spoil.h"

/* ---- the RMS error of a whole result: sequential f32 sums stay within the bound; a systematic
 * error that is small beside each element's bound does not ---- */

enum { SUMS = 64, SIDE = 72, PIXELS = SIDE * SIDE };

typedef enum { RIGHT, LEFT_OUT, SCALED, ONE_TERM, N_FAULT } fault;
static fault sum_fault;

/* Sums over pixels. LEFT_OUT: 64 of 5,184 pixels; SCALED: by 2^-11; ONE_TERM: a term is off by a
 * hundredth. */
static adj_status run_sum(const adj_call *c)
{
    const adj_shape shape = c->group->in[0]->type.shape;
    const int64_t channels = shape.dim[3], pixels = adj_shape_elems(shape) / channels;
    const float *dy = c->in[0];
    float *db = c->out[0];
    memset(db, 0, (size_t)channels * sizeof *db);
    for (int64_t i = 0; i < pixels; i++) {
        if (sum_fault == LEFT_OUT && i % 81 == 80)
            continue;
        for (int64_t k = 0; k < channels; k++)
            db[k] += sum_fault == ONE_TERM && i == pixels / 2 ? 1.01F * dy[i * channels + k]
                                                              : dy[i * channels + k];
    }
    for (int64_t k = 0; k < channels && sum_fault == SCALED; k++)
        db[k] *= 1 + 0x1p-11F;
    return ADJ_OK;
}

static adj_status prepare_sum(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return prepare_one(&adj_op_bias_add_grad, ADJ_F32, "sequential", g, candidate, p);
}

static const adj_kernel sequential = {
    .name = "bias_add_grad", .prepare = prepare_sum, .run = run_sum};

/* Values of either sign, positive ones, and one value a channel. */
typedef enum { SIGNED, POSITIVE, REPEATED, N_KIND } kind;

static compare_row row_of(fault f, kind values, int64_t rows, int64_t channels)
{
    const adj_backend *const *backends = before_naive("crooked", &sequential);
    const int64_t n = rows * SIDE * channels;
    scoped(release) float *v = malloc((size_t)n * sizeof *v);
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, rows, SIDE, channels}});
    const adj_leaf_value value = {x, v};
    cr_assert_not_null(v);
    adj_draw(ADJ_F32, v, n,
             (adj_init){.kind = ADJ_INIT_UNIFORM, .a = values == SIGNED ? -1 : 0, .b = 1}, 3, 0);
    for (int64_t i = channels; i < n && values == REPEATED; i++)
        v[i] = v[i - channels];
    sum_fault = f;
    scoped(release_comparison) const adj_comparison *c =
        compared(adj_bias_add_grad(x, ADJ_NHWC), "crooked",
                 (adj_compare_opts){
                     .exec.seed = 3, .n_value = 1, .value = &value, .exec.backends = backends});
    compare_row row = *adj_comparison_row_at(c, 0);
    cr_expect_str_eq(row.implementation, "sequential");
    if (row.verdict == ADJ_VERDICT_FAIL && row.isolated.noise > row.isolated.noise_limit)
        expect_text(row.reason, "the whole result: RMS error");
    return row;
}

Test(compare_noise, sequential_sums_are_sound)
{
    for (kind k = SIGNED; k < N_KIND; k++) {
        const compare_row row = row_of(RIGHT, k, SIDE, SUMS);
        cr_expect_eq(row.verdict, ADJ_VERDICT_PASS);
        cr_expect_eq(row.isolated.distinct, SUMS);
        cr_expect_leq(row.isolated.noise, 0.7 * row.isolated.noise_limit, "%d: %g", (int)k,
                      row.isolated.noise);
    }
}

/* Most are within every element's bound. */
Test(compare_noise, faults_of_the_whole_result)
{
    for (fault f = LEFT_OUT; f < N_FAULT; f++)
        for (kind k = SIGNED; k < N_KIND; k++) {
            const int64_t rows = f == ONE_TERM ? 1 : SIDE;
            const compare_row row = row_of(f, k, rows, SUMS);
            cr_expect_eq(row.verdict, ADJ_VERDICT_FAIL, "%d %d: %g", (int)f, (int)k,
                         row.isolated.noise);
            cr_expect_eq(row.blame, ADJ_BLAME_KERNEL);
            cr_expect_gt(row.isolated.noise, row.isolated.noise_limit);
            cr_expect_gt(row.isolated.rms, 0);
        }
    cr_expect_eq(row_of(SCALED, SIGNED, SIDE, SUMS).isolated.wrong, 0);
}

/* The mean of few errors is uncertain: their limit is wider. */
Test(compare_noise, of_few_values)
{
    const compare_row row = row_of(RIGHT, SIGNED, SIDE, 8);
    cr_expect_eq(row.verdict, ADJ_VERDICT_PASS);
    cr_expect_lt(row.isolated.noise, 0.7 * row.isolated.noise_limit);
    cr_expect_eq(row_of(SCALED, SIGNED, SIDE, 8).verdict, ADJ_VERDICT_FAIL);
}

/* A step below half of the distance between two numbers of the type moves every value to one side,
 * and rounding takes all of it back: that is no bias. */
Test(compare_noise, of_steps_that_rounding_takes_back)
{
    static const char *const configs[] = {"naive:f64", "naive", "onednn"};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_BF16, (adj_shape){2, {64, 64}});
    adj_node *y = adj_scale(x, 0.999);
    scoped(release_comparison) const adj_comparison *c =
        comparison_of(1, &y, 3, configs, (adj_compare_opts){0});
    cr_expect_eq(c->n_failed, 0, "%s", adj_comparison_row_at(c, 0)->reason);
}

/* Different values near one number of the type are all rounded to it, to one side. */
Test(compare_noise, of_values_that_are_stored_alike)
{
    enum { N = 512 };
    float v[N];
    for (int i = 0; i < N; i++)
        v[i] = 1 + 0x1p-20F * (float)i;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {N}});
    adj_node *y = adj_cast(x, ADJ_BF16);
    const adj_leaf_value value = {x, v};
    scoped(release_comparison) const adj_comparison *c =
        compared(y, "naive", (adj_compare_opts){.n_value = 1, .value = &value});
    cr_expect_eq(c->n_failed, 0, "%s", adj_comparison_row_at(c, 0)->reason);
}

/* ---- half types: kernels that round twice, truncate, or are off by 2^-7 beside sound ones ---- */

enum { ROWS = 12, CHANNELS = 40 };

typedef enum { SOUND, TWICE, TRUNCATED, OFF_BY_2_TO_MINUS_7, N_WAY } way;
static way planted;
static adj_dtype dtype;

/* Towards zero: one bit of the magnitude less where the nearest lies beyond. */
static void store_truncated(void *y, int64_t i, double v)
{
    uint16_t bits;
    adj_store(dtype, y, i, v);
    memcpy(&bits, (char *)y + 2 * i, sizeof bits);
    bits = (uint16_t)(bits - (fabs(adj_load(dtype, y, i)) > fabs(v)));
    memcpy((char *)y + 2 * i, &bits, sizeof bits);
}

static double once(double v)
{
    uint16_t half;
    adj_store(dtype, &half, 0, v);
    return adj_load(dtype, &half, 0);
}

/* ---- a backend that adds a bias, and bias and relu in one ---- */

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    group[0] = root;
    if (root->op != &adj_op_bias_add)
        return 0;
    if (max < 2 || uses[root->id].is_root || uses[root->id].n_user != 1 ||
        uses[root->id].user[0]->op != &adj_op_relu)
        return 1;
    group[1] = uses[root->id].user[0];
    return 2;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_bias_add || g->node[0]->type.dtype != dtype || candidate > 0)
        return ADJ_ENOKERNEL;
    strcpy(p->impl, "crooked");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const int64_t n = adj_shape_elems(c->group->node[0]->type.shape);
    for (int64_t i = 0; i < n; i++) {
        double bias = adj_load(dtype, c->in[1], i % CHANNELS);
        double v = adj_load(dtype, c->in[0], i) + bias;
        if (planted == TWICE)
            v = once(v - bias / 3) + bias / 3;
        if (planted == OFF_BY_2_TO_MINUS_7)
            v *= 1 + 0x1p-7;
        if (c->group->n_node > 1)
            v = v <= 0 ? 0 : v; /* a NaN stays one */
        if (planted == TRUNCATED)
            store_truncated(c->out[0], i, v);
        else
            adj_store(dtype, c->out[0], i, v);
    }
    return ADJ_OK;
}

static const adj_kernel kernel = {
    .name = "bias_add", .match = match, .prepare = prepare, .run = run};

/* ---- and multiplies matrices as processors do bf16: products that are no normal f32 are 0 ---- */

static adj_status prepare_product(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return prepare_one(&adj_op_matmul, ADJ_BF16, "flushing", g, candidate, p);
}

static adj_status run_product(const adj_call *c)
{
    for (int64_t i = 0; i < ROWS * ROWS; i++) {
        double sum = 0;
        for (int64_t k = 0; k < CHANNELS; k++) {
            const double v = adj_load(ADJ_BF16, c->in[0], i / ROWS * CHANNELS + k) *
                             adj_load(ADJ_BF16, c->in[1], k * ROWS + i % ROWS);
            sum += fabs(v) < 0x1p-126 ? 0 : v;
        }
        adj_store(ADJ_BF16, c->out[0], i, sum);
    }
    return ADJ_OK;
}

static const adj_kernel product = {
    .name = "matmul", .prepare = prepare_product, .run = run_product};
static const adj_kernel *const kernels[] = {&kernel, &product, NULL};
static const adj_backend crooked = {.name = "crooked", .kernels = kernels};

static const adj_comparison *compare(adj_graph *g, int with_relu, uint64_t seed)
{
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){4, {1, ROWS, 4, CHANNELS}});
    adj_node *b = adj_input(g, "b", dtype, (adj_shape){1, {CHANNELS}});
    adj_node *y = adj_bias_add(x, b, ADJ_NHWC);
    return compared(with_relu ? adj_relu(y) : y, "crooked",
                    (adj_compare_opts){.exec.seed = seed, .exec.backends = beside_naive(crooked)});
}

TestSuite(half_bounds, .init = plan_as_usual);

static const adj_dtype halves[] = {ADJ_F16, ADJ_BF16};

/* A bound has two sides: sound kernels keep to nine tenths of it, others do not. */
Test(half_bounds, alone)
{
    for (int t = 0; t < 2; t++)
        for (planted = SOUND; planted < N_WAY; planted++)
            for (uint64_t seed = 1; seed <= 10; seed++) {
                dtype = halves[t];
                scoped(release_graph) adj_graph *g = adj_graph_new();
                scoped(release_comparison) const adj_comparison *c = compare(g, 0, seed);
                const compare_row *row = adj_comparison_row_at(c, 0);
                cr_expect_str_eq(row->implementation, "crooked");
                if (planted == SOUND)
                    cr_expect_leq(row->isolated.worst, 0.9);
                else
                    cr_expect(row->isolated.wrong > 0 && row->blame == ADJ_BLAME_KERNEL,
                              "%s, %d: %g", adj_dtype_name(dtype), (int)planted,
                              row->isolated.worst);
            }
}

/* In a group each member may round: truncating is within that bound, but always on one side. */
Test(half_bounds, truncation_in_a_group)
{
    for (int t = 0; t < 2; t++)
        for (int truncates = 0; truncates < 2; truncates++) {
            planted = truncates ? TRUNCATED : SOUND;
            dtype = halves[t];
            scoped(release_graph) adj_graph *g = adj_graph_new();
            scoped(release_comparison) const adj_comparison *c = compare(g, 1, 5);
            const compare_row *row = row_named(c, 1, "bias_add+relu");
            cr_assert_not_null(row);
            cr_expect_eq(row->verdict, truncates ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s",
                         row->reason);
            cr_expect_eq(row->isolated.wrong, 0);
            cr_expect_eq(strstr(row->reason, "rounds to one side") != NULL, truncates, "%s",
                         row->reason);
        }
}

/* ---- gradcheck: a batch norm whose gradient is off by 2 %, or lacks its mean term ---- */

/* sums has a row of sum(dy xhat) and one of sum(dy). */
static void without_the_mean(const adj_node *n, void *y)
{
    for (int64_t i = n->type.shape.dim[1]; i < adj_shape_elems(n->type.shape); i++)
        adj_store(n->type.dtype, y, i, 0);
}

Test(half_bounds, gradcheck_of_batch_norm)
{
    static const struct {
        const char *op;
        double factor;
        void (*spoil)(const adj_node *n, void *y);
    } faults[] = {{"batch_norm_grad", 1, NULL},
                  {"batch_norm_grad", 1.02, NULL},
                  {"batch_norm_grad_sums", 1, without_the_mean}};
    static const char *const names[] = {"f16", "bf16"};
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++)
        for (int t = 0; t < 2; t++) {
            const op_args args = {.op = "batch_norm", .in = "4,6,5,3", .dtype = names[t]};
            scoped(release_graph) adj_graph *g = adj_graph_new();
            spoiled.op = faults[f].op;
            spoiled.factor = faults[f].factor;
            spoiled.spoil = faults[f].spoil;
            scoped(release_gradcheck) const adj_gradcheck_report *r =
                check_spoiled(g, &args, &(adj_gradcheck_opts){.exec.seed = 7, .exec.threads = 1});
            const gradcheck_detail *x = adj_gradcheck_row_at(r, 0);
            cr_expect_str_eq(x->wrt, "x");
            cr_expect_eq(x->result, f == 0 ? ADJ_GRADCHECK_PASS : ADJ_GRADCHECK_FAIL, "%s %s: %g",
                         names[t], faults[f].op, x->worst_abs / x->tolerance);
        }
}

/* Numbers below f16's normal ones are as far apart as the smallest of these: what is too small even
 * for them is 0, which is the nearest and no truncation. */
Test(half_bounds, too_small_for_f16)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F16, (adj_shape){2, {240, 16}}), *y = adj_softmax(x);
    scoped(release) uint16_t *logits = malloc(240 * 16 * sizeof *logits);
    cr_assert_not_null(logits);
    for (int64_t i = 0; i < (int64_t)240 * 16; i++) /* most results are small, and different */
        adj_store(ADJ_F16, logits, i, i % 16 == 0 ? 8 : -16 + (double)(i % 1000) / 125);
    const adj_leaf_value values = {x, logits};
    scoped(release_comparison) const adj_comparison *c =
        compared(y, "naive", (adj_compare_opts){.n_value = 1, .value = &values});
    cr_expect_eq(adj_comparison_row_at(c, 0)->verdict, ADJ_VERDICT_PASS, "%s",
                 adj_comparison_row_at(c, 0)->reason);
}

/* All products of a sum may be too small for the f32 in which it is made. */
Test(half_bounds, products_below_f32)
{
    static uint16_t x[ROWS * CHANNELS];
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *a = adj_input(g, "a", ADJ_BF16, (adj_shape){2, {ROWS, CHANNELS}});
    adj_node *b = adj_input(g, "b", ADJ_BF16, (adj_shape){2, {CHANNELS, ROWS}});
    const adj_leaf_value value[] = {{a, x}, {b, x}};
    for (int i = 0; i < ROWS * CHANNELS; i++)
        adj_store(ADJ_BF16, x, i, 0x1p-64);
    scoped(release_comparison) const adj_comparison *c = compared(
        adj_matmul(a, b, 0), "crooked",
        (adj_compare_opts){.exec.backends = beside_naive(crooked), .n_value = 2, .value = value});
    const compare_row *row = adj_comparison_row_at(c, 0);
    cr_expect_str_eq(row->implementation, "flushing");
    cr_expect_eq(row->verdict, ADJ_VERDICT_PASS, "%s: err/bound %g", row->reason,
                 row->isolated.worst);
}

/* ---- group norm over one value and two: x - mean(x) and the terms of dx cancel, so that a sound
 * kernel's error is as large as dx; neither checker blames direct for it ---- */

enum { FEW = 8, SEEDS = 6 };
static const adj_shape shapes[] = {{2, {16, FEW}}, {4, {3, 2, 1, FEW}}};
static const double epsilons[] = {1e-3, 1e-5};

typedef struct {
    adj_graph *g;
    adj_node *y, *dx;
} norm;

static void norm_free(norm *n) { adj_graph_free(n->g); }

static norm build(int i)
{
    norm n = {.g = adj_graph_new()};
    const adj_shape c = {1, {FEW}};
    const int64_t groups = i / 2 % 2 ? FEW : FEW / 2;
    adj_node *x = adj_input(n.g, "x", ADJ_F32, shapes[i % 2]);
    adj_node *dy = adj_input(n.g, "dy", ADJ_F32, shapes[i % 2]);
    adj_node *gamma = adj_input(n.g, "gamma", ADJ_F32, c),
             *beta = adj_input(n.g, "beta", ADJ_F32, c);
    n.y = adj_group_norm(x, gamma, beta, groups, epsilons[i / 4], ADJ_NHWC);
    n.dx = adj_group_norm_grad(x, gamma, dy, groups, epsilons[i / 4], ADJ_NHWC);
    return n;
}

Test(few_values, compare)
{
    static const char *const configs[] = {"naive:f64", "direct", "naive"};
    for (int i = 0; i < 8 * SEEDS; i++) {
        scoped(norm_free) norm n = build(i % 8);
        adj_node *const root[] = {n.y, n.dx};
        scoped(release_comparison) const adj_comparison *c = comparison_of(
            2, root, 3, configs,
            (adj_compare_opts){.exec.threads = 2, .exec.seed = (uint64_t)(1 + i / 8)});
        cr_expect_eq(c->n_row, 4);
        cr_expect_eq(c->n_failed, 0, "case %d, seed %d", i % 8, 1 + i / 8);
        cr_expect_eq(c->n_whole_failed, 0);
        for (int k = 0; k < c->n_row; k++) /* |dx| of a term is up to 1e3 */
            cr_expect_lt(adj_comparison_row_at(c, k)->isolated.bound, 5e-3);
    }
}

Test(few_values, gradcheck)
{
    for (int i = 0; i < 8 * SEEDS; i++) {
        scoped(norm_free) norm n = build(i % 8);
        const adj_gradcheck_opts o = {.exec.backend = "direct", .exec.seed = (uint64_t)(1 + i / 8)};
        scoped(release_gradcheck) const adj_gradcheck_report *r = checked(n.y, &o);
        cr_expect_eq(r->verdict, ADJ_GRADCHECK_PASS, "case %d, seed %d", i % 8, 1 + i / 8);
    }
}
