/* test_gradcheck.c - the gradient checker raises no false alarm, and the rest of its contract. */
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/counter.h"
#include "tests/training.h"

/* 40 seeds: every type, method, backend and order has its turn. */
enum { SOUND_SEEDS = 40 };

static void expect_sound(const op_args *args, const adj_gradcheck_opts *o)
{
    const char *op = args->op;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_gradcheck) const adj_gradcheck_report *r = checked(built(g, args), o);
    int alarms = r->n_result[ADJ_GRADCHECK_FAIL] + r->n_result[ADJ_GRADCHECK_INCONCLUSIVE];
    if (alarms > 0)
        adj_gradcheck_print(stderr, r);
    cr_expect_eq(alarms, 0, "%s %s seed %d order %d on %s: a false alarm", op, args->dtype,
                 (int)o->exec.seed, o->order, o->exec.backend);
    cr_expect_gt(r->n_row, 0, "%s has no row", op);
}

/* Every op of the registry; types, backends and methods take turns. */
Test(gradcheck, no_false_alarm)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16"};
    static const adj_gradcheck_method methods[] = {ADJ_GRADCHECK_AUTO, ADJ_GRADCHECK_AUTO,
                                                   ADJ_GRADCHECK_DIRECTIONAL,
                                                   ADJ_GRADCHECK_RICHARDSON};
    static const char *const backends[] = {"onednn", "naive", "direct"};
    for (int seed = 1; seed <= repeats(SOUND_SEEDS); seed++)
        for (int i = 0; op_name_at(i) != NULL; i++) {
            adj_gradcheck_opts o = {.exec.seed = (uint64_t)seed,
                                    .draws = 1 + seed % 3,
                                    .exec.threads = 1,
                                    .method = methods[(seed / 8) % 4],
                                    .order = seed % 40 == 0 ? 2 : 1,
                                    .exec.backend = backends[seed / 4 % 3]};
            const op_args args = {.op = op_name_at(i), .dtype = dtypes[seed % 4]};
            expect_sound(&args, &o);
        }
}

/* A passing row shows a comparison that was made, with its own tolerance: errors of a float32
 * gradient lie below 1e-5 of its size, and a tolerance near it. */
Test(gradcheck, numbers_of_a_passing_row)
{
    const op_args ops[] = {{.op = "hard_swish"}, {.op = "batch_norm"}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        scoped(release_gradcheck) const adj_gradcheck_report *r =
            checked(built(g, &ops[i]), &(adj_gradcheck_opts){.exec.threads = 1});
        cr_expect_gt(r->n_row, 0);
        for (int k = 0; k < r->n_row; k++) {
            const gradcheck_detail *w = adj_gradcheck_row_at(r, k);
            cr_expect(w->result == ADJ_GRADCHECK_PASS && w->worst_rel < 1e-5 &&
                          w->worst_abs <= w->tolerance && w->tolerance < 1e-5,
                      "%s %s: %g %g %g", w->op, w->wrt, w->worst_rel, w->worst_abs, w->tolerance);
        }
    }
}

/* A product without elements has gradients without elements. */
Test(gradcheck, no_elements)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F64, (adj_shape){2, {3, 0}});
    scoped(release_gradcheck) const adj_gradcheck_report *r =
        checked(adj_square(x), &(adj_gradcheck_opts){.exec.threads = 1});
    cr_expect_eq(r->n_result[ADJ_GRADCHECK_FAIL], 0);
    cr_expect_str_eq(r->row[0].index, "");
}

/* Convolutions as direct's kernels take them: whole panels and rest, few channels and many,
 * phases of strides, gathered windows; gemm, filter_gemm and the depthwise ones. */
Test(gradcheck, convolutions_of_direct)
{
    static const op_args cases[] = {
        {.op = "conv2d", .in = "2,24,24,12", .filter = "1,1,12,8"},
        {.op = "conv2d", .in = "1,6,7,16", .filter = "3,3,16,24"},
        {.op = "conv2d", .in = "1,9,8,5", .filter = "3,3,5,19", .attr = "strides=1,2,2,1"},
        {.op = "conv2d", .in = "2,12,5,3", .filter = "5,5,3,16"},
        {.op = "conv2d", .in = "1,4,4,72", .filter = "3,3,72,8"},
        {.op = "conv2d", .in = "1,9,9,6", .filter = "3,3,6,8", .attr = "dilations=1,2,2,1"},
        {.op = "conv2d", .in = "1,8,8,8", .filter = "3,3,4,8"},
        {.op = "depthwise_conv2d_native", .in = "1,9,9,16", .filter = "3,3,16,1"},
        {.op = "depthwise_conv2d_native",
         .in = "1,9,9,5",
         .filter = "3,3,5,2",
         .attr = "strides=1,2,2,1"}};
    static const char *const dtypes[] = {"f32", "f64", "bf16"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            adj_gradcheck_opts o = {
                .exec.seed = 1 + i, .draws = 3, .exec.threads = 1, .exec.backend = "direct"};
            op_args args = cases[i];
            args.dtype = dtypes[k];
            expect_sound(&args, &o);
        }
}

/* Nodes for which a bound that is computed otherwise was too small. */
Test(gradcheck, bounds_of_what_kernels_round)
{
    static const struct {
        op_args args;
        adj_gradcheck_opts opts;
    } cases[] = {
        /* linear in dy, by a factor that the kernel rounds several times */
        {{.op = "silu_grad", .dtype = "f32", .in = "17,13,9,33", .filter = "17,13,9,33"},
         {.exec.seed = 488768, .exec.threads = 2, .exec.backend = "onednn"}},
        /* on ties a value on the way to the gradient leaves f16's range, and comes back */
        {{.op = "pow", .dtype = "f16", .in = "2,3,4", .filter = "same"},
         {.exec.seed = 2, .exec.threads = 1, .exec.backend = "naive"}},
        /* dgamma is linear in dy, by a factor that is itself a sum that cancels: that of absolute
         * values is no larger */
        {{.op = "group_norm_grad", .dtype = "f32", .in = "40,24", .attr = "epsilon=1e-5,groups=2"},
         {.exec.seed = 1, .exec.threads = 1, .order = 2, .exec.backend = "onednn"}},
        {{.op = "group_norm_grad", .dtype = "f32", .in = "40,24", .attr = "epsilon=1e-5,groups=2"},
         {.exec.seed = 2, .exec.threads = 1, .order = 2, .exec.backend = "onednn"}},
        {{.op = "group_norm_grad", .dtype = "f32", .in = "40,24", .attr = "epsilon=1e-5,groups=2"},
         {.exec.seed = 3, .exec.threads = 1, .order = 2, .exec.backend = "onednn"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_sound(&cases[i].args, &cases[i].opts);
}

Test(gradcheck, every_op_can_be_named)
{
    for (const adj_op *const *op = adj_ops; *op != NULL; op++) {
        int known = ((*op)->flags & ADJ_OP_INTERNAL) != 0;
        for (int i = 0; op_name_at(i) != NULL; i++)
            known |= strcmp(op_name_at(i), (*op)->name) == 0;
        cr_expect(known, "cli/op/build.c does not know %s", (*op)->name);
    }
}

/* ---- the rest of the contract ---- */

Test(gradcheck, a_model_node_by_node)
{
    scoped(training_free) training t =
        training_of("lenet", (adj_model_opts){.batch = 2}, &with_momentum);
    scoped(release_gradcheck) const adj_gradcheck_report *r = NULL;
    cr_assert_eq(adj_gradcheck(t.loss, NULL, &r), ADJ_OK, "%s", r->message);
    cr_expect_eq(r->verdict, ADJ_GRADCHECK_PASS);
    cr_expect_gt(r->n_result[ADJ_GRADCHECK_PASS], 20);
}

/* The steps of an optimizer, each kind and shape once, beside the loss's gradients. */
Test(gradcheck, steps_of_an_optimizer)
{
    static const char *const kinds[] = {"ema", "adam_step", "next_step"};
    scoped(release_graph) adj_graph *g = adj_graph_new(), *other = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {4, 3}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){2, {3, 5}}, (adj_init){0});
    adj_node *y = adj_matmul(x, w, 0);
    adj_node *loss = adj_reduce_sum(y, (adj_axes){.n = ADJ_ALL});
    adj_gradcheck_opts o = {.exec.threads = 1, .exec.updates = adj_adam(loss, 0)};
    scoped(release_gradcheck) const adj_gradcheck_report *r = NULL, *refused = NULL;
    int found[3] = {0};
    cr_assert_eq(adj_gradcheck(loss, &o, &r), ADJ_OK, "%s", r->message);
    cr_expect_eq(r->verdict, ADJ_GRADCHECK_PASS);
    for (int i = 0; i < r->n_row; i++)
        for (int k = 0; k < 3; k++)
            if (strcmp(r->row[i].op, kinds[k]) == 0) {
                cr_expect_str_eq(adj_gradcheck_row_at(r, i)->method, "formula");
                found[k]++;
            }
    cr_expect_eq(found[0], 2); /* rows of both moments, whose attributes differ */
    cr_expect_eq(found[1], 1);
    cr_expect_eq(found[2], 1);
    o.exec.updates = adj_updates_new(other);
    cr_expect_eq(adj_gradcheck(loss, &o, &refused), ADJ_EARG);
}

Test(gradcheck, bad_arguments_are_refused)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
    const adj_gradcheck_opts bad[] = {{.order = 3},
                                      {.order = -1},
                                      {.draws = -1},
                                      {.rtol = -1},
                                      {.method = 77},
                                      {.exec.backend = "onednm"},
                                      {.exec.backend = "x=y"},
                                      {.draws = 1000000}};
    const adj_gradcheck_report *r;
    cr_expect_eq(adj_gradcheck(NULL, NULL, &r), ADJ_EARG);
    cr_expect_neq(r->message[0], '\0');
    adj_gradcheck_free(r);
    cr_expect_eq(adj_gradcheck(y, NULL, NULL), ADJ_EARG);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(adj_gradcheck(y, &bad[i], &r), ADJ_EARG, "row %zu", i);
        cr_expect_neq(r->message[0], '\0');
        adj_gradcheck_free(r);
    }
    adj_gradcheck_free(NULL);
}

/* ---- out of memory at the n-th allocation ---- */

Test(gradcheck, out_of_memory)
{
    counter c = {.fails_on = 1};
    adj_allocator allocator = {count_alloc, count_free, &c};
    scoped(release_graph) adj_graph *g =
        adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &allocator});
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 4, 4, 2}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 2, 2}});
    adj_node *y = adj_relu(adj_conv2d(x, w, NULL));
    adj_gradcheck_opts o = {.exec.backend = "naive", .draws = 1};
    adj_status status = ADJ_ENOMEM;
    const long before = c.live;
    long n = 1;
    for (; status != ADJ_OK && n < 5000; n++) {
        const adj_gradcheck_report *r;
        c.calls = 0;
        c.fail_at = n;
        status = adj_gradcheck(y, &o, &r);
        cr_assert(status == ADJ_OK || status == ADJ_ENOMEM, "allocation %ld: %s: %s", n,
                  adj_status_name(status), r->message);
        cr_assert_eq(status == ADJ_OK, r->message[0] == '\0', "allocation %ld", n);
        cr_assert_eq(r->verdict, status == ADJ_OK ? ADJ_GRADCHECK_PASS : ADJ_GRADCHECK_NOT_CHECKED,
                     "allocation %ld", n);
        adj_gradcheck_free(r);
        cr_assert_eq(c.live, before, "allocation %ld: leaks", n);
    }
    cr_expect_eq(status, ADJ_OK);
    cr_expect_gt(n, 50);
}

/* A name is the caller's: it ends no line of the table, and does nothing to a terminal. */
Test(gradcheck, names_cannot_forge_a_report)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {3}});
    adj_node *y = adj_label(adj_tanh(x), "y\nsummary: 9 checked, 9 pass\x1b[2J\xc2\x9b");
    const adj_gradcheck_opts o = {.exec.backend = "naive", .exec.threads = 1};
    scoped(release_gradcheck) const adj_gradcheck_report *r = checked(y, &o);
    scoped(release) char *printed = report_text(r);
    expect_text(printed, " y\\x0asummary: 9 checked, 9 pass\\x1b[2J\\xc2\\x9b ");
    cr_expect_null(strchr(printed, '\x1b'));
    cr_expect_null(strstr(printed, "\nsummary: 9"), "%s", printed);
    expect_text(printed, "\nsummary: 1 checked, 1 pass");
}
