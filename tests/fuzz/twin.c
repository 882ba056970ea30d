/* twin.c - see twin.h.
 *
 * Which values are sure? A backend may add in any order, has its own sigmoid and exponentials, and
 * need not round what stays in a group to a half type. Sums of products of integers, all below
 * 2^24, are exact in any order; everything else that is not listed as unsure is computed by the
 * same code, or rounded once, and is sure if its operands are. Zeros may differ in sign, so a
 * division by 0 is not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/must.h"
#include "fuzz/twin.h"
#include "graph/op.h"

enum { MAX_BYTES = 1 << 20 };

/* ---- values, read without the library's conversions ---- */

static float from_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    float v = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
              : exponent == 0 ? ldexpf((float)fraction, -24)
                              : ldexpf((float)(1024 + fraction), exponent - 25);
    return h >> 15 ? -v : v;
}

static double number_at(const void *v, adj_dtype dtype, int64_t i)
{
    if (dtype == ADJ_F64)
        return ((const double *)v)[i];
    if (dtype == ADJ_F32)
        return ((const float *)v)[i];
    if (dtype == ADJ_I32)
        return ((const int32_t *)v)[i];
    uint16_t half = ((const uint16_t *)v)[i];
    if (dtype == ADJ_F16)
        return from_f16(half);
    uint32_t bits = (uint32_t)half << 16;
    float single;
    memcpy(&single, &bits, sizeof single);
    return single;
}

int same_values(const adj_node *n, const void *a, const void *b, int bits)
{
    adj_type type = adj_node_type(n);
    size_t each = adj_dtype_size(type.dtype);
    int64_t count = adj_shape_elems(type.shape);
    for (int64_t i = 0; i < count; i++) {
        const char *x = (const char *)a + (size_t)i * each, *y = (const char *)b + (size_t)i * each;
        if (memcmp(x, y, each) == 0)
            continue;
        double u = number_at(x, type.dtype, 0), v = number_at(y, type.dtype, 0);
        /* NaN's bits are left open by C, and so is which operand's NaN a sum has. */
        if (!(isnan(u) && isnan(v)) && (bits || u != v))
            return 0;
    }
    return 1;
}

void print_difference(FILE *f, const adj_node *n, const void *got, const void *want)
{
    adj_type type = adj_node_type(n);
    for (int64_t i = 0; i < adj_shape_elems(type.shape); i++) {
        double x = number_at(got, type.dtype, i), y = number_at(want, type.dtype, i);
        if (x != y && !(isnan(x) && isnan(y))) {
            fprintf(f, ": element %lld is %.9g, not %.9g\n", (long long)i, x, y);
            return;
        }
    }
    fprintf(f, ": the sign of a zero\n");
}

/* ---- what is sure ---- */

/* True if the op is one of the words of the list. */
static int is_one_of(const adj_node *n, const char *list)
{
    const char *op = adj_node_op(n);
    const size_t length = strlen(op);
    for (; *list != '\0'; list += strcspn(list, " "), list += strspn(list, " "))
        if (strcspn(list, " ") == length && memcmp(list, op, length) == 0)
            return 1;
    return 0;
}

/* The largest of integers; INFINITY if one is none. */
static double largest(const twin *t, const adj_node *n)
{
    adj_type type = adj_node_type(n);
    const void *v = twin_value(t, n);
    double max = 0;
    for (int64_t i = 0; i < adj_shape_elems(type.shape); i++) {
        double x = fabs(number_at(v, type.dtype, i));
        if (!(x < 1e9) || x != floor(x))
            return INFINITY;
        max = x > max ? x : max;
    }
    return max;
}

static int has_zero(const twin *t, const adj_node *n)
{
    adj_type type = adj_node_type(n);
    const void *v = twin_value(t, n);
    for (int64_t i = 0; i < adj_shape_elems(type.shape); i++)
        if (number_at(v, type.dtype, i) == 0)
            return 1;
    return 0;
}

static int is_half(const adj_node *n)
{
    adj_dtype dtype = adj_node_type(n).dtype;
    return dtype == ADJ_F16 || dtype == ADJ_BF16;
}

/* Below this every integer is a number of n's type. */
static double max_exact(const adj_node *n)
{
    adj_dtype dtype = adj_node_type(n).dtype;
    return dtype == ADJ_BF16 ? 256 : dtype == ADJ_F16 ? 2048 : 1 << 24;
}

/* True if neither partial sums nor the result are rounded. */
static int sums_exactly(const twin *t, const adj_node *n)
{
    int64_t length = 1;
    double product = 1;
    for (int i = 0; i < adj_node_operand_count(n); i++) {
        int64_t elems = adj_shape_elems(adj_node_type(adj_node_operand_at(n, i)).shape);
        length = elems > length ? elems : length;
        product *= largest(t, adj_node_operand_at(n, i));
    }
    return product * (double)length < 1 << 24 && largest(t, n) < max_exact(n);
}

static int are_integers(const twin *t, const adj_node *n)
{
    double max = largest(t, n);
    for (int i = 0; i < adj_node_operand_count(n); i++)
        max = fmax(max, largest(t, adj_node_operand_at(n, i)));
    return max < max_exact(n);
}

/* A factor need not be kept as a double. */
static int is_float(double v) { return (double)(float)v == v; }

/* Ops by name, as their values are sure. */
static const char unsure[] =
    "sigmoid tanh silu silu_grad elu elu_grad gelu gelu_grad hard_sigmoid hard_sigmoid_grad "
    "hard_swish hard_swish_grad prelu prelu_grad prelu_grad_slope clip clip_grad avg_pool "
    "avg_pool_grad resize resize_grad batch_norm batch_norm_grad batch_norm_stats "
    "batch_norm_grad_sums group_norm group_norm_grad group_norm_grad_sums momentum sgd_step "
    "ema adam_step reduce_mean exp log pow softplus erf softmax log_softmax softmax_cross_entropy "
    "softmax_cross_entropy_grad sparse_softmax_cross_entropy "
    "sparse_softmax_cross_entropy_grad";
static const char sums[] =
    "conv2d conv2d_backprop_input conv2d_backprop_filter depthwise_conv2d_native "
    "depthwise_conv2d_native_backprop_input depthwise_conv2d_native_backprop_filter matmul "
    "reduce_sum bias_add_grad";
static const char factors[] = "scale leaky_relu leaky_relu_grad";
static const char rounds_halves[] = "scale leaky_relu leaky_relu_grad div sqrt";
static const char exact_on_integers[] = "add sub mul square bias_add cast relu neg";
static const char divides[] = "div";

static int is_sure(const twin *t, const adj_node *n)
{
    for (int i = 0; i < adj_node_operand_count(n); i++)
        if (!twin_is_sure(t, adj_node_operand_at(n, i)))
            return 0;
    if (is_one_of(n, unsure) || (is_half(n) && is_one_of(n, rounds_halves)))
        return 0;
    if (is_one_of(n, factors) && !is_float(((const adj_value_attrs *)n->attrs)->value))
        return 0;
    if (is_half(n) && is_one_of(n, exact_on_integers))
        return are_integers(t, n);
    if (is_one_of(n, divides))
        return !has_zero(t, adj_node_operand_at(n, 1));
    return !is_one_of(n, sums) || sums_exactly(t, n);
}

/* ---- the twin ---- */

static void reach(char *needed, const adj_node *n)
{
    if (needed[adj_node_id(n)])
        return;
    needed[adj_node_id(n)] = 1;
    for (int i = 0; i < adj_node_operand_count(n); i++)
        reach(needed, adj_node_operand_at(n, i));
}

int twin_new(twin *t, adj_graph *g, int n_root, adj_node *const root[])
{
    int size = adj_graph_node_count(g);
    size_t bytes = 0;
    char *needed = calloc((size_t)size, 1);
    *t = (twin){.node = calloc((size_t)size, sizeof *t->node),
                .value = calloc((size_t)size, sizeof *t->value),
                .sure = calloc((size_t)size, 1),
                .at = calloc((size_t)size, sizeof *t->at)};
    must(needed != NULL && t->node != NULL && t->value != NULL && t->sure != NULL && t->at != NULL);
    for (int i = 0; i < n_root; i++)
        reach(needed, root[i]);
    for (int id = 0; id < size; id++) {
        t->at[id] = needed[id] ? t->n : -1;
        if (needed[id]) {
            t->node[t->n++] = adj_graph_node_at(g, id);
            bytes += adj_type_bytes(adj_node_type(adj_graph_node_at(g, id)));
        }
    }
    free(needed);
    if (bytes > MAX_BYTES)
        return 0;
    const adj_exec_opts o = {
        .n_fetch = t->n, .fetch = t->node, .backend = "naive", .threads = 1, .seed = 3};
    must(adj_exec_new(g, &o, &t->exec) == ADJ_OK);
    for (int i = 0; i < t->n; i++)
        must((t->value[i] = malloc(adj_type_bytes(adj_node_type(t->node[i])) + 1)) != NULL);
    return 1;
}

void twin_free(twin *t)
{
    adj_exec_free(t->exec);
    for (int i = 0; i < t->n; i++)
        free(t->value[i]);
    free(t->node);
    free(t->value);
    free(t->sure);
    free(t->at);
}

adj_status twin_run(twin *t)
{
    adj_status status = adj_run(t->exec);
    for (int i = 0; i < t->n; i++) {
        const adj_node *n = t->node[i];
        int kept = adj_node_is_param(n) || adj_node_is_state(n);
        if (status != ADJ_OK && !kept)
            continue;
        must(adj_get(t->exec, n, t->value[i], adj_type_bytes(adj_node_type(n))) == ADJ_OK);
        t->sure[i] = (char)is_sure(t, n);
    }
    return status;
}

const void *twin_value(const twin *t, const adj_node *n) { return t->value[t->at[adj_node_id(n)]]; }
int twin_is_sure(const twin *t, const adj_node *n) { return t->sure[t->at[adj_node_id(n)]]; }
