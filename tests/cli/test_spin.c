/* test_spin.c - how long OpenMP's threads of the tool wait spinning, as libgomp says itself. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/child.h"

static finished f;

/* The last value that libgomp tells: of the program that was started last. */
static const char *spin_of(const char *command)
{
    const char *last = "none";
    setenv("OMP_DISPLAY_ENV", "verbose", 1);
    run_tool((const char *[]){command, "--help", NULL}, &f);
    cr_assert_eq(f.status, 0, "%s", f.err);
    for (char *at = f.err; (at = strstr(at, "GOMP_SPINCOUNT = '")) != NULL; at++)
        last = at + strlen("GOMP_SPINCOUNT = '");
    return last;
}

Test(spin, is_bounded_unless_told)
{
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GOMP_SPINCOUNT");
    const char *told = spin_of("train");
    if (strcmp(told, "none") == 0)
        cr_skip_test("OpenMP's library is not libgomp");
    cr_expect_eq(strncmp(told, "10000'", 6), 0, "%.8s", told);
    told = spin_of("models"); /* computes nothing: is not started twice */
    cr_expect_neq(strncmp(told, "10000'", 6), 0, "%.8s", told);
    setenv("GOMP_SPINCOUNT", "77", 1);
    told = spin_of("train");
    cr_expect_eq(strncmp(told, "77'", 3), 0, "%.8s", told);
    unsetenv("GOMP_SPINCOUNT");
    setenv("OMP_WAIT_POLICY", "passive", 1);
    told = spin_of("train");
    cr_expect_eq(strncmp(told, "0'", 2), 0, "%.8s", told);
}
