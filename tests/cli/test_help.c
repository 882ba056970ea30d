/* test_help.c - help, lists, versions, manual pages, completion. */
#include <criterion/criterion.h>

#include "cli/rows.h"

static const char *const names[] = {"train", "eval",      "predict", "models", "summary",
                                    "graph", "gradcheck", "compare", "bench",  "ops",
                                    "op",    "inspect",   "convert", "emit",   "version"};
enum { N_NAME = sizeof names / sizeof names[0] };

static void expect_narrow(const char *name)
{
    for (const char *line = ran.out; *line != '\0';) {
        size_t n = strcspn(line, "\n");
        cr_expect_leq(n, 80, "%s: %.*s", name, (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* Nothing is left out. */
Test(help, names)
{
    char list[1024] = "";
    for (int i = 0; i < N_NAME; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s\n", names[i]);
    tool(ANY_STATUS, "--document commands");
    cr_expect_str_eq(ran.out, list);
}

Test(help, every_command)
{
    for (int i = 0; i < N_NAME; i++) {
        char usage[64];
        static char of_option[PRINTED];
        snprintf(usage, sizeof usage, "usage: adjoint %s", names[i]);
        tool(0, "%s --help", names[i]);
        cr_expect_eq(strncmp(ran.out, usage, strlen(usage)), 0, "%s", ran.out);
        expect_text(ran.out, "\nExit status:\n  0 ");
        expect_text(ran.out, "\n  3     ");
        expect_text(ran.out, "\nExamples:\n  ");
        expect_narrow(names[i]);
        memcpy(of_option, ran.out, sizeof of_option);
        tool(ANY_STATUS, "help %s", names[i]);
        cr_expect_str_eq(ran.out, of_option);
    }
    tool(ANY_STATUS, "help");
    expect_narrow("help");
    for (int i = 0; i < N_NAME; i++)
        cr_expect_not_null(strstr(ran.out, names[i]), "%s", names[i]);
}

Test(help, examples_statuses_variables) { expect_rows("examples statuses variables"); }

/* ---- lists ---- */

Test(help, models_as_json)
{
    tool(ANY_STATUS, "models --json");
    json_t *j = json_of(ran.out), *m = named(j, "lenet5");
    cr_expect_eq(number_in(m, "parameters"), 61706);
    cr_expect_eq(number_in(m, "height"), 32);
    cr_expect_eq(number_in(m, "channels"), 1);
}

Test(help, ops)
{
    tool(ANY_STATUS, "ops conv2d");
    cr_expect_str_eq(ran.out, "conv2d(input, filter) f32 f64 f16 bf16\n"
                              "    --attr strides: four whole numbers\n"
                              "    --attr dilations: four whole numbers\n"
                              "    --attr padding: SAME, VALID or EXPLICIT\n"
                              "    --attr explicit_paddings: eight whole numbers\n"
                              "    --attr data_format: NHWC or NCHW\n");
    tool(ANY_STATUS, "ops --json=-");
    json_t *j = json_of(ran.out), *transposed = named(j, "conv2d_transpose");
    cr_expect_eq(json_array_size(json_object_get(transposed, "operands")), 3);
    cr_expect_eq(json_array_size(json_object_get(transposed, "made_of")), 1);
    json_t *matmul = named(j, "matmul"), *concat = named(j, "concat");
    json_t *operands = json_object_get(matmul, "operands");
    cr_expect_eq(json_array_size(operands), 2);
    cr_expect_str_eq(json_string_value(json_array_get(operands, 1)), "b");
    json_t *first = json_array_get(json_object_get(matmul, "attributes"), 0);
    cr_expect_str_eq(word_in(first, "name"), "transpose_a");
    cr_expect_eq(json_array_size(json_object_get(matmul, "dtypes")), 4);
    cr_expect(truth_in(concat, "any_number_of_operands"));
    cr_expect_str_eq(word_in(named(j, "max_pool_grad"), "gradient_of"), "max_pool");
    tool(ANY_STATUS, "ops");
    cr_expect_null(strstr(ran.out, "\nparam("), "a leaf is no op to run");
    expect_text(ran.out, "\nbuilders that are made of other ops (adj_NAME in C):\n"
                         "abs(x): relu, neg, add\n"
                         "conv2d_transpose(x, w, output_shape): conv2d_backprop_input\n"
                         "global_avg_pool(x): reduce_mean\n"
                         "layer_norm(x, gamma, beta): reshape, group_norm\n"
                         "reduce_min(x): neg, reduce_max\n"
                         "separable_conv2d(x, depthwise, pointwise): "
                         "depthwise_conv2d_native, conv2d\n");
    tool(0, "ops conv2d_transpose");
    cr_expect_str_eq(ran.out, "conv2d_transpose(x, w, output_shape): conv2d_backprop_input\n");
    complains(3, "unknown op rely (did you mean relu?)", "ops rely");
}

Test(help, version)
{
    setenv("ADJOINT_MAX_ISA", "base", 1);
    setenv("OMP_NUM_THREADS", "3", 1);
    prints(ANY_STATUS, "\nonednn:\n  version: ", "version");
    expect_text(ran.out, "\ndirect:\n  isa: base\n");
    expect_text(ran.out, "\nthreads: 3\n");
    tool(ANY_STATUS, "version --json");
    json_t *j = json_of(ran.out);
    cr_expect_str_eq(word_in(json_object_get(j, "direct"), "isa"), "base");
    cr_expect_eq(number_in(j, "threads"), 3);
    cr_expect(json_is_array(json_object_get(j, "caches")));
    cr_expect(json_is_array(json_object_get(j, "instruction_sets")));
}

/* A variable with an unknown value stops every command that reads it, before any work. */
Test(help, variables_with_unknown_values) { expect_rows("variables with unknown values"); }

/* The tool starts itself again with a short spin, but not where the environment says how threads
 * wait. */
Test(help, waiting_threads) { expect_rows("waiting threads"); }

/* ---- manual pages and completion ---- */

static int is_there(const char *program)
{
    if (shell("command -v %s", program) == 0)
        return 1;
    printf("[SKIP] help: there is no %s\n", program);
    return 0;
}

/* Expects a program of that name, if it is there, to have nothing to say of a page. */
static void expect_no_complaint(int is_there, const char *program, const char *page)
{
    if (is_there)
        cr_expect(shell("%s %s", program, page) == 0 && ran.out[0] == '\0' && ran.err[0] == '\0',
                  "%s %s: %s%s", program, page, ran.out, ran.err);
}

Test(help, manual_pages)
{
    scoped(folder_remove) const folder pages = folder_new();
    const int groff = is_there("groff"), mandoc = is_there("mandoc");
    cr_assert_eq(shell("docs/man.sh adjoint %s", pages.path), 0, "%s", ran.err);
    for (int i = -1; i < N_NAME; i++) {
        char page[128], title[64];
        const char *dash = i >= 0 ? "-" : "", *name = i >= 0 ? names[i] : "";
        snprintf(title, sizeof title, "\n.SH NAME\nadjoint%s%s \\- ", i >= 0 ? "\\-" : "", name);
        snprintf(page, sizeof page, "%s/adjoint%s%s.1", pages.path, dash, name);
        cr_expect_eq(shell("cat %s", page), 0);
        expect_text(ran.out, title);
        cr_expect_not_null(strstr(ran.out, "\n.SH EXIT STATUS\n"), "%s", name);
        expect_no_complaint(groff, "groff -man -ww -Tutf8 -z", page);
        expect_no_complaint(mandoc, "mandoc -Tlint", page);
    }
}

/* Expects the completions of bash for the words, the last of which is incomplete. */
static void expect_offered(const char *words, const char *offered)
{
    cr_expect_eq(shell("bash -c 'eval \"$(adjoint --document bash)\"; COMP_WORDS=(adjoint %s); "
                       "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _adjoint; "
                       "echo \"${COMPREPLY[*]}\"'",
                       words),
                 0, "%s", ran.out);
    cr_expect_str_eq(ran.out, offered, "%s: %s", words, ran.out);
}

Test(help, bash_completion)
{
    if (!is_there("bash"))
        return;
    expect_offered("tr", "train\n");
    expect_offered("help conv", "convert\n");
    expect_offered("train --mod", "--model\n");
    expect_offered("train --model \"\"",
                   "lenet lenet5 resnet8 resnet20 mobilenet_v1 vgg6 ds_cnn\n");
    expect_offered("train --epochs 3 --model ren", "\n");
    expect_offered("train --model = resnet2", "resnet20\n");
    expect_offered("train --model =", "lenet lenet5 resnet8 resnet20 mobilenet_v1 vgg6 ds_cnn\n");
    expect_offered("bench --op conv2d_backprop_i", "conv2d_backprop_input\n");
    expect_offered("op depthwise_conv2d_native_backprop_f",
                   "depthwise_conv2d_native_backprop_filter\n");
    expect_offered("train --precision b", "bf16\n");
    expect_offered("train --optimizer adamw", "adamw\n");
    expect_offered("eval --weights READ", "README.md\n");
}

/* The zsh script is valid and has a branch for each command. */
Test(help, zsh_completion)
{
    if (!is_there("zsh"))
        return;
    enter_empty();
    cr_expect_eq(shell("adjoint --document zsh >script && zsh -n script"), 0);
    cr_expect(ran.out[0] == '\0' && ran.err[0] == '\0', "%s%s", ran.out, ran.err);
    tool(ANY_STATUS, "--document zsh");
    for (int i = 0; i < N_NAME; i++) {
        char branch[64];
        snprintf(branch, sizeof branch, "\n    %s)\n", names[i]);
        cr_expect_not_null(strstr(ran.out, branch), "%s", names[i]);
    }
    leave();
}
