/* rng.c - random numbers that depend on a counter and a key only: Philox4x32-10.
 *
 * There is no state: the same (seed, stream, i) gives the same number in any order, on any number
 * of threads and after a checkpoint. A block of four 32-bit words makes two elements of adj_draw,
 * so that a pair of uniforms feeds Box-Muller; element i is half i % 2 of block i / 2. */
#include <math.h>

#include "op.h"

enum { PHILOX_ROUNDS = 10, BLOCK = 2 };

/* Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011). */
void adj_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    const uint64_t m0 = 0xd2511f53u, m1 = 0xcd9e8d57u;       /* multipliers */
    const uint32_t weyl0 = 0x9e3779b9u, weyl1 = 0xbb67ae85u; /* golden ratio, sqrt(3) - 1 */
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = m0 * c0, p1 = m1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += weyl0;
        k1 += weyl1;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Maps the upper 53 of 64 bits to a multiple of 2^-53 in [0, 1). */
static double unit(uint32_t high, uint32_t low)
{
    return (double)((((uint64_t)high << 32) | low) >> 11) * 0x1p-53;
}

/* Writes the two uniforms in [0, 1) of a block. */
static void uniforms(uint64_t block, uint64_t seed, uint64_t stream, double u[BLOCK])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                 (uint32_t)(stream >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4];

    adj_philox(counter, key, word);
    u[0] = unit(word[1], word[0]);
    u[1] = unit(word[3], word[2]);
}

/* Box-Muller: two independent standard normals from two uniforms; 1 - u is in (0, 1]. */
static void normals(double u[BLOCK])
{
    const double two_pi = 6.283185307179586476925286766559;
    double radius = sqrt(-2 * log(1 - u[0])), angle = two_pi * u[1];

    u[0] = radius * cos(angle);
    u[1] = radius * sin(angle);
}

/* Stores the largest value of the dtype below b. */
static void store_below(adj_dtype dtype, void *data, int64_t i, double b)
{
    double below = dtype == ADJ_I32 ? ceil(b) - 1 : b;

    adj_store(dtype, data, i, below);
    if (adj_load(dtype, data, i) < b)
        return;
    if (dtype == ADJ_F64)
        ((double *)data)[i] = nextafter(b, -INFINITY);
    else if (dtype == ADJ_F32)
        ((float *)data)[i] = nextafterf((float)b, -INFINITY);
    else {
        uint16_t *bits = (uint16_t *)data + i; /* sign and magnitude */
        *bits = *bits == 0 ? 0x8001 : *bits & 0x8000 ? *bits + 1 : *bits - 1;
    }
}

/* Stores v in [a, b); rounding to the dtype must not reach b. */
static void store_uniform(adj_dtype dtype, void *data, int64_t i, double v, adj_init range)
{
    if (dtype == ADJ_F64 && v < range.b) {
        ((double *)data)[i] = v;
        return;
    }
    adj_store(dtype, data, i, v);
    if (range.a < range.b && adj_load(dtype, data, i) >= range.b)
        store_below(dtype, data, i, range.b);
}

void adj_draw(adj_dtype dtype, void *data, int64_t n, adj_init init, uint64_t seed, uint64_t stream)
{
    for (int64_t i = 0; i < n; i += BLOCK) {
        double v[BLOCK] = {0, 0}, scale = 0;
        if (init.kind != ADJ_INIT_CONSTANT) {
            uniforms((uint64_t)i / BLOCK, seed, stream, v);
            scale = init.kind == ADJ_INIT_UNIFORM ? init.b - init.a : init.b;
        }
        if (init.kind == ADJ_INIT_NORMAL)
            normals(v);
        for (int64_t k = 0; k < BLOCK && i + k < n; k++)
            if (init.kind == ADJ_INIT_UNIFORM)
                store_uniform(dtype, data, i + k, init.a + scale * v[k], init);
            else
                adj_store(dtype, data, i + k, init.a + scale * v[k]);
    }
}

void adj_draw_leaf(const adj_leaf_attrs *a, adj_dtype dtype, void *to, int64_t n, uint64_t seed,
                   uint64_t stream)
{
    const adj_init init = {.kind = (adj_init_kind)a->init, .a = a->a, .b = a->b};
    if (init.kind == ADJ_INIT_DATA)
        adj_convert((adj_dtype)a->data_dtype, a->data, dtype, to, n);
    else
        adj_draw(dtype, to, n, init, seed, stream);
}

void adj_spread(int64_t n, double v[], double low, double high)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = low + (high - low) * (v[i] + 1) / 2;
}
