/* optimizer_step.c - checks optimizer steps, which have no gradient. Each step runs several times,
 * its first operand replaced by the result as in training, and is compared with its formula in
 * float64 within adj_compare's bounds: first on the backend under test in the node's types, then on
 * naive in float64. */
#include <math.h>
#include <string.h>

#include "check/compare/compare.h"
#include "gradcheck.h"
#include "ops/grad.h"

enum { STREAM = 97 };

/* Steps of a sequence: step counter and learning rate; NAN: random. */
static const struct {
    int counter;
    double rate;
} steps[] = {{1, NAN}, {2, 0}, {3, 1}, {100, -0.5}, {1000000, 8}};
enum { STEPS = sizeof steps / sizeof *steps };

enum { MAX_WIDE = 1 << 13 }; /* elements: what naive does to one it does to all */

typedef struct {
    gradcheck_report *r;
    const adj_node *node;
    const adj_compare_config *config; /* computes it */
    region region;
    double *x[MAX_IN]; /* by operand: values that its type holds */
    leaf_check worst;  /* all elements of all steps */
} course;

static adj_dtype dtype_of(const course *c, const adj_node *n)
{
    return config_dtype(c->config, n->type.dtype);
}

/* Returns the value of element i for u in [-1, 1). */
static double drawn_value(const course *c, int k, int step, int64_t i, double u)
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
        x[i] = adj_is_float(dtype) ? rounded(dtype, drawn_value(c, k, step, i, x[i]))
                                   : steps[step].counter;
}

static adj_status take_step(course *c, const runner *b, int step, outcome *o, gradcheck_detail *row)
{
    const adj_node *n = c->node;
    const adj_type type = {dtype_of(c, n), n->type.shape};
    node_case alone = {.node = n, .by_formula = 1};
    expectation x;
    for (int k = 0; k < n->n_in; k++) {
        if ((step == 0 || k > 0 || !adj_is_float(n->type.dtype)) &&
            adj_operand_position(n, n->in[k]) == k)
            draw(c, k, step);
        alone.operand[k] = c->x[k];
        alone.dtype[k] = ADJ_F64;
    }
    adj_status status = node_expect(b, &alone, c->config, &c->region, &x, o);
    if (status == ADJ_OK && o->status == ADJ_OK)
        status = node_run(b, &alone, c->config, &c->region, o);
    if (status != ADJ_OK || o->status != ADJ_OK)
        return status != ADJ_OK ? status : o->status;
    const adj_compare_error e = measure_error(type, o->value[0], &x);
    const double worst = c->worst.worst;
    row->elems += e.n;
    row->wrong += e.wrong;
    row->origin = log_text(&c->r->log, "%s", x.origin);
    check_record(&c->worst, e.at, e.got, (estimate){.value = e.expected}, e.bound);
    if (c->worst.worst > worst)
        row->index =
            log_text(&c->r->log, "[%lld] in step %d", (long long)e.at, steps[step].counter);
    adj_convert(type.dtype, o->value[0], ADJ_F64, c->x[0], node_elems(n));
    return ADJ_OK;
}

/* Room for each operand's values. */
static adj_status open_course(course *c)
{
    const adj_node *n = c->node;
    for (int k = 0; k < n->n_in; k++) {
        const int first = adj_operand_position(n, n->in[k]);
        const size_t elems = (size_t)node_elems(n->in[k]);
        c->x[k] = first < k ? c->x[first] : region_alloc(&c->region, elems + 1, sizeof(double));
        if (c->x[k] == NULL)
            return ADJ_ENOMEM;
    }
    return ADJ_OK;
}

/* Runs all steps. blame: the sentence for a wrong one. */
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
    if (reference != NULL) /* then the tested one's bounds are wrong, too */
        *row = wide;
    row->pattern = log_text(&r->log, "%lld of %lld wrong in %d steps", (long long)row->wrong,
                            (long long)row->elems, STEPS);
    gradcheck_blame(reference != NULL ? ADJ_FAULT_REFERENCE : ADJ_FAULT_KERNEL,
                    log_text(&r->log,
                             "its formula in float64 gives something else -> fault is in %s",
                             reference != NULL ? reference : tested),
                    row);
    return r->log.status;
}
