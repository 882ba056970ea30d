/* matmul.c - y[i][j] = sum of a(i, k) * b(k, j) over k, where a and b may be transposed. */
#include "emit.h"

void write_matmul(function *f)
{
    text *t = &f->t;
    const adj_matmul_attrs *m = f->root->attrs;
    const adj_shape s = f->root->type.shape, a = f->root->in[0]->type.shape;
    const int64_t rows = s.dim[0], columns = s.dim[1], inner = a.dim[m->transpose_a ? 0 : 1];
    const expression a_at = m->transpose_a ? index_of(2, (axis[]){{"k", inner}, {"i", rows}})
                                           : index_of(2, (axis[]){{"i", rows}, {"k", inner}});
    int braces = put_loop_unless_one(t, "i", rows);
    if (m->transpose_b) { /* rows of both are contiguous */
        put_loop(t, "j", columns);
        put(t, "float sum = 0.0f;");
        const int sums = put_loop_unless_one(t, "k", inner);
        put(t, "sum += %s[%s] * %s[%s];", operand_name(f, 0), a_at.s, operand_name(f, 1),
            index_of(2, (axis[]){{"j", columns}, {"k", inner}}).s);
        put_end(t, sums);
        put_result(f, "sum", index_of(2, (axis[]){{"i", rows}, {"j", columns}}).s, "j");
        put_end(t, braces + 1);
        return;
    }
    int64_t room;
    expression first, count;
    braces += put_blocks(t, "j0", columns, &room, &first, &count);
    put(t, "float sum[%lld] = {0};", (long long)room);
    const int sums = put_loop_unless_one(t, "k", inner);
    put_loop_to(t, "j", count.s);
    put(t, "sum[j] += %s[%s] * %s[%s];", operand_name(f, 0), a_at.s, operand_name(f, 1),
        plus(index_of(2, (axis[]){{"k", inner}, {first.s, columns}}).s, "j").s);
    put_end(t, sums + 1);
    put_loop_to(t, "j", count.s);
    put_result(f, "sum[j]", plus(index_of(2, (axis[]){{"i", rows}, {first.s, columns}}).s, "j").s,
               plus(first.s, "j").s);
    put_end(t, braces + 1);
}
