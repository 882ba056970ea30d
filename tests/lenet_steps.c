/* lenet_steps.c - a few training steps of LeNet on drawn digits, small enough for valgrind and
 * ThreadSanitizer: lenet_steps BACKEND THREADS BATCH STEPS. Prints each step's loss; exit status 1
 * when something fails or the loss does not fall. */
#include <stdlib.h>

#include "adjoint_data.h"
#include "adjoint_nn.h"

typedef struct {
    adj_graph *g;
    adj_node *images, *labels, *lr, *loss;
    adj_exec *e;
} training;

static adj_status plan(training *t, int64_t batch, const char *backend, int threads)
{
    adj_model_opts options = {.batch = batch, .training = 1};
    adj_node *logits = adj_model_logits(t->g, adj_model_find("lenet", NULL), &options);
    t->images = adj_find(t->g, "images");
    t->labels = adj_input(t->g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    t->lr = adj_input(t->g, "learning_rate", ADJ_F32, (adj_shape){0});
    t->loss = adj_loss_softmax(logits, t->labels, NULL);
    adj_optimizer_opts optimizer = {.momentum = 0.9};
    adj_exec_opts opts = {.n_fetch = 1,
                          .fetch = &t->loss,
                          .updates = adj_training_updates(t->loss, &optimizer),
                          .backend = backend,
                          .threads = threads,
                          .seed = 1};
    return adj_exec_new(t->g, &opts, &t->e);
}

/* Trains on the same batch, whose loss must fall. */
static adj_status train(training *t, const adj_dataset *digits, int steps, float *x,
                        int32_t *labels, float *first, float *last)
{
    adj_shape shape = adj_node_type(t->images).shape;
    float rate = 0.002F;
    size_t bytes = (size_t)adj_shape_elems(shape) * sizeof *x;
    adj_status status = ADJ_OK;

    adj_batch(digits, NULL, 0, shape, x, labels, NULL);
    for (int i = 0; i < steps && status == ADJ_OK; i++) {
        if ((status = adj_set(t->e, t->images, x, bytes)) == ADJ_OK &&
            (status = adj_set(t->e, t->labels, labels, (size_t)shape.dim[0] * sizeof *labels)) ==
                ADJ_OK &&
            (status = adj_set(t->e, t->lr, &rate, sizeof rate)) == ADJ_OK &&
            (status = adj_run(t->e)) == ADJ_OK)
            status = adj_get(t->e, t->loss, last, sizeof *last);
        if (i == 0)
            *first = *last;
        printf("step %d  loss %.4f\n", i, (double)*last);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return fprintf(stderr, "usage: lenet_steps BACKEND THREADS BATCH STEPS\n"), 3;
    int threads = (int)strtol(argv[2], NULL, 10), steps = (int)strtol(argv[4], NULL, 10);
    int64_t batch = strtol(argv[3], NULL, 10);
    training t = {.g = adj_graph_new()};
    adj_dataset *digits = NULL;
    float first = 0, last = 0;

    adj_status status = adj_dataset_digits(ADJ_TRAIN, batch, 1, &digits);
    if (status == ADJ_OK)
        status = plan(&t, batch, argv[1], threads);
    if (status == ADJ_OK) {
        float *x = malloc((size_t)adj_shape_elems(adj_node_type(t.images).shape) * sizeof *x);
        int32_t *labels = malloc((size_t)batch * sizeof *labels);
        status = x == NULL || labels == NULL ? ADJ_ENOMEM
                                             : train(&t, digits, steps, x, labels, &first, &last);
        free(x);
        free(labels);
    }
    if (status != ADJ_OK)
        fprintf(stderr, "lenet_steps: %s: %s\n", adj_status_name(status), adj_exec_message(t.e));
    adj_exec_free(t.e);
    adj_graph_free(t.g);
    adj_dataset_free(digits);
    return status == ADJ_OK && last < first ? 0 : 1;
}
