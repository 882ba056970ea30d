/* node.c - runs one node alone on given operands: under a configuration, and under the reference
 * for the expected result. node_bound.c bounds the error. */
#include <math.h>
#include <string.h>

#include "check/formula.h"
#include "compare.h"

/* Largest random integers; smaller for half types, whose sums would round, and for sums of LONG_SUM
 * terms or more, which would exceed f32. */
enum { SMALL_INTEGER = 3, INTEGER_OF_HALF = 15, LONG_SUM = 1 << 16 };

/* The largest of the integers that replace operand x. */
static int largest_integer(adj_dtype dtype, const adj_node *x)
{
    return adj_is_half(dtype) && node_elems(x) < LONG_SUM ? INTEGER_OF_HALF : SMALL_INTEGER;
}

adj_status run_trial(const runner *b, const trial *t, region *p, outcome *o)
{
    trial as_built = *t;
    as_built.as_built = 1;
    const int is_elsewhere = b->trials != NULL && (b->trials->guard || t->config->isa[0] != '\0');
    if (t->config != b->reference)
        return is_elsewhere ? trial_elsewhere(t, b->trials, p, o) : trial_here(t, p, o);
    adj_status status = trial_here(&as_built, p, o);
    /* A pass makes other ops of the caller's own. */
    return status == ADJ_OK && o->status == ADJ_ENOKERNEL ? trial_here(t, p, o) : status;
}

static adj_dtype type_under(const adj_compare_config *c, const adj_node *n)
{
    return config_dtype(c, n->type.dtype);
}

void *convert(region *p, adj_dtype from, const void *v, adj_dtype to, int64_t n)
{
    void *copy = region_alloc(p, (size_t)n + 1, adj_dtype_size(to));
    if (copy != NULL)
        adj_convert(from, v, to, copy, n);
    return copy;
}

int is_linear(const adj_node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (adj_is_float(n->in[k]->type.dtype) && !is_linear_in(n, k))
            return 0;
    return n->op->linear_in != 0 && adj_is_float(n->type.dtype);
}

/* ---- a trial of one node ---- */

adj_status trial_open(const runner *b, const adj_compare_config *c, int n_leaf, int n_fetch,
                      region *p, trial *t)
{
    const adj_graph_opts opts = {.allocator = &p->allocator};
    const adj_backend *const *backends = b->opts->exec.backends;
    if (c == b->reference && reference_backends(backends, p, &backends) != ADJ_OK)
        return *t = (trial){0}, ADJ_ENOMEM;
    *t = (trial){.config = c,
                 .backends = backends,
                 .g = adj_graph_new_with(ADJ_VERSION, &opts),
                 .fetch = region_alloc(p, (size_t)n_fetch + 1, sizeof(adj_node *)),
                 .leaf = region_alloc(p, (size_t)n_leaf + 1, sizeof(adj_node *)),
                 .data = region_alloc(p, (size_t)n_leaf + 1, sizeof(void *)),
                 .threads = b->opts->exec.threads,
                 .runs = b->runs,
                 .internal = b->trials != NULL ? b->trials->internal : NULL};
    return t->g != NULL && t->fetch != NULL && t->leaf != NULL && t->data != NULL ? ADJ_OK
                                                                                  : ADJ_ENOMEM;
}

adj_node *trial_leaf(trial *t, adj_type type, const void *data)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", t->n_leaf);
    t->data[t->n_leaf] = data;
    return t->leaf[t->n_leaf++] = adj_input(t->g, name, type.dtype, type.shape);
}

adj_node *trial_node(const trial *t, const adj_compare_config *c, const adj_node *n,
                     adj_node *const image[])
{
    adj_node *in[MAX_IN];
    for (int k = 0; k < n->n_in; k++)
        in[k] = image[n->in[k]->id];
    t->g->role = n->role;
    return c != NULL ? config_rule(c, t->g, n, in)
                     : adj_node_new(t->g, n->op, n->n_in, in, n->attrs);
}

/* Builds a graph of leaves and the node. operand: in the types of c's node. */
static adj_status trial_of(const runner *b, const adj_node *n, void *const operand[],
                           const adj_compare_config *c, region *p, trial *t)
{
    adj_node *in[MAX_IN] = {NULL};
    adj_status status = trial_open(b, c, n->n_in, 1, p, t);
    for (int k = 0; k < n->n_in && status == ADJ_OK; k++) {
        const int same = adj_operand_position(n, n->in[k]); /* a repeated operand is one leaf */
        const adj_type type = {type_under(c, n->in[k]), n->in[k]->type.shape};
        if (same == k && mixed_scale(b, c, n, k) != 1)
            t->g->role = ADJ_ROLE_GRADIENT; /* mixed precision then scales it, as in the graph */
        in[k] = same < k ? in[same] : trial_leaf(t, type, operand[k]);
        t->g->role = ADJ_ROLE_FORWARD;
    }
    if (status == ADJ_OK)
        t->fetch[t->n_fetch++] = config_rule(c, t->g, n, in);
    t->aliases = b->runs > 0;
    return status;
}

adj_status run_node(const runner *b, const adj_node *n, void *const operand[],
                    const adj_compare_config *c, region *p, outcome *o)
{
    trial t;
    *o = (outcome){0};
    adj_status status = trial_of(b, n, operand, c, p, &t);
    if (status == ADJ_OK && t.fetch[0] == NULL) {
        o->status = adj_graph_status(t.g);
        outcome_message(o, adj_graph_message(t.g));
        status = o->status == ADJ_ENOMEM ? ADJ_ENOMEM : ADJ_OK; /* no fault of the node */
    } else if (status == ADJ_OK) {
        status = run_trial(b, &t, p, o);
    }
    adj_graph_free(t.g);
    return status;
}

adj_status run_reference(const runner *b, const adj_node *n, void *const operand[], region *p,
                         outcome *o)
{
    runner untimed = *b;
    untimed.runs = 0;
    return run_node(&untimed, n, operand, b->reference, p, o);
}

/* ---- operands ---- */

void to_integers(adj_dtype dtype, void *v, int64_t n, const double *max, int largest, uint64_t seed,
                 uint64_t stream)
{
    const double scale = max != NULL && *max > 0 && isfinite(*max) ? 20 / *max : 1;
    if (max == NULL)
        adj_draw(dtype, v, n, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -largest, .b = largest},
                 seed, stream);
    for (int64_t i = 0; i < n; i++)
        adj_store(dtype, v, i, nearbyint(adj_load(dtype, v, i) * scale));
}

/* Returns the largest magnitude among operands in which the node is not linear. */
static double max_of_fixed(const node_case *n)
{
    double max = 0;
    for (int m = 0; m < n->node->n_in; m++)
        if (!is_linear_in(n->node, m))
            max = fmax(max, max_of_operand(n->node, m, n->dtype[m], n->operand[m]));
    return max;
}

/* Rounds the operands as c does, in the types of `as`; in mixed precision to the half type. */
static adj_status round_operands(const runner *b, const node_case *n, const adj_compare_config *c,
                                 const adj_compare_config *as, region *p, void *operand[])
{
    double max = n->exact ? max_of_fixed(n) : 0;
    const adj_dtype half = mixed_type(c, n->node);
    for (int k = 0; k < n->node->n_in; k++) {
        const adj_node *x = n->node->in[k];
        const int same = adj_operand_position(n->node, x);
        if (same < k) {
            operand[k] = operand[same];
            continue;
        }
        void *v = convert(p, n->dtype[k], n->operand[k], type_under(c, x), node_elems(x));
        if (v == NULL)
            return ADJ_ENOMEM;
        if (n->exact && adj_is_float(x->type.dtype))
            to_integers(type_under(c, x), v, node_elems(x), is_linear_in(n->node, k) ? NULL : &max,
                        largest_integer(type_under(c, x), x), n->node->id + 1, (uint64_t)k);
        const double scale = mixed_scale(b, c, n->node, k);
        if (n->is_alone && half != ADJ_F32 && type_under(c, x) == ADJ_F32)
            for (int64_t i = 0, n_elems = node_elems(x); i < n_elems; i++)
                ((float *)v)[i] = (float)(rounded(half, scale * ((float *)v)[i]) / scale);
        operand[k] = convert(p, type_under(c, x), v, type_under(as, x), node_elems(x));
        if (operand[k] == NULL)
            return ADJ_ENOMEM;
    }
    return ADJ_OK;
}

double **in_float64(const runner *b, const adj_node *n, void *const operand[], region *p)
{
    double **wide = region_alloc(p, (size_t)n->n_in + 1, sizeof *wide);
    for (int k = 0; wide != NULL && k < n->n_in; k++) {
        const adj_node *x = n->in[k];
        const adj_dtype dtype = type_under(b->reference, x);
        wide[k] =
            dtype == ADJ_F64 ? operand[k] : convert(p, dtype, operand[k], ADJ_F64, node_elems(x));
        if (wide[k] == NULL)
            return NULL;
    }
    return wide;
}

double **real_operands(const runner *b, const node_case *n, const adj_compare_config *c, region *p)
{
    void *operand[MAX_IN] = {NULL};
    const adj_status status = round_operands(b, n, c, b->reference, p, operand);
    return status == ADJ_OK ? in_float64(b, n->node, operand, p) : NULL;
}

adj_status node_run(const runner *b, const node_case *n, const adj_compare_config *c, region *p,
                    outcome *o)
{
    void *operand[MAX_IN] = {NULL};
    adj_status status = round_operands(b, n, c, c, p, operand);
    return status == ADJ_OK ? run_node(b, n->node, operand, c, p, o) : status;
}

/* A fraction of the largest result in float64, which the formula itself rounds. */
static const double formula_rounding = 1e-12;

adj_status take_formula(const adj_node *n, adj_dtype dtype, double *const operand[], region *p,
                        expectation *e)
{
    const int64_t elems = node_elems(n);
    double *value = convert(p, e->dtype, e->expected, ADJ_F64, elems), max = 0;
    if (value == NULL || operand == NULL)
        return ADJ_ENOMEM;
    formula_value(n, operand, value);
    for (int64_t i = 0; i < elems && dtype == ADJ_F64; i++)
        max = isfinite(value[i]) ? fmax(max, fabs(value[i])) : max;
    for (int64_t i = 0; i < elems; i++) {
        if (e->noise != NULL)
            e->noise[i] += formula_rounding * max;
        const double more = fabs(value[i]) - fabs(adj_load(e->dtype, e->expected, i));
        e->bound[i] += formula_rounding * max + (more > 0 && isfinite(more) ? e->stored * more : 0);
    }
    e->dtype = ADJ_F64;
    e->expected = value;
    return ADJ_OK;
}

static adj_status blame_race(const runner *b, const node_case *n, const adj_compare_config *c,
                             const expectation *e, region *p, compare_row *row)
{
    adj_compare_config one = *c;
    outcome o;
    one.threads = 1;
    if ((c->threads > 0 ? c->threads : b->opts->exec.threads) == 1)
        return ADJ_OK;
    adj_status status = node_run(b, n, &one, p, &o);
    if (status == ADJ_OK && o.status == ADJ_OK)
        status = accept_nonfinite(b, c, n, row->type, o.value[0], e, p);
    if (status != ADJ_OK || o.status != ADJ_OK)
        return status;
    const adj_compare_error error = measure_error(row->type, o.value[0], e);
    if (is_wrong(&error))
        return ADJ_OK;
    row->repeats = 0;
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = ADJ_BLAME_KERNEL;
    row->reason = "not repeatable: right on one thread, wrong on several (a data race)";
    return ADJ_OK;
}

/* Blames the first pass that changes the node's result in f64. */
static adj_status blame_pass(const runner *b, const node_case *n, const adj_compare_config *c,
                             check_log *log, region *p, compare_row *row)
{
    void *operand[MAX_IN] = {NULL};
    trial t;
    outcome o = {0};
    adj_status status = round_operands(b, n, c, c, p, operand);
    if (status != ADJ_OK)
        return status;
    status = trial_of(b, n->node, operand, c, p, &t);
    t.watched = 1;
    t.runs = t.aliases = 0;
    if (status == ADJ_OK && t.fetch[0] != NULL)
        status = run_trial(b, &t, p, &o);
    adj_graph_free(t.g);
    if (strncmp(o.plan_fault, "pass ", 5) != 0)
        return status;
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = ADJ_BLAME_PLAN;
    row->reason = log_text(log, "%s", o.plan_fault);
    return log->status != ADJ_OK ? log->status : status;
}

adj_status blame_wrong_node(const runner *b, const node_case *n, const adj_compare_config *c,
                            const expectation *e, check_log *log, region *p, compare_row *row)
{
    const adj_status status = blame_race(b, n, c, e, p, row);
    return status == ADJ_OK && row->repeats ? blame_pass(b, n, c, log, p, row) : status;
}

adj_status node_expect(const runner *b, const node_case *n, const adj_compare_config *c, region *p,
                       expectation *e, outcome *o)
{
    void *operand[MAX_IN] = {NULL};
    adj_status status = round_operands(b, n, c, b->reference, p, operand);
    const bound_case alone = {.node = n->node,
                              .base = n->base,
                              .operand = operand,
                              .dtype = type_under(c, n->node),
                              .exact = n->exact,
                              .is_representable = n->is_alone,
                              .config = c};
    if (status == ADJ_OK)
        status = node_bound(b, &alone, p, e, o);
    return status == ADJ_OK && o->status == ADJ_OK && n->by_formula && formula_exists(n->node)
               ? take_formula(n->node, alone.dtype, in_float64(b, n->node, operand, p), p, e)
               : status;
}
