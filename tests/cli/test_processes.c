/* test_processes.c - the tool among other processes: Ctrl-C during a training, whose log is a full
 * pipe, on which the training waits until the test reads it, so that the test knows where it is;
 * child processes, which end with the tool, however it ends; and load by others, from the columns
 * of /proc/stat. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process.h"
#include "cli/small_data.h"
#include "cli/train/progress.h"
#include "cli/train_log.h"
#include "tests/plan.h"

static const char note[] =
    "note: stopping after this step; press Ctrl-C again to stop without saving\n";

#define TRAIN "train --data . --model lenet5 --threads 1 --log log "

static child run;
static int log_pipe; /* both ends */

/* Starts a training and returns when it catches signals and waits for room in the pipe. output: as
 * of child_start. */
static void start(const char *line, int output)
{
    static char filler[1 << 20];
    unlink("log");
    cr_assert_eq(mkfifo("log", 0600), 0);
    log_pipe = open("log", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    cr_assert_geq(log_pipe, 0);
    while (write(log_pipe, filler, sizeof filler) > 0) {
    }
    while (write(log_pipe, filler, 1) > 0) {
    }
    run = child_start(split(line), output);
    while (!is_in_signals(run.pid, "SigCgt:", SIGINT)) {
        cr_assert_not(has_ended(&run));
        pause_ms(2);
    }
}

/* Presses Ctrl-C, and waits until that is answered. */
static void interrupt(void)
{
    char text[PRINTED];
    ssize_t n = 0;
    kill(run.pid, SIGINT);
    while (n == 0 || strstr(text, note) == NULL) {
        n = pread(fileno(run.err), text, sizeof text - 1, 0);
        cr_assert_geq(n, 0);
        text[n] = '\0';
        cr_assert_not(has_ended(&run));
        pause_ms(2);
    }
}

/* Reads the log until the training has ended, as it does when interrupted. */
static void finish(void)
{
    char text[4096];
    while (!has_ended(&run)) {
        while (read(log_pipe, text, sizeof text) > 0) {
        }
        pause_ms(2);
    }
    child_finish(&run);
    close(log_pipe);
    cr_expect_eq(ran.status, 128 + SIGINT, "%d: %s", ran.status, ran.err);
}

TestSuite(interrupt, .init = enter_small_data, .fini = leave);

Test(interrupt, the_first_is_answered_at_once_and_saves)
{
    start(TRAIN "--epochs 100000 --out out.safetensors", -1);
    interrupt(); /* the training has not gone on */
    finish();
    cr_expect_str_eq(ran.err, note);
    cr_expect_eq(access("out.safetensors", F_OK), 0, "no weights");
}

Test(interrupt, the_second_ends_at_once_without_saving)
{
    static const int seconds[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        start(TRAIN "--epochs 100000 --out out.safetensors", -1);
        interrupt();
        stop_child(&run, seconds[i]);
        close(log_pipe);
        cr_expect_str_eq(ran.err, note);
        cr_expect_neq(access("out.safetensors", F_OK), 0, "there are weights");
    }
}

/* Ctrl-C also ends the reader in "train | tee log". */
Test(interrupt, saves_without_a_reader_of_its_output)
{
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    start(TRAIN "--epochs 100000 --out out", ends[1]);
    close(ends[0]);
    interrupt();
    finish();
    cr_expect_eq(access("out/weights.safetensors", F_OK), 0, "no weights");
    cr_expect_eq(access("out/report.html", F_OK), 0, "no report");
}

/* The reader in "train | head -1" ends while the training goes on. */
Test(interrupt, goes_on_and_saves_when_the_reader_of_its_output_ends)
{
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    signal(SIGPIPE, SIG_DFL);
    run = child_start(split(TRAIN "--epochs 3 --out out.safetensors"), ends[1]);
    close(ends[0]);
    child_finish(&run);
    cr_expect_eq(ran.status, 128 + SIGPIPE, "%d: %s", ran.status, ran.err);
    cr_expect_null(strstr(ran.err, "cannot be written"), "%s", ran.err);
    cr_expect_eq(access("out.safetensors", F_OK), 0, "no weights");
    cr_expect_eq(log_count(read_log("log"), "epoch"), 3);
}

enum { DEADLINE = 5 }; /* seconds; a batch or trial below takes longer */

static const char *const largest_cases[] = {
    "--full",   "--op", "conv2d",    "--dtype", "f32",        "--kernel", "7",
    "--stride", "1",    "--padding", "SAME",    "--channels", "33,64",    NULL};
static const char *const guarded[] = {
    "compare",   "--op",         "conv2d",  "--in",   "1,96,96,64", "--filter", "7,7,64,64",
    "--configs", "onednn,naive", "--guard", "--runs", "1",          NULL};

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
        pause_ms(10);
    }
    for (pid_t id; (id = child_of(getpid())) > 0; waitpid(id, NULL, 0))
        kill(id, SIGKILL);
    return 0;
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
        for (int k = 0; from_child && k < 30000 && child_of(c.pid) == 0; k++)
            pause_ms(1);
        pause_ms(ms);
        stop_child(&c, SIGKILL);
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

Test(children, do_not_ignore_sigpipe)
{
    adopt_orphans();
    child c = child_start(guarded, -1);
    pid_t trial = 0;
    for (int i = 0; i < 10000 && (trial = trial_of(c.pid)) == 0; i++)
        pause_ms(1);
    cr_assert_gt(trial, 0);
    cr_expect_not(is_in_signals(trial, "SigIgn:", SIGPIPE));
    stop_child(&c, SIGKILL);
    cr_expect(no_process_left());
}

static double busy(const char *text, int first, int last)
{
    cpu_set_t ours;
    CPU_ZERO(&ours);
    for (int i = first; i <= last; i++)
        CPU_SET(i, &ours);
    FILE *f = fmemopen((char *)text, strlen(text), "r");
    double seconds = cpu_busy(f, &ours, 100);
    fclose(f);
    return seconds;
}

/* user 100, nice 20, system 30, irq 4, softirq 5, steal 600, in hundredths; idle and iowait are not
 * busy, and guests are user's and nice's already. */
Test(neighbors, columns)
{
    static const char text[] = "cpu  1 2 3 4 5 6 7 8 9 10\n"
                               "cpu0 100 20 30 7000 800 4 5 600 50 10\n"
                               "cpu1 1 0 0 0 0 0 0 0 0 0\n"
                               "cpu11 0 0 1000 0 0 0 0 0\n"
                               "intr 5 6 7\ncpuinfo 3\n";
    cr_expect_float_eq(busy(text, 0, 0), 7.59, 1e-9);
    cr_expect_float_eq(busy(text, 0, 1), 7.60, 1e-9);
    cr_expect_float_eq(busy(text, 11, 11), 10, 1e-9);
    cr_expect_eq(busy(text, 2, 9), -1, "none of ours");
    cr_expect_eq(busy("cpu", 0, 1), -1);
    cr_expect_eq(busy("cpu99999999999999999999 1 2\n", 0, 1), -1);
    cr_expect_float_eq(busy("cpu0 x\n", 0, 0), 0, 0);
}

Test(neighbors, what_others_took)
{
    const cpu_times from = {10, 100, 20}, to = {14, 107, 24}, unknown = {14, -1, 24};
    cr_expect_float_eq(cpu_neighbors(&from, &to), 0.75, 1e-12);
    cr_expect_eq(cpu_neighbors(&from, &from), 0);
    cr_expect_eq(cpu_neighbors(&from, &unknown), 0);
    cr_expect_eq(cpu_neighbors(&unknown, &to), 0);
    const cpu_times alone = {14, 103, 24}; /* clocks differ a little */
    cr_expect_eq(cpu_neighbors(&from, &alone), 0);
}

/* This process alone takes time: its own is not others'. */
Test(neighbors, here)
{
    const cpu_times from = cpu_times_now();
    cr_expect(from.at > 0 && (from.busy > 0 || from.busy == -1) && from.own >= 0);
    volatile double sum = 0;
    for (int i = 0; i < 1000000; i++)
        sum = sum + 1;
    const cpu_times to = cpu_times_now();
    cr_expect(to.own >= from.own && to.busy >= from.busy);
}

/* OMP_WAIT_POLICY is no advice where the environment sets it. */
Test(neighbors, advice)
{
    char text[ADVICE_TEXT];
    unsetenv("OMP_WAIT_POLICY");
    cr_expect_str_eq(cpu_advice(2.4, 8, text),
                     "note: other processes keep 2.4 of 8 processors busy: --threads 6 or "
                     "OMP_WAIT_POLICY=passive may be faster");
    expect_text(cpu_advice(7.6, 8, text), ": --threads 1 or OMP_WAIT_POLICY=pas");
    setenv("OMP_WAIT_POLICY", "active", 1);
    expect_text(cpu_advice(1, 2, text), ": --threads 1 may be faster");
}
