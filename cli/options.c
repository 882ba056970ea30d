/* options.c - the options of a sub-command, from a table. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static void print_help(const usage *u)
{
    char left[64];

    printf("usage: adjoint %s%s\n%s\n", u->command, u->n > 0 ? " [OPTION]..." : "", u->summary);
    for (int i = 0; i < u->n; i++) {
        snprintf(left, sizeof left, "%s %s", u->options[i].name, u->options[i].value);
        printf("  %-21s %s\n", left, u->options[i].help);
    }
    printf("  %-21s %s\n", "--help", "this text");
}

static int unknown(const usage *u, const char *name)
{
    const char *nearest =
        u->n > 0 ? nearest_name(name, &u->options[0].name, u->n, sizeof *u->options) : NULL;
    if (nearest != NULL)
        return complain(u->command, EXIT_USAGE, "unknown option %s (did you mean %s?)", name,
                        nearest);
    return complain(u->command, EXIT_USAGE, "unknown option %s (see adjoint %s --help)", name,
                    u->command);
}

/* Stores the value of one option. */
static int store(const usage *u, const option *o, const char *text)
{
    char *end = NULL;

    errno = 0;
    if (o->kind == OPTION_TEXT) {
        memcpy(o->to, &text, sizeof text);
        return CONTINUE;
    }
    long long whole = o->kind == OPTION_INTEGER ? strtoll(text, &end, 10) : 0;
    double real = o->kind == OPTION_REAL ? strtod(text, &end) : (double)whole;
    if (end == text || *end != '\0' || errno != 0 || !isfinite(real))
        return complain(u->command, EXIT_USAGE, "%s: not a%s number (got \"%s\")", o->name,
                        o->kind == OPTION_INTEGER ? " whole" : "", text);
    if (real < o->lowest || real > o->highest)
        return complain(u->command, EXIT_USAGE, "%s: out of range (got %s, expected %g to %g)",
                        o->name, text, o->lowest, o->highest);
    if (o->kind == OPTION_INTEGER)
        *(int64_t *)o->to = whole;
    else
        *(double *)o->to = real;
    return CONTINUE;
}

static const option *find_option(const usage *u, const char *name, size_t length)
{
    for (int i = 0; i < u->n; i++)
        if (strlen(u->options[i].name) == length && strncmp(u->options[i].name, name, length) == 0)
            return &u->options[i];
    return NULL;
}

int parse_options(const usage *u, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *word = argv[i], *equals = strchr(word, '=');
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            return print_help(u), EXIT_OK;
        if (word[0] != '-')
            return complain(u->command, EXIT_USAGE, "unexpected argument \"%s\"", word);
        const option *o =
            find_option(u, word, equals != NULL ? (size_t)(equals - word) : strlen(word));
        if (o == NULL) {
            if (equals != NULL)
                *equals = '\0';
            return unknown(u, word);
        }
        if (o->kind == OPTION_FLAG) {
            if (equals != NULL)
                return complain(u->command, EXIT_USAGE, "%s: takes no value", o->name);
            *(int64_t *)o->to = 1;
            continue;
        }
        const char *text = equals != NULL ? equals + 1 : argv[++i]; /* argv ends with NULL */
        if (text == NULL)
            return complain(u->command, EXIT_USAGE, "%s: its value %s is missing", o->name,
                            o->value);
        int status = store(u, o, text);
        if (status != CONTINUE)
            return status;
    }
    return CONTINUE;
}
