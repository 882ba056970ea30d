/* select_kernel.c - selects the backends of an executor from text such as "onednn", "naive" or
 * "onednn,max_pool=naive", and the kernel that computes a group.
 *
 * For each op, the backend named in the options is tried first, then those after it in the list.
 * The last one, naive, computes every built-in op. Ops of the caller and collective ops may be
 * computed by any backend of the list, so all of them are tried.
 *
 * Support is determined by preparing: kernels of the preferred backend are tried in its order, then
 * those of the backends after it. Of the kernels that can be prepared, the one with the least
 * estimated time is taken (the tables of backends/efficiency.c). With tune, two or more candidates
 * are timed instead (tune/tune.c). The selection for one op, with the estimate and the time of each
 * candidate: adjoint bench --op NAME --all; for a model: adjoint graph --plan. */
#include <string.h>

#include "base/backend_option.h"
#include "exec.h"
#include "invariant.h"
#include "planning.h"
#include "select_kernel.h"

/* ---- backends ---- */

adj_status select_backends(adj_exec *e)
{
    const adj_exec_opts *o = &e->opts;
    const adj_backend *const *list = o->backends != NULL ? o->backends : adj_backends;
    const char *option = o->backend;
    for (int i = 0; i < MAX_BACKENDS && list[i] != NULL; i++) {
        if (!is_known_version(list[i]->version))
            return set_error(
                e, ADJ_EVERSION,
                "adj_exec_new: header of backend %d in the list and library differ (got %s)", i,
                version_difference(list[i]->version).s);
        e->backends.list[e->backends.n++] = list[i];
    }
    if (e->backends.n == 0)
        return set_error(e, ADJ_EARG, "adj_exec_new: the list of backends is empty");
    e->backends.fallback = e->backends.n - 1;
    e->backends.preferred = 0;
    size_t parts = 1;
    for (const char *c = option; c != NULL && *c != '\0'; c++)
        parts += *c == ',';
    if ((e->backends.op = exec_alloc(e, parts, sizeof *e->backends.op)) == NULL)
        return e->status;
    while (option != NULL) {
        adj_error error;
        op_backend part;
        if (next_backend_part(&option, e->backends.list, "adj_exec_new: ", &part.op, &part.backend,
                              &error) != ADJ_OK)
            return set_error(e, error.status, "%s", error.message);
        if (part.op == NULL)
            e->backends.preferred = part.backend;
        else
            e->backends.op[e->backends.n_op++] = part;
    }
    return ADJ_OK;
}

void describe_backend(const adj_backend *b, char *text, size_t size)
{
    if (b->describe != NULL)
        b->describe(text, size);
    else
        snprintf(text, size, "* *");
}

adj_status adj_backend_describe(const char *backend, char *text, size_t size)
{
    const adj_backend *const *b = adj_backends;
    while (backend != NULL && *b != NULL && strcmp((*b)->name, backend) != 0)
        b++;
    if (backend == NULL || *b == NULL)
        return ADJ_EARG;
    if (text != NULL)
        describe_backend(*b, text, size);
    return ADJ_OK;
}

int first_backend(const adj_exec *e, const adj_op *op)
{
    int first = e->backends.preferred;
    if (first > 0 && (op->flags & ADJ_OP_COLLECTIVE || is_own_op(op)))
        first = 0;
    for (int i = 0; i < e->backends.n_op; i++)
        if (e->backends.op[i].op == op)
            first = e->backends.op[i].backend;
    return first;
}

int may_compute(const adj_exec *e, int backend, const adj_op *op)
{
    return first_backend(e, op) <= backend;
}

/* Opens backend i unless it is open. Returns 0 if it cannot be opened, with an error. */
static int open_backend(adj_exec *e, int i)
{
    exec_backends *b = &e->backends;
    char message[ADJ_WHY] = ""; /* a warning or, where it fails, the reason */
    if (b->is_open[i])
        return 1;
    const adj_backend_opts opts = {.allocator = &e->region.allocator,
                                   .threads = e->opts.threads,
                                   .math = e->opts.math,
                                   .self = b->list[i],
                                   .message = message};
    const adj_status status = b->list[i]->open(&opts, &b->opened[i]);
    message[ADJ_WHY - 1] = '\0';
    b->is_open[i] = status == ADJ_OK;
    if (status != ADJ_OK)
        set_error(e, status, "adj_exec_new: backend %s cannot be opened (%s)", b->list[i]->name,
                  message[0] != '\0' ? message : adj_status_name(status));
    else if (e->warning[0] == '\0')
        snprintf(e->warning, sizeof e->warning, "%s", message);
    return b->is_open[i];
}

const adj_backend *adj_exec_backend_at(adj_exec *e, int i, void **opened)
{
    if (i >= e->backends.n || !open_backend(e, i))
        return NULL;
    *opened = e->backends.opened[i];
    return e->backends.list[i];
}

adj_status open_progressing(adj_exec *e)
{
    for (int i = 0; i < e->backends.fallback && e->status == ADJ_OK; i++)
        if (e->backends.list[i]->progress != NULL)
            (void)open_backend(e, i);
    return e->status;
}

int has_backend(void *of, const adj_op *op)
{
    const adj_exec *e = of;
    return first_backend(e, op) != e->backends.fallback;
}

int is_fallback(const adj_exec *e, int backend)
{
    return backend == e->backends.fallback && e->backends.n > 1;
}

/* ---- candidates ---- */

/* True if the kernel may compute the group: a single node, a group that it proposed, or one that it
 * would propose as well. */
static int may_query(const adj_exec *e, const step *s, const candidate *c)
{
    const adj_group *g = &s->group;
    if (g->n_node == 1 || c->kernel == s->proposer)
        return 1;
    for (int i = 0; i < g->n_node; i++)
        if (!may_compute(e, c->index, g->node[i]->op))
            return 0;
    int n = 0;
    if (c->kernel->match != NULL)
        n = c->kernel->match(g->node[0], e->planning->uses, e->plan.graph->n_node,
                             e->planning->proposed);
    for (int i = 0; i < n && n == g->n_node; i++)
        if (adj_position(n, g->node, e->planning->proposed[i]) < 0)
            return 0;
    return n == g->n_node;
}

adj_status next_group_kernel(adj_exec *e, const step *s, candidate *c)
{
    while (e->status == ADJ_OK) {
        while (c->backend != NULL && next_kernel(c))
            if (may_query(e, s, c))
                return ADJ_OK;
        const int i = c->backend != NULL ? c->index + 1 : first_backend(e, s->group.node[0]->op);
        if (i > e->backends.fallback)
            return ADJ_ENOKERNEL;
        if (open_backend(e, i))
            *c = (candidate){
                .backend = e->backends.list[i], .opened = e->backends.opened[i], .index = i};
    }
    return e->status;
}

static uint32_t invariant_operands(const adj_exec *e, const adj_group *g)
{
    uint32_t bits = 0;
    for (int i = 0; i < g->n_in && i < 32; i++)
        bits |= (uint32_t)is_invariant(e, g->in[i]) << i;
    return bits;
}

/* Prepares candidate c->number for operands in the layouts that they have. */
static adj_status prepare_number(const adj_exec *e, const candidate *c)
{
    init_prep(c);
    for (int i = 0; e->planning->first_buffer != NULL && i < c->group->n_in; i++) {
        int b = e->planning->first_buffer[c->group->in[i]->id];
        if (b != NONE && e->plan.buffer[b].backend == c->index)
            c->prep->in[i] = e->plan.buffer[b].layout;
    }
    return query_kernel(c);
}

adj_status prepare_step(adj_exec *e, step *s, candidate *c)
{
    c->group = &s->group;
    c->prep = &s->prep;
    c->nominal = nominal_of_group(&s->group);
    c->invariant = invariant_operands(e, &s->group);
    adj_status status = prepare_number(e, c);
    while (status == ADJ_OK && e->opts.same_bits && s->prep.sums_by_threads) {
        drop_candidate(c);
        c->number++;
        status = prepare_number(e, c);
    }
    if (status == ADJ_OK) {
        s->kernel = c->kernel;
        s->backend = c->index;
    } else if (status == ADJ_ENOMEM)
        set_error(e, status, "adj_exec_new: out of memory while preparing %s",
                  s->group.node[0]->op->name);
    return status;
}

void drop_step(adj_exec *e, const step *s)
{
    if (s->kernel != NULL && s->kernel->drop != NULL)
        s->kernel->drop(e->backends.opened[s->backend], s->prep.state);
    else if (s->kind == STEP_REORDER && s->prep.state != NULL)
        e->backends.list[s->backend]->reorder_drop(e->backends.opened[s->backend], s->prep.state);
}

/* ---- the least estimate ---- */

/* Prepares the kernel's first candidate, or the first one with the implementation that the options
 * name, which then precedes all others. */
static adj_status prepare_wanted(adj_exec *e, step *s, candidate *c)
{
    for (c->number = 0; e->debug.impl != NULL; c->number++) {
        if (prepare_step(e, s, c) != ADJ_OK)
            break;
        if (strstr(s->prep.impl, e->debug.impl) != NULL) {
            s->prep.seconds = 0;
            return ADJ_OK;
        }
        drop_candidate(c);
    }
    c->number = 0;
    return e->status == ADJ_OK ? prepare_step(e, s, c) : e->status;
}

adj_status set_why(adj_exec *e, step *s, const char *why)
{
    if ((s->why = region_string(&e->region, why)) == NULL)
        return no_memory(e);
    return ADJ_OK;
}

/* Keeps the prepared step with the smaller estimate in s and drops the other. */
static void keep_faster(adj_exec *e, step *s, step *other)
{
    if (s->kernel == NULL || other->prep.seconds < s->prep.seconds) {
        const step slower = *s;
        *s = *other;
        s->why = slower.why;
        *other = slower;
    }
    drop_step(e, other);
    other->kernel = NULL;
}

adj_status select_by_estimate(adj_exec *e, step *s)
{
    const int is_single = s->group.n_node == 1;
    const adj_op *op = s->group.node[0]->op;
    char why[ADJ_WHY]; /* the last refusal's reason */
    candidate c = {.index = NONE};
    step other = *s;
    int first = first_backend(e, op);
    snprintf(why, sizeof why, "%s has no kernel for %s", e->backends.list[first]->name, op->name);
    s->kernel = NULL;
    if (alloc_operands(e, &e->region, &other, s->n_in, s->n_out) != ADJ_OK)
        return e->status;
    while (next_group_kernel(e, s, &c) == ADJ_OK) {
        int refused = is_single && c.index != first && s->kernel == NULL && s->why == NULL;
        if (refused && set_why(e, s, why) != ADJ_OK)
            break;
        if (prepare_wanted(e, &other, &c) == ADJ_OK)
            keep_faster(e, s, &other);
        else if (other.prep.why[0] != '\0')
            memcpy(why, other.prep.why, ADJ_WHY);
    }
    if (e->status != ADJ_OK) {
        drop_step(e, s);
        return e->status;
    }
    if (s->kernel != NULL || !is_single)
        return s->kernel != NULL ? ADJ_OK : ADJ_ENOKERNEL;
    return set_error(e, ADJ_ENOKERNEL, "adj_exec_new: no backend computes %s %s (%s)", op->name,
                     adj_dtype_name(s->group.node[0]->type.dtype), s->why != NULL ? s->why : why);
}

adj_status select_kernel(adj_exec *e, step *s)
{
    if (e->planning->tuner != NULL && e->debug.impl == NULL) {
        adj_status status = tune_group(e, s);
        if (status != ADJ_ENOKERNEL)
            return status;
    }
    return select_by_estimate(e, s);
}

int has_non_reference_kernel(void *of, const adj_node *n)
{
    adj_exec *e = of;
    const adj_node **in = planning_alloc(e, (size_t)n->n_in, sizeof(adj_node *));
    if (adj_shape_elems(n->type.shape) == 0 || in == NULL)
        return 0;
    step s = {.group = {1, &n, list_operands(1, &n, in), in, 1, &n}};
    candidate c = {.index = NONE};
    int found = 0;
    if (alloc_operands(e, &e->planning->region, &s, s.group.n_in, 1) != ADJ_OK)
        return 0;
    while (!found && next_group_kernel(e, &s, &c) == ADJ_OK && c.index != e->backends.fallback) {
        if (prepare_step(e, &s, &c) != ADJ_OK)
            continue;
        found = 1;
        drop_candidate(&c);
    }
    return found;
}
