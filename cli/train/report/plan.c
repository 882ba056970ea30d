/* plan.c - see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "exec/clock.h"
#include "plan.h"

enum { TEXT = 256 };

static char *copy(const char *text) { return strdup(text != NULL ? text : ""); }

/* ---- times ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct { /* of some runs of a plan */
    int n_step, max_runs, runs;
    double *seconds; /* [step * max_runs + run]: of steps, each one's sorted by the end */
} step_times;

/* Another plan of the executor's may have been taken. */
static int make_room(step_times *t, const adj_exec *e)
{
    free(t->seconds);
    t->n_step = adj_exec_step_count(e);
    t->runs = 0;
    t->seconds = calloc((size_t)t->n_step * (size_t)t->max_runs + 1, sizeof *t->seconds);
    return t->seconds != NULL;
}

static adj_status time_steps(adj_exec *e, double seconds, step_times *t)
{
    adj_status status = adj_run(e);
    double began = seconds_now();
    int threads = 0;
    while (status == ADJ_OK && t->runs < t->max_runs &&
           (t->runs == 0 || seconds_now() - began < seconds)) {
        status = adj_run(e);
        if (adj_exec_stats(e).threads != threads && !make_room(t, e))
            return ADJ_ENOMEM;
        threads = adj_exec_stats(e).threads;
        for (int i = 0; i < t->n_step; i++)
            t->seconds[i * t->max_runs + t->runs] = adj_exec_step_at(e, i).seconds;
        t->runs++;
    }
    for (int i = 0; i < t->n_step; i++)
        qsort(&t->seconds[(ptrdiff_t)i * t->max_runs], (size_t)t->runs, sizeof *t->seconds,
              by_value);
    return status;
}

/* ---- layers ---- */

static void add_op(char ops[TEXT], const char *op)
{
    size_t n = strlen(ops), m = strlen(op);
    if (n >= m && strcmp(ops + n - m, op) == 0)
        return; /* the same again */
    snprintf(ops + n, TEXT - n, "%s%s", n > 0 ? ", " : "", op);
}

/* 0: out of memory. */
static int describe_layer(report_layer *l, const adj_graph *g, const layer_map *m, int k)
{
    char name[TEXT], ops[TEXT] = "";
    const adj_node *last = NULL;
    for (int id = 0; id < adj_graph_node_count(g); id++) {
        const adj_node *n = adj_graph_node_at(g, id);
        if (m->of[id] != k || !m->needed[id] || n->role != ADJ_ROLE_FORWARD)
            continue;
        if (adj_node_is_param(n))
            l->params += adj_shape_elems(n->type.shape);
        if (m->weight[id])
            continue;
        add_op(ops, n->op->name);
        l->macs += n->op->flop != NULL ? n->op->flop(n) / 2 : 0;
        if ((n->op->flags & ADJ_OP_VIEW) != 0)
            continue;
        l->bytes += adj_type_bytes(n->type);
        last = n->type.shape.rank > 1 ? n : last; /* a loss comes behind the last layer */
    }
    layer_name(m->first[k], sizeof name, name);
    l->name = copy(name);
    l->ops = copy(ops);
    l->shape = copy(last != NULL ? adj_shape_text(last->type.shape).s : "");
    return l->name != NULL && l->ops != NULL && l->shape != NULL;
}

static void add_time(report_plan *p, const layer_map *m, const adj_step_info *s, double seconds)
{
    int k = s->node != NULL ? m->of[s->node->id] : -1;
    report_layer *l = &p->layer[k >= 0 ? k : m->n];
    if (s->node == NULL || s->node->role == ADJ_ROLE_FORWARD)
        l->forward += seconds;
    else
        l->backward += seconds;
}

/* The last row has what belongs to no layer. 0: out of memory. */
static int list_layers(report_plan *p, const adj_graph *g, const layer_map *m)
{
    p->layer = calloc((size_t)m->n + 1, sizeof *p->layer);
    p->n_layer = p->layer != NULL ? m->n + 1 : 0;
    for (int k = 0; k < p->n_layer - 1; k++)
        if (!describe_layer(&p->layer[k], g, m, k))
            return 0;
    if (p->layer == NULL)
        return 0;
    p->layer[m->n].name = copy("others");
    p->layer[m->n].ops = copy("what belongs to no layer");
    p->layer[m->n].shape = copy("");
    return p->layer[m->n].name != NULL && p->layer[m->n].ops != NULL &&
           p->layer[m->n].shape != NULL;
}

/* ---- kernels ---- */

static int add_kernel(report_plan *p, const adj_step_info *s, double seconds)
{
    int k = 0;
    while (k < p->n_kernel &&
           (strcmp(p->kernel[k].op, s->op) != 0 || strcmp(p->kernel[k].impl, s->impl) != 0 ||
            strcmp(p->kernel[k].backend, s->backend) != 0))
        k++;
    report_kernel *row = &p->kernel[k];
    if (k == p->n_kernel) {
        *row = (report_kernel){copy(s->op), copy(s->backend), copy(s->impl), 0, 0};
        p->n_kernel++;
    }
    row->steps++;
    row->seconds += seconds;
    return row->op != NULL && row->backend != NULL && row->impl != NULL;
}

/* Behind the others; dots stand for those that there is no room for. */
static void add_name(char names[TEXT], const adj_step_info *s)
{
    static const char dots[] = ", ...";
    char name[TEXT];
    size_t n = strlen(names);
    if (n >= sizeof dots && strcmp(names + n + 1 - sizeof dots, dots) == 0)
        return;
    if (s->name[0] != '\0' || s->node == NULL)
        snprintf(name, sizeof name, "%s%s", n > 0 ? ", " : "", s->name);
    else
        snprintf(name, sizeof name, "%s%%%d", n > 0 ? ", " : "", adj_node_id(s->node));
    const char *added = n + strlen(name) + sizeof dots <= TEXT ? name : dots;
    memcpy(names + n, added, strlen(added) + 1);
}

static int add_fallback(report_plan *p, const adj_step_info *s, double seconds)
{
    int k = 0;
    if (s->why == NULL || s->why[0] == '\0')
        return 1;
    while (k < p->n_fallback &&
           (strcmp(p->fallback[k].op, s->op) != 0 || strcmp(p->fallback[k].why, s->why) != 0 ||
            strcmp(p->fallback[k].backend, s->backend) != 0))
        k++;
    report_fallback *row = &p->fallback[k];
    if (k == p->n_fallback) {
        *row =
            (report_fallback){copy(s->op), copy(s->backend), copy(s->why), calloc(1, TEXT), 0, 0};
        p->n_fallback++;
    }
    if (row->op == NULL || row->names == NULL || row->backend == NULL || row->why == NULL)
        return 0;
    row->steps++;
    row->seconds += seconds;
    add_name(row->names, s);
    return 1;
}

static int by_fallback_seconds(const void *a, const void *b)
{
    double x = ((const report_fallback *)a)->seconds, y = ((const report_fallback *)b)->seconds;
    return (x < y) - (x > y);
}

static int by_seconds(const void *a, const void *b)
{
    double x = ((const report_kernel *)a)->seconds, y = ((const report_kernel *)b)->seconds;
    return (x < y) - (x > y);
}

/* ---- all ---- */

/* 0: out of memory. */
static int fill(report_plan *p, const adj_graph *g, const layer_map *m, const adj_exec *e,
                const step_times *t)
{
    size_t n = (size_t)t->n_step + 1;
    p->kernel = calloc(n, sizeof *p->kernel);
    p->fallback = calloc(n, sizeof *p->fallback);
    if (p->kernel == NULL || p->fallback == NULL || !list_layers(p, g, m))
        return 0;
    for (int i = 0; i < t->n_step; i++) {
        const adj_step_info s = adj_exec_step_at(e, i);
        double seconds = t->seconds[i * t->max_runs + t->runs / 2];
        p->seconds += seconds;
        add_time(p, m, &s, seconds);
        if (!add_kernel(p, &s, seconds) || !add_fallback(p, &s, seconds))
            return 0;
    }
    qsort(p->kernel, (size_t)p->n_kernel, sizeof *p->kernel, by_seconds);
    qsort(p->fallback, (size_t)p->n_fallback, sizeof *p->fallback, by_fallback_seconds);
    return 1;
}

adj_status plan_measure(report_plan *p, const adj_node *loss, adj_exec *e, int max_runs,
                        double seconds)
{
    const adj_graph *g = loss->graph;
    step_times t = {.max_runs = max_runs};
    layer_map m = {0};
    adj_status status = layer_map_make(&m, g, loss) == 0 ? ADJ_OK : ADJ_ENOMEM;
    if (status == ADJ_OK)
        status = time_steps(e, seconds, &t);
    if (status == ADJ_OK && !fill(p, g, &m, e, &t))
        status = ADJ_ENOMEM;
    const adj_exec_info info = adj_exec_stats(e);
    p->runs = t.runs;
    p->steps = t.n_step;
    p->naive_steps = info.naive_steps;
    p->reorders = info.reorders;
    p->arena_bytes = info.arena_bytes;
    p->storage_bytes = info.storage_bytes;
    layer_map_free(&m);
    free(t.seconds);
    return status;
}

void plan_free(report_plan *p)
{
    for (int i = 0; i < p->n_layer; i++) {
        free((char *)p->layer[i].name);
        free((char *)p->layer[i].ops);
        free((char *)p->layer[i].shape);
    }
    for (int i = 0; i < p->n_kernel; i++) {
        free((char *)p->kernel[i].op);
        free((char *)p->kernel[i].backend);
        free((char *)p->kernel[i].impl);
    }
    for (int i = 0; i < p->n_fallback; i++) {
        free((char *)p->fallback[i].op);
        free(p->fallback[i].names);
        free((char *)p->fallback[i].backend);
        free((char *)p->fallback[i].why);
    }
    free(p->layer);
    free(p->kernel);
    free(p->fallback);
    *p = (report_plan){0};
}
