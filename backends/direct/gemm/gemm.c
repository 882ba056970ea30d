/* gemm.c - the kernel of gemm.h: the nodes it accepts, and how it runs. */
#include <math.h>
#include <omp.h>
#include <stdio.h>

#include "gemm.h"

/* ---- accepted nodes ---- */

static int is_dx(const adj_node *n) { return n->op == &adj_op_conv2d_backprop_input; }

static int is_root(const adj_node *n)
{
    return (n->op == &adj_op_conv2d || n->op == &adj_op_matmul || is_dx(n)) &&
           (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_F64);
}

/* True if matrices are multiplied without transposes. */
static int has_plain_operands(const adj_node *n)
{
    const adj_matmul_attrs *a = n->attrs;
    return n->op != &adj_op_matmul || (!a->transpose_a && !a->transpose_b);
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    return is_root(root) && !is_dx(root) ? direct_match_bias(root, uses, max, group) : 0;
}

static int is_ours(const adj_group *g, direct_epilogue *e)
{
    const adj_node *n = g->node[0];
    return is_root(n) && direct_read_epilogue(g, e) && (g->n_node == 1 || !is_dx(n));
}

/* ---- a filter of y that is packed before it enters the kernel ----
 *
 * If it changes only when a parameter is set, a reorder packs it once for all runs. It holds the
 * panels of gemm.h, followed by one element: the sum of the filter's products with zero, which is
 * 0, or NaN if an element multiplied by padding is not finite. */

static int is_same(const void *of, const void *other)
{
    const gemm *a = of, *b = other;
    return a->dtype == b->dtype && a->filter.kh == b->filter.kh && a->filter.kw == b->filter.kw &&
           a->src.c == b->src.c && a->dst.c == b->dst.c && a->lanes == b->lanes &&
           a->vectors == b->vectors;
}

/* Returns the part of p that packing needs: the filter is the only operand, and the result
 * begins the scratch. */
static gemm of_filter(const gemm *p)
{
    return (gemm){
        .code = p->code,
        .threads = p->threads,
        .has_margin = 1, /* for the last element, the products with the padding's zeros */
        .dtype = p->dtype,
        .filter = {.is_packed = 1,
                   .kh = p->filter.kh,
                   .kw = p->filter.kw,
                   .jobs = min(GEMM_FILTER_JOBS, p->filter.kh * p->filter.kw * p->src.c)},
        .src.c = p->src.c,
        .dst.c = p->dst.c,
        .lanes = p->lanes,
        .vectors = p->vectors,
        .n_pass = 1,
        .pass[0] = {.h = p->pass[0].h, .w = p->pass[0].w, .elements = p->pass[0].elements}};
}

static ptrdiff_t packed_elements(const gemm *p)
{
    return p->pass[0].elements * round_up(p->dst.c, p->lanes);
}

static size_t bytes_of(const void *of)
{
    const gemm *p = of;
    return (size_t)(packed_elements(p) + 1) * adj_dtype_size(p->dtype);
}

static void pack(const void *of, const void *filter, void *packed)
{
    const gemm *p = of;
    const adj_call call = {.state = (void *)p, .in = &filter, .scratch = packed};
    int is_finite = 1;
#pragma omp parallel for schedule(static) num_threads(p->threads) if (p->threads > 1)            \
    reduction(& : is_finite)
    for (ptrdiff_t job = 0; job < p->filter.jobs; job++)
        is_finite &= p->code->prepare_filter(&call, job);
    adj_store(p->dtype, packed, packed_elements(p), is_finite ? 0 : NAN);
}

static const direct_packing packing = {sizeof(gemm), is_same, bytes_of, pack};

/* Returns NULL if out of memory. */
static const adj_layout *packed_filter(direct *d, const gemm *p)
{
    const gemm of = of_filter(p);
    char name[16];
    snprintf(name, sizeof name, "panels%dx%d", (int)p->vectors, (int)p->lanes);
    return direct_packed_filter(d, &packing, &of, name);
}

static int is_packed_finite(const gemm *p, const void *packed)
{
    return isfinite(adj_load(p->dtype, packed, packed_elements(p)));
}

/* ---- the kernel ---- */

static adj_status run(const adj_call *c)
{
    const gemm *p = c->state;
    int is_finite = !p->filter.by_reorder || !(p->has_margin || p->is_gathered) ||
                    is_packed_finite(p, c->in[p->filter.in]);
    job_shares jobs;
    share_jobs(&jobs, p->jobs, p->threads);
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        if (p->filter.jobs > 0) { /* otherwise skips the loop and its barrier */
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t job = 0; job < p->filter.jobs; job++)
                is_finite &= p->code->prepare_filter(c, job);
        }
        for (job_range r; take_jobs(&jobs, omp_get_thread_num(), &r);)
            p->code->multiply(c, r, omp_get_thread_num(), is_finite);
    }
    return ADJ_OK;
}

/* Returns the bytes of the filter that each run packs. */
static double packed_bytes(const gemm *p)
{
    const ptrdiff_t filter = p->filter.kh * p->filter.kw * p->src.c * p->dst.c;
    return p->filter.jobs > 0 ? (double)(filter * (ptrdiff_t)adj_dtype_size(p->dtype)) : 0;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    direct *d = backend;
    gemm p;
    direct_epilogue epilogue;
    if (candidate > 0 || !is_ours(g, &epilogue))
        return ADJ_ENOKERNEL;
    if (!has_plain_operands(g->node[0]) || !gemm_plan(&p, d, g, &epilogue, prep))
        return direct_refuse(prep,
                             "%s: direct takes f32 and f64 in NHWC, without groups, untransposed "
                             "matrices, input gradients with up to %d phases of strides",
                             g->node[0]->op->name, GEMM_PASSES);
    const adj_status status = p.filter.by_reorder
                                  ? direct_accept_packed(d, g, prep, "gemm", &p, sizeof p,
                                                         p.filter.in, packed_filter(d, &p))
                                  : direct_accept(d, g, prep, "gemm", &p, sizeof p);
    direct_count_packed(prep, p.filter.by_reorder, packed_bytes(&p));
    return status;
}

const adj_kernel direct_gemm = {.name = "gemm",
                                .match = match,
                                .epilogue = direct_propose_cast_epilogue,
                                .prepare = prepare,
                                .run = run,
                                .drop = direct_drop};
