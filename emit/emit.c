/* emit.c - see adjoint_emit.h. Functions and calls are written into memory first, so that the file
 * is written only if all of it can be, and its declarations contain only what the functions use. */
#include "adjoint_emit.h"

#include <stdlib.h>

#include "program.h"
#include "tool.h"

/* Creates an executor on the reference backend with the parameters of another one. */
static adj_status copy_exec(const adj_exec *values, adj_node *output, const adj_updates *updates,
                            adj_exec **copy, adj_error *error)
{
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &output, .updates = updates, .backend = "naive"};
    adj_status status = adj_exec_new(adj_exec_graph(values), &o, copy);
    if (status == ADJ_OK)
        status = adj_copy_params(*copy, values);
    return status == ADJ_OK ? ADJ_OK
                            : adj_error_set(error, status, "adj_emit: %s", adj_exec_message(*copy));
}

/* Computes the example's result. */
static adj_status compute_example(file *e, const adj_exec *values, adj_node *output,
                                  const adj_node *input)
{
    adj_exec *r = NULL;
    adj_status status = copy_exec(values, output, NULL, &r, e->u.error);
    void *to = NULL;
    if (status == ADJ_OK && (e->expected = malloc(adj_type_bytes(e->output))) == NULL)
        status = adj_error_set(e->u.error, ADJ_ENOMEM, "adj_emit: out of memory");
    if (status == ADJ_OK) {
        status = adj_set_in_place(r, input, &to);
        for (int64_t i = 0; i < adj_shape_elems(e->input.shape) && status == ADJ_OK; i++)
            ((float *)to)[i] = (float)((i * 7 + 3) % 17) / 8 - 1; /* as NAME_test has it */
        if (status == ADJ_OK)
            status = adj_run(r);
        if (status == ADJ_OK)
            status = adj_get(r, output, e->expected, adj_type_bytes(e->output));
        if (status != ADJ_OK)
            adj_error_set(e->u.error, status, "adj_emit: %s", adj_exec_message(r));
    }
    adj_exec_free(r);
    return status;
}

/* Writes a program's calls and functions, and sets its images and labels. */
static adj_status write_part(file *e, part *to, const source *s, const char *result,
                             adj_node **images, adj_node **labels)
{
    program p;
    const adj_status status = program_open(&p, &e->u, s, result, to->calls.f);
    if (status == ADJ_OK) {
        to->uses_arena = p.uses_arena;
        *images = program_input(&p, ADJ_F32, 0);
        *labels = program_input(&p, ADJ_I32, 0);
    }
    program_close(&p);
    return status;
}

static adj_status write_net(file *e, adj_exec *values, adj_node *output)
{
    const source s = {.fetch = output, .varying = e->o->updates, .has_images = 1, .values = values};
    adj_node *images, *labels;
    const adj_status status = write_part(e, &e->predict, &s, "output", &images, &labels);
    if (status != ADJ_OK)
        return status;
    e->input = adj_node_type(images);
    return compute_example(e, values, output, images);
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

/* Writes a training step, in two parts if the updates are. */
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
    const source second = {.updates = o->updates, .has_rate = 1, .values = values};
    adj_node *images, *labels;
    adj_status status = write_part(e, &e->train, &s, "loss", &images, &labels);
    if (status == ADJ_OK) {
        e->labels = adj_node_type(labels);
        e->classes = classes_of(adj_node_graph(labels), labels);
    }
    if (status == ADJ_OK && o->accumulate != NULL)
        status = write_part(e, &e->update, &second, "", &images, &labels);
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

enum { TEXTS = 4 };

static adj_status make_parts(file *e, adj_exec *values, adj_node *output, memory *const text[TEXTS])
{
    int opened = 1, ended = 1;
    for (int i = 0; i < TEXTS; i++)
        opened &= memory_open(text[i]);
    e->u.functions = e->functions.f;
    adj_status status = opened ? write_net(e, values, output) : ADJ_ENOMEM;
    if (status == ADJ_OK && e->o->updates != NULL)
        status = write_training(e, values);
    for (int i = 0; i < TEXTS; i++)
        ended &= memory_end(text[i]);
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
    memory *const text[TEXTS] = {&all.functions, &all.predict.calls, &all.train.calls,
                                 &all.update.calls};
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
    if (status == ADJ_OK && all.u.int8_weights) {
        status = copy_exec(e, output, all.o->updates, &rounded, error);
        if (status == ADJ_OK)
            status = adj_emit_round(rounded, all.o->updates, error);
    }
    if (status == ADJ_OK)
        status = make_parts(&all, rounded != NULL ? rounded : e, output, text);
    if (status == ADJ_OK)
        status = put_file(&all, f);
    unit_close(&all.u);
    adj_exec_free(rounded);
    for (int i = 0; i < TEXTS; i++)
        free(text[i]->text);
    free(all.expected);
    return status;
}
