/* shrink.c - see shrink.h.
 *
 * Every number of the op line in turn: 1, 2, 4, 8 are tried until it fails (small cases are quick,
 * and faults like blocks of 16 channels), then the interval between what does not fail and what
 * does is halved. Faults are not monotone, so what is found is small, not the smallest; but
 * whatever is kept has failed twice. */
#include <stdio.h>
#include <string.h>

#include "cli/op/graph.h"
#include "shrink.h"
#include "exec/clock.h"

int fails_so(const adj_comparison *c, const char *op, adj_verdict verdict, adj_blame blame)
{
    for (int i = 0; i < adj_comparison_row_count(c); i++) {
        const adj_compare_row *row = adj_comparison_row_at(c, i);
        if ((op == NULL || strcmp(adj_compare_row_name(row), op) == 0) && row->verdict == verdict &&
            row->blame == blame)
            return 1;
    }
    return 0;
}

/* with_gradients: as the command line does it. */
static int fails_once(shrinking *s, const op_line *l, int with_gradients)
{
    op_text text;
    const compared_opts what = {.op = op_line_args(l, &text)};
    compared g;
    adj_comparison *c = NULL;
    int fails = 0;
    s->tried++;
    if (compared_open(&g, &what) == ADJ_OK) {
        adj_compare_opts opts = *s->opts;
        opts.n_root = with_gradients ? g.n_root : 1;
        opts.root = g.root;
        opts.updates = NULL;
        opts.n_value = 0;
        opts.progress = NULL;
        if (!with_gradients)
            opts.runs = 1;
        if (adj_compare(g.graph, &opts, &c) == ADJ_OK)
            fails = fails_so(c, l->text.args.op, s->verdict, s->blame);
    }
    adj_comparison_free(c);
    compared_close(&g);
    return fails;
}

static int fails_twice(shrinking *s, const op_line *l)
{
    int fails = fails_once(s, l, 0);
    return fails ? fails_once(s, l, 0) : 0;
}

/* Is there time for another? */
static int goes_on(const shrinking *s, double end)
{
    return s->tried < s->max && seconds_now() < end;
}

static int fails_with(shrinking *s, op_line *l, int64_t *number, int64_t value)
{
    const op_line before = *l;
    *number = value;
    op_line_settle(l);
    if (fails_twice(s, l))
        return 1;
    *l = before;
    return 0;
}

/* 1 if the number became smaller. */
static int shrink_number(shrinking *s, op_line *l, op_number number, double end)
{
    const int64_t before = *number.value;
    int64_t passes = number.min - 1, step = 1;
    while (passes + step < before && goes_on(s, end) &&
           !fails_with(s, l, number.value, passes + step)) {
        passes += step;
        step = passes > 0 ? passes : 1;
    }
    while (*number.value - passes > 1 && goes_on(s, end)) {
        int64_t middle = passes + (*number.value - passes) / 2;
        if (!fails_with(s, l, number.value, middle))
            passes = middle;
    }
    return *number.value < before;
}

int shrink(shrinking *s, op_line *l)
{
    const op_line whole = *l;
    op_number number[MAX_NUMBERS];
    double end = seconds_now() + s->seconds;
    s->tried = 0;
    if (!fails_twice(s, l))
        return 0;
    for (int changed = 1; changed && goes_on(s, end);) {
        changed = 0;
        int n = op_line_numbers(l, number);
        for (int i = 0; i < n; i++)
            changed |= shrink_number(s, l, number[i], end);
    }
    if (fails_once(s, l, 1))
        return 1;
    *l = whole;
    return fails_once(s, l, 1);
}
