/* test_print.c - a training step's graph as text and DOT, and its plan, against golden files in
 * tests/golden. Numbers are stable: what else the graph holds does not show. To see a difference:
 * diff the file named with the one that the failing test leaves in build/. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint.h"
#include "ops/grad.h"
#include "tests/plan.h"

typedef struct {
    adj_graph *g;
    adj_node *root[3]; /* loss and two next values */
    adj_updates *updates;
} model;

/* conv + bias + relu + pool + loss, its gradient and an SGD step; clutter adds nodes that nothing
 * needs. */
static model build(int clutter)
{
    model m = {.g = adj_graph_new()};
    adj_node *x = adj_input(m.g, "x", ADJ_F32, (adj_shape){4, {2, 6, 6, 1}});
    for (int i = 0; i < clutter; i++)
        adj_scale(x, 3 + i);
    adj_node *labels = adj_input(m.g, "labels", ADJ_I32, (adj_shape){1, {2}});
    adj_node *lr = adj_input(m.g, "lr", ADJ_F32, (adj_shape){0});
    adj_node *p[] = {adj_param(m.g, "w", ADJ_F32, (adj_shape){4, {3, 3, 1, 4}}, (adj_init){0}),
                     adj_param(m.g, "b", ADJ_F32, (adj_shape){1, {4}}, (adj_init){0})};
    adj_conv same = {.padding = ADJ_SAME};
    adj_pool all = {.ksize = {1, 6, 6, 1}};
    adj_node *h = adj_max_pool(adj_relu(adj_bias_add(adj_conv2d(x, p[0], &same), p[1], ADJ_NHWC)),
                               &all),
             *dp[2];
    h = adj_reshape(h, (adj_shape){2, {2, 4}});
    m.root[0] =
        adj_reduce_mean(adj_sparse_softmax_cross_entropy(h, labels, 0), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(m.root[0], NULL, 2, p, dp), ADJ_OK, "%s", adj_graph_message(m.g));
    adj_graph_set_role(m.g, ADJ_ROLE_UPDATE);
    m.updates = adj_updates_new(m.g);
    for (int i = 0; i < 2; i++) {
        m.root[i + 1] = adj_sgd_step(p[i], dp[i], lr, 0);
        adj_updates_add(m.updates, p[i], m.root[i + 1]);
    }
    adj_graph_set_role(m.g, ADJ_ROLE_FORWARD);
    return m;
}

static char *read_file(const char *name)
{
    FILE *f = fopen(name, "rb");
    cr_assert_not_null(f, "%s is missing (tests run from the project's root)", name);
    char *text = calloc(1, 1 << 16);
    cr_assert_lt(fread(text, 1, (1 << 16) - 1, f), (1 << 16) - 1);
    fclose(f);
    return text;
}

enum { AS_TEXT, AS_DOT, AS_PLAN };

static void write_file(const char *name, int format, const model *m)
{
    FILE *f = fopen(name, "wb");
    cr_assert_not_null(f);
    if (format == AS_TEXT)
        adj_print(f, 3, m->root);
    else if (format == AS_DOT)
        adj_print_dot(f, 3, m->root);
    else {
        adj_exec_opts o = {.n_fetch = 1,
                           .fetch = m->root,
                           .updates = m->updates,
                           .backend = "naive",
                           .threads = 2};
        scoped(release_exec) adj_exec *e = plan_of(m->g, &o);
        adj_exec_print(f, e);
    }
    fclose(f);
}

static void compare(int format, const char *name, int clutter)
{
    char golden[64], made[64];
    snprintf(golden, sizeof golden, "tests/golden/%s", name);
    snprintf(made, sizeof made, "build/%s.%d", name, clutter);
    model m = build(clutter);
    write_file(made, format, &m);
    scoped(release) char *want = read_file(golden), *got = read_file(made);
    cr_assert_str_eq(got, want, "%s differs from %s", made, golden);
    remove(made);
    adj_graph_free(m.g);
}

Test(print, text)
{
    compare(AS_TEXT, "step.txt", 0);
    compare(AS_TEXT, "step.txt", 5);
}
Test(print, dot)
{
    compare(AS_DOT, "step.dot", 0);
    compare(AS_DOT, "step.dot", 5);
}
Test(print, plan) { compare(AS_PLAN, "step.plan", 0); }

/* A name may hold what DOT gives a meaning to, or end the line; nothing to print is not an error.
 */
Test(print, odd_names)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "a\"b\\c\nd\033", ADJ_F32, (adj_shape){0}), *none = NULL;
    scoped(release) char *text = calloc(1, 4096), *dot = calloc(1, 4096);
    FILE *f = fmemopen(text, 4096, "w");
    adj_print(f, 1, &x);
    adj_print(f, 1, &none);
    adj_print(f, 0, NULL);
    fclose(f);
    expect_text(text, " \"a\\\"b\\\\c\\nd\\x1b\"\n");
    cr_assert_eq(strchr(text, '\n')[1], '\0');
    f = fmemopen(dot, 4096, "w");
    adj_print_dot(f, 1, &x);
    fclose(f);
    expect_text(dot, "a\\\"b\\\\c\\\\nd\\\\x1b\\n");
}

/* Nodes built inside an update keep its role, if layers set a role of their own and restore the
 * previous one; adj_grad restores it too. */
Test(print, roles_nest)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){0}), *y[5], *dx;
    adj_role outer = adj_graph_set_role(g, ADJ_ROLE_UPDATE);
    cr_assert_eq(outer, ADJ_ROLE_FORWARD);
    y[0] = adj_scale(x, 2);
    adj_role inner = adj_graph_set_role(g, ADJ_ROLE_UPDATE);
    cr_assert_eq(inner, ADJ_ROLE_UPDATE);
    y[1] = adj_scale(y[0], 3);
    adj_graph_set_role(g, inner);
    y[2] = adj_scale(y[1], 4);
    cr_assert_eq(adj_grad(adj_square(y[2]), NULL, 1, &x, &dx), ADJ_OK);
    y[3] = adj_scale(y[2], 5);
    adj_graph_set_role(g, outer);
    y[4] = adj_scale(y[3], 6);
    cr_assert_eq(adj_graph_set_role(NULL, ADJ_ROLE_UPDATE), ADJ_ROLE_FORWARD);
    cr_assert_eq(adj_graph_set_role(g, (adj_role)3), ADJ_ROLE_FORWARD);
    cr_assert_eq(adj_graph_status(g), ADJ_EARG);
    expect_text(adj_graph_message(g), "role is wrong (got 3");
    char text[4096] = "", expected[] = " uuuu ";
    FILE *f = fmemopen(text, sizeof text, "w");
    adj_print(f, 1, &y[4]);
    fclose(f);
    char *line = text;
    for (int i = 0; expected[i] != '\0'; i++, line = strchr(line, '\n') + 1)
        cr_expect_eq(*line, expected[i], "line %d of\n%s", i, text);
}
