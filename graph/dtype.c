/* dtype.c - element types: the table of their traits, and conversion with one rounding. */
#include <math.h>
#include <string.h>

#include "op.h"

static const adj_dtype_traits types[] = {
    [ADJ_F32] = {"f32", 4, 24, -126, 127, 0x1p-24, 0x1p-126},
    [ADJ_F64] = {"f64", 8, 53, -1022, 1023, 0x1p-53, 0x1p-1022},
    [ADJ_F16] = {"f16", 2, 11, -14, 15, 0x1p-11, 0x1p-24}, /* computed in f32 without loss */
    [ADJ_BF16] = {"bf16", 2, 8, -126, 127, 0x1p-8, 0x1p-126},
    [ADJ_I32] = {.name = "i32", .bytes = 4},
};
enum { N_TYPE = sizeof types / sizeof *types };

/* Elements are loaded and stored one at a time: no call for each. */
static inline size_t bytes_of(adj_dtype dtype)
{
    return (unsigned)dtype < N_TYPE ? types[dtype].bytes : 0;
}

const adj_dtype_traits *adj_traits_of(adj_dtype dtype)
{
    static const adj_dtype_traits none = {.name = "no dtype"};
    return (unsigned)dtype < N_TYPE ? &types[dtype] : &none;
}

const char *adj_dtype_name(adj_dtype dtype) { return adj_traits_of(dtype)->name; }
size_t adj_dtype_size(adj_dtype dtype) { return bytes_of(dtype); }
int adj_is_float(adj_dtype dtype) { return adj_traits_of(dtype)->significand > 0; }
int adj_is_half(adj_dtype dtype) { return adj_is_float(dtype) && adj_dtype_size(dtype) == 2; }

adj_status adj_dtype_from_name(const char *name, adj_dtype *dtype)
{
    for (int i = 0; name != NULL && dtype != NULL && i < N_TYPE; i++)
        if (strcmp(name, types[i].name) == 0) {
            *dtype = (adj_dtype)i;
            return ADJ_OK;
        }
    return ADJ_EARG;
}

/* Returns 2^e for an e in double's normal range; ldexp would be too slow for conversions. */
static double power_of_2(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Returns the exponent of a finite v; for a subnormal double, one below any half type's. */
static int exponent_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* Returns the bits of v rounded to nearest even, directly from double: going through float would
 * round twice. */
static uint16_t half_from_double(double v, const adj_dtype_traits *t)
{
    uint16_t sign = signbit(v) ? 0x8000u : 0;
    int fraction_bits = t->significand - 1;
    unsigned all_ones = ((unsigned)(t->max_exponent - t->min_exponent + 2)) << fraction_bits;
    double magnitude = fabs(v);

    if (isnan(v))
        return (uint16_t)(sign | all_ones | (1u << (fraction_bits - 1)));
    if (magnitude == 0)
        return sign;
    if (isinf(magnitude))
        return (uint16_t)(sign | all_ones);
    int e = exponent_of(magnitude);
    if (e < t->min_exponent)
        e = t->min_exponent; /* subnormal: the unit in the last place does not shrink further */
    double units = nearbyint(magnitude * power_of_2(fraction_bits - e)); /* ties to even */
    if (units >= power_of_2(t->significand)) {
        units /= 2;
        e++;
    }
    if (e > t->max_exponent)
        return (uint16_t)(sign | all_ones);
    unsigned fraction = (unsigned)units, hidden = 1u << fraction_bits;
    unsigned exponent = fraction >= hidden ? (unsigned)(e - t->min_exponent + 1) : 0;
    return (uint16_t)(sign | (exponent << fraction_bits) | (fraction & (hidden - 1)));
}

static double half_to_double(uint16_t bits, const adj_dtype_traits *t)
{
    int fraction_bits = t->significand - 1, last = t->min_exponent - fraction_bits;
    unsigned hidden = 1u << fraction_bits, fraction = bits & (hidden - 1);
    int exponent = (bits & 0x7fff) >> fraction_bits, top = t->max_exponent - t->min_exponent + 2;
    double v;

    if (exponent == top)
        v = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        v = fraction * power_of_2(last);
    else
        v = (fraction + hidden) * power_of_2(exponent - 1 + last);
    return bits & 0x8000 ? -v : v;
}

/* Data in a file may be unaligned, so elements are copied and never read in place. */
double adj_load(adj_dtype dtype, const void *data, int64_t i)
{
    const char *at = (const char *)data + i * (int64_t)bytes_of(dtype);
    float single;
    double real;
    int32_t whole;
    uint16_t half;

    switch (dtype) {
    case ADJ_F32: return memcpy(&single, at, sizeof single), (double)single;
    case ADJ_F64: return memcpy(&real, at, sizeof real), real;
    case ADJ_I32: return memcpy(&whole, at, sizeof whole), whole;
    case ADJ_F16:
    case ADJ_BF16: return memcpy(&half, at, sizeof half), half_to_double(half, &types[dtype]);
    }
    return NAN;
}

/* Truncates and saturates to int32's range; NaN becomes 0. */
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
    char *at = (char *)data + i * (int64_t)bytes_of(dtype);
    const float single = dtype == ADJ_F32 ? (float)value : 0;
    const int32_t whole = dtype == ADJ_I32 ? to_i32(value) : 0;
    uint16_t half;

    switch (dtype) {
    case ADJ_F32: memcpy(at, &single, sizeof single); break;
    case ADJ_F64: memcpy(at, &value, sizeof value); break;
    case ADJ_I32: memcpy(at, &whole, sizeof whole); break;
    case ADJ_F16:
    case ADJ_BF16:
        half = half_from_double(value, &types[dtype]);
        memcpy(at, &half, sizeof half);
        break;
    }
}

static void widen(const char *v, char *converted, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float single;
        memcpy(&single, v + 4 * i, 4);
        const double real = (double)single;
        memcpy(converted + 8 * i, &real, 8);
    }
}

static void narrow(const char *v, char *converted, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double real;
        memcpy(&real, v + 8 * i, 8);
        const float single = (float)real;
        memcpy(converted + 4 * i, &single, 4);
    }
}

void adj_convert(adj_dtype from, const void *v, adj_dtype to, void *converted, int64_t n)
{
    if (n <= 0)
        return;
    if (from == to)
        memcpy(converted, v, (size_t)n * adj_dtype_size(to));
    else if (from == ADJ_F32 && to == ADJ_F64)
        widen(v, converted, n);
    else if (from == ADJ_F64 && to == ADJ_F32)
        narrow(v, converted, n);
    else
        for (int64_t i = 0; i < n; i++)
            adj_store(to, converted, i, adj_load(from, v, i));
}
