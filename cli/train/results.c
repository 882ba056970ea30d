/* results.c - see results.h. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/recipe.h"
#include "cli/train/report/plan.h"
#include "exec/machine/machine.h"
#include "results.h"
#include "settings.h"

enum {
    PLAN_RUNS = 15,
    BATCH = 100, /* images that are asked about at a time */
    SIDE = 112,  /* pixels of a mistake's picture, about */
    TEXT = 160,
    FACTS = 20,
    TILES = 6,
    LABEL = 32
};
static const double plan_seconds = 1.0;

/* What the report points to. */
typedef struct {
    answers answers;
    int32_t *truth, *guess;
    float *probability;
    report_mistake mistake[REPORT_MISTAKES];
    int n_mistake;
    const adj_model_card *card; /* the predictor's */
    report_filters filters;
    float *weights; /* of filters */
    report_plan plan;
    report_step range[ADJ_RANGE_STEPS];
    char filter_name[TEXT], title[TEXT], summary[2 * TEXT];
    char held_out_accuracy[LABEL], held_out_loss[LABEL]; /* names of tiles */
    char tile_text[TILES][PAGE_NUMBER], fact_text[FACTS][TEXT];
    page_fact tile[TILES], fact[FACTS];
    int n_tile, n_fact;
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

/* Image i of d in bytes, without alpha; made smaller by a whole factor, as the means of so many
 * pixels, where it is large. p->pixels is the caller's to free. */
static adj_status take_picture(const adj_dataset *d, int64_t i, picture *p, adj_error *error)
{
    int64_t longest = d->h > d->w ? d->h : d->w, factor = (longest + SIDE - 1) / SIDE;
    int64_t h = d->h / factor, w = d->w / factor, c = d->c >= 3 ? 3 : 1;
    if (h < 1 || w < 1) { /* long and narrow */
        factor = 1;
        h = d->h;
        w = d->w;
    }
    float *x = calloc((size_t)(d->h * d->w * d->c), sizeof *x);
    uint8_t *pixels = malloc((size_t)(h * w * c));
    if (x == NULL || pixels == NULL) {
        free(x);
        free(pixels);
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    }
    adj_status status = adj_dataset_read(d, i, x, error);
    if (d->normalized)
        spread(x, d->h * d->w * d->c);
    for (int64_t k = 0; k < h * w * c && status == ADJ_OK; k++) {
        int64_t row = k / c / w * factor, column = k / c % w * factor;
        double sum = 0;
        for (int64_t j = 0; j < factor * factor; j++)
            sum += x[((row + j / factor) * d->w + column + j % factor) * d->c + k % c];
        double mean = sum / (double)(factor * factor);
        pixels[k] = (uint8_t)(mean < 0 ? 0 : mean > 255 ? 255 : mean + 0.5);
    }
    free(x);
    *p = (picture){w, h, c, pixels};
    return status;
}

static adj_status gather_mistakes(const results_of *r, gathered *g, adj_error *error)
{
    int64_t index[REPORT_MISTAKES];
    adj_status status = ADJ_OK;
    int n = list_confident_mistakes(&g->answers, REPORT_MISTAKES, index);
    for (int k = 0; k < n && status == ADJ_OK; k++) {
        report_mistake *m = &g->mistake[g->n_mistake++];
        *m = (report_mistake){.truth = g->truth[index[k]],
                              .guess = g->guess[index[k]],
                              .probability = g->probability[index[k]],
                              .index = index[k]};
        status = take_picture(r->held_out, index[k], &m->image, error);
    }
    return status;
}

/* ---- the first layer ---- */

/* A convolution's filters, or the units of a dense layer over images. */
static void gather_filters(const results_of *r, gathered *g)
{
    adj_exec *e = adj_trainer_exec(r->trainer);
    const adj_model_card *card = g->card;
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        adj_node *p = adj_exec_param_at(e, i);
        adj_type t = adj_node_type(p);
        adj_shape s = t.shape;
        if (!adj_node_is_param(p) || s.rank < 2 || t.dtype != ADJ_F32)
            continue;
        if (s.rank == 2 && s.dim[0] == card->height * card->width * card->channels)
            s = (adj_shape){4, {card->height, card->width, card->channels, s.dim[1]}};
        g->weights = malloc(adj_type_bytes(t));
        if (s.rank != 4 || s.dim[0] * s.dim[1] < 2 || g->weights == NULL ||
            adj_get(e, p, g->weights, adj_type_bytes(t)) != ADJ_OK)
            return;
        layer_name(p, sizeof g->filter_name, g->filter_name);
        g->filters =
            (report_filters){g->filter_name, s.dim[0], s.dim[1], s.dim[2], s.dim[3], g->weights};
        return;
    }
}

/* The averages, among which a rate was chosen. */
static void gather_range(const adj_range_test *t, gathered *g)
{
    for (int i = 0; t != NULL && i < t->n; i++)
        g->range[i] = (report_step){.at = i, .loss = t->smooth[i], .lr = t->lr[i]};
}

/* ---- the words ---- */

static char *next_tile(gathered *g, const char *name)
{
    g->tile[g->n_tile] = (page_fact){name, g->tile_text[g->n_tile]};
    return g->tile_text[g->n_tile++];
}

static void add_fact(gathered *g, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add_fact(gathered *g, const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g->fact[g->n_fact] = (page_fact){name, g->fact_text[g->n_fact]};
    vsnprintf(g->fact_text[g->n_fact++], TEXT, format, args);
    va_end(args);
}

static void list_tiles(const results_of *r, gathered *g)
{
    const history *h = r->history;
    if (h->n_epoch > 0) {
        const report_epoch *last = &h->epoch[h->n_epoch - 1];
        snprintf(g->held_out_accuracy, LABEL, "%s accuracy", r->held_out_name);
        snprintf(g->held_out_loss, LABEL, "%s loss", r->held_out_name);
        snprintf(next_tile(g, g->held_out_accuracy), PAGE_NUMBER, "%.2f %%",
                 last->held_out_accuracy);
        snprintf(next_tile(g, g->held_out_loss), PAGE_NUMBER, "%.4f", last->held_out_loss);
    }
    if (r->best_epoch > 0)
        snprintf(next_tile(g, "best accuracy"), PAGE_NUMBER, "%.2f %%", r->best);
    (void)page_whole(next_tile(g, "parameters"), adj_trainable_elems(adj_trainer_loss(r->trainer)));
    (void)page_whole(next_tile(g, "training images"), r->train->n);
    (void)page_seconds(next_tile(g, "training time"), r->seconds);
}

static void list_facts(const results_of *r, gathered *g)
{
    const train_opts *o = r->o;
    char version[64] = "", augmentation[AUGMENTATION_TEXT], settings[RECIPE_TEXT];
    const machine_facts machine = machine_look("");
    const adj_recipe recipe = recipe_of(o);
    const adj_fit_progress at = adj_trainer_progress(r->trainer);
    const adj_exec_info plan = adj_exec_stats(adj_trainer_exec(r->trainer));
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
    add_fact(g, "best epoch", "%lld, chosen by the %s part: its accuracy is no independent one",
             (long long)r->best_epoch, r->held_out_name);
    add_fact(g, "precision", "%s, %s math", o->precision, o->math);
    if (at.loss_scale > 0)
        add_fact(g, "loss scale", "%g, %lld steps skipped", at.loss_scale, (long long)at.skipped);
    add_fact(g, "backend, threads", "%s, %lld", o->backend, (long long)o->threads);
    if (plan.second_threads > 0)
        add_fact(g, "beside other processes", "%d thread%s while that is faster",
                 plan.second_threads, plan.second_threads > 1 ? "s" : "");
    add_fact(g, "processor", "%s", machine.name);
    add_fact(g, "versions", "adjoint %s, oneDNN %s", adj_version_text(), version);
}

static void write_words(const results_of *r, gathered *g)
{
    char time[PAGE_NUMBER];
    long long epochs =
        r->history->n_epoch > 0 ? r->history->epoch[r->history->n_epoch - 1].epoch : 0;
    snprintf(g->title, sizeof g->title, "%s on %s", r->o->model, data_name(r->o->data.path));
    snprintf(g->summary, sizeof g->summary, "%s %lld of %lld epochs, %s in this run.",
             r->interrupted ? "Interrupted after" : "Trained for", epochs, (long long)r->o->epochs,
             page_seconds(time, r->seconds));
    list_tiles(r, g);
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

static adj_status gather(const results_of *r, gathered *g, adj_error *error)
{
    adj_exec *e = adj_trainer_exec(r->trainer);
    adj_status status = gather_answers(r, g, error);
    if (status == ADJ_OK)
        status = gather_mistakes(r, g, error);
    if (status == ADJ_OK)
        gather_filters(r, g);
    gather_range(r->range, g);
    /* no step was made: there are no inputs to run on; or it takes all ranks to make one */
    if (status != ADJ_OK || !r->ran || adj_trainer_progress(r->trainer).n_rank > 1)
        return status;
    g->plan.batch = r->o->batch;
    status = plan_measure(&g->plan, adj_trainer_loss(r->trainer), e, PLAN_RUNS, plan_seconds);
    if (status == ADJ_OK)
        return ADJ_OK;
    return adj_error_set(error, status, "%s",
                         status == ADJ_ENOMEM ? "out of memory" : adj_exec_message(e));
}

static adj_status write_gathered(const results_of *r, gathered *g, const char *line,
                                 const char *path, adj_error *error)
{
    write_words(r, g);
    report page = {.title = g->title,
                   .summary = g->summary,
                   .command = line,
                   .held_out_name = r->held_out_name,
                   .n_tile = g->n_tile,
                   .n_fact = g->n_fact,
                   .tile = g->tile,
                   .fact = g->fact,
                   .n_epoch = r->history->n_epoch,
                   .n_step = r->history->n_step,
                   .epoch = r->history->epoch,
                   .step = r->history->step,
                   .n_range = r->range != NULL ? r->range->n : 0,
                   .range = g->range,
                   .answers = &g->answers,
                   .class_name = g->card->class_names,
                   .n_mistake = g->n_mistake,
                   .mistake = g->mistake,
                   .filters = &g->filters,
                   .plan = &g->plan};
    return adj_file_replace(path, write_page, &page, error);
}

static void gathered_free(gathered *g)
{
    for (int i = 0; i < g->n_mistake; i++)
        free((uint8_t *)g->mistake[i].image.pixels);
    plan_free(&g->plan);
    free(g->weights);
    free(g->truth);
    free(g->guess);
    free(g->probability);
    free(g);
}

adj_status results_write(const results_of *r, const char *path, adj_error *error)
{
    gathered *g = calloc(1, sizeof *g);
    char *line = command_line(r->argc, r->argv);
    adj_status status = g != NULL && line != NULL
                            ? gather(r, g, error)
                            : adj_error_set(error, ADJ_ENOMEM, "out of memory");
    if (status == ADJ_OK)
        status = write_gathered(r, g, line, path, error);
    if (g != NULL)
        gathered_free(g);
    free(line);
    return status;
}
