/* predictor.c - creates, saves and loads predictors: see predictor.h. */
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "io/data/origin.h"
#include "io/tensors/formats.h"
#include "io/weights/weights.h"
#include "internal.h"
#include "predictor.h"

static adj_status no_memory(adj_error *error)
{
    return adj_error_set(error, ADJ_ENOMEM, "predictor: out of memory");
}

/* Copies a text for *kept to own; NULL stays NULL. Returns 0 when out of memory. */
static int keep_text(char **kept, const char **text)
{
    if (*text == NULL)
        return 1;
    *kept = strdup(*text);
    *text = *kept;
    return *kept != NULL;
}

adj_status predictor_new(const adj_net *net, const plan_opts *plan, adj_predictor **out,
                         adj_error *error)
{
    adj_predictor *p = *out = calloc(1, sizeof *p);
    if (p == NULL)
        return no_memory(error);
    p->net = *net;
    p->net.name = net_name(net);
    p->plan = *plan;
    if (!keep_text(&p->name, &p->net.name) || !keep_text(&p->backend, &p->plan.exec.backend) ||
        !keep_text(&p->tune_file, &p->plan.exec.tune_file) ||
        !keep_text(&p->selection, &p->plan.selection)) {
        adj_predictor_free(p);
        *out = NULL;
        return no_memory(error);
    }
    p->card = (adj_model_card){.model = p->name,
                               .options = {.size = net->options.size,
                                           .classes = net->options.classes,
                                           .multiplier = net->options.multiplier},
                               .resize = resize_word(ADJ_RESIZE_AUTO),
                               .precision = plan->exec.precision,
                               .math = plan->exec.math};
    return ADJ_OK;
}

void predictor_normalize(adj_predictor *p, const float mean[], const float deviation[], int64_t c)
{
    for (int64_t i = 0; i < p->net.options.size.c; i++) {
        int64_t from = i < c ? i : 0;
        p->mean[i] = mean[from];
        p->deviation[i] = deviation[from];
        p->card.mean[i] = (double)mean[from];
        p->card.deviation[i] = (double)deviation[from];
    }
}

adj_status predictor_name_classes(adj_predictor *p, int64_t n, const char *const names[],
                                  adj_error *error)
{
    if (names == NULL || n != p->net.options.classes)
        return ADJ_OK;
    p->class_names = calloc((size_t)n, sizeof *p->class_names);
    if (p->class_names == NULL)
        return no_memory(error);
    for (int64_t i = 0; i < n; i++) {
        if (names[i] == NULL)
            return adj_error_set(error, ADJ_EARG, "fit: the name of class %lld is NULL",
                                 (long long)i);
        if ((p->class_names[i] = strdup(names[i])) == NULL)
            return no_memory(error);
    }
    p->card.class_names = (const char *const *)p->class_names;
    return ADJ_OK;
}

void adj_predictor_free(adj_predictor *p)
{
    if (p == NULL)
        return;
    for (int i = 0; i < N_PLANNED; i++)
        workers_close(&p->planned[i].w);
    for (int64_t i = 0; p->class_names != NULL && i < p->net.options.classes; i++)
        free(p->class_names[i]);
    free(p->class_names);
    free(p->name);
    free(p->backend);
    free(p->tune_file);
    free(p->selection);
    free(p->inner);
    free(p);
}

const adj_model_card *adj_predictor_card(const adj_predictor *p)
{
    return p != NULL ? &p->card : NULL;
}

/* ---- its networks ---- */

static adj_status make_workers(adj_predictor *p, int kind, int64_t images, adj_error *error)
{
    workers *w = &p->planned[kind].w;
    if (w->n != 0)
        return ADJ_OK;
    plan_opts plan = p->plan;
    const int n = kind == EVALUATION || kind == MANY ? workers_for(images, &plan) : 1;
    const int64_t part = n > 1 ? WORKER_BATCH : images < WHOLE_BATCH ? images : WHOLE_BATCH;
    const int64_t runs = (images + n * part - 1) / (n * part);
    if (kind != EVALUATION)
        plan.selection = NULL;
    plan.inner = kind == INNER ? p->inner : NULL;
    plan.gradient = kind == GRADIENT;
    plan.exec.tune &= kind != INNER && kind != GRADIENT;
    adj_status status = workers_open(
        w, kind == EVALUATION ? FOR_EVALUATION : FOR_PREDICTION, &p->net, n, part,
        kind == EVALUATION && p->evaluations > 0 ? p->evaluations * runs : runs, &plan, error);
    if (status != ADJ_OK)
        workers_close(w);
    return status;
}

int predictor_select(adj_predictor *p, const char *selection)
{
    char *kept = strdup(selection);
    if (kept == NULL)
        return 0;
    free(p->selection);
    p->plan.selection = p->selection = kept;
    p->plan.exec.tune = 0;
    for (int i = 0; i < N_PLANNED; i++) {
        workers_close(&p->planned[i].w);
        p->planned[i].version = 0;
    }
    p->home = NULL;
    return 1;
}

static adj_status copy_parameters(const adj_predictor *p, adj_exec *to, const adj_exec *from,
                                  adj_error *error)
{
    adj_status status = adj_copy_params(to, from);
    return status == ADJ_OK
               ? ADJ_OK
               : adj_error_set(error, status, "net %.80s: %s", p->name, adj_exec_message(to));
}

/* True if e holds a parameter of that name. */
static int has_parameter(const adj_exec *e, const char *name)
{
    for (int i = 0; i < adj_exec_param_count(e); i++)
        if (strcmp(adj_node_name(adj_exec_param_at(e, i)), name) == 0)
            return 1;
    return 0;
}

/* Fails with a list if the training graph has parameters that the evaluation graph lacks: they
 * would be trained and then dropped. States may be of the optimizer, so they are not compared. */
static adj_status check_evaluation(const adj_predictor *p, const adj_exec *evaluation,
                                   const adj_exec *training, adj_error *error)
{
    char names[200] = "";
    int fits = 1;
    for (int i = 0; i < adj_exec_param_count(training) && fits; i++) {
        const adj_node *param = adj_exec_param_at(training, i);
        const char *name = adj_node_name(param);
        if (adj_node_is_param(param) && !has_parameter(evaluation, name))
            fits = c_append(names, sizeof names, "%s\"%.40s\"", names[0] != '\0' ? ", " : "", name);
    }
    return names[0] == '\0' ? ADJ_OK
                            : adj_error_set(error, ADJ_EARG,
                                            "net %.80s: its training graph has parameters that its "
                                            "evaluation graph lacks: %s%s",
                                            p->name, names, fits ? "" : " ...");
}

adj_status predictor_take(adj_predictor *p, const adj_exec *from, int64_t images, adj_error *error)
{
    const workers *w = &p->planned[EVALUATION].w;
    adj_status status = make_workers(p, EVALUATION, images, error);
    if (status == ADJ_OK)
        status = copy_parameters(p, w->exec[0], from, error);
    if (status == ADJ_OK && p->home == NULL)
        status = check_evaluation(p, w->exec[0], from, error);
    if (status != ADJ_OK)
        return status;
    p->home = w->exec[0];
    p->version++;
    return ADJ_OK;
}

adj_status predictor_workers(adj_predictor *p, int kind, int64_t images, workers **w,
                             adj_error *error)
{
    planned *k = &p->planned[kind];
    adj_status status = make_workers(p, kind, images, error);
    for (int i = 0; i < k->w.n && status == ADJ_OK && k->version != p->version; i++)
        if (k->w.exec[i] != p->home)
            status = copy_parameters(p, k->w.exec[i], p->home, error);
    if (status == ADJ_OK)
        k->version = p->version;
    *w = &k->w;
    return status;
}

/* ---- files ---- */

static const char loss_key[] = "net_loss"; /* for a net with its own loss */

adj_status metadata_check(int n, const adj_metadata metadata[], int n_own, const adj_metadata own[],
                          adj_error *error)
{
    if (n < 0 || (n > 0 && metadata == NULL))
        return adj_error_set(error, ADJ_EARG,
                             "metadata: negative count, or the list is NULL (got %d)", n);
    for (int i = 0; i < n; i++) {
        const char *key = metadata[i].key;
        if (key == NULL) /* refused where it is written */
            continue;
        const int is_own = is_card_key(key) || strcmp(key, loss_key) == 0 ||
                           metadata_value(n_own, own, key) != NULL;
        if (is_own || metadata_value(i, metadata, key) != NULL)
            return adj_error_set(error, ADJ_EARG, "metadata: key \"%.80s\" is %s", key,
                                 is_own ? "written by the library itself" : "given twice");
    }
    return ADJ_OK;
}

adj_status predictor_write(const adj_predictor *p, double accuracy, adj_exec *e, const char *path,
                           int n, const adj_metadata metadata[], adj_error *error)
{
    adj_model_card card = p->card;
    adj_metadata *own = NULL;
    int n_own = 0, count = 0;

    card.accuracy = accuracy;
    adj_status status = adj_model_card_write(&card, &own, &n_own, error);
    if (status != ADJ_OK)
        return status;
    adj_metadata *all = malloc(((size_t)n + (size_t)n_own + 1) * sizeof *all);
    if (all != NULL) {
        for (int i = 0; i < n_own; i++)
            if (metadata_value(n, metadata, own[i].key) == NULL)
                all[count++] = own[i];
        if (p->net.loss != NULL && metadata_value(n, metadata, loss_key) == NULL)
            all[count++] = (adj_metadata){loss_key, net_loss_name(&p->net)};
        for (int i = 0; i < n; i++)
            all[count++] = metadata[i];
        status = adj_weights_save(e, path, count, all, error);
    } else
        status = no_memory(error);
    free(all);
    free(own);
    return status;
}

adj_status adj_predictor_save(adj_predictor *p, const char *path, int n_metadata,
                              const adj_metadata metadata[], adj_error *error)
{
    if (p == NULL || p->home == NULL)
        return adj_error_set(error, ADJ_EARG, "predictor: expected one with parameters");
    const adj_status status = metadata_check(n_metadata, metadata, 0, NULL, error);
    return status == ADJ_OK
               ? predictor_write(p, p->card.accuracy, p->home, path, n_metadata, metadata, error)
               : status;
}

/* Gives a built-in model the channels, and the card the classes, that a file without them has
 * weights for. */
static void infer_sizes(const adj_tensors *file, adj_net *net, adj_model_card *card,
                        const char *map)
{
    const char *name = net->name != NULL ? net->name : card->model;
    adj_model_opts o = {.multiplier = net->options.multiplier};
    const adj_model *model = net->build == NULL ? adj_model_find(name, &o) : NULL;
    adj_tensors *mapped = NULL;

    if (model == NULL || (card->options.classes > 0 && card->options.size.c > 0))
        return;
    if (net->options.size.h > 0 && net->options.size.w > 0) {
        o.size.h = net->options.size.h;
        o.size.w = net->options.size.w;
    }
    o.size.c = net->options.size.c;
    adj_graph *g = adj_graph_new();
    if (adj_model_logits(g, model, &o) != NULL && map != NULL)
        (void)adj_weights_convert(file, g, map, 0, &mapped, NULL); /* loading says what is wrong */
    const adj_tensors *ours = map != NULL ? mapped : file;
    if (card->options.classes == 0)
        card->options.classes = adj_weights_classes(ours);
    if (card->options.size.c == 0 && net->options.size.c == 0)
        net->options.size.c = adj_weights_channels(ours, g);
    adj_tensors_free(mapped);
    adj_graph_free(g);
}

adj_status adj_net_check_card(const adj_model_card *card, const char *name, int must_be_built_in,
                              const char *in_c, adj_error *error)
{
    if (card->model != NULL && strcmp(name, card->model) != 0)
        return adj_error_set(error, ADJ_ESHAPE, "holds another model (got %.80s, expected %.80s)",
                             card->model, name);
    if (must_be_built_in && adj_model_find(name, NULL) == NULL)
        return adj_error_set(error, ADJ_EIO, "model %.80s is not built in; in C, %s", name, in_c);
    return ADJ_OK;
}

/* Sets the net from the card if it is not given, and fails if the file has another net. */
static adj_status name_net(adj_net *net, const adj_model_card *card, adj_error *error)
{
    if (net->build == NULL && net->name == NULL)
        net->name = card->model;
    if (net->build == NULL && net->name == NULL)
        return adj_error_set(error, ADJ_EARG, "does not name its model");
    return adj_net_check_card(card, net_name(net), net->build == NULL,
                              "load it with adj_predictor_load and its net", error);
}

/* Completes the net from the card, and fails where they differ. */
static adj_status fit_to_card(adj_net *net, const adj_model_card *card, adj_error *error)
{
    adj_status status = name_net(net, card, error);
    if (status != ADJ_OK)
        return status;
    if (net->options.multiplier == 0)
        net->options.multiplier = card->options.multiplier;
    net->options.size = size_or(net->options.size, card->options.size);
    status = net_complete(net, (adj_image_size){0}, card->options.classes, error);
    if (status != ADJ_OK)
        return status;
    const int fits = card->options.size.h == 0 || same_size(card->options.size, net->options.size);
    if (fits && (card->options.classes == 0 || card->options.classes == net->options.classes))
        return ADJ_OK;
    return adj_error_set(error, ADJ_ESHAPE,
                         "its model is for %s images of %lld classes (expected %s and %lld)",
                         full_text(card->options.size).s, (long long)card->options.classes,
                         full_text(net->options.size).s, (long long)net->options.classes);
}

/* Fails if the file was trained with another loss; outputs would be taken for logits. */
static adj_status check_trained_loss(const adj_tensors *file, const adj_net *net, adj_error *error)
{
    const char *there = adj_tensors_metadata(file, loss_key), *here = net_loss_name(net);
    if (there == NULL || strcmp(there, here) == 0)
        return ADJ_OK;
    return adj_error_set(error, ADJ_ESHAPE,
                         "was trained with another adj_net.loss (got %.40s, expected %s)", there,
                         here);
}

/* Makes a predictor from the card, without parameters. */
static adj_status from_card(const adj_net *net, const adj_model_card *card,
                            const adj_predictor_opts *o, adj_predictor **p, adj_error *error)
{
    static const float zero[ADJ_MAX_CHANNELS], one[ADJ_MAX_CHANNELS] = {1, 1, 1, 1};
    plan_opts plan = {.exec = o->exec};
    float mean[ADJ_MAX_CHANNELS], deviation[ADJ_MAX_CHANNELS];
    adj_net complete = *net;

    if (plan.exec.precision == ADJ_PRECISION_AS_BUILT)
        plan.exec.precision = card->precision;
    if (plan.exec.math == ADJ_MATH_EXACT)
        plan.exec.math = card->math;
    adj_status status = fit_to_card(&complete, card, error);
    if (status == ADJ_OK)
        status = predictor_new(&complete, &plan, p, error);
    if (status != ADJ_OK)
        return status;
    const adj_model_card own = (*p)->card; /* with pointers to memory of the predictor */
    (*p)->card = *card;
    (*p)->card.model = own.model;
    (*p)->card.options = own.options;
    (*p)->card.class_names = NULL;
    (*p)->card.resize = resize_word(resize_rule(card->resize));
    for (int i = 0; i < ADJ_MAX_CHANNELS; i++) {
        mean[i] = (float)card->mean[i];
        deviation[i] = (float)card->deviation[i];
    }
    if (card->deviation[0] > 0)
        predictor_normalize(*p, mean, deviation, card->options.size.c);
    else { /* the file does not say it */
        predictor_normalize(*p, zero, one, ADJ_MAX_CHANNELS);
        (*p)->card.deviation[0] = 0;
    }
    return predictor_name_classes(*p, card->options.classes, card->class_names, error);
}

/* Loads the parameters into the first network, that of one image. */
static adj_status set_parameters(adj_predictor *p, const adj_tensors *file,
                                 const adj_weights_opts *options, adj_error *error)
{
    adj_status status = make_workers(p, ONE, 1, error);
    if (status == ADJ_OK)
        status = adj_weights_set(p->planned[ONE].w.exec[0], file, options, error);
    if (status != ADJ_OK)
        return status;
    p->home = p->planned[ONE].w.exec[0];
    p->planned[ONE].version = p->version = 1;
    return ADJ_OK;
}

adj_status adj_predictor_load(const char *path, const adj_net *net,
                              const adj_predictor_opts *options, adj_predictor **p,
                              adj_error *error)
{
    static const adj_predictor_opts defaults;
    const adj_predictor_opts *o = options != NULL ? options : &defaults;
    adj_tensors *file = NULL;
    adj_model_card *card = NULL;
    adj_error why = {0};

    if (p == NULL || path == NULL)
        return adj_error_set(error, ADJ_EARG, "predictor: file name or result pointer is NULL");
    *p = NULL;
    adj_status status = adj_tensors_read(path, &file);
    if (status != ADJ_OK) {
        adj_error_set(error, status, "%s", file->message);
        adj_tensors_free(file);
        return status;
    }
    status = adj_model_card_read(file, &card, &why);
    if (status == ADJ_OK) {
        adj_net own = net != NULL ? *net : (adj_net){0};
        status = check_trained_loss(file, &own, &why);
        infer_sizes(file, &own, card, o->weights != NULL ? o->weights->map : NULL);
        if (status == ADJ_OK)
            status = from_card(&own, card, o, p, &why);
    }
    if (status == ADJ_OK)
        status = set_parameters(*p, file, o->weights, &why);
    if (status != ADJ_OK) {
        adj_error_set(error, status, "%.200s: %.300s", path, why.message);
        adj_predictor_free(*p);
        *p = NULL;
    }
    free(card);
    adj_tensors_free(file);
    return status;
}
