/* training_loop.c - a training loop written by hand: a custom optimizer made of ops (RMSprop, which
 * the library also has); the norm of the gradients, fetched with the loss; a learning rate that
 * decays with the steps; an executor for evaluation, in which batch norm differs; and a stop at the
 * target accuracy.
 *
 *   cc training_loop.c $(pkg-config --cflags --libs adjoint adjoint_io) -lm && ./a.out */
#include <math.h>

#include "adjoint_data.h"
#include "adjoint_nn.h"

enum { BATCH = 50, TRAIN = 4000, TEST = 1000, STEPS = TRAIN / BATCH, EPOCHS = 6, MAX_PARAMS = 32 };
static const double target = 0.9; /* accuracy that ends the training */

/* images -> logits */
static adj_node *network(adj_node *images)
{
    const adj_conv_layer c1 = {.filters = 16, .stride = {2}, .padding = ADJ_SAME, .no_bias = 1};
    const adj_conv_layer c2 = {.filters = 32, .stride = {2}, .padding = ADJ_SAME, .no_bias = 1};
    const adj_norm_layer norm = {.training = 1};
    adj_node *h =
        adj_relu(adj_layer_batch_norm(adj_layer_conv2d(images, "conv1", &c1), "bn1", &norm));
    h = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(h, "conv2", &c2), "bn2", &norm));
    return adj_layer_dense(h, "logits", 10, NULL);
}

/* Returns the updates of RMSprop, v := 0.9 v + 0.1 dw^2 and w := w - rate dw / (sqrt(v) + 1e-5)
 * with a state v for each w, and those of the layers (running statistics). Sets *norm to the norm
 * of all gradients. */
static adj_updates *rmsprop(adj_graph *g, adj_node *loss, adj_node *rate, adj_node **norm)
{
    const adj_axes all = {.n = ADJ_ALL};
    adj_node *w[MAX_PARAMS], *dw[MAX_PARAMS];
    const int n = adj_trainable(loss, NULL, MAX_PARAMS, w);
    adj_updates *u = adj_updates_new(g);
    adj_node *squares = adj_fill(g, ADJ_F32, (adj_shape){0}, 0);

    adj_grad(loss, NULL, n, w, dw);
    for (int i = 0; i < n; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s/rmsprop", adj_node_name(w[i]));
        adj_node *v = adj_state(g, name, ADJ_F32, adj_node_type(w[i]).shape, (adj_init){0});
        adj_node *square = adj_scale(adj_square(dw[i]), 0.1);
        adj_node *next = adj_add(adj_scale(v, 0.9), square);
        adj_node *tiny = adj_fill(g, ADJ_F32, (adj_shape){0}, 1e-5);
        adj_node *step = adj_div(dw[i], adj_add(adj_sqrt(next), tiny));
        adj_updates_add(u, v, next);
        adj_updates_add(u, w[i], adj_sub(w[i], adj_mul(rate, step)));
        squares = adj_add(squares, adj_reduce_sum(adj_square(dw[i]), all));
    }
    *norm = adj_sqrt(squares);
    return adj_updates_join(g, u, adj_layer_updates(g));
}

static int failed(const char *why) { return fprintf(stderr, "training_loop: %s\n", why), 1; }

int main(void)
{
    static float now[2];
    static int32_t label[BATCH];
    static int64_t order[TRAIN], right;
    const adj_shape shape = {4, {BATCH, 28, 28, 1}};

    adj_graph *g = adj_graph_new();
    adj_node *images = adj_input(g, "images", ADJ_F32, shape);
    adj_node *logits = network(images), *predicted = adj_evaluation(logits), *norm;
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
    adj_node *rate = adj_input(g, "rate", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_loss_softmax(logits, labels, NULL);
    adj_updates *updates = rmsprop(g, loss, rate, &norm);

    adj_exec *train, *test;
    adj_node *const fetch[] = {loss, norm};
    if (adj_exec_new(g, &(adj_exec_opts){.n_fetch = 2, .fetch = fetch, .updates = updates}, &train))
        return failed(adj_exec_message(train));
    if (adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &predicted}, &test))
        return failed(adj_exec_message(test));
    adj_dataset *train_set, *test_set;
    if (adj_dataset_digits(ADJ_TRAIN, TRAIN, 1, &train_set) ||
        adj_dataset_digits(ADJ_TEST, TEST, 1, &test_set))
        return failed("the digits cannot be drawn");

    double accuracy = 0;
    adj_error error = {0};
    for (int epoch = 0; epoch < EPOCHS && accuracy < target; epoch++) {
        adj_shuffle(TRAIN, 1, (uint64_t)epoch, order);
        for (int step = 0; step < STEPS; step++) {
            const float now_rate = 0.002F / (1 + 0.01F * (float)(epoch * STEPS + step));
            void *x; /* the executor's own buffer: images are decoded into it without a copy */
            if (adj_set_in_place(train, images, &x))
                return failed(adj_exec_message(train));
            adj_batch(train_set, order, step * BATCH, shape, x, label, NULL);
            adj_set(train, labels, label, sizeof label);
            adj_set(train, rate, &now_rate, sizeof now_rate);
            if (adj_run(train) || adj_get(train, loss, &now[0], sizeof now[0]) ||
                adj_get(train, norm, &now[1], sizeof now[1]))
                return failed(adj_exec_message(train));
            if (!isfinite(now[0]))
                return failed("the loss is not finite");
        }
        if (adj_copy_params(test, train))
            return failed(adj_exec_message(test));
        if (adj_evaluate(test, images, predicted, test_set, &right, &error))
            return failed(error.message);
        accuracy = (double)right / TEST;
        printf("epoch %d: loss %.4f, gradient %.3f, test accuracy %.1f %%\n", epoch + 1, now[0],
               now[1], 100 * accuracy);
    }
    adj_dataset_free(train_set);
    adj_dataset_free(test_set);
    adj_exec_free(train);
    adj_exec_free(test);
    adj_graph_free(g);
    return accuracy >= target ? 0 : 1;
}
