/* matmul.c - y[i][j] = sum of a(i, k) * b(k, j) over k, where a and b may be transposed. */
#include "block.h"

void write_matmul(function *f)
{
    text *t = &f->t;
    const adj_matmul_attrs *m = f->root->attrs;
    const adj_shape s = f->root->type.shape, a = f->root->in[0]->type.shape;
    const int64_t rows = s.dim[0], columns = s.dim[1], inner = a.dim[m->transpose_a ? 0 : 1];
    const expression a_at = m->transpose_a ? index_of(2, (axis[]){{"k", inner}, {"i", rows}})
                                           : index_of(2, (axis[]){{"i", rows}, {"k", inner}});
    if (m->transpose_b) { /* rows of both are contiguous */
        const int braces = put_loop_unless_one(t, "i", rows);
        put_loop(t, "j", columns);
        put_sum(f);
        const int sums = put_loop_unless_one(t, "k", inner);
        const expression a_of = expr("%s[%s]", operand_name(f, 0), a_at.s);
        const expression b_of = weight_at(f, index_of(2, (axis[]){{"j", columns}, {"k", inner}}).s);
        put(t, "sum += %s;", product_of(f, a_of.s, b_of.s).s);
        put_end(t, sums);
        put_result(f, with_scale(f, "sum", "j").s,
                   index_of(2, (axis[]){{"i", rows}, {"j", columns}}).s, "j");
        put_end(t, braces + 1);
        return;
    }
    const adj_conv_geom g = {.n = 1,
                             .ih = 1,
                             .iw = rows,
                             .ic = inner,
                             .kh = 1,
                             .kw = 1,
                             .oc = columns,
                             .oh = 1,
                             .ow = rows,
                             .sh = 1,
                             .sw = 1,
                             .dh = 1,
                             .dw = 1,
                             .groups = 1};
    put_convolution(f, &(convolution){.geom = g,
                                      .pixel = m->transpose_a ? 1 : inner,
                                      .channel = m->transpose_a ? rows : 1,
                                      .variable = "i",
                                      .inner = "k",
                                      .lane = "j"});
}
