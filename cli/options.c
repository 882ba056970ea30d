/* options.c - the options of a sub-command, from a table. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { MAX_OPTIONS = 64 };

/* The i-th of options, more; NULL past the last. */
static const option *option_at(const usage *u, int i)
{
    const option *lists[] = {u->options, u->more};
    for (int k = 0; k < 2; k++)
        for (const option *o = lists[k]; o != NULL && o->name != NULL; o++)
            if (i-- == 0)
                return o;
    return NULL;
}

static void print_help(const usage *u)
{
    char left[64];
    const option *o = option_at(u, 0);

    printf("usage: adjoint %s%s%s%s\n%s\n", u->command, o != NULL ? " [OPTION]..." : "",
           u->arguments != NULL ? " " : "", u->arguments != NULL ? u->arguments : "", u->summary);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++) {
        snprintf(left, sizeof left, "%s %s", o->name, o->value);
        printf("  %-21s %s\n", left, o->help);
    }
    printf("  %-21s %s\n", "--help", "this text");
}

static int unknown(const usage *u, const char *name)
{
    const char *names[MAX_OPTIONS];
    int n = 0;
    for (; n < MAX_OPTIONS && option_at(u, n) != NULL; n++)
        names[n] = option_at(u, n)->name;
    const char *nearest = nearest_name(name, names, n, sizeof *names);
    if (nearest != NULL)
        return complain(u->command, EXIT_USAGE, "unknown option %s (did you mean %s?)", name,
                        nearest);
    return complain(u->command, EXIT_USAGE, "unknown option %s (see adjoint %s --help)", name,
                    u->command);
}

int word_index(const char *words, const char *text)
{
    size_t n = strlen(text);
    for (int i = 0;; i++) {
        size_t length = strcspn(words, " ");
        if (length == n && memcmp(words, text, n) == 0)
            return i;
        if (words[length] == '\0')
            return -1;
        words += length + 1;
    }
}

const char *list_words(const char *words, char list[WORD_LIST])
{
    size_t used = 0;
    for (const char *w = words; *w != '\0' && used < WORD_LIST - 5; w++) {
        const char *between = strchr(w + 1, ' ') != NULL ? ", " : " or ";
        used += (size_t)snprintf(list + used, WORD_LIST - used, "%.*s", *w == ' ' ? 4 : 1,
                                 *w == ' ' ? between : w);
    }
    return list;
}

option_fault option_store(const option *o, const char *text)
{
    char *end = NULL;
    int whole = o->integer != NULL;

    errno = 0;
    if (o->text != NULL) {
        if (o->words != NULL && word_index(o->words, text) < 0)
            return NO_SUCH_WORD;
        *o->text = text;
        return NO_FAULT;
    }
    long long integer = whole ? strtoll(text, &end, 10) : 0;
    double real = whole ? (double)integer : strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(real))
        return NO_NUMBER;
    if (real < o->range[0] || real > o->range[1])
        return OUT_OF_RANGE;
    if (whole)
        *o->integer = integer;
    else
        *o->real = real;
    return NO_FAULT;
}

static int store(const usage *u, const option *o, const char *text)
{
    char list[WORD_LIST];
    switch (option_store(o, text)) {
    case NO_SUCH_WORD:
        return complain(u->command, EXIT_USAGE, "%s: got \"%s\", expected %s", o->name, text,
                        list_words(o->words, list));
    case NO_NUMBER:
        return complain(u->command, EXIT_USAGE, "%s: not a%s number (got \"%s\")", o->name,
                        o->integer != NULL ? " whole" : "", text);
    case OUT_OF_RANGE:
        return complain(u->command, EXIT_USAGE, "%s: out of range (got %s, expected %g to %g)",
                        o->name, text, o->range[0], o->range[1]);
    default: return CONTINUE;
    }
}

static const option *find_option(const usage *u, const char *name, size_t length)
{
    const option *o = NULL;
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            break;
    return o;
}

int parse_options(const usage *u, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *word = argv[i], *equals = strchr(word, '=');
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            return print_help(u), EXIT_OK;
        if (word[0] != '-' || word[1] == '\0') {
            if (u->arguments == NULL || *u->n_argument == u->max_arguments)
                return complain(u->command, EXIT_USAGE, "unexpected argument \"%s\"", word);
            u->argument[(*u->n_argument)++] = word;
            continue;
        }
        const option *o =
            find_option(u, word, equals != NULL ? (size_t)(equals - word) : strlen(word));
        if (o == NULL) {
            if (equals != NULL)
                *equals = '\0';
            return unknown(u, word);
        }
        if (o->flag != NULL) {
            if (equals != NULL)
                return complain(u->command, EXIT_USAGE, "%s: takes no value", o->name);
            *o->flag = 1;
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
