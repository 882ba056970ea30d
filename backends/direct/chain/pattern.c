/* pattern.c - which chains, and which nodes of the others, are strips (strip.h). */
#include <string.h>

#include "strip.h"

typedef struct {
    const chain *p;
    chain_plan plan;
    int now;   /* the value that the next node takes on; -1: none yet */
    int dtype; /* of all operands and the result; -1: not known yet */
} search;

/* Operand number `slot` of the strip. */
static int read_operand(search *s, int slot, int value)
{
    const chain_value *v = &s->p->value[value];
    s->plan.x[slot] = value;
    if (v->in < 0 || v->at == AT_PERIOD || (v->dtype != ADJ_F32 && v->dtype != ADJ_BF16))
        return 0;
    if (s->dtype >= 0 && s->dtype != (int)v->dtype)
        return 0;
    s->dtype = (int)v->dtype;
    return 1;
}

/* What is not written down, and not read again, goes on in registers. */
static int go_on(search *s, const chain_node *d, int what)
{
    int now = s->now;
    s->plan.what |= what;
    s->now = d->y;
    return now < 0 || s->p->value[now].out < 0;
}

static int start_norm(search *s, const chain_node *d, int is_grad)
{
    if (is_grad)
        s->plan.grad = d->period;
    else
        s->plan.norm = d->period;
    return s->now < 0 && s->plan.what == 0 && read_operand(s, 0, d->x[0]) &&
           (!is_grad || read_operand(s, 1, d->x[1])) &&
           go_on(s, d, is_grad ? STRIP_GRAD : STRIP_NORM);
}

static int take_add(search *s, const chain_node *d)
{
    int taken = s->plan.what & ~STRIP_NORM;
    if (taken != 0 || (s->now < 0) != (s->plan.what == 0))
        return 0;
    if (s->now < 0)
        return read_operand(s, 0, d->x[0]) && read_operand(s, 1, d->x[1]) && go_on(s, d, STRIP_ADD);
    int other = d->x[0] == s->now ? d->x[1] : d->x[0];
    return other != s->now && (d->x[0] == s->now || d->x[1] == s->now) &&
           read_operand(s, 1, other) && go_on(s, d, STRIP_ADD);
}

static int take_relu(search *s, const chain_node *d)
{
    return (s->plan.what & STRIP_NORM) && !(s->plan.what & STRIP_RELU) && d->x[0] == s->now &&
           go_on(s, d, STRIP_RELU);
}

/* Do both normalise the same, by the same? */
static int same_norm(const adj_node *z, const adj_node *dx)
{
    return z->in[0] == dx->in[0] && z->in[1] == dx->in[1] && z->in[2] == dx->in[2] &&
           memcmp(z->attrs, dx->attrs, z->op->attr_size) == 0;
}

/* norm_grad of what has been masked by the norm itself. */
static int take_masked_grad(search *s, const chain_node *d)
{
    if (s->plan.what != STRIP_NORM_MASK || d->x[1] != s->now ||
        !same_norm(s->p->node[0].node, d->node))
        return 0;
    s->plan.grad = d->period;
    return go_on(s, d, STRIP_GRAD);
}

/* What there is, a norm, is but a mask. */
static int take_norm_mask(search *s, const chain_node *d)
{
    if (s->plan.what != STRIP_NORM || !read_operand(s, 1, d->x[0]))
        return 0;
    s->plan.what = 0;
    return go_on(s, d, STRIP_NORM_MASK);
}

static int take_mask(search *s, const chain_node *d)
{
    if (s->now >= 0 && d->x[1] == s->now)
        return take_norm_mask(s, d);
    if ((s->plan.what & ~STRIP_ADD) != 0 || !read_operand(s, 2, d->x[1]))
        return 0;
    return (s->now < 0 ? read_operand(s, 0, d->x[0]) : d->x[0] == s->now) &&
           go_on(s, d, STRIP_MASK);
}

/* Is dy what has been computed so far, or else the operand that all sums take? */
static int sums_of(search *s, int dy)
{
    if (s->now >= 0)
        return dy == s->now;
    int first = s->plan.what == 0;
    int known = !first && dy == s->plan.x[0];
    return first ? read_operand(s, 0, dy) : known;
}

static int take_norm_sums(search *s, const chain_node *d, int number)
{
    int which = s->plan.what & STRIP_NORM_SUMS ? 1 : 0;
    int what = which ? STRIP_NORM_SUMS_TOO : STRIP_NORM_SUMS;
    if ((s->plan.what & (STRIP_NORM | STRIP_STATS | what)) || !sums_of(s, d->x[1]))
        return 0;
    s->plan.norm_sums[which] = number;
    s->plan.what |= what;
    return read_operand(s, 3 + which, d->x[0]);
}

static int take_node(search *s, int number)
{
    const chain_node *d = &s->p->node[number];
    switch (d->code) {
    case CHAIN_NORM: return start_norm(s, d, 0);
    case CHAIN_NORM_GRAD: return s->now < 0 ? start_norm(s, d, 1) : take_masked_grad(s, d);
    case CHAIN_ADD: return take_add(s, d);
    case CHAIN_RELU: return take_relu(s, d);
    case CHAIN_RELU_GRAD: return take_mask(s, d);
    case CHAIN_NORM_SUMS: return take_norm_sums(s, d, number);
    case CHAIN_SUM:
        if ((s->plan.what & (STRIP_NORM | STRIP_SUM | STRIP_STATS)) || !sums_of(s, d->x[0]))
            return 0;
        s->plan.sum = number;
        s->plan.what |= STRIP_SUM;
        return 1;
    case CHAIN_STATS:
        s->plan.sum = s->plan.norm_sums[0] = number;
        return s->plan.what == 0 && read_operand(s, 0, d->x[0]) && (s->plan.what = STRIP_STATS);
    default: return 0;
    }
}

/* All of p in one strip, whose operands and result lie in memory. */
static chain_plan whole_chain(const chain *p)
{
    search s = {.p = p, .now = -1, .dtype = -1, .plan = {.x = {-1, -1, -1, -1, -1}, .y = -1}};
    for (int i = 0; i < p->n_node; i++)
        if (!take_node(&s, i))
            return (chain_plan){0};
    if (s.now >= 0 && p->value[s.now].out >= 0) {
        if ((int)p->value[s.now].dtype != s.dtype)
            return (chain_plan){0};
        s.plan.y = s.now;
        s.plan.what |= STRIP_OUT;
    }
    s.plan.what |= s.dtype == ADJ_BF16 ? STRIP_HALF : 0;
    return s.plan;
}

/* One node that knows channels, over floats. */
static chain_plan one_node(const chain *p, int number)
{
    const chain_node *d = &p->node[number];
    chain_plan plan = {.x = {d->x[0], -1, -1, -1, -1}, .y = d->y, .norm = d->period};
    plan.grad = d->period;
    plan.sum = plan.norm_sums[0] = number;
    switch (d->code) {
    case CHAIN_NORM: plan.what = STRIP_NORM | STRIP_OUT; break;
    case CHAIN_NORM_GRAD:
        plan.what = STRIP_GRAD | STRIP_OUT;
        plan.x[1] = d->x[1];
        break;
    case CHAIN_SUM: plan.what = STRIP_SUM; break;
    case CHAIN_NORM_SUMS:
        plan.what = STRIP_NORM_SUMS;
        plan.x[0] = d->x[1];
        plan.x[3] = d->x[0];
        break;
    case CHAIN_STATS: plan.what = STRIP_STATS; break;
    default: break;
    }
    return plan;
}

void chain_find_strips(chain *p)
{
    p->strip = whole_chain(p);
    for (int i = 0; i < p->n_node; i++)
        p->node[i].strip = one_node(p, i);
}
