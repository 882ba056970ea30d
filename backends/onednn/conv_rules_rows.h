/* conv_rules_rows.h - what the tables of rows for convolutions (conv_rules.h) are written in. */
#ifndef ONEDNN_CONV_RULES_ROWS_H
#define ONEDNN_CONV_RULES_ROWS_H

#include "conv_rules.h"

typedef struct {
    const conv_rule *row;
    int n;
} conv_rule_table;

extern const conv_rule_table conv_rules_direct; /* where kernels of backends/direct are taken */
extern const conv_rule_table conv_rules_impl;   /* which of oneDNN's implementations is */

enum { OPEN = 0, VERSION_2 = 20000, LAST_2 = 29999 };
enum {
    AVX2 = dnnl_cpu_isa_avx2,
    AVX512 = dnnl_cpu_isa_avx512_core,
    AMX = dnnl_cpu_isa_avx512_core_amx
};

/* Bits of the convolutions. */
enum { FORWARD = 1, INPUT = 2, FILTER = 4, DENSE = 7 };
enum { DW_FORWARD = 8, DW_INPUT = 16, DW_FILTER = 32, DEPTHWISE = 56 };
enum { F32 = 1 << ADJ_F32, BF16 = 1 << ADJ_BF16, HALF = BF16 | 1 << ADJ_F16, ANY_TYPE = ~0 };

/* Classes of convolutions that rows of both are for. */

static inline int is_1x1(const adj_conv_geom *g) { return g->kh == 1 && g->kw == 1; }
static inline int is_strided(const adj_conv_geom *g) { return g->sh > 1 || g->sw > 1; }

static inline int is_3x3_of(const adj_conv_geom *g, int64_t min)
{
    return g->kh == 3 && g->kw == 3 && g->ic >= min && g->oc >= min;
}
static inline int any(const adj_conv_geom *g) { return g != NULL; }

#endif
