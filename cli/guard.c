/* guard.c - spawns this program again with a hidden command, sends it work through one pipe and
 * reads the response from another. Never fork: OpenMP's threads would be missing in the child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/c_locale.h"
#include "base/clock.h"
#include "check/inspect.h"
#include "command.h"
#include "guard.h"

enum { CHUNK = 1 << 16, MAX_RESPONSE = 1 << 30 };
/* Descriptor of an unnamed file in which the child notes its next operation; the note survives a
 * crash. */
enum { NOTE_FD = 3, NOTE = 256 };

typedef struct {
    pid_t pid;
    int to, from;        /* pipes; negative: closed */
    int note;            /* the child's NOTE_FD; negative: closed */
    double start, limit; /* seconds: start and limit of the operation */
    char operation[NOTE];
    char *response;
    size_t n, room;
} worker;

/* ---- the child ---- */

/* Starts this program with the hidden command, between the two pipes. SIGPIPE, which main ignores,
 * ends the child: it has nothing to do without a reader. */
static int spawn(worker *w, const char *isa, int in, int out)
{
    char parent[24], *arguments[] = {(char *)"adjoint", (char *)"--trial", parent,
                                     isa[0] != '\0' ? (char *)isa : NULL, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    snprintf(parent, sizeof parent, "%lld", (long long)getpid());
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    if (posix_spawnattr_init(&attributes) != 0)
        return posix_spawn_file_actions_destroy(&actions), -1;
    int failed =
        posix_spawn_file_actions_adddup2(&actions, in, 0) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, out, 1) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, w->note, NOTE_FD) != 0 ||
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawnattr_setsigdefault(&attributes, &defaults) != 0 ||
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF) != 0 ||
        posix_spawn(&w->pid, "/proc/self/exe", &actions, &attributes, arguments, environ) != 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed ? -1 : 0;
}

static int start(worker *w, const char *isa)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return -1;
    if (pipe2(out, O_CLOEXEC) != 0)
        return close(in[0]), close(in[1]), -1;
    w->note = memfd_create("adjoint", MFD_CLOEXEC);
    const int failed = w->note < 0 || spawn(w, isa, in[0], out[1]) != 0;
    close(in[0]);
    close(out[1]);
    w->to = in[1];
    w->from = out[0];
    if (!failed)
        fcntl(w->to, F_SETFL, O_NONBLOCK);
    return failed ? -1 : 0;
}

static int grow(worker *w)
{
    if (w->room - w->n >= CHUNK)
        return 0;
    size_t room = 2 * (w->room + CHUNK);
    char *more = room <= MAX_RESPONSE ? realloc(w->response, room) : NULL;
    if (more == NULL)
        return -1;
    w->response = more;
    w->room = room;
    return 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the time limit ---- */

double kernel_limit(double estimate)
{
    static const double least = 60, times = 1000;
    return estimate * times > least ? estimate * times : least;
}

/* Writes " in OPERATION" for the child's last note, or "". */
static void read_note(const worker *w, char text[NOTE])
{
    static const char before[] = " in ";
    const ssize_t n = pread(w->note, text + strlen(before), NOTE - sizeof before, 0);
    memcpy(text, before, strlen(before));
    text[n > 0 ? strlen(before) + (size_t)n : 0] = '\0';
}

/* Returns the seconds that are left to the child; seconds: the limit of all of it, 0: of each
 * operation. */
static double seconds_left(worker *w, double seconds)
{
    static const char estimated[] = "(estimated at ";
    char note[NOTE];
    read_note(w, note);
    if (w->limit == 0 || (seconds == 0 && strcmp(note, w->operation) != 0)) {
        const char *at = strstr(note, estimated);
        memcpy(w->operation, note, NOTE);
        w->start = seconds_now();
        w->limit = seconds > 0  ? seconds
                   : at != NULL ? kernel_limit(c_strtod(at + strlen(estimated), NULL))
                                : kernel_limit(0);
    }
    return w->start + w->limit - seconds_now();
}

/* Sends and receives until the child closes its end. Returns 0 when done, 1 after the time limit,
 * -1 when out of memory. */
static int converse(worker *w, const char *request, size_t bytes, double seconds)
{
    size_t sent = 0;
    while (w->from >= 0) {
        struct pollfd p[2] = {{w->from, POLLIN, 0}, {w->to, POLLOUT, 0}};
        const double left = seconds_left(w, seconds);
        if (left <= 0)
            return 1;
        poll(p, 2, left < 1 ? (int)(1e3 * left) + 1 : 1000);
        if (p[1].revents != 0) {
            ssize_t n = write(w->to, request + sent, bytes - sent);
            sent += n > 0 ? (size_t)n : 0;
            if (sent == bytes || (n < 0 && errno != EAGAIN && errno != EINTR))
                close_end(&w->to);
        }
        if (p[0].revents != 0) {
            if (grow(w) != 0)
                return -1;
            ssize_t n = read(w->from, w->response + w->n, CHUNK);
            w->n += n > 0 ? (size_t)n : 0;
            if (n == 0 || (n < 0 && errno != EINTR))
                close_end(&w->from);
        }
    }
    return 0;
}

/* Waits for the child to end, at most some seconds: it may hang after closing its pipe. */
static int wait_for(pid_t pid, double seconds, int *status)
{
    double end = seconds_now() + seconds;
    while (waitpid(pid, status, WNOHANG) == 0) {
        if (seconds_now() > end) {
            kill(pid, SIGKILL);
            waitpid(pid, status, 0);
            return 1;
        }
        usleep(1000);
    }
    return 0;
}

adj_status guard_run(void *user, const char *isa, const void *request, size_t bytes,
                     void **response, size_t *response_bytes, adj_error *error)
{
    const double seconds = *(const double *)user;
    worker w = {.pid = -1, .to = -1, .from = -1, .note = -1};
    char note[NOTE];
    int status = 0, late = 0, no_memory = 0;
    *error = (adj_error){0};
    int failed = start(&w, isa);
    if (failed == 0) {
        late = converse(&w, request, bytes, seconds);
        no_memory = late < 0;
        late |= wait_for(w.pid, late != 0 ? 0 : w.limit, &status);
    }
    read_note(&w, note);
    close_end(&w.to);
    close_end(&w.from);
    close_end(&w.note);
    if (failed != 0)
        adj_error_set(error, ADJ_EBACKEND, "no process could be started");
    else if (no_memory)
        adj_error_set(error, ADJ_EBACKEND, "no memory for the response");
    else if (late != 0)
        adj_error_set(error, ADJ_EBACKEND, "no response in %g s%s", w.limit, note);
    else if (WIFSIGNALED(status))
        adj_error_set(error, ADJ_EBACKEND, "SIG%s%s", sigabbrev_np(WTERMSIG(status)), note);
    else if (WEXITSTATUS(status) != EXIT_OK)
        adj_error_set(error, ADJ_EBACKEND, "exit status %d%s", WEXITSTATUS(status), note);
    if (error->status != ADJ_OK) {
        free(w.response);
        w.response = NULL;
    }
    *response = w.response;
    *response_bytes = w.n;
    return error->status;
}

/* ---- the other end ---- */

/* Returns the ADJOINT_MAX_ISA that corresponds to oneDNN's isa. */
static const char *own_isa(const char *isa)
{
    if (strcmp(isa, "all") == 0 || strncmp(isa, "avx10", 5) == 0 || strstr(isa, "amx") != NULL)
        return "amx";
    if (strncmp(isa, "avx512", 6) == 0)
        return strstr(isa, "16") != NULL ? "avx512_bf16" : "avx512";
    return strncmp(isa, "avx2", 4) == 0 ? "avx2" : "base";
}

/* Sets oneDNN's limit, under both of its names, and ADJOINT_MAX_ISA, and starts this program again,
 * as a library may read them before main. Returns EXIT_FAILED if it cannot. */
static int limit_isa(char *parent, const char *isa)
{
    char limit[64] = "", *arguments[] = {(char *)"adjoint", (char *)"--trial", parent, NULL};
    for (size_t i = 0; isa[i] != '\0' && i + 1 < sizeof limit; i++)
        limit[i] = (char)(isa[i] >= 'a' && isa[i] <= 'z' ? isa[i] - 'a' + 'A' : isa[i]);
    if (setenv("ONEDNN_MAX_CPU_ISA", limit, 1) == 0 && setenv("DNNL_MAX_CPU_ISA", limit, 1) == 0 &&
        setenv("ADJOINT_MAX_ISA", own_isa(isa), 1) == 0)
        (void)execv("/proc/self/exe", arguments);
    return EXIT_FAILED;
}

/* Makes the kernel kill this process when the parent's starting thread ends, which is the tool's
 * first thread, since no child is started in a parallel region. Returns 0 if the parent, whose pid
 * is argv[1], is dead already. */
static int ends_with_parent(int argc, char **argv)
{
    if (argc < 2) /* by hand */
        return 1;
#ifdef __linux__
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        return 0;
#endif
    return getppid() == strtoll(argv[1], NULL, 10); /* it may have died before */
}

/* Returns the whole content of a file, to be freed; NULL when out of memory or unreadable. */
static void *read_all(int fd, size_t *bytes)
{
    worker w = {.from = fd};
    ssize_t n;
    while (grow(&w) == 0 && (n = read(fd, w.response + w.n, CHUNK)) != 0) {
        if (n < 0 && errno != EINTR)
            break;
        w.n += n > 0 ? (size_t)n : 0;
    }
    *bytes = w.n;
    return w.response;
}

/* Stores the note of adj_trial_run. */
static void write_note(void *user, const char *note)
{
    char text[NOTE] = "";
    (void)user;
    snprintf(text, sizeof text, "%s", note);
    if (pwrite(NOTE_FD, text, sizeof text, 0) < 0)
        return; /* hidden: run only by guard.c */
}

int command_trial(int argc, char **argv)
{
    size_t bytes = 0, response_bytes = 0;
    if (!ends_with_parent(argc, argv))
        return EXIT_FAILED;
    if (argc > 2)
        return limit_isa(argv[1], argv[2]);
    void *response = NULL, *request = read_all(STDIN_FILENO, &bytes);
    adj_status status = adj_trial_run(request, bytes, argc > 1 ? write_note : NULL, NULL, &response,
                                      &response_bytes);
    free(request);
    int failed = status != ADJ_OK ||
                 fwrite(response, 1, response_bytes, stdout) != response_bytes ||
                 fflush(stdout) != 0;
    free(response);
    return failed ? EXIT_FAILED : EXIT_OK;
}

/* ---- a crash or a hang of the tool itself ----
 *
 * Handlers call only async-signal-safe functions: write and raise. */

static const char *announced = "";

/* The signal's own action is back already (SA_RESETHAND), and comes when the handler returns. */
static void tell(int signal)
{
    const ssize_t written = write(STDERR_FILENO, announced, strlen(announced));
    (void)written; /* a failed write to standard error cannot be reported */
    raise(signal);
}

void announce_crashes(const char *line)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    struct sigaction action = {.sa_handler = tell, .sa_flags = (int)SA_RESETHAND}, before;
    announced = line;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL); /* a sanitizer prints its own report */
}

/* ---- hangs ---- */

static char note[400];

static void tell_hang(int signal)
{
    const ssize_t written = write(STDERR_FILENO, note, strlen(note));
    (void)signal, (void)written;
}

static void ring_in(double seconds)
{
    const struct itimerval t = {.it_value.tv_sec = (time_t)seconds};
    setitimer(ITIMER_REAL, &t, NULL);
}

void end_of_kernels(void) { ring_in(0); }

void announce_hangs(void *user, const adj_node *first, const char *backend, const char *impl,
                    double estimate)
{
    (void)user;
    const double limit = kernel_limit(estimate);
    const struct sigaction action = {.sa_handler = tell_hang, .sa_flags = SA_RESTART};
    ring_in(0); /* the note is not read now */
    const char *name = adj_node_name(first), *quote = name[0] != '\0' ? "\"" : "";
    c_snprintf(note, sizeof note,
               "adjoint %s: note: the last kernel began %.3g s ago: %s%s%s%.60s%s by %.30s %.63s, "
               "estimated at %.2g s (adjoint compare --guard ends one that hangs)\n",
               running_command, limit, adj_node_op(first), name[0] != '\0' ? " " : "", quote, name,
               quote, backend, impl, estimate);
    sigaction(SIGALRM, &action, NULL);
    ring_in(limit);
}
