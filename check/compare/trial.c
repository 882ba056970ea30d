/* trial.c - runs a trial in this process: values, times, repeatability, canaries. */
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "compare.h"
#include "exec/exec.h"
#include "exec/report.h"

static const double tune_seconds = 0.1;    /* limit of a plan; each node has one */
static const double timed_seconds = 0.003; /* once they are spent, no further run is timed */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    if (n < 1)
        return 0;
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

static adj_status give_leaves(const trial *t, adj_exec *e)
{
    adj_status status = ADJ_OK;
    for (int i = 0; i < t->n_leaf && status == ADJ_OK; i++)
        status = adj_set(e, t->leaf[i], t->data[i], adj_type_bytes(t->leaf[i]->type));
    return status;
}

/* Gives each leaf other values of its type: floats change sign, and their magnitude is halved. */
static adj_status give_others(const trial *t, adj_exec *e)
{
    region r = {.allocator = e->region.allocator};
    adj_status status = ADJ_OK;
    for (int i = 0; i < t->n_leaf && status == ADJ_OK; i++) {
        const adj_type type = t->leaf[i]->type;
        const int64_t n = adj_shape_elems(type.shape);
        void *v = convert(&r, type.dtype, t->data[i], type.dtype, n);
        for (int64_t k = 0; k < n && v != NULL && adj_is_float(type.dtype); k++)
            adj_store(type.dtype, v, k, -adj_load(type.dtype, v, k) / 2);
        status = v != NULL ? adj_set(e, t->leaf[i], v, adj_type_bytes(type)) : ADJ_ENOMEM;
    }
    region_free(&r);
    return status;
}

/* Returns the first or last leaf that invariant steps may read; NONE: none. */
static int invariant_leaf(const trial *t, const adj_exec *e, int is_last)
{
    int at = NONE;
    for (int i = 0; i < t->n_leaf && e->plan.n_invariant > 0; i++)
        if (t->leaf[i]->op != &adj_op_input && (at == NONE || is_last))
            at = i;
    return at;
}

/* Blames the plan for a copy of a value that differs from it. */
static void report_copy(const adj_node *n, const char *call, outcome *o)
{
    o->fault_of = ADJ_BLAME_PLAN;
    snprintf(o->plan_fault, sizeof o->plan_fault, "plan: %s did not copy all bytes of %s", call,
             n->op->name);
}

/* Sets o->plan_fault if a leaf other than `unset` differs from the value that it was set to.
 * Requires: no run since, as a kernel may write over its operands. */
static void check_leaves(const trial *t, adj_exec *e, int unset, outcome *o)
{
    for (int i = 0; i < t->n_leaf; i++) {
        const void *v = adj_data(e, t->leaf[i]); /* NULL: nothing reads it */
        if (i != unset && v != NULL && memcmp(v, t->data[i], adj_type_bytes(t->leaf[i]->type)) != 0)
            report_copy(t->leaf[i], "adj_set", o);
    }
}

/* Runs on other values first, so that stale values are detected. Leaf `unset` keeps its other value
 * for one more run and is then set in place; NONE: no such leaf. */
static adj_status run_after_others(const trial *t, adj_exec *e, int unset, outcome *o)
{
    void *data = NULL;
    adj_status status = give_others(t, e);
    if (status == ADJ_OK && (status = adj_run(e)) == ADJ_EARG)
        status = ADJ_OK; /* an op that refuses such values */
    for (int i = 0; i < t->n_leaf && status == ADJ_OK; i++)
        if (i != unset)
            status = adj_set(e, t->leaf[i], t->data[i], adj_type_bytes(t->leaf[i]->type));
    if (status == ADJ_OK)
        check_leaves(t, e, unset, o);
    if (unset != NONE && status == ADJ_OK && (status = adj_run(e)) == ADJ_EARG)
        status = ADJ_OK;
    if (unset != NONE && status == ADJ_OK && adj_set_in_place(e, t->leaf[unset], &data) == ADJ_OK)
        memcpy(data, t->data[unset], adj_type_bytes(t->leaf[unset]->type));
    return status == ADJ_OK ? adj_run(e) : status;
}

/* Returns the calling thread's rounding mode, and on x86 that of vectors, with the bits that make
 * subnormal numbers 0. */
static unsigned float_mode(void)
{
    unsigned mode = (unsigned)fegetround();
#ifdef __SSE__
    mode |= (__builtin_ia32_stmxcsr() & 0xe040U) << 16;
#endif
    return mode;
}

static adj_status take_values(const trial *t, adj_exec *e, outcome *o)
{
    adj_status status = ADJ_OK;
    fesetenv(FE_DFL_ENV); /* an earlier kernel may have changed it */
    const unsigned mode = float_mode();
    if (t->runs > 0)
        status = run_after_others(t, e, t->bare ? invariant_leaf(t, e, 1) : NONE, o);
    else if ((status = give_leaves(t, e)) == ADJ_OK) {
        check_leaves(t, e, NONE, o);
        status = adj_run(e);
    }
    if (float_mode() != mode) {
        o->fault_of = ADJ_BLAME_KERNEL;
        snprintf(o->plan_fault, sizeof o->plan_fault,
                 "a kernel leaves another rounding mode, or subnormal numbers as 0");
    }
    for (int i = 0; i < t->n_fetch && status == ADJ_OK; i++)
        status = adj_get(e, t->fetch[i], o->value[i], adj_type_bytes(t->fetch[i]->type));
    for (int i = 0; i < t->n_fetch; i++)
        o->info[i].repeats = status == ADJ_OK && t->runs > 0;
    return status;
}

/* True if fetch i has the same bits as the kept copy. */
static int has_same_bits(const trial *t, adj_exec *e, const outcome *o, int i)
{
    const void *v = adj_data(e, t->fetch[i]);
    return v != NULL && memcmp(v, o->value[i], adj_type_bytes(t->fetch[i]->type)) == 0;
}

/* Marks fetches that differ. */
static void compare_bits(const trial *t, adj_exec *e, outcome *o)
{
    for (int i = 0; i < t->n_fetch; i++)
        o->info[i].repeats &= has_same_bits(t, e, o, i);
}

/* True if the step has the op of fetch i and the described one does not; else, if both or neither
 * have it, if it has as many operations. */
static int describes_better(const trial *t, adj_step_info step, int i, const fetch_info *f,
                            int is_own)
{
    const int has_op = strcmp(step.op, t->fetch[i]->op->name) == 0;
    return has_op != is_own ? has_op : step.flop >= f->flop;
}

/* Describes the step that computes each fetch; for a node alone, the largest step with its op. */
static void describe(const trial *t, const adj_exec *e, outcome *o)
{
    for (int i = 0; i < t->n_fetch; i++) {
        fetch_info *f = &o->info[i];
        int is_own = 0;
        for (int s = 0; s < adj_exec_step_count(e); s++) {
            adj_step_info step = adj_exec_step_at(e, s);
            if (step.n_node == 0 || (step.node != t->fetch[i] && t->n_fetch > 1) ||
                !describes_better(t, step, i, f, is_own))
                continue;
            is_own = strcmp(step.op, t->fetch[i]->op->name) == 0;
            f->step = s;
            f->flop = step.flop;
            f->bytes = step.bytes;
            snprintf(f->backend, sizeof f->backend, "%s", step.backend);
            snprintf(f->implementation, sizeof f->implementation, "%s", step.impl);
            snprintf(f->why, sizeof f->why, "%s", step.why != NULL ? step.why : "");
        }
    }
}

/* Measures median times of the run and of the described steps; all steps run, also invariant ones,
 * as in training. */
static adj_status time_runs(const trial *t, adj_exec *e, region *p, outcome *o)
{
    int n_step = adj_exec_step_count(e);
    double *whole = region_alloc(p, (size_t)t->runs, sizeof *whole);
    double *step = region_alloc(p, (size_t)t->runs * (size_t)n_step, sizeof *step);
    if (whole == NULL || step == NULL)
        return ADJ_ENOMEM;
    int n = 0;
    for (double begin = seconds_now();
         n < t->runs && (n == 0 || seconds_now() - begin < timed_seconds); n++) {
        adj_status status = give_leaves(t, e);
        double start = seconds_now();
        if (status == ADJ_OK)
            status = adj_run(e);
        if (status != ADJ_OK)
            return status;
        whole[n] = seconds_now() - start;
        compare_bits(t, e, o);
        for (int s = 0; s < n_step; s++)
            step[s * t->runs + n] = adj_exec_step_at(e, s).seconds;
    }
    o->seconds = median(whole, n);
    for (int i = 0; i < t->n_fetch; i++)
        if (o->info[i].step >= 0)
            o->info[i].seconds = median(step + (ptrdiff_t)o->info[i].step * t->runs, n);
    return ADJ_OK;
}

static uint64_t add_word(uint64_t hash, const char *word)
{
    return hash_text(hash_text(hash, word), " ");
}

static uint64_t add_layouts(const adj_exec *e, int n, const int buffer[], uint64_t hash)
{
    for (int i = 0; i < n; i++)
        hash = add_word(hash, layout_text(e, &e->plan.buffer[buffer[i]]));
    return hash;
}

/* Returns a hash of the plan's kernels with their shapes and layouts, independent of their order.
 */
static uint64_t hash_kernels(const adj_exec *e)
{
    uint64_t all = 0;
    for (int i = 0; i < e->plan.n_step; i++) {
        const step *s = &e->plan.step[i];
        uint64_t hash = HASH_START;
        if (s->kind != STEP_KERNEL)
            continue;
        for (int k = 0; k < s->group.n_node; k++)
            hash = add_word(add_word(hash, s->group.node[k]->op->name),
                            adj_shape_text(s->group.node[k]->type.shape).s);
        hash = add_word(add_word(hash, e->backends.list[s->backend]->name), s->prep.impl);
        hash = add_layouts(e, s->n_in, s->in, hash);
        all += add_layouts(e, s->n_out, s->out, hash);
    }
    return all;
}

static adj_status list_steps(const adj_exec *e, region *p, outcome *o)
{
    const plan *plan = &e->plan;
    o->n_plan = plan->graph->n_node;
    o->step_of = region_alloc(p, (size_t)o->n_plan, sizeof *o->step_of);
    if (o->step_of == NULL)
        return ADJ_ENOMEM;
    for (int id = 0; id < o->n_plan; id++)
        o->step_of[id] = NONE;
    for (int i = 0; i < plan->n_step; i++)
        for (int k = 0; k < plan->step[i].group.n_node; k++)
            o->step_of[plan->step[i].group.node[k]->id] = i;
    return ADJ_OK;
}

/* Takes the plan's graph from the executor, whose steps do not run again. */
static adj_status take_plan(const trial *t, adj_exec *e, region *p, outcome *o)
{
    o->image = region_alloc(p, (size_t)t->g->n_node, sizeof(adj_node *));
    if (o->image == NULL)
        return ADJ_ENOMEM;
    for (int id = 0; id < e->plan.n_user; id++)
        o->image[id] = e->plan.image[id];
    o->plan = e->plan.graph;
    e->plan.graph = NULL;
    return ADJ_OK;
}

/* Reports that steps run one by one give other bits than a run: an invariant step was omitted or,
 * without such steps, a kernel reads memory that is not its operand. */
static void describe_steps(const adj_exec *e, const adj_node *n, outcome *o)
{
    const int may_be_left_out = e->plan.n_invariant > 0;
    o->fault_of = may_be_left_out ? ADJ_BLAME_PLAN : ADJ_BLAME_KERNEL;
    snprintf(o->plan_fault, sizeof o->plan_fault,
             "%s: a run gives %s other bits than its steps do one by one: %s",
             may_be_left_out ? "plan" : "memory", n->op->name,
             may_be_left_out ? "one was left out after its operands had changed"
                             : "a kernel reads memory that is not its operand");
}

/* Sets o->plan_fault if a kernel writes outside its results, or if all steps run one by one give
 * other bits than the executor's runs. */
static adj_status run_steps_alone(const trial *t, adj_exec *e, outcome *o)
{
    const adj_node *differs = NULL;
    adj_status status = give_leaves(t, e); /* a kernel may have changed them */
    if (status == ADJ_OK)
        status = find_memory_fault(e, o);
    for (int i = 0; i < t->n_fetch && status == ADJ_OK && o->plan_fault[0] == '\0'; i++)
        if (o->info[i].repeats && !has_same_bits(t, e, o, i))
            differs = t->fetch[i];
    if (differs == NULL || (status = give_leaves(t, e)) != ADJ_OK ||
        (status = adj_run(e)) != ADJ_OK)
        return status;
    compare_bits(t, e, o);
    for (int i = 0; i < t->n_fetch; i++)
        if (t->fetch[i] == differs && o->info[i].repeats)
            describe_steps(e, differs, o);
    return ADJ_OK;
}

static adj_status run_plan(const trial *t, adj_exec *e, const adj_exec_opts *opts, region *p,
                           outcome *o)
{
    o->exec = adj_exec_stats(e);
    o->reorders = adj_exec_details(e).reorders;
    o->kernels = hash_kernels(e);
    adj_status status = list_steps(e, p, o);
    if (status == ADJ_OK)
        status = take_values(t, e, o);
    if (status == ADJ_OK) {
        for (int i = 0; i < t->n_fetch; i++)
            if (!has_same_bits(t, e, o, i))
                report_copy(t->fetch[i], "adj_get", o);
        describe(t, e, o);
        status = time_runs(t, e, p, o);
    }
    const int first = t->bare && t->runs > 0 ? invariant_leaf(t, e, 0) : NONE;
    if (status == ADJ_OK && first != NONE && (status = run_after_others(t, e, first, o)) == ADJ_OK)
        compare_bits(t, e, o);
    if (status == ADJ_OK && o->plan_fault[0] == '\0' && o->reorders > 0) {
        o->fault_of = ADJ_BLAME_PLAN;
        if (find_wrong_reorder(e, o->plan_fault, sizeof o->plan_fault) < 0)
            status = ADJ_ENOMEM;
    }
    if (status == ADJ_OK && o->plan_fault[0] == '\0' && (t->aliases || t->bare))
        status = run_steps_alone(t, e, o);
    if (status == ADJ_OK && t->updates != NULL && o->plan_fault[0] == '\0')
        status = compare_updates(t, e, opts, p, o);
    if (status == ADJ_OK && t->bare)
        status = take_plan(t, e, p, o);
    return status;
}

void outcome_message(outcome *o, const char *sentence)
{
    size_t n = strspn(sentence, "abcdefghijklmnopqrstuvwxyz_");
    int is_named = strncmp(sentence, "adj_", 4) == 0 && strncmp(sentence + n, ": ", 2) == 0;
    snprintf(o->message, sizeof o->message, "%s", sentence + (is_named ? n + 2 : 0));
}

/* From the graph as it is built; not where that cannot be run in f64. */
static void watch_passes(const trial *t, watch *w, adj_exec_internal *internal)
{
    watch_graph(w, "", t->g, t->g->node);
    internal->after_pass = w->status == ADJ_OK ? watch_graph : NULL;
}

int is_plan_wrong(const adj_exec *e)
{
    const adj_status passes =
        e != NULL && e->plan.graph != NULL ? adj_graph_status(e->plan.graph) : ADJ_OK;
    return e != NULL && (e->plan_is_wrong || (passes != ADJ_OK && passes != ADJ_ENOMEM));
}

adj_status trial_here(const trial *t, region *p, outcome *o)
{
    fenv_t environment;
    memset(o, 0, sizeof *o);
    o->n = t->n_fetch;
    o->info = region_alloc(p, (size_t)t->n_fetch, sizeof *o->info);
    o->value = region_alloc(p, (size_t)t->n_fetch, sizeof *o->value);
    for (int i = 0; i < t->n_fetch && o->value != NULL; i++)
        if ((o->value[i] = region_alloc(p, adj_type_bytes(t->fetch[i]->type) + 1, 1)) == NULL)
            return ADJ_ENOMEM;
    if (o->info == NULL || o->value == NULL)
        return ADJ_ENOMEM;
    for (int i = 0; i < t->n_fetch; i++)
        o->info[i].step = -1;
    watch w = {.trial = t};
    adj_exec_internal internal = t->internal != NULL ? *t->internal : (adj_exec_internal){0};
    const adj_exec_debug debug = {.impl = t->config->impl[0] != '\0' ? t->config->impl : NULL,
                                  .no_passes = t->as_built,
                                  .no_fusion = t->config->unfused || t->as_built,
                                  .no_sharing = t->as_built,
                                  .canaries = !t->bare,
                                  .internal = &internal};
    adj_exec_opts opts = {.n_fetch = t->n_fetch,
                          .fetch = t->fetch,
                          .backend = t->config->backend,
                          .threads = t->config->threads > 0 ? t->config->threads : t->threads,
                          .math = t->config->fast ? ADJ_MATH_FAST : ADJ_MATH_EXACT,
                          .precision = t->config->precision,
                          .loss_scale = LOSS_SCALE,
                          .tune = t->config->tune,
                          .recompute = t->config->recompute,
                          .tune_seconds = tune_seconds,
                          .backends = t->backends,
                          .debug = &debug};
    adj_exec *e = NULL;
    fegetenv(&environment);
    internal.pass_user = &w;
    internal.profile = !t->bare;
    if (t->bare || t->watched)
        watch_passes(t, &w, &internal);
    o->status = w.status == ADJ_ENOMEM ? ADJ_ENOMEM : adj_exec_new(t->g, &opts, &e);
    internal.after_pass = NULL;
    region_free(&w.region);
    if (w.status == ADJ_ENOMEM)
        o->status = ADJ_ENOMEM;
    if (o->status == ADJ_OK)
        o->status = e != NULL ? run_plan(t, e, &opts, p, o) : ADJ_ENOMEM;
    if (o->status != ADJ_OK && o->message[0] == '\0') {
        outcome_message(o, adj_exec_message(e));
        o->canary = e != NULL && e->run.overrun;
        o->wrong_plan = is_plan_wrong(e);
    }
    if (w.sentence[0] != '\0') {
        o->fault_of = ADJ_BLAME_PLAN;
        snprintf(o->plan_fault, sizeof o->plan_fault, "%s", w.sentence);
    }
    adj_exec_free(e);
    fesetenv(&environment);
    return o->status == ADJ_ENOMEM ? ADJ_ENOMEM : ADJ_OK;
}
