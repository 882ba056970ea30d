/* custom_op.c - a custom op outside the library: softsign, x / (1 + |x|). An adj_op defines it by
 * its shape rule and gradient rule; a backend that is tried before the built-in ones has its
 * kernel. The gradient rule uses existing ops, so it needs no kernel and can be differentiated
 * again. adj_gradcheck compares the rule with finite differences of the kernel.
 *
 *   cc custom_op.c $(pkg-config --cflags --libs adjoint) -lm && ./a.out */
#include <math.h>
#include <string.h>

#include "adjoint_check.h"
#include "adjoint_ext.h"

/* ---- the op ---- */

/* dx = dy / (1 + |x|)^2 */
static void softsign_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *x = y->in[0], *minus = adj_neg(x);
    adj_node *size = adj_maximum(x, minus), *one = adj_fill_like(x, 1);
    adj_node *below = adj_square(adj_add(one, size));
    dx[0] = adj_div(dy, below);
}

/* No infer: operand and result have one float type and one shape. */
static const adj_op op_softsign = {
    .name = "softsign", .n_in = 1, .flags = ADJ_OP_ELEMENTWISE, .grad = softsign_grad};

static adj_node *softsign(adj_node *x) { return adj_node_new1(&op_softsign, x, NULL); }

/* ---- the kernel, for f32 and f64 ---- */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    const adj_dtype dtype = g->node[0]->type.dtype;
    if (g->node[0]->op != &op_softsign || candidate > 0 || (dtype != ADJ_F32 && dtype != ADJ_F64)) {
        snprintf(p->why, sizeof p->why, "only softsign in f32 or f64");
        return ADJ_ENOKERNEL;
    }
    p->alias[0] = (adj_alias){.out = 0, .operands = 1}; /* may be computed in place */
    snprintf(p->impl, sizeof p->impl, "softsign:any");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const adj_type t = c->group->node[0]->type;
    for (int64_t i = 0; i < adj_shape_elems(t.shape); i++) {
        const double x = adj_load(t.dtype, c->in[0], i);
        adj_store(t.dtype, c->out[0], i, x / (1 + fabs(x)));
    }
    return ADJ_OK;
}

static adj_status open(const adj_backend_opts *opts, void **backend)
{
    (void)opts;
    *backend = NULL;
    return ADJ_OK;
}

static void close(void *backend) { (void)backend; }

static const adj_kernel kernel = {.name = "softsign", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend backend = {
    .version = ADJ_VERSION, .name = "mine", .open = open, .close = close, .kernels = kernels};

/* ---- use ---- */

static double derivative(double x) { return 1 / ((1 + fabs(x)) * (1 + fabs(x))); }
static double second(double x) { return -2 * copysign(1, x) / pow(1 + fabs(x), 3); }

int main(void)
{
    enum { N = 5 };
    const double at[N] = {-3, -0.5, 0.25, 1, 7};
    double y[N], first[N], twice[N], worst = 0;

    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F64, (adj_shape){1, {N}}), *dx, *ddx;
    adj_node *value = softsign(x), *sum = adj_reduce_sum(value, (adj_axes){.n = ADJ_ALL});
    adj_grad(sum, NULL, 1, &x, &dx);
    adj_grad(adj_reduce_sum(dx, (adj_axes){.n = ADJ_ALL}), NULL, 1, &x, &ddx);

    /* The backends in order of preference: this one, then the built-in ones. */
    const adj_backend *backends[8] = {&backend};
    for (int i = 0; i < 6 && adj_backends[i] != NULL; i++)
        backends[i + 1] = adj_backends[i];
    adj_node *const fetch[] = {value, dx, ddx};
    adj_exec *e;
    const adj_exec_opts opts = {.n_fetch = 3, .fetch = fetch, .backends = backends};
    if (adj_exec_new(g, &opts, &e) || adj_set(e, x, at, sizeof at) || adj_run(e) ||
        adj_get(e, value, y, sizeof y) || adj_get(e, dx, first, sizeof first) ||
        adj_get(e, ddx, twice, sizeof twice))
        return fprintf(stderr, "custom_op: %s\n", adj_exec_message(e)), 1;

    printf("%8s %12s %12s %12s\n", "x", "softsign", "derivative", "second");
    for (int i = 0; i < N; i++) {
        printf("%8.2f %12.6f %12.6f %12.6f\n", at[i], y[i], first[i], twice[i]);
        worst = fmax(worst, fabs(y[i] - at[i] / (1 + fabs(at[i]))));
        worst = fmax(worst, fabs(first[i] - derivative(at[i])));
        worst = fmax(worst, fabs(twice[i] - second(at[i])));
    }
    printf("largest error %.2g\n", worst);

    /* Checks the first and second derivatives of softsign and of every op in its gradient. */
    const adj_gradcheck_report *report;
    const adj_gradcheck_opts check = {.order = 2, .exec.backends = backends};
    const adj_status checked = adj_gradcheck(sum, &check, &report);
    adj_gradcheck_print(stdout, report);
    if (checked != ADJ_OK || report->verdict != ADJ_GRADCHECK_PASS)
        worst = INFINITY;
    adj_gradcheck_free(report);
    adj_exec_free(e);
    adj_graph_free(g);
    return worst < 1e-14 ? 0 : 1;
}
