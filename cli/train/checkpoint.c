/* checkpoint.c - see checkpoint.h. What else the file says, and whether it is to be believed, is
 * adj_trainer_resume's matter. */
#include <ctype.h>
#include <omp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_data.h"
#include "checkpoint.h"
#include "cli/command.h"

enum { SETTINGS = 12 + CHECKPOINT_DATA, TEXT = CHECKPOINT_TEXT };
/* Settings that the command line may change are last: --threads; --lr and --epochs too when it
 * prolongs the run. */
enum { FREE = 1, FREE_TO_PROLONG = 3 };

/* The settings of the data, which are first in the list, are the tool's own. */
static const char *const data_keys[CHECKPOINT_DATA] = {"data.size", "data.resize", "data.channels",
                                                       "data.limit", "data.val-split"};

static void list_settings(train_opts *o, option list[SETTINGS])
{
    const option all[SETTINGS] = {
        {"size", "", "", .text = &o->data.size},
        {"resize", "", "", .text = &o->data.resize, .words = RESIZE_WORDS},
        {"channels", "", "", .integer = &o->data.channels, .range = {0, 4}},
        {"limit", "", "", .integer = &o->data.limit, .range = {0, 1e9}},
        {"val-split", "", "", .real = &o->data.val_split, .range = {0, 0.9}},
        {"model", "", "", .text = &o->model},
        {"optimizer", "", "", .text = &o->optimizer},
        {"backend", "", "", .text = &o->backend},
        {"precision", "", "", .text = &o->precision, .words = PRECISION_WORDS},
        {"math", "", "", .text = &o->math, .words = MATH_WORDS},
        {"freeze", "", "", .text = &o->freeze},
        {"batch", "", "", .integer = &o->batch, .range = {1, 100000}},
        {"shift", "", "", .integer = &o->shift, .range = {0, ADJ_MAX_SHIFT}},
        {"seed", "", "", .integer = &o->seed, .range = {0, 9e15}},
        {"lr", "", "", .real = &o->lr, .range = {1e-12, 1e6}},
        {"epochs", "", "", .integer = &o->epochs, .range = {1, 100000}},
        {"threads", "", "", .integer = &o->threads, .range = {0, MAX_THREADS}},
    };
    memcpy(list, all, sizeof all);
}

/* The entry of an option's value; text is where a number is kept. */
static adj_metadata entry_of(const option *o, char text[TEXT])
{
    if (o->text != NULL)
        return (adj_metadata){o->name, *o->text};
    if (o->integer != NULL)
        snprintf(text, TEXT, "%lld", (long long)*o->integer);
    else
        snprintf(text, TEXT, "%a", *o->real);
    return (adj_metadata){o->name, text};
}

__attribute__((format(printf, 2, 3))) static int refuse(const char *path, const char *format, ...)
{
    char sentence[ADJ_MESSAGE];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return complain("train", EXIT_FAILED, "--resume: %s: %s", path, sentence);
}

/* A word of the file that may be printed and used as a name. */
static int is_word(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if (!isgraph((unsigned char)*c))
            return 0;
    return text[0] != '\0' && strlen(text) < 200;
}

/* Stores an entry of the file where option i says. */
static int read_entry(const char *path, const adj_tensors *file, const option *o, int i)
{
    char list[WORD_LIST];
    const char *text = adj_tensors_metadata(file, i < CHECKPOINT_DATA ? data_keys[i] : o->name);

    if (text == NULL)
        return refuse(path, "is no checkpoint: it has no %s", o->name);
    option_fault fault = is_word(text) ? option_store(o, text) : NO_NUMBER;
    if (fault == NO_SUCH_WORD)
        return refuse(path, "its %s is not possible here (got %s, expected %s)", o->name, text,
                      list_words(o->words, list));
    return fault == NO_FAULT ? CONTINUE : refuse(path, "its %s is not possible here", o->name);
}

/* Whether the command line gave the option. */
static int is_set(const option *o)
{
    if (o->text != NULL)
        return *o->text != NULL;
    return o->integer != NULL ? *o->integer != UNSET : *o->real >= 0;
}

static int agree(const char *path, const option *given, const option *stored)
{
    char got[TEXT], expected[TEXT];
    const char *here = entry_of(given, got).value, *there = entry_of(stored, expected).value;

    if (strcmp(here, there) == 0)
        return CONTINUE;
    if (given->real != NULL) {
        snprintf(got, TEXT, "%g", *given->real);
        snprintf(expected, TEXT, "%g", *stored->real);
    }
    return refuse(path, "--%s is another there (got %s, expected %s; leave it out)", given->name,
                  here, there);
}

/* The number of threads decides in which order some sums are made. An older file may not
 * say it (0). */
static void warn_of_threads(const train_opts *given, const train_opts *there)
{
    long long before = there->threads;
    if (before == 0)
        complain("train", EXIT_OK,
                 "the checkpoint does not say with how many threads its run began: its weights may "
                 "come out otherwise");
    else if (given->threads != UNSET && given->threads != before)
        complain("train", EXIT_OK,
                 "--threads: the checkpoint is of a run with %lld (got %lld): its weights may come "
                 "out otherwise",
                 before, (long long)given->threads);
    else if (before > omp_get_num_procs())
        complain("train", EXIT_OK, "%lld threads, as in the checkpoint, on %d processor%s", before,
                 omp_get_num_procs(), omp_get_num_procs() > 1 ? "s" : "");
}

void checkpoint_data(train_opts *o, checkpoint_metadata *m)
{
    option list[SETTINGS];
    list_settings(o, list);
    for (int i = 0; i < CHECKPOINT_DATA; i++) {
        m->entry[i] = entry_of(&list[i], m->text[i]);
        m->entry[i].key = data_keys[i];
    }
}

int checkpoint_open(train_opts *o, adj_tensors **file)
{
    option given[SETTINGS], stored[SETTINGS];
    train_opts there = *o;
    int status = CONTINUE;

    if (adj_tensors_read(o->checkpoint, file) != ADJ_OK)
        return complain("train", EXIT_FAILED, "--resume: %s", adj_tensors_message(*file));
    list_settings(o, given);
    list_settings(&there, stored);
    for (int i = 0; i < SETTINGS && status == CONTINUE; i++)
        status = read_entry(o->checkpoint, *file, &stored[i], i);
    const int bound = SETTINGS - (o->epochs > there.epochs ? FREE_TO_PROLONG : FREE);
    for (int i = 0; i < bound && status == CONTINUE; i++)
        if (is_set(&given[i]))
            status = agree(o->checkpoint, &given[i], &stored[i]);
    if (status != CONTINUE)
        return status;
    warn_of_threads(o, &there);
    for (int i = bound; i < SETTINGS; i++)
        if (is_set(&given[i])) {
            char number[TEXT];
            (void)option_store(&stored[i], entry_of(&given[i], number).value);
        }
    *o = there;
    return status;
}
