/* gemm.c - the kernel of gemm.h: the nodes it accepts, and how it runs. */
#include <omp.h>

#include "packed_filter.h"
#include "plan.h"

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

/* ---- the kernel ---- */

static adj_status run(const adj_call *c)
{
    const gemm *p = c->state;
    int is_finite = !p->filter.by_reorder || !(p->has_margin || p->is_gathered) ||
                    gemm_is_packed_finite(p, c->in[p->filter.in]);
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
                                                         p.filter.in, gemm_packed_filter(d, &p))
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
