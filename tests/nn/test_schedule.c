/* test_schedule.c - rates at single steps, computed by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_nn.h"

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
