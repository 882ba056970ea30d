/* eval.c - adjoint eval: reads weights and prints their accuracy on a split of a data set. */
#include <stdio.h>
#include <string.h>

#include "adjoint_fit.h"
#include "base/c_locale.h"
#include "cli/environment.h"
#include "cli/command.h"
#include "data.h"
#include "cli/model.h"
#include "cli/onnx_model.h"
#include "io/data/origin.h"
#include "io/data/names.h"

typedef struct {
    data_opts data;
    named_weights net;
    const char *part;
    int64_t threads;
    char cache[CACHE_PATH];
} eval_opts;

/* Returns the i-th word that --part takes, or NULL past the last. */
static const char *part_word_at(int i)
{
    return i < PART_NAMES ? part_names[i].name : i == PART_NAMES ? "all" : NULL;
}

/* Returns an adj_dataset_part or ALL_PARTS, or -1 if --part takes no such word. */
static int part_of_word(const char *word)
{
    const char *name;
    for (int i = 0; (name = part_word_at(i)) != NULL; i++)
        if (strcmp(name, word) == 0)
            return i < PART_NAMES ? (int)part_names[i].part : ALL_PARTS;
    return -1;
}

static int parse(eval_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--weights", "FILE", WEIGHTS_HELP, .text = &o->net.weights},
        {"--model", "NAME",
         "model, see adjoint models, or an ONNX file; default: the one named in the weights file",
         .text = &o->net.model, .names = model_name_at},
        {"--map", "NAME", MAP_HELP, .text = &o->net.map, .needs = "--weights"},
        {"--data", "PATH", DATA_HELP, .text = &o->data.path},
        {"--part", "P",
         "split to evaluate: train, test, val, validation or all; default: validation with "
         "--val-split, else test, validation or all, whichever exists",
         .text = &o->part, .names = part_word_at},
        {"--backend", "NAME", BACKEND_HELP, .text = &o->net.exec.backend, .names = backend_name_at},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, 1024}},
        {0},
    };
    option size[SIZE_ITEMS], more[DATA_OPTIONS];
    list_data_options(&o->data, size, more);
    const remark examples[] = {
        {"adjoint eval --weights lenet.safetensors --data mnist",
         "Accuracy of trained weights on the test images in the folder mnist."},
        {NULL, NULL}};
    const usage u = {.command = "eval",
                     .summary = "Measures the accuracy of saved weights on a data set.",
                     .options = options,
                     .more = more + SIZE_OPTIONS,
                     .variables = TUNED_VARIABLES,
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->net.weights == NULL && !is_onnx_file(o->net.model))
        return complain(EXIT_USAGE, "--weights FILE is missing");
    if (status == CONTINUE && o->part != NULL && part_of_word(o->part) < 0)
        return complain(EXIT_USAGE,
                        "--part: got \"%.40s\", expected train, test, val, validation or all",
                        o->part);
    const int part = o->part != NULL ? part_of_word(o->part) : ADJ_VALIDATION;
    if (status == CONTINUE && o->data.val_split > 0 && (part == ADJ_TEST || part == ALL_PARTS))
        return complain(EXIT_USAGE, "--val-split cannot be combined with --part %s", o->part);
    if (status == CONTINUE && o->net.model != NULL)
        return check_model(o->net.model);
    return status;
}

void close_parts(eval_data *e)
{
    for (int i = 0; i < e->n; i++)
        adj_dataset_free(e->data[i]);
    adj_dataset_free(e->train);
}

/* Returns the part to evaluate. With --val-split train has held out validation images, even of data
 * that have a test split. */
static int choose_part(const data_opts *o, const char *part)
{
    if (part != NULL)
        return part_of_word(part);
    if (o->val_split > 0)
        return ADJ_VALIDATION;
    if (adj_dataset_has_part(o->path, ADJ_TEST))
        return ADJ_TEST;
    return adj_dataset_has_part(o->path, ADJ_VALIDATION) ? ADJ_VALIDATION : ALL_PARTS;
}

int knows_digits(const adj_model_card *card)
{
    if (card->options.classes != 10 || card->class_names == NULL)
        return 0;
    for (int i = 0; i < 10; i++)
        if (card->class_names[i][0] != '0' + i || card->class_names[i][1] != '\0')
            return 0;
    return 1;
}

static int data_is_missing(const adj_model_card *card)
{
    enum { NAMES = 5 };
    char names[160] = "";

    for (int64_t i = 0; card->class_names != NULL && i < card->options.classes && i < NAMES; i++)
        c_append(names, sizeof names, "%s%.20s", i > 0 ? ", " : ": ", card->class_names[i]);
    return complain(
        EXIT_USAGE,
        "--data PATH is missing: the default is the embedded digits, but the net has %lld "
        "classes%s%s",
        (long long)card->options.classes, card->class_names != NULL ? names : " without names",
        names[0] != '\0' && card->options.classes > NAMES ? ", ..." : "");
}

/* Gives like the card's classes, mean and deviation. Without them in the card, like has the
 * training split's class names and kind of values. Its mean and deviation only keep the parts to be
 * evaluated from being measured: the predictor takes their pixels as they are. */
static int open_like(const data_opts *o, const adj_model_card *card, eval_data *e,
                     adj_dataset *like, adj_dataset_origin *origin)
{
    like->origin = origin;
    like->classes = (int)card->options.classes;
    like->class_names = card->class_names;
    for (int i = 0; i < ADJ_MAX_CHANNELS; i++) {
        like->mean[i] = (float)card->mean[i];
        like->deviation[i] = (float)card->deviation[i];
    }
    like->normalized = card->normalized;
    origin->low = (float)card->low;
    origin->high = (float)card->high;
    if (card->deviation[0] > 0 || !adj_dataset_has_part(o->path, ADJ_TRAIN))
        return CONTINUE;
    int status = open_data(o, &e->takes, ADJ_TRAIN, NULL, &e->train);
    if (status != CONTINUE)
        return status;
    memcpy(like->mean, e->train->mean, sizeof like->mean);
    memcpy(like->deviation, e->train->deviation, sizeof like->deviation);
    like->normalized = e->train->normalized;
    *origin = *origin_of(e->train);
    if (like->class_names == NULL && e->train->classes == like->classes)
        like->class_names = e->train->class_names;
    return CONTINUE;
}

static int open_part(const data_opts *o, adj_dataset_part part, const adj_dataset *like,
                     eval_data *e)
{
    adj_dataset **d = &e->data[e->n];
    e->word[e->n++] = part_name(part);
    return open_data(o, &e->takes, part, like, d);
}

int open_parts(data_opts *o, const char *part, const adj_model_card *card, eval_data *e)
{
    adj_dataset like = {0};

    if (o->path == NULL && !knows_digits(card))
        return data_is_missing(card);
    e->takes = (adj_dataset_opts){.image.size = card->options.size,
                                  .image.resize = resize_rule(card->resize)};
    e->part = choose_part(o, part);
    if (e->part == ALL_PARTS)
        o->val_split = 0;
    adj_dataset_origin origin = {0};
    int status = open_like(o, card, e, &like, &origin);
    for (int i = ADJ_TRAIN; i < ALL_PARTS && status == CONTINUE; i++)
        if (i == e->part ||
            (e->part == ALL_PARTS && adj_dataset_has_part(o->path, (adj_dataset_part)i)))
            status = open_part(o, (adj_dataset_part)i, &like, e);
    if (e->part == ALL_PARTS && e->n == 0) /* opened for its error message */
        status = open_part(o, ADJ_TRAIN, &like, e);
    if (e->part == ALL_PARTS && e->n == 1)
        e->word[0] = "all";
    return status;
}

/* Evaluates all parts and prints their common score. */
static int evaluate(const eval_opts *o, adj_predictor *p, const eval_data *e)
{
    const char *word = e->part == ALL_PARTS ? "" : e->word[0];
    const char *space = e->part == ALL_PARTS ? "" : " ";
    adj_score s, all = {0};
    adj_error error = {0};

    for (int i = 0; i < e->n; i++) {
        if (adj_predictor_evaluate(p, e->data[i], &s, NULL, &error) != ADJ_OK)
            return complain(EXIT_FAILED, "%s: %s", o->net.weights, error.message);
        all.loss += s.loss * (double)s.count;
        all.right += s.right;
        all.count += s.count;
    }
    all.loss /= (double)all.count;
    all.accuracy = (double)all.right / (double)all.count;
    say("%s on %s%s: %s%sloss %.4f  %s%saccuracy %.2f %% (%lld of %lld)",
        adj_predictor_card(p)->model, e->part == ALL_PARTS ? "all of " : "",
        data_name(o->data.path), word, space, all.loss, word, space, 100 * all.accuracy,
        (long long)all.right, (long long)all.count);
    return EXIT_OK;
}

/* Notes that classes are matched by number where only the net or only the data has names. */
static void say_numbered(const eval_opts *o, const adj_model_card *card, const eval_data *e)
{
    const adj_data_layout layout = adj_dataset_layout(o->data.path);
    const int is_numbered = layout == ADJ_DATA_IDX || layout == ADJ_DATA_NUMPY;
    const int has_names =
        layout == ADJ_DATA_FOLDER || (!is_numbered && e->data[0]->class_names != NULL);
    if (has_names != (card->class_names != NULL))
        complain(EXIT_OK, "note: classes are matched by number: %s has no class names",
                 has_names ? o->net.weights : data_name(o->data.path));
}

int command_eval(int argc, char **argv)
{
    eval_opts o = {.data = data_defaults};
    eval_data data = {0};
    adj_predictor *p = NULL;
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;
    o.net.exec.threads = (int)o.threads;
    o.net.exec.tune = !tuning_is_off();
    o.net.exec.tune_file = tune_cache(o.cache);
    o.net.exec.tune_seconds = DEFAULT_TUNE_SECONDS;
    status = open_predictor(&o.net, &p);
    if (status == CONTINUE)
        status = open_parts(&o.data, o.part, adj_predictor_card(p), &data);
    if (status == CONTINUE) {
        say_prepared(data.n, (const adj_dataset *const *)data.data, data.data[0]->size.c, 0);
        say_numbered(&o, adj_predictor_card(p), &data);
        say_found(o.data.path, data.n, (const adj_dataset *const *)data.data, data.word);
        status = evaluate(&o, p, &data);
    }
    close_parts(&data);
    adj_predictor_free(p);
    return status;
}
