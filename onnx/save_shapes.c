/* save_shapes.c - how the ops that move, repeat and join elements stand in an ONNX file. */
#include "graph/op.h"
#include "save.h"

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
static const adj_node *padded(const adj_node *n, int64_t axis, adj_range_attrs *by, double *value)
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
    const adj_node *x = padded(n, axis, &by, &value);
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
