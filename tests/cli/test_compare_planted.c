/* test_compare_planted.c - both checkers on faults planted into oneDNN's backend (planted.h): a
 * filter gradient of LeNet that is wrong for more than eight images only is found at the second
 * batch size, which reports only what it ran; a kernel that crashes leads to --guard. And of the
 * backend "emitted": right functions pass; a wrong one, one that does not compile and one that
 * crashes are named, and Ctrl-C leaves no file. A script in the place of cc changes the C before it
 * is compiled. */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/guard.h"
#include "cli/process.h"
#include "tests/cli/planted.h"
#include "tests/isa.h"
#include "tests/plan.h"

static void run_lenet(const char *also_batch, int status)
{
    planted_use_tool();
    tool(status,
         "compare --model lenet --size 12 --runs 1 --threads 1 --configs naive:f64,onednn "
         "--also-batch %s",
         also_batch);
}

Test(compare_images, few_are_right)
{
    run_lenet("8", 0);
    expect_text(ran.out, "lenet, batch 8, seed 1, each kind of node alone");
}

Test(compare_images, many_are_wrong)
{
    need_onednn_kernels();
    run_lenet("17", 1);
    const char *second = strstr(ran.out, "lenet, batch 17, seed 1\n");
    cr_assert_not_null(second, "%s", ran.out);
    expect_text(ran.out, " 0 failed (gradient rules are checked by");
    expect_text(second, "\nreference naive:f64\n");
    expect_text(second, "\nonednn: each kind of node alone\n");
    expect_text(second, " conv2d_backprop_filter (onednn ");
    expect_text(second, "to blame: kernel");
    expect_text(second, " 1 failed (gradient rules");
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
    running_command = "compare";
    announce_hangs(NULL, n, "naive", "naive:f32", 0.5);
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

/* Expects a filter gradient to crash, and this message. What the machine's own oneDNN does wrong is
 * not planned around. */
static void expect_crash(const char *command, const char *said)
{
    need_onednn_kernels();
    setenv("ADJOINT_QUARANTINE", "off", 1);
    tool(128 + SIGSEGV,
         "%s --in 2,36,36,12 --filter 3,3,12,16 --attr strides=1,%d,%d,1,padding=VALID "
         "--neighbors 0 --threads 1",
         command, PLANTED_CRASH, PLANTED_CRASH);
    cr_expect_str_eq(ran.err, said);
}

Test(compare_crash, leads_to_guard)
{
    expect_crash("compare --op conv2d_backprop_filter --configs naive:f64,onednn --runs 1 "
                 "--shrink 0",
                 "adjoint compare: a kernel crashed; rerun with --guard to find out which\n");
}

Test(compare_crash, of_gradcheck_too)
{
    expect_crash(
        "gradcheck --op conv2d",
        "adjoint gradcheck: a kernel crashed; run adjoint compare --guard to find out which\n");
}

static folder planted; /* folder of the script */

static void make_folder(void) { planted = folder_new(); }
static void remove_folder(void) { folder_remove(&planted); }

TestSuite(compare_emitted, .init = make_folder, .fini = remove_folder);

/* Makes a script the compiler; it finds the true one in $PATH, which it sets. */
__attribute__((format(printf, 1, 2))) static void plant_script(const char *format, ...)
{
    const file_name path = in_folder(&planted, "cc");
    char lines[4096], script[1 << 13], with_cc[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(lines, sizeof lines, format, args);
    va_end(args);
    const int n =
        snprintf(script, sizeof script, "#!/bin/sh\nPATH='%s'\n%s", getenv("PATH"), lines);
    put_file(path.s, script, (size_t)n);
    cr_assert_eq(chmod(path.s, 0700), 0);
    snprintf(with_cc, sizeof with_cc, "%s:%s", planted.path, getenv("PATH"));
    setenv("PATH", with_cc, 1);
}

/* Makes all that the tool compiles pass through sed. */
static void plant(const char *change) { plant_script("sed '%s' | exec cc \"$@\"\n", change); }

#define CONFIGS "--configs naive:f64,emitted --shrink 0"
#define RELU "--op relu --neighbors 0"

Test(compare_emitted, right_functions)
{
    prints(0, "(0 on naive)", "compare --model lenet --size 12 --batch 1 --also-batch 0 " CONFIGS);
    expect_text(ran.out, "matmul+bias_add+relu"); /* a fused function */
    expect_text(ran.out, " 0 failed (");
    cr_expect_null(strstr(ran.out, "refuses"), "%s", ran.out);
    prints(0, "backend=emitted", "gradcheck --model lenet5 --node conv1 --backend emitted");
}

/* Beside the other backends, each computes its own configuration. */
Test(compare_emitted, several_backends)
{
    tool(0,
         "compare --op conv2d --neighbors 0 --shrink 0 --configs naive:f64,onednn,emitted --all");
    char *emitted = strstr(ran.out, "\nemitted:");
    cr_assert_not_null(emitted);
    expect_text(emitted, " c:1\n");
    *emitted = '\0';
    cr_expect_null(strstr(ran.out, " c:1\n"), "%s", ran.out);
}

Test(compare_emitted, wrong_function)
{
    plant("s/<= 0.0f ? 0.0f/<= 0.0f ? 0.5f/");
    prints(1, "emitted: FAIL %5 relu (emitted c:1), to blame: kernel",
           "compare --model lenet --size 12 --also-batch 0 " CONFIGS);
    cr_expect_null(strstr(ran.out, "conv2d (emitted c:1), to blame"), "%s", ran.out);
    prints(1, "fault is in backend emitted's kernel for relu",
           "gradcheck " RELU " --backend emitted");
}

/* Zeros of both signs, kinks, NaN and infinities; a rate of dropout that 32 bits cannot tell
 * from 1.
 */
Test(compare_emitted, special_values)
{
    static const char *const ops[] = {"relu6",    "hard_swish", "gelu",      "gelu_grad", "resize",
                                      "sgd_step", "momentum",   "adam_step", "dropout"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        tool(0, "compare --op %s --neighbors 0 --runs 1 " CONFIGS, ops[i]);
    }
}

/* Wrong only where the result is computed in an operand's memory. */
Test(compare_emitted, wrong_in_place)
{
    plant("/^static void in_place/,/^}/s/<= 0.0f ? 0.0f/<= 0.0f ? 0.5f/");
    prints(1, "relu", "compare " RELU " " CONFIGS);
}

/* Elements that a function does not write are NaN. */
Test(compare_emitted, an_element_is_left_out)
{
    plant("s/i < 1024; i++/i < 1023; i++/");
    prints(1, "got nan", "compare --op relu --in 1,8,8,16 --neighbors 0 " CONFIGS);
}

Test(compare_emitted, does_not_compile)
{
    plant("s/<= 0.0f ? 0.0f/<= 0.0f ? oops/");
    prints(1, "emitted: ERROR %1 relu", "compare " RELU " " CONFIGS);
    expect_text(ran.out, "error: ");
    expect_text(ran.out, "oops");
    cr_expect_null(strstr(ran.out, "ERROR %3 relu_grad"), "%s", ran.out);
}

Test(compare_emitted, crashes)
{
    expect_crashes();
    plant("s/<= 0.0f ? 0.0f/<= 0.0f ? (float)(abort(), 0)/");
    prints(1, "emitted: ERROR %1 relu", "compare " RELU " " CONFIGS);
    expect_text(ran.out, "the emitted function: SIGABRT");
}

/* Ctrl-C, which reaches the tool and its compiler, leaves no file. */
Test(compare_emitted, is_interrupted)
{
    scoped(folder_remove) folder temporary_files = folder_new();
    const file_name begun = in_folder(&planted, "begun");
    char adjoint[PATH_MAX];
    signal(SIGINT, SIG_DFL); /* a shell ignores it for what runs in the background */
    setenv("TMPDIR", temporary_files.path, 1);
    plant_script(": >'%s'\nexec sleep 100\n", begun.s);
    snprintf(adjoint, sizeof adjoint, "%s/adjoint", build_folder());
    child c = child_start_path("/usr/bin/setsid",
                               WORDS(adjoint, "compare", "--op", "relu", "--neighbors", "0",
                                     "--configs", "naive:f64,emitted"),
                               -1);
    wait_for_file(&c, begun.s, 0);
    cr_expect_gt(files_in(&temporary_files), 0);
    cr_assert_eq(kill(-c.pid, SIGINT), 0);
    child_finish(&c);
    cr_expect_eq(ran.status, 128 + SIGINT, "%s", ran.err);
    for (int i = 0; i < 500 && files_in(&temporary_files) > 0; i++)
        pause_ms(20);
    cr_expect_eq(files_in(&temporary_files), 0);
}

Test(compare_emitted, is_refused)
{
    prints(0, "; emitted refuses ", "compare --op softmax_cross_entropy --neighbors 0 " CONFIGS);
    complains(3, "excludes --guard and isa=", "compare " RELU " " CONFIGS " --guard");
    complains(3, "expected one of onednn, direct, naive",
              "compare " RELU " --configs emitted,naive");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    setenv("PATH", planted.path, 1); /* without a compiler */
    tool(1, "compare " RELU " " CONFIGS);
    cr_expect_str_eq(ran.err, "adjoint compare: emitted: backend emitted cannot be opened (the C "
                              "compiler cc cannot be started)\n");
    complains(1, "the C compiler cc cannot be started", "gradcheck " RELU " --backend emitted");
    setenv("PATH", path, 1); /* for what removes the folder */
}
