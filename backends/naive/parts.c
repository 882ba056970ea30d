/* parts.c - runs elementwise kernels: the result is computed in parts of contiguous elements
 * from contiguous operands, so that a kernel is one simple loop.
 *
 * An operand that repeats one element along a part (broadcasting) is copied to a block first.
 * The result may share operand 0's buffer: element i of a part is read before it is written. */
#include "kernels.h"
#include "walk.h"

enum { PART = 1024 };

/* Returns the axes of y, with the steps of its operands, at most two. */
static walk broadcast_walk(const adj_node *y)
{
    walk w = walk_new();
    int64_t elems[2] = {1, 1};

    for (int64_t d = y->type.shape.rank - 1; d >= 0; d--) {
        int64_t step[2] = {0, 0};
        for (int k = 0; k < y->n_in && k < 2; k++) {
            adj_shape x = y->in[k]->type.shape;
            int64_t axis = d - (y->type.shape.rank - x.rank);
            if (axis < 0 || x.dim[axis] == 1)
                continue;
            step[k] = elems[k];
            elems[k] *= x.dim[axis];
        }
        walk_add(&w, y->type.shape.dim[d], step[0], step[1]);
    }
    return w;
}

/* Returns n elements of x from offset on, or a block of one element n times. */
static const T *spread(const T *x, int64_t step, int64_t n, T block[PART])
{
    if (step != 0)
        return x;
    for (int64_t i = 0; i < n; i++)
        block[i] = x[0];
    return block;
}

adj_status KERNEL(for_parts)(const adj_call *c, naive_each *each)
{
    const adj_node *node = c->group->node[0];
    const T *a = operand(c, 0), *b = node->n_in > 1 ? operand(c, 1) : NULL;
    T *y = c->out[0];
    walk w = broadcast_walk(node);
    int64_t row_parts = (w.dim[0] + PART - 1) / PART, rows = walk_rows(&w, 1);

#pragma omp parallel for if (rows * w.dim[0] >= NAIVE_PARALLEL)
    for (int64_t u = 0; u < rows * row_parts; u++) {
        T blocks[2][PART];
        int64_t row = u / row_parts, first = u % row_parts * PART, from[2];
        int64_t n = w.dim[0] - first < PART ? w.dim[0] - first : PART;
        walk_offset(&w, 1, row, from);
        part p = {.y = y + row * w.dim[0] + first, .n = n, .attrs = node->attrs};
        p.a = spread(a + from[0] + first * w.step[0][0], w.step[0][0], n, blocks[0]);
        if (b != NULL)
            p.b = spread(b + from[1] + first * w.step[1][0], w.step[1][0], n, blocks[1]);
        each(&p);
    }
    return ADJ_OK;
}
