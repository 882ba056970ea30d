/* main.c - adjoint, the tool: finds the sub-command and runs it.
 *
 * Exit status: 0 done, 1 failed, 2 no clear answer, 3 wrong usage; 129, 130 or 143 training stopped
 * by SIGHUP, Ctrl-C or SIGTERM; 141 the reader closed the output. Output that cannot be written is
 * a failure, too. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "command.h"
#include "json.h"
#include "environment.h"

/* No file may get the number of a closed stdin, stdout or stderr, which others print to. Writing to
 * such a stdout fails with a message; messages to such a stderr are lost. */
static void open_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

static int is_any(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int unknown_command(const char *name)
{
    int n = 0;
    while (commands[n].name != NULL)
        n++;
    put_text(stderr, "adjoint: unknown command \"%s\"%s\n", name,
             did_you_mean(name, &commands[0].name, n, sizeof commands[0], "see adjoint --help").s);
    return EXIT_USAGE;
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return print_overview(stderr), EXIT_USAGE;
    char *name = argv[1], help[] = "--help", version[] = "version";
    int is_help = is_any(name, "--help", "-h", "help");
    if (is_help && argc < 3)
        return print_overview(stdout), EXIT_OK;
    if (is_help) { /* help COMMAND is COMMAND --help */
        argv[1] = name = argv[2];
        argv[2] = help;
        argc = 3;
    }
    if (is_any(name, "--version", "-V", version))
        name = version;
    if (strcmp(name, "--trial") == 0)
        return command_trial(argc - 1, argv + 1);
    if (strcmp(name, "--document") == 0)
        return command_document(argc - 1, argv + 1);
    for (const command *c = commands; c->name != NULL; c++)
        if (strcmp(name, c->name) == 0) {
            running_command = c->name;
            return c->run(argc - 1, argv + 1);
        }
    return unknown_command(name);
}

/* True if standard output is a pipe whose reader has ended, as in adjoint ops | head -1. */
static int has_no_reader(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

/* Ends every command: exit status 0 becomes 1 if the output cannot be written, or 141 without a
 * message if its reader has ended, as after SIGPIPE. A closed standard output is an error only if
 * the command printed something. */
static int close_output(int status)
{
    errno = 0;
    int failed = ferror(stdout), pending = __fpending(stdout) > 0, unread = has_no_reader();
    if (fclose(stdout) != 0 && (pending || errno != EBADF))
        failed = 1;
    if (!failed)
        return status;
    if (unread)
        return status <= EXIT_FAILED ? EXIT_SIGNAL + SIGPIPE : status;
    fprintf(stderr, "adjoint: standard output cannot be written%s%s\n", errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    return status == EXIT_OK ? EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
    spin_shortly(argv);
    open_standard();
    json_watch_memory();
    if (argc < 2 || strcmp(argv[1], "--trial") != 0) /* guard.c's child, which SIGPIPE ends */
        signal(SIGPIPE, SIG_IGN); /* lost output counts at the end; files are still written */
    signal(SIGXFSZ, SIG_IGN);     /* writing beyond a limit fails, as on a full disk */
    int status = run(argc, argv);
    return close_output(status);
}
