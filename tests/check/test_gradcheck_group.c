/* test_gradcheck_group.c - gradcheck blames the kernel of a fused group that is wrong, by the names
 * of its nodes: of one that leaves no value of its nodes, and of one that gives them all. */
#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

/* ---- a backend that takes the pairs of square's rule: scale and mul ---- */

static int takes_fetched; /* also a scale that is fetched */

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[root->id];
    if (max < 2 || root->op != &adj_op_scale || u->n_user != 1 || (u->is_root && !takes_fetched))
        return 0;
    group[0] = root;
    group[1] = u->user[0];
    return group[1]->op == &adj_op_mul ? 2 : 0;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->n_node != 2 || candidate > 0)
        return ADJ_ENOKERNEL;
    snprintf(p->impl, sizeof p->impl, "welded:pair");
    return ADJ_OK;
}

/* 2 x dy, and 2 x where it is fetched; the first element of the product is off by 1. */
static adj_status run(const adj_call *c)
{
    const adj_node *scale = c->group->node[0];
    const int x = adj_group_in(c->group, scale->in[0]);
    for (int out = 0; out < c->group->n_out; out++)
        for (int64_t i = 0; i < adj_shape_elems(scale->type.shape); i++) {
            const float v = 2 * ((const float *)c->in[x])[i], dy = ((const float *)c->in[!x])[i];
            ((float *)c->out[out])[i] = c->group->out[out] == scale ? v : v * dy + (float)(i == 0);
        }
    return ADJ_OK;
}

static const adj_kernel pair = {.name = "pair", .match = match, .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&pair, NULL};
static const adj_backend welded = {.version = ADJ_VERSION,
                                   .name = "welded",
                                   .open = open_nothing,
                                   .close = close_nothing,
                                   .kernels = kernels};

Test(gradcheck_group, a_wrong_pair)
{
    const adj_backend *const backends[] = {&welded, naive_backend(), NULL};
    const adj_gradcheck_opts o = {
        .exec.backend = "welded", .exec.threads = 1, .exec.backends = backends};
    for (takes_fetched = 0; takes_fetched < 2; takes_fetched++) {
        adj_graph *g = adj_graph_new();
        const adj_gradcheck_report *r =
            checked(adj_square(adj_input(g, "x", ADJ_F32, (adj_shape){2, {5, 7}})), &o);
        cr_assert_eq(r->n_row, 1);
        cr_expect_eq(r->row[0].result, ADJ_GRADCHECK_FAIL);
        cr_expect_eq(r->row[0].fault, ADJ_FAULT_KERNEL);
        cr_expect_str_eq(r->row[0].blame,
                         "naive float64 backward agrees with numeric -> fault is in backend "
                         "welded's kernel for scale+mul (welded:pair)");
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}
