/* own_net.c - builds a net, trains it on generated digits, saves it, loads it and predicts.
 *
 *   cc own_net.c $(pkg-config --cflags --libs adjoint_io) && ./a.out [WEIGHTS [EPOCHS]] */
#include <stdlib.h>

#include "adjoint_fit.h"

/* Maps images to logits. A layer creates its parameters; sizes are inferred. */
static adj_node *small_net(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_pool half = {.ksize = {1, 2, 2, 1}};
    const adj_conv_layer c1 = {.filters = 16}, c2 = {.filters = 32};
    const adj_norm_layer norm = {.training = training};
    (void)user;
    x = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv1", &c1), "bn1", &norm));
    x = adj_relu(adj_layer_conv2d(adj_max_pool(x, &half), "conv2", &c2));
    return adj_layer_dense(adj_max_pool(x, &half), "logits", classes, NULL);
}

static int print_epoch(void *user, const adj_fit_progress *p)
{
    (void)user;
    printf("epoch %d: loss %.4f, test accuracy %.2f %%\n", (int)p->epoch, p->train.loss,
           100 * p->held_out.accuracy);
    return 0; /* go on */
}

static int failed(const char *why) { return fprintf(stderr, "own_net: %s\n", why), 1; }

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "own_net.safetensors";
    const adj_net net = {.name = "small", .build = small_net};
    const adj_fit_opts options = {.epochs = argc > 2 ? strtol(argv[2], NULL, 10) : 3,
                                  .optimizer.lr = 0.02,
                                  .on.epoch = print_epoch};
    adj_dataset *train, *test;
    adj_predictor *trained, *loaded;
    adj_error error;
    float probability[10];

    /* adj_dataset_new takes images of your own; adj_dataset_open folders of image files. */
    if (adj_dataset_digits(ADJ_TRAIN, 3000, 1, &train) ||
        adj_dataset_digits(ADJ_TEST, 500, 1, &test))
        return failed("the digits cannot be drawn");
    if (adj_fit(&net, train, test, &options, &trained, &error) ||
        adj_predictor_save(trained, file, 0, NULL, &error) ||
        adj_predictor_load(file, &net, NULL, &loaded, &error) ||
        adj_predict(loaded, 1, test->images, probability, &error))
        return failed(error.message);
    for (int k = 0; k < 10; k++)
        printf("%d: %5.1f %%%s\n", k, 100 * (double)probability[k],
               k == test->labels[0] ? " <-" : "");
    adj_predictor_free(loaded);
    adj_predictor_free(trained);
    adj_dataset_free(test);
    adj_dataset_free(train);
    return 0;
}
