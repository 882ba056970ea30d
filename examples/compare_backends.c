/* compare_backends.c - runs the same training graph on two backends, and compares every gradient
 * and the time of a run.
 *
 *   cc compare_backends.c $(pkg-config --cflags --libs adjoint) -lm && ./a.out [MODEL [BATCH]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "adjoint_nn.h"

enum { MAX_FETCH = 256, RUNS = 5 };
static const char *const backends[2] = {"naive", "onednn"};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the least time of some runs; the first run may include page faults. */
static double time_of_run(adj_exec *e)
{
    double best = INFINITY;
    for (int i = 0; i < RUNS; i++) {
        double start = seconds();
        if (adj_run(e) != ADJ_OK)
            return NAN;
        best = fmin(best, seconds() - start);
    }
    return best;
}

/* Sets the same values for both backends; any values do. */
static adj_status give_data(adj_exec *e, adj_graph *g, int64_t batch, int64_t classes)
{
    adj_node *images = adj_find(g, "images"), *labels = adj_find(g, "labels");
    int64_t n = adj_shape_elems(adj_node_type(images).shape);
    float *x = malloc((size_t)n * sizeof *x);
    int32_t *label = malloc((size_t)batch * sizeof *label);
    adj_status status = ADJ_ENOMEM;

    if (x != NULL && label != NULL) {
        for (int64_t i = 0; i < n; i++)
            x[i] = (float)sin(0.7 * (double)i + 1e-5 * (double)i * (double)i);
        for (int64_t i = 0; i < batch; i++)
            label[i] = (int32_t)(i % classes);
        if ((status = adj_set(e, images, x, (size_t)n * sizeof *x)) == ADJ_OK)
            status = adj_set(e, labels, label, (size_t)batch * sizeof *label);
    }
    free(x);
    free(label);
    return status;
}

typedef struct {
    double worst, largest; /* max |a - b| and max |b|, b from the first backend; NAN on failure */
} difference;

static difference compare(adj_exec *const e[2], const adj_node *value)
{
    int64_t n = adj_shape_elems(adj_node_type(value).shape);
    size_t bytes = (size_t)n * sizeof(float);
    float *b = malloc(bytes), *a = malloc(bytes);
    difference d = {NAN, NAN};

    if (a != NULL && b != NULL && adj_get(e[0], value, b, bytes) == ADJ_OK &&
        adj_get(e[1], value, a, bytes) == ADJ_OK) {
        d = (difference){0, 0};
        for (int64_t i = 0; i < n; i++) {
            double apart = fabs((double)a[i] - (double)b[i]);
            d.worst = apart <= d.worst ? d.worst : apart; /* a NaN stays */
            d.largest = fmax(d.largest, fabs((double)b[i]));
        }
    }
    free(a);
    free(b);
    return d;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "resnet8";
    adj_model_opts o = {.batch = argc > 2 ? strtol(argv[2], NULL, 10) : 8, .training = 1};
    const adj_model *model = adj_model_find(name, &o);
    if (model == NULL)
        return fprintf(stderr, "no model %s\n", name), 2;

    /* One graph: loss and the gradient of every parameter. */
    adj_graph *g = adj_graph_new();
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {o.batch}});
    adj_node *loss = adj_loss_softmax(adj_model_logits(g, model, &o), labels, NULL);
    adj_node *params[MAX_FETCH], *fetch[MAX_FETCH + 1];
    int n = adj_trainable(loss, NULL, MAX_FETCH, params);
    if (n > MAX_FETCH || adj_grad(loss, NULL, n, params, fetch) != ADJ_OK)
        return fprintf(stderr, "compare_backends: %s\n", adj_graph_message(g)), 1;
    fetch[n] = loss;

    /* Two plans. The seed and the parameters' names determine the initial values, the same for
     * both. */
    adj_exec *e[2];
    double time[2];
    for (int i = 0; i < 2; i++) {
        const adj_exec_opts opts = {
            .n_fetch = n + 1, .fetch = fetch, .backend = backends[i], .seed = 1};
        if (adj_exec_new(g, &opts, &e[i]) || give_data(e[i], g, o.batch, model->defaults.classes) ||
            isnan(time[i] = time_of_run(e[i])))
            return fprintf(stderr, "compare_backends: %s: %s\n", backends[i],
                           adj_exec_message(e[i])),
                   1;
    }

    /* Within a rounding error of a kink, a maximum or relu may take the other side, which moves the
     * gradient of one element: hence 1 %. The gradient of a bias before a batch norm is 0 except
     * for rounding: hence the absolute bound. */
    int wrong = 0;
    printf("%-32s %14s %14s\n", "gradient of", "difference", "largest");
    for (int i = 0; i <= n; i++) {
        difference d = compare(e, fetch[i]);
        int good = d.worst <= 0.01 * d.largest + 1e-5;
        printf("%-32s %14.3g %14.3g%s\n", i < n ? adj_node_name(params[i]) : "(the loss)", d.worst,
               d.largest, good ? "" : "  <- too much");
        wrong += !good;
    }
    for (int i = 0; i < 2; i++) {
        adj_exec_info info = adj_exec_stats(e[i]);
        printf("%s: %.2f ms a run, %d steps, %d of them naive, arena %zu bytes\n", backends[i],
               1e3 * time[i], info.steps, info.naive_steps, info.arena_bytes);
        adj_exec_free(e[i]);
    }
    adj_graph_free(g);
    return wrong == 0 ? 0 : 1;
}
