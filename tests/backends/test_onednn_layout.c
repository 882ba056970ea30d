/* test_onednn_layout.c - layouts are described by what they are: a candidate has one name for its
 * implementation and its layouts, whatever was prepared before it. A tune file depends on it. And
 * none is taken for another, so each computes what naive does. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/candidates.h"
#include "tests/conv_problem.h"

enum { MAX_CANDIDATES = 100, TEXT = 256 };

/* Channels that are a single block in some layout, where descriptions differ though memory does
 * not: nChw8c of 8 channels is nhwc, ABcd8b8a of an 8 by 8 filter is cdba. */
static const oracle_conv rows[] = {
    {2, 8, 8, 8, 3, 3, 8, .padding = ADJ_SAME},
    {2, 8, 8, 16, 3, 3, 16, .padding = ADJ_SAME},
    {2, 8, 8, 8, 1, 1, 16, .padding = ADJ_VALID},
    {2, 8, 8, 16, 3, 3, 8, .sh = 2, .sw = 2},
    {2, 8, 8, 3, 3, 3, 16, .padding = ADJ_SAME},
    {2, 8, 8, 32, 1, 1, 64,
     .padding = ADJ_VALID}, /* several blocks in both: OIhw16o16i is not IhwO16o16i */
    {1, 1, 1, 16, 1, 1, 32, .padding = ADJ_VALID},
    {2, 8, 8, 16, 3, 3, 1, .depthwise = 1},
};

/* What candidate number i is called; 0: there are not so many. It computes `want`. */
static int describe(fixture *f, const test_backend *t, const adj_node *y, int i, char text[TEXT],
                    const double *want)
{
    outcome o = run_candidate(f, t, 1, &y, i);
    snprintf(text, TEXT, "%s,%s", o.impl, o.layouts);
    if (o.status == ADJ_OK)
        expect_close(o.y, want, adj_shape_elems(y->type.shape), 0, 0, text);
    free(o.y);
    return o.status == ADJ_OK;
}

/* Each candidate first of all in a backend of its own must be what it was among the others. */
static void expect_names(const oracle_conv *row, int direction, adj_dtype dtype)
{
    char among[MAX_CANDIDATES][TEXT], alone[TEXT];
    scoped(conv_problem_free) conv_problem p = conv_problem_new(*row, dtype, INTEGERS);
    test_backend t = backend_open("onednn");
    const adj_node *y = p.result[direction];
    scoped(release) double *want = by_naive(&p.f, y);
    int n = 0;
    while (n < MAX_CANDIDATES && describe(&p.f, &t, y, n, among[n], want))
        n++;
    backend_close(&t);
    for (int i = 0; i < n; i++) {
        t = backend_open("onednn");
        cr_expect(describe(&p.f, &t, y, i, alone, want), "%s: candidate %d is gone", p.text, i);
        cr_expect_str_eq(alone, among[i], "%s: candidate %d is %s, was %s", p.text, i, alone,
                         among[i]);
        backend_close(&t);
    }
}

static void expect_all_names(adj_dtype dtype)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int direction = ORACLE_Y; direction <= ORACLE_DW; direction++)
            expect_names(&rows[i], direction, dtype);
}

Test(onednn_layout, has_one_name_f32) { expect_all_names(ADJ_F32); }
Test(onednn_layout, has_one_name_bf16) { expect_all_names(ADJ_BF16); }

/* oneDNN's oldest loops for x86 take blocks of eight channels, of which there are several here, or
 * plain memory; on other machines there are none of them. */
Test(onednn_layout, blocks_are_in_the_name)
{
    static const oracle_conv row = {2, 8, 8, 32, 3, 3, 64, .padding = ADJ_SAME};
    static const char *const names[][2] = {{"jit:sse41,", "jit:sse41,nChw8c OIhw8i8o -> nChw8c"},
                                           {"jit:avx2,", "jit:avx2,nChw8c OIhw8i8o -> nChw8c"}};
    int has[2][2] = {{0}};
    char text[TEXT];
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, INTEGERS);
    scoped(backend_close) test_backend t = backend_open("onednn");
    const adj_node *y = p.result[ORACLE_Y];
    scoped(release) double *want = by_naive(&p.f, y);
    for (int i = 0; i < MAX_CANDIDATES && describe(&p.f, &t, y, i, text, want); i++)
        for (int k = 0; k < 4; k++)
            has[k / 2][k % 2] |= strstr(text, names[k / 2][k % 2]) == text;
    for (int k = 0; k < 2; k++)
        cr_expect_eq(has[k][1], has[k][0], "there is no %s", names[k][1]);
}
