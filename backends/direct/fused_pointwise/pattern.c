/* pattern.c - a table of patterns: the fused groups, and single nodes of other groups, that have
 * a row kernel (row_kernel.h). */
#include <string.h>

#include "backends/direct/epilogue.h"
#include "row_kernel.h"

/* A node of a pattern: its function in the row kernel, and its operands: the kernel's x[0] to
 * x[4], or the preceding result (SO_FAR), which is x[0] for the first node. */
enum { SO_FAR = -1 };

typedef struct {
    fused_code code;
    int bits;
    row_kernel_role role;
    int x[2]; /* an addition accepts either order */
} element;

/* Indexed by the letter that denotes it in a pattern. */
static const element elements[] = {
    /* batch_norm; batch_norm used only for the mask that follows */
    ['N'] = {FUSED_NORM, ROW_NORM, ROLE_NORM, {SO_FAR}},
    ['n'] = {FUSED_NORM, 0, ROLE_NORM, {SO_FAR}},
    /* relu of n, which is written; the next element starts a new chain */
    ['r'] = {FUSED_RELU, ROW_NORM_OUT, ROLE_NONE, {SO_FAR}},
    /* relu_grad by n */
    ['m'] = {FUSED_RELU_GRAD, ROW_NORM_MASK, ROLE_NONE, {1, SO_FAR}},
    /* batch_norm_grad: after n and m, by the same norm; alone */
    ['g'] = {FUSED_NORM_GRAD, ROW_GRAD, ROLE_GRAD, {0, SO_FAR}},
    ['G'] = {FUSED_NORM_GRAD, ROW_GRAD, ROLE_GRAD, {0, 1}},
    /* add, relu, relu_grad */
    ['A'] = {FUSED_ADD, ROW_ADD, ROLE_NONE, {SO_FAR, 1}},
    ['R'] = {FUSED_RELU, ROW_RELU, ROLE_NONE, {SO_FAR}},
    ['M'] = {FUSED_RELU_GRAD, ROW_MASK, ROLE_NONE, {SO_FAR, 2}},
    /* a cast of bf16 to f32, the type of sums anyway */
    ['C'] = {FUSED_COPY, 0, ROLE_NONE, {SO_FAR}},
    /* sums: bias_add_grad, batch_norm_grad_sums (P, and Q with another x), batch_norm_stats */
    ['S'] = {FUSED_SUM, ROW_SUM, ROLE_SUM, {SO_FAR}},
    ['P'] = {FUSED_NORM_SUMS, ROW_NORM_SUMS, ROLE_SUMS, {3, SO_FAR}},
    ['p'] = {FUSED_NORM_SUMS, ROW_NORM_SUMS, ROLE_SUMS, {0, SO_FAR}}, /* after m, with n's x */
    ['Q'] = {FUSED_NORM_SUMS, ROW_MORE_NORM_SUMS, ROLE_MORE_SUMS, {4, SO_FAR}},
    ['V'] = {FUSED_STATS, ROW_STATS, ROLE_SUMS, {SO_FAR}},
};

/* Each has a loop in row_kernel.c; C adds no code. */
static const char *const patterns[] = {
    "N",   "NR",   "NA",  "NAR",   "G",   "GS",   "GCS",   "M", "MS", "MCS", "MP", "MPQ", "AM",
    "AMP", "AMPQ", "nmp", "nrnmp", "nmg", "nmgS", "nmgCS", "P", "S",  "CS",  "R",  "AR",  "V"};

typedef struct {
    const fused_group *p;
    int first, n_node; /* range of p's nodes */
    int in_memory;     /* operands and result are in memory, not in buffers */
    int so_far;        /* value; -1 if none yet */
    int widened;       /* so_far, or the operand, cast to f32; -1 if no value */
    adj_dtype dtype;   /* dtype of all operands */
    row_kernel_plan plan;
} matching;

static int is_operand(matching *m, int slot, int value)
{
    const fused_value *v = &m->p->value[value];
    int *x = m->plan.x;
    if (x[slot] >= 0)
        return x[slot] == value;
    x[slot] = value;
    if (!m->in_memory)
        return 1;
    if (m->dtype == ADJ_F64) /* f64: not set yet */
        m->dtype = v->dtype;
    return v->in >= 0 && v->at != AT_TILED && v->dtype == m->dtype &&
           (v->dtype == ADJ_F32 || v->dtype == ADJ_BF16);
}

/* True if the node's operand i is the preceding result, widened or not, or one in memory. */
static int has_operand(matching *m, int slot, int value)
{
    if (slot == SO_FAR && m->widened >= 0)
        return value == m->widened;
    if (slot == SO_FAR && m->so_far >= 0)
        return value == m->so_far;
    return is_operand(m, slot == SO_FAR ? 0 : slot, value);
}

/* Accepts an inner cast of bf16 operands. */
static int add_widening(matching *m, const fused_node *d)
{
    m->widened = d->y;
    return m->in_memory && direct_is_widening(d->node) && m->p->value[d->y].out < 0 &&
           m->dtype == ADJ_BF16;
}

/* True if the value can be the loop's result. */
static int is_result(const matching *m, int value)
{
    const fused_value *v = &m->p->value[value];
    return !m->in_memory || (v->out >= 0 && v->dtype == m->dtype);
}

static int is_node(matching *m, const element *e, int number)
{
    const fused_node *d = &m->p->node[number];
    const int swapped = d->code == FUSED_ADD && d->x[1] == m->so_far;
    if (d->code != e->code)
        return 0;
    for (int i = 0; i < d->n_x; i++)
        if (!has_operand(m, e->x[i], d->x[swapped ? 1 - i : i]))
            return 0;
    if (d->code == FUSED_COPY)
        return add_widening(m, d);
    m->plan.bits |= e->bits;
    m->plan.node[e->role] = number;
    if (d->y < 0)
        return 1;
    const int was_written = m->so_far >= 0 && m->p->value[m->so_far].out >= 0;
    m->so_far = d->y;
    if (e->bits == ROW_NORM_OUT) {
        m->plan.y = d->y;
        m->so_far = -1;
    }
    return !was_written && (e->bits != ROW_NORM_OUT || is_result(m, d->y));
}

static int is_same_norm(const adj_node *a, const adj_node *b)
{
    return a->in[1] == b->in[1] && a->in[2] == b->in[2] &&
           (a->op != b->op || a->in[3] == b->in[3]) &&
           memcmp(a->attrs, b->attrs, adj_attr_size(a->op)) == 0;
}

/* True if the constants that a loop loads for a norm of x[0] also fit the pattern's other nodes
 * that use them: another norm, the gradient, the mean of sums. */
static int have_one_norm(const matching *m, const char *pattern)
{
    const fused_node *node = m->p->node;
    const int *at = m->plan.node;
    const adj_node *norm = node[at[ROLE_NORM]].node;
    return (strchr(pattern, 'r') == NULL || is_same_norm(norm, node[m->first].node)) &&
           (strchr(pattern, 'g') == NULL || is_same_norm(norm, node[at[ROLE_GRAD]].node)) &&
           (strchr(pattern, 'p') == NULL || norm->in[1] == node[at[ROLE_SUMS]].node->in[1]);
}

/* Sets the last value as the result; a mask by a norm has only sums as results. */
static int set_result(matching *m)
{
    if (m->so_far < 0)
        return 1;
    if ((m->plan.bits & ~ROW_NORM_OUT) == (ROW_NORM_MASK | ROW_NORM_SUMS))
        return m->p->value[m->so_far].out < 0;
    m->plan.y = m->so_far;
    m->plan.bits |= ROW_OUT;
    return is_result(m, m->so_far);
}

static int is_pattern(matching *m, const char *pattern)
{
    const int n = m->n_node;
    m->so_far = m->widened = -1;
    m->dtype = ADJ_F64;
    m->plan = (row_kernel_plan){.x = {-1, -1, -1, -1, -1}, .y = -1};
    if (strlen(pattern) != (size_t)n)
        return 0;
    for (int i = 0; i < n; i++)
        if (!is_node(m, &elements[(unsigned char)pattern[i]], m->first + i))
            return 0;
    m->plan.is_half = m->dtype == ADJ_BF16;
    return set_result(m) && have_one_norm(m, pattern);
}

static row_kernel_plan find(const fused_group *p, int first, int n_node, int in_memory)
{
    matching m = {.p = p, .first = first, .n_node = n_node, .in_memory = in_memory};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        if (is_pattern(&m, patterns[i]))
            return m.plan;
    return (row_kernel_plan){0};
}

void fused_find_row_kernels(fused_group *p)
{
    p->row_kernel = find(p, 0, p->n_node, 1);
    for (int i = 0; i < p->n_node; i++) /* only nodes that know channels */
        if (p->node[i].n_tiled > 0 || p->node[i].sum >= 0)
            p->node[i].row_kernel = find(p, i, 1, 0);
}
