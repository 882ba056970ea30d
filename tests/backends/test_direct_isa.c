/* test_direct_isa.c - the instruction set that direct uses: the CPU's, limited by the environment.
 */
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint.h"
#include "exec/report.h"
#include "tests/isa.h"
#include "tests/plan.h"

/* The status of a plan of relu on direct where ADJOINT_MAX_ISA is word; impl: who computes it. */
static adj_status plan_as(adj_dtype dtype, const char *word, char message[300], char impl[64])
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", dtype, (adj_shape){1, {64}}));
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "direct", .threads = 1};
    scoped(release_exec) adj_exec *e = NULL;
    if (word != NULL)
        setenv("ADJOINT_MAX_ISA", word, 1);
    else
        unsetenv("ADJOINT_MAX_ISA");
    adj_status status = adj_exec_new(g, &o, &e);
    snprintf(message, 300, "%s", adj_exec_message(e));
    snprintf(impl, 64, "%s", status == ADJ_OK ? adj_exec_step_at(e, 0).impl : "");
    return status;
}

static adj_status plan_with(const char *word, char message[300], char impl[64])
{
    return plan_as(ADJ_F32, word, message, impl);
}

Test(direct_isa, names)
{
    static const char *const known[] = {"base", "avx2", "avx512", "avx512_bf16", "amx"};
    static const char *const unknown[] = {"avx",  "AVX2", "avx2 ", "avx512_core", "avx10",
                                          "none", "0",    ",",     "base,avx2"};
    char message[300], impl[64], best[64], expected[300];
    cr_assert_eq(plan_with(NULL, message, best), ADJ_OK, "%s", message);
    cr_expect_eq(plan_with("", message, impl), ADJ_OK, "%s", message);
    cr_expect_str_eq(impl, best);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_expect_eq(plan_with(known[i], message, impl), ADJ_OK, "%s", message);
    cr_expect_str_eq(impl, best); /* amx: no limit */
    plan_with("base", message, impl);
    cr_expect_str_eq(impl, "fused_row_kernel:base");
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        cr_expect_eq(plan_with(unknown[i], message, impl), ADJ_EARG, "%s: %s", unknown[i], message);
        snprintf(
            expected, sizeof expected,
            "ADJOINT_MAX_ISA: unknown (got \"%s\", expected base, avx2, avx512, avx512_bf16 or "
            "amx)",
            unknown[i]);
        cr_expect_not_null(strstr(message, expected), "%s", message);
    }
}

/* In bf16 by avx512_bf16 where that is there and allowed. */
Test(direct_isa, bf16)
{
    char message[300], impl[64], wide[64];
    const char *all = cpu_has("avx512_bf16") ? "fused_row_kernel:avx512_bf16" : wide;
    snprintf(wide, sizeof wide, "fused_row_kernel:%s", best_isa());
    plan_as(ADJ_BF16, NULL, message, impl);
    cr_expect_str_eq(impl, all);
    plan_as(ADJ_BF16, "avx512_bf16", message, impl);
    cr_expect_str_eq(impl, all);
    plan_as(ADJ_BF16, "avx512", message, impl);
    cr_expect_str_eq(impl, wide);
    plan_as(ADJ_F32, NULL, message, impl);
    cr_expect_str_eq(impl, wide);
}

static int read_file(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n = f != NULL ? fread(text, 1, size - 1, f) : 0;
    text[n] = '\0';
    if (f != NULL)
        fclose(f);
    return n > 0;
}

/* True if the source checks the CPU for the flag, by gcc's name or by its cpuid bit. */
static int is_asked(const char *source, const char *flag)
{
    char by_name[64], by_bit[64] = "bit_";
    snprintf(by_name, sizeof by_name, "__builtin_cpu_supports(\"%s\")", flag);
    for (size_t i = 0; flag[i] != '\0' && i < 50; i++)
        by_bit[4 + i] = (char)toupper((unsigned char)flag[i]);
    return strstr(source, by_name) != NULL || strstr(source, by_bit) != NULL;
}

/* Every -m flag that a kernel is built with; run from the project's folder. */
Test(direct_isa, whatever_the_compiler_may_use_is_asked_of_the_cpu)
{
    static char rules[1 << 16], source[1 << 16];
    int flags = 0;
    if (!read_file("build.ninja", rules, sizeof rules) ||
        !read_file("base/machine/isa_level.c", source, sizeof source)) {
        cr_log_info("skipped: not run in the project's folder");
        return;
    }
    for (char *rest = NULL, *line = strtok_r(rules, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "isa_", 4) != 0)
            continue;
        for (char *more = NULL, *word = strtok_r(line, " ", &more); word != NULL;
             word = strtok_r(NULL, " ", &more)) {
            if (strncmp(word, "-m", 2) != 0 || strncmp(word, "-mprefer-", 9) == 0)
                continue;
            cr_expect(is_asked(source, word + 2), "%s is not asked of the CPU", word);
            flags++;
        }
    }
    cr_expect_geq(flags, 8);
}
