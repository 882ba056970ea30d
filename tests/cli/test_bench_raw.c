/* test_bench_raw.c - adjoint bench --raw with a backend whose kernels take known times: planned and
 * fastest kernels, number of runs, and regret. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "tests/reference.h"
#include "tests/temporary.h"
#include "tests/virtual_clock.h"
#include "tests/plan.h"

/* Candidates of every forward convolution, in the order of the backend. */
enum { MIDDLING, FAST, HOPELESS, N_SPIN };
static const struct {
    const char *name;
    double ms;
} spins[N_SPIN] = {{"middling", 6}, {"fast", 2}, {"hopeless", 80}};
static int runs[N_SPIN];
static int fails; /* the fast one does */

/* Where the filter is block1/conv2's, the first two are the other way round: its equal,
 * block1/conv1, is planned otherwise. */
static adj_status prepare_spin(void *backend, const adj_group *g, int number, adj_prep *p)
{
    (void)backend;
    const adj_node *n = g->node[0];
    if (g->n_node != 1 || strcmp(n->op->name, "conv2d") != 0 || number >= N_SPIN)
        return ADJ_ENOKERNEL;
    int swapped = strcmp(adj_node_name(n->in[1]), "block1/conv2/w") == 0 && number != HOPELESS;
    int index = swapped ? 1 - number : number;
    snprintf(p->impl, sizeof p->impl, "%s", spins[index].name);
    p->state = &runs[index];
    return ADJ_OK;
}

static adj_status run_spin(const adj_call *c)
{
    int *run = c->state;
    pass_ms(spins[run - runs].ms);
    ++*run;
    return fails && run == &runs[FAST] ? ADJ_EBACKEND : ADJ_OK;
}

static const adj_kernel spin = {.name = "spin", .prepare = prepare_spin, .run = run_spin};
static const adj_kernel *const kernels[] = {&spin, NULL};
static const adj_backend spinning = {.version = ADJ_VERSION,
                                     .name = "spinning",
                                     .open = open_nothing,
                                     .close = close_nothing,
                                     .kernels = kernels};

/* With naive for all other ops. Measures and returns the JSON. */
static json_t *raw(bench_opts o)
{
    const adj_backend *list[] = {&spinning, NULL, NULL};
    for (int i = 0; adj_backends[i] != NULL; i++)
        if (strcmp(adj_backends[i]->name, "naive") == 0)
            list[1] = adj_backends[i];
    const temporary file = temporary_file();
    json_error_t e;
    memset(runs, 0, sizeof runs);
    o.raw = o.batch = o.threads = 1;
    o.backends = list;
    o.json = file.s;
    cr_assert_eq(bench_raw(&o), 0);
    json_t *j = json_load_file(file.s, 0, &e);
    unlink(file.s);
    cr_assert_not_null(j, "%s", e.text);
    return j;
}

static double number(const json_t *j, const char *key)
{
    const json_t *v = json_object_get(j, key);
    cr_assert(json_is_number(v), "%s", key);
    return json_number_value(v);
}

/* Returns the number of rows of that kernel, weighted by the number of planned uses. */
static int count_rows(const json_t *j, const char *impl, const char *key)
{
    const json_t *rows = json_object_get(j, "rows");
    int n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *v = json_object_get(row, key);
        if (strcmp(json_string_value(json_object_get(row, "implementation")), impl) == 0)
            n += json_is_number(v) ? (int)json_number_value(v) : json_is_true(v);
    }
    return n;
}

TestSuite(bench_raw, .init = plan_as_usual);

/* Untimed, the plan takes the first that is offered: three times as long as the fastest. */
Test(bench_raw, untuned)
{
    json_t *j = raw((bench_opts){.model = "lenet", .infer = 1, .seconds = 2});
    cr_expect_eq(number(j, "convolutions"), 2);
    cr_expect_eq(number(j, "different"), 2);
    cr_expect_eq(count_rows(j, "middling", "planned_count"), 2);
    cr_expect_eq(count_rows(j, "fast", "planned_count"), 0);
    cr_expect_eq(count_rows(j, "fast", "fastest"), 2);
    cr_expect_eq(count_rows(j, "hopeless", "count"), 0, "only planned and fastest are reported");
    cr_expect(number(j, "planned_ms") >= 2 * 6 && number(j, "fastest_ms") >= 2 * 2);
    cr_expect(number(j, "regret") > 1.5 && number(j, "regret") < 4, "%g", number(j, "regret"));
    cr_expect_float_eq(number(j, "regret"), number(j, "planned_ms") / number(j, "fastest_ms"),
                       1e-6);
    cr_expect_eq(runs[HOPELESS], 2, "once for each, not %d times", runs[HOPELESS]);
    cr_expect_geq(runs[FAST], 2 * 5);
    cr_expect_eq(number(j, "untimed"), 0);
    cr_expect_eq(number(j, "unmatched"), 0);
    json_decref(j);
}

/* A tuned plan takes the fastest, which is no regret. */
Test(bench_raw, tuned)
{
    json_t *j = raw((bench_opts){.model = "lenet", .infer = 1, .seconds = 1, .tune = 1});
    cr_expect_eq(count_rows(j, "fast", "planned_count"), 2);
    cr_expect_eq(count_rows(j, "fast", "fastest"), 2);
    cr_expect_eq(number(j, "regret"), 1);
    cr_expect_eq(number(j, "planned_ms"), number(j, "fastest_ms"));
    json_decref(j);
}

/* Equal convolutions are timed once, though the plan computes one of two by the fastest kernel. */
Test(bench_raw, equals)
{
    json_t *j = raw((bench_opts){.model = "resnet8", .seconds = 4, .backend = "spinning"});
    cr_expect_eq(number(j, "convolutions"), 9 + 8 + 9); /* no gradient of the images */
    cr_expect_eq(count_rows(j, "middling", "planned_count"), 8);
    cr_expect_eq(count_rows(j, "fast", "planned_count"), 1);
    cr_expect_eq(count_rows(j, "fast", "count"), 9);
    cr_expect_eq(count_rows(j, "fast", "fastest"), 8, "eight are different");
    cr_expect_eq(number(j, "unmatched"), 8 + 9, "naive's are not to be timed");
    double fast = number(j, "fastest_ms") / 9, middling = (number(j, "planned_ms") - fast) / 8;
    cr_expect(fast >= 2 && fast < 4 && middling >= 5.5 && middling < 8, "%g, %g", fast, middling);
    json_decref(j);
}

/* Where there is no time, what is planned runs once all the same. */
Test(bench_raw, bound)
{
    json_t *j = raw((bench_opts){.model = "lenet", .infer = 1, .seconds = 0});
    cr_expect(runs[MIDDLING] == 2 && runs[FAST] == 0 && runs[HOPELESS] == 0, "%d, %d, %d",
              runs[MIDDLING], runs[FAST], runs[HOPELESS]);
    cr_expect_eq(number(j, "untimed"), 2 * 2);
    cr_expect_eq(number(j, "regret"), 1);
    json_decref(j);
}

/* A kernel that fails is reported and not compared. */
Test(bench_raw, failing)
{
    fails = 1;
    json_t *j = raw((bench_opts){
        .model = "lenet", .infer = 1, .seconds = 0.5, .all = 1, .backend = "spinning"});
    cr_expect_eq(count_rows(j, "fast", "count"), 2);
    cr_expect_eq(count_rows(j, "fast", "runs"), 0);
    cr_expect_eq(count_rows(j, "fast", "fastest"), 0);
    cr_expect_eq(count_rows(j, "middling", "fastest"), 2);
    cr_expect_eq(number(j, "regret"), 1);
    cr_expect_eq(runs[FAST], 2);
    json_decref(j);
}
