/* quarantine.c - implementations of oneDNN that are known to be wrong, and are not used.
 *
 * A row names the versions and the instruction set it holds for, the direction, and what to look
 * for in the candidate. The caller then goes on to the next implementation or layout, and in the
 * end to another backend. A row without a last version waits for one that has been checked. Rows
 * from a file (quarantine_file.c) are looked at first. */
#include <string.h>

#include "onednn.h"

enum { ANY_VERSION = 0, VERSION_2_0_0 = 20000 };

typedef struct {
    int first, last; /* major*10000 + minor*100 + patch, both included; ANY_VERSION: open */
    int isa;         /* dnnl_cpu_isa_t; holds for CPUs that have it */
    dnnl_prop_kind_t direction;
    int (*applies)(const conv_candidate *c);
    const char *reason;
} row;

/* The 1x1 kernel first copies every stride-th pixel into a dense buffer, sized for the channels
 * there are, and writes whole blocks of channels: with fewer channels than a block it overruns the
 * buffer. Blocked memory is padded to whole blocks. */
static int copies_narrow_pixels(const conv_candidate *c, int64_t block)
{
    const adj_conv_geom *g = c->geom;
    return c->channels_last && g->kh == 1 && g->kw == 1 && (g->sh > 1 || g->sw > 1) &&
           g->ic / g->groups < block;
}

static int copies_below_8(const conv_candidate *c) { return copies_narrow_pixels(c, 8); }
static int copies_below_16(const conv_candidate *c) { return copies_narrow_pixels(c, 16); }

/* The bf16 kernel transposes its operands into scratch memory, a part of which it then reads
 * without having written it: with dilated rows, and when a stride steps over the whole width.
 * Found by this project's own comparison with naive, in 2.6.3 and 3.7.2. */
static int is_bf16_jit(const conv_candidate *c)
{
    return c->dtype == ADJ_BF16 && strncmp(c->name, "jit", 3) == 0;
}
static int dilates_rows(const conv_candidate *c)
{
    return is_bf16_jit(c) && c->geom->dh > 1 && c->geom->kh > 1;
}
static int steps_over_rows(const conv_candidate *c)
{
    return is_bf16_jit(c) && c->geom->iw < c->geom->sw;
}

/* The bf16 1x1 kernel adds channels in pairs, and takes 30 pixels at once where 30 divides their
 * number: then an odd last channel spoils every result. Found by this project's fuzzer in 2.6.3. */
static int pairs_with_nothing(const conv_candidate *c, int64_t added)
{
    const adj_conv_geom *g = c->geom;
    return strncmp(c->name, "jit_bf16_1x1", 12) == 0 && g->oh * g->ow % 30 == 0 &&
           added / g->groups % 2 == 1;
}
static int adds_odd_inputs(const conv_candidate *c) { return pairs_with_nothing(c, c->geom->ic); }
static int adds_odd_outputs(const conv_candidate *c) { return pairs_with_nothing(c, c->geom->oc); }

static const char odd[] = "is wrong for an odd number of channels";
static const char unwritten[] = "reads what was not written";
static const char overrun[] = "corrupts memory (oneDNN issue 6035)";
static const row rows[] = {
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx2, dnnl_backward_weights, copies_below_8, overrun},
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx512_core, dnnl_backward_weights, copies_below_16,
     overrun},
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx512_core, dnnl_backward_weights, dilates_rows,
     unwritten},
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx512_core, dnnl_backward_weights, steps_over_rows,
     unwritten},
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx512_core_bf16, dnnl_forward_training,
     adds_odd_inputs, odd},
    {VERSION_2_0_0, ANY_VERSION, dnnl_cpu_isa_avx512_core_bf16, dnnl_backward_data,
     adds_odd_outputs, odd},
};

const char *quarantined(const onednn *o, const conv_candidate *c)
{
    const dnnl_version_t *v = dnnl_version();
    int version = v->major * 10000 + v->minor * 100 + v->patch;
    int isa = (int)dnnl_get_effective_cpu_isa(); /* a bit for each step: a superset has them all */

    for (int i = 0; i < o->n_row; i++)
        if (quarantine_holds(&o->row[i], c, version, isa))
            return o->row[i].reason;
    if (o->no_quarantine)
        return NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        if (version >= r->first && (r->last == ANY_VERSION || version <= r->last) &&
            (isa & r->isa) == r->isa && c->direction == r->direction && r->applies(c))
            return r->reason;
    }
    return NULL;
}
