/* elementwise.c - ops of two operands: add, sub, mul, div, maximum, minimum, equal, greater_equal,
 * pow; of one: neg, scale, square, sqrt, exp, log; and select.
 *
 * Two operands have one dtype and broadcast as in NumPy: shapes are aligned at their last
 * axis, and a size of 1 repeats. With y = f(a, b) and S_a the sum over the axes along which a was
 * broadcast:
 *   add      da = S_a(dy)         db = S_b(dy)
 *   sub      da = S_a(dy)         db = -S_b(dy)
 *   mul      da = S_a(dy b)       db = S_b(dy a)
 *   div      da = S_a(dy / b)     db = -S_b(dy / b * y)
 *   pow      da = S_a(dy b pow(a, b - 1))    db = S_b(dy y log(a)); a factor of 0 is not multiplied
 *            by what is infinite where a is 0
 *   maximum  da = S_a(dy where a >= b)    db = S_b(dy elsewhere); minimum has b >= a.
 * "dy where m" is relu_grad(dy, m), which selects instead of multiplying, so that an infinite dy
 * gives no NaN. */
#include "grad.h"
#include "graph/op.h"

/* Returns the size of s at axis i of a result of the given rank. */
static int64_t aligned_dim(adj_shape s, int64_t rank, int64_t i)
{
    int64_t axis = i - (rank - s.rank);
    return axis < 0 ? 1 : s.dim[axis];
}

int adj_broadcast_shape(adj_shape a, adj_shape b, adj_shape *both)
{
    *both = (adj_shape){.rank = a.rank > b.rank ? a.rank : b.rank};
    for (int64_t i = 0; i < both->rank; i++) {
        int64_t da = aligned_dim(a, both->rank, i), db = aligned_dim(b, both->rank, i);
        if (da != db && da != 1 && db != 1)
            return 0;
        both->dim[i] = da == 1 ? db : da;
    }
    return 1;
}

static adj_status binary_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_shape a = n->in[0]->type.shape, b = n->in[1]->type.shape;
    adj_status status = adj_check_same_dtype(n);
    if (status != ADJ_OK)
        return status;

    *out = (adj_type){.dtype = n->in[0]->type.dtype};
    if (adj_broadcast_shape(a, b, &out->shape))
        return ADJ_OK;
    return adj_fail(n->graph, ADJ_ESHAPE,
                    "%s: shapes do not broadcast (got %s and %s, expected equal sizes or 1 at each "
                    "axis)",
                    n->op->name, adj_shape_text(a).s, adj_shape_text(b).s);
}

static void add_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_sum_to(dy, y->in[0]->type.shape);
    dx[1] = adj_sum_to(dy, y->in[1]->type.shape);
}

static void sub_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_sum_to(dy, y->in[0]->type.shape);
    dx[1] = adj_neg(adj_sum_to(dy, y->in[1]->type.shape));
}

static void mul_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *a = y->in[0], *b = y->in[1];

    dx[0] = adj_sum_to(adj_mul(dy, b), a->type.shape);
    dx[1] = adj_sum_to(adj_mul(dy, a), b->type.shape);
}

static void div_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *a = y->in[0], *b = y->in[1];
    adj_node *quotient = adj_div(dy, b);

    dx[0] = adj_sum_to(quotient, a->type.shape);
    dx[1] = adj_neg(adj_sum_to(adj_mul(quotient, y), b->type.shape));
}

/* Passes dy to a where mask is 1, to b where it is 0. */
static void split_gradient(adj_node *y, adj_node *dy, adj_node *mask, adj_node *dx[])
{
    adj_node *rest = adj_sub(adj_fill_like(mask, 1), mask);

    dx[0] = adj_sum_to(adj_relu_grad(dy, mask), y->in[0]->type.shape);
    dx[1] = adj_sum_to(adj_relu_grad(dy, rest), y->in[1]->type.shape);
}

static void maximum_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    split_gradient(y, dy, adj_greater_equal(y->in[0], y->in[1]), dx);
}

static void minimum_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    split_gradient(y, dy, adj_greater_equal(y->in[1], y->in[0]), dx);
}

static void pow_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *a = y->in[0], *b = y->in[1];
    adj_node *is_zero = adj_equal(a, adj_fill_like(a, 0));
    adj_node *are_zero = adj_mul(is_zero, adj_equal(b, adj_fill_like(b, 0)));
    adj_node *below = adj_sub(b, adj_fill_like(b, 1));
    adj_node *slope = adj_mul(b, adj_pow(adj_add(a, are_zero), below));
    adj_node *log = adj_log(adj_add(a, is_zero));

    dx[0] = adj_sum_to(adj_mul(dy, slope), a->type.shape);
    adj_node *product = adj_mul(y, log);
    dx[1] = adj_sum_to(adj_mul(dy, product), b->type.shape);
}

/* x * 1 is x when nothing is broadcast; x + 0 is not (-0 + 0 is 0). */
static adj_node *mul_simplify(const adj_node *n, adj_node *const in[])
{
    (void)n;
    for (int i = 0; i < 2; i++) {
        adj_node *x = in[1 - i];
        adj_shape one = in[i]->type.shape;
        double value;
        if (!adj_is_fill(in[i], &value) || value != 1 || one.rank > x->type.shape.rank)
            continue;
        int64_t d = 0;
        while (d < x->type.shape.rank &&
               (aligned_dim(one, x->type.shape.rank, d) == 1 || x->type.shape.dim[d] != 1))
            d++; /* sizes are compatible: a size other than 1 stays only if x's is not 1 */
        if (d == x->type.shape.rank)
            return x;
    }
    return NULL;
}

static adj_node *div_simplify(const adj_node *n, adj_node *const in[])
{
    (void)n;
    double value;
    int same = adj_shape_equal(in[0]->type.shape, in[1]->type.shape) || in[1]->type.shape.rank == 0;
    return same && adj_is_fill(in[1], &value) && value == 1 ? in[0] : NULL;
}

/* Draws positive numbers away from 0: divisors, bases of powers (fractional powers of negative
 * numbers are NaN), operands of log and sqrt. */
static void positive_domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i == (n->op == &adj_op_div ? 1 : 0))
        adj_spread(count, v, 0.5, 2);
}

const adj_op adj_op_add = {.name = "add",
                           .n_in = 2,
                           .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_ROW},
                           .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF | ADJ_OP_CHEAP,
                           .linear_in = ADJ_IN(0) | ADJ_IN(1),
                           .sum_in = ADJ_IN(0) | ADJ_IN(1),
                           .infer = binary_infer,
                           .grad = add_grad};

const adj_op adj_op_sub = {.name = "sub",
                           .n_in = 2,
                           .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_ROW},
                           .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
                           .linear_in = ADJ_IN(0) | ADJ_IN(1),
                           .sum_in = ADJ_IN(0) | ADJ_IN(1),
                           .infer = binary_infer,
                           .grad = sub_grad};

const adj_op adj_op_mul = {.name = "mul",
                           .n_in = 2,
                           .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_ROW},
                           .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
                           .linear_in = ADJ_IN(0) | ADJ_IN(1),
                           .infer = binary_infer,
                           .grad = mul_grad,
                           .simplify = mul_simplify};

const adj_op adj_op_div = {.name = "div",
                           .n_in = 2,
                           .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_ROW},
                           .flags = ADJ_OP_ELEMENTWISE,
                           .linear_in = ADJ_IN(0),
                           .infer = binary_infer,
                           .grad = div_grad,
                           .simplify = div_simplify,
                           .domain = positive_domain};

const adj_op adj_op_maximum = {.name = "maximum",
                               .n_in = 2,
                               .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF,
                               .infer = binary_infer,
                               .grad = maximum_grad};

const adj_op adj_op_minimum = {.name = "minimum",
                               .n_in = 2,
                               .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_HALF,
                               .infer = binary_infer,
                               .grad = minimum_grad};

const adj_op adj_op_equal = {.name = "equal",
                             .n_in = 2,
                             .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS | ADJ_OP_NO_GRADIENT |
                                      ADJ_OP_HALF,
                             .infer = binary_infer};

const adj_op adj_op_greater_equal = {.name = "greater_equal",
                                     .n_in = 2,
                                     .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_KINKS |
                                              ADJ_OP_NO_GRADIENT | ADJ_OP_HALF,
                                     .infer = binary_infer};

const adj_op adj_op_pow = {.name = "pow",
                           .n_in = 2,
                           .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_ROW},
                           .flags = ADJ_OP_ELEMENTWISE,
                           .infer = binary_infer,
                           .grad = pow_grad,
                           .domain = positive_domain};

adj_node *adj_add(adj_node *a, adj_node *b) { return adj_node_new2(&adj_op_add, a, b, NULL); }
adj_node *adj_sub(adj_node *a, adj_node *b) { return adj_node_new2(&adj_op_sub, a, b, NULL); }
adj_node *adj_mul(adj_node *a, adj_node *b) { return adj_node_new2(&adj_op_mul, a, b, NULL); }
adj_node *adj_div(adj_node *a, adj_node *b) { return adj_node_new2(&adj_op_div, a, b, NULL); }
adj_node *adj_pow(adj_node *a, adj_node *b) { return adj_node_new2(&adj_op_pow, a, b, NULL); }

adj_node *adj_maximum(adj_node *a, adj_node *b)
{
    return adj_node_new2(&adj_op_maximum, a, b, NULL);
}

adj_node *adj_minimum(adj_node *a, adj_node *b)
{
    return adj_node_new2(&adj_op_minimum, a, b, NULL);
}

adj_node *adj_equal(adj_node *a, adj_node *b) { return adj_node_new2(&adj_op_equal, a, b, NULL); }

adj_node *adj_greater_equal(adj_node *a, adj_node *b)
{
    return adj_node_new2(&adj_op_greater_equal, a, b, NULL);
}

/* ---- of one operand ----
 *
 * Gradients, in terms of the result where possible:
 *   neg -dy    scale factor dy    square 2 x dy    sqrt dy / (2 y)    exp dy y    log dy / x */

static void neg_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    (void)y;
    dx[0] = adj_neg(dy);
}

static double factor_of(const adj_node *n) { return ((const adj_value_attrs *)n->attrs)->value; }

static const adj_schema scale_schema = {
    .size = sizeof(adj_value_attrs),
    .attr = {{"factor", ADJ_ATTR_REAL, .offset = offsetof(adj_value_attrs, value), " x",
              .fallback = 0.3}}};

static void scale_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_scale(dy, factor_of(y));
}

/* True if dtype represents the number exactly. */
static int representable(adj_dtype dtype, double value)
{
    double element;
    adj_store(dtype, &element, 0, value);
    return adj_load(dtype, &element, 0) == value;
}

/* A scaled fill becomes a fill if neither value nor product is rounded. */
static adj_node *scale_simplify(const adj_node *n, adj_node *const in[])
{
    adj_dtype dtype = in[0]->type.dtype;
    double factor = factor_of(n), value;

    if (factor == 1)
        return in[0];
    if (adj_is_fill(in[0], &value) && representable(dtype, value) &&
        representable(dtype, value * factor))
        return adj_fill_like(in[0], value * factor);
    return NULL;
}

static void square_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_mul(dy, adj_scale(y->in[0], 2));
}

static void sqrt_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_div(adj_scale(dy, 0.5), y);
}

static void exp_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_mul(dy, y); }

static void log_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_div(dy, y->in[0]); }

const adj_op adj_op_neg = {.name = "neg",
                           .n_in = 1,
                           .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
                           .linear_in = ADJ_IN(0),
                           .grad = neg_grad};
const adj_op adj_op_scale = {.name = "scale",
                             .n_in = 1,
                             .schema = &scale_schema,
                             .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF,
                             .linear_in = ADJ_IN(0),
                             .grad = scale_grad,
                             .simplify = scale_simplify};
const adj_op adj_op_square = {
    .name = "square", .n_in = 1, .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_HALF, .grad = square_grad};
const adj_op adj_op_sqrt = {.name = "sqrt",
                            .n_in = 1,
                            .flags = ADJ_OP_ELEMENTWISE,
                            .grad = sqrt_grad,
                            .domain = positive_domain};
const adj_op adj_op_exp = {.name = "exp", .n_in = 1, .flags = ADJ_OP_ELEMENTWISE, .grad = exp_grad};
const adj_op adj_op_log = {.name = "log",
                           .n_in = 1,
                           .flags = ADJ_OP_ELEMENTWISE,
                           .grad = log_grad,
                           .domain = positive_domain};

adj_node *adj_neg(adj_node *x) { return adj_node_new1(&adj_op_neg, x, NULL); }

adj_node *adj_scale(adj_node *x, double factor)
{
    return adj_node_new1(&adj_op_scale, x, &(adj_value_attrs){.value = factor});
}

adj_node *adj_abs(adj_node *x)
{
    adj_node *above = adj_relu(x), *below = adj_relu(adj_neg(x));
    return adj_add(above, below);
}

adj_node *adj_square(adj_node *x) { return adj_node_new1(&adj_op_square, x, NULL); }
adj_node *adj_sqrt(adj_node *x) { return adj_node_new1(&adj_op_sqrt, x, NULL); }
adj_node *adj_exp(adj_node *x) { return adj_node_new1(&adj_op_exp, x, NULL); }
adj_node *adj_log(adj_node *x) { return adj_node_new1(&adj_op_log, x, NULL); }

/* ---- select: one of two whole tensors by a scalar ----
 *
 *   y = cond != 0 ? a : b      da = select(cond, dy, 0)      db = select(cond, 0, dy)
 * The tensor not selected takes no part, so a NaN in it does no harm. Closed under
 * differentiation. */

static adj_status check_condition(const adj_node *n)
{
    adj_type cond = n->in[0]->type;

    if (!adj_is_float(cond.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "select: cond is not a float (got %s)",
                        adj_dtype_name(cond.dtype));
    return adj_check_operand(n, 0, (adj_type){cond.dtype, {0}});
}

static adj_status select_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_status status = check_condition(n);
    *out = n->in[1]->type;
    return status == ADJ_OK ? adj_check_operand(n, 2, *out) : status;
}

static void select_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *zero = adj_fill_like(dy, 0);

    dx[0] = NULL;
    dx[1] = adj_select(y->in[0], dy, zero);
    dx[2] = adj_select(y->in[0], zero, dy);
}

static adj_node *select_simplify(const adj_node *n, adj_node *const in[])
{
    double cond;

    (void)n;
    if (adj_is_fill(in[0], &cond))
        return in[cond != 0 ? 1 : 2];
    return in[1] == in[2] ? in[1] : NULL;
}

const adj_op adj_op_select = {.name = "select",
                              .operand = {"cond", "a", "b"},
                              .example = {ADJ_EXAMPLE_NUMBER, ADJ_EXAMPLE_X, ADJ_EXAMPLE_X},
                              .n_in = 3,
                              .flags = ADJ_OP_ELEMENTWISE,
                              .linear_in = ADJ_IN(1) | ADJ_IN(2),
                              .sum_in = ADJ_IN(1) | ADJ_IN(2),
                              .infer = select_infer,
                              .grad = select_grad,
                              .simplify = select_simplify};

adj_node *adj_select(adj_node *cond, adj_node *a, adj_node *b)
{
    return adj_node_new3(&adj_op_select, cond, a, b, NULL);
}
