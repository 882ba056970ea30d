/* gemm.c - the kernel of gemm.h: what it takes, how it runs, and where it is worth it. */
#include <omp.h>

#include "packed_filter.h"
#include "plan.h"

enum { FEW_ROWS = 16 /* of a matmul */ };

/* ---- what is ours ---- */

static int is_dx(const adj_node *n) { return n->op == &adj_op_conv2d_backprop_input; }

static int is_root(const adj_node *n)
{
    return (n->op == &adj_op_conv2d || n->op == &adj_op_matmul || is_dx(n)) &&
           (n->type.dtype == ADJ_F32 || n->type.dtype == ADJ_F64);
}

/* Matrices are multiplied as they lie. */
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

/* ---- the kernel ---- */

static adj_status run(const adj_call *c)
{
    const gemm *p = c->state;
    int is_finite = !p->by_reorder || !(p->has_margin || p->is_gathered) ||
                    gemm_is_packed_finite(p, c->in[p->filter_in]);
    job_shares jobs;
    share_jobs(&jobs, p->jobs, p->threads);
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        if (p->filter_jobs > 0) { /* else without the loop's barrier */
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t job = 0; job < p->filter_jobs; job++)
                is_finite &= p->code->prepare_filter(c, job);
        }
        for (job_range r; take_jobs(&jobs, omp_get_thread_num(), &r);)
            p->code->multiply(c, r, omp_get_thread_num(), is_finite);
    }
    return ADJ_OK;
}

/* Are there enough positions for packing the filter to be worth it beside oneDNN's? For dx it is
 * transposed on the way, element by element. */
static int pays_packing(const gemm *p)
{
    const ptrdiff_t positions = p->n * p->dst.h * p->dst.w;
    const ptrdiff_t few = p->dst.c >= 128 && !p->is_turned ? 256 : GEMM_PACKED_POSITIONS;
    return p->is_packed && (p->by_reorder || positions >= few);
}

/* May it be as fast as oneDNN's? As in filter_gemm.c; matmul, and a filter of many channels that is
 * read as it lies, are not. */
static int competes(const direct *d, const gemm *p, const adj_node *n)
{
    if (d->isa == &direct_isa_base || n->op == &adj_op_matmul)
        return 0;
    return (p->is_flat && !p->is_turned) || (d->isa == &direct_isa_avx2 && pays_packing(p));
}

/* Few rows times a matrix that is packed once, of which each thread reads its part: 1.3 to 1.7
 * times as fast as oneDNN 2.6.3's for 1 to 16 rows of 4,096 elements and 256 outputs, level from 32
 * on (Zen 3, 2026-11-27). */
static int is_faster(const direct *d, const gemm *p, const adj_node *n)
{
    return d->isa == &direct_isa_avx2 && n->op == &adj_op_matmul && p->by_reorder &&
           p->pixels <= FEW_ROWS;
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
                             "%s: direct takes f32 and f64 in NHWC, without groups, matrices as "
                             "they lie, input gradients with up to %d phases of strides",
                             g->node[0]->op->name, GEMM_PASSES);
    if (is_faster(d, &p, g->node[0]))
        prep->seconds *= 0.8;
    else if (!competes(d, &p, g->node[0]))
        prep->seconds *= direct_any_conv;
    if (!p.by_reorder)
        return direct_accept(d, g, prep, "gemm", &p, sizeof p);
    return direct_accept_packed(d, g, prep, "gemm", &p, sizeof p, p.filter_in,
                                gemm_packed_filter(d, &p));
}

const adj_kernel direct_gemm = {.name = "gemm",
                                .match = match,
                                .epilogue = direct_propose_cast_epilogue,
                                .prepare = prepare,
                                .run = run,
                                .drop = direct_drop};
