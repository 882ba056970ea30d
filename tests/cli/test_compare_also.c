/* test_compare_also.c - if both batches of adjoint compare --model fail, JSON and JUnit reports
 * hold both. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/write.h"

typedef struct {
    adj_graph *g;
    const adj_comparison *c; /* reads the graph */
} comparison;

static comparison compare_as(int64_t images, int alone)
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

static comparison compare(int64_t images) { return compare_as(images, 0); }

static void release(comparison r)
{
    adj_comparison_free(r.c);
    adj_graph_free(r.g);
}

static reproducer none[2];

/* Returns the report of one comparison or of two, to be freed. */
static char *written(int (*write)(FILE *f, const void *source), int both)
{
    const comparison five = compare(5), two = compare(2);
    const compare_source second = {five.c, "five", "again five", none, 0, NULL},
                         first = {two.c, "two", "again two", none, 0, both ? &second : NULL};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    cr_assert_eq(write(f, &first), 0);
    fclose(f);
    release(five);
    release(two);
    return text;
}

Test(compare_also, json)
{
    for (int both = 0; both < 2; both++) {
        char *text = written(write_json, both);
        json_t *report = json_loads(text, 0, NULL), *also = json_object_get(report, "also");
        cr_assert_not_null(report, "%s", text);
        cr_expect_str_eq(json_string_value(json_object_get(report, "what")), "two");
        cr_expect_eq(also != NULL, both);
        if (both) {
            cr_expect_str_eq(json_string_value(json_object_get(also, "what")), "five");
            cr_expect_eq(json_array_size(json_object_get(also, "rows")), 1);
        }
        json_decref(report);
        free(text);
    }
}

Test(compare_also, other_forms)
{
    static const struct {
        int (*write)(FILE *f, const void *source);
        const char *first, *second;
    } forms[] = {
        {write_junit, "<testsuite name=\"naive\" ", "<testsuite name=\"five: naive\" "},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int both = 0; both < 2; both++) {
            char *text = written(forms[i].write, both);
            cr_expect_not_null(strstr(text, forms[i].first), "%s", text);
            cr_expect_eq(strstr(text, forms[i].second) != NULL, both, "%s", text);
            free(text);
        }
}

Test(compare_also, table_says_what_it_does_not_see)
{
    const comparison two = compare(2);
    const compare_source source = {two.c, "two", "again two", none, 0, NULL};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    write_table(f, &source);
    fclose(f);
    cr_expect_not_null(strstr(text, "\n1 comparison, 0 failed (gradient rules are checked by "
                                    "adjoint gradcheck)\n"),
                       "%s", text);
    free(text);
    release(two);
}

/* Each kind of node alone: there is no step that took a time, and no plan that repeats. */
Test(compare_also, says_no_more_than_what_was_run)
{
    const comparison two = compare_as(2, 1);
    const compare_source source = {two.c, "two", "again two", none, 0, NULL};
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    cr_assert_eq(write_json(f, &source), 0);
    fclose(f);
    json_t *report = json_loads(text, 0, NULL);
    for (size_t k = 0; k < 2; k++) {
        const json_t *whole = json_array_get(json_object_get(report, "configurations"), k);
        cr_expect(json_is_null(json_object_get(whole, "ms")), "%s", text);
        cr_expect(json_is_null(json_object_get(whole, "repeats")), "%s", text);
    }
    json_decref(report);
    free(text);
    release(two);
}
