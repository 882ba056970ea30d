/* test_tune.c - tuning: the faster of two planted candidates is found and cached in a file, and the
 * file is validated. More of files that are replaced: tests/io/test_replace.c. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/report.h"
#include "tests/plan.h"
#include "tests/virtual_clock.h"

#include "planted.h"

/* ---- what is chosen ---- */

/* Candidates are counted here: no other plans, whatever all tests are run with. */
TestSuite(tune, .init = plan_as_usual);

/* A candidate is what it prepares to, not its place in a list. */
Test(tune, a_choice_is_found_in_another_order)
{
    make_folder();
    cr_assert_str_eq(plan(tuned(), 4096).impl, "fast:1");
    in_other_order = 1;
    outcome o = plan(tuned(), 4096);
    cr_assert(o.timed == 0 && o.cached == 1, "%d timed, %d cached", o.timed, o.cached);
    cr_assert_str_eq(o.impl, "fast:1");
    remove_folder();
}

Test(tune, the_fast_candidate_is_selected_and_cached)
{
    make_folder();
    outcome o = plan((adj_exec_opts){.threads = 1}, 64);
    cr_assert_str_eq(o.impl, "slow:1");
    cr_assert(o.runs == 0 && o.timed == 0 && o.tuned == 0);

    o = plan((adj_exec_opts){.tune = 1, .threads = 1}, 64);
    cr_assert_str_eq(o.impl, "fast:1");
    cr_assert(o.timed == 2 && o.cached == 0 && o.tuned > 0 && o.tuned < 0.1);
    cr_assert_str_eq(o.note, "");

    o = plan(tuned(), 64);
    cr_assert(o.timed == 2 && strcmp(o.impl, "fast:1") == 0 && o.note[0] == '\0');
    o = plan(tuned(), 64);
    cr_assert_str_eq(o.impl, "fast:1");
    cr_assert(o.timed == 0 && o.cached == 1 && o.runs == 0 && o.tuned > 0);
    o = plan(tuned(), 65); /* another shape, added to the file */
    cr_assert(o.timed == 2 && o.cached == 0);
    adj_exec_opts two = tuned();
    two.threads = 2;
    o = plan(two, 65);
    cr_assert(o.timed == 2, "another number of threads");
    for (int64_t n = 64; n <= 65; n++)
        cr_assert_eq(plan(tuned(), n).cached, 1);

    adj_exec_opts wanted = tuned();
    wanted.debug = &(adj_exec_debug){.impl = "slow"};
    o = plan(wanted, 64);
    cr_assert(o.timed == 0 && strcmp(o.impl, "slow:1") == 0, "impl wins");
    remove_folder();
}

Test(tune, the_environment_names_the_file)
{
    make_folder();
    setenv("ADJOINT_TUNE", file, 1);
    cr_assert_eq(plan((adj_exec_opts){.tune = 1}, 64).timed, 2);
    cr_assert_eq(plan((adj_exec_opts){.tune = 1}, 64).cached, 1);
    cr_assert_eq(plan((adj_exec_opts){0}, 64).cached, 0);
    setenv("ADJOINT_TUNE", "", 1);
    cr_assert_eq(plan((adj_exec_opts){.tune = 1}, 64).timed, 2);
    remove_folder();
}

Test(tune, equal_groups_are_timed_once_and_the_time_is_bounded)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y[4];
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%d", i);
        y[i] = adj_relu(adj_input(g, name, ADJ_F32, (adj_shape){1, {9 + i / 3}}));
    }
    adj_exec_opts o = {.n_fetch = 4, .fetch = y, .backends = beside_naive(backend), .tune = 1};
    adj_exec *e = plan_of(g, &o);
    cr_assert_eq(adj_exec_details(e).timed, 4);
    for (int i = 0; i < 4; i++)
        cr_assert_str_eq(adj_exec_step_at(e, i).impl, "fast:1");
    scoped(release) char *text = plan_text(e);
    expect_text(text, "[planted fast:1] tuned ");
    adj_exec_free(e);

    o.tune_seconds = 1e-9;
    e = plan_of(g, &o);
    cr_assert_str_eq(adj_exec_step_at(e, 0).impl, "slow:1");
    expect_text(adj_exec_warning(e), "too short");
    adj_exec_free(e);
    const double wrong[] = {-1, 1e9, 0.0 / 0.0};
    for (int i = 0; i < 3; i++) {
        o.tune_seconds = wrong[i];
        expect_no_plan(g, &o, ADJ_EARG, "tune_seconds");
    }
}

/* ---- files that are not believed ---- */

/* The file is ignored with one line that has the word, and written anew. */
static void expect_ignored(const char *text, size_t n, const char *word)
{
    write_text(text, n);
    outcome o = plan(tuned(), 64);
    cr_assert_str_eq(o.impl, "fast:1");
    cr_assert(o.timed == 2 && o.cached == 0, "%s: %.*s", word, (int)n, text);
    cr_assert(strstr(o.note, "is ignored") != NULL && strstr(o.note, word) != NULL,
              "expected %s, got %s", word, o.note);
    o = plan(tuned(), 64);
    cr_assert(o.cached == 1 && o.note[0] == '\0', "after %s: %s", word, o.note);
}

/* Returns text with the first `from` replaced; until the next call. */
static const char *replaced(const char *text, const char *from, const char *to)
{
    static char changed[1 << 16];
    const char *at = strstr(text, from);
    cr_assert_not_null(at, "%s is not in %s", from, text);
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return changed;
}

static void expect_ignored_with(const char *text, const char *from, const char *to,
                                const char *word)
{
    const char *changed = replaced(text, from, to);
    expect_ignored(changed, strlen(changed), word);
}

Test(tune, other_machines_and_versions)
{
    make_folder();
    size_t n;
    plan(tuned(), 64);
    scoped(release) char *text = read_text(&n);
    expect_ignored_with(text, "tune 4", "tune 3", "another CPU or another version");
    expect_ignored_with(text, "cpu ", "cpu X", "another CPU or another version");
    expect_ignored_with(text, "backend planted 1.0.0", "backend planted 0.9.0",
                        "another CPU or another version");
    expect_ignored("", 0, "another CPU");
    plan(tuned(), 64);
    version = "1.0.1 none";
    outcome o = plan(tuned(), 64);
    cr_assert(o.timed == 2 && strstr(o.note, "is ignored") != NULL);
    cr_assert_eq(plan(tuned(), 64).cached, 1);
    remove_folder();
}

Test(tune, truncated_and_hostile)
{
    static char hostile[1 << 16];
    make_folder();
    size_t n;
    plan(tuned(), 64);
    scoped(release) char *text = read_text(&n);
    for (size_t length = 0; length < n; length++) {
        write_text(text, length);
        outcome o = plan(tuned(), 64);
        cr_assert(o.timed == 2 && strstr(o.note, "is ignored") != NULL, "%zu of %zu bytes: %s",
                  length, n, o.note);
    }
    expect_ignored_with(text, "end 1\n", "end 2\n", "count is wrong");
    expect_ignored_with(text, "end 1\n", "end -1\n", "count is wrong");
    expect_ignored_with(text, "end 1\n", "end 1\nend 1\n", "count is wrong");
    expect_ignored_with(text, "end 1\n", "end 99999999999999999999\n", "count is wrong");
    expect_ignored_with(text, "end 1\n", "\nend 1\n", "six fields");
    expect_ignored_with(text, "end 1\n", "a\tb\tc\nend 2\n", "six fields");
    expect_ignored_with(text, "end 1\n", "a\tb\t0\t1\t\tk\nend 2\n", "six fields");
    expect_ignored_with(text, "end 1\n", "a\tb\t0\t1\ti\tk\tl\nend 2\n", "six fields");
    expect_ignored_with(text, "two\t1\t", "two\t-1\t", "out of range");
    expect_ignored_with(text, "two\t1\t", "two\t 1\t", "out of range");
    expect_ignored_with(text, "two\t1\t", "two\t99999999999999999999\t", "out of range");
    expect_ignored_with(text, "\tfast:1", "nan\tfast:1", "out of range");
    expect_ignored_with(text, "two\t1\t", "two\t1\tinf\tx\ty\nplanted\ttwo\t1\t", "out of range");
    expect_ignored_with(text, "end 1\n", "-\t-\t0\t1\tx\tk\nend 2\n", "out of range");
    expect_ignored_with(text, "end 1\n", "-\t-\t0\t1\t-1\tk\nend 2\n", "out of range");
    expect_ignored_with(text, "end 1\n", "-\t-\t0\t1\tnan\tk\nend 2\n", "out of range");
    memcpy(hostile, text, n);
    hostile[n / 2] = '\0';
    expect_ignored(hostile, n, "not text");
    memcpy(hostile, text, n - 6);
    memset(hostile + n - 6, 'x', 40000);
    expect_ignored(hostile, n - 6 + 40000, "end is missing");
    memset(hostile, 0xff, sizeof hostile);
    memcpy(hostile, text, 12); /* "adjoint tune" */
    expect_ignored(hostile, sizeof hostile, "not text");
    remove_folder();
}

/* Another file, whose name was given by mistake, is never replaced. */
Test(tune, other_files_stay)
{
    static const char *const others[] = {"{\"a\":1}\n", "adjoint tun", "\n", " adjoint tune 1\n",
                                         "\020binary"};
    make_folder();
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t n;
        write_text(others[i], strlen(others[i]));
        for (int twice = 0; twice < 2; twice++) {
            outcome o = plan(tuned(), 64);
            cr_expect(o.timed == 2 && strstr(o.note, "is ignored: is not a tune file and is left"),
                      "%s: %s", others[i], o.note);
        }
        scoped(release) char *text = read_text(&n);
        cr_expect_str_eq(text, others[i]);
    }
    remove_folder();
}

/* Another process, which tunes a plan of another size and writes its winners to the same file. */
static void tune_elsewhere(void)
{
    int status;
    const pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0)
        _exit(plan(tuned(), 128).timed == 2 ? 0 : 1);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
}

/* Another process writes between this one's reading and writing of the file. */
Test(tune, winners_of_two_processes_are_merged)
{
    make_folder();
    before_next_run = tune_elsewhere;
    cr_expect_eq(plan(tuned(), 64).timed, 2);
    cr_expect_null(before_next_run);
    for (int64_t n = 64; n <= 128; n += 64) {
        const outcome o = plan(tuned(), n);
        cr_expect(o.timed == 0 && o.cached == 1, "%lld: %d timed, %d cached", (long long)n, o.timed,
                  o.cached);
    }
    remove_folder();
}

/* A line that names what is not there is timed again; its number is only where to look first. */
Test(tune, a_winner_that_is_gone)
{
    static const struct {
        const char *old, *new;
        int is_there;
    } change[] = {
        {"fast:1", "fast:2", 0},          {"two\t1\t", "two\t0\t", 1}, {"two\t1\t", "two\t7\t", 1},
        {"planted\ttwo", "gone\ttwo", 0}, {"\ttwo\t", "\tthree\t", 0},
    };
    make_folder();
    size_t n;
    plan(tuned(), 64);
    scoped(release) char *text = read_text(&n);
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        const char *changed = replaced(text, change[i].old, change[i].new);
        write_text(changed, strlen(changed));
        outcome o = plan(tuned(), 64);
        cr_assert(o.timed == (change[i].is_there ? 0 : 2) && o.cached == change[i].is_there &&
                      strcmp(o.impl, "fast:1") == 0,
                  "%s", changed);
        cr_assert_eq(plan(tuned(), 64).cached, 1);
    }
    remove_folder();
}

Test(tune, what_is_no_file)
{
    char partial[160];
    struct stat s;
    make_folder();
    cr_assert_eq(mkfifo(file, 0600), 0);
    outcome o = plan(tuned(), 64);
    cr_assert(o.timed == 2 && strstr(o.note, "not a regular file") != NULL, "%s", o.note);
    cr_assert(stat(file, &s) == 0 && S_ISFIFO(s.st_mode));
    unlink(file);
    cr_assert_eq(mkdir(file, 0700), 0);
    o = plan(tuned(), 64);
    cr_assert(o.timed == 2 && strstr(o.note, "is ignored") != NULL, "%s", o.note);
    rmdir(file);

    snprintf(partial, sizeof partial, "%s.partial", file);
    cr_assert_eq(symlink("/dev/null", partial), 0);
    o = plan(tuned(), 64);
    cr_assert(o.timed == 2 && strstr(o.note, "cannot be written") != NULL, "%s", o.note);
    unlink(partial);

    adj_exec_opts nowhere = tuned();
    nowhere.tune_file = "/nonexistent/folder/tune";
    o = plan(nowhere, 64);
    cr_assert(o.timed == 2 && strstr(o.note, "cannot be written") != NULL, "%s", o.note);
    remove_folder();
}
