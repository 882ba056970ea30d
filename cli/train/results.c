/* results.c - see results.h. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/train/report/plan.h"
#include "results.h"

enum { PLAN_RUNS = 15, TEXT = 160, FACTS = 20, TILES = 6 };
static const double plan_seconds = 1.0;

/* What the report points to. */
typedef struct {
    answers answers;
    int32_t *truth, *guess;
    float *probability;
    report_mistake mistake[REPORT_MISTAKES];
    report_filters filters;
    float *weights; /* of filters */
    report_plan plan;
    char filter_name[TEXT], title[TEXT], summary[2 * TEXT];
    char tile_text[TILES][PAGE_NUMBER], fact_text[FACTS][TEXT];
    page_fact tile[TILES], fact[FACTS];
    int n_tile, n_fact;
} gathered;

/* ---- answers ---- */

/* The largest of the scores, and its part of the sum of their exponentials. */
static int32_t decide(const float score[], int64_t classes, float *probability)
{
    int64_t best = 0;
    double sum = 0;
    for (int64_t k = 1; k < classes; k++)
        best = score[k] > score[best] ? k : best;
    for (int64_t k = 0; k < classes; k++)
        sum += exp((double)score[k] - score[best]);
    *probability = (float)(1 / sum);
    return (int32_t)best;
}

static adj_status gather_answers(const results_of *r, gathered *g)
{
    int64_t n = r->held->n, batch = r->tested->shape.dim[0], classes = r->tested->classes;
    tally counted = {0};
    g->truth = malloc((size_t)n * sizeof *g->truth);
    g->guess = malloc((size_t)n * sizeof *g->guess);
    g->probability = malloc((size_t)n * sizeof *g->probability);
    if (g->truth == NULL || g->guess == NULL || g->probability == NULL)
        return ADJ_ENOMEM;
    for (int64_t first = 0; first < n; first += batch) {
        adj_status status = network_step(r->tested, r->held, first, NULL, &counted);
        if (status != ADJ_OK)
            return status;
        for (int64_t i = 0; i < batch && first + i < n; i++) {
            g->truth[first + i] = r->tested->y[i];
            g->guess[first + i] =
                decide(r->tested->scores + i * classes, classes, &g->probability[first + i]);
        }
    }
    g->answers = (answers){n, (int)classes, g->truth, g->guess, g->probability};
    return ADJ_OK;
}

static int gather_mistakes(const results_of *r, gathered *g)
{
    int64_t index[REPORT_MISTAKES];
    const adj_dataset *d = r->held;
    int n = list_confident_mistakes(&g->answers, REPORT_MISTAKES, index);
    for (int k = 0; k < n; k++)
        g->mistake[k] =
            (report_mistake){.truth = g->truth[index[k]],
                             .guess = g->guess[index[k]],
                             .probability = g->probability[index[k]],
                             .image = {d->w, d->h, d->c, d->images + index[k] * d->h * d->w * d->c},
                             .index = index[k]};
    return n;
}

/* ---- the first layer ---- */

/* A convolution's filters, or the units of a dense layer over images. */
static void gather_filters(const results_of *r, gathered *g)
{
    adj_exec *e = r->tested->exec;
    adj_shape images = r->tested->shape;
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        adj_node *p = adj_exec_param_at(e, i);
        adj_type t = adj_node_type(p);
        adj_shape s = t.shape;
        if (!adj_node_is_param(p) || s.rank < 2 || t.dtype != ADJ_F32)
            continue;
        if (s.rank == 2 && s.dim[0] == images.dim[1] * images.dim[2] * images.dim[3])
            s = (adj_shape){4, {images.dim[1], images.dim[2], images.dim[3], s.dim[1]}};
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
        snprintf(next_tile(g, "test accuracy"), PAGE_NUMBER, "%.2f %%", last->held_accuracy);
        snprintf(next_tile(g, "test loss"), PAGE_NUMBER, "%.4f", last->held_loss);
    }
    if (r->best_epoch > 0)
        snprintf(next_tile(g, "best accuracy"), PAGE_NUMBER, "%.2f %%", r->best);
    (void)page_whole(next_tile(g, "parameters"), r->trained->params);
    (void)page_whole(next_tile(g, "training images"), r->train->n);
    (void)page_seconds(next_tile(g, "training time"), r->seconds);
}

static void list_facts(const results_of *r, gathered *g)
{
    const train_opts *o = r->o;
    char version[64] = "";
    (void)adj_backend_describe("onednn", version, sizeof version);
    add_fact(g, "model", "%s, images of %lld x %lld x %lld, %lld classes", o->model,
             (long long)r->trained->shape.dim[1], (long long)r->trained->shape.dim[2],
             (long long)r->trained->shape.dim[3], (long long)r->trained->classes);
    add_fact(g, "data", "%s: %lld images to train on, %lld to test", data_name(o->data),
             (long long)r->train->n, (long long)r->held->n);
    add_fact(g, "epochs, batch", "%lld, %lld", (long long)o->epochs, (long long)o->batch);
    add_fact(g, "optimizer", "%s, cosine schedule from %g", o->optimizer, o->lr);
    add_fact(g, "augmentation", "moved by up to %lld pixels", (long long)o->shift);
    add_fact(g, "seed", "%lld", (long long)o->seed);
    add_fact(g, "best epoch", "%lld, chosen by the test part: its accuracy is no independent one",
             (long long)r->best_epoch);
    add_fact(g, "precision", "%s, %s math", o->precision, o->math);
    add_fact(g, "backend, threads", "%s, %lld", o->backend, (long long)o->threads);
    add_fact(g, "versions", "adjoint %s, oneDNN %s", adj_version_text(), version);
}

static void write_words(const results_of *r, gathered *g)
{
    char time[PAGE_NUMBER];
    long long epochs =
        r->history->n_epoch > 0 ? r->history->epoch[r->history->n_epoch - 1].epoch : 0;
    snprintf(g->title, sizeof g->title, "%s on %s", r->o->model, data_name(r->o->data));
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

static adj_status gather(const results_of *r, gathered *g, int *n_mistake)
{
    adj_status status = gather_answers(r, g);
    if (status != ADJ_OK)
        return status;
    *n_mistake = gather_mistakes(r, g);
    gather_filters(r, g);
    write_words(r, g);
    g->plan.batch = r->o->batch;
    if (!r->ran) /* there are no inputs to run on */
        return g->plan.batch = 0, ADJ_OK;
    return plan_measure(&g->plan, r->trained->m.graph, r->trained->m.loss, r->trained->m.updates,
                        r->trained->exec, PLAN_RUNS, plan_seconds);
}

adj_status results_write(const results_of *r, const char *path, adj_error *error)
{
    gathered *g = calloc(1, sizeof *g);
    char *line = command_line(r->argc, r->argv);
    int n_mistake = 0;
    adj_status status = g != NULL && line != NULL ? gather(r, g, &n_mistake) : ADJ_ENOMEM;
    if (status == ADJ_OK) {
        report page = {.title = g->title,
                       .summary = g->summary,
                       .command = line,
                       .held = "test",
                       .n_tile = g->n_tile,
                       .n_fact = g->n_fact,
                       .tile = g->tile,
                       .fact = g->fact,
                       .n_epoch = r->history->n_epoch,
                       .n_step = r->history->n_step,
                       .epoch = r->history->epoch,
                       .step = r->history->step,
                       .answers = &g->answers,
                       .n_mistake = n_mistake,
                       .mistake = g->mistake,
                       .filters = &g->filters,
                       .plan = &g->plan};
        status = adj_file_replace(path, write_page, &page, error);
    } else {
        (void)adj_error_set(error, status, "%s",
                            status == ADJ_ENOMEM ? "out of memory"
                            : r->tested->m.error.status != ADJ_OK
                                ? r->tested->m.error.message
                                : adj_exec_message(r->trained->exec));
    }
    if (g != NULL) {
        plan_free(&g->plan);
        free(g->weights);
        free(g->truth);
        free(g->guess);
        free(g->probability);
    }
    free(g);
    free(line);
    return status;
}
