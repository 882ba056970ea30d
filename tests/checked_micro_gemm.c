/* checked_micro_gemm.c - in the place of backends/direct/micro_gemm.c under AddressSanitizer: what
 * a product reads and writes is checked, row by row, and then the release's computes it, whose
 * names begin with "shipped_" there (rule shipped). Checks of each access would take half of the
 * time of all tests, of a loop for any size of the block at that: those of the unrolled ones take
 * minutes to compile. */
#include <sanitizer/asan_interface.h>

#include "backends/direct/arith.h"
#include "backends/direct/micro_gemm.h"

#define QUOTED(name) #name
#define SHIPPED(name) "shipped_" QUOTED(name)
void shipped(const micro_gemm *p) __asm__(SHIPPED(REAL_TYPED(micro_gemm)));

/* Rows of so many elements, `pitch` from one to the next. Ends the program where one is not to be
 * touched. */
static void check(const real *first, ptrdiff_t rows, ptrdiff_t elements, ptrdiff_t pitch,
                  int is_written)
{
    const size_t bytes = (size_t)elements * sizeof(real);
    for (ptrdiff_t i = 0; i < rows; i++) {
        void *at = __asan_region_is_poisoned((void *)(first + i * pitch), bytes);
        if (at != NULL)
            __asan_report_error(__builtin_return_address(0), __builtin_frame_address(0),
                                __builtin_frame_address(0), at, is_written, sizeof(real));
    }
}

void REAL_TYPED(micro_gemm)(const micro_gemm *p)
{
    const ptrdiff_t outputs = p->vectors * VECTOR;
    for (ptrdiff_t part = 0; part <= p->more; part++) {
        const real *a = p->a + (part > 0 ? p->more_at[part - 1] : 0);
        if (p->a_is_transposed)
            check(a, p->depth, p->rows, p->a_pitch, 0);
        else
            check(a, p->rows, p->depth, p->a_pitch, 0);
    }
    check(p->b, p->depth * (p->more + 1), outputs, p->b_pitch, 0);
    check(p->c, p->rows, outputs, p->c_pitch, 1);
    if (!p->a_is_transposed && p->bias != NULL)
        check(p->bias, 1, outputs, 0, 0);
    if (!p->a_is_transposed && p->addend != NULL)
        check(p->addend, p->rows, outputs, p->addend_pitch, 0);
    shipped(p);
}
