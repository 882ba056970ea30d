/* weights.c - see weights.h. adj_trainer_resume reads and validates the rest of a checkpoint. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adjoint_data.h"
#include "cli/command.h"
#include "cli/model.h"
#include "cli/onnx_model.h"
#include "cli/standard.h"
#include "cli/terminal.h"
#include "io/data/origin.h"
#include "io/tensors/formats.h"
#include "ops/nn/names.h"
#include "train.h"
#include "weights.h"

/* ---- checkpoints ---- */

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

/* Stores the file's entry where the setting's option says. */
static int read_entry(const char *path, const adj_tensors *file, const setting *s)
{
    char list[WORD_LIST];
    const option *o = &s->o;
    const char *text = adj_tensors_metadata(file, s->key);

    text = text != NULL ? text : s->before;
    if (text == NULL)
        return complain(EXIT_FAILED,
                        "--resume: %s: is not a checkpoint: entry %s is missing (use --weights to "
                        "start from weights)",
                        path, o->name);
    option_fault fault = is_entry_text(text) ? option_store(o, text) : NO_NUMBER;
    if (fault == NO_SUCH_WORD)
        return complain(EXIT_FAILED, "--resume: %s: entry %s is invalid (got %s, expected %s)",
                        path, o->name, text, list_words(o->words, list));
    if (fault == NO_FAULT)
        return CONTINUE;
    if (o->text != NULL)
        return complain(EXIT_FAILED,
                        "--resume: %s: entry %s is invalid (got %.80s, expected a name)", path,
                        o->name, text);
    return complain(EXIT_FAILED,
                    "--resume: %s: entry %s is invalid (got %.80s, expected %.9g to %.9g)", path,
                    o->name, text, o->range[0], o->range[1]);
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
    return complain(
        EXIT_FAILED,
        "--resume: %s: --%s differs from the checkpoint (got %s, expected %s); omit it to resume",
        path, given->name, here, there);
}

/* Prints a note if the number of threads differs, which changes the order of some sums. An older
 * file may not have it (0). */
static void warn_of_threads(const train_opts *given, const train_opts *there)
{
    long long before = there->threads;
    if (before == 0)
        complain(EXIT_OK,
                 "the checkpoint does not record its number of threads; results may differ");
    else if (given->threads != UNSET && given->threads != before)
        complain(
            EXIT_OK,
            "--threads differs from the checkpoint (got %lld, expected %lld); results may differ",
            (long long)given->threads, before);
    else if (before > omp_get_num_procs())
        complain(EXIT_OK, "%lld threads, as in the checkpoint, on %d processor%s", before,
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

    if (adj_tensors_read(o->checkpoint, file) != ADJ_OK)
        return complain(EXIT_FAILED, "--resume: %s", (*file)->message);
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
    const int is_checkpoint = adj_tensors_read(o->checkpoint, &file) == ADJ_OK &&
                              adj_tensors_metadata(file, "checkpoint") != NULL;
    adj_tensors_free(file);
    if (!is_checkpoint)
        say_wrapped("note: %s is replaced", o->checkpoint);
    else if (o->every > 0)
        say_wrapped("note: %s is replaced after step %lld; --resume continues it", o->checkpoint,
                    (long long)o->every);
    else
        say_wrapped("note: %s is replaced after the first epoch; --resume continues it",
                    o->checkpoint);
    fflush(stdout); /* before reading the data, which may take long */
}

/* ---- to begin with ---- */

typedef struct {
    const char *freeze; /* patterns */
    int in_part;        /* prints a line for each tensor */
    int loaded, unused;
    int n_frozen;       /* parameters that are new and frozen */
    const char *frozen; /* one of them */
} told;

static void tell(void *user, const adj_weight_report *r)
{
    told *t = user;

    t->loaded += r->fate == ADJ_WEIGHT_LOADED;
    t->unused += r->fate == ADJ_WEIGHT_UNUSED;
    const int is_new =
        r->fate == ADJ_WEIGHT_FRESH || r->fate == ADJ_WEIGHT_MISSING || r->fate == ADJ_WEIGHT_UNFIT;
    if (is_new && adj_name_matches(t->freeze, r->name)) {
        t->n_frozen++;
        t->frozen = r->name;
    }
    if (!t->in_part)
        return;
    switch (r->fate) {
    case ADJ_WEIGHT_LOADED: say("  %s: loaded from %s", r->name, r->tensor); break;
    case ADJ_WEIGHT_FRESH: say("  %s: new", r->name); break;
    case ADJ_WEIGHT_MISSING:
    case ADJ_WEIGHT_UNFIT: say("  %s: new, %s", r->name, r->why); break;
    case ADJ_WEIGHT_UNUSED: say("  not used: %s", r->tensor); break;
    case ADJ_WEIGHT_RESET: break; /* every state of the optimizer */
    }
}

void name_model(train_opts *o, char model[MODEL_NAME])
{
    adj_tensors *t = NULL;
    if (o->model != NULL || o->weights == NULL || is_stdout(o->weights))
        return;
    const int can_read =
        adj_tensors_read(o->weights, &t) == ADJ_OK; /* otherwise load_start prints the error */
    const char *name = can_read ? adj_tensors_metadata(t, "model") : NULL;
    if (name != NULL && adj_model_find(name, NULL) != NULL) {
        snprintf(model, MODEL_NAME, "%s", name);
        o->model = model;
    }
    adj_tensors_free(t);
}

/* Writes how the model of the file differs from the one to train, and which option helps; "" for an
 * unreadable file. */
static void put_cure(char cure[ADJ_MESSAGE], const char *path, const train_opts *o,
                     const adj_dataset *data, int64_t channels)
{
    static const adj_model_card unknown;
    adj_tensors *t = NULL;
    adj_model_card *read = NULL;
    const int can_read = adj_tensors_read(path, &t) == ADJ_OK;
    if (can_read)
        (void)adj_model_card_read(t, &read, NULL);
    const adj_model_card *card = read != NULL ? read : &unknown;
    const adj_image_size size = card->options.size;
    const long long classes = card->options.classes;

    if (!can_read)
        cure[0] = '\0';
    else if (card->model != NULL && strcmp(card->model, o->model) != 0)
        snprintf(cure, ADJ_MESSAGE, " (the file holds another model: got %.80s, expected %.80s)",
                 card->model, o->model);
    else if (classes > 0 && classes != data->classes && o->data.path == NULL)
        snprintf(cure, ADJ_MESSAGE,
                 " (the file has %lld classes; --data is missing: the default is the 10 embedded "
                 "digits)",
                 classes);
    else if (classes > 0 && classes != data->classes)
        snprintf(cure, ADJ_MESSAGE,
                 " (the file has %lld classes, the data %d; --head new trains a new last layer)",
                 classes, data->classes);
    else if (size.c > 0 && size.c != channels)
        snprintf(cure, ADJ_MESSAGE,
                 " (the file has %lld channels, the model %lld; use --size channels=%lld, or "
                 "--head new to train new layers where needed)",
                 (long long)size.c, (long long)channels, (long long)size.c);
    else if (size.h > 0 && !same_sides(size, data->size))
        snprintf(cure, ADJ_MESSAGE,
                 " (the file is for %s images; use --size %s, or --head new to train new layers "
                 "where needed)",
                 sides_text(size).s, sides_text(size).s);
    else
        snprintf(cure, ADJ_MESSAGE, "%s",
                 " (use --size channels=N for other channels; --head new trains new layers "
                 "where needed)");
    free(read);
    adj_tensors_free(t);
}

int check_classes(const train_opts *o, const onnx_source *source, const adj_dataset *data)
{
    const int is_replaced = source->new_head || o->weights != NULL || o->resume;
    if (source->path == NULL || is_replaced || source->classes == data->classes)
        return CONTINUE;
    return complain(EXIT_FAILED,
                    "--model %s has %lld classes, the data %d (--head new trains a new last layer)",
                    o->model, (long long)source->classes, data->classes);
}

/* Prints the parameters of an ONNX file's new last layer, and refuses to freeze them. */
static int say_new_head(const onnx_source *s, int classes)
{
    for (int i = 0; i < 2 && s->head[i][0] != '\0'; i++)
        if (adj_name_matches(s->freeze, s->head[i]))
            return complain(EXIT_USAGE,
                            "--freeze %s: %s would stay random, as the last layer is new",
                            s->freeze, s->head[i]);
    if (s->head[0][0] != '\0')
        say_wrapped("new last layer of %d classes: %s%s%s", classes, s->head[0],
                    s->head[1][0] != '\0' ? ", " : "", s->head[1]);
    return CONTINUE;
}

int load_start(const train_opts *o, const onnx_source *source, const adj_dataset *data,
               int64_t channels, adj_trainer *trainer)
{
    if (!o->resume && source->n_folded > 0)
        say_wrapped("note: %s: %d batch norm%s folded into convolutions; export it with "
                    "optimize=False to train with them",
                    source->path, source->n_folded, source->n_folded == 1 ? " is" : "s are");
    if (o->weights == NULL)
        return o->resume ? CONTINUE : say_new_head(source, data->classes);
    char head[2 * ONNX_NAME] = "logits/*";
    if (source->path != NULL)
        snprintf(head, sizeof head, "%s,%s", source->head[0], source->head[1]);
    int new_head = o->head != NULL && strcmp(o->head, "new") == 0;
    told t = {.freeze = o->freeze, .in_part = new_head};
    input_file in[] = {{.option = "--weights", .path = o->weights},
                       {.option = "--map", .path = o->map}};
    char cure[ADJ_MESSAGE] = "";
    int status = open_inputs(2, in);
    if (status != CONTINUE)
        return status;
    const adj_weights_opts options = {.map = in[1].name,
                                      .partial = new_head,
                                      .fresh = new_head ? head : NULL,
                                      .report = tell,
                                      .user = &t};
    adj_error error;

    if (adj_trainer_load(trainer, in[0].name, &options, &error) != ADJ_OK) {
        if (error.status == ADJ_ESHAPE)
            put_cure(cure, in[0].name, o, data, channels);
        return complain_of_files(2, in, "--weights: ", error.message, cure);
    }
    say_keras_epsilon(o->map, o->model);
    if (t.n_frozen > 0)
        return complain(EXIT_USAGE,
                        "--freeze %s: %s would stay random, as it is not loaded (%d such)",
                        o->freeze, t.frozen, t.n_frozen);
    say_wrapped("%d parameters and states loaded from %s, %d of its tensors not used", t.loaded,
                is_stdout(o->weights) ? "standard input" : o->weights, t.unused);
    return CONTINUE;
}

/* ---- at the end ---- */

typedef struct {
    const train_opts *o;
    adj_trainer *t;
} saved_weights;

static adj_status write_weights(const char *path, const void *source, adj_error *error)
{
    const saved_weights *w = source;
    const adj_metadata metadata = {"optimizer", w->o->optimizer};
    adj_predictor *p = adj_trainer_predictor(w->t, error);
    return p == NULL ? error->status : adj_predictor_save(p, path, 1, &metadata, error);
}

int save_weights(const train_opts *o, const char *path, int in_folder, adj_trainer *t, FILE *output)
{
    const saved_weights saved = {o, t};
    const output_file out = {"--out", path, OUTPUT_REPLACED_OR_STDOUT};
    int status = replace_output(&out, output, write_weights, &saved);

    if (status != EXIT_OK)
        return status;
    const adj_fit_progress at = adj_trainer_progress(t);
    char epoch[96] = "";
    if (at.held_out.count > 0)
        snprintf(epoch, sizeof epoch, " (epoch %lld, accuracy %.2f %%%s)", (long long)at.epoch,
                 100 * at.held_out.accuracy,
                 at.best_epoch != at.epoch && !in_folder ? "; --out DIR also keeps the best epoch's"
                                                         : "");
    say_wrapped("weights written to %s%s", is_stdout(path) ? "standard output" : path, epoch);
    fflush(stdout);
    return CONTINUE;
}
