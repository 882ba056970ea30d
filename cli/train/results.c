/* results.c - gathers the report of a training: see files.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/json.h"
#include "io/data/origin.h"
#include "io/io.h"
#include "files.h"
#include "report.h"

enum { BATCH = 100 }; /* images per prediction */

/* ---- answers ---- */

/* Predicts all images, which l has in pixel units. */
static adj_status ask(adj_predictor *p, adj_loader *l, const adj_dataset *d, answers *a,
                      adj_error *error)
{
    const int64_t classes = adj_predictor_card(p)->options.classes;
    float *probabilities = allocate(BATCH * classes, sizeof *probabilities);
    adj_status status = ADJ_OK;
    int64_t at = 0;
    *a = (answers){d->n, (int)classes, allocate(d->n, sizeof *a->truth),
                   allocate(d->n, sizeof *a->guess), allocate(d->n, sizeof *a->probability)};
    while (at < d->n && status == ADJ_OK) {
        adj_loader_batch b = {0};
        status = adj_loader_next(l, &b, error);
        if (status == ADJ_OK)
            status = adj_predict_floats(p, b.count, b.x, probabilities, error);
        for (int64_t i = 0; i < b.count && status == ADJ_OK; i++, at++) {
            const float *of_image = probabilities + i * classes;
            a->truth[at] = b.labels[i];
            a->guess[at] = (int32_t)best_class(of_image, classes);
            a->probability[at] = of_image[a->guess[at]];
        }
    }
    free(probabilities);
    return status;
}

static adj_status gather_answers(adj_trainer *t, const adj_dataset *d, report *r, adj_error *error)
{
    static const float zero[ADJ_MAX_CHANNELS], one[ADJ_MAX_CHANNELS] = {1, 1, 1, 1};
    adj_predictor *p = adj_trainer_predictor(t, error);
    adj_loader *l = NULL;
    if (p == NULL)
        return ADJ_ENOMEM;
    const adj_model_card *card = adj_predictor_card(p);
    const adj_loader_opts o = {
        .batch = BATCH, .size = card->options.size, .mean = zero, .deviation = one};
    r->class_name = card->class_names;
    adj_status status = adj_loader_new(d, &o, &l, error);
    if (status == ADJ_OK)
        status = ask(p, l, d, &r->answers, error);
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
    float *x = allocate(size_elems(d->size), sizeof *x);
    uint8_t *pixels = allocate(d->size.h * d->size.w * c, 1);

    *p = (picture){d->size.w, d->size.h, c, pixels};
    const adj_status status = adj_dataset_read(d, i, x, error);
    if (d->normalized)
        spread(x, size_elems(d->size));
    for (int64_t k = 0; k < d->size.h * d->size.w * c && status == ADJ_OK; k++)
        pixels[k] = (uint8_t)(fminf(fmaxf(x[k / c * d->size.c + k % c], 0), 255) + 0.5F);
    free(x);
    return status;
}

static adj_status gather_mistakes(const adj_dataset *d, report *r, adj_error *error)
{
    adj_status status = ADJ_OK;
    r->n_mistake = list_confident_mistakes(&r->answers, REPORT_MISTAKES, r->mistake);
    for (int k = 0; k < r->n_mistake && status == ADJ_OK; k++)
        status = take_picture(d, r->mistake[k], &r->image[k], error);
    return status;
}

/* ---- the report ---- */

static int write_page(FILE *f, void *user) { return report_write(f, user); }

adj_status results_write(adj_trainer *t, const adj_dataset *held_out, const char *held_out_name,
                         const out_files *out, adj_error *error)
{
    report r = {.held_out_name = held_out_name, .events = report_events(out->metrics)};
    adj_status status = json_is_out_of_memory() ? adj_error_set(error, ADJ_ENOMEM, "out of memory")
                                                : gather_answers(t, held_out, &r, error);
    if (status == ADJ_OK)
        status = gather_mistakes(held_out, &r, error);
    if (status == ADJ_OK)
        status = adj_file_replace(out->report, write_page, &r, error);
    json_decref(r.events);
    for (int i = 0; i < r.n_mistake; i++)
        free((uint8_t *)r.image[i].pixels);
    free(r.answers.truth);
    free(r.answers.guess);
    free(r.answers.probability);
    return status;
}
