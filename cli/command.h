/* command.h - declarations that the sub-commands share: exit statuses, options, and help for
 * mistyped names. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdint.h>
#include <stdio.h>

#include "adjoint.h"
#include "base/nearest.h"

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
/* Commands shown in the overview (help.c); the last has no name. */
extern const command commands[];

int command_train(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_predict(int argc, char **argv);
int command_compare(int argc, char **argv);
/* Runs one trial from stdin and writes its response to stdout; a hidden command (guard.c). */
int command_trial(int argc, char **argv);
int command_models(int argc, char **argv);
int command_summary(int argc, char **argv);
int command_graph(int argc, char **argv);
int command_gradcheck(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_ops(int argc, char **argv);
int command_op(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_emit(int argc, char **argv);
int command_version(int argc, char **argv);

typedef struct option {
    const char *name;  /* "--epochs" */
    const char *value; /* "N", for the help; "" for a flag, which has none */
    const char *help;
    /* Destination of the value, exactly one; unchanged when the option is absent. */
    const char **text;
    int64_t *integer, *flag; /* flag: 1 */
    double *real;
    double range[2];   /* range of a number */
    const char *words; /* accepted values of a text, "exact fast"; NULL: any */
    const char *bare;  /* value if none follows the option; NULL: a value is required */
    /* Further values for shell completion, besides words; returns NULL past the last. */
    const char *(*names)(int i);
    /* Not NULL: the value is a list of these items, such as "adamw,clip=1". The array ends with an
     * item without a name. Names have no dashes; "" is the item that is written without a name. */
    const struct option *items;
    /* Another option of the command, without which, or beside which, this one has no effect: it is
     * then refused. NULL: none. */
    const char *needs, *excludes;
} option;

typedef enum { NO_FAULT, NO_SUCH_WORD, NO_NUMBER, OUT_OF_RANGE } option_fault;
/* Parses and stores the option's value; stores nothing if it is invalid. */
option_fault option_store(const option *o, const char *text);

typedef struct { /* entry of a list; the last one has term NULL */
    const char *term, *text;
} remark;

typedef struct {
    const char *command, *summary; /* "train"; "Trains a model." */
    const option *options, *more;  /* each ends with an option without a name; NULL: none */
    /* Arguments that are not options: their name in the help, "NAME"; their destination, maximum
     * number and number. NULL: none. */
    const char *arguments, **argument;
    int max_arguments, *n_argument;
    const char *(*names)(int i); /* values for shell completion; returns NULL past the last */
    /* For the help: exit statuses besides done, failed and wrong usage; environment variables,
     * "ADJOINT_TUNE ADJOINT_PLAN"; examples of command lines. NULL: none. */
    const remark *statuses;
    const char *variables;
    const remark *examples;
} usage;

/* Environment variables of a command that plans and runs networks. */
#define PLAN_VARIABLES                                                                             \
    "ADJOINT_MAX_ISA ADJOINT_PLAN ADJOINT_QUARANTINE ADJOINT_TUNE "                                \
    "ONEDNN_MAX_CPU_ISA OMP_NUM_THREADS"
/* Environment variables of a command that also stores measurements. */
#define TUNED_VARIABLES PLAN_VARIABLES " XDG_CACHE_HOME"
/* Names for option.names, of models, optimizers and backends; ops have op_name_at. */
const char *model_name_at(int i);
const char *optimizer_name_at(int i);
const char *backend_name_at(int i);
/* Returns the i-th option of both lists, or NULL past the last. */
const option *option_at(const usage *u, int i);

#define BACKEND_HELP "onednn (default), direct or naive; a mix: onednn,max_pool=naive"
#define THREADS_HELP                                                                               \
    "number of threads; default: OMP_NUM_THREADS, else the cores within the CPU quota"
#define PRECISION_HELP "f32 (default); bf16 or f16: mixed precision with f32 parameters and losses"
#define MATH_HELP "exact (default); fast: faster algorithms with larger rounding errors"
#define MAP_HELP "tensor names in the weights file: pytorch, keras or a map file"
#define WEIGHTS_HELP                                                                               \
    "weights file, safetensors or .npz; - is standard input; default: the weights of the ONNX "    \
    "file --model"
#define JSON_HELP "writes JSON; - or no FILE: standard output"
#define MATH_WORDS "exact fast"                           /* in the order of adj_math */
#define PRECISION_WORDS "f32 bf16 f16"                    /* in the order of adj_precision */
#define SCHEDULE_WORDS "constant step exponential cosine" /* in the order of adj_schedule_kind */
/* Returns the index of the text among the words; negative if it is not there. */
int word_index(const char *words, const char *text);
enum { WORD_LIST = 128 };
/* "f32, bf16 or f16" */
const char *list_words(const char *words, char list[WORD_LIST]);

enum { CONTINUE = -1 };
/* Reads "--name value" and "--name=value", a name's beginning for the name where it is the only
 * such one. CONTINUE, or the exit status after --help, a hidden --document=FORM (help.c) or an
 * error (which is then printed). Values point into argv, in which lists are split. */
int parse_options(const usage *u, int argc, char **argv);

/* The name of the sub-command that runs, "train". */
extern const char *running_command;
/* These two print a sentence, whose arguments may be any text, on a line of its own (say.c): to the
 * output; as "adjoint COMMAND: sentence" to stderr, which returns status. A sentence that begins
 * with "note:" has no command in front; complain leaves out the name of the library's function in
 * front, "adj_run: ". */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the pointer; if it is NULL, complains of a lack of memory and ends the tool with
 * EXIT_FAILED. The next two end it likewise: they return n elements of this size, all zero, to be
 * freed; and a list of n elements with room for one more (base/room.h). */
void *or_exit(void *memory);
void *allocate(int64_t n, size_t size);
void *make_room(void *list, int64_t n, size_t size);
/* Complains of an error. Returns EXIT_USAGE if an argument is wrong, else EXIT_FAILED. */
int complain_of(const adj_error *error);

/* ---- a command line that repeats a run, quoted for a shell (repeat.c) ---- */

/* Starts the line with "adjoint gradcheck", preceded by ADJOINT_QUARANTINE=off if the environment
 * has it. */
void repeat_command(char *line, size_t size, const char *command);
/* Adds " word", in quotes if it has special characters of a shell. */
void repeat_word(char *line, size_t size, const char *word);
/* Adds " --option value", "" of a flag; NULL: nothing. Text that does not fit is cut off. */
void repeat_option(char *line, size_t size, const char *option, const char *value);
enum { NUMBER_TEXT = 40 };
/* Writes the shortest text that reads back as the value, of whole numbers without an exponent. */
const char *number_text(double value, char text[NUMBER_TEXT]);
/* Adds " --option value" for a number, unless it is the default. */
void repeat_number(char *line, size_t size, const char *option, double value, double default_value);

/* ---- help and completion scripts from the tables of options (help.c) ---- */

/* Prints an error for the first environment variable of the command that has an unknown value.
 * CONTINUE, or an exit status after a complaint. */
int check_variables(const usage *u);
/* Prints the help in at most 80 columns. */
void print_help(const usage *u);
void print_overview(FILE *f);
/* Prints the sub-command's section for "bash" or "zsh". Returns an exit status. */
int print_document(const usage *u, const char *form);
/* Runs the hidden adjoint --document FORM: prints a whole script for "bash" or "zsh", the names of
 * the sub-commands for "commands". Returns an exit status. */
int command_document(int argc, char **argv);

#endif
