/* onnx_model.c - see onnx_model.h. */
#include "onnx_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_onnx.h"
#include "base/c_locale.h"
#include "command.h"
#include "graph/op.h"
#include "io/tensors/formats.h"
#include "model.h"
#include "onnx/details.h"

int is_onnx_file(const char *name) { return name != NULL && ends_in(name, ".onnx"); }

const char *onnx_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

adj_node *before_softmax(adj_node *y)
{
    return y != NULL && strcmp(adj_node_op(y), "softmax") == 0 ? adj_node_operand_at(y, 0) : y;
}

/* Sets the sizes from the net; fails if it is no classifier of images. */
static adj_status read_sizes(const char *path, const adj_onnx_net *net, adj_model_opts *sizes,
                             adj_error *error)
{
    const adj_shape s = net->n_input == 1 ? adj_node_type(net->input[0]).shape : (adj_shape){0};
    if (s.rank != 4 || net->n_output != 1 || adj_onnx_details(net).classes == 0)
        return adj_error_set(error, ADJ_ESHAPE,
                             "%s: the net is not a classifier of images (got %d inputs, the first "
                             "of rank %lld, and %d outputs, the first with %lld classes, expected "
                             "one input of rank 4 and one output [batch, classes])",
                             path, net->n_input, (long long)s.rank, net->n_output,
                             (long long)adj_onnx_details(net).classes);
    const int is_nhwc = s.dim[1] > ADJ_MAX_CHANNELS && s.dim[3] <= ADJ_MAX_CHANNELS;
    sizes->format = is_nhwc ? ADJ_NHWC : ADJ_NCHW;
    sizes->size.c = s.dim[is_nhwc ? 3 : 1];
    sizes->size.h = s.dim[is_nhwc ? 1 : 2];
    sizes->size.w = s.dim[is_nhwc ? 2 : 3];
    sizes->classes = adj_onnx_details(net).classes;
    return ADJ_OK;
}

adj_status onnx_sizes(const char *path, adj_model_opts *sizes, adj_error *error)
{
    const adj_onnx_opts o = {.size = sizes->size};
    adj_onnx_net *net = NULL;
    adj_graph *g = or_exit(adj_graph_new());
    adj_status status = adj_onnx_load(g, path, &o, &net, error);
    if (status == ADJ_OK && net != NULL)
        status = read_sizes(path, net, sizes, error);
    adj_onnx_free(net);
    adj_graph_free(g);
    return status;
}

/* adj_net.build: images [batch, h, w, c] -> logits. */
static adj_node *build_onnx(adj_node *images, int64_t classes, int training, void *user)
{
    onnx_source *s = user;
    const int to_nchw[] = {0, 3, 1, 2};
    adj_node *x = s->format == ADJ_NCHW ? adj_transpose(images, 4, to_nchw) : images;
    if (x == NULL)
        return NULL;
    const adj_onnx_opts o = {.batch = adj_node_type(x).shape.dim[0],
                             .training = training,
                             .given = &x,
                             .n_given = 1,
                             .classes = s->new_head || classes != s->classes ? classes : 0,
                             .freeze = s->freeze};
    adj_onnx_net *net;
    adj_error error = {0};
    const adj_status status = adj_onnx_load(adj_node_graph(x), s->path, &o, &net, &error);
    if (status != ADJ_OK) {
        adj_fail(adj_node_graph(x), status, "%s", error.message);
        return NULL;
    }
    for (int i = 0; i < adj_onnx_details(net).n_head; i++)
        snprintf(s->head[i], ONNX_NAME, "%s", adj_node_name(adj_onnx_details(net).head[i]));
    s->n_folded = adj_onnx_details(net).n_folded;
    adj_node *logits = before_softmax(net->output[0]);
    if (logits != NULL && adj_node_type(logits).dtype != adj_node_type(images).dtype)
        logits = adj_cast(logits, adj_node_type(images).dtype); /* a file of f64 or f16 */
    adj_onnx_free(net);
    return logits;
}

adj_status net_named(const char *model, adj_image_size size, onnx_source *source, adj_net *net,
                     adj_error *error)
{
    adj_model_opts sizes = {.size = size};
    *net = (adj_net){.name = model};
    if (!is_onnx_file(model))
        return ADJ_OK;
    const adj_status status = onnx_sizes(model, &sizes, error);
    if (status != ADJ_OK)
        return status;
    source->path = model;
    source->classes = sizes.classes;
    source->format = sizes.format;
    *net = (adj_net){.name = onnx_name(model), .build = build_onnx, .user = source};
    return ADJ_OK;
}

/* ---- as a file of tensors ---- */

enum { VALUES_TEXT = 400 };

/* Appends names, types and shapes, with the name batch for a symbolic one. */
static void append_values(char text[VALUES_TEXT], const adj_onnx_net *net, int n,
                          adj_node *const list[])
{
    for (int i = 0; i < n; i++) {
        const adj_type t = adj_node_type(list[i]);
        const adj_text sizes = adj_shape_text(t.shape);
        const int is_symbolic =
            adj_onnx_details(net).batch == 0 && t.shape.rank > 0 && t.shape.dim[0] == 1;
        c_append(text, VALUES_TEXT, "%s%s %s %s%s", i > 0 ? "; " : "", adj_node_name(list[i]),
                 adj_dtype_name(t.dtype), is_symbolic ? "[batch" : "",
                 sizes.s + (is_symbolic ? 2 : 0));
    }
}

/* An ONNX file to be written as tensors. */
typedef struct {
    const char *path;
    int with_card;
} onnx_tensors;

/* True if the net's metadata are a model card and not another program's. */
static int has_card(const adj_onnx_net *net)
{
    return metadata_value(net->n_metadata, net->metadata, "adjoint.version") != NULL;
}

/* Lists the entries of a classifier's model card: those of the net's metadata, if they are a card,
 * with the file's name and sizes, from which they may not differ. *list is for free(). */
static adj_status list_card(const char *path, const adj_onnx_net *net, const adj_model_opts *sizes,
                            adj_metadata **list, int *n, adj_error *error)
{
    adj_model_card *card = NULL;
    adj_error why = {0};
    adj_status status = adj_model_card_from_metadata(has_card(net) ? net->n_metadata : 0,
                                                     net->metadata, &card, &why);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%s: metadata: %s", path, why.message);
    const adj_model_opts said = card->options;
    if ((said.classes != 0 && said.classes != sizes->classes) ||
        (said.size.c != 0 && said.size.c != sizes->size.c)) {
        status = adj_error_set(error, ADJ_ESHAPE,
                               "%s: metadata: the number of channels or classes (got %lld and "
                               "%lld, expected the net's %lld and %lld)",
                               path, (long long)said.size.c, (long long)said.classes,
                               (long long)sizes->size.c, (long long)sizes->classes);
    } else {
        card->model = onnx_name(path);
        card->options = (adj_model_opts){.size = sizes->size, .classes = sizes->classes};
        status = adj_model_card_write(card, list, n, error);
    }
    free(card);
    return status;
}

static adj_status write_net(const char *path, const onnx_tensors *from, adj_exec *e,
                            const adj_onnx_net *net, adj_error *error)
{
    enum { N_CONTENTS = 3 };
    char opset[24], inputs[VALUES_TEXT] = "", outputs[VALUES_TEXT] = "";
    const adj_metadata contents[N_CONTENTS] = {
        {"opset", opset}, {"inputs", inputs}, {"outputs", outputs}};
    const int n_contents = from->with_card ? 0 : N_CONTENTS;
    adj_metadata *card = NULL;
    int n = 0;
    adj_model_opts sizes = {0};
    adj_status status = ADJ_OK;
    if (read_sizes(from->path, net, &sizes, NULL) == ADJ_OK && (from->with_card || has_card(net)))
        status = list_card(from->path, net, &sizes, &card, &n, error);
    if (status == ADJ_OK) {
        adj_metadata *entries = allocate(n + N_CONTENTS, sizeof *entries);
        snprintf(opset, sizeof opset, "%lld", (long long)adj_onnx_details(net).opset);
        append_values(inputs, net, net->n_input, net->input);
        append_values(outputs, net, net->n_output, net->output);
        for (int i = 0; i < n_contents + n; i++)
            entries[i] = i < n_contents ? contents[i] : card[i - n_contents];
        status = adj_weights_save(e, path, n_contents + n, entries, error);
        free(entries);
    }
    free(card);
    return status;
}

static adj_status make_tensors(const char *path, const void *source, adj_error *error)
{
    const onnx_tensors *from = source;
    adj_onnx_net *net = NULL;
    adj_graph *g = or_exit(adj_graph_new());
    adj_exec *e = NULL;
    adj_status status = adj_onnx_load(g, from->path, NULL, &net, error);
    if (status == ADJ_OK && net != NULL) {
        const adj_exec_opts o = {
            .n_fetch = net->n_output, .fetch = net->output, .backend = "naive", .threads = 1};
        status = adj_exec_new(g, &o, &e);
        if (status != ADJ_OK)
            adj_error_set(error, status, "%s: %s", from->path, adj_exec_message(e));
    }
    if (status == ADJ_OK && net != NULL)
        status = write_net(path, from, e, net, error);
    adj_exec_free(e);
    adj_onnx_free(net);
    adj_graph_free(g);
    return status;
}

int open_onnx(input_file *file, int with_card)
{
    const onnx_tensors from = {file->path, with_card};
    return open_made(file, make_tensors, &from);
}

int open_weights(const char *model, input_file in[2])
{
    const int status = open_inputs(2, in);
    if (status != CONTINUE || in[0].path != NULL || !is_onnx_file(model))
        return status;
    in[0].option = "--model";
    in[0].path = model;
    return open_onnx(&in[0], 1);
}

/* Returns the size of the images in the model card of a file of tensors; zeros if it has none. */
static adj_image_size size_in_card(const char *path)
{
    adj_tensors *t = NULL;
    adj_model_card *card = NULL;
    adj_image_size size = {0};
    if (adj_tensors_read(path, &t) == ADJ_OK && adj_model_card_read(t, &card, NULL) == ADJ_OK)
        size = card->options.size;
    free(card);
    adj_tensors_free(t);
    return size;
}

int open_predictor(named_weights *w, adj_predictor **p)
{
    input_file in[] = {{.option = "--weights", .path = w->weights},
                       {.option = "--map", .path = w->map}};
    adj_net net;
    adj_error error = {0};
    const int status = open_weights(w->model, in);
    if (status != CONTINUE)
        return status;
    const adj_image_size size =
        is_onnx_file(w->model) ? size_in_card(in[0].name) : (adj_image_size){0};
    if (net_named(w->model, size, &w->source, &net, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s", error.message);
    w->weights = in[0].path;
    const adj_weights_opts load = {.map = in[1].name};
    const adj_predictor_opts options = {.exec = w->exec, .weights = &load};
    if (adj_predictor_load(in[0].name, &net, &options, p, &error) != ADJ_OK)
        return complain_of_files(2, in, "", error.message, model_hint(w->model, in[0].name));
    const adj_model_card *card = adj_predictor_card(*p);
    say_keras_epsilon(w->map, card->model);
    if (!(card->deviation[0] > 0))
        complain(EXIT_OK,
                 "note: %s has no mean or deviation; pixels are used unscaled, 0 to 255 (set them "
                 "with adjoint convert --mean --deviation)",
                 w->weights);
    return CONTINUE;
}
