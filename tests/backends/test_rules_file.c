/* test_rules_file.c - a rules file is obeyed; a hostile one, or another machine's, is ignored with
 * one line, and the plan is as without it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adjoint_ext.h"
#include "tests/temporary.h"
#include "tests/isa.h"

typedef struct {
    char backend[32], of_pixels[32], forward[32], of_rows[32], forward_rows[32], few_rows[32],
        few_kept[32];
    char warning[ADJ_MESSAGE];
} plan;

static void set_backend(char *to, size_t n, const adj_exec *e, const adj_node *of)
{
    for (int i = 0; i < adj_exec_step_count(e); i++)
        if (adj_exec_step_at(e, i).node == of)
            snprintf(to, n, "%s", adj_exec_step_at(e, i).backend);
}

/* A depthwise filter gradient with two outputs a channel, which direct computes on every machine,
 * and oneDNN would, and convolutions and filter gradients, 1x1 and 3x3, of which both say that they
 * are fast, where a file of that name is in ADJOINT_RULES. And 3x3 of one small image, by a filter
 * that may change in every run and by one that does not. */
static plan plan_with(const char *path)
{
    const adj_shape filter = {4, {3, 3, 16, 2}}, of_pixels = {4, {1, 1, 32, 32}};
    const adj_shape of_rows = {4, {3, 3, 64, 64}};
    plan p = {.backend = {0}};
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 16}});
    adj_node *dy = adj_input(g, "dy", ADJ_F32, (adj_shape){4, {2, 8, 8, 32}});
    const adj_conv same = {.padding = ADJ_SAME};
    adj_node *dw = adj_depthwise_conv2d_native_backprop_filter(x, filter, dy, &same);
    adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){4, {2, 16, 16, 32}});
    adj_node *u = adj_input(g, "u", ADJ_F32, (adj_shape){4, {4, 16, 16, 64}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {1, 1, 64, 64}});
    adj_node *v = adj_input(g, "v", ADJ_F32, (adj_shape){4, {2, 32, 32, 64}});
    adj_node *f = adj_input(g, "f", ADJ_F32, of_rows);
    adj_node *t = adj_input(g, "t", ADJ_F32, (adj_shape){4, {1, 8, 8, 64}});
    adj_node *kept = adj_param(g, "kept", ADJ_F32, of_rows, (adj_init){ADJ_INIT_CONSTANT, 1, 0});
    adj_node *const all[] = {dw,
                             adj_conv2d_backprop_filter(z, of_pixels, z, &same),
                             adj_conv2d(u, w, &same),
                             adj_conv2d_backprop_filter(v, of_rows, v, &same),
                             adj_conv2d(v, f, &same),
                             adj_conv2d(t, f, &same),
                             adj_conv2d(t, kept, &same)};
    const adj_exec_opts o = {.n_fetch = sizeof all / sizeof *all, .fetch = all};
    adj_exec *e = NULL;
    setenv("ADJOINT_RULES", path, 1);
    cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    set_backend(p.backend, sizeof p.backend, e, dw);
    set_backend(p.of_pixels, sizeof p.of_pixels, e, all[1]);
    set_backend(p.forward, sizeof p.forward, e, all[2]);
    set_backend(p.of_rows, sizeof p.of_rows, e, all[3]);
    set_backend(p.forward_rows, sizeof p.forward_rows, e, all[4]);
    set_backend(p.few_rows, sizeof p.few_rows, e, all[5]);
    set_backend(p.few_kept, sizeof p.few_kept, e, all[6]);
    snprintf(p.warning, sizeof p.warning, "%s", adj_exec_warning(e));
    adj_exec_free(e);
    adj_graph_free(g);
    return p;
}

/* The same with a file of this text. */
static plan plan_with_text(const char *text, size_t bytes)
{
    temporary t = temporary_file();
    FILE *f = fopen(t.s, "w");
    cr_assert(f != NULL && fwrite(text, 1, bytes, f) == bytes && fclose(f) == 0, "%s", t.s);
    plan p = plan_with(t.s);
    unlink(t.s);
    return p;
}

/* The first line of a file for this machine. */
static const char *head_here(void)
{
    static char head[200];
    for (const adj_backend *const *b = adj_backends; *b != NULL; b++)
        if ((*b)->describe_rules != NULL)
            (*b)->describe_rules(head, sizeof head);
    return head;
}

static plan plan_with_lines(const char *lines)
{
    char text[1200];
    int n = snprintf(text, sizeof text, "%s\n%s", head_here(), lines);
    return plan_with_text(text, (size_t)n);
}

/* What is taken without timing: whatever plans all tests are run with. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(rules_file, .init = plan_as_usual);

Test(rules_file, names_this_machine)
{
    char onednn[64], head[160];
    cr_assert_eq(adj_backend_describe("onednn", onednn, sizeof onednn), ADJ_OK);
    snprintf(head, sizeof head, "adjoint rules 1 onednn %s ", onednn);
    cr_expect_eq(strncmp(head_here(), head, strlen(head)), 0, "%s", head_here());
#if defined(__x86_64__)
    const char *cpu = head_here() + strlen(head);
    cr_expect(strncmp(cpu, "AuthenticAMD-", 13) == 0 || strncmp(cpu, "GenuineIntel-", 13) == 0,
              "%s", cpu);
#endif
}

Test(rules_file, is_obeyed)
{
    need_onednn_kernels();
    static const struct {
        const char *lines, *backend;
    } rows[] = {
        {"end 0\n", "direct"},
        {"off depthwise_multiplier\nend 1\n", "onednn"},
        {"on depthwise_multiplier\nend 1\n", "direct"},
        {"off depthwise_input\nend 1\n", "direct"},
        {"# a comment\n\noff depthwise_input # more\non filter_from_few_f32\n"
         "off depthwise_multiplier\t# 1.4\nend 3\n",
         "onednn"},
        {"off depthwise_multiplier\r\nend 1\r\n", "onednn"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plan p = plan_with_lines(rows[i].lines);
        cr_expect_str_eq(p.backend, rows[i].backend, "%zu", i);
        cr_expect_str_eq(p.warning, "", "%zu", i);
    }
}

/* Where direct has its vectors, it competes. */
Test(rules_file, is_obeyed_where_direct_competes)
{
    const char *max = getenv("ADJOINT_MAX_ISA");
    need_isa("avx2");
    need_onednn_kernels();
    if (max != NULL && strcmp(max, "base") == 0)
        cr_skip_test("ADJOINT_MAX_ISA is base, for which there is no rule\n");
    cr_expect_str_eq(plan_with_lines("on filter_of_direct_1x1\nend 1\n").of_pixels, "direct");
    cr_expect_str_eq(
        plan_with_lines("off filter_of_direct_1x1\noff filter_of_direct_avx2\nend 2\n").of_pixels,
        "onednn");
    cr_expect_str_eq(plan_with_lines("on forward_of_direct_1x1\nend 1\n").forward, "direct");
    cr_expect_str_eq(plan_with_lines("off forward_of_direct_1x1\nend 1\n").forward, "onednn");
}

/* Where its vectors are AVX2's, in 3x3, too. */
Test(rules_file, is_obeyed_where_direct_competes_by_avx2)
{
    const char *max = getenv("ADJOINT_MAX_ISA");
    need_isa("avx2");
    need_onednn_kernels();
    if (max != NULL && strcmp(max, "base") == 0)
        cr_skip_test("ADJOINT_MAX_ISA is base, for which there is no rule\n");
    setenv("ADJOINT_MAX_ISA", "avx2", 1);
    cr_expect_str_eq(plan_with_lines("on filter_of_direct_avx2\nend 1\n").of_rows, "direct");
    cr_expect_str_eq(plan_with_lines("off filter_of_direct_avx2\nend 1\n").of_rows, "onednn");
    const plan on = plan_with_lines("on forward_of_direct_avx2\nend 1\n");
    const plan off = plan_with_lines("off forward_of_direct_avx2\nend 1\n");
    cr_expect_str_eq(on.forward_rows, "direct");
    cr_expect_str_eq(off.forward_rows, "onednn");
    cr_expect_str_eq(on.few_rows, "onednn");
    cr_expect_str_eq(on.few_kept, "direct");
    cr_expect_str_eq(off.few_kept, "onednn");
    setenv("ADJOINT_MAX_ISA", "base", 1);
    cr_expect_str_eq(plan_with_lines("on filter_of_direct_avx2\nend 1\n").of_rows, "onednn");
    cr_expect_str_eq(plan_with_lines("on forward_of_direct_avx2\nend 1\n").forward_rows, "onednn");
}

static void expect_ignored(plan p, const char *reason)
{
    cr_expect_str_eq(p.backend, "direct", "%s", reason);
    cr_expect(strncmp(p.warning, "rules file ", 11) == 0, "%s", p.warning);
    cr_expect_not_null(strstr(p.warning, " is ignored: "), "%s", p.warning);
    cr_expect_not_null(strstr(p.warning, reason), "expected %s: %s", reason, p.warning);
    cr_expect_null(strchr(p.warning, '\n'), "%s", p.warning);
}

Test(rules_file, hostile_lines_are_ignored)
{
    static char wide[1000];
    memset(wide, 'a', sizeof wide - 2);
    wide[sizeof wide - 2] = '\n';
    const struct {
        const char *lines, *reason;
    } rows[] = {
        {"off depthwise_multiplier\n", "line 3: the end is missing"},
        {"off depthwise_multiplier\nend 1", "line 3: is too long, not text, or cut off"},
        {"off depthwise_multi", "line 2: is too long, not text, or cut off"},
        {"off depthwise_multiplier\nend 2\n", "line 3: the count is wrong"},
        {"off depthwise_multiplier\nend 1x\n", "line 3: the count is wrong"},
        {"off depthwise_multiplier\nend -1\n", "line 3: the count is wrong"},
        {"off depthwise_multiplier\nend 1\nend 1\n", "something follows the end"},
        {"off depthwise_multiplier\non depthwise_multiplier\nend 2\n", "line 3: the rule is there"},
        {"off depthwise_multiplie\nend 1\n", "line 2: there is no such rule"},
        {"off depthwise_multiplier onednn\nend 1\n", "line 2: there is no such rule"},
        {"off \nend 1\n", "line 2: expected on, off or end"},
        {"off\nend 1\n", "line 2: expected on, off or end"},
        {" off depthwise_multiplier\nend 1\n", "line 2: expected on, off or end"},
        {"OFF depthwise_multiplier\nend 1\n", "line 2: expected on, off or end"},
        {"%s%n%s%n\nend 1\n", "line 2: expected on, off or end"},
        {"off depthwise_multiplier\x01\nend 1\n", "line 2: is too long, not text"},
        {wide, "line 2: is too long"},
        {"", "line 2: the end is missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_ignored(plan_with_lines(rows[i].lines), rows[i].reason);
}

Test(rules_file, other_machines_and_other_files_are_ignored)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {"", "is no file of rules"},
        {"\n", "is no file of rules"},
        {"adjoint tune 1, library 200\nend 0\n", "is no file of rules"},
        {"adjoint rules 1", "is no file of rules"},
        {"adjoint rules 2 onednn 2.6.3 avx2 AuthenticAMD-25-1\nend 0\n", "another CPU"},
        {"adjoint rules 1 onednn 9.9.9 avx2 AuthenticAMD-25-1\noff depthwise_multiplier\nend 1\n",
         "was made for another CPU or another version of oneDNN or adjoint"},
        {"adjoint rules 1 onednn 2.6.3 avx2 CyrixInstead-5-4\noff depthwise_multiplier\nend 1\n",
         "another CPU"},
    };
    char text[300];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_ignored(plan_with_text(rows[i].text, strlen(rows[i].text)), rows[i].reason);
    int n = snprintf(text, sizeof text, "%s \noff depthwise_multiplier\nend 1\n", head_here());
    expect_ignored(plan_with_text(text, (size_t)n), "another CPU");
    expect_ignored(plan_with_text("adjoint rules \0\n", 16), "is no file of rules");
}

/* Too many lines end it; so do many that say nothing. */
Test(rules_file, is_read_up_to_an_end)
{
    enum { LINES = 5000 };
    static char text[200 + 2 * LINES];
    int n = snprintf(text, sizeof text, "%s\n", head_here());
    memset(text + n, '\n', LINES);
    expect_ignored(plan_with_text(text, (size_t)n + LINES), "too many lines");
}

Test(rules_file, only_regular_files, .timeout = 20)
{
    temporary folder = temporary_folder();
    char pipe[80];
    snprintf(pipe, sizeof pipe, "%s/pipe", folder.s);
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    expect_ignored(plan_with(pipe), "is not a regular file");
    expect_ignored(plan_with(folder.s), "is not a regular file");
    expect_ignored(plan_with("/dev/zero"), "is not a regular file");
    expect_ignored(plan_with("/nonexistent/rules"), "No such file");
    cr_expect_str_eq(plan_with("").warning, "", "empty is as not set");
    unlink(pipe);
    rmdir(folder.s);
}
