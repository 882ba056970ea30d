/* update.c - steps of optimizers, which have no gradient to check: each is computed several times,
 * its first operand becoming the result as in training, and compared with its formula in float64
 * (check/formula.c). First by the backend under test in the node's types, then by naive in float64,
 * the reference of all other checks.
 *
 * A result y = sum of terms is rounded when it is stored, and its terms by the few operations that
 * make them: |error| <= u |y| + OPERATIONS u_acc sum |terms|. An eighth of u is added: what is
 * stored in a half type is u off where it lies between two of its numbers. */
#include <math.h>
#include <string.h>

#include "check/compare/compare.h"
#include "check/formula.h"
#include "gradcheck.h"
#include "ops/grad.h"

enum { OPERATIONS = 16, STREAM = 97 };

/* The steps of a course: the counter that the op reads, and what each rate is; NAN: drawn. */
static const struct {
    int counter;
    double rate;
} steps[] = {{1, NAN}, {2, 0}, {3, 1}, {100, -0.5}, {1000000, 8}};
enum { STEPS = sizeof steps / sizeof *steps };

enum { MAX_WIDE = 1 << 13 }; /* elements: what naive does to one it does to all */

static const double margin = 1.125;

typedef struct {
    gradcheck_report *r;
    const adj_node *node;
    const adj_compare_config *config; /* computes it */
    region region;
    double *x[MAX_IN]; /* by operand: values that its type holds */
    double *expected, *bound;
    leaf_check worst; /* all elements of all steps */
} course;

static adj_dtype dtype_of(const course *c, const adj_node *n)
{
    return config_dtype(c->config, n->type.dtype);
}

/* A value for element i from u in [-1, 1). */
static double value_of(const course *c, int k, int step, int64_t i, double u)
{
    const double rate = steps[step].rate;
    const int is_adam = c->node->op == &adj_op_adam_step;
    if (is_adam && i == 0 && (k == 1 || k == 2) &&
        ((const adj_adam_attrs *)c->node->attrs)->epsilon > 0)
        return 0; /* a gradient that was always 0: epsilon alone is divided by */
    if (is_adam && k == 2)
        return (0.1 + fabs(u)) * (0.1 + fabs(u)); /* a mean of squares */
    if (c->node->in[k]->type.shape.rank == 0)
        return isnan(rate) ? 0.05 + 0.04 * u : rate;
    return u;
}

/* An integer is the step's counter. */
static void draw(const course *c, int k, int step)
{
    const adj_init range = {.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1};
    const adj_dtype dtype = dtype_of(c, c->node->in[k]);
    const int64_t n = node_elems(c->node->in[k]);
    double *x = c->x[k];
    adj_draw(ADJ_F64, x, n, range, c->r->opts.exec.seed, (uint64_t)(STREAM * (step + 1) + k));
    for (int64_t i = 0; i < n; i++)
        x[i] = adj_is_float(dtype) ? rounded(dtype, value_of(c, k, step, i, x[i]))
                                   : steps[step].counter;
}

static double tolerance(adj_dtype dtype, double expected, double terms)
{
    const adj_dtype_traits *t = adj_traits_of(dtype);
    if (!adj_is_float(dtype))
        return 0;
    return margin * t->unit * fabs(expected) + OPERATIONS * sum_unit(dtype) * terms +
           (dtype == ADJ_F64 ? 0x1p-1074 : t->floor); /* f64's subnormal numbers are kept */
}

static void judge_step(course *c, int step, const void *value, gradcheck_detail *row)
{
    const adj_type type = {dtype_of(c, c->node), c->node->type.shape};
    const expectation x = {.dtype = ADJ_F64, .expected = c->expected, .bound = c->bound};
    formula_value(c->node, c->x, c->expected, c->bound);
    for (int64_t i = 0; i < node_elems(c->node); i++)
        c->bound[i] = tolerance(type.dtype, c->expected[i], c->bound[i]);
    const adj_compare_error e = judge(type, value, &x);
    row->elems += e.n;
    row->wrong += e.wrong;
    const double worst = c->worst.worst;
    check_record(&c->worst, e.at, e.got, (estimate){.value = e.expected}, e.bound);
    if (c->worst.worst > worst)
        row->index =
            log_text(&c->r->log, "[%lld] in step %d", (long long)e.at, steps[step].counter);
}

static adj_status take_step(course *c, const runner *b, int step, outcome *o, gradcheck_detail *row)
{
    const adj_node *n = c->node;
    void *operand[MAX_IN];
    for (int k = 0; k < n->n_in; k++) {
        if ((step == 0 || k > 0 || !adj_is_float(n->type.dtype)) &&
            adj_operand_position(n, n->in[k]) == k)
            draw(c, k, step);
        operand[k] =
            convert(&c->region, ADJ_F64, c->x[k], dtype_of(c, n->in[k]), node_elems(n->in[k]));
        if (operand[k] == NULL)
            return ADJ_ENOMEM;
    }
    adj_status status = run_node(b, n, operand, c->config, &c->region, o);
    if (status != ADJ_OK || o->status != ADJ_OK)
        return status != ADJ_OK ? status : o->status;
    judge_step(c, step, o->value[0], row);
    adj_convert(dtype_of(c, n), o->value[0], ADJ_F64, c->x[0], node_elems(n));
    return ADJ_OK;
}

static adj_status open_course(course *c)
{
    const adj_node *n = c->node;
    const size_t n_y = (size_t)node_elems(n) + 1;
    c->expected = region_alloc(&c->region, n_y, sizeof(double));
    c->bound = region_alloc(&c->region, n_y, sizeof(double));
    if (c->expected == NULL || c->bound == NULL)
        return ADJ_ENOMEM;
    for (int k = 0; k < n->n_in; k++) {
        const int first = adj_operand_position(n, n->in[k]);
        const size_t elems = (size_t)node_elems(n->in[k]);
        c->x[k] = first < k ? c->x[first] : region_alloc(&c->region, elems + 1, sizeof(double));
        if (c->x[k] == NULL)
            return ADJ_ENOMEM;
    }
    return ADJ_OK;
}

/* All steps. blame: what computed them, if any is wrong. */
static adj_status run_course(gradcheck_report *r, const runner *b, const adj_node *n,
                             const adj_compare_config *config, gradcheck_detail *row,
                             const char **blame)
{
    course c = {.r = r,
                .node = n,
                .config = config,
                .region.allocator = r->log.region.allocator,
                .worst.row = row};
    outcome o = {0};
    adj_status status = open_course(&c);
    for (int step = 0; step < STEPS && status == ADJ_OK; step++)
        status = take_step(&c, b, step, &o, row);
    if (status != ADJ_OK && o.wrong_plan) {
        gradcheck_blame(ADJ_FAULT_PLAN, log_text(&r->log, "%s", o.message), row);
        status = r->log.status;
    } else if (status != ADJ_OK)
        log_fail(&r->log, status, "gradcheck of %s: %s", n->op->name,
                 o.message[0] != '\0' ? o.message : adj_status_name(status));
    else if (config != b->reference)
        row->reason = gradcheck_other_impl(r, o.info[0].backend, o.info[0].implementation);
    if (row->wrong > 0 && status == ADJ_OK)
        *blame = log_text(&r->log, "backend %s's kernel for %s (%s)", o.info[0].backend,
                          n->op->name, o.info[0].implementation);
    region_free(&c.region);
    return status;
}

adj_status check_update(gradcheck_report *r, const adj_node *n, gradcheck_detail *row)
{
    const char *tested = NULL, *reference = NULL;
    const adj_compare_opts opts = {.exec.threads = r->conditions.threads,
                                   .exec.backends = r->opts.exec.backends};
    const runner b = {.opts = &opts, .reference = &naive_f64};
    adj_compare_config config = {.name = "tested"};
    row->method = "formula";
    row->type = n->type;
    row->origin = adj_is_float(n->type.dtype) ? "1.125 u |y| + 16 u_acc sum |terms|" : "equality";
    gradcheck_detail wide = *row;
    snprintf(config.backend, sizeof config.backend, "%s", r->conditions.backend);
    if (r->debug.impl != NULL)
        snprintf(config.impl, sizeof config.impl, "%s", r->debug.impl);
    adj_status status = run_course(r, &b, n, &config, row, &tested);
    if (status == ADJ_OK && row->result != ADJ_GRADCHECK_FAIL &&
        (tested != NULL || node_elems(n) <= MAX_WIDE))
        status = run_course(r, &b, n, &naive_f64, &wide, &reference);
    if (wide.result == ADJ_GRADCHECK_FAIL)
        *row = wide;
    if (status != ADJ_OK || (tested == NULL && reference == NULL))
        return status;
    const int is_naive = tested == NULL || strncmp(tested, "backend naive", 13) == 0;
    if (tested == NULL)
        *row = wide;
    row->pattern = log_text(&r->log, "%lld of %lld wrong in %d steps", (long long)row->wrong,
                            (long long)row->elems, STEPS);
    const char *blame = log_text(
        &r->log, "its formula in float64 %s -> fault is in %s%s%s",
        tested == NULL ? "and the backend under test agree" : "gives something else",
        tested != NULL ? tested : reference, reference != NULL && !is_naive ? ", and in " : "",
        reference != NULL && !is_naive ? reference : "");
    gradcheck_blame(reference != NULL && is_naive ? ADJ_FAULT_REFERENCE : ADJ_FAULT_KERNEL, blame,
                    row);
    return r->log.status;
}
