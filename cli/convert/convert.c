/* convert.c - adjoint convert: converts a file of tensors to another format, or to names and
 * layouts of other programs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/model.h"
#include "cli/onnx_model.h"
#include "io/tensors/formats.h"
#include "io/weights/weights.h"
#include "convert.h"

/* ---- options ---- */

format format_of(const convert_opts *o)
{
    static const char *const endings[] = {".safetensors", ".npz", ".npy", ".h", ".onnx"};
    if (o->format != NULL)
        return (format)word_index(FORMAT_WORDS, o->format);
    int i = 0;
    while (i < NO_FORMAT && !ends_in(o->files[1], endings[i]))
        i++;
    return (format)i;
}

static int check(const convert_opts *o)
{
    if ((o->mean != NULL) != (o->deviation != NULL))
        return complain(EXIT_USAGE, "--%s is missing (got only --%s)",
                        o->mean != NULL ? "deviation" : "mean",
                        o->mean != NULL ? "mean" : "deviation");
    if (o->mean != NULL && o->to_theirs)
        return complain(EXIT_USAGE, "--mean cannot be combined with --to-theirs");
    if (o->files[0] == NULL && o->map != NULL && o->mean == NULL)
        return CONTINUE;
    if (o->files[1] == NULL)
        return complain(EXIT_USAGE, "%s is missing", o->files[0] == NULL ? "IN" : "OUT");
    if (format_of(o) == NO_FORMAT)
        return complain(EXIT_USAGE,
                        "OUT: expected a name that ends in .safetensors, .npz, .npy, .h or .onnx, "
                        "or --format (got %s)",
                        o->files[1]);
    if (o->prefix != NULL && format_of(o) != HEADER)
        return complain(EXIT_USAGE, "--prefix: OUT is no header (expected .h)");
    if (o->map != NULL && is_onnx_file(o->files[0]))
        return complain(EXIT_USAGE, "--map: an ONNX file has the names of its own model");
    if (format_of(o) == ONNX && (o->tensor != NULL || o->to_theirs))
        return complain(EXIT_USAGE,
                        "%s: OUT is a whole network (expected .safetensors, .npz, .npy or .h)",
                        o->tensor != NULL ? "--tensor" : "--to-theirs");
    if (o->mean != NULL && (format_of(o) == NPZ || format_of(o) == NPY))
        return complain(EXIT_USAGE,
                        "--mean: OUT holds arrays only (expected .safetensors, .onnx or .h)");
    return CONTINUE;
}

static int parse(convert_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--map", "NAME", "names in IN: pytorch, keras or a map file", .text = &o->map},
        {"--to-theirs", "", "reverses --map: adjoint's names in IN, the map's in OUT",
         .flag = &o->to_theirs, .needs = "--map"},
        {"--model", "NAME", "model of the weights, or an ONNX file; default: the one named in IN",
         .text = &o->model},
        {"--mean", "LIST",
         "mean of each channel for OUT's model card, for pixels in 0 to 1 as in PyTorch: "
         "0.485,0.456,0.406",
         .text = &o->mean},
        {"--deviation", "LIST", "standard deviation of each channel, likewise",
         .text = &o->deviation},
        {"--format", "F",
         "format of OUT: safetensors, npz, npy, h or onnx; default: from its file name",
         .text = &o->format, .words = FORMAT_WORDS},
        {"--tensor", "NAME", "the only tensor to write; needed for .npy", .text = &o->tensor},
        {"--prefix", "WORD", "prefix of the names in a .h file; default: weights",
         .text = &o->prefix},
        {0},
    };
    const remark examples[] = {
        {"adjoint convert lenet.safetensors weights.h",
         "C arrays, for targets without a file system."},
        {"adjoint convert --map pytorch --model resnet20 theirs.safetensors our.npz",
         "PyTorch weights, converted to adjoint's names and layouts."},
        {"adjoint convert --model lenet --mean 0.5 --deviation 0.5 w.npz w.safetensors",
         "Stores the pixel normalization for predict and eval."},
        {"adjoint convert --map pytorch --model resnet20",
         "Prints that map, as a start for a map file."},
        {"adjoint convert lenet.safetensors lenet.onnx", "The network, for ONNX Runtime."},
        {"adjoint convert net.onnx w.safetensors",
         "Parameters and running statistics of a network."},
        {"adjoint convert - - --format npy --tensor conv1/w <w.npz >conv1.npy",
         "One tensor, from standard input to standard output."},
        {NULL, NULL}};
    const usage u = {.command = "convert",
                     .summary = "Converts a tensor file (safetensors, npy, npz, idx, onnx) to OUT: "
                                ".safetensors, .npz, .npy, .h, or .onnx with the model's network. "
                                "Without files, --map with --model prints the map. - is standard "
                                "input or output.",
                     .options = options,
                     .arguments = "IN OUT",
                     .argument = o->files,
                     .max_arguments = 2,
                     .n_argument = &o->n_file,
                     .examples = examples};
    const int status = parse_options(&u, argc, argv);
    return status == CONTINUE ? check(o) : status;
}

/* ---- the network of the weights ---- */

static void net_free(weights_net *n)
{
    adj_graph_free(n->graph);
    free(n->said);
}

/* Builds the net of the given model, or of the built-in model that the file names. */
static int net_build(weights_net *n, const convert_opts *o, const adj_tensors *in)
{
    adj_error error;

    if (in != NULL && adj_model_card_read(in, &n->said, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s: %s", o->files[0], error.message);
    if (n->said != NULL)
        n->card = *n->said;
    adj_model_opts options = {.size = n->card.options.size,
                              .batch = ONNX_BATCH,
                              .multiplier = n->card.options.multiplier,
                              .classes = n->card.options.classes};
    if (o->model != NULL)
        n->card.model = is_onnx_file(o->model) ? onnx_name(o->model) : o->model;
    const adj_model *model = adj_model_find(n->card.model, &options);
    if (model == NULL)
        return o->model != NULL && !is_onnx_file(o->model) ? check_model(o->model) : CONTINUE;
    n->card.options.multiplier = options.multiplier;
    n->card.options.size = options.size;
    n->graph = adj_graph_new();
    n->logits = adj_model_logits(n->graph, model, &options);
    if (n->logits == NULL)
        return complain(EXIT_FAILED, "%s", adj_graph_message(n->graph));
    return CONTINUE;
}

/* ---- the card ---- */

/* Reads one number from low to 1 for each of n channels, in pixel units of 0 to 255. */
static int read_channels(const char *name, const char *text, double low, int64_t n, double to[])
{
    const char *at = text;
    for (int64_t i = 0; i < n; i++) {
        char *end;
        const double v = strtod(at, &end);
        if (end == at || !(v >= low && v <= 1) || *end != (i + 1 < n ? ',' : '\0'))
            return complain(EXIT_USAGE,
                            "%s: expected %lld number%s from %g to 1, one per channel (got %s)",
                            name, (long long)n, n > 1 ? "s" : "", low, text);
        to[i] = 255 * v;
        at = end + 1;
    }
    return CONTINUE;
}

/* Sets the card's channels from the weights and its mean and deviation from the options. Those need
 * an image size, by default the model's. */
static int complete_card(const convert_opts *o, const adj_tensors *ours, weights_net *n)
{
    const double least = 1e-6;
    adj_model_card *c = &n->card;
    const adj_model *model = n->graph != NULL ? adj_model_find(c->model, NULL) : NULL;

    if (model != NULL && o->mean != NULL && c->options.size.h == 0) {
        c->options.size.h = model->defaults.size.h;
        c->options.size.w = model->defaults.size.w;
    }
    if (model != NULL && c->options.size.h > 0 && c->options.size.c == 0) {
        const int64_t channels = adj_weights_channels(ours, n->graph);
        c->options.size.c = channels > 0 ? channels : model->defaults.size.c;
    }
    if (o->mean == NULL)
        return CONTINUE;
    if (c->model == NULL)
        return complain(EXIT_USAGE, "--mean: %s does not name its model (set --model NAME)",
                        o->files[0]);
    if (c->options.size.c < 1 || c->options.size.c > ADJ_CARD_CHANNELS)
        return complain(EXIT_FAILED,
                        "--mean: the model has too many channels (got %lld, expected 1 to %d)",
                        (long long)c->options.size.c, ADJ_CARD_CHANNELS);
    const int status = read_channels("--mean", o->mean, 0, c->options.size.c, c->mean);
    return status == CONTINUE
               ? read_channels("--deviation", o->deviation, least, c->options.size.c, c->deviation)
               : status;
}

/* Complains of a map; of names that the file lacks, with how to make a map of one's own. */
static int complain_of_map(const convert_opts *o, const input_file in[2], const weights_net *n,
                           const adj_error *error)
{
    char hint[256] = "";
    const int is_built_in = strcmp(o->map, "pytorch") == 0 || strcmp(o->map, "keras") == 0;
    if (is_built_in && error->status == ADJ_EIO && n->card.model != NULL)
        snprintf(hint, sizeof hint,
                 "; other names need a map file: edit that of adjoint convert --map %s --model "
                 "%.100s",
                 o->map, n->card.model);
    return complain_of_files(2, in, "--map: ", error->message, hint);
}

/* Contents of the output. */
typedef struct {
    const convert_opts *o;
    int n;
    adj_tensor *tensor;
    metadata says;
} contents;

static adj_status write_tensors(const char *path, const void *source, adj_error *error)
{
    const contents *c = source;
    switch (format_of(c->o)) {
    case NPZ: return adj_tensors_write_npz(path, c->n, c->tensor, error);
    case NPY:
        if (c->n == 1)
            return adj_tensors_write_npy(path, c->tensor, error);
        return adj_error_set(error, ADJ_EARG,
                             "a .npy file holds one tensor (got %d; select one with --tensor NAME)",
                             c->n);
    case HEADER:
        return adj_tensors_write_header(path, c->o->prefix, c->n, c->tensor, c->says.n,
                                        c->says.entry, error);
    default: return adj_tensors_write(path, c->n, c->tensor, c->says.n, c->says.entry, error);
    }
}

static int write_contents(const contents *c, FILE *output)
{
    const convert_opts *o = c->o;
    const output_file out = {"OUT", o->files[1], OUTPUT_REPLACED_OR_STDOUT};
    if (c->n == 0 && o->tensor != NULL)
        return complain(EXIT_FAILED, "--tensor: %s has no tensor named %s", o->files[0], o->tensor);
    const int is_array = format_of(o) == NPZ || format_of(o) == NPY;
    int status = replace_output(&out, output, write_tensors, c);
    if (status == EXIT_OK && is_array && metadata_value(c->says.n, c->says.entry, "model") != NULL)
        complain(EXIT_OK,
                 "note: %s holds arrays only: the model card (model, size, mean, classes) is left "
                 "out",
                 is_stdout(out.path) ? "standard output" : out.path);
    if (status == EXIT_OK)
        say("%d tensor%s written to %s", c->n, c->n != 1 ? "s" : "",
            is_stdout(out.path) ? "standard output" : out.path);
    return status;
}

static int write_out(const convert_opts *o, const input_file *in, const adj_tensors *t,
                     const weights_net *n, FILE *output)
{
    contents c = {.o = o};
    adj_error error = {0};
    int status = EXIT_OK;

    c.tensor = allocate(t->n, sizeof *c.tensor);
    for (int i = 0; i < t->n; i++) {
        adj_tensor *x = &c.tensor[c.n];
        if (adj_tensors_unreadable(t, i) != NULL) {
            complain(EXIT_OK, "note: %s is left out (%s)", t->tensor[i].name,
                     adj_tensors_unreadable(t, i));
            continue;
        }
        *x = t->tensor[i];
        x->name = tensor_name(in, x->name);
        c.n += o->tensor == NULL || strcmp(x->name, o->tensor) == 0;
    }
    if (metadata_make(&c.says, o, t, n, &error) != ADJ_OK)
        status = complain(EXIT_FAILED, "%s", error.message);
    else
        status = write_contents(&c, output);
    metadata_free(&c.says);
    free(c.tensor);
    return status;
}

static int print_map(const convert_opts *o, const input_file in[2])
{
    weights_net n = {0};
    adj_error error;
    int status = net_build(&n, o, NULL);

    if (status == CONTINUE) {
        status = EXIT_OK;
        if (adj_weights_print_map(stdout, n.graph, in[1].name, &error) != ADJ_OK)
            status = complain_of_files(2, in, "--map: ", error.message, "");
    }
    net_free(&n);
    return status;
}

static int convert(const convert_opts *o, const input_file in[2], const adj_tensors *t,
                   FILE *output)
{
    weights_net n = {0};
    adj_tensors *mapped = NULL;
    adj_error error;
    const int is_net = format_of(o) == ONNX;
    int status = o->map != NULL || o->mean != NULL || is_net ? net_build(&n, o, t) : CONTINUE;

    if (status == CONTINUE && o->map != NULL &&
        adj_weights_convert(t, n.graph, in[1].name, (int)o->to_theirs, &mapped, &error) != ADJ_OK)
        status = complain_of_map(o, in, &n, &error);
    if (status == CONTINUE)
        say_keras_epsilon(o->map, n.card.model);
    const adj_tensors *out = mapped != NULL ? mapped : t;
    if (status == CONTINUE && !o->to_theirs)
        status = complete_card(o, out, &n);
    if (status == CONTINUE)
        status = is_net ? write_onnx(o, in, out, &n, output) : write_out(o, in, out, &n, output);
    adj_tensors_free(mapped);
    net_free(&n);
    return status;
}

static int convert_file(const convert_opts *o, const input_file in[2])
{
    const output_file out = {"OUT", o->files[1], OUTPUT_REPLACED_OR_STDOUT};
    FILE *output = NULL; /* where OUT is - */
    adj_tensors *t = NULL;

    int status = check_outputs(1, &out);
    if (status == CONTINUE && is_stdout(out.path) && (output = take_stdout()) == NULL)
        status = complain(EXIT_FAILED, "standard output cannot be written: %s", strerror(errno));
    if (status == CONTINUE)
        status = read_tensors(&in[0], &t);
    if (status == CONTINUE)
        status = convert(o, in, t, output);
    adj_tensors_free(t);
    if (output != NULL)
        fclose(output); /* the copy has reported any failure */
    return status;
}

int command_convert(int argc, char **argv)
{
    convert_opts o = {0};
    int status = parse(&o, argc, argv);

    if (status != CONTINUE)
        return status;
    input_file in[] = {{.option = "IN", .path = o.files[0]}, {.option = "--map", .path = o.map}};
    status = open_inputs(2, in);
    if (status == CONTINUE && is_onnx_file(o.files[0]))
        status = open_onnx(&in[0], 1);
    if (status != CONTINUE)
        return status;
    return o.files[0] == NULL ? print_map(&o, in) : convert_file(&o, in);
}
