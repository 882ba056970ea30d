/* test_slices_info.c - what a plan says of its groups that run in slices (exec/slices/): how many
 * bytes they read and write, their steps in its printout and by adj_exec_substep_at. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/exec/sliced_plan.h"

TestSuite(slices_info, .init = plan_as_usual);

static char *printed(const adj_exec *e)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_exec_print(f, e);
    fclose(f);
    return text;
}

static double moved_bytes(const adj_exec *e)
{
    const adj_exec_info info = adj_exec_stats(e);
    return (double)info.read_bytes + (double)info.written_bytes;
}

Test(slices_info, fewer_bytes_are_read_and_written)
{
    static const adj_precision precisions[] = {ADJ_PRECISION_AS_BUILT, ADJ_PRECISION_BF16};
    static const double at_most[] = {0.75, 0.70};
    training_net n = new_net("resnet20", 32, ADJ_NHWC);
    for (int i = 0; i < 2; i++) {
        adj_exec *usual = plan_net(&n, (adj_exec_opts){.precision = precisions[i]});
        adj_exec *sliced = plan_net(&n, (adj_exec_opts){.precision = precisions[i], .slices = 1});
        cr_expect(moved_bytes(sliced) < at_most[i] * moved_bytes(usual), "%.0f of %.0f",
                  moved_bytes(sliced), moved_bytes(usual));
        char *text = printed(sliced);
        cr_expect_not_null(strstr(text, " [slices "));
        cr_expect_not_null(strstr(text, "\n        0 "), "the steps of a slice are not printed");
        free(text);
        text = printed(usual);
        cr_expect_null(strstr(text, "slices"));
        free(text);
        adj_exec_free(usual);
        adj_exec_free(sliced);
    }
    adj_graph_free(n.g);
}

/* Multiplications and additions of the graph's forward convolutions, and how many there are. */
static double conv_flop(const adj_graph *g, int *n_conv)
{
    double flop = 0;
    *n_conv = 0;
    for (int i = 0; i < adj_graph_node_count(g); i++) {
        const adj_node *n = adj_graph_node_at(g, i);
        if (strcmp(n->op->name, "conv2d") != 0 || n->role != ADJ_ROLE_FORWARD)
            continue;
        const adj_shape w = n->in[1]->type.shape;
        flop +=
            2.0 * (double)adj_shape_elems(n->type.shape) * (double)(w.dim[0] * w.dim[1] * w.dim[2]);
        ++*n_conv;
    }
    return flop;
}

static double seconds_of_steps(const adj_exec *e)
{
    double sum = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        sum += adj_exec_step_at(e, i).seconds;
    return sum;
}

/* What slices run is listed in their step's place, as the user's nodes. */
static void expect_substeps(int64_t batch, int threads)
{
    training_net n = new_net("resnet8", batch, ADJ_NHWC);
    int n_conv, convs = 0, sliced = 0;
    double flop = 0, seconds = 0;
    const double all = conv_flop(n.g, &n_conv);
    adj_exec *e =
        plan_net(&n, (adj_exec_opts){.slices = 1, .threads = threads, .debug.profile = 1});
    for (int run = 0; run < 2; run++)
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    const int count = adj_exec_substep_count(e);
    for (int i = 0; i < count; i++) {
        const adj_step_info s = adj_exec_substep_at(e, i);
        seconds += s.seconds;
        cr_expect_str_neq(s.backend, "slices");
        if (strcmp(s.op, "reorder") == 0 && s.slices > 0)
            cr_expect_gt(s.seconds, 0, "%s", s.name); /* of a filter: before the slices */
        if (strcmp(s.op, "conv2d") != 0)
            continue;
        const adj_node *y = s.node,
                       *named = NULL; /* or what is computed along: a bias, statistics */
        for (flop += s.flop;; y = y->in[0]) {
            named = named == NULL && adj_node_name(y)[0] != '\0' ? y : named;
            if (strcmp(y->op->name, "conv2d") == 0)
                break;
            flop -= (double)adj_shape_elems(y->type.shape) *
                    (strcmp(y->op->name, "batch_norm_stats") == 0 && s.slices > 0 ? s.slices : 1);
        }
        const adj_node *x = y->in[0];
        const size_t images = adj_type_bytes(y->type) + adj_type_bytes(x->type),
                     filter = adj_type_bytes(y->in[1]->type);
        cr_expect_eq(y->graph, n.g);
        cr_expect_str_eq(s.name, adj_node_name(named));
        /* Layouts of whole vectors have up to 16 channels for three. */
        cr_expect(s.bytes >= images + filter &&
                  s.bytes <= 6 * (images + filter * (size_t)(s.slices > 0 ? s.slices : 1)));
        cr_expect_gt(s.seconds, 0);
        cr_expect(s.slices == 0 || (s.slices >= threads && batch % s.slices == 0), "%d", s.slices);
        convs++;
        sliced += s.slices > 0;
    }
    cr_expect_eq(convs, n_conv);
    cr_expect_eq(flop, all);
    cr_expect(sliced > n_conv / 2, "%d", sliced);
    cr_expect_float_eq(seconds, seconds_of_steps(e), 1e-9 * seconds);
    cr_expect_str_eq(adj_exec_substep_at(e, count).op, "");
    cr_expect_str_eq(adj_exec_substep_at(e, -1).op, "");
    adj_exec_free(e);
    adj_graph_free(n.g);
}

Test(slices_info, substeps)
{
    expect_substeps(8, 2);
    expect_substeps(7, 3);
    cr_expect_eq(adj_exec_substep_count(NULL), 0);
}

/* Nothing is timed unasked, and a plan without slices has the same steps. */
Test(slices_info, substeps_that_are_steps)
{
    training_net n = new_net("resnet8", 8, ADJ_NHWC);
    for (int slices = -1; slices <= 1; slices += 2) {
        adj_exec *e = plan_net(&n, (adj_exec_opts){.slices = slices});
        cr_assert_eq(adj_run(e), ADJ_OK);
        for (int i = 0; i < adj_exec_substep_count(e); i++)
            cr_expect_eq(adj_exec_substep_at(e, i).seconds, 0);
        cr_expect(slices > 0 || adj_exec_substep_count(e) == adj_exec_step_count(e));
        for (int i = 0; i < adj_exec_step_count(e) && slices < 0; i++)
            cr_expect(adj_exec_substep_at(e, i).node == adj_exec_step_at(e, i).node &&
                      adj_exec_substep_at(e, i).slices == 0);
        adj_exec_free(e);
    }
    adj_graph_free(n.g);
}
