/* node_bound.c - the expected result of a node alone, and a bound for each element.
 *
 * The stored result is rounded once, to within u |y|, u being the unit roundoff of its type. Half
 * types are summed in f32, with unit u_sum. For a node linear in its operands, y = sum a b over L
 * terms, the sum errs by at most L u_sum sum |a b|; the sum of magnitudes is the same node on
 * absolute values. Other nodes err by (1 + L) u_sum times the largest magnitude of the result,
 * times a factor for a few inner roundings. Errors of the reference count as well.
 *
 * This bound grows with L and exceeds what rounding gives all elements at once. So each element
 * also has an expected RMS error: noise_of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/machine/isa_level.h"
#include "check/formula.h"
#include "compare.h"

enum { INSIDE = 8 };

/* ---- mixed precision: half types on the way, and what is too small for them ---- */

adj_dtype config_half(const adj_compare_config *c)
{
    if (c->precision == ADJ_PRECISION_AS_BUILT)
        return ADJ_F32;
    return c->precision == ADJ_PRECISION_F16 ? ADJ_F16 : ADJ_BF16;
}

adj_dtype mixed_type(const adj_compare_config *c, const adj_node *n)
{
    const unsigned may_be_half = ADJ_OP_HALF | ADJ_OP_HALF_ALWAYS | ADJ_OP_HALF_SUM;
    const int is_f32 = config_dtype(c, n->type.dtype) == ADJ_F32;
    return n->op->flags & may_be_half && is_f32 ? config_half(c) : ADJ_F32;
}

/* Returns the largest magnitude in the other float operands, at least 1. */
static double max_of_others(const runner *b, const bound_case *c, int k)
{
    double max = 1;
    for (int m = 0; m < c->node->n_in; m++)
        if (m != k)
            max = fmax(max, max_of_operand(c->node, m,
                                           config_dtype(b->reference, c->node->in[m]->type.dtype),
                                           c->operand[m]));
    return max;
}

double mixed_scale(const runner *b, const adj_compare_config *c, const adj_node *n, int k)
{
    if (!b->scales || mixed_type(c, n) != ADJ_F16 || n->in[k]->role != ADJ_ROLE_GRADIENT)
        return 1;
    if (n->op->sum_in != 0)
        return has_operand_bit(n->op->sum_in, k) ? LOSS_SCALE : 1;
    for (int m = 0; m < k; m++) /* the first in which it is linear */
        if (n->in[m]->role == ADJ_ROLE_GRADIENT && is_linear_in(n, m))
            return 1;
    return is_linear_in(n, k) ? LOSS_SCALE : 1;
}

/* Returns the underflow error of sums of that many terms in the half type. */
static double mixed_smallest(const runner *b, const bound_case *c, double length)
{
    const adj_dtype half = mixed_type(c->config, c->node);
    double result = 1, operands = 0;
    if (half == ADJ_F32)
        return 0;
    for (int k = 0; k < c->node->n_in; k++) {
        const double scale = mixed_scale(b, c->config, c->node, k);
        result = fmax(result, scale);
        if (!c->is_representable && adj_is_float(c->node->in[k]->type.dtype))
            operands += length * max_of_others(b, c, k) / scale;
    }
    return adj_traits_of(half)->floor * (1 / result + operands);
}

/* ---- magnitudes ---- */

/* Raises magnitude[i] to |y[i]|, or adds it. */
static void gather(const adj_node *n, const outcome *o, adj_dtype dtype, int add, double *magnitude)
{
    for (int64_t i = 0, n_elems = node_elems(n); o->status == ADJ_OK && i < n_elems; i++) {
        double v = fabs(adj_load(dtype, o->value[0], i));
        magnitude[i] = add ? magnitude[i] + v : v > magnitude[i] ? v : magnitude[i];
    }
}

static unsigned linear_in(const adj_node *n)
{
    return n->op->cancels_in != 0 ? n->op->cancels_in : n->op->linear_in;
}

/* Runs n on absolute values of its linear operands. only: sets the other linear operands to 0, for
 * a - b, whose terms would cancel. */
static adj_status run_magnitudes(const runner *b, const adj_node *n, void *const operand[],
                                 int only, region *p, outcome *o)
{
    void *v[MAX_IN];
    for (int k = 0; k < n->n_in; k++) {
        adj_dtype dtype = config_dtype(b->reference, n->in[k]->type.dtype);
        v[k] = operand[k];
        if (!adj_is_float(dtype) || !has_operand_bit(linear_in(n), k))
            continue;
        if ((v[k] = convert(p, dtype, operand[k], dtype, node_elems(n->in[k]))) == NULL)
            return ADJ_ENOMEM;
        for (int64_t i = 0, n_elems = node_elems(n->in[k]); i < n_elems; i++)
            adj_store(dtype, v[k], i, only == k || only < 0 ? fabs(adj_load(dtype, v[k], i)) : 0);
    }
    return run_reference(b, n, v, p, o);
}

/* Sets magnitude[i] to max(magnitude[i], the sum of the magnitudes of y[i]'s terms). */
static adj_status magnitudes(const runner *b, const adj_node *n, void *const operand[], region *p,
                             double *magnitude)
{
    adj_dtype dtype = config_dtype(b->reference, n->type.dtype);
    double **v = n->op->cancels_in != 0 ? in_float64(b, n, operand, p) : NULL;
    double *size = v != NULL ? region_alloc(p, (size_t)node_elems(n) + 1, sizeof *size) : NULL;
    outcome o;
    adj_status status = ADJ_OK;
    int floats = 0;
    if (n->op->cancels_in != 0 && size == NULL)
        return ADJ_ENOMEM;
    if (n->op->cancels_in != 0 && formula_terms(n, v, size)) {
        for (int64_t i = 0; i < node_elems(n); i++)
            magnitude[i] = fmax(magnitude[i], size[i]);
        return ADJ_OK;
    }
    for (int k = 0; k < n->n_in; k++)
        floats += adj_is_float(n->in[k]->type.dtype);
    if ((is_linear(n) && floats > 1 && (n->op->flags & ADJ_OP_ELEMENTWISE)) ||
        n->op->cancels_in != 0)
        for (int k = 0; k < n->n_in && status == ADJ_OK; k++)
            if ((status = run_magnitudes(b, n, operand, k, p, &o)) == ADJ_OK)
                gather(n, &o, dtype, 1, magnitude);
    if (status == ADJ_OK && linear_in(n) != 0 &&
        (status = run_magnitudes(b, n, operand, -1, p, &o)) == ADJ_OK)
        gather(n, &o, dtype, 0, magnitude);
    return status;
}

/* Returns the largest number of terms in a sum. */
static double length_of(const adj_node *n, double flop)
{
    double out = fmax(1, (double)node_elems(n)), in = 0;
    double length = n->op->sum_length != NULL ? n->op->sum_length(n) : 1;
    for (int k = 0; k < n->n_in; k++)
        in = fmax(in, (double)node_elems(n->in[k]));
    return fmax(fmax(1, length), ceil(fmax(flop / 2 / out, in / out)));
}

static int is_fast_conv(const adj_compare_config *c, const adj_node *n)
{
    return c->fast && (n->op == &adj_op_conv2d || n->op == &adj_op_conv2d_backprop_input ||
                       n->op == &adj_op_conv2d_backprop_filter);
}

int may_be_winograd(const adj_compare_config *c, const adj_node *n)
{
    if (!is_fast_conv(c, n))
        return 0;
    const adj_conv_geom *g = adj_node_geom(n);
    const int is_5x5 = g->kh == 5 && g->kw == 5 && g->sh == 1 && g->sw == 1 && g->dh == 1 &&
                       g->dw == 1 && g->groups == 1 && g->ic >= 16 && g->oc >= 16;
    return is_5x5 || (g->kh == 3 && g->kw == 3);
}

/* True if products of bf16 terms may compute c (conv_bf16.h), also for half types without a kernel
 * of their own. Only with AMX, as the bound is wider. */
static int may_be_in_terms(const bound_case *c)
{
    const char *isa = c->config->isa;
    return c->dtype != ADJ_F64 && is_fast_conv(c->config, c->node) &&
           machine_isa_level() >= ISA_LEVEL_AMX && (isa[0] == '\0' || strstr(isa, "amx") != NULL);
}

/* Product of bf16 terms: truncation error, and number of partial products. */
static const double left_out = 0x1p-15;
enum { PRODUCTS = 3 };

/* Returns the number of terms in a sum of that many products. */
static double terms_of(const bound_case *c, double length)
{
    return may_be_in_terms(c) ? PRODUCTS * length : length;
}

static int is_mixed(const bound_case *c) { return mixed_type(c->config, c->node) != ADJ_F32; }

static adj_dtype stored_type(const bound_case *c)
{
    return is_mixed(c) ? mixed_type(c->config, c->node) : c->dtype;
}

/* Returns the unit roundoff of sums, which are computed in float or double. */
static double sum_unit(adj_dtype dtype)
{
    double unit = adj_traits_of(dtype)->unit;
    return unit < 0x1p-24 ? unit : 0x1p-24;
}

/* Coefficients of an element's bound. */
typedef struct {
    double stored;   /* times |y| */
    double inside;   /* times sum |a b|, or the largest magnitude */
    double walk;     /* squared error of a partial sum, relative to it */
    double of_terms; /* error of each term, relative */
    double smallest;
    adj_dtype type; /* that is stored */
} rounding;

/* Safety factor: correct kernels use at most 0.9 of the bound. */
static const double nearest = 1.125;

static rounding rounding_of(const runner *b, const bound_case *c, int is_sum, double length)
{
    const adj_dtype_traits *of = adj_traits_of(c->dtype);
    const adj_dtype_traits *terms = adj_is_half(c->dtype) ? adj_traits_of(ADJ_F32) : of;
    const adj_dtype reference = config_dtype(b->reference, c->node->type.dtype);
    const double sum = sum_unit(c->dtype) + sum_unit(reference);
    const double half = is_mixed(c) ? adj_traits_of(mixed_type(c->config, c->node))->unit : 0;
    rounding r = {.stored = nearest * (fmax(of->unit, half) + adj_traits_of(reference)->unit),
                  .type = stored_type(c),
                  .smallest = of->floor + length * terms->floor + mixed_smallest(b, c, length)};
    if (!c->is_representable)
        r.of_terms += 2 * half; /* rounding of two operands */
    if (may_be_winograd(c->config, c->node))
        r.of_terms += sum_unit(c->dtype); /* rounding of transformed operands */
    if (may_be_in_terms(c))
        r.of_terms += left_out;
    r.inside = (is_sum ? length : 1 + length) * sum + r.of_terms;
    r.walk = sum * sum * (is_sum ? sqrt(length) : 1);
    return r;
}

/* Returns the expected RMS error of element y: rounding of the stored value, and a random walk of
 * the partial sums towards y (size for nodes that do not sum). The power of length allows for walks
 * that leave the line, and for repeated terms. */
static double noise_of(const rounding *r, int is_sum, double length, double y, double size)
{
    const double ulp = ulp_of(r->type, y), end = is_sum ? y : size;
    return sqrt(ulp * ulp / 12 + r->walk * (length * end * end + size * size)) +
           r->of_terms * size + r->smallest;
}

static void describe_bound(const bound_case *c, int is_sum, double length, expectation *e)
{
    const int is_half = is_mixed(c);
    const char *type = adj_dtype_name(stored_type(c));
    const char *sums = sum_unit(c->dtype) == 0x1p-53 ? "f64" : "f32";
    char terms[32] = "";
    if (!adj_is_float(c->dtype)) {
        snprintf(e->origin, sizeof e->origin, "equality");
        return;
    }
    if (may_be_in_terms(c))
        c_snprintf(terms, sizeof terms, " + %g", left_out);
    c_snprintf(e->origin, sizeof e->origin, "u_%s%s |y| + %s%g u_%s%s%s %s", type,
               is_half ? " mixed" : "", terms[0] != '\0' ? "(" : "",
               is_sum ? length : INSIDE * (1 + length), sums, terms, terms[0] != '\0' ? ")" : "",
               is_sum ? "sum|ab|" : "max|y|");
}

static void set_bounds(const runner *b, const bound_case *c, double length, double *magnitude,
                       expectation *e)
{
    const adj_node *n = c->node;
    const int is_sum = is_linear(n) && !may_be_winograd(c->config, n);
    const rounding r = rounding_of(b, c, is_sum, length);
    double max = 0;
    e->stored = r.stored;
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++)
        if (isfinite(magnitude[i]) && magnitude[i] > max)
            max = magnitude[i];
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++) {
        const double y = fabs(adj_load(e->dtype, e->expected, i));
        const double size = is_sum ? magnitude[i] : max;
        e->noise[i] = noise_of(&r, is_sum, length, y, size);
        e->bound[i] = r.stored * y + r.inside * size * (is_sum ? 1 : INSIDE) + r.smallest;
    }
    describe_bound(c, is_sum, length, e);
}

/* True if an attribute is not a short binary fraction, so that products with it round. */
static int has_fraction(const adj_node *n)
{
    double v;
    for (int k = 0; real_attr(n, k, &v); k++)
        if (v * 256 != nearbyint(v * 256))
            return 1;
    return n->op == &adj_op_adam_step;
}

/* True if all values are integers too small for any sum to have been rounded. */
static int is_exact(const bound_case *c, const expectation *e, const double *magnitude)
{
    const adj_node *n = c->node;
    if (has_fraction(n) || may_be_winograd(c->config, n) || is_mixed(c))
        return 0;
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++) {
        double v = adj_load(e->dtype, e->expected, i);
        if (v != nearbyint(v) || fmax(fabs(v), magnitude[i]) >= 0x1p24)
            return 0;
    }
    return 1;
}

/* Takes the bounds of the base, for what may have become another number; the base's bound is NaN
 * where it has an infinity. */
static void take_bounds(const bound_case *c, expectation *e)
{
    const double floor = adj_traits_of(stored_type(c))->floor;
    e->stored = c->base->stored;
    e->exact = c->base->exact;
    for (int64_t i = 0, n_elems = node_elems(c->node); i < n_elems; i++)
        e->bound[i] =
            fmax(c->base->bound[i], e->stored * fabs(adj_load(e->dtype, e->expected, i)) + floor);
}

adj_status node_bound(const runner *b, const bound_case *n, region *p, expectation *e, outcome *o)
{
    const adj_node *node = n->node;
    *e = (expectation){.dtype = config_dtype(b->reference, node->type.dtype)};
    adj_status status = run_reference(b, node, n->operand, p, o);
    if (status != ADJ_OK || o->status != ADJ_OK)
        return status;
    e->expected = o->value[0];
    e->bound = region_alloc(p, (size_t)node_elems(node) + 1, sizeof *e->bound);
    if (e->bound == NULL)
        return ADJ_ENOMEM;
    if (n->base != NULL)
        return take_bounds(n, e), ADJ_OK;
    e->noise = region_alloc(p, (size_t)node_elems(node) + 1, sizeof *e->noise);
    if (e->noise == NULL)
        return ADJ_ENOMEM;
    gather(node, o, e->dtype, 0, e->bound);
    if (adj_is_float(node->type.dtype))
        status = magnitudes(b, node, n->operand, p, e->bound);
    if (status != ADJ_OK)
        return status;
    e->exact = !adj_is_float(node->type.dtype) || (n->exact && is_exact(n, e, e->bound));
    set_bounds(b, n, terms_of(n, length_of(node, o->info[0].flop)), e->bound, e);
    if (e->exact)
        snprintf(e->origin, sizeof e->origin, "equality");
    return ADJ_OK;
}
