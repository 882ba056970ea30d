/* test_compare_trust.c - faults beyond element bounds: results that change from run to run, or that
 * are wrong in a plain run only; plans of another process; failed allocations at every point. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/check/checked.h"
#include "tests/check/compare_rig.h"
#include "tests/counter.h"

TestSuite(compare_trust, .init = plan_as_usual);

/* Within every bound, but not the same twice. */
Test(compare_trust, what_is_not_repeatable_fails)
{
    static const fault faults[] = {UNSTEADY, UNSTEADY_IN_A_PLAN};
    static const char *const says[] = {"not repeatable: two runs on the same operands",
                                       "not repeatable within the graph"};
    for (int i = 0; i < 2; i++) {
        scoped(rig_free) rig r = rig_with(faults[i]);
        const compare_row *row = row_of(&r, r.relu);
        expect_only_relu(&r, says[i]);
        cr_assert_eq(row->blame, i == 0 ? ADJ_BLAME_KERNEL : ADJ_BLAME_PLAN);
        cr_assert_eq(row->isolated.wrong + row->in_plan.wrong + row->repeats, 0);
        expect_text(row->reason, says[i]);
        compare_result whole = adj_comparison_result_at(r.c, 1);
        cr_assert(whole.verdict == ADJ_VERDICT_FAIL && !whole.repeats);
        expect_text(whole.reason, "not repeatable");
    }
}

/* A run on the same values gives the same bits again. */
Test(compare_trust, what_is_kept_of_an_earlier_run)
{
    scoped(rig_free) rig r = rig_with(STALE);
    const compare_row *row = row_of(&r, r.relu);
    cr_expect_eq(row->verdict, ADJ_VERDICT_FAIL);
    cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    cr_expect_eq(row->isolated.wrong, 1);
}

/* Steps with updates: a next value that is no number, or that is fetched before it is assigned. */
Test(compare_trust, sound_updates)
{
    static const char *const configs[] = {"naive:f64", "naive", "direct"};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_shape shape = {1, {8}};
    adj_node *first = adj_param(g, "first", ADJ_F32, shape, adj_init_constant(1));
    adj_node *p = adj_param(g, "p", ADJ_F32, shape, adj_init_constant(-1));
    adj_updates *u = adj_updates_new(g);
    cr_assert_eq(adj_updates_add(u, first, adj_scale(first, 0.5)), ADJ_OK);
    cr_assert_eq(adj_updates_add(u, p, adj_log(p)), ADJ_OK);
    scoped(release_comparison) const adj_comparison *c =
        comparison_of(1, &p, 3, configs, (adj_compare_opts){.exec.updates = u});
    expect_all_pass(c, "updates");
    cr_assert_eq(c->n_whole_failed, 0, "%s", adj_comparison_result_at(c, 1).reason);
}

Test(compare_trust, what_is_right_on_one_thread_alone)
{
    scoped(rig_free) rig r = rig_with_threads(RACING, "crooked", 2);
    const compare_row *row = row_of(&r, r.relu);
    cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    expect_text(row->reason, "not repeatable: right on one thread");
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
        {IN_PLACE, 1, 1, "memory: relu by crooked:relu computed in place of operand 0 differs"},
        {FUSED, 1, 1, " of its norm away from where it is when every node is kept"},
        {SLIGHTLY_FUSED, 0, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scoped(rig_free) rig r = rig_with(cases[i].planted);
        compare_result whole = adj_comparison_result_at(r.c, 1);
        cr_assert_eq(r.c->n_failed, cases[i].rows_failed, "%zu", i);
        cr_assert_eq(r.c->n_whole_failed, cases[i].failed, "%zu", i);
        cr_assert_eq(whole.verdict != ADJ_VERDICT_PASS, cases[i].failed);
        cr_assert(whole.differs > 0 && whole.repeats && whole.apart > 0);
        expect_text(whole.reason, cases[i].says);
    }
}

/* Readers of the operand are fed wrong numbers, and no plan is to blame. */
Test(compare_trust, a_kernel_that_writes_over_its_operand)
{
    static const char says[] = "writes over a value that is not its result";
    scoped(rig_free) rig r = rig_with(OVER_OPERAND);
    cr_expect_eq(row_of(&r, r.relu)->blame, ADJ_BLAME_KERNEL);
    expect_text(row_of(&r, r.relu)->reason, says);
    expect_text(adj_comparison_result_at(r.c, 1).reason, says);
    expect_text(adj_comparison_result_at(r.c, 1).reason, "memory: relu \"relu1\" by crooked:relu");
    for (int i = 0; i < r.c->n_row; i++)
        cr_expect_neq(adj_comparison_row_at(r.c, i)->blame, ADJ_BLAME_PLAN);
}

/* All that is computed after it is rounded up, also by others. */
Test(compare_trust, a_kernel_that_leaves_another_rounding)
{
    scoped(rig_free) rig r = rig_with(LEAVES_ROUNDING);
    cr_expect_eq(row_of(&r, r.relu)->blame, ADJ_BLAME_KERNEL);
    expect_text(row_of(&r, r.relu)->reason, "leaves another rounding mode");
    cr_expect_eq(fegetround(), FE_TONEAREST);
}

/* One number is so large that the bound of a relu's sums, a part of max|y|, forgives what is much
 * smaller. */
Test(compare_trust, zeros_beside_a_large_number)
{
    static const char *const configs[] = {"naive:f64", "crooked:bf16"};
    for (int small = 0; small < 2; small++) {
        float value[24];
        scoped(rig_free) rig r = rig_new();
        adj_node *x = adj_input(r.g, "x2", ADJ_F32, (adj_shape){1, {24}}), *y = adj_relu(x);
        const adj_leaf_value given = {x, value};
        for (int i = 0; i < 24; i++)
            value[i] = i == 7 ? 1000 : small ? 1e-5F : 1 + (float)i / 8;
        planted = MAX_ZERO;
        r.c = comparison_of(1, &y, 2, configs,
                            (adj_compare_opts){.exec.backends = before_naive("crooked", &kernel),
                                               .n_value = 1,
                                               .value = &given});
        const compare_row *row = adj_comparison_row_at(r.c, 0);
        cr_assert_str_eq(row->backend, "crooked");
        cr_assert_eq(row->isolated.wrong, small ? 0 : 23);
        cr_assert_eq(row->isolated.zeros, 23);
        cr_assert_eq(row->verdict, ADJ_VERDICT_FAIL); /* the small ones fail by other values */
        if (small)
            cr_assert_str_eq(row->reason, "on values close to 0: 1 of 24 wrong, worst at element "
                                          "7: got 0, expected 0.000953674316");
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
        thread_counts = 0;
        scoped(rig_free) rig r = rig_with_threads(SOUND, cases[i].config, cases[i].threads);
        cr_assert_eq(thread_counts, cases[i].seen, "%s: %x", cases[i].config, thread_counts);
    }
}

/* The other layout's transposes are steps of the plan; values are compared in the user's layout. */
Test(compare_trust, layouts)
{
    static const char *const configs[] = {"naive:f64", "naive", "naive:nchw", "naive:nhwc"};
    scoped(rig_free) rig r = rig_new();
    rig_compare(&r, 4, configs, (adj_compare_opts){0});
    cr_assert_gt(adj_comparison_result_at(r.c, 2).steps, adj_comparison_result_at(r.c, 1).steps);
    cr_assert_eq(adj_comparison_result_at(r.c, 3).steps, adj_comparison_result_at(r.c, 1).steps);
    cr_assert_eq(r.c->n_failed + r.c->n_whole_failed, 0);
}

/* ---- the same process as another, whose second response may be cut off ---- */

typedef struct {
    int calls, is_cut;
    size_t left, whole; /* bytes of the second response: of the plain run */
} wire;

static adj_status elsewhere(void *user, const char *isa, const void *request, size_t bytes,
                            void **response, size_t *response_bytes, adj_error *error)
{
    wire *w = user;
    (void)isa;
    (void)error;
    adj_status status = adj_trial_run(request, bytes, NULL, NULL, response, response_bytes);
    if (++w->calls == 2 && status == ADJ_OK) {
        w->whole = *response_bytes;
        *response_bytes = w->is_cut ? w->left : w->whole;
    }
    return status;
}

/* ---- out of memory at the n-th allocation ---- */

static adj_status small_compare(counter *c, const char *config, int guard)
{
    const adj_allocator allocator = {count_alloc, count_free, c};
    const char *const configs[] = {"naive:f64", config};
    scoped(release_graph) adj_graph *g =
        adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &allocator});
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
    scoped(release_comparison) const adj_comparison *comparison = NULL;
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
        wire whole = {0};
        const adj_trial_opts trials = {.guard = guard, .elsewhere = elsewhere, .user = &whole};
        status = adj_compare_with(g, &o, &trials, &comparison);
        cr_assert(status == ADJ_OK || comparison->message[0] != '\0');
        if (status == ADJ_OK)
            cr_assert_eq(comparison->n_failed, 0);
    }
    return status;
}

static void run_out_at_each_place(const char *config, int guard)
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
    cr_assert_gt(failed, 100); /* the number of places depends on inlining, too */
}

Test(compare_trust, out_of_memory_naive) { run_out_at_each_place("naive", 0); }
Test(compare_trust, out_of_memory_bf16) { run_out_at_each_place("naive:bf16", 0); }
Test(compare_trust, out_of_memory_direct) { run_out_at_each_place("direct", 0); }
Test(compare_trust, out_of_memory_elsewhere) { run_out_at_each_place("direct", 1); }
Test(compare_trust, out_of_memory_onednn) { run_out_at_each_place("onednn", 0); }

/* ---- the plan of a run in another process is returned whole or refused ---- */

static const adj_comparison *compare_elsewhere(adj_graph *g, const char *config, wire *w)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 3, 3, 4}});
    adj_node *b = adj_const(g, ADJ_F32, (adj_shape){1, {4}}, (const float[]){1, -1, 0.5F, 2});
    adj_node *y = adj_mul(adj_relu(adj_bias_add(x, b, ADJ_NHWC)), x);
    return compared_with(y, config, (adj_compare_opts){.exec.seed = 1},
                         (adj_trial_opts){.guard = w != NULL, .elsewhere = elsewhere, .user = w});
}

/* Makes default plans even if ADJOINT_PLAN is set, since fused groups are inspected. */
TestSuite(compare_plan, .init = plan_as_usual);

/* The plan comes back: the same groups as here, in the types of that process. */
Test(compare_plan, comes_back)
{
    static const char *const configs[] = {"direct", "direct:bf16", "direct:f16", "onednn:f16"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        wire w = {0};
        scoped(release_graph) adj_graph *g = adj_graph_new(), *h = adj_graph_new();
        scoped(release_comparison)
            const adj_comparison *here = compare_elsewhere(g, configs[i], NULL),
                                 *there = compare_elsewhere(h, configs[i], &w);
        int n = here->n_row, n_group = 0;
        cr_assert_eq(there->n_row, n, "%s", configs[i]);
        cr_assert_eq(here->n_failed + there->n_failed, 0);
        for (int k = 0; k < n; k++) {
            const compare_row *a = adj_comparison_row_at(here, k);
            const compare_row *b = adj_comparison_row_at(there, k);
            n_group += a->group[0] != '\0';
            cr_assert_str_eq(a->group, b->group);
            cr_assert_str_eq(a->implementation, b->implementation);
            cr_assert_eq(adj_node_id(a->node), adj_node_id(b->node));
            cr_assert_float_eq(a->isolated.worst, b->isolated.worst, 0);
        }
        if (i < 2)
            cr_assert_gt(n_group, 0, "%s", configs[i]);
    }
}

Test(compare_plan, cut_off)
{
    for (wire w = {.is_cut = 1}; w.whole == 0 || w.left < w.whole; w.left += 13, w.calls = 0) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        scoped(release_comparison) const adj_comparison *c = compare_elsewhere(g, "direct", &w);
        cr_assert_eq(adj_comparison_result_at(c, 1).verdict, ADJ_VERDICT_CRASH, "%zu", w.left);
        cr_assert_str_eq(adj_comparison_result_at(c, 1).reason, "the response is cut off");
        for (int i = 0; i < c->n_row; i++)
            cr_assert_str_empty(adj_comparison_row_at(c, i)->group);
    }
}
