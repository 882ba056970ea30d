/* padded_new.c - C++'s new and delete for the tests under AddressSanitizer, with a margin behind
 * each block. oneDNN 2.6.3 reads one element beyond the end of a table while it generates an AMX
 * kernel (jit_brgemm_amx_uker's skipped_bd_mask; it does not use what it read, and 3.x asks first).
 * Where the table is the last of AddressSanitizer's mapped memory there is nothing to read, and a
 * test ends there: one run in some dozens. */
#include <stdint.h>
#include <stdlib.h>

enum { MARGIN = 16 };

__attribute__((visibility("default"))) void *new_of_size(size_t size) __asm__("_Znwm");
__attribute__((visibility("default"))) void delete_pointer(void *p) __asm__("_ZdlPv");
__attribute__((visibility("default"))) void delete_of_size(void *p, size_t size) __asm__("_ZdlPvm");

void *new_of_size(size_t size)
{
    void *p = size <= SIZE_MAX - MARGIN ? malloc(size + MARGIN) : NULL;
    if (p == NULL)
        abort(); /* C cannot throw bad_alloc */
    return p;
}

void delete_pointer(void *p) { free(p); }

void delete_of_size(void *p, size_t size)
{
    (void)size;
    free(p);
}
