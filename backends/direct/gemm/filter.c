/* filter.c - the filter as gemm.h's products read it. Compiled once per instruction set and type.
 */
#include <string.h>

#include "backends/direct/padded_rows.h"
#include "filter.h"

/* Elements from `first` to `end` of a tap, w, for VECTOR outputs; rows of dst are a panel's. */
static int pack_vector(const gemm *p, const real *w, ptrdiff_t first, ptrdiff_t end,
                       ptrdiff_t output, real *dst, ptrdiff_t pitch)
{
    const ptrdiff_t n = min(p->dst.c - output, VECTOR);
    const ptrdiff_t step = p->is_turned ? p->src.c : 1, line = p->is_turned ? 1 : p->dst.c;
    int is_finite = 1;
    for (ptrdiff_t c = first; c < end; c++, dst += pitch) {
        const real *from = w + c * line + output * step;
        for (ptrdiff_t i = 0; i < VECTOR; i++)
            dst[i] = i < n ? from[i * step] : 0;
        is_finite &= are_finite(dst, VECTOR);
    }
    return is_finite;
}

/* A tap, whose elements are the pass' from `element` on. */
static int pack_tap(const gemm *p, const gemm_pass *a, const real *w, ptrdiff_t element,
                    ptrdiff_t first, ptrdiff_t end, real *dst)
{
    int is_finite = 1;
    for (ptrdiff_t i = 0; i < gemm_panels(p); i++) {
        const gemm_panel panel = gemm_panel_at(p, i);
        const ptrdiff_t pitch = (panel.end - panel.first) * VECTOR;
        real *at = dst + panel.first * VECTOR * a->elements + (element + first) * pitch;
        for (ptrdiff_t v = panel.first; v < panel.end; v++, at += VECTOR)
            is_finite &= pack_vector(p, w, first, end, v * VECTOR, at, pitch);
    }
    return is_finite;
}

/* Those elements of a pass' taps that are in the job's range, if they are counted from `index` on.
 */
static int pack_pass(const adj_call *call, const gemm_pass *a, ptrdiff_t index, ptrdiff_t first,
                     ptrdiff_t end)
{
    const gemm *p = call->state;
    real *dst = direct_scratch(call, a->filter);
    ptrdiff_t element = 0;
    int is_finite = 1;
    for (ptrdiff_t i = 0; i < a->h.taps; i++)
        for (ptrdiff_t j = 0; j < a->w.taps; j++, element += p->src.c) {
            const ptrdiff_t row = a->h.filter + i * a->h.forward;
            const ptrdiff_t column = a->w.filter + j * a->w.forward;
            const real *w =
                (const real *)call->in[p->filter_in] + (row * p->kw + column) * p->src.c * p->dst.c;
            const ptrdiff_t from = max(first - index - element, 0);
            const ptrdiff_t to = min(end - index - element, p->src.c);
            if (from < to)
                is_finite &= pack_tap(p, a, w, element, from, to, dst);
        }
    return is_finite;
}

int TYPED(gemm_prepare_filter)(const adj_call *call, ptrdiff_t job)
{
    const gemm *p = call->state;
    const ptrdiff_t n = p->kh * p->kw * p->src.c;
    const ptrdiff_t first = n * job / p->filter_jobs, end = n * (job + 1) / p->filter_jobs;
    ptrdiff_t index = 0;
    int is_finite = 1;
    if (!p->is_packed)
        return are_finite((const real *)call->in[p->filter_in] + first * p->dst.c,
                          (end - first) * p->dst.c);
    for (int i = 0; i < p->n_pass; i++) {
        const gemm_pass *a = &p->pass[i];
        is_finite &= pack_pass(call, a, index, first, end);
        index += a->elements;
    }
    return is_finite;
}
