/* inner.c - the value of a named node of a predictor's network, and the gradient of a logit with
 * respect to the pixels, one image at a time. */
#include <stdlib.h>
#include <string.h>

#include "predictor.h"

/* Runs the net on an image and copies its inner node. */
static adj_status run(const adj_predictor *p, network *n, const float pixels[], float value[],
                      adj_error *error)
{
    float *x;
    adj_status status = network_open_batch(n, NULL, 0, &x, error);
    if (status != ADJ_OK)
        return status;
    predictor_prepare(p, 1, pixels, x);
    status = network_read(n, adj_run(n->exec), error);
    if (status != ADJ_OK)
        return status;
    status = adj_get(n->exec, n->inner, value, adj_type_bytes(adj_node_type(n->inner)));
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(error, status, "%s", adj_exec_message(n->exec));
}

/* Selects the node that INNER fetches; drops a network that fetches another. */
static adj_status choose_inner(adj_predictor *p, const char *name, adj_error *error)
{
    if (p->inner != NULL && strcmp(p->inner, name) == 0)
        return ADJ_OK;
    char *kept = strdup(name);
    if (kept == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "predictor: out of memory");
    free(p->inner);
    p->inner = kept;
    workers_close(&p->planned[INNER].w);
    p->planned[INNER].version = 0;
    return ADJ_OK;
}

adj_status adj_predictor_fetch(adj_predictor *p, const char *name, int64_t n, const float pixels[],
                               adj_shape *shape, float value[], adj_error *error)
{
    workers *w;

    if (p == NULL || name == NULL || shape == NULL || n < 0 ||
        (n > 0 && value != NULL && pixels == NULL))
        return adj_error_set(error, ADJ_EARG, "fetch: predictor, name, images or shape is NULL");
    adj_status status = choose_inner(p, name, error);
    if (status == ADJ_OK)
        status = predictor_workers(p, INNER, 1, &w, error);
    if (status != ADJ_OK)
        return status;
    network *net = w->each;
    *shape = adj_node_type(net->inner).shape;
    const int64_t each = adj_shape_elems(*shape), image = adj_shape_elems(net->shape);
    for (int64_t i = 0; value != NULL && i < n && status == ADJ_OK; i++)
        status = run(p, net, pixels + i * image, value + i * each, error);
    return status;
}

adj_status adj_predictor_gradient(adj_predictor *p, int64_t label, const float pixels[],
                                  float gradient[], adj_error *error)
{
    workers *w;

    if (p == NULL || pixels == NULL || gradient == NULL)
        return adj_error_set(error, ADJ_EARG, "gradient: predictor, image or gradient is NULL");
    if (label < 0 || label >= p->net.options.classes)
        return adj_error_set(error, ADJ_EARG,
                             "gradient: class is out of range (got %lld, expected 0 to %lld)",
                             (long long)label, (long long)p->net.options.classes - 1);
    adj_status status = predictor_workers(p, GRADIENT, 1, &w, error);
    if (status != ADJ_OK)
        return status;
    network *net = w->each;
    float *upstream = calloc((size_t)p->net.options.classes, sizeof *upstream);
    if (upstream == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "predictor: out of memory");
    upstream[label] = 1;
    status = adj_set(net->exec, net->upstream, upstream,
                     (size_t)p->net.options.classes * sizeof *upstream);
    status = status == ADJ_OK ? run(p, net, pixels, gradient, error)
                              : adj_error_set(error, status, "%s", adj_exec_message(net->exec));
    free(upstream);
    for (int64_t i = 0; i < adj_shape_elems(net->shape) && status == ADJ_OK; i++)
        gradient[i] /=
            p->deviation[i % p->net.options.size.c]; /* of x = (pixel - mean) / deviation */
    return status;
}
