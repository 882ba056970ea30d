/* results.c - gathers the report of a training: see report.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/json.h"
#include "io/data/origin.h"
#include "io/io.h"
#include "report.h"

enum { BATCH = 100 }; /* images per prediction */

/* A report with the data that it points to. */
typedef struct {
    answers answers;
    int32_t *truth, *guess;
    float *probability;
    int64_t mistake[REPORT_MISTAKES];
    picture image[REPORT_MISTAKES];
    report page; /* of these */
} gathered;

/* ---- answers ---- */

static int allocate_answers(gathered *g, int64_t n)
{
    g->truth = malloc((size_t)n * sizeof *g->truth);
    g->guess = malloc((size_t)n * sizeof *g->guess);
    g->probability = malloc((size_t)n * sizeof *g->probability);
    return g->truth != NULL && g->guess != NULL && g->probability != NULL;
}

/* Predicts all images, which l has in pixel units. */
static adj_status ask(adj_predictor *p, adj_loader *l, const adj_dataset *d, gathered *g,
                      adj_error *error)
{
    const int64_t classes = adj_predictor_card(p)->options.classes;
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
            g->guess[at] = (int32_t)best_class(of_image, classes);
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
    const adj_loader_opts o = {
        .batch = BATCH, .size = card->options.size, .mean = zero, .deviation = one};
    g->page.class_name = card->class_names;
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
    const int64_t c = d->size.c >= 3 ? 3 : 1;
    float *x = calloc((size_t)size_elems(d->size), sizeof *x);
    uint8_t *pixels = calloc((size_t)(d->size.h * d->size.w * c), 1);

    *p = (picture){d->size.w, d->size.h, c, pixels};
    if (x == NULL || pixels == NULL) {
        free(x);
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    }
    const adj_status status = adj_dataset_read(d, i, x, error);
    if (d->normalized)
        spread(x, size_elems(d->size));
    for (int64_t k = 0; k < d->size.h * d->size.w * c && status == ADJ_OK; k++)
        pixels[k] = (uint8_t)(fminf(fmaxf(x[k / c * d->size.c + k % c], 0), 255) + 0.5F);
    free(x);
    return status;
}

static adj_status gather_mistakes(const results_of *r, gathered *g, adj_error *error)
{
    adj_status status = ADJ_OK;
    g->page.n_mistake = list_confident_mistakes(&g->answers, REPORT_MISTAKES, g->mistake);
    for (int k = 0; k < g->page.n_mistake && status == ADJ_OK; k++)
        status = take_picture(r->held_out, g->mistake[k], &g->image[k], error);
    return status;
}

/* ---- all ---- */

static int write_page(FILE *f, void *user) { return report_write(f, user); }

static void gathered_free(gathered *g)
{
    for (int i = 0; i < g->page.n_mistake; i++)
        free((uint8_t *)g->image[i].pixels);
    free(g->truth);
    free(g->guess);
    free(g->probability);
    free(g);
}

adj_status results_write(const results_of *r, const char *path, adj_error *error)
{
    gathered *g = calloc(1, sizeof *g);
    if (g == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    json_t *events = report_events(r->metrics);
    g->page = (report){.held_out_name = r->held_out_name,
                       .events = events,
                       .answers = &g->answers,
                       .mistake = g->mistake,
                       .image = g->image};
    adj_status status = json_is_out_of_memory() ? adj_error_set(error, ADJ_ENOMEM, "out of memory")
                                                : gather_answers(r, g, error);
    if (status == ADJ_OK)
        status = gather_mistakes(r, g, error);
    if (status == ADJ_OK)
        status = adj_file_replace(path, write_page, &g->page, error);
    json_decref(events);
    gathered_free(g);
    return status;
}
