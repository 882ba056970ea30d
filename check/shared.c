/* shared.c - see shared.h. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "check/shared.h"

adj_status log_fail(check_log *l, adj_status status, const char *format, ...)
{
    va_list args;
    if (l->status != ADJ_OK)
        return l->status;
    va_start(args, format);
    c_vsnprintf(l->message, sizeof l->message, format, args);
    va_end(args);
    return l->status = status;
}

adj_status log_no_memory(check_log *l)
{
    return log_fail(l, ADJ_ENOMEM, "%s: out of memory", l->name);
}

const char *log_text(check_log *l, const char *format, ...)
{
    char text[ADJ_MESSAGE];
    va_list args;
    va_start(args, format);
    c_vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *kept = region_string(&l->region, text);
    if (kept == NULL)
        log_no_memory(l);
    return kept != NULL ? kept : "";
}

double ulp_of(adj_dtype dtype, double v)
{
    const adj_dtype_traits *of = adj_traits_of(dtype);
    if (of->unit == 0)
        return 1;
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    int e = (int)(bits >> 52 & 0x7ff) - 1023;
    e = (e > of->min_exponent ? e : of->min_exponent) - of->significand + 1;
    if (e < -1022)
        return ldexp(1, e);
    bits = (uint64_t)(e + 1023) << 52; /* for every element: ldexp is a call */
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Rounds by the spacing of the type's numbers: the library's conversion is under test. */
double rounded(adj_dtype dtype, double v)
{
    if (dtype == ADJ_F32)
        return (float)v;
    if (!adj_is_half(dtype) || !isfinite(v))
        return v;
    const double ulp = ulp_of(dtype, v), r = nearbyint(v / ulp) * ulp;
    return fabs(r) < ldexp(1, adj_traits_of(dtype)->max_exponent + 1) ? copysign(r, v)
                                                                      : copysign(INFINITY, v);
}

int real_attr(const adj_node *n, int64_t k, double *value)
{
    const adj_attr *a = n->op->schema != NULL ? n->op->schema->attr : NULL;
    for (; a != NULL && a->name != NULL; a++)
        if (a->kind == ADJ_ATTR_REAL && k-- == 0)
            return memcpy(value, (const char *)n->attrs + a->offset, sizeof *value), 1;
    return 0;
}

double special_value(const adj_node *n, int64_t i, double tiny)
{
    enum { ATTRS = 2, VALUES = 11 + ATTRS }; /* a prime number meets every channel */
    const double values[VALUES] = {0, -0.0, 6, 3, -3, 1, -1, 0.5, -0.5, tiny, -tiny};
    double v = values[i %= VALUES];
    real_attr(n, i - VALUES + ATTRS, &v);
    return v;
}

int is_inner_operand(const adj_node *n, int k)
{
    const adj_node *v = n->in[k];
    if ((n->op->flags & ADJ_OP_ELEMENTWISE) || v->n_in == 0 || !adj_is_float(v->type.dtype))
        return 0;
    for (int i = 0; i < v->n_in; i++)
        if (adj_operand_position(n, v->in[i]) < 0)
            return 0;
    return 1;
}

double max_magnitude(const double *v, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = fabs(v[i]) > max ? fabs(v[i]) : max;
    return max;
}

double max_of_operand(const adj_node *n, int k, adj_dtype dtype, const void *v)
{
    double max = 0;
    for (int64_t i = 0; adj_is_float(dtype) && i < node_elems(n->in[k]); i++) {
        const double element = fabs(adj_load(dtype, v, i));
        max = isfinite(element) && element > max ? element : max;
    }
    return max;
}

static int is_built_in(const adj_backend *backend)
{
    for (const adj_backend *const *b = adj_backends; *b != NULL; b++)
        if (strcmp((*b)->name, backend->name) == 0)
            return 1;
    return 0;
}

adj_status reference_backends(const adj_backend *const *own, region *p,
                              const adj_backend *const **list)
{
    const adj_backend *const *naive = adj_backends;
    size_t n = 0, kept = 0;
    *list = NULL;
    while (own != NULL && own[n] != NULL)
        n++;
    while (naive[1] != NULL)
        naive++;
    const adj_backend **all = region_alloc(p, n + 2, sizeof *all);
    if (all == NULL)
        return ADJ_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!is_built_in(own[i]))
            all[kept++] = own[i];
    all[kept] = *naive;
    if (kept > 0)
        *list = all;
    return ADJ_OK;
}

const char *other_impl(check_log *l, const char *wanted, const char *backend,
                       const char *implementation)
{
    if (wanted == NULL || strstr(implementation, wanted) != NULL)
        return "";
    if (implementation[0] != '\0')
        return log_text(l, "no implementation's name contains \"%.60s\"; ran %.30s %.60s", wanted,
                        backend, implementation);
    return log_text(l, "no implementation's name contains \"%.60s\"; no kernel computes it",
                    wanted);
}

/* ---- leaves ---- */

static void draw_default(const adj_node *n, uint64_t seed, void *v)
{
    int64_t elems = adj_shape_elems(n->type.shape);
    adj_dtype dtype = n->type.dtype;
    const adj_leaf_attrs *a = n->attrs;
    adj_init init = {.kind = ADJ_INIT_NORMAL, .b = 1};
    if (n->type.shape.rank == 0)
        init = (adj_init){.kind = ADJ_INIT_CONSTANT, .a = adj_is_float(dtype) ? 0.125 : 1};
    else if (!adj_is_float(dtype))
        init = (adj_init){.kind = ADJ_INIT_UNIFORM, .b = 2};
    if ((n->op->flags & ADJ_OP_KEPT) == 0) {
        adj_draw(dtype, v, elems, init, seed, n->id);
        return;
    }
    adj_draw_leaf(a, dtype, v, elems, seed, n->id);
    if (!adj_is_float(dtype) || (a->init != ADJ_INIT_CONSTANT && n->op != &adj_op_state))
        return;
    for (int64_t i = 0; i < elems; i++) { /* all alike would hide which one is read */
        double more;
        adj_draw(ADJ_F64, &more, 1, (adj_init){.kind = ADJ_INIT_UNIFORM, .b = 0.25},
                 seed + 1 + (uint64_t)i, n->id);
        adj_store(dtype, v, i, adj_load(dtype, v, i) + more);
    }
}

/* Returns the op that restricts an input's values, such as labels, or NULL; *operand: its index. */
static const adj_node *reader_of(const adj_node *n, int *operand)
{
    const adj_graph *g = n->graph;
    if (n->op->flags & ADJ_OP_KEPT)
        return NULL;
    for (int id = 0; id < g->n_node; id++)
        for (int k = 0; k < g->node[id]->n_in && g->node[id]->op->domain != NULL; k++)
            if (g->node[id]->in[k] == n) {
                *operand = k;
                return g->node[id];
            }
    return NULL;
}

adj_status draw_leaf(const adj_node *n, int in_domain, uint64_t seed, region *p, void *v)
{
    const int64_t elems = adj_shape_elems(n->type.shape);
    const adj_dtype dtype = n->type.dtype;
    int operand = 0;
    const adj_node *reader = in_domain || dtype == ADJ_I32 ? reader_of(n, &operand) : NULL;
    if (reader == NULL)
        return draw_default(n, seed, v), ADJ_OK;
    double *x = region_alloc(p, (size_t)elems + 1, sizeof *x);
    if (x == NULL)
        return ADJ_ENOMEM;
    adj_draw(ADJ_F64, x, elems, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1}, seed, n->id);
    reader->op->domain(reader, operand, elems, x);
    for (int64_t i = 0; i < elems; i++)
        adj_store(dtype, v, i, dtype == ADJ_I32 ? floor(x[i]) : x[i]);
    return ADJ_OK;
}

const char *unread_option(const adj_exec_opts *o)
{
    const struct {
        const char *name;
        int is_set;
    } options[] = {{"math", o->math != ADJ_MATH_EXACT},
                   {"precision", o->precision != ADJ_PRECISION_AS_BUILT},
                   {"loss_scale", o->loss_scale != 0},
                   {"allocator", o->allocator != NULL},
                   {"tune", o->tune != 0},
                   {"tune_file", o->tune_file != NULL},
                   {"tune_seconds", o->tune_seconds != 0},
                   {"recompute", o->recompute != 0},
                   {"same_bits", o->same_bits != 0}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].is_set)
            return options[i].name;
    return NULL;
}
