/* test_compare_infer.c - adjoint compare --infer: the graph that predict runs, with batch norms
 * folded into filters where allowed. */
#include <criterion/criterion.h>

#include "tests/cli/child.h"

static finished f;

/* Makes default plans even if ADJOINT_PLAN is set, since folded nodes are inspected. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_infer, .init = plan_as_usual);

static void run_mobilenet(const char *infer, const char *configs)
{
    const char *arguments[ARGUMENTS] = {
        "compare", "--model", "mobilenet_v1", "--size", "32",        "--batch", "1",
        "--runs",  "1",       "--also-batch", "0",      "--threads", "1",       "--configs"};
    arguments[14] = configs;
    arguments[15] = infer;
    run_tool(arguments, &f);
}

/* No gradients and no updates, the probabilities last; batch norms are there alone, and folded:
 * what is left of them is behind convolutions, and a filter's factor. */
Test(compare_infer, is_what_predict_runs)
{
    static const char *const there[] = {"mobilenet_v1, inference, batch 1",
                                        "  softmax ",
                                        "  batch_norm ",
                                        "  add+sqrt+div ",
                                        "  mul+sub ",
                                        ", 0 failed"},
                             *const absent[] = {"_grad", "backprop", "momentum", "cross_entropy",
                                                "  batch_norm+"};
    run_mobilenet("--infer", "naive:f64,direct");
    cr_assert_eq(f.status, 0, "%s%s", f.out, f.err);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        cr_expect_not_null(strstr(f.out, there[i]), "no \"%s\": %s", there[i], f.out);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        cr_expect_null(strstr(f.out, absent[i]), "\"%s\": %s", absent[i], f.out);
}

Test(compare_infer, goes_with_a_model)
{
    tool(&f, 3, "compare --op relu --infer");
    expect_text(f.err, "--infer requires --model");
}

Test(compare_infer, optimizer_of_a_training_step)
{
    tool(&f, 3, "compare --model lenet --optimizer adam --infer");
    expect_text(f.err, "--optimizer requires --model without --infer");
    tool(
        &f, 0,
        "compare --model lenet --optimizer adam --configs naive:f64,naive --also-batch 0 --runs 1");
    expect_text(f.out, "\n  adam_step  ");
}
