/* test_range_test.c - the learning rate range test on curves whose answer is known. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_nn.h"

/* Runs the test on the loss as a function of the step. */
static adj_range_test run(double (*loss)(int step))
{
    adj_range_test t = {0};
    while (adj_range_test_add(&t, loss(t.n)))
        ;
    return t;
}

/* 300 rates over seven decades. */
static double rate_of(int step) { return pow(10, -6 + 7.0 * step / 299); }

static double falls_and_rises(int step) { return 2.5 + 0.05 * fabs((double)step - 150); }
static double falls_slowly_rises_fast(int step)
{
    return step < 200 ? 10 - 0.01 * step : 8 + 0.09 * (step - 200);
}
static double explodes(int step) { return step < 180 ? 3 - step / 90.0 : 1e3; }
static double jumps(int step) { return step < 100 ? 1 : 10; }
static double overflows(int step) { return step < 120 ? 2 - step / 100.0 : INFINITY; }
static double is_no_number(int step) { return step < 50 ? 1 : NAN; }
static double rises(int step) { return 1 + step * 1e-3; }
static double stays(int step) { return step < 0 ? 0 : 2.3; }
static double starts_with_nan(int step) { return step < 1 ? NAN : 1; }
static double is_negative(int step) { return -10 + 0.02 * fabs((double)step - 100); }

Test(range_test, rates)
{
    const adj_range_test t = run(falls_and_rises);
    cr_assert_eq(t.n, ADJ_RANGE_STEPS);
    for (int i = 0; i < t.n; i++) {
        cr_expect_float_eq(t.lr[i] / rate_of(i), 1, 1e-12);
        cr_expect_eq(t.loss[i], falls_and_rises(i));
    }
    cr_expect_float_eq(t.lr[299], 10, 1e-11);
}

/* The average s of a loss that falls by a in each step is 9 a above it. Where it turns and rises by
 * b, j steps later, s = 9 (a + b) 0.9^j + b (j - 9) more than the turning point: its next
 * difference is b - 0.9 (a + b) 0.9^j, which is first not negative for 0.9^j <= b / (0.9 (a + b)).
 * a = b: 0.5556, j = 6; b = 9 a: 1, j = 0. */
Test(range_test, a_tenth_of_the_rate_of_the_least_loss)
{
    adj_range_test t = run(falls_and_rises);
    cr_expect_float_eq(t.smooth[150], 2.5 + 9 * 0.05, 1e-6);
    cr_expect_float_eq(adj_range_test_choose(&t) * 10 / rate_of(156), 1, 1e-12);
    t = run(is_negative);
    cr_expect_eq(t.n, ADJ_RANGE_STEPS);
    cr_expect_float_eq(adj_range_test_choose(&t) * 10 / rate_of(106), 1, 1e-12);
    t = run(falls_slowly_rises_fast);
    double chosen = adj_range_test_choose(&t) * 10;
    cr_expect(chosen > rate_of(199) && chosen < rate_of(202), "%g", chosen);
}

/* It ends with the first step that is too much, which is kept. */
Test(range_test, ends)
{
    adj_range_test t = run(explodes);
    cr_expect_eq(t.n, 181);
    cr_expect_float_eq(adj_range_test_choose(&t) * 10 / rate_of(179), 1, 1e-12);
    /* k steps at 10 make the average 1 + 9 (1 - 0.9^k), which is above 4 from k = 4 on */
    t = run(jumps);
    cr_expect_eq(t.n, 104);
    t = run(overflows);
    cr_expect_eq(t.n, 121);
    cr_expect_float_eq(adj_range_test_choose(&t) * 10 / rate_of(119), 1, 1e-12);
    t = run(is_no_number);
    cr_expect_eq(t.n, 51);
    t.n = ADJ_RANGE_STEPS;
    cr_expect_eq(adj_range_test_add(&t, 1), 0);
    cr_expect_eq(t.n, ADJ_RANGE_STEPS);
}

Test(range_test, no_rate)
{
    const adj_range_test none = {0}, up = run(rises), flat = run(stays), nan = run(starts_with_nan);
    cr_expect_eq(adj_range_test_choose(&none), 0);
    cr_expect_eq(adj_range_test_choose(&up), 0);
    cr_expect_eq(adj_range_test_choose(&flat), 0);
    cr_expect_eq(nan.n, 1);
    cr_expect_eq(adj_range_test_choose(&nan), 0);
}
