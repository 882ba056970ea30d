/* lenet.c - builds LeNet, trains it on generated digits and tests it.
 *
 *   cc lenet.c $(pkg-config --cflags --libs adjoint adjoint_io) && ./a.out */
#include "adjoint_data.h"
#include "adjoint_nn.h"

enum { BATCH = 50, EPOCHS = 4, TRAIN = 8000, TEST = 2000, STEPS = TRAIN / BATCH };

/* Maps images to logits. Each call adds nodes and returns one; sizes are inferred, and the graph
 * records the first error. */
static adj_node *lenet(adj_node *x)
{
    const adj_pool half = {.ksize = {1, 2, 2, 1}};
    const adj_conv_layer c1 = {.filters = 32, .kernel = {5}, .padding = ADJ_SAME};
    const adj_conv_layer c2 = {.filters = 64, .kernel = {5}, .padding = ADJ_SAME};
    adj_node *h = adj_max_pool(adj_relu(adj_layer_conv2d(x, "conv1", &c1)), &half);
    h = adj_max_pool(adj_relu(adj_layer_conv2d(h, "conv2", &c2)), &half);
    return adj_layer_dense(adj_relu(adj_layer_dense(h, "fc1", 128, NULL)), "logits", 10, NULL);
}

static int failed(const char *why) { return fprintf(stderr, "lenet: %s\n", why), 1; }

int main(void)
{
    static float x[BATCH * 28 * 28], loss_now;
    static int32_t label[BATCH];
    static int64_t order[TRAIN], right;
    const adj_shape shape = {4, {BATCH, 28, 28, 1}};
    const adj_schedule cosine = {ADJ_SCHEDULE_COSINE, .base = 0.02, .total = EPOCHS * STEPS};

    /* The graph: the model, its loss, and the updates of a step. Gradients are nodes of it, too. */
    adj_graph *g = adj_graph_new();
    adj_node *images = adj_input(g, "images", ADJ_F32, shape);
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
    adj_node *logits = lenet(images), *loss = adj_loss_softmax(logits, labels, NULL);
    adj_updates *updates = adj_training_updates(loss, &(adj_optimizer_opts){.momentum = 0.9});

    /* Two plans of the graph: a training step, and predictions. */
    adj_exec *train, *test;
    if (adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &loss, .updates = updates}, &train))
        return failed(adj_exec_message(train));
    if (adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &logits}, &test))
        return failed(adj_exec_message(test));
    adj_dataset *train_set, *test_set;
    if (adj_dataset_digits(ADJ_TRAIN, TRAIN, 1, &train_set) ||
        adj_dataset_digits(ADJ_TEST, TEST, 1, &test_set))
        return failed("the digits cannot be drawn");

    adj_error error;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        adj_shuffle(TRAIN, 1, (uint64_t)epoch, order);
        for (int step = 0; step < STEPS; step++) {
            adj_batch(train_set, order, step * BATCH, shape, x, label, NULL);
            adj_set(train, images, x, sizeof x);
            adj_set(train, labels, label, sizeof label);
            adj_set_lr(train, adj_schedule_rate(&cosine, epoch * STEPS + step));
            if (adj_run(train) || adj_get(train, loss, &loss_now, sizeof loss_now))
                return failed(adj_exec_message(train));
        }
        if (adj_copy_params(test, train)) /* by name */
            return failed(adj_exec_message(test));
        if (adj_evaluate(test, images, logits, test_set, &right, &error))
            return failed(error.message);
        printf("epoch %d: loss %.4f, test accuracy %.2f %%\n", epoch + 1, loss_now,
               100.0 * (double)right / TEST);
    }
    adj_dataset_free(train_set);
    adj_dataset_free(test_set);
    adj_exec_free(train);
    adj_exec_free(test);
    adj_graph_free(g);
    return 0;
}
