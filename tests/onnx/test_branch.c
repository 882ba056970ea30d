/* test_branch.c - what is known while a file is loaded: of an If the branch that its condition
 * says, sequences of tensors, the broadcasting of opset 6; values by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_onnx.h"
#include "loaded.h"
#include "model_maker.h"
#include "temporary.h"
#include "tests/plan.h"

TestSuite(onnx_branch, .init = open_folder, .fini = close_folder);

/* A branch: y of x by an operator, plus a number of its own. */
typedef struct {
    Onnx__GraphProto graph, *graphs[1];
    Onnx__NodeProto node[2], *nodes[2];
    Onnx__TensorProto tensor, *tensors[1];
    Onnx__ValueInfoProto output, *outputs[1];
    char *in[3], *out[2], name[3][16];
    float value;
} branch;

static maker m;
static branch yes, no;

static void branch_start(branch *b, const char *op, const char *prefix, float value)
{
    for (int i = 0; i < 3; i++)
        snprintf(b->name[i], sizeof b->name[i], "%s%d", prefix, i);
    onnx__graph_proto__init(&b->graph);
    onnx__tensor_proto__init(&b->tensor);
    onnx__value_info_proto__init(&b->output);
    b->value = value;
    b->tensor.name = b->name[0];
    b->tensor.has_data_type = 1;
    b->tensor.data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    b->tensor.float_data = &b->value;
    b->tensor.n_float_data = 1;
    b->in[0] = (char *)"x";
    b->in[1] = b->out[0] = b->name[1];
    b->in[2] = b->name[0];
    b->out[1] = b->output.name = b->name[2];
    for (int i = 0; i < 2; i++) {
        onnx__node_proto__init(&b->node[i]);
        b->node[i].op_type = (char *)(i == 0 ? op : "Add");
        b->node[i].input = &b->in[i];
        b->node[i].n_input = (size_t)i + 1;
        b->node[i].output = &b->out[i];
        b->node[i].n_output = 1;
        b->nodes[i] = &b->node[i];
    }
    b->tensors[0] = &b->tensor;
    b->outputs[0] = &b->output;
    b->graph.node = b->nodes;
    b->graph.n_node = 2;
    b->graph.initializer = b->tensors;
    b->graph.n_initializer = 1;
    b->graph.output = b->outputs;
    b->graph.n_output = 1;
}

static void add_branch(const char *name, branch *b)
{
    Onnx__AttributeProto *a = maker_int(&m, name, 0);
    a->has_i = 0;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    a->g = &b->graph;
}

/* y = relu(x) + 10 if the condition is not 0, else -x + 20. */
static void model(const char *condition, int64_t value)
{
    static int64_t n, kept;
    kept = value;
    maker_x_to_y(&m, 17, 1, (int64_t[]){2});
    maker_ints(&m, "is_yes", 1, &n, &kept);
    maker_node(&m, "If", condition, "y");
    branch_start(&yes, "Relu", "yes", 10);
    branch_start(&no, "Neg", "no", 20);
    add_branch("then_branch", &yes);
    add_branch("else_branch", &no);
}

static void expect(const float want[2])
{
    const float x[2] = {3, -5};
    float y[2];
    maker_write(&m, path);
    cr_assert_eq(adj_onnx_load(g, path, NULL, &net, &error), ADJ_OK, "%s", error.message);
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = net->output});
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_assert_eq(adj_get(e, net->output[0], y, sizeof y), ADJ_OK);
    cr_expect(y[0] == want[0] && y[1] == want[1], "%g %g", (double)y[0], (double)y[1]);
}

Test(onnx_branch, then_branch)
{
    model("is_yes", 1);
    expect((float[]){13, 10});
}

Test(onnx_branch, else_branch)
{
    model("is_yes", 0);
    expect((float[]){17, 25});
}

/* The other branch may hold anything. */
Test(onnx_branch, operator_of_the_other_branch)
{
    model("is_yes", 1);
    no.node[0].op_type = (char *)"Unheard";
    expect((float[]){13, 10});
}

static void refused(const char *part) { expect_refused(&m, part); }

Test(onnx_branch, condition_of_a_run)
{
    model("x", 1);
    refused("\"y\" (If, opset 17): operand 0 must be known when the file is read");
}

Test(onnx_branch, operator_of_the_branch)
{
    model("is_yes", 0);
    no.node[0].op_type = (char *)"Unheard";
    refused(
        "(Unheard, opset 17): the operator is not supported; \"y\" (If, opset 17): a node of its "
        "branch is not supported");
}

Test(onnx_branch, no_branch)
{
    model("is_yes", 0);
    m.attribute[1].g = NULL;
    refused("its branch is missing, or has another number of results");
}

Test(onnx_branch, result_that_no_node_computes)
{
    model("is_yes", 1);
    yes.output.name = (char *)"nowhere";
    refused("no node computes a result of its branch");
}

/* A value of the branch may not have a name that is in use. */
Test(onnx_branch, names)
{
    model("is_yes", 1);
    snprintf(yes.name[1], sizeof yes.name[1], "x");
    refused("two values have the name \"x\"");
}

static const int64_t matrix[] = {2, 3};

TestSuite(onnx_sequence, .init = open_folder, .fini = close_folder);

static void start_matrix(int64_t opset) { maker_x_to_y(&m, opset, 2, matrix); }

/* Loads the model and asserts its result for x = [[1, 2, 3], [4, 5, 6]]. */
static void expect_of_matrix(int n, const float want[])
{
    const float x[] = {1, 2, 3, 4, 5, 6};
    float y[6];
    scoped(release_exec) adj_exec *e = NULL;
    maker_write(&m, path);
    cr_assert(adj_onnx_load(g, path, NULL, &net, &error) == ADJ_OK, "%s", error.message);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = net->output};
    cr_assert(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK &&
                  adj_get(e, net->output[0], y, (size_t)n * sizeof *y) == ADJ_OK,
              "%s", adj_exec_message(e));
    for (int i = 0; i < n; i++)
        cr_assert_eq(y[i], want[i], "%d: %g, expected %g", i, (double)y[i], (double)want[i]);
}

/* The columns of x as three vectors. */
static void split_columns(void)
{
    start_matrix(17);
    maker_node(&m, "SplitToSequence", "x", "columns");
    maker_int(&m, "axis", 1);
    maker_int(&m, "keepdims", 0);
}

/* The last column first: insert takes a place from the end, erase one from the start. */
Test(onnx_sequence, columns_in_another_order)
{
    int64_t one, at[] = {1}, end[] = {-1};
    split_columns();
    maker_ints(&m, "at", 1, &one, at);
    maker_ints(&m, "end", 1, &one, end);
    maker_node(&m, "SequenceAt", "columns at", "second");
    maker_node(&m, "SequenceErase", "columns at", "two");
    maker_node(&m, "SequenceInsert", "two second end", "all");
    maker_node(&m, "ConcatFromSequence", "all", "y");
    maker_int(&m, "axis", 1);
    maker_int(&m, "new_axis", 1);
    expect_of_matrix(6, (float[]){1, 2, 3, 4, 5, 6});
}

Test(onnx_sequence, rows_one_below_the_other)
{
    start_matrix(17);
    maker_node(&m, "Neg", "x", "z");
    maker_node(&m, "SequenceConstruct", "x z", "both");
    maker_node(&m, "SequenceErase", "both", "first");
    maker_node(&m, "ConcatFromSequence", "first", "y");
    maker_int(&m, "axis", 0);
    expect_of_matrix(6, (float[]){1, 2, 3, 4, 5, 6});
}

Test(onnx_sequence, place_out_of_range)
{
    int64_t one, at[] = {3};
    split_columns();
    maker_ints(&m, "at", 1, &one, at);
    maker_node(&m, "SequenceAt", "columns at", "y");
    refused("position 3 is out of range (expected below 3)");
}

Test(onnx_sequence, no_sequence)
{
    start_matrix(17);
    maker_node(&m, "SequenceLength", "x", "y");
    refused("its operand is not a sequence");
}

/* Up to opset 6 an axis says where the second operand's axes begin. */
Test(onnx_sequence, broadcast_along_an_axis)
{
    int64_t two[] = {2};
    float b[] = {10, 20};
    start_matrix(6);
    maker_floats(&m, "b", 1, two, b);
    maker_node(&m, "Add", "x b", "y");
    maker_int(&m, "broadcast", 1);
    maker_int(&m, "axis", 0);
    expect_of_matrix(6, (float[]){11, 12, 13, 24, 25, 26});
}

Test(onnx_sequence, broadcast_beyond_the_axes)
{
    int64_t sizes[] = {2, 3};
    float b[6] = {0};
    start_matrix(6);
    maker_floats(&m, "b", 2, sizes, b);
    maker_node(&m, "Add", "x b", "y");
    maker_int(&m, "broadcast", 1);
    maker_int(&m, "axis", 1);
    refused("its second operand exceeds the first's axes");
}

/* -1, 0 and 1; and 0 for values up to 1/2. */
Test(onnx_sequence, sign_and_shrink)
{
    int64_t two[] = {2, 3};
    float b[] = {3, 1.75F, 1, 4, 10, 12};
    start_matrix(17);
    maker_floats(&m, "b", 2, two, b);
    maker_node(&m, "Sub", "x b", "d"); /* -2 1/4 2 0 -5 -6 */
    maker_node(&m, "Sign", "d", "s");
    maker_node(&m, "Shrink", "d", "t");
    maker_node(&m, "Add", "s t", "y");
    expect_of_matrix(6, (float[]){-3, 1, 3, 0, -6, -7});
}
