/* test_op_text.c - node -> options -> node is the same node, and nodes that options cannot describe
 * are refused.
 *
 * The test compares the nodes itself, byte by byte, not by the function that the tool uses. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "cli/op/line.h"
#include "graph/op.h"
#include "tests/plan.h"

static int same_type(const adj_node *a, const adj_node *b)
{
    return a->type.dtype == b->type.dtype && adj_shape_equal(a->type.shape, b->type.shape);
}

/* Types and attributes; of operands that are made of others, the same again. */
static int same(const adj_node *a, const adj_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || !same_type(a, b) ||
        memcmp(a->attrs, b->attrs, adj_attr_size(a->op)) != 0)
        return 0;
    for (int k = 0; k < a->n_in; k++)
        if (!same_type(a->in[k], b->in[k]) ||
            (a->in[k]->n_in > 0 && b->in[k]->n_in > 0 && !same(a->in[k], b->in[k])))
            return 0;
    return 1;
}

/* Reads the words of a printed line. */
static op_args read_words(char *line)
{
    op_args a = {0};
    option options[OP_OPTIONS];
    op_args_options(&a, options);
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        int known = 0;
        for (int i = 0; i < OP_OPTIONS; i++)
            if (strcmp(options[i].name, word) == 0) {
                *options[i].text = strtok(NULL, " ");
                known = 1;
            }
        cr_assert(known, "%s", word);
    }
    return a;
}

static int round_trip(const adj_node *n, char line[OP_LINE])
{
    op_line text;
    adj_error error = {0};
    char words[OP_LINE];
    if (!op_line_of(n, &text))
        return 0;
    line[0] = '\0';
    cr_assert(op_args_repeat(&text.args, line, OP_LINE));
    strcpy(words, line);
    op_args args = read_words(words);
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_node *again = op_args_build(&args, g, &error);
    cr_assert_not_null(again, "%s: %s", line, error.message);
    cr_expect(same(n, again), "%s: another node", line);
    return 1;
}

static void expect_round_trip(const op_args *args)
{
    adj_error error = {0};
    char line[OP_LINE] = "";
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_node *n = op_args_build(args, g, &error);
    cr_assert_not_null(n, "%s: %s", args->op, error.message);
    int is_leaf = (n->op->flags & ADJ_OP_LEAF) != 0;
    cr_expect_eq(round_trip(n, line), !is_leaf, "%s %s %s", args->op, args->in ? args->in : "",
                 args->attr ? args->attr : "");
}

/* Each in every type, and with the attributes that it has. */
Test(op_text, every_op_in_every_type)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16"};
    static const char *const attrs[] = {NULL, "data_format=NCHW", "padding=VALID",
                                        "padding=VALID,data_format=NCHW"};
    int built = 0;
    for (int i = 0; op_name_at(i) != NULL; i++)
        for (int k = 0; k < 16; k++) {
            const op_args a = {.op = op_name_at(i), .dtype = dtypes[k % 4], .attr = attrs[k / 4]};
            scoped(release_graph) adj_graph *g = adj_graph_new();
            adj_error error = {0};
            if (op_args_build(&a, g, &error) == NULL &&
                strstr(error.message, "has no attribute") != NULL)
                continue;
            expect_round_trip(&a);
            built++;
        }
    cr_expect_geq(built, 580, "%d: an op has lost an attribute", built);
}

static const char *const convs[] = {"conv2d",
                                    "conv2d_backprop_input",
                                    "conv2d_backprop_filter",
                                    "depthwise_conv2d_native",
                                    "depthwise_conv2d_native_backprop_input",
                                    "depthwise_conv2d_native_backprop_filter"};

Test(op_text, convolutions)
{
    static const char *const filters[] = {"3,3,4,2", "1,5,4,1", "2,2,4,3"};
    static const char *const groups[] = {"3,3,2,2", "1,1,1,4", "3,2,2,6"};
    static const char *const steps[2][3] = {{"1,1,1,1", "1,2,1,1", "1,3,2,1"},
                                            {"1,1,1,1", "1,1,2,1", "1,1,3,2"}};
    static const char *const paddings[2][3] = {
        {"SAME", "VALID", "EXPLICIT,explicit_paddings=0,0,1,2,0,3,0,0"},
        {"SAME", "VALID", "EXPLICIT,explicit_paddings=0,0,0,0,1,2,0,3"}};
    for (size_t i = 0; i < 6 * 3 * 3 * 3 * 3 * 2; i++) {
        char attr[OP_ATTR_TEXT];
        int nchw = i % 2, padding = i / 2 % 3, stride = i / 6 % 3, dilation = i / 18 % 3;
        int filter = i / 54 % 3, op = (int)(i / 162);
        snprintf(attr, sizeof attr, "strides=%s,dilations=%s,padding=%s,data_format=%s",
                 steps[nchw][stride], steps[nchw][dilation], paddings[nchw][padding],
                 nchw ? "NCHW" : "NHWC");
        op_args a = {.op = convs[op],
                     .in = nchw ? "2,4,9,11" : "2,9,11,4",
                     .filter = op < 3 && padding != 2 ? groups[filter] : filters[filter],
                     .attr = attr};
        expect_round_trip(&a);
    }
}

static const op_args others[] = {
    {.op = "max_pool", .in = "1,9,8,3", .attr = "ksize=1,3,2,1,strides=1,2,3,1"},
    {.op = "max_pool", .attr = "ksize=1,2,2,1,padding=EXPLICIT,explicit_paddings=0,0,1,0,0,1,0,0"},
    {.op = "max_pool", .in = "1,4,4,6", .attr = "ksize=1,1,1,2,padding=VALID"},
    {.op = "max_pool_grad", .attr = "ksize=1,3,3,1,strides=1,2,1,1,padding=VALID"},
    {.op = "avg_pool_grad", .attr = "ksize=1,1,3,3,strides=1,1,2,2,data_format=NCHW"},
    {.op = "resize",
     .in = "2,5,4,3",
     .attr = "height=3,width=9,mode=nearest,coordinates=align_corners"},
    {.op = "resize_grad",
     .in = "2,3,5,4",
     .attr = "height=11,width=1,mode=bilinear,coordinates=asymmetric,data_format=NCHW"},
    {.op = "bias_add", .in = "3,5"},
    {.op = "bias_add", .in = "3,5,2", .attr = "data_format=NCHW"},
    {.op = "batch_norm", .attr = "epsilon=0.00123456789012345,stats=0"},
    {.op = "batch_norm_grad_sums", .attr = "epsilon=1e-5,stats=0,data_format=NCHW"},
    {.op = "batch_norm_grad", .attr = "epsilon=1e-5,stats=1,sums=1"},
    {.op = "batch_norm_grad", .attr = "epsilon=1e-5,stats=1,sums=0"},
    {.op = "batch_norm_grad", .dtype = "bf16", .attr = "epsilon=1e-5,stats=0,sums=1"},
    {.op = "group_norm", .in = "2,3,3,8", .attr = "epsilon=1e-5,groups=2"},
    {.op = "group_norm", .in = "7,6", .dtype = "f16", .attr = "epsilon=0.25,groups=3"},
    {.op = "group_norm_grad",
     .in = "2,8,3,3",
     .attr = "epsilon=0.00123456789012345,groups=4,data_format=NCHW"},
    {.op = "group_norm_grad_sums", .dtype = "bf16", .attr = "epsilon=0"},
    {.op = "leaky_relu", .attr = "0.1"},
    {.op = "leaky_relu_grad", .attr = "0.3333333333333333"},
    {.op = "elu", .attr = "-1.5"},
    {.op = "elu_grad", .in = "7", .attr = "0.1"},
    {.op = "gelu", .attr = "1"},
    {.op = "gelu_grad", .in = "3,0", .attr = "1"},
    {.op = "prelu", .in = "3,5", .filter = "1"},
    {.op = "prelu_grad", .in = "3,5,2", .filter = "5", .attr = "data_format=NCHW"},
    {.op = "prelu_grad_slope", .in = "2,3,4,5", .attr = "1"},
    {.op = "clip", .attr = "min=-0.1,max=2e300"},
    {.op = "clip_grad", .in = "0,4", .attr = "min=3,max=-3"},
    {.op = "scale", .in = "scalar", .attr = "-1e-300"},
    {.op = "add", .in = "2,1,3", .filter = "4,1"},
    {.op = "mul", .in = "2,3", .filter = "scalar"},
    {.op = "mul", .in = "2,3", .filter = "same"},
    {.op = "matmul", .in = "3,3", .filter = "same"},
    {.op = "div", .in = "scalar", .filter = "2,3"},
    {.op = "maximum", .in = "5,1", .filter = "1,4"},
    {.op = "relu", .in = "0,4"},
    {.op = "cast", .dtype = "f16", .attr = "bf16"},
    {.op = "cast", .dtype = "f64", .attr = "f16"},
    {.op = "label_count", .dtype = "f16", .in = "7"},
    {.op = "matmul", .in = "3,4", .filter = "4,5"},
    {.op = "matmul", .in = "4,3", .filter = "4,5", .attr = "transpose_a=1,transpose_b=0"},
    {.op = "matmul", .in = "3,4", .filter = "5,4", .attr = "transpose_a=0,transpose_b=1"},
    {.op = "matmul", .in = "4,3", .filter = "5,4", .attr = "transpose_a=1,transpose_b=1"},
    {.op = "reshape", .in = "2,3,4", .attr = "4,6"},
    {.op = "broadcast_to", .in = "2,1,4", .attr = "5,2,3,4"},
    {.op = "transpose", .in = "2,3,4", .attr = "1,2,0"},
    {.op = "concat", .in = "2,3,4", .filter = "2,5,4", .attr = "1"},
    {.op = "pad", .in = "2,3", .attr = "before=0,1,after=3,0"},
    {.op = "slice", .in = "5,6", .attr = "begin=1,2,size=3,4"},
    {.op = "reduce_sum", .in = "2,3,4", .attr = "axes=,keep_dims=0"},
    {.op = "reduce_mean", .in = "2,3,4", .attr = "axes=0,2,keep_dims=1"},
    {.op = "reduce_max", .in = "2,3,4", .attr = "axes=1,keep_dims=0"},
    {.op = "softmax", .in = "2,3,4"},
    {.op = "softmax_cross_entropy", .in = "3,7", .attr = "0"},
    {.op = "sparse_softmax_cross_entropy", .in = "3,7", .attr = "0.25"},
    {.op = "dropout", .attr = "rate=0.125,seed=77"},
    {.op = "dropout", .attr = "seed=18446744073709551615"},
    {.op = "dropout", .attr = "rate=0.5,first=9007199254740992"},
    {.op = "clip", .attr = "min=-inf,max=inf"},
    {.op = "reshape", .in = "1,1", .attr = "shape="},
    {.op = "momentum", .attr = "mu=0.5,decay=0.25"},
    {.op = "sgd_step", .attr = "0"},
    {.op = "adam_step", .attr = "beta1=0.8,beta2=0.99,epsilon=1e-6,decay=0.01"},
    {.op = "ema", .attr = "0.99"},
};

Test(op_text, other_attributes)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_round_trip(&others[i]);
}

/* Forward, gradient and update nodes of whole models: their options are right, and most nodes have
 * options. */
Test(op_text, models)
{
    static const char *const names[] = {"lenet", "resnet8", "mobilenet_v1"};
    for (int i = 0; i < 3; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_model_opts options = {.batch = 2, .training = 1};
        const adj_model *model = adj_model_find(names[i], &options);
        adj_node *logits = adj_model_logits(g, model, &options);
        adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {2}});
        cr_assert_not_null(adj_sgd(adj_loss_softmax(logits, labels, NULL), 0));
        int told = 0, all = 0;
        for (int id = 0; id < adj_graph_node_count(g); id++) {
            const adj_node *n = adj_graph_node_at(g, id);
            char line[OP_LINE];
            int can = round_trip(n, line);
            all += n->n_in > 0;
            told += can && n->n_in > 0;
            if (strstr(n->op->name, "conv") != NULL || n->op == &adj_op_batch_norm)
                cr_expect(can, "%s: node %d (%s)", names[i], id, n->op->name);
        }
        cr_expect_geq(told, all * 9 / 10, "%s: %d of %d", names[i], told, all);
    }
}

static adj_node *own(adj_node *x)
{
    static adj_op op;
    op = adj_op_relu;
    op.name = "relu"; /* the name alone does not make it relu */
    return adj_node_new1(&op, x, NULL);
}

Test(op_text, refused)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    op_line t;
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 3}});
    adj_node *three[] = {x, adj_relu(x), adj_neg(x)};
    cr_expect_not(op_line_of(NULL, &t));
    cr_expect_not(op_line_of(x, &t));
    cr_expect_not(op_line_of(adj_concat(3, three, 0), &t));
    cr_expect_not(op_line_of(own(x), &t));
    cr_expect(op_line_of(adj_relu(x), &t));
}

/* In any order; the first needs no name. */
Test(op_text, attributes_by_name)
{
    static const char *const words[] = {"0.5,groups=3", "epsilon=0.5,groups=3",
                                        "groups=3,epsilon=0.5"};
    const adj_shape in = {4, {2, 4, 3, 6}}, channels = {1, {6}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, in), *c = adj_input(g, "c", ADJ_F32, channels);
    const adj_node *half = adj_group_norm(x, c, c, 3, 0.5, ADJ_NHWC),
                   *usual = adj_group_norm(x, c, c, 3, 0.001, ADJ_NHWC);
    adj_error error = {0};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const op_args args = {.op = "group_norm", .in = "2,4,3,6", .attr = words[i]};
        const adj_node *n = op_args_build(&args, g, &error);
        cr_assert_not_null(n, "%s: %s", words[i], error.message);
        cr_expect(same(n, half), "%s", words[i]);
    }
    const op_args rest = {.op = "group_norm", .in = "2,4,3,6", .attr = "groups=3"};
    const adj_node *n = op_args_build(&rest, g, &error);
    cr_assert_not_null(n, "%s", error.message);
    cr_expect(same(n, usual));
}

Test(op_text, attributes_that_are_wrong)
{
    static const struct {
        op_args args;
        const char *says;
    } wrong[] = {
        {{.op = "relu", .attr = "1"}, "--attr: relu has no attribute 1 (see adjoint ops relu)"},
        {{.op = "scale", .attr = "1,2"}, "--attr factor: got \"1,2\", expected a number"},
        {{.op = "scale", .attr = ""}, "--attr factor: got \"\", expected a number"},
        {{.op = "scale", .attr = "nan"}, "--attr factor: got \"nan\""},
        {{.op = "scale", .attr = "1e999"}, "--attr factor: got \"1e999\""},
        {{.op = "scale", .attr = "f33"}, "--attr factor: got \"f33\""},
        {{.op = "scale", .attr = "factor="}, "--attr factor: got \"\""},
        {{.op = "scale", .attr = "=1"}, "--attr: scale has no attribute  (see adjoint"},
        {{.op = "scale", .attr = "1,data_format=NCHW"}, "scale has no attribute data_format"},
        {{.op = "group_norm", .attr = "group=4"}, "--attr: group_norm has no attribute group"},
        {{.op = "group_norm", .attr = "groups=x"}, "groups: got \"x\", expected a whole number"},
        {{.op = "group_norm", .attr = "0.5,epsilon=0.1"}, "--attr: epsilon is given twice"},
        {{.op = "batch_norm", .attr = "stats=3"}, "--attr stats: got \"3\", expected 0, 1 or 2"},
        {{.op = "reduce_sum", .attr = "axes=1.5"}, "--attr axes: got \"1.5\", expected whole"},
        {{.op = "concat", .attr = "1e300"}, "--attr axis: got \"1e300\", expected a whole number"},
        {{.op = "dropout", .attr = "seed=18446744073709551616"}, "--attr seed: got"},
        {{.op = "reduce_sum", .attr = "0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6"}, "--attr axes: got"},
        {{.op = "conv2d", .attr = "strides=1,2"}, "strides must have 4 entries (got 2)"},
        {{.op = "conv2d", .attr = "padding=SOME"}, "padding is unknown (got \"SOME\""},
        {{.op = "conv2d", .attr = "data_format=NCWH"}, "--attr data_format: got \"NCWH\""},
        {{.op = "reduce_sum", .attr = "0,1,2,3,4,5,6,7"}, "expected fewer numbers"},
        {{.op = "reduce_sum", .attr = "0,1,2,3,4"}, "reduce_sum"},
        {{.op = "transpose", .attr = "0,0,1,2"}, "transpose"},
        {{.op = "reshape", .attr = "7"}, "reshape"},
        {{.op = "cast", .attr = "77"}, "--attr dtype: got \"77\", expected f32"},
        {{.op = "gelu", .attr = "2"}, "gelu: form is wrong (got 2, expected 0, erf, or 1, tanh)"},
        {{.op = "resize", .attr = "4,width=4,coordinates=-1"},
         "resize: coordinates is wrong (got -1, expected 0, half_pixel, or 1, align_corners, or 2, "
         "asymmetric)"},
        {{.op = "matmul", .attr = "transpose_a=0,transpose_b=2"},
         "matmul: transpose_b is wrong (got 2, expected 0, no"},
        {{.op = "group_norm", .attr = "epsilon=-1"},
         "group_norm: epsilon is out of range (got -1, expected >= 0)"},
        {{.op = "dropout", .attr = "rate=1"},
         "dropout: rate is out of range (got 1, expected 0 <= rate < 1)"},
        {{.op = "adam_step", .attr = "beta1=0.5,beta2=1"},
         "adam_step: beta2 is out of range (got 1"},
        {{.op = "pad", .attr = "before=-1"}, "--attr before: got \"-1\", expected a number for"},
        {{.op = "pad", .attr = "before=0,0,0,-1"}, "pad"},
        {{.op = "matmul", .in = "scalar", .filter = "scalar"}, "matmul"},
        {{.op = "resize", .in = "3,4"}, "resize: x has a wrong rank (got [3, 4]"},
        {{.op = "resize_grad", .in = "3,0,4,1"}, "resize"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        adj_error error = {0};
        scoped(release_graph) adj_graph *g = adj_graph_new();
        cr_expect_null(op_args_build(&wrong[i].args, g, &error), "case %zu", i);
        cr_expect_not_null(strstr(error.message, wrong[i].says), "case %zu: %s", i, error.message);
    }
}
