/* contents.c - see convert.h. */
#include <stdlib.h>
#include <string.h>

#include "adjoint_onnx.h"
#include "cli/command.h"
#include "cli/model.h"
#include "cli/onnx_model.h"
#include "io/tensors/formats.h"
#include "io/weights/weights.h"
#include "convert.h"

/* ---- metadata ---- */

/* Copies t's entries except those that are replaced and those whose keys are in without
 * (NULL-terminated). */
static void collect(metadata *m, const adj_tensors *t, const char *const without[], int n_instead,
                    const adj_metadata instead[])
{
    const int n = t->n_metadata;
    m->entry = allocate((int64_t)n + n_instead, sizeof *m->entry);
    for (int i = 0; i < n_instead; i++)
        m->entry[m->n++] = instead[i];
    for (int i = 0; i < n; i++) {
        const adj_metadata entry = t->metadata[i];
        int is_kept = metadata_value(n_instead, instead, entry.key) == NULL;
        for (int k = 0; without[k] != NULL; k++)
            is_kept &= strcmp(without[k], entry.key) != 0;
        if (is_kept)
            m->entry[m->n++] = entry;
    }
}

/* Removes entries about the training that the file does not have. */
static int drop_unknown(const adj_tensors *t, int n, adj_metadata card[])
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const int is_of_training =
            strcmp(card[i].key, "seed") == 0 || strcmp(card[i].key, "precision") == 0;
        if (!is_of_training || adj_tensors_metadata(t, card[i].key) != NULL)
            card[kept++] = card[i];
    }
    return kept;
}

adj_status metadata_make(metadata *m, const convert_opts *o, const adj_tensors *t,
                         const weights_net *net, adj_error *error)
{
    /* Programs that load PyTorch's weights ask for format "pt", Hugging Face's transformers among
     * them; ours is the order of an image's axes. */
    static const char *const marks[] = {"adjoint.version", "format", NULL};
    static const char *const nothing[] = {NULL};
    static const adj_metadata pytorch = {"format", "pt"};
    adj_model_card ours = net->card;
    const int is_kept = o->map == NULL && o->mean == NULL && format_of(o) != ONNX;
    int n = 0;

    if (o->to_theirs) {
        collect(m, t, marks, strcmp(o->map, "pytorch") == 0, &pytorch);
        return ADJ_OK;
    }
    if (is_kept || ours.model == NULL) {
        collect(m, t, nothing, 0, NULL);
        return ADJ_OK;
    }
    if (ours.options.classes == 0)
        ours.options.classes = adj_weights_classes(t);
    const adj_status status = adj_model_card_write(&ours, &m->card, &n, error);
    if (status == ADJ_OK)
        collect(m, t, nothing, drop_unknown(t, n, m->card), m->card);
    return status;
}

void metadata_free(metadata *m)
{
    free(m->entry);
    free(m->card);
}

/* ---- a network ---- */

/* A network to write. */
typedef struct {
    const convert_opts *o;
    const char *model; /* ONNX file of the net; NULL: only the weights' file may name it */
    const weights_net *net;
    const adj_tensors *weights;
    const input_file *in; /* file of the weights */
} network;

/* Loads the file's net with another last layer where the weights have other classes. The batch is
 * that of the file, and *is_fixed is set, if the file works with no other. */
static adj_status load(adj_graph **g, const network *n, adj_onnx_net **net, int *is_fixed,
                       adj_error *error)
{
    const adj_model_opts *card = &n->net->card.options;
    adj_onnx_opts o = {.batch = ONNX_BATCH, .size = card->size};
    adj_model_opts sizes = {.size = card->size};
    if (card->classes > 0 && onnx_sizes(n->model, &sizes, NULL) == ADJ_OK &&
        sizes.classes != card->classes)
        o.classes = card->classes;
    for (*is_fixed = 0; *is_fixed < 2; ++*is_fixed) {
        adj_graph_free(*g);
        *g = or_exit(adj_graph_new());
        if (adj_onnx_load(*g, n->model, &o, net, error) == ADJ_OK)
            return ADJ_OK;
        o.batch = 0;
    }
    return error->status;
}

/* Sets the weights of an executor that computes the outputs, and saves these. */
static adj_status save(int n_output, adj_node *const output[], int is_fixed, const char *path,
                       const network *n, adj_error *error)
{
    const adj_exec_opts o = {
        .n_fetch = n_output, .fetch = output, .backend = "naive", .threads = 1};
    metadata says = {0};
    adj_exec *e = NULL;
    adj_error why = {0};
    adj_status status = adj_exec_new(adj_node_graph(output[0]), &o, &e);
    if (status != ADJ_OK)
        adj_error_set(error, status, "%s", adj_exec_message(e));
    else if ((status = adj_weights_set(e, n->weights, NULL, &why)) != ADJ_OK)
        adj_error_set(error, status, "%.200s: %.300s", n->in->path, why.message);
    else if ((status = metadata_make(&says, n->o, n->weights, n->net, error)) == ADJ_OK)
        status = adj_onnx_save(e, n_output, output, path, is_fixed ? ADJ_ONNX_FIXED_BATCH : 0,
                               says.n, says.entry, error);
    metadata_free(&says);
    adj_exec_free(e);
    return status;
}

static adj_status write_network(const char *path, const void *source, adj_error *error)
{
    const network *n = source;
    if (n->net->logits != NULL)
        return save(1, &n->net->logits, 0, path, n, error);
    adj_graph *g = NULL;
    adj_onnx_net *net = NULL;
    int is_fixed;
    adj_status status = load(&g, n, &net, &is_fixed, error);
    if (status == ADJ_OK && net != NULL)
        status = save(net->n_output, net->output, is_fixed, path, n, error);
    if (status == ADJ_OK && net != NULL && is_fixed)
        complain(EXIT_OK, "note: %s works with a batch of %lld only, and so does OUT", n->model,
                 (long long)adj_node_type(net->input[0]).shape.dim[0]);
    adj_onnx_free(net);
    adj_graph_free(g);
    return status;
}

int write_onnx(const convert_opts *o, const input_file *in, const adj_tensors *weights,
               const weights_net *net, FILE *output)
{
    const output_file out = {"OUT", o->files[1], OUTPUT_REPLACED_OR_STDOUT};
    const char *model = o->model != NULL ? o->model : is_onnx_file(in->path) ? in->path : NULL;
    const network n = {o, model, net, weights, in};
    if (net->logits == NULL && !is_onnx_file(model))
        return complain(EXIT_FAILED, "%s: names no built-in model%s", in->path,
                        model_hint(model, in->name));
    const int status = replace_output(&out, output, write_network, &n);
    if (status == EXIT_OK)
        say("network written to %s", is_stdout(out.path) ? "standard output" : out.path);
    return status;
}
