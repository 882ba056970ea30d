/* evaluate.c - counts the images of a data set that a network classifies correctly. */
#include <stdlib.h>

#include "data.h"
#include "origin.h"

int64_t adj_count_right(int64_t n, int64_t classes, const float scores[], const int32_t labels[])
{
    int64_t right = 0;

    for (int64_t i = 0; i < n; i++)
        right += best_class(scores + i * classes, classes) == labels[i];
    return right;
}

typedef struct {
    adj_exec *e;
    const adj_node *images, *logits;
    adj_shape shape; /* of images */
    int64_t classes;
    int32_t *labels;
} evaluation;

/* Runs the batch of the images from first on and counts the right ones. */
static adj_status add_batch(const evaluation *v, const adj_dataset *d, int64_t first,
                            int64_t *right, adj_error *error)
{
    void *x;
    const float *scores;
    adj_status status = adj_set_in_place(v->e, v->images, &x);
    if (status == ADJ_OK && adj_batch(d, NULL, first, v->shape, x, v->labels, error) < 0)
        return error->status;
    if (status == ADJ_OK)
        status = adj_run(v->e);
    if (status == ADJ_OK && (scores = adj_data(v->e, v->logits)) == NULL)
        status = ADJ_EARG;
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%s", adj_exec_message(v->e));
    *right += adj_count_right(v->shape.dim[0], v->classes, scores, v->labels);
    return ADJ_OK;
}

/* True if the types are those of a batch and its scores. */
static int fits(adj_type images, adj_type logits)
{
    return images.dtype == ADJ_F32 && images.shape.rank == 4 && images.shape.dim[0] > 0 &&
           logits.dtype == ADJ_F32 && logits.shape.rank == 2 && logits.shape.dim[1] > 0 &&
           logits.shape.dim[0] == images.shape.dim[0];
}

adj_status adj_evaluate(adj_exec *e, const adj_node *images, const adj_node *logits,
                        const adj_dataset *d, int64_t *right, adj_error *error)
{
    *right = 0;
    if (images == NULL || logits == NULL || !fits(adj_node_type(images), adj_node_type(logits)))
        return adj_error_set(
            error, ADJ_ESHAPE,
            "evaluate: images must be f32 [n, h, w, c] and logits f32 [n, classes]");
    evaluation v = {.e = e,
                    .images = images,
                    .logits = logits,
                    .shape = adj_node_type(images).shape,
                    .classes = adj_node_type(logits).shape.dim[1]};
    v.labels = calloc((size_t)v.shape.dim[0], sizeof *v.labels);

    adj_status status = ADJ_OK;
    adj_error why = {0};
    if (v.labels == NULL)
        status = adj_error_set(error, ADJ_ENOMEM, "evaluate: out of memory");
    for (int64_t first = 0; first < d->n && status == ADJ_OK; first += v.shape.dim[0])
        if ((status = add_batch(&v, d, first, right, &why)) != ADJ_OK)
            adj_error_set(error, status, "evaluate: %.500s", why.message);
    free(v.labels);
    return status;
}
