/* test_values.c - the values that adj_compare draws: special ones expose a kernel that is right on
 * all random values, sound kernels are not blamed for them, and labels are classes of their logits.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compare_rig.h"
#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/check/spoil.h"
#include "tests/reference.h"

TestSuite(compare_special, .init = plan_as_usual);

Test(compare_special, faults_on_values_that_are_never_drawn)
{
    static const struct {
        fault planted;
        const char *says;
    } cases[] = {
        {LOSES_NAN, "on a NaN and infinities in operand 0: 2 of 120 wrong, worst at element 20: "
                    "got 0, expected nan"},
        {FLIPS_INFINITY, "on a NaN and infinities in operand 0: 2 of 120 wrong, worst at element "
                         "60: got -inf, expected inf"},
        {WRONG_ON_TIES, "on ties, zeros, values at kinks: "},
        {NEGATIVE_ZERO, "on ties, zeros, values at kinks: "},
        {WRONG_ON_LARGE, "on the type's largest numbers: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(rig_free) rig r = rig_with(cases[i].planted);
        const compare_row *row = row_of(&r, r.relu);
        expect_only_relu(&r, cases[i].says);
        cr_expect_eq(row->verdict, ADJ_VERDICT_FAIL);
        cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
        cr_expect_eq(strncmp(row->reason, cases[i].says, strlen(cases[i].says)), 0, "%s",
                     row->reason);
        cr_expect_eq(row->isolated.wrong + row->in_plan.wrong, 0);
    }
}

/* The mean and the mean square less its square, in float: right where the mean is small. */
static adj_status run_statistics(const adj_call *c)
{
    const adj_shape shape = c->group->node[0]->in[0]->type.shape;
    const int64_t channels = shape.dim[3], n = adj_shape_elems(shape) / channels;
    const float *x = c->in[0];
    float *mean = c->out[0], *variance = mean + channels;
    for (int64_t k = 0; k < channels; k++) {
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += x[i * channels + k];
            squares += x[i * channels + k] * x[i * channels + k];
        }
        mean[k] = sum / (float)n;
        variance[k] = squares / (float)n - mean[k] * mean[k];
    }
    return ADJ_OK;
}

Test(compare_special, a_large_mean)
{
    static const char *const configs[] = {"naive:f64", "spoiled"};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 9, 9, 16}});
    adj_node *y = adj_batch_norm_stats(x, ADJ_NHWC);
    spoiled.op = "batch_norm_stats";
    spoiled.run = run_statistics;
    scoped(release_comparison) const adj_comparison *c =
        comparison_of(1, &y, 2, configs, (adj_compare_opts){.exec.backends = spoiled_backends()});
    const compare_row *row = adj_comparison_row_at(c, 0);
    spoiled.run = NULL;
    cr_expect_eq(row->isolated.wrong, 0);
    cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    expect_text(row->reason, "on values with a large mean: ");
}

/* ---- sound kernels ---- */

/* Builds nodes with special values. Accepting or changing more values than the definition says is
 * not a failure; operands computed from others (max_pool_grad's y, batch_norm's statistics) are not
 * random. */
static adj_node *build(adj_graph *g, int i)
{
    const adj_pool pool = {.ksize = {1, 3, 3, 1}, .stride = {1, 2, 2, 1}, .padding = ADJ_SAME};
    const adj_conv_layer conv = {.filters = 16, .padding = ADJ_SAME};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 9, 9, 16}});
    switch (i) {
    case 0: return adj_layer_conv2d(x, "conv", &conv);
    case 1: return adj_max_pool(x, &pool);
    case 2: return adj_reduce_max(x, (adj_axes){.n = 2, .axis = {1, 2}});
    case 3: return adj_hard_swish(x);
    default: return adj_softmax(x);
    }
}

Test(compare_special, sound_kernels_are_not_blamed)
{
    static const char *const configs[] = {"naive:f64",   "naive",       "direct",
                                          "onednn",      "onednn:bf16", "onednn:fast",
                                          "direct:fast", "direct:f16"};
    for (int i = 0; i < 5; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = NULL, *dx = NULL, *y = build(g, i);
        x = adj_node_operand_at(y, 0);
        adj_grad(y, adj_input(g, "dy", ADJ_F32, adj_node_type(y).shape), 1, &x, &dx);
        adj_node *const root[] = {y, dx};
        scoped(release_comparison) const adj_comparison *c = comparison_of(
            2, root, sizeof configs / sizeof *configs, configs, (adj_compare_opts){.exec.seed = 5});
        expect_all_pass(c, adj_node_op(y));
    }
}

/* ---- sound kernels on values that a user gives ---- */

enum { ELEMENTS = 512 };

/* Compares y, of leaves a and b in the type; values: of a and b, or NULL. */
static void expect_sound(const char *label, adj_node *y, adj_node *const leaf[2],
                         double (*const value[2])(int), int exact)
{
    static const char *const configs[] = {"naive:f64", "naive", "direct"};
    const adj_dtype dtype = adj_node_type(y).dtype;
    char data[2][ELEMENTS * sizeof(double)];
    adj_leaf_value values[2];
    for (int k = 0; k < 2 && value != NULL; k++) {
        for (int i = 0; i < ELEMENTS; i++)
            adj_store(dtype, data[k], i, value[k](i));
        values[k] = (adj_leaf_value){.leaf = leaf[k], .data = data[k]};
    }
    scoped(release_comparison) const adj_comparison *c = comparison_of(
        1, &y, 3, configs,
        (adj_compare_opts){
            .exact = exact, .n_value = value != NULL ? 2 : 0, .value = values, .exec.seed = 3});
    expect_all_pass(c, label);
}

static double twelve(int i) { return i % 3 == 0 ? 12 : -1; }
static double zero_or_one(int i) { return i % 2; }
static double half(int i) { return i % 2 ? -0.5 : 0.5; }
static double infinite(int i) { return i % 7 == 1 ? INFINITY : 1 + i % 5; }

/* e^12 is infinite in f16 only, and 0 times it NaN. Half of the smallest number is 0, beside
 * infinities, too. The same operand twice has the same integers. */
Test(compare_special, sound_kernels_on_given_values)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_shape shape = {2, {16, ELEMENTS / 16}};
    adj_node *a = adj_input(g, "a", ADJ_F16, shape), *b = adj_input(g, "b", ADJ_F16, shape);
    adj_node *const leaf[] = {a, b};
    expect_sound("exp overflows", adj_mul(adj_exp(a), b), leaf,
                 (double (*const[])(int)){twelve, zero_or_one}, 0);
    expect_sound("an infinity", adj_mul(a, b), leaf, (double (*const[])(int)){half, infinite}, 0);
    adj_node *x = adj_input(g, "x", ADJ_F32, shape);
    expect_sound("a square", adj_mul(x, x), NULL, NULL, 1);
}

/* ---- one summand of many ---- */

enum { SUMMANDS = 5184 };
static float part_of_one; /* that is added of one summand */

static adj_status prepare_sum(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return prepare_one(&adj_op_reduce_sum, ADJ_F32, "slightly_off", g, candidate, p);
}

static adj_status run_sum(const adj_call *c)
{
    const float *x = c->in[0];
    float sum = 0;
    for (int i = 0; i < SUMMANDS; i++)
        sum += (i == 7 ? part_of_one : 1) * x[i];
    *(float *)c->out[0] = sum;
    return ADJ_OK;
}

/* 1 % of one is less than what rounding may give a sum of so many, but not on integers. */
Test(compare_special, one_summand_of_many)
{
    static const adj_kernel sum = {.name = "sum", .prepare = prepare_sum, .run = run_sum};
    for (part_of_one = 1; part_of_one < 1.02F; part_of_one += 0.01F) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {SUMMANDS}});
        adj_node *y = adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL});
        scoped(release_comparison) const adj_comparison *c =
            compared(y, "off", (adj_compare_opts){.exec.backends = before_naive("off", &sum)});
        const compare_row *row = adj_comparison_row_at(c, 0);
        cr_expect_str_eq(row->implementation, "slightly_off");
        cr_expect_eq(row->isolated.wrong, 0);
        cr_expect_eq(row->verdict, part_of_one > 1 ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s",
                     row->reason);
        cr_expect_eq(strstr(row->reason, "on integers: 1 of 1 wrong") != NULL, part_of_one > 1,
                     "%s", row->reason);
    }
}

/* ---- a convolution may give NaN where it multiplies padding by NaN or infinity, and nowhere
 * else ---- */

/* Pixels in a row, and channels: [1, 3, WIDTH, 2], filter [1, 2, 2, OUT], SAME: one column of
 * padding on the right, which the second tap meets. */
enum { WIDTH = 4, OUT = 5 };

static enum {
    PADDING,        /* a NaN where that tap's channel has none or an infinity */
    OTHER_CHANNELS, /* and in the same place in all channels */
    EVERYWHERE
} spread;

/* True if the filter is not finite at the second tap of channel oc. */
static int is_special(const float *filter, int64_t oc)
{
    const float *tap = filter + 2 * OUT;
    return !isfinite(tap[oc]) || !isfinite(tap[OUT + oc]);
}

static adj_status run_pads(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const float *filter = c->in[1];
    float *y = c->out[0];
    int any = 0;
    adj_status status = naive_backend()->kernels[0]->run(c);
    if (n->type.dtype != ADJ_F32)
        return status;
    for (int64_t oc = 0; oc < OUT; oc++)
        any |= is_special(filter, oc);
    for (int64_t i = 0; i < adj_shape_elems(n->type.shape); i++) {
        const int is_last = i / OUT % WIDTH == WIDTH - 1;
        if ((is_last && is_special(filter, i % OUT)) ||
            (any && (spread == EVERYWHERE || (spread == OTHER_CHANNELS && is_last))))
            y[i] = NAN;
    }
    return status;
}

TestSuite(compare_spread, .init = plan_as_usual);

static void expect(adj_verdict verdict)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_conv2d(adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 3, WIDTH, 2}}),
                             adj_input(g, "w", ADJ_F32, (adj_shape){4, {1, 2, 2, OUT}}),
                             &(adj_conv){.padding = ADJ_SAME});
    spoiled.op = "conv2d";
    spoiled.run = run_pads;
    scoped(release_comparison) const adj_comparison *c = compared(
        y, "spoiled", (adj_compare_opts){.exec.seed = 1, .exec.backends = spoiled_backends()});
    const compare_row *row = adj_comparison_row_at(c, 0);
    cr_expect_str_eq(row->implementation, "spoiled:1");
    cr_expect_eq(row->verdict, verdict, "%d: %s", (int)spread, row->reason);
    if (verdict == ADJ_VERDICT_FAIL) {
        cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
        expect_text(row->reason, "on a NaN and infinities in operand 1 (filter)");
    }
}

Test(compare_spread, no_farther_than_the_padding)
{
    for (spread = PADDING; spread <= EVERYWHERE; spread++)
        expect(spread == PADDING ? ADJ_VERDICT_PASS : ADJ_VERDICT_FAIL);
}

/* ---- labels: all classes, and -1; a kernel of the test records its operands ---- */

enum { ROWS = 128 };

static int seen[16]; /* counts of -1, 0, 1, ... */

static adj_status prepare_watching(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return prepare_one(&adj_op_sparse_softmax_cross_entropy, ADJ_F32, "watching", g, candidate, p);
}

static adj_status run_watching(const adj_call *c)
{
    const int32_t *labels = c->in[1];
    for (int i = 0; i < ROWS; i++) {
        cr_assert(labels[i] >= -1 && labels[i] < 15, "label %d", labels[i]);
        seen[labels[i] + 1]++;
        ((float *)c->out[0])[i] = 0;
    }
    return ADJ_OK;
}

static const adj_kernel watching = {
    .name = "watching", .prepare = prepare_watching, .run = run_watching};

Test(compare_labels, every_class_and_no_other)
{
    static const int classes[] = {1, 2, 10};
    const adj_backend *const *backends = before_naive("watching", &watching);
    for (int i = 0; i < 3; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){2, {ROWS, classes[i]}});
        adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {ROWS}});
        adj_node *y = adj_sparse_softmax_cross_entropy(z, labels, 0);
        memset(seen, 0, sizeof seen);
        scoped(release_comparison) const adj_comparison *c =
            compared(y, "watching", (adj_compare_opts){.exec.backends = backends, .exec.seed = 1});
        for (int k = 0; k < 16; k++)
            cr_expect_eq(seen[k] > 0, k <= classes[i], "%d classes: label %d", classes[i], k - 1);
    }
}
