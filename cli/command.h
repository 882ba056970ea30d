/* command.h - what the sub-commands share: exit statuses, options, and help for mistyped names. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

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
int command_compare(int argc, char **argv);
/* Hidden: one trial from stdin, its outcome to stdout (guard.c). */
int command_trial(int argc, char **argv);
/* Hidden: cases of selftest (selftest/child.c). */
int command_sweep(int argc, char **argv);
int command_selftest(int argc, char **argv);
int command_models(int argc, char **argv);
int command_gradcheck(int argc, char **argv);
int command_bench(int argc, char **argv);

typedef enum { OPTION_TEXT, OPTION_INTEGER, OPTION_REAL, OPTION_FLAG } option_kind;

typedef struct {
    const char *name;  /* "--epochs" */
    const char *value; /* "N", for the help; "" for a flag, which has none */
    const char *help;
    option_kind kind;
    void *to; /* const char *, int64_t or double, int64_t (1) of a flag; keeps its value when the
                 option is absent */
    double lowest, highest; /* of a number */
} option;

typedef struct {
    const char *command, *summary; /* "train"; "trains a model" */
    int n;
    const option *options;
} usage;

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
