/* test_direct_conv_bf16.c - our own y and dx in bf16: on integers bit for bit against the
 * definition, with one thread and three; a bias; what is not finite, against naive; how far sums
 * are off; what is refused. */
#include <criterion/criterion.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"
#include "tests/repeat.h"

/* The first candidate: our kernel comes before direct's others. */
static const tested_kernel ours = {.impl = {"conv_bf16"}, .first = ORACLE_Y, .last = ORACLE_DX};

Test(direct_conv_bf16, listed)
{
    need_isa("amx");
    for (int i = 0; i < n_tile_case; i++)
        expect_exact_row(&ours, tile_cases[i], ADJ_BF16, "amx");
}

Test(direct_conv_bf16, random)
{
    need_isa("amx");
    uint32_t k = 500000;
    for (int i = 0; i < repeats(40); i++)
        expect_exact_row(&ours, draw_tile_case(&k), ADJ_BF16, "amx");
}

Test(direct_conv_bf16, bias)
{
    need_isa("amx");
    expect_biases(&ours, ADJ_BF16, "amx");
}

Test(direct_conv_bf16, specials)
{
    need_isa("amx");
    expect_specials(&ours, ADJ_BF16, "amx");
}

/* Products are exact: what is left is the last rounding to 8 bits, and that of sums in f32. */
Test(direct_conv_bf16, errors)
{
    need_isa("amx");
    expect_small_errors(&ours, long_sums, ADJ_BF16, "amx", 0x1p-8 * 1.001);
}

Test(direct_conv_bf16, same_bits_for_any_threads)
{
    need_isa("amx");
    expect_same_bits_for_any_threads(&ours, long_sums, ADJ_BF16, "amx");
}

Test(direct_conv_bf16, refused)
{
    static const char *const less[] = {"base", "avx2", "avx512", "avx512_bf16"};
    expect_only_bf16(&ours, "amx", 4, less);
}
