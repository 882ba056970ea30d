/* save_shapes.c - shapes in an ONNX file: where the batch, which is symbolic there, is in each
 * value; and the ops that move, repeat and join elements.
 *
 * The batch begins as the first axis of the inputs. Reshape and transpose may move it to another
 * axis, or make it a factor of one. A value has the number of elements `outer` that precede it: of
 * [3, batch, 8] outer is 3. Reshape keeps it. */
#include "save.h"
#include "shared.h"

/* Returns the axis of which the batch is a factor, where `outer` elements precede it; else -1. */
static int axis_at(const writer *w, const adj_shape *s, int64_t outer)
{
    int64_t before = 1;
    for (int i = 0; i < s->rank && outer > 0 && outer % before == 0; before *= s->dim[i++])
        if (s->dim[i] > 0 && s->dim[i] % (outer / before * w->batch) == 0)
            return i;
    return -1;
}

int batch_axis(const writer *w, const adj_node *n)
{
    const adj_shape s = dims(n);
    return axis_at(w, &s, w->of[n->id].outer);
}

/* Returns the axis of a matrix product that was this axis of an operand; -1 if it is summed over.
 */
static int product_axis(const adj_node *n, const adj_node *x, int axis)
{
    const adj_matmul_attrs *a = n->attrs;
    const int is_left = x == n->in[0];
    const int kept = is_left ? a->transpose_a != 0 : a->transpose_b == 0;
    return axis != kept ? -1 : is_left ? 0 : 1;
}

/* Returns the axis of n's result that was this axis of operand x; -1 if there is none. */
static int result_axis(const adj_node *n, const adj_node *x, int axis)
{
    const int shift = (int)(dims(n).rank - dims(x).rank);
    int64_t gone = 0;
    if (n->op == &adj_op_transpose) {
        const adj_transpose_attrs *a = n->attrs;
        for (int i = 0; i < dims(n).rank; i++)
            if (a->perm[i] == axis)
                return i;
    }
    if (n->op == &adj_op_matmul)
        return product_axis(n, x, axis);
    if (n->op == &adj_op_reduce_sum || n->op == &adj_op_reduce_mean || n->op == &adj_op_reduce_max)
        gone = ((const adj_reduce_attrs *)n->attrs)->axes;
    else if (n->op == &adj_op_argmax)
        gone = (int64_t)1 << ((const adj_axis_attrs *)n->attrs)->axis;
    else
        return axis + shift;
    int to = axis;
    for (int i = 0; shift < 0 && i < axis; i++)
        to -= (int)(gone >> i & 1);
    return gone >> axis & 1 ? -1 : to;
}

/* Returns how many elements of n's value precede the batch; 0 without one. */
static int64_t outer_of(const writer *w, const adj_node *n)
{
    const adj_shape s = dims(n);
    if (n->op == &adj_op_input || n->op == &adj_op_broadcast_to) {
        if (s.rank > 0 && s.dim[0] == w->batch && (n->n_in == 0 || w->of[n->in[0]->id].outer == 0))
            return 1;
    }
    const adj_node *of[2];
    if (products_of(n, of))
        return w->of[of[0]->id].outer;
    for (int i = 0; i < n->n_in; i++) {
        const adj_shape from = dims(n->in[i]);
        const int64_t outer = w->of[n->in[i]->id].outer;
        const int axis = axis_at(w, &from, outer);
        if (axis < 0)
            continue;
        if (n->op == &adj_op_reshape)
            return outer;
        const int to = result_axis(n, n->in[i], axis);
        return to < 0 || to >= s.rank ? 0 : outer / product(&from, 0, axis) * product(&s, 0, to);
    }
    return 0;
}

void find_batch(writer *w)
{
    for (int id = 0; w->batch > 0 && id < adj_graph_node_count(w->g); id++)
        w->of[id].outer = outer_of(w, adj_graph_node_at(w->g, id));
}

/* Returns an operand of n that stands beside the batch and has its size without being computed from
 * it, such as a constant [batch, 8]; NULL if there is none. */
static const adj_node *operand_of_one_batch(const writer *w, const adj_node *n)
{
    const int axis = batch_axis(w, n);
    double value;
    for (int i = 0; i < n->n_in && axis >= 0; i++) {
        const adj_shape from = dims(n->in[i]);
        const int k = axis - (int)(dims(n).rank - from.rank);
        if (k >= 0 && from.dim[k] > 1 && from.dim[k] == dims(n).dim[axis] &&
            batch_axis(w, n->in[i]) < 0 && !adj_is_fill(n->in[i], &value))
            return n->in[i];
    }
    return NULL;
}

void check_batch(writer *w, const adj_node *n)
{
    const adj_node *x = operand_of_one_batch(w, n);
    if (x != NULL)
        writer_fail(
            w, ADJ_EARG,
            "adj_onnx_save: %s \"%s\" (node %u) cannot be saved: \"%s\" (node %u) has the "
            "size of the batch, so that no other batch is possible; set ADJ_ONNX_FIXED_BATCH",
            n->op->name, adj_node_name(n), n->id, adj_node_name(x), x->id);
}

const char *sizes(writer *w, const adj_node *n)
{
    adj_shape s = dims(n);
    const int axis = batch_axis(w, n);
    if (axis >= 0 && adj_shape_elems(s) > 0)
        s.dim[axis] = -1;
    return ints(w, (int)s.rank, s.dim);
}

/* Returns the first input with the batch, or NULL if there is none. */
static const adj_node *batched_input(const writer *w)
{
    for (int id = 0; id < adj_graph_node_count(w->g); id++) {
        const adj_node *x = adj_graph_node_at(w->g, id);
        if (w->of[id].readers > 0 && x->op == &adj_op_input && w->of[id].outer == 1)
            return x;
    }
    return NULL;
}

const char *batch_sizes(writer *w, const adj_node *n, adj_shape s)
{
    const adj_node *x = batch_axis(w, n) == 0 && s.dim[0] > 1 ? batched_input(w) : NULL;
    if (x == NULL)
        return ints(w, (int)s.rank, s.dim);
    const char *batch = fresh_name(w), *first = batch, *all = fresh_name(w);
    Onnx__NodeProto *p = emit1(w, "Shape", plain(w, x), batch);
    set_int(w, p, "start", 0);
    set_int(w, p, "end", 1);
    if (s.dim[0] != w->batch)
        emit2(w, "Mul", batch, ints(w, 1, (int64_t[]){s.dim[0] / w->batch}), first = fresh_name(w));
    p = emit2(w, "Concat", first, ints(w, (int)s.rank - 1, s.dim + 1), all);
    set_int(w, p, "axis", 0);
    return all;
}

/* ---- ops ---- */

void save_reshape(writer *w, const adj_node *n)
{
    emit2(w, "Reshape", plain(w, n->in[0]), sizes(w, n), result(w, n, 0));
}

void save_transpose(writer *w, const adj_node *n)
{
    const adj_transpose_attrs *a = n->attrs;
    Onnx__NodeProto *p = emit1(w, "Transpose", plain(w, n->in[0]), result(w, n, 0));
    set_ints(w, p, "perm", (int)dims(n).rank, a->perm);
}

static void pad(writer *w, const adj_node *n, const adj_node *x, const adj_range_attrs *by,
                const char *with)
{
    const int form = is_turned(w, x), rank = (int)dims(n).rank;
    int64_t list[2 * ADJ_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        const int64_t to = form ? turned_axis(i) : i;
        list[to] = by->a.dim[i];
        list[rank + to] = by->b.dim[i];
    }
    const char *in[] = {in_form(w, x, form), ints(w, 2 * rank, list), with, NULL};
    emit(w, "Pad", in, result(w, n, form));
}

void save_pad(writer *w, const adj_node *n) { pad(w, n, n->in[0], n->attrs, NULL); }

/* Returns the one operand of a concatenation that is not filled with *value, and how much is before
 * and after it; NULL if there is another number of those. */
static const adj_node *padded_operand(const adj_node *n, int64_t axis, adj_range_attrs *by,
                                      double *value)
{
    const adj_node *x = NULL;
    double v = 0;
    int n_fill = 0;
    for (int i = 0; i < n->n_in; i++) {
        if (!adj_is_fill(n->in[i], &v)) {
            if (x != NULL)
                return NULL;
            x = n->in[i];
        } else if (n_fill++ > 0 && v != *value) {
            return NULL;
        } else {
            *value = v;
            (x == NULL ? &by->a : &by->b)->dim[axis] += dims(n->in[i]).dim[axis];
        }
    }
    return n_fill > 0 ? x : NULL;
}

void save_concat(writer *w, const adj_node *n)
{
    const int64_t axis = ((const adj_axis_attrs *)n->attrs)->axis;
    adj_range_attrs by = {0};
    double value = 0;
    const adj_node *of[2];
    if (products_of(n, of)) {
        const char *all = fresh_name(w);
        emit2(w, "MatMul", plain(w, of[0]), plain(w, of[1]), all);
        emit2(w, "Reshape", all, sizes(w, n), result(w, n, 0));
        return;
    }
    const adj_node *x = padded_operand(n, axis, &by, &value);
    if (x != NULL) {
        pad(w, n, x, &by, number(w, n, value));
        return;
    }
    check_batch(w, n);
    int form = dims(n).rank == 4;
    for (int i = 0; i < n->n_in; i++)
        form &= is_turned(w, n->in[i]) || n->in[i]->op == &adj_op_fill;
    const char **in = writer_alloc(w, n->n_in + 1, sizeof *in);
    for (int i = 0; in != NULL && i < n->n_in; i++)
        in[i] = in_form(w, n->in[i], form);
    Onnx__NodeProto *p = in != NULL ? emit(w, "Concat", in, result(w, n, form)) : NULL;
    set_int(w, p, "axis", form ? turned_axis(axis) : axis);
}

void save_slice(writer *w, const adj_node *n)
{
    const adj_range_attrs *a = n->attrs;
    const adj_shape from = dims(n->in[0]);
    const int form = is_turned(w, n->in[0]);
    int64_t starts[ADJ_MAX_RANK], ends[ADJ_MAX_RANK], axes[ADJ_MAX_RANK];
    int count = 0;
    for (int i = 0; i < from.rank; i++) {
        if (a->a.dim[i] == 0 && a->b.dim[i] == from.dim[i])
            continue;
        if (i == batch_axis(w, n->in[0]))
            cannot_save(w, n, "it takes a part of the batch; save it with a fixed batch");
        starts[count] = a->a.dim[i];
        ends[count] = a->a.dim[i] + a->b.dim[i];
        axes[count++] = form ? turned_axis(i) : i;
    }
    const char *in[] = {in_form(w, n->in[0], form), ints(w, count, starts), ints(w, count, ends),
                        ints(w, count, axes), NULL};
    emit(w, "Slice", in, result(w, n, form));
}

/* Sizes that are the operand's own are 1 in Expand. */
void save_broadcast(writer *w, const adj_node *n)
{
    adj_shape to = dims(n);
    const adj_shape from = dims(n->in[0]);
    for (int64_t i = to.rank - 1, k = from.rank - 1; k >= 0; i--, k--)
        if (from.dim[k] == to.dim[i])
            to.dim[i] = 1;
    emit2(w, "Expand", plain(w, n->in[0]), batch_sizes(w, n, to), result(w, n, 0));
}
