/* optim.c - optimizers: gradients, states and next values of a loss's trainable parameters.
 *
 * An optimizer adds nodes and assigns nothing; an executor commits {leaf := next} after the run.
 * The learning rate is an input of the graph, so a schedule costs no replanning. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"
#include "nn.h"
#include "ops/grad.h"

/* ---- next values of one parameter p with gradient dp ---- */

typedef struct {
    adj_optimizer_opts o; /* with defaults filled in */
    adj_node *lr, *t;     /* t: Adam's next step */
    adj_updates *updates;
    nn_loss_scale scaling; /* scaling.scale is NULL if there is none */
} optimizer;

/* Adds the update {leaf := next}, unless the step is skipped. */
static void assign(const optimizer *s, adj_node *leaf, adj_node *next)
{
    if (s->scaling.finite != NULL)
        next = adj_select(s->scaling.finite, next, leaf);
    adj_updates_add(s->updates, leaf, next);
}

/* Returns a state for p, of p's type, initially zero. */
static adj_node *state_of(adj_node *p, const char *part)
{
    adj_type t = adj_node_type(p);
    nn_name name = nn_join(adj_node_graph(p), adj_node_name(p), part);

    return name.s[0] != 0 ? nn_state(adj_node_graph(p), name.s, t.dtype, t.shape, 0) : NULL;
}

/* Returns the first group that matches the parameter, or NULL if none does. */
static const adj_param_group *group_of(const adj_optimizer_opts *o, const adj_node *p)
{
    for (int i = 0; i < o->n_groups; i++)
        if (adj_name_matches(o->groups[i].pattern, adj_node_name(p)))
            return &o->groups[i];
    return NULL;
}

/* Returns the weight decay of p. */
static double decay_of(const optimizer *s, const adj_node *p)
{
    const adj_param_group *group = group_of(&s->o, p);
    return group != NULL ? group->weight_decay : s->o.weight_decay;
}

/* Returns the learning rate of p in p's type. */
static adj_node *rate_of(const optimizer *s, const adj_node *p)
{
    const adj_param_group *group = group_of(&s->o, p);
    const double factor = group != NULL ? nn_or_default(group->rate, 1) : 1;
    return adj_in_dtype(factor != 1 ? adj_scale(s->lr, factor) : s->lr, adj_node_type(p).dtype);
}

/* v' = mu v + dp + decay p;  p' = p - lr v', or with nesterov p - lr (dp + decay p + mu v'). */
static void step_sgd(const optimizer *s, adj_node *p, adj_node *dp, adj_node *lr)
{
    double mu = s->o.momentum, decay = decay_of(s, p);

    if (mu == 0) {
        assign(s, p, adj_sgd_step(p, dp, lr, decay));
        return;
    }
    adj_node *v = state_of(p, "momentum");
    adj_node *next = adj_momentum(v, dp, p, mu, decay);
    adj_node *direction = s->o.nesterov ? adj_momentum(next, dp, p, mu, decay) : next;
    assign(s, v, next);
    assign(s, p, adj_sgd_step(p, direction, lr, 0));
}

/* Updates m' and v', moving averages of the gradient and of its square. */
static void step_adam(const optimizer *s, adj_node *p, adj_node *dp, adj_node *lr)
{
    const double decay = decay_of(s, p);
    adj_adam_attrs a = {.beta1 = s->o.beta1, .beta2 = s->o.beta2, .epsilon = s->o.epsilon};

    if (s->o.kind == ADJ_ADAMW)
        a.decay = decay;
    else if (decay != 0)
        dp = adj_add(dp, adj_scale(p, decay));
    adj_node *m = state_of(p, "adam_m"), *v = state_of(p, "adam_v");
    adj_node *next_m = adj_ema(m, dp, a.beta1), *next_v = adj_ema(v, adj_square(dp), a.beta2);
    assign(s, m, next_m);
    assign(s, v, next_v);
    assign(s, p, adj_adam_step(p, next_m, next_v, s->t, lr, &a));
}

/* Updates v', a moving average of the gradient's square; the direction is dp / (sqrt(v') +
 * epsilon), to which momentum may be applied. */
static void step_rmsprop(const optimizer *s, adj_node *p, adj_node *dp, adj_node *lr)
{
    const double decay = decay_of(s, p);

    if (decay != 0)
        dp = adj_add(dp, adj_scale(p, decay));
    adj_node *v = state_of(p, "rmsprop_v");
    adj_node *next_v = adj_ema(v, adj_square(dp), s->o.beta2);
    adj_node *epsilon = adj_scalar_like(p, s->o.epsilon);
    adj_node *direction = adj_div(dp, adj_add(adj_sqrt(next_v), epsilon));
    assign(s, v, next_v);
    if (s->o.momentum != 0) {
        adj_node *m = state_of(p, "momentum");
        direction = adj_momentum(m, direction, p, s->o.momentum, 0);
        assign(s, m, direction);
    }
    assign(s, p, adj_sgd_step(p, direction, lr, 0));
}

/* ---- the whole step ---- */

/* dx[i] *= clip / max(norm, clip), norm being the global norm of all gradients. The factor is 1
 * if the norm is at most clip, and finite if the norm is 0. */
static void clip(int n, adj_node *dx[], double clip_norm)
{
    adj_node *sum = NULL;

    if (n == 0)
        return;
    adj_dtype dtype = nn_kept_dtype(adj_node_type(dx[0]).dtype);
    for (int i = 0; i < n; i++) {
        adj_node *squares =
            adj_reduce_sum(adj_square(adj_in_dtype(dx[i], dtype)), (adj_axes){.n = ADJ_ALL});
        sum = sum == NULL ? squares : adj_add(sum, squares);
    }
    adj_node *limit = adj_scalar_like(sum, clip_norm);
    adj_node *norm = adj_label(adj_sqrt(sum), "gradient_norm");
    adj_node *factor = adj_div(limit, adj_maximum(norm, limit));
    for (int i = 0; i < n; i++)
        dx[i] = adj_mul(dx[i], adj_in_dtype(factor, adj_node_type(dx[i]).dtype));
}

static void add_steps(optimizer *s, adj_graph *g, int n, adj_node *const params[], adj_node *dx[])
{
    if (s->scaling.scale != NULL)
        nn_unscale(&s->scaling, n, dx);
    if (s->o.clip_norm > 0)
        clip(n, dx, s->o.clip_norm);
    if (s->o.kind == ADJ_ADAM || s->o.kind == ADJ_ADAMW) {
        adj_node *step = nn_state(g, "adam/step", ADJ_I32, (adj_shape){0}, 0);
        s->t = adj_next_step(step);
        assign(s, step, s->t);
    }
    for (int i = 0; i < n && adj_graph_status(g) == ADJ_OK; i++) {
        adj_node *lr = rate_of(s, params[i]);
        if (s->o.kind == ADJ_SGD)
            step_sgd(s, params[i], dx[i], lr);
        else if (s->o.kind == ADJ_RMSPROP)
            step_rmsprop(s, params[i], dx[i], lr);
        else
            step_adam(s, params[i], dx[i], lr);
    }
    if (s->scaling.scale != NULL)
        nn_update_loss_scale(&s->scaling, s->updates);
}

/* Fails if a group matches no parameter: with a misspelled pattern, parameters would silently
 * get other settings. */
static adj_status match_groups(adj_graph *g, const adj_optimizer_opts *o, int n,
                               adj_node *const params[])
{
    for (int i = 0; i < o->n_groups; i++) {
        int found = 0;
        for (int k = 0; k < n && !found; k++)
            found = adj_name_matches(o->groups[i].pattern, adj_node_name(params[k]));
        if (!found)
            return adj_fail(g, ADJ_EARG,
                            "adj_optimizer: groups[%d] matches no trained parameter (got pattern "
                            "\"%s\")",
                            i, o->groups[i].pattern);
    }
    return ADJ_OK;
}

/* Moves the parameters that the options train to the front of the n; returns how many. -1: the
 * graph has the error. */
static int keep_trained(adj_graph *g, const adj_optimizer_opts *o, int n, adj_node *params[])
{
    int kept = 0;

    if (o->trained == NULL)
        return n;
    for (int i = 0; i < o->n_trained; i++)
        if (o->trained[i] == NULL || adj_node_graph(o->trained[i]) != g ||
            !adj_node_is_param(o->trained[i])) {
            adj_fail(g, ADJ_EARG, "adj_optimizer: trained[%d] is not a parameter of the graph", i);
            return -1;
        }
    for (int i = 0; i < n; i++)
        if (adj_position(o->n_trained, (const adj_node *const *)o->trained, params[i]) >= 0)
            params[kept++] = params[i];
    return kept;
}

/* Sets dx[i] = d loss / d params[i], times the loss scale if there is one. */
static adj_status add_gradients(optimizer *s, adj_node *loss, int n, adj_node *const params[],
                                adj_node *dx[])
{
    adj_dtype dtype = adj_node_type(loss).dtype;
    adj_node *seed = NULL;

    if (s->o.loss_scale != NULL && n > 0) {
        s->scaling = nn_loss_scale_new(adj_node_graph(loss), nn_kept_dtype(dtype), s->o.loss_scale);
        seed = adj_in_dtype(s->scaling.scale, dtype);
    }
    return adj_grad(loss, seed, n, params, dx);
}

/* Returns the graph's learning rate, created if it is missing: f64 for an f64 loss. */
static adj_node *learning_rate(adj_node *loss, const adj_optimizer_opts *o)
{
    adj_graph *g = adj_node_graph(loss);
    adj_node *lr = adj_find(g, NN_LEARNING_RATE);
    const double usual = o->kind == ADJ_SGD ? 0.01 : 0.001;

    if (lr == NULL)
        return adj_scalar_input(g, NN_LEARNING_RATE, nn_kept_dtype(adj_node_type(loss).dtype),
                                nn_or_default(o->lr, usual));
    if (adj_node_type(lr).shape.rank != 0 || adj_node_type(lr).dtype == ADJ_I32) {
        adj_fail(g, ADJ_ESHAPE,
                 "adj_optimizer: the node \"" NN_LEARNING_RATE
                 "\" is not a scalar of a float type (got %s of rank %lld)",
                 adj_dtype_name(adj_node_type(lr).dtype), (long long)adj_node_type(lr).shape.rank);
        return NULL;
    }
    return lr;
}

static adj_optimizer_kind kind_of(const adj_optimizer_opts *o)
{
    return o->kind == ADJ_OPTIMIZER_DEFAULT ? ADJ_SGD : o->kind;
}

adj_updates *adj_optimizer(adj_node *loss, const adj_optimizer_opts *options)
{
    optimizer s = {0};
    int n;

    if (loss == NULL)
        return NULL;
    adj_graph *g = adj_node_graph(loss);
    if (options != NULL)
        s.o = *options;
    s.o.kind = kind_of(&s.o);
    if (nn_check_optimizer(g, &s.o) != ADJ_OK || (s.lr = learning_rate(loss, &s.o)) == NULL ||
        (s.updates = adj_updates_new(g)) == NULL)
        return NULL;
    s.o.beta1 = nn_or_default(s.o.beta1, 0.9);
    s.o.beta2 = nn_or_default(s.o.beta2, s.o.kind == ADJ_RMSPROP ? 0.99 : 0.999);
    s.o.epsilon = nn_or_default(s.o.epsilon, 1e-8);

    adj_node **params = nn_trainable(loss, &n);
    adj_node **dx = n >= 0 ? malloc((size_t)(n + 1) * sizeof(adj_node *)) : NULL;
    if (dx == NULL)
        adj_fail(g, ADJ_ENOMEM, "adj_optimizer: out of memory");
    else if ((n = keep_trained(g, &s.o, n, params)) >= 0 &&
             match_groups(g, &s.o, n, params) == ADJ_OK &&
             add_gradients(&s, loss, n, params, dx) == ADJ_OK) {
        adj_role role = adj_graph_set_role(g, ADJ_ROLE_UPDATE);
        add_steps(&s, g, n, params, dx);
        adj_graph_set_role(g, role);
    }
    free(dx);
    free(params);
    return adj_graph_status(g) == ADJ_OK ? s.updates : NULL;
}

adj_updates *adj_sgd(adj_node *loss, double lr)
{
    return adj_optimizer(loss, &(adj_optimizer_opts){.lr = lr});
}

adj_updates *adj_adam(adj_node *loss, double lr)
{
    return adj_optimizer(loss, &(adj_optimizer_opts){.kind = ADJ_ADAM, .lr = lr});
}

adj_updates *adj_adamw(adj_node *loss, double lr)
{
    return adj_optimizer(loss,
                         &(adj_optimizer_opts){.kind = ADJ_ADAMW, .lr = lr, .weight_decay = 0.01});
}

adj_updates *adj_training_updates(adj_node *loss, const adj_optimizer_opts *options)
{
    adj_updates *trained = adj_optimizer(loss, options);

    if (trained == NULL)
        return NULL;
    return adj_updates_join(adj_node_graph(loss), trained, nn_layer_updates(loss, options));
}

adj_status adj_set_lr(adj_exec *e, double lr)
{
    const adj_graph *g = adj_exec_graph(e);
    const adj_node *leaf = g != NULL ? adj_find(g, NN_LEARNING_RATE) : NULL;
    if (leaf == NULL)
        return adj_exec_fail(e, ADJ_EARG,
                             "adj_set_lr: the graph has no node \"" NN_LEARNING_RATE
                             "\" (expected the input of an optimizer)");
    if (!(lr >= 0 && lr <= FLT_MAX))
        return adj_exec_fail(e, ADJ_EARG,
                             "adj_set_lr: lr is out of range (got %g, expected 0 to FLT_MAX)", lr);

    const float narrow = (float)lr;
    if (adj_node_type(leaf).dtype == ADJ_F64)
        return adj_set(e, leaf, &lr, sizeof lr);
    return adj_set(e, leaf, &narrow, sizeof narrow);
}

/* ---- by name ---- */

typedef struct {
    const char *name;
    adj_optimizer_opts opts;
} named_optimizer;

static const named_optimizer named[] = {
    {"sgd", {.kind = ADJ_SGD}},
    {"momentum", {.kind = ADJ_SGD, .momentum = 0.9}},
    {"nesterov", {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1}},
    {"rmsprop", {.kind = ADJ_RMSPROP}},
    {"adam", {.kind = ADJ_ADAM}},
    {"adamw", {.kind = ADJ_ADAMW, .weight_decay = 0.01}},
};
enum { N_NAMED = sizeof named / sizeof *named };

const char *adj_optimizer_name_at(int i) { return i >= 0 && i < N_NAMED ? named[i].name : NULL; }

const char *adj_optimizer_name(const adj_optimizer_opts *options)
{
    for (int i = 0; options != NULL && i < N_NAMED; i++) {
        const adj_optimizer_opts *o = &named[i].opts;
        if (o->kind == kind_of(options) && o->momentum == options->momentum &&
            !o->nesterov == !options->nesterov)
            return named[i].name;
    }
    return NULL;
}

adj_status adj_optimizer_from_name(const char *name, adj_optimizer_opts *options)
{
    for (int i = 0; name != NULL && options != NULL && i < N_NAMED; i++) {
        if (strcmp(name, named[i].name) == 0) {
            *options = named[i].opts;
            return ADJ_OK;
        }
    }
    return ADJ_EARG;
}
