/* move.c - functions that copy elements: pad, slice, transpose, concat, broadcast_to. */
#include "emit.h"

/* A box of elements: sizes, and for operand and result the step along each axis and the offset of
 * the first element. */
typedef struct {
    int64_t rank, dim[ADJ_MAX_RANK];
    int64_t from[ADJ_MAX_RANK], to[ADJ_MAX_RANK];
    int64_t from_first, to_first;
} box;

static void steps_of(adj_shape s, int64_t step[ADJ_MAX_RANK])
{
    int64_t next = 1;
    for (int64_t d = s.rank - 1; d >= 0; d--) {
        step[d] = next;
        next *= s.dim[d];
    }
}

static int64_t offset_of(adj_shape at, const int64_t step[ADJ_MAX_RANK])
{
    int64_t offset = 0;
    for (int64_t d = 0; d < at.rank; d++)
        offset += at.dim[d] * step[d];
    return offset;
}

/* Leaves out axes of one element and takes together those that both sides cross in one stride. */
static box merged(const box *b)
{
    box m = {.from_first = b->from_first, .to_first = b->to_first};
    for (int64_t d = 0; d < b->rank; d++) {
        const int64_t last = m.rank - 1;
        if (b->dim[d] == 1)
            continue;
        if (m.rank > 0 && m.from[last] == b->dim[d] * b->from[d] &&
            m.to[last] == b->dim[d] * b->to[d]) {
            m.dim[last] *= b->dim[d];
            m.from[last] = b->from[d];
            m.to[last] = b->to[d];
            continue;
        }
        m.dim[m.rank] = b->dim[d];
        m.from[m.rank] = b->from[d];
        m.to[m.rank++] = b->to[d];
    }
    return m;
}

static expression at(const box *b, const int64_t step[], int64_t first)
{
    expression e = expr("0");
    for (int64_t d = 0; d < b->rank; d++)
        if (step[d] != 0)
            e = plus(e.s, times(axis_loop[d], step[d]).s);
    return plus(e.s, expr("%lld", (long long)first).s);
}

static void put_copy(function *f, const char *x, const box *b)
{
    const box m = merged(b);
    for (int64_t d = 0; d < m.rank; d++)
        put_loop(&f->t, axis_loop[d], m.dim[d]);
    put(&f->t, "%s[%s] = %s[%s];", f->result, at(&m, m.to, m.to_first).s, x,
        at(&m, m.from, m.from_first).s);
    put_end(&f->t, (int)m.rank);
}

/* Returns a box of that shape, from the first element of operand x and of result y on. */
static box box_of(adj_shape s, adj_shape x, adj_shape y)
{
    box b = {.rank = s.rank};
    for (int64_t d = 0; d < s.rank; d++)
        b.dim[d] = s.dim[d];
    steps_of(x, b.from);
    steps_of(y, b.to);
    return b;
}

void write_pad(function *f)
{
    const adj_range_attrs *r = f->root->attrs;
    const adj_shape x = f->root->in[0]->type.shape;
    box b = box_of(x, x, f->root->type.shape);
    b.to_first = offset_of(r->a, b.to);
    put_filled(f, 0);
    put_copy(f, operand_name(f, 0), &b);
}

void write_slice(function *f)
{
    const adj_range_attrs *r = f->root->attrs;
    const adj_shape y = f->root->type.shape;
    box b = box_of(y, f->root->in[0]->type.shape, y);
    b.from_first = offset_of(r->a, b.from);
    put_copy(f, operand_name(f, 0), &b);
}

void write_transpose(function *f)
{
    const adj_transpose_attrs *p = f->root->attrs;
    const adj_shape y = f->root->type.shape;
    const box in_order = box_of(y, f->root->in[0]->type.shape, y);
    box b = in_order;
    for (int64_t d = 0; d < b.rank; d++)
        b.from[d] = in_order.from[p->perm[d]];
    put_copy(f, operand_name(f, 0), &b);
}

void write_concat(function *f)
{
    const int64_t axis = ((const adj_axis_attrs *)f->root->attrs)->axis;
    int64_t first = 0;
    for (int i = 0; i < f->root->n_in; i++) {
        const adj_shape x = f->root->in[i]->type.shape;
        box b = box_of(x, x, f->root->type.shape);
        b.to_first = first * b.to[axis];
        put_copy(f, operand_name(f, i), &b);
        first += x.dim[axis];
    }
}

void write_broadcast_to(function *f)
{
    const adj_shape x = f->root->in[0]->type.shape, y = f->root->type.shape;
    const box in_order = box_of(y, x, y);
    box b = in_order;
    for (int64_t d = 0, k = x.rank - y.rank; d < y.rank; d++, k++)
        b.from[d] = k < 0 || x.dim[k] == 1 ? 0 : in_order.from[k];
    put_copy(f, operand_name(f, 0), &b);
}
