/* conv_rules.c - see conv_rules.h. Behind each rule is the speed of all candidates, by
 * `adjoint bench --op ... --all`: 2 threads, AVX-512, oneDNN 2.6.3. */
#include "conv_rules.h"

enum { WINOGRAD_PIXELS = 4096 };

static const adj_conv_geom *geom_of(const adj_node *n)
{
    return &((const adj_conv_attrs *)n->attrs)->geom;
}

static int is_f32(const adj_node *n) { return n->in[0]->type.dtype == ADJ_F32; }

static int is_1x1(const adj_conv_geom *g) { return g->kh == 1 && g->kw == 1; }

static int is_depthwise(const adj_op *op)
{
    return op == &adj_op_depthwise_conv2d_native ||
           op == &adj_op_depthwise_conv2d_native_backprop_input ||
           op == &adj_op_depthwise_conv2d_native_backprop_filter;
}

/* The gradients of a convolution of few channels, which oneDNN pads to whole vectors. Its 1x1
 * kernels do better, and in bf16 it takes pairs of products, which ours do not. */
static int is_of_few(const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    if (g->groups > 1 || g->dh > 1 || g->dw > 1)
        return 0;
    if (n->op == &adj_op_conv2d_backprop_filter)
        return is_f32(n) && !is_1x1(g) && g->ic <= 8 && g->oc >= 32;
    if (n->op != &adj_op_conv2d_backprop_input)
        return 0;
    int min_of_1x1 = is_f32(n) ? 4 : 0, min = is_f32(n) ? 8 : 4;
    return g->ic <= (is_1x1(g) ? min_of_1x1 : min);
}

/* Depthwise ones with multipliers or under 8 channels, which oneDNN has at a fraction of our speed;
 * of the others the gradients, but for the filter gradients of the smallest kernels. In bf16 8
 * channels are padded to 16; in f32 oneDNN has kernels for them (preferred_impl). */
static int is_slow_depthwise(const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    int is_small = g->kh <= 3 && g->kw <= 3 && g->dh == 1 && g->dw == 1;
    if (g->oc > g->ic || g->oc < 8 || n->op == &adj_op_depthwise_conv2d_native_backprop_input)
        return 1;
    if (g->oc == 8 && is_small)
        return n->in[0]->type.dtype == ADJ_BF16;
    return n->op == &adj_op_depthwise_conv2d_native_backprop_filter && !is_small;
}

int yields_to_direct(const adj_node *n)
{
    return is_depthwise(n->op) ? is_slow_depthwise(n) : is_of_few(n);
}

int competes_with_direct(const adj_node *n, adj_math math)
{
    const adj_conv_geom *g = geom_of(n);
    int is_winograds = g->kh == 3 && g->kw == 3 && g->sh == 1 && g->sw == 1 && g->dh == 1 &&
                       g->dw == 1 && g->groups == 1 && g->ic >= 32 && g->oc >= 32;
    return math == ADJ_MATH_FAST && is_winograds && is_f32(n) && !is_depthwise(n->op);
}

/* In f32, kernels for AVX2 have blocks of 8 channels, so that 8 channels do not take the time of
 * 16; brgconv is slow on few input channels, and brgdmm_dw half as fast as jit_dw. */
const char *preferred_impl(const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    int f32 = is_f32(n);
    if (is_depthwise(n->op)) {
        if (f32 && g->oc <= 8)
            return "jit_dw:avx2";
        return n->op == &adj_op_depthwise_conv2d_native ? "jit_dw" : NULL;
    }
    if (g->groups > 1)
        return NULL;
    if (n->op == &adj_op_conv2d)
        return f32 && g->ic <= 8 ? "jit:" : !f32 && g->ic <= 16 ? "jit_bf16:" : NULL;
    if (n->op == &adj_op_conv2d_backprop_input)
        return is_1x1(g) && g->ic <= 8 ? (f32 ? "jit_1x1:avx2" : "jit_bf16:") : NULL;
    return f32 && g->oc <= 8 ? "jit:avx2" : NULL;
}

/* In bf16, backprop_filter of 16 to 16 channels, whose nChw16c is nhwc. */
int prefers_blocks(const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    return n->op == &adj_op_conv2d_backprop_filter && g->groups == 1 && g->ic == 16 &&
           g->oc == 16 && n->in[0]->type.dtype == ADJ_BF16;
}

/* F(4x4, 3x3) in blocks of 16 channels: from 32 channels on, and from 64 in backprop_filter, if
 * there are pixels enough for the transformed filter. */
int prefers_winograd(const adj_node *n)
{
    const adj_conv_geom *g = geom_of(n);
    int64_t min = n->op == &adj_op_conv2d_backprop_filter ? 64 : 32;
    return g->kh == 3 && g->kw == 3 && g->ic >= min && g->oc >= min &&
           g->n * g->oh * g->ow >= WINOGRAD_PIXELS;
}
