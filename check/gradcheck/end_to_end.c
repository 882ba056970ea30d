/* end_to_end.c - checks the gradient graph end to end: for L = <dy, y>, the gradient of L along v
 * against differences of L along v, in float64 on naive. v changes all float leaves at once.
 *
 * A value through which no gradient passes by definition (stop_gradient, integers) becomes a
 * constant input of the differenced graph. After a failure each leaf is changed alone;
 * end_to_end_blame.c then finds the first wrong gradient. */
#include <math.h>

#include "end_to_end.h"

/* First step: 2^-LEVEL of a leaf's largest value; smaller if very many elements have kinks. */
enum { DRAWS = 3, LEVEL = 28, FINER = 4, STEPS = 3, MAX_SCALE = 64, SMALL_TERM = 100 };
static const double many_kinks = 0x1p17;

int is_input(const adj_node *n) { return (n->op->flags & ADJ_OP_LEAF) && n->op != &adj_op_const; }

static adj_status keep(whole *w, adj_status status)
{
    w->status = w->status == ADJ_OK ? status : w->status;
    return w->status;
}

static void *alloc(whole *w, int64_t n, size_t size)
{
    void *v = region_alloc(&w->region, (size_t)n, size);
    if (v == NULL)
        keep(w, ADJ_ENOMEM);
    return v;
}

/* Memory for the node's values. */
static double *numbers(whole *w, const adj_node *n)
{
    return alloc(w, node_elems(n) + 1, sizeof(double));
}

/* ---- copies of the graph ---- */

static adj_node *new_input(copy *c, adj_type type)
{
    char name[16];
    snprintf(name, sizeof name, "%d", c->graph->n_node);
    return adj_input(c->graph, name, config_dtype(&naive_f64, type.dtype), type.shape);
}

static adj_node *nudged(copy *c, const adj_node *n, adj_node *value)
{
    adj_node **nudge = &c->nudge[n->id];
    if (*nudge == NULL && value != NULL)
        *nudge = new_input(c, value->type);
    return adj_add(value, *nudge);
}

/* Returns the node whose rule covers u's contribution: u, or its reader if u gets no gradient of
 * its own (batch norm statistics). */
const adj_node *answering(const whole *w, const adj_node *u)
{
    double value;
    const adj_node *slope = w->moves[u->id] ? w->slope[u->id] : NULL;
    if (u == w->y || slope == NULL || !adj_is_fill(slope, &value) || value != 0)
        return u;
    for (uint32_t id = u->id + 1; id <= w->y->id; id++)
        if (w->moves[id] && adj_operand_position(w->y->graph->node[id], u) >= 0)
            return answering(w, w->y->graph->node[id]);
    return u;
}

static void copy_node(whole *w, copy *c, const adj_node *n, unsigned mode)
{
    adj_node **in = alloc(w, n->n_in + 1, sizeof *in);
    if (in == NULL)
        return;
    for (int k = 0; k < n->n_in; k++) {
        in[k] = c->image[n->in[k]->id];
        if (n->in[k] == c->split)
            in[k] = nudged(c, answering(w, n), in[k]);
    }
    const int is_still = is_input(n) || (mode & COPY_STILL && stops_gradient(n));
    adj_node *y = is_still ? new_input(c, n->type) : config_rule(&naive_f64, c->graph, n, in);
    if (mode & COPY_NUDGED && c->split == NULL && w->moves[n->id] && !is_still)
        y = nudged(c, n, y);
    c->image[n->id] = y;
    keep(w, c->graph->status);
}

static void copy_open(whole *w, copy *c, unsigned mode)
{
    const int n = (int)w->y->id + 1;
    const adj_graph_opts opts = {.allocator = &w->region.allocator};
    c->graph = adj_graph_new_with(ADJ_VERSION, &opts);
    c->image = alloc(w, n, sizeof *c->image);
    c->nudge = alloc(w, n, sizeof *c->nudge);
    if (c->graph == NULL)
        keep(w, ADJ_ENOMEM);
    else
        c->graph->is_unmerged = (mode & COPY_UNMERGED) != 0;
    for (int id = 0; id < n && w->status == ADJ_OK; id++)
        if (w->need[id])
            copy_node(w, c, w->y->graph->node[id], mode);
}

void copy_close(copy *c)
{
    adj_exec_free(c->exec);
    adj_graph_free(c->graph);
    *c = (copy){0};
}

void copy_plan(whole *w, copy *c, int n, adj_node *const fetch[])
{
    const adj_exec_opts o = {
        .threads = w->r->conditions.threads,
        .n_fetch = n,
        .fetch = fetch,
        .backend = "naive",
        .backends = w->backends,
        .debug = &(adj_exec_debug){.no_passes = c->as_built, .internal = w->r->debug.internal}};
    if (w->status != ADJ_OK)
        return;
    adj_exec_free(c->exec);
    keep(w, adj_exec_new(c->graph, &o, &c->exec));
}

/* ---- running ---- */

static void set(whole *w, copy *c, const adj_node *input, const double *v)
{
    adj_convert(ADJ_F64, v, input->type.dtype, w->raw, node_elems(input));
    keep(w, adj_set(c->exec, input, w->raw, adj_type_bytes(input->type)));
}

void copy_get(whole *w, const copy *c, const adj_node *n, double *v)
{
    if (w->status == ADJ_OK &&
        keep(w, adj_get(c->exec, n, w->raw, adj_type_bytes(n->type))) == ADJ_OK)
        adj_convert(n->type.dtype, w->raw, ADJ_F64, v, node_elems(n));
}

/* Runs the copy with inputs perturbed by h v; only: the one perturbed, or ALL. */
void copy_run(whole *w, copy *c, double h, int only)
{
    if (c->dy != NULL && w->status == ADJ_OK)
        set(w, c, c->dy, w->dy);
    for (int id = 0; id <= (int)w->y->id && w->status == ADJ_OK; id++) {
        const int is_nudge = c->nudge[id] != NULL;
        const adj_node *input = is_nudge ? c->nudge[id] : c->image[id];
        if (input == NULL || input->op != &adj_op_input)
            continue;
        const double *x = is_nudge ? NULL : w->x[id];
        const double *v = only == ALL ? w->v[id] : only == id ? w->v[only] : NULL;
        for (int64_t i = 0; i < node_elems(input); i++)
            w->value[i] = (x != NULL ? x[i] : 0) + (v != NULL ? h * v[i] : 0);
        set(w, c, input, w->value);
    }
    if (w->status == ADJ_OK)
        keep(w, adj_run(c->exec));
}

/* L, and the sum of the magnitudes of its terms. */
static double loss_at(whole *w, double h, int only, double *size)
{
    copy_run(w, &w->forward, h, only);
    copy_get(w, &w->forward, w->forward.image[w->y->id], w->value);
    return check_projection(w->dy, w->value, node_elems(w->y), size);
}

/* Estimates the derivative from D(h) at several h and keeps the most certain one. Error: rounding,
 * 8 eps (|L| + scale) / h, plus half the difference of the one-sided slopes. A difference that does
 * not shrink with h means values exactly at kinks, where no bound holds. */
void differentiate(whole *w, int only, double scale, estimate *best)
{
    double size, last = 0, last_bend = INFINITY;
    int at_kinks = 0;
    *best = (estimate){.uncertainty = INFINITY};
    int level = w->n_kinks > many_kinks ? LEVEL + FINER : LEVEL;
    for (int i = 0, way = 0; i < STEPS && w->status == ADJ_OK; i++, level += way) {
        const double h = ldexp(1, -level), up = loss_at(w, h, only, &size);
        const double down = loss_at(w, -h, only, &size);
        const double d = (up - down) / (2 * h), bend = (up - 2 * w->loss + down) / h;
        const double rounding = 8 * 0x1p-52 * (size + scale) / h;
        double error = rounding + fabs(bend) / 2;
        at_kinks |= way > 0 && fabs(bend - last_bend) < 0.1 * fabs(bend);
        if (fabs(bend) < 0.3 * fabs(last_bend) && way > 0)
            error = fmin(error, rounding + fabs(d - last));
        if (error < best->uncertainty)
            *best = (estimate){.value = d, .uncertainty = error};
        const int next = rounding < fabs(bend) / 2 ? FINER : -FINER;
        if (best->uncertainty <= 1e-5 * scale || next == -way)
            break;
        way = next;
        last = d;
        last_bend = bend;
    }
    best->at_kinks = at_kinks;
}

/* The gradient along v, and the root of the sum of its terms' squares in *scale. */
double along(const whole *w, int id, double *scale)
{
    double size, squares = 0;
    const int64_t n = node_elems(w->y->graph->node[id]);
    for (int64_t i = 0; i < n; i++)
        squares += w->dx[id][i] * w->v[id][i] * w->dx[id][i] * w->v[id][i];
    *scale = sqrt(squares);
    return check_projection(w->dx[id], w->v[id], n, &size);
}

static double tolerance_of(const estimate *e, double scale)
{
    return 2 * e->uncertainty + 1e-12 * scale;
}

static int exceeds(double analytic, const estimate *e, double scale)
{
    return check_excess(fabs(analytic - e->value), tolerance_of(e, scale)) > 1;
}

int is_apart(double analytic, const estimate *e, double scale)
{
    return !e->at_kinks && exceeds(analytic, e, scale);
}

/* ---- values ---- */

void draw_along(whole *w, int id, double largest)
{
    const adj_node *n = w->y->graph->node[id];
    const adj_init unit = {.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1};
    if (w->v[id] == NULL)
        w->v[id] = numbers(w, n);
    if (w->v[id] == NULL)
        return;
    adj_draw(ADJ_F64, w->v[id], node_elems(n), unit, w->seed, ((uint64_t)1 << 32) + n->id);
    for (int64_t i = 0; i < node_elems(n) && largest > 0; i++)
        w->v[id][i] *= largest;
}

static void draw_all(whole *w)
{
    const adj_init unit = {.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1};
    adj_draw(ADJ_F64, w->dy, node_elems(w->y), unit, w->seed, (uint64_t)1 << 33);
    if (w->y->type.shape.rank == 0)
        w->dy[0] = 1;
    for (int id = 0; id <= (int)w->y->id; id++) {
        const adj_node *n = w->y->graph->node[id];
        if (!w->need[id] || !is_input(n) ||
            keep(w, draw_leaf(n, 1, w->seed, &w->region, w->raw)) != ADJ_OK)
            continue;
        adj_convert(n->type.dtype, w->raw, ADJ_F64, w->x[id], node_elems(n));
        if (w->moves[id])
            draw_along(w, id, max_magnitude(w->x[id], node_elems(n)));
    }
}

/* Runs the gradient's copy: the gradients of leaves, and what is held. Directions of leaves with
 * small gradients become longer: all are to count in the sum. */
static void take_gradient(whole *w, double *sum, double *scale)
{
    const int n = (int)w->y->id + 1;
    double each, size, max = 0, squares = 0;
    copy_run(w, &w->gradient, 0, ALL);
    for (int id = 0; id < n; id++) {
        if (w->v[id] != NULL) {
            copy_get(w, &w->gradient, w->slope[id], w->dx[id]);
            along(w, id, &each);
            max = fmax(max, each);
        } else if (w->need[id] && stops_gradient(w->y->graph->node[id]))
            copy_get(w, &w->gradient, w->gradient.image[id], w->x[id]);
    }
    copy_get(w, &w->gradient, w->gradient.image[n - 1], w->value);
    w->loss = check_projection(w->dy, w->value, node_elems(w->y), &size);
    *sum = 0;
    for (int id = 0; id < n; id++) {
        if (w->v[id] == NULL)
            continue;
        along(w, id, &each);
        for (int64_t i = 0; i < node_elems(w->y->graph->node[id]) && each > 0; i++)
            w->v[id][i] *= fmin(max / each, MAX_SCALE);
        *sum += along(w, id, &each);
        squares += each * each;
    }
    *scale = sqrt(squares);
}

/* ---- rows ---- */

static void fill_row(whole *w, int id, double analytic, const estimate *e, double scale)
{
    gradcheck_report *r = w->r;
    const adj_node *n = w->y->graph->node[id];
    gradcheck_detail *row = gradcheck_row(r, n, "end to end", 1);
    if (row == NULL)
        return;
    row->method = "directional";
    row->type = n->type;
    row->elems = row->considered = node_elems(n);
    check_record(&(leaf_check){.row = row}, ALONG_V, analytic, *e, tolerance_of(e, scale));
    row->origin = "twice the uncertainty of the differences";
    row->index = " along a random direction";
    row->worst_rel = scale > 0 ? row->worst_abs / scale : row->worst_abs;
    if (is_apart(analytic, e, scale))
        row->result = ADJ_GRADCHECK_FAIL;
    else if (exceeds(analytic, e, scale)) {
        row->result = ADJ_GRADCHECK_INCONCLUSIVE;
        row->reason = "values lie exactly at kinks";
    } else if (!(e->uncertainty <= 0.01 * scale) && scale > 0) {
        row->result = ADJ_GRADCHECK_INCONCLUSIVE;
        row->reason = "the differences do not settle";
    }
}

/* Adds a row for each leaf. If the sum over leaves is right, a leaf's numeric value is the total
 * minus the other gradients; otherwise, or if its term is small, it is differenced alone. */
static void check_leaves(whole *w, double sum, const estimate *e, double scale)
{
    adj_gradcheck_fault fault = ADJ_FAULT_NONE;
    const char *blame = NULL;
    const int first = w->r->n_row, is_right = !exceeds(sum, e, scale);
    for (int id = 0; id <= (int)w->y->id && w->status == ADJ_OK; id++) {
        if (w->v[id] == NULL)
            continue;
        double each;
        const double analytic = along(w, id, &each);
        estimate own = {analytic + (e->value - sum), e->uncertainty, e->at_kinks};
        const double term = fmin(each, fabs(analytic));
        if (!is_right || (each > 0 && term < SMALL_TERM * e->uncertainty))
            differentiate(w, id, each, &own);
        if (w->status == ADJ_OK)
            fill_row(w, id, analytic, &own, scale);
    }
    for (int i = first; i < w->r->n_row && w->status == ADJ_OK; i++) {
        gradcheck_detail *row = &w->r->row[i];
        if (row->result != ADJ_GRADCHECK_FAIL)
            continue;
        if (blame == NULL)
            whole_blame(w, row->node, &fault, &blame);
        if (w->status == ADJ_OK)
            gradcheck_blame(fault, blame, row);
    }
}

static void check_sum(whole *w)
{
    double sum = 0, scale = 0;
    estimate e = {0};
    for (int draw = 0; draw < DRAWS && w->status == ADJ_OK; draw++) {
        w->seed = w->r->opts.exec.seed + (uint64_t)draw;
        draw_all(w);
        take_gradient(w, &sum, &scale);
        differentiate(w, ALL, scale, &e);
        if (!exceeds(sum, &e, scale) && e.uncertainty <= 1e-3 * scale && scale > 0)
            break; /* a loss of labels that are all left out is 0 */
    }
    check_leaves(w, sum, &e, scale);
}

/* ---- opening ---- */

void open_gradient(whole *w, copy *c, unsigned mode)
{
    const int64_t n = (int64_t)w->y->id + 1;
    adj_node **x = alloc(w, n, sizeof *x), **fetch = alloc(w, 2 * n, sizeof *fetch);
    int n_x = 0, n_fetch = 0;
    copy_open(w, c, mode);
    if (w->status != ADJ_OK)
        return;
    c->dy = new_input(c, w->y->type);
    for (int id = 0; id < n; id++)
        if (w->moves[id])
            x[n_x++] = c->image[id];
    keep(w, adj_grad(c->image[w->y->id], c->dy, n_x, x, x));
    n_x = 0;
    for (int id = 0; id < n && w->status == ADJ_OK; id++) {
        w->slope[id] = w->moves[id] ? x[n_x++] : NULL;
        const adj_node *of = w->y->graph->node[id];
        if (w->moves[id] && (is_input(of) || mode & COPY_ALL))
            fetch[n_fetch++] = w->slope[id];
        if (w->need[id] && (stops_gradient(of) || of == w->y))
            fetch[n_fetch++] = c->image[id];
    }
    copy_plan(w, c, n_fetch, fetch);
}

void open_forward(whole *w, const adj_node *split, unsigned mode)
{
    copy_close(&w->forward);
    w->forward.split = split;
    copy_open(w, &w->forward, COPY_STILL | mode);
    if (w->status == ADJ_OK)
        copy_plan(w, &w->forward, 1, &w->forward.image[w->y->id]);
}

static void open_whole(whole *w)
{
    const adj_graph *g = w->y->graph;
    const int n = (int)w->y->id + 1;
    int64_t max = 0;
    w->need = alloc(w, g->n_node, 1);
    w->moves = alloc(w, n, 1);
    w->slope = alloc(w, n, sizeof *w->slope);
    w->x = alloc(w, n, sizeof *w->x);
    w->v = alloc(w, n, sizeof *w->v);
    w->dx = alloc(w, n, sizeof *w->dx);
    if (w->status != ADJ_OK)
        return;
    mark_needed(g, 1, &w->y, w->need);
    for (int id = 0; id < n; id++) {
        const adj_node *x = g->node[id];
        w->moves[id] = w->need[id] && is_input(x) && adj_is_float(x->type.dtype);
        for (int k = 0; k < x->n_in && w->need[id] && !stops_gradient(x); k++)
            w->moves[id] |= w->moves[x->in[k]->id];
        w->n_moved += w->moves[id] && x->n_in > 0;
        if (w->moves[id] && x->op->flags & ADJ_OP_KINKS)
            w->n_kinks += (double)node_elems(x);
        max = w->need[id] && node_elems(x) > max ? node_elems(x) : max;
        w->x[id] = is_input(x) || stops_gradient(x) ? numbers(w, x) : NULL;
        w->dx[id] = w->moves[id] ? numbers(w, x) : NULL;
    }
    w->dy = numbers(w, w->y);
    w->value = alloc(w, max + 1, sizeof(double));
    w->raw = alloc(w, max + 1, sizeof(double));
    keep(w, reference_backends(w->r->opts.exec.backends, &w->region, &w->backends));
}

/* Skips graphs of one node, which their own rows cover, and rules or kernels without float64. */
adj_status check_whole(gradcheck_report *r, const adj_node *y)
{
    whole w = {.r = r, .y = y, .region.allocator = r->log.region.allocator};
    if (adj_is_float(y->type.dtype))
        open_whole(&w);
    if (w.status == ADJ_OK && w.n_moved > 1) {
        open_gradient(&w, &w.gradient, 0);
        open_forward(&w, NULL, 0);
        if (w.status == ADJ_OK)
            check_sum(&w);
    }
    if (w.status == ADJ_ENOMEM)
        log_no_memory(&r->log);
    else if (w.status != ADJ_OK && w.status != ADJ_ENOGRAD && w.status != ADJ_ENOKERNEL)
        log_fail(&r->log, w.status, "gradcheck of the whole graph: %s",
                 w.gradient.exec != NULL ? adj_exec_message(w.gradient.exec)
                                         : adj_graph_message(w.gradient.graph));
    copy_close(&w.gradient);
    copy_close(&w.forward);
    region_free(&w.region);
    return r->log.status;
}
