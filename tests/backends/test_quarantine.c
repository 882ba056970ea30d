/* test_quarantine.c - quarantine rows match their classes of problems on any machine and under any
 * name of the implementation; and the sweep covers every class. */
#include <criterion/criterion.h>
#include <string.h>

#include "backends/onednn/onednn.h"
#include "tests/plan.h"
#include "tools/cases.h"

enum {
    AVX2 = 0x7,
    AVX512_BF16 = 0xe7,
    AMX_2 = 0x3e7,
    AVX10_AMX_3 = 0xfef
}; /* as oneDNN has them */
enum { V2_6_3 = 20603, V3_2_0 = 30200, V3_7_2 = 30702, DEFAULT_CASES = 3000 };

/* Zeros stand for one group, strides and dilations of 1, and outputs of the input's size. */
static adj_conv_geom geometry(adj_conv_geom g)
{
    int64_t *ones[] = {&g.sh, &g.sw, &g.dh, &g.dw, &g.groups};
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (*ones[i] == 0)
            *ones[i] = 1;
    g.n = 2;
    g.oh = g.oh != 0 ? g.oh : (g.ih + g.sh - 1) / g.sh;
    g.ow = g.ow != 0 ? g.ow : (g.iw + g.sw - 1) / g.sw;
    return g;
}

/* Problems with wrong results, the machine where they were wrong, and similar problems with right
 * results. */
typedef struct {
    const char *name;
    int version, isa;
    task task;
    adj_dtype dtype;
    const char *reason; /* a part; NULL: it may run */
} fault;
static const struct {
    fault of;
    adj_conv_geom geom;
} cases[] = {
    {{"brgconv_bwd_w:avx10_1_512_amx", V3_7_2, AVX10_AMX_3, TASK_BACKWARD_WEIGHTS, ADJ_BF16,
      "not written"},
     {.ih = 7, .iw = 1, .ic = 3, .oc = 17, .kh = 2, .kw = 3, .sh = 2, .sw = 2}},
    {{"jit:avx512_core_amx_bf16", V2_6_3, AMX_2, TASK_BACKWARD_WEIGHTS, ADJ_BF16, "not written"},
     {.ih = 36, .iw = 36, .ic = 40, .oc = 40, .kh = 3, .kw = 3, .dh = 2}},
    {{"brgconv_bwd_w:avx512_core_fp16", V3_7_2, AVX10_AMX_3, TASK_BACKWARD_WEIGHTS, ADJ_F16,
      "not written"},
     {.ih = 36, .iw = 36, .ic = 40, .oc = 40, .kh = 3, .kw = 3, .dh = 2}},
    {{"jit:avx2", V2_6_3, AVX2, TASK_BACKWARD_WEIGHTS, ADJ_F32, NULL},
     {.ih = 36, .iw = 36, .ic = 40, .oc = 40, .kh = 3, .kw = 3, .dh = 2}},
    {{"jit_bf16:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_BACKWARD_WEIGHTS, ADJ_BF16, NULL},
     {.ih = 36, .iw = 36, .ic = 40, .oc = 40, .kh = 3, .kw = 3}},
    {{"jit_bf16:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_FORWARD, ADJ_BF16, NULL},
     {.ih = 36, .iw = 36, .ic = 40, .oc = 40, .kh = 3, .kw = 3, .dh = 2}},
    {{"brgconv_1x1:avx10_1_512_amx", V3_7_2, AVX10_AMX_3, TASK_FORWARD, ADJ_BF16, "odd number"},
     {.ih = 6, .iw = 5, .ic = 3, .oc = 8, .kh = 1, .kw = 1}},
    {{"jit_bf16_1x1:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_BACKWARD_DATA, ADJ_BF16,
      "odd number"},
     {.ih = 10, .iw = 6, .ic = 8, .oc = 3, .kh = 1, .kw = 1}},
    {{"jit_bf16_1x1:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_FORWARD, ADJ_BF16, NULL},
     {.ih = 6, .iw = 5, .ic = 4, .oc = 3, .kh = 1, .kw = 1}},
    {{"jit:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_AVG_POOL_BACKWARD, ADJ_BF16, "half type"},
     {.ih = 16, .iw = 16, .ic = 16, .oc = 16, .kh = 7, .kw = 7}},
    {{"jit:avx10_1_512_amx", V3_7_2, AVX10_AMX_3, TASK_AVG_POOL_BACKWARD, ADJ_F16, "half type"},
     {.ih = 16, .iw = 16, .ic = 16, .oc = 16, .kh = 2, .kw = 3, .sh = 2, .sw = 2}},
    {{"jit:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_AVG_POOL_BACKWARD, ADJ_BF16, NULL},
     {.ih = 16, .iw = 16, .ic = 16, .oc = 16, .kh = 2, .kw = 2, .sh = 2, .sw = 2}},
    /* one window over the whole image */
    {{"jit:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_AVG_POOL_BACKWARD, ADJ_BF16, NULL},
     {.ih = 8, .iw = 8, .oh = 1, .ow = 1, .ic = 16, .oc = 16, .kh = 8, .kw = 8}},
    {{"jit:avx512_core_bf16", V2_6_3, AVX512_BF16, TASK_AVG_POOL, ADJ_BF16, NULL},
     {.ih = 16, .iw = 16, .ic = 16, .oc = 16, .kh = 7, .kw = 7}},
    {{"jit:avx2", V2_6_3, AVX2, TASK_AVG_POOL_BACKWARD, ADJ_F32, NULL},
     {.ih = 16, .iw = 16, .ic = 16, .oc = 16, .kh = 7, .kw = 7}},
    {{"jit_1x1:avx2", V2_6_3, AVX2, TASK_BACKWARD_WEIGHTS, ADJ_F32, "6035"},
     {.ih = 8, .iw = 8, .ic = 7, .oc = 8, .kh = 1, .kw = 1, .sh = 2, .sw = 2}},
    {{"jit_1x1:avx2", V2_6_3, AVX2, TASK_BACKWARD_WEIGHTS, ADJ_F32, NULL},
     {.ih = 8, .iw = 8, .ic = 12, .oc = 8, .kh = 1, .kw = 1, .sh = 2, .sw = 2}},
    {{"brgconv_1x1:avx512_core", V3_7_2, AVX512_BF16, TASK_BACKWARD_WEIGHTS, ADJ_F32, "6035"},
     {.ih = 8, .iw = 8, .ic = 12, .oc = 8, .kh = 1, .kw = 1, .sh = 2, .sw = 2}},
    {{"jit_1x1:avx512_core_amx_bf16", V2_6_3, AMX_2, TASK_FORWARD, ADJ_BF16, "tile"},
     {.ih = 6, .iw = 6, .ic = 64, .oc = 128, .kh = 1, .kw = 1}},
    {{"jit_1x1:avx512_core_amx_bf16", V2_6_3, AMX_2, TASK_FORWARD, ADJ_BF16, NULL},
     {.ih = 7, .iw = 7, .ic = 64, .oc = 128, .kh = 1, .kw = 1}},
    {{"jit_1x1:avx512_core_amx_bf16", V3_2_0, AVX10_AMX_3, TASK_FORWARD, ADJ_BF16, "tile"},
     {.ih = 6, .iw = 6, .ic = 64, .oc = 128, .kh = 1, .kw = 1}},
    {{"jit_1x1:avx10_1_512_amx", V3_7_2, AVX10_AMX_3, TASK_FORWARD, ADJ_BF16, NULL},
     {.ih = 6, .iw = 6, .ic = 64, .oc = 128, .kh = 1, .kw = 1}},
    {{"brgconv_1x1:avx512_core_amx_bf16", V2_6_3, AMX_2, TASK_FORWARD, ADJ_BF16, NULL},
     {.ih = 6, .iw = 6, .ic = 64, .oc = 128, .kh = 1, .kw = 1}},
    {{"brgconv:avx512_core_amx_bf16", V2_6_3, AMX_2, TASK_FORWARD, ADJ_BF16, "below"},
     {.ih = 2, .iw = 1, .oh = 2, .ow = 1, .ic = 5, .oc = 1, .kh = 1, .kw = 1, .sh = 2}},
    {{"brgconv:avx512_core_amx_bf16", V2_6_3, AMX_2, TASK_FORWARD, ADJ_BF16, NULL},
     {.ih = 3, .iw = 1, .oh = 2, .ow = 1, .ic = 5, .oc = 1, .kh = 2, .kw = 1, .sh = 2}},
};

/* Versions number AMX and what came later differently, and a row that names an instruction set, as
 * those about tiles and windows do, holds for the version that it was compiled with. */
static int is_numbered_here(size_t k)
{
    const char *reason = cases[k].of.reason;
    return reason == NULL || (strcmp(reason, "tile") != 0 && strcmp(reason, "below") != 0) ||
           cases[k].of.version / 10000 == DNNL_VERSION_MAJOR;
}

Test(quarantine, holds_for_classes)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        if (!is_numbered_here(k))
            continue;
        const adj_conv_geom g = geometry(cases[k].geom);
        const implementation i = {.task = cases[k].of.task,
                                  .geom = &g,
                                  .dtype = cases[k].of.dtype,
                                  .name = cases[k].of.name,
                                  .channels_last = 1};
        const char *reason = known_fault(&i, cases[k].of.isa);
        if (cases[k].of.reason == NULL)
            cr_expect_null(reason, "%zu, %s: %s", k, cases[k].of.name, reason);
        else
            cr_expect(reason != NULL && strstr(reason, cases[k].of.reason) != NULL, "%zu, %s: %s",
                      k, cases[k].of.name, reason != NULL ? reason : "may run");
    }
}

/* ---- the sweep ---- */

static int is_case_of(int row, const sweep_case *c)
{
    int is_possible = 0;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = sweep_node(g, c);
    if (y != NULL) {
        const adj_conv_geom *geom = c->pool ? &((const adj_pool_attrs *)y->attrs)->geom
                                            : &((const adj_conv_attrs *)y->attrs)->geom;
        const implementation i = {
            .task = c->pool ? (c->direction == FORWARD ? TASK_AVG_POOL : TASK_AVG_POOL_BACKWARD)
                            : (task)c->direction, /* in the same order */
            .geom = geom,
            .dtype = c->dtype,
            .channels_last = 1}; /* images in NCHW are computed so, too */
        is_possible = is_known_fault(row, &i, AVX10_AMX_3);
    }
    return is_possible;
}

/* The default sample of the sweep contains the class of every known failure. */
Test(quarantine, sweep_tries_every_class)
{
    const sweep all = sweep_all();
    for (int row = 0; row < n_known_fault(); row++) {
        int64_t i = 0;
        while (i < DEFAULT_CASES) {
            sweep_case c = sweep_at(&all, i);
            if (is_case_of(row, &c))
                break;
            i++;
        }
        cr_expect(i < DEFAULT_CASES, "row %d: none of the first %d cases", row, DEFAULT_CASES);
    }
}

/* ---- instruction sets ---- */

Test(quarantine, instruction_sets_have_names)
{
    static const struct {
        int bits;
        const char *name;
    } sets[] = {
        {0x12345, "isa_0x12345"},
#if defined(__x86_64__)
        {0x1, "sse41"},
        {0x3, "avx"},
        {AVX2, "avx2"},
        {0x27, "avx512_core"},
        {0x67, "avx512_core_vnni"},
        {AVX512_BF16, "avx512_core_bf16"},
#if DNNL_VERSION_MAJOR < 3
        {AMX_2, "avx512_core_amx"},
#endif
#endif
    };
    char name[ISA_NAME];
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        isa_spell(sets[i].bits, name);
        cr_expect_str_eq(name, sets[i].name, "%#x", sets[i].bits);
    }
}
