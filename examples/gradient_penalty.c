/* gradient_penalty.c - a loss that contains a gradient: cross-entropy plus the mean square of its
 * gradient with respect to the images, so that small changes of an image change the result little.
 * adj_grad is called twice: for that gradient, and for the gradients of the parameters through it.
 * Trains with and without the penalty from the same initial values and compares.
 *
 *   cc gradient_penalty.c $(pkg-config --cflags --libs adjoint adjoint_io) && ./a.out  */
#include "adjoint_data.h"
#include "adjoint_nn.h"

enum { BATCH = 50, TRAIN = 3000, TEST = 1000, EPOCHS = 3, STEPS = TRAIN / BATCH };

typedef struct {
    double accuracy; /* on the test images */
    double slope;    /* mean square of the gradient with respect to an image */
} outcome;

static const adj_shape shape = {4, {BATCH, 28, 28, 1}};

/* images -> logits, with tanh because the second derivative of relu is 0. */
static adj_node *network(adj_node *x)
{
    const adj_conv_layer c1 = {.filters = 12, .kernel = {5}, .stride = {2}, .padding = ADJ_SAME};
    const adj_conv_layer c2 = {.filters = 24, .kernel = {5}, .stride = {2}, .padding = ADJ_SAME};
    adj_node *h = adj_tanh(adj_layer_conv2d(x, "conv1", &c1));
    h = adj_tanh(adj_layer_conv2d(h, "conv2", &c2));
    return adj_layer_dense(h, "logits", 10, NULL);
}

static int failed(const char *why) { return fprintf(stderr, "gradient_penalty: %s\n", why), 1; }

static int train(double weight, adj_dataset *train_set, adj_dataset *test_set, outcome *out)
{
    static float x[BATCH * 28 * 28], slope_now;
    static int32_t label[BATCH];
    static int64_t order[TRAIN], right;
    adj_error error = {0};

    adj_graph *g = adj_graph_new();
    adj_node *images = adj_input(g, "images", ADJ_F32, shape), *by_image;
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
    adj_node *logits = network(images), *loss = adj_loss_softmax(logits, labels, NULL);

    /* The loss is the mean over the batch, so BATCH times the loss is the sum over the images. */
    adj_grad(adj_scale(loss, BATCH), NULL, 1, &images, &by_image);
    adj_node *squares = adj_reduce_sum(adj_square(by_image), (adj_axes){.n = ADJ_ALL});
    adj_node *slope = adj_scale(squares, 1.0 / BATCH);
    adj_node *total = adj_add(loss, adj_scale(slope, weight));

    adj_exec *e, *test;
    adj_node *const fetch[] = {logits, slope};
    const adj_exec_opts step_opts = {
        .n_fetch = 1, .fetch = &total, .updates = adj_adam(total, 0.002), .seed = 1};
    if (adj_exec_new(g, &step_opts, &e))
        return failed(adj_exec_message(e));
    if (adj_exec_new(g, &(adj_exec_opts){.n_fetch = 2, .fetch = fetch}, &test))
        return failed(adj_exec_message(test));
    for (int step = 0; step < EPOCHS * STEPS; step++) {
        if (step % STEPS == 0)
            adj_shuffle(TRAIN, 1, (uint64_t)(step / STEPS), order);
        adj_batch(train_set, order, step % STEPS * BATCH, shape, x, label, NULL);
        adj_set(e, images, x, sizeof x);
        adj_set(e, labels, label, sizeof label);
        if (adj_run(e))
            return failed(adj_exec_message(e));
    }

    if (adj_copy_params(test, e))
        return failed(adj_exec_message(test));
    adj_batch(test_set, NULL, 0, shape, x, label, NULL);
    adj_set(test, images, x, sizeof x);
    adj_set(test, labels, label, sizeof label);
    if (adj_run(test) || adj_get(test, slope, &slope_now, sizeof slope_now))
        return failed(adj_exec_message(test));
    if (adj_evaluate(test, images, logits, test_set, &right, &error))
        return failed(error.message);
    *out = (outcome){(double)right / TEST, slope_now};
    adj_exec_free(e);
    adj_exec_free(test);
    adj_graph_free(g);
    return 0;
}

int main(void)
{
    const double weights[] = {0, 0.2};
    outcome result[2];
    adj_dataset *train_set, *test_set;
    if (adj_dataset_digits(ADJ_TRAIN, TRAIN, 1, &train_set) ||
        adj_dataset_digits(ADJ_TEST, TEST, 1, &test_set))
        return failed("the digits cannot be drawn");
    for (int i = 0; i < 2; i++) {
        if (train(weights[i], train_set, test_set, &result[i]))
            return 1;
        printf("penalty %.1f: test accuracy %.1f %%, mean square of a gradient %.4f\n", weights[i],
               100 * result[i].accuracy, result[i].slope);
    }
    adj_dataset_free(train_set);
    adj_dataset_free(test_set);
    return result[1].accuracy > 0.85 && result[1].slope < 0.5 * result[0].slope ? 0 : 1;
}
