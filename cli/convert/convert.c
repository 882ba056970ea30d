/* convert.c - adjoint convert: a file of tensors in another format, or under other programs' names
 * and in their layouts. */
#include <stdlib.h>
#include <string.h>

#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "cli/command.h"
#include "cli/output.h"

typedef struct {
    const char *files[2]; /* in, out */
    int n_file;
    const char *map, *model, *prefix, *tensor;
    int64_t to_theirs;
} convert_opts;

typedef enum { SAFETENSORS, NPZ, NPY, HEADER, NO_FORMAT } format;

static format format_of(const char *path)
{
    static const char *const endings[] = {".safetensors", ".npz", ".npy", ".h"};
    size_t n = strlen(path);
    for (int i = 0; i < NO_FORMAT; i++)
        if (n > strlen(endings[i]) && strcmp(path + n - strlen(endings[i]), endings[i]) == 0)
            return (format)i;
    return NO_FORMAT;
}

static int parse(convert_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--map", "NAME", "IN has the names of pytorch or keras, or those of a map file",
         .text = &o->map},
        {"--to-theirs", "", "IN has our names, OUT gets theirs", .flag = &o->to_theirs},
        {"--model", "NAME", "the model whose weights they are; default: what IN says",
         .text = &o->model},
        {"--tensor", "NAME", "only this one; for .npy", .text = &o->tensor},
        {"--prefix", "WORD", "of a header's names; default: weights", .text = &o->prefix},
        {0},
    };
    const usage u = {.command = "convert",
                     .summary =
                         "Converts a file of tensors (safetensors, npy, npz, idx); OUT ends in "
                         ".safetensors, .npz, .npy or .h. Without files --map and --model print "
                         "their map.",
                     .options = options,
                     .arguments = "IN OUT",
                     .argument = o->files,
                     .max_arguments = 2,
                     .n_argument = &o->n_file};
    int status = parse_options(&u, argc, argv);
    if (status != CONTINUE)
        return status;
    if (o->to_theirs && o->map == NULL)
        return complain("convert", EXIT_USAGE, "--to-theirs: --map NAME is missing");
    if (o->files[0] == NULL && o->map != NULL)
        return CONTINUE;
    if (o->files[1] == NULL)
        return complain("convert", EXIT_USAGE, "%s is missing", o->files[0] == NULL ? "IN" : "OUT");
    if (format_of(o->files[1]) == NO_FORMAT)
        return complain("convert", EXIT_USAGE,
                        "OUT: expected a name that ends in .safetensors, .npz, .npy or .h (got "
                        "%s)",
                        o->files[1]);
    return CONTINUE;
}

/* Of the model that is named, or that the file names; *g stays NULL without one. */
static int build_model(const convert_opts *o, const adj_tensors *in, adj_graph **g)
{
    adj_model_card *card = NULL;
    adj_model_opts options = {0};
    adj_error error;
    int status = CONTINUE;

    if (in != NULL && adj_model_card_read(in, &card, &error) != ADJ_OK)
        return complain("convert", EXIT_FAILED, "%s: %s", o->files[0], error.message);
    if (card != NULL)
        options = (adj_model_opts){.height = card->height,
                                   .width = card->width,
                                   .channels = card->channels,
                                   .multiplier = card->multiplier,
                                   .classes = card->classes};
    const char *name = o->model != NULL || card == NULL ? o->model : card->model;
    const adj_model *model = adj_model_find(name, &options);
    if (name != NULL && model == NULL)
        status = complain("convert", EXIT_USAGE, "unknown model %s (did you mean %s?)", name,
                          adj_model_nearest(name)->name);
    if (model != NULL) {
        *g = adj_graph_new();
        if (adj_model_logits(*g, model, &options) == NULL)
            status = complain("convert", EXIT_FAILED, "%s", adj_graph_message(*g));
    }
    free(card);
    return status;
}

static adj_status write_tensors(const convert_opts *o, int n, const adj_tensor *tensor,
                                int n_metadata, const adj_metadata *metadata, adj_error *error)
{
    const char *path = o->files[1];
    switch (format_of(path)) {
    case NPZ: return adj_tensors_write_npz(path, n, tensor, error);
    case NPY:
        if (n == 1)
            return adj_tensors_write_npy(path, tensor, error);
        return adj_error_set(error, ADJ_EARG,
                             "%s: a .npy file has one tensor (got %d; --tensor NAME takes one)",
                             path, n);
    case HEADER:
        return adj_tensors_write_header(path, o->prefix, n, tensor, n_metadata, metadata, error);
    default: return adj_tensors_write(path, n, tensor, n_metadata, metadata, error);
    }
}

static int write_out(const convert_opts *o, const adj_tensors *t)
{
    int n = 0, n_metadata = adj_tensors_metadata_count(t), status = EXIT_OK;
    adj_tensor *tensor = calloc((size_t)adj_tensors_count(t) + 1, sizeof *tensor);
    adj_metadata *metadata = calloc((size_t)n_metadata + 1, sizeof *metadata);
    adj_error error;

    for (int i = 0; i < adj_tensors_count(t) && tensor != NULL; i++) {
        tensor[n] = adj_tensors_at(t, i);
        n += o->tensor == NULL || strcmp(tensor[n].name, o->tensor) == 0;
    }
    for (int i = 0; i < n_metadata && metadata != NULL; i++)
        metadata[i] = adj_tensors_metadata_at(t, i);
    if (tensor == NULL || metadata == NULL)
        status = complain("convert", EXIT_FAILED, "out of memory");
    else if (n == 0 && o->tensor != NULL)
        status = complain("convert", EXIT_FAILED, "--tensor: %s has none of the name %s",
                          o->files[0], o->tensor);
    else if (write_tensors(o, n, tensor, n_metadata, metadata, &error) != ADJ_OK)
        status = complain("convert", EXIT_FAILED, "%s", error.message);
    else
        say("%d tensors written to %s", n, o->files[1]);
    free(metadata);
    free(tensor);
    return status;
}

static int print_map(const convert_opts *o)
{
    adj_graph *g = NULL;
    adj_error error;
    int status = build_model(o, NULL, &g);

    if (status == CONTINUE) {
        status = EXIT_OK;
        if (adj_weights_print_map(stdout, g, o->map, &error) != ADJ_OK)
            status = complain("convert", EXIT_FAILED, "--map: %s", error.message);
    }
    adj_graph_free(g);
    return status;
}

static int convert(const convert_opts *o, const adj_tensors *in)
{
    adj_graph *g = NULL;
    adj_tensors *mapped = NULL;
    adj_error error;
    int status = o->map != NULL ? build_model(o, in, &g) : CONTINUE;

    if (status == CONTINUE && o->map != NULL &&
        adj_weights_convert(in, g, o->map, (int)o->to_theirs, &mapped, &error) != ADJ_OK)
        status = complain("convert", EXIT_FAILED, "--map: %s", error.message);
    if (status == CONTINUE)
        status = write_out(o, mapped != NULL ? mapped : in);
    adj_tensors_free(mapped);
    adj_graph_free(g);
    return status;
}

int command_convert(int argc, char **argv)
{
    convert_opts o = {0};
    adj_tensors *in = NULL;
    int status = parse(&o, argc, argv);

    if (status != CONTINUE)
        return status;
    if (o.files[0] == NULL)
        return print_map(&o);
    const output_file out = {"OUT", o.files[1], OUTPUT_REPLACED};
    status = check_outputs("convert", 1, &out);
    if (status == CONTINUE && adj_tensors_open(o.files[0], &in) != ADJ_OK)
        status = complain("convert", EXIT_FAILED, "%s", adj_tensors_message(in));
    if (status == CONTINUE)
        status = convert(&o, in);
    adj_tensors_free(in);
    return status;
}
