/* model.c - see model.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adjoint_onnx.h"
#include "base/c_locale.h"
#include "command.h"
#include "graph/op.h"
#include "json.h"
#include "model.h"
#include "onnx/details.h"
#include "onnx_model.h"
#include "ops/nn/names.h"

/* ---- a recipe ---- */

static const char *or_none(const char *name) { return name != NULL ? name : "none"; }

static void append(char text[RECIPE_TEXT], const char *name, double value, const char *unit)
{
    if (value != 0)
        c_append(text, RECIPE_TEXT, ", %s %.4g%s", name, value, unit);
}

const char *recipe_text(const adj_recipe *r, char text[RECIPE_TEXT])
{
    const adj_optimizer_opts *o = &r->optimizer;

    snprintf(text, RECIPE_TEXT, "%s, lr %.4g, %s", or_none(adj_optimizer_name(o)), r->lr,
             or_none(adj_schedule_name_at((int)r->schedule)));
    append(text, "warm-up", r->warmup, r->warmup == 1 ? " epoch" : " epochs");
    append(text, "weight decay", o->weight_decay, "");
    append(text, "clip", o->clip_norm, "");
    append(text, "smoothing", r->smoothing, "");
    append(text, "batch", (double)r->batch, "");
    append(text, "shift", (double)r->shift, "");
    return text;
}

json_t *recipe_json(const adj_recipe *r)
{
    return json_pack("{s:s, s:f, s:s, s:f, s:f, s:f, s:f, s:I, s:I}", "optimizer",
                     or_none(adj_optimizer_name(&r->optimizer)), "lr", r->lr, "schedule",
                     or_none(adj_schedule_name_at((int)r->schedule)), "warmup", r->warmup,
                     "weight_decay", r->optimizer.weight_decay, "clip", r->optimizer.clip_norm,
                     "smoothing", r->smoothing, "batch", (json_int_t)r->batch, "shift",
                     (json_int_t)r->shift);
}

/* ---- a model ---- */

const adj_optimizer_opts model_momentum = {.kind = ADJ_SGD, .momentum = 0.9};

static adj_status unknown_model(const char *name, adj_error *error)
{
    const adj_model *nearest = adj_model_nearest(name);
    return adj_error_set(error, ADJ_EARG, "unknown model %.200s%s%s%s; see adjoint models", name,
                         nearest != NULL ? " (did you mean " : "",
                         nearest != NULL ? nearest->name : "", nearest != NULL ? "?)" : "");
}

/* Complains of a file that is no ONNX file, by what it is. */
static int complain_of_file(const char *path)
{
    static const char expected[] = "--model: expected a model's name or an ONNX file";
    adj_tensors *t = NULL;
    if (adj_tensors_read(path, &t) == ADJ_OK)
        complain(EXIT_USAGE, "%s; %s holds weights (set --weights FILE)", expected, path);
    else
        complain(EXIT_USAGE, "%s; %s", expected, t != NULL ? t->message : "out of memory");
    adj_tensors_free(t);
    return EXIT_USAGE;
}

int check_model(const char *name)
{
    adj_error error = {0};
    if (is_onnx_file(name) || adj_model_find(name, NULL) != NULL)
        return CONTINUE;
    if (strchr(name, '.') != NULL && access(name, R_OK) == 0)
        return complain_of_file(name);
    unknown_model(name, &error);
    return complain(EXIT_USAGE, "%s", error.message);
}

const char *model_hint(const char *model, const char *weights)
{
    adj_tensors *t = NULL;
    const char *hint = "";
    if (model != NULL)
        return hint;
    if (adj_tensors_read(weights, &t) == ADJ_OK) {
        const char *name = adj_tensors_metadata(t, "model");
        if (name == NULL)
            hint = " (set --model NAME)";
        else if (adj_model_find(name, NULL) == NULL)
            hint = is_onnx_file(name) ? " (set --model to that ONNX file)" : "";
    }
    adj_tensors_free(t);
    return hint;
}

/* Adds the net of an ONNX file, which sets logits, images and classes. */
static adj_status add_onnx(model_graph *m, const char *path, const adj_model_opts *o)
{
    adj_onnx_net *net;
    const adj_onnx_opts options = {
        .batch = o->batch, .size = o->size, .dtype = o->dtype, .training = o->training};
    const adj_status status = adj_onnx_load(m->graph, path, &options, &net, &m->error);
    if (status != ADJ_OK)
        return m->error.status = ADJ_EIO; /* error of the file, not of an argument */
    if (net->n_input == 1 && net->n_output == 1) {
        m->images = net->input[0];
        m->logits = before_softmax(net->output[0]);
        m->classes = adj_onnx_details(net).classes;
    } else {
        adj_error_set(&m->error, ADJ_ESHAPE,
                      "%s: number of inputs or outputs (got %d and %d, expected 1 of each)", path,
                      net->n_input, net->n_output);
    }
    adj_onnx_free(net);
    return m->error.status;
}

/* Adds a built-in model, with the sizes of the options before those of its name. */
static adj_status add_model(model_graph *m, const char *name, const adj_model_opts *options)
{
    adj_model_opts o = *options;
    const adj_model *model = adj_model_find(name, &o);
    if (model == NULL)
        return unknown_model(name, &m->error);
    o.size.h = options->size.h > 0 ? options->size.h : o.size.h;
    o.size.w = options->size.w > 0 ? options->size.w : o.size.w;
    m->logits = adj_model_logits(m->graph, model, &o);
    m->images = adj_find(m->graph, "images");
    m->classes = model->defaults.classes;
    return ADJ_OK;
}

static adj_node *loss_of(const model_graph *m)
{
    const adj_axes all = {.n = ADJ_ALL};
    if (m->logits == NULL)
        return NULL;
    return adj_node_type(m->logits).shape.rank == 2
               ? adj_loss_softmax(m->logits, m->labels, NULL)
               : adj_label(adj_reduce_mean(adj_square(m->logits), all), "loss");
}

adj_status model_build(model_graph *m, adj_graph *g, const char *name,
                       const adj_model_opts *options, const adj_optimizer_opts *optimizer)
{
    *m = (model_graph){.graph = g};
    if (g == NULL)
        return adj_error_set(&m->error, ADJ_ENOMEM, "out of memory");
    adj_status status =
        is_onnx_file(name) ? add_onnx(m, name, options) : add_model(m, name, options);
    if (status != ADJ_OK)
        return status;
    if (m->logits != NULL) {
        const int64_t batch = adj_node_type(m->logits).shape.dim[0];
        m->labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {batch}});
        m->loss = loss_of(m);
    }
    if (m->loss != NULL && optimizer != NULL) {
        m->lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
        m->updates = adj_training_updates(m->loss, optimizer);
    }
    status = adj_graph_status(g);
    return status == ADJ_OK ? ADJ_OK : adj_error_set(&m->error, status, "%s", adj_graph_message(g));
}

int32_t *model_labels(const model_graph *m)
{
    int64_t batch = adj_shape_elems(adj_node_type(m->labels).shape);
    int32_t *label = allocate(batch, sizeof *label);
    for (int64_t i = 0; i < batch; i++)
        label[i] = (int32_t)(i * 7 % (m->classes > 0 ? m->classes : 1));
    return label;
}

/* Returns the epsilon of the model's first batch norm, or 0 if it has none or is not built in. */
static double batch_norm_epsilon(const char *model)
{
    adj_model_opts o = {0};
    const adj_model *m = adj_model_find(model, &o);
    adj_graph *g = m != NULL ? adj_graph_new() : NULL;
    double epsilon = 0;
    if (g != NULL && adj_model_logits(g, m, &o) != NULL)
        for (int id = 0; id < adj_graph_node_count(g) && epsilon == 0; id++) {
            const adj_node *n = adj_graph_node_at(g, id);
            if (n->op == &adj_op_batch_norm)
                epsilon = ((const adj_batch_norm_attrs *)n->attrs)->epsilon;
        }
    adj_graph_free(g);
    return epsilon;
}

void say_keras_epsilon(const char *map, const char *model)
{
    const double epsilon = map != NULL && strcmp(map, "keras") == 0 ? batch_norm_epsilon(model) : 0;
    if (epsilon > 0)
        complain(EXIT_OK,
                 "note: batch norm epsilon is %g in %s (Keras's default: 0.001); results match a "
                 "Keras model built with epsilon=%g",
                 epsilon, model, epsilon);
}

/* Reads a side at *text and moves *text past it; returns 0 if there is none. */
static int64_t parse_side(const char **text, int64_t max)
{
    char *end;
    if (**text < '1' || **text > '9')
        return 0;
    long value = strtol(*text, &end, 10);
    *text = end;
    return value <= max ? value : 0;
}

int parse_size(const char *text, int64_t max, int64_t *h, int64_t *w)
{
    *h = *w = parse_side(&text, max);
    if (*text == 'x' && text++ != NULL)
        *w = parse_side(&text, max);
    return *h > 0 && *w > 0 && *text == '\0';
}

/* ---- names ---- */

const char *model_name_at(int i)
{
    const adj_listed_model *m = adj_model_at(i);
    return m != NULL ? m->model.name : NULL;
}

const char *optimizer_name_at(int i) { return adj_optimizer_name_at(i); }

const char *backend_name_at(int i)
{
    static const char *const names[] = {"onednn", "direct", "naive"};
    return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

/* ---- adjoint models ---- */

/* Returns the number of trainable parameters; prints an error and returns a negative number on
 * failure. */
static int64_t count_parameters(const adj_model *m)
{
    adj_graph *g = adj_graph_new();
    adj_node *logits = g != NULL ? adj_model_logits(g, m, &(adj_model_opts){.training = 1}) : NULL;
    int64_t n = logits != NULL ? adj_trainable_elems(logits) : -1;
    if (logits == NULL)
        complain(EXIT_FAILED, "%s: %s", m->name, adj_graph_message(g));
    adj_graph_free(g);
    return n;
}

static int print_models(void)
{
    for (int i = 0; adj_model_at(i) != NULL; i++) {
        const adj_listed_model *m = adj_model_at(i);
        const adj_model_opts *size = &m->model.defaults;
        int64_t n = count_parameters(&m->model);
        const adj_recipe r = adj_recipe_for(&m->model, INT64_MAX);
        char recipe[RECIPE_TEXT];
        if (n < 0)
            return EXIT_FAILED;
        printf("%-14s %9lld parameters  %2lldx%2lldx%lld  %2lld classes  %s\n"
               "    recipe: %s\n    %s\n",
               m->model.name, (long long)n, (long long)size->size.h, (long long)size->size.w,
               (long long)size->size.c, (long long)size->classes, m->summary,
               recipe_text(&r, recipe), r.why);
    }
    return EXIT_OK;
}

static json_t *models_json(void)
{
    json_t *list = json_array();
    for (int i = 0; adj_model_at(i) != NULL; i++) {
        const adj_listed_model *m = adj_model_at(i);
        const adj_model_opts *size = &m->model.defaults;
        const adj_recipe recipe = adj_recipe_for(&m->model, INT64_MAX);
        int64_t n = count_parameters(&m->model);
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:o}", "name", m->model.name,
                            "parameters", (json_int_t)n, "height", (json_int_t)size->size.h,
                            "width", (json_int_t)size->size.w, "channels", (json_int_t)size->size.c,
                            "classes", (json_int_t)size->classes, "summary", m->summary, "recipe",
                            recipe_json(&recipe)));
    }
    return list;
}

int command_models(int argc, char **argv)
{
    const char *json = NULL;
    const option options[] = {{"--json", "FILE", JSON_HELP, .text = &json, .bare = "-"}, {0}};
    const remark examples[] = {{"adjoint models --json=models.json", "As JSON."}, {NULL, NULL}};
    const usage u = {
        .command = "models",
        .summary = "Lists the models, with their number of parameters and default image size.",
        .options = options,
        .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status != CONTINUE)
        return status;
    return json != NULL ? json_report(json, models_json()) : print_models();
}
