/* repeat.c - is a gradient the same when it is computed again, and by one thread?
 *
 * Again must give the same bits: what does not is wrong, however small the difference. The number
 * of threads may change the order of sums; by how much is reported only. Both are asked with
 * numbers that sums round: integers hide their order. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

/* A float's place in the order of all its type's, from its bits: sign and magnitude. */
static double place(adj_dtype dtype, double v)
{
    unsigned char bytes[8] = {0};
    uint64_t bits = 0;
    size_t size = adj_dtype_size(dtype);
    adj_store(dtype, bytes, 0, v);
    memcpy(&bits, bytes, sizeof bits);
    uint64_t sign = (uint64_t)1 << (8 * size - 1);
    return bits & sign ? -(double)(bits & (sign - 1)) : (double)bits;
}

double gradcheck_ulps(adj_dtype dtype, double a, double b)
{
    uint64_t a_bits, b_bits;
    memcpy(&a_bits, &a, sizeof a);
    memcpy(&b_bits, &b, sizeof b);
    if (a_bits == b_bits || a == b)
        return 0;
    return isnan(a) || isnan(b) ? INFINITY : fabs(place(dtype, a) - place(dtype, b));
}

adj_status repeat_backward(subject *s)
{
    adj_status status = gradcheck_run(s, s->tested.backward);
    for (int i = 0; i < s->n_leaf && status == ADJ_OK; i++) {
        if (s->tested.dx[i] == NULL)
            continue;
        status = gradcheck_fetch(s, s->tested.backward, s->tested.dx[i], s->moved);
        if (memcmp(s->moved, s->dx[i], (size_t)leaf_elems(s, i) * sizeof(double)) != 0)
            s->repeats[i] = 0;
    }
    return status;
}

static adj_status run_with_one_thread(subject *s)
{
    adj_gradcheck_info *about = &s->report->about;
    adj_status status = gradcheck_run(s, s->tested.single);
    for (int i = 0; i < s->n_leaf && status == ADJ_OK; i++) {
        const adj_node *dx = s->tested.dx[i];
        if (dx == NULL)
            continue;
        status = gradcheck_fetch(s, s->tested.single, dx, s->moved);
        for (int64_t k = 0, n = leaf_elems(s, i); k < n && status == ADJ_OK; k++)
            about->thread_ulp =
                fmax(about->thread_ulp, gradcheck_ulps(dx->type.dtype, s->moved[k], s->dx[i][k]));
    }
    return status;
}

adj_status repeat_with_reals(subject *s)
{
    draw_values(s, 0, 0);
    adj_status status = backward(s, 1);
    return status == ADJ_OK && s->tested.single != NULL ? run_with_one_thread(s) : status;
}

void judge_repeat(subject *s, int leaf, adj_gradcheck_row *row)
{
    row->repeatable = s->repeats[leaf] != 0;
    s->report->about.repeatable &= row->repeatable;
    if (row->repeatable || row->result == ADJ_GRADCHECK_FAIL)
        return;
    adj_step_info step = step_of(s->tested.backward, s->tested.dx[leaf]);
    row->result = ADJ_GRADCHECK_FAIL;
    row->blame = gradcheck_text(s->report,
                                "not repeatable: the same values gave other bits the second time "
                                "-> fault is in backend %s's kernel for %s (%s)",
                                step.backend, step.op, step.impl);
    row->repro = gradcheck_repro(s);
}
