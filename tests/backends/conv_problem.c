/* conv_problem.c - see conv_problem.h. */
#include "tests/backends/conv_problem.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

test_backend direct_open_isa(const char *isa, int threads)
{
    setenv("ADJOINT_MAX_ISA", isa, 1);
    return backend_open_for("direct", threads);
}

static double rounded(adj_dtype dtype, double v)
{
    char stored[8];
    adj_store(dtype, stored, 0, v);
    return adj_load(dtype, stored, 0);
}

static void set_results(conv_problem *p, const oracle_sizes *s, adj_node *x, adj_node *w,
                        adj_node *dy)
{
    if (s->a.depthwise) {
        p->result[ORACLE_Y] = adj_depthwise_conv2d_native(x, w, &s->attrs);
        p->result[ORACLE_DX] = adj_depthwise_conv2d_native_backprop_input(s->x, w, dy, &s->attrs);
        p->result[ORACLE_DW] = adj_depthwise_conv2d_native_backprop_filter(x, s->w, dy, &s->attrs);
    } else {
        p->result[ORACLE_Y] = adj_conv2d(x, w, &s->attrs);
        p->result[ORACLE_DX] = adj_conv2d_backprop_input(s->x, w, dy, &s->attrs);
        p->result[ORACLE_DW] = adj_conv2d_backprop_filter(x, s->w, dy, &s->attrs);
    }
}

conv_problem conv_problem_new(oracle_conv row, adj_dtype dtype)
{
    oracle_sizes s = oracle_sizes_of(row);
    conv_problem p = {.f = fixture_new()};
    adj_node *x = given_integers(&p.f, dtype, s.x, -3, 3);
    adj_node *w = given_integers(&p.f, dtype, s.w, -2, 2);
    adj_node *dy = given_integers(&p.f, dtype, s.y, -3, 3);
    set_results(&p, &s, x, w, dy);
    for (int k = 0; k < 3; k++) {
        cr_assert_not_null(p.result[k], "%s", adj_graph_message(p.f.g));
        p.n[k] = adj_shape_elems(p.result[k]->type.shape);
        p.want[k] =
            oracle_convolve(&s, (enum oracle_result)k, p.f.value[0], p.f.value[1], p.f.value[2]);
        for (int64_t i = 0; i < p.n[k]; i++)
            p.want[k][i] = rounded(dtype, p.want[k][i]);
    }
    const oracle_conv *a = &s.a;
    snprintf(p.text, sizeof p.text,
             "%s n%d %dx%d c%d k%dx%d ->%d s%dx%d d%dx%d padding %d (%d %d %d %d)",
             adj_dtype_name(dtype), a->n, a->h, a->w, a->c, a->kh, a->kw, a->last, a->sh, a->sw,
             a->dh, a->dw, (int)a->padding, a->pad[0], a->pad[1], a->pad[2], a->pad[3]);
    return p;
}

void conv_problem_free(conv_problem *p)
{
    for (int k = 0; k < 3; k++)
        free(p->want[k]);
    fixture_free(&p->f);
}

int expect_exact(conv_problem *p, const test_backend *t, int direction, const char *isa)
{
    int candidate = 0;
    for (; p->n[direction] > 0; candidate++) {
        const adj_node *node = p->result[direction];
        outcome o = run_candidate(&p->f, t, 1, &node, candidate);
        if (o.status == ADJ_ENOKERNEL)
            break;
        cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
        cr_assert_not_null(strstr(o.impl, isa), "%s", o.impl);
        for (int64_t i = 0; i < p->n[direction]; i++)
            cr_assert(o.y[i] == p->want[direction][i], "%s %s %s: [%ld] is %g, not %g", o.impl,
                      node->op->name, p->text, (long)i, o.y[i], p->want[direction][i]);
        free(o.y);
    }
    return candidate;
}

void expect_same_bits_for_any_threads(fixture *f, const adj_node *y, const char *isa)
{
    const size_t bytes = (size_t)adj_shape_elems(y->type.shape) * sizeof(double);
    double *want = NULL;
    for (int threads = 1; threads <= 8; threads++) {
        test_backend t = direct_open_isa(isa, threads);
        outcome o = run_candidate(f, &t, 1, &y, 0);
        cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
        if (want == NULL)
            want = o.y;
        else {
            cr_assert(memcmp(want, o.y, bytes) == 0, "%d threads", threads);
            free(o.y);
        }
        backend_close(&t);
    }
    free(want);
}
