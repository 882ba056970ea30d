/* test_gradcheck_faults.c - the gradient checker finds planted faults and blames the right part.
 *
 * Faulty kernels: a backend whose one kernel calls naive's and spoils the result. Faulty rules: an
 * op with a rule of its own that simplifies to the sound op before it is run. */
#include <stdlib.h>

#include "spoil.h"
#include "ops/grad.h"

enum { SEEDS = 10 };

/* ---- a backend that spoils one op ---- */

typedef enum {
    FLIPPED_SIGN,
    DROPPED_ROW,
    SWAPPED_STRIDE,
    MISSING,
    ONE_ELEMENT,
    FACTOR,
    DROPPED_SHARE
} fault;

static struct {
    fault fault;
    int seed;
} planted;

static void spoil(const adj_node *n, void *y)
{
    adj_dtype dtype = n->type.dtype;
    int64_t elems = adj_shape_elems(n->type.shape);
    int64_t row = elems / n->type.shape.dim[0], one = (int64_t)planted.seed * 487 % elems;
    for (int64_t i = 0; i < elems; i++) {
        double v = adj_load(dtype, y, i);
        switch (planted.fault) {
        case FLIPPED_SIGN: v = -v; break;
        case MISSING: v = 0; break;
        case DROPPED_ROW: v = i >= elems - row ? 0 : v; break;
        case ONE_ELEMENT: v = i == one ? v + 0.5 : v; break;
        case FACTOR: v *= 1.01; break;
        default: break;
        }
        adj_store(dtype, y, i, v);
    }
}

/* Runs naive with the call's data for another node or other operands. */
static adj_status run_naive(const adj_call *c, const adj_node *n, const void *const *in)
{
    adj_group g = *c->group;
    adj_call call = *c;
    g.node = &n;
    call.group = &g;
    call.in = in;
    return naive_backend()->kernels[0]->run(&call);
}

static adj_status run_swapped(const adj_call *c)
{
    adj_node n = *c->group->node[0];
    adj_conv_attrs a = *(const adj_conv_attrs *)n.attrs;
    int64_t sh = a.geom.sh;
    a.geom.sh = a.geom.sw;
    a.geom.sw = sh;
    n.attrs = &a;
    return run_naive(c, &n, c->in);
}

/* The last quarter of operand 0 is not seen. */
static adj_status run_without_share(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    int64_t elems = adj_shape_elems(n->in[0]->type.shape);
    size_t size = adj_dtype_size(n->type.dtype);
    scoped(release) char *part = calloc((size_t)elems, size);
    memcpy(part, c->in[0], (size_t)(elems - elems / 4) * size);
    const void *in[] = {part};
    adj_status status = run_naive(c, n, in);
    return status;
}

static adj_status run_spoiled(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    if (planted.fault == SWAPPED_STRIDE)
        return run_swapped(c);
    if (planted.fault == DROPPED_SHARE)
        return run_without_share(c);
    adj_status status = run_naive(c, n, c->in);
    spoil(n, c->out[0]);
    return status;
}

/* ---- ops with faulty rules ---- */

static fault rule_fault;

/* Puts the fault into a gradient. */
static adj_node *faulty(adj_node *dx)
{
    adj_type t = adj_node_type(dx);
    adj_shape begin = {.rank = t.shape.rank}, size = t.shape, rest = begin;
    int64_t elems = adj_shape_elems(t.shape);
    switch (rule_fault) {
    case FLIPPED_SIGN: return adj_neg(dx);
    case MISSING: return adj_fill_like(dx, 0);
    case FACTOR: return adj_scale(dx, 1.01);
    case DROPPED_ROW:
        size.dim[0]--;
        rest.dim[0] = 1;
        return adj_pad(adj_slice(dx, begin, size), begin, rest);
    case SWAPPED_STRIDE: return adj_transpose(dx, 4, (const int[]){1, 0, 2, 3});
    case ONE_ELEMENT: {
        scoped(release) double *one = calloc((size_t)elems, sizeof *one);
        adj_store(t.dtype, one, (int64_t)planted.seed * 487 % elems, 0.5);
        adj_node *sum = adj_add(dx, adj_const(dx->graph, t.dtype, t.shape, one));
        return sum;
    }
    case DROPPED_SHARE: return dx;
    }
    return NULL;
}

static void conv2d_faulty_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_op_conv2d.grad(y, dy, dx);
    int operand = rule_fault == ONE_ELEMENT ? 0 : 1;
    dx[operand] = faulty(dx[operand]);
}

static void bias_faulty_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_op_bias_add.grad(y, dy, dx);
    if (rule_fault == DROPPED_SHARE) {
        adj_shape begin = {.rank = 4}, part = dy->type.shape;
        part.dim[1] -= part.dim[1] / 4;
        dx[1] = adj_bias_add_grad(adj_slice(dy, begin, part), ADJ_NHWC);
    } else
        dx[1] = faulty(dx[1]);
}

/* ---- what is planted where ---- */

typedef struct {
    fault fault;
    const char *op;         /* op with a wrong gradient */
    const char *kernel;     /* by which kernel; NULL: by its rule */
    const char *wrt, *says; /* in pattern or hint */
} plant;

static const op_args conv = {.op = "conv2d", .in = "2,8,8,3", .attr = "strides=1,1,2,1"};
static const op_args wide = {.op = "conv2d", .in = "1,100,50,2", .filter = "1,1,2,1"};
static const op_args bias = {.op = "bias_add", .in = "2,8,8,3"};

static const plant plants[] = {
    {FLIPPED_SIGN, "conv2d", "conv2d_backprop_filter", "filter", "sign is flipped"},
    {DROPPED_ROW, "conv2d", "conv2d_backprop_filter", "filter", "all with h=2"},
    {SWAPPED_STRIDE, "conv2d", "conv2d_backprop_filter", "filter", ""},
    {FACTOR, "conv2d", "conv2d_backprop_filter", "filter", "scaled by 1.01"},
    {FLIPPED_SIGN, "conv2d", "conv2d_backprop_input", "input", "sign is flipped"},
    {SWAPPED_STRIDE, "conv2d", "conv2d_backprop_input", "input", ""},
    {FACTOR, "conv2d", "conv2d_backprop_input", "input", "scaled by 1.01"},
    {ONE_ELEMENT, "wide", "conv2d_backprop_input", "input", "1 of 10000 wrong"},
    {MISSING, "bias", "bias_add_grad", "bias", "missing"},
    {DROPPED_SHARE, "bias", "bias_add_grad", "bias", ""},
    {FLIPPED_SIGN, "conv2d", NULL, "filter", "sign is flipped"},
    {DROPPED_ROW, "conv2d", NULL, "filter", "all with h=2"},
    {SWAPPED_STRIDE, "conv2d", NULL, "filter", ""},
    {FACTOR, "conv2d", NULL, "filter", "scaled by 1.01"},
    {ONE_ELEMENT, "wide", NULL, "input", "1 wrong of the "},
    {MISSING, "bias", NULL, "bias", "missing"},
    {DROPPED_SHARE, "bias", NULL, "bias", ""},
};

static const op_args *args_of(const plant *p)
{
    return p->op[0] == 'w' ? &wide : p->op[0] == 'b' ? &bias : &conv;
}

static adj_node *with_faulty_rule(const adj_node *n)
{
    return with_rule(n, n->op == &adj_op_conv2d ? conv2d_faulty_grad : bias_faulty_grad, NULL);
}

/* The only failure is that of the right operand, blamed rightly; "" or what is wrong. */
static const char *judge(const plant *p, const adj_gradcheck_report *r)
{
    if (r->verdict != ADJ_GRADCHECK_FAIL)
        return "missed";
    for (int i = 0; i < r->n_row; i++) {
        const gradcheck_detail *w = adj_gradcheck_row_at(r, i);
        if ((w->result == ADJ_GRADCHECK_FAIL) != (strcmp(w->wrt, p->wrt) == 0))
            return "the wrong operand";
        if (w->result != ADJ_GRADCHECK_FAIL)
            continue;
        if (p->kernel == NULL && strstr(w->blame, "in the gradient rule of") == NULL)
            return "a kernel is blamed";
        if (p->kernel != NULL && (strstr(w->blame, "backend spoiled's kernel") == NULL ||
                                  strstr(w->blame, p->kernel) == NULL))
            return "the kernel is not blamed";
        if (strstr(w->pattern, p->says) == NULL && strstr(w->hint, p->says) == NULL)
            return "not said what is wrong";
    }
    return "";
}

/* Checks a planted fault with a seed; returns the sentence of judge(). */
static void find(const plant *p, int seed, const char *dtype)
{
    const adj_gradcheck_opts o = {
        .exec.seed = (uint64_t)seed, .exec.backend = "naive", .exec.threads = 1};
    op_args args = *args_of(p);
    scoped(release_graph) adj_graph *g = adj_graph_new();
    args.dtype = dtype;
    planted.seed = seed;
    planted.fault = rule_fault = p->fault;
    spoiled.op = p->kernel;
    spoiled.run = run_spoiled;
    scoped(release_gradcheck) const adj_gradcheck_report *r =
        p->kernel != NULL ? check_spoiled(g, &args, &o)
                          : checked(with_faulty_rule(built(g, &args)), &o);
    const char *verdict = judge(p, r);
    if (verdict[0] != '\0')
        adj_gradcheck_print(stderr, r);
    cr_expect_str_empty(verdict, "fault %d of %s (kernel %s), %s, seed %d: %s", (int)p->fault,
                        p->op, p->kernel != NULL ? p->kernel : "-", dtype, seed, verdict);
}

/* A rule wrong at one element of 10000 is found by differences at each of them: a second a seed. */
static int is_slow(const plant *p) { return p->kernel == NULL && p->fault == ONE_ELEMENT; }

Test(gradcheck_faults, planted_faults)
{
    for (int seed = 1; seed <= repeats(SEEDS); seed++)
        for (size_t i = 0; i < sizeof plants / sizeof *plants; i++)
            if (!is_slow(&plants[i]) || seed % 5 == 0)
                find(&plants[i], seed, "f32");
}

/* In the other types: the rules are checked in float64 whatever the type. */
Test(gradcheck_faults, planted_faults_in_other_types)
{
    static const char *const dtypes[] = {"f64", "f16", "bf16"};
    for (int seed = 1; seed <= 6; seed++)
        for (size_t i = 0; i < sizeof plants / sizeof *plants; i++)
            if (!is_slow(&plants[i]) || seed == 1)
                find(&plants[i], seed, dtypes[seed % 3]);
}

/* ---- too little for any element's tolerance ---- */

/* Gradient rule with a factor rounded to float. */
static void rounded_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    sound_op->grad(y, dy, dx);
    dx[0] = adj_scale(dx[0], 1 + 0x1p-26);
}

Test(gradcheck_faults, rule_with_a_factor_rounded_to_float)
{
    static const char *const ops[] = {"sigmoid", "reduce_mean", "log_softmax"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            const op_args args = {.op = ops[i], .in = "4,10,7,3", .dtype = "f64"};
            const adj_gradcheck_opts o = {
                .exec.seed = seed, .exec.backend = "naive", .exec.threads = 1};
            scoped(release_graph) adj_graph *g = adj_graph_new();
            scoped(release_gradcheck) const adj_gradcheck_report *r =
                checked(with_rule(built(g, &args), rounded_grad, NULL), &o);
            const gradcheck_detail *w = adj_gradcheck_row_at(r, 0);
            cr_expect_eq(w->result, ADJ_GRADCHECK_FAIL, "%s: %g of %g", ops[i], w->worst_abs,
                         w->tolerance);
            expect_text(w->blame, "in the gradient rule of");
        }
}

Test(gradcheck_faults, kernel_wrong_as_a_whole)
{
    const op_args args = {.op = "tanh", .in = "8,20,10,3"};
    const adj_gradcheck_opts o = {.exec.seed = 3, .exec.threads = 1};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    spoiled.op = "tanh_grad";
    spoiled.factor = 1 + 0x1p-21;
    scoped(release_gradcheck) const adj_gradcheck_report *r = check_spoiled(g, &args, &o);
    const gradcheck_detail *x = adj_gradcheck_row_at(r, 0);
    cr_expect_eq(x->result, ADJ_GRADCHECK_FAIL);
    cr_expect_str_eq(x->index, " as a whole: the RMS error");
    expect_text(x->blame, "backend spoiled's kernel for tanh_grad");
}
