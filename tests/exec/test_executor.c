/* test_executor.c - the executor's contract: updates after the run, values from before them, its
 * own copy of the graph, error messages. */
#include <criterion/criterion.h>
#include <omp.h>
#include <string.h>

#include "adjoint.h"
#include "ops/grad.h"
#include "tests/harness.h"

static const adj_shape vec3 = {1, {3}};
static const adj_init two = {.kind = ADJ_INIT_CONSTANT, .a = 2};

static adj_exec *exec_of(adj_graph *g, int n, adj_node *const fetch[], const adj_updates *u)
{
    adj_exec_opts o = {.n_fetch = n, .fetch = fetch, .updates = u, .backend = "naive"};
    return plan_of(g, &o);
}

static void expect(adj_exec *e, adj_node *n, float a, float b, float c)
{
    float v[3];
    cr_assert_eq(adj_get(e, n, v, sizeof v), ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(v[0] == a && v[1] == b && v[2] == c, "%s: got %g %g %g, want %g %g %g",
              adj_node_name(n), (double)v[0], (double)v[1], (double)v[2], (double)a, (double)b,
              (double)c);
}

Test(executor, updates_come_after_the_run)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two),
             *q = adj_param(g, "q", ADJ_F32, vec3, (adj_init){0});
    adj_node *s = adj_state(g, "s", ADJ_F32, vec3, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 7});
    adj_node *sum = adj_add(p, q), *next = adj_scale(p, 3);
    adj_updates *u = adj_updates_new(g);
    cr_assert_eq(adj_updates_add(u, p, next), ADJ_OK);
    cr_assert_eq(adj_updates_add(u, q, s), ADJ_OK); /* q and s swap */
    cr_assert_eq(adj_updates_add(u, s, q), ADJ_OK);
    adj_node *fetch[] = {sum, p};
    adj_exec *e = exec_of(g, 2, fetch, u);
    expect(e, p, 2, 2, 2); /* before any run: the value it starts with */
    cr_assert_eq(adj_run(e), ADJ_OK);
    expect(e, sum, 2, 2, 2);
    expect(e, p, 2, 2, 2); /* fetched: from before the update */
    expect(e, q, 7, 7, 7);
    expect(e, s, 0, 0, 0);
    cr_assert_eq(adj_run(e), ADJ_OK);
    expect(e, sum, 13, 13, 13);
    expect(e, p, 6, 6, 6);
    expect(e, q, 0, 0, 0);
    expect(e, s, 7, 7, 7);
    adj_exec_free(e);

    e = exec_of(g, 0, NULL, u); /* nothing fetched: p may be updated in place */
    cr_assert_eq(adj_run(e), ADJ_OK);
    expect(e, p, 6, 6, 6);
    expect(e, q, 7, 7, 7);
    adj_exec_free(e);
}

/* scale(p, 1) is p in the plan, but fetching it does not fetch p. */
Test(executor, only_a_fetched_parameter_shows_its_past)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two), *same = adj_scale(p, 1);
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, p, adj_scale(p, 3));
    scoped(release_exec) adj_exec *e = exec_of(g, 1, &same, u);
    cr_assert_eq(adj_run(e), ADJ_OK);
    expect(e, same, 2, 2, 2);
    expect(e, p, 6, 6, 6);
}

/* p := 2p must not be seen by the reader of the old p, whichever runs first. */
Test(executor, an_update_in_place_waits_for_readers)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two);
    adj_graph_set_role(g, ADJ_ROLE_UPDATE);
    adj_node *next = adj_scale(p, 2);
    adj_graph_set_role(g, ADJ_ROLE_FORWARD);
    adj_node *late = adj_relu(adj_neg(adj_scale(adj_scale(p, -1), 5))); /* 5p */
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, p, next);
    adj_exec *e = exec_of(g, 1, &late, u);
    for (int run = 0; run < 3; run++) {
        float want = 2.0F * (float)(1 << run);
        cr_assert_eq(adj_run(e), ADJ_OK);
        expect(e, late, 5 * want, 5 * want, 5 * want);
        expect(e, p, 2 * want, 2 * want, 2 * want);
    }
    adj_exec_free(e);
    /* next reads `late`, so `late` has to come first; next is computed from a value made from p */
    adj_node *both = adj_add(p, late);
    u = adj_updates_new(g);
    adj_updates_add(u, p, both);
    e = exec_of(g, 1, &next, u);
    cr_assert_eq(adj_run(e), ADJ_OK);
    expect(e, p, 12, 12, 12);
    expect(e, next, 4, 4, 4);
    adj_exec_free(e);
}

Test(executor, has_its_own_copy_and_moves_parameters_by_name)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3), *p = adj_param(g, "p", ADJ_F32, vec3, two);
    adj_node *y = adj_mul(x, p);
    adj_exec *e = exec_of(g, 1, &y, NULL);
    adj_node *z = adj_add(y, p); /* grown afterwards */
    cr_assert_eq(adj_set(e, x, (float[]){1, 2, 3}, 12), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    expect(e, y, 2, 4, 6);
    float v[3];
    cr_assert_eq(adj_get(e, z, v, sizeof v), ADJ_EARG);
    adj_exec *later = exec_of(g, 1, &z, NULL);
    cr_assert_eq(adj_set(e, p, (float[]){1, 1, 5}, 12), ADJ_OK);
    cr_assert_eq(adj_copy_params(later, e), ADJ_OK);
    cr_assert_eq(adj_set(later, x, (float[]){1, 2, 3}, 12), ADJ_OK);
    cr_assert_eq(adj_run(later), ADJ_OK);
    expect(later, z, 2, 3, 20);
    cr_assert_eq(adj_exec_param_count(later), 1);
    cr_assert_eq(adj_exec_param_at(later, 0), p);
    cr_assert_null(adj_exec_param_at(later, 1));
    adj_exec_free(e);
    adj_exec_free(later);

    /* "a" would fit, "p" does not: neither is copied. */
    scoped(release_graph) adj_graph *other = adj_graph_new();
    adj_node *both[] = {
        adj_param(other, "a", ADJ_F32, vec3, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 9}),
        adj_param(other, "p", ADJ_F32, (adj_shape){1, {4}}, two)};
    scoped(release_exec) adj_exec *from = exec_of(other, 2, both, NULL);
    adj_node *a = adj_param(g, "a", ADJ_F32, vec3, two), *mine[] = {y, a};
    e = exec_of(g, 2, mine, NULL);
    cr_assert_eq(adj_copy_params(e, from), ADJ_ESHAPE);
    expect_text(adj_exec_message(e), "\"p\"");
    expect(e, a, 2, 2, 2);
    adj_exec_free(e);
}

/* A label may repeat a parameter's name, on an older node too: the parameter is still found. */
Test(executor, labels_do_not_hide_parameters)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *older = adj_scale(adj_fill(g, ADJ_F32, vec3, 0.1), 3);
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two), *y = adj_mul(adj_label(older, "p"), p);
    cr_assert_eq(adj_find(g, "p"), p);
    adj_exec *from = exec_of(g, 1, &y, NULL), *to = exec_of(g, 1, &y, NULL);
    cr_assert_eq(adj_set(from, p, (float[]){1, 2, 3}, 12), ADJ_OK);
    cr_assert_eq(adj_copy_params(to, from), ADJ_OK);
    expect(to, p, 1, 2, 3);
    adj_exec_free(from);
    adj_exec_free(to);

    adj_exec_opts nothing = {0};
    scoped(release_exec) adj_exec *failed = NULL;
    cr_assert_eq(adj_exec_new(g, &nothing, &failed), ADJ_EARG);
    to = exec_of(g, 1, &y, NULL);
    cr_assert_eq(adj_copy_params(failed, to), ADJ_EARG);
    expect_text(adj_exec_message(failed), "nothing to compute");
    cr_assert_eq(adj_copy_params(to, failed), ADJ_EARG);
    expect_text(adj_exec_message(to), "adj_copy_params");
    adj_exec_free(to);
}

Test(executor, error_of_a_caller)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two);
    scoped(release_exec) adj_exec *e = exec_of(g, 1, &p, NULL), *failed = NULL;
    cr_expect_eq(adj_exec_fail(e, ADJ_ESHAPE, "first: got %d", 7), ADJ_ESHAPE);
    cr_expect_str_eq(adj_exec_message(e), "first: got 7");
    cr_expect_eq(adj_exec_fail(e, ADJ_EARG, "second"), ADJ_EARG);
    cr_expect_str_eq(adj_exec_message(e), "second");
    expect(e, p, 2, 2, 2);

    cr_assert_eq(adj_exec_new(g, &(adj_exec_opts){0}, &failed), ADJ_EARG);
    cr_expect_eq(adj_exec_fail(failed, ADJ_ESHAPE, "third"), ADJ_EARG);
    expect_text(adj_exec_message(failed), "nothing to compute");
    cr_expect_eq(adj_exec_fail(NULL, ADJ_ESHAPE, "lost"), ADJ_ESHAPE);
}

Test(executor, refuses_with_a_sentence)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3), *y = adj_relu(x), *none = NULL;
    adj_exec *e;
    float v[4] = {0};
    const struct {
        adj_exec_opts o;
        const char *word;
    } bad[] = {
        {{.n_fetch = 0}, "nothing to compute"},
        {{.n_fetch = 1, .fetch = &none}, "fetch[0]"},
        {{.n_fetch = -1, .fetch = &y}, "n_fetch"},
        {{.n_fetch = 1, .fetch = &y, .backend = "cuda"}, "\"cuda\""},
        {{.n_fetch = 1, .fetch = &y, .backend = ""}, "\"\""},
        {{.n_fetch = 1, .fetch = &y, .backend = "naive,relo=naive"}, "\"relo\""},
        {{.n_fetch = 1, .fetch = &y, .backend = "naive,relu="}, "backend"},
        {{.n_fetch = 1, .fetch = &y, .threads = -1}, "threads"},
        {{.n_fetch = 1, .fetch = &y, .math = (adj_math)7}, "math is wrong (got 7"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(adj_exec_new(g, &bad[i].o, &e), ADJ_EARG);
        expect_text(adj_exec_message(e), bad[i].word);
        cr_assert_eq(adj_run(e), ADJ_EARG);
        cr_assert_eq(adj_set(e, x, v, 12), ADJ_EARG);
        adj_exec_free(e);
    }
    cr_assert_eq(adj_exec_new(NULL, &bad[0].o, &e), ADJ_EARG);
    adj_exec_free(e);
    cr_assert_eq(adj_exec_new(g, NULL, &e), ADJ_EARG);
    adj_exec_free(e);
    cr_assert_eq(adj_run(NULL), ADJ_EARG);

    e = exec_of(g, 1, &y, NULL);
    cr_assert_eq(adj_run(e), ADJ_EARG);
    expect_text(adj_exec_message(e), "\"x\" has not been set");
    cr_assert_eq(adj_get(e, y, v, 12), ADJ_EARG);
    cr_assert_eq(adj_set(e, x, v, 16), ADJ_EARG);
    expect_text(adj_exec_message(e), "16 bytes, expected 12");
    cr_assert_eq(adj_set(e, x, NULL, 12), ADJ_EARG);
    cr_assert_eq(adj_set(e, y, v, 12), ADJ_EARG);
    cr_assert_eq(adj_set(e, NULL, v, 12), ADJ_EARG);
    cr_assert_eq(adj_set(e, x, v, 12), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK); /* it stayed usable */
    adj_status inside[2];
#pragma omp parallel num_threads(2)
    inside[omp_get_thread_num()] = adj_run(e);
    cr_assert(inside[0] == ADJ_EARG && inside[1] == ADJ_EARG);
    adj_exec_free(e);
}

/* Leaves that the plan does not need may be set; nodes that are not leaves of its graph are
 * refused. */
Test(executor, leaves_that_nothing_needs)
{
    scoped(release_graph) adj_graph *g = adj_graph_new(), *other = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3), *unused = adj_input(g, "unused", ADJ_F32, vec3);
    adj_node *y = adj_scale(x, 2);
    scoped(release_exec) adj_exec *e = exec_of(g, 1, &y, NULL);
    adj_node *later = adj_input(g, "later", ADJ_F32, vec3);
    adj_node *foreign = adj_input(other, "x", ADJ_F32, vec3);
    const float v[] = {1, 2, 3};
    cr_assert_eq(adj_set(e, unused, v, 12), ADJ_OK);
    cr_assert_eq(adj_set(e, later, v, 12), ADJ_OK);
    cr_assert_eq(adj_set(e, unused, v, 8), ADJ_EARG);
    cr_assert_eq(adj_set(e, foreign, v, 12), ADJ_EARG);
    expect_text(adj_exec_message(e), "of this executor's graph");
    float got[3];
    cr_assert_eq(adj_get(e, unused, got, 12), ADJ_EARG);
    expect_text(adj_exec_message(e), "no fetch and no update needs it");
    cr_assert_eq(adj_get(e, x, got, 12), ADJ_EARG);
    expect_text(adj_exec_message(e), "\"x\" has not been set");
    cr_assert_eq(adj_get(e, foreign, got, 12), ADJ_EARG);
    expect_text(adj_exec_message(e), "is not of this executor's graph");
}

/* adj_data shows in place what adj_get copies. */
Test(executor, data_in_place)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3), *p = adj_param(g, "p", ADJ_F32, vec3, two);
    adj_node *sum = adj_add(x, p), *y = adj_scale(sum, 2);
    scoped(release_exec) adj_exec *e = exec_of(g, 1, &y, NULL);
    cr_assert_null(adj_data(e, y));
    expect_text(adj_exec_message(e), "adj_run has not completed yet");
    cr_assert_null(adj_data(e, sum));
    expect_text(adj_exec_message(e), "was not fetched");
    cr_assert_null(adj_data(e, NULL));
    cr_assert_null(adj_data(NULL, y));
    for (int run = 0; run < 2; run++) {
        const float in[] = {1, 2, (float)run};
        cr_assert_eq(adj_set(e, x, in, 12), ADJ_OK);
        cr_assert_eq(adj_run(e), ADJ_OK);
        const float want[] = {6, 8, (float)(2 * run + 4)};
        cr_assert_arr_eq((const float *)adj_data(e, y), want, 12);
        cr_assert_arr_eq((const float *)adj_data(e, p), ((const float[]){2, 2, 2}), 12);
        cr_assert_arr_eq((const float *)adj_data(e, x), in, 12);
    }
}

/* Writing to the buffer of adj_set_in_place has the effect of adj_set. */
Test(executor, set_in_place)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3), *p = adj_param(g, "p", ADJ_F32, vec3, two);
    adj_node *y = adj_mul(x, adj_scale(p, 2));
    scoped(release_exec) adj_exec *e = exec_of(g, 1, &y, NULL);
    for (int run = 0; run < 3; run++) {
        const float in[] = {(float)run, (float)(run + 1), (float)(run + 2)};
        float got[3];
        void *at;
        cr_assert_eq(adj_set_in_place(e, x, &at), ADJ_OK);
        cr_assert_eq((uintptr_t)at % 64, 0);
        memcpy(at, in, sizeof in);
        if (run == 1) { /* a part of it; what follows from parameters alone is computed anew */
            cr_assert_eq(adj_set_in_place(e, p, &at), ADJ_OK);
            *(float *)at = 5;
        }
        cr_assert_eq(adj_run(e), ADJ_OK);
        const float want[] = {10 * in[0], 4 * in[1], 4 * in[2]};
        cr_assert_arr_eq((const float *)adj_data(e, y), want, 12);
        cr_assert_eq(adj_get(e, x, got, 12), ADJ_OK);
        cr_assert_arr_eq(got, in, 12);
    }
}

static void expect_not_in_place(adj_exec *e, const adj_node *n, adj_status status, const char *why)
{
    void *at = &at;
    cr_expect_eq(adj_set_in_place(e, n, &at), status);
    cr_expect_null(at);
    expect_text(adj_exec_message(e), why);
}

Test(executor, what_is_not_set_in_place)
{
    scoped(release_graph) adj_graph *g = adj_graph_new(), *other = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, vec3), *y = adj_scale(x, 2);
    adj_node *unused = adj_input(g, "unused", ADJ_F32, vec3);
    adj_node *c = adj_const(g, ADJ_F32, vec3, (const float[]){1, 2, 3});
    adj_node *foreign = adj_input(other, "x", ADJ_F32, vec3);
    adj_node *empty = adj_input(g, "empty", ADJ_F32, (adj_shape){1, {0}}), *z = adj_relu(empty);
    adj_node *both[] = {y, z};
    adj_exec *e = exec_of(g, 2, both, NULL), *failed;
    void *at;
    expect_not_in_place(e, unused, ADJ_EARG, "\"unused\" has no value here");
    expect_not_in_place(e, c, ADJ_EARG, "cannot be set (expected an input");
    expect_not_in_place(e, y, ADJ_EARG, "cannot be set (expected an input");
    expect_not_in_place(e, foreign, ADJ_EARG, "cannot be set (expected an input");
    expect_not_in_place(e, NULL, ADJ_EARG, "the node is NULL");
    cr_expect_eq(adj_set_in_place(e, x, NULL), ADJ_EARG);
    cr_expect_eq(adj_set_in_place(NULL, x, &at), ADJ_EARG);
    cr_expect_eq(adj_set_in_place(e, empty, &at), ADJ_OK);
    const adj_exec_opts wrong = {.n_fetch = 1, .fetch = &y, .backend = "none"};
    const adj_status status = adj_exec_new(g, &wrong, &failed);
    cr_assert_neq(status, ADJ_OK);
    expect_not_in_place(failed, x, status, "none");
    adj_exec_free(failed);
    adj_exec_free(e);
}

/* Reshapes cost no step, and what shares memory with a parameter still shows the value from before
 * the updates. */
Test(executor, views)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two),
             *q = adj_param(g, "q", ADJ_F32, vec3, (adj_init){0});
    adj_node *view = adj_reshape(adj_reshape(p, (adj_shape){2, {3, 1}}), (adj_shape){2, {1, 3}});
    adj_node *same = adj_reshape(view, vec3),
             *bent = adj_reshape(adj_scale(view, 5), (adj_shape){2, {3, 1}});
    adj_node *back = adj_reshape(adj_add(bent, bent), vec3);
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, p, adj_scale(p, 3));
    adj_updates_add(u, q, same);
    adj_node *fetch[] = {view, back};
    scoped(release_exec) adj_exec *e = exec_of(g, 2, fetch, u);
    for (float want = 2; want < 60; want *= 3) {
        cr_assert_eq(adj_run(e), ADJ_OK);
        expect(e, view, want, want, want);
        expect(e, back, 10 * want, 10 * want, 10 * want);
        expect(e, q, want, want, want);
        expect(e, p, 3 * want, 3 * want, 3 * want);
    }
}

/* stats may be x itself or a view of it: then the result must not be written over them. */
Test(executor, in_place_spares_other_operands)
{
    static const adj_shape pair = {2, {2, 2}};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F32, (adj_shape){3, {1, 2, 2}}, (double[]){0, 1, 4, 16});
    adj_node *one = adj_fill(f.g, ADJ_F32, (adj_shape){1, {2}}, 1);
    adj_node *zero = adj_fill(f.g, ADJ_F32, (adj_shape){1, {2}}, 0);
    adj_node *wide = adj_scale(x, 1.0 / 4), *flat = adj_reshape(adj_scale(x, 1.0 / 4), pair);
    adj_node *y[] = {adj_batch_norm(wide, adj_reshape(wide, pair), one, zero, 0, ADJ_NHWC),
                     adj_batch_norm(flat, flat, one, zero, 0, ADJ_NHWC),
                     adj_batch_norm_grad(wide, adj_reshape(wide, pair), one, x,
                                         adj_fill(f.g, ADJ_F32, pair, 1), 0, ADJ_NHWC)};
    const double want[][4] = {{0, 0, 1, 1.875}, {0, 0, 1, 1.875}, {-0.5, 0.25, 3, 7.28125}};
    for (int i = 0; i < 3; i++)
        expect_values(&f, y[i], "naive", want[i], 1e-6, 0);
}

/* A run with a label that is out of range, then one with the last class: p is tripled once. */
static void fails_without_trace(adj_exec *e, adj_node *p, adj_node *label, adj_node *fetched)
{
    for (int32_t k = 3; k >= 2; k--) {
        cr_assert_eq(adj_set(e, label, &k, 4), ADJ_OK);
        cr_assert_eq(adj_run(e), k == 3 ? ADJ_EARG : ADJ_OK);
        float now = k == 3 ? 2 : 6;
        expect(e, p, now, now, now);
        cr_assert_eq(adj_data(e, fetched) == NULL, k == 3);
        cr_assert(k == 2 || strstr(adj_exec_message(e), "the last adj_run failed") != NULL);
    }
}

/* Values that updates compute in place are not visible to fetches or failed runs. */
Test(executor, updates_in_place_stay_unseen)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two), *next = adj_scale(p, 3);
    adj_node *view = adj_reshape(next, (adj_shape){2, {3, 1}});
    adj_updates *u = adj_updates_new(g);
    adj_updates_add(u, p, next);
    adj_exec *e = exec_of(g, 1, &view, u);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_set(e, p, (float[]){9, 9, 9}, 12), ADJ_OK);
    expect(e, view, 6, 6, 6);
    adj_exec_free(e);

    adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){2, {1, 3}});
    adj_node *label = adj_input(g, "label", ADJ_I32, (adj_shape){1, {1}});
    adj_node *loss = adj_sparse_softmax_cross_entropy(z, label, 0);
    e = exec_of(g, 1, &loss, u);
    cr_assert_eq(adj_set(e, z, (float[]){0, 0, 0}, 12), ADJ_OK);
    fails_without_trace(e, p, label, loss);
    adj_exec_free(e);
}

/* Nor when what fails is itself made as part of an update. */
Test(executor, an_update_that_fails_changes_nothing)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, vec3, two);
    adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){2, {1, 3}});
    adj_node *label = adj_input(g, "label", ADJ_I32, (adj_shape){1, {1}});
    adj_updates *u = adj_updates_new(g);
    adj_graph_set_role(g, ADJ_ROLE_UPDATE);
    adj_updates_add(u, p, adj_scale(p, 3));
    adj_node *loss = adj_sparse_softmax_cross_entropy_grad(z, label, 0);
    adj_graph_set_role(g, ADJ_ROLE_FORWARD);
    scoped(release_exec) adj_exec *e = exec_of(g, 1, &loss, u);
    cr_assert_eq(adj_set(e, z, (float[]){0, 0, 0}, 12), ADJ_OK);
    fails_without_trace(e, p, label, loss);
}

/* A parameter with given values starts with them, whatever the seed, and keeps a copy. */
Test(executor, given_values)
{
    float given[] = {1, -2, 3}, got[3];
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){1, {3}},
                            (adj_init){.kind = ADJ_INIT_DATA, .data = given});
    given[0] = 9;
    adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &p, .seed = 4});
    cr_assert_eq(adj_get(e, p, got, sizeof got), ADJ_OK);
    cr_assert(got[0] == 1 && got[1] == -2 && got[2] == 3);
    adj_exec_free(e);
    cr_assert_null(
        adj_param(g, "q", ADJ_F32, (adj_shape){1, {3}}, (adj_init){.kind = ADJ_INIT_DATA}));
    cr_assert_str_eq(adj_graph_message(g), "param: \"q\" has no initial values (data is NULL)");
}
