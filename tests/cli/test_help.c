/* test_help.c - help, lists, versions, manual pages, completion. */
#include <criterion/criterion.h>

#include "cli/child.h"

static finished f;

static const char *const names[] = {"train", "eval",      "predict", "models", "summary",
                                    "graph", "gradcheck", "compare", "bench",  "ops",
                                    "op",    "inspect",   "convert", "emit",   "version"};
enum { N_NAME = sizeof names / sizeof names[0] };

static void expect_narrow(const char *name)
{
    for (const char *line = f.out; *line != '\0';) {
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
    tool(&f, ANY_STATUS, "--document commands");
    cr_expect_str_eq(f.out, list);
}

Test(help, every_command)
{
    for (int i = 0; i < N_NAME; i++) {
        char usage[64];
        static char of_option[PRINTED];
        snprintf(usage, sizeof usage, "usage: adjoint %s", names[i]);
        tool(&f, 0, "%s --help", names[i]);
        cr_expect_eq(strncmp(f.out, usage, strlen(usage)), 0, "%s", f.out);
        expect_text(f.out, "\nExit status:\n  0 ");
        expect_text(f.out, "\n  3     ");
        expect_text(f.out, "\nExamples:\n  ");
        expect_narrow(names[i]);
        memcpy(of_option, f.out, sizeof of_option);
        tool(&f, ANY_STATUS, "help %s", names[i]);
        cr_expect_str_eq(f.out, of_option);
    }
    tool(&f, ANY_STATUS, "help");
    expect_narrow("help");
    for (int i = 0; i < N_NAME; i++)
        cr_expect_not_null(strstr(f.out, names[i]), "%s", names[i]);
    expect_text(f.out, "ADJOINT_QUARANTINE");
}

Test(help, examples_statuses_variables)
{
    prints(&f, ANY_STATUS, "\n  2    ", "help gradcheck");
    expect_text(f.out, "\nExamples:\n  adjoint gradcheck");
    expect_text(f.out, "\n  OMP_NUM_THREADS ");
    prints(&f, ANY_STATUS, "\n  129, 130, 143 ", "help train");
}

/* ---- lists ---- */

Test(help, models_as_json)
{
    tool(&f, ANY_STATUS, "models --json");
    json_t *j = json_of(f.out), *m = named(j, "lenet5");
    cr_expect_eq(json_integer_value(json_object_get(m, "parameters")), 61706);
    cr_expect_eq(json_integer_value(json_object_get(m, "height")), 32);
    cr_expect_eq(json_integer_value(json_object_get(m, "channels")), 1);
    json_decref(j);
}

Test(help, ops)
{
    tool(&f, ANY_STATUS, "ops conv2d");
    cr_expect_str_eq(f.out, "conv2d(input, filter) f32 f64 f16 bf16\n"
                            "    --attr strides: four whole numbers\n"
                            "    --attr dilations: four whole numbers\n"
                            "    --attr padding: SAME, VALID or EXPLICIT\n"
                            "    --attr explicit_paddings: eight whole numbers\n"
                            "    --attr data_format: NHWC or NCHW\n");
    tool(&f, ANY_STATUS, "ops --json=-");
    json_t *j = json_of(f.out), *transposed = named(j, "conv2d_transpose");
    cr_expect_eq(json_array_size(json_object_get(transposed, "operands")), 3);
    cr_expect_eq(json_array_size(json_object_get(transposed, "made_of")), 1);
    json_t *matmul = named(j, "matmul"), *concat = named(j, "concat");
    json_t *operands = json_object_get(matmul, "operands");
    cr_expect_eq(json_array_size(operands), 2);
    cr_expect_str_eq(json_string_value(json_array_get(operands, 1)), "b");
    json_t *first = json_array_get(json_object_get(matmul, "attributes"), 0);
    cr_expect_str_eq(json_string_value(json_object_get(first, "name")), "transpose_a");
    cr_expect_eq(json_array_size(json_object_get(matmul, "dtypes")), 4);
    cr_expect(json_is_true(json_object_get(concat, "any_number_of_operands")));
    json_t *grad = named(j, "max_pool_grad");
    cr_expect_str_eq(json_string_value(json_object_get(grad, "gradient_of")), "max_pool");
    json_decref(j);
    tool(&f, ANY_STATUS, "ops");
    cr_expect_null(strstr(f.out, "\nparam("), "a leaf is no op to run");
    expect_text(f.out, "\nbuilders that are made of other ops (adj_NAME in C):\n"
                       "abs(x): relu, neg, add\n"
                       "conv2d_transpose(x, w, output_shape): conv2d_backprop_input\n"
                       "global_avg_pool(x): reduce_mean\n"
                       "layer_norm(x, gamma, beta): reshape, group_norm\n"
                       "reduce_min(x): neg, reduce_max\n"
                       "separable_conv2d(x, depthwise, pointwise): "
                       "depthwise_conv2d_native, conv2d\n");
    tool(&f, 0, "ops conv2d_transpose");
    cr_expect_str_eq(f.out, "conv2d_transpose(x, w, output_shape): conv2d_backprop_input\n");
    complains(&f, 3, "unknown op rely (did you mean relu?)", "ops rely");
}

Test(help, version)
{
    setenv("ADJOINT_MAX_ISA", "base", 1);
    setenv("OMP_NUM_THREADS", "3", 1);
    prints(&f, ANY_STATUS, "\nonednn:\n  version: ", "version");
    expect_text(f.out, "\ndirect:\n  isa: base\n");
    expect_text(f.out, "\nthreads: 3\n");
    tool(&f, ANY_STATUS, "version --json");
    json_t *j = json_of(f.out);
    json_t *direct = json_object_get(j, "direct");
    cr_expect_str_eq(json_string_value(json_object_get(direct, "isa")), "base");
    cr_expect_eq(json_integer_value(json_object_get(j, "threads")), 3);
    cr_expect(json_is_array(json_object_get(j, "caches")));
    json_decref(j);
}

/* A variable with an unknown value stops every command that reads it, before any work. */
Test(help, variables_with_unknown_values)
{
    static const char max_isa[] =
        "ADJOINT_MAX_ISA: got \"sse\", expected base, avx2, avx512, avx512_bf16 or amx\n";
    static const char plan[] = "ADJOINT_PLAN: got \"fused\", expected unfused or tune\n";
    static const struct {
        const char *name, *value, *command, *message; /* message: NULL if there is none */
    } rows[] = {
        {"ADJOINT_MAX_ISA", "sse", "version", max_isa},
        {"ADJOINT_MAX_ISA", "sse", "gradcheck", max_isa},
        {"ADJOINT_MAX_ISA", "sse", "train", max_isa},
        {"ADJOINT_MAX_ISA", "avx2", "version", NULL},
        {"ADJOINT_MAX_ISA", "", "version", NULL},
        {"ADJOINT_MAX_ISA", "sse", "ops", NULL}, /* does not count there */
        {"ADJOINT_PLAN", "fused", "compare", plan},
        {"ADJOINT_PLAN", "unfused,fused", "bench", plan},
        {"ADJOINT_PLAN", "fused", "eval", plan},
        {"ADJOINT_PLAN", "fused", "version", NULL},
        {"ADJOINT_QUARANTINE", "yes", "train", "ADJOINT_QUARANTINE: got \"yes\", expected off\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[200] = "";
        if (rows[i].message != NULL)
            snprintf(expected, sizeof expected, "adjoint %s: %s", rows[i].command, rows[i].message);
        setenv(rows[i].name, rows[i].value, 1);
        tool(&f, ANY_STATUS, "%s", rows[i].command);
        unsetenv(rows[i].name);
        cr_expect_eq(f.status, rows[i].message != NULL ? 3 : 0, "row %zu: %d", i, f.status);
        cr_expect_str_eq(f.err, expected, "row %zu", i);
    }
    setenv("ADJOINT_PLAN", "unfused,tune", 1);
    tool(&f, 0, "gradcheck --op relu --neighbors 0");
}

static int is_positive_or_null(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return json_is_null(v) || (json_is_number(v) && json_number_value(v) > 0);
}

/* Prints known and measured properties of the machine; tests/base/test_machine.c checks their
 * values. */
Test(help, version_of_the_machine)
{
    tool(&f, ANY_STATUS, "version --json");
    json_t *j = json_of(f.out);
    cr_expect_null(json_object_get(j, "machine"), "it was not asked for");
    json_decref(j);
    tool(&f, ANY_STATUS, "version --machine --json");
    j = json_of(f.out);
    const json_t *m = json_object_get(j, "machine"), *sets = json_object_get(m, "instruction_sets");
    const json_t *peaks = json_object_get(m, "multiply_add");
    const json_t *bandwidth = json_object_get(m, "bytes_per_s");
    cr_expect(json_is_array(sets) || json_is_null(sets));
    cr_expect(is_positive_or_null(m, "cores") && is_positive_or_null(m, "processors"));
    static const char *const types[] = {"f32", "bf16", "f16"}, *const levels[] = {"l2", "l3",
                                                                                  "memory"};
    for (int i = 0; i < 3; i++) {
        const json_t *p = json_object_get(peaks, types[i]);
        cr_expect(is_positive_or_null(p, "flops"), "%s", types[i]);
        cr_expect_eq(json_is_null(json_object_get(p, "by")),
                     json_is_null(json_object_get(p, "flops")));
        cr_expect(is_positive_or_null(bandwidth, levels[i]), "%s", levels[i]);
    }
    cr_expect(json_is_number(json_object_get(json_object_get(peaks, "f32"), "flops")));
    json_decref(j);
    tool(&f, 0, "version --machine");
    static const char *const lines[] = {"\n  instruction_sets: ", "\n    f32:\n      native: ",
                                        "\n    bf16:\n", "\n    l2: ", "\n    memory: "};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect_not_null(strstr(f.out, lines[i]), "%s of %s", lines[i], f.out);
}

static void expect_waiting(const char *line)
{
    tool(&f, 0, "version --machine");
    cr_expect_not_null(strstr(f.out, line), "%s of %s", line, f.out);
}

/* The tool starts itself again with a short spin, but not where the environment says how threads
 * wait. */
Test(help, waiting_threads)
{
    unsetenv("OMP_WAIT_POLICY");
    unsetenv("GOMP_SPINCOUNT");
    expect_waiting("\n  waiting_threads: GOMP_SPINCOUNT=10000\n");
    setenv("GOMP_SPINCOUNT", "77", 1);
    expect_waiting("\n  waiting_threads: GOMP_SPINCOUNT=77\n");
    setenv("OMP_WAIT_POLICY", "passive", 1);
    expect_waiting("\n  waiting_threads: OMP_WAIT_POLICY=passive\n");
}

/* ---- manual pages and completion ---- */

static int is_there(const char *program)
{
    if (shell(&f, "command -v %s", program) == 0)
        return 1;
    printf("[SKIP] help: there is no %s\n", program);
    return 0;
}

/* Expects a program of that name, if it is there, to have nothing to say of a page. */
static void expect_no_complaint(int is_there, const char *program, const char *page)
{
    if (is_there)
        cr_expect(shell(&f, "%s %s", program, page) == 0 && f.out[0] == '\0' && f.err[0] == '\0',
                  "%s %s: %s%s", program, page, f.out, f.err);
}

Test(help, manual_pages)
{
    scoped(folder_remove) const folder pages = folder_new();
    const int groff = is_there("groff"), mandoc = is_there("mandoc");
    cr_assert_eq(shell(&f, "docs/man.sh adjoint %s", pages.path), 0, "%s", f.err);
    for (int i = -1; i < N_NAME; i++) {
        char page[128], title[64];
        const char *dash = i >= 0 ? "-" : "", *name = i >= 0 ? names[i] : "";
        snprintf(title, sizeof title, "\n.SH NAME\nadjoint%s%s \\- ", i >= 0 ? "\\-" : "", name);
        snprintf(page, sizeof page, "%s/adjoint%s%s.1", pages.path, dash, name);
        cr_expect_eq(shell(&f, "cat %s", page), 0);
        expect_text(f.out, title);
        cr_expect_not_null(strstr(f.out, "\n.SH EXIT STATUS\n"), "%s", name);
        expect_no_complaint(groff, "groff -man -ww -Tutf8 -z", page);
        expect_no_complaint(mandoc, "mandoc -Tlint", page);
    }
}

/* Expects the completions of bash for the words, the last of which is incomplete. */
static void expect_offered(const char *words, const char *offered)
{
    cr_expect_eq(shell(&f,
                       "bash -c 'eval \"$(adjoint --document bash)\"; COMP_WORDS=(adjoint %s); "
                       "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _adjoint; "
                       "echo \"${COMPREPLY[*]}\"'",
                       words),
                 0, "%s", f.out);
    cr_expect_str_eq(f.out, offered, "%s: %s", words, f.out);
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
    cr_expect_eq(shell(&f, "adjoint --document zsh >script && zsh -n script"), 0);
    cr_expect(f.out[0] == '\0' && f.err[0] == '\0', "%s%s", f.out, f.err);
    tool(&f, ANY_STATUS, "--document zsh");
    for (int i = 0; i < N_NAME; i++) {
        char branch[64];
        snprintf(branch, sizeof branch, "\n    %s)\n", names[i]);
        cr_expect_not_null(strstr(f.out, branch), "%s", names[i]);
    }
    leave();
}
