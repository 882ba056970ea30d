/* conv_problem.c - see conv_problem.h. */
#include "graph/op.h"
#include "tests/conv_problem.h"

#include <criterion/criterion.h>
#include <stdlib.h>

int draw(uint32_t *counter, int lo, int hi)
{
    uint32_t word[4];
    adj_philox((uint32_t[]){(*counter)++, 0, 0, 0}, (uint32_t[]){3, 4}, word);
    return lo + (int)(word[0] % (uint32_t)(hi - lo + 1));
}

oracle_conv draw_sizes(const oracle_conv *most, uint32_t *counter)
{
    oracle_conv a = *most;
    int *const field[] = {&a.n,    &a.h,  &a.w,  &a.c,  &a.kh, &a.kw,
                          &a.last, &a.sh, &a.sw, &a.dh, &a.dw};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        *field[i] = *field[i] > 0 ? draw(counter, 1, *field[i]) : 0;
    return a;
}

void draw_padding(oracle_conv *a, uint32_t *counter)
{
    a->padding = draw(counter, 0, 1) ? ADJ_SAME : ADJ_EXPLICIT;
    for (int i = 0; i < 4; i++)
        a->pad[i] = draw(counter, 0, 4);
    int reach_h = (a->kh - 1) * (a->dh > 0 ? a->dh : 1) + 1;
    int reach_w = (a->kw - 1) * (a->dw > 0 ? a->dw : 1) + 1;
    int short_h = reach_h - a->h - a->pad[0] - a->pad[1];
    int short_w = reach_w - a->w - a->pad[2] - a->pad[3];
    a->pad[1] += short_h > 0 ? short_h : 0;
    a->pad[3] += short_w > 0 ? short_w : 0;
}

static adj_node *filled(fixture *f, adj_dtype dtype, adj_shape shape, conv_fill fill, int integer)
{
    return fill == INTEGERS ? given_integers(f, dtype, shape, -integer, integer)
                            : given_random(f, dtype, shape, fill == REALS ? -1 : 0, 1);
}

static void set_results(conv_problem *p, adj_node *x, adj_node *w, adj_node *dy)
{
    const oracle_sizes *s = &p->s;
    const adj_conv *a = &s->attrs;
    if (s->a.depthwise) {
        p->result[ORACLE_Y] = adj_depthwise_conv2d_native(x, w, a);
        p->result[ORACLE_DX] = adj_depthwise_conv2d_native_backprop_input(s->x, w, dy, a);
        p->result[ORACLE_DW] = adj_depthwise_conv2d_native_backprop_filter(x, s->w, dy, a);
    } else {
        p->result[ORACLE_Y] = adj_conv2d(x, w, a);
        p->result[ORACLE_DX] = adj_conv2d_backprop_input(s->x, w, dy, a);
        p->result[ORACLE_DW] = adj_conv2d_backprop_filter(x, s->w, dy, a);
    }
    for (int k = 0; k < 3; k++) {
        cr_assert_not_null(p->result[k], "%s", adj_graph_message(p->f.g));
        p->n[k] = adj_shape_elems(p->result[k]->type.shape);
    }
}

conv_problem conv_problem_new(oracle_conv row, adj_dtype dtype, conv_fill fill)
{
    conv_problem p = {.f = fixture_new(), .s = oracle_sizes_of(row)};
    adj_node *x = filled(&p.f, dtype, p.s.x, fill, 3), *w = filled(&p.f, dtype, p.s.w, fill, 2);
    set_results(&p, x, w, filled(&p.f, dtype, p.s.y, fill, 3));
    const oracle_conv *a = &p.s.a;
    snprintf(p.text, sizeof p.text,
             "%s %s%s n%d %dx%d c%d (%d) k%dx%d ->%d s%dx%d d%dx%d padding %d (%d %d %d %d)",
             adj_dtype_name(dtype), a->format == ADJ_NCHW ? "NCHW" : "NHWC",
             a->depthwise ? " depthwise" : "", a->n, a->h, a->w, a->c, a->in, a->kh, a->kw, a->last,
             a->sh, a->sw, a->dh, a->dw, (int)a->padding, a->pad[0], a->pad[1], a->pad[2],
             a->pad[3]);
    return p;
}

double *conv_problem_exact(const conv_problem *p, int result)
{
    double *const *v = p->f.value;
    return oracle_convolve(&p->s, (enum oracle_result)result, v[0], v[1], v[2]);
}

void conv_problem_solve(conv_problem *p)
{
    for (int k = 0; k < 3; k++) {
        const adj_dtype dtype = p->result[k]->type.dtype;
        p->want[k] = conv_problem_exact(p, k);
        for (int64_t i = 0; i < p->n[k]; i++)
            p->want[k][i] = as_stored(dtype, p->want[k][i]);
    }
}

void conv_problem_free(conv_problem *p)
{
    for (int k = 0; k < 3; k++)
        free(p->want[k]);
    fixture_free(&p->f);
}
