/* test_interrupt.c - Ctrl-C during a training. The log is a full pipe, on which the training waits
 * until the test reads it: the test knows where it is. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/small_data.h"
#include "tests/plan.h"

static finished r;

static const char note[] =
    "note: stopping after this step; press Ctrl-C again to stop without saving\n";

typedef struct {
    folder data;
    file_name log, out;
    int pipe; /* both ends of log */
    child c;
} training;

static void pause_ms(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }

/* True if the process catches the signal: its bit in /proc/PID/status is set. */
static int is_caught(pid_t pid, int number)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "SigCgt:", 7) == 0)
            mask = strtoull(line + 7, NULL, 16);
    fclose(f);
    return mask >> (number - 1) & 1;
}

static void expect_running(const child *c)
{
    siginfo_t ended = {0};
    cr_assert_eq(waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    cr_assert_eq(ended.si_pid, 0, "it has ended");
}

/* Starts a training and returns when it catches signals and waits for room in the pipe. output: as
 * of child_start. */
static void start(training *t, const char *out, int output)
{
    static char filler[1 << 20];
    t->data = small_data();
    t->log = in_folder(&t->data, "log");
    t->out = in_folder(&t->data, out);
    cr_assert_eq(mkfifo(t->log.s, 0600), 0);
    t->pipe = open(t->log.s, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    cr_assert_geq(t->pipe, 0);
    while (write(t->pipe, filler, sizeof filler) > 0) {
    }
    while (write(t->pipe, filler, 1) > 0) {
    }
    t->c = child_start(WORDS("train", "--data", t->data.path, "--model", "lenet5", "--epochs",
                             "100000", "--threads", "1", "--log", t->log.s, "--out", t->out.s),
                       output);
    while (!is_caught(t->c.pid, SIGINT)) {
        expect_running(&t->c);
        pause_ms(2);
    }
}

static void wait_for_note(const training *t)
{
    char text[PRINTED];
    ssize_t n = 0;
    while (n == 0 || strstr(text, note) == NULL) {
        n = pread(fileno(t->c.err), text, sizeof text - 1, 0);
        cr_assert_geq(n, 0);
        text[n] = '\0';
        expect_running(&t->c);
        pause_ms(2);
    }
}

/* Reads the log until the training has ended. */
static void finish(training *t, finished *r)
{
    char text[4096];
    siginfo_t ended = {0};
    while (ended.si_pid == 0) {
        while (read(t->pipe, text, sizeof text) > 0) {
        }
        cr_assert_eq(waitid(P_PID, (id_t)t->c.pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        pause_ms(2);
    }
    child_finish(&t->c, r);
    close(t->pipe);
}

Test(interrupt, the_first_is_answered_at_once_and_saves)
{
    training t;
    start(&t, "out.safetensors", -1);
    kill(t.c.pid, SIGINT);
    wait_for_note(&t); /* the training has not gone on */
    finish(&t, &r);
    cr_expect_eq(r.status, 130, "%d: %s", r.status, r.err);
    cr_expect_str_eq(r.err, note);
    cr_expect_eq(access(t.out.s, F_OK), 0, "no weights");
    folder_remove(&t.data);
}

Test(interrupt, the_second_ends_at_once_without_saving)
{
    static const int seconds[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        training t;
        start(&t, "out.safetensors", -1);
        kill(t.c.pid, SIGINT);
        wait_for_note(&t);
        kill(t.c.pid, seconds[i]);
        child_finish(&t.c, &r);
        cr_expect_eq(r.status, 128 + seconds[i], "%d: %s", r.status, r.err);
        cr_expect_str_eq(r.err, note);
        cr_expect_neq(access(t.out.s, F_OK), 0, "there are weights");
        close(t.pipe);
        folder_remove(&t.data);
    }
}

/* Ctrl-C also ends the reader in "train | tee log". */
Test(interrupt, saves_without_a_reader_of_its_output)
{
    training t;
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    start(&t, "out", ends[1]);
    close(ends[0]);
    close(ends[1]);
    kill(t.c.pid, SIGINT);
    wait_for_note(&t);
    finish(&t, &r);
    cr_expect_eq(r.status, 128 + SIGINT, "%s", r.err);
    folder out;
    snprintf(out.path, sizeof out.path, "%.60s", t.out.s);
    cr_expect_eq(access(in_folder(&out, "weights.safetensors").s, F_OK), 0, "no weights");
    cr_expect_eq(access(in_folder(&out, "report.html").s, F_OK), 0, "no report");
    folder_remove(&out);
    folder_remove(&t.data);
}

/* The reader in "train | head -1" ends while the training goes on. */
Test(interrupt, goes_on_and_saves_when_the_reader_of_its_output_ends)
{
    scoped(folder_remove) folder data = small_data();
    const file_name out = in_folder(&data, "out.safetensors"), log = in_folder(&data, "log");
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    signal(SIGPIPE, SIG_DFL);
    child c = child_start(WORDS("train", "--data", data.path, "--model", "lenet5", "--epochs", "3",
                                "--threads", "1", "--log", log.s, "--out", out.s),
                          ends[1]);
    close(ends[0]);
    close(ends[1]);
    child_finish(&c, &r);
    cr_expect_eq(r.status, 128 + SIGPIPE, "%d: %s", r.status, r.err);
    cr_expect_null(strstr(r.err, "cannot be written"), "%s", r.err);
    cr_expect_eq(access(out.s, F_OK), 0, "no weights");
    FILE *f = fopen(log.s, "r");
    char line[4096];
    int epochs = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        epochs += strstr(line, "\"event\":\"epoch\"") != NULL;
    cr_expect_eq(epochs, 3);
    if (f != NULL)
        fclose(f);
}
