/* test_compare_planted.c - both checkers on faults planted into oneDNN's backend (planted.h): a
 * filter gradient of LeNet that is wrong for more than eight images only is found at the second
 * batch size, which reports only what it ran; a kernel that crashes leads to --guard. */
#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

#include "cli/guard.h"
#include "tests/cli/child.h"
#include "tests/cli/planted.h"
#include "tests/isa.h"
#include "tests/plan.h"

static finished f;

static void run_lenet(const char *also_batch, int status)
{
    planted_use_tool();
    tool(&f, status,
         "compare --model lenet --size 12 --runs 1 --threads 1 --configs naive:f64,onednn "
         "--also-batch %s",
         also_batch);
}

Test(compare_images, few_are_right)
{
    run_lenet("8", 0);
    expect_text(f.out, "lenet, batch 8, seed 1, each kind of node alone");
}

Test(compare_images, many_are_wrong)
{
    need_onednn_kernels();
    run_lenet("17", 1);
    const char *second = strstr(f.out, "lenet, batch 17, seed 1\n");
    cr_assert_not_null(second, "%s", f.out);
    expect_text(f.out, " 0 failed (gradient rules are checked by");
    cr_expect_not_null(strstr(second, "\nreference naive:f64\n"), "%s", second);
    cr_expect_not_null(strstr(second, "\nonednn: each kind of node alone\n"), "%s", second);
    cr_expect_not_null(strstr(second, " conv2d_backprop_filter (onednn "), "%s", second);
    cr_expect_not_null(strstr(second, "to blame: kernel"), "%s", second);
    cr_expect_not_null(strstr(second, " 1 failed (gradient rules"), "%s", second);
}

/* The note that a kernel does not end. */
Test(compare_hang, is_told)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_node *n = adj_label(adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {1}})), "r1");
    char text[400] = "";
    FILE *f = tmpfile();
    const int kept = dup(STDERR_FILENO);
    dup2(fileno(f), STDERR_FILENO);
    announce_hangs((void *)"compare", n, "naive", "naive:f32", 0.5);
    raise(SIGALRM);
    end_of_kernels();
    dup2(kept, STDERR_FILENO);
    rewind(f);
    cr_expect_not_null(fgets(text, sizeof text, f));
    fclose(f);
    cr_expect_str_eq(text, "adjoint compare: note: the last kernel began 500 s ago: relu \"r1\" by "
                           "naive naive:f32, estimated at 0.5 s (adjoint compare --guard ends one "
                           "that hangs)\n");
    cr_expect_eq(kernel_limit(1e-4), 60); /* a loaded machine is no hang */
}

static void use_planted_tool(void)
{
    planted_use_tool();
    expect_crashes();
}
TestSuite(compare_crash, .init = use_planted_tool);

/* words: the command and its own options, NULL-ended. What the machine's own oneDNN does wrong is
 * not planned around. */
static void run_crashing(const char *const words[])
{
    char attr[48];
    const char *line[32] = {NULL};
    const char *const op[] = {"--in", "2,36,36,12",  "--filter", "3,3,12,16", "--attr",
                              attr,   "--neighbors", "0",        "--threads", "1"};
    int n = 0;
    setenv("ADJOINT_QUARANTINE", "off", 1);
    snprintf(attr, sizeof attr, "strides=1,%d,%d,1,padding=VALID", PLANTED_CRASH, PLANTED_CRASH);
    for (; words[n] != NULL; n++)
        line[n] = words[n];
    for (size_t i = 0; i < sizeof op / sizeof *op; i++)
        line[n++] = op[i];
    run_tool(line, &f);
}

#define COMPARE                                                                                    \
    "compare", "--op", "conv2d_backprop_filter", "--configs", "naive:f64,onednn", "--runs", "1",   \
        "--shrink", "0"

Test(compare_crash, leads_to_guard)
{
    need_onednn_kernels();
    run_crashing(WORDS(COMPARE));
    cr_expect_eq(f.status, 128 + SIGSEGV, "%d: %s%s", f.status, f.out, f.err);
    cr_expect_str_eq(f.err,
                     "adjoint compare: a kernel crashed; rerun with --guard to find out which\n");
}

Test(compare_crash, of_gradcheck_too)
{
    need_onednn_kernels();
    run_crashing(WORDS("gradcheck", "--op", "conv2d"));
    cr_expect_eq(f.status, 128 + SIGSEGV, "%d: %s%s", f.status, f.out, f.err);
    cr_expect_str_eq(
        f.err,
        "adjoint gradcheck: a kernel crashed; run adjoint compare --guard to find out which\n");
}
