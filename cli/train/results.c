/* results.c - see results.h. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine/machine.h"
#include "cli/recipe.h"
#include "report.h"
#include "results.h"
#include "settings.h"

enum {
    BATCH = 100, /* images that are asked about at a time */
    TEXT = 160,
    FACTS = 20
};

/* What the report points to. */
typedef struct {
    answers answers;
    int32_t *truth, *guess;
    float *probability;
    int64_t mistake[REPORT_MISTAKES];
    picture image[REPORT_MISTAKES];
    int n_mistake, n_fact;
    const adj_model_card *card; /* the predictor's */
    char title[TEXT], summary[2 * TEXT], fact_text[FACTS][TEXT];
    report_fact fact[FACTS];
} gathered;

/* ---- answers ---- */

static int32_t largest(int64_t classes, const float probability[])
{
    int64_t best = 0;
    for (int64_t k = 1; k < classes; k++)
        best = probability[k] > probability[best] ? k : best;
    return (int32_t)best;
}

static int allocate_answers(gathered *g, int64_t n)
{
    g->truth = malloc((size_t)n * sizeof *g->truth);
    g->guess = malloc((size_t)n * sizeof *g->guess);
    g->probability = malloc((size_t)n * sizeof *g->probability);
    return g->truth != NULL && g->guess != NULL && g->probability != NULL;
}

/* Asks about all images, which l has in pixel units. */
static adj_status ask(adj_predictor *p, adj_loader *l, const adj_dataset *d, gathered *g,
                      adj_error *error)
{
    const int64_t classes = adj_predictor_card(p)->classes;
    float *probabilities = malloc((size_t)(BATCH * classes) * sizeof *probabilities);
    adj_status status = ADJ_OK;
    int64_t at = 0;
    if (probabilities == NULL || !allocate_answers(g, d->n)) {
        free(probabilities);
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    }
    while (at < d->n && status == ADJ_OK) {
        adj_loader_batch b = {0};
        status = adj_loader_next(l, &b, error);
        if (status == ADJ_OK)
            status = adj_predict_floats(p, b.count, b.x, probabilities, error);
        for (int64_t i = 0; i < b.count && status == ADJ_OK; i++, at++) {
            const float *of_image = probabilities + i * classes;
            g->truth[at] = b.labels[i];
            g->guess[at] = largest(classes, of_image);
            g->probability[at] = of_image[g->guess[at]];
        }
    }
    free(probabilities);
    g->answers = (answers){d->n, (int)classes, g->truth, g->guess, g->probability};
    return status;
}

static adj_status gather_answers(const results_of *r, gathered *g, adj_error *error)
{
    static const float zero[ADJ_MAX_CHANNELS], one[ADJ_MAX_CHANNELS] = {1, 1, 1, 1};
    adj_predictor *p = adj_trainer_predictor(r->trainer, error);
    adj_loader *l = NULL;
    if (p == NULL)
        return ADJ_ENOMEM;
    const adj_model_card *card = adj_predictor_card(p);
    const adj_loader_opts o = {.batch = BATCH,
                               .h = card->height,
                               .w = card->width,
                               .c = card->channels,
                               .mean = zero,
                               .deviation = one};
    g->card = card;
    adj_status status = adj_loader_new(r->held_out, &o, &l, error);
    if (status == ADJ_OK)
        status = ask(p, l, r->held_out, g, error);
    adj_loader_free(l);
    return status;
}

/* ---- mistakes ---- */

/* Maps the smallest of n values to 0 and the largest to 255. */
static void spread(float *x, int64_t n)
{
    float low = x[0], high = x[0];
    for (int64_t i = 1; i < n; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = high > low ? 255 * (x[i] - low) / (high - low) : 0;
}

/* Image i of d in bytes, without alpha. p->pixels is the caller's to free. */
static adj_status take_picture(const adj_dataset *d, int64_t i, picture *p, adj_error *error)
{
    const int64_t c = d->c >= 3 ? 3 : 1;
    float *x = calloc((size_t)(d->h * d->w * d->c), sizeof *x);
    uint8_t *pixels = calloc((size_t)(d->h * d->w * c), 1);

    *p = (picture){d->w, d->h, c, pixels};
    if (x == NULL || pixels == NULL) {
        free(x);
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    }
    const adj_status status = adj_dataset_read(d, i, x, error);
    if (d->normalized)
        spread(x, d->h * d->w * d->c);
    for (int64_t k = 0; k < d->h * d->w * c && status == ADJ_OK; k++)
        pixels[k] = (uint8_t)(fminf(fmaxf(x[k / c * d->c + k % c], 0), 255) + 0.5F);
    free(x);
    return status;
}

static adj_status gather_mistakes(const results_of *r, gathered *g, adj_error *error)
{
    adj_status status = ADJ_OK;
    g->n_mistake = list_confident_mistakes(&g->answers, REPORT_MISTAKES, g->mistake);
    for (int k = 0; k < g->n_mistake && status == ADJ_OK; k++)
        status = take_picture(r->held_out, g->mistake[k], &g->image[k], error);
    return status;
}

/* ---- the words ---- */

static void add_fact(gathered *g, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_fact(gathered *g, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g->fact[g->n_fact] = (report_fact){name, g->fact_text[g->n_fact]};
    vsnprintf(g->fact_text[g->n_fact++], TEXT, format, args);
    va_end(args);
}

static void list_outcome(const results_of *r, gathered *g)
{
    const history *h = r->history;
    if (h->n_epoch > 0) {
        const history_epoch_entry *last = &h->epoch[h->n_epoch - 1];
        add_fact(g, "accuracy", "%.2f %% of the %s part, loss %.4f", last->held_out_accuracy,
                 r->held_out_name, last->held_out_loss);
    }
    if (r->best_epoch > 0)
        add_fact(g, "best",
                 "%.2f %% in epoch %lld, chosen by the %s part: it is no independent one", r->best,
                 (long long)r->best_epoch, r->held_out_name);
    add_fact(g, "parameters", "%lld", (long long)adj_trainable_elems(adj_trainer_loss(r->trainer)));
    add_fact(g, "time", "%.1f s", r->seconds);
}

static void list_facts(const results_of *r, gathered *g)
{
    const train_opts *o = r->o;
    char version[64] = "", augmentation[AUGMENTATION_TEXT], settings[RECIPE_TEXT];
    const machine_facts machine = machine_look("");
    const adj_recipe recipe = recipe_of(o);
    const adj_fit_progress at = adj_trainer_progress(r->trainer);
    (void)adj_backend_describe("onednn", version, sizeof version);
    add_fact(g, "model", "%s, images of %lld x %lld x %lld, %lld classes", o->model,
             (long long)g->card->height, (long long)g->card->width, (long long)g->card->channels,
             (long long)g->card->classes);
    add_fact(g, "data", "%s: %lld images to train on, %lld in the %s part", data_name(o->data.path),
             (long long)r->train->n, (long long)r->held_out->n, r->held_out_name);
    add_fact(g, "epochs", "%lld", (long long)o->epochs);
    add_fact(g, "optimizer", "%s", recipe_text(&recipe, settings));
    add_fact(g, "augmentation", "%s", augmentation_text(o, augmentation));
    add_fact(g, "class weights", "%s", o->class_weights);
    add_fact(g, "seed", "%lld", (long long)o->seed);
    add_fact(g, "precision", "%s, %s math", o->precision, o->math);
    if (at.loss_scale > 0)
        add_fact(g, "loss scale", "%g, %lld steps skipped", at.loss_scale, (long long)at.skipped);
    add_fact(g, "backend, threads", "%s, %lld", o->backend, (long long)o->threads);
    add_fact(g, "processor", "%s", machine.name);
    add_fact(g, "versions", "adjoint %s, oneDNN %s", adj_version_text(), version);
}

static void write_words(const results_of *r, gathered *g)
{
    long long epochs =
        r->history->n_epoch > 0 ? r->history->epoch[r->history->n_epoch - 1].epoch : 0;
    snprintf(g->title, sizeof g->title, "%s on %s", r->o->model, data_name(r->o->data.path));
    snprintf(g->summary, sizeof g->summary, "%s %lld of %lld epochs.",
             r->interrupted ? "Interrupted after" : "Trained for", epochs, (long long)r->o->epochs);
    list_outcome(r, g);
    list_facts(r, g);
}

static int is_plain_word(const char *word)
{
    return word[0] != '\0' &&
           word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "-_./=,:+@%")] == '\0';
}

/* As a shell takes it. NULL: out of memory. To be freed. */
static char *command_line(int argc, char **argv)
{
    char *line = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&line, &size);
    if (f == NULL)
        return NULL;
    fputs("adjoint train", f);
    for (int i = 1; i < argc; i++) {
        int plain = is_plain_word(argv[i]);
        fputs(plain ? " " : " '", f);
        for (const char *c = argv[i]; *c != '\0'; c++)
            fputs(*c == '\'' ? "'\\''" : (char[]){*c, '\0'}, f);
        fputs(plain ? "" : "'", f);
    }
    return fclose(f) == 0 ? line : NULL;
}

/* ---- all ---- */

static int write_page(FILE *f, void *user) { return report_write(f, user); }

static adj_status write_gathered(const results_of *r, gathered *g, const char *line,
                                 const char *path, adj_error *error)
{
    write_words(r, g);
    report page = {.title = g->title,
                   .summary = g->summary,
                   .command = line,
                   .held_out_name = r->held_out_name,
                   .history = r->history,
                   .answers = &g->answers,
                   .class_name = g->card->class_names,
                   .n_mistake = g->n_mistake,
                   .n_fact = g->n_fact,
                   .mistake = g->mistake,
                   .image = g->image,
                   .fact = g->fact};
    return adj_file_replace(path, write_page, &page, error);
}

static void gathered_free(gathered *g)
{
    for (int i = 0; i < g->n_mistake; i++)
        free((uint8_t *)g->image[i].pixels);
    free(g->truth);
    free(g->guess);
    free(g->probability);
    free(g);
}

static adj_status gather_and_write(const results_of *r, gathered *g, const char *line,
                                   const char *path, adj_error *error)
{
    adj_status status = gather_answers(r, g, error);
    if (status == ADJ_OK)
        status = gather_mistakes(r, g, error);
    if (status == ADJ_OK)
        status = write_gathered(r, g, line, path, error);
    return status;
}

adj_status results_write(const results_of *r, const char *path, adj_error *error)
{
    gathered *g = calloc(1, sizeof *g);
    char *line = command_line(r->argc, r->argv);
    adj_status status = g != NULL && line != NULL
                            ? gather_and_write(r, g, line, path, error)
                            : adj_error_set(error, ADJ_ENOMEM, "out of memory");
    if (g != NULL)
        gathered_free(g);
    free(line);
    return status;
}
