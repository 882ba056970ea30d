/* same_bits_steps.c - for same_bits.sh: a line for each model, type and backend with a checksum of
 * the losses and of everything trained after some steps: same_bits_steps [STEPS]. Only the public
 * API, and little of it, so that it compiles with older commits' headers too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "ops/nn/model_list.h"

#if ADJ_VERSION < 200 /* the names until 0.1 */
#define adj_exec_param_count adj_exec_n_params
#define adj_exec_param_at adj_exec_param
#endif

enum { BATCH = 2 };

static void add(uint64_t *sum, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) /* FNV-1a */
        *sum = (*sum ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
}

static size_t bytes_of(adj_type t)
{
    return (size_t)adj_shape_elems(t.shape) * adj_dtype_size(t.dtype);
}

static void add_params(uint64_t *sum, adj_exec *e)
{
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        size_t bytes = bytes_of(adj_node_type(adj_exec_param_at(e, i)));
        char *value = malloc(bytes);
        if (value == NULL || adj_get(e, adj_exec_param_at(e, i), value, bytes) != ADJ_OK)
            exit(1);
        add(sum, value, bytes);
        free(value);
    }
}

static void set_inputs(adj_exec *e, adj_node *images, adj_node *labels, adj_node *lr)
{
    adj_type t = adj_node_type(images);
    char *x = malloc(bytes_of(t));
    int32_t y[BATCH];
    const float rate = 0.002F;
    for (int64_t i = 0; x != NULL && i < adj_shape_elems(t.shape); i++) {
        const double v = (double)(i * 37 % 101) / 51 - 1;
        if (t.dtype == ADJ_F64)
            ((double *)x)[i] = v;
        else
            ((float *)x)[i] = (float)v;
    }
    for (int i = 0; i < BATCH; i++)
        y[i] = i % 2;
    if (x == NULL || adj_set(e, images, x, bytes_of(t)) != ADJ_OK ||
        adj_set(e, labels, y, sizeof y) != ADJ_OK || adj_set(e, lr, &rate, sizeof rate) != ADJ_OK) {
        fprintf(stderr, "%s\n", adj_exec_message(e));
        exit(1);
    }
    free(x);
}

static int train(const char *model, adj_dtype dtype, adj_precision precision, const char *backend,
                 int steps)
{
    adj_graph *g = adj_graph_new();
    const adj_model_opts options = {.batch = BATCH, .training = 1, .dtype = dtype};
    adj_node *logits = adj_model_logits(g, adj_model_find(model, NULL), &options);
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
    adj_node *lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_loss_softmax(logits, labels, NULL);
    const adj_optimizer_opts optimizer = {.momentum = 0.9};
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &loss,
                             .updates = adj_training_updates(loss, &optimizer),
                             .backend = backend,
                             .precision = precision,
                             .threads = 1,
                             .seed = 7};
    adj_exec *e = NULL;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    double last = 0;
    adj_status status = adj_exec_new(g, &o, &e);
    if (status == ADJ_OK)
        set_inputs(e, adj_find(g, "images"), labels, lr);
    for (int i = 0; i < steps && status == ADJ_OK; i++) {
        char value[8] = {0};
        const adj_type t = adj_node_type(loss);
        if ((status = adj_run(e)) == ADJ_OK)
            status = adj_get(e, loss, value, adj_dtype_size(t.dtype));
        add(&sum, value, sizeof value);
        if (t.dtype == ADJ_F64)
            memcpy(&last, value, sizeof last);
        else if (t.dtype == ADJ_F32)
            last = (double)*(float *)(void *)value;
    }
    if (status == ADJ_OK)
        add_params(&sum, e);
    const char *type = precision == ADJ_PRECISION_BF16 ? "mixed-bf16" : adj_dtype_name(dtype);
    if (status == ADJ_OK)
        printf("%s %s %s %016llx loss %.9g\n", model, type, backend, (unsigned long long)sum, last);
    else
        printf("%s %s %s failed: %s\n", model, type, backend, adj_exec_message(e));
    fflush(stdout);
    adj_exec_free(e);
    adj_graph_free(g);
    return status != ADJ_OK;
}

int main(int argc, char **argv)
{
    int steps = argc > 1 ? atoi(argv[1]) : 20, failed = 0;
    for (int i = 0; adj_model_at(i) != NULL; i++) {
        const char *model = adj_model_at(i)->model.name;
        failed |= train(model, ADJ_F32, ADJ_PRECISION_AS_BUILT, "onednn", steps);
        failed |= train(model, ADJ_F32, ADJ_PRECISION_BF16, "onednn", steps);
        failed |= train(model, ADJ_BF16, ADJ_PRECISION_AS_BUILT, "onednn", steps);
        failed |= train(model, ADJ_F64, ADJ_PRECISION_AS_BUILT, "naive", steps);
    }
    return failed;
}
