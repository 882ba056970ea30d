/* help.c - help as text for a terminal, and completion scripts for bash and zsh, from the tables of
 * options. docs/man.sh makes manual pages of the help. Names of models, ops and optimizers are
 * written into the scripts, which are installed with the tool. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "terminal.h"

/* The sub-commands, in the order of adjoint help. */
const command commands[] = {
    {"train", "trains a model on images", command_train},
    {"eval", "measures the accuracy of saved weights on a data set", command_eval},
    {"predict", "classifies images with saved weights", command_predict},
    {"models", "lists the models", command_models},
    {"summary", "prints a table of a model's layers", command_summary},
    {"graph", "prints or draws a model's nodes, gradients or plan", command_graph},
    {"gradcheck", "checks gradients against independent references", command_gradcheck},
    {"compare", "compares backends, types, layouts and threads node by node", command_compare},
    {"bench", "benchmarks a model's steps or an op's kernels", command_bench},
    {"ops", "lists the ops, their operands and attributes", command_ops},
    {"op", "runs one op or its gradients on tensors from a file", command_op},
    {"inspect", "lists the tensors of a file: names, shapes, ranges", command_inspect},
    {"convert", "converts tensor files between formats and naming schemes", command_convert},
    {"emit", "writes a network as one C file for any machine", command_emit},
    {"version", "prints versions, instruction sets, caches and threads", command_version},
    {NULL, NULL, NULL},
};

enum { COLUMNS = 80, INDENT = 2, LEFT = 24 };

static const remark all_statuses[] = {
    {"0", "success; no error found"},
    {"1", "failure, or an error found by a check"},
    {"3", "usage error; nothing was done"},
    {"141", "the reader closed the output pipe, as in | head -1"},
    {NULL, NULL},
};

/* words: the accepted values, several with commas if is_list is 1; NULL: any value. */
static const struct {
    remark help;
    const char *words;
    int is_list;
} variables[] = {
    {{"ADJOINT_MAX_ISA",
      "highest instruction set for adjoint's own kernels: base, avx2, avx512, avx512_bf16 or amx"},
     "base avx2 avx512 avx512_bf16 amx",
     0},
    {{"ADJOINT_PLAN",
      "unfused, tune or unfused,tune: for every plan, disables fusion, enables tuning"},
     "unfused tune",
     1},
    {{"ADJOINT_QUARANTINE", "off: allows oneDNN implementations known to be wrong"}, "off", 0},
    {{"ADJOINT_TUNE", "file that stores tuning results; off: no tuning"}, NULL, 0},
    {{"ONEDNN_MAX_CPU_ISA", "highest instruction set for oneDNN, such as AVX2"}, NULL, 0},
    {{"XDG_CACHE_HOME", "cache folder; default: ~/.cache"}, NULL, 0},
    {{"OMP_NUM_THREADS", "default of --threads"}, NULL, 0},
};
enum { N_VARIABLE = sizeof variables / sizeof *variables };

int check_variables(const usage *u)
{
    for (int k = 0; k < N_VARIABLE && u->variables != NULL; k++) {
        const char *name = variables[k].help.term, *words = variables[k].words;
        const char *value = words != NULL ? getenv(name) : NULL;
        if (value == NULL || word_index(u->variables, name) < 0)
            continue;
        while (*value != '\0') {
            char word[64], list[WORD_LIST];
            const size_t length = variables[k].is_list ? strcspn(value, ",") : strlen(value);
            snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : 63), value);
            if (word_index(words, word) < 0)
                return complain(EXIT_USAGE, "%s: got \"%s\", expected %s", name, word,
                                list_words(words, list));
            value += length + (value[length] == ',');
        }
    }
    return CONTINUE;
}

static const remark some_statuses[] = {
    {"2", "gradcheck: inconclusive"},
    {"129, 130, 143", "train: stopped by SIGHUP, Ctrl-C or SIGTERM; results saved"},
    {NULL, NULL},
};
static const remark some_examples[] = {
    {"adjoint train --out lenet.safetensors", "Trains LeNet on the built-in digits."},
    {"adjoint gradcheck --model lenet", "Checks every gradient of a model."},
    {"adjoint compare --model resnet8",
     "Compares oneDNN with the reference kernels, node by node."},
    {NULL, NULL},
};
static const usage whole_tool = {.command = "",
                                 .statuses = some_statuses,
                                 .variables = PLAN_VARIABLES,
                                 .examples = some_examples};

/* ---- text ---- */

/* Prints words in lines that all begin at a column. */
static void print_words(FILE *f, const char *text, int first)
{
    put_wrapped(f, text, first, COLUMNS);
    fputc('\n', f);
}

/* Prints a term and its explanation; a long term has a line of its own. */
static void print_remark(FILE *f, const char *term, const char *text)
{
    int n = (int)strlen(term);
    fprintf(f, "%*s%s", INDENT, "", term);
    if (INDENT + n + 1 < LEFT)
        fprintf(f, "%*s", LEFT - INDENT - n, "");
    else
        fprintf(f, "\n%*s", LEFT, "");
    print_words(f, text, LEFT);
}

static void print_examples(FILE *f, const remark *r)
{
    if (r == NULL || r->term == NULL)
        return;
    fputs("\nExamples:\n", f);
    for (; r->term != NULL; r++) {
        fprintf(f, "%*s%s\n%*s", INDENT, "", r->term, 3 * INDENT, "");
        print_words(f, r->text, 3 * INDENT);
    }
}

/* Prints the exit statuses, the smallest first, and the environment variables of the command. */
static void print_surroundings(FILE *f, const usage *u)
{
    const remark *const lists[] = {all_statuses, u->statuses};
    const char *title = "\nEnvironment:\n";
    fputs("\nExit status:\n", f);
    for (long status = 0; status <= UINT8_MAX; status++)
        for (int k = 0; k < 2; k++)
            for (const remark *r = lists[k]; r != NULL && r->term != NULL; r++)
                if (strtol(r->term, NULL, 10) == status)
                    print_remark(f, r->term, r->text);
    for (int k = 0; k < N_VARIABLE && u->variables != NULL; k++) {
        const remark *r = &variables[k].help;
        if (word_index(u->variables, r->term) < 0)
            continue;
        fputs(title, f);
        title = "";
        print_remark(f, r->term, r->text);
    }
    print_examples(f, u->examples);
}

/* "--epochs N", "--json [FILE]" */
enum { OPTION_TEXT = 64 };
static const char *option_text(const option *o, char text[OPTION_TEXT])
{
    snprintf(text, OPTION_TEXT, "%s%s%s%s%s", o->name, o->value[0] != '\0' ? " " : "",
             o->bare != NULL ? "[" : "", o->value, o->bare != NULL ? "]" : "");
    return text;
}

void print_help(const usage *u)
{
    char left[OPTION_TEXT];
    const option *o = NULL;

    printf("usage: adjoint %s%s%s%s\n", u->command, u->arguments != NULL ? " " : "",
           u->arguments != NULL ? u->arguments : "", option_at(u, 0) != NULL ? " [OPTION]..." : "");
    print_words(stdout, u->summary, 0);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        print_remark(stdout, option_text(o, left), o->help);
    print_remark(stdout, "--help", "prints this help");
    print_surroundings(stdout, u);
}

void print_overview(FILE *f)
{
    fputs("usage: adjoint COMMAND [OPTION]...\n"
          "Small convolutional networks on a CPU. The commands:\n",
          f);
    for (const command *c = commands; c->name != NULL; c++)
        fprintf(f, "  %-10s %s\n", c->name, c->summary);
    print_words(f,
                "adjoint help COMMAND lists a command's options and examples. Option names may be "
                "abbreviated to an unambiguous prefix, and -- ends the options; FILE - is "
                "standard input or output.",
                0);
    print_surroundings(f, &whole_tool);
}

/* ---- completion ---- */

static int names_file(const option *o)
{
    return strcmp(o->value, "FILE") == 0 || strcmp(o->value, "PATH") == 0;
}

/* Prints the valid words of the option's value. */
static void print_values(const option *o)
{
    const char *name = NULL;
    if (o->words != NULL)
        fputs(o->words, stdout);
    for (int i = 0; o->names != NULL && (name = o->names(i)) != NULL; i++)
        printf("%s%s", i > 0 || o->words != NULL ? " " : "", name);
}

static void print_bash_head(void)
{
    fputs("# bash completion of adjoint, made by the tool itself\n"
          "_adjoint()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local words='' kind=words\n"
          "    local commands='",
          stdout);
    for (const command *c = commands; c->name != NULL; c++)
        printf("%s ", c->name);
    puts("help'\n"
         "    if [ \"$word\" = = ]; then # --model=x is three words\n"
         "        word=''\n"
         "    elif [ \"$before\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
         "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
         "    fi\n"
         "    case $COMP_CWORD:${COMP_WORDS[1]} in\n"
         "    1:* | 2:help)\n"
         "        words=$commands\n"
         "        ;;");
}

static void print_bash_value(const option *o)
{
    printf("        %s) ", o->name);
    if (o->words != NULL || o->names != NULL) {
        fputs("words='", stdout);
        print_values(o);
        puts("' ;;");
    } else {
        printf("kind=%s ;;\n", names_file(o) ? "file" : "none");
    }
}

static void print_bash(const usage *u)
{
    const option *o = NULL;
    printf("    *:%s)\n        case $before in\n", u->command);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        if (o->flag == NULL)
            print_bash_value(o);
    fputs("        *) words='", stdout);
    const char *name = NULL;
    for (int i = 0; u->names != NULL && (name = u->names(i)) != NULL; i++)
        printf("%s ", name);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        printf("%s ", o->name);
    puts("--help' ;;\n        esac\n        ;;");
}

static const char bash_end[] =
    "    esac\n"
    "    case $kind in\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;\n"
    "    file) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -o filenames -F _adjoint adjoint\n";

/* Prints text within single quotes and square brackets. */
static void put_zsh(const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '\'': fputs("'\\''", stdout); break;
        case '[':
        case ']':
        case ':':
        case '\\': putchar('\\'); // fall through
        default: putchar(*text);
        }
}

static void print_zsh_head(void)
{
    puts("#compdef adjoint\n"
         "# zsh completion of adjoint, made by the tool itself\n"
         "_adjoint() {\n"
         "    local -a commands=(");
    for (const command *c = commands; c->name != NULL; c++) {
        printf("        '%s:", c->name);
        put_zsh(c->summary);
        puts("'");
    }
    puts("        'help:the options of a command'\n"
         "    )\n"
         "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $words[1] in");
}

static void print_zsh_option(const option *o)
{
    printf(" \\\n            '%s%s[", o->name, o->flag == NULL ? "=" : "");
    put_zsh(o->help);
    putchar(']');
    if (o->flag == NULL) {
        printf(":%s", o->bare != NULL ? ":" : "");
        put_zsh(o->value);
        putchar(':');
        if (o->words != NULL || o->names != NULL) {
            putchar('(');
            print_values(o);
            putchar(')');
        } else {
            fputs(names_file(o) ? "_files" : " ", stdout);
        }
    }
    putchar('\'');
}

static void print_zsh(const usage *u)
{
    const option *o = NULL;
    printf("    %s)\n        _arguments '--help[prints this help]'", u->command);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        print_zsh_option(o);
    const char *name = NULL;
    for (int i = 0; u->names != NULL && (name = u->names(i)) != NULL; i++)
        printf("%s%s", i == 0 ? " \\\n            '1:NAME:(" : " ", name);
    puts(u->names != NULL ? ")' ;;" : " ;;");
}

static const char zsh_end[] = "    esac\n"
                              "}\n"
                              "_adjoint \"$@\"\n";

#define FORMS "bash zsh"
static const struct {
    void (*head)(void), (*section)(const usage *u);
    const char *end;
} forms[] = {{print_bash_head, print_bash, bash_end}, {print_zsh_head, print_zsh, zsh_end}};

int print_document(const usage *u, const char *form)
{
    const int i = word_index(FORMS, form);
    if (i < 0)
        return complain(EXIT_USAGE, "--document: unknown form %s", form);
    forms[i].section(u);
    return EXIT_OK;
}

int command_document(int argc, char **argv)
{
    const char *form = argc > 1 ? argv[1] : "";
    const int i = word_index(FORMS, form);
    if (i < 0 && strcmp(form, "commands") != 0)
        return EXIT_USAGE;
    if (i >= 0)
        forms[i].head();
    for (const command *c = commands; c->name != NULL; c++) {
        char name[16], word[32];
        snprintf(name, sizeof name, "%s", c->name);
        snprintf(word, sizeof word, "--document=%s", form);
        if (i >= 0)
            (void)c->run(2, (char *[]){name, word, NULL});
        else
            puts(name);
    }
    if (i >= 0)
        fputs(forms[i].end, stdout);
    return EXIT_OK;
}
