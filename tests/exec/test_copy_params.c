/* test_copy_params.c - several executors: names that two must share before parameters are copied,
 * and the sentence that lists the missing ones; executors of one thread side by side compute what
 * each computes by itself. */
#include <criterion/criterion.h>

#include "adjoint.h"
#include "adjoint_nn.h"
#include "tests/plan.h"

static const adj_shape vec = {1, {2}};
static const adj_init one = {.kind = ADJ_INIT_CONSTANT, .a = 1};

static adj_exec *plan(adj_graph *g, adj_node *y, adj_updates *u)
{
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .updates = u, .backend = "naive"};
    return plan_of(g, &o);
}

/* The sum of n parameters of these names, with another value in each graph. */
static adj_exec *sum_of(adj_graph *g, int n, const char *const names[], double value)
{
    adj_node *y = NULL;
    for (int i = 0; i < n; i++) {
        adj_node *p =
            adj_param(g, names[i], ADJ_F32, vec, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = value});
        y = y != NULL ? adj_add(y, p) : adj_neg(p);
    }
    return plan(g, y, NULL);
}

static void expect_value(adj_exec *e, adj_graph *g, const char *name, float value)
{
    float got[2];
    cr_assert_eq(adj_get(e, adj_find(g, name), got, sizeof got), ADJ_OK, "%s", adj_exec_message(e));
    cr_expect_eq(got[0], value, "%s: %g", name, (double)got[0]);
}

Test(copy_params, a_parameter_that_only_the_receiver_has_is_refused)
{
    scoped(release_graph) adj_graph *a = adj_graph_new(), *b = adj_graph_new();
    scoped(release_exec) adj_exec *from = sum_of(a, 2, (const char *const[]){"both", "train/w"}, 3);
    scoped(release_exec) adj_exec *to =
        sum_of(b, 6, (const char *const[]){"both", "w1", "w2", "w3", "w4", "w5"}, 1);

    cr_assert_eq(adj_copy_params(to, from), ADJ_EARG);
    cr_expect_str_eq(adj_exec_message(to),
                     "adj_copy_params: the source executor lacks \"w1\", \"w2\", \"w3\" and 2 more "
                     "(only the source has \"train/w\")");
    expect_value(to, b, "both", 1); /* nothing is copied */
}

/* An auxiliary head of a training graph. */
Test(copy_params, the_source_may_hold_more)
{
    scoped(release_graph) adj_graph *a = adj_graph_new(), *b = adj_graph_new();
    scoped(release_exec) adj_exec *from = sum_of(a, 2, (const char *const[]){"w", "head/w"}, 3);
    scoped(release_exec) adj_exec *to = sum_of(b, 1, (const char *const[]){"w"}, 1);
    cr_assert_eq(adj_copy_params(to, from), ADJ_OK);
    expect_value(to, b, "w", 3);
}

/* Adam's moments and step are the training executor's own; a statistic that is only read is not. */
Test(copy_params, states_that_the_receiver_updates_may_be_missing)
{
    scoped(release_graph) adj_graph *a = adj_graph_new(), *b = adj_graph_new();
    adj_node *w = adj_param(a, "w", ADJ_F32, vec, one);
    adj_node *loss = adj_reduce_sum(adj_square(w), (adj_axes){.n = ADJ_ALL});
    adj_exec *training = plan(a, loss, adj_adam(loss, 0));
    scoped(release_exec) adj_exec *from = sum_of(b, 1, (const char *const[]){"w"}, 3);
    cr_assert_eq(adj_copy_params(training, from), ADJ_OK, "%s", adj_exec_message(training));
    expect_value(training, a, "w", 3);
    adj_exec_free(training);

    scoped(release_exec) adj_exec *reads =
        plan(a, adj_mul(w, adj_state(a, "bn/running", ADJ_F32, vec, one)), NULL);
    cr_assert_eq(adj_copy_params(reads, from), ADJ_EARG);
    cr_expect_str_eq(adj_exec_message(reads),
                     "adj_copy_params: the source executor lacks \"bn/running\"");
}

/* ---- adj_run_each ---- */

enum { N = 3, ROWS = 2, CLASSES = 3 };

typedef struct {
    adj_graph *g;
    adj_node *x, *labels, *loss;
    adj_exec *e[N];
} rig;

/* Cross-entropy of logits, as many executors of one graph. */
static rig rig_new(int threads)
{
    rig r = {.g = adj_graph_new()};
    r.x = adj_input(r.g, "x", ADJ_F32, (adj_shape){2, {ROWS, CLASSES}});
    r.labels = adj_input(r.g, "labels", ADJ_I32, (adj_shape){1, {ROWS}});
    r.loss = adj_sparse_softmax_cross_entropy(r.x, r.labels, 0);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &r.loss, .threads = threads};
    for (int i = 0; i < N; i++)
        cr_assert_eq(adj_exec_new(r.g, &o, &r.e[i]), ADJ_OK, "%s", adj_exec_message(r.e[i]));
    return r;
}

static void rig_free(rig *r)
{
    for (int i = 0; i < N; i++)
        adj_exec_free(r->e[i]);
    adj_graph_free(r->g);
}

/* Executor i gets logits {i, 0, 0} and {0, 0, i}, and label `label` for both rows. */
static void set(rig *r, int i, int32_t label)
{
    const float x[] = {(float)i, 0, 0, 0, 0, (float)i};
    const int32_t labels[] = {label, label};
    cr_assert_eq(adj_set(r->e[i], r->x, x, sizeof x), ADJ_OK);
    cr_assert_eq(adj_set(r->e[i], r->labels, labels, sizeof labels), ADJ_OK);
}

Test(run_each, literal_values)
{
    /* log(e^i + 2) - i for the row whose label has logit i, log(e^i + 2) for the other (NumPy). */
    static const float expected[N][ROWS] = {
        {1.0986123F, 1.0986123F}, {0.5514447F, 1.5514447F}, {0.2395447F, 2.2395447F}};
    scoped(rig_free) rig r = rig_new(1);
    for (int i = 0; i < N; i++)
        set(&r, i, 0);
    cr_assert_eq(adj_run_each(N, r.e), ADJ_OK);
    for (int i = 0; i < N; i++) {
        float loss[ROWS];
        cr_assert_eq(adj_get(r.e[i], r.loss, loss, sizeof loss), ADJ_OK);
        for (int k = 0; k < ROWS; k++)
            cr_expect_float_eq(loss[k], expected[i][k], 1e-6F, "%d, %d: %.8g", i, k, loss[k]);
    }
    cr_expect_eq(adj_run_each(0, NULL), ADJ_OK);
}

Test(run_each, first_failure)
{
    scoped(rig_free) rig r = rig_new(1);
    for (int i = 0; i < N; i++)
        set(&r, i, i == 0 ? 0 : CLASSES + i);
    cr_assert_eq(adj_run_each(N, r.e), ADJ_EARG);
    expect_text(adj_exec_message(r.e[1]), "got 4");
    float loss[ROWS];
    cr_expect_eq(adj_get(r.e[0], r.loss, loss, sizeof loss), ADJ_OK);
}

Test(run_each, what_is_refused)
{
    rig r = rig_new(1), wide = rig_new(2);
    for (int i = 0; i < N; i++)
        set(&wide, i, 0);
    cr_expect_eq(adj_run_each(-1, r.e), ADJ_EARG);
    cr_expect_eq(adj_run_each(1, NULL), ADJ_EARG);
    cr_expect_eq(adj_run_each(N, r.e), ADJ_EARG);
    expect_text(adj_exec_message(r.e[0]), "has not been set");
    cr_expect_eq(adj_run_each(N, wide.e), ADJ_EARG);
    cr_expect_str_eq(adj_exec_message(wide.e[0]),
                     "adj_run_each: executor 0 has too many threads (got 2, expected 1)");
    set(&r, 0, 0);
    cr_expect_eq(adj_run_each(2, (adj_exec *[]){r.e[0], r.e[0]}), ADJ_EARG);
    expect_text(adj_exec_message(r.e[0]), "adj_run_each: executor 1 is also executor 0");
    rig_free(&r);
    rig_free(&wide);
}
