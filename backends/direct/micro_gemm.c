/* micro_gemm.c - the loops of micro_gemm.h, compiled for every size of the block.
 * With -DSMALL_CODE there is one loop for any size: sanitizers need minutes for all. */
#include "micro_gemm.h"

#if defined(ISA_avx512)
enum { SUMS = 24 }; /* of 32 registers */
#else
enum { SUMS = 12 }; /* of 16 */
#endif
enum { MAX_ROWS = 12, MAX_VECTORS = MICRO_GEMM_VECTORS, GROUP = 3 };
enum { LINE = 64 }; /* bytes of a cache's */

/* How many rows a block of so many vectors may have. */
ALWAYS ptrdiff_t block_rows(ptrdiff_t vectors)
{
    ptrdiff_t rows = SUMS / vectors;
    return rows < MAX_ROWS ? rows : MAX_ROWS;
}

/* How a block is computed; of c in the cache nothing is fetched, which takes a twentieth of the
 * time of short sums. */
typedef enum { PLAIN, COLD, TRANSPOSED } block_kind;

/* Rows of a are reached from every third one's address: there are too few registers for all. */
ALWAYS void block(const block_kind kind, const int rows, const int vectors, const micro_gemm *p)
{
    const ptrdiff_t a_pitch = p->a_pitch, b_pitch = p->b_pitch, depth = p->depth;
    const real *b = p->b;
    const char *fetched = p->prefetch;
    vector sum[MAX_ROWS * MAX_VECTORS];
#pragma GCC unroll 48
    for (int i = 0; i < rows * vectors; i++)
        sum[i] = (vector){0};
    for (ptrdiff_t part = 0; part <= p->more; part++) {
        const real *a[MAX_ROWS / GROUP], *column = p->a + (part > 0 ? p->more_at[part - 1] : 0);
#pragma GCC unroll 8
        for (ptrdiff_t i = 0; i < MAX_ROWS / GROUP; i++)
            a[i] = column + i * GROUP * a_pitch;
        for (ptrdiff_t k = 0, left = depth; left > 0;
             k++, left--, b += b_pitch, column += a_pitch, fetched += p->prefetch_bytes) {
            vector y[MAX_VECTORS];
            __builtin_prefetch(fetched);
            __builtin_prefetch(fetched + LINE);
            if (kind == COLD && k < rows) {
#pragma GCC unroll 4
                for (ptrdiff_t j = 0; j < vectors; j++)
                    __builtin_prefetch(p->c + k * p->c_pitch + j * VECTOR, 1);
            }
#pragma GCC unroll 8
            for (ptrdiff_t j = 0; j < vectors; j++)
                y[j] = *(const vector *)(b + j * VECTOR);
#pragma GCC unroll 16
            for (ptrdiff_t i = 0; i < rows; i++) {
                real x = kind == TRANSPOSED ? column[i] : a[i / GROUP][k + i % GROUP * a_pitch];
#pragma GCC unroll 8
                for (ptrdiff_t j = 0; j < vectors; j++)
                    sum[i * vectors + j] += x * y[j];
            }
        }
    }
    real *c = p->c;
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows; i++, c += p->c_pitch)
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++) {
            vector *dst = (vector *)(c + j * VECTOR);
            if (p->add)
                sum[i * vectors + j] += *dst;
            *dst = sum[i * vectors + j];
        }
}

/* Sizes that do not fit into registers are not compiled. */
ALWAYS void fixed_block(const block_kind kind, const int rows, const int vectors,
                        const micro_gemm *p)
{
    if (rows <= block_rows(vectors))
        block(kind, rows, vectors, p);
}

#ifdef SMALL_CODE

ALWAYS void any_block(const block_kind kind, const int vectors, const micro_gemm *p)
{
    fixed_block(kind, (int)p->rows, vectors, p);
}

#else

ALWAYS void any_block(const block_kind kind, const int vectors, const micro_gemm *p)
{
    switch (p->rows) {
    case 1: fixed_block(kind, 1, vectors, p); break;
    case 2: fixed_block(kind, 2, vectors, p); break;
    case 3: fixed_block(kind, 3, vectors, p); break;
    case 4: fixed_block(kind, 4, vectors, p); break;
    case 5: fixed_block(kind, 5, vectors, p); break;
    case 6: fixed_block(kind, 6, vectors, p); break;
    case 7: fixed_block(kind, 7, vectors, p); break;
    case 8: fixed_block(kind, 8, vectors, p); break;
    case 9: fixed_block(kind, 9, vectors, p); break;
    case 10: fixed_block(kind, 10, vectors, p); break;
    case 11: fixed_block(kind, 11, vectors, p); break;
    default: fixed_block(kind, 12, vectors, p); break;
    }
}

#endif

static void plain_1(const micro_gemm *p) { any_block(PLAIN, 1, p); }
static void plain_2(const micro_gemm *p) { any_block(PLAIN, 2, p); }
static void plain_3(const micro_gemm *p) { any_block(PLAIN, 3, p); }
static void plain_4(const micro_gemm *p) { any_block(PLAIN, 4, p); }
static void cold_1(const micro_gemm *p) { any_block(COLD, 1, p); }
static void cold_2(const micro_gemm *p) { any_block(COLD, 2, p); }
static void cold_3(const micro_gemm *p) { any_block(COLD, 3, p); }
static void cold_4(const micro_gemm *p) { any_block(COLD, 4, p); }
static void transposed_1(const micro_gemm *p) { any_block(TRANSPOSED, 1, p); }
static void transposed_2(const micro_gemm *p) { any_block(TRANSPOSED, 2, p); }
static void transposed_3(const micro_gemm *p) { any_block(TRANSPOSED, 3, p); }
static void transposed_4(const micro_gemm *p) { any_block(TRANSPOSED, 4, p); }

/* For rows from `first` on. The loop always fetches something: unasked, what it reads anyway. */
static void set_prefetch(const micro_gemm *p, ptrdiff_t first, micro_gemm *part)
{
    part->prefetch = (const char *)p->b;
    part->prefetch_bytes = 0;
    if (p->prefetch == NULL)
        return;
    const char *at = p->prefetch + first * p->prefetch_bytes;
    const ptrdiff_t bytes = part->rows * p->prefetch_bytes;
    const ptrdiff_t step = bytes / (p->depth * (p->more + 1)) + 1;
    if (step <= (ptrdiff_t)2 * LINE) {
        part->prefetch = at;
        part->prefetch_bytes = step;
    } else
        for (ptrdiff_t i = 0; i < bytes; i += LINE)
            __builtin_prefetch(at + i);
}

/* Cuts p into blocks of about the same number of rows. */
void REAL_TYPED(micro_gemm)(const micro_gemm *p)
{
    static void (*const loops[][MAX_VECTORS])(const micro_gemm *) = {
        [PLAIN] = {plain_1, plain_2, plain_3, plain_4},
        [COLD] = {cold_1, cold_2, cold_3, cold_4},
        [TRANSPOSED] = {transposed_1, transposed_2, transposed_3, transposed_4}};
    const block_kind kind = p->a_is_transposed ? TRANSPOSED : p->c_is_cold ? COLD : PLAIN;
    const ptrdiff_t max = block_rows(p->vectors), blocks = (p->rows + max - 1) / max;
    micro_gemm part = *p;
    for (ptrdiff_t i = 0; i < blocks; i++) {
        ptrdiff_t first = p->rows * i / blocks;
        part.rows = p->rows * (i + 1) / blocks - first;
        part.a = p->a + first * (p->a_is_transposed ? 1 : p->a_pitch);
        part.c = p->c + first * p->c_pitch;
        set_prefetch(p, first, &part);
        loops[kind][p->vectors - 1](&part);
    }
}
