/* test_pace.c - by which runs' seconds an executor changes to fewer threads and back. */
#include <criterion/criterion.h>
#include <math.h>

#include "exec/pace.h"

/* n runs of so many seconds; how many of the runs after them have fewer threads. */
static int feed(pace *p, int n, double seconds)
{
    int fewer = 0;
    for (int i = 0; i < n; i++)
        fewer += pace_next(p, seconds);
    return fewer;
}

/* n runs that take so long with all threads, and with fewer; what they take together. */
static double live(pace *p, int n, double all, double few)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double seconds = p->fewer != p->is_trial ? few : all;
        pace_next(p, seconds);
        sum += seconds;
    }
    return sum;
}

/* The first run does not count, the next 16 give the median. Of the trial the first run may be
 * slow, the second is too slow. */
Test(pace, first_trial)
{
    pace p = {0};
    cr_expect_eq(feed(&p, 16, 1), 0);
    cr_expect_eq(pace_next(&p, 1), 1);
    cr_expect_eq(pace_next(&p, 2), 1);
    cr_expect_eq(pace_next(&p, 2), 0); /* over 1.5: lost, and 2 seconds too much */
    cr_expect_eq(p.wait, 100);         /* runs that this is 2 % of */
    cr_expect_eq(feed(&p, 4 * 100, 1), 0, "the change back does not count");
    cr_expect_eq(pace_next(&p, 1), 1);
}

/* What changing plans takes decides nothing, however long it is, but is paid for there and back. */
Test(pace, cost_of_changing)
{
    pace p = {0};
    cr_assert_eq(feed(&p, 17, 1), 1);
    pace_change(&p, 100);
    cr_expect_eq(feed(&p, 6, 0.9), 6);
    cr_expect_eq(p.fewer, 1);
    cr_expect_eq(p.wait, 32, "it was won");
    p = (pace){0};
    cr_assert_eq(feed(&p, 17, 1), 1);
    pace_change(&p, 0.25);
    cr_expect_eq(feed(&p, 2, 2), 1);
    cr_expect_eq(p.wait, 125, "2 seconds and a half: 2 %% of 125 runs");
    pace_change(&p, 10);
    cr_expect_eq(feed(&p, 4 * 125, 1), 0);
    cr_expect_eq(p.wait, 125);
    cr_expect_eq(pace_next(&p, 1), 1);
}

/* What an idle machine loses: two runs at first, then half a per cent. */
Test(pace, idle)
{
    pace p = {0};
    cr_expect_leq(live(&p, 100, 1, 2), 102);
    cr_expect_leq(live(&p, 10000, 1, 2), 10051);
    cr_expect_leq(live(&p, 10000, 1, 1.2), 10051);
    cr_expect_eq(p.fewer, 0);
}

/* A trial that is neither won nor lost by far: five against three, the first run left out. */
Test(pace, trial_counts)
{
    static const struct {
        int n, fewer;
        double seconds[9];
    } trials[] = {
        {6, 1, {1, 0.9, 0.9, 0.9, 0.9, 0.9}},
        {4, 0, {0.1, 1, 1.1, 1}},
        {8, 1, {1, 0.9, 1.2, 0.9, 0.9, 1.2, 0.9, 0.9}},
        {8, 0, {1, 0.9, 1.2, 0.9, 0.9, 1.2, 0.9, 1.2}},
        {3, 0, {1, 0.5, 1.6}},
    };
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        pace p = {0};
        cr_assert_eq(feed(&p, 17, 1), 1);
        for (int k = 0; k < trials[i].n - 1; k++)
            cr_expect_eq(pace_next(&p, trials[i].seconds[k]), 1, "trial %zu, run %d", i, k);
        cr_expect_eq(pace_next(&p, trials[i].seconds[trials[i].n - 1]), trials[i].fewer,
                     "trial %zu", i);
        cr_expect_eq(p.fewer, trials[i].fewer);
    }
}

/* It computes what others find computed, and makes threads: up to eight times as long, and a
 * millisecond, which is much for a short run. */
Test(pace, first_run_of_a_trial)
{
    pace p = {0};
    cr_assert_eq(feed(&p, 17, 1e-4), 1);
    cr_expect_eq(pace_next(&p, 1.79e-3), 1);
    cr_expect_eq(feed(&p, 5, 0.9e-4), 5);
    cr_expect_eq(p.fewer, 1);
    p = (pace){0};
    cr_assert_eq(feed(&p, 17, 1e-4), 1);
    cr_expect_eq(pace_next(&p, 1.81e-3), 0);
}

/* Neighbours come: four slow runs of eight are enough. They stay, and go. */
Test(pace, neighbours)
{
    pace p = {0};
    cr_assert_eq(feed(&p, 17, 1), 1);
    cr_assert_eq(feed(&p, 2, 2), 1);
    cr_assert_eq(feed(&p, 100, 1), 0);
    cr_expect_eq(feed(&p, 3, 3), 0);
    cr_expect_eq(pace_next(&p, 3), 1, "the median of 1 1 1 1 3 3 3 3 is 3");
    cr_expect_eq(feed(&p, 6, 1.9), 6);
    cr_expect_eq(p.fewer, 1);
    cr_expect_eq(feed(&p, 31, 1.9), 31);
    cr_expect_eq(pace_next(&p, 1.9), 0, "all threads on trial");
    cr_expect_eq(pace_next(&p, 3), 0);
    cr_expect_eq(pace_next(&p, 3), 1, "they are still there");
    cr_expect_eq(feed(&p, 57, 1.9), 57, "2.2 seconds were lost; the first does not count");
    for (int i = 0; i < 5 && pace_next(&p, 1.9); i++)
        ;
    cr_expect_eq(p.is_trial, 1);
    cr_expect_eq(feed(&p, 6, 1), 0);
    cr_expect_eq(p.fewer, 0);
    cr_expect_eq(p.baseline.n, 0, "what is usual is found anew");
    cr_expect_eq(feed(&p, 100, 1), 0);
}

/* Beside neighbours from the start, at 37 times the time: trials of all threads take 2 %. */
Test(pace, neighbours_from_the_start)
{
    pace p = {0};
    live(&p, 30, 37, 1);
    cr_expect_leq(live(&p, 10000, 37, 1), 10300);
    cr_expect_eq(p.fewer, 1);
}

/* Slow in both plans: nothing is won, and trials take 2 %. */
Test(pace, slow_anyway)
{
    pace p = {0};
    live(&p, 100, 1, 2);
    cr_expect_leq(live(&p, 10000, 3, 4), 30600);
    cr_expect_eq(p.fewer, 0);
}

/* Now and then is not always. */
Test(pace, single_slow_runs)
{
    pace p = {0};
    live(&p, 19, 1, 2);
    for (int i = 0; i < 40; i++) {
        cr_expect_eq(feed(&p, 2, 1), 0);
        cr_expect_eq(pace_next(&p, 50), 0);
    }
}

/* Clocks may stand still, and machines sleep for an hour. */
Test(pace, odd_times)
{
    pace p = {0};
    feed(&p, 100, 0);
    feed(&p, 1, 1e300);
    feed(&p, 1000, 0);
    p = (pace){0};
    feed(&p, 17, 1e-6);
    cr_expect_eq(pace_next(&p, 3600), 0);
    cr_expect_eq(p.wait, 2048);
    cr_expect_eq(feed(&p, 4 * 2048, 1e-6), 0);
    cr_expect_eq(pace_next(&p, 1e-6), 1);
}
