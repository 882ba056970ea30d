/* options.c - the options of a sub-command, from a table. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "command.h"

enum { MAX_OPTIONS = 64, INSIDE = 176 };

const option *option_at(const usage *u, int i)
{
    const option *lists[] = {u->options, u->more};
    for (int k = 0; k < 2; k++)
        for (const option *o = lists[k]; o != NULL && o->name != NULL; o++)
            if (i-- == 0)
                return o;
    return NULL;
}

/* Writes the option under which the word is an item or a value, "--schedule warmup=X", or "". */
static void find_inside(const usage *u, const char *word, char text[INSIDE])
{
    const option *o = NULL;
    text[0] = '\0';
    word += strspn(word, "-");
    for (int k = 0; (o = option_at(u, k)) != NULL && text[0] == '\0'; k++) {
        const char *name = NULL;
        for (const option *i = o->items; i != NULL && i->name != NULL; i++)
            if (i->name[0] != '\0' && strcmp(i->name, word) == 0)
                snprintf(text, INSIDE, "%s %s%s%s", o->name, word, i->flag == NULL ? "=" : "",
                         i->value);
        for (int i = 0; o->names != NULL && (name = o->names(i)) != NULL; i++)
            if (strcmp(name, word) == 0)
                snprintf(text, INSIDE, "%s %s", o->name, word);
    }
}

static int unknown(const usage *u, const char *name)
{
    char inside[INSIDE];
    const char *names[MAX_OPTIONS];
    char otherwise[64];
    int n = 0;
    for (int i = 0; i < MAX_OPTIONS && option_at(u, i) != NULL; i++)
        names[n++] = option_at(u, i)->name;
    find_inside(u, name, inside);
    if (inside[0] != '\0')
        return complain(EXIT_USAGE, "unknown option %s (did you mean %s?)", name, inside);
    snprintf(otherwise, sizeof otherwise, "see adjoint %s --help", u->command);
    return complain(EXIT_USAGE, "unknown option %s%s", name,
                    did_you_mean(name, names, n, sizeof *names, otherwise).s);
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
    list[0] = '\0';
    for (const char *w = words; *w != '\0'; w++) {
        const char *between = strchr(w + 1, ' ') != NULL ? ", " : " or ";
        c_append(list, WORD_LIST, "%.*s", *w == ' ' ? 4 : 1, *w == ' ' ? between : w);
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
    const int is_beyond = errno == ERANGE; /* too large or too small for the type */
    if (end == text || *end != '\0' || (!is_beyond && !isfinite(real)))
        return NO_NUMBER;
    if (is_beyond || real < o->range[0] || real > o->range[1])
        return OUT_OF_RANGE;
    if (whole)
        *o->integer = integer;
    else
        *o->real = real;
    return NO_FAULT;
}

/* ---- lists of items ---- */

/* Prints an error for an unknown item, with the accepted ones: "flip, shift=N or mixup=X". */
static int unknown_item(const option *o, const char *text)
{
    char list[256] = "";
    for (const option *i = o->items; i->name != NULL; i++) {
        const char *between = list[0] == '\0' ? "" : i[1].name == NULL ? " or " : ", ";
        c_append(list, sizeof list, "%s%s%s%s", between, i->name,
                 i->name[0] != '\0' && i->flag == NULL ? "=" : "", i->value);
    }
    return complain(EXIT_USAGE, "%s: got \"%s\", expected %s", o->name, text, list);
}

/* Returns the item of that name; without a value, a flag or the item that is written without a
 * name. NULL: there is none. */
static const option *find_item(const option *o, const char *name, int has_value)
{
    const option *unnamed = NULL;
    for (const option *i = o->items; i->name != NULL; i++) {
        if (i->name[0] == '\0')
            unnamed = i;
        else if (strcmp(i->name, name) == 0 && (has_value || i->flag != NULL))
            return i;
    }
    return has_value || name[0] == '\0' ? NULL : unnamed;
}

static int option_read(const option *o, char *text);

static int read_item(const option *o, char *text)
{
    char name[96], *equals = strchr(text, '=');
    if (equals != NULL)
        *equals = '\0';
    const option *item = find_item(o, text, equals != NULL);
    if (item == NULL) {
        if (equals != NULL)
            *equals = '=';
        return unknown_item(o, text);
    }
    snprintf(name, sizeof name, "%s%s%s", o->name, item->name[0] != '\0' ? " " : "", item->name);
    if (item->flag != NULL) {
        if (equals != NULL)
            return complain(EXIT_USAGE, "%s: takes no value", name);
        *item->flag = 1;
        return CONTINUE;
    }
    option named = *item;
    named.name = name;
    return option_read(&named, equals != NULL ? equals + 1 : text);
}

/* Reads the items of a list, which ends each of them with a 0, as values point into it. */
static int read_items(const option *o, char *text)
{
    int status = CONTINUE;
    for (char *next; text != NULL && status == CONTINUE; text = next) {
        next = strchr(text, ',');
        if (next != NULL)
            *next++ = '\0';
        status = read_item(o, text);
    }
    return status;
}

/* Stores the option's value; CONTINUE, or an exit status after a complaint. */
static int option_read(const option *o, char *text)
{
    char list[WORD_LIST];
    if (o->items != NULL)
        return read_items(o, text);
    switch (option_store(o, text)) {
    case NO_SUCH_WORD:
        return complain(EXIT_USAGE, "%s: got \"%s\", expected %s", o->name, text,
                        list_words(o->words, list));
    case NO_NUMBER:
        return complain(EXIT_USAGE, "%s: not a%s number (got \"%s\", expected %g to %g)", o->name,
                        o->integer != NULL ? " whole" : "", text, o->range[0], o->range[1]);
    case OUT_OF_RANGE:
        return complain(EXIT_USAGE, "%s: out of range (got %s, expected %g to %g)", o->name, text,
                        o->range[0], o->range[1]);
    default: return CONTINUE;
    }
}

/* ---- names, whole or shortened ---- */

static const option help_option = {.name = "--help", .value = ""};

/* Returns the i-th option of the command, --help first. */
static const option *meant_at(const usage *u, int i)
{
    if (i == 0)
        return &help_option;
    return option_at(u, i - 1);
}

static int begins(const option *o, const char *name, size_t length)
{
    return strncmp(o->name, name, length) == 0;
}

/* Returns the option of that name, or one whose name begins so; *n: number of such options. */
static const option *find_option(const usage *u, const char *name, size_t length, int *n)
{
    const option *found = NULL, *o = NULL;
    *n = 0;
    for (int i = 0; (o = meant_at(u, i)) != NULL; i++) {
        if (begins(o, name, length) && strlen(o->name) == length)
            return *n = 1, o;
        if (length > 2 && begins(o, name, length)) {
            found = o;
            ++*n;
        }
    }
    return found;
}

static int ambiguous(const usage *u, const char *name, size_t length, int n)
{
    char list[512] = "";
    const option *o = NULL;
    for (int i = 0; (o = meant_at(u, i)) != NULL; i++) {
        if (!begins(o, name, length))
            continue;
        c_append(list, sizeof list, "%s%s", o->name, n > 2 ? ", " : n == 2 ? " or " : "");
        n--;
    }
    return complain(EXIT_USAGE, "ambiguous option %.*s (%s)", (int)length, name, list);
}

/* ---- one word after another ---- */

static int take_argument(const usage *u, const char *word)
{
    if (u->arguments == NULL || *u->n_argument == u->max_arguments)
        return complain(EXIT_USAGE, "unexpected argument \"%s\"", word);
    u->argument[(*u->n_argument)++] = word;
    return CONTINUE;
}

/* True if the next word is the value of an option with an optional value. For a command with
 * arguments only words that cannot be arguments are. */
static int is_value(const usage *u, const char *next)
{
    return next != NULL && (strcmp(next, "-") == 0 || (next[0] != '-' && u->arguments == NULL));
}

/* Stores option o of argv[*i]. Its value follows equals (NULL: no "="), or is the next word. */
static int take_option(const usage *u, const option *o, char **argv, int *i, char *equals)
{
    if (o->flag != NULL) {
        if (equals != NULL)
            return complain(EXIT_USAGE, "%s: takes no value", o->name);
        *o->flag = 1;
        return CONTINUE;
    }
    char *text = equals != NULL ? equals + 1 : NULL;
    if (text == NULL && o->bare != NULL && !is_value(u, argv[*i + 1]))
        text = (char *)o->bare; /* no list */
    if (text == NULL)
        text = argv[++*i]; /* argv ends with NULL */
    if (text == NULL)
        return complain(EXIT_USAGE, "%s: value %s is missing", o->name, o->value);
    return option_read(o, text);
}

/* Takes argv[*i], and the next word if it is the value of this one. *taken: the option, or NULL. */
static int take_word(const usage *u, char **argv, int *i, int *options_end, const option **taken)
{
    char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    int n = 0;
    *taken = NULL;
    if (*options_end || word[0] != '-' || word[1] == '\0')
        return take_argument(u, word);
    if (strcmp(word, "--") == 0)
        return *options_end = 1, CONTINUE;
    const option *o = find_option(u, word, length, &n);
    if (strcmp(word, "-h") == 0 || (o == &help_option && equals == NULL))
        return print_help(u), EXIT_OK;
    if (strncmp(word, "--document=", 11) == 0)
        return print_document(u, word + 11);
    if (n > 1)
        return ambiguous(u, word, length, n);
    if (o != NULL && o != &help_option)
        return take_option(u, *taken = o, argv, i, equals);
    if (equals != NULL)
        *equals = '\0';
    return unknown(u, word);
}

/* ---- options that belong together ---- */

/* Returns the number of the option of that name; negative if there is none. */
static int number_of(const usage *u, const char *name)
{
    const option *o = NULL;
    for (int i = 0; i < MAX_OPTIONS && name != NULL && (o = option_at(u, i)) != NULL; i++)
        if (strcmp(o->name, name) == 0)
            return i;
    return -1;
}

/* Refuses the first given option that has no effect beside the others. is_given: by number. */
static int check_effect(const usage *u, const char is_given[MAX_OPTIONS])
{
    const option *o = NULL;
    for (int i = 0; i < MAX_OPTIONS && (o = option_at(u, i)) != NULL; i++) {
        const int needs = number_of(u, o->needs), excludes = number_of(u, o->excludes);
        if (is_given[i] && needs >= 0 && !is_given[needs]) {
            const char *value = option_at(u, needs)->value;
            return complain(EXIT_USAGE, "%s requires %s%s%s", o->name, o->needs,
                            value[0] != '\0' ? " " : "", value);
        }
        if (is_given[i] && excludes >= 0 && is_given[excludes])
            return complain(EXIT_USAGE, "%s cannot be combined with %s", o->name, o->excludes);
    }
    return CONTINUE;
}

int parse_options(const usage *u, int argc, char **argv)
{
    char is_given[MAX_OPTIONS] = {0};
    const option *taken = NULL;
    int status = CONTINUE, options_end = 0;
    for (int i = 1; i < argc && status == CONTINUE; i++) {
        status = take_word(u, argv, &i, &options_end, &taken);
        const int number = taken != NULL ? number_of(u, taken->name) : -1;
        if (number >= 0)
            is_given[number] = 1;
    }
    if (status == CONTINUE)
        status = check_effect(u, is_given);
    return status == CONTINUE ? check_variables(u) : status;
}
