/* test_children.c - the tool's child processes end with it, however it ends. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include "cli/child.h"
#include "tests/repeat.h"

static finished f;

enum { DEADLINE = 5 }; /* seconds; a batch or trial below takes longer */

static const char *const largest_cases[] = {
    "--full",   "--op", "conv2d",    "--dtype", "f32",        "--kernel", "7",
    "--stride", "1",    "--padding", "SAME",    "--channels", "33,64",    NULL};
static const char *const guarded[] = {
    "compare",   "--op",         "conv2d",  "--in",   "1,96,96,64", "--filter", "7,7,64,64",
    "--configs", "onednn,naive", "--guard", "--runs", "1",          NULL};

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* Orphans become this process's children. */
static void adopt_orphans(void) { cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }

/* Whether all orphans end in time; else they are killed. */
static int no_process_left(void)
{
    for (int i = 0; i < DEADLINE * 100; i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return 1;
        sleep_ms(10);
    }
    int id = 0;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)getpid(), (int)getpid());
    FILE *list = fopen(path, "r");
    while (list != NULL && fscanf(list, "%d", &id) == 1)
        kill(id, SIGKILL);
    if (list != NULL)
        fclose(list);
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    return 0;
}

/* Waits until the tool has started a process. */
static void wait_for_child(pid_t tool)
{
    char path[64];
    int id;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)tool, (int)tool);
    for (int i = 0, found = 0; i < 30000 && !found; i++) {
        FILE *list = fopen(path, "r");
        found = list != NULL && fscanf(list, "%d", &id) == 1;
        if (list != NULL)
            fclose(list);
        if (!found)
            sleep_ms(1);
    }
}

/* Kills the program so many times, each some time within `max` milliseconds from its start, or from
 * that of its first process. */
static void kill_at_random(int kills, const char *program, const char *const words[],
                           int from_child, int max)
{
    unsigned seed = (unsigned)getpid() ^ (unsigned)time(NULL);
    int clean = 0;
    adopt_orphans();
    for (int i = 0; i < kills; i++) {
        int ms = (int)(rand_r(&seed) % (unsigned)max);
        child c = child_start_program(program, words, -1);
        if (from_child)
            wait_for_child(c.pid);
        sleep_ms(ms);
        kill(c.pid, SIGKILL);
        child_finish(&c, &f);
        cr_assert_eq(f.status, 128 + SIGKILL, "%d %s", f.status, f.err);
        int none = no_process_left();
        cr_expect(none, "a process is left (killed after %d ms)", ms);
        clean += none;
    }
    fprintf(stderr, "%d killed: no process left after %d\n", kills, clean);
}

Test(children, end_with_a_killed_sweep)
{
    kill_at_random(repeats(5), "tools/sweep", largest_cases, 0, 600);
}

Test(children, end_with_a_killed_compare)
{
    kill_at_random(repeats(2), "adjoint", guarded, 1, 200);
}

/* The mask of signals that the tool's child ignores, once it runs the hidden command. */
static unsigned long long ignored_by_child(pid_t tool, const char *command)
{
    char path[64], text[4096];
    for (int i = 0, id; i < 10000; i++) {
        snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)tool, (int)tool);
        FILE *f = fopen(path, "r");
        int found = f != NULL && fscanf(f, "%d", &id) == 1;
        if (f != NULL)
            fclose(f);
        for (int k = 0; k < 2 && found; k++) { /* first the words, then the signals */
            snprintf(path, sizeof path, k == 0 ? "/proc/%d/cmdline" : "/proc/%d/status", id);
            f = fopen(path, "r");
            size_t n = f != NULL ? fread(text, 1, sizeof text - 1, f) : 0;
            if (f != NULL)
                fclose(f);
            text[n] = '\0';
            if (k == 0)
                found = n > sizeof "adjoint" && strcmp(text + sizeof "adjoint", command) == 0;
        }
        const char *mask = found ? strstr(text, "SigIgn:") : NULL;
        if (mask != NULL)
            return strtoull(mask + strlen("SigIgn:"), NULL, 16);
        sleep_ms(1);
    }
    cr_assert(0, "no process %s was seen", command);
    return 0;
}

Test(children, do_not_ignore_sigpipe)
{
    adopt_orphans();
    child c = child_start(guarded, -1);
    cr_expect_eq(ignored_by_child(c.pid, "--trial") >> (SIGPIPE - 1) & 1, 0);
    kill(c.pid, SIGKILL);
    child_finish(&c, &f);
    cr_expect(no_process_left());
}
