/* test_prediction.c - what bench --scale predicts, by numbers worked out by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "cli/bench/prediction.h"

/* 8e9 bits a second are 1e9 bytes: a megabyte takes a millisecond. */
static const scale_link wire = {.bits_per_second = 8e9, .latency = 1e-5, .adds = 4e9};

Test(prediction, reductions)
{
    static const struct {
        int ranks;
        double bytes, seconds;
    } cases[] = {
        {1, 1e6, 0},
        {2, 4000, 1e-5 + 4e-6 + 1e-6},           /* whole, once */
        {8, 4000, 3 * (1e-5 + 4e-6 + 1e-6)},     /* three times */
        {2, 1e6, 2 * 1e-5 + 1e-3 + 0.125e-3},    /* a half there, a half back */
        {4, 1e6, 4 * 1e-5 + 1.5e-3 + 0.1875e-3}, /* 3/4 each way */
        {1024, 1e6, 20 * 1e-5 + 2 * 1023. / 1024 * 1e-3 + 1023. / 1024 * 0.25e-3},
        {3, 1e6, 2 * (2 * (1e-5 + 1e-3) + 0.25e-3)}, /* up and down */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_float_eq(scale_reduction(&wire, cases[i].ranks, cases[i].bytes), cases[i].seconds,
                           1e-12, "%d ranks", cases[i].ranks);
    cr_expect_float_eq(scale_ring(&wire, 4, 1e6), 6 * 1e-5 + 1.5e-3 + 0.1875e-3, 1e-12);
}

/* Two buckets of a megabyte among two ranks, 1.145 ms each, in a step of 10 and 2 ms. */
Test(prediction, steps)
{
    const double takes = 1.145e-3;
    static const struct {
        double first, second, exposed;
    } cases[] = {
        {2e-3, 5e-3, 0},                     /* both there before the backward pass is done */
        {2e-3, 10e-3, 1.145e-3 - 1e-3},      /* the first one's updates hide a part */
        {10e-3, 10e-3, 1.145e-3 + 0.145e-3}, /* one after the other: of the second, too */
        {9.9e-3, 9.9e-3, 1.045e-3 + 0.145e-3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const scale_bucket bucket[] = {{cases[i].first, 1e6}, {cases[i].second, 1e6}};
        const scale_step step = {.backward = 10e-3, .updates = 2e-3, .n = 2, .bucket = bucket};
        double exposed;
        cr_expect_float_eq(scale_reduction(&wire, 2, 1e6), takes, 1e-12);
        cr_expect_float_eq(scale_predict(&step, &wire, 2, &exposed), 12e-3 + cases[i].exposed, 1e-9,
                           "case %zu", i);
        cr_expect_float_eq(exposed, cases[i].exposed, 1e-9, "case %zu", i);
    }
    double exposed;
    const scale_step nothing = {.backward = 10e-3, .updates = 2e-3};
    cr_expect_float_eq(scale_predict(&nothing, &wire, 64, &exposed), 12e-3, 1e-12);
    cr_expect_eq(exposed, 0);
}
