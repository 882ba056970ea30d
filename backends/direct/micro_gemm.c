/* micro_gemm.c - the loops of micro_gemm.h, compiled for every size of the block.
 * With -DSMALL_CODE there is one loop for any size: sanitizers need minutes for all. */
#include "micro_gemm.h"

#include "arith.h"

#if defined(ISA_avx512)
enum { SUMS = 24 }; /* of 32 registers */
#else
enum { SUMS = 12 }; /* of 16 */
#endif
enum { MAX_ROWS = 12, MAX_VECTORS = MICRO_GEMM_VECTORS, GROUP = 3 };
enum { LINE = 64 }; /* bytes of a cache's */
/* Columns of a that the loop takes at once. What is left of its instructions beside multiply-adds
 * costs little where a core works for one thread, and up to a quarter of the time where it works
 * for two, as it may on rented machines (AMD Zen 3, 2026-11-27, docs/performance.md). */
enum { AT_ONCE = 4 };

/* How many rows a block of so many vectors may have. */
ALWAYS ptrdiff_t block_rows(ptrdiff_t vectors)
{
    ptrdiff_t rows = SUMS / vectors;
    return rows < MAX_ROWS ? rows : MAX_ROWS;
}

/* How a block is computed. All but PLAIN fetch what they are asked to, COLD the rows of c as well,
 * which takes a twentieth of the time of short sums where they are in the cache. */
typedef enum { PLAIN, FETCHING, COLD, TRANSPOSED } block_kind;

typedef struct { /* in registers, once all that is inlined */
    vector sum[MAX_ROWS * MAX_VECTORS];
    /* A column's factors; not declared in its loop, where sanitizers mark its bounds each time. */
    vector first[MAX_VECTORS > MAX_ROWS ? MAX_VECTORS : MAX_ROWS];
    const real *a[MAX_ROWS / GROUP], *column, *b; /* rows of a; transposed: columns */
    const char *fetched;
} block_state;

/* *sum += x y; where there is an instruction for it, rounded once. Of the forms of that instruction
 * gcc 12 takes such as need a move of a register for every third one, where there is a choice. */
ALWAYS void add_product(vector *sum, vector x, vector y)
{
#if defined(ISA_avx512)
    if (REAL_IS_FLOAT)
        __asm__("vfmadd231ps %2, %1, %0" : "+v"(*sum) : "v"(y), "v"(x));
    else
        __asm__("vfmadd231pd %2, %1, %0" : "+v"(*sum) : "v"(y), "v"(x));
#elif defined(ISA_avx2)
    if (REAL_IS_FLOAT)
        __asm__("vfmadd231ps %2, %1, %0" : "+x"(*sum) : "x"(y), "x"(x));
    else
        __asm__("vfmadd231pd %2, %1, %0" : "+x"(*sum) : "x"(y), "x"(x));
#else
    *sum += x * y;
#endif
}

/* Rows of a are reached from every third one's address: there are too few registers for all. */
ALWAYS vector element_of_a(const block_kind kind, const micro_gemm *p, const block_state *s,
                           ptrdiff_t row, ptrdiff_t k)
{
    const real x = kind == TRANSPOSED ? s->column[k * p->a_pitch + row]
                                      : s->a[row / GROUP][k + row % GROUP * p->a_pitch];
    return x - (vector){0};
}

/* The products of column k of a with row k of b. Registers hold the sums, what there is less of,
 * elements or vectors, and one of the others. */
ALWAYS void add_products(const block_kind kind, const int rows, const int vectors,
                         const micro_gemm *p, ptrdiff_t k, block_state *s)
{
    const int vectors_first = vectors < rows, n = vectors_first ? vectors : rows;
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < n; i++)
        s->first[i] =
            vectors_first ? *(const vector *)(s->b + i * VECTOR) : element_of_a(kind, p, s, i, k);
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows + vectors - n; i++) {
        const vector v =
            vectors_first ? element_of_a(kind, p, s, i, k) : *(const vector *)(s->b + i * VECTOR);
#pragma GCC unroll 16
        for (ptrdiff_t j = 0; j < n; j++) {
            vector *sum = &s->sum[vectors_first ? i * vectors + j : j * vectors + i];
            if (VECTOR_BYTES == 64 && vectors == 1)
                *sum += v * s->first[j]; /* the instruction reads the element */
            else
                add_product(sum, v, s->first[j]);
        }
    }
    s->b += p->b_pitch;
}

ALWAYS void fetch_row_of_c(const int vectors, const micro_gemm *p, ptrdiff_t row)
{
#pragma GCC unroll 4
    for (ptrdiff_t j = 0; j < vectors; j++)
        __builtin_prefetch(p->c + row * p->c_pitch + j * VECTOR, 1);
}

ALWAYS void fetch_lines(const micro_gemm *p, block_state *s)
{
    for (ptrdiff_t i = 0; i < p->prefetch_bytes; i += LINE)
        __builtin_prefetch(s->fetched + i);
    s->fetched += p->prefetch_bytes;
}

/* A part of a. */
ALWAYS void add_part(const block_kind kind, const int rows, const int vectors, const micro_gemm *p,
                     block_state *s)
{
    ptrdiff_t k = 0;
#pragma GCC unroll 8
    for (ptrdiff_t i = 0; i < MAX_ROWS / GROUP; i++)
        s->a[i] = s->column + i * GROUP * p->a_pitch;
    for (; kind == COLD && k < rows && k < p->depth; k++) {
        fetch_row_of_c(vectors, p, k);
        add_products(kind, rows, vectors, p, k, s);
    }
    for (; k + AT_ONCE <= p->depth; k += AT_ONCE) {
        if (kind != PLAIN)
            fetch_lines(p, s);
#pragma GCC unroll 4
        for (ptrdiff_t i = 0; i < AT_ONCE; i++)
            add_products(kind, rows, vectors, p, k + i, s);
    }
    for (; k < p->depth; k++)
        add_products(kind, rows, vectors, p, k, s);
}

ALWAYS void block(const block_kind kind, const int rows, const int vectors, const micro_gemm *p)
{
    block_state s = {.b = p->b, .fetched = p->prefetch};
#pragma GCC unroll 48
    for (int i = 0; i < rows * vectors; i++)
        s.sum[i] = (vector){0};
    for (ptrdiff_t part = 0; part <= p->more; part++) {
        s.column = p->a + (part > 0 ? p->more_at[part - 1] : 0);
        add_part(kind, rows, vectors, p, &s);
    }
    real *c = p->c;
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows; i++, c += p->c_pitch)
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++) {
            vector *dst = (vector *)(c + j * VECTOR), v = s.sum[i * vectors + j];
            if (p->add)
                v += *dst;
            *dst = v;
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
static void fetching_1(const micro_gemm *p) { any_block(FETCHING, 1, p); }
static void fetching_2(const micro_gemm *p) { any_block(FETCHING, 2, p); }
static void fetching_3(const micro_gemm *p) { any_block(FETCHING, 3, p); }
static void fetching_4(const micro_gemm *p) { any_block(FETCHING, 4, p); }
static void cold_1(const micro_gemm *p) { any_block(COLD, 1, p); }
static void cold_2(const micro_gemm *p) { any_block(COLD, 2, p); }
static void cold_3(const micro_gemm *p) { any_block(COLD, 3, p); }
static void cold_4(const micro_gemm *p) { any_block(COLD, 4, p); }
static void transposed_1(const micro_gemm *p) { any_block(TRANSPOSED, 1, p); }
static void transposed_2(const micro_gemm *p) { any_block(TRANSPOSED, 2, p); }
static void transposed_3(const micro_gemm *p) { any_block(TRANSPOSED, 3, p); }
static void transposed_4(const micro_gemm *p) { any_block(TRANSPOSED, 4, p); }

/* What is fetched for rows from `first` on: as much each time that columns are taken at once. */
static void set_prefetch(const micro_gemm *p, ptrdiff_t first, micro_gemm *part)
{
    const ptrdiff_t max_lines = 8;
    if (p->prefetch == NULL) {
        part->prefetch = (const char *)p->b;
        part->prefetch_bytes = 0;
        return;
    }
    const ptrdiff_t alone = p->c_is_cold ? min(part->rows, p->depth) : 0;
    const ptrdiff_t times = (p->depth - alone) / AT_ONCE * (p->more + 1);
    const ptrdiff_t bytes = part->rows * p->prefetch_bytes;
    part->prefetch = p->prefetch + first * p->prefetch_bytes;
    part->prefetch_bytes = times > 0 ? bytes / times + 1 : 0;
    if (times == 0 || part->prefetch_bytes > max_lines * LINE) {
        for (ptrdiff_t i = 0; i < bytes; i += LINE)
            __builtin_prefetch(part->prefetch + i);
        part->prefetch_bytes = 0;
    }
}

/* Cuts p into blocks of about the same number of rows. */
void REAL_TYPED(micro_gemm)(const micro_gemm *p)
{
    static void (*const loops[][MAX_VECTORS])(const micro_gemm *) = {
        [PLAIN] = {plain_1, plain_2, plain_3, plain_4},
        [FETCHING] = {fetching_1, fetching_2, fetching_3, fetching_4},
        [COLD] = {cold_1, cold_2, cold_3, cold_4},
        [TRANSPOSED] = {transposed_1, transposed_2, transposed_3, transposed_4}};
    const block_kind kind = p->a_is_transposed    ? TRANSPOSED
                            : p->c_is_cold        ? COLD
                            : p->prefetch != NULL ? FETCHING
                                                  : PLAIN;
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
