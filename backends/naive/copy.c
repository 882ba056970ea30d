/* copy.c - ops that only move elements, convert them, or set all to one value. i32 has the size of
 * f32 and uses its kernels; a reshape is a view without a kernel. */
#include "kernels.h"
#include "walk.h"

/* Sets to[sum of i_d * step1_d] = from[sum of i_d * step0_d] for every index i of the walk. */
static void copy_box(const walk *w, const T *from, T *to)
{
    int64_t n = w->dim[0], step0 = w->step[0][0], step1 = w->step[1][0], rows = walk_rows(w);

#pragma omp parallel for if (rows * n >= NAIVE_PARALLEL)
    for (int64_t row = 0; row < rows; row++) {
        int64_t offset[WALKED];
        walk_offset(w, row, offset);
        const T *x = from + offset[0];
        T *y = to + offset[1];
        if (step0 == 1 && step1 == 1)
            memcpy(y, x, (size_t)n * sizeof *y);
        else
            for (int64_t i = 0; i < n; i++)
                y[i * step1] = x[i * step0];
    }
}

/* Returns the walk over a box of the given shape at the origin of two row-major tensors. */
static walk box_walk(adj_shape box, adj_shape from, adj_shape to)
{
    walk w = walk_new();
    int64_t step[WALKED] = {1, 1};

    for (int64_t d = box.rank - 1; d >= 0; d--) {
        walk_add(&w, box.dim[d], step);
        step[0] *= from.dim[d];
        step[1] *= to.dim[d];
    }
    return w;
}

/* Returns the offset of index i in a row-major tensor. */
static int64_t index_of(adj_shape i, adj_shape shape)
{
    int64_t offset = 0;
    for (int64_t d = 0; d < shape.rank; d++)
        offset = offset * shape.dim[d] + i.dim[d];
    return offset;
}

/* Copies each operand to its place along the axis. */
adj_status KERNEL(concat)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    int64_t axis = ((const adj_axis_attrs *)y->attrs)->axis;
    adj_shape begin = {.rank = y->type.shape.rank};

    for (int i = 0; i < y->n_in; i++) {
        adj_shape x = y->in[i]->type.shape;
        if (adj_shape_elems(x) > 0) {
            walk w = box_walk(x, x, y->type.shape);
            copy_box(&w, operand(c, i), (T *)c->out[0] + index_of(begin, y->type.shape));
        }
        begin.dim[axis] += x.dim[axis];
    }
    return ADJ_OK;
}

adj_status KERNEL(pad)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_range_attrs *r = y->attrs;
    adj_shape x = y->in[0]->type.shape;

    memset(c->out[0], 0, (size_t)adj_shape_elems(y->type.shape) * sizeof(T));
    if (adj_shape_elems(x) > 0) {
        walk w = box_walk(x, x, y->type.shape);
        copy_box(&w, operand(c, 0), (T *)c->out[0] + index_of(r->a, y->type.shape));
    }
    return ADJ_OK;
}

adj_status KERNEL(slice)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_range_attrs *r = y->attrs;
    adj_shape x = y->in[0]->type.shape;
    walk w = box_walk(y->type.shape, x, y->type.shape);

    copy_box(&w, (const T *)operand(c, 0) + index_of(r->a, x), c->out[0]);
    return ADJ_OK;
}

/* Repeats an axis by a step of 0 along it. */
adj_status KERNEL(broadcast_to)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    adj_shape x = y->in[0]->type.shape, shape = y->type.shape;
    int64_t step[2] = {1, 1};
    walk w = walk_new();

    for (int64_t d = shape.rank - 1; d >= 0; d--) {
        int64_t axis = d - (shape.rank - x.rank), dim = axis < 0 ? 1 : x.dim[axis];
        walk_add(&w, shape.dim[d], (int64_t[WALKED]){dim == 1 ? 0 : step[0], step[1]});
        step[0] *= dim;
        step[1] *= shape.dim[d];
    }
    copy_box(&w, operand(c, 0), c->out[0]);
    return ADJ_OK;
}

/* Sets y[i0, i1, ..] = x[j] with j[perm[d]] = i_d: axis d of y has the step of x's axis perm[d]. */
adj_status KERNEL(transpose)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_transpose_attrs *a = y->attrs;
    adj_shape x = y->in[0]->type.shape;
    int64_t step[ADJ_MAX_RANK], elems = 1;
    walk w = walk_new();

    for (int64_t d = x.rank - 1; d >= 0; d--) {
        step[d] = elems;
        elems *= x.dim[d];
    }
    elems = 1;
    for (int64_t d = x.rank - 1; d >= 0; d--) {
        walk_add(&w, y->type.shape.dim[d], (int64_t[WALKED]){step[a->perm[d]], elems});
        elems *= y->type.shape.dim[d];
    }
    copy_box(&w, operand(c, 0), c->out[0]);
    return ADJ_OK;
}

/* Copies the selected operand. */
adj_status KERNEL(select)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    double cond = adj_load(y->in[0]->type.dtype, operand(c, 0), 0);

    memcpy(c->out[0], operand(c, cond != 0 ? 1 : 2), adj_type_bytes(y->type));
    return ADJ_OK;
}

/* The sum of a group of one process is the process's own value. */
adj_status KERNEL(all_reduce)(const adj_call *c)
{
    const T *x = operand(c, 0);
    T *y = c->out[0];
    if (y != x)
        memcpy(y, x, (size_t)adj_shape_elems(c->group->node[0]->type.shape) * sizeof *y);
    return ADJ_OK;
}

adj_status KERNEL(fill)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_fill_attrs *a = y->attrs;
    int64_t n = adj_shape_elems(y->type.shape);
    T *out = c->out[0], element;

    adj_store(y->type.dtype, &element, 0, a->value); /* st() would round to float first */
    for (int64_t i = 0; i < n; i++)
        out[i] = element;
    return ADJ_OK;
}

/* Compiled for the result's type, or for the operand's if the result is i32. */
adj_status KERNEL(cast)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    adj_dtype from = node->in[0]->type.dtype, to = node->type.dtype;
    const void *x = operand(c, 0);
    void *y = c->out[0];
    int64_t n = adj_shape_elems(node->type.shape);

#pragma omp parallel for if (n >= NAIVE_PARALLEL)
    for (int64_t i = 0; i < n; i++) {
        if (from == ADJ_F32 && to == ELEM_DTYPE) /* float to A is exact, so st() rounds once */
            st(&((T *)y)[i], (A)((const float *)x)[i]);
        else /* through double: A would round f64 twice */
            adj_store(to, y, i, adj_load(from, x, i));
    }
    return ADJ_OK;
}

adj_status KERNEL(next_step)(const adj_call *c)
{
    const int32_t *step = operand(c, 0);
    int32_t *next = c->out[0];
    *next = (int32_t)((uint32_t)*step + 1u);
    return ADJ_OK;
}
