/* test_selftest_planted.c - adjoint selftest on faults that are planted into oneDNN's backend
 * (planted.h), whatever the machine's own oneDNN does: it finds them, writes rows, and whoever
 * reads the file gets right numbers. Killed and resumed it writes the same file. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

#include "tests/cli/planted.h"
#include "tests/cli/selftest_rig.h"
#include "tests/isa.h"

static finished f;

/* Seven dense convolutions for each stride, dense and grouped, of 3 to 64 filters. */
static const char *const seven[] = {"--op",
                                    "conv2d_backprop_filter",
                                    "--dtype",
                                    "f32",
                                    "--dilation",
                                    "1",
                                    "--padding",
                                    "VALID",
                                    "--channels",
                                    "12",
                                    "--size",
                                    "36",
                                    "--unquarantined",
                                    NULL};
enum { VARIANTS = 7 };

static void words_for(const char *words[ARGUMENTS], const char *out, const char *kernel,
                      const char *strides, const char *seconds)
{
    const char *const more[] = {"--kernel", kernel, "--stride", strides, "--timeout", seconds};
    int n = 0;
    selftest_words(words, out, seven);
    while (words[n] != NULL)
        n++;
    memcpy(words + n, more, sizeof more);
}

TestSuite(selftest_planted, .init = planted_use_tool);

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

/* One that the sweep has tried, and others of the same class of channels. */
static const layer layers[] = {
    {ADJ_F32, 2, 36, 36, 12, 16, 3, 1, 1}, {ADJ_F32, 2, 36, 36, 12, 16, 3, 2, 1},
    {ADJ_F32, 2, 36, 36, 12, 16, 3, 3, 1}, {ADJ_F32, 2, 36, 36, 13, 15, 3, 1, 1},
    {ADJ_F32, 2, 36, 36, 10, 14, 3, 2, 1}, {ADJ_F32, 2, 36, 36, 14, 15, 3, 3, 1},
};

Test(selftest_planted, faults_are_found_and_executors_obey)
{
    need_onednn_kernels();
    static char text[PRINTED];
    static const struct {
        const char *reason;
        int stride;
    } rows[] = {{"sh=1,sw=1,dh=1,dw=1 wrong numbers", PLANTED_WRONG},
                {"sh=2,sw=2,dh=1,dw=1 leaves NaN", PLANTED_NAN},
                {"sh=3..,sw=3..,dh=1,dw=1 SIGSEGV", PLANTED_CRASH}};
    folder dir = folder_new();
    const file_name file = in_folder(&dir, "faults");
    const char *words[ARGUMENTS];
    expect_crashes();
    words_for(words, file.s, "3", "1,2,3", "300");
    run_tool(words, &f);
    cr_assert_eq(f.status, 1, "%s", f.err);
    cr_expect_not_null(strstr(f.err, " found, 0:00 left"), "%s", f.err);
    text_of(file.s, text);
    for (int i = 0; i < 3; i++)
        cr_expect_geq(count_of(text, rows[i].reason), VARIANTS, "%s: %s", rows[i].reason, text);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const layer *l = &layers[i];
        char only[420], before[64] = "", after[64] = "";
        snprintf(only, sizeof only, "only:%s", file.s);
        cr_expect_eq(wrong_numbers(l, planted_backends(), only, after), 0, "%zu: %s", i, after);
        if (l->stride == PLANTED_CRASH)
            continue;
        cr_expect_gt(wrong_numbers(l, planted_backends(), "off", before), 0, "%zu", i);
        cr_expect_str_neq(before, after);
        cr_expect_not_null(strstr(text, before), "%s: %s", before, text);
    }
    folder_remove(&dir);
}

/* What never answers is killed, and is a row as well. */
Test(selftest_planted, a_hang_is_a_fault)
{
    need_onednn_kernels();
    static char text[PRINTED];
    folder dir = folder_new();
    const file_name file = in_folder(&dir, "hangs");
    const char *words[ARGUMENTS];
    words_for(words, file.s, "5", "1", "1");
    run_tool(words, &f);
    cr_assert_eq(f.status, 1, "%s", f.err);
    text_of(file.s, text);
    cr_expect_not_null(strstr(text, "goc=1..4,"), "%s", text);
    cr_expect_not_null(strstr(text, " no response in 1 s"), "%s", text);
    folder_remove(&dir);
}

/* Waits until the file is no longer as it was, or c has ended. */
static void wait_for_news(const child *c, const char *path, const char *was)
{
    static char now[PRINTED];
    const struct timespec pause = {0, 1000000};
    siginfo_t ended = {0};
    int same = 1;
    while (same && ended.si_pid == 0) {
        nanosleep(&pause, NULL);
        cr_assert_eq(waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        same = access(path, F_OK) != 0 || strcmp(text_of(path, now), was) == 0;
    }
}

Test(selftest_planted, killed_and_resumed)
{
    static char whole[PRINTED], pieces[PRINTED];
    folder dir = folder_new();
    const file_name a = in_folder(&dir, "a"), b = in_folder(&dir, "b");
    const char *words[ARGUMENTS];
    int kills = 0;
    words_for(words, a.s, "3", "2", "300");
    run_tool(words, &f);
    cr_assert_eq(f.status, 1, "%s", f.err);
    for (f.status = 128; f.status >= 128; kills++) {
        int begun = access(b.s, F_OK) == 0;
        words_for(words, b.s, "3", "2", "300");
        if (begun) {
            selftest_words(words, b.s, NULL);
            text_of(b.s, pieces);
        }
        child c = child_start(words, -1);
        wait_for_news(&c, b.s, pieces);
        kill(c.pid, SIGKILL);
        child_finish(&c, &f);
    }
    cr_assert_eq(f.status, 1, "%s", f.err);
    cr_expect_gt(kills, 2);
    cr_expect_str_eq(text_of(b.s, pieces), text_of(a.s, whole));
    cr_expect_leq(files_in(&dir), 3); /* a half-written one, which the next run replaces */
    folder_remove(&dir);
}
