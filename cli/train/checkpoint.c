/* checkpoint.c - see checkpoint.h. Numbers are strings there, reals in hexadecimal: they come back
 * bit by bit. The file is believed in nothing: every entry is there, is what its kind says, lies in
 * its range and fits the others, or the run does not start. */
#include <ctype.h>
#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "augment.h"
#include "checkpoint.h"
#include "cli/command.h"

static const char format_key[] = "checkpoint", format_version[] = "adjoint 2";
enum { SETTINGS = 21, PLACES = 7, SUMS = 3, ENTRIES = SETTINGS + PLACES + SUMS + 1, TEXT = 40 };
/* A setting that the command line may change: it is last. */
enum { FREE_SETTINGS = 1 };

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
        {"epochs", "", "", .integer = &o->epochs, .range = {1, 100000}},
        {"batch", "", "", .integer = &o->batch, .range = {1, 100000}},
        {"shift", "", "", .integer = &o->shift, .range = {0, MAX_SHIFT}},
        {"seed", "", "", .integer = &o->seed, .range = {0, 9e15}},
        {"lr", "", "", .real = &o->lr, .range = {1e-12, 1e6}},
        {"schedule", "", "", .text = &o->schedule, .words = SCHEDULE_WORDS},
        {"warmup", "", "", .real = &o->warmup, .range = {0, 100000}},
        {"weight-decay", "", "", .real = &o->weight_decay, .range = {0, 1}},
        {"clip", "", "", .real = &o->clip, .range = {0, 1e6}},
        {"smoothing", "", "", .real = &o->smoothing, .range = {0, 0.999}},
        {"threads", "", "", .integer = &o->threads, .range = {0, MAX_THREADS}},
    };
    memcpy(list, all, sizeof all);
}

static void list_places(position *p, const checkpoint_of *c, option list[PLACES])
{
    double images = (double)c->train->n;
    const option all[PLACES] = {
        {"epoch", "", "", .integer = &p->epoch, .range = {0, (double)c->o->epochs}},
        {"step", "", "", .integer = &p->step, .range = {0, (double)c->steps}},
        {"loss_sum", "", "", .real = &p->sum.loss, .range = {-HUGE_VAL, HUGE_VAL}},
        {"right", "", "", .integer = &p->sum.right, .range = {0, images}},
        {"images", "", "", .integer = &p->sum.count, .range = {0, images}},
        {"best_epoch", "", "", .integer = &p->best_epoch, .range = {0, (double)c->o->epochs}},
        {"best_accuracy", "", "", .real = &p->best, .range = {0, 100}},
    };
    memcpy(list, all, sizeof all);
}

/* FNV-1a. */
static uint64_t checksum(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
    return sum;
}

uint64_t data_checksum(const adj_dataset *d)
{
    const int64_t sizes[] = {d->n, d->h, d->w, d->c};
    uint64_t sum = checksum(UINT64_C(0xcbf29ce484222325), sizes, sizeof sizes);
    if (d->images != NULL)
        sum = checksum(sum, d->images, (size_t)(d->n * d->h * d->w * d->c));
    else { /* of images in files, what all their pixels come into */
        sum = checksum(sum, d->mean, sizeof d->mean);
        sum = checksum(sum, d->deviation, sizeof d->deviation);
    }
    return checksum(sum, d->labels, (size_t)d->n * sizeof *d->labels);
}

/* What must come out the same again: entries of the metadata, as text. */
static void list_sums(const checkpoint_of *c, const position *p, char text[SUMS][TEXT])
{
    adj_shuffle(c->train->n, (uint64_t)c->o->seed, (uint64_t)p->epoch, c->order);
    uint64_t order = checksum(0, c->order, (size_t)c->train->n * sizeof *c->order);
    snprintf(text[0], TEXT, "%016llx", (unsigned long long)c->data_sum);
    snprintf(text[1], TEXT, "%016llx", (unsigned long long)order);
    snprintf(text[2], TEXT, "%lld", (long long)((p->epoch * c->steps + p->step) * c->o->batch));
}
static const char *const sum_keys[SUMS] = {"data", "order", "images_drawn"};
static const char *const sum_meanings[SUMS] = {
    "it was trained on other data (is --data the same?)",
    "its order of the images cannot be made again",
    "its count of images drawn does not fit its position",
};

/* ---- writing ---- */

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

adj_status checkpoint_save(const checkpoint_of *c, const network *n, const position *p,
                           adj_error *error)
{
    char text[SETTINGS + PLACES][TEXT], sums[SUMS][TEXT];
    option list[SETTINGS + PLACES];
    adj_metadata entry[ENTRIES];
    train_opts o = *c->o;
    position now = *p;
    int k = 0;

    list_settings(&o, list);
    list_places(&now, c, list + SETTINGS);
    list_sums(c, p, sums);
    for (; k < SETTINGS + PLACES; k++)
        entry[k] = entry_of(&list[k], text[k]);
    for (int i = 0; i < SUMS; i++)
        entry[k++] = (adj_metadata){sum_keys[i], sums[i]};
    entry[k++] = (adj_metadata){format_key, format_version};
    return adj_weights_save(n->exec, o.checkpoint, k, entry, error);
}

/* ---- reading ---- */

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

/* Stores an entry of the file where the option says. */
static int read_entry(const char *path, const adj_tensors *file, const option *o)
{
    char list[WORD_LIST];
    const char *text = adj_tensors_metadata(file, o->name);

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

int checkpoint_open(train_opts *o, adj_tensors **file)
{
    option given[SETTINGS], stored[SETTINGS];
    train_opts there = *o;
    int status = CONTINUE;

    if (adj_tensors_read(o->checkpoint, file) != ADJ_OK)
        return complain("train", EXIT_FAILED, "--resume: %s", adj_tensors_message(*file));
    const char *version = adj_tensors_metadata(*file, format_key);
    if (version == NULL || strcmp(version, format_version) != 0)
        return refuse(o->checkpoint, "is no checkpoint of this version of adjoint");
    list_settings(o, given);
    there.data = data_defaults;
    there.data.path = o->data.path;
    list_settings(&there, stored);
    for (int i = 0; i < SETTINGS && status == CONTINUE; i++) {
        status = read_entry(o->checkpoint, *file, &stored[i]);
        if (status == CONTINUE && is_set(&given[i]) && i < SETTINGS - FREE_SETTINGS)
            status = agree(o->checkpoint, &given[i], &stored[i]);
    }
    if (status == CONTINUE)
        warn_of_threads(o, &there);
    if (o->threads != UNSET)
        there.threads = o->threads;
    *o = there;
    return status;
}

/* Whether the tallies fit the steps that they are said to be of. */
static int possible(const checkpoint_of *c, const position *p)
{
    int64_t images = p->step * c->o->batch < c->train->n ? p->step * c->o->batch : c->train->n;
    return p->sum.count == images && p->sum.right <= images && p->best_epoch <= p->epoch &&
           (p->epoch < c->o->epochs || p->step == 0);
}

int checkpoint_restore(const adj_tensors *file, const checkpoint_of *c, network *n, position *p)
{
    const char *path = c->o->checkpoint;
    option places[PLACES];
    char sums[SUMS][TEXT];
    adj_error error;
    int status = CONTINUE;

    list_places(p, c, places);
    for (int i = 0; i < PLACES && status == CONTINUE; i++)
        status = read_entry(path, file, &places[i]);
    if (status != CONTINUE)
        return status;
    list_sums(c, p, sums);
    for (int i = 0; i < SUMS; i++) {
        const char *text = adj_tensors_metadata(file, sum_keys[i]);
        if (text == NULL || strcmp(text, sums[i]) != 0)
            return refuse(path, "%s", sum_meanings[i]);
    }
    if (!possible(c, p))
        return refuse(path, "its counts do not fit each other");
    if (adj_weights_set(n->exec, file, &error) != ADJ_OK)
        return refuse(path, "%s", error.message);
    return CONTINUE;
}
