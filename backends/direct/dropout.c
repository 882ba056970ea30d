/* dropout.c - dropout: the random numbers of ops/dropout.c for many elements at a time. The jobs
 * are compiled once per instruction set. */
#include <math.h>

#include "arith.h"
#include "direct.h"
#include "element.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    CHUNK = 2048, /* elements of a job */
    WORDS = 4,    /* words of a block of random numbers */
    ROUNDS = 10,  /* rounds of Philox4x32-10 */
    LANES = VECTOR_BYTES / sizeof(uint64_t),
    BLOCKS = CHUNK / WORDS + LANES
};

typedef struct {
    direct_work work;
    adj_dtype dtype;
    int64_t n, first; /* elements; index of the first */
    uint32_t key[2];
    int64_t kept_from; /* the smallest word that keeps an element */
    float scale;
} dropout;

/* A word for each of LANES blocks; the upper halves are undefined. */
typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t pair_of_words __attribute__((may_alias));

/* Multiplies the lower halves, by an instruction that gcc does not generate from plain C. */
ALWAYS words multiply(words a, words b)
{
#if !defined(__x86_64__)
    return (a & UINT32_MAX) * (b & UINT32_MAX);
#elif defined(ISA_avx512)
    return (words)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(ISA_avx2)
    return (words)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    return (words)_mm_mul_epu32((__m128i)a, (__m128i)b);
#endif
}

static words all_lanes(uint32_t v) { return (words){0} + v; }

/* Constants of Philox: see graph/rng.c. */
static const uint32_t multiplier0 = 0xd2511f53u, multiplier1 = 0xcd9e8d57u, weyl0 = 0x9e3779b9u,
                      weyl1 = 0xbb67ae85u;

/* Computes adj_philox of LANES blocks from `block` on. pair[0] receives the first two words of
 * each, the first one in the lower half; pair[1] the other two. */
ALWAYS void draw(const dropout *p, uint32_t step, uint64_t block, words pair[2])
{
    const words m0 = all_lanes(multiplier0), m1 = all_lanes(multiplier1);
    uint32_t k0 = p->key[0], k1 = p->key[1];
    words number = {0}, c0, c1, c2 = all_lanes(step), c3 = all_lanes(0);
    for (int i = 0; i < LANES; i++)
        number[i] = block + (uint64_t)i;
    c0 = number;
    c1 = number >> 32;
#pragma GCC unroll 10
    for (int round = 0; round < ROUNDS; round++) {
        const words p0 = multiply(m0, c0), p1 = multiply(m1, c2);
        c0 = (p1 >> 32) ^ c1 ^ all_lanes(k0);
        c1 = p1;
        c2 = (p0 >> 32) ^ c3 ^ all_lanes(k1);
        c3 = p0;
        k0 += weyl0;
        k1 += weyl1;
    }
    pair[0] = (c0 & UINT32_MAX) | c1 << 32;
    pair[1] = (c2 & UINT32_MAX) | c3 << 32;
}

/* Draws the words of `count` blocks, at most BLOCKS - LANES + 1. */
static void draw_all(const dropout *p, uint32_t step, uint64_t block, ptrdiff_t count,
                     uint32_t *restrict word)
{
    pair_of_words first[BLOCKS], second[BLOCKS], *restrict dst = (pair_of_words *)(void *)word;
    for (ptrdiff_t i = 0; i < count; i += LANES) {
        words pair[2];
        draw(p, step, block + (uint64_t)i, pair);
        memcpy(first + i, &pair[0], sizeof pair[0]);
        memcpy(second + i, &pair[1], sizeof pair[1]);
    }
#pragma omp simd
    for (ptrdiff_t i = 0; i < count; i++) {
        dst[2 * i] = first[i];
        dst[2 * i + 1] = second[i];
    }
}

static void run_job(const adj_call *c, ptrdiff_t job, int thread)
{
    (void)thread;
    const dropout *p = c->state;
    const ptrdiff_t size = (ptrdiff_t)adj_dtype_size(p->dtype), at = job * CHUNK;
    const ptrdiff_t n = min((ptrdiff_t)p->n - at, CHUNK);
    const int64_t number = p->first + at, skipped = number % WORDS;
    const uint32_t kept_from = (uint32_t)p->kept_from;
    const uint32_t any = p->kept_from > UINT32_MAX ? 0 : UINT32_MAX; /* 0 if no element is kept */
    const float scale = p->scale;
    const int32_t *step = c->in[1];
    _Alignas(VECTOR_BYTES) uint32_t word[WORDS * BLOCKS];
    float x[CHUNK];
    draw_all(p, (uint32_t)*step, (uint64_t)(number / WORDS),
             divide_up((ptrdiff_t)skipped + n, WORDS), word);
    load_reals(p->dtype, n, x, (const char *)c->in[0] + at * size);
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t kept = (0u - (word[skipped + i] >= kept_from)) & any;
        x[i] = float_of(bits_of(x[i] * scale) & kept);
    }
    store_reals(p->dtype, n, (char *)c->out[0] + at * size, x);
}

const direct_code DIRECT(dropout) = {.job = run_job};

/* ---- the kernel: which nodes it accepts ---- */

#ifdef ISA_base

static const int64_t parallel_above = 1 << 13; /* elements */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    const adj_node *n = g->node[0];
    const adj_dtype dtype = n->type.dtype;
    if (candidate > 0 || g->n_node > 1 || n->op != &adj_op_dropout)
        return ADJ_ENOKERNEL;
    if (dtype == ADJ_F64)
        return direct_refuse(prep, "%s: direct has no kernel for f64", n->op->name);
    const adj_dropout_attrs *a = n->attrs;
    const double threshold = ceil(a->rate * 0x1p32); /* words are integers */
    const int64_t elems = adj_shape_elems(n->type.shape);
    const dropout p = {.work = {.code = d->isa->dropout,
                                .jobs = divide_up((ptrdiff_t)elems, CHUNK),
                                .threads = elems > parallel_above ? d->threads : 1},
                       .dtype = dtype,
                       .n = elems,
                       .first = a->first,
                       .key = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)},
                       .kept_from = (int64_t)threshold,
                       .scale = (float)(1 / (1 - a->rate))};
    prep->alias[0].operands = 1;
    return direct_accept(d, g, prep, "dropout", &p, sizeof p);
}

const adj_kernel direct_dropout = {
    .name = "dropout", .prepare = prepare, .run = direct_run, .drop = direct_drop};

#endif
