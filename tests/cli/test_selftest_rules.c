/* test_selftest_rules.c - adjoint selftest --rules times rules, writes a file of them, and every
 * command reads it back. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/cli/selftest_rig.h"
#include "tests/isa.h"

static finished f;

/* Whatever the machine is, some rule chooses among kernels of it. A tenth of a second is enough for
 * some cases; the others say so. */
/* What is taken without timing: whatever plans all tests are run with. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }

Test(selftest_rules, measures_writes_and_is_read_back, .init = plan_as_usual, .timeout = 120)
{
    need_onednn_kernels();
    static char text[PRINTED];
    folder dir = folder_new();
    const file_name file = in_folder(&dir, "rules");
    run_tool((const char *[]){"selftest", "--rules", "--seconds", "0.1", "--out", file.s, NULL},
             &f);
    cr_assert_eq(f.status, 0, "%d: %s", f.status, f.err);
    cr_expect_str_empty(f.err);
    cr_expect_not_null(strstr(f.out, " (AMD Zen 5"), "%s", f.out);
    cr_expect_not_null(strstr(f.out, "no time for"), "%s", f.out);
    cr_expect_not_null(strstr(f.out, "choose nothing here"), "%s", f.out);
    text_of(file.s, text);
    cr_expect_eq(strncmp(text, "adjoint rules 1 onednn ", 23), 0, "%s", text);
    cr_expect_not_null(strstr(text, "\nend "), "%s", text);

    const char *const bench[] = {"bench",     "--model", "lenet",     "--batch", "1", "--infer",
                                 "--seconds", "0",       "--threads", "1",       NULL};
    setenv("ADJOINT_RULES", file.s, 1);
    run_tool(bench, &f);
    cr_expect_eq(f.status, 0, "%s", f.err);
    cr_expect_str_empty(f.err);

    FILE *cut = fopen(file.s, "w");
    cr_assert(cut != NULL && fwrite(text, 1, strlen(text) - 3, cut) == strlen(text) - 3);
    fclose(cut);
    run_tool(bench, &f);
    cr_expect_eq(f.status, 0, "%s", f.err);
    cr_expect_not_null(strstr(f.err, "rules file "), "%s", f.err);
    cr_expect_not_null(strstr(f.err, " is ignored: line "), "%s", f.err);
    cr_expect_eq(strchr(f.err, '\n') - f.err + 1, (int64_t)strlen(f.err), "one line: %s", f.err);
    unsetenv("ADJOINT_RULES");
    folder_remove(&dir);
}

Test(selftest_rules, wrong_usage)
{
    static const struct {
        const char *words[6], *message;
    } rows[] = {
        {{"selftest", "--rules", "--cases", "3"}, "with --rules go --out and --seconds only"},
        {{"selftest", "--rules", "--op", "conv2d"}, "with --rules go --out and --seconds only"},
        {{"selftest", "--rules", "--resume"}, "with --rules go --out and --seconds only"},
        {{"selftest", "--seconds", "3"}, "--seconds goes with --rules"},
        {{"selftest", "--rules", "--seconds", "0"}, "--seconds"},
        {{"selftest", "--rules", "--out", "-"}, "--out"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_tool(rows[i].words, &f);
        cr_expect_eq(f.status, 3, "%zu: %d", i, f.status);
        cr_expect_not_null(strstr(f.err, rows[i].message), "%zu: %s", i, f.err);
    }
}
