/* test_schedule.c - learning rates: at single steps, computed by hand; by a range test on curves
 * whose answer is known; and recipes, which are settings that can be trained with and are fitted to
 * a run. What recipes reach is measured by tests/accuracy.sh. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "ops/nn/model_list.h"
#include "ops/nn/names.h"
#include "ops/nn/range_test.h"
#include "tests/training.h"

static const struct {
    adj_schedule schedule;
    int64_t step;
    double want;
} cases[] = {
    {{.base = 0.1}, 0, 0.1},
    {{.base = 0.1}, INT64_MAX, 0.1},
    {{.base = 0.1}, -5, 0.1},
    /* the warm-up rises to the base in its last step */
    {{.base = 0.1, .warmup = 4}, 0, 0.025},
    {{.base = 0.1, .warmup = 4}, 3, 0.1},
    {{.base = 0.1, .warmup = 4}, 4, 0.1},
    {{.base = 0.1, .warmup = -4}, 0, 0.1},
    {{.kind = ADJ_SCHEDULE_STEP, .base = 1, .period = 10}, 9, 1},
    {{.kind = ADJ_SCHEDULE_STEP, .base = 1, .period = 10}, 10, 0.1},
    {{.kind = ADJ_SCHEDULE_STEP, .base = 1, .period = 10, .factor = 0.5}, 39, 0.125},
    {{.kind = ADJ_SCHEDULE_STEP, .base = 1, .period = 10, .factor = 0.5, .warmup = 5}, 14, 1},
    {{.kind = ADJ_SCHEDULE_STEP, .base = 1, .period = 10, .factor = 0.5, .warmup = 5}, 15, 0.5},
    {{.kind = ADJ_SCHEDULE_STEP, .base = 1, .factor = 0.5}, 3, 0.125}, /* period 0 is 1 */
    {{.kind = ADJ_SCHEDULE_EXPONENTIAL, .base = 2, .period = 2, .factor = 0.25}, 1, 1},
    {{.kind = ADJ_SCHEDULE_EXPONENTIAL, .base = 2, .period = 2, .factor = 0.25}, 4, 0.125},
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .total = 100}, 0, 1},
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .total = 100}, 50, 0.5},
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .total = 90}, 30, 0.75}, /* (1 + cos 60) / 2 */
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .total = 90, .last = 0.2}, 30, 0.8},
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .total = 100, .last = 0.25}, 100, 0.25},
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .total = 100, .last = 0.25}, 1000, 0.25},
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .total = 100, .warmup = 10}, 55, 0.5},
    {{.kind = ADJ_SCHEDULE_COSINE, .base = 1, .last = 0.5}, 0, 0.5}, /* no steps at all */
};

Test(schedule, rates)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = adj_schedule_rate(&cases[i].schedule, cases[i].step);
        cr_assert(fabs(got - cases[i].want) <= 1e-15, "case %zu: got %.17g, want %.17g", i, got,
                  cases[i].want);
    }
}

Test(schedule, names)
{
    adj_schedule_kind kind = ADJ_SCHEDULE_CONSTANT;

    for (int i = 0; adj_schedule_name_at(i) != NULL; i++) {
        cr_assert_eq(adj_schedule_from_name(adj_schedule_name_at(i), &kind), ADJ_OK);
        cr_assert_eq((int)kind, i);
    }
    cr_assert_eq(kind, ADJ_SCHEDULE_COSINE);
    cr_assert_eq(adj_schedule_from_name("cosin", &kind), ADJ_EARG);
    cr_assert_eq(adj_schedule_from_name(NULL, &kind), ADJ_EARG);
    cr_assert_eq(adj_schedule_from_name("cosine", NULL), ADJ_EARG);
    cr_assert_eq(adj_schedule_rate(NULL, 3), 0);
    cr_assert_null(adj_schedule_name_at(-1));
}

/* ---- range test ---- */

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

/* ---- recipes ---- */

Test(recipes, every_model_has_one)
{
    for (int i = 0; adj_model_at(i) != NULL; i++) {
        const adj_model *m = &adj_model_at(i)->model;
        adj_recipe r = adj_recipe_for(m, 10);
        cr_expect_not_null(adj_optimizer_name(&r.optimizer), "%s", m->name);
        cr_expect_not_null(adj_schedule_name_at((int)r.schedule), "%s", m->name);
        cr_expect(r.lr > 0 && r.batch > 0 && r.shift >= 0 && r.shift <= 8, "%s", m->name);
        cr_expect(r.warmup >= 0 && r.warmup <= 2.5, "%s", m->name);
        cr_expect(r.smoothing >= 0 && r.smoothing < 1, "%s", m->name);
        cr_expect(r.why[0] != '\0' && strchr(r.why, '\n') == NULL, "%s", m->name);

        training t = training_of(m->name, (adj_model_opts){0}, &r.optimizer); /* has updates */
        training_free(&t);
    }
}

Test(recipes, fitted_to_the_run)
{
    const adj_model *model = adj_model_find("ds_cnn", NULL), none = {.name = "none"};

    cr_expect_eq(adj_recipe_for(model, 100).warmup, 1);
    cr_expect_eq(adj_recipe_for(model, 4).warmup, 1);
    cr_expect_eq(adj_recipe_for(model, 1).warmup, 0.25);
    cr_expect_eq(adj_recipe_for(model, 0).warmup, 0);
    cr_expect_eq(adj_recipe_for(model, 1).lr, 0.2);
    cr_expect_eq(adj_recipe_for(model, 1).shift, 1);
    cr_expect_gt(adj_recipe_for(NULL, 10).lr, 0);
    cr_expect_gt(adj_recipe_for(&none, 10).lr, 0);
}

/* Ten epochs of 20 steps, one of them warm-up; of 21 steps, half of an odd number is the whole
 * part. STEP: a tenth after each third of what follows the warm-up. */
Test(recipes, rates)
{
    static const struct {
        adj_schedule_kind kind;
        double warmup;
        int64_t steps, step;
        double want;
    } rows[] = {
        {ADJ_SCHEDULE_COSINE, 1, 20, 0, 0.025},
        {ADJ_SCHEDULE_COSINE, 1, 20, 19, 0.5},
        {ADJ_SCHEDULE_COSINE, 1, 20, 20 + 60, 0.375}, /* (1 + cos 60) / 2 */
        {ADJ_SCHEDULE_COSINE, 1, 20, 20 + 90, 0.25},
        {ADJ_SCHEDULE_COSINE, 1, 20, 200, 0},
        {ADJ_SCHEDULE_COSINE, 0.5, 21, 9, 0.5},
        {ADJ_SCHEDULE_COSINE, 0.5, 21, 0, 0.05},
        {ADJ_SCHEDULE_STEP, 1, 20, 20 + 59, 0.5},
        {ADJ_SCHEDULE_STEP, 1, 20, 20 + 60, 0.05},
        {ADJ_SCHEDULE_STEP, 1, 20, 199, 0.005},
        {ADJ_SCHEDULE_EXPONENTIAL, 1, 20, 20 + 120, 0.005},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const adj_recipe r = {.lr = 0.5, .warmup = rows[i].warmup, .schedule = rows[i].kind};
        const adj_schedule s = adj_recipe_schedule(&r, 10, rows[i].steps);
        cr_expect_float_eq(adj_schedule_rate(&s, rows[i].step), rows[i].want, 1e-15, "case %zu", i);
    }
}
