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
static const char zen5[] = "AMD Zen 5, oneDNN 2.6.3, 2026-11-21";
static const char zen5_xeon[] = "AMD Zen 5 and Xeon with AMX, oneDNN 2.6.3, 2026-11-22";
static const char on_zen4_3[] = "AMD Zen 4, oneDNN 2.6.3, 3.2 and 3.7.2, 2026-11-26";

static const conv_rule rows[] = {
    /* In f32 kernels for AVX2 have blocks of 8 channels, so that 8 do not take the time of 16. */
    {.name = "depthwise_up_to_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit_dw:avx2",
     .ops = DEPTHWISE,
     .dtypes = F32,
     .applies = is_up_to_8,
     .measured = zen5,
     .cases = {{&adj_op_depthwise_conv2d_native, ADJ_F32, 32, 48, 3, 1, 1, 8, 8},
               {&adj_op_depthwise_conv2d_native_backprop_filter, ADJ_F32, 32, 48, 3, 1, 1, 8, 8}}},
    /* brgdmm_dw, first in the list, is half as fast. */
    {.name = "depthwise_forward",
     .prefers = NAMED_FIRST,
     .impl = "jit_dw",
     .ops = DW_FORWARD,
     .dtypes = ANY_TYPE,
     .applies = any,
     .measured = zen5,
     .cases = {{&adj_op_depthwise_conv2d_native, ADJ_F32, 32, 24, 3, 1, 1, 32, 32},
               {&adj_op_depthwise_conv2d_native, ADJ_F32, 32, 24, 3, 2, 1, 32, 32},
               {&adj_op_depthwise_conv2d_native, ADJ_BF16, 32, 24, 3, 1, 1, 32, 32}}},
    /* In 3.2 and 3.7.2 brgconv_strided, first in the list, takes 30 to 250 times as long. */
    {.name = "depthwise_input_strided",
     .prefers = NAMED_FIRST,
     .impl = "jit_dw",
     .ops = DW_INPUT,
     .dtypes = BF16,
     .applies = is_strided,
     .measured = on_zen4_3,
     .cases = {{&adj_op_depthwise_conv2d_native_backprop_input, ADJ_BF16, 32, 12, 3, 2, 1, 64, 64},
               {&adj_op_depthwise_conv2d_native_backprop_input, ADJ_BF16, 32, 48, 3, 2, 1, 16,
                16}}},
    /* brgconv is slow on few input channels. */
    {.name = "forward_from_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit:",
     .ops = FORWARD,
     .dtypes = F32,
     .applies = from_8_not_1x1,
     .measured = zen5_xeon,
     .cases = {{&adj_op_conv2d, ADJ_F32, 64, 28, 5, 1, 1, 1, 32},
               {&adj_op_conv2d, ADJ_F32, 128, 32, 3, 1, 1, 3, 16}}},
    /* Without AVX-512 jit_1x1 is first, which takes 0.8 to 1.05 times as long as jit (Zen 3). */
    {.name = "forward_1x1_from_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit:",
     .isa = AVX512,
     .ops = FORWARD,
     .dtypes = F32,
     .applies = from_8_1x1,
     .measured = zen5_xeon,
     .cases = {{&adj_op_conv2d, ADJ_F32, 32, 48, 1, 1, 1, 8, 16}}},
    {.name = "forward_from_16_bf16",
     .prefers = NAMED_FIRST,
     .impl = "jit_bf16:",
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = FORWARD,
     .dtypes = BF16,
     .applies = from_16,
     .measured = zen5,
     .cases = {{&adj_op_conv2d, ADJ_BF16, 64, 28, 5, 1, 1, 1, 32},
               {&adj_op_conv2d, ADJ_BF16, 128, 32, 3, 1, 1, 16, 16},
               {&adj_op_conv2d, ADJ_BF16, 32, 24, 1, 1, 1, 16, 32}}},
    {.name = "input_1x1_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit_1x1:avx2",
     .ops = INPUT,
     .dtypes = F32,
     .applies = towards_8_1x1,
     .measured = zen5,
     .cases = {{&adj_op_conv2d_backprop_input, ADJ_F32, 32, 48, 1, 1, 1, 8, 16}}},
    {.name = "input_1x1_bf16",
     .prefers = NAMED_FIRST,
     .impl = "jit_bf16:",
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = INPUT,
     .dtypes = BF16,
     .applies = towards_8_1x1,
     .measured = zen5,
     .cases = {{&adj_op_conv2d_backprop_input, ADJ_BF16, 32, 48, 1, 1, 1, 8, 16}}},
    {.name = "filter_to_8_f32",
     .prefers = NAMED_FIRST,
     .impl = "jit:avx2",
     .ops = FILTER,
     .dtypes = F32,
     .applies = to_8,
     .measured = zen5,
     .cases = {{&adj_op_conv2d_backprop_filter, ADJ_F32, 32, 96, 3, 2, 1, 3, 8},
               {&adj_op_conv2d_backprop_filter, ADJ_F32, 32, 48, 3, 1, 1, 16, 8}}},

    /* Their nChw16c is nhwc. */
    {.name = "filter_16_to_16_bf16",
     .prefers = BLOCKS_FIRST,
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = FILTER,
     .dtypes = BF16,
     .applies = from_16_to_16,
     .measured = zen5,
     .cases = {{&adj_op_conv2d_backprop_filter, ADJ_BF16, 128, 32, 3, 1, 1, 16, 16}}},

    /* F(4x4, 3x3) in blocks of 16 channels, which is gone in 3.x. */
    {.name = "winograd",
     .prefers = WINOGRAD_FIRST,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX512,
     .ops = FORWARD | INPUT,
     .dtypes = F32,
     .applies = winograd_pays,
     .measured = zen5,
     .cases = {{&adj_op_conv2d, ADJ_F32, 128, 16, 3, 1, 1, 32, 32},
               {&adj_op_conv2d_backprop_input, ADJ_F32, 64, 16, 3, 1, 1, 128, 128}}},
    {.name = "winograd_filter",
     .prefers = WINOGRAD_FIRST,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX512,
     .ops = FILTER,
     .dtypes = F32,
     .applies = winograd_filter_pays,
     .measured = zen5,
     .cases = {{&adj_op_conv2d_backprop_filter, ADJ_F32, 128, 8, 3, 1, 1, 64, 64},
               {&adj_op_conv2d_backprop_filter, ADJ_F32, 64, 16, 3, 1, 1, 128, 128}}},
};

const conv_rule_table conv_rules_impl = {rows, sizeof rows / sizeof *rows};
