/* test_onednn_layout.c - layouts are described by what they are: a candidate has one name for its
 * implementation and its layouts, whatever was prepared before it. A tune file depends on it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "conv_rows.h"

enum { MAX_CANDIDATES = 100, TEXT = 256 };

/* Channels that are a single block in some layout, where descriptions differ though memory does
 * not: nChw8c of 8 channels is nhwc, ABcd8b8a of an 8 by 8 filter is cdba. */
static const conv_row rows[] = {
    {2, 8, 8, 8, 8, 3, .sh = 1, .padding = ADJ_SAME},
    {2, 8, 8, 16, 16, 3, .sh = 1, .padding = ADJ_SAME},
    {2, 8, 8, 8, 16, 1, .sh = 1},
    {2, 8, 8, 16, 8, 3, .sh = 2},
    {2, 8, 8, 3, 16, 3, .sh = 1, .padding = ADJ_SAME},
    {2, 8, 8, 32, 64, 1, .sh = 1},
    {1, 1, 1, 16, 32, 1, .sh = 1},
    {2, 8, 8, 16, 1, 3, .sh = 1, .depthwise = 1},
};

/* What candidate number i is called; 0: there are not so many. */
static int describe(fixture *f, const test_backend *t, const adj_node *y, int i, char text[TEXT])
{
    outcome o = run_candidate(f, t, 1, &y, i);
    free(o.y);
    snprintf(text, TEXT, "%s,%s", o.impl, o.layouts);
    return o.status == ADJ_OK;
}

/* Each candidate first of all in a backend of its own must be what it was among the others. */
static void expect_names(const conv_row *row, conv_direction direction, adj_dtype dtype)
{
    char what[256], among[MAX_CANDIDATES][TEXT], alone[TEXT];
    fixture f = fixture_new();
    test_backend t = backend_open("onednn");
    const adj_node *y = conv_node(&f, row, direction, ADJ_NHWC, dtype, INTEGERS);
    conv_text(row, y, ADJ_NHWC, what, sizeof what);
    int n = 0;
    while (n < MAX_CANDIDATES && describe(&f, &t, y, n, among[n]))
        n++;
    backend_close(&t);
    for (int i = 0; i < n; i++) {
        t = backend_open("onednn");
        cr_expect(describe(&f, &t, y, i, alone), "%s: candidate %d is gone", what, i);
        cr_expect_str_eq(alone, among[i], "%s: candidate %d is %s, was %s", what, i, alone,
                         among[i]);
        backend_close(&t);
    }
    fixture_free(&f);
}

static void expect_all_names(adj_dtype dtype)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int direction = FORWARD; direction < N_DIRECTION; direction++)
            expect_names(&rows[i], (conv_direction)direction, dtype);
}

Test(onednn_layout, has_one_name_f32) { expect_all_names(ADJ_F32); }
Test(onednn_layout, has_one_name_bf16) { expect_all_names(ADJ_BF16); }
