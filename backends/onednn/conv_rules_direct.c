/* conv_rules_direct.c - where kernels of backends/direct are taken instead of oneDNN's: before
 * them, or where direct's estimate says that they pay. See conv_rules.h. */
#include "conv_rules_rows.h"

/* ---- classes of convolutions ---- */

static int is_dilated(const adj_conv_geom *g) { return g->dh > 1 || g->dw > 1; }
static int is_dense(const adj_conv_geom *g) { return g->groups == 1 && !is_dilated(g); }
static int is_plain(const adj_conv_geom *g) { return g->sh == 1 && g->sw == 1 && is_dense(g); }
static int is_small(const adj_conv_geom *g) { return g->kh <= 3 && g->kw <= 3 && !is_dilated(g); }

static int few_in_many_out(const adj_conv_geom *g)
{
    return is_dense(g) && !is_1x1(g) && g->ic <= 8 && g->oc >= 32;
}
static int towards(const adj_conv_geom *g, int64_t max) { return is_dense(g) && g->ic <= max; }
static int towards_8(const adj_conv_geom *g) { return !is_1x1(g) && towards(g, 8); }
static int towards_4_1x1(const adj_conv_geom *g) { return is_1x1(g) && towards(g, 4); }

static int has_multiplier(const adj_conv_geom *g) { return g->oc > g->ic; }
static int is_below_8(const adj_conv_geom *g) { return g->oc < 8; }
static int is_up_to_4(const adj_conv_geom *g) { return g->oc <= 4; }
static int is_small_of_8(const adj_conv_geom *g) { return g->oc == 8 && is_small(g); }
static int is_large_or_dilated(const adj_conv_geom *g) { return !is_small(g); }

static int takes_winograd(const adj_conv_geom *g) { return is_3x3_of(g, 32) && is_plain(g); }
/* Of 3x3 what the row before leaves out. */
static int takes_more_winograd(const adj_conv_geom *g)
{
    const int is_3x3 = g->kh == 3 && g->kw == 3, is_5x5 = g->kh == 5 && g->kw == 5;
    const int has_channels = g->ic >= 16 && g->oc >= 16 && g->ic % 16 == 0 && g->oc % 16 == 0;
    return (is_5x5 || (is_3x3 && !is_3x3_of(g, 32))) && is_plain(g) && has_channels &&
           g->n * g->oh * g->ow >= 1024;
}
/* Large products of 1x1 are oneDNN's matrix products, but on small images (6x6 and 3x3 in
 * mobilenet_v1: 3.5 and 4.3 times as fast here, at 14x14 0.9 times); of few pixels there is nothing
 * to share. */
static int filter_by_tiles_pays(const adj_conv_geom *g)
{
    const int is_product = is_1x1(g) && g->ic >= 128 && g->oc >= 128 && g->oh * g->ow > 64;
    return g->groups == 1 && !is_product && g->n * g->oh * g->ow >= 256;
}

static int is_filter_1x1(const adj_conv_geom *g, int64_t min, int64_t max)
{
    return is_1x1(g) && is_plain(g) && g->ic % 16 == 0 && g->oc % 16 == 0 && g->ic >= min &&
           g->ic <= max && g->oc >= 32 && g->n * g->oh * g->ow >= 256;
}
static int filter_1x1_pays(const adj_conv_geom *g) { return is_filter_1x1(g, 32, 128); }
/* Of 512 channels it is level or slower; of 400 to 496 it was not measured. */
static int filter_of_many_1x1_pays(const adj_conv_geom *g) { return is_filter_1x1(g, 144, 384); }

/* From 64 to 128 channels it is level, as is what has fewer or more. */
static int forward_1x1_pays(const adj_conv_geom *g)
{
    return is_1x1(g) && is_plain(g) && g->ic % 16 == 0 && g->oc % 16 == 0 && g->ic <= 128 &&
           g->oc >= 64 && g->oc <= g->ic && g->n * g->oh * g->ow >= 1024;
}

/* 3x3 and 5x5, results in whole vectors of 8. From how many pixels on, direct says. */
static int is_for_vectors(const adj_conv_geom *g, int64_t min)
{
    const int has_kernel = g->kh == g->kw && (g->kh == 3 || g->kh == 5);
    return has_kernel && is_dense(g) && g->ic >= min && g->oc >= min;
}
static int forward_by_vectors_pays(const adj_conv_geom *g)
{
    return is_for_vectors(g, 16) && g->oc % 8 == 0;
}
/* 3x3 of 16 channels with stride 1 is level. */
static int input_by_vectors_pays(const adj_conv_geom *g)
{
    return is_for_vectors(g, g->kh == 3 && !is_strided(g) ? 32 : 16) && g->ic % 8 == 0;
}
static int is_filter_for_vectors(const adj_conv_geom *g, int64_t k)
{
    return g->kh == k && is_for_vectors(g, 16) && g->oc % 8 == 0 && g->n * g->oh * g->ow >= 1024;
}
static int has_few_channels(const adj_conv_geom *g) { return g->ic <= 64 && g->oc <= 128; }
/* Of more channels direct takes panels. */
static int has_panels(const adj_conv_geom *g) { return g->ic > 64 && g->ic % 32 == 0; }
static int filter_by_vectors_pays(const adj_conv_geom *g)
{
    return filter_1x1_pays(g) || (is_filter_for_vectors(g, 3) && has_few_channels(g));
}
static int filter_by_panels_pays(const adj_conv_geom *g)
{
    return (is_filter_for_vectors(g, 3) || is_filter_for_vectors(g, 5)) && has_panels(g);
}
static int filter_5x5_by_vectors_pays(const adj_conv_geom *g)
{
    return is_filter_for_vectors(g, 5) && has_few_channels(g);
}

/* y; dx only of as many channels: for fewer direct has another kernel, which needs no AMX. */
static int fills_outputs(const adj_conv_geom *g)
{
    return g->groups == 1 && g->oc >= 16 && g->n * g->oh * g->ow >= 256;
}
static int fills_tiles(const adj_conv_geom *g) { return fills_outputs(g) && g->ic >= 16; }

static int is_3x3_for_tiles(const adj_conv_geom *g)
{
    return is_3x3_of(g, 1) && is_dense(g) && g->oc >= 16 && g->oc <= 64 &&
           g->n * g->oh * g->ow >= 1024;
}
static int forward_by_tiles_pays(const adj_conv_geom *g)
{
    return is_3x3_for_tiles(g) && g->ic <= 32;
}
static int input_by_tiles_pays(const adj_conv_geom *g)
{
    return is_3x3_for_tiles(g) && g->ic >= 16 && g->ic <= 64;
}

/* Products of parts in bf16: three for one. */
static int is_for_parts(const adj_conv_geom *g, int64_t min)
{
    return is_dense(g) && !is_1x1(g) && g->kh <= 11 && g->kw <= 11 && g->sh <= 2 && g->sw <= 2 &&
           g->ic >= min && g->oc >= min;
}
static int image_by_parts_pays(const adj_conv_geom *g)
{
    const int64_t min = g->sh == 1 && g->sw == 1 ? 16 : g->kh * g->kw >= 25 ? 32 : 64;
    return is_for_parts(g, min) && g->ic <= 192 && g->oc <= 192 && g->n * g->oh * g->ow >= 1024;
}
static int filter_by_parts_pays(const adj_conv_geom *g)
{
    const int64_t min = g->sh == 1 && g->sw == 1 ? 16 : 32;
    return is_for_parts(g, min) && g->n * g->oh * g->ow >= 1024;
}

/* ---- the rows ---- */

/* All by `adjoint bench --op ... --all` on 2 threads (Zen 3: 1); on the Xeon by `adjoint bench
 * --raw` of lenet, whose convolutions in f32 take 1.02 times what the fastest candidates take. */

/* Processors on which a vector of 16 takes the time of two vectors of 8. */
static const cpu_kind zen4 = {"AuthenticAMD", 25, AVX512};

static const conv_rule rows[] = {
    /* Few channels, which oneDNN pads to whole vectors. */
    {.name = "filter_from_few_f32",
     .prefers = DIRECT_FIRST,
     .ops = FILTER,
     .dtypes = F32,
     .applies = few_in_many_out,
     .not_on = &zen4 /* 1.25 times the time of what is taken without it */},
    {.name = "input_towards_few_f32",
     .prefers = DIRECT_FIRST,
     .ops = INPUT,
     .dtypes = F32,
     .applies = towards_8},
    /* With vectors of 8 oneDNN's 1x1 kernel is 1.5 to 1.9 times as fast. */
    {.name = "input_1x1_towards_4_f32",
     .prefers = DIRECT_FIRST,
     .isa = AVX512,
     .ops = INPUT,
     .dtypes = F32,
     .applies = towards_4_1x1,
     .not_on = &zen4 /* 1.3 to 1.7 times */},

    /* Depthwise: but for dx in bf16 no instruction set has brought oneDNN other kernels for these.
     * Multipliers, fewer channels than a vector, gradients but for the filter's of small kernels: a
     * fraction of direct's speed. In bf16 8 channels are padded to 16. */
    {.name = "depthwise_multiplier",
     .prefers = DIRECT_FIRST,
     .ops = DEPTHWISE,
     .dtypes = ANY_TYPE,
     .applies = has_multiplier},
    /* On Zen 4, too, but in f32 of 4 channels, 1.3 times the time: in bf16 0.4 to 1.0 times (2 and
     * 4 channels; 6: 0.5 to 1.3), in f32 0.6 to 0.9 times (2, 6). 2026-11-26. */
    {.name = "depthwise_below_8",
     .prefers = DIRECT_FIRST,
     .isa = AVX512,
     .ops = DEPTHWISE,
     .dtypes = ANY_TYPE,
     .applies = is_below_8},
    /* With vectors of 8 a kernel of 5 to 7 channels is 1.2 to 2.7 times as fast as direct's. */
    {.name = "depthwise_up_to_4",
     .prefers = DIRECT_FIRST,
     .below = AVX512,
     .ops = DEPTHWISE,
     .dtypes = ANY_TYPE,
     .applies = is_up_to_4},
    /* On AVX2 jit_dw is up to 1.5 times as fast alone with stride 1, but not within a step. */
    {.name = "depthwise_input",
     .prefers = DIRECT_FIRST,
     .ops = DW_INPUT,
     .dtypes = ANY_TYPE & ~BF16,
     .applies = any},
    {.name = "depthwise_input_bf16",
     .prefers = DIRECT_FIRST,
     .ops = DW_INPUT,
     .dtypes = BF16,
     .applies = any,
     .not_on = &zen4 /* 1.2 to 1.7 times the time of oneDNN's, but for 8 channels */},
    {.name = "depthwise_of_8_bf16",
     .prefers = DIRECT_FIRST,
     .ops = DEPTHWISE,
     .dtypes = BF16,
     .applies = is_small_of_8},
    {.name = "depthwise_filter_large",
     .prefers = DIRECT_FIRST,
     .ops = DW_FILTER,
     .dtypes = ANY_TYPE,
     .applies = is_large_or_dilated},

    {.name = "winograd_of_direct",
     .prefers = FAST_DIRECT_COMPETES,
     .ops = DENSE,
     .dtypes = F32,
     .applies = takes_winograd},
    /* 1.1 to 1.4 times as fast as what is taken without it in 3x3, 1.5 to 3 times in 5x5. */
    {.name = "image_by_parts",
     .prefers = FAST_DIRECT_COMPETES,
     .isa = AMX,
     .ops = FORWARD | INPUT,
     .dtypes = F32,
     .applies = image_by_parts_pays},
    {.name = "filter_by_parts",
     .prefers = FAST_DIRECT_COMPETES,
     .isa = AMX,
     .ops = FILTER,
     .dtypes = F32,
     .applies = filter_by_parts_pays},
    /* 1.3 to 1.9 times as fast as what is taken without it in 3x3, 2 to 3.2 times in 5x5. */
    {.name = "winograd_of_more",
     .prefers = FAST_DIRECT_COMPETES,
     .below = AMX,
     .ops = DENSE,
     .dtypes = F32,
     .applies = takes_more_winograd},
    /* 1.2 to 3 times as fast as oneDNN's by AMX, 8 times as fast as by avx512_bf16, to which
     * ONEDNN_MAX_CPU_ISA may hold oneDNN alone. Where direct, too, has avx512_bf16 at most, it says
     * of itself that it is slower. */
    {.name = "filter_of_direct_bf16",
     .prefers = DIRECT_COMPETES,
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .ops = FILTER,
     .dtypes = BF16,
     .applies = filter_by_tiles_pays},
    /* 1.05 to 1.5 times as fast as oneDNN's first, which reads what it needs when it needs it. */
    {.name = "filter_of_direct_1x1",
     .prefers = DIRECT_COMPETES,
     .only_on = &zen4,
     .ops = FILTER,
     .dtypes = F32,
     .applies = filter_1x1_pays},
    /* With cold caches 1.05 to 1.35 times as fast as oneDNN's first, which waits for the lines that
     * it stores to; in a step of mobilenet_v1 128 channels 1.1 times. dx is not: there 0.85 times.
     */
    {.name = "forward_of_direct_1x1",
     .prefers = DIRECT_COMPETES,
     .only_on = &zen4,
     .ops = FORWARD,
     .dtypes = F32,
     .applies = forward_1x1_pays},
    /* Up to 1.9 times as fast as oneDNN 2's first in NHWC, which is at half of what the machine
     * can; 3.2 has brgconv, which is as fast or faster. */
    {.name = "forward_of_direct_avx2",
     .prefers = DIRECT_COMPETES,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX2,
     .below = AVX512,
     .ops = FORWARD,
     .dtypes = F32,
     .applies = forward_by_vectors_pays},
    /* 1.1 to 1.4 times, 5x5 1.0 to 1.5 times. */
    {.name = "input_of_direct_avx2",
     .prefers = DIRECT_COMPETES,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX2,
     .below = AVX512,
     .ops = INPUT,
     .dtypes = F32,
     .applies = input_by_vectors_pays},
    /* 1.2 to 2.1 times as fast, with 3.2, too, but for 1x1, which is level there. */
    {.name = "filter_of_direct_avx2",
     .prefers = DIRECT_COMPETES,
     .isa = AVX2,
     .below = AVX512,
     .ops = FILTER,
     .dtypes = F32,
     .applies = filter_by_vectors_pays},
    /* 1.1 to 2.5 times, on 3x3 images up to 4.6 times; not measured with 3.x. */
    {.name = "filter_of_many_1x1_of_direct_avx2",
     .prefers = DIRECT_COMPETES,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX2,
     .below = AVX512,
     .ops = FILTER,
     .dtypes = F32,
     .applies = filter_of_many_1x1_pays},
    /* 1.1 to 1.6 times; not measured with 3.x. */
    {.name = "filter_panels_of_direct_avx2",
     .prefers = DIRECT_COMPETES,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX2,
     .below = AVX512,
     .ops = FILTER,
     .dtypes = F32,
     .applies = filter_by_panels_pays},
    /* 1.2 times; not measured with 3.x. */
    {.name = "filter_5x5_of_direct_avx2",
     .prefers = DIRECT_COMPETES,
     .first = VERSION_2,
     .last = LAST_2,
     .isa = AVX2,
     .below = AVX512,
     .ops = FILTER,
     .dtypes = F32,
     .applies = filter_5x5_by_vectors_pays},
    /* In a step of resnet20: 1.05 to 1.25 times as fast as oneDNN's, dx 1.2 to 1.9 times. With cold
     * caches y from 32 channels takes 1.1 to 1.25 times as long, and dx of 16 with stride 2 1.35
     * times: a step's caches are not as cold. */
    {.name = "forward_of_direct_amx",
     .prefers = DIRECT_COMPETES,
     .isa = AMX,
     .ops = FORWARD,
     .dtypes = BF16,
     .applies = forward_by_tiles_pays},
    {.name = "input_of_direct_amx",
     .prefers = DIRECT_COMPETES,
     .isa = AMX,
     .ops = INPUT,
     .dtypes = BF16,
     .applies = input_by_tiles_pays},

    /* ONEDNN_MAX_CPU_ISA may hold oneDNN alone to avx512_bf16: then direct's are 2 to 8 times as
     * fast. Where direct has no AMX it has none of these, but for Winograd's algorithm in fast
     * math. */
    {.name = "forward_of_direct_alone",
     .prefers = DIRECT_COMPETES,
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = FORWARD,
     .dtypes = BF16,
     .applies = fills_outputs},
    {.name = "input_of_direct_alone",
     .prefers = DIRECT_COMPETES,
     .isa = dnnl_cpu_isa_avx512_core_bf16,
     .below = AMX,
     .ops = INPUT,
     .dtypes = BF16,
     .applies = fills_tiles},
};

const conv_rule_table conv_rules_direct = {rows, sizeof rows / sizeof *rows};
