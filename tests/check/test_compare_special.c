/* test_compare_special.c - special values: ties, infinities and NaN expose a kernel that is right
 * on all random values, and sound kernels are not blamed. */
#include "compare_rig.h"

#include <stdlib.h>
#include <string.h>

static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_special, .init = plan_as_usual);

Test(compare_special, faults_on_values_that_are_never_drawn)
{
    static const struct {
        fault planted;
        const char *says;
    } cases[] = {
        {LOSES_NAN, "on a NaN and infinities in operand 0: 1 of 120 wrong, worst at element 20: "
                    "got 0, expected nan"},
        {FLIPS_INFINITY, "on a NaN and infinities in operand 0: 1 of 120 wrong, worst at element "
                         "60: got -inf, expected inf"},
        {WRONG_ON_TIES, "on ties, zeros, values at kinks: "},
        {NEGATIVE_ZERO, "on ties, zeros, values at kinks: "},
        {WRONG_ON_LARGE, "on the type's largest numbers: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r = rig_with(cases[i].planted);
        const compare_row *row = row_of(&r, r.relu);
        expect_only_relu(&r, cases[i].says);
        cr_expect_eq(row->verdict, ADJ_VERDICT_FAIL);
        cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
        cr_expect_eq(strncmp(row->reason, cases[i].says, strlen(cases[i].says)), 0, "%s",
                     row->reason);
        cr_expect_eq(row->isolated.wrong + row->in_plan.wrong, 0);
        rig_free(&r);
    }
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
        adj_graph *g = adj_graph_new();
        adj_node *x = NULL, *dx = NULL, *y = build(g, i);
        x = adj_node_operand_at(y, 0);
        adj_grad(y, adj_input(g, "dy", ADJ_F32, adj_node_type(y).shape), 1, &x, &dx);
        adj_node *const root[] = {y, dx};
        const adj_comparison *c = NULL;
        const adj_compare_opts o = {.exec.n_fetch = 2,
                                    .exec.fetch = root,
                                    .n_config = sizeof configs / sizeof *configs,
                                    .config = configs,
                                    .exec.seed = 5,
                                    .runs = 1,
                                    .exec.threads = 1};
        cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", c->message);
        for (int k = 0; k < c->n_row; k++) {
            const compare_row *row = adj_comparison_row_at(c, k);
            cr_expect_eq(row->verdict, ADJ_VERDICT_PASS, "%s %s: %s", configs[row->config],
                         adj_compare_row_name(row), row->reason);
        }
        adj_comparison_free(c);
        adj_graph_free(g);
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
    const adj_comparison *c = NULL;
    const adj_compare_opts o = {.exec.n_fetch = 1,
                                .exec.fetch = &y,
                                .n_config = 3,
                                .config = configs,
                                .exact = exact,
                                .n_value = value != NULL ? 2 : 0,
                                .value = values,
                                .exec.seed = 3,
                                .runs = 1,
                                .exec.threads = 1};
    cr_assert_eq(adj_compare(adj_node_graph(y), &o, &c), ADJ_OK, "%s: %s", label, c->message);
    for (int k = 0; k < c->n_row; k++) {
        const compare_row *row = adj_comparison_row_at(c, k);
        cr_expect_eq(row->verdict, ADJ_VERDICT_PASS, "%s: %s %s: %s", label, configs[row->config],
                     adj_compare_row_name(row), row->reason);
    }
    adj_comparison_free(c);
}

static double twelve(int i) { return i % 3 == 0 ? 12 : -1; }
static double zero_or_one(int i) { return i % 2; }
static double half(int i) { return i % 2 ? -0.5 : 0.5; }
static double infinite(int i) { return i % 7 == 1 ? INFINITY : 1 + i % 5; }

/* e^12 is infinite in f16 only, and 0 times it NaN. Half of the smallest number is 0, beside
 * infinities, too. The same operand twice has the same integers. */
Test(compare_special, sound_kernels_on_given_values)
{
    adj_graph *g = adj_graph_new();
    const adj_shape shape = {2, {16, ELEMENTS / 16}};
    adj_node *a = adj_input(g, "a", ADJ_F16, shape), *b = adj_input(g, "b", ADJ_F16, shape);
    adj_node *const leaf[] = {a, b};
    expect_sound("exp overflows", adj_mul(adj_exp(a), b), leaf,
                 (double (*const[])(int)){twelve, zero_or_one}, 0);
    expect_sound("an infinity", adj_mul(a, b), leaf, (double (*const[])(int)){half, infinite}, 0);
    adj_node *x = adj_input(g, "x", ADJ_F32, shape);
    expect_sound("a square", adj_mul(x, x), NULL, NULL, 1);
    adj_graph_free(g);
}

/* ---- one summand of many ---- */

enum { SUMMANDS = 5184 };
static float part_of_one; /* that is added of one summand */

static adj_status prepare_sum(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_reduce_sum || g->node[0]->type.dtype != ADJ_F32 || candidate > 0)
        return ADJ_ENOKERNEL;
    strcpy(p->impl, "slightly_off");
    return ADJ_OK;
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
    static const adj_kernel kernel = {.name = "sum", .prepare = prepare_sum, .run = run_sum};
    static const adj_kernel *const kernels[] = {&kernel, NULL};
    static const adj_backend off = {.version = ADJ_VERSION,
                                    .name = "off",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels};
    const adj_backend *const backends[] = {&off, naive_backend(), NULL};
    static const char *const configs[] = {"naive:f64", "off"};
    for (part_of_one = 1; part_of_one < 1.02F; part_of_one += 0.01F) {
        adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {SUMMANDS}});
        adj_node *y = adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL});
        const adj_comparison *c = NULL;
        cr_assert_eq(adj_compare(g,
                                 &(adj_compare_opts){.exec.n_fetch = 1,
                                                     .exec.fetch = &y,
                                                     .n_config = 2,
                                                     .config = configs,
                                                     .runs = 1,
                                                     .exec.threads = 1,
                                                     .exec.backends = backends},
                                 &c),
                     ADJ_OK, "%s", c->message);
        const compare_row *row = adj_comparison_row_at(c, 0);
        cr_expect_str_eq(row->implementation, "slightly_off");
        cr_expect_eq(row->isolated.wrong, 0);
        cr_expect_eq(row->verdict, part_of_one > 1 ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s",
                     row->reason);
        cr_expect_eq(strstr(row->reason, "on integers: 1 of 1 wrong") != NULL, part_of_one > 1,
                     "%s", row->reason);
        adj_comparison_free(c);
        adj_graph_free(g);
    }
}
