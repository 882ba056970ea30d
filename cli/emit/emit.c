/* emit.c - adjoint emit: writes a network as one file of C99. */
#include "adjoint_emit.h"

#include <stdlib.h>
#include <string.h>

#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "cli/command.h"
#include "cli/model.h"
#include "cli/onnx_model.h"
#include "cli/standard.h"
#include "emit.h"
#include "emit/tool.h"
#include "train/internal.h"

static int parse(emit_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--weights", "FILE", "weights file, safetensors or .npz; - is standard input",
         .text = &o->weights},
        {"--model", "NAME", "model, or an ONNX file; default: the one named in the weights file",
         .text = &o->model, .names = model_name_at},
        {"--map", "NAME", MAP_HELP, .text = &o->map, .needs = "--weights"},
        {"--batch", "N", "images of one call; default: 1", .integer = &o->batch,
         .range = {1, 65536}},
        {"--train", "", "also writes NAME_train_step: gradient descent with momentum 0.9 in RAM",
         .flag = &o->train},
        {"--accumulate", "",
         "with --train: NAME_accumulate and NAME_update, one step for several batches",
         .flag = &o->accumulate, .needs = "--train"},
        {"--freeze", "PATTERNS", "with --train: parameters that stay constants: conv?/*,bn?/*",
         .text = &o->freeze, .needs = "--train"},
        {"--head-only", "",
         "with --train: trains the last layer; those before it run as in prediction",
         .flag = &o->head_only, .needs = "--train"},
        {"--prefix", "NAME", "first part of the file's names: NAME_predict; default: net",
         .text = &o->prefix},
        {"--arena", "WHERE",
         "static (default); caller: memory for values is the last argument of each function",
         .text = &o->arena, .words = "static caller"},
        {"--weights-type", "T",
         "f32 (default); int8: filters in 8 bits, with an f32 scale for each output channel",
         .text = &o->weights_type, .words = "f32 int8"},
        {"--sums", "T",
         "f32 (default); double: for convolutions, products, average pools, reductions, softmax "
         "and loss, but not for norms and gradients of convolutions",
         .text = &o->sums, .words = "f32 double"},
        {"--data", "PATH",
         "with --weights-type int8: test images, on which the accuracy with both types is printed; "
         "default: the embedded digits, if the net has their classes",
         .text = &o->data},
        {"--out", "FILE", "C file to write; default: standard output", .text = &o->out},
        {0},
    };
    const remark examples[] = {
        {"adjoint emit --weights best.safetensors --out net.c",
         "The trained network as C: compile it with cc -std=c99 -O2 -c net.c."},
        {"adjoint emit --model net.onnx --prefix kws --out kws.c",
         "A network of an ONNX file, with kws_predict."},
        {"adjoint emit --model lenet5 --train --head-only --out net.c",
         "A net whose last layer is trained on the device."},
        {NULL, NULL}};
    const usage u = {.command = "emit",
                     .summary = "Writes a network as one C99 file without dependencies: weights, a "
                                "static arena, NAME_predict and, with --train, a training step.",
                     .options = options,
                     .examples = examples};
    const int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->weights == NULL && o->model == NULL)
        return complain(EXIT_USAGE, "--weights FILE is missing, or --model NAME");
    adj_error error = {0};
    if (status == CONTINUE && adj_emit_check_prefix(o->prefix, &error) != ADJ_OK)
        return complain(EXIT_USAGE, "--prefix: %s", error.message);
    if (status == CONTINUE && o->data != NULL && strcmp(o->weights_type, "int8") != 0)
        return complain(EXIT_USAGE, "--data requires --weights-type int8");
    if (status == CONTINUE && o->data != NULL && o->weights == NULL && !is_onnx_file(o->model))
        return complain(EXIT_USAGE, "--data requires --weights, or an ONNX file --model");
    return status;
}

static void work_free(work *w)
{
    free(w->text);
    adj_exec_free(w->exec);
    adj_graph_free(w->graph);
    free(w->card);
    adj_tensors_free(w->tensors);
}

/* Adds the net: built in, or of an ONNX file, whose images become NHWC if it is a classifier. NULL,
 * and an error, on failure. */
static adj_node *build(work *w, const emit_opts *o, const char *name, adj_error *error)
{
    const adj_model_card none = {0}, *c = w->card != NULL ? w->card : &none;
    adj_model_opts sizes = {.batch = o->batch,
                            .size = c->options.size,
                            .classes = c->options.classes,
                            .multiplier = c->options.multiplier,
                            .training = o->train && !o->head_only,
                            .freeze = o->freeze};
    adj_model_opts of_file = {.size = c->options.size};
    adj_error no_classifier = {0};
    if (is_onnx_file(name) && onnx_sizes(name, &of_file, &no_classifier) == ADJ_OK) {
        onnx_source source = {.freeze = o->freeze};
        adj_net net;
        if (net_named(name, of_file.size, &source, &net, error) != ADJ_OK)
            return NULL;
        const int64_t classes = c->options.classes > 0 ? c->options.classes : of_file.classes;
        adj_node *x =
            adj_input(w->graph, "images", ADJ_F32,
                      (adj_shape){4, {o->batch, of_file.size.h, of_file.size.w, of_file.size.c}});
        adj_node *y = net.build(x, classes, (int)o->train, net.user);
        if (y == NULL)
            adj_error_set(error, adj_graph_status(w->graph), "%s", adj_graph_message(w->graph));
        return y;
    }
    model_graph m;
    if (model_build(&m, w->graph, name, &sizes, NULL) == ADJ_OK)
        return m.logits;
    *error = m.error;
    return NULL;
}

/* Returns what the last convolution or matrix product before y reads; NULL: there is none. */
static adj_node *input_of_last_layer(adj_node *y)
{
    static const char *const layers[] = {"conv2d", "depthwise_conv2d_native", "matmul"};
    for (adj_node *n = y; adj_node_operand_count(n) > 0; n = adj_node_operand_at(n, 0))
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
            if (strcmp(adj_node_op(n), layers[i]) == 0)
                return adj_node_operand_at(n, 0);
    return NULL;
}

/* Removes the parameters that x depends on from a list of n; returns how many are left, -1 when out
 * of memory. */
static int remove_params_of(const adj_node *x, int n, adj_node *param[])
{
    const int all = adj_trainable(x, NULL, 0, NULL);
    adj_node **of_x = allocate(all > 0 ? all : 0, sizeof(adj_node *));
    int left = adj_trainable(x, NULL, all, of_x) >= 0 ? 0 : -1;
    for (int i = 0; i < n && left >= 0; i++) {
        int k = 0;
        while (k < all && of_x[k] != param[i])
            k++;
        if (k == all)
            param[left++] = param[i];
    }
    free((void *)of_x);
    return left;
}

/* Writes the parameters to be trained, at most all; returns their number, 0 with an error. */
static int choose_trained(const work *w, const emit_opts *o, adj_node *logits, int all,
                          adj_node *trained[], adj_error *error)
{
    int n = adj_trainable(w->loss, o->freeze, all, trained);
    if (n == 0 || (o->freeze != NULL && n == all)) {
        adj_error_set(error, ADJ_EARG, "--freeze %.200s: matches %s parameter", o->freeze,
                      n == 0 ? "every" : "no");
        return 0;
    }
    const adj_node *x = o->head_only ? input_of_last_layer(logits) : NULL;
    if (o->head_only)
        n = x != NULL ? remove_params_of(x, n, trained) : 0;
    if (n == 0)
        adj_error_set(error, ADJ_EARG, "--head-only: the last layer has no parameter to train");
    else if (n < 0)
        adj_error_set(error, ADJ_ENOMEM, "out of memory");
    return n > 0 ? n : 0;
}

/* Adds loss and updates; the output is then that of evaluation. */
static adj_status add_training(work *w, const emit_opts *o, adj_node *logits, adj_error *error)
{
    const adj_type y = adj_node_type(logits);
    adj_node *labels = adj_find(w->graph, "labels");
    if (y.shape.rank != 2)
        return adj_error_set(error, ADJ_ESHAPE,
                             "--train: the net is not a classifier (got an output of rank %lld)",
                             (long long)y.shape.rank);
    if (labels == NULL)
        labels = adj_input(w->graph, "labels", ADJ_I32, (adj_shape){1, {y.shape.dim[0]}});
    w->output = adj_evaluation(logits);
    w->loss = adj_loss_softmax(logits, labels, NULL);
    const int all = w->loss != NULL ? adj_trainable(w->loss, NULL, 0, NULL) : 0;
    if (all < 0)
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    adj_node **trained = allocate(all, sizeof(adj_node *));
    adj_optimizer_opts sgd = {.momentum = 0.9, .trained = trained};
    sgd.n_trained = choose_trained(w, o, logits, all, trained, error);
    if (sgd.n_trained > 0)
        w->updates = adj_training_updates(w->loss, &sgd);
    free((void *)trained);
    if (sgd.n_trained == 0)
        return error->status;
    if (w->updates != NULL && o->accumulate)
        (void)adj_emit_accumulation(w->updates, &w->accumulate, &w->updates);
    return w->updates != NULL ? ADJ_OK
                              : adj_error_set(error, adj_graph_status(w->graph), "%s",
                                              adj_graph_message(w->graph));
}

static int load(work *w, const emit_opts *o, const input_file in[2])
{
    const char *name = o->model;
    const int is_file = is_onnx_file(name);
    adj_error error = {0};
    if (in[0].name != NULL) {
        const int status = read_tensors(&in[0], &w->tensors);
        if (status != CONTINUE)
            return status;
        if (adj_model_card_read(w->tensors, &w->card, &error) != ADJ_OK)
            return complain(EXIT_FAILED, "%s: %s", in[0].path, error.message);
        name = name != NULL ? name : w->card->model;
    }
    if (name == NULL)
        return complain(EXIT_FAILED, "%s: does not name its model (set --model NAME)", in[0].path);
    if (!is_file && o->model != NULL && check_model(name) != CONTINUE)
        return EXIT_USAGE;
    if (w->card != NULL && adj_net_check_card(w->card, is_file ? onnx_name(name) : name, !is_file,
                                              "build the net, load the file with adj_weights_load "
                                              "and write it with adj_emit (libadjoint_emit)",
                                              &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s: %s%s", in[0].path, error.message,
                        model_hint(o->model, in[0].name));
    w->graph = adj_graph_new();
    w->output = build(w, o, name, &error);
    if (w->output != NULL && o->train)
        (void)add_training(w, o, w->output, &error);
    if (error.status != ADJ_OK)
        return complain(EXIT_FAILED, "%s", error.message);
    const adj_exec_opts exec = {
        .n_fetch = 1, .fetch = &w->output, .updates = w->updates, .backend = "naive"};
    if (adj_exec_new(w->graph, &exec, &w->exec) != ADJ_OK)
        return complain(EXIT_FAILED, "%s", adj_exec_message(w->exec));
    const adj_weights_opts loading = {.map = in[1].name};
    if (w->tensors != NULL && adj_weights_set(w->exec, w->tensors, &loading, &error) != ADJ_OK) {
        char path[ADJ_MESSAGE]; /* tensors have none */
        snprintf(path, sizeof path, "%s: ", in[0].path);
        return complain_of_files(2, in, path, error.message, "");
    }
    if (w->tensors == NULL && !is_file)
        complain(EXIT_OK, "note: parameters have their initial values (set --weights)");
    return CONTINUE;
}

/* Writes the file into memory. */
static int make_text(work *w, const emit_opts *o)
{
    adj_model_card card = w->card != NULL ? *w->card : (adj_model_card){0};
    if (o->model != NULL)
        card.model = onnx_name(o->model);
    const adj_emit_opts options = {
        .prefix = o->prefix,
        .card = &card,
        .updates = w->updates,
        .accumulate = w->accumulate,
        .loss = w->loss,
        .flags = (strcmp(o->arena, "caller") == 0 ? ADJ_EMIT_CALLER_ARENA : 0U) |
                 (strcmp(o->weights_type, "int8") == 0 ? ADJ_EMIT_INT8_WEIGHTS : 0U) |
                 (strcmp(o->sums, "double") == 0 ? ADJ_EMIT_DOUBLE_SUMS : 0U)};
    adj_error error = {0};
    FILE *f = or_exit(open_memstream(&w->text, &w->length));
    const adj_status status = adj_emit(w->exec, w->output, &options, f, &error);
    if (fclose(f) != 0 && status == ADJ_OK)
        return complain(EXIT_FAILED, "out of memory");
    return status == ADJ_OK ? CONTINUE : complain(EXIT_FAILED, "%s", error.message);
}

/* Prints the accuracy that int8 weights cost, then with parameters of a file; rounds those of w. */
static int print_accuracy(work *w, const emit_opts *o)
{
    enum { BATCH = 32 };
    if (w->card == NULL || strcmp(o->weights_type, "int8") != 0)
        return CONTINUE;
    const char *name = o->model != NULL ? o->model : w->card->model;
    const emit_opts evaluation = {.batch = BATCH};
    work all = {.card = w->card, .graph = adj_graph_new()};
    adj_error error = {0};
    adj_node *logits = build(&all, &evaluation, name, &error);
    const int status =
        logits != NULL ? say_accuracy(o, w, logits) : complain(EXIT_FAILED, "%s", error.message);
    adj_graph_free(all.graph);
    return status;
}

static int write_text(FILE *f, const void *source)
{
    const work *w = source;
    return fwrite(w->text, 1, w->length, f) != w->length;
}

int command_emit(int argc, char **argv)
{
    emit_opts o = {.batch = 1, .out = "-", .arena = "static", .weights_type = "f32", .sums = "f32"};
    work w = {0};
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;
    input_file in[] = {{.option = "--weights", .path = o.weights},
                       {.option = "--map", .path = o.map}};
    const output_file files[] = {{"--out", o.out, OUTPUT_REPLACED_OR_STDOUT},
                                 {"--weights", o.weights, INPUT},
                                 {"--map", o.map, INPUT},
                                 {"--model", is_onnx_file(o.model) ? o.model : NULL, INPUT}};
    status = check_outputs(sizeof files / sizeof *files, files);
    if (status == CONTINUE)
        status = open_weights(o.model, in);
    if (status == CONTINUE)
        status = load(&w, &o, in);
    if (status == CONTINUE)
        status = make_text(&w, &o);
    if (status == CONTINUE)
        status = print_accuracy(&w, &o);
    if (status == CONTINUE)
        status = write_output(&files[0], write_text, &w);
    if (status == EXIT_OK && !is_stdout(o.out))
        say("%zu bytes of C written to %s", w.length, o.out);
    work_free(&w);
    return status;
}
