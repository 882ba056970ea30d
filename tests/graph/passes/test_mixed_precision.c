/* test_mixed_precision.c - mixed precision: which values are stored in a half type, and that
 * nothing else changes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/harness.h"
#include "tests/training.h"

enum { BATCH = 4 };

static training new_network(const char *model, const adj_optimizer_opts *o)
{
    return training_of(model, (adj_model_opts){.batch = BATCH}, o);
}

static adj_exec *planned(const training *n, const char *backend, adj_precision precision,
                         FILE *trace)
{
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &n->loss,
                       .updates = n->updates,
                       .backend = backend,
                       .precision = precision,
                       .threads = 1,
                       .debug = &(adj_exec_debug){.canaries = 1, .trace = trace}};
    return plan_of(n->g, &o);
}

/* Lines of a text that hold both words. */
static int lines_with(const char *text, const char *word, const char *other)
{
    int n = 0;
    char line[4096];
    for (const char *at = text; *at != '\0'; at += strcspn(at, "\n") + (strchr(at, '\n') != NULL)) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        n += strstr(line, word) != NULL && strstr(line, other) != NULL;
    }
    return n;
}

/* An op, whether its results are wide, and the least number of lines that it has. */
typedef struct {
    const char *op;
    int is_wide, at_least;
} op_row;

static void check_types(const char *model, const adj_optimizer_opts *optimizer, int n_row,
                        const op_row rows[])
{
    static const char *const half[] = {" bf16", " f16"};
    static const adj_precision precision[] = {ADJ_PRECISION_BF16, ADJ_PRECISION_F16};
    for (int p = 0; p < 2; p++) {
        scoped(release) char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        scoped(training_free) training n = new_network(model, optimizer);
        adj_exec_free(planned(&n, "naive", precision[p], f));
        fclose(f);
        const char *after = strstr(text, "after copy");
        cr_assert_not_null(after);
        for (int i = 0; i < n_row; i++) {
            const char *type = rows[i].is_wide ? " f32" : half[p];
            const char *other = rows[i].is_wide ? half[p] : " f32";
            const int found = lines_with(after, rows[i].op, type);
            cr_expect_geq(found, rows[i].at_least, "%d%s%s of\n%s", found, rows[i].op, type, after);
            cr_expect_eq(lines_with(after, rows[i].op, other), 0, "%s in%s", rows[i].op, other);
        }
    }
}

Test(mixed_precision, types)
{
    static const op_row rows[] = {{" conv2d(", 0, 9},
                                  {" conv2d_backprop_input(", 0, 8},
                                  {" conv2d_backprop_filter(", 0, 9},
                                  {" relu(", 0, 7},
                                  {" relu_grad(", 0, 6},
                                  {" batch_norm(", 0, 7},
                                  {" batch_norm_stats(", 1, 7},
                                  {" batch_norm_grad_sums(", 1, 7},
                                  {" batch_norm_grad(", 0, 7},
                                  {" param", 1, 20},
                                  {" momentum(", 1, 20},
                                  {" ema(", 1, 7},
                                  {"sparse_softmax_cross_entropy", 1, 2}};
    check_types("resnet8", &with_momentum, sizeof rows / sizeof *rows, rows);
}

/* Each step of an optimizer is in f32, also that which reads nothing but a gradient that a matmul
 * has made in the half type: Adam's squares. Only updates have squares in LeNet. */
Test(mixed_precision, types_of_updates)
{
    static const op_row rows[] = {{" square(", 1, 8}, {" ema(", 1, 8}, {" adam_step(", 1, 8}};
    check_types("lenet", &(adj_optimizer_opts){.kind = ADJ_ADAM}, 3, rows);
}

/* Updates of a gradient {1, 1 + 2^-7}, which a matmul stores exactly in the half type, have more
 * bits than either half type. */
Test(mixed_precision, updates_lose_no_bits)
{
    enum { UPDATES = 6, RUNS = 3 };
    static const float want[UPDATES][2] = {
        {1, 0x1.0404p0F},                   /* its square */
        {0x1.001p0F, 0x1.02102p0F},         /* times 1 + 2^-12 */
        {0x1.001p0F, 0x1.02102p0F},         /* times an operand that is 1 + 2^-12 */
        {0x1.001p0F, 0x1.02102p0F},         /* 2^-12 of it added to it */
        {0x1.003p0F, 0x1.00306p0F},         /* 2^-12 of it added three times to 1 */
        {1 - 0x1.8p-11F, 1 - 0x1.83p-11F}}; /* taken away three times from 1 */
    static const char *const backends[] = {"naive", "direct", "onednn"};
    const adj_shape pair = {2, {2, 1}};
    for (int k = 0; k < 9; k++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {1, 2}});
        adj_node *factor = adj_input(g, "factor", ADJ_F32, (adj_shape){0}), *dw, *leaf[UPDATES];
        const adj_init one = {.kind = ADJ_INIT_CONSTANT, .a = 1};
        adj_node *w = leaf[0] = adj_param(g, "w", ADJ_F32, pair, one);
        for (int i = 1; i < UPDATES; i++)
            leaf[i] = adj_state(g, (const char[]){(char)('0' + i), '\0'}, ADJ_F32, pair, one);
        adj_node *loss = adj_reduce_sum(adj_matmul(x, w, 0), (adj_axes){.n = ADJ_ALL});
        cr_assert_eq(adj_grad(loss, NULL, 1, &w, &dw), ADJ_OK, "%s", adj_graph_message(g));
        adj_graph_set_role(g, ADJ_ROLE_UPDATE);
        adj_node *small = adj_scale(dw, 0x1p-12);
        adj_node *const next[UPDATES] = {adj_square(dw),          adj_scale(dw, 1 + 0x1p-12),
                                         adj_mul(dw, factor),     adj_add(dw, small),
                                         adj_add(leaf[4], small), adj_sub(leaf[5], small)};
        adj_updates *u = adj_updates_new(g);
        for (int i = 0; i < UPDATES; i++)
            cr_assert_eq(adj_updates_add(u, leaf[i], next[i]), ADJ_OK, "%s", adj_graph_message(g));
        const adj_exec_opts o = {.n_fetch = 1,
                                 .fetch = &loss,
                                 .updates = u,
                                 .backend = backends[k / 3],
                                 .precision = (adj_precision)(k % 3),
                                 .debug = &(adj_exec_debug){.canaries = 1}};
        scoped(release_exec) adj_exec *e = plan_of(g, &o);
        adj_set(e, x, (float[]){1, 1 + 0x1p-7F}, 2 * sizeof(float));
        adj_set(e, factor, (float[]){1 + 0x1p-12F}, sizeof(float));
        for (int i = 0; i < RUNS; i++)
            cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
        for (int i = 0; i < UPDATES; i++) {
            float got[2];
            cr_assert_eq(adj_get(e, leaf[i], got, sizeof got), ADJ_OK);
            for (int j = 0; j < 2; j++)
                cr_expect_eq(got[j], want[i][j],
                             "%s, precision %d: update %d, element %d: %a, not %a", backends[k / 3],
                             k % 3, i, j, (double)got[j], (double)want[i][j]);
        }
    }
}

/* A step of LeNet: the same loss but for the half type's rounding, and weights that have moved
 * alike. */
Test(mixed_precision, a_step_is_close)
{
    static const char *const backends[] = {"naive", "onednn"};
    for (int b = 0; b < 4; b++) {
        scoped(training_free) training n = new_network("lenet", &with_momentum);
        adj_precision precision = b < 2 ? ADJ_PRECISION_BF16 : ADJ_PRECISION_F16;
        scoped(release_exec) adj_exec *exact =
            planned(&n, backends[b % 2], ADJ_PRECISION_AS_BUILT, NULL);
        scoped(release_exec) adj_exec *half = planned(&n, backends[b % 2], precision, NULL);
        float before = training_step(&n, exact, 0), half_before = training_step(&n, half, 0);
        float after = training_step(&n, exact, 0), half_after = training_step(&n, half, 0);
        cr_assert_lt(after, before);
        cr_assert_float_eq(half_before, before, 0.02 * (double)before, "%g %g", half_before,
                           before);
        cr_assert_float_eq(half_after, after, 0.03 * (double)before, "%g %g", half_after, after);
    }
}

/* Small integers, exact in both half types: every bit as in f32, fetched in f32. */
Test(mixed_precision, exact_on_integers)
{
    static const char *const backends[] = {"naive", "direct", "onednn"};
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_pool half = {.ksize = {1, 2, 2, 1}, .padding = ADJ_SAME};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 6, 6, 16}}, -1, 1);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 16, 16}}, 0, 1);
    adj_node *b = given_integers(&f, ADJ_F32, (adj_shape){1, {16}}, 0, 2), *fetch[4];
    adj_node *y = fetch[3] = adj_bias_add(adj_conv2d(x, w, &same), b, ADJ_NHWC);
    adj_node *loss = adj_reduce_sum(adj_max_pool(adj_relu(y), &half), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(loss, NULL, 3, f.in, fetch), ADJ_OK, "%s", adj_graph_message(f.g));
    for (int k = 0; k < 9; k++) {
        adj_exec_opts o = {.n_fetch = 4,
                           .fetch = fetch,
                           .backend = backends[k / 3],
                           .debug = &(adj_exec_debug){.canaries = 1}};
        scoped(release_exec) adj_exec *exact = fixture_run(&f, &o);
        o.precision = (adj_precision)(k % 3);
        scoped(release_exec) adj_exec *e = fixture_run(&f, &o);
        for (int i = 0; i < 4; i++) {
            scoped(release) double *want = fixture_get(exact, fetch[i]);
            scoped(release) double *got = fixture_get(e, fetch[i]);
            expect_close(got, want, adj_shape_elems(adj_node_type(fetch[i]).shape), 0, 0,
                         backends[k / 3]);
        }
    }
}

Test(mixed_precision, unknown_precision)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_fill(g, ADJ_F32, (adj_shape){0}, 1);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .precision = (adj_precision)9};
    expect_no_plan(g, &o, ADJ_EARG, "precision is wrong (got 9");
}

/* A step with momentum writes both its results over what they replace, also where the gradient of a
 * last layer, in a half type, is widened in the step that computes it. */
Test(mixed_precision, updates_are_made_in_place)
{
    unsetenv("ADJOINT_PLAN"); /* whatever all tests are run with */
    scoped(training_free) training n = new_network("lenet", &with_momentum);
    for (int p = ADJ_PRECISION_AS_BUILT; p <= ADJ_PRECISION_BF16; p++) {
        scoped(release_exec) adj_exec *e = planned(&n, "onednn", (adj_precision)p, NULL);
        scoped(release) char *plan = plan_text(e);
        const int in_place = lines_with(plan, " :=", "(in place)");
        cr_assert_eq(times_in(plan, " :="), 16);
        cr_assert_eq(in_place, 16, "precision %d: %d of 16", p, in_place);
    }
}
