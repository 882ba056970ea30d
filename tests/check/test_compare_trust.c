/* test_compare_trust.c - faults beyond element bounds: results that change from run to run, or that
 * are wrong in a plain run only; and failed allocations at every point. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/check/compare_rig.h"
#include "tests/counter.h"

/* Makes default plans even if ADJOINT_PLAN is set, since fused groups are inspected. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_trust, .init = plan_as_usual);

/* Within every bound, but not the same twice. */
Test(compare_trust, what_is_not_repeatable_fails)
{
    static const fault faults[] = {UNSTEADY, UNSTEADY_IN_A_PLAN};
    static const char *const says[] = {"not repeatable: two runs on the same operands",
                                       "not repeatable within the graph"};
    for (int i = 0; i < 2; i++) {
        rig r = rig_with(faults[i]);
        const compare_row *row = row_of(&r, r.relu);
        expect_only_relu(&r, says[i]);
        cr_assert_eq(row->blame, i == 0 ? ADJ_BLAME_KERNEL : ADJ_BLAME_PLAN);
        cr_assert_eq(row->isolated.wrong + row->in_plan.wrong + row->repeats, 0);
        cr_assert_not_null(strstr(row->reason, says[i]), "%s", row->reason);
        compare_result whole = adj_comparison_result_at(r.c, 1);
        cr_assert(whole.verdict == ADJ_VERDICT_FAIL && !whole.repeats);
        cr_assert_not_null(strstr(whole.reason, "not repeatable"), "%s", whole.reason);
        rig_free(&r);
    }
}

Test(compare_trust, what_is_right_on_one_thread_alone)
{
    rig r = rig_new();
    planted = RACING;
    cr_assert_eq(rig_compare(&r, (adj_compare_opts){.n_config = 2,
                                                    .config = two,
                                                    .exec.backends = r.backends,
                                                    .runs = 1,
                                                    .exec.threads = 2}),
                 ADJ_OK);
    const compare_row *row = row_of(&r, r.relu);
    cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    cr_expect_not_null(strstr(row->reason, "not repeatable: right on one thread"), "%s",
                       row->reason);
    rig_free(&r);
}

/* Every node is right where its value is kept; a group alone shows what it does when fused, and a
 * node alone what it does in place. */
Test(compare_trust, what_only_a_plain_run_shows)
{
    static const struct {
        fault planted;
        int failed, rows_failed;
        const char *says;
    } cases[] = {
        {IN_PLACE, 1, 1, "memory: relu \"relu1\" computed in place of bias_add \"conv1\""},
        {FUSED, 1, 1, " of its norm away from where it is when every node is kept"},
        {SLIGHTLY_FUSED, 0, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r = rig_with(cases[i].planted);
        compare_result whole = adj_comparison_result_at(r.c, 1);
        cr_assert_eq(r.c->n_failed, cases[i].rows_failed, "%zu", i);
        cr_assert_eq(r.c->n_whole_failed, cases[i].failed, "%zu", i);
        cr_assert_eq(whole.verdict != ADJ_VERDICT_PASS, cases[i].failed);
        cr_assert(whole.differs > 0 && whole.repeats && whole.apart > 0);
        cr_assert_not_null(strstr(whole.reason, cases[i].says), "%s", whole.reason);
        rig_free(&r);
    }
}

/* One number is so large that the bound of a relu's sums, a part of max|y|, forgives what is much
 * smaller. */
Test(compare_trust, zeros_beside_a_large_number)
{
    static const char *const configs[] = {"naive:f64", "crooked:bf16"};
    for (int small = 0; small < 2; small++) {
        float value[24];
        rig r = rig_new();
        adj_node *x = adj_input(r.g, "x2", ADJ_F32, (adj_shape){1, {24}}), *y = adj_relu(x);
        const adj_leaf_value given = {x, value};
        for (int i = 0; i < 24; i++)
            value[i] = i == 7 ? 1000 : small ? 1e-5F : 1 + (float)i / 8;
        planted = MAX_ZERO;
        cr_assert_eq(adj_compare(r.g,
                                 &(adj_compare_opts){.exec.n_fetch = 1,
                                                     .exec.fetch = &y,
                                                     .n_config = 2,
                                                     .config = configs,
                                                     .exec.backends = r.backends,
                                                     .n_value = 1,
                                                     .value = &given,
                                                     .runs = 1},
                                 &r.c),
                     ADJ_OK, "%s", r.c->message);
        const compare_row *row = adj_comparison_row_at(r.c, 0);
        cr_assert_str_eq(row->backend, "crooked");
        cr_assert_eq(row->isolated.wrong, small ? 0 : 23);
        cr_assert_eq(row->isolated.zeros, 23);
        cr_assert_eq(row->verdict, ADJ_VERDICT_FAIL); /* of the small ones, by other values */
        if (small)
            cr_assert_str_eq(row->reason, "on ties, zeros, values at kinks: 2 of 24 wrong, worst "
                                          "at element 14: got 0, expected 6");
        rig_free(&r);
    }
}

/* ---- what a configuration asks for reaches the kernels ---- */

Test(compare_trust, threads)
{
    static const struct {
        const char *config;
        int threads;
        unsigned seen;
    } cases[] = {
        {"crooked:threads=1", 3, 1 << 1}, {"crooked:threads=2", 3, 1 << 2}, {"crooked", 3, 1 << 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const configs[] = {"naive:f64", cases[i].config};
        rig r = rig_new();
        planted = SOUND;
        thread_counts = 0;
        adj_status status = rig_compare(&r, (adj_compare_opts){.n_config = 2,
                                                               .config = configs,
                                                               .exec.backends = r.backends,
                                                               .runs = 1,
                                                               .exec.threads = cases[i].threads});
        cr_assert_eq(status, ADJ_OK, "%s", r.c->message);
        cr_assert_eq(thread_counts, cases[i].seen, "%s: %x", cases[i].config, thread_counts);
        rig_free(&r);
    }
}

/* The other layout's transposes are steps of the plan; values are compared in the user's layout. */
Test(compare_trust, layouts)
{
    static const char *const configs[] = {"naive:f64", "naive", "naive:nchw", "naive:nhwc"};
    rig r = rig_new();
    adj_status status =
        rig_compare(&r, (adj_compare_opts){.n_config = 4, .config = configs, .runs = 1});
    cr_assert_eq(status, ADJ_OK, "%s", r.c->message);
    cr_assert_gt(adj_comparison_result_at(r.c, 2).steps, adj_comparison_result_at(r.c, 1).steps);
    cr_assert_eq(adj_comparison_result_at(r.c, 3).steps, adj_comparison_result_at(r.c, 1).steps);
    cr_assert_eq(r.c->n_failed + r.c->n_whole_failed, 0);
    rig_free(&r);
}

/* ---- out of memory at the n-th allocation ---- */

static adj_status elsewhere(void *user, const char *isa, const void *request, size_t bytes,
                            void **response, size_t *response_bytes, adj_error *error)
{
    (void)user;
    (void)isa;
    (void)error;
    return adj_trial_run(request, bytes, NULL, NULL, response, response_bytes);
}

static adj_status small_compare(counter *c, const char *config, int guard)
{
    const adj_allocator allocator = {count_alloc, count_free, c};
    const char *const configs[] = {"naive:f64", config};
    adj_graph *g = adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &allocator});
    if (g == NULL)
        return ADJ_ENOMEM;
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 4, 4, 2}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 2, 2}});
    adj_node *b = adj_input(g, "b", ADJ_F32, (adj_shape){1, {2}}), *dw = NULL;
    adj_node *h = adj_bias_add(adj_conv2d(x, w, NULL), b, ADJ_NHWC);
    if (strstr(config, "bf16") != NULL) /* its statistics stay f32, between casts */
        h = adj_batch_norm(h, adj_batch_norm_stats(h, ADJ_NHWC), b, b, 0.5, ADJ_NHWC);
    adj_node *y = adj_relu(h);
    adj_node *loss = adj_reduce_mean(y, (adj_axes){.n = ADJ_ALL});
    const adj_comparison *comparison = NULL;
    adj_status status = adj_graph_status(g);
    if (status == ADJ_OK)
        status = adj_grad(loss, NULL, 1, &w, &dw);
    adj_node *roots[] = {loss, dw};
    if (status == ADJ_OK) {
        const adj_compare_opts o = {.exec.n_fetch = 2,
                                    .exec.fetch = roots,
                                    .n_config = 2,
                                    .config = configs,
                                    .runs = 1,
                                    .exec.threads = 1};
        const adj_trial_opts trials = {.guard = guard, .elsewhere = elsewhere};
        status = adj_compare_with(g, &o, &trials, &comparison);
        cr_assert(status == ADJ_OK || comparison->message[0] != '\0');
        if (status == ADJ_OK)
            cr_assert_eq(comparison->n_failed, 0);
    }
    adj_comparison_free(comparison);
    adj_graph_free(g);
    return status;
}

static void run_out_of_memory(const char *config, int guard)
{
    static uint64_t stack[MAX_CALLS + 1];
    counter all = {.stack = stack};
    int failed = 0;
    cr_assert_eq(small_compare(&all, config, guard), ADJ_OK);
    cr_assert_eq(all.live, 0);
    cr_assert(all.calls <= MAX_CALLS, "%ld", all.calls);
    for (long n = 1; n <= all.calls; n++) {
        if (!is_first_or_last_from_there(&all, n))
            continue;
        counter c = {.fail_at = n};
        adj_status status = small_compare(&c, config, guard);
        cr_assert_eq(status, ADJ_ENOMEM, "%s: allocation %ld of %ld failed, status: %s", config, n,
                     all.calls, adj_status_name(status));
        cr_assert_eq(c.live, 0, "%s: allocation %ld of %ld failed, %ld leaked", config, n,
                     all.calls, c.live);
        failed++;
    }
    cr_assert_gt(failed, 100); /* how many places there are is a matter of inlining, too */
}

Test(compare_trust, out_of_memory_naive) { run_out_of_memory("naive", 0); }
Test(compare_trust, out_of_memory_bf16) { run_out_of_memory("naive:bf16", 0); }
Test(compare_trust, out_of_memory_direct) { run_out_of_memory("direct", 0); }
Test(compare_trust, out_of_memory_elsewhere) { run_out_of_memory("direct", 1); }
Test(compare_trust, out_of_memory_onednn) { run_out_of_memory("onednn", 0); }
