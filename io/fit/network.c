/* network.c - see network.h. A node that does not exist is NULL, and so is what is built on it: the
 * graph keeps the first error. */
#include <stdlib.h>
#include <string.h>

#include "network.h"

/* ---- nets ---- */

static int64_t or_else(int64_t given, int64_t otherwise) { return given != 0 ? given : otherwise; }

static adj_status complete_model(adj_net *net, adj_error *error)
{
    adj_model_opts o = {.multiplier = net->multiplier};
    const adj_model *model = adj_model_find(net->name, &o);

    if (net->name == NULL)
        return adj_error_set(error, ADJ_EARG,
                             "net: expected a function build or the name of a "
                             "built-in model");
    if (model == NULL) {
        const adj_model *near = adj_model_nearest(net->name);
        return adj_error_set(error, ADJ_EARG, "net: unknown model %.200s%s%s%s", net->name,
                             near != NULL ? " (did you mean " : "", near != NULL ? near->name : "",
                             near != NULL ? "?)" : "");
    }
    net->h = or_else(net->h, or_else(o.height, model->height));
    net->w = or_else(net->w, or_else(o.width, model->width));
    net->c = or_else(net->c, model->channels);
    net->multiplier = o.multiplier;
    return ADJ_OK;
}

adj_status net_complete(adj_net *net, int64_t h, int64_t w, int64_t c, int64_t classes,
                        adj_error *error)
{
    adj_status status = net->build == NULL ? complete_model(net, error) : ADJ_OK;
    if (status != ADJ_OK)
        return status;
    net->h = or_else(net->h, h);
    net->w = or_else(net->w, w);
    net->c = or_else(net->c, c);
    net->classes = or_else(net->classes, classes);
    if (net->classes == 0 && net->build == NULL)
        net->classes = adj_model_find(net->name, NULL)->classes;
    if (net->h < 1 || net->h > ADJ_MAX_SIDE || net->w < 1 || net->w > ADJ_MAX_SIDE || net->c < 1 ||
        net->c > ADJ_MAX_CHANNELS)
        return adj_error_set(error, ADJ_EARG,
                             "net %.80s: size of its images (got %lldx%lldx%lld, expected sides "
                             "of 1 to %d and 1 to %d channels)",
                             net_name(net), (long long)net->h, (long long)net->w, (long long)net->c,
                             ADJ_MAX_SIDE, ADJ_MAX_CHANNELS);
    if (net->classes < 2 || net->classes > ADJ_MAX_CLASSES)
        return adj_error_set(error, ADJ_EARG,
                             "net %.80s: number of classes (got %lld, expected 2 to %d)",
                             net_name(net), (long long)net->classes, ADJ_MAX_CLASSES);
    return ADJ_OK;
}

/* images -> logits, f32 */
static void build_net(network *n, const adj_net *net, int64_t batch, int training,
                      const char *freeze)
{
    if (net->build == NULL) {
        const adj_model_opts o = {.batch = batch,
                                  .height = net->h,
                                  .width = net->w,
                                  .channels = net->c,
                                  .training = training,
                                  .classes = net->classes,
                                  .multiplier = net->multiplier,
                                  .freeze = freeze};
        n->logits = adj_model_logits(n->graph, adj_model_find(net->name, NULL), &o);
        n->images = adj_find(n->graph, "images");
        return;
    }
    n->images =
        adj_input(n->graph, "images", ADJ_F32, (adj_shape){4, {batch, net->h, net->w, net->c}});
    n->logits = net->build(n->images, net->classes, training, net->user);
    if (n->logits != NULL && adj_node_type(n->logits).dtype != ADJ_F32)
        n->logits = adj_cast(n->logits, ADJ_F32);
    n->logits = adj_label(n->logits, "logits");
}

/* What build gave is what was asked for. */
static adj_status check_logits(const network *n, const adj_net *net, int64_t batch,
                               adj_error *error)
{
    adj_status status = adj_graph_status(n->graph);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%s", adj_graph_message(n->graph));
    if (n->logits == NULL || adj_node_graph(n->logits) != n->graph)
        return adj_error_set(error, ADJ_EARG, "net %.80s: build gave no logits", net_name(net));
    adj_shape s = adj_node_type(n->logits).shape;
    if (s.rank == 2 && s.dim[0] == batch && s.dim[1] == net->classes)
        return ADJ_OK;
    return adj_error_set(error, ADJ_ESHAPE,
                         "net %.80s: its logits have another shape (got rank %lld, [%lld, %lld], "
                         "expected [%lld, %lld])",
                         net_name(net), (long long)s.rank, (long long)s.dim[0], (long long)s.dim[1],
                         (long long)batch, (long long)net->classes);
}

/* ---- what is computed with it ---- */

/* The optimiser's updates of what is not frozen. */
static adj_status add_updates(network *n, const training_opts *t, adj_error *error)
{
    adj_optimiser_opts o = *t->optimiser;
    int all = adj_trainable(n->loss, 0, NULL);
    adj_node **trained = calloc((size_t)(all > 0 ? all : 0) + 1, sizeof(adj_node *));
    adj_status status = ADJ_OK;

    o.trained = NULL;
    o.loss_scale = t->scale;
    if (all < 0 || trained == NULL)
        status = adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
    else if (t->freeze != NULL) {
        o.trained = trained;
        o.n_trained = adj_trainable_except(n->loss, t->freeze, all, trained);
        n->frozen = all - o.n_trained;
        if (n->frozen == 0 || o.n_trained == 0)
            status = adj_error_set(error, ADJ_EARG, "freeze %.200s: matches %s parameter",
                                   t->freeze, n->frozen == 0 ? "no" : "every");
    }
    if (status == ADJ_OK) {
        n->lr = adj_input(n->graph, "lr", ADJ_F32, (adj_shape){0});
        n->updates = adj_training_updates(n->loss, n->lr, &o);
    }
    if (t->scale != NULL) {
        n->loss_scale = adj_find(n->graph, "loss_scale");
        n->skipped = adj_find(n->graph, "loss_scale/skipped");
    }
    free(trained);
    return status;
}

static void add_loss(network *n, const training_opts *t)
{
    adj_loss_opts o = {0};
    const adj_shape batch = {1, {n->shape.dim[0]}}, classes = {1, {n->classes}};

    n->labels = adj_input(n->graph, "labels", ADJ_I32, batch);
    if (t != NULL) {
        o.smoothing = t->smoothing;
        if (t->class_weights != NULL)
            o.weights = adj_const(n->graph, ADJ_F32, classes, t->class_weights);
        if (t->mixes) {
            o.other_labels = n->other_labels = adj_input(n->graph, "other_labels", ADJ_I32, batch);
            o.mix = n->mix = adj_input(n->graph, "mix", ADJ_F32, (adj_shape){0});
        }
    }
    n->loss = adj_loss_softmax_with(n->logits, n->labels, &o);
}

static adj_status build(network *n, network_kind kind, const adj_net *net, int64_t batch,
                        const training_opts *t, adj_error *error)
{
    n->graph = adj_graph_new();
    if (n->graph == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
    build_net(n, net, batch, kind == FOR_TRAINING, t != NULL ? t->freeze : NULL);
    adj_status status = check_logits(n, net, batch, error);
    if (status != ADJ_OK)
        return status;
    n->shape = adj_node_type(n->images).shape;
    n->classes = net->classes;
    if (kind == FOR_PREDICTION)
        n->probabilities = adj_softmax(n->logits);
    else
        add_loss(n, t);
    if (kind == FOR_TRAINING && t != NULL && n->loss != NULL)
        status = add_updates(n, t, error);
    if (status == ADJ_OK && (status = adj_graph_status(n->graph)) != ADJ_OK)
        adj_error_set(error, status, "%s", adj_graph_message(n->graph));
    return status;
}

static adj_status make_plan(network *n, network_kind kind, int64_t runs, const plan_opts *p,
                            const training_opts *t, adj_error *error)
{
    adj_node *fetch[] = {n->loss, n->logits};
    adj_exec_opts options = {.n_fetch = 2,
                             .fetch = fetch,
                             .updates = n->updates,
                             .backend = p->backend,
                             .threads = p->threads,
                             .precision = p->precision,
                             .math = p->math,
                             .tune = p->tune,
                             .tune_file = p->tune_file,
                             .tune_seconds = p->tune_seconds,
                             .tune_runs = p->tune_seconds > 0 ? runs : 0,
                             .selection = p->selection,
                             .recompute = t != NULL && t->recompute,
                             .yield = p->yield,
                             .debug.profile = t != NULL && t->profile,
                             .seed = t != NULL ? (uint64_t)t->seed : 0};
    if (t != NULL)
        options.loss_scale = t->scale != NULL ? 1 : t->loss_scale;
    if (kind == FOR_PREDICTION) {
        options.n_fetch = 1;
        fetch[0] = n->probabilities;
    }
    adj_status status = adj_exec_new(n->graph, &options, &n->exec);
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(error, status, "%s", adj_exec_message(n->exec));
}

adj_status network_open(network *n, network_kind kind, const adj_net *net, int64_t batch,
                        int64_t runs, const plan_opts *plan, const training_opts *training,
                        adj_error *error)
{
    *n = (network){0};
    adj_status status = build(n, kind, net, batch, training, error);
    if (status == ADJ_OK)
        status = make_plan(n, kind, runs, plan, training, error);
    if (status != ADJ_OK)
        return status;
    n->scores = calloc((size_t)(batch * n->classes), sizeof *n->scores);
    return n->scores != NULL ? ADJ_OK : adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
}

void network_close(network *n)
{
    free(n->scores);
    adj_exec_free(n->exec);
    adj_graph_free(n->graph);
    *n = (network){0};
}

/* *status stays the first failure. */
static void set_leaf(network *n, const adj_node *leaf, const void *data, adj_status *status)
{
    if (leaf != NULL && *status == ADJ_OK)
        *status = adj_set(n->exec, leaf, data, adj_type_bytes(adj_node_type(leaf)));
}

double network_state(const network *n, const adj_node *state)
{
    const float *value = state != NULL ? adj_data(n->exec, state) : NULL;
    return value != NULL ? (double)*value : 0;
}

adj_status network_run(network *n, const adj_loader_batch *b, double lr, adj_error *error)
{
    const float rate = (float)lr;
    const adj_node *scores = n->probabilities != NULL ? n->probabilities : n->logits;
    adj_status status = ADJ_OK;

    set_leaf(n, n->images, b->x, &status);
    set_leaf(n, n->labels, b->labels, &status);
    set_leaf(n, n->other_labels, b->other_labels, &status);
    set_leaf(n, n->mix, &b->mix, &status);
    set_leaf(n, n->lr, &rate, &status);
    if (status == ADJ_OK)
        status = adj_run(n->exec);
    if (status == ADJ_OK && n->loss != NULL)
        status = adj_get(n->exec, n->loss, &n->loss_now, sizeof n->loss_now);
    if (status == ADJ_OK)
        status = adj_get(n->exec, scores, n->scores,
                         (size_t)(n->shape.dim[0] * n->classes) * sizeof *n->scores);
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(error, status, "%s", adj_exec_message(n->exec));
}
