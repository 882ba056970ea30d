/* norm.c - normalizations and dropout. */
#include <inttypes.h>
#include <string.h>

#include "adjoint_nn.h"
#include "ops/nn/names.h"
#include "import.h"

/* x of rank 2 to 5, which the channel axis of these ops needs; else x as [n, c, all the rest]. */
static adj_node *as_channels(adj_node *x)
{
    const adj_shape s = shape_of(x);
    if (s.rank <= 5)
        return x;
    return adj_reshape(x, (adj_shape){3, {s.dim[0], s.dim[1], product(&s, 2, (int)s.rank)}});
}

static adj_node *back_to(adj_node *y, adj_shape s)
{
    return y == NULL || adj_shape_equal(shape_of(y), s) ? y : adj_reshape(y, s);
}

/* Returns the type of the statistics of x. */
static adj_dtype stats_dtype(const adj_node *x) { return adj_stats_dtype(adj_node_type(x).dtype); }

/* old * momentum + new * factor * (1 - momentum), in old's type. */
static adj_node *moved(adj_node *old, adj_node *new, double momentum, double factor)
{
    const adj_dtype dtype = adj_node_type(old).dtype;
    old = adj_in_dtype(old, stats_dtype(old));
    return adj_in_dtype(adj_add(adj_scale(old, momentum), adj_scale(new, (1 - momentum) * factor)),
                        dtype);
}

/* Moves the running statistics that are operand i, once more for a batch norm that is applied
 * twice. */
static void move(call *n, int i, adj_node *new, double momentum, double factor)
{
    value *v = n->in[i];
    if (v->next == NULL)
        n->f->moved[n->f->n_moved++] = v;
    v->next = moved(v->next != NULL ? v->next : v->node, new, momentum, factor);
}

/* Running statistics of a net in training: the variance is the unbiased one, as in PyTorch. */
static void update_running(call *n, adj_node *mean, adj_node *variance, adj_node *stats,
                           const adj_node *x)
{
    const double momentum = attr_float(n, "momentum", 0.9);
    const adj_shape s = shape_of(x);
    const double m = (double)adj_shape_elems(s) / (double)(s.dim[1] > 0 ? s.dim[1] : 1);
    if (adj_node_is_state(mean))
        move(n, 3, adj_stats_row(stats, 0), momentum, 1);
    if (adj_node_is_state(variance))
        move(n, 4, adj_stats_row(stats, 1), momentum, m > 1 ? m / (m - 1) : 1);
}

/* True if the patterns of options.freeze match scale and bias. */
static int is_frozen(const call *n)
{
    const char *freeze = n->f->o->freeze;
    return has_in(n, 1) && has_in(n, 2) && adj_name_matches(freeze, n->in[1]->name) &&
           adj_name_matches(freeze, n->in[2]->name);
}

int import_batch_norm(call *n)
{
    const double epsilon = attr_float(n, "epsilon", 1e-5);
    const int is_trained =
        n->opset < 7 ? attr_int(n, "is_test", 0) == 0 : attr_int(n, "training_mode", 0) != 0;
    adj_node *x = in_node(n, 0), *gamma = in_node(n, 1), *beta = in_node(n, 2);
    adj_node *mean = in_state(n, 3), *variance = in_state(n, 4);
    if (x == NULL || gamma == NULL || beta == NULL || mean == NULL || variance == NULL)
        return refuse(n, "an operand is missing");
    const adj_shape s = shape_of(x);
    if (s.rank < 2)
        return refuse(n, "rank of its images (got %" PRId64 ")", s.rank);
    if (attr_int(n, "spatial", 1) == 0)
        return refuse(n, "statistics of each element (spatial 0)");
    /* A file exported for training has running statistics of its own for inference. */
    const int training = n->f->o->training;
    if (training && !is_frozen(n) && (adj_node_is_param(mean) || adj_node_is_param(variance)))
        return refuse(n, "running statistics that are a parameter as well");
    const int in_file = is_trained && (training || !adj_node_is_state(mean)) && !is_frozen(n);
    adj_node *flat = as_channels(x), *stats;
    if (in_file || (training && !is_frozen(n))) {
        stats = adj_batch_norm_stats(flat, ADJ_NCHW);
        const double momentum = attr_float(n, "momentum", 0.9);
        if (in_file && n->n_out > 1) {
            give_at(n, 1, moved(mean, adj_stats_row(stats, 0), momentum, 1), ELEM_FLOAT);
            give_at(n, 2, moved(variance, adj_stats_row(stats, 1), momentum, 1), ELEM_FLOAT);
        }
        update_running(n, mean, variance, stats, x);
    } else {
        stats = adj_in_dtype(adj_stats_of(mean, variance), stats_dtype(x));
    }
    gamma = adj_in_dtype(gamma, stats_dtype(x));
    beta = adj_in_dtype(beta, stats_dtype(x));
    adj_node *y = adj_batch_norm(flat, stats, gamma, beta, epsilon, ADJ_NCHW);
    return give(n, back_to(y, s));
}

/* ---- norms of an image's own statistics ---- */

static int group_norm(call *n, int64_t groups, int is_by_group)
{
    const double epsilon = attr_float(n, "epsilon", 1e-5);
    adj_node *x = in_node(n, 0), *gamma = in_node(n, 1), *beta = in_node(n, 2);
    if (x == NULL || gamma == NULL || beta == NULL)
        return 0;
    const adj_shape s = shape_of(x);
    if (s.rank < 2 || groups < 1 || s.dim[1] % groups != 0)
        return refuse(n, "%" PRId64 " groups of %s", groups, adj_shape_text(s).s);
    if (is_by_group) { /* up to opset 20 a factor for each group */
        const adj_shape one = {2, {groups, 1}}, each = {2, {groups, s.dim[1] / groups}};
        const adj_shape all = {1, {s.dim[1]}};
        gamma = adj_reshape(adj_broadcast_to(adj_reshape(gamma, one), each), all);
        beta = adj_reshape(adj_broadcast_to(adj_reshape(beta, one), each), all);
    }
    gamma = adj_in_dtype(gamma, stats_dtype(x));
    beta = adj_in_dtype(beta, stats_dtype(x));
    adj_node *y = adj_group_norm(as_channels(x), gamma, beta, groups, epsilon, ADJ_NCHW);
    return give(n, back_to(y, s));
}

int import_group_norm(call *n)
{
    return group_norm(n, attr_int(n, "num_groups", 0), n->opset < 21);
}
int import_instance_norm(call *n) { return group_norm(n, in_shape(n, 0).dim[1], 0); }

/* Computes the results Mean and InvStdDev, over the axes from `axis` on. */
static int layer_norm_stats(call *n, adj_node *x, int axis, double epsilon)
{
    adj_axes axes = {.keep_dims = 1};
    for (int i = axis; i < shape_of(x).rank; i++)
        axes.axis[axes.n++] = i;
    adj_node *mean = adj_reduce_mean(x, axes);
    adj_node *variance = adj_reduce_mean(adj_square(adj_sub(x, mean)), axes);
    adj_node *deviation = adj_sqrt(adj_add(variance, adj_scalar_like(x, epsilon)));
    return give_at(n, 1, mean, n->in[0]->elem) &&
           (n->n_out < 3 ||
            give_at(n, 2, adj_div(adj_scalar_like(x, 1), deviation), n->in[0]->elem));
}

int import_layer_norm(call *n)
{
    const double epsilon = attr_float(n, "epsilon", 1e-5);
    const adj_shape s = in_shape(n, 0), scale = in_shape(n, 1);
    const int axis = axis_of(n, attr_int(n, "axis", -1), s.rank);
    adj_node *x = in_node(n, 0), *gamma = in_node(n, 1), *beta = in_node(n, 2);
    if (axis < 0 || x == NULL || gamma == NULL)
        return 0;
    adj_shape inner = {.rank = s.rank - axis};
    memcpy(inner.dim, s.dim + axis, (size_t)inner.rank * sizeof *s.dim);
    const adj_dtype dtype = adj_node_type(x).dtype;
    const int is_usual = adj_shape_equal(scale, inner);
    adj_node *one = is_usual ? gamma : adj_fill(n->f->g, dtype, inner, 1);
    adj_node *zero = is_usual && beta != NULL ? beta : adj_fill(n->f->g, dtype, inner, 0);
    one = adj_in_dtype(one, stats_dtype(x));
    zero = adj_in_dtype(zero, stats_dtype(x));
    adj_node *y = adj_layer_norm(x, one, zero, epsilon);
    if (!is_usual) {
        y = adj_mul(y, gamma);
        y = beta != NULL ? adj_add(y, beta) : y;
    }
    if (n->n_out > 1 && !layer_norm_stats(n, x, axis, epsilon))
        return 0;
    return give(n, y);
}

/* x / (bias + alpha / size * sum of squares over size channels)^beta. */
int import_lrn(call *n)
{
    const int64_t size = attr_int(n, "size", 0);
    adj_node *x = in_node(n, 0);
    if (x == NULL || size < 1 || size > 4096 || shape_of(x).rank < 2)
        return refuse(n, "size is out of range (got %" PRId64 ", expected 1 to 4096)", size);
    const int64_t c = shape_of(x).dim[1], before = (size - 1) / 2;
    adj_node *square = pad_axis(adj_square(x), 1, before, size - 1 - before, 0), *sum = NULL;
    for (int64_t i = 0; i < size; i++) {
        adj_node *part = slice_axis(square, 1, i, c);
        sum = sum != NULL ? adj_add(sum, part) : part;
    }
    adj_node *scaled = adj_scale(sum, attr_float(n, "alpha", 1e-4) / (double)size);
    adj_node *base = adj_add(scaled, adj_scalar_like(x, attr_float(n, "bias", 1)));
    return give(n, adj_div(x, adj_pow(base, adj_scalar_like(x, attr_float(n, "beta", 0.75)))));
}

/* ---- dropout ---- */

int import_dropout(call *n)
{
    const numbers *ratio = has_in(n, 1) ? in_known(n, 1) : NULL;
    const double rate =
        ratio != NULL && ratio->n == 1 ? number_at(ratio, 0) : attr_float(n, "ratio", 0.5);
    const char *name = n->proto->output[0];
    adj_node *x = in_node(n, 0);
    if (x == NULL || (has_in(n, 1) && ratio == NULL))
        return 0;
    /* The file does not decide on training_mode if the caller gives it, or a run computes it. */
    if (has_in(n, 2) && !n->f->o->training && rate > 0 &&
        (n->in[2]->known == NULL || known_input(n->f, n->in[2]->name) != NULL)) {
        const numbers *t = in_known(n, 2);
        if (t == NULL || (t->n == 1 && number_at(t, 0) != 0))
            return refuse(n, "training_mode (expected false; see adj_onnx_opts.training)");
    }
    if (!n->f->o->training || rate <= 0) {
        give_at(n, 1, adj_fill(n->f->g, n->f->o->dtype, shape_of(x), 1), ELEM_BOOL);
        return give_at(n, 0, x, n->in[0]->elem);
    }
    if (n->n_out == 1)
        return give(n, adj_layer_dropout(x, name, rate, 1));
    adj_node *kept = adj_fill(n->f->g, adj_node_type(x).dtype, shape_of(x), 1);
    kept = adj_layer_dropout(kept, name, rate, 1);
    return give_at(n, 1, greater(kept, adj_scalar_like(x, 0)), ELEM_BOOL) &&
           give(n, adj_mul(x, kept));
}
