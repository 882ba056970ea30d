/* rows.c - row kernels over a chunk of a fused group's pass; compiled once per instruction set.
 *
 * A row kernel sums in float. If a column's sum is not finite after a chunk, the chunk is summed
 * again row by row: the row at which the float sum overflows is added in double, and the float
 * sum restarts after it. So the elements added in double depend on the column alone, not on
 * chunks. The summed values still exist, since no result of the group overwrites them. */
#include <math.h>
#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/element.h"
#include "pass.h"
#include "row_kernel.h"

/* Returns the value's elements from `first` of the chunk on, in memory or as floats; NULL if
 * there is no value. */
static char *elements(const pass *s, int value, int is_half, ptrdiff_t first)
{
    if (value < 0)
        return NULL;
    const fused_value *v = &s->p->value[value];
    if (!is_half)
        return (char *)(read_from(s, v) + first);
    const void *half = v->in >= 0 ? s->c->in[v->in] : s->c->out[v->out];
    return (char *)half + (s->first + first) * 2;
}

static void point_to_sums(const pass *s, const row_kernel_plan *plan, row_kernel_args *t)
{
    const fused_node *node = s->p->node;
    int bits = plan->bits;
    if (bits & ROW_SUM)
        t->sum[0] = columns_of(s, &node[plan->node[ROLE_SUM]]).sum[0];
    for (int i = 0; i < row_kernel_sum_pairs(bits); i++) {
        const fused_node *d = &node[plan->node[ROLE_SUMS + i]];
        columns sums = columns_of(s, d);
        t->sum[1 + 2 * i] = sums.sum[0];
        t->sum[2 + 2 * i] = sums.sum[1];
        t->constant[ROW_KERNEL_MEAN + i] =
            bits & ROW_STATS ? sums.sum[2] : fused_tiled(s->p, s->c, d->tiled);
    }
}

static void point_to_constants(const pass *s, const row_kernel_plan *plan, row_kernel_args *t)
{
    int n = 0;
    const int norm = s->p->node[plan->node[ROLE_NORM]].tiled;
    const int grad = s->p->node[plan->node[ROLE_GRAD]].tiled;
    for (; n < 3 && (plan->bits & (ROW_NORM | ROW_NORM_MASK)); n++)
        t->constant[n] = fused_tiled(s->p, s->c, norm + n);
    for (int i = n == 0 ? 0 : 2; i < 4 && (plan->bits & ROW_GRAD); i++)
        t->constant[n++] = fused_tiled(s->p, s->c, grad + i);
}

/* Runs the row kernel over elements first .. first + n of the chunk: whole rows, then the rest. */
static void run_kernel(const pass *s, const row_kernel_plan *plan, ptrdiff_t first, ptrdiff_t n)
{
    row_kernel *half = s->p->half_kernel != NULL ? s->p->half_kernel : DIRECT(row_kernel_bf16);
    row_kernel *kernel = plan->is_half ? half : DIRECT(row_kernel_f32);
    const ptrdiff_t row = s->p->sum_width, rest = n % row;
    row_kernel_args t = {.rows = n / row, .row = row, .width = row, .y_row = row};
    for (int i = 0; i < ROW_KERNEL_OPERANDS; i++)
        t.x[i] = elements(s, plan->x[i], plan->is_half, first);
    t.y = elements(s, plan->y, plan->is_half, first);
    point_to_sums(s, plan, &t);
    point_to_constants(s, plan, &t);
    kernel(&t, plan->bits);
    const ptrdiff_t skipped = (n - rest) * (plan->is_half ? 2 : 4);
    for (int i = 0; i < ROW_KERNEL_OPERANDS; i++)
        t.x[i] = t.x[i] != NULL ? t.x[i] + skipped : NULL;
    t.y = t.y != NULL ? t.y + skipped : NULL;
    t.rows = 1;
    t.width = rest;
    if (rest > 0)
        kernel(&t, plan->bits);
}

/* ---- sums that overflow float ---- */

/* Returns a plan that only computes one role's sums of the values that `plan` has computed. */
static row_kernel_plan plan_of_sum(const row_kernel_plan *plan, row_kernel_role role)
{
    const int is_masked = (plan->bits & (ROW_NORM_MASK | ROW_OUT)) == ROW_NORM_MASK;
    row_kernel_plan alone = *plan;
    alone.y = -1;
    if (plan->bits & ROW_OUT)
        alone.x[0] = plan->y;
    if (role == ROLE_MORE_SUMS) {
        alone.x[3] = plan->x[4];
        alone.node[ROLE_SUMS] = plan->node[ROLE_MORE_SUMS];
    }
    alone.bits = role == ROLE_SUM         ? ROW_SUM
                 : plan->bits & ROW_STATS ? ROW_STATS
                 : is_masked              ? ROW_NORM_MASK | ROW_NORM_SUMS
                                          : ROW_NORM_SUMS;
    return alone;
}

/* True if one of the column's sums overflows float. False once the total is not finite, since it
 * stays so. */
static int has_overflowed(const columns *c, float *const sum[2], ptrdiff_t k)
{
    return !(isfinite(sum[0][k]) && isfinite(sum[1][k])) && isfinite(c->total[0][k]) &&
           isfinite(c->total[1][k]);
}

static int have_overflowed(const columns *c, ptrdiff_t n)
{
    if (are_finite(c->sum[0], 2 * n)) /* both sums are contiguous */
        return 0;
    ptrdiff_t k = 0;
    while (k < n && !has_overflowed(c, c->sum, k))
        k++;
    return k < n;
}

static void copy_sums(const pass *s, float *to, const float *from)
{
    memcpy(to, from, 2 * (size_t)s->p->sum_width * sizeof *to);
}

/* Returns the element at `at` of ROW_SUM's terms, whose float value is v: a product of
 * prelu_grad_slope is computed in double, since it may overflow float. */
static double term_in_double(const pass *s, const row_kernel_plan *plan, ptrdiff_t at, float v)
{
    const fused_group *p = s->p;
    const fused_node *sum = &p->node[plan->node[ROLE_SUM]];
    if (sum->code != FUSED_SUM || sum == p->node || sum[-1].code != FUSED_PRELU_TERM)
        return (double)v;
    const float dy = read_from(s, &p->value[sum[-1].x[0]])[at];
    const float x = read_from(s, &p->value[sum[-1].x[1]])[at];
    return x > 0 ? 0 : (double)dy * (double)x;
}

/* Adds column k's element of a row to its totals; the sums are those of the row alone. */
static void add_in_double(const pass *s, const row_kernel_plan *plan, ptrdiff_t first, ptrdiff_t k,
                          const columns *c)
{
    const fused_node *node = s->p->node;
    if (plan->bits & ROW_SUM) {
        c->total[0][k] += term_in_double(s, plan, first + k, c->sum[0][k]);
        return;
    }
    const int is_of_first = (plan->bits & (ROW_STATS | ROW_NORM_MASK)) != 0;
    const void *at = elements(s, plan->x[is_of_first ? 0 : 3], plan->is_half, first);
    const float x = plan->is_half ? widen_bf16(((const uint16_t *)at)[k]) : ((const float *)at)[k];
    const float *mean = plan->bits & ROW_STATS
                            ? c->sum[2]
                            : fused_tiled(s->p, s->c, node[plan->node[ROLE_SUMS]].tiled);
    const double deviation = (double)x - (double)mean[k];
    const double dy = (double)c->sum[1][k];
    c->total[0][k] += plan->bits & ROW_STATS ? deviation : dy * deviation;
    c->total[1][k] += plan->bits & ROW_STATS ? deviation * deviation : dy;
}

/* Adds the row of n elements from `first` on in double where its float sum overflowed. */
static void mend_row(const pass *s, const row_kernel_plan *plan, ptrdiff_t first, ptrdiff_t n,
                     const columns *c)
{
    const ptrdiff_t width = s->p->sum_width;
    copy_sums(s, c->after[0], c->sum[0]);
    memset(c->sum[0], 0, 2 * (size_t)width * sizeof(float));
    run_kernel(s, plan, first, n);
    for (ptrdiff_t k = 0; k < width; k++) {
        const int is_wide = has_overflowed(c, c->after, k);
        for (int i = 0; i < 2 && is_wide; i++)
            c->total[i][k] += (double)c->before[i][k];
        if (is_wide)
            add_in_double(s, plan, first, k, c);
        for (int i = 0; i < 2; i++)
            c->sum[i][k] = is_wide ? 0 : c->after[i][k];
    }
}

/* Sums the chunk again, row by row, starting from the sums before it. */
static void sum_again(const pass *s, const row_kernel_plan *plan, const columns *c)
{
    const ptrdiff_t width = s->p->sum_width;
    copy_sums(s, c->sum[0], c->before[0]);
    for (ptrdiff_t first = 0; first < s->n; first += width) {
        const ptrdiff_t n = min(width, s->n - first);
        copy_sums(s, c->before[0], c->sum[0]);
        run_kernel(s, plan, first, n);
        if (have_overflowed(c, width))
            mend_row(s, plan, first, n, c);
    }
}

void DIRECT(fused_run_rows)(const pass *s, const row_kernel_plan *plan)
{
    columns sums[ROW_KERNEL_ROLES];
    const int pairs = row_kernel_sum_pairs(plan->bits);
    const row_kernel_role first = plan->bits & ROW_SUM ? ROLE_SUM : ROLE_SUMS;
    const row_kernel_role last = pairs > 0 ? (row_kernel_role)(ROLE_SUM + pairs) : ROLE_SUM;
    for (row_kernel_role r = first; r <= last; r++) {
        sums[r] = columns_of(s, &s->p->node[plan->node[r]]);
        copy_sums(s, sums[r].before[0], sums[r].sum[0]);
    }
    run_kernel(s, plan, 0, s->n);
    for (row_kernel_role r = first; r <= last; r++)
        if (have_overflowed(&sums[r], s->p->sum_width)) {
            const row_kernel_plan alone = plan_of_sum(plan, r);
            sum_again(s, &alone, &sums[r]);
        }
}
