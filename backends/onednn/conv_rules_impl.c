/* conv_rules_impl.c - which of oneDNN's implementations is taken before what its own list has
 * first. See conv_rules.h. */
#include "conv_rules_rows.h"

/* ---- classes of convolutions ---- */

static int towards_8_1x1(const adj_conv_geom *g)
{
    return g->groups == 1 && is_1x1(g) && g->ic <= 8;
}
static int from_8(const adj_conv_geom *g) { return g->groups == 1 && g->ic <= 8; }
static int from_8_1x1(const adj_conv_geom *g) { return from_8(g) && is_1x1(g); }
static int from_8_not_1x1(const adj_conv_geom *g) { return from_8(g) && !is_1x1(g); }
static int from_16(const adj_conv_geom *g) { return g->groups == 1 && g->ic <= 16; }
static int to_8(const adj_conv_geom *g) { return g->groups == 1 && g->oc <= 8; }
static int from_16_to_16(const adj_conv_geom *g)
{
    return g->groups == 1 && g->ic == 16 && g->oc == 16;
}
static int is_up_to_8(const adj_conv_geom *g) { return g->oc <= 8; }

/* Pixels enough for the transformed filter. */
static int has_pixels(const adj_conv_geom *g) { return g->n * g->oh * g->ow >= 4096; }
static int winograd_pays(const adj_conv_geom *g) { return is_3x3_of(g, 32) && has_pixels(g); }
static int winograd_filter_pays(const adj_conv_geom *g)
{
    return is_3x3_of(g, 64) && has_pixels(g);
}

/* ---- the rows ---- */

/* All by `adjoint bench --op ... --all` on 2 threads (Zen 3: 1); on the Xeon by `adjoint bench
 * --raw` of lenet, whose convolutions in f32 take 1.02 times what the fastest candidates take. */

static const conv_rule rows[] = {
    /* In f32 kernels for AVX2 have blocks of 8 channels, so that 8 do not take the time of 16. */
    {.name = "depthwise_up_to_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit_dw:avx2",
     .ops = DEPTHWISE,
     .dtypes = F32,
     .applies = is_up_to_8},
    /* brgdmm_dw, first in the list, is half as fast. */
    {.name = "depthwise_forward",
     .prefers = NAMED_FIRST,
     .impl = "jit_dw",
     .ops = DW_FORWARD,
     .dtypes = ANY_TYPE,
     .applies = any},
    /* In 3.2 and 3.7.2 brgconv_strided, first in the list, takes 30 to 250 times as long. */
    {.name = "depthwise_input_strided",
     .prefers = NAMED_FIRST,
     .impl = "jit_dw",
     .ops = DW_INPUT,
     .dtypes = BF16,
     .applies = is_strided},
    /* brgconv is slow on few input channels. */
    {.name = "forward_from_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit:",
     .ops = FORWARD,
     .dtypes = F32,
     .applies = from_8_not_1x1},
    /* Without AVX-512 jit_1x1 is first, which takes 0.8 to 1.05 times as long as jit (Zen 3). */
    {.name = "forward_1x1_from_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit:",
     .isa = AVX512,
     .ops = FORWARD,
     .dtypes = F32,
     .applies = from_8_1x1},
    {.name = "forward_from_16_bf16",
     .prefers = NAMED_FIRST,
     .impl = "jit_bf16:",
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = FORWARD,
     .dtypes = BF16,
     .applies = from_16},
    {.name = "input_1x1_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit_1x1:avx2",
     .ops = INPUT,
     .dtypes = F32,
     .applies = towards_8_1x1},
    {.name = "input_1x1_bf16",
     .prefers = NAMED_FIRST,
     .impl = "jit_bf16:",
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = INPUT,
     .dtypes = BF16,
     .applies = towards_8_1x1},
    {.name = "filter_to_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit:avx2",
     .ops = FILTER,
     .dtypes = F32,
     .applies = to_8},

    /* Their nChw16c is nhwc. */
    {.name = "filter_16_to_16_bf16",
     .prefers = BLOCKS_FIRST,
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = FILTER,
     .dtypes = BF16,
     .applies = from_16_to_16},

    /* F(4x4, 3x3) in blocks of 16 channels, which is gone in 3.x. */
    {.name = "winograd",
     .prefers = WINOGRAD_FIRST,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX512,
     .ops = FORWARD | INPUT,
     .dtypes = F32,
     .applies = winograd_pays},
    {.name = "winograd_filter",
     .prefers = WINOGRAD_FIRST,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX512,
     .ops = FILTER,
     .dtypes = F32,
     .applies = winograd_filter_pays},
};

const conv_rule_table conv_rules_impl = {rows, sizeof rows / sizeof *rows};
