/* efficiency.c - see efficiency.h. */
#include "efficiency.h"

#include <string.h>

#include "base/machine/isa_level.h"

/* ---- the tables: bench/efficiency.py measures them. A row that serves AVX-512 and
 * lesser instruction sets has AVX-512's shares. Rows for AMX are derived from the ratios of the
 * backends' kernels of the same products. Rows of winograd, jit_wino, conv_bf16x3 and filter_bf16x3
 * apply with ADJ_MATH_FAST only ---- */

const efficiency direct_efficiencies[] = {
    {"depthwise", "", FORWARD, GROUPED, {0.18, 0.22, 0.26}},
    {"depthwise", "", INPUT, GROUPED, {0.23, 0.36, 0.60}},
    {"depthwise", "", FILTER, GROUPED, {0.20, 0.28, 0.28}},
    {"conv_bf16x3", "", ALL_DIRECTIONS, SMALL, {0.20, 2.7, 2.0}},
    {"conv_bf16x3", "", ALL_DIRECTIONS, LARGE, {0.20, 4.0, 4.0}},
    {"conv_bf16:", "", ALL_DIRECTIONS, SMALL, {1.1, 5.0, 4.0}},
    {"conv_bf16:", "", ALL_DIRECTIONS, POINT | LARGE, {1.1, 3.0, 4.0}},
    {"filter_bf16x3", "", FILTER, SMALL, {0.20, 2.8, 2.0}},
    {"filter_bf16x3", "", FILTER, LARGE, {0.20, 4.0, 4.0}},
    {"filter_bf16:", "amx", FILTER, WINDOW, {1.5, 5.0, 6.5}},
    {"filter_bf16:", "amx", FILTER, POINT, {1.5, 4.5, 4.0}},
    {"filter_bf16:", "", FILTER, DENSE, {0.40, 2.1, 1.8}},
    {"winograd", "", ALL_DIRECTIONS, WINDOW, {2.1, 2.1, 2.05}},
    {"winograd", "", ALL_DIRECTIONS, PACKED, {1, 4, 4}},
    {"filter_gemm", "avx512", FILTER, DENSE, {0.43, 1.0, 1.15}},
    {"filter_gemm", "", FILTER, DENSE, {1.0, 1.2, 1.25}},
    {"gemm", "avx512", FORWARD, DENSE, {0.70, 1.1, 1.3}},
    {"gemm", "avx512", INPUT, DENSE, {0.07, 1.2, 1.35}},
    {"gemm", "", FORWARD | INPUT, DENSE, {0.60, 1.35, 1.35}},
    {"gemm", "", FORWARD, MATMUL, {1.0, 0.30, 0.30}},
    {0},
};

const efficiency onednn_efficiencies[] = {
    {"jit_dw", "avx512", ALL_DIRECTIONS, GROUPED, {0.11, 0.30, 0.33}},
    {"jit_dw", "", ALL_DIRECTIONS, GROUPED, {0.45, 0.34, 0.54}},
    {"", "", ALL_DIRECTIONS, GROUPED, {0.03, 0.02, 0.02}},
    {"x64:gemm", "", ALL_DIRECTIONS, DENSE, {0.15, 0.55, 0.88}},
    {"jit", "amx", INPUT | FILTER, DENSE, {1.05, 2.4, 2.7}},
    {"", "amx", ALL_DIRECTIONS, DENSE, {1.2, 4.0, 6.0}},
    {"brgconv", "bf16", FORWARD | INPUT, DENSE, {0.80, 1.4, 2.5}},
    {"jit_bf16", "", FORWARD | INPUT, DENSE, {1.0, 2.3, 2.6}},
    {"jit_bf16", "", FILTER, DENSE, {1.0, 1.4, 1.7}},
    {"brgconv", "", FORWARD | INPUT, DENSE, {0.50, 1.3, 1.6}},
    {"jit_wino", "", ALL_DIRECTIONS, SMALL, {0.20, 1.3, 1.7}},
    {"jit_1x1", "avx512", FORWARD | INPUT, POINT, {0.40, 1.15, 1.45}},
    {"jit_1x1", "avx512", FILTER, POINT, {0.40, 0.85, 1.1}},
    {"jit_1x1", "", FORWARD | INPUT, POINT, {0.95, 1.4, 1.45}},
    {"jit_1x1", "", FILTER, POINT, {0.95, 0.85, 1.1}},
    {"jit:", "avx512", FORWARD, DENSE, {1.0, 1.3, 1.3}},
    {"jit:", "avx512", INPUT, POINT, {0.20, 1.1, 1.1}},
    {"jit:", "", FORWARD, DENSE, {0.90, 0.97, 0.97}},
    {"jit:", "", INPUT, DENSE, {0.20, 1.32, 1.3}},
    {"jit:", "", FILTER, WINDOW, {0.70, 1.05, 1.2}},
    {0},
};

static const double call_seconds = 2e-6;

/* ---- computation: direction and kind of each op ---- */

static const struct {
    const adj_op *op;
    int direction;
} convolutions[] = {
    {&adj_op_conv2d, FORWARD},
    {&adj_op_conv2d_backprop_input, INPUT},
    {&adj_op_conv2d_backprop_filter, FILTER},
    {&adj_op_depthwise_conv2d_native, FORWARD},
    {&adj_op_depthwise_conv2d_native_backprop_input, INPUT},
    {&adj_op_depthwise_conv2d_native_backprop_filter, FILTER},
};

typedef struct {
    int direction, kind; /* 0 if no row applies */
    int channels;
} work;

static int class_of(int64_t n) { return n < 16 ? 0 : n < 64 ? 1 : 2; }

static work work_of_conv(const adj_conv_geom *g, int direction)
{
    const int is_large = g->kh > 3 || g->kw > 3 || g->dh > 1 || g->dw > 1;
    work w = {.direction = direction};
    if (g->groups > 1)
        w.kind = is_large ? GROUPED_LARGE : GROUPED_SMALL;
    else
        w.kind = g->kh * g->kw == 1 ? POINT : is_large ? LARGE : SMALL;
    w.channels = class_of(g->groups > 1 || g->oc < g->ic ? g->oc : g->ic);
    return w;
}

int conv_direction(const adj_op *op)
{
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        if (convolutions[i].op == op)
            return convolutions[i].direction;
    return 0;
}

static work work_of(const adj_node *n)
{
    const int direction = conv_direction(n->op);
    if (direction != 0)
        return work_of_conv(&((const adj_conv_attrs *)n->attrs)->geom, direction);
    if (n->op == &adj_op_matmul)
        return (work){FORWARD, MATMUL, class_of(n->type.shape.dim[0])};
    return (work){0};
}

/* ---- implementation: vectors of its instruction set ---- */

/* Returns the floats in a vector of the instruction set that ends the name; of the processor's
 * widest vector if the name has none. */
static double vector_floats(const char *isa)
{
    static const struct {
        const char *isa;
        double floats;
    } known[] = {{"amx", 16}, {"avx512", 16}, {"avx2", 8}, {"sse41", 4}, {"base", 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strstr(isa, known[i].isa) != NULL)
            return known[i].floats;
    return machine_vector_floats();
}

/* Returns the part of the name after its last colon. */
static const char *isa_of(const char *impl)
{
    const char *colon = strrchr(impl, ':');
    return colon != NULL ? colon + 1 : "";
}

static const efficiency *find_row(const efficiency *row, work w, const char *impl)
{
    for (; row->family != NULL; row++)
        if ((row->directions & w.direction) != 0 && (row->kinds & w.kind) != 0 &&
            strncmp(impl, row->family, strlen(row->family)) == 0 &&
            strstr(isa_of(impl), row->isa) != NULL)
            return row;
    return NULL;
}

double efficiency_seconds(const efficiency *table, const adj_group *g, const adj_prep *p,
                          const char *impl)
{
    const work w = work_of(g->node[0]);
    const efficiency *row = find_row(table, w, impl);
    if (row == NULL)
        return p->seconds;
    const double peak = vector_floats(isa_of(impl)) / machine_vector_floats();
    return p->arithmetic / (peak * row->share[w.channels]) + p->memory;
}

double efficiency_packed(const efficiency *table, const adj_prep *p, int is_once, double bytes)
{
    const efficiency *row = find_row(table, (work){ALL_DIRECTIONS, PACKED, 0}, p->impl);
    const double passes = row != NULL ? 1 / row->share[is_once != 0] : is_once ? 0 : 2;
    return passes * bytes * p->byte;
}

double efficiency_reorder(const adj_prep *p, double bytes)
{
    return 2 * bytes * p->byte + call_seconds;
}
