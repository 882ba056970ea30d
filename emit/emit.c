/* emit.c - see adjoint_emit.h. Functions and calls are written into memory first, so that the file
 * is written only if all of it can be, and its declarations contain only what the functions use. */
#include "adjoint_emit.h"

#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "prefix.h"
#include "round.h"

/* Element i of the example. */
static float example_at(int64_t i) { return (float)((i * 7 + 3) % 17) / 8 - 1; }

/* Computes the example's result on the reference backend. */
static adj_status compute_example(file *e, adj_exec *values, adj_node *output, adj_node *input)
{
    adj_exec *r = NULL;
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &output, .backend = "naive"};
    adj_status status = adj_exec_new(adj_exec_graph(values), &o, &r);
    void *to = NULL;
    if (status == ADJ_OK)
        status = adj_copy_params(r, values);
    if (status == ADJ_OK)
        status = adj_set_in_place(r, input, &to);
    for (int64_t i = 0; i < adj_shape_elems(e->input.shape) && status == ADJ_OK; i++)
        ((float *)to)[i] = example_at(i);
    if (status == ADJ_OK)
        status = adj_run(r);
    if (status == ADJ_OK && (e->expected = malloc(adj_type_bytes(e->output))) != NULL)
        status = adj_get(r, output, e->expected, adj_type_bytes(e->output));
    if (status != ADJ_OK)
        adj_error_set(e->u.error, status, "adj_emit: %s", adj_exec_message(r));
    else if (e->expected == NULL)
        status = adj_error_set(e->u.error, ADJ_ENOMEM, "adj_emit: out of memory");
    adj_exec_free(r);
    return status;
}

static adj_status write_net(file *e, adj_exec *values, adj_node *output)
{
    const source s = {.fetch = output, .varying = e->o->updates, .has_images = 1, .values = values};
    program p;
    adj_status status = program_open(&p, &e->u, &s, "output", e->predict.f);
    if (status == ADJ_OK) {
        adj_node *input = program_input(&p, ADJ_F32, 0);
        e->input = adj_node_type(input);
        e->predict_uses_arena = p.uses_arena;
        status = compute_example(e, values, output, input);
    }
    program_close(&p);
    return status;
}

/* Returns the number of classes that the labels of a loss stand for. */
static int64_t classes_of(const adj_graph *g, const adj_node *labels)
{
    for (int id = 0; id < adj_graph_node_count(g); id++) {
        const adj_node *n = adj_graph_node_at(g, id);
        if (n->op == &adj_op_sparse_softmax_cross_entropy && viewed_node(n->in[1]) == labels)
            return n->in[0]->type.shape.dim[1];
    }
    return INT32_MAX;
}

/* Writes a training step, or its first part if there are two. */
static adj_status write_training(file *e, adj_exec *values)
{
    const adj_emit_opts *o = e->o;
    const source s = {.fetch = o->loss,
                      .updates = o->accumulate != NULL ? o->accumulate : o->updates,
                      .varying = o->accumulate != NULL ? o->updates : NULL,
                      .has_images = 1,
                      .has_labels = 1,
                      .has_rate = o->accumulate == NULL,
                      .values = values};
    program p;
    const adj_status status = program_open(&p, &e->u, &s, "loss", e->train.f);
    if (status == ADJ_OK) {
        const adj_node *labels = program_input(&p, ADJ_I32, 0);
        e->labels = adj_node_type(labels);
        e->train_uses_arena = p.uses_arena;
        e->classes = classes_of(adj_node_graph(labels), labels);
    }
    program_close(&p);
    return status;
}

/* Writes the second part of a training step. */
static adj_status write_update(file *e, adj_exec *values)
{
    const source s = {.updates = e->o->updates, .has_rate = 1, .values = values};
    program p;
    const adj_status status = program_open(&p, &e->u, &s, "", e->update.f);
    if (status == ADJ_OK)
        e->update_uses_arena = p.uses_arena;
    program_close(&p);
    return status;
}

static adj_status write_step(file *e, adj_exec *values)
{
    adj_status status = e->o->updates != NULL ? write_training(e, values) : ADJ_OK;
    if (status == ADJ_OK && e->o->accumulate != NULL)
        status = write_update(e, values);
    if (status == ADJ_OK && state_bytes(e) > INT32_MAX)
        return adj_error_set(e->u.error, ADJ_ESHAPE,
                             "adj_emit: parameters have too many bytes (expected at most %d)",
                             INT32_MAX);
    return status;
}

adj_status adj_emit_check_prefix(const char *prefix, adj_error *error)
{
    return prefix == NULL || is_identifier(prefix, ADJ_EMIT_PREFIX)
               ? ADJ_OK
               : adj_error_set(error, ADJ_EARG,
                               "not an identifier (got \"%.60s\", expected a letter, then letters, "
                               "digits and _, at most %d)",
                               prefix, ADJ_EMIT_PREFIX);
}

static adj_status check_arguments(adj_exec *e, const adj_node *output, const adj_emit_opts *o,
                                  FILE *f, adj_error *error)
{
    if (e == NULL || output == NULL || f == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_emit: the %s is NULL",
                             e == NULL        ? "executor"
                             : output == NULL ? "output"
                                              : "file");
    if ((o->updates != NULL) != (o->loss != NULL))
        return adj_error_set(error, ADJ_EARG, "adj_emit: %s without %s",
                             o->loss == NULL ? "updates" : "a loss",
                             o->loss == NULL ? "a loss" : "updates");
    if (o->accumulate != NULL && o->updates == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_emit: accumulate without updates");
    if (o->updates != NULL && adj_updates_count(o->updates) == 0)
        return adj_error_set(error, ADJ_EARG, "adj_emit: the updates assign nothing");
    adj_error why = {0};
    if (adj_emit_check_prefix(o->prefix, &why) != ADJ_OK)
        return adj_error_set(error, ADJ_EARG, "adj_emit: prefix: %s", why.message);
    const adj_type y = adj_node_type(output),
                   loss = o->loss != NULL ? adj_node_type(o->loss) : (adj_type){0};
    if (y.dtype != ADJ_F32 || loss.dtype != ADJ_F32)
        return adj_error_set(error, ADJ_EDTYPE,
                             "adj_emit: output or loss has the wrong type (got %s, expected f32)",
                             adj_dtype_name(y.dtype != ADJ_F32 ? y.dtype : loss.dtype));
    return loss.shape.rank == 0
               ? ADJ_OK
               : adj_error_set(error, ADJ_ESHAPE, "adj_emit: the loss is not a scalar (got %s)",
                               adj_shape_text(loss.shape).s);
}

/* Creates an executor like e in which filters are rounded. */
static adj_status round_values(const adj_exec *e, adj_node *output, const adj_emit_opts *o,
                               adj_exec **rounded, adj_error *error)
{
    const adj_exec_opts opts = {
        .n_fetch = 1, .fetch = &output, .updates = o->updates, .backend = "naive"};
    adj_status status = adj_exec_new(adj_exec_graph(e), &opts, rounded);
    if (status == ADJ_OK)
        status = adj_copy_params(*rounded, e);
    return status == ADJ_OK
               ? adj_emit_round(*rounded, o->updates, error)
               : adj_error_set(error, status, "adj_emit: %s", adj_exec_message(*rounded));
}

static adj_status make_parts(file *e, adj_exec *values, adj_node *output)
{
    const int opened = memory_open(&e->functions) & memory_open(&e->predict) &
                       memory_open(&e->train) & memory_open(&e->update);
    e->u.functions = e->functions.f;
    adj_status status = opened ? write_net(e, values, output) : ADJ_ENOMEM;
    if (status == ADJ_OK)
        status = write_step(e, values);
    const int ended = memory_end(&e->functions) & memory_end(&e->predict) & memory_end(&e->train) &
                      memory_end(&e->update);
    return opened && ended ? status
                           : adj_error_set(e->u.error, ADJ_ENOMEM, "adj_emit: out of memory");
}

adj_status adj_emit(adj_exec *e, adj_node *output, const adj_emit_opts *options, FILE *f,
                    adj_error *error)
{
    static const adj_emit_opts none = {0};
    static const adj_model_card unknown;
    adj_exec *rounded = NULL;
    file all = {.o = options != NULL ? options : &none};
    all.card = all.o->card != NULL ? all.o->card : &unknown;
    adj_status status = check_arguments(e, output, all.o, f, error);
    if (status != ADJ_OK)
        return status;
    snprintf(all.prefix, sizeof all.prefix, "%s", all.o->prefix != NULL ? all.o->prefix : "net");
    for (size_t i = 0; i < sizeof all.capital; i++) { /* in ASCII: in Turkish, i has a dot */
        const char c = all.prefix[i];
        all.capital[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    all.output = adj_node_type(output);
    status = unit_open(&all.u, all.prefix, error);
    all.u.int8_weights = (all.o->flags & ADJ_EMIT_INT8_WEIGHTS) != 0;
    all.u.double_sums = (all.o->flags & ADJ_EMIT_DOUBLE_SUMS) != 0;
    if (status == ADJ_OK && all.u.int8_weights)
        status = round_values(e, output, all.o, &rounded, error);
    if (status == ADJ_OK)
        status = make_parts(&all, rounded != NULL ? rounded : e, output);
    if (status == ADJ_OK)
        status = put_file(&all, f);
    unit_close(&all.u);
    adj_exec_free(rounded);
    free(all.functions.text);
    free(all.predict.text);
    free(all.train.text);
    free(all.update.text);
    free(all.expected);
    return status;
}
