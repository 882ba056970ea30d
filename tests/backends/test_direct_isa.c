/* test_direct_isa.c - the instruction set that direct uses: the CPU's, limited by the environment;
 * and results that do not depend on block sizes, which follow the size of the second-level cache.
 * This program replaces the C library's cache size. */
#include <criterion/criterion.h>
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adjoint.h"
#include "base/machine/cache_size.h"
#include "exec/report.h"
#include "graph/op.h"
#include "tests/harness.h"
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
        expect_text(message, expected);
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

/* ---- block sizes ---- */

static long second_cache; /* bytes; 0: the system's */

long sysconf(int name)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (name == _SC_LEVEL2_CACHE_SIZE && second_cache != 0)
        return second_cache;
#endif
    union {
        void *found;
        long (*call)(int);
    } real = {.found = dlsym(RTLD_NEXT, "sysconf")};
    return real.call(name);
}

/* Without a number from the system, or one that none can have, there still is a size. */
Test(cache_bits, sizes_that_are_told)
{
    const size_t usual = 1 << 20;
    second_cache = -1;
    cr_expect_eq(machine_second_cache(), usual);
    second_cache = 0;
    const size_t here = machine_second_cache();
    cr_expect(here >= 256 << 10 && here <= 4 << 20);
#ifdef _SC_LEVEL2_CACHE_SIZE
    second_cache = 512 << 10;
    cr_expect_eq(machine_second_cache(), 512 << 10);
    second_cache = 1;
    cr_expect_eq(machine_second_cache(), 256 << 10);
    second_cache = 1L << 40;
    cr_expect_eq(machine_second_cache(), 4 << 20);
#endif
}

/* With tuning two plans may have different kernels, whatever all tests are run with; by AMX there
 * are others, with a test of their own. */
static void plan_without_amx(void)
{
    const char *isa = getenv("ADJOINT_MAX_ISA");
    plan_as_usual();
    if (isa == NULL || strcmp(isa, "amx") == 0)
        setenv("ADJOINT_MAX_ISA", "avx512_bf16", 1);
}
TestSuite(cache_bits, .init = plan_without_amx);

/* Returns y by an implementation of that name, malloc'ed, and the executor's arena. */
static double *run(const fixture *f, adj_node *y, const char *impl, size_t *arena)
{
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &y,
                             .backend = "direct",
                             .debug = &(adj_exec_debug){.impl = impl},
                             .math = ADJ_MATH_FAST,
                             .threads = 2};
    scoped(release_exec) adj_exec *e = fixture_run(f, &o);
    *arena = adj_exec_stats(e).arena_bytes;
    return fixture_get(e, y);
}

/* Expects the same bits with small and with large blocks. arena_follows: the arena depends on the
 * size of blocks. */
static void expect_same(fixture *f, adj_node *y, const char *impl, int arena_follows)
{
    size_t small_arena, arena;
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    second_cache = 256 << 10;
    scoped(release) double *small = run(f, y, impl, &small_arena);
    second_cache = 4 << 20;
    scoped(release) double *large = run(f, y, impl, &arena);
    second_cache = 0;
    cr_expect_arr_eq(small, large, (size_t)adj_shape_elems(y->type.shape) * sizeof *small,
                     "blocks decide bits");
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (arena_follows)
        cr_expect_lt(small_arena, arena, "the same blocks");
#endif
}

/* y and dx, each of many channels. */
Test(cache_bits, of_winograd)
{
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_shape narrow = {4, {3, 32, 32, 32}}, wide = {4, {3, 32, 32, 256}};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, wide, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, 256, 32}}, -1, 1);
    adj_node *v = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, 32, 256}}, -1, 1);
    expect_same(&f, adj_conv2d(x, w, &same), "winograd", 1);
    expect_same(&f, adj_conv2d_backprop_input(narrow, v, x, &same), "winograd", 1);
}

/* With 256 KB the filter of all outputs, in both parts, is cut into groups; special: one element of
 * x, and then of the filter. */
static void expect_groups(double special)
{
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_shape x_shape = {4, {2, 12, 16, 40}};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, x_shape, -1, 1);
    adj_node *w = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, 40, 250}}, -1, 1);
    adj_node *b = given_random(&f, ADJ_F32, (adj_shape){1, {250}}, -1, 1);
    adj_node *dy = given_random(&f, ADJ_F32, (adj_shape){4, {2, 12, 16, 250}}, -1, 1);
    adj_node *v = given_random(&f, ADJ_F32, (adj_shape){4, {3, 3, 250, 40}}, -1, 1);
    adj_node *wide = given_random(&f, ADJ_F32, (adj_shape){4, {2, 12, 16, 40}}, -1, 1);
    const adj_shape dx = {4, {2, 12, 16, 250}};
    for (int k = 0; k < 2; k++) {
        f.value[k][7] = special;
        expect_same(&f, adj_bias_add(adj_conv2d(x, w, &same), b, ADJ_NHWC), NULL, 0);
        expect_same(&f, adj_conv2d_backprop_input(x_shape, w, dy, &same), NULL, 0);
        expect_same(&f, adj_conv2d_backprop_input(dx, v, wide, &same), NULL, 0);
    }
}

Test(cache_bits, of_groups_by_amx)
{
    need_isa("amx");
    setenv("ADJOINT_MAX_ISA", "amx", 1);
    expect_groups(0.5);
    expect_groups(NAN);
}
