/* segmentation.c - classifies each pixel as background, square or cross. Convolutions with dilation
 * 1, 2, 4 and 8 have a large receptive field at full resolution; the loss treats each pixel as a
 * row. The images are generated with noise; squares and crosses are equally bright, so a pixel can
 * only be classified by its surroundings.
 *
 *   cc segmentation.c $(pkg-config --cflags --libs adjoint) && ./a.out */
#include <stdlib.h>

#include "adjoint_nn.h"

enum { BATCH = 8, SIZE = 32, PIXELS = BATCH * SIZE * SIZE, CLASSES = 3, STEPS = 400, TEST = 10 };

static adj_node *network(adj_node *x)
{
    adj_node *h = x;
    for (int i = 0; i < 4; i++) {
        const char *const names[] = {"conv1", "conv2", "conv3", "conv4"};
        const adj_conv_layer c = {.filters = 16, .dilation = {1 << i}, .padding = ADJ_SAME};
        h = adj_relu(adj_layer_conv2d(h, names[i], &c));
    }
    const adj_conv_layer pixel = {.filters = CLASSES, .kernel = {1}};
    h = adj_layer_conv2d(h, "logits", &pixel);
    return adj_reshape(h, (adj_shape){2, {PIXELS, CLASSES}});
}

/* Returns a pseudo-random number from 0 to n - 1. */
static int draw(uint64_t *state, int n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((*state >> 33) % (uint64_t)n);
}

/* Draws a square or a cross, of equal brightness, in each image. */
static void draw_batch(uint64_t *state, float x[PIXELS], int32_t label[PIXELS])
{
    for (int i = 0; i < PIXELS; i++)
        label[i] = 0;
    for (int n = 0; n < BATCH; n++) {
        const int kind = 1 + draw(state, 2), r = 4 + draw(state, 4);
        const int row = r + draw(state, SIZE - 2 * r), col = r + draw(state, SIZE - 2 * r);
        for (int i = -r; i <= r; i++)
            for (int j = -r; j <= r; j++)
                if (kind == 1 || abs(i) <= r / 3 || abs(j) <= r / 3)
                    label[(n * SIZE + row + i) * SIZE + col + j] = kind;
    }
    for (int i = 0; i < PIXELS; i++)
        x[i] = (label[i] > 0 ? 0.6F : -0.6F) + (float)draw(state, 1000) / 1000 - 0.5F;
}

static int failed(const char *why) { return fprintf(stderr, "segmentation: %s\n", why), 1; }

int main(void)
{
    static float x[PIXELS], scores[PIXELS * CLASSES], loss_now;
    static int32_t label[PIXELS];
    const adj_schedule cosine = {ADJ_SCHEDULE_COSINE, .base = 0.01, .total = STEPS};
    uint64_t state = 1;

    adj_graph *g = adj_graph_new();
    adj_node *images = adj_input(g, "images", ADJ_F32, (adj_shape){4, {BATCH, SIZE, SIZE, 1}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {PIXELS}});
    adj_node *logits = network(images), *loss = adj_loss_softmax(logits, labels, NULL);

    adj_exec *train, *test;
    if (adj_exec_new(g,
                     &(adj_exec_opts){.n_fetch = 1, .fetch = &loss, .updates = adj_adam(loss, 0)},
                     &train))
        return failed(adj_exec_message(train));
    if (adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &logits}, &test))
        return failed(adj_exec_message(test));

    for (int step = 0; step < STEPS; step++) {
        draw_batch(&state, x, label);
        adj_set(train, images, x, sizeof x);
        adj_set(train, labels, label, sizeof label);
        adj_set_lr(train, adj_schedule_rate(&cosine, step));
        if (adj_run(train) || adj_get(train, loss, &loss_now, sizeof loss_now))
            return failed(adj_exec_message(train));
        if (step % 50 == 49)
            printf("step %d: loss %.4f\n", step + 1, loss_now);
    }

    /* Intersection over union of each class, on new images. */
    int64_t both[CLASSES] = {0}, either[CLASSES] = {0};
    if (adj_copy_params(test, train))
        return failed(adj_exec_message(test));
    for (int k = 0; k < TEST; k++) {
        draw_batch(&state, x, label);
        adj_set(test, images, x, sizeof x);
        if (adj_run(test) || adj_get(test, logits, scores, sizeof scores))
            return failed(adj_exec_message(test));
        for (int i = 0; i < PIXELS; i++) {
            const float *s = scores + i * CLASSES;
            const int found = s[1] > s[0] ? s[2] > s[1] ? 2 : 1 : s[2] > s[0] ? 2 : 0;
            both[found] += found == label[i];
            either[found]++;
            either[label[i]] += found != label[i];
        }
    }
    double min = 1;
    for (int i = 0; i < CLASSES; i++) {
        const double overlap = (double)both[i] / (double)either[i];
        printf("%-10s intersection over union %.3f\n",
               (const char *const[]){"background", "square", "cross"}[i], overlap);
        min = overlap < min ? overlap : min;
    }
    adj_exec_free(train);
    adj_exec_free(test);
    adj_graph_free(g);
    return min > 0.7 ? 0 : 1;
}
