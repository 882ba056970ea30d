/* test_compare.c - adjoint compare from the command line: exit statuses, formats, child processes;
 * --infer, the graph that predict runs, with batch norms folded into filters where allowed. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "adjoint.h"
#include "cli/process.h"
#include "tests/isa.h"
#include "tests/plan.h"

#define SMALL "compare --model lenet --batch 2 --size 8 --runs 1 --threads 1 "

Test(compare_cli, wrong_usage)
{
    static const call calls[] = {
        {3, NULL, "unknown model lenett (did you mean lenet?)", "--model lenett"},
        {3, NULL, "(got \"onednm\", expected one of onednn, direct, naive)",
         "--configs naive:f64,onednm"},
        {3, NULL, "did you mean bf16?", "--configs naive:f64,onednn:bf17"},
        {3, NULL, "--configs: expected at least two", "--configs naive"},
        {3, NULL, "did you mean --exact?", "--exakt"},
        {3, NULL, "ambiguous option --s (--size, --seed or --shrink)", "--s 3"},
        {3, NULL, "--dtype requires --op; for a model, set it in --configs", "--dtype bf16"},
        {3, NULL, "--attr requires --op", "--model lenet --attr strides=1,1,1,1"},
        {3, NULL, "--precision: set it per configuration", "--precision bf16"},
        {3, NULL, "--size: expected N or HxW", "--size 8x"},
        {3, NULL, "--json and --junit cannot both be standard output", "--junit - --json=-"},
        {3, NULL, "--model cannot be combined with --op", "--op relu"},
        {3, NULL, "expected 1 to", "--batch 0"},
        {3, NULL, "did you mean avx2?", "--configs naive:f64,onednn:isa=avx22"},
        {3, NULL, "did you mean threads=?", "--configs naive:f64,onednn:thread=2"},
        {3, NULL, "unknown backend (got \"cuda\"", "--configs naive;cuda"},
        {3, NULL, "--node: not a node of lenet (got", "--node 100000"},
    };
    expect_calls(SMALL, sizeof calls / sizeof *calls, calls);
}

Test(compare_cli, table)
{
    prints(0, "conv2d_backprop_filter", SMALL "--configs naive:f64,naive,onednn,onednn:bf16");
    expect_text(ran.out, "comparisons, 0 failed");
    prints(0, "\nonednn,conv2d=naive,max_pool=naive: ",
           SMALL "--configs naive:f64;onednn,conv2d=naive,max_pool=naive --all");
    for (const char *p = ran.out; (p = strstr(p, " conv2d  ")) != NULL; p++)
        cr_assert_eq(strncmp(strchr(p, '\n') - 9, "naive:f32", 9), 0, "%s", p);
    prints(0, "integers", SMALL "--configs naive:f64,naive --exact --all");
}

/* Elements of a group of integers share the errors of few values, such as e^-1 and e^-4. */
Test(compare_cli, groups_of_integers)
{
    tool(0, "compare --op erf --dtype bf16 --exact --seed 2034186605 --configs naive:f64,direct "
            "--threads 1 --runs 1");
}

/* oneDNN computes no f64; ops without any oneDNN kernel are not reported. */
Test(compare_cli, refused_nodes)
{
    prints(0,
           "6 comparisons, 0 failed; onednn refuses 3 nodes, which other "
           "kernels compute: conv2d, conv2d_backprop_input, "
           "conv2d_backprop_filter (",
           "compare --op conv2d --in 1,5,5,2 --filter 3,3,2,2 --dtype f64 --configs "
           "naive:f64,naive,onednn --neighbors 0");
    tool(ANY_STATUS, "compare --op prelu --in 2,3 --configs naive:f64,onednn");
    cr_assert_null(strstr(ran.out, "refuses"), "%s", ran.out);
}

Test(compare_cli, json)
{
    const temporary file = temporary_file();
    tool(0, SMALL "--json %s --configs naive:f64,naive:nchw", file.s);
    json_t *all = json_of_file(file.s);
    cr_assert_eq(number_in(all, "failed"), 0);
    cr_assert_eq(json_array_size(json_object_get(all, "configurations")), 2);
    json_t *rows = json_object_get(all, "rows"), *row = json_array_get(rows, 0);
    cr_assert_gt(json_array_size(rows), 40);
    cr_assert_str_eq(word_in(row, "configuration"), "naive:nchw");
    cr_assert(json_is_object(json_object_get(row, "isolated")));
}

Test(compare_cli, junit)
{
    tool(0, SMALL "--junit - --configs naive:f64,naive");
    cr_assert_eq(strncmp(ran.out, "<?xml", 5), 0);
    cr_assert_eq(times_in(ran.out, "<testsuite "), 2); /* the reference, and the other */
    cr_assert_gt(times_in(ran.out, "<testcase "), 40);
    cr_assert_eq(times_in(ran.out, "<failure"), 0);
}

Test(compare_cli, options_without_effect)
{
    static const call calls[] = {
        {3, NULL, "--batch cannot be combined with --op", "--op relu --batch 2"},
        {3, NULL, "--also-batch cannot be combined with --op", "--op relu --also-batch 0"},
        {3, NULL, "--size cannot be combined with --op", "--size=8 --op relu"},
        {3, NULL, "--neighbors requires --op NAME", "--neighbors 0"},
        {3, NULL, "--timeout requires --guard, or isa= in --configs", "--timeout 5"},
    };
    expect_calls("compare", sizeof calls / sizeof *calls, calls);
}

/* A leaf is wrong usage; a name that no implementation has leaves the question open. */
Test(compare_cli, nothing_to_compare)
{
    static const call calls[] = {
        {3, NULL, "--op fill: a leaf has no kernel", "--op fill"},
        {2, "", "naive:impl=xyz: no node has",
         "--op relu --neighbors 0 --configs naive:f64,naive:impl=xyz"},
        {0, "", "", "--op relu --neighbors 0 --configs naive:f64,naive:impl=f32"},
    };
    expect_calls("compare", sizeof calls / sizeof *calls, calls);
}

/* On another instruction set, in another process. */
Test(compare_cli, isa)
{
    static const struct {
        const char *configs, *dtype, *says, *never;
    } cases[] = {
        {"naive:f64,onednn:isa=sse41", "f32", "3 comparisons, 0 failed", "avx"},
        {"naive:f64,onednn:isa=avx2", "f32", "3 comparisons, 0 failed", "avx512"},
        /* where oneDNN would emulate bf16, convolutions are computed in f32 */
        {"naive:f64,onednn:isa=avx512_core", "bf16", " comparisons, 0 failed", "bf16:avx"}};
    unsetenv("ADJOINT_PLAN");
    for (int i = 0; i < 3; i++) {
        prints(0, cases[i].says,
               "compare --op conv2d --in 2,8,8,16 --filter 3,3,16,8 --runs 1 --threads 1 "
               "--neighbors 0 --configs %s --dtype %s",
               cases[i].configs, cases[i].dtype);
        cr_assert_null(strstr(ran.out, cases[i].never), "%s", ran.out);
    }
    complains(3, "in the first configuration, the reference",
              "compare --op conv2d --configs onednn:isa=avx2,naive");
}

/* Its plan has nodes that equal others, which are computed anew for the gradient: already what node
 * 150 needs, which is the input gradient of a convolution before a batch norm. */
Test(compare_cli, isa_of_copies)
{
    if (!cpu_has("avx2"))
        cr_skip_test("this CPU has no avx2\n");
    tool(0, "compare --model resnet8 --batch 2 --runs 1 --also-batch 0 --configs "
            "naive,onednn:isa=avx2 --node 150");
    cr_expect_null(strstr(ran.out, "the response is cut off"), "%s", ran.out);
    cr_expect(strstr(ran.out, " batch_norm_grad  ") && strstr(ran.out, " conv2d_backprop_input  "),
              "150 is another node now: %s", ran.out);
}

#define CONV_6035                                                                                  \
    "compare --op conv2d --in 8,64,64,12 --filter 1,1,12,16 --attr strides=1,2,2,1 "               \
    "--configs naive:f64,onednn --runs 1 --guard --exact --threads 1 --timeout 20 --neighbors 0 "

/* oneDNN issue 6035: without the quarantine a crash, a hang, wrong numbers or luck; never the end
 * of the tool. With it, right. */
Test(compare_cli, guard_survives)
{
    prints(0, "3 comparisons, 0 failed", CONV_6035);
    expect_crashes();
    setenv("ADJOINT_QUARANTINE", "off", 1);
    tool(ANY_STATUS, CONV_6035 "--shrink 2");
    cr_assert(ran.status == 0 || ran.status == 1, "%d: %s", ran.status, ran.err);
    expect_text(ran.out, "3 comparisons, ");
    if (ran.status == 1) {
        expect_text(ran.out, "conv2d_backprop_filter");
        /* timed with all others, it may crash in the whole graph alone */
        cr_assert(strstr(ran.out, "to blame: kernel") != NULL ||
                      strstr(ran.out, "the whole graph: CRASH") != NULL,
                  "%s", ran.out);
        if (strstr(ran.out, ": CRASH %") != NULL)
            expect_text(ran.out, "1 CRASH  ");
        expect_text(ran.out, "again: ADJOINT_QUARANTINE=off adjoint compare --op conv2d");
    }
}

/* Seconds of processor time that a process has used. */
static double used_by(pid_t pid)
{
    char text[PROC_TEXT];
    unsigned long user = 0, kernel = 0;
    read_proc(pid, "stat", text);
    if (sscanf(text, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &kernel) != 2)
        return 0;
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

/* A child that neither responds nor ends, stopped here as if in an endless loop. The report names
 * its operation. */
Test(compare_cli, guard_and_a_hang)
{
    child c = tool_start("compare --op conv2d --in 1,64,64,64 --filter 3,3,64,64 --configs "
                         "naive:f64,naive --runs 1 --guard --timeout 1 --shrink 0 --neighbors 0 "
                         "--threads 1");
    pid_t trial = 0;
    for (int i = 0; i < 200000 && (trial == 0 || used_by(trial) < 0.1); i++) {
        usleep(500);
        trial = trial_of(c.pid);
    }
    cr_expect_gt(trial, 0);
    if (trial > 0)
        kill(trial, SIGSTOP);
    child_finish(&c);
    cr_assert_eq(ran.status, 1, "%s%s", ran.out, ran.err);
    cr_assert(strstr(ran.out, "no response in 1 s in conv2d") != NULL ||
                  strstr(ran.out, "no response in 1 s in planning") != NULL,
              "%s", ran.out);
    cr_assert(strstr(ran.out, " in conv2d") == NULL || strstr(ran.out, " (estimated at ") != NULL,
              "%s", ran.out);
    expect_text(ran.out, "CRASH");
    expect_text(ran.out, "3 comparisons, ");
}

TestSuite(compare_infer, .init = plan_as_usual);

/* No gradients and no updates, the probabilities last; batch norms are there alone, and folded:
 * what is left of them is behind convolutions, and a filter's factor. */
Test(compare_infer, is_what_predict_runs)
{
    static const char *const there[] = {"mobilenet_v1, inference, batch 1",
                                        "  softmax ",
                                        "  batch_norm ",
                                        "  add+sqrt+div ",
                                        "  mul+sub ",
                                        ", 0 failed"},
                             *const absent[] = {"_grad", "backprop", "momentum", "cross_entropy",
                                                "  batch_norm+"};
    tool(0, "compare --model mobilenet_v1 --size 32 --batch 1 --runs 1 --also-batch 0 --threads 1 "
            "--configs naive:f64,direct --infer");
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        expect_text(ran.out, there[i]);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        cr_expect_null(strstr(ran.out, absent[i]), "\"%s\": %s", absent[i], ran.out);
}

Test(compare_infer, refused)
{
    static const call calls[] = {
        {3, NULL, "--infer cannot be combined with --op", "--op relu --infer"},
        {3, NULL, "--optimizer requires --model without --infer",
         "--model lenet --optimizer adam --infer"},
    };
    expect_calls("compare", sizeof calls / sizeof *calls, calls);
}

Test(compare_infer, optimizer_of_a_training_step)
{
    prints(
        0, "\n  adam_step  ",
        "compare --model lenet --optimizer adam --configs naive:f64,naive --also-batch 0 --runs 1");
}
