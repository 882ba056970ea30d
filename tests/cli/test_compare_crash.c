/* test_compare_crash.c - adjoint compare on a kernel that crashes, planted into oneDNN's backend
 * (planted.h): the last line leads to --guard. */
#include <criterion/criterion.h>

#include "tests/cli/child.h"
#include "tests/cli/planted.h"

static finished f;

static void use_planted_tool(void)
{
    const char *build = getenv("BUILD");
    char path[256];
    snprintf(path, sizeof path, "%s/tests/planted", build != NULL ? build : "build");
    setenv("BUILD", path, 1);
    unsetenv("ADJOINT_PLAN");
    expect_crashes();
}
TestSuite(compare_crash, .init = use_planted_tool);

/* --quarantine off: what the machine's own oneDNN does wrong is not planned around. */
static void run_crashing(void)
{
    char strides[16];
    snprintf(strides, sizeof strides, "1,%d,%d,1", PLANTED_CRASH, PLANTED_CRASH);
    run_tool((const char *[]){"compare",
                              "--op",
                              "conv2d_backprop_filter",
                              "--in",
                              "2,36,36,12",
                              "--filter",
                              "3,3,12,16",
                              "--strides",
                              strides,
                              "--padding",
                              "VALID",
                              "--configs",
                              "naive:f64,onednn",
                              "--runs",
                              "1",
                              "--neighbours",
                              "0",
                              "--shrink",
                              "0",
                              "--quarantine",
                              "off",
                              "--threads",
                              "1",
                              NULL},
             &f);
}

Test(compare_crash, leads_to_guard)
{
    run_crashing();
    cr_expect_eq(f.status, 128 + SIGSEGV, "%d: %s%s", f.status, f.out, f.err);
    cr_expect_str_eq(f.err, "adjoint compare: a kernel crashed; --guard runs each in a process of "
                            "its own, and says which it was\n");
}
