/* network.c - see network.h. A node that does not exist is NULL, and so are the nodes built on it:
 * the graph keeps the first error. */
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "exec/internal.h"
#include "io/data/origin.h"
#include "ops/nn/model_list.h"
#include "trainer.h"

/* ---- nets ---- */

static adj_status complete_model(adj_net *net, adj_error *error)
{
    adj_model_opts o = {.multiplier = net->options.multiplier};
    const adj_model *model = adj_model_find(net->name, &o);

    if (net->name == NULL)
        return adj_error_set(error, ADJ_EARG,
                             "net: build is NULL and name is not a built-in model");
    if (model == NULL) {
        const adj_model *near = adj_model_nearest(net->name);
        return adj_error_set(error, ADJ_EARG, "net: unknown model %.200s%s%s%s", net->name,
                             near != NULL ? " (did you mean " : "", near != NULL ? near->name : "",
                             near != NULL ? "?)" : "");
    }
    net->options.size = size_or(net->options.size, size_or(o.size, model->defaults.size));
    net->options.multiplier = o.multiplier;
    return ADJ_OK;
}

adj_status net_complete(adj_net *net, adj_image_size size, int64_t classes, adj_error *error)
{
    adj_status status = net->build == NULL ? complete_model(net, error) : ADJ_OK;
    if (status != ADJ_OK)
        return status;
    const adj_image_size s = net->options.size = size_or(net->options.size, size);
    if (net->options.classes == 0)
        net->options.classes = classes;
    if (net->options.classes == 0 && net->build == NULL)
        net->options.classes = adj_model_find(net->name, NULL)->defaults.classes;
    if (!is_net_size(s))
        return adj_error_set(error, ADJ_EARG,
                             "net %.80s: image size is out of range (got %s, expected "
                             "sides of 1 to %d and 1 to %d channels)",
                             net_name(net), full_text(s).s, ADJ_MAX_SIDE, ADJ_MAX_CHANNELS);
    if (net->options.classes < (net->loss != NULL ? 1 : 2) ||
        net->options.classes > ADJ_MAX_CLASSES)
        return adj_error_set(
            error, ADJ_EARG,
            "net %.80s: number of classes is out of range (got %lld, expected 2 to %d)",
            net_name(net), (long long)net->options.classes, ADJ_MAX_CLASSES);
    return ADJ_OK;
}

const char *net_loss_name(const adj_net *net)
{
    static const struct {
        adj_node *(*loss)(adj_node *, adj_node *, const adj_loss_opts *);
        const char *name;
    } known[] = {{NULL, "softmax"},
                 {adj_loss_mse, "mse"},
                 {adj_loss_l1, "l1"},
                 {adj_loss_huber, "huber"},
                 {adj_loss_binary, "binary"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (net->loss == known[i].loss)
            return known[i].name;
    return "own";
}

/* Returns the patterns of parameters that are not trained, or NULL if there are none. */
static const char *frozen_in(const adj_net *net)
{
    const char *patterns = net->options.freeze;
    return patterns != NULL && strcmp(patterns, "none") != 0 ? patterns : NULL;
}

/* images -> logits, f32 */
static void build_net(network *n, const adj_net *net, int64_t batch, int training)
{
    if (net->build == NULL) {
        const adj_model_opts o = {.batch = batch,
                                  .size = net->options.size,
                                  .training = training,
                                  .classes = net->options.classes,
                                  .multiplier = net->options.multiplier,
                                  .freeze = training ? frozen_in(net) : NULL};
        n->logits = adj_model_logits(n->graph, adj_model_find(net->name, NULL), &o);
        n->images = adj_find(n->graph, "images");
        return;
    }
    n->images = adj_input(
        n->graph, "images", ADJ_F32,
        (adj_shape){4, {batch, net->options.size.h, net->options.size.w, net->options.size.c}});
    n->logits = net->build(n->images, net->options.classes, training, net->user);
    if (n->logits != NULL && adj_node_type(n->logits).dtype != ADJ_F32)
        n->logits = adj_cast(n->logits, ADJ_F32);
    n->logits = adj_label(n->logits, "logits");
}

/* Checks type and shape of the logits that build returned. */
static adj_status check_logits(const network *n, const adj_net *net, int64_t batch,
                               adj_error *error)
{
    adj_status status = adj_graph_status(n->graph);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "net %.80s, images of %s: %s", net_name(net),
                             full_text(net->options.size).s, adj_graph_message(n->graph));
    if (n->logits == NULL || adj_node_graph(n->logits) != n->graph)
        return adj_error_set(error, ADJ_EARG, "net %.80s: build returned no logits", net_name(net));
    adj_shape s = adj_node_type(n->logits).shape;
    if (s.rank == 2 && s.dim[0] == batch && s.dim[1] == net->options.classes)
        return ADJ_OK;
    return adj_error_set(error, ADJ_ESHAPE,
                         "net %.80s: its logits have the wrong shape (got rank %lld, [%lld, %lld], "
                         "expected [%lld, %lld])",
                         net_name(net), (long long)s.rank, (long long)s.dim[0], (long long)s.dim[1],
                         (long long)batch, (long long)net->options.classes);
}

/* ---- what is computed with it ---- */

/* Returns the shard's loss, whose mean over all shards is the step's loss; weighted if shards may
 * have different numbers of images. */
static adj_node *shared_loss(network *n, const settings *t)
{
    if (step_shards(t) < 2)
        return n->loss;
    n->share = adj_input(n->graph, "share", ADJ_F32, (adj_shape){1, {1}});
    adj_node *share = adj_reshape(n->share, (adj_shape){0});
    return adj_mul(n->loss, adj_cast(share, adj_node_type(n->loss).dtype));
}

static void share_out(network *n, const settings *t, const adj_ranks *ranks)
{
    adj_data_parallel_opts o = t->o.distributed.parallel;
    o.shards = (int)step_shards(t);
    if (o.shards > 1)
        n->updates = adj_data_parallel(n->updates, ranks_size(ranks), ranks_rank(ranks), &o);
    n->n_shard = adj_shard_count(n->updates);
}

/* Adds the optimizer's updates of parameters that are not frozen. */
static adj_status add_updates(network *n, const adj_net *net, const settings *t, adj_error *error)
{
    const char *freeze = frozen_in(net);
    adj_optimizer_opts o = t->o.optimizer;
    int all = adj_trainable(n->loss, NULL, 0, NULL);
    adj_node **trained = calloc((size_t)(all > 0 ? all : 0) + 1, sizeof(adj_node *));
    adj_status status = ADJ_OK;

    o.trained = NULL;
    o.n_trained = 0;
    o.loss_scale = t->scale_follows ? &t->scale : NULL;
    if (all < 0 || trained == NULL)
        status = adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
    else if (freeze != NULL) {
        o.trained = trained;
        o.n_trained = adj_trainable(n->loss, freeze, all, trained);
        n->frozen = all - o.n_trained;
        if (n->frozen == 0)
            status = adj_error_set(error, ADJ_EARG,
                                   "freeze %.200s: matches no parameter (the first is %.200s)",
                                   freeze, adj_node_name(trained[0]));
        else if (o.n_trained == 0)
            status =
                adj_error_set(error, ADJ_EARG, "freeze %.200s: matches every parameter", freeze);
    }
    if (status == ADJ_OK) {
        n->lr = adj_input(n->graph, "learning_rate", ADJ_F32, (adj_shape){0});
        n->updates = adj_training_updates(shared_loss(n, t), &o);
    }
    if (t->scale_follows) {
        n->loss_scale = adj_find(n->graph, "loss_scale");
        n->skipped = adj_find(n->graph, "loss_scale/skipped");
    }
    free(trained);
    return status;
}

/* Adds the net's own loss of float targets, a scalar in f32. */
static adj_status add_own_loss(network *n, const adj_net *net, adj_error *error)
{
    const adj_shape batch = {2, {n->shape.dim[0], 1}};

    n->targets = adj_input(n->graph, "targets", ADJ_F32, adj_node_type(n->logits).shape);
    n->weights = adj_input(n->graph, "weights", ADJ_F32, batch);
    n->loss = net->loss(n->logits, n->targets, &(adj_loss_opts){.weights = n->weights});
    if (adj_graph_status(n->graph) != ADJ_OK)
        return adj_error_set(error, adj_graph_status(n->graph), "%s", adj_graph_message(n->graph));
    if (n->loss == NULL || adj_node_graph(n->loss) != n->graph)
        return adj_error_set(error, ADJ_EARG, "net %.80s: loss returned no node", net_name(net));
    const adj_type t = adj_node_type(n->loss);
    if (t.shape.rank == 0 && t.dtype == ADJ_F32)
        return ADJ_OK;
    return adj_error_set(error, ADJ_ESHAPE,
                         "net %.80s: loss has the wrong type (got %s of rank %lld, expected an f32 "
                         "scalar)",
                         net_name(net), adj_dtype_name(t.dtype), (long long)t.shape.rank);
}

static void add_loss(network *n, const settings *t)
{
    adj_loss_opts o = {0};
    const adj_shape batch = {1, {n->shape.dim[0]}}, classes = {1, {n->classes}};

    n->labels = adj_input(n->graph, "labels", ADJ_I32, batch);
    if (t != NULL) {
        o.smoothing = t->o.loss.smoothing;
        if (t->o.loss.class_weights != NULL)
            o.weights = adj_const(n->graph, ADJ_F32, classes, t->o.loss.class_weights);
        if (t->o.augment.mixup > 0) {
            o.other_labels = n->other_labels = adj_input(n->graph, "other_labels", ADJ_I32, batch);
            o.mix = n->mix = adj_input(n->graph, "mix", ADJ_F32, (adj_shape){0});
        }
    }
    n->loss = adj_loss_softmax(n->logits, n->labels, &o);
}

/* Fails with a list of the names of nodes, as far as the message has room. */
static adj_status unknown_node(const network *n, const char *name, adj_error *error)
{
    char list[ADJ_MESSAGE - 160] = "";
    int fits = 1;
    for (int id = 0; id < adj_graph_node_count(n->graph) && fits; id++) {
        const adj_node *node = adj_graph_node_at(n->graph, id);
        if (adj_node_name(node)[0] != '\0' && !adj_node_is_param(node) && !adj_node_is_state(node))
            fits = c_append(list, sizeof list, "%s%s", list[0] != '\0' ? ", " : "",
                            adj_node_name(node));
    }
    return adj_error_set(error, ADJ_EARG, "net: no node is named %.80s (expected one of %s%s)",
                         name, list, fits ? "" : " ...");
}

/* Finds the node, or adds the gradient, that a prediction fetches beside the probabilities. */
static adj_status add_inner(network *n, const plan_opts *p, adj_error *error)
{
    if (p->inner != NULL) {
        n->inner = adj_find(n->graph, p->inner);
        if (n->inner == NULL)
            return unknown_node(n, p->inner, error);
    }
    if (p->gradient && n->logits != NULL) {
        n->upstream =
            adj_input(n->graph, "logits/upstream", ADJ_F32, adj_node_type(n->logits).shape);
        (void)adj_grad(n->logits, n->upstream, 1, &n->images, &n->inner);
    }
    if (n->inner != NULL && adj_node_type(n->inner).dtype != ADJ_F32)
        n->inner = adj_cast(n->inner, ADJ_F32);
    return ADJ_OK;
}

static adj_status build(network *n, network_kind kind, const adj_net *net, int64_t batch,
                        const settings *t, const plan_opts *p, adj_error *error)
{
    n->n_shard = 1;
    n->graph = adj_graph_new();
    if (n->graph == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
    build_net(n, net, batch, kind == FOR_TRAINING);
    adj_status status = check_logits(n, net, batch, error);
    if (status != ADJ_OK)
        return status;
    n->shape = adj_node_type(n->images).shape;
    n->classes = net->options.classes;
    if (kind == FOR_PREDICTION) {
        n->probabilities = net->loss == NULL              ? adj_softmax(n->logits)
                           : net->loss == adj_loss_binary ? adj_sigmoid(n->logits)
                                                          : n->logits;
        status = add_inner(n, p, error);
    } else if (net->loss != NULL)
        status = add_own_loss(n, net, error);
    else
        add_loss(n, t);
    if (status == ADJ_OK && kind == FOR_TRAINING && t != NULL && n->loss != NULL) {
        status = add_updates(n, net, t, error);
        if (status == ADJ_OK && n->updates != NULL)
            share_out(n, t, p->ranks);
    }
    if (status == ADJ_OK && (status = adj_graph_status(n->graph)) != ADJ_OK)
        adj_error_set(error, status, "%s", adj_graph_message(n->graph));
    return status;
}

/* Returns the nodes to fetch: losses and logits of all shards, or probabilities; NULL when out of
 * memory. */
static adj_node **list_fetches(const network *n, int *count)
{
    adj_node **fetch = calloc((size_t)n->n_shard * 2, sizeof *fetch);
    int k = 0;
    for (int i = 0; fetch != NULL && i < n->n_shard; i++) {
        if (n->probabilities != NULL) {
            fetch[k++] = n->probabilities;
            if (n->inner != NULL)
                fetch[k++] = n->inner;
            continue;
        }
        fetch[k++] = adj_shard_node(n->updates, n->loss, i);
        fetch[k++] = adj_shard_node(n->updates, n->logits, i);
    }
    *count = k;
    return fetch;
}

adj_status network_failed(const network *n, adj_status status, adj_error *error)
{
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(error, status, "%s", adj_exec_message(n->exec));
}

static adj_status make_plan(network *n, int64_t runs, const plan_opts *p, const settings *t,
                            adj_error *error)
{
    adj_exec_opts options = p->exec;
    options.updates = n->updates;
    const adj_exec_internal internal = {.selection = p->selection,
                                        .tune_runs = options.tune_seconds > 0 ? runs : 0};
    adj_exec_debug debug = {0};
    if (options.debug != NULL)
        debug = *options.debug;
    debug.internal = &internal;
    options.debug = &debug;
    if (p->ranks != NULL)
        options.backends = p->ranks->backends;
    if (t != NULL && t->scale_follows)
        options.loss_scale = 1;
    adj_node **fetch = list_fetches(n, &options.n_fetch);
    if (fetch == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
    options.fetch = fetch;
    adj_status status = adj_exec_new(n->graph, &options, &n->exec);
    free(fetch);
    return network_failed(n, status, error);
}

adj_status network_open(network *n, network_kind kind, const adj_net *net, int64_t batch,
                        int64_t runs, const plan_opts *plan, const settings *training,
                        adj_error *error)
{
    *n = (network){0};
    adj_status status = build(n, kind, net, batch, training, plan, error);
    if (status == ADJ_OK)
        status = make_plan(n, runs, plan, training, error);
    if (status != ADJ_OK)
        return status;
    n->scores = calloc((size_t)(n->n_shard * batch * n->classes), sizeof *n->scores);
    n->losses = calloc((size_t)n->n_shard, sizeof *n->losses);
    n->present = calloc((size_t)batch, sizeof *n->present);
    return n->scores != NULL && n->losses != NULL && n->present != NULL
               ? ADJ_OK
               : adj_error_set(error, ADJ_ENOMEM, "net: out of memory");
}

void network_close(network *n)
{
    free(n->scores);
    free(n->losses);
    free(n->present);
    adj_exec_free(n->exec);
    adj_graph_free(n->graph);
    *n = (network){0};
}

/* Sets a leaf of shard i; *status keeps the first failure. */
static void set_leaf(network *n, adj_node *leaf, int i, const void *data, adj_status *status)
{
    const adj_node *of_shard = leaf != NULL ? adj_shard_node(n->updates, leaf, i) : NULL;
    if (of_shard != NULL && *status == ADJ_OK)
        *status = adj_set(n->exec, of_shard, data, adj_type_bytes(adj_node_type(of_shard)));
}

static void get_value(network *n, adj_node *value, int i, void *data, adj_status *status)
{
    const adj_node *of_shard = adj_shard_node(n->updates, value, i);
    if (*status == ADJ_OK)
        *status = adj_get(n->exec, of_shard, data, adj_type_bytes(adj_node_type(of_shard)));
}

double network_state(const network *n, const adj_node *state)
{
    const float *value = state != NULL ? adj_data(n->exec, state) : NULL;
    return value != NULL ? (double)*value : 0;
}

/* Sets labels or targets of shard i from image first of the batch on. */
static void set_truth(network *n, const adj_loader_batch *b, int64_t first, int i,
                      adj_status *status)
{
    set_leaf(n, n->labels, i, b->labels + first, status);
    if (b->targets == NULL)
        return;
    for (int64_t k = 0; k < n->shape.dim[0]; k++)
        n->present[k] = b->labels[first + k] >= 0 ? 1 : 0;
    set_leaf(n, n->targets, i, b->targets + first * n->classes, status);
    set_leaf(n, n->weights, i, n->present, status);
}

static void set_shard(network *n, const adj_loader_batch *b, const step_inputs *step, int i,
                      adj_status *status)
{
    const int64_t first = i * n->shape.dim[0], elems = adj_shape_elems(n->shape);
    set_leaf(n, n->images, i, b->x + i * elems, status);
    set_truth(n, b, first, i, status);
    set_leaf(n, n->other_labels, i, b->other_labels + first, status);
    set_leaf(n, n->share, i, step->share + i, status);
}

adj_status network_open_batch(network *n, const adj_loader_batch *b, int64_t first, float **images,
                              adj_error *error)
{
    void *x = NULL;
    adj_status status = adj_set_in_place(n->exec, n->images, &x);
    if (b != NULL)
        set_truth(n, b, first, 0, &status);
    *images = x;
    return network_failed(n, status, error);
}

adj_node *network_scores(const network *n)
{
    return n->probabilities != NULL ? n->probabilities : n->logits;
}

adj_status network_read(network *n, adj_status status, adj_error *error)
{
    adj_node *scores = network_scores(n);
    const int64_t n_score = n->shape.dim[0] * n->classes;

    for (int i = 0; i < n->n_shard; i++) {
        if (n->loss != NULL)
            get_value(n, n->loss, i, &n->losses[i], &status);
        get_value(n, scores, i, n->scores + i * n_score, &status);
    }
    return network_failed(n, status, error);
}

adj_status network_run(network *n, const adj_loader_batch *b, const step_inputs *step,
                       adj_error *error)
{
    const float rate = (float)step->lr;
    adj_status status = ADJ_OK;

    for (int i = 0; i < n->n_shard; i++)
        set_shard(n, b, step, i, &status);
    set_leaf(n, n->mix, 0, &b->mix, &status);
    set_leaf(n, n->lr, 0, &rate, &status);
    if (status == ADJ_OK)
        status = adj_run(n->exec);
    return network_read(n, status, error);
}
