/* test_compare_again.c - output of a comparison: the command line that a failing one prints fails
 * in the same way in a shell; if both batches of adjoint compare --model fail, JSON and JUnit
 * reports hold both; processes that do not respond. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/child.h"
#include "cli/compare/compare.h"
#include "tests/plan.h"

/* The line after "again: ", without its end. */
static char *printed_line(const char *out)
{
    char *line = strstr(out, "again: ");
    cr_assert_not_null(line, "%s", out);
    line = strdup(line + 7);
    line[strcspn(line, "\n")] = '\0';
    return line;
}

static long elems(const char *line, const char *option)
{
    const char *p = strstr(line, option);
    long n = 1;
    if (p == NULL)
        return 0;
    for (p += strlen(option); *p == ' ' || *p == ','; n *= strtol(p + 1, (char **)&p, 10))
        ;
    return n;
}

/* Expects the line printed for the onednn configuration to fail again, with the same verdict at the
 * same op. */
static void expect_same(const char *line, const char *row, const char *blame)
{
    shell("%s", line); /* like a user */
    cr_assert_eq(ran.status, 1, "%s\n%s", line, ran.out);
    cr_assert_not_null(strstr(ran.out, row), "%s\n%s", line, ran.out);
    cr_assert_not_null(strstr(ran.out, blame), "%s\n%s", line, ran.out);
    cr_assert_not_null(strstr(ran.out, line), "it is printed again:\n%s\n%s", line, ran.out);
}

/* A fault of oneDNN 2.x in bf16; elsewhere it may be mended. */
Test(compare_again, bf16_dilated_filter_gradient)
{
    setenv("ADJOINT_QUARANTINE", "off", 1);
    tool(ANY_STATUS,
         "compare --op conv2d --in 2,36,36,24 --filter 3,3,24,24 --dtype bf16 --exact --configs "
         "naive,onednn --attr dilations=1,2,2,1 --threads 1 --runs 2 --neighbors 0 --shrink 100");
    if (ran.status == 0)
        cr_skip_test("this oneDNN has no such fault\n");
    cr_assert_eq(ran.status, 1, "%s", ran.err);
    const char *failed =
        strstr(ran.out, "onednn: FAIL %"); /* the number depends on casts before it */
    cr_assert_not_null(failed, "%s", ran.out);
    failed += strcspn(failed, "%") + 1;
    cr_assert_eq(strncmp(failed + strspn(failed, "0123456789"), " conv2d_backprop_filter", 23), 0,
                 "%s", ran.out);
    scoped(release) char *line = printed_line(ran.out);
    expect_text(line, "--op conv2d_backprop_filter");
    const char *const kept[] = {"--configs naive,onednn",  "--runs 2",    "--exact", "--threads 1",
                                "ADJOINT_QUARANTINE=off ", "--dtype bf16"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        cr_assert_not_null(strstr(line, kept[i]), "%s: %s", kept[i], line);
    cr_assert_lt(elems(line, "--in"), 2 * 36 * 36 * 24 / 10, "%s", line);
    cr_assert_lt(elems(line, "--filter"), 3 * 3 * 24 * 24 / 10, "%s", line);
    expect_same(line, "onednn: FAIL ", "conv2d_backprop_filter (onednn ");
}

/* A timeout is reported as a row. One thread of naive needs seconds for this; onednn is the
 * reference. */
Test(compare_again, no_response)
{
    tool(ANY_STATUS,
         "compare --op conv2d --in 1,96,96,64 --filter 5,5,64,64 --configs onednn,naive --guard "
         "--timeout 0.1 --shrink 0 --runs 1 --threads 1 --neighbors 0");
    cr_assert_eq(ran.status, 1, "%s", ran.err);
    expect_text(ran.out, "naive: the whole graph: CRASH: no response in 0.1 s");
    expect_text(ran.out, "naive: CRASH %2 conv2d");
    expect_text(ran.out, "\n    no response in 0.1 s");
    expect_text(ran.out, "3 comparisons, 3 failed");
    scoped(release) char *line = printed_line(ran.out);
    cr_assert_str_eq(line, "adjoint compare --op conv2d --in 1,96,96,64 --filter 5,5,64,64 "
                           "--neighbors 0 --configs onednn,naive --seed 1 --runs 1 --threads 1 "
                           "--guard --timeout 0.1");
}

typedef struct {
    adj_graph *g;
    const adj_comparison *c; /* reads the graph */
} comparison;

/* Compares a relu of so many images; alone: each kind of node by itself. */
static comparison compare(int64_t images, int alone)
{
    static const char *const configs[] = {"naive:f64", "naive"};
    comparison r = {adj_graph_new(), NULL};
    adj_node *y = adj_relu(adj_input(r.g, "x", ADJ_F32, (adj_shape){2, {images, 3}}));
    const adj_compare_opts o = {.exec = {.n_fetch = 1, .fetch = &y, .threads = 1},
                                .n_config = 2,
                                .config = configs,
                                .runs = 1};
    const adj_trial_opts trials = {.alone = alone};
    cr_assert_eq(adj_compare_with(r.g, &o, &trials, &r.c), ADJ_OK, "%s", r.c->message);
    return r;
}

static void free_comparison(comparison r)
{
    adj_comparison_free(r.c);
    adj_graph_free(r.g);
}

/* Returns the report of a comparison of two images, and of one of five if both; to be freed. */
static char *written(int (*write)(FILE *f, const void *source), int alone, int both)
{
    static reproducer none[2];
    const comparison five = compare(5, alone), two = compare(2, alone);
    const compare_run second = {.comparison = five.c, .again = none, .title = "five"};
    const compare_run first = {
        .comparison = two.c, .again = none, .title = "two", .also = both ? &second : NULL};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    cr_assert_eq(write(f, &first), 0);
    fclose(f);
    free_comparison(five);
    free_comparison(two);
    return text;
}

Test(compare_also, json)
{
    for (int both = 0; both < 2; both++) {
        scoped(release) char *text = written(write_json, 0, both);
        json_t *report = json_of(text), *also = json_object_get(report, "also");
        cr_expect_str_eq(word_in(report, "what"), "two");
        cr_expect_eq(also != NULL, both);
        if (both) {
            cr_expect_str_eq(word_in(also, "what"), "five");
            cr_expect_eq(json_array_size(json_object_get(also, "rows")), 1);
        }
    }
}

Test(compare_also, junit)
{
    for (int both = 0; both < 2; both++) {
        scoped(release) char *text = written(write_junit, 0, both);
        expect_text(text, "<testsuite name=\"naive\" ");
        cr_expect_eq(times_in(text, "<testsuite name=\"five: naive\" "), both, "%s", text);
    }
}

static int write_rows(FILE *f, const void *source)
{
    write_table(f, source);
    return 0;
}

Test(compare_also, table_says_what_it_does_not_see)
{
    scoped(release) char *text = written(write_rows, 0, 0);
    expect_text(text, "\n1 comparison, 0 failed (gradient rules are checked by "
                      "adjoint gradcheck)\n");
}

/* Each kind of node alone: there is no step that took a time, and no plan that repeats. */
Test(compare_also, says_no_more_than_what_was_run)
{
    scoped(release) char *text = written(write_json, 1, 0);
    json_t *report = json_of(text);
    for (size_t k = 0; k < 2; k++) {
        const json_t *whole = json_array_get(json_object_get(report, "configurations"), k);
        cr_expect(json_is_null(json_object_get(whole, "ms")), "%s", text);
        cr_expect(json_is_null(json_object_get(whole, "repeats")), "%s", text);
    }
}
