/* options.c - see options.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "options.h"

static int read_options(compare_opts *o, int argc, char **argv)
{
    const option others[] = {
        {"--model", "NAME", "a training step of it; default: lenet", OPTION_TEXT, &o->graph.model,
         0, 0},
        {"--node", "ID", "of the model: no more than this node needs", OPTION_INTEGER,
         &o->graph.node, 0, 1e6},
        {"--configs", "A,B,...",
         "the first is the reference; default: naive:f64,naive,onednn; \"A;B\" where one has a "
         "comma",
         OPTION_TEXT, &o->configs, 0, 0},
        {"--batch", "N", "default: 2", OPTION_INTEGER, &o->graph.batch, 1, 4096},
        {"--height", "N", "of the images; default: the model's", OPTION_INTEGER, &o->graph.height,
         1, 4096},
        {"--width", "N", "the same", OPTION_INTEGER, &o->graph.width, 1, 4096},
        {"--seed", "N", "of the values; default: 1", OPTION_INTEGER, &o->seed, 0, 1e15},
        {"--runs", "N", "timed ones; default: 5", OPTION_INTEGER, &o->runs, 1, 1000},
        {"--threads", "N", "default: OpenMP's", OPTION_INTEGER, &o->threads, 1, 1024},
        {"--exact", "", "integers for data, and equality where sums are exact", OPTION_FLAG,
         &o->exact, 0, 0},
        {"--guard", "", "every kernel in a process of its own: crashes and hangs are rows",
         OPTION_FLAG, &o->guard, 0, 0},
        {"--timeout", "SECONDS", "of such a process; default: 10", OPTION_REAL, &o->seconds, 0.1,
         1e4},
        {"--shrink", "SECONDS", "to make what fails smaller; default: 20; 0: it stays as it is",
         OPTION_REAL, &o->shrink, 0, 1e5},
        {"--quarantine", "FILE", "instead of ADJOINT_QUARANTINE's; off: none at all", OPTION_TEXT,
         &o->quarantine, 0, 0},
        {"--all", "", "a line for every node, not for every op", OPTION_FLAG, &o->all, 0, 0},
        {"--json", "FILE", "everything, for programs; - is the output", OPTION_TEXT, &o->json, 0,
         0},
        {"--csv", "FILE", "the rows", OPTION_TEXT, &o->csv, 0, 0},
        {"--junit", "FILE", "for CI", OPTION_TEXT, &o->junit, 0, 0},
        {"--html", "FILE", "a page that needs no network", OPTION_TEXT, &o->html, 0, 0},
    };
    enum { OTHERS = sizeof others / sizeof others[0] };
    option options[OTHERS + OP_OPTIONS];
    memcpy(options, others, sizeof others);
    op_args_options(&o->graph.op, options + OTHERS);
    const usage u = {"compare",
                     "Compares backends, element types, layouts and threads node by node.",
                     OTHERS + OP_OPTIONS, options};
    return parse_options(&u, argc, argv);
}

/* Splits "a,b,c", or "a;b,with=commas;c", in place. */
static int split(char *text, const char *list[MAX_LISTED])
{
    char separator = strchr(text, ';') != NULL ? ';' : ',';
    int n = 0;
    for (char *part = text; part != NULL && n < MAX_LISTED; n++) {
        char *end = strchr(part, separator);
        if (end != NULL)
            *end = '\0';
        list[n] = part;
        part = end != NULL ? end + 1 : NULL;
    }
    return n;
}

static int read_configs(compare_opts *o)
{
    char message[512];
    adj_compare_config config;
    if (o->configs == NULL)
        return CONTINUE;
    o->config_text = strdup(o->configs);
    if (o->config_text == NULL)
        return complain("compare", EXIT_FAILED, "out of memory");
    o->n_config = split(o->config_text, o->config);
    if (o->n_config == 1)
        return complain("compare", EXIT_USAGE, "--configs: two are needed (got \"%s\")",
                        o->config[0]);
    for (int i = 0; i < o->n_config; i++)
        if (adj_compare_config_parse(o->config[i], &config, message, sizeof message) != ADJ_OK)
            return complain("compare", EXIT_USAGE, "--configs: %s", message);
    if (adj_compare_config_parse(o->config[0], &config, message, sizeof message) == ADJ_OK &&
        config.isa[0] != '\0')
        return complain("compare", EXIT_USAGE,
                        "--configs: the first is the reference and runs in this process, where no "
                        "isa can be set (got \"%s\")",
                        o->config[0]);
    return CONTINUE;
}

int compare_parse(compare_opts *o, int argc, char **argv)
{
    *o = (compare_opts){
        .graph = {.batch = 2, .node = -1}, .seconds = 10, .shrink = 20, .seed = 1, .runs = 5};
    int status = read_options(o, argc, argv);
    if (status != CONTINUE)
        return status;
    if (o->graph.model != NULL && o->graph.op.op != NULL)
        return complain("compare", EXIT_USAGE, "--model and --op exclude each other");
    if (o->graph.node >= 0 && o->graph.op.op != NULL)
        return complain("compare", EXIT_USAGE, "--node goes with --model");
    if (o->graph.model == NULL && o->graph.op.op == NULL)
        o->graph.model = "lenet";
    return read_configs(o);
}

void compare_close(compare_opts *o) { free(o->config_text); }

/* ---- the line ---- */

static void append(char line[LINE], const char *text, size_t n)
{
    size_t used = strlen(line);
    snprintf(line + used, LINE - used, "%.*s", (int)n, text);
}

/* A word as a shell reads it back: in quotes if it has letters that a shell minds. */
static void append_word(char line[LINE], const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./";
    if (strspn(word, plain) == strlen(word)) {
        append(line, word, strlen(word));
        return;
    }
    append(line, "'", 1);
    for (const char *c = word; *c != '\0'; c++)
        append(line, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
    append(line, "'", 1);
}

static void add(char line[LINE], const char *name, const char *value)
{
    if (value == NULL)
        return;
    append(line, " ", 1);
    append(line, name, strlen(name));
    if (value[0] != '\0')
        append(line, " ", 1);
    append_word(line, value);
}

static void add_number(char line[LINE], const char *name, double value, double usual)
{
    char text[40];
    snprintf(text, sizeof text, "%.15g", value);
    add(line, name, value != usual ? text : NULL);
}

static void add_op(char line[LINE], op_args op)
{
    option options[OP_OPTIONS];
    op_args_options(&op, options);
    for (int i = 0; i < OP_OPTIONS; i++)
        add(line, options[i].name, *(const char **)options[i].to);
}

void compare_line(const compare_opts *o, const compared_opts *what, const char *configs,
                  char line[LINE])
{
    const char *quarantine = o->quarantine;
    if (quarantine == NULL || quarantine[0] == '\0')
        quarantine = getenv("ADJOINT_QUARANTINE");
    snprintf(line, LINE, "adjoint compare");
    if (what->model != NULL) {
        add(line, "--model", what->model);
        add_number(line, "--node", (double)what->node, -1);
        add_number(line, "--batch", (double)what->batch, 0);
        add_number(line, "--height", (double)what->height, 0);
        add_number(line, "--width", (double)what->width, 0);
    } else {
        add_op(line, what->op);
    }
    add(line, "--configs", configs != NULL ? configs : o->configs);
    add_number(line, "--seed", (double)o->seed, -1);
    add_number(line, "--runs", (double)o->runs, 5);
    add_number(line, "--threads", (double)o->threads, 0);
    add(line, "--quarantine", quarantine != NULL && quarantine[0] != '\0' ? quarantine : NULL);
    add(line, "--exact", o->exact ? "" : NULL);
    add(line, "--guard", o->guard ? "" : NULL);
    if (o->guard || (configs != NULL ? strstr(configs, "isa=") : o->configs) != NULL)
        add_number(line, "--timeout", o->seconds, 10);
}

void compare_pair(const char *a, const char *b, char *text, size_t size)
{
    int comma = strchr(a, ',') != NULL || strchr(b, ',') != NULL;
    snprintf(text, size, "%s%c%s", a, comma ? ';' : ',', b);
}
