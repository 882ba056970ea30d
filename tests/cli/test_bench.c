/* test_bench.c - adjoint bench from the command line: output, files and errors. Tests relations
 * between numbers, never their size; and --raw with a backend whose kernels take known times:
 * planned and fastest kernels, number of runs, and regret. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/bench.h"
#include "cli/rows.h"
#include "tests/reference.h"
#include "tests/virtual_clock.h"

#define BENCH "bench --seconds 0.02 --threads 1 "

/* Measures with --json, and returns that. */
static json_t *measure(const char *options)
{
    tool(0, BENCH "%s --json", options);
    return json_of(ran.out);
}

static int is_about(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(b); }

Test(bench_cli, refused) { expect_rows("refused"); }

static void check_step(const json_t *j, double batch, const char *dtype)
{
    static const char *const counts[] = {
        "arena_bytes", "live_bytes",  "storage_bytes", "read_bytes",     "written_bytes", "steps",
        "reorders",    "naive_steps", "runs",          "peak_rss_bytes", "gflops"};
    double median = number_in(j, "median_ms");
    cr_assert_gt(number_in(j, "min_ms"), 0);
    cr_assert_leq(number_in(j, "min_ms"), number_in(j, "q1_ms"));
    cr_assert_leq(number_in(j, "q1_ms"), median);
    cr_assert_leq(median, number_in(j, "q3_ms"));
    /* a difference of printed numbers, which may be next to each other */
    cr_assert_float_eq(number_in(j, "spread"),
                       (number_in(j, "q3_ms") - number_in(j, "q1_ms")) / median, 1e-6);
    cr_assert(is_about(number_in(j, "images_per_s") * median, 1e3 * batch));
    cr_assert_gt(number_in(j, "plan_ms"), 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        cr_assert_geq(number_in(j, counts[i]), 0, "%s", counts[i]);
    cr_assert_gt(number_in(j, "steps"), 3);
    cr_assert_gt(number_in(j, "arena_bytes"), 0);
    cr_assert_geq(number_in(j, "arena_bytes"), number_in(j, "live_bytes"));
    cr_assert_gt(number_in(j, "peak_rss_bytes"), number_in(j, "arena_bytes"));
    cr_assert_eq(number_in(j, "batch"), batch);
    cr_assert_eq(number_in(j, "threads"), 1);
    cr_assert_str_eq(word_in(j, "dtype"), dtype);
}

Test(bench_cli, steps)
{
    json_t *j = measure("--model lenet --batch 2");
    check_step(j, 2, "f32");
    double gflop = number_in(j, "gflops") * number_in(j, "median_ms");
    cr_assert(json_is_false(json_object_get(j, "infer")));
    cr_assert(json_is_number(json_object_get(j, "loss")));

    j = measure("--model lenet --batch 2 --infer");
    check_step(j, 2, "f32");
    cr_assert(truth_in(j, "infer"));
    cr_assert(json_is_null(json_object_get(j, "loss")));
    /* lenet's forward pass: about a third of the step's multiplications (no gradient of images) */
    cr_assert_gt(number_in(j, "gflops") * number_in(j, "median_ms"), 0.25 * gflop);
    cr_assert_lt(number_in(j, "gflops") * number_in(j, "median_ms"), 0.5 * gflop);

    j = measure("--model lenet --batch 1 --precision bf16");
    check_step(j, 1, "f32");
    cr_assert_str_eq(word_in(j, "precision"), "bf16");

    j = measure("--model resnet8 --batch 1 --dtype bf16 --backend naive");
    check_step(j, 1, "bf16");
    cr_assert_eq(number_in(j, "naive_steps"), number_in(j, "steps"));

    prints(0, "\nimages_per_s: ", BENCH "--model lenet --batch 2 --math fast");
}

/* Activations of mobilenet_v1 are recomputed unasked. */
Test(bench_cli, unasked)
{
    unsetenv("ADJOINT_PLAN");
    json_t *j = measure("--model mobilenet_v1 --batch 8 --threads 1 --seconds 0");
    cr_expect_gt(number_in(j, "recomputed"), 0);
}

/* The second run uses the tune file of the first; an invalid file is ignored with one line. */
Test(bench_cli, tune)
{
    enter_empty();
    setenv("ADJOINT_TUNE", "tune", 1);
    put_file("tune", "adjoint tune 0\n", 15);
    for (int i = 0; i < 2; i++) {
        json_t *j = measure("--model lenet --batch 2 --infer --tune");
        check_step(j, 2, "f32");
        cr_assert(truth_in(j, "tune"));
        cr_assert((number_in(j, "timed") > 0) == (i == 0));
        cr_assert((number_in(j, "cached") > 0) == (i == 1));
        if (i == 0)
            expect_text(ran.err, "is ignored");
        else
            cr_assert_str_eq(ran.err, "");
    }
    leave();
}

Test(bench_cli, profile)
{
    json_t *j = measure("--model lenet --batch 4 --profile"), *rows = json_object_get(j, "profile");
    cr_assert_eq((double)json_array_size(rows), number_in(j, "steps"));
    prints(0, "conv2d_backprop_filter", BENCH "--model lenet --batch 2 --profile");
    expect_text(ran.out, "steps by op");
}

/* All rows of an op; how many are planned and how many fastest. */
static void count_rows(const json_t *rows, const char *op, int n[3])
{
    n[0] = n[1] = n[2] = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(word_in(row, "op"), op) != 0)
            continue;
        n[0]++;
        n[1] += truth_in(row, "planned");
        n[2] += truth_in(row, "fastest");
        cr_assert_gt(number_in(row, "us"), 0);
        cr_assert_leq(number_in(row, "min_us"), number_in(row, "us"));
    }
}

Test(bench_cli, op)
{
    static const char *const three[] = {"conv2d", "conv2d_backprop_input",
                                        "conv2d_backprop_filter"};
    int n[3];
    json_t *j = measure("--op conv2d --in 2,8,8,16 --filter 3,3,16,16 --all --warm");
    cr_assert_str_eq(word_in(j, "buffers"), "warm");
    for (int i = 0; i < 3; i++) {
        count_rows(json_object_get(j, "rows"), three[i], n);
        cr_assert_gt(n[0], 1, "%s", three[i]);
        cr_assert_eq(n[1], 1, "%s", three[i]);
        cr_assert_eq(n[2], 1, "%s", three[i]);
    }
    const json_t *row = json_array_get(json_object_get(j, "rows"), 0);
    double flop = 2.0 * 2 * 8 * 8 * 16 * 16 * 9;
    cr_assert(is_about(number_in(row, "gflops") * number_in(row, "us") * 1e3, flop));

    /* images in NCHW have the candidates of the node that an executor makes of it */
    j = measure("--op conv2d --in 2,16,8,6 --filter 3,1,16,16 --attr "
                "padding=VALID,data_format=NCHW --all --warm");
    row = json_array_get(json_object_get(j, "rows"), 0);
    flop = 2.0 * 2 * (8 - 2) * 6 * 16 * 16 * 3;
    cr_assert(is_about(number_in(row, "gflops") * number_in(row, "us") * 1e3, flop));
    for (int i = 0; i < 3; i++) {
        count_rows(json_object_get(j, "rows"), three[i], n);
        cr_assert(n[0] > 1 && n[1] == 1 && n[2] == 1, "%s", three[i]);
    }

    j = measure("--op max_pool --in 1,8,8,4");
    cr_assert_str_eq(word_in(j, "buffers"), "cold");
    cr_assert_eq(json_array_size(json_object_get(j, "rows")), 2); /* and max_pool_grad */

    j = measure("--op relu --all --backend onednn,direct");
    for (size_t i = 0; i < json_array_size(json_object_get(j, "rows")); i++) {
        row = json_array_get(json_object_get(j, "rows"), i);
        cr_assert_str_neq(word_in(row, "backend"), "naive");
    }
    prints(0, "naive:f32", BENCH "--op conv2d --in 1,8,8,3 --backend naive");
}

/* That the sums are those of the rows, and each convolution has its planned kernel and a fastest.
 */
static void check_raw(const json_t *j, int convolutions)
{
    const json_t *rows = json_object_get(j, "rows");
    double fastest = 0, planned = 0, n_fastest = 0, n_planned = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        double ms = 1e-3 * number_in(row, "min_us"), times = number_in(row, "planned_count");
        planned += ms * times;
        n_planned += times;
        cr_assert_eq(truth_in(row, "planned"), times > 0);
        if (truth_in(row, "fastest")) {
            fastest += ms * number_in(row, "count");
            n_fastest += number_in(row, "count");
        }
    }
    cr_assert(is_about(number_in(j, "fastest_ms"), fastest));
    cr_assert(is_about(number_in(j, "planned_ms"), planned));
    cr_assert(is_about(number_in(j, "rival_ms"), fastest));
    cr_assert(is_about(number_in(j, "regret"), planned / fastest));
    cr_assert_geq(number_in(j, "regret"), 1);
    cr_assert_eq(number_in(j, "convolutions"), convolutions);
    cr_assert_eq(n_fastest, convolutions);
    cr_assert_eq(n_planned, convolutions);
    cr_assert_eq(number_in(j, "unmatched"), 0);
}

#define RAW "--model resnet8 --batch 1 --raw "

Test(bench_cli, raw)
{
    static const char *const more[] = {RAW, RAW "--tune", RAW "--precision bf16",
                                       RAW "--dtype bf16", RAW "--math fast --warm"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        json_t *j = measure(more[i]);
        check_raw(j, 9 + 8 + 9); /* no gradient of the images */
        cr_assert_eq(truth_in(j, "tune"), i == 1);
        cr_assert_str_eq(word_in(j, "buffers"), i == 4 ? "warm" : "cold");
    }
    prints(0, "\nconvolutions: 27\n", BENCH "--model mobilenet_v1 --batch 1 --infer --raw");
    expect_text(ran.out, "\nregret: ");
}

/* ---- --raw ---- */

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

/* With naive for all other ops. Measures and returns the JSON. */
static json_t *raw(bench_opts o)
{
    const temporary file = temporary_file();
    memset(runs, 0, sizeof runs);
    o.raw = o.batch = o.threads = 1;
    o.backends = before_naive("spinning", &spin);
    o.json = file.s;
    cr_assert_eq(bench_raw(&o), 0);
    return json_of_file(file.s);
}

/* Returns the number of rows of that kernel, weighted by the number of planned uses. */
static int count_uses(const json_t *j, const char *impl, const char *key)
{
    const json_t *rows = json_object_get(j, "rows");
    int n = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *v = json_object_get(row, key);
        if (strcmp(word_in(row, "implementation"), impl) == 0)
            n += json_is_number(v) ? (int)json_number_value(v) : json_is_true(v);
    }
    return n;
}

TestSuite(bench_raw, .init = plan_as_usual);

/* Untimed, the plan takes the first that is offered: three times as long as the fastest. */
Test(bench_raw, untuned)
{
    json_t *j = raw((bench_opts){.model = "lenet", .infer = 1, .seconds = 2});
    cr_expect_eq(number_in(j, "convolutions"), 2);
    cr_expect_eq(number_in(j, "different"), 2);
    cr_expect_eq(count_uses(j, "middling", "planned_count"), 2);
    cr_expect_eq(count_uses(j, "fast", "planned_count"), 0);
    cr_expect_eq(count_uses(j, "fast", "fastest"), 2);
    cr_expect_eq(count_uses(j, "hopeless", "count"), 0, "only planned and fastest are reported");
    cr_expect(number_in(j, "planned_ms") >= 2 * 6 && number_in(j, "fastest_ms") >= 2 * 2);
    cr_expect(number_in(j, "regret") > 1.5 && number_in(j, "regret") < 4, "%g",
              number_in(j, "regret"));
    cr_expect_float_eq(number_in(j, "regret"),
                       number_in(j, "planned_ms") / number_in(j, "fastest_ms"), 1e-6);
    cr_expect_eq(runs[HOPELESS], 2, "once for each, not %d times", runs[HOPELESS]);
    cr_expect_geq(runs[FAST], 2 * 5);
    cr_expect_eq(number_in(j, "untimed"), 0);
    cr_expect_eq(number_in(j, "unmatched"), 0);
}

/* A tuned plan takes the fastest, which is no regret. */
Test(bench_raw, tuned)
{
    json_t *j = raw((bench_opts){.model = "lenet", .infer = 1, .seconds = 1, .tune = 1});
    cr_expect_eq(count_uses(j, "fast", "planned_count"), 2);
    cr_expect_eq(count_uses(j, "fast", "fastest"), 2);
    cr_expect_eq(number_in(j, "regret"), 1);
    cr_expect_eq(number_in(j, "planned_ms"), number_in(j, "fastest_ms"));
}

/* Equal convolutions are timed once, though the plan computes one of two by the fastest kernel. */
Test(bench_raw, equals)
{
    json_t *j = raw((bench_opts){.model = "resnet8", .seconds = 4, .backend = "spinning"});
    cr_expect_eq(number_in(j, "convolutions"), 9 + 8 + 9); /* no gradient of the images */
    cr_expect_eq(count_uses(j, "middling", "planned_count"), 8);
    cr_expect_eq(count_uses(j, "fast", "planned_count"), 1);
    cr_expect_eq(count_uses(j, "fast", "count"), 9);
    cr_expect_eq(count_uses(j, "fast", "fastest"), 8, "eight are different");
    cr_expect_eq(number_in(j, "unmatched"), 8 + 9, "naive's are not to be timed");
    double fast = number_in(j, "fastest_ms") / 9,
           middling = (number_in(j, "planned_ms") - fast) / 8;
    cr_expect(fast >= 2 && fast < 4 && middling >= 5.5 && middling < 8, "%g, %g", fast, middling);
}

/* Where there is no time, what is planned runs once all the same. */
Test(bench_raw, bound)
{
    json_t *j = raw((bench_opts){.model = "lenet", .infer = 1, .seconds = 0});
    cr_expect(runs[MIDDLING] == 2 && runs[FAST] == 0 && runs[HOPELESS] == 0, "%d, %d, %d",
              runs[MIDDLING], runs[FAST], runs[HOPELESS]);
    cr_expect_eq(number_in(j, "untimed"), 2 * 2);
    cr_expect_eq(number_in(j, "regret"), 1);
}

/* A kernel that fails is reported and not compared. */
Test(bench_raw, failing)
{
    fails = 1;
    json_t *j = raw((bench_opts){
        .model = "lenet", .infer = 1, .seconds = 0.5, .all = 1, .backend = "spinning"});
    cr_expect_eq(count_uses(j, "fast", "count"), 2);
    cr_expect_eq(count_uses(j, "fast", "runs"), 0);
    cr_expect_eq(count_uses(j, "fast", "fastest"), 0);
    cr_expect_eq(count_uses(j, "middling", "fastest"), 2);
    cr_expect_eq(number_in(j, "regret"), 1);
    cr_expect_eq(runs[FAST], 2);
}
