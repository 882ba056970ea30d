/* dtype.c - the element types: names, sizes, conversion with one rounding. */
#include <math.h>
#include <string.h>

#include "adjoint_ext.h"

const char *adj_dtype_name(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F32: return "f32";
    case ADJ_F64: return "f64";
    case ADJ_F16: return "f16";
    case ADJ_BF16: return "bf16";
    case ADJ_I32: return "i32";
    }
    return "no dtype";
}

size_t adj_dtype_size(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F32: return 4;
    case ADJ_F64: return 8;
    case ADJ_F16: return 2;
    case ADJ_BF16: return 2;
    case ADJ_I32: return 4;
    }
    return 0;
}

int adj_is_float(adj_dtype dtype) { return adj_dtype_size(dtype) > 0 && dtype != ADJ_I32; }

/* A half type: precision p (with the hidden bit), exponents from e_min to e_max. */
typedef struct {
    int precision, e_min, e_max, fraction_bits;
} half_format;

static half_format format_of(adj_dtype dtype)
{
    if (dtype == ADJ_F16)
        return (half_format){11, -14, 15, 10};
    return (half_format){8, -126, 127, 7};
}

/* 2^e, for an e that a normal double has: conversions are too many for ldexp. */
static double power_of_2(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The exponent of a finite v; of a subnormal, one that is below any half type's. */
static int exponent_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* The bits of v rounded to nearest even, straight from double: rounding through float would round
 * twice. */
static uint16_t half_from_double(double v, half_format h)
{
    uint16_t sign = signbit(v) ? 0x8000u : 0;
    unsigned all_ones = ((unsigned)(h.e_max - h.e_min + 2)) << h.fraction_bits;
    double magnitude = fabs(v);

    if (isnan(v))
        return (uint16_t)(sign | all_ones | (1u << (h.fraction_bits - 1)));
    if (magnitude == 0)
        return sign;
    if (isinf(magnitude))
        return (uint16_t)(sign | all_ones);
    int e = exponent_of(magnitude);
    if (e < h.e_min)
        e = h.e_min; /* subnormal: the unit in the last place does not shrink further */
    double units = nearbyint(magnitude * power_of_2(h.precision - 1 - e)); /* ties to even */
    if (units >= power_of_2(h.precision)) {
        units /= 2;
        e++;
    }
    if (e > h.e_max)
        return (uint16_t)(sign | all_ones);
    unsigned fraction = (unsigned)units, hidden = 1u << h.fraction_bits;
    unsigned exponent = fraction >= hidden ? (unsigned)(e - h.e_min + 1) : 0;
    return (uint16_t)(sign | (exponent << h.fraction_bits) | (fraction & (hidden - 1)));
}

static double half_to_double(uint16_t bits, half_format h)
{
    unsigned hidden = 1u << h.fraction_bits, fraction = bits & (hidden - 1);
    int exponent = (bits & 0x7fff) >> h.fraction_bits, top = h.e_max - h.e_min + 2;
    double v;

    if (exponent == top)
        v = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        v = fraction * power_of_2(h.e_min - h.fraction_bits);
    else
        v = (fraction + hidden) * power_of_2(exponent - 1 + h.e_min - h.fraction_bits);
    return bits & 0x8000 ? -v : v;
}

double adj_load(adj_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case ADJ_F32: return (double)((const float *)data)[i];
    case ADJ_F64: return ((const double *)data)[i];
    case ADJ_I32: return ((const int32_t *)data)[i];
    case ADJ_F16:
    case ADJ_BF16: return half_to_double(((const uint16_t *)data)[i], format_of(dtype));
    }
    return NAN;
}

/* Truncates; what an int32 cannot hold becomes the nearest that it can, NaN becomes 0. */
static int32_t to_i32(double v)
{
    if (isnan(v))
        return 0;
    if (v >= INT32_MAX)
        return INT32_MAX;
    return v <= INT32_MIN ? INT32_MIN : (int32_t)v;
}

void adj_store(adj_dtype dtype, void *data, int64_t i, double value)
{
    switch (dtype) {
    case ADJ_F32: ((float *)data)[i] = (float)value; break;
    case ADJ_F64: ((double *)data)[i] = value; break;
    case ADJ_I32: ((int32_t *)data)[i] = to_i32(value); break;
    case ADJ_F16:
    case ADJ_BF16: ((uint16_t *)data)[i] = half_from_double(value, format_of(dtype)); break;
    }
}

void adj_convert(adj_dtype from, const void *v, adj_dtype to, void *converted, int64_t n)
{
    if (n <= 0)
        return;
    if (from == to)
        memcpy(converted, v, (size_t)n * adj_dtype_size(to));
    else if (from == ADJ_F32 && to == ADJ_F64)
        for (int64_t i = 0; i < n; i++)
            ((double *)converted)[i] = (double)((const float *)v)[i];
    else if (from == ADJ_F64 && to == ADJ_F32)
        for (int64_t i = 0; i < n; i++)
            ((float *)converted)[i] = (float)((const double *)v)[i];
    else
        for (int64_t i = 0; i < n; i++)
            adj_store(to, converted, i, adj_load(from, v, i));
}
