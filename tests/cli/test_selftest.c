/* test_selftest.c - adjoint selftest on faults that are known of some versions of oneDNN on some
 * CPUs, with the known rows left out: where compare sees one, selftest finds it, writes rows, and
 * whoever reads the file gets right numbers. Where it is not, the test is skipped: what becomes of
 * a fault is shown on planted ones (test_selftest_planted.c). */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/cli/selftest_rig.h"

static finished f;

/* A case of the sweep for compare, and the part of the sweep that it is in. A hang is waited for,
 * so the parts are small. Then shapes that the sweep has not tried. */
typedef struct {
    const char *in, *filter, *dtype, *stride, *dilation;
    const char *kernel, *channels, *size;
    layer other[2];
} fault;

/* bf16 backprop_filter with dilated rows leaves NaN (backends/onednn/quarantine.c). */
static const fault dilated = {
    "2,36,36,24",
    "3,3,24,16",
    "bf16",
    "1",
    "2",
    "3",
    "24",
    "36",
    {{ADJ_BF16, 1, 37, 33, 24, 24, 3, 1, 2}, {ADJ_BF16, 1, 37, 33, 22, 12, 3, 1, 2}}};
/* f32 1x1 with a stride over few channels corrupts the heap (oneDNN issue 6035): over fewer than a
 * block, of 16 where there is AVX-512, else of 8. */
static const fault narrow_16 = {
    "2,64,64,12",
    "1,1,12,17",
    "f32",
    "2",
    "1",
    "1",
    "12",
    "64",
    {{ADJ_F32, 1, 64, 64, 13, 15, 1, 2, 1}, {ADJ_F32, 1, 64, 64, 13, 20, 1, 2, 1}}};
static const fault narrow_8 = {
    "2,64,64,4",
    "1,1,4,17",
    "f32",
    "2",
    "1",
    "1",
    "4",
    "64",
    {{ADJ_F32, 1, 64, 64, 5, 15, 1, 2, 1}, {ADJ_F32, 1, 64, 64, 5, 20, 1, 2, 1}}};

/* Whether compare fails. */
static int is_seen(const fault *k)
{
    char strides[16], dilations[16];
    snprintf(strides, sizeof strides, "1,%s,%s,1", k->stride, k->stride);
    snprintf(dilations, sizeof dilations, "1,%s,%s,1", k->dilation, k->dilation);
    const char *const words[] = {"compare",
                                 "--op",
                                 "conv2d_backprop_filter",
                                 "--in",
                                 k->in,
                                 "--filter",
                                 k->filter,
                                 "--dtype",
                                 k->dtype,
                                 "--strides",
                                 strides,
                                 "--dilations",
                                 dilations,
                                 "--exact",
                                 "--configs",
                                 "naive:f64,onednn",
                                 "--quarantine",
                                 "off",
                                 "--guard",
                                 "--timeout",
                                 "2",
                                 "--shrink",
                                 "0",
                                 "--neighbours",
                                 "0",
                                 NULL};
    run_tool(words, &f);
    cr_assert(f.status == 0 || f.status == 1, "%d: %s", f.status, f.err);
    return f.status == 1;
}

/* An executor that reads the file computes what is in the rows' class right, and if it is wrong
 * without the file, by another implementation. */
static void expect_obedience(const fault *k, const char *file)
{
    for (int i = 0; i < 2; i++) {
        const layer *l = &k->other[i];
        char only[420], before[64] = "", after[64] = "";
        snprintf(only, sizeof only, "only:%s", file);
        cr_expect_eq(wrong_numbers(l, NULL, only, after), 0, "%d: %s", i, after);
        if (l->dtype == ADJ_BF16 && wrong_numbers(l, NULL, "off", before) > 0)
            cr_expect_str_neq(before, after); /* (the other one may crash) */
    }
}

static void expect_found(const fault *k)
{
    folder dir = folder_new();
    const file_name file = in_folder(&dir, "faults");
    const char *words[ARGUMENTS];
    const char *const part[] = {"--op",
                                "conv2d_backprop_filter",
                                "--dtype",
                                k->dtype,
                                "--kernel",
                                k->kernel,
                                "--dilation",
                                k->dilation,
                                "--stride",
                                k->stride,
                                "--padding",
                                "VALID",
                                "--channels",
                                k->channels,
                                "--size",
                                k->size,
                                "--timeout",
                                "1",
                                "--unquarantined",
                                NULL};
    expect_crashes();
    if (!is_seen(k)) {
        folder_remove(&dir);
        cr_skip_test("this machine's oneDNN computes it right\n");
    }
    selftest_words(words, file.s, part);
    run_tool(words, &f);
    cr_assert_eq(f.status, 1, "%d: %s", f.status, f.err);
    cr_assert_not_null(strstr(f.err, " found, 0:00 left"), "%s", f.err);
    expect_obedience(k, file.s);
    folder_remove(&dir);
}

/* The usual choices are looked at: no other plans, whatever all tests are run with. */
static void plan_as_usual(void)
{
    unsetenv("ADJOINT_PLAN");
    setenv("OMP_NUM_THREADS", "1", 1); /* what hangs keeps one core busy */
}
TestSuite(selftest, .init = plan_as_usual);

Test(selftest, dilated_rows_in_bf16) { expect_found(&dilated); }
Test(selftest, strides_over_less_than_16_channels) { expect_found(&narrow_16); }
Test(selftest, strides_over_less_than_8_channels) { expect_found(&narrow_8); }

Test(selftest, refusals)
{
    folder dir = folder_new();
    const file_name file = in_folder(&dir, "file"), pipe = in_folder(&dir, "pipe");
    cr_assert_eq(mkfifo(pipe.s, 0600), 0);
    put_file(file.s, "# tried 5 of 7,3\n", 17);
    const struct {
        int status;
        const char *says, *words[6];
    } rows[] = {
        {3, "did you mean conv2d?", {"--op", "conv2"}},
        {3, "--kernel: is not in the sweep (got 2, expected some of 1 3 5 7)", {"--kernel", "1,2"}},
        {3, "--dtype: is not in the sweep (got , expected", {"--dtype", ""}},
        {3, "expected some of 1 2)", {"--dilation", "11"}},
        {3, "exists (--resume goes on", {"--out", file.s}},
        {3, "leave out", {"--resume", "--stride", "1", "--out", file.s}},
        {1, "does not say how far it is", {"--resume", "--out", file.s}},
        {1, "is not a regular file", {"--resume", "--out", pipe.s}},
        {1, "is not a regular file", {"--resume", "--out", "/dev/zero"}},
        {1, "is not a regular file", {"--resume", "--out", dir.path}},
        {1, "No such file", {"--resume", "--out", "/nonexistent/file"}},
        {1, "No such file", {"--out", "/nonexistent/file"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *words[ARGUMENTS] = {"selftest"};
        memcpy(words + 1, rows[i].words, sizeof rows[i].words);
        run_tool(words, &f);
        cr_expect_eq(f.status, rows[i].status, "%zu: %d %s", i, f.status, f.err);
        cr_expect_not_null(strstr(f.err, rows[i].says), "%zu: %s", i, f.err);
    }
    folder_remove(&dir);
}
