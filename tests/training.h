/* training.h - steps of training a small net, for the tests of plans. */
#ifndef TESTS_TRAINING_H
#define TESTS_TRAINING_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "adjoint_nn.h"
#include "tests/plan.h"

typedef struct {
    adj_graph *g;
    adj_node *images, *labels, *lr, *loss;
    adj_updates *updates;
} training;

static const adj_optimizer_opts with_momentum = {.momentum = 0.9};

/* Training of logits whose graph has an input "images". */
static inline training training_on(adj_node *logits, const adj_optimizer_opts *o)
{
    adj_graph *g = adj_node_graph(logits);
    training t = {.g = g, .images = adj_find(g, "images")};
    t.labels =
        adj_input(g, "labels", ADJ_I32, (adj_shape){1, {adj_node_type(logits).shape.dim[0]}});
    const adj_dtype dtype = adj_node_type(logits).dtype == ADJ_F64 ? ADJ_F64 : ADJ_F32;
    t.lr = adj_input(g, "learning_rate", dtype, (adj_shape){0});
    t.loss = adj_loss_softmax(logits, t.labels, NULL);
    t.updates = adj_training_updates(t.loss, o);
    cr_assert_not_null(t.updates, "%s", adj_graph_message(g));
    return t;
}

/* A built-in model in a graph of its own. */
static inline training training_of(const char *model, adj_model_opts m, const adj_optimizer_opts *o)
{
    m.training = 1;
    return training_on(adj_model_logits(adj_graph_new(), adj_model_find(model, &m), &m), o);
}

static inline void training_free(training *t) { adj_graph_free(t->g); }

/* A batch, another one in each step; a shard's images and labels. */
static inline void training_batch(adj_exec *e, adj_node *images, adj_node *labels, int step)
{
    const size_t n = (size_t)adj_shape_elems(adj_node_type(images).shape);
    const size_t batch = (size_t)adj_node_type(labels).shape.dim[0];
    scoped(release) float *x = malloc(n * sizeof *x);
    scoped(release) int32_t *label = malloc(batch * sizeof *label);
    for (size_t k = 0; k < n; k++)
        x[k] = (float)((k * 7 + k / 31 + (size_t)step) % 31) / 31 - 0.4F;
    for (size_t k = 0; k < batch; k++)
        label[k] = ((int32_t)k + step) * 3 % 2;
    cr_assert_eq(adj_set(e, images, x, n * sizeof *x), ADJ_OK, "%s", adj_exec_message(e));
    cr_assert_eq(adj_set(e, labels, label, batch * sizeof *label), ADJ_OK, "%s",
                 adj_exec_message(e));
}

/* Trains on the batch of this step; returns the loss. */
static inline float training_step(const training *t, adj_exec *e, int step)
{
    const float rate = 0.02F;
    float loss;
    training_batch(e, t->images, t->labels, step);
    cr_assert_eq(adj_set(e, t->lr, &rate, sizeof rate), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    cr_assert_eq(adj_get(e, t->loss, &loss, sizeof loss), ADJ_OK, "%s", adj_exec_message(e));
    return loss;
}

/* Copies all parameters and states to values, which has room for so many bytes; returns how many
 * they are. */
static inline size_t copy_all_params(adj_exec *e, char *values, size_t room)
{
    size_t bytes = 0;
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        const size_t more = adj_type_bytes(adj_node_type(p));
        cr_assert_leq(bytes + more, room);
        cr_assert_eq(adj_get(e, p, values + bytes, more), ADJ_OK, "%s", adj_exec_message(e));
        bytes += more;
    }
    return bytes;
}

#endif
