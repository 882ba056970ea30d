/* group.c - runs each fused group of a configuration's plan alone.
 *
 * A plain run of the whole graph returns the executor's graph, in the configuration's types and
 * layouts, and the step that computes each node. A step of several nodes, or of a node that only
 * passes add, is rebuilt as a graph of its own. Its operands are the values of the plan's graph in
 * f64; group_bound.c bounds each element of its results. */
#include <math.h>
#include <string.h>

#include "compare.h"

/* A plan as read by the checker. */
typedef struct {
    comparing *r;
    int k; /* the configuration */
    const adj_graph *g;
    const int *step_of;     /* by id, as the others */
    const adj_node **user;  /* the node of the compared graph with that value; NULL: none */
    const adj_node **named; /* that node, or one that it feeds, for reports */
    char *is_root;
    void **value;  /* f64, of floats */
    runner in_f64; /* runs the reference of groups */
} plan_view;

/* ---- the groups of a plan ---- */

static int leaves_group(const plan_view *l, const adj_node *n)
{
    int leaves = l->is_root[n->id] != 0;
    for (int id = (int)n->id + 1; id < l->g->n_node && !leaves; id++)
        leaves =
            l->step_of[id] != l->step_of[n->id] && adj_operand_position(l->g->node[id], n) >= 0;
    return leaves;
}

/* Builds the group of a step: nodes, operands, results. */
static adj_status group_of(const plan_view *l, int step, region *p, adj_group *out)
{
    int n = 0, reads = 0, n_in = 0, n_out = 0;
    for (int id = 0; id < l->g->n_node; id++)
        if (l->step_of[id] == step) {
            n++;
            reads += l->g->node[id]->n_in;
        }
    const adj_node **node = region_alloc(p, (size_t)n, sizeof(adj_node *));
    const adj_node **in = region_alloc(p, (size_t)reads, sizeof(adj_node *));
    const adj_node **leaving = region_alloc(p, (size_t)n, sizeof(adj_node *));
    if (node == NULL || in == NULL || leaving == NULL)
        return ADJ_ENOMEM;
    for (int id = 0, i = 0; id < l->g->n_node; id++) {
        const adj_node *m = l->g->node[id];
        if (l->step_of[id] != step)
            continue;
        node[i++] = m;
        for (int k = 0; k < m->n_in; k++)
            if (l->step_of[m->in[k]->id] != step && adj_position(n_in, in, m->in[k]) < 0)
                in[n_in++] = m->in[k];
        if (leaves_group(l, m))
            leaving[n_out++] = m;
    }
    *out = (adj_group){n, node, n_in, in, n_out, leaving};
    return ADJ_OK;
}

/* "conv2d+bias_add+relu"; NULL: no memory. */
static char *group_name(const adj_group *g, region *p)
{
    size_t bytes = 1;
    for (int i = 0; i < g->n_node; i++)
        bytes += strlen(g->node[i]->op->name) + 1;
    char *name = region_alloc(p, bytes, 1), *end = name;
    for (int i = 0; name != NULL && i < g->n_node; i++)
        end += snprintf(end, bytes - (size_t)(end - name), "%s%s", i > 0 ? "+" : "",
                        g->node[i]->op->name);
    return name;
}

/* ---- one group ---- */

static adj_status run_group(const plan_view *l, const runner *b, const adj_group *g,
                            const adj_compare_config *config, void *const operand[], region *p,
                            outcome *o)
{
    adj_node **image = region_alloc(p, (size_t)l->g->n_node, sizeof(adj_node *));
    trial t;
    adj_status status = trial_open(b, config, g->n_in, g->n_out, p, &t);
    if (image == NULL)
        status = ADJ_ENOMEM;
    for (int i = 0; i < g->n_in && status == ADJ_OK; i++) {
        const adj_node *x = g->in[i];
        adj_dtype from = adj_is_float(x->type.dtype) ? ADJ_F64 : x->type.dtype;
        void *v = convert(p, from, operand[i], x->type.dtype, adj_shape_elems(x->type.shape));
        image[x->id] = trial_leaf(&t, x->type, v);
        status = v != NULL ? adj_graph_status(t.g) : ADJ_ENOMEM;
    }
    for (int i = 0; i < g->n_node && status == ADJ_OK; i++) {
        image[g->node[i]->id] = trial_node(&t, NULL, g->node[i], image);
        status = adj_graph_status(t.g);
    }
    for (int i = 0; i < g->n_out && status == ADJ_OK; i++)
        t.fetch[t.n_fetch++] = image[g->out[i]->id];
    t.aliases = b->runs > 0;
    if (status == ADJ_OK)
        status = run_trial(b, &t, p, o);
    adj_graph_free(t.g);
    return status;
}

/* True if one step computed the whole group. */
static int was_fused(const adj_group *g, const outcome *o)
{
    int n = 0, step = -1;
    for (int id = 0; id < o->n_plan; id++) {
        if (o->step_of[id] < 0)
            continue;
        n += step < 0 || o->step_of[id] == step;
        step = o->step_of[id];
    }
    return n == g->n_node;
}

/* Adds the step's cost to the group's first row. */
static void describe_cost(const plan_view *l, const adj_group *g, const outcome *o,
                          compare_row *row)
{
    const comparing *r = l->r;
    const fetch_info *f = &o->info[0];
    double reference = 0;
    for (int i = 1; i < o->n; i++)
        f = o->info[i].seconds > f->seconds ? &o->info[i] : f;
    for (int i = 0; i < g->n_node; i++) {
        const adj_node *user = l->user[g->node[i]->id];
        if (user != NULL && r->index[user->id] >= 0)
            reference += r->whole[0].info[r->index[user->id]].seconds;
    }
    report_cost(o, f, reference, row);
}

static void check_result(comparison *c, const adj_group *g, int i, const outcome *o,
                         const expectation *e, compare_row *row)
{
    report_alone(c, o, i, e, row);
    if (!was_fused(g, o) && !row->other_impl)
        row->why = "alone, these nodes are not computed by one step";
    if (!is_wrong(&row->isolated) && row->repeats)
        return;
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = ADJ_BLAME_KERNEL;
    if (!row->repeats)
        row->reason = "not repeatable: two runs on the same operands gave different bits";
    else if (row->isolated.wrong == 0)
        row->reason = report_error(c, &row->isolated);
    else
        row->reason = "wrong in one of these nodes, or only when they are fused";
}

/* Runs the group on values of that kind; *is_case: 0 if it has none or they are inexact. */
static adj_status run_case(const plan_view *l, const adj_group *g, group_values kind, region *p,
                           expectation e[], outcome *o, int *is_case)
{
    const int is_exact = kind == ON_INTEGERS;
    adj_compare_config config = l->r->c->config[l->k];
    runner b = l->in_f64;
    void **operand = region_alloc(p, (size_t)g->n_in, sizeof(void *));
    const group_case alone = {g, is_exact, operand, &config};
    config.precision = ADJ_PRECISION_AS_BUILT; /* the plan's nodes have their types already */
    b.runs = kind == OF_PLAN || l->r->opts->exact ? b.runs : 0;
    *o = (outcome){0};
    adj_status status = operand != NULL ? group_operands(g, l->value, kind, l->r->opts->exec.seed,
                                                         p, operand, is_case)
                                        : ADJ_ENOMEM;
    if (status == ADJ_OK && *is_case)
        status = group_expect(&b, &alone, p, e, o);
    for (int i = 0; i < g->n_out && status == ADJ_OK && is_exact && !l->r->opts->exact; i++)
        *is_case &= e[i].exact;
    *is_case &= kind == OF_PLAN || o->status == ADJ_OK; /* nor values that an op refuses */
    if (status == ADJ_OK && o->status == ADJ_OK && *is_case)
        status = run_group(l, &b, g, &config, operand, p, o);
    return status;
}

/* Runs a group that passed on its own values on other values. */
static adj_status run_special(const plan_view *l, const adj_group *g, group_values kind,
                              compare_row row[])
{
    comparison *c = l->r->c;
    region p = {.allocator = c->log.region.allocator};
    expectation *e = region_alloc(&p, (size_t)g->n_out, sizeof *e);
    outcome o = {0};
    int is_case = 0;
    adj_status status = e != NULL ? run_case(l, g, kind, &p, e, &o, &is_case) : ADJ_ENOMEM;
    for (int i = 0; i < g->n_out && status == ADJ_OK && is_case; i++) {
        if (o.status != ADJ_OK) {
            report_row_failure(c, &o, &row[i]);
            continue;
        }
        const adj_compare_error error = measure_error(row[i].type, o.value[i], &e[i]);
        if (error.wrong == 0)
            continue;
        row[i].verdict = ADJ_VERDICT_FAIL;
        row[i].blame = ADJ_BLAME_KERNEL;
        row[i].reason = report_worst(
            c, kind == ON_INTEGERS ? "on integers" : "on a NaN, infinities, values at kinks",
            &error);
    }
    region_free(&p);
    return status;
}

static int all_pass(int n, const compare_row row[])
{
    for (int i = 0; i < n; i++)
        if (row[i].verdict != ADJ_VERDICT_PASS)
            return 0;
    return 1;
}

static adj_status compare_group(const plan_view *l, const adj_group *g, region *p,
                                compare_row row[])
{
    comparison *c = l->r->c;
    const int is_exact = l->r->opts->exact;
    const char *name = group_name(g, &c->log.region);
    expectation *e = region_alloc(p, (size_t)g->n_out, sizeof *e);
    outcome o;
    int is_case = 1;
    adj_status status = name != NULL && e != NULL ? ADJ_OK : ADJ_ENOMEM;
    if (status == ADJ_OK)
        status = run_case(l, g, is_exact ? ON_INTEGERS : OF_PLAN, p, e, &o, &is_case);
    for (int i = 0; i < g->n_out && status == ADJ_OK; i++) {
        row[i] = report_row(l->named[g->out[i]->id], name, l->k, g->out[i]->type);
        row[i].in_plan.sqnr = row[i].propagated.sqnr = NAN;
        if (o.status == ADJ_OK)
            check_result(c, g, i, &o, &e[i], &row[i]);
        else
            report_row_failure(c, &o, &row[i]);
    }
    if (status == ADJ_OK && o.status == ADJ_OK) {
        describe_cost(l, g, &o, &row[0]);
        report_plan_fault(c, &o, &row[0]);
    }
    for (group_values kind = is_exact ? ON_SPECIAL : ON_INTEGERS; kind <= ON_SPECIAL; kind++)
        if (status == ADJ_OK && all_pass(g->n_out, row))
            status = run_special(l, g, kind, row);
    return status;
}

/* ---- all of them ---- */

/* Maps nodes of the plan to compared nodes; image: compared node to trial node. */
static adj_status view_plan(plan_view *l, const trial *t, adj_node *const image[], const outcome *o,
                            region *p)
{
    const size_t n_user = (size_t)l->r->g->n_node, n = (size_t)o->plan->n_node;
    l->g = o->plan;
    l->step_of = o->step_of;
    l->user = region_alloc(p, n, sizeof(adj_node *));
    l->named = region_alloc(p, n, sizeof(adj_node *));
    l->is_root = region_alloc(p, n, 1);
    if (l->user == NULL || l->named == NULL || l->is_root == NULL)
        return ADJ_ENOMEM;
    for (int i = 0; i < t->n_fetch; i++)
        l->is_root[o->image[t->fetch[i]->id]->id] = 1;
    for (size_t id = n_user; id-- > 0;) /* the first of several equal nodes */
        if (l->r->needed[id] && image[id] != NULL && o->image[image[id]->id] != NULL)
            l->user[o->image[image[id]->id]->id] = l->r->g->node[id];
    for (size_t id = n; id-- > 0;) {
        if (l->user[id] != NULL)
            l->named[id] = l->user[id];
        if (l->named[id] == NULL)
            l->named[id] = l->r->root[0];
        for (int k = 0; k < l->g->node[id]->n_in; k++)
            l->named[l->g->node[id]->in[k]->id] = l->named[id];
    }
    return ADJ_OK;
}

static adj_status compare_steps(const plan_view *l)
{
    comparison *c = l->r->c;
    adj_status status = ADJ_OK;
    int n_row = 0, n = l->g->n_node;
    compare_row *row = region_alloc(&c->log.region, (size_t)n, sizeof *row);
    if (row == NULL)
        return ADJ_ENOMEM;
    for (int id = 0; id < n && status == ADJ_OK; id++) {
        int is_first = l->step_of[id] >= 0, n_node = 0;
        for (int i = 0; i < n; i++)
            n_node += l->step_of[i] == l->step_of[id];
        for (int i = 0; i < id && is_first; i++)
            is_first = l->step_of[i] != l->step_of[id];
        if (!is_first || (n_node < 2 && !(l->g->node[id]->op->flags & ADJ_OP_INTERNAL)))
            continue;
        region p = {.allocator = c->log.region.allocator};
        adj_group g;
        status = group_of(l, l->step_of[id], &p, &g);
        if (status == ADJ_OK)
            status = compare_group(l, &g, &p, row + n_row);
        region_free(&p);
        n_row += status == ADJ_OK ? g.n_out : 0;
    }
    l->r->group_row[l->k] = row;
    l->r->n_group_row[l->k] = n_row;
    return status;
}

adj_status compare_groups(comparing *r, int k, const trial *t, adj_node *const image[],
                          const outcome *o)
{
    region p = {.allocator = r->c->log.region.allocator};
    plan_view l = {.r = r, .k = k};
    outcome values = {0};
    l.in_f64 = (runner){
        .opts = r->opts, .trials = r->trials, .reference = &naive_f64, .runs = r->runner.runs};
    adj_status status = view_plan(&l, t, image, o, &p);
    if (status == ADJ_OK)
        status = run_in_f64(t, l.g, o->image, l.g->n_node, (const adj_node *const *)l.g->node, &p,
                            &values);
    l.value = values.value;
    if (status == ADJ_OK)
        status = compare_steps(&l);
    if (status != ADJ_OK && status != ADJ_ENOMEM)
        log_fail(&r->c->log, status, "adj_compare: %s: a fused group cannot be rebuilt",
                 r->c->config[k].name);
    region_free(&p);
    return status;
}
