/* update.c - steps of optimizers, which have no gradient to check: each is run for several steps,
 * its first operand becoming the result as in training, and compared with its formula in float64
 * (check/formula.c). First by the backend under test in the node's types, then by naive in float64,
 * the reference of all other checks.
 *
 * A result y = sum of terms is rounded when it is stored, and its terms by the few operations that
 * make them: |error| <= u |y| + OPERATIONS u_acc sum |terms|. An eighth of u is added: what is
 * stored in a half type is u off where it lies between two of its numbers. */
#include <math.h>
#include <string.h>

#include "check/formula.h"
#include "gradcheck.h"

enum { STEPS = 5, OPERATIONS = 16, STREAM = 97 };
enum { MAX_WIDE = 1 << 13 }; /* elements: what naive does to one it does to all */

static const double margin = 1.125;

typedef struct {
    adj_gradcheck_report *r;
    const adj_node *node; /* the user's */
    int is_wide;          /* floats are float64, and naive computes them */
    region region;
    adj_graph *graph;
    adj_node *y, **leaf; /* leaf: by operand; the first is the state that y becomes */
    adj_exec *exec;
    double **x;                     /* by operand: values that the types hold */
    double *got, *expected, *terms; /* terms: the sum of their magnitudes */
    double worst;                   /* in tolerances */
} course;

static adj_type type_of(const course *c, const adj_node *n)
{
    return (adj_type){c->is_wide && adj_is_float(n->type.dtype) ? ADJ_F64 : n->type.dtype,
                      n->type.shape};
}

static double *numbers(course *c, int64_t n)
{
    return region_alloc(&c->region, (size_t)n + 1, sizeof(double));
}

static adj_status build(course *c)
{
    const adj_node *n = c->node;
    const adj_graph_opts opts = {.allocator = &c->r->region.allocator};
    c->leaf = region_alloc(&c->region, (size_t)n->n_in, sizeof *c->leaf);
    c->x = region_alloc(&c->region, (size_t)n->n_in, sizeof *c->x);
    c->got = numbers(c, node_elems(n));
    c->expected = numbers(c, node_elems(n));
    c->terms = numbers(c, node_elems(n));
    c->graph = adj_graph_new_with(ADJ_VERSION, &opts);
    if (c->leaf == NULL || c->x == NULL || c->got == NULL || c->expected == NULL ||
        c->terms == NULL || c->graph == NULL)
        return ADJ_ENOMEM;
    for (int k = 0; k < n->n_in; k++) {
        const int first = adj_operand_position(n, n->in[k]);
        const adj_type t = type_of(c, n->in[k]);
        char name[16];
        snprintf(name, sizeof name, "in%d", k);
        c->leaf[k] = first < k ? c->leaf[first]
                     : k > 0   ? adj_input(c->graph, name, t.dtype, t.shape)
                               : adj_state(c->graph, name, t.dtype, t.shape, (adj_init){0});
        if ((c->x[k] = first < k ? c->x[first] : numbers(c, node_elems(n->in[k]))) == NULL)
            return ADJ_ENOMEM;
    }
    c->y = adj_node_new(c->graph, n->op, n->n_in, c->leaf, n->attrs);
    return adj_graph_status(c->graph);
}

static adj_status plan(course *c)
{
    const adj_gradcheck_opts *o = &c->r->opts;
    adj_updates *updates = adj_updates_new(c->graph);
    adj_exec_opts opts = {.n_fetch = 1,
                          .fetch = &c->y,
                          .updates = updates,
                          .backend = "naive",
                          .threads = c->r->about.threads};
    if (!c->is_wide) {
        opts.backend = o->backend;
        opts.debug = o->debug;
    }
    adj_status status = updates != NULL ? adj_updates_add(updates, c->leaf[0], c->y) : ADJ_ENOMEM;
    return status == ADJ_OK ? adj_exec_new(c->graph, &opts, &c->exec) : status;
}

static adj_status give(course *c, int k)
{
    const adj_node *leaf = c->leaf[k];
    double *raw = numbers(c, node_elems(leaf));
    if (raw == NULL)
        return ADJ_ENOMEM;
    adj_convert(ADJ_F64, c->x[k], leaf->type.dtype, raw, node_elems(leaf));
    return adj_set(c->exec, leaf, raw, adj_type_bytes(leaf->type));
}

/* A value for element i from u in [-1, 1). */
static double value_of(const course *c, int k, int64_t i, double u)
{
    const int is_adam = c->node->op == &adj_op_adam_step;
    if (is_adam && i == 0 && (k == 1 || k == 2) &&
        ((const adj_adam_attrs *)c->node->attrs)->epsilon > 0)
        return 0; /* a gradient that was always 0: epsilon alone is divided by */
    if (is_adam && k == 2)
        return (0.1 + fabs(u)) * (0.1 + fabs(u)); /* a mean of squares */
    return c->leaf[k]->type.shape.rank == 0 ? 0.05 + 0.04 * u : u;
}

/* An integer is the number of the step. */
static adj_status draw(course *c, int k, int step)
{
    const adj_type type = c->leaf[k]->type;
    const adj_init range = {ADJ_INIT_UNIFORM, -1, 1};
    double *x = c->x[k];
    adj_draw(ADJ_F64, x, adj_shape_elems(type.shape), range, c->r->opts.seed,
             (uint64_t)(STREAM * (step + 1) + k));
    for (int64_t i = 0; i < adj_shape_elems(type.shape); i++)
        x[i] = adj_is_float(type.dtype) ? rounded(type.dtype, value_of(c, k, i, x[i])) : step;
    return give(c, k);
}

static double tolerance_at(const course *c, int64_t i)
{
    const adj_dtype dtype = c->y->type.dtype;
    const adj_dtype_traits *t = adj_traits_of(dtype);
    if (!adj_is_float(dtype))
        return 0;
    return margin * t->unit * fabs(c->expected[i]) + OPERATIONS * sum_unit(dtype) * c->terms[i] +
           (dtype == ADJ_F64 ? 0x1p-1074 : t->floor); /* f64's subnormal numbers are kept */
}

static void record(const course *c, int64_t i, int step, adj_gradcheck_row *row)
{
    const double size = fmax(fabs(c->got[i]), fabs(c->expected[i]));
    row->analytic = c->got[i];
    row->numeric = c->expected[i];
    row->tolerance = tolerance_at(c, i);
    row->worst_abs = fabs(c->got[i] - c->expected[i]);
    row->worst_rel = size > 0 ? row->worst_abs / size : 0;
    row->index = gradcheck_text(c->r, "[%lld] in step %d", (long long)i, step);
}

static void judge_step(course *c, int step, adj_gradcheck_row *row)
{
    double worst = c->worst;
    int64_t at = -1;
    formula_value(c->y, c->x, c->expected, c->terms);
    for (int64_t i = 0; i < node_elems(c->y); i++) {
        const double excess = check_excess(fabs(c->got[i] - c->expected[i]), tolerance_at(c, i));
        row->wrong += excess > 1;
        if (excess > worst || (row->elems == 0 && at < 0)) {
            worst = excess;
            at = i;
        }
    }
    if (at >= 0)
        record(c, at, step, row);
    c->worst = worst;
    row->elems += node_elems(c->y);
}

/* The state is given once; what it becomes stays in the executor. */
static adj_status take_step(course *c, int step, adj_gradcheck_row *row)
{
    const adj_node *y = c->y;
    double *raw = numbers(c, node_elems(y));
    adj_status status = raw != NULL ? ADJ_OK : ADJ_ENOMEM;
    for (int k = step > 1; k < y->n_in && status == ADJ_OK; k++)
        if (adj_operand_position(y, y->in[k]) == k)
            status = draw(c, k, step);
    if (status == ADJ_OK)
        status = adj_run(c->exec);
    if (status == ADJ_OK)
        status = adj_get(c->exec, y, raw, adj_type_bytes(y->type));
    if (status != ADJ_OK)
        return status;
    adj_convert(y->type.dtype, raw, ADJ_F64, c->got, node_elems(y));
    judge_step(c, step, row);
    memcpy(c->x[0], c->got, (size_t)node_elems(y) * sizeof(double));
    return ADJ_OK;
}

/* All steps. blame: what computed them, if any is wrong. */
static adj_status run_course(adj_gradcheck_report *r, const adj_node *n, int is_wide,
                             adj_gradcheck_row *row, const char **blame)
{
    course c = {.r = r, .node = n, .is_wide = is_wide, .region.allocator = r->region.allocator};
    adj_status status = build(&c);
    if (status == ADJ_OK)
        status = plan(&c);
    for (int step = 1; step <= STEPS && status == ADJ_OK; step++)
        status = take_step(&c, step, row);
    if (status != ADJ_OK)
        gradcheck_fail(r, status, "gradcheck of %s: %s", n->op->name,
                       c.exec != NULL ? adj_exec_message(c.exec) : adj_status_name(status));
    if (!is_wide)
        row->reason = gradcheck_other_impl(r, c.exec);
    const adj_step_info step = step_of(c.exec, c.y);
    if (row->wrong > 0)
        *blame = gradcheck_text(r, "backend %s's kernel for %s (%s)", step.backend, n->op->name,
                                step.impl);
    adj_exec_free(c.exec);
    adj_graph_free(c.graph);
    region_free(&c.region);
    return status;
}

adj_status check_update(adj_gradcheck_report *r, const adj_node *n, adj_gradcheck_row *row)
{
    const char *tested = NULL, *reference = NULL;
    row->method = "formula";
    row->wrt = operand_name(n, 0);
    row->type = n->type;
    row->origin = adj_is_float(n->type.dtype) ? "1.125 u |y| + 16 u_acc sum |terms|" : "equality";
    adj_gradcheck_row wide = *row;
    adj_status status = run_course(r, n, 0, row, &tested);
    if (status == ADJ_OK && (tested != NULL || node_elems(n) <= MAX_WIDE))
        status = run_course(r, n, 1, &wide, &reference);
    if (status != ADJ_OK || (tested == NULL && reference == NULL))
        return status;
    const int is_naive = tested == NULL || strncmp(tested, "backend naive", 13) == 0;
    if (tested == NULL)
        *row = wide;
    row->result = ADJ_GRADCHECK_FAIL;
    row->fault = reference != NULL && is_naive ? ADJ_FAULT_REFERENCE : ADJ_FAULT_KERNEL;
    row->pattern = gradcheck_text(r, "%lld of %lld wrong in %d steps", (long long)row->wrong,
                                  (long long)row->elems, STEPS);
    row->blame = gradcheck_text(
        r, "its formula in float64 %s -> fault is in %s%s%s",
        tested == NULL ? "and the backend under test agree" : "gives something else",
        tested != NULL ? tested : reference, reference != NULL && !is_naive ? ", and in " : "",
        reference != NULL && !is_naive ? reference : "");
    return r->status;
}
