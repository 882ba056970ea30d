/* network.c - see network.h. */
#include <stdlib.h>

#include "augment.h"
#include "cli/command.h"
#include "network.h"

/* The graph up to the loss, and its updates. */
static adj_status build(network *n, const network_opts *o)
{
    const adj_model_opts options = {
        .batch = o->batch, .classes = o->classes, .training = o->optimiser != NULL};
    adj_status status = model_build(&n->m, adj_graph_new(), o->model, &options, o->optimiser);
    if (status != ADJ_OK)
        return status;
    n->shape = adj_node_type(n->m.images).shape;
    n->classes = o->classes;
    n->params = adj_trainable_elems(n->m.loss);
    return ADJ_OK;
}

static adj_status plan(network *n, const network_opts *o)
{
    adj_node *fetch[] = {n->m.loss, n->m.logits};
    adj_exec_opts options = {.n_fetch = 2,
                             .fetch = fetch,
                             .updates = n->m.updates,
                             .backend = o->backend,
                             .threads = (int)o->threads,
                             .precision = o->precision,
                             .math = o->math,
                             .tune = o->tune,
                             .tune_file = o->tune_file,
                             .recompute = o->recompute,
                             .seed = (uint64_t)o->seed,
                             .debug.profile = o->profile};
    adj_status status = adj_exec_new(n->m.graph, &options, &n->exec);
    if (status != ADJ_OK)
        return adj_error_set(&n->m.error, status, "%s", adj_exec_message(n->exec));
    return ADJ_OK;
}

adj_status network_open(network *n, const network_opts *o)
{
    *n = (network){0};
    adj_status status = build(n, o);
    if (status == ADJ_OK)
        status = plan(n, o);
    if (status != ADJ_OK)
        return status;
    n->x = calloc((size_t)adj_shape_elems(n->shape), sizeof *n->x);
    n->y = calloc((size_t)o->batch, sizeof *n->y);
    n->scores = calloc((size_t)(o->batch * n->classes), sizeof *n->scores);
    if (n->x == NULL || n->y == NULL || n->scores == NULL)
        return adj_error_set(&n->m.error, ADJ_ENOMEM, "out of memory");
    return ADJ_OK;
}

void network_close(network *n)
{
    free(n->x);
    free(n->y);
    free(n->scores);
    adj_exec_free(n->exec);
    adj_graph_free(n->m.graph);
}

static void count_batch(const network *n, double loss, int64_t real, tally *t)
{
    t->right += adj_count_right(real, n->classes, n->scores, n->y);
    t->loss += loss * (double)real; /* the loss is a mean over the images that count */
    t->count += real;
}

adj_status network_step(network *n, const adj_dataset *d, int64_t first, const training_step *s,
                        tally *t)
{
    float rate = s != NULL ? (float)s->lr : 0, loss = 0;
    int64_t batch = n->shape.dim[0];
    int64_t real = adj_batch(d, s != NULL ? s->order : NULL, first, n->shape, n->x, n->y);

    if (real < 1)
        return adj_error_set(&n->m.error, ADJ_ESHAPE, "%s cannot be fed images of %lldx%lldx%lld",
                             n->m.model->name, (long long)d->h, (long long)d->w, (long long)d->c);
    if (s != NULL)
        shift_images(n->x, n->shape, s->shift, -d->mean / d->deviation, s->seed,
                     s->drawn + (uint64_t)first);
    adj_status status =
        adj_set(n->exec, n->m.images, n->x, (size_t)adj_shape_elems(n->shape) * sizeof *n->x);
    if (status == ADJ_OK)
        status = adj_set(n->exec, n->m.labels, n->y, (size_t)batch * sizeof *n->y);
    if (status == ADJ_OK && n->m.lr != NULL)
        status = adj_set(n->exec, n->m.lr, &rate, sizeof rate);
    if (status == ADJ_OK)
        status = adj_run(n->exec);
    if (status == ADJ_OK)
        status = adj_get(n->exec, n->m.loss, &loss, sizeof loss);
    if (status == ADJ_OK)
        status = adj_get(n->exec, n->m.logits, n->scores,
                         (size_t)(batch * n->classes) * sizeof *n->scores);
    if (status != ADJ_OK)
        return adj_error_set(&n->m.error, status, "%s", adj_exec_message(n->exec));
    count_batch(n, loss, real, t);
    return ADJ_OK;
}

adj_status network_evaluate(network *n, const adj_dataset *d, tally *t)
{
    adj_status status = ADJ_OK;

    *t = (tally){0};
    for (int64_t first = 0; first < d->n && status == ADJ_OK; first += n->shape.dim[0])
        status = network_step(n, d, first, NULL, t);
    return status;
}

/* ---- data ---- */

enum { DIGITS_SEED = 1 };

int open_data(const char *command, const char *folder, adj_dataset_part part, adj_dataset **d)
{
    adj_status status = folder != NULL ? adj_dataset_mnist(folder, part, d)
                                       : adj_dataset_digits(part, 0, DIGITS_SEED, d);
    if (status == ADJ_OK)
        return CONTINUE;
    return complain(command, EXIT_FAILED, "%s", *d != NULL ? (*d)->message : "out of memory");
}

const char *data_name(const char *folder) { return folder != NULL ? folder : "embedded digits"; }
