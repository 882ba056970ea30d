/* test_compare_spread.c - a convolution may give NaN where it multiplies padding by NaN or
 * infinity, and nowhere else. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/inspect.h"
#include "graph/op.h"
#include "tests/reference.h"

/* Pixels in a row, and channels: [1, 3, WIDTH, 2], filter [1, 2, 2, OUT], SAME: one column of
 * padding on the right, which the second tap meets. */
enum { WIDTH = 4, OUT = 5 };

static enum {
    PADDING,        /* a NaN where that tap's channel has none or an infinity */
    OTHER_CHANNELS, /* and in the same place in all channels */
    EVERYWHERE
} planted;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    if (g->node[0]->op != &adj_op_conv2d || g->node[0]->type.dtype != ADJ_F32)
        return ADJ_ENOKERNEL;
    adj_status status = naive_backend()->kernels[0]->prepare(backend, g, candidate, p);
    strcpy(p->impl, "pads");
    return status;
}

/* True if the filter is not finite at the second tap of channel oc. */
static int is_special(const float *filter, int64_t oc)
{
    const float *tap = filter + 2 * OUT;
    return !isfinite(tap[oc]) || !isfinite(tap[OUT + oc]);
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const float *filter = c->in[1];
    float *y = c->out[0];
    int any = 0;
    adj_status status = naive_backend()->kernels[0]->run(c);
    for (int64_t oc = 0; oc < OUT; oc++)
        any |= is_special(filter, oc);
    for (int64_t i = 0; i < adj_shape_elems(n->type.shape); i++) {
        const int is_last = i / OUT % WIDTH == WIDTH - 1;
        if ((is_last && is_special(filter, i % OUT)) ||
            (any && (planted == EVERYWHERE || (planted == OTHER_CHANNELS && is_last))))
            y[i] = NAN;
    }
    return status;
}

static const adj_kernel kernel = {.name = "conv2d", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend spreads = {.version = ADJ_VERSION,
                                    .name = "spreads",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels};

static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_spread, .init = plan_as_usual);

static void expect(adj_verdict verdict)
{
    const adj_backend *const backends[] = {&spreads, naive_backend(), NULL};
    const char *const configs[] = {"naive:f64", "spreads"};
    adj_graph *g = adj_graph_new();
    const adj_comparison *c = NULL;
    adj_node *y = adj_conv2d(adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 3, WIDTH, 2}}),
                             adj_input(g, "w", ADJ_F32, (adj_shape){4, {1, 2, 2, OUT}}),
                             &(adj_conv){.padding = ADJ_SAME});
    const adj_compare_opts o = {.exec.n_fetch = 1,
                                .exec.fetch = &y,
                                .n_config = 2,
                                .config = configs,
                                .exec.seed = 1,
                                .runs = 1,
                                .exec.threads = 1,
                                .exec.backends = backends};
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", c->message);
    const compare_row *row = adj_comparison_row_at(c, 0);
    cr_expect_str_eq(row->implementation, "pads");
    cr_expect_eq(row->verdict, verdict, "%d: %s", (int)planted, row->reason);
    if (verdict == ADJ_VERDICT_FAIL) {
        cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
        cr_expect_neq(strstr(row->reason, "on a NaN and infinities in operand 1 (filter)"), NULL,
                      "%s", row->reason);
    }
    adj_comparison_free(c);
    adj_graph_free(g);
}

Test(compare_spread, no_farther_than_the_padding)
{
    planted = PADDING;
    expect(ADJ_VERDICT_PASS);
    planted = OTHER_CHANNELS;
    expect(ADJ_VERDICT_FAIL);
    planted = EVERYWHERE;
    expect(ADJ_VERDICT_FAIL);
}
