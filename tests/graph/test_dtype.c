/* test_dtype.c - every half value there is, and the roundings between them, against arithmetic done
 * in double. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "graph/op.h"

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
