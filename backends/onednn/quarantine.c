/* quarantine.c - what oneDNN is known to compute wrongly, and is not asked for.
 *
 * A row holds for a class of problems (what is computed, in which types, of which shape), from a
 * version on and with an instruction set: for every implementation that takes such a problem, as
 * the fault was seen in one and the others have not been shown to be right. The caller then goes on
 * to the next layout, and in the end to another backend. A row without a last version waits for one
 * that has been checked. Rows from a file (quarantine_file.c), which may name implementations, are
 * looked at first. */
#include "onednn.h"

enum { ANY_VERSION = 0, VERSION_2_0_0 = 20000, ANY_ISA = 0 };

typedef struct {
    int first, last; /* versions, both included; ANY_VERSION: open */
    int isa;         /* dnnl_cpu_isa_t; holds for CPUs that have it */
    task task;
    int half; /* in bf16 and f16 only */
    int (*applies)(const implementation *i);
    const char *reason;
} row;

/* The 1x1 kernel first copies every stride-th pixel into a dense buffer, sized for the channels
 * there are, and writes whole blocks of channels: with fewer channels than a block it overruns the
 * buffer. Blocked memory is padded to whole blocks. */
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

/* The 1x1 kernel adds channels in pairs, and takes 30 pixels at once where 30 divides their number:
 * then an odd last channel spoils every result. Found by this project's fuzzer in 2.6.3's
 * jit_bf16_1x1. */
static int pairs_with_nothing(const implementation *i, int64_t added)
{
    const adj_conv_geom *g = i->geom;
    return g->kh == 1 && g->kw == 1 && g->oh * g->ow % 30 == 0 && added / g->groups % 2 == 1;
}
static int adds_odd_inputs(const implementation *i) { return pairs_with_nothing(i, i->geom->ic); }
static int adds_odd_outputs(const implementation *i) { return pairs_with_nothing(i, i->geom->oc); }

/* Each window adds its share to the result in memory, which rounds the sum to the half type as
 * often as windows overlap. Seen in 2.6.3; 3.8 still sums so (it keeps an f32 sum for max pooling
 * alone). */
static int windows_overlap(const implementation *i)
{
    const adj_conv_geom *g = i->geom;
    return (g->oh > 1 && g->kh > g->sh) || (g->ow > 1 && g->kw > g->sw);
}

static const char odd[] = "is wrong for an odd number of channels";
static const char unwritten[] = "reads what was not written";
static const char overrun[] = "corrupts memory (oneDNN issue 6035)";
static const char rounds[] = "adds overlapping windows up in the half type";
static const row rows[] = {
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx2, TASK_BACKWARD_WEIGHTS, 0, copies_below_8,
     overrun},
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx512_core, TASK_BACKWARD_WEIGHTS, 0,
     copies_below_16, overrun},
    {VERSION_2_0_0, ANY_VERSION, ANY_ISA, TASK_BACKWARD_WEIGHTS, 1, dilates_rows, unwritten},
    {VERSION_2_0_0, ANY_VERSION, ANY_ISA, TASK_BACKWARD_WEIGHTS, 1, steps_over_rows, unwritten},
    {VERSION_2_0_0, ANY_VERSION, ANY_ISA, TASK_FORWARD, 1, adds_odd_inputs, odd},
    {VERSION_2_0_0, ANY_VERSION, ANY_ISA, TASK_BACKWARD_DATA, 1, adds_odd_outputs, odd},
    {VERSION_2_0_0, ANY_VERSION, ANY_ISA, TASK_AVG_POOL_BACKWARD, 1, windows_overlap, rounds},
};

machine this_machine(void)
{
    const dnnl_version_t *v = dnnl_version();
    return (machine){v->major * 10000 + v->minor * 100 + v->patch,
                     (int)dnnl_get_effective_cpu_isa(), this_cpu()};
}

int n_known_fault(void) { return (int)(sizeof rows / sizeof *rows); }

int is_known_fault(int row_number, const implementation *i, machine m)
{
    const row *r = &rows[row_number];
    return m.version >= r->first && (r->last == ANY_VERSION || m.version <= r->last) &&
           (m.isa & r->isa) == r->isa && i->task == r->task &&
           (!r->half || i->dtype == ADJ_BF16 || i->dtype == ADJ_F16) && r->applies(i);
}

const char *known_fault(const implementation *i, machine m)
{
    for (int k = 0; k < n_known_fault(); k++)
        if (is_known_fault(k, i, m))
            return rows[k].reason;
    return NULL;
}

const char *quarantined(const onednn *o, const implementation *i)
{
    for (int k = 0; k < o->n_row; k++)
        if (quarantine_holds(&o->row[k], i, o->here))
            return o->row[k].reason;
    return o->no_quarantine ? NULL : known_fault(i, o->here);
}
