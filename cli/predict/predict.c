/* predict.c - adjoint predict: classifies images with weights from a file. Images are read by
 * OpenMP's threads, a batch at a time; one that cannot be read is reported, and the others go on.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adjoint_fit.h"
#include "base/clock.h"
#include "base/printable.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/onnx_model.h"
#include "cli/standard.h"
#include "predict.h"
#include "io/data/names.h"
#include "io/data/origin.h"

typedef struct {
    named_weights net;
    const char *saliency;
    int64_t threads, top, as_json;
} predict_opts;

typedef struct {
    const predict_opts *o;
    adj_predictor *p;
    const adj_model_card *card;
    adj_image_opts input;
    /* buffers for ADJ_PREDICT_BATCH images */
    float *pixels, *probabilities;
    adj_error error[ADJ_PREDICT_BATCH];
    int resized[ADJ_PREDICT_BATCH];
    int64_t done, n_resized;
    int failed; /* error of an image, or of writing a line */
} work;

/* ---- images ---- */

/* Reads all of standard input into *bytes, which the caller frees. */
static adj_status read_input(unsigned char **bytes, size_t *n, adj_error *error)
{
    const size_t limit = (size_t)1 << 29; /* largest size of an image file */
    size_t room = 0, got = 1;

    *bytes = NULL;
    for (*n = 0; got > 0 && *n <= limit; *n += got) {
        if (*n == room) {
            room = room > 0 ? 2 * room : 1 << 16;
            unsigned char *more = realloc(*bytes, room);
            if (more == NULL)
                return adj_error_set(error, ADJ_ENOMEM, "standard input: out of memory");
            *bytes = more;
        }
        errno = 0;
        got = fread(*bytes + *n, 1, room - *n, stdin);
    }
    if (ferror(stdin))
        return adj_error_set(error, ADJ_EIO, "standard input: %s", strerror(errno));
    if (*n > limit)
        return adj_error_set(error, ADJ_EIO,
                             "standard input: too long for an image (expected at most %zu bytes)",
                             limit);
    return ADJ_OK;
}

static adj_status read_image(const work *w, const char *path, float *pixels, int *resized,
                             adj_error *error)
{
    if (strcmp(path, "-") != 0)
        return adj_image_read(path, &w->input, pixels, resized, error);
    size_t n = 0;
    unsigned char *bytes = NULL;
    adj_status status = read_input(&bytes, &n, error);
    if (status == ADJ_OK)
        status = adj_image_decode(bytes, n, "standard input", &w->input, pixels, resized, error);
    free(bytes);
    return status;
}

/* ---- output of one image ---- */

static const char *class_name(const work *w, int64_t k, char number[24])
{
    if (w->card->class_names != NULL)
        return w->card->class_names[k];
    snprintf(number, 24, "%lld", (long long)k);
    return number;
}

/* Returns the most probable class and sets its probability to -1, so that the next call returns the
 * next one. */
static int64_t next_best(const work *w, float *probability, double *value)
{
    const int64_t best = best_class(probability, w->card->options.classes);
    *value = (double)probability[best];
    probability[best] = -1;
    return best;
}

/* Prints the line of a file. */
static void put_line(const work *w, const char *path, float *probability)
{
    put_text(stdout, "%s: ", path);
    for (int64_t i = 0; i < w->o->top; i++) {
        char number[24];
        double value;
        const char *name = class_name(w, next_best(w, probability, &value), number);
        put_text(stdout, "%s%s %.2f %%", i > 0 ? ", " : "", name, 100 * value);
    }
    putchar('\n');
}

static int put_json(const work *w, const char *path, float *probability)
{
    json_t *top = json_array();
    for (int64_t i = 0; i < w->o->top; i++) {
        char number[24];
        double value;
        const char *name = class_name(w, next_best(w, probability, &value), number);
        (void)json_array_append_new(
            top, json_pack("{s:o, s:f}", "class", json_text(name), "probability", value));
    }
    const json_t *first = json_array_get(top, 0);
    json_t *object = json_pack("{s:o, s:O, s:O, s:o}", "file", json_text(path), "class",
                               json_object_get(first, "class"), "probability",
                               json_object_get(first, "probability"), "top", top);
    return json_write(stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(9), 0);
}

/* ---- the run ---- */

/* Moves the readable ones of count images in w together, which are paths from first on. Returns
 * their number. */
static int64_t keep_good(work *w, const string_list *paths, int64_t first, int64_t count,
                         const char *good[])
{
    const int64_t elems = size_elems(w->input.size);
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        if (w->error[i].status != ADJ_OK) {
            complain(EXIT_OK, "%s", w->error[i].message);
            w->failed = 1;
            continue;
        }
        if (n < i)
            memmove(w->pixels + n * elems, w->pixels + i * elems,
                    (size_t)elems * sizeof *w->pixels);
        w->n_resized += w->resized[i] != 0;
        good[n++] = strings_at(paths, first + i);
    }
    return n;
}

static int is_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return 0;
    return 1;
}

static int predict_batch(work *w, const string_list *paths, int64_t first, int64_t count)
{
    const int64_t elems = size_elems(w->input.size), classes = w->card->options.classes;
    const char *good[ADJ_PREDICT_BATCH];
    adj_error error = {0};
    int status = CONTINUE, all_finite = 1;

    memset(w->error, 0, sizeof w->error);
#pragma omp parallel for schedule(dynamic) if (count > 1)
    for (int64_t i = 0; i < count; i++)
        (void)read_image(w, strings_at(paths, first + i), w->pixels + i * elems, &w->resized[i],
                         &w->error[i]);
    const int64_t n = keep_good(w, paths, first, count, good);
    const adj_status computed = adj_predict_floats(w->p, n, w->pixels, w->probabilities, &error);
    for (int64_t i = 0; i < n; i++)
        all_finite &= is_finite(w->probabilities + i * classes, classes);
    if (computed != ADJ_OK && all_finite)
        return complain(EXIT_FAILED, "%s", error.message);
    for (int64_t i = 0; i < n; i++) {
        float *probability = w->probabilities + i * classes;
        if (!is_finite(probability, classes)) {
            complain(EXIT_OK,
                     "%s: the net's result is not finite: its weights hold NaN or infinities",
                     good[i]);
            w->failed = 1;
            continue;
        }
        if (w->o->saliency != NULL)
            status = write_saliency(w->p, w->o->saliency, w->pixels + i * elems,
                                    best_class(probability, classes));
        if (w->o->as_json)
            w->failed |= put_json(w, good[i], probability);
        else
            put_line(w, good[i], probability);
        w->done++;
    }
    return status;
}

static int predict_files(work *w, const string_list *paths)
{
    const double began = seconds_now();
    int status = CONTINUE;

    for (int64_t first = 0; first < paths->n && status == CONTINUE; first += ADJ_PREDICT_BATCH) {
        const int64_t left = paths->n - first;
        status =
            predict_batch(w, paths, first, left < ADJ_PREDICT_BATCH ? left : ADJ_PREDICT_BATCH);
    }
    const double took = seconds_now() - began;
    if (!w->o->as_json && w->done > 1)
        complain(EXIT_OK, /* the terminal shows no results, as those are piped */
                 "%lld images, %lld of them resized to %s: %.0f images/s including reading "
                 "and planning",
                 (long long)w->done, (long long)w->n_resized, sides_text(w->input.size).s,
                 took > 0 ? (double)w->done / took : 0);
    return status;
}

/* ---- the command ---- */

/* Standard input is read once. */
static int check_standard(const predict_opts *o, int n, const char *const image[])
{
    int times = is_stdout(o->net.weights) + is_stdout(o->net.map);
    for (int i = 0; i < n; i++)
        times += is_stdout(image[i]);
    if (times <= 1)
        return CONTINUE;
    return complain(EXIT_USAGE, "standard input can be given once (got - %d times)", times);
}

static int parse(predict_opts *o, int argc, char **argv, const char **image, int *n)
{
    const option options[] = {
        {"--weights", "FILE", WEIGHTS_HELP, .text = &o->net.weights},
        {"--top", "K", "number of most probable classes to print; default: 1", .integer = &o->top,
         .range = {1, ADJ_MAX_CLASSES}},
        {"--json", "", "one JSON object per image: file, class, probability, top",
         .flag = &o->as_json},
        {"--saliency", "FILE", "writes a PNG saliency map; for one IMAGE", .text = &o->saliency},
        {"--model", "NAME", "model, or an ONNX file; default: the one named in the weights file",
         .text = &o->net.model},
        {"--map", "NAME", MAP_HELP, .text = &o->net.map, .needs = "--weights"},
        {"--backend", "NAME", BACKEND_HELP, .text = &o->net.exec.backend, .names = backend_name_at},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, 1024}},
        {0},
    };
    const remark examples[] = {
        {"adjoint predict --weights lenet.safetensors seven.png", "The class and its probability."},
        {"adjoint predict --weights best.safetensors --json photos | jq .class",
         "Every image in the folder photos, one JSON object per image."},
        {"adjoint predict --weights best.safetensors --top 3 - <cat.jpg",
         "The three most probable classes of an image on standard input."},
        {"adjoint predict --weights best.safetensors --saliency why.png cat.jpg",
         "A saliency map of the model's input size: white where a pixel changes the class's logit "
         "most."},
        {NULL, NULL}};
    const usage u = {
        .command = "predict",
        .summary =
            "Classifies PNG, JPEG and WEBP images. IMAGE is a file, a folder, or - for standard "
            "input. Unreadable files are reported and skipped; the exit status is then 1.",
        .options = options,
        .arguments = "IMAGE...",
        .argument = image,
        .max_arguments = argc,
        .n_argument = n,
        .variables = PLAN_VARIABLES,
        .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->net.weights == NULL && !is_onnx_file(o->net.model))
        return complain(EXIT_USAGE, "--weights FILE is missing");
    if (status == CONTINUE && *n == 0)
        return complain(EXIT_USAGE, "IMAGE is missing: a file, a folder or -");
    return status == CONTINUE ? check_standard(o, *n, image) : status;
}

static int open_work(work *w, predict_opts *o)
{
    o->net.exec.threads = (int)o->threads;
    const int status = open_predictor(&o->net, &w->p);
    if (status != CONTINUE)
        return status;
    w->card = adj_predictor_card(w->p);
    if (w->card->normalized)
        return complain(EXIT_FAILED,
                        "%s: trained on normalized values, not on pixels (use eval on such arrays, "
                        "or train on uint8 or floats in 0 to 1 or 0 to 255)",
                        o->net.weights);
    w->input =
        (adj_image_opts){.size = w->card->options.size, .resize = resize_rule(w->card->resize)};
    if (o->top > w->card->options.classes)
        o->top = w->card->options.classes;
    const int64_t image = size_elems(w->input.size);
    w->pixels = allocate(ADJ_PREDICT_BATCH * image, sizeof *w->pixels);
    w->probabilities =
        allocate(ADJ_PREDICT_BATCH * w->card->options.classes, sizeof *w->probabilities);
    return CONTINUE;
}

static int check_saliency(const predict_opts *o, const file_list *files)
{
    if (files->paths.n != 1)
        return complain(EXIT_USAGE, "--saliency takes one image (got %lld)",
                        (long long)files->paths.n);
    const output_file all[] = {{"--saliency", o->saliency, OUTPUT_REPLACED},
                               {"--weights", o->net.weights, INPUT},
                               {"--map", o->net.map, INPUT},
                               {"IMAGE", strings_at(&files->paths, 0), INPUT}};
    const int status = check_outputs(sizeof all / sizeof all[0], all);
    if (status != CONTINUE)
        return status;
    const size_t length = strlen(o->saliency);
    if (length < 4 || strcasecmp(o->saliency + length - 4, ".png") != 0)
        return complain(EXIT_USAGE, "--saliency: got %s, expected NAME.png", o->saliency);
    return CONTINUE;
}

static int predict(predict_opts *o, int n, const char *const image[])
{
    work w = {.o = o};
    file_list files = {0};
    int status = CONTINUE;

    for (int i = 0; i < n; i++)
        w.failed |= !files_add(&files, image[i]);
    if (files.left_out > 0)
        complain(EXIT_OK, "note: left out %lld file%s with other endings (expected %s)",
                 (long long)files.left_out, files.left_out > 1 ? "s" : "", IMAGE_ENDINGS);
    if (o->saliency != NULL)
        status = check_saliency(o, &files);
    if (status == CONTINUE)
        status = open_work(&w, o);
    if (status == CONTINUE)
        status = predict_files(&w, &files.paths);
    strings_free(&files.paths);
    free(w.probabilities);
    free(w.pixels);
    adj_predictor_free(w.p);
    return status != CONTINUE ? status : w.failed ? EXIT_FAILED : EXIT_OK;
}

int command_predict(int argc, char **argv)
{
    predict_opts o = {.top = 1};
    int n = 0;
    const char **image = allocate(argc, sizeof *image);
    int status = parse(&o, argc, argv, image, &n);
    if (status == CONTINUE)
        status = predict(&o, n, image);
    free((void *)image);
    return status;
}
