/* second_derivative.c - second derivatives: a gradient consists of nodes, so adj_grad can
 * differentiate it again. Computes the product H v for a small convolutional network, where H is
 * the Hessian of the loss with respect to a filter, and checks it by differences of first
 * derivatives.
 *
 *   cc second_derivative.c $(pkg-config --cflags --libs adjoint) -lm && ./a.out  */
#include <math.h>
#include <stdio.h>

#include "adjoint_nn.h"

enum { BATCH = 4, FILTER = 3 * 3 * 2 * 3 };

/* images -> logits; smooth (tanh, average pools), because the second derivative of relu is 0. */
static adj_node *network(adj_node *x)
{
    const adj_conv_layer c1 = {.filters = 2, .padding = ADJ_SAME};
    const adj_conv_layer c2 = {.filters = 3, .padding = ADJ_SAME, .stride = {2}};
    const adj_pool half = {.ksize = {1, 2, 2, 1}};

    adj_node *h = adj_avg_pool(adj_tanh(adj_layer_conv2d(x, "conv1", &c1)), &half);
    h = adj_tanh(adj_layer_conv2d(h, "conv2", &c2));
    return adj_layer_dense(h, "logits", 3, NULL);
}

/* Computes the first derivative at w + step * v. */
static adj_status gradient_at(adj_exec *e, adj_node *w, adj_node *dw, const double at[FILTER],
                              const double v[FILTER], double step, double out[FILTER])
{
    double moved[FILTER];
    for (int i = 0; i < FILTER; i++)
        moved[i] = at[i] + step * v[i];
    adj_status status = adj_set(e, w, moved, sizeof moved);
    if (status == ADJ_OK)
        status = adj_run(e);
    return status == ADJ_OK ? adj_get(e, dw, out, FILTER * sizeof *out) : status;
}

int main(void)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "images", ADJ_F64, (adj_shape){4, {BATCH, 8, 8, 1}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {BATCH}});
    adj_node *v = adj_input(g, "v", ADJ_F64, (adj_shape){4, {3, 3, 2, 3}});
    adj_node *loss = adj_loss_softmax(network(x), labels, NULL);

    /* dw = d loss / d w, then H v = d <dw, v> / d w, without forming H. */
    adj_node *w = adj_find(g, "conv2/w"), *dw, *hv;
    adj_grad(loss, NULL, 1, &w, &dw);
    adj_node *along_v = adj_reduce_sum(adj_mul(dw, v), (adj_axes){.n = ADJ_ALL});
    adj_grad(along_v, NULL, 1, &w, &hv);

    adj_node *const fetch[] = {dw, hv};
    adj_exec *e;
    const adj_exec_opts opts = {.n_fetch = 2, .fetch = fetch, .backend = "naive"};
    if (adj_exec_new(g, &opts, &e))
        return fprintf(stderr, "second_derivative: %s\n", adj_exec_message(e)), 1;

    double image[BATCH * 8 * 8], direction[FILTER], at[FILTER], exact[FILTER];
    double above[FILTER], below[FILTER], worst = 0, largest = 0;
    const int32_t label[BATCH] = {0, 1, 2, 1};
    const double step = 1e-4;
    for (int i = 0; i < BATCH * 8 * 8; i++)
        image[i] = sin(0.7 * i);
    for (int i = 0; i < FILTER; i++)
        direction[i] = cos(1.3 * i);
    adj_set(e, x, image, sizeof image);
    adj_set(e, labels, label, sizeof label);
    adj_set(e, v, direction, sizeof direction);
    if (adj_run(e) || adj_get(e, hv, exact, sizeof exact) || adj_get(e, w, at, sizeof at) ||
        gradient_at(e, w, dw, at, direction, step, above) ||
        gradient_at(e, w, dw, at, direction, -step, below))
        return fprintf(stderr, "second_derivative: %s\n", adj_exec_message(e)), 1;

    printf("%8s %20s %20s\n", "element", "H v", "by differences");
    for (int i = 0; i < FILTER; i++) {
        double difference = (above[i] - below[i]) / (2 * step);
        if (i < 5)
            printf("%8d %20.12f %20.12f\n", i, exact[i], difference);
        worst = fmax(worst, fabs(exact[i] - difference));
        largest = fmax(largest, fabs(exact[i]));
    }
    printf("largest error of %d: %.2g (largest element %.2g)\n", FILTER, worst, largest);
    adj_exec_free(e);
    adj_graph_free(g);
    return worst < 1e-6 * largest ? 0 : 1;
}
