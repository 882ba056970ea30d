/* filter.c - packs the filter for gemm.h's products. Compiled once per instruction set and type. */
#include <string.h>

#include "backends/direct/padded_rows.h"
#include "filter.h"

/* Packs elements `first` to `end` of a tap, w, for VECTOR outputs; dst has the row pitch of a
 * panel. */
static void pack_vector(const gemm *p, const real *w, ptrdiff_t first, ptrdiff_t end,
                        ptrdiff_t output, real *dst, ptrdiff_t pitch)
{
    const ptrdiff_t n = min(p->dst.c - output, VECTOR);
    for (ptrdiff_t c = first; c < end; c++, dst += pitch) {
        const real *src = p->is_turned ? w + output * p->src.c + c : w + c * p->dst.c + output;
        if (p->is_turned)
            for (ptrdiff_t i = 0; i < n; i++)
                dst[i] = src[i * p->src.c];
        else if (n == VECTOR)
            *(vector *)dst = *(const vector *)src;
        else
            memcpy(dst, src, (size_t)n * sizeof *dst);
        memset(dst + n, 0, (size_t)(VECTOR - n) * sizeof *dst);
    }
}

/* Packs a tap, whose elements begin at the pass's `element`. */
static void pack_tap(const gemm *p, const gemm_pass *a, const real *w, ptrdiff_t element,
                     ptrdiff_t first, ptrdiff_t end, real *dst)
{
    for (ptrdiff_t i = 0; i < gemm_panels(p); i++) {
        const gemm_panel panel = gemm_panel_at(p, i);
        const ptrdiff_t pitch = (panel.end - panel.first) * VECTOR;
        const ptrdiff_t packed = gemm_packed_at(p, a, panel);
        real *at = dst + packed + (element + first) * pitch;
        if (packed < 0)
            continue;
        for (ptrdiff_t v = panel.first; v < panel.end; v++, at += VECTOR)
            pack_vector(p, w, first, end, v * VECTOR, at, pitch);
    }
}

/* Packs the elements of a pass's taps that are in the job's range, counted from `index`. */
static void pack_pass(const adj_call *call, const gemm_pass *a, ptrdiff_t index, ptrdiff_t first,
                      ptrdiff_t end)
{
    const gemm *p = call->state;
    real *dst = direct_scratch(call, a->filter);
    ptrdiff_t element = 0;
    for (ptrdiff_t i = 0; i < a->h.taps; i++)
        for (ptrdiff_t j = 0; j < a->w.taps; j++, element += p->src.c) {
            const ptrdiff_t row = a->h.filter + i * a->h.forward;
            const ptrdiff_t column = a->w.filter + j * a->w.forward;
            const real *w = (const real *)call->in[p->filter.in] +
                            (row * p->filter.kw + column) * p->src.c * p->dst.c;
            const conv_range some = {max(first - index - element, 0),
                                     min(end - index - element, p->src.c)};
            if (some.first < some.end)
                pack_tap(p, a, w, element, some.first, some.end, dst);
        }
}

int TYPED(gemm_prepare_filter)(const adj_call *call, ptrdiff_t job)
{
    const gemm *p = call->state;
    const ptrdiff_t n = p->filter.kh * p->filter.kw * p->src.c;
    const ptrdiff_t first = n * job / p->filter.jobs, end = n * (job + 1) / p->filter.jobs;
    const int has_zeros = p->has_margin || p->is_gathered;
    ptrdiff_t index = 0;
    for (int i = 0; i < p->n_pass; i++) {
        const gemm_pass *a = &p->pass[i];
        pack_pass(call, a, index, first, end);
        index += a->elements;
    }
    return !has_zeros || are_finite((const real *)call->in[p->filter.in] + first * p->dst.c,
                                    (end - first) * p->dst.c);
}
