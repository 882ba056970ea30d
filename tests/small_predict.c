/* small_predict.c - a model's inference on the small library, without files, oneDNN and the io
 * library. Parameters are the model's initial values, the same by every library.
 *
 *   small_predict MODEL SECONDS   time at batch 1, resident memory, and a checksum of the logits
 *   small_predict MODEL 0         the logits of one drawn image, a line each, for comparison */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adjoint_nn.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int failed(const char *why) { return fprintf(stderr, "small_predict: %s\n", why), 1; }

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static long resident_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (f != NULL)
        fclose(f);
    return kb;
}

static int measure(adj_exec *e, double seconds, double began)
{
    enum { MAX = 1 << 16 };
    static double took[MAX];
    int n = 0;

    if (adj_run(e) != ADJ_OK)
        return failed(adj_exec_message(e));
    printf("first result %.2f ms, ", 1e3 * (now() - began));
    for (double end = now() + seconds; n < MAX && now() < end; n++) {
        double start = now();
        adj_run(e);
        took[n] = now() - start;
    }
    qsort(took, (size_t)n, sizeof *took, compare_doubles);
    printf("median %.4f ms, minimum %.4f ms, resident %ld kB\n", 1e3 * took[n / 2], 1e3 * took[0],
           resident_kb());
    return 0;
}

int main(int argc, char **argv)
{
    const double began = now();
    adj_model_opts o = {.batch = 1};
    const adj_model *model = argc > 2 ? adj_model_find(argv[1], &o) : NULL;
    if (model == NULL)
        return failed("expected MODEL SECONDS [BACKEND]");
    adj_graph *g = adj_graph_new();
    adj_node *logits = adj_model_logits(g, model, &o), *images = adj_find(g, "images");
    adj_exec *e = NULL;
    const adj_exec_opts options = {.n_fetch = 1,
                                   .fetch = &logits,
                                   .threads = 1,
                                   .seed = 1,
                                   .backend = argc > 3 ? argv[3] : NULL};
    if (adj_exec_new(g, &options, &e) != ADJ_OK)
        return failed(adj_exec_message(e));
    const size_t n = (size_t)adj_shape_elems(adj_node_type(images).shape);
    float *x = calloc(n, sizeof *x), *y = calloc((size_t)model->defaults.classes, sizeof *y);
    for (size_t i = 0; x != NULL && i < n; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
    if (x == NULL || y == NULL || adj_set(e, images, x, n * sizeof *x) != ADJ_OK)
        return failed("the images cannot be set");
    int status = 0;
    if (strtod(argv[2], NULL) > 0)
        status = measure(e, strtod(argv[2], NULL), began);
    else if (adj_run(e) != ADJ_OK ||
             adj_get(e, logits, y, (size_t)model->defaults.classes * sizeof *y) != ADJ_OK)
        status = failed(adj_exec_message(e));
    else
        for (int64_t k = 0; k < model->defaults.classes; k++)
            printf("%.9g\n", (double)y[k]);
    free(x);
    free(y);
    adj_exec_free(e);
    adj_graph_free(g);
    return status;
}
