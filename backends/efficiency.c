/* efficiency.c - see efficiency.h. */
#include "efficiency.h"

#include <string.h>

#include "base/machine/isa_level.h"

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

static work work_of(const adj_node *n)
{
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        if (convolutions[i].op == n->op)
            return work_of_conv(&((const adj_conv_attrs *)n->attrs)->geom,
                                convolutions[i].direction);
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
