/* test_neighbors.c - load by other processes, from the columns of /proc/stat. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/train/neighbors.h"

static double busy(const char *text, int first, int last)
{
    cpu_set_t ours;
    CPU_ZERO(&ours);
    for (int i = first; i <= last; i++)
        CPU_SET(i, &ours);
    FILE *f = fmemopen((char *)text, strlen(text), "r");
    double seconds = cpu_busy(f, &ours, 100);
    fclose(f);
    return seconds;
}

/* user 100, nice 20, system 30, irq 4, softirq 5, steal 600, in hundredths; idle and iowait are not
 * busy, and guests are user's and nice's already. */
Test(neighbors, columns)
{
    static const char text[] = "cpu  1 2 3 4 5 6 7 8 9 10\n"
                               "cpu0 100 20 30 7000 800 4 5 600 50 10\n"
                               "cpu1 1 0 0 0 0 0 0 0 0 0\n"
                               "cpu11 0 0 1000 0 0 0 0 0\n"
                               "intr 5 6 7\ncpuinfo 3\n";
    cr_expect_float_eq(busy(text, 0, 0), 7.59, 1e-9);
    cr_expect_float_eq(busy(text, 0, 1), 7.60, 1e-9);
    cr_expect_float_eq(busy(text, 11, 11), 10, 1e-9);
    cr_expect_eq(busy(text, 2, 9), -1, "none of ours");
    cr_expect_eq(busy("cpu", 0, 1), -1);
    cr_expect_eq(busy("cpu99999999999999999999 1 2\n", 0, 1), -1);
    cr_expect_float_eq(busy("cpu0 x\n", 0, 0), 0, 0);
}

Test(neighbors, what_others_took)
{
    const cpu_times from = {10, 100, 20}, to = {14, 107, 24}, unknown = {14, -1, 24};
    cr_expect_float_eq(cpu_neighbors(&from, &to), 0.75, 1e-12);
    cr_expect_eq(cpu_neighbors(&from, &from), 0);
    cr_expect_eq(cpu_neighbors(&from, &unknown), 0);
    cr_expect_eq(cpu_neighbors(&unknown, &to), 0);
    const cpu_times alone = {14, 103, 24}; /* clocks differ a little */
    cr_expect_eq(cpu_neighbors(&from, &alone), 0);
}

/* This process alone takes time: its own is not others'. */
Test(neighbors, here)
{
    const cpu_times from = cpu_times_now();
    cr_expect(from.at > 0 && (from.busy > 0 || from.busy == -1) && from.own >= 0);
    volatile double sum = 0;
    for (int i = 0; i < 1000000; i++)
        sum = sum + 1;
    const cpu_times to = cpu_times_now();
    cr_expect(to.own >= from.own && to.busy >= from.busy);
}

/* OMP_WAIT_POLICY is no advice where the environment sets it. */
Test(neighbors, advice)
{
    char text[ADVICE_TEXT];
    unsetenv("OMP_WAIT_POLICY");
    cr_expect_str_eq(cpu_advice(2.4, 8, text),
                     "note: other processes keep 2.4 of 8 processors busy: --threads 6 or "
                     "OMP_WAIT_POLICY=passive may be faster");
    cr_expect_not_null(strstr(cpu_advice(7.6, 8, text), ": --threads 1 or OMP_WAIT_POLICY=pas"));
    setenv("OMP_WAIT_POLICY", "active", 1);
    cr_expect_not_null(strstr(cpu_advice(1, 2, text), ": --threads 1 may be faster"));
}
