/* test_onednn_quarantine.c - the shapes for which some implementation of oneDNN is known to be
 * wrong, to corrupt memory or to read what was not written: whatever is offered instead must agree
 * with naive. Buffers are surrounded by guards and NaN before (candidates.c). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "conv_rows.h"

/* 1x1 with a stride over fewer channels than a block (oneDNN issue 6035), and its neighbours. */
static const conv_row narrow[] = {
    {32, 64, 64, 12, 16, 1, .sh = 2},       {32, 64, 64, 4, 16, 1, .sh = 2},
    {32, 64, 64, 7, 8, 1, .sh = 2},         {32, 64, 64, 16, 16, 1, .sh = 2},
    {32, 64, 64, 12, 16, 1, .sh = 1},       {8, 33, 31, 12, 16, 1, .sh = 3, .sw = 2},
    {4, 16, 16, 3, 5, 1, .sh = 1, .sw = 2}, {4, 16, 16, 24, 32, 1, .sh = 2, .groups = 4},
};

/* bf16: dilated rows; a stride wider than the input. */
static const conv_row unwritten[] = {
    {32, 36, 36, 24, 24, 2, .dh = 2, .padding = ADJ_EXPLICIT, .pl = 1, .pr = 1},
    {32, 29, 29, 48, 68, 2, .dh = 2, .dw = 1, .groups = 4, .padding = ADJ_SAME},
    {32, 36, 36, 17, 1, 3, .dh = 2, .depthwise = 1},
    {3, 7, 1, 3, 17, 2, .kw = 3, .sh = 2, .padding = ADJ_SAME},
    {8, 9, 2, 4, 16, 1, .sh = 2, .sw = 3},
};

/* bf16, 1x1 over an odd number of channels, and pixels in thirties. */
static const conv_row odd[] = {
    {1, 6, 5, 1, 1, 1, .sh = 1},     {2, 6, 5, 2, 3, 1, .sh = 1},
    {2, 10, 6, 3, 2, 1, .sh = 1},    {1, 12, 10, 17, 33, 1, .sh = 2},
    {1, 5, 6, 9, 3, 1, .groups = 3}, {1, 30, 30, 3, 21, 1, .sh = 1},
    {1, 7, 5, 3, 1, 1, .sh = 1},     {1, 6, 5, 4, 2, 1, .sh = 1},
};

/* bf16, 1x1 over images of three tiles of pixels, and their neighbours. */
static const conv_row three_tiles[] = {
    {3, 6, 6, 32, 16, 1, .sh = 1},  {32, 6, 6, 64, 128, 1, .sh = 1}, {2, 3, 9, 32, 40, 1, .sh = 1},
    {5, 3, 13, 96, 48, 1, .sh = 1}, {2, 3, 16, 64, 32, 1, .sh = 1},  {2, 6, 7, 64, 64, 1, .sh = 1},
    {2, 7, 7, 64, 64, 1, .sh = 1},  {2, 5, 8, 64, 64, 1, .sh = 1},
};

static void expect_direction(const conv_row *rows, size_t n, adj_dtype dtype,
                             conv_direction direction)
{
    for (size_t i = 0; i < n; i++) {
        char label[256];
        fixture f = fixture_new();
        test_backend onednn = backend_open("onednn");
        const adj_node *y = conv_node(&f, &rows[i], direction, ADJ_NHWC, dtype, INTEGERS);
        conv_text(&rows[i], y, ADJ_NHWC, label, sizeof label);
        expect_candidates(&f, &onednn, 1, &y, 0, 0, label);
        backend_close(&onednn);
        fixture_free(&f);
    }
}

static void expect_all(const conv_row *rows, size_t n, adj_dtype dtype)
{
    expect_direction(rows, n, dtype, BACKPROP_FILTER);
}

Test(onednn_quarantine, narrow_strided_1x1)
{
    expect_all(narrow, sizeof narrow / sizeof *narrow, ADJ_F32);
}

Test(onednn_quarantine, narrow_strided_1x1_bf16)
{
    expect_all(narrow, sizeof narrow / sizeof *narrow, ADJ_BF16);
}

Test(onednn_quarantine, memory_read_before_written)
{
    expect_all(unwritten, sizeof unwritten / sizeof *unwritten, ADJ_BF16);
}

Test(onednn_quarantine, odd_channels)
{
    for (int direction = FORWARD; direction < N_DIRECTION; direction++)
        expect_direction(odd, sizeof odd / sizeof *odd, ADJ_BF16, (conv_direction)direction);
}

Test(onednn_quarantine, three_tiles_of_pixels)
{
    expect_direction(three_tiles, sizeof three_tiles / sizeof *three_tiles, ADJ_BF16, FORWARD);
}

/* The same by the plan: whoever computes it, the numbers are right. */
Test(onednn_quarantine, through_the_executor)
{
    fixture f = fixture_new();
    adj_node *y = conv_node(&f, &narrow[0], BACKPROP_FILTER, ADJ_NHWC, ADJ_F32, INTEGERS);
    double *want = evaluate(&f, y, "naive"), *got = evaluate(&f, y, "onednn");
    expect_close(got, want, adj_shape_elems(y->type.shape), 0, 0, "narrow strided 1x1");
    free(want);
    free(got);
    fixture_free(&f);
}

/* ---- which are used ---- */

/* Plans an average pool's gradient in bf16, whose windows overlap. why: what is said of the
 * backends that do not compute it. */
static adj_status plan_pool(const char *quarantine, char why[ADJ_WHY])
{
    adj_graph *g = adj_graph_new();
    const adj_pool a = {.ksize = {1, 2, 2, 1}, .stride = {1, 1, 1, 1}};
    const adj_shape in = {4, {2, 8, 8, 16}}, out = {4, {2, 7, 7, 16}};
    adj_node *dx = adj_avg_pool_grad(in, adj_input(g, "dy", ADJ_BF16, out), &a);
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &dx,
                             .backend = "onednn",
                             .debug.no_passes = 1,
                             .debug.quarantine = quarantine};
    adj_exec *e = NULL;
    const adj_status status = adj_exec_new(g, &o, &e);
    snprintf(why, ADJ_WHY, "%s", adj_exec_message(e));
    for (int i = 0; i < adj_exec_step_count(e); i++)
        if (adj_exec_step_at(e, i).why != NULL)
            snprintf(why, ADJ_WHY, "%s", adj_exec_step_at(e, i).why);
    adj_exec_free(e);
    adj_graph_free(g);
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
