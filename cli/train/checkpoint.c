/* checkpoint.c - see checkpoint.h. adj_trainer_resume reads and validates the rest of the file. */
#include <omp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adjoint_data.h"
#include "checkpoint.h"
#include "cli/command.h"
#include "cli/onnx_model.h"
#include "cli/terminal.h"
#include "io/tensors/formats.h"
#include "settings.h"

enum { TEXT = CHECKPOINT_TEXT };

/* Returns the entry of an option's value; text: memory for a number. */
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

/* True if the text is a name, a list of class weights or patterns that adj_trainer_save accepts. */
static int is_word(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return 0;
    return text[0] != '\0';
}

/* Returns the value of a setting in old checkpoints without its key; NULL for settings that all
 * checkpoints have. */
static const char *value_before(const char *key)
{
    if (strcmp(key, "accumulate") == 0 || strcmp(key, "shards") == 0)
        return "1";
    if (strcmp(key, "sync_batch_norm") == 0 || strcmp(key, "same_bits") == 0)
        return "0";
    return NULL;
}

/* Stores the file's entry where the setting's option says. */
static int read_entry(const char *path, const adj_tensors *file, const setting *s)
{
    char list[WORD_LIST];
    const option *o = &s->o;
    const char *text = adj_tensors_metadata(file, s->key);

    if (text == NULL)
        text = value_before(s->key);
    if (text == NULL)
        return refuse(
            path, "is not a checkpoint: entry %s is missing (use --weights to start from weights)",
            o->name);
    option_fault fault = is_word(text) ? option_store(o, text) : NO_NUMBER;
    if (fault == NO_SUCH_WORD)
        return refuse(path, "entry %s is invalid (got %s, expected %s)", o->name, text,
                      list_words(o->words, list));
    if (fault == NO_FAULT)
        return CONTINUE;
    if (o->text != NULL)
        return refuse(path, "entry %s is invalid (got %.80s, expected a name)", o->name, text);
    return refuse(path, "entry %s is invalid (got %.80s, expected %.9g to %.9g)", o->name, text,
                  o->range[0], o->range[1]);
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
    return refuse(path, "--%s differs from the checkpoint (got %s, expected %s); omit it to resume",
                  given->name, here, there);
}

/* Prints a note if the number of threads differs, which changes the order of some sums. An older
 * file may not have it (0). */
static void warn_of_threads(const train_opts *given, const train_opts *there)
{
    long long before = there->threads;
    if (before == 0)
        complain("train", EXIT_OK,
                 "the checkpoint does not record its number of threads; results may differ");
    else if (given->threads != UNSET && given->threads != before)
        complain(
            "train", EXIT_OK,
            "--threads differs from the checkpoint (got %lld, expected %lld); results may differ",
            (long long)given->threads, before);
    else if (before > omp_get_num_procs())
        complain("train", EXIT_OK, "%lld threads, as in the checkpoint, on %d processor%s", before,
                 omp_get_num_procs(), omp_get_num_procs() > 1 ? "s" : "");
}

void checkpoint_data(train_opts *o, checkpoint_metadata *m)
{
    setting list[SETTINGS];
    list_settings(o, list);
    for (int i = 0; i < CHECKPOINT_DATA; i++) {
        m->entry[i] = entry_of(&list[i].o, m->text[i]);
        m->entry[i].key = list[i].key;
    }
}

int checkpoint_open(train_opts *o, adj_tensors **file)
{
    setting given[SETTINGS], stored[SETTINGS];
    train_opts there = *o;
    char number[TEXT];
    int status = CONTINUE;
    const char *model = o->model;

    if (adj_safetensors_read(o->checkpoint, file) != ADJ_OK)
        return complain("train", EXIT_FAILED, "--resume: %s", (*file)->message);
    if (is_onnx_file(model))
        o->model = onnx_name(model); /* as in the checkpoint */
    list_settings(o, given);
    list_settings(&there, stored);
    for (int i = 0; i < SETTINGS && status == CONTINUE; i++)
        status = read_entry(o->checkpoint, *file, &stored[i]);
    const freedom min_freedom = o->epochs > there.epochs ? TO_PROLONG : ALWAYS;
    for (int i = 0; i < SETTINGS && status == CONTINUE; i++)
        if (is_set(&given[i].o) && given[i].may_change < min_freedom)
            status = agree(o->checkpoint, &given[i].o, &stored[i].o);
    if (status != CONTINUE)
        return status;
    warn_of_threads(o, &there);
    there.begun_epochs = there.epochs;
    for (int i = 0; i < SETTINGS; i++)
        if (is_set(&given[i].o) && given[i].may_change >= min_freedom)
            (void)option_store(&stored[i].o, entry_of(&given[i].o, number).value);
    *o = there;
    if (is_onnx_file(model))
        o->model = model;
    return status;
}

void checkpoint_say_replaced(const train_opts *o)
{
    adj_tensors *file = NULL;
    if (o->checkpoint == NULL || o->resume || access(o->checkpoint, F_OK) != 0)
        return;
    const int is_checkpoint = adj_safetensors_read(o->checkpoint, &file) == ADJ_OK &&
                              adj_tensors_metadata(file, "checkpoint") != NULL;
    adj_tensors_free(file);
    if (!is_checkpoint)
        say_wrapped(NULL, "note: %s is replaced", o->checkpoint);
    else if (o->every > 0)
        say_wrapped(NULL, "note: %s is replaced after step %lld; --resume continues it",
                    o->checkpoint, (long long)o->every);
    else
        say_wrapped(NULL, "note: %s is replaced after the first epoch; --resume continues it",
                    o->checkpoint);
    fflush(stdout); /* before reading the data, which may take long */
}
