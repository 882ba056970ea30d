/* test_compare_images.c - a kernel that is wrong for more than eight images only, planted into one
 * of LeNet's filter gradients (planted.h): compare --model finds it at its second batch size, and
 * reports for that batch only what it ran. */
#include <criterion/criterion.h>

#include "tests/cli/child.h"
#include "tests/cli/planted.h"
#include "tests/isa.h"

static finished f;

static void run_lenet(const char *also_batch)
{
    const char *const arguments[] = {
        "compare",   "--model", "lenet",     "--size",           "12",           "--runs",   "1",
        "--threads", "1",       "--configs", "naive:f64,onednn", "--also-batch", also_batch, NULL};
    planted_use_tool();
    run_tool(arguments, &f);
}

Test(compare_images, few_are_right)
{
    run_lenet("8");
    cr_expect_eq(f.status, 0, "%s%s", f.out, f.err);
    expect_text(f.out, "lenet, batch 8, seed 1, each kind of node alone");
}

Test(compare_images, many_are_wrong)
{
    need_onednn_kernels();
    run_lenet("17");
    cr_expect_eq(f.status, 1, "%s%s", f.out, f.err);
    const char *second = strstr(f.out, "lenet, batch 17, seed 1\n");
    cr_assert_not_null(second, "%s", f.out);
    expect_text(f.out, " 0 failed (gradient rules are checked by");
    cr_expect_not_null(strstr(second, "\nreference naive:f64\n"), "%s", second);
    cr_expect_not_null(strstr(second, "\nonednn: each kind of node alone\n"), "%s", second);
    cr_expect_not_null(strstr(second, " conv2d_backprop_filter (onednn "), "%s", second);
    cr_expect_not_null(strstr(second, "to blame: kernel"), "%s", second);
    cr_expect_not_null(strstr(second, " 1 failed (gradient rules"), "%s", second);
}
