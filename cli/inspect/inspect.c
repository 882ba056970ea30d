/* inspect.c - adjoint inspect: shows the contents of a file of tensors. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adjoint_io.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/onnx_model.h"
#include "cli/standard.h"
#include "graph/op.h"
#include "io/tensors/formats.h"

/* Statistics of a tensor's elements, over the finite ones. */
typedef struct {
    int64_t elems, nan, infinite, finite;
    double min, max, mean;
} summary;

static summary summarize(const adj_tensor *t)
{
    summary s = {.elems = adj_shape_elems(t->shape), .min = NAN, .max = NAN, .mean = NAN};
    double sum = 0;

    for (int64_t i = 0; i < s.elems; i++) {
        double v = adj_tensor_value(t, i);
        s.nan += isnan(v) != 0;
        s.infinite += isinf(v) != 0;
        if (!isfinite(v))
            continue;
        s.finite++;
        sum += v;
        s.min = fmin(s.min, v); /* fmin and fmax ignore NaN */
        s.max = fmax(s.max, v);
    }
    if (s.finite > 0)
        s.mean = sum / (double)s.finite;
    return s;
}

static void print_tensor(const adj_tensor *t)
{
    const summary s = summarize(t);
    char range[120] = "", faults[80] = "";

    if (s.finite > 0)
        snprintf(range, sizeof range, "%.6g to %.6g, mean %.6g", s.min, s.max, s.mean);
    if (s.nan > 0 || s.infinite > 0)
        snprintf(faults, sizeof faults, "%s%lld NaN, %lld infinite", s.finite > 0 ? ", " : "",
                 (long long)s.nan, (long long)s.infinite);
    say("%-28s %-5s %-18s %s%s", t->name, adj_elem_name(t->elem), adj_shape_text(t->shape).s, range,
        faults);
}

static int print_text(const input_file *in, const adj_tensors *t)
{
    int64_t elems = 0, bytes = 0;
    for (int i = 0; i < t->n_metadata; i++) {
        adj_metadata m = t->metadata[i];
        say("%s: %s", m.key, m.value);
    }
    for (int i = 0; i < t->n; i++) {
        adj_tensor x = t->tensor[i];
        x.name = tensor_name(in, x.name);
        if (adj_tensors_unreadable(t, i) != NULL) {
            say("%-28s %s, cannot be read", x.name, adj_tensors_unreadable(t, i));
            continue;
        }
        print_tensor(&x);
        elems += adj_shape_elems(x.shape);
        bytes += adj_tensor_bytes(&x);
    }
    const int n = t->n;
    say("%d tensor%s, %lld element%s, %lld byte%s", n, n != 1 ? "s" : "", (long long)elems,
        elems != 1 ? "s" : "", (long long)bytes, bytes != 1 ? "s" : "");
    return EXIT_OK;
}

static json_t *tensor_json(const adj_tensor *t)
{
    const summary s = summarize(t);
    return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:I, s:I}", "name", json_text(t->name), "type",
                     adj_elem_name(t->elem), "shape", json_sizes(t->shape.rank, t->shape.dim),
                     "min", json_number(s.min), "max", json_number(s.max), "mean",
                     json_number(s.mean), "nan", (json_int_t)s.nan, "infinite",
                     (json_int_t)s.infinite);
}

static int print_json(const input_file *in, const adj_tensors *t)
{
    json_t *tensors = json_array(), *metadata = json_object();
    int failed = 0;

    for (int i = 0; i < t->n; i++) {
        adj_tensor x = t->tensor[i];
        x.name = tensor_name(in, x.name);
        const char *why = adj_tensors_unreadable(t, i);
        json_t *tensor = why != NULL ? json_pack("{s:o, s:o}", "name", json_text(x.name),
                                                 "unreadable", json_text(why))
                                     : tensor_json(&x);
        failed |= json_array_append_new(tensors, tensor) != 0;
    }
    for (int i = 0; i < t->n_metadata; i++) {
        adj_metadata m = t->metadata[i];
        failed |= json_object_set_new(metadata, m.key, json_text(m.value)) != 0;
    }
    json_t *all = json_pack("{s:o, s:o, s:o}", "file", json_text(in->path), "metadata", metadata,
                            "tensors", tensors);
    return json_write(stdout, all, JSON_PAGE, failed);
}

static int inspect(const char *path, int as_json)
{
    input_file in = {.option = "FILE", .path = path};
    adj_tensors *t = NULL;
    int status = open_inputs(1, &in);

    if (status == CONTINUE && is_onnx_file(path))
        status = open_onnx(&in, 0);
    if (status == CONTINUE)
        status = read_tensors(&in, &t);
    if (status == CONTINUE && as_json)
        status = print_json(&in, t) ? EXIT_FAILED : EXIT_OK;
    else if (status == CONTINUE)
        status = print_text(&in, t);
    adj_tensors_free(t);
    return status;
}

int command_inspect(int argc, char **argv)
{
    int64_t as_json = 0;
    const char *path = NULL;
    int n = 0;
    const remark examples[] = {
        {"adjoint inspect lenet.safetensors", "Names, types, shapes, ranges and metadata."},
        {"adjoint inspect net.onnx", "Opset, inputs, outputs and parameters of a network."},
        {"adjoint inspect --json - <w.npz | jq '.tensors[] | select(.nan > 0).name'",
         "Names of the tensors with NaN in a file on standard input."},
        {NULL, NULL}};
    const option options[] = {
        {"--json", "", "one JSON object: file, metadata, tensors", .flag = &as_json}, {0}};
    const usage u = {.command = "inspect",
                     .summary = "Lists the tensors of a file: names, types, shapes, ranges. FILE "
                                "is safetensors, npy, npz or idx, or an ONNX file, of which it "
                                "lists opset, inputs, outputs, parameters and running statistics; "
                                "- is standard input.",
                     .options = options,
                     .arguments = "FILE",
                     .argument = &path,
                     .max_arguments = 1,
                     .n_argument = &n,
                     .examples = examples};
    int status = parse_options(&u, argc, argv);

    if (status != CONTINUE)
        return status;
    if (path == NULL)
        return complain(EXIT_USAGE, "FILE is missing");
    return inspect(path, (int)as_json);
}
