/* crash.c - see crash.h. Handlers call only async-signal-safe functions: write and raise. */
#include "crash.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "guard.h"

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
    const double limit = kernel_limit(estimate);
    const struct sigaction action = {.sa_handler = tell_hang, .sa_flags = SA_RESTART};
    ring_in(0); /* the note is not read now */
    const char *name = adj_node_name(first), *quote = name[0] != '\0' ? "\"" : "";
    c_snprintf(note, sizeof note,
               "adjoint %s: note: the last kernel began %.3g s ago: %s%s%s%.60s%s by %.30s %.63s, "
               "estimated at %.2g s (adjoint compare --guard ends one that hangs)\n",
               (const char *)user, limit, adj_node_op(first), name[0] != '\0' ? " " : "", quote,
               name, quote, backend, impl, estimate);
    sigaction(SIGALRM, &action, NULL);
    ring_in(limit);
}
