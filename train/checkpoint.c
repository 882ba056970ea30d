/* checkpoint.c - saves and resumes a training.
 *
 * A safetensors file. Its tensors are the parameters and states of the training executor (weights,
 * the optimizer's state, running statistics, step counters); its metadata are the settings, the
 * position, the model card, by which predictors load it like a weights file, and checksums of the
 * data and of the order of the images. All random numbers come from counters, so seed and position
 * are the whole random state. The file is not trusted: the training resumes only if every entry
 * exists, has its kind, lies in its range and is consistent with the others. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "exec/internal.h"
#include "io/tensors/formats.h"
#include "trainer.h"

static const char format_key[] = "checkpoint", format_version[] = "adjoint 2";
enum { PLACES = 8, SUMS = 3 };

static void list_places(position *p, const settings *s, int64_t steps, int64_t n,
                        entry list[PLACES])
{
    const int own = strcmp(s->loss, "softmax") != 0;
    const entry all[PLACES] = {
        {"epoch", .integer = &p->epoch, .high = (double)s->o.epochs},
        {"step", .integer = &p->step, .high = (double)steps},
        {"loss_sum", .real = &p->loss, .low = -HUGE_VAL, .high = HUGE_VAL},
        {"right", .integer = &p->right, .high = (double)n},
        {"images", .integer = &p->count, .high = (double)n},
        {"best_epoch", .integer = &p->best_epoch, .high = (double)s->o.epochs},
        {"best_accuracy", .real = &p->best, .low = own ? -HUGE_VAL : 0, .high = own ? HUGE_VAL : 1},
        {"held_out_accuracy", .real = &p->accuracy, .high = 1, .before = "0"},
    };
    memcpy(list, all, sizeof all);
}

/* ---- what must come out the same again ---- */

static uint64_t hash_number(uint64_t sum, int64_t number)
{
    return hash_bytes(sum, &number, sizeof number);
}

/* Adds up to 64 images, evenly spread, to the checksum; skips one that cannot be read. */
static uint64_t sum_of_sample(uint64_t sum, const adj_dataset *d)
{
    const size_t elems = (size_t)(d->size.h * d->size.w * d->size.c);
    const int64_t n = d->n < 64 ? d->n : 64;
    float *image = malloc(elems * sizeof *image);

    for (int64_t i = 0; image != NULL && i < n; i++)
        if (adj_dataset_read(d, i * d->n / n, image, NULL) == ADJ_OK)
            sum = hash_words(sum, image, elems * sizeof *image);
    free(image);
    return sum;
}

uint64_t data_sum(const adj_dataset *d)
{
    uint64_t sum = hash_number(HASH_START, d->n);
    sum = hash_number(hash_number(hash_number(sum, d->size.h), d->size.w), d->size.c);
    if (d->images != NULL)
        sum = hash_bytes(sum, d->images, (size_t)(d->n * d->size.h * d->size.w * d->size.c));
    else
        sum = sum_of_sample(sum, d);
    sum = hash_bytes(sum, d->mean, (size_t)d->size.c * sizeof *d->mean);
    sum = hash_bytes(sum, d->deviation, (size_t)d->size.c * sizeof *d->deviation);
    if (d->targets != NULL)
        return hash_bytes(sum, d->targets, (size_t)(d->n * d->classes) * sizeof *d->targets);
    return hash_bytes(sum, d->labels, (size_t)d->n * sizeof *d->labels);
}

/* Computes the checksum of an epoch's order of images; returns 0 when out of memory. */
static int order_checksum(const settings *s, int64_t n, int64_t epoch, uint64_t *sum)
{
    int64_t *order = calloc((size_t)n, sizeof *order);
    if (order == NULL)
        return 0;
    adj_shuffle(n, s->o.exec.seed, (uint64_t)epoch, order);
    *sum = hash_bytes(0, order, (size_t)n * sizeof *order);
    free(order);
    return 1;
}

static const char *const sum_keys[SUMS] = {"data", "order", "images_drawn"};
static const char *const sum_meanings[SUMS] = {
    "it was trained on other data",
    "its order of images cannot be reproduced",
    "its count of images does not match its position",
};

/* Writes the checksums as text; returns 0 when out of memory. */
static int list_sums(adj_trainer *t, const position *p, char text[SUMS][ENTRY_TEXT])
{
    uint64_t order = 0;
    if (!order_checksum(&t->set, t->train->n, p->epoch, &order))
        return 0;
    snprintf(text[0], ENTRY_TEXT, "%016llx", (unsigned long long)trainer_data_sum(t));
    snprintf(text[1], ENTRY_TEXT, "%016llx", (unsigned long long)order);
    snprintf(text[2], ENTRY_TEXT, "%lld",
             (long long)((p->epoch * t->steps + p->step) * step_images(&t->set)));
    return 1;
}

/* Selections of tuned kernels: for steps, and for the evaluation that finds the best epoch. "":
 * none. */
enum { SELECTIONS = 2 };
static const char *const selection_keys[SELECTIONS] = {"selection", "evaluation_selection"};
static const char selection_sum[] = "selection_sum";

static void list_selections(const adj_trainer *t, const char *list[SELECTIONS])
{
    const adj_predictor *p = t->predictor;
    const workers *evaluation = &p->planned[EVALUATION].w;
    list[0] = adj_exec_selection(t->steps_net.exec);
    list[1] = evaluation->n > 0           ? adj_exec_selection(evaluation->exec[0])
              : p->plan.selection != NULL ? p->plan.selection
                                          : "";
}

/* Computes the checksum of both selections, since a damaged one would change the training. */
static void add_up_selections(const char *const list[SELECTIONS], char sum[ENTRY_TEXT])
{
    uint64_t all = 0;
    for (int i = 0; i < SELECTIONS; i++)
        all = hash_bytes(hash_number(all, i), list[i], strlen(list[i]));
    snprintf(sum, ENTRY_TEXT, "%016llx", (unsigned long long)all);
}

static adj_status restore_selections(adj_trainer *t, const adj_tensors *file, adj_error *error)
{
    const char *list[SELECTIONS], *expected = adj_tensors_metadata(file, selection_sum);
    char sum[ENTRY_TEXT];
    for (int i = 0; i < SELECTIONS; i++)
        if ((list[i] = adj_tensors_metadata(file, selection_keys[i])) == NULL)
            list[i] = "";
    add_up_selections(list, sum);
    int is_older = expected == NULL && list[0][0] == '\0' && list[1][0] == '\0';
    if (!is_older && (expected == NULL || strcmp(expected, sum) != 0))
        return adj_error_set(error, ADJ_EIO, "its selection of kernels is damaged");
    return trainer_select(t, list[0], list[1], error);
}

/* ---- writing ---- */

static adj_status write_file(adj_trainer *t, const char *path, adj_error *error)
{
    entry list[MAX_ENTRIES + PLACES];
    char text[MAX_ENTRIES + PLACES][ENTRY_TEXT], sums[SUMS][ENTRY_TEXT];
    const char *selections[SELECTIONS];
    char of_selections[ENTRY_TEXT];

    int n = settings_entries(&t->set, list);
    list_places(&t->at, &t->set, t->steps, t->train->n, list + n);
    n += PLACES;
    if (!list_sums(t, &t->at, sums))
        return adj_error_set(error, ADJ_ENOMEM, "checkpoint: out of memory");
    const int given = t->set.o.checkpoint.n_metadata;
    adj_metadata *all =
        malloc((size_t)(n + SUMS + SELECTIONS + 2 + (given > 0 ? given : 0)) * sizeof *all);
    if (all == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "checkpoint: out of memory");
    for (int i = 0; i < n; i++)
        all[i] = (adj_metadata){list[i].key, entry_text(&list[i], text[i])};
    for (int i = 0; i < SUMS; i++)
        all[n++] = (adj_metadata){sum_keys[i], sums[i]};
    list_selections(t, selections);
    add_up_selections(selections, of_selections);
    all[n++] = (adj_metadata){selection_sum, of_selections};
    all[n++] = (adj_metadata){format_key, format_version};
    for (int i = 0; i < SELECTIONS; i++)
        all[n + i] = (adj_metadata){selection_keys[i], selections[i]};
    adj_status status =
        metadata_check(given, t->set.o.checkpoint.metadata, n + SELECTIONS, all, error);
    for (int i = 0; i < SELECTIONS; i++)
        if (selections[i][0] != '\0')
            all[n++] = (adj_metadata){selection_keys[i], selections[i]};
    for (int i = 0; i < given && status == ADJ_OK; i++)
        all[n++] = t->set.o.checkpoint.metadata[i];
    /* the predictor's accuracy is of an evaluation, not of these parameters */
    if (status == ADJ_OK)
        status = predictor_write(t->predictor, 0, t->steps_net.exec, path, n, all, error);
    free(all);
    return status;
}

adj_status adj_trainer_save(adj_trainer *t, const char *path, adj_error *error)
{
    adj_status status = ADJ_OK;
    if (t == NULL)
        return adj_error_set(error, ADJ_EARG, "checkpoint: expected a trainer");
    if (ranks_rank(t->ranks.ranks) == 0)
        status = write_file(t, path, error);
    return ranks_share_status(&t->ranks, status, error);
}

/* ---- reading ---- */

enum { EXPECTATION = 160 };

/* Returns the valid values of an entry in words, for messages. */
static const char *expectation(const entry *e, char text[EXPECTATION])
{
    size_t used = 0;
    if (e->words == NULL) {
        if (e->text != NULL)
            return "a name";
        if (e->high > DBL_MAX)
            return "a finite number";
        c_snprintf(text, EXPECTATION, "%s, %.9g to %.9g",
                   e->real == NULL ? "a whole number" : "a number", e->low, e->high);
        return text;
    }
    for (int i = 0; e->words[i] != NULL && used < EXPECTATION; i++)
        used += (size_t)snprintf(text + used, EXPECTATION - used, "%s%s",
                                 i == 0                    ? ""
                                 : e->words[i + 1] == NULL ? " or "
                                                           : ", ",
                                 e->words[i]);
    return text;
}

static adj_status read_entry(const adj_tensors *file, const entry *e, adj_error *error)
{
    const char *text = adj_tensors_metadata(file, e->key);
    char expected[EXPECTATION];
    text = text != NULL ? text : e->before;
    if (text == NULL)
        return adj_error_set(error, ADJ_EIO, "is not a checkpoint: entry %s is missing", e->key);
    if (!entry_store(e, text))
        return adj_error_set(error, ADJ_EIO, "entry %s is invalid (got %.80s, expected %s)", e->key,
                             text, expectation(e, expected));
    return ADJ_OK;
}

static adj_status read_entries(const adj_tensors *file, const entry list[], int n, adj_error *error)
{
    adj_status status = ADJ_OK;
    for (int i = 0; i < n && status == ADJ_OK; i++)
        status = read_entry(file, &list[i], error);
    return status;
}

/* Compares ours with the file's settings, in the order of ours. */
static adj_status compare_settings(settings *ours, settings *there, int prolongs, adj_error *error)
{
    entry here[MAX_ENTRIES], file[MAX_ENTRIES];
    char got[ENTRY_TEXT], expected[ENTRY_TEXT];
    int n = settings_entries(ours, here);

    settings_entries(there, file);
    for (int i = 0; i < n; i++) {
        if (here[i].may_change >= (prolongs ? TO_PROLONG : ALWAYS))
            continue;
        const char *a = entry_text(&here[i], got), *b = entry_text(&file[i], expected);
        if (strcmp(a, b) == 0)
            continue;
        if (here[i].real != NULL) {
            c_snprintf(got, sizeof got, "%g", *here[i].real);
            c_snprintf(expected, sizeof expected, "%g", *file[i].real);
        }
        return adj_error_set(error, ADJ_EARG, "entry %s differs (got %.80s, expected %.80s)",
                             here[i].key, a, b);
    }
    return ADJ_OK;
}

/* True if the sums are consistent with the position in the file. */
static int is_possible(const adj_trainer *t, const settings *there, const position *p)
{
    const int64_t taken = p->step * step_images(there);
    const int64_t images = taken < t->train->n ? taken : t->train->n;
    return p->count == images && p->right <= images && p->best_epoch <= p->epoch &&
           there->begun <= p->epoch && (p->epoch < there->o.epochs || p->step == 0);
}

/* Compares the sums first to end - 1; the first one, of the data, is the same for every position.
 */
static adj_status check_sums(adj_trainer *t, const adj_tensors *file, const position *p, int first,
                             int end, adj_error *error)
{
    char sums[SUMS][ENTRY_TEXT];
    if (!list_sums(t, p, sums))
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    for (int i = first; i < end; i++) {
        const char *text = adj_tensors_metadata(file, sum_keys[i]);
        if (text == NULL || strcmp(text, sums[i]) != 0)
            return adj_error_set(error, ADJ_EARG, "%s", sum_meanings[i]);
    }
    return ADJ_OK;
}

/* Fails if there are more epochs than in the file and its training was not finished. */
static adj_status check_epochs(const settings *ours, const settings *there, const position *p,
                               adj_error *error)
{
    if (ours->o.epochs == there->o.epochs)
        return ADJ_OK;
    if (ours->o.epochs < there->o.epochs)
        return adj_error_set(
            error, ADJ_EARG,
            "entry epochs differs (got %lld, expected %lld; more only after those are done)",
            (long long)ours->o.epochs, (long long)there->o.epochs);
    if (p->epoch < there->o.epochs)
        return adj_error_set(
            error, ADJ_EARG,
            "epochs can be added only after its run is complete (%lld of %lld epochs are done)",
            (long long)p->epoch, (long long)there->o.epochs);
    return ADJ_OK;
}

static adj_status restore(adj_trainer *t, const adj_tensors *file, adj_error *error)
{
    static const adj_weights_opts exact = {.exact = 1};
    entry list[MAX_ENTRIES], places[PLACES];
    settings there = t->set;
    position p = {0};
    const char *version = adj_tensors_metadata(file, format_key);

    if (version == NULL || strcmp(version, format_version) != 0)
        return adj_error_set(error, ADJ_EIO, "is not a checkpoint of this version of adjoint");
    adj_status status = read_entries(file, list, settings_entries(&there, list), error);
    const int prolongs = t->set.o.epochs > there.o.epochs;
    if (status == ADJ_OK)
        status = compare_settings(&t->set, &there, prolongs, error);
    if (status == ADJ_OK) /* first: the position in other data can be out of range */
        status = check_sums(t, file, &p, 0, 1, error);
    list_places(&p, &there, t->steps, t->train->n, places);
    if (status == ADJ_OK)
        status = read_entries(file, places, PLACES, error);
    if (status == ADJ_OK)
        status = check_epochs(&t->set, &there, &p, error);
    if (status == ADJ_OK)
        status = check_sums(t, file, &p, 1, SUMS, error);
    if (status == ADJ_OK && !is_possible(t, &there, &p))
        status = adj_error_set(error, ADJ_EIO, "its counts are inconsistent");
    if (status == ADJ_OK)
        status = restore_selections(t, file, error);
    if (status == ADJ_OK)
        status = adj_weights_set(t->steps_net.exec, file, &exact, error);
    if (status != ADJ_OK)
        return status;
    t->at = p;
    t->done++;
    /* schedules STEP and EXPONENTIAL continue, the others start again */
    const int falls =
        there.rate.kind == ADJ_SCHEDULE_STEP || there.rate.kind == ADJ_SCHEDULE_EXPONENTIAL;
    t->set.begun = prolongs && !falls ? there.o.epochs : there.begun;
    return adj_loader_seek(t->loader, p.epoch, p.step, error);
}

adj_status adj_trainer_resume(adj_trainer *t, const char *path, adj_error *error)
{
    adj_tensors *file = NULL;
    adj_error why = {0};

    if (t == NULL || path == NULL)
        return adj_error_set(error, ADJ_EARG, "checkpoint: expected a trainer and a file's name");
    adj_status status = adj_tensors_read(path, &file);
    if (status != ADJ_OK)
        adj_error_set(error, status, "%s", file->message);
    else if ((status = restore(t, file, &why)) != ADJ_OK)
        adj_error_set(error, status, "%.200s: %.300s", path, why.message);
    adj_tensors_free(file);
    return status;
}
