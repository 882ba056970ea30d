/* own_images.c - a custom net on your own images: trains on the image files in DIR/CLASS/, of which
 * a fifth is held out, saves the weights, loads them and predicts one image.
 *
 *   cc own_images.c $(pkg-config --cflags --libs adjoint_io) && ./a.out DIR WEIGHTS IMAGE */
#include <stdlib.h>

#include "adjoint_fit.h"

enum { SIZE = 32, CHANNELS = 3 }; /* images are resized and converted to this */

static adj_node *net_of_images(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_conv_layer c1 = {.filters = 16, .stride = {2}, .padding = ADJ_SAME, .no_bias = 1};
    const adj_conv_layer c2 = {.filters = 32, .stride = {2}, .padding = ADJ_SAME, .no_bias = 1};
    const adj_norm_layer norm = {.training = training};
    (void)user;
    x = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv1", &c1), "bn1", &norm));
    x = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv2", &c2), "bn2", &norm));
    x = adj_layer_dropout(adj_global_avg_pool(x, ADJ_NHWC), "dropout", 0.1, training);
    return adj_layer_dense(x, "logits", classes, NULL);
}
static const adj_net net = {.name = "of images", .build = net_of_images};

static int failed(const char *why) { return fprintf(stderr, "own_images: %s\n", why), 1; }

static int print_epoch(void *user, const adj_fit_progress *p)
{
    (void)user;
    printf("epoch %d: loss %.4f, held out %.1f %%\n", (int)p->epoch, p->train.loss,
           100 * p->held_out.accuracy);
    return 0; /* go on */
}

/* Opens the folder. Files are read while the steps run, so they may exceed the memory. */
static int train(const char *folder, const char *weights)
{
    const adj_fit_opts options = {
        .epochs = 10, .batch = 16, .augment = {.flip = 1, .shift = 2}, .on.epoch = print_epoch};
    adj_dataset_opts o = {.image.size = {SIZE, SIZE, CHANNELS}, .val_split = 0.2};
    adj_dataset *images, *held_out;
    adj_predictor *p;
    adj_error error;

    if (adj_dataset_open(folder, ADJ_TRAIN, &o, &images))
        return failed(images != NULL ? images->message : "out of memory");
    o.like = images; /* the same classes, mean and deviation */
    if (adj_dataset_open(folder, ADJ_VALIDATION, &o, &held_out))
        return failed(held_out != NULL ? held_out->message : "out of memory");
    if (adj_fit(&net, images, held_out, &options, &p, &error) ||
        adj_predictor_save(p, weights, 0, NULL, &error))
        return failed(error.message);
    adj_predictor_free(p);
    adj_dataset_free(held_out);
    adj_dataset_free(images);
    return 0;
}

/* The file contains the mean and deviation of the training images, and the names of the classes if
 * the data have names. */
static int predict(const char *weights, const char *image)
{
    static float pixels[SIZE * SIZE * CHANNELS];
    const adj_image_opts size = {.size = {SIZE, SIZE, CHANNELS}};
    adj_predictor *p;
    adj_error error;

    if (adj_predictor_load(weights, &net, NULL, &p, &error))
        return failed(error.message);
    const adj_model_card *card = adj_predictor_card(p);
    float *probability = calloc((size_t)card->options.classes, sizeof *probability);
    int status = 0;
    if (probability == NULL)
        status = failed("out of memory");
    else if (adj_image_read(image, &size, pixels, NULL, &error) ||
             adj_predict_floats(p, 1, pixels, probability, &error))
        status = failed(error.message);
    for (int k = 0; k < card->options.classes && status == 0; k++)
        if (card->class_names != NULL)
            printf("%s %.4f\n", card->class_names[k], (double)probability[k]);
        else
            printf("%d %.4f\n", k, (double)probability[k]);
    free(probability);
    adj_predictor_free(p);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return failed("expected DIR WEIGHTS IMAGE");
    return train(argv[1], argv[2]) || predict(argv[2], argv[3]);
}
