/* autoencoder.c - encodes images of 784 pixels as 16 numbers and reconstructs them: convolutions of
 * stride 2 in the encoder, transposed convolutions (conv2d_transpose) in the decoder. Prints an
 * image with its reconstruction; the exit status is 0 if the error is far below that of a constant
 * image.
 *
 *   cc autoencoder.c $(pkg-config --cflags --libs adjoint adjoint_io) && ./a.out */
#include "adjoint_data.h"
#include "adjoint_nn.h"

enum { BATCH = 50, TRAIN = 2000, EPOCHS = 7, STEPS = TRAIN / BATCH, PIXELS = 28 * 28 };

/* The transpose of a convolution of stride 2 from [2 size, 2 size, out] to x's [size, size, in]. */
static adj_node *up(adj_node *x, const char *name, int64_t out)
{
    const adj_conv twice = {.stride = {1, 2, 2, 1}, .padding = ADJ_SAME};
    const adj_shape s = adj_node_type(x).shape;
    const int64_t in = s.dim[3];
    adj_node *w = adj_param(adj_node_graph(x), name, ADJ_F32, (adj_shape){4, {3, 3, out, in}},
                            adj_init_from_fans(ADJ_HE_NORMAL, 9 * in / 4,
                                               0)); /* fan-in: filter elements that reach a pixel */
    return adj_conv2d_transpose(x, w, (adj_shape){4, {BATCH, 2 * s.dim[1], 2 * s.dim[2], out}},
                                &twice);
}

static adj_node *autoencoder(adj_node *x)
{
    const adj_conv_layer c1 = {.filters = 16, .stride = {2}, .padding = ADJ_SAME};
    const adj_conv_layer c2 = {.filters = 32, .stride = {2}, .padding = ADJ_SAME};
    adj_node *h = adj_relu(adj_layer_conv2d(x, "down1", &c1));
    h = adj_relu(adj_layer_conv2d(h, "down2", &c2));
    h = adj_label(adj_layer_dense(h, "code", 16, NULL), "code");
    h = adj_relu(adj_layer_dense(h, "back", 7 * 7 * 32, NULL));
    h = adj_reshape(h, (adj_shape){4, {BATCH, 7, 7, 32}});
    h = adj_relu(up(h, "up1/w", 16));
    return adj_sigmoid(up(h, "up2/w", 1));
}

/* Returns the variance of the batch around its mean picture: the error of a constant prediction. */
static double around_mean(const float *x)
{
    double sum = 0;
    for (int p = 0; p < PIXELS; p++) {
        double mean = 0;
        for (int i = 0; i < BATCH; i++)
            mean += x[i * PIXELS + p] / BATCH;
        for (int i = 0; i < BATCH; i++)
            sum += (x[i * PIXELS + p] - mean) * (x[i * PIXELS + p] - mean);
    }
    return sum / (BATCH * PIXELS);
}

static void show(const float *a, const float *b)
{
    for (int row = 0; row < 28; row += 2, putchar('\n'))
        for (int col = 0; col < 56; col++) {
            const float *v = col < 28 ? a : b;
            putchar(" .:*#"[(int)(v[row * 28 + col % 28] * 4.99F)]);
        }
}

static int failed(const char *why) { return fprintf(stderr, "autoencoder: %s\n", why), 1; }

int main(void)
{
    static float x[BATCH * PIXELS], y[BATCH * PIXELS];
    static int64_t order[TRAIN];
    const adj_shape shape = {4, {BATCH, 28, 28, 1}};
    float error = 0;

    adj_graph *g = adj_graph_new();
    adj_node *images = adj_input(g, "images", ADJ_F32, shape), *drawn = autoencoder(images);
    adj_node *loss = adj_reduce_mean(adj_square(adj_sub(drawn, images)), (adj_axes){.n = ADJ_ALL});
    adj_node *const fetch[] = {loss, drawn};
    adj_exec *e;
    if (adj_exec_new(
            g, &(adj_exec_opts){.n_fetch = 2, .fetch = fetch, .updates = adj_adam(loss, 0.002)},
            &e))
        return failed(adj_exec_message(e));
    adj_dataset *digits;
    if (adj_dataset_digits(ADJ_TRAIN, TRAIN, 1, &digits))
        return failed("the digits cannot be drawn");

    for (int step = 0; step < EPOCHS * STEPS; step++) {
        if (step % STEPS == 0)
            adj_shuffle(TRAIN, 1, (uint64_t)(step / STEPS), order);
        /* Pixels from 0 to 1, the range of the sigmoid. */
        for (int i = 0; i < BATCH * PIXELS; i++)
            x[i] =
                (float)
                    digits->images[order[step % STEPS * BATCH + i / PIXELS] * PIXELS + i % PIXELS] /
                255;
        adj_set(e, images, x, sizeof x);
        if (adj_run(e) || adj_get(e, loss, &error, sizeof error) || adj_get(e, drawn, y, sizeof y))
            return failed(adj_exec_message(e));
        if (step % STEPS == STEPS - 1)
            printf("epoch %d: mean square error %.4f\n", step / STEPS + 1, error);
    }
    const double constant = around_mean(x);
    printf("mean square error: %.4f from 16 numbers, %.4f of the mean image\n", error, constant);
    show(x, y);
    adj_dataset_free(digits);
    adj_exec_free(e);
    adj_graph_free(g);
    return error < 0.6 * constant ? 0 : 1;
}
