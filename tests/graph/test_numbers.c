/* test_numbers.c - every half value there is, and the roundings between them, against arithmetic
 * done in double; Philox against its published answers, and draws: moments, independence of the
 * order.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/plan.h"

/* The value of bits with p fraction bits and e exponent bits, from the definition. */
static double value_of(unsigned bits, int p, int e)
{
    int bias = (1 << (e - 1)) - 1, exponent = (int)(bits >> p) & ((1 << e) - 1);
    double fraction = (double)(bits & ((1u << p) - 1)) / (double)(1 << p), v;
    if (exponent == (1 << e) - 1)
        v = fraction != 0 ? NAN : INFINITY;
    else
        v = exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
    return bits >> 15 ? -v : v;
}

static void check_half(adj_dtype dtype, int p, int e)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        uint16_t in = (uint16_t)bits, out;
        double v = value_of(bits, p, e), got = adj_load(dtype, &in, 0);
        cr_assert(isnan(v) ? isnan(got) : v == got, "%s %04x: got %g, want %g",
                  adj_dtype_name(dtype), bits, got, v);
        adj_store(dtype, &out, 0, v);
        cr_assert(isnan(v) || out == in, "%s %04x stored as %04x", adj_dtype_name(dtype), bits,
                  out);
        if (isnan(v) || isinf(v) || bits >> 15)
            continue;
        /* between this value and the next: nearest wins, a tie goes to the even one */
        double next = value_of(bits + 1, p, e);
        if (isinf(next))
            next = 2 * v - value_of(bits - 1, p, e);
        double middle = v + (next - v) / 2;
        adj_store(dtype, &out, 0, nextafter(middle, 0));
        cr_assert_eq(out, bits);
        adj_store(dtype, &out, 0, nextafter(middle, INFINITY));
        cr_assert_eq(out, bits + 1);
        adj_store(dtype, &out, 0, middle);
        cr_assert_eq(out, bits + (bits & 1), "%s: tie above %04x went to %04x",
                     adj_dtype_name(dtype), bits, out);
    }
}

Test(dtype, halves)
{
    check_half(ADJ_F16, 10, 5);
    check_half(ADJ_BF16, 7, 8);
}

Test(dtype, integers_and_names)
{
    int32_t i;
    adj_store(ADJ_I32, &i, 0, -2.7);
    cr_assert_eq(i, -2);
    adj_store(ADJ_I32, &i, 0, 1e300);
    cr_assert_eq(i, INT32_MAX);
    adj_store(ADJ_I32, &i, 0, NAN);
    cr_assert_eq(i, 0);
    cr_assert_str_eq(adj_dtype_name(ADJ_BF16), "bf16");
    cr_assert_eq(adj_dtype_size((adj_dtype)9), 0);
    cr_assert_eq(adj_shape_elems((adj_shape){3, {2, 0, 5}}), 0);
    cr_assert_eq(adj_shape_elems((adj_shape){3, {2, 0, INT64_MAX}}), -1);
    cr_assert_eq(adj_shape_elems((adj_shape){0}), 1);
    cr_assert_eq(adj_shape_elems((adj_shape){2, {INT64_MAX, 2}}), -1);

    for (int d = ADJ_F32; d <= ADJ_I32; d++) {
        adj_dtype found = (adj_dtype)9;
        cr_assert_eq(adj_dtype_from_name(adj_dtype_name((adj_dtype)d), &found), ADJ_OK);
        cr_assert_eq(found, (adj_dtype)d);
        cr_assert_eq(adj_type_bytes((adj_type){found, {2, {3, 5}}}), 15 * adj_dtype_size(found));
        cr_assert_eq(adj_is_half(found), found == ADJ_F16 || found == ADJ_BF16);
        cr_assert_eq(adj_is_float(found), found != ADJ_I32);
    }
    adj_dtype kept = ADJ_F16;
    cr_assert_eq(adj_dtype_from_name("f8", &kept), ADJ_EARG);
    cr_assert_eq(adj_dtype_from_name(NULL, &kept), ADJ_EARG);
    cr_assert_eq(kept, ADJ_F16);
    cr_assert_eq(adj_type_bytes((adj_type){(adj_dtype)9, {0}}), SIZE_MAX);
    cr_assert_eq(adj_type_bytes((adj_type){ADJ_F64, {1, {INT64_MAX / 2}}}), SIZE_MAX);
    cr_assert_eq(adj_type_bytes((adj_type){ADJ_F64, {1, {-1}}}), SIZE_MAX);
}

/* One more than 1 in the last place, and the smallest normal number, follow from the table. */
Test(dtype, traits)
{
    for (int d = ADJ_F32; d <= ADJ_BF16; d++) {
        const adj_dtype_traits *t = adj_traits_of((adj_dtype)d);
        double v = 0;
        adj_store((adj_dtype)d, &v, 0, 1 + 2 * t->unit);
        cr_assert_eq(adj_load((adj_dtype)d, &v, 0), 1 + 2 * t->unit);
        adj_store((adj_dtype)d, &v, 0, 1 + t->unit);
        cr_assert_eq(adj_load((adj_dtype)d, &v, 0), 1);
        cr_assert_eq(t->unit, ldexp(1, -t->significand));
        const double normal = ldexp(1, t->min_exponent),
                     max = ldexp(2 - 2 * t->unit, t->max_exponent);
        cr_assert(t->floor == normal || (d == ADJ_F16 && t->floor == normal * 2 * t->unit));
        adj_store((adj_dtype)d, &v, 0, max);
        cr_assert_eq(adj_load((adj_dtype)d, &v, 0), max);
    }
    cr_assert_eq(adj_traits_of(ADJ_I32)->unit, 0);
    cr_assert_eq(adj_traits_of((adj_dtype)9)->bytes, 0);
}

/* ---- random numbers ---- */

/* Random123, tests/kat_vectors, "philox4x32 10". */
static const struct {
    uint32_t counter[4], key[2], want[4];
} answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
    {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
     {0xffffffffu, 0xffffffffu},
     {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
    {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
     {0xa4093822u, 0x299f31d0u},
     {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
};

Test(rng, philox_known_answers)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        uint32_t got[4];
        adj_philox(answers[i].counter, answers[i].key, got);
        for (int k = 0; k < 4; k++)
            cr_assert_eq(got[k], answers[i].want[k], "vector %zu word %d: got %08x", i, k, got[k]);
    }
}

/* Mean, variance, skewness and excess kurtosis of n draws. */
static void moments(const double *v, int n, double m[4])
{
    double mean = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int i = 0; i < n; i++)
        mean += v[i] / n;
    for (int i = 0; i < n; i++) {
        double d = v[i] - mean;
        m2 += d * d / n, m3 += d * d * d / n, m4 += d * d * d * d / n;
    }
    m[0] = mean, m[1] = m2, m[2] = m3 / pow(m2, 1.5), m[3] = m4 / (m2 * m2) - 3;
}

static void expect_moments(const adj_init init, double mean, double variance, double kurtosis)
{
    enum { N = 100000 };
    double *v = malloc(N * sizeof *v), m[4];
    adj_draw(ADJ_F64, v, N, init, 7, 11);
    moments(v, N, m);
    cr_assert_float_eq(m[0], mean, 5 * sqrt(variance / N), "mean %g", m[0]);
    cr_assert_float_eq(m[1], variance, 0.02 * variance, "variance %g", m[1]);
    cr_assert_float_eq(m[2], 0, 0.05, "skewness %g", m[2]);
    cr_assert_float_eq(m[3], kurtosis, 0.1, "kurtosis %g", m[3]);
    double neighbors = 0; /* the two elements of a block are independent too */
    for (int i = 0; i + 1 < N; i += 2)
        neighbors += (v[i] - mean) * (v[i + 1] - mean) / (N / 2) / variance;
    cr_assert_float_eq(neighbors, 0, 0.025, "correlation %g", neighbors);
    free(v);
}

Test(rng, moments)
{
    expect_moments((adj_init){.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 3}, 1, 16 / 12.0, -1.2);
    expect_moments((adj_init){.kind = ADJ_INIT_NORMAL, .a = 2, .b = 0.5}, 2, 0.25, 0);
}

Test(rng, range)
{
    double v[4096];
    adj_draw(ADJ_F64, v, 4096, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -0.25, .b = 0.5}, 1, 2);
    for (int i = 0; i < 4096; i++)
        cr_assert(v[i] >= -0.25 && v[i] < 0.5);
    adj_draw(ADJ_F64, v, 3, (adj_init){.kind = ADJ_INIT_CONSTANT, .a = 1.5, .b = 9}, 1, 2);
    cr_assert(v[0] == 1.5 && v[1] == 1.5 && v[2] == 1.5 && v[3] != 1.5);
    const float given[] = {0, -2, 5};
    const adj_leaf_attrs leaf = {.init = ADJ_INIT_DATA, .data = given, .data_dtype = ADJ_F32};
    adj_draw_leaf(&leaf, ADJ_F64, v, 3, 1, 2); /* a copy of the graph in another type */
    cr_assert(v[0] == 0 && v[1] == -2 && v[2] == 5 && v[3] != 0);
}

/* [a, b) in every dtype: rounding does not take a draw up to b. */
Test(rng, narrow_types_stay_below_b)
{
    enum { N = 20000 };
    static const double ranges[][2] = {{0, 1},     {-1, 0},       {-3, -1},       {1, 1.0009765625},
                                       {0.999, 1}, {-1e-7, 1e-7}, {-65504, 65504}};
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
    scoped(release) double *v = malloc(N * sizeof *v);
    for (int d = 0; d < 4; d++)
        for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
            double a = ranges[r][0], b = ranges[r][1];
            adj_store(dtypes[d], v, 0, a);
            int exact = adj_load(dtypes[d], v, 0) == a;
            adj_draw(dtypes[d], v, N, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = a, .b = b}, 3, r);
            for (int i = 0; i < N; i++) {
                double got = adj_load(dtypes[d], v, i);
                cr_assert(got < b && (got >= a || !exact), "%s [%g, %g): %.17g",
                          adj_dtype_name(dtypes[d]), a, b, got);
            }
        }
    adj_draw(ADJ_I32, v, N, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -5, .b = -2}, 3, 4);
    for (int i = 0; i < N; i++)
        cr_assert(((int32_t *)v)[i] < -2 && ((int32_t *)v)[i] >= -5);
}

/* Element i is the same for every length, differs by seed and stream, and a narrow dtype has the
 * double's value rounded once. */
Test(rng, element_depends_on_seed_stream_and_index_only)
{
    const adj_init init = {.kind = ADJ_INIT_NORMAL, .b = 1};
    double whole[101], part[101], other[101];
    adj_draw(ADJ_F64, whole, 101, init, 5, 6);
    for (int n = 0; n <= 100; n += 7) {
        adj_draw(ADJ_F64, part, n, init, 5, 6);
        for (int i = 0; i < n; i++)
            cr_assert_eq(part[i], whole[i]);
    }
    adj_draw(ADJ_F64, part, 101, init, 5, 7);
    adj_draw(ADJ_F64, other, 101, init, 6, 6);
    for (int i = 0; i < 101; i++)
        cr_assert(part[i] != whole[i] && other[i] != whole[i] && part[i] != other[i]);

    const adj_dtype narrow[] = {ADJ_F32, ADJ_F16, ADJ_BF16};
    for (int d = 0; d < 3; d++) {
        scoped(release) void *drawn = malloc(101 * sizeof(float)),
                             *stored = malloc(101 * sizeof(float));
        adj_draw(narrow[d], drawn, 101, init, 5, 6);
        for (int i = 0; i < 101; i++) {
            adj_store(narrow[d], stored, i, whole[i]);
            cr_assert_eq(adj_load(narrow[d], drawn, i), adj_load(narrow[d], stored, i));
        }
    }
}
