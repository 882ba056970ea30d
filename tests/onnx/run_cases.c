/* run_cases.c - runs ONNX models on given inputs and writes their outputs, for tests/onnx/nodes.py.
 *
 * Each line of standard input is MODEL INPUTS OUTPUTS, the last two safetensors files. A line of
 * standard output says for each "ok" with the number of inputs that had to be known while loading,
 * or the message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_onnx.h"

enum { MAX_TENSORS = 64 };

typedef struct {
    adj_graph *g;
    adj_onnx_net *net;
    adj_exec *e;
    adj_error error;
} running;

static int is_integer(const adj_tensor *t)
{
    return t->elem != ADJ_ELEM_F32 && t->elem != ADJ_ELEM_F64 && t->elem != ADJ_ELEM_F16 &&
           t->elem != ADJ_ELEM_BF16 && t->elem != ADJ_ELEM_BOOL;
}

/* Loads with the inputs known that level asks for: 0 none, 1 integers, 2 all, 3 all but the first,
 * for training. */
static int load(running *r, const char *path, const adj_tensors *inputs, int level, int *n_known)
{
    adj_tensor known[MAX_TENSORS];
    *n_known = 0;
    for (int i = 0; i < inputs->n && i < MAX_TENSORS; i++) {
        const adj_tensor t = inputs->tensor[i];
        if (level == 2 || (level == 1 && is_integer(&t)) || (level == 3 && i > 0))
            known[(*n_known)++] = t;
    }
    const adj_onnx_opts o = {.known = known, .n_known = *n_known, .training = level == 3};
    r->g = adj_graph_new();
    return adj_onnx_load(r->g, path, &o, &r->net, &r->error) == ADJ_OK;
}

static int set_input(running *r, const adj_tensors *inputs, adj_node *leaf)
{
    const int found = adj_tensors_find(inputs, adj_node_name(leaf));
    const adj_type type = adj_node_type(leaf);
    if (found < 0)
        return 0;
    const adj_tensor at = inputs->tensor[found], *t = &at;
    if (adj_shape_elems(t->shape) != adj_shape_elems(type.shape))
        return 0;
    const int64_t n = adj_shape_elems(type.shape);
    double *wide = malloc((size_t)(n > 0 ? n : 1) * sizeof *wide);
    void *data = malloc(adj_type_bytes(type) + 1);
    for (int64_t i = 0; i < n; i++) {
        wide[i] = adj_tensor_value(t, i);
        switch (type.dtype) {
        case ADJ_F64: ((double *)data)[i] = wide[i]; break;
        case ADJ_F32: ((float *)data)[i] = (float)wide[i]; break;
        case ADJ_I32: ((int32_t *)data)[i] = (int32_t)wide[i]; break;
        default: memcpy((uint16_t *)data + i, (const uint16_t *)t->data + i, 2);
        }
    }
    const int ok = adj_set(r->e, leaf, data, adj_type_bytes(type)) == ADJ_OK;
    free(wide);
    free(data);
    return ok;
}

static int run(running *r, const adj_tensors *inputs)
{
    const adj_exec_opts o = {.n_fetch = r->net->n_output, .fetch = r->net->output};
    if (adj_exec_new(r->g, &o, &r->e) != ADJ_OK)
        return 0;
    for (int i = 0; i < r->net->n_input; i++)
        if (!set_input(r, inputs, r->net->input[i])) {
            snprintf(r->error.message, sizeof r->error.message, "input %s does not fit",
                     adj_node_name(r->net->input[i]));
            return 0;
        }
    return adj_run(r->e) == ADJ_OK;
}

static int write(running *r, const char *path)
{
    adj_tensor out[MAX_TENSORS];
    char name[MAX_TENSORS][8];
    const int n = r->net->n_output;
    for (int i = 0; i < n && i < MAX_TENSORS; i++) {
        const adj_type t = adj_node_type(r->net->output[i]);
        snprintf(name[i], sizeof name[i], "%d", i);
        out[i] =
            (adj_tensor){name[i], (adj_elem)t.dtype, t.shape, adj_data(r->e, r->net->output[i])};
        if (out[i].data == NULL)
            return 0;
    }
    return adj_tensors_write(path, n, out, 0, NULL, &r->error) == ADJ_OK;
}

static void close_run(running *r)
{
    adj_exec_free(r->e);
    adj_onnx_free(r->net);
    adj_graph_free(r->g);
    r->e = NULL;
    r->net = NULL;
    r->g = NULL;
}

static void run_case(const char *model, const char *in, const char *out)
{
    adj_error error = {0};
    adj_tensors *inputs = NULL;
    char first[ADJ_MESSAGE] = "";
    if (adj_tensors_read(in, &inputs) != ADJ_OK) {
        printf("inputs: %s\n", inputs->message);
        return;
    }
    (void)error;
    for (int level = 0; level < 4; level++) {
        running r = {0};
        int known = 0;
        const int ok = load(&r, model, inputs, level, &known) && run(&r, inputs) && write(&r, out);
        if (!ok && first[0] == '\0')
            snprintf(first, sizeof first, "%s",
                     r.error.message[0] != '\0' ? r.error.message
                     : r.e != NULL              ? adj_exec_message(r.e)
                                                : adj_graph_message(r.g));
        close_run(&r);
        if (ok) {
            printf("ok %d %d\n", level, known);
            first[0] = '\0';
            break;
        }
    }
    for (char *c = first; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    if (first[0] != '\0')
        printf("failed %s\n", first);
    adj_tensors_free(inputs);
}

int main(void)
{
    char model[1024], in[1024], out[1024];
    while (scanf("%1023s %1023s %1023s", model, in, out) == 3) {
        run_case(model, in, out);
        fflush(stdout);
    }
    return 0;
}
