/* test_compare_mixed.c - adj_compare in mixed precision of either half type: parsing of
 * configurations, sound kernels pass, bounds belong to the half type, and fused groups get
 * gradients of the plan's magnitude. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/check/compare_rig.h"
#include "tests/check/spoil.h"

TestSuite(compare_mixed, .init = plan_as_usual);

Test(compare_mixed, configurations)
{
    static const struct {
        const char *text;
        adj_precision precision;
        int has_dtype;
        adj_dtype dtype;
    } cases[] = {
        {"onednn", ADJ_PRECISION_AS_BUILT, 0, 0},
        {"onednn:mixed", ADJ_PRECISION_BF16, 0, 0},
        {"onednn:mixed:bf16", ADJ_PRECISION_BF16, 0, 0},
        {"onednn:mixed:f16", ADJ_PRECISION_F16, 0, 0},
        {"onednn:threads=2:mixed:f16:nchw", ADJ_PRECISION_F16, 0, 0},
        {"onednn:bf16:mixed", ADJ_PRECISION_BF16, 1, ADJ_BF16},
        {"onednn:f16", ADJ_PRECISION_AS_BUILT, 1, ADJ_F16},
        {"onednn:f16:mixed", ADJ_PRECISION_BF16, 1, ADJ_F16},
        {"onednn:mixed:f16:bf16", ADJ_PRECISION_F16, 1, ADJ_BF16},
        {"onednn:mixed:f32", ADJ_PRECISION_BF16, 1, ADJ_F32},
        {"onednn:mixed:fast:f16", ADJ_PRECISION_BF16, 1, ADJ_F16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adj_compare_config c;
        adj_error error = {0};
        cr_assert_eq(adj_compare_config_parse(cases[i].text, NULL, &c, &error), ADJ_OK, "%s",
                     error.message);
        cr_expect_eq(c.precision, cases[i].precision, "%s", cases[i].text);
        cr_expect_eq(c.has_dtype, cases[i].has_dtype, "%s", cases[i].text);
        cr_expect(!c.has_dtype || c.dtype == cases[i].dtype, "%s", cases[i].text);
    }
    adj_compare_config c;
    adj_error error;
    cr_assert_eq(adj_compare_config_parse("onednn:mixed:f17", NULL, &c, &error), ADJ_EARG);
    expect_text(error.message, "did you mean f16?");
}

/* The size of the error is the type's: 20 log10(2^12) = 72 dB of values rounded to 11 bits, 54 dB
 * of those rounded to 8, a little more as errors are spread evenly. */
Test(compare_mixed, sound_kernels)
{
    static const char *const configs[] = {"naive:f64",        "naive:mixed:f16",
                                          "onednn:mixed:f16", "direct:mixed:f16",
                                          "naive:mixed",      "onednn:fast:mixed:f16"};
    for (int exact = 0; exact < 2; exact++) {
        scoped(rig_free) rig r = rig_new();
        rig_compare(&r, 6, configs,
                    (adj_compare_opts){.exec.threads = 1, .exec.seed = 4, .exact = exact});
        cr_expect_eq(r.c->n_failed, 0);
        cr_expect_eq(r.c->n_whole_failed, 0);
        for (int i = 0; i < r.c->n_row; i++) {
            const compare_row *row = adj_comparison_row_at(r.c, i);
            const int is_f16 = row->config == 1;
            if (strcmp(adj_compare_row_name(row), "conv2d") != 0 || exact ||
                (!is_f16 && row->config != 4))
                continue;
            expect_text(row->origin, is_f16 ? "u_f16 mixed" : "u_bf16 mixed");
            cr_expect(row->isolated.sqnr > (is_f16 ? 70 : 52) &&
                          row->isolated.sqnr < (is_f16 ? 80 : 62),
                      "%g dB", row->isolated.sqnr);
        }
    }
}

/* ---- a convolution that is off by 2^-9: nothing beside bf16's rounding, too much for f16's ----
 */

Test(compare_mixed, the_bound_is_of_the_type_asked_for)
{
    static const char *const configs[] = {"naive:f64", "spoiled:mixed:bf16", "spoiled:mixed:f16"};
    scoped(rig_free) rig r = rig_new();
    spoiled.op = "conv2d";
    spoiled.factor = 1 + 0x1p-9;
    rig_compare(
        &r, 3, configs,
        (adj_compare_opts){.exec.backends = spoiled_backends(), .exec.threads = 1, .exec.seed = 4});
    int seen = 0;
    for (int i = 0; i < r.c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(r.c, i);
        const int is_off = row->config == 2 && strcmp(adj_compare_row_name(row), "conv2d") == 0;
        seen += is_off;
        cr_expect_eq(row->verdict, is_off ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s %s",
                     configs[row->config], adj_compare_row_name(row));
    }
    cr_expect_eq(seen, 2);
}

/* ---- what is scaled ---- */

/* Gradients of about 2^-26 are no f16 numbers, but are stored 1024 times as large: that is what
 * nodes alone and groups see, or they would compare zeros. */
Test(compare_mixed, gradients_are_as_large_as_in_the_plan)
{
    static const char *const configs[] = {"naive:f64", "direct:mixed:f16", "onednn:mixed:f16"};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_shape image = {4, {2, 4, 4, 2}};
    const adj_conv_layer conv = {.filters = 2, .padding = ADJ_SAME};
    adj_node *x = adj_input(g, "x", ADJ_F32, image);
    adj_node *t = adj_input(g, "t", ADJ_F32, (adj_shape){2, {2, 8}});
    adj_node *h = adj_layer_dense(adj_relu(adj_layer_conv2d(x, "a", &conv)), "b", 8, NULL);
    adj_node *y = adj_mul(adj_layer_dense(adj_relu(h), "c", 8, NULL), t);
    adj_node *loss = adj_scale(adj_reduce_sum(y, (adj_axes){.n = ADJ_ALL}), 0x1p-26);
    adj_updates *u = adj_sgd(loss, 0);
    scoped(release_comparison) const adj_comparison *c =
        comparison_of(1, &loss, 3, configs, (adj_compare_opts){.exec.updates = u, .exec.seed = 2});
    cr_expect_eq(c->n_failed + c->n_whole_failed, 0);
    int alone = 0, groups = 0;
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        const char *name = adj_compare_row_name(row);
        if (strstr(name, "relu_grad") == NULL && strstr(name, "conv2d_backprop") == NULL)
            continue;
        alone += row->group[0] == '\0';
        groups += row->group[0] != '\0';
        cr_expect_lt(4 * row->isolated.zeros, 3 * row->isolated.n, "%s %s", configs[row->config],
                     name);
    }
    cr_expect(alone > 0 && groups > 0, "%d, %d", alone, groups);
}

/* Results below the smallest normal f16, and operands rounded in the graph, may be lost without a
 * failure. */
Test(compare_mixed, small_numbers)
{
    static const char *const configs[] = {"naive:f64", "naive:mixed:f16", "onednn:mixed:f16"};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 5, 5, 3}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 3, 4}});
    adj_node *small = adj_conv2d(adj_scale(x, 0x1p-14), adj_scale(w, 0x1p-4), NULL);
    adj_node *large = adj_conv2d(adj_scale(x, 0x1p-18), adj_scale(w, 0x1p4), NULL);
    adj_node *roots[] = {small, large};
    scoped(release_comparison) const adj_comparison *c =
        comparison_of(2, roots, 3, configs, (adj_compare_opts){.exec.seed = 2});
    expect_all_pass(c, "small numbers");
    cr_expect_eq(c->n_whole_failed, 0);
}
