/* test_gradcheck_cli.c - adjoint gradcheck: exit statuses, sentences, reports, and a line that
 * repeats a failure. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>

#include "cli/rows.h"
#include "exec/report.h"
#include "graph/op.h"
#include "tests/plan.h"

Test(gradcheck_cli, statuses_and_sentences) { expect_rows("statuses and sentences"); }

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
     9, /* failures of both orders */
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
            int found = 0; /* 1: the operand fails there as well */
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
}
