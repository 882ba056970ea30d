/* garden.c - the values of a growing graph: new leaves, and values that suit an operand.
 *
 * Shapes repeat and young values are preferred: so values are read by several ops, one op reads a
 * value and a view of it, results are computed in place, and graphs are deep. */
#include <stdio.h>
#include <string.h>

#include "fuzz/grow.h"

adj_node *keep(garden *t, adj_node *y)
{
    if (y != NULL && t->n < MAX_VALUES && adj_shape_elems(adj_node_type(y).shape) <= MAX_ELEMS)
        t->value[t->n++] = y;
    return y;
}

/* Where to start looking for a value: mostly at a young one, so that graphs become deep. */
static int somewhere(garden *t)
{
    unsigned v = take(&t->in);
    if (t->n == 0)
        return 0;
    return v < 144 ? t->n - 1 - (int)(v % 3) % t->n : (int)v % t->n;
}

adj_node *any_value(garden *t)
{
    return t->n > 0 ? t->value[somewhere(t)] : new_leaf(t, t->dtype, any_shape(t, 2));
}

/* Sizes that fit each other, as one another's views and as operands of one op. */
static adj_shape usual_shape(int64_t rank, int index)
{
    static const int64_t sizes[ADJ_MAX_RANK][4][ADJ_MAX_RANK] = {
        {{8}, {2}, {16}, {4}},
        {{2, 4}, {4, 2}, {2, 8}, {1, 8}},
        {{1, 2, 4}, {2, 2, 2}, {1, 2, 8}, {2, 1, 4}},
        {{1, 2, 2, 2}, {1, 8, 4, 4}, {1, 4, 4, 8}, {2, 16, 3, 2}},
        {{1, 1, 2, 2, 2}, {1, 2, 1, 2, 4}, {2, 1, 2, 2, 1}, {1, 2, 2, 4, 1}},
        {{1, 1, 1, 2, 2, 2}, {2, 1, 2, 1, 2, 1}, {1, 2, 2, 2, 1, 2}, {1, 1, 1, 1, 2, 4}},
    };
    adj_shape s = {.rank = rank};
    for (int i = 0; i < rank; i++)
        s.dim[i] = sizes[rank - 1][index % 4][i];
    return s;
}

adj_shape any_shape(garden *t, int64_t rank)
{
    unsigned choice = take(&t->in);
    if (choice < 176)
        return rank > 0 ? usual_shape(rank, (int)choice) : (adj_shape){0};
    adj_shape s = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        int v = pick(&t->in, 32);
        s.dim[i] = v == 31 ? 0 : v == 30 ? 17 : 1 + v % 6;
    }
    if (t->wild && rank > 0 && pick(&t->in, 8) == 0)
        s.dim[pick(&t->in, (int)rank)] = any_number(&t->in);
    return s;
}

void fill_data(void *data, adj_dtype dtype, int64_t n, unsigned stream, double step)
{
    static const uint16_t f16[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000},
                          bf16[] = {0xc000, 0xbf80, 0, 0x3f80, 0x4000};
    for (int64_t i = 0; i < n; i++) {
        unsigned h = ((unsigned)i + 1) * 2654435761U ^ (stream + 1) * 2246822519U;
        h = (h ^ h >> 15) * 2654435761U;
        int v = (int)((h >> 24) % 5);
        if (dtype == ADJ_I32)
            ((int32_t *)data)[i] = v - 2;
        else if (dtype == ADJ_F64)
            ((double *)data)[i] = v - 2 + v * step;
        else if (dtype == ADJ_F32)
            ((float *)data)[i] = (float)(v - 2 + v * step);
        else
            ((uint16_t *)data)[i] =
                (uint16_t)((dtype == ADJ_F16 ? f16 : bf16)[v] + (step != 0) * v);
    }
}

adj_node *new_leaf(garden *t, adj_dtype dtype, adj_shape shape)
{
    static double data[MAX_ELEMS];
    char name[16];
    adj_init init = {.kind = ADJ_INIT_UNIFORM, .a = -2, .b = 2};
    int kind = pick(&t->in, 8);

    if (adj_shape_elems(shape) > MAX_ELEMS)
        shape = (adj_shape){1, {3}};
    snprintf(name, sizeof name, "v%d", t->leaves++);
    if (t->uniform && dtype != ADJ_I32)
        dtype = t->dtype;
    if (kind == 0 && !t->uniform)
        return keep(t, adj_input(t->g, name, dtype, shape));
    if (kind == 1)
        return keep(t, adj_state(t->g, name, dtype, shape, init));
    if (kind == 2)
        return keep(t, adj_fill(t->g, dtype, shape, pick(&t->in, 5) - 2));
    if (kind == 3) {
        fill_data(data, dtype, adj_shape_elems(shape), (unsigned)t->leaves, 0);
        return keep(t, adj_const(t->g, dtype, shape, data));
    }
    return keep(t, adj_param(t->g, name, dtype, shape, init));
}

adj_node *value_of(garden *t, int dtype, int64_t rank)
{
    int first = somewhere(t);
    for (int i = 0; i < t->n; i++) {
        adj_node *x = t->value[(first - i + t->n) % t->n];
        adj_type type = adj_node_type(x);
        if ((dtype < 0 ? type.dtype != ADJ_I32 : (int)type.dtype == dtype) &&
            (rank < 0 || type.shape.rank == rank))
            return x;
    }
    adj_shape shape = any_shape(t, rank < 0 ? 2 : rank);
    return new_leaf(t, dtype < 0 ? t->dtype : (adj_dtype)dtype, shape);
}

adj_node *view_of(garden *t, adj_dtype dtype, adj_shape shape)
{
    int first = somewhere(t);
    for (int i = 0; i < t->n; i++) {
        adj_node *x = t->value[(first - i + t->n) % t->n];
        adj_type type = adj_node_type(x);
        if (type.dtype == dtype && adj_shape_elems(type.shape) == adj_shape_elems(shape))
            return adj_reshape(x, shape);
    }
    return new_leaf(t, dtype, shape);
}

adj_node *like(garden *t, adj_node *x)
{
    adj_type type = adj_node_type(x);
    if (t->wild && pick(&t->in, 4) == 0)
        return any_value(t);
    int kind = pick(&t->in, 8), first = somewhere(t);
    if (kind == 0)
        return new_leaf(t, type.dtype, type.shape);
    if (kind == 1)
        return view_of(t, type.dtype, type.shape);
    if (kind == 2)
        return adj_reshape(x, type.shape);
    for (int i = 0; i < t->n; i++) {
        adj_node *y = t->value[(first - i + t->n) % t->n];
        adj_type other = adj_node_type(y);
        if (other.dtype == type.dtype && other.shape.rank == type.shape.rank &&
            memcmp(other.shape.dim, type.shape.dim, sizeof type.shape.dim) == 0)
            return y;
    }
    return new_leaf(t, type.dtype, type.shape);
}
