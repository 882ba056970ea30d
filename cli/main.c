/* main.c - adjoint, the tool: finds the sub-command and runs it.
 *
 * Exit status: 0 done, 1 failed, 2 no clear answer, 3 wrong usage; 129, 130 or 143 training stopped
 * by SIGHUP, Ctrl-C or SIGTERM. What was printed and could not be written is a failure, too. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "adjoint.h"
#include "command.h"
#include "graph/printable.h"

static const command commands[] = {
    {"train", "trains a model on images of digits", command_train},
    {"eval", "the test accuracy of weights in a file", command_eval},
    {"predict", "what images show, by weights in a file", command_predict},
    {"compare", "compares backends, types and layouts node by node", command_compare},
    {"selftest", "tries this machine's oneDNN, writes a quarantine file", command_selftest},
    {"inspect", "lists the tensors of a file: types, shapes, ranges", command_inspect},
    {"convert", "tensors to another format, or other programs' names", command_convert},
    {"models", "lists the models", command_models},
    {"gradcheck", "checks gradients against numbers made another way", command_gradcheck},
    {"bench", "times steps of a model, or the kernels of an op", command_bench},
};
enum { N_COMMAND = sizeof commands / sizeof commands[0] };

static int help(FILE *f, int status)
{
    fprintf(f, "usage: adjoint COMMAND [OPTION]...\n"
               "Small convolutional networks on a CPU. The commands:\n");
    for (int i = 0; i < N_COMMAND; i++)
        fprintf(f, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(f, "adjoint COMMAND --help lists a command's options; adjoint --version.\n");
    return status;
}

/* No file may get the number of a closed stdin, stdout or stderr, which others print to. Writing to
 * such a stdout fails, and is noticed; what is said to such a stderr is lost. */
static void open_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return help(stderr, EXIT_USAGE);
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return help(stdout, EXIT_OK);
    if (strcmp(name, "--version") == 0)
        return printf("adjoint %s\n", adj_version_text()), EXIT_OK;
    if (strcmp(name, "--trial") == 0)
        return command_trial(argc - 1, argv + 1);
    if (strcmp(name, "--sweep") == 0)
        return command_sweep(argc - 1, argv + 1);
    for (int i = 0; i < N_COMMAND; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);

    const char *nearest = nearest_name(name, &commands[0].name, N_COMMAND, sizeof commands[0]);
    put_text(stderr, "adjoint: unknown command \"%s\" ", name);
    if (nearest != NULL)
        fprintf(stderr, "(did you mean %s?)\n", nearest);
    else
        fprintf(stderr, "(see adjoint --help)\n");
    return EXIT_USAGE;
}

/* The end of every command: all that it printed has to be written, or 0 becomes 1. That a closed
 * output cannot be closed matters only to who printed something. */
static int close_output(int status)
{
    errno = 0;
    int failed = ferror(stdout), pending = __fpending(stdout) > 0;
    if (fclose(stdout) != 0 && (pending || errno != EBADF))
        failed = 1;
    if (!failed)
        return status;
    fprintf(stderr, "adjoint: standard output cannot be written%s%s\n", errno != 0 ? ": " : "",
            errno != 0 ? strerror(errno) : "");
    return status == EXIT_OK ? EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
    open_standard();
    int status = run(argc, argv);
    return close_output(status);
}
