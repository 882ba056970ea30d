/* micro_gemm.c - the loops of micro_gemm.h, compiled for every size of the block. With
 * -DSMALL_CODE one loop serves all sizes: sanitizer builds would take minutes. */
#include "micro_gemm.h"

#include "arith.h"

#if defined(ISA_avx512)
enum { SUMS = 24 }; /* sum registers of 32 */
#else
enum { SUMS = 12 }; /* sum registers of 16 */
#endif
/* Rows of a are addressed relative to every third one: there are too few registers for all
 * addresses. */
enum { MAX_ROWS = 12, MAX_VECTORS = MICRO_GEMM_VECTORS, ROWS_PER_ADDRESS = 3 };
enum { LINE = 64 }; /* bytes of a cache line */
/* A block with at most this many lines of c, as all of AVX2's have, prefetches them at once if c
 * is cold: with more, such as AVX-512's 24, a core stalls. */
enum { MAX_COLD_LINES = 12 };
/* Columns of a per iteration of the loop. Loop overhead costs little if a core runs one thread,
 * and much if it runs two hardware threads. */
enum { AT_ONCE = 4 };

/* Returns the most rows of a block of that number of vectors. */
ALWAYS ptrdiff_t block_rows(ptrdiff_t vectors)
{
    ptrdiff_t rows = SUMS / vectors;
    return rows < MAX_ROWS ? rows : MAX_ROWS;
}

/* Variants of a block. PREFETCHING and TRANSPOSED prefetch p->prefetch meanwhile; PLAIN and
 * PREFETCHING prefetch rows of c if c_is_cold. */
typedef enum { PLAIN, PREFETCHING, TRANSPOSED } block_kind;

typedef struct { /* in registers after inlining */
    vector sum[MAX_ROWS * MAX_VECTORS];
    /* Factors of a column; declared outside its loop, where sanitizers would mark its bounds
     * each time. */
    vector first[MAX_VECTORS > MAX_ROWS ? MAX_VECTORS : MAX_ROWS];
    /* A slice of a; its rows; the next row of b. */
    const real *slice, *a[MAX_ROWS / ROWS_PER_ADDRESS], *b;
    const char *prefetch; /* next address to prefetch */
} block_state;

/* Adds x y to *sum, fused if there is an instruction for it. Among the forms of that
 * instruction, gcc 12 would choose ones that need a register move every third time. */
ALWAYS void add_product(vector *sum, vector_value x, vector_value y)
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

ALWAYS vector_value element_of_a(const block_kind kind, const micro_gemm *p, const block_state *s,
                                 ptrdiff_t row, ptrdiff_t k)
{
    const real x = kind == TRANSPOSED
                       ? s->slice[k * p->a_pitch + row]
                       : s->a[row / ROWS_PER_ADDRESS][k + row % ROWS_PER_ADDRESS * p->a_pitch];
    return x - (vector){0};
}

ALWAYS vector_value vector_of_b(const block_state *s, ptrdiff_t i)
{
    return *(const vector *)(s->b + i * VECTOR);
}

/* Adds the products of column k of a with row k of b. The fewer of the column's elements and the
 * row's vectors are loaded first and stay in registers; the others are loaded when used. */
ALWAYS void add_products(const block_kind kind, const int rows, const int vectors,
                         const micro_gemm *p, ptrdiff_t k, block_state *s)
{
    const int vectors_first = vectors < rows, n = vectors_first ? vectors : rows;
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < n; i++)
        s->first[i] = vectors_first ? vector_of_b(s, i) : element_of_a(kind, p, s, i, k);
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows + vectors - n; i++) {
        const vector v = vectors_first ? element_of_a(kind, p, s, i, k) : vector_of_b(s, i);
#pragma GCC unroll 16
        for (ptrdiff_t j = 0; j < n; j++) {
            vector *sum = &s->sum[vectors_first ? i * vectors + j : j * vectors + i];
            if (VECTOR_BYTES == 64 && vectors == 1)
                *sum += v * s->first[j]; /* this form loads the element in the same instruction */
            else
                add_product(sum, v, s->first[j]);
        }
    }
    s->b += p->b_pitch;
}

/* Returns the lines that begin in a row; a row that is not aligned has part of one more. */
ALWAYS ptrdiff_t lines_of_row(ptrdiff_t vectors) { return divide_up(vectors * VECTOR_BYTES, LINE); }

ALWAYS int is_prefetched_at_once(ptrdiff_t rows, ptrdiff_t vectors)
{
    return rows * lines_of_row(vectors) <= MAX_COLD_LINES;
}

/* Returns the number of first columns processed one by one, each of which prefetches a row of a
 * cold c. */
ALWAYS ptrdiff_t cold_columns(const micro_gemm *p, ptrdiff_t rows, ptrdiff_t vectors)
{
    return p->c_is_cold && !is_prefetched_at_once(rows, vectors) ? min(rows, p->depth) : 0;
}

ALWAYS void prefetch_row_of_c(const int vectors, const micro_gemm *p, ptrdiff_t row)
{
    const char *c = (const char *)(p->c + row * p->c_pitch);
#pragma GCC unroll 4
    for (ptrdiff_t i = 0; i < lines_of_row(vectors); i++)
        __builtin_prefetch(c + i * LINE, 1);
}

ALWAYS void prefetch_c(const int rows, const int vectors, const micro_gemm *p)
{
    if (!p->c_is_cold || !is_prefetched_at_once(rows, vectors))
        return;
#pragma GCC unroll 12
    for (ptrdiff_t i = 0; i < rows; i++)
        prefetch_row_of_c(vectors, p, i);
}

/* Prefetches, mostly one line. If nothing was requested, that is a line of b: prefetching cached
 * memory costs less than a branch (set_prefetch). */
ALWAYS void prefetch_lines(const micro_gemm *p, block_state *s)
{
    __builtin_prefetch(s->prefetch);
    for (ptrdiff_t i = LINE; __builtin_expect(i < p->prefetch_bytes, 0); i += LINE)
        __builtin_prefetch(s->prefetch + i);
    s->prefetch += p->prefetch_bytes;
}

/* Adds a slice of a; its first `cold` columns also prefetch rows of c. */
ALWAYS void add_slice(const block_kind kind, const int rows, const int vectors, const micro_gemm *p,
                      ptrdiff_t cold, block_state *s)
{
    ptrdiff_t k = 0;
#pragma GCC unroll 8
    for (ptrdiff_t i = 0; i < MAX_ROWS / ROWS_PER_ADDRESS; i++)
        s->a[i] = s->slice + i * ROWS_PER_ADDRESS * p->a_pitch;
    for (; k < cold; k++) {
        prefetch_row_of_c(vectors, p, k);
        add_products(kind, rows, vectors, p, k, s);
    }
    for (; k + AT_ONCE <= p->depth; k += AT_ONCE) {
        if (kind != PLAIN)
            prefetch_lines(p, s);
#pragma GCC unroll 4
        for (ptrdiff_t i = 0; i < AT_ONCE; i++)
            add_products(kind, rows, vectors, p, k + i, s);
    }
    for (; k < p->depth; k++)
        add_products(kind, rows, vectors, p, k, s);
}

ALWAYS void add_rows(const int rows, const int vectors, const real *row, ptrdiff_t pitch,
                     block_state *s)
{
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows; i++, row += pitch)
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++)
            s->sum[i * vectors + j] += *(const vector *)(row + j * VECTOR);
}

ALWAYS void apply_relu(const int sums, block_state *s)
{
#pragma GCC unroll 48
    for (ptrdiff_t i = 0; i < sums; i++)
        s->sum[i] = relu_vector(s->sum[i]);
}

ALWAYS void store_sums(const int rows, const int vectors, const micro_gemm *p, const block_state *s)
{
    const ptrdiff_t pitch = p->c_pitch;
    real *c = p->c;
#pragma GCC unroll 16
    for (ptrdiff_t i = 0; i < rows; i++, c += pitch)
#pragma GCC unroll 8
        for (ptrdiff_t j = 0; j < vectors; j++)
            *(vector *)(c + j * VECTOR) = s->sum[i * vectors + j];
}

ALWAYS void block(const block_kind kind, const int rows, const int vectors, const micro_gemm *p)
{
    block_state s = {.b = p->b, .prefetch = p->prefetch};
#pragma GCC unroll 48
    for (int i = 0; i < rows * vectors; i++)
        s.sum[i] = (vector){0};
    if (kind != TRANSPOSED)
        prefetch_c(rows, vectors, p);
    for (ptrdiff_t i = 0; i <= p->more; i++) {
        s.slice = p->a + (i > 0 ? p->more_at[i - 1] : 0);
        const ptrdiff_t cold = kind != TRANSPOSED && i == 0 ? cold_columns(p, rows, vectors) : 0;
        add_slice(kind, rows, vectors, p, cold, &s);
    }
    if (p->add)
        add_rows(rows, vectors, p->c, p->c_pitch, &s);
    if (kind != TRANSPOSED && p->bias != NULL)
        add_rows(rows, vectors, p->bias, 0, &s);
    if (kind != TRANSPOSED && p->addend != NULL)
        add_rows(rows, vectors, p->addend, p->addend_pitch, &s);
    if (kind != TRANSPOSED && p->has_relu)
        apply_relu(rows * vectors, &s);
    store_sums(rows, vectors, p, &s);
}

/* Dispatches to a fixed size; sizes that do not fit into registers are not compiled. */
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
static void prefetching_1(const micro_gemm *p) { any_block(PREFETCHING, 1, p); }
static void prefetching_2(const micro_gemm *p) { any_block(PREFETCHING, 2, p); }
static void prefetching_3(const micro_gemm *p) { any_block(PREFETCHING, 3, p); }
static void prefetching_4(const micro_gemm *p) { any_block(PREFETCHING, 4, p); }
static void transposed_1(const micro_gemm *p) { any_block(TRANSPOSED, 1, p); }
static void transposed_2(const micro_gemm *p) { any_block(TRANSPOSED, 2, p); }
static void transposed_3(const micro_gemm *p) { any_block(TRANSPOSED, 3, p); }
static void transposed_4(const micro_gemm *p) { any_block(TRANSPOSED, 4, p); }

/* Sets how much of the block's prefetching is done per iteration. Returns how many bytes for
 * each row are prefetched before the block instead. */
static ptrdiff_t set_prefetch(micro_gemm *p)
{
    const ptrdiff_t max_lines = 8;
    const ptrdiff_t cold = cold_columns(p, p->rows, p->vectors);
    const ptrdiff_t times = (p->depth - cold) / AT_ONCE + p->depth / AT_ONCE * p->more;
    const ptrdiff_t row_bytes = p->prefetch != NULL ? p->prefetch_bytes : 0;
    if (p->prefetch == NULL)
        p->prefetch = (const char *)p->b;
    p->prefetch_bytes = times > 0 ? divide_up(p->rows * row_bytes, times) : 0;
    if (times > 0 && p->prefetch_bytes <= max_lines * LINE)
        return 0;
    p->prefetch_bytes = 0;
    return row_bytes;
}

/* Cuts p into blocks of about equally many rows. */
void REAL_TYPED(micro_gemm)(const micro_gemm *p)
{
    static void (*const loops[][MAX_VECTORS])(const micro_gemm *) = {
        [PLAIN] = {plain_1, plain_2, plain_3, plain_4},
        [PREFETCHING] = {prefetching_1, prefetching_2, prefetching_3, prefetching_4},
        [TRANSPOSED] = {transposed_1, transposed_2, transposed_3, transposed_4}};
    const block_kind kind = p->a_is_transposed    ? TRANSPOSED
                            : p->prefetch != NULL ? PREFETCHING
                                                  : PLAIN;
    const ptrdiff_t blocks = divide_up(p->rows, block_rows(p->vectors));
    const ptrdiff_t rows = p->rows / max(blocks, 1), remainder = p->rows - rows * blocks;
    micro_gemm m = *p;
    m.rows = rows + (remainder > 0);
    const ptrdiff_t before = set_prefetch(&m);
    for (ptrdiff_t i = 0; i < blocks; i++) {
        m.rows = rows + (i < remainder);
        for (ptrdiff_t at = 0; at < m.rows * before; at += LINE)
            __builtin_prefetch(m.prefetch + at);
        loops[kind][p->vectors - 1](&m);
        m.a += m.rows * (p->a_is_transposed ? 1 : p->a_pitch);
        m.c += m.rows * p->c_pitch;
        if (p->addend != NULL)
            m.addend += m.rows * p->addend_pitch;
        if (p->prefetch != NULL)
            m.prefetch += m.rows * p->prefetch_bytes;
    }
}
