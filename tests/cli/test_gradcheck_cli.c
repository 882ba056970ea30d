/* test_gradcheck_cli.c - adjoint gradcheck: exit statuses, sentences, reports, and a line that
 * repeats a failure. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/child.h"
#include "exec/report.h"
#include "graph/op.h"
#include "tests/plan.h"

static const call calls[] = {
    {0, "2 pass, 0 fail", NULL, "--op conv2d --in 1,5,5,2 --filter 3,3,2,2 --neighbors 0"},
    {0, "PASS (bit-exact)", NULL,
     "--op depthwise_conv2d_native --in 1,8,9,9 --filter 3,3,8,2 --attr "
     "dilations=1,1,2,2,padding=SAME,data_format=NCHW"},
    {0, "richardson", NULL, "--op tanh --method richardson --backend=naive"},
    {0, "second order", NULL, "--op sigmoid --order 2 --dtype f64"},
    {0, "SKIPPED (integer input)", NULL, "--op sparse_softmax_cross_entropy"},
    {0, " fail", NULL, "--model lenet --node 5"},
    {0, " %5 ", NULL, "--model lenet --node %5"},
    {0, " logits ", NULL, "--model lenet --node logits"},
    {3, NULL, "(got nothing, expected 0 to ", "--model lenet --node nothing"},
    {3, NULL, "(got %5x, expected 0 to ", "--model lenet --node %5x"},
    {1, "FAIL", NULL, "--op tanh --rtol 1e-14"},
    {2, "0 checked, 0 pass, 0 fail, 0 inconclusive", NULL, "--op equal --neighbors 0"},
    {0, "--attr LIST", NULL, "--help"},
    {3, NULL, "--attr: relu has no attribute 1",
     "--op relu --attr 1,22222222222222222222222222222222222222222222222222"},
    {3, NULL, "expected one of --model NAME and --op NAME", ""},
    {3, NULL, "one of --model NAME and --op NAME", "--op relu --model lenet"},
    {3, NULL, "separable_conv2d is composed of depthwise_conv2d_native, conv2d",
     "--op separable_conv2d"},
    {3, NULL, "unknown op conv2f (did you mean conv2d?)", "--op conv2f"},
    {3, NULL, "unknown op ", "--op ''"},
    {3, NULL, "unknown model lennet (did you mean lenet?)", "--model lennet"},
    {3, NULL, "unknown option --od (did you mean --op?)", "--od relu"},
    {3, NULL,
     "--method: got \"ato\", expected auto, adjoint, directional, elementwise or "
     "richardson",
     "--op relu --method ato"},
    {3, NULL, "(got \"onednm\", expected one of onednn, direct, naive)",
     "--op relu --backend onednm"},
    {3, NULL, "(got \"maiv\", expected one of onednn, direct, naive)",
     "--op relu --backend onednn,relu=maiv"},
    {3, NULL, "unknown op \"rely\" (did you mean relu?)", "--op relu --backend rely=naive"},
    {3, NULL, "unknown backend (got \"\"", "--op relu --backend ''"},
    {0, "backend=onednn,relu=naive", NULL, "--op relu --backend onednn,relu=naive"},
    {3, NULL, "did you mean --neighbors?", "--op relu --neihgbours 1"},
    {0, "9 pass", NULL, "--op relu"},
    {0, "3 pass", NULL, "--op relu --neighbors 2"},
    {0, " 0 inconclusive", NULL, "--op reduce_max --dtype bf16"},
    {0, "seed 4294967297 first 9007199254740992", NULL,
     "--op dropout --attr seed=4294967297,first=9007199254740992"},
    {0, "clip min=-inf max=inf", NULL, "--op clip --attr min=-inf,max=inf"},
    {0, "clip min=-0.5 max=-inf", NULL, "--op clip --neighbors 0"},
    {2, "has a name that contains \"xyz\"", NULL, "--op relu --impl xyz"},
    {0, "axes=1,2 keep_dims", NULL, "--op reduce_sum --neighbors 0"},
    {0, "bit-identical: yes", NULL, "--op exp --backend naive --threads 3"},
    {0, "reference=naive float64  threads=2", NULL, "--op neg --threads 2"},
    {0, " dy/upstream ", NULL, "--op relu_grad --order 2"},
    {0, "3 pass", NULL, "--op reduce_max --order 2 --attr 1,2 --neighbors 0"},
    {3, NULL, "--dtype: got \"f33\"", "--op relu --dtype f33"},
    {3, NULL, "--filter: relu has no second operand", "--op relu --filter 3,3"},
    {3, NULL, "--in: not a shape", "--op relu --in 1,x"},
    {3, NULL, "--in: not a shape", "--op relu --in 1,-4"},
    {3, NULL, "--in: not a shape", "--op relu --in 9000000000,9000000000"},
    {3, NULL, "input must be 4-D", "--op conv2d --in 1,8,8"},
    {3, NULL, "a model has no attribute groups", "--model lenet --attr groups=2"},
    {3, NULL, "padding is unknown", "--op conv2d --attr padding=SOME"},
    {3, NULL, "--node: not a node of lenet (got", "--model lenet --node 5000"},
    {3, NULL, "--node requires --model NAME", "--op relu --node 1"},
    {3, NULL, "--batch requires --model NAME", "--op relu --batch 2"},
    {3, NULL, "--neighbors requires --op NAME", "--model lenet --neighbors 0"},
    {1, NULL, "--json: /nowhere/x: No such file", "--op neg --json /nowhere/x"},
};

Test(gradcheck_cli, statuses_and_sentences)
{
    expect_calls("gradcheck", sizeof calls / sizeof *calls, calls);
}

/* The next failure's worst element and the line that repeats it; where to go on, or NULL. */
static const char *next_failure(const char *out, char worst[256], char repro[512])
{
    const char *w = strstr(out, "worst: "), *r = w != NULL ? strstr(w, "repro: ") : NULL;
    if (r == NULL)
        return NULL;
    snprintf(worst, 256, "%.*s", (int)strcspn(w, "\n"), w);
    snprintf(repro, 512, "%.*s", (int)strcspn(r + 7, "\n"), r + 7);
    return r;
}

static const struct {
    const char *line;
    int failures;      /* at least */
    const char *words; /* in every line */
} failing[] = {
    {"gradcheck --op silu --in 2,3 --dtype f32 --rtol 1e-14 --seed 9 --neighbors 0", 1,
     "--op silu --in 2,3 --dtype f32"},
    {"gradcheck --model lenet5 --rtol 1e-11 --seed 3 --batch 1 --threads 2", 5,
     "--threads 2 --rtol 1e-11 --seed 3"},
    {"gradcheck --model lenet --node 8 --atol 1e-14 --batch 1 --method directional --draws 1 "
     "--attr "
     "data_format=NCHW",
     1,
     "--op conv2d --in 1,32,14,14 --filter 5,5,32,64 --attr data_format=NCHW --neighbors 0 "
     "--method"},
    {"gradcheck --model mobilenet_v1 --node 13 --atol 1e-14 --backend naive --method richardson "
     "--impl f32 "
     "--draws 2",
     1, "--op depthwise_conv2d_native"},
    {"gradcheck --model lenet5 --order 2 --rtol 1e-12 --seed 5 --batch 1 --draws 1",
     9, /* of both orders */
     "--order 2 --draws 1 --rtol 1e-12 --seed 5"},
};

Test(gradcheck_cli, every_line_repeats_its_failure, .init = plan_as_usual)
{
    static finished first;
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        char worst[256], repro[512], worst_again[256], repro_again[512];
        int n = 0;
        tool(1, "%s", failing[i].line);
        first = ran;
        for (const char *at = first.out; (at = next_failure(at, worst, repro)) != NULL; n++) {
            cr_expect_not_null(strstr(repro, failing[i].words), "%s: %s", failing[i].line, repro);
            cr_expect_null(strstr(repro, "--model"), "%s: %s", failing[i].line, repro);
            cr_assert_eq(strncmp(repro, "adjoint ", 8), 0, "%s", repro);
            tool(1, "%s", repro + 8);
            int found = 0; /* of the operands that fail there as well */
            for (const char *b = ran.out;
                 (b = next_failure(b, worst_again, repro_again)) != NULL;) {
                found |= strcmp(worst, worst_again) == 0;
                cr_expect_str_eq(repro, repro_again);
            }
            cr_expect(found, "%s\n%s\n%s", repro, worst, ran.out);
        }
        cr_expect_geq(n, failing[i].failures, "%s: %s", failing[i].line, first.out);
        expect_text(first.out, "blame: ");
    }
}

Test(gradcheck_cli, a_leaf) { prints(2, "SKIPPED (a leaf)", "gradcheck --model lenet --node 0"); }

/* Ops with nothing to check, which is inconclusive: integers, leaves, no gradient by definition. */
static int has_nothing(const adj_op *op)
{
    static const char *const names[] = {
        "input",         "param",       "state",         "const",      "fill",  "equal",
        "greater_equal", "label_count", "stop_gradient", "all_finite", "argmax"};
    static const char *const steps[] = {"sgd_step", "momentum", "ema", "adam_step", "next_step"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (strcmp(steps[i], op->name) == 0)
            return 0; /* they have a formula */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], op->name) == 0)
            return 1;
    return op->grad == NULL; /* no rule to check */
}

/* Every op in f32 and in one of the other types. */
Test(gradcheck_cli, every_op_of_the_registry)
{
    static const char *const dtypes[] = {"bf16", "f64", "f16"};
    int checked = 0;
    for (int i = 0; adj_ops[i] != NULL; i++)
        for (int k = 0; k < 2; k++) {
            const char *name = adj_ops[i]->name, *dtype = k == 0 ? "f32" : dtypes[i % 3];
            if (adj_ops[i]->flags & ADJ_OP_INTERNAL)
                continue;
            tool(ANY_STATUS, "gradcheck --op %s --dtype %s --draws 1 --neighbors %s", name, dtype,
                 k == 0 ? "2" : "0");
            cr_expect_eq(ran.status, has_nothing(adj_ops[i]) ? 2 : 0, "%s %s: %d, %s%s", name,
                         dtype, ran.status, ran.out, ran.err);
            checked += ran.status == 0;
        }
    cr_expect_gt(checked, 100, "%d", checked);
}

Test(gradcheck_cli, every_method_and_second_order)
{
    static const char *const ops[] = {"conv2d", "matmul", "sigmoid", "max_pool", "batch_norm"};
    static const char *const methods[] = {"auto", "adjoint", "directional", "elementwise",
                                          "richardson"};
    static const char *const shown[] = {"", "", "directional", "element-wise", "richardson"};
    for (int i = 0; i < 5; i++)
        for (int m = 0; m < 5; m++) {
            tool(ANY_STATUS, "gradcheck --op %s --in %s --order 2 --method %s --neighbors 0",
                 ops[i], i == 1 ? "3,4" : "1,4,4,2", methods[m]);
            cr_expect_eq(ran.status, 0, "%s %s: %s%s", ops[i], methods[m], ran.out, ran.err);
            expect_text(ran.out, " second order: (x, dy) -> dx\n");
            cr_expect_not_null(strstr(ran.out, shown[m]), "%s %s: %s", ops[i], methods[m], ran.out);
        }
}

Test(gradcheck_cli, reports_for_programs)
{
    tool(0, "gradcheck --op bias_add --in 2,8,8,3 --neighbors 0 --json -");
    json_t *report = json_of(ran.out);
    cr_expect_str_eq(word_in(report, "result"), "PASS");
    cr_expect(truth_in(report, "repeatable"));
    cr_expect_geq(number_in(report, "threads"), 1);
    cr_expect_str_eq(word_in(report, "reference"), "naive float64");
    char known[128], both[256];
    adj_backend_describe("onednn", known, sizeof known);
    snprintf(both, sizeof both, "%s %s", word_in(report, "version"), word_in(report, "isa"));
    cr_expect_str_eq(both, known);
    const json_t *rows = json_object_get(report, "rows");
    cr_expect_eq(json_array_size(rows), 2);
    cr_expect_str_eq(word_in(json_array_get(rows, 1), "wrt"), "bias");

    prints(1,
           "<testsuite name=\"adjoint gradcheck tanh\" tests=\"1\" "
           "failures=\"1\"",
           "gradcheck --op tanh --rtol 1e-14 --neighbors 0 --junit -");
    expect_text(ran.out, "<failure message=\"naive float64 backward agrees");
    expect_text(ran.out, "-&gt;");
}

/* The rows include the steps of the requested optimizer. */
Test(gradcheck_cli, steps_of_an_optimizer)
{
    prints(0, "adam_step", "gradcheck --model lenet --optimizer adam --draws 1");
    tool(3, "gradcheck --op relu --optimizer adam");
    tool(3, "gradcheck --model lenet --optimizer adan");
}
