/* test_onednn_quarantine.c - the shapes for which some implementation of oneDNN is known to be
 * wrong, to corrupt memory or to read what was not written: whatever is offered instead must agree
 * with naive. Buffers are surrounded by guards and NaN before (candidates.c). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/candidates.h"
#include "tests/conv_problem.h"

/* 1x1 with a stride over fewer channels than a block (oneDNN issue 6035), and its neighbours. */
static const oracle_conv narrow[] = {
    {32, 64, 64, 12, 1, 1, 16, .sh = 2, .sw = 2},
    {32, 64, 64, 4, 1, 1, 16, .sh = 2, .sw = 2},
    {32, 64, 64, 7, 1, 1, 8, .sh = 2, .sw = 2},
    {32, 64, 64, 16, 1, 1, 16, .sh = 2, .sw = 2},
    {32, 64, 64, 12, 1, 1, 16, .padding = ADJ_VALID},
    {8, 33, 31, 12, 1, 1, 16, .sh = 3, .sw = 2},
    {4, 16, 16, 3, 1, 1, 5, .sh = 1, .sw = 2},
    {4, 16, 16, 24, 1, 1, 32, .in = 6, .sh = 2, .sw = 2},
};

/* bf16: dilated rows; a stride wider than the input. */
static const oracle_conv unwritten[] = {
    {32, 36, 36, 24, 2, 2, 24, .dh = 2, .dw = 2, .padding = ADJ_EXPLICIT, .pad = {0, 0, 1, 1}},
    {32, 29, 29, 48, 2, 2, 68, .in = 12, .dh = 2, .dw = 1, .padding = ADJ_SAME},
    {32, 36, 36, 17, 3, 3, 1, .dh = 2, .dw = 2, .depthwise = 1},
    {3, 7, 1, 3, 2, 3, 17, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {8, 9, 2, 4, 1, 1, 16, .sh = 2, .sw = 3},
};

/* bf16, 1x1 over an odd number of channels, and pixels in thirties. */
static const oracle_conv odd[] = {
    {1, 6, 5, 1, 1, 1, 1, .padding = ADJ_VALID},
    {2, 6, 5, 2, 1, 1, 3, .padding = ADJ_VALID},
    {2, 10, 6, 3, 1, 1, 2, .padding = ADJ_VALID},
    {1, 12, 10, 17, 1, 1, 33, .sh = 2, .sw = 2},
    {1, 5, 6, 9, 1, 1, 3, .in = 3},
    {1, 30, 30, 3, 1, 1, 21, .padding = ADJ_VALID},
    {1, 7, 5, 3, 1, 1, 1, .padding = ADJ_VALID},
    {1, 6, 5, 4, 1, 1, 2, .padding = ADJ_VALID},
};

/* bf16, 1x1 over images of three tiles of pixels, and their neighbours. */
static const oracle_conv three_tiles[] = {
    {3, 6, 6, 32, 1, 1, 16, .padding = ADJ_VALID},  {32, 6, 6, 64, 1, 1, 128, .padding = ADJ_VALID},
    {2, 3, 9, 32, 1, 1, 40, .padding = ADJ_VALID},  {5, 3, 13, 96, 1, 1, 48, .padding = ADJ_VALID},
    {2, 3, 16, 64, 1, 1, 32, .padding = ADJ_VALID}, {2, 6, 7, 64, 1, 1, 64, .padding = ADJ_VALID},
    {2, 7, 7, 64, 1, 1, 64, .padding = ADJ_VALID},  {2, 5, 8, 64, 1, 1, 64, .padding = ADJ_VALID},
};

static const struct {
    const oracle_conv *rows;
    size_t n;
    adj_dtype dtype;
    int first, last; /* directions */
} lists[] = {
    {narrow, sizeof narrow / sizeof *narrow, ADJ_F32, ORACLE_DW, ORACLE_DW},
    {narrow, sizeof narrow / sizeof *narrow, ADJ_BF16, ORACLE_DW, ORACLE_DW},
    {unwritten, sizeof unwritten / sizeof *unwritten, ADJ_BF16, ORACLE_DW, ORACLE_DW},
    {odd, sizeof odd / sizeof *odd, ADJ_BF16, ORACLE_Y, ORACLE_DW},
    {three_tiles, sizeof three_tiles / sizeof *three_tiles, ADJ_BF16, ORACLE_Y, ORACLE_Y},
};

Test(onednn_quarantine, agrees)
{
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (size_t i = 0; i < lists[k].n; i++) {
            scoped(conv_problem_free) conv_problem p =
                conv_problem_new(lists[k].rows[i], lists[k].dtype, INTEGERS);
            scoped(backend_close) test_backend onednn = backend_open("onednn");
            for (int direction = lists[k].first; direction <= lists[k].last; direction++) {
                const adj_node *y = p.result[direction];
                expect_candidates(&p.f, &onednn, 1, &y, 0, 0, p.text);
            }
        }
}

/* The same by the plan: whoever computes it, the numbers are right. */
Test(onednn_quarantine, through_the_executor)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(narrow[0], ADJ_F32, INTEGERS);
    adj_node *y = p.result[ORACLE_DW];
    scoped(release) double *want = evaluate(&p.f, y, "naive"), *got = evaluate(&p.f, y, "onednn");
    expect_close(got, want, adj_shape_elems(y->type.shape), 0, 0, "narrow strided 1x1");
}

/* ---- which are used ---- */

/* Plans an average pool's gradient in bf16, whose windows overlap. why: what is said of the
 * backends that do not compute it. */
static adj_status plan_pool(const char *quarantine, char why[ADJ_WHY])
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_pool a = {.ksize = {1, 2, 2, 1}, .stride = {1, 1, 1, 1}};
    const adj_shape in = {4, {2, 8, 8, 16}}, out = {4, {2, 7, 7, 16}};
    adj_node *dx = adj_avg_pool_grad(in, adj_input(g, "dy", ADJ_BF16, out), &a);
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &dx,
                             .backend = "onednn",
                             .debug.no_passes = 1,
                             .debug.quarantine = quarantine};
    scoped(release_exec) adj_exec *e = NULL;
    const adj_status status = adj_exec_new(g, &o, &e);
    snprintf(why, ADJ_WHY, "%s", adj_exec_message(e));
    for (int i = 0; i < adj_exec_step_count(e); i++)
        if (adj_exec_step_at(e, i).why != NULL)
            snprintf(why, ADJ_WHY, "%s", adj_exec_step_at(e, i).why);
    return status;
}

Test(onednn_quarantine, by_name_and_by_the_environment)
{
    static const char reason[] = "adds overlapping windows";
    static const struct {
        const char *environment, *option;
        int is_left_out;
    } rows[] = {{NULL, NULL, 1}, {NULL, "", 1},    {NULL, "off", 0},
                {"", NULL, 1},   {"off", NULL, 0}, {"off", "", 1}};
    char why[ADJ_WHY];
    unsetenv("ADJOINT_QUARANTINE");
    cr_assert_eq(plan_pool("", why), ADJ_OK, "%s", why);
    if (strstr(why, reason) == NULL)
        cr_skip_test("oneDNN has no such pool on this CPU\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].environment != NULL)
            setenv("ADJOINT_QUARANTINE", rows[i].environment, 1);
        cr_expect_eq(plan_pool(rows[i].option, why), ADJ_OK, "%zu: %s", i, why);
        cr_expect_eq(strstr(why, reason) != NULL, rows[i].is_left_out, "%zu: %s", i, why);
    }
    setenv("ADJOINT_QUARANTINE", "of", 1);
    cr_expect_eq(plan_pool(NULL, why), ADJ_EARG);
    cr_expect_not_null(strstr(why, "quarantine must be off or empty (got of)"), "%s", why);
}
