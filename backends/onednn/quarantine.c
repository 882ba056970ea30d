/* quarantine.c - problems that oneDNN is known to compute wrongly, and that are not run with it.
 *
 * A row applies to a class of problems (computation, types, shapes) and an instruction set. It
 * covers every implementation of such a problem, since the fault was seen in one and the others
 * have not been shown to be right. If they have been, the row names the wrong one. The caller
 * continues with the next implementation or layout, and finally with another backend. A row applies
 * to every version: none has been shown to be right. tools/sweep searches for further faults. */
#include <string.h>

#include "onednn.h"

typedef struct {
    int isa; /* dnnl_cpu_isa_t; applies to CPUs that have it; 0 for any */
    task task;
    int half; /* only bf16 and f16 */
    int (*applies)(const implementation *i);
    const char *reason;
    const char *only; /* substring of the names of implementations; NULL for all */
} row;

/* The 1x1 kernel first copies every stride-th pixel into a dense buffer of the actual number of
 * channels, but writes whole blocks of channels: with fewer channels than a block it overruns
 * the buffer. Blocked memory is padded to whole blocks. */
static int copies_narrow_pixels(const implementation *i, int64_t block)
{
    const adj_conv_geom *g = i->geom;
    return i->channels_last && g->kh == 1 && g->kw == 1 && (g->sh > 1 || g->sw > 1) &&
           g->ic / g->groups < block;
}

static int copies_below_8(const implementation *i) { return copies_narrow_pixels(i, 8); }
static int copies_below_16(const implementation *i) { return copies_narrow_pixels(i, 16); }

/* The operands are transposed into scratch memory, a part of which is then read without having been
 * written: with dilated rows, and when a stride steps over the whole width. Found by this project's
 * comparison with naive, in bf16, in several implementations: jit (2.6.3 and 3.7.2), jit for AMX
 * (2.6.3; there for 33 to 63 channels of a group only), brgconv_bwd_w for AMX (3.7.2). */
static int dilates_rows(const implementation *i) { return i->geom->dh > 1 && i->geom->kh > 1; }
static int steps_over_rows(const implementation *i) { return i->geom->iw < i->geom->sw; }

/* The 1x1 kernel adds channels in pairs, and takes 30 pixels at once if 30 divides their number:
 * then an odd last channel corrupts every result. Found by this project's fuzzer in 2.6.3's
 * jit_bf16_1x1. */
static int pairs_with_nothing(const implementation *i, int64_t added)
{
    const adj_conv_geom *g = i->geom;
    return g->kh == 1 && g->kw == 1 && g->oh * g->ow % 30 == 0 && added / g->groups % 2 == 1;
}
static int adds_odd_inputs(const implementation *i) { return pairs_with_nothing(i, i->geom->ic); }
static int adds_odd_outputs(const implementation *i) { return pairs_with_nothing(i, i->geom->oc); }

/* Each window adds to the result in memory, so the sum is rounded to the half type once per
 * overlapping window. Seen in 2.6.3; 3.8 still does (it has an f32 sum for max pooling only). */
static int windows_overlap(const implementation *i)
{
    const adj_conv_geom *g = i->geom;
    return (g->oh > 1 && g->kh > g->sh) || (g->ow > 1 && g->kw > g->sw);
}

/* Pixels are processed in blocks of two tiles of up to 16 pixels. For an image of exactly three
 * tiles, the rows of a fourth are stored past its end: into the next image, which another thread
 * may have computed already, or past the result. Found by this project with a read-only page
 * after each buffer, in 2.6.3's and 3.2's jit_1x1 for AMX (3.7.2's, of another name, is
 * correct): 27, 33, 36, 39, 42, 45 and 48 pixels, any channels. The other implementations of
 * such images stayed within their buffers in the same trials. */
static int is_three_tiles(const implementation *i)
{
    const adj_conv_geom *g = i->geom;
    const int64_t pixels = g->oh * g->ow;
    return g->kh == 1 && g->kw == 1 && pixels > 24 && pixels <= 48 && pixels % 3 == 0;
}

/* With strides, a row of the result whose windows all lie in the padding below the image makes the
 * kernel read outside of it, and may crash. Found by this project's comparison in 2.6.3's brgconv
 * for AMX, with windows of 1 to 5 rows. Windows above and beside the image were
 * right, and so was f32. */
static int steps_below_image(const implementation *i)
{
    const adj_conv_geom *g = i->geom;
    return g->sh > 1 && (g->oh - 1) * g->sh - g->pt >= g->ih;
}

static const char odd[] = "is wrong for an odd number of channels";
static const char unwritten[] = "reads memory that was not written";
static const char overrun[] = "corrupts memory (oneDNN issue 6035)";
static const char fourth[] = "writes one tile of pixels too many";
static const char below[] = "may crash where a window lies below the image";
static const char rounds[] = "sums overlapping windows in the half type";
static const row rows[] = {
    {.isa = dnnl_cpu_isa_avx2,
     .task = TASK_BACKWARD_WEIGHTS,
     .applies = copies_below_8,
     .reason = overrun},
    {.isa = dnnl_cpu_isa_avx512_core,
     .task = TASK_BACKWARD_WEIGHTS,
     .applies = copies_below_16,
     .reason = overrun},
    {.task = TASK_BACKWARD_WEIGHTS, .half = 1, .applies = dilates_rows, .reason = unwritten},
    {.task = TASK_BACKWARD_WEIGHTS, .half = 1, .applies = steps_over_rows, .reason = unwritten},
    {.task = TASK_FORWARD, .half = 1, .applies = adds_odd_inputs, .reason = odd},
    {.task = TASK_BACKWARD_DATA, .half = 1, .applies = adds_odd_outputs, .reason = odd},
    {.task = TASK_AVG_POOL_BACKWARD, .half = 1, .applies = windows_overlap, .reason = rounds},
    {.isa = dnnl_cpu_isa_avx512_core_amx,
     .task = TASK_FORWARD,
     .half = 1,
     .applies = is_three_tiles,
     .reason = fourth,
     .only = "jit_1x1:avx512_core_amx"},
    {.isa = dnnl_cpu_isa_avx512_core_amx,
     .task = TASK_FORWARD,
     .half = 1,
     .applies = steps_below_image,
     .reason = below,
     .only = "brgconv:"},
};

int n_known_fault(void) { return (int)(sizeof rows / sizeof *rows); }

int is_known_fault(int row_number, const implementation *i, int isa)
{
    const row *r = &rows[row_number];
    return (isa & r->isa) == r->isa && i->task == r->task &&
           (!r->half || i->dtype == ADJ_BF16 || i->dtype == ADJ_F16) &&
           (r->only == NULL || i->name == NULL || strstr(i->name, r->only) != NULL) &&
           r->applies(i);
}

const char *known_fault(const implementation *i, int isa)
{
    for (int k = 0; k < n_known_fault(); k++)
        if (is_known_fault(k, i, isa))
            return rows[k].reason;
    return NULL;
}

const char *quarantined(const onednn *o, const implementation *i)
{
    return o->no_quarantine ? NULL : known_fault(i, o->isa);
}
