/* test_zipped.c - members of archives above 4 GB, with a libzip whose reads are counted in 32 bits.
 */
#include <criterion/criterion.h>
#include <sys/mman.h>

#include "io/data/packed.h"

static zip_uint64_t left, largest;

/* Replaces libzip's function; touches no memory. */
zip_int64_t zip_fread(zip_file_t *file, void *to, zip_uint64_t n)
{
    (void)file;
    (void)to;
    largest = n > largest ? n : largest;
    const zip_uint64_t got = (uint32_t)(n < left ? n : left);
    left -= got;
    return (zip_int64_t)got;
}

Test(zipped, reads_more_than_4_gb)
{
    static const int64_t sizes[] = {1, INT64_C(1) << 30, INT64_C(1) << 32, (INT64_C(1) << 33) + 5};
    const size_t room = (size_t)1 << 34;
    char *to = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cr_assert_neq(to, MAP_FAILED);
    for (int i = 0; i < 4; i++) {
        left = (zip_uint64_t)sizes[i];
        cr_expect_eq(zipped_read(NULL, to, sizes[i]), sizes[i]);
        left = (zip_uint64_t)sizes[i];
        cr_expect_eq(zipped_read(NULL, to, sizes[i] + 3), sizes[i], "fewer at the end");
    }
    cr_expect_leq(largest, (zip_uint64_t)1 << 30);
    munmap(to, room);
}
