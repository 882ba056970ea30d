/* options.c - see convert.h. */
#include "cli/command.h"
#include "cli/onnx_model.h"
#include "convert.h"

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

int parse_convert(convert_opts *o, int argc, char **argv)
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
