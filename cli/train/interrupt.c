/* interrupt.c - see interrupt.h. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"

static volatile sig_atomic_t first_signal, has_note, is_terminal;

/* Handles a signal; calls only functions that are safe in a signal handler. */
static void on_signal(int number)
{
    static const char note[] =
        "\nnote: stopping after this step; press Ctrl-C again to stop without saving\n";
    const int before = errno;
    if (first_signal != 0) {
        signal(number, SIG_DFL);
        raise(number); /* takes effect when this handler returns */
        return;
    }
    first_signal = number;
    const size_t skipped =
        is_terminal ? 0 : 1; /* a terminal's cursor is behind ^C or the progress line */
    if (has_note && write(STDERR_FILENO, note + skipped, sizeof note - 1 - skipped) < 0)
        has_note = 0;
    errno = before;
}

void interrupt_catch(int prints)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    has_note = prints;
    is_terminal = isatty(STDERR_FILENO);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &a, NULL);
}

int interrupt_signal(void) { return first_signal; }
