/* test_compare.c - adjoint compare from the command line: exit statuses, formats, child processes;
 * --infer, the graph that predict runs, with batch norms folded into filters where allowed. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "adjoint.h"
#include "cli/process.h"
#include "cli/rows.h"
#include "tests/isa.h"
#include "tests/plan.h"

#define SMALL "compare --model lenet --batch 2 --size 8 --runs 1 --threads 1 "

Test(compare_cli, lenet) { expect_rows("lenet"); }

Test(compare_cli, backends_of_ops)
{
    prints(0, "\nonednn,conv2d=naive,max_pool=naive: ",
           SMALL "--configs naive:f64;onednn,conv2d=naive,max_pool=naive --all");
    for (const char *p = ran.out; (p = strstr(p, " conv2d  ")) != NULL; p++)
        cr_assert_eq(strncmp(strchr(p, '\n') - 9, "naive:f32", 9), 0, "%s", p);
}

Test(compare_cli, ops) { expect_rows("ops"); }

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

/* On another instruction set, in another process. */
Test(compare_cli, isa)
{
    unsetenv("ADJOINT_PLAN");
    expect_rows("isa");
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

Test(compare_infer, graphs) { expect_rows("graphs"); }
