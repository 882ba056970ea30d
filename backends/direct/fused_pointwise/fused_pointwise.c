/* fused_pointwise.c - plans the pass of a fused pointwise group. The design is in
 * fused_pointwise.h. */
#include "backends/direct/arith.h"
#include "fused_pointwise.h"
#include "row_kernel.h"

enum { ROW = 256, PARALLEL = 1 << 14, SEGMENT_CHUNKS = 16 };

static int add_value(fused_group *p, fused_value v)
{
    if (p->n_value >= FUSED_VALUES)
        return -1;
    p->value[p->n_value] = v;
    return p->n_value++;
}

/* Returns the value for a full operand from outside: read in place, or loaded into a buffer. */
static int operand_value(fused_group *p, const adj_group *g, const adj_node *x)
{
    int in = adj_group_in(g, x);
    for (int i = 0; i < p->n_value; i++)
        if (p->value[i].in == in && p->value[i].at != AT_TILED)
            return i;
    fused_value v = {.at = AT_IN, .where = in, .in = in, .out = -1, .dtype = x->type.dtype};
    if (v.dtype != ADJ_F32) {
        v.at = AT_CHUNK;
        v.where = p->n_buffer++;
    }
    return add_value(p, v);
}

static int member_value(const fused_group *p, const adj_node *x)
{
    for (int i = 0; i < p->n_node; i++)
        if (p->node[i].node == x)
            return p->node[i].y;
    return -1;
}

static int tiled_value(fused_group *p, int in)
{
    return add_value(p, (fused_value){.at = AT_TILED, .where = p->n_tiled++, .in = in, .out = -1});
}

static int result_value(fused_group *p, const adj_group *g, const adj_node *n)
{
    int out = adj_group_out(g, n);
    fused_value v = {.at = AT_OUT, .where = out, .in = -1, .out = out, .dtype = n->type.dtype};
    if (out < 0 || v.dtype != ADJ_F32) {
        v.at = AT_CHUNK;
        v.where = p->n_buffer++;
    }
    return add_value(p, v);
}

/* Splits the node added last, a sum of products, into a loop for the products and one for their
 * sum. */
static int split_sum(fused_group *p)
{
    fused_node *terms = &p->node[p->n_node - 1], *sum = &p->node[p->n_node];
    *sum = *terms;
    terms->code = FUSED_PRELU_TERM;
    terms->sum = -1;
    terms->y = add_value(p, (fused_value){.at = AT_CHUNK,
                                          .where = p->n_buffer++,
                                          .in = -1,
                                          .out = -1,
                                          .dtype = ADJ_F32,
                                          .is_read = 1});
    sum->n_x = 1;
    sum->x[0] = terms->y;
    p->n_node++;
    return terms->y >= 0;
}

static int add_node(fused_group *p, const adj_group *g, const adj_node *n, adj_shape shape)
{
    const fused_kind *kind = fused_kind_of(n->op);
    fused_node *d = &p->node[p->n_node];
    *d = (fused_node){.code = fused_code_of(kind, n), .node = n, .y = -1, .sum = -1};
    for (int i = 0; i < n->n_in; i++) {
        if (kind->roles[i] == 'p')
            continue;
        int x = member_value(p, n->in[i]);
        if (x >= 0)
            p->value[x].is_read = 1;
        if (x < 0 && adj_shape_equal(n->in[i]->type.shape, shape))
            x = operand_value(p, g, n->in[i]);
        else if (x < 0)
            x = tiled_value(p, adj_group_in(g, n->in[i]));
        d->x[d->n_x++] = x;
    }
    d->tiled = p->n_tiled;
    d->n_tiled = kind->tiled;
    p->n_tiled += kind->tiled;
    if (kind->is_sum)
        d->sum = p->n_sum++;
    else
        d->y = result_value(p, g, n);
    p->n_node++;
    if (n->op == &adj_op_prelu_grad_slope && !split_sum(p))
        return 0;
    for (int i = 0; i < d->n_x; i++)
        if (d->x[i] < 0)
            return 0;
    return (kind->is_sum || d->y >= 0) && p->n_tiled <= FUSED_TILED;
}

/* Sets the row length: a multiple of the channels and, unless that makes rows long, of some
 * vectors. Shorter rows need fewer registers for their columns and access memory more
 * sequentially. */
static void set_rows(fused_group *p)
{
    int64_t unit = lcm(p->channels, ROW_KERNEL_WIDTH);
    if (unit > 1024)
        unit = p->channels;
    p->row = (ROW + unit - 1) / unit * unit;
    p->chunk = p->row;
    while (2 * p->chunk <= FUSED_CHUNK)
        p->chunk *= 2;
    p->sum_width = ROW_KERNEL_WIDTH % p->channels == 0   ? ROW_KERNEL_WIDTH
                   : p->channels % ROW_KERNEL_WIDTH == 0 ? p->channels
                                                         : p->row;
}

static size_t set_scratch(fused_group *p)
{
    const size_t column = 2 * sizeof(double) + FUSED_ACCUMULATORS * sizeof(float);
    size_t bytes = 0, columns = 0;
    p->buffers_each = (size_t)p->n_buffer * (size_t)p->chunk * sizeof(float);
    p->buffers = reserve(&bytes, p->work.threads, p->buffers_each);
    p->tiled = reserve(&bytes, p->n_tiled * p->row, sizeof(float));
    p->constants = reserve(&bytes, (ptrdiff_t)p->n_node * FUSED_CONSTANTS, sizeof(float));
    reserve(&columns, p->sum_width, column);
    p->columns_each = columns;
    p->columns = reserve(&bytes, (ptrdiff_t)p->n_sum * p->work.threads, p->columns_each);
    p->partials_each = 3 * (size_t)p->channels * sizeof(double);
    p->partials = reserve(&bytes, (ptrdiff_t)p->n_sum * p->work.jobs, p->partials_each);
    return bytes;
}

/* Returns the operands that a node's result may overwrite: no later node reads them. Loops node
 * by node read operands loaded to the chunk before; a row kernel reads in place. */
static uint32_t may_be_overwritten(const fused_group *p, const adj_group *g, int producer)
{
    const fused_value *y = &p->value[p->node[producer].y];
    uint32_t operands = 0;
    for (int i = 0; i < g->n_in && i < 32; i++) {
        int may = 0;
        for (int k = 0; k < p->n_value; k++)
            if (p->value[k].in == i)
                may = p->value[k].at != AT_TILED && p->value[k].dtype == y->dtype;
        for (int k = producer + 1; k < p->n_node; k++)
            for (int j = 0; j < p->node[k].n_x; j++)
                may &= p->value[p->node[k].x[j]].in != i ||
                       (p->row_kernel.bits == 0 && p->value[p->node[k].x[j]].at != AT_IN);
        operands |= (uint32_t)may << i;
    }
    return operands;
}

/* Sets aliases for the first full results. */
static void set_aliases(const fused_group *p, const adj_group *g, adj_prep *prep)
{
    int found = 0;
    for (int i = 0; i < p->n_node && found < ADJ_MAX_ALIASES; i++)
        if (p->node[i].y >= 0 && p->value[p->node[i].y].out >= 0)
            prep->alias[found++] =
                (adj_alias){p->value[p->node[i].y].out, may_be_overwritten(p, g, i)};
}

/* Sets the segments of sums: their number does not depend on the threads, and each has several
 * chunks if there are many. */
static void set_segments(fused_group *p, int threads)
{
    int64_t chunks = divide_up(p->n, p->chunk);
    int64_t wanted = p->n_sum > 0 ? 2 : threads;
    while (p->n_sum > 0 && wanted < FUSED_SEGMENTS && 2 * wanted * SEGMENT_CHUNKS <= chunks)
        wanted *= 2;
    p->work.threads = p->n >= PARALLEL ? threads : 1;
    p->work.jobs = min(chunks, wanted);
}

static int lay_out(fused_group *p, const direct *d, const adj_group *g)
{
    p->work.code = d->isa->fused_pointwise;
    p->half_kernel = d->has_avx512_bf16 ? direct_row_kernel_bf16_avx512_bf16 : NULL;
    adj_shape shape = fused_shape(g->node[0]);
    int channels = 0;
    for (int i = 0; i < g->n_node; i++)
        channels |= fused_needs_channels(g->node[i]);
    p->n = adj_shape_elems(shape);
    p->channels = channels ? shape.dim[shape.rank - 1] : 1;
    if (p->n == 0 || p->channels > FUSED_CHANNELS)
        return 0;
    for (int i = 0; i < g->n_node; i++)
        if (!add_node(p, g, g->node[i], shape))
            return 0;
    set_rows(p);
    set_segments(p, d->threads);
    fused_find_row_kernels(p);
    return 1;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    fused_group p = {0};
    for (int i = 0; i < g->n_node; i++)
        if (candidate > 0 || !fused_takes(g->node[i], fused_shape(g->node[0])))
            return direct_refuse(prep, "%s: direct has no kernel for it", g->node[i]->op->name);
    if (g->n_node > FUSED_NODES || !lay_out(&p, d, g))
        return ADJ_ENOKERNEL;
    prep->scratch = set_scratch(&p);
    set_aliases(&p, g, prep);
    const char *impl = p.row_kernel.bits != 0 ? "fused_row_kernel" : "fused_pointwise";
    const int by_avx512_bf16 = p.row_kernel.is_half && p.half_kernel != NULL;
    return direct_accept_as(d, g, prep, impl, by_avx512_bf16 ? "avx512_bf16" : d->isa->name, &p,
                            sizeof p);
}

const adj_kernel direct_fused_pointwise = {.name = "fused_pointwise",
                                           .match = fused_match,
                                           .prepare = prepare,
                                           .run = direct_run,
                                           .drop = direct_drop};
