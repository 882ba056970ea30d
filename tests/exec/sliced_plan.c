/* sliced_plan.c - see sliced_plan.h. */
#include "tests/exec/sliced_plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"

void plan_as_usual(void)
{
    unsetenv("ADJOINT_PLAN");
    unsetenv("ADJOINT_TUNE");
}

/* ---- a training step with batch norms ---- */

training_net new_net(const char *model, int64_t batch, adj_format format)
{
    training_net n = {.g = adj_graph_new()};
    const adj_model_opts options = {.batch = batch, .training = 1, .format = format};
    adj_node *logits = adj_model_logits(n.g, adj_model_find(model, NULL), &options);
    n.labels = adj_input(n.g, "labels", ADJ_I32, (adj_shape){1, {batch}});
    n.loss = adj_loss_softmax(logits, n.labels);
    adj_node *lr = adj_input(n.g, "lr", ADJ_F32, (adj_shape){0}), *filter = NULL;
    for (int i = 0; filter == NULL && i < adj_graph_node_count(n.g); i++)
        if (adj_node_is_param(adj_graph_node_at(n.g, i)))
            filter = adj_graph_node_at(n.g, i);
    adj_grad(n.loss, NULL, 1, &filter, &n.gradient);
    n.updates = adj_training_updates(n.loss, lr, NULL);
    cr_assert_eq(adj_graph_status(n.g), ADJ_OK, "%s", adj_graph_message(n.g));
    return n;
}

adj_exec *plan_net(training_net *n, adj_exec_opts o)
{
    adj_node *const fetch[] = {n->loss, n->gradient};
    adj_exec *e;
    o.n_fetch = 2;
    o.fetch = fetch;
    o.updates = n->updates;
    cr_assert_eq(adj_exec_new(n->g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    const adj_node *images = adj_find(n->g, "images");
    const size_t bytes = adj_type_bytes(adj_node_type(images));
    float *x = malloc(bytes);
    for (size_t i = 0; i < bytes / sizeof *x; i++)
        x[i] = (float)(i * 2654435761U >> 7 & 1023) / 512 - 1;
    const int64_t batch = adj_node_type(n->labels).shape.dim[0];
    int32_t *label = malloc((size_t)batch * sizeof *label);
    for (int64_t i = 0; i < batch; i++)
        label[i] = (int32_t)(i % 2);
    adj_set(e, images, x, bytes);
    adj_set(e, n->labels, label, (size_t)batch * sizeof *label);
    adj_set(e, adj_find(n->g, "lr"), &(float){0.05F}, sizeof(float));
    free(x);
    free(label);
    return e;
}

float *results_after(adj_exec *e, const training_net *n, int steps, int64_t *count)
{
    *count = 1 + adj_shape_elems(adj_node_type(n->gradient).shape);
    float *v = malloc((size_t)*count * sizeof *v);
    for (int i = 0; i < steps; i++)
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    cr_assert_eq(adj_get(e, n->loss, v, sizeof *v), ADJ_OK);
    cr_assert_eq(adj_get(e, n->gradient, v + 1, (size_t)(*count - 1) * sizeof *v), ADJ_OK);
    return v;
}

int sliced_steps(const adj_exec *e)
{
    int n = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        n += strcmp(adj_exec_step_at(e, i).backend, "slices") == 0;
    return n;
}

/* ---- a node of a fixture ---- */

int planned_values(fixture *f, adj_node *y, adj_exec_opts o, double *v)
{
    adj_exec *e;
    o.n_fetch = 1;
    o.fetch = &y;
    cr_assert_eq(adj_exec_new(f->g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    const int steps = sliced_steps(e);
    cr_expect_eq(adj_exec_stats(e).sliced, steps);
    for (int i = 0; i < f->n_in && v != NULL; i++) {
        const adj_type t = adj_node_type(f->in[i]);
        char *bytes = malloc(adj_type_bytes(t));
        adj_convert(ADJ_F64, f->value[i], t.dtype, bytes, adj_shape_elems(t.shape));
        adj_set(e, f->in[i], bytes, adj_type_bytes(t));
        free(bytes);
    }
    if (v != NULL) {
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
        const adj_type t = adj_node_type(y);
        char *bytes = malloc(adj_type_bytes(t));
        adj_get(e, y, bytes, adj_type_bytes(t));
        adj_convert(t.dtype, bytes, ADJ_F64, v, adj_shape_elems(t.shape));
        free(bytes);
    }
    adj_exec_free(e);
    return steps;
}

int values_of(fixture *f, adj_node *y, adj_exec_opts o, double v[MAX_VALUES])
{
    o.threads = 2;
    return planned_values(f, y, o, v);
}
