/* mobilenet.c - trains MobileNetV1 0.25 on generated digits, enlarged to 96x96 and three channels.
 * Batch norm needs two graphs, one for training and one for testing; adj_copy_params copies
 * parameters and running statistics between them by name.
 *
 *   cc mobilenet.c $(pkg-config --cflags --libs adjoint adjoint_io) && ./a.out */
#include <stdio.h>

#include "adjoint_data.h"
#include "adjoint_nn.h"

enum { BATCH = 32, SIZE = 96, TRAIN = 4000, TEST = 512, EPOCHS = 3, CLASSES = 10 };
enum { STEPS = TRAIN / BATCH };

typedef struct { /* a graph with its executor, inputs and results */
    adj_graph *g;
    adj_exec *e;
    adj_node *images, *labels, *logits, *loss;
    adj_shape shape;
} net;

/* Makes the net: for training it fetches the loss and has updates, for testing it fetches the
 * logits. */
static adj_status net_new(net *m, int training)
{
    const adj_model_opts o = {.batch = BATCH,
                              .size = {SIZE, SIZE, 3},
                              .classes = CLASSES,
                              .training = training,
                              .multiplier = 0.25};
    adj_exec_opts opts = {.n_fetch = 1, .fetch = &m->logits, .seed = 1};

    m->g = adj_graph_new();
    m->logits = adj_model_logits(m->g, adj_model_find("mobilenet_v1", NULL), &o);
    m->images = adj_find(m->g, "images");
    m->shape = adj_node_type(m->images).shape;
    if (training) {
        m->labels = adj_input(m->g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
        m->loss = adj_loss_softmax(m->logits, m->labels, NULL);
        /* The updates of the parameters and of the running statistics. */
        opts.updates = adj_training_updates(
            m->loss, &(adj_optimizer_opts){.momentum = 0.9, .weight_decay = 1e-4});
        opts.fetch = &m->loss;
    }
    return adj_exec_new(m->g, &opts, &m->e);
}

static void net_free(net *m)
{
    adj_exec_free(m->e);
    adj_graph_free(m->g);
}

static adj_status train_epoch(net *m, const adj_dataset *d, int epoch, float *mean)
{
    static float x[BATCH * SIZE * SIZE * 3];
    static int32_t label[BATCH];
    static int64_t order[TRAIN];
    const adj_schedule schedule = {ADJ_SCHEDULE_COSINE, .base = 0.1, .warmup = STEPS / 4,
                                   .total = EPOCHS * STEPS};

    *mean = 0;
    adj_shuffle(TRAIN, 1, (uint64_t)epoch, order);
    for (int step = 0; step < STEPS; step++) {
        float loss;
        adj_batch(d, order, step * BATCH, m->shape, x, label, NULL);
        adj_set(m->e, m->images, x, sizeof x);
        adj_set(m->e, m->labels, label, sizeof label);
        adj_set_lr(m->e, adj_schedule_rate(&schedule, epoch * STEPS + step));
        adj_status status = adj_run(m->e);
        if (status != ADJ_OK || (status = adj_get(m->e, m->loss, &loss, sizeof loss)) != ADJ_OK)
            return status;
        *mean += loss / STEPS;
    }
    return ADJ_OK;
}

int main(void)
{
    net training = {0}, testing = {0};
    adj_dataset *train_set, *test_set;
    float mean;
    int64_t right;

    if (net_new(&training, 1) || net_new(&testing, 0))
        return fprintf(stderr, "mobilenet: %s%s\n", adj_exec_message(training.e),
                       testing.e != NULL ? adj_exec_message(testing.e) : ""),
               1;
    if (adj_dataset_digits(ADJ_TRAIN, TRAIN, 1, &train_set) ||
        adj_dataset_digits(ADJ_TEST, TEST, 1, &test_set))
        return fprintf(stderr, "mobilenet: the digits could not be drawn\n"), 1;
    printf("%lld parameters\n", (long long)adj_trainable_elems(training.loss));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        if (train_epoch(&training, train_set, epoch, &mean))
            return fprintf(stderr, "mobilenet: %s\n", adj_exec_message(training.e)), 1;
        if (adj_copy_params(testing.e, training.e) ||
            adj_evaluate(testing.e, testing.images, testing.logits, test_set, &right, NULL))
            return fprintf(stderr, "mobilenet: %s\n", adj_exec_message(testing.e)), 1;
        printf("epoch %d: loss %.4f, test accuracy %.2f %%\n", epoch + 1, mean,
               100.0 * (double)right / TEST);
    }
    adj_dataset_free(train_set);
    adj_dataset_free(test_set);
    net_free(&training);
    net_free(&testing);
    return 0;
}
