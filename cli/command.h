/* command.h - what the sub-commands share: exit statuses, options, and help for mistyped names. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdint.h>

#include "graph/nearest.h"

enum {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_INCONCLUSIVE = 2,
    EXIT_USAGE = 3,
    EXIT_SIGNAL = 128 /* and the number of the signal that stopped the work */
};

typedef struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the sub-command's name; returns exit status */
} command;

int command_train(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_predict(int argc, char **argv);
int command_compare(int argc, char **argv);
/* Hidden: one trial from stdin, its outcome to stdout (guard.c). */
int command_trial(int argc, char **argv);
/* Hidden: cases of selftest (selftest/child.c). */
int command_sweep(int argc, char **argv);
int command_selftest(int argc, char **argv);
int command_models(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_gradcheck(int argc, char **argv);
int command_bench(int argc, char **argv);

typedef struct {
    const char *name;  /* "--epochs" */
    const char *value; /* "N", for the help; "" for a flag, which has none */
    const char *help;
    /* Where the value goes, one of them; what is there stays when the option is absent. */
    const char **text;
    int64_t *integer, *flag; /* flag: 1 */
    double *real;
    double range[2];   /* of a number */
    const char *words; /* what a text must be one of, "exact fast"; NULL: any */
} option;

typedef enum { NO_FAULT, NO_SUCH_WORD, NO_NUMBER, OUT_OF_RANGE } option_fault;
/* Puts the value that the text says where it goes; not when something is wrong with it. */
option_fault option_store(const option *o, const char *text);

typedef struct {
    const char *command, *summary; /* "train"; "trains a model" */
    const option *options, *more;  /* each ends with an option without a name; NULL: none */
    /* Words that are no options: what the help calls them, "NAME"; where they go, at most so many,
     * and their number. NULL: none. */
    const char *arguments, **argument;
    int max_arguments, *n_argument;
} usage;

#define MATH_WORDS "exact fast"        /* in the order of adj_math */
#define PRECISION_WORDS "f32 bf16 f16" /* of adj_precision */
/* Where the text is among the words, 0, 1, ...; negative: nowhere. */
int word_index(const char *words, const char *text);
enum { WORD_LIST = 128 };
/* "f32, bf16 or f16" */
const char *list_words(const char *words, char list[WORD_LIST]);

enum { CONTINUE = -1 };
/* Reads "--name value" and "--name=value". CONTINUE, or the exit status after --help or an error
 * (which is then printed). */
int parse_options(const usage *u, int argc, char **argv);

/* These two print a sentence, whose arguments may be any text, on a line of its own (say.c): to the
 * output; as "adjoint COMMAND: sentence" to stderr, which returns status. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int complain(const char *command, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
