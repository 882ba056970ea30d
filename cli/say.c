/* say.c - prints messages to stdout and stderr, without the name of the failed library function at
 * their start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/room.h"
#include "command.h"
#include "mpirun.h"

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vput_escaped(stdout, FOR_TERMINAL, format, args);
    va_end(args);
    fputc('\n', stdout);
}

/* Returns the sentence without the name of a function in front, such as "adj_exec_new: ". */
static const char *without_function(const char *sentence)
{
    const size_t n = strspn(sentence, "abcdefghijklmnopqrstuvwxyz_0123456789");
    const int has_name =
        strncmp(sentence, "adj_", 4) == 0 && sentence[n] == ':' && sentence[n + 1] == ' ';
    return sentence + (has_name ? n + 2 : 0);
}

/* Prints text without names of functions at the start and after each ": ". */
static void put_plain(FILE *f, const char *text)
{
    int is_start = 1;
    while (*text != '\0') {
        if (is_start)
            text = without_function(text);
        const char *colon = strstr(text, ": ");
        size_t n = colon != NULL ? (size_t)(colon - text) + 2 : strlen(text);
        (void)fwrite(text, 1, n, f);
        text += n;
        is_start = colon != NULL;
    }
}

const char *running_command = "";

/* Pause before a rank prints, so that the first rank has time to print a message that all ranks
 * have. It may end the others while they wait, which is shorter than the limit after which a rank
 * counts as lost. */
enum { MICROSECONDS = 500000, MORE = 25000, MAX_RANKS = 10 };

int complain(int status, const char *format, ...)
{
    const int has_ranks =
        strcmp(running_command, "train") == 0 || strcmp(running_command, "bench") == 0;
    const int rank = has_ranks ? mpirun_rank_here() : 0;
    if (rank > 0 && status == EXIT_OK) /* a warning, which all have */
        return status;
    if (rank > 0)
        usleep((useconds_t)(MICROSECONDS + MORE * (rank < MAX_RANKS ? rank : MAX_RANKS)));
    char *text = NULL, *line = NULL;
    size_t size = 0, length = 0;
    FILE *memory = open_memstream(&text, &size), *whole = open_memstream(&line, &length);
    FILE *to = memory != NULL ? memory : stderr; /* unescaped and in pieces when out of memory */
    FILE *said = whole != NULL ? whole : stderr;
    fflush(stdout); /* earlier output comes first in a redirected file */
    va_list args;
    va_start(args, format);
    if (strncmp(format, "note:", strlen("note:")) != 0) /* a note has no prefix */
        fprintf(said, "adjoint %s: ", running_command);
    if (rank > 0)
        fprintf(said, "rank %d: ", rank);
    vput_escaped(to, FOR_TERMINAL, format, args);
    va_end(args);
    if (memory != NULL && fclose(memory) == 0)
        put_plain(said, text);
    fputc('\n', said);
    if (whole != NULL && fclose(whole) == 0)
        fputs(line, stderr); /* flushed at once, as another rank may end this one */
    free(text);
    free(line);
    return status;
}

void *or_exit(void *memory)
{
    if (memory == NULL)
        exit(complain(EXIT_FAILED, "out of memory"));
    return memory;
}

void *allocate(int64_t n, size_t size) { return or_exit(calloc((size_t)n + 1, size)); }

void *make_room(void *list, int64_t n, size_t size) { return or_exit(with_room(list, n, size)); }

int complain_of(const adj_error *error)
{
    return complain(error->status == ADJ_EARG ? EXIT_USAGE : EXIT_FAILED, "%s", error->message);
}
