/* say.c - sentences to the output and to stderr. */
#include "command.h"
#include "graph/printable.h"

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vput_escaped(stdout, FOR_TERMINAL, format, args);
    va_end(args);
    fputc('\n', stdout);
}

int complain(const char *command, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "adjoint %s: ", command);
    vput_escaped(stderr, FOR_TERMINAL, format, args);
    va_end(args);
    fputc('\n', stderr);
    return status;
}
