/* grow.c - the builders, but for those with windows. */
#include <stdio.h>
#include <string.h>

#include "cli/op/args.h"
#include "fuzz/grow.h"
#include "ops/grad.h"

static adj_node *vector(garden *t, adj_dtype dtype, int64_t n)
{
    adj_shape s = {1, {n}};
    return pick(&t->in, 3) ? new_leaf(t, dtype, s) : view_of(t, dtype, s);
}

static adj_node *scalar(garden *t, adj_dtype dtype) { return new_leaf(t, dtype, (adj_shape){0}); }

/* Batch norm's vectors and sums are f32 beside half types. */
static adj_dtype wide(adj_node *x) { return adj_node_type(x).dtype == ADJ_F64 ? ADJ_F64 : ADJ_F32; }

static void grow_unary(garden *t)
{
    static adj_node *(*const f[])(adj_node *) = {
        adj_relu, adj_relu6, adj_sigmoid, adj_tanh,    adj_silu,        adj_neg,          adj_exp,
        adj_log,  adj_sqrt,  adj_square,  adj_softmax, adj_log_softmax, adj_stop_gradient};
    adj_node *x = t->wild ? any_value(t) : value_of(t, -1, 1 + pick(&t->in, 4));
    int k = pick(&t->in, 16);
    double number = (pick(&t->in, 9) - 4) * 0.5;
    if (k < 13)
        keep(t, f[k](x));
    else if (k == 13)
        keep(t, adj_leaky_relu(x, number));
    else if (k == 14)
        keep(t, adj_scale(x, number));
    else
        keep(t, adj_cast(x, t->uniform ? t->dtype : (adj_dtype)pick(&t->in, t->wild ? 7 : 4)));
}

static void grow_binary(garden *t)
{
    static adj_node *(*const f[])(adj_node *, adj_node *) = {
        adj_add,          adj_sub,       adj_mul,           adj_div,       adj_maximum,
        adj_minimum,      adj_equal,     adj_greater_equal, adj_relu_grad, adj_relu6_grad,
        adj_sigmoid_grad, adj_tanh_grad, adj_silu_grad};
    adj_node *a = t->wild ? any_value(t) : value_of(t, -1, -1), *b = like(t, a);
    int k = pick(&t->in, 16);
    if (k < 8 && pick(&t->in, 3) == 0) { /* broadcasting */
        adj_type type = adj_node_type(a);
        for (int i = 0; i < type.shape.rank; i++)
            type.shape.dim[i] = pick(&t->in, 2) ? 1 : type.shape.dim[i];
        b = new_leaf(t, type.dtype, type.shape);
    }
    if (k < 13)
        keep(t, pick(&t->in, 2) ? f[k](a, b) : f[k](b, a));
    else if (k == 13)
        keep(t, adj_leaky_relu_grad(a, b, 0.25));
    else if (k == 14)
        keep(t, adj_ema(a, b, 0.75));
    else
        keep(t, adj_momentum(a, b, like(t, a), 0.5, 0.125));
}

/* A value read again after something was made of it, by ops that may join it in one step. */
static void grow_diamond(garden *t)
{
    static adj_node *(*const f[])(adj_node *) = {adj_relu,  adj_neg,  adj_square,
                                                 adj_relu6, adj_sqrt, adj_stop_gradient};
    static adj_node *(*const g[])(adj_node *, adj_node *) = {adj_add, adj_sub, adj_mul, adj_maximum,
                                                             adj_relu_grad};
    adj_node *x = value_of(t, -1, -1);
    adj_node *y = f[pick(&t->in, 6)](x);
    adj_node *z = g[pick(&t->in, 5)](y, x);
    unsigned choice = take(&t->in);
    if (choice & 1)
        keep(t, y);
    if (choice & 2)
        z = g[pick(&t->in, 5)](choice & 4 ? x : y, z);
    keep(t, z);
    if (choice & 8)
        keep(t, g[pick(&t->in, 5)](like(t, z), choice & 16 ? x : y));
}

/* x's elements in another shape. */
static adj_shape regrouped(garden *t, adj_node *x)
{
    int64_t left = adj_shape_elems(adj_node_type(x).shape);
    adj_shape s = {.rank = 1 + pick(&t->in, 4)};
    for (int i = 0; i < s.rank; i++) {
        int64_t d = 1 + pick(&t->in, 6);
        s.dim[i] = i + 1 == s.rank ? (pick(&t->in, 2) ? -1 : left) : left % d == 0 ? d : 1;
        left /= s.dim[i] > 0 ? s.dim[i] : 1;
    }
    return s;
}

static void grow_shape(garden *t)
{
    adj_node *x = t->wild ? any_value(t) : value_of(t, -1, -1);
    adj_shape s = adj_node_type(x).shape, before = {.rank = s.rank}, after = {.rank = s.rank};
    int perm[ADJ_MAX_RANK], kind = pick(&t->in, 6);
    int shift = s.rank > 0 ? pick(&t->in, (int)s.rank) : 0;

    for (int i = 0; i < s.rank; i++) {
        perm[i] = (int)((i + shift) % s.rank);
        before.dim[i] = t->wild ? any_number(&t->in) : pick(&t->in, 3);
        after.dim[i] = t->wild ? any_number(&t->in) : pick(&t->in, 2);
    }
    if (kind == 0)
        keep(t, adj_reshape(x, t->wild ? any_shape(t, 3) : regrouped(t, x)));
    else if (kind == 1) {
        if (t->wild && s.rank > 0)
            perm[0] = (int)any_number(&t->in);
        keep(t, adj_transpose(x, t->wild ? pick(&t->in, 8) : (int)s.rank, perm));
    } else if (kind == 2)
        keep(t, adj_pad(x, before, after));
    else if (kind == 3) {
        for (int i = 0; i < s.rank && !t->wild; i++) {
            before.dim[i] = s.dim[i] > 0 ? before.dim[i] % s.dim[i] : 0;
            after.dim[i] = s.dim[i] - before.dim[i];
        }
        keep(t, adj_slice(x, before, after));
    } else if (kind == 4) {
        adj_node *all[] = {x, like(t, x), x};
        keep(t, adj_concat(1 + pick(&t->in, 3), all,
                           t->wild ? (int)any_number(&t->in) : (s.rank > 0 ? shift : 0)));
    } else {
        if (s.rank < ADJ_MAX_RANK) {
            memmove(s.dim + 1, s.dim, sizeof s.dim - sizeof s.dim[0]);
            s.rank++;
        }
        s.dim[0] = t->wild ? any_number(&t->in) : s.rank > 1 ? 1 + pick(&t->in, 3) : s.dim[0];
        keep(t, adj_broadcast_to(x, s));
    }
}

static void grow_reduce(garden *t)
{
    adj_node *x = t->wild ? any_value(t) : value_of(t, -1, 1 + pick(&t->in, 4));
    adj_shape s = adj_node_type(x).shape;
    adj_axes a = {.keep_dims = pick(&t->in, 2)};
    unsigned set = take(&t->in);
    for (int i = 0; i < s.rank; i++)
        if (set >> i & 1)
            a.axis[a.n++] = set & 128 ? i - (int)s.rank : i;
    if (t->wild && pick(&t->in, 4) == 0) {
        a.n = 1 + pick(&t->in, ADJ_MAX_RANK);
        a.axis[pick(&t->in, ADJ_MAX_RANK)] = (int)any_number(&t->in);
    }
    int kind = pick(&t->in, 3);
    keep(t, kind == 0   ? adj_reduce_sum(x, a)
            : kind == 1 ? adj_reduce_mean(x, a)
                        : adj_reduce_max(x, a));
}

static void grow_matmul(garden *t)
{
    adj_node *a = value_of(t, -1, 2);
    adj_type type = adj_node_type(a);
    int ta = pick(&t->in, 2), tb = pick(&t->in, 2);
    int64_t k = type.shape.dim[ta ? 0 : 1], n = 1 + pick(&t->in, 7);
    adj_shape s = {2, {tb ? n : k, tb ? k : n}};
    adj_node *b = t->wild ? any_value(t) : pick(&t->in, 3) ? new_leaf(t, type.dtype, s) : a;
    if (b == a)
        tb = !ta;
    keep(t, adj_matmul(a, b, (ta ? ADJ_TRANSPOSE_A : 0) | (tb ? ADJ_TRANSPOSE_B : 0)));
}

/* x's elements in that shape if they are as many, else other ones. */
static adj_node *same_memory(garden *t, adj_node *x, adj_dtype dtype, adj_shape shape)
{
    adj_type type = adj_node_type(x);
    int fits = type.dtype == dtype && adj_shape_elems(type.shape) == adj_shape_elems(shape);
    return fits ? adj_reshape(x, shape) : view_of(t, dtype, shape);
}

static void grow_norm(garden *t)
{
    adj_format format = pick(&t->in, 2) ? ADJ_NCHW : ADJ_NHWC;
    adj_node *x = value_of(t, -1, 2 + pick(&t->in, 4));
    adj_shape s = adj_node_type(x).shape;
    int64_t c = s.rank == 0 ? 1 : s.dim[format == ADJ_NCHW && s.rank > 1 ? 1 : s.rank - 1];
    adj_dtype w = wide(x);
    int kind = pick(&t->in, 4);
    if (kind == 0) {
        keep(t, adj_bias_add(x, vector(t, adj_node_type(x).dtype, c), format));
        keep(t, adj_bias_add_grad(x, format));
        return;
    }
    int from = pick(&t->in, 4);
    int64_t half = adj_shape_elems(s) / 2;
    if (from == 3 && half > 0 && 2 * half == adj_shape_elems(s) && adj_node_type(x).dtype == w) {
        c = half; /* x and its statistics in the same memory */
        format = ADJ_NHWC;
        x = adj_reshape(x, (adj_shape){3, {1, 2, c}});
    }
    adj_shape two = {2, {2, c}};
    adj_node *stats = from == 0   ? keep(t, adj_batch_norm_stats(x, format))
                      : from == 1 ? adj_square(new_leaf(t, w, two))
                      : from == 2 ? view_of(t, w, two)
                                  : same_memory(t, x, w, two);
    adj_node *gamma = vector(t, w, c), *dy = like(t, x);
    if (kind == 1)
        keep(t, adj_batch_norm(x, stats, gamma, vector(t, w, c), 0.5, format));
    if (kind == 1)
        return;
    adj_node *sums = pick(&t->in, 3) ? keep(t, adj_batch_norm_grad_sums(x, stats, dy, 0.5, format))
                                     : same_memory(t, x, w, two);
    if (kind == 2)
        keep(t, adj_batch_norm_grad(x, stats, gamma, dy, sums, 0.5, format));
}

static void grow_loss(garden *t)
{
    adj_node *x = value_of(t, -1, 2), *y = like(t, x);
    double smoothing = pick(&t->in, 2) * 0.25;
    adj_shape rows = {1, {adj_node_type(x).shape.dim[0]}};
    int kind = pick(&t->in, 6);
    if (kind == 0)
        keep(t, adj_softmax_cross_entropy(x, y, smoothing));
    else if (kind == 1)
        keep(t, adj_softmax_cross_entropy_grad(x, y, smoothing));
    else {
        adj_node *labels = t->wild ? any_value(t) : new_leaf(t, ADJ_I32, rows);
        keep(t, kind == 2   ? adj_sparse_softmax_cross_entropy(x, labels, smoothing)
                : kind == 3 ? adj_sparse_softmax_cross_entropy_grad(x, labels, smoothing)
                : kind == 4 ? adj_loss_softmax(x, labels, NULL)
                            : adj_label_count(labels, t->dtype));
    }
}

static void grow_step(garden *t)
{
    adj_node *p = t->wild ? any_value(t) : value_of(t, -1, -1), *count = scalar(t, ADJ_I32);
    adj_dtype dtype = adj_node_type(p).dtype;
    const adj_adam_attrs adam = {0.5, 0.75, 0.125, 0.0625};
    int kind = pick(&t->in, 4);
    if (kind == 0)
        keep(t, adj_sgd_step(p, like(t, p), scalar(t, dtype), 0.125));
    else if (kind == 1)
        keep(t, adj_adam_step(p, like(t, p), adj_square(like(t, p)), adj_next_step(count),
                              scalar(t, dtype), &adam));
    else if (kind == 2)
        keep(t, adj_dropout(p, count, t->wild ? (double)any_number(&t->in) : 0.5, take(&t->in)));
    else
        adj_label(p, "label");
}

/* A parameter's or state's next value: any other, itself one such, perhaps. */
static void grow_update(garden *t)
{
    adj_node *leaf = NULL;
    int first = take(&t->in);
    for (int i = 0; i < t->n && leaf == NULL; i++) {
        adj_node *n = t->value[(first + i) % t->n];
        if (adj_node_is_param(n) || adj_node_is_state(n))
            leaf = n;
    }
    for (int i = 0; i < adj_updates_count(t->updates) && leaf != NULL; i++)
        if (adj_updates_leaf_at(t->updates, i) == leaf)
            return;
    if (leaf == NULL)
        return;
    if (pick(&t->in, 2))
        adj_graph_set_role(t->g, ADJ_ROLE_UPDATE);
    adj_node *next = like(t, leaf);
    if (pick(&t->in, 2))
        next = keep(t, pick(&t->in, 2) ? adj_add(leaf, next) : adj_mul(next, leaf));
    adj_graph_set_role(t->g, ADJ_ROLE_FORWARD);
    adj_updates_add(t->updates, leaf, next);
}

/* ---- any op of the registry, by what it says of its operands and attributes ---- */

/* A value of that type that the garden has, or a leaf. */
static adj_node *suitable(void *user, adj_type type)
{
    garden *t = user;
    if (t->wild && pick(&t->in, 8) == 0)
        return any_value(t);
    return pick(&t->in, 4) ? view_of(t, type.dtype, type.shape)
                           : new_leaf(t, type.dtype, type.shape);
}

/* Windows, and of the op's own attributes some numbers; others are what they usually are. */
static void write_attrs(garden *t, const adj_op *op, unsigned choice, char attr[OP_ATTR_TEXT])
{
    const adj_op *of = op->forward != NULL ? op->forward : op;
    size_t n = (size_t)snprintf(attr, OP_ATTR_TEXT, "padding=%s,data_format=%s",
                                choice & 2 ? "VALID" : "SAME", choice & 1 ? "NCHW" : "NHWC");
    if (choice < 128 || of->schema == NULL)
        return;
    for (const adj_attr *a = of->schema->attr; a->name != NULL && pick(&t->in, 4) > 0; a++) {
        const int64_t number = t->wild ? any_number(&t->in) : pick(&t->in, 9) - 2;
        const int is_list = a->kind >= ADJ_ATTR_SHAPE && a->kind <= ADJ_ATTR_AXES;
        n += (size_t)snprintf(attr + n, OP_ATTR_TEXT - n, ",%s=%lld%s", a->name, (long long)number,
                              a->kind == ADJ_ATTR_REAL ? "e-1" : "");
        for (int more = is_list ? pick(&t->in, 4) : 0; more > 0; more--)
            n += (size_t)snprintf(attr + n, OP_ATTR_TEXT - n, ",%d", pick(&t->in, 9) - 1);
    }
}

static void grow_any(garden *t)
{
    enum { MAX_OPS = 256 };
    const adj_op *ops[MAX_OPS];
    int n = 0;
    for (const adj_op *const *op = adj_ops; *op != NULL && n < MAX_OPS; op++)
        if (!((*op)->flags & (ADJ_OP_INTERNAL | ADJ_OP_LEAF)))
            ops[n++] = *op;
    const char *name = ops[pick(&t->in, n)]->name;
    adj_node *x = t->wild ? any_value(t) : value_of(t, -1, 1 + pick(&t->in, 4));
    unsigned choice = take(&t->in);
    op_case c = {.g = t->g,
                 .dtype = adj_node_type(x).dtype,
                 .in = adj_node_type(x).shape,
                 .format = choice & 1 ? ADJ_NCHW : ADJ_NHWC,
                 .operand = suitable,
                 .user = t};
    char attr[OP_ATTR_TEXT];
    write_attrs(t, op_find(name), choice, attr);
    (void)op_attrs_split(&c.attrs, NULL, attr, NULL);
    keep(t, op_build(&c, name));
}

/* ---- the graph ---- */

void grow(garden *t)
{
    static void (*const kinds[])(garden *) = {
        grow_conv,   grow_pool,   grow_block, grow_binary, grow_shape,   grow_reduce,
        grow_matmul, grow_norm,   grow_loss,  grow_step,   grow_unary,   grow_binary,
        grow_unary,  grow_binary, grow_block, grow_update, grow_diamond, grow_diamond};
    unsigned kind = take(&t->in);
    if (kind >= 248)
        grow_any(t);
    else if (kind >= 240)
        new_leaf(t, kind & 1 ? t->dtype : (adj_dtype)pick(&t->in, 5),
                 any_shape(t, pick(&t->in, 6)));
    else
        kinds[kind % (sizeof kinds / sizeof kinds[0])](t);
}
