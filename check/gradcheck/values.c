/* values.c - draws, sets and reads the values of a check, and runs its executors.
 *
 * Every value is rounded to the type of the tested leaf when drawn, so both graphs read the same
 * numbers. After the first error nothing runs; the report has its status. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

/* Streams of adj_draw: a block for each draw; in it, one for each leaf, dy and v. */
enum { STREAMS = 4096, DY_STREAM = STREAMS - 1, V_STREAM = 2048 };

static void draw_uniform(subject *s, double *to, int64_t n, const double range[2], int draw,
                         int stream)
{
    adj_draw(ADJ_F64, to, n, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = range[0], .b = range[1]},
             s->report->opts.exec.seed, (uint64_t)draw * STREAMS + (uint64_t)stream % STREAMS);
}

/* From u in [0, 1): one of +-1, +-2, +-3, or of 1, 2 where only positive numbers may be. */
static double small_integer(double u, int positive)
{
    int k = (int)(u * 6);
    return positive ? 1 + k % 2 : k < 3 ? k + 1 : 2 - k;
}

/* From u in [0, 1): +-1, +-2, +-4. A product with 1/3 or 0.1 is then never a whole number. */
static double small_power(double u)
{
    int k = (int)(u * 6);
    return ldexp(k % 2 ? 1 : -1, k / 2);
}

/* Spreads x in [-1, 1) apart, so that half types rarely have equal maxima, which are kinks. */
static void spread_apart(int64_t n, double *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] /= 1 + 0x1p-6 - fabs(x[i]);
}

static void draw_operand(subject *s, int leaf, int draw, int integer)
{
    const double range[2] = {-1, 1};
    double *x = s->at->x[leaf];
    const struct closure_leaf *l = leaf < s->closure.n_leaf ? &s->closure.leaf[leaf] : NULL;
    adj_dtype dtype = s->tested.leaf[leaf]->type.dtype;
    int64_t n = leaf_elems(s, leaf);
    const int has_domain = l != NULL && l->reader->op->domain != NULL;
    int positive = 1;

    draw_uniform(s, x, n, range, draw, leaf);
    if (has_domain)
        l->reader->op->domain(l->reader, l->as, n, x);
    if (integer && dtype != ADJ_I32) {
        for (int64_t i = 0; i < n; i++)
            positive &= x[i] >= 0;
        if (has_domain)
            draw_uniform(s, x, n, range, draw, leaf);
        for (int64_t i = 0; i < n; i++)
            x[i] = small_integer((x[i] + 1) / 2, positive);
        return;
    }
    if (!has_domain && dtype == ADJ_I32)
        adj_spread(n, x, 0, 4);
    else if (!has_domain && adj_is_half(dtype) && s->kinks[leaf] &&
             !(s->node->op->flags & ADJ_OP_ELEMENTWISE))
        spread_apart(n, x);
    for (int64_t i = 0; i < n; i++)
        x[i] = dtype == ADJ_I32 ? floor(x[i]) : rounded(dtype, x[i]);
}

static double **reals_by_leaf(subject *s)
{
    double **v = region_alloc(&s->region, (size_t)s->n_leaf + 1, sizeof *v);
    for (int i = 0; v != NULL && i < s->n_leaf; i++)
        if ((v[i] = reals(s, leaf_elems(s, i))) == NULL)
            return NULL;
    return v;
}

/* Selects the sample of a draw, reusing the oldest one's memory. True if its values are current. */
static int select_sample(subject *s, int draw, int integer)
{
    sample *at = s->kept;
    while (at < s->kept + KEPT && !(at->dy != NULL && at->draw == draw && at->integer == integer))
        at++;
    const int is_drawn = at < s->kept + KEPT;
    if (!is_drawn)
        at = &s->kept[s->n_kept++ % KEPT];
    if (at->dy == NULL) {
        at->x = reals_by_leaf(s);
        at->dx = reals_by_leaf(s);
        at->dx_ref = reals_by_leaf(s);
        at->dy = reals(s, s->n_y);
    }
    if (at->x == NULL || at->dx == NULL || at->dx_ref == NULL || at->dy == NULL) {
        log_no_memory(&s->report->log);
        return 1;
    }
    at->is_known &= is_drawn;
    at->draw = draw;
    at->integer = integer;
    s->at = at;
    return is_drawn;
}

void forget_draw(subject *s)
{
    s->at->draw = -1;
    s->at->is_known = 0;
}

void draw_values(subject *s, int draw, int integer)
{
    const double unit[2] = {0, 1}, range[2] = {-1, 1};
    if (select_sample(s, draw, integer))
        return;
    for (int leaf = 0; leaf < s->n_leaf; leaf++)
        draw_operand(s, leaf, draw, integer);
    draw_uniform(s, s->at->dy, s->n_y, integer ? unit : range, draw, DY_STREAM);
    for (int64_t i = 0; i < s->n_y; i++)
        s->at->dy[i] =
            integer ? small_power(s->at->dy[i]) : rounded(s->tested.dy->type.dtype, s->at->dy[i]);
}

void draw_direction(subject *s, int leaf, int draw, int integer)
{
    const double unit[2] = {0, 1}, range[2] = {-1, 1};
    int64_t n = leaf_elems(s, leaf);
    draw_uniform(s, s->v, n, integer ? unit : range, draw, V_STREAM + leaf);
    for (int64_t i = 0; i < n && integer; i++)
        s->v[i] = small_integer(s->v[i], 0);
}

/* ---- running ---- */

static adj_status set_leaf(subject *s, adj_exec *e, const adj_node *leaf, const double *values)
{
    adj_dtype dtype = leaf->type.dtype;
    int64_t n = adj_shape_elems(leaf->type.shape);
    const size_t bytes = adj_type_bytes(leaf->type);
    adj_convert(ADJ_F64, values, dtype, s->raw, n);
    const adj_status status = adj_set(e, leaf, s->raw, bytes);
    const void *kept = status == ADJ_OK ? adj_data(e, leaf) : NULL; /* NULL: nothing reads it */
    if (kept != NULL && memcmp(kept, s->raw, bytes) != 0)
        return log_fail(&s->report->log, ADJ_EBACKEND,
                        "gradcheck of %s: plan: \"%s\" does not hold the values that adj_set "
                        "was given",
                        s->node->op->name, adj_node_name(leaf));
    return status;
}

adj_status run_exec(subject *s, adj_exec *e, const twin *t, int is_forward)
{
    adj_status status = s->report->log.status;
    for (int i = 0; i < s->n_leaf && status == ADJ_OK; i++)
        status = set_leaf(s, e, t->leaf[i], s->at->x[i]);
    if (status == ADJ_OK && !is_forward)
        status = set_leaf(s, e, t->dy, s->at->dy);
    if (status == ADJ_OK)
        status = adj_run(e);
    if (status != ADJ_OK)
        log_fail(&s->report->log, status, "gradcheck of %s: %s", s->node->op->name,
                 adj_exec_message(e));
    return status;
}

static adj_status fetch(subject *s, adj_exec *e, const adj_node *n, double *to)
{
    adj_status status = s->report->log.status;
    if (status == ADJ_OK)
        status = adj_get(e, n, s->raw, adj_type_bytes(n->type));
    if (status != ADJ_OK)
        return log_fail(&s->report->log, status, "gradcheck of %s: %s", s->node->op->name,
                        adj_exec_message(e));
    adj_convert(n->type.dtype, s->raw, ADJ_F64, to, node_elems(n));
    return ADJ_OK;
}

adj_status forward_at(subject *s, int leaf, double h, double *y)
{
    const twin *t = &s->reference;
    double *const kept = s->at->x[leaf];
    for (int64_t i = 0, n = leaf_elems(s, leaf); i < n && h != 0; i++)
        s->moved[i] = kept[i] + h * s->v[i];
    s->at->x[leaf] = h != 0 ? s->moved : kept;
    run_exec(s, t->forward, t, 1);
    s->at->x[leaf] = kept;
    return fetch(s, t->forward, t->y, y);
}

static adj_status fetch_all(subject *s, const twin *t, double *const to[])
{
    for (int i = 0; i < s->n_leaf; i++)
        if (t->dx[i] != NULL)
            fetch(s, t->backward, t->dx[i], to[i]);
    return s->report->log.status;
}

/* ---- again: is a gradient the same when it is computed once more? ----
 *
 * It must have the same bits: what does not is wrong, however small the difference. Both runs are
 * with numbers that sums round, too: integers hide their order. */

/* Once more; dx has to be the same. */
static adj_status repeat_backward(subject *s)
{
    run_exec(s, s->tested.backward, &s->tested, 0);
    for (int i = 0; i < s->n_leaf; i++)
        if (s->tested.dx[i] != NULL &&
            fetch(s, s->tested.backward, s->tested.dx[i], s->moved) == ADJ_OK &&
            memcmp(s->moved, s->at->dx[i], (size_t)leaf_elems(s, i) * sizeof(double)) != 0)
            s->repeats[i] = 0;
    return s->report->log.status;
}

adj_status backward(subject *s)
{
    if (s->report->log.status != ADJ_OK || s->at->is_known)
        return s->report->log.status;
    run_exec(s, s->reference.backward, &s->reference, 0);
    fetch_all(s, &s->reference, s->at->dx_ref);
    run_exec(s, s->tested.backward, &s->tested, 0);
    fetch_all(s, &s->tested, s->at->dx);
    s->at->is_known = 1;
    return repeat_backward(s);
}

adj_status repeat_with_reals(subject *s)
{
    draw_values(s, 0, 0);
    return backward(s);
}

void check_repeat(subject *s, int leaf, gradcheck_detail *row)
{
    row->repeatable = s->repeats[leaf] != 0;
    s->report->conditions.repeatable &= row->repeatable;
    if (row->repeatable || row->result == ADJ_GRADCHECK_FAIL)
        return;
    adj_step_info step = step_of(s->tested.backward, s->tested.dx[leaf]);
    gradcheck_blame(ADJ_FAULT_KERNEL,
                    log_text(&s->report->log,
                             "not repeatable: the same values gave other bits the second "
                             "time -> fault is in backend %s's kernel for %s (%s)",
                             step.backend, step.op, step.impl),
                    row);
}
