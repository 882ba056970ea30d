/* test_after_pass.c - the callback after each pass: each pass's graph, and a graph that no pass has
 * changed. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "tests/plan.h"

typedef struct {
    char names[200];
    const adj_node *y;
    int scales; /* in the last graph */
} seen;

static void look(void *user, const char *pass, const adj_graph *g, adj_node *const image[])
{
    seen *s = user;
    strncat(strcat(s->names, " "), pass, 40);
    s->scales = 0;
    for (int i = 0; i < adj_graph_node_count(g); i++)
        s->scales += strcmp(adj_node_op(adj_graph_node_at(g, i)), "scale") == 0;
    cr_expect_not_null(image[adj_node_id(s->y)]);
}

TestSuite(after_pass, .init = plan_as_usual);

/* 3 (1 x) is one scale after the pass that simplifies, and two where no pass runs. */
Test(after_pass, graphs)
{
    for (int none = 0; none < 2; none++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F64, (adj_shape){1, {2}});
        adj_node *y = adj_scale(adj_scale(x, 1), 3);
        seen s = {.y = y};
        const double v[2] = {1, -2};
        double w[2];
        const adj_exec_internal internal = {.after_pass = look, .pass_user = &s};
        const adj_exec_opts o = {.n_fetch = 1,
                                 .fetch = &y,
                                 .backend = "naive",
                                 .debug =
                                     &(adj_exec_debug){.no_passes = none, .internal = &internal}};
        scoped(release_exec) adj_exec *e = plan_of(g, &o);
        cr_expect_eq(strstr(s.names, " simplify") == NULL, none, "%s", s.names);
        cr_expect_eq(s.scales, none ? 2 : 1);
        cr_expect_eq(adj_exec_step_count(e), none ? 2 : 1);
        cr_assert_eq(adj_set(e, x, v, sizeof v), ADJ_OK);
        cr_assert_eq(adj_run(e), ADJ_OK);
        cr_assert_eq(adj_get(e, y, w, sizeof w), ADJ_OK);
        cr_expect(w[0] == 3 && w[1] == -6);
    }
}
