/* test_sweep.c - the sweep of oneDNN (tools/sweep.c) finds faults that are planted into oneDNN's
 * backend (planted.h), whatever the machine's own oneDNN does, and those that are known of some
 * versions on some CPUs where compare sees them. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/cli/child.h"
#include "tests/cli/planted.h"
#include "tests/isa.h"

static void run_sweep(const char *program, const char *const words[])
{
    child c = child_start_program(program, words, -1);
    child_finish(&c);
}

/* ---- planted faults ---- */

/* Filter gradients of convolutions, dense and grouped, of 3 to 64 filters: seven a stride. */
#define SEVEN                                                                                      \
    "--op", "conv2d_backprop_filter", "--dtype", "f32", "--dilation", "1", "--padding", "VALID",   \
        "--channels", "12", "--size", "36", "--unquarantined"
enum { VARIANTS = 7 };

Test(sweep, faults_are_found, .init = planted_use_tool)
{
    static const char *const found[] = {
        " stride=1 dilation=1 VALID: ", " stride=2 dilation=1 VALID: ",
        " stride=3 dilation=1 VALID: "};
    static const char *const reasons[] = {[PLANTED_WRONG] = " wrong numbers\n",
                                          [PLANTED_NAN] = " leaves NaN\n",
                                          [PLANTED_CRASH] = " SIGSEGV\n"};
    need_onednn_kernels();
    expect_crashes();
    run_sweep("sweep", (const char *[]){SEVEN, "--kernel", "3", "--stride", "1,2,3", NULL});
    cr_assert_eq(ran.status, 1, "%s", ran.err);
    for (int stride = 1; stride <= 3; stride++) {
        cr_expect_eq(times_in(ran.out, found[stride - 1]), VARIANTS, "%d: %s", stride, ran.out);
        cr_expect_eq(times_in(ran.out, reasons[stride]), VARIANTS, "%d: %s", stride, ran.out);
    }
    cr_expect_eq(
        times_in(ran.out, ": backward_weights f32 in=2,36,36,12 out=16 groups=1 kernel=3 "), 3,
        "%s", ran.out);
    expect_text(ran.out, ", 21 found\n");
}

/* A process that never responds is killed and counts as a fault. */
Test(sweep, a_hang_is_a_fault, .init = planted_use_tool)
{
    need_onednn_kernels();
    run_sweep("sweep",
              (const char *[]){SEVEN, "--kernel", "5", "--stride", "1", "--timeout", "1", NULL});
    cr_assert_eq(ran.status, 1, "%s", ran.err);
    expect_text(ran.out, " no response in 1 s\n");
    expect_text(ran.out, " out=3 ");
}

/* ---- known faults ---- */

/* One convolution, for compare and as a part of the sweep. */
typedef struct {
    const char *in, *filter, *dtype, *stride, *dilation, *kernel, *channels, *size;
} fault;

static int is_seen(const fault *k)
{
    char line[400];
    snprintf(line, sizeof line,
             "compare --op conv2d_backprop_filter --in %s --filter %s --dtype %s "
             "--attr strides=1,%s,%s,1,dilations=1,%s,%s,1 --exact --configs naive:f64,onednn "
             "--guard --timeout 2 --shrink 0 --neighbors 0",
             k->in, k->filter, k->dtype, k->stride, k->stride, k->dilation, k->dilation);
    setenv("ADJOINT_QUARANTINE", "off", 1);
    run_line(line);
    unsetenv("ADJOINT_QUARANTINE");
    cr_assert(ran.status == 0 || ran.status == 1, "%d: %s", ran.status, ran.err);
    return ran.status == 1;
}

static void expect_found(const fault *k)
{
    char line[400];
    unsetenv("ADJOINT_PLAN");
    setenv("OMP_NUM_THREADS", "1", 1); /* a hanging case keeps one core busy */
    expect_crashes();
    if (!is_seen(k))
        cr_skip_test("this machine's oneDNN computes it right\n");
    snprintf(line, sizeof line,
             "--op conv2d_backprop_filter --dtype %s --kernel %s --dilation %s --stride %s "
             "--padding VALID --channels %s --size %s --timeout 1 --unquarantined",
             k->dtype, k->kernel, k->dilation, k->stride, k->channels, k->size);
    run_sweep("tools/sweep", split(line));
    cr_expect_eq(ran.status, 1, "%s%s", ran.out, ran.err);
}

/* bf16 with dilated rows leaves NaN (backends/onednn/quarantine.c). */
Test(sweep, dilated_rows_in_bf16)
{
    expect_found(&(fault){"2,36,36,24", "3,3,24,16", "bf16", "1", "2", "3", "24", "36"});
}

/* f32 1x1 with a stride over fewer channels than a block, of 16 where there is AVX-512, else of 8,
 * corrupts the heap. */
Test(sweep, strides_over_less_than_16_channels)
{
    expect_found(&(fault){"2,64,64,12", "1,1,12,17", "f32", "2", "1", "1", "12", "64"});
}

Test(sweep, strides_over_less_than_8_channels)
{
    expect_found(&(fault){"2,64,64,4", "1,1,4,17", "f32", "2", "1", "1", "4", "64"});
}

/* ---- the command line ---- */

Test(sweep, what_is_right_is_not_reported)
{
    run_sweep("tools/sweep", (const char *[]){"--first", "2", "--cases", "2", "--dtype", "f32",
                                              "--kernel", "1", "--size", "15", NULL});
    cr_assert_eq(ran.status, 0, "%s%s", ran.out, ran.err);
    expect_text(ran.out, ": cases 2 to 3 tried, 0 found\n");
}

Test(sweep, refusals)
{
    static const struct {
        const char *says, *words[3];
    } rows[] = {
        {"did you mean conv2d?", {"--op", "conv2"}},
        {"--kernel: is not in the sweep (got 2, expected some of 1 3 5 7)", {"--kernel", "1,2"}},
        {"--dtype: is not in the sweep (got , expected", {"--dtype", ""}},
        {"expected some of 1 2)", {"--dilation", "11"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_sweep("tools/sweep", rows[i].words);
        cr_expect_eq(ran.status, 3, "%zu: %d %s", i, ran.status, ran.err);
        cr_expect_not_null(strstr(ran.err, rows[i].says), "%zu: %s", i, ran.err);
    }
}
