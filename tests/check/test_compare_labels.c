/* test_compare_labels.c - labels that adj_compare draws are classes of their logits, whatever their
 * number, and -1: all of them. A kernel of the test records its operands. */
#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

enum { ROWS = 128 };

static int seen[16]; /* how often: -1, 0, 1, ... */

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    (void)uses;
    (void)max;
    group[0] = root;
    return root->op == &adj_op_sparse_softmax_cross_entropy;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    (void)g;
    if (candidate > 0)
        return ADJ_ENOKERNEL;
    p->in[0] = p->in[1] = p->out[0] = NULL;
    snprintf(p->impl, sizeof p->impl, "watching");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const int32_t *labels = c->in[1];
    for (int i = 0; i < ROWS; i++) {
        cr_assert(labels[i] >= -1 && labels[i] < 15, "label %d", labels[i]);
        seen[labels[i] + 1]++;
        ((float *)c->out[0])[i] = 0;
    }
    return ADJ_OK;
}

static const adj_kernel kernel = {
    .name = "watching", .match = match, .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend watching = {.version = ADJ_VERSION,
                                     .name = "watching",
                                     .open = open_nothing,
                                     .close = close_nothing,
                                     .kernels = kernels};

Test(compare_labels, every_class_and_no_other)
{
    static const int classes[] = {1, 2, 10};
    const adj_backend *const backends[] = {&watching, naive_backend(), NULL};
    for (int i = 0; i < 3; i++) {
        adj_graph *g = adj_graph_new();
        adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){2, {ROWS, classes[i]}});
        adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {ROWS}});
        adj_node *y = adj_sparse_softmax_cross_entropy(z, labels, 0);
        memset(seen, 0, sizeof seen);
        const adj_comparison *c =
            compared(y, "watching", (adj_compare_opts){.exec.backends = backends, .exec.seed = 1});
        for (int k = 0; k < 16; k++)
            cr_expect_eq(seen[k] > 0, k <= classes[i], "%d classes: label %d", classes[i], k - 1);
        adj_comparison_free(c);
        adj_graph_free(g);
    }
}
