/* accuracy.c - accuracy of a net before and after its filters are rounded. */
#include "emit.h"

#include "adjoint_data.h"
#include "cli/command.h"
#include "cli/standard.h"
#include "cli/train/data.h"
#include "emit/tool.h"

/* Sets size and classes of the card to those of the net. Returns 0 if it is not a classifier of
 * images. */
static int complete_card(const adj_node *images, const adj_node *logits, adj_model_card *card)
{
    if (images == NULL)
        return 0;
    const adj_shape x = adj_node_type(images).shape, y = adj_node_type(logits).shape;
    if (x.rank != 4 || y.rank != 2)
        return 0;
    card->options.size.h = x.dim[1];
    card->options.size.w = x.dim[2];
    card->options.size.c = x.dim[3];
    card->options.classes = y.dim[1];
    return 1;
}

/* Counts the images of all parts that are classified correctly with the parameters. */
static adj_status count_right(adj_exec *e, const adj_exec *values, const adj_node *images,
                              const adj_node *logits, const eval_data *data, int64_t *right,
                              adj_error *error)
{
    adj_status status = adj_copy_params(e, values);
    *right = 0;
    if (status != ADJ_OK)
        return adj_error_set(error, status, "%s", adj_exec_message(e));
    for (int i = 0; i < data->n && status == ADJ_OK; i++) {
        int64_t n;
        status = adj_evaluate(e, images, logits, data->data[i], &n, error);
        *right += n;
    }
    return status;
}

static int evaluate(const emit_opts *opts, const work *w, const adj_node *images, adj_node *logits,
                    const eval_data *data)
{
    adj_error error = {0};
    adj_exec *e = NULL;
    int64_t right[2] = {0}, count = 0;
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &logits};
    adj_status status = adj_exec_new(adj_node_graph(logits), &o, &e);
    if (status != ADJ_OK)
        adj_error_set(&error, status, "%s", adj_exec_message(e));
    for (int i = 0; i < data->n; i++)
        count += data->data[i]->n;
    if (status == ADJ_OK)
        status = count_right(e, w->exec, images, logits, data, &right[0], &error);
    if (status == ADJ_OK)
        status = adj_emit_round(w->exec, w->updates, &error);
    if (status == ADJ_OK)
        status = count_right(e, w->exec, images, logits, data, &right[1], &error);
    adj_exec_free(e);
    if (status != ADJ_OK)
        return complain(EXIT_FAILED, "--data: %s", error.message);
    char line[256];
    snprintf(line, sizeof line,
             "accuracy on %.100s: %.2f %% in f32, %.2f %% with int8 weights (%lld and %lld of "
             "%lld)",
             data_name(opts->data), 100 * (double)right[0] / (double)count,
             100 * (double)right[1] / (double)count, (long long)right[0], (long long)right[1],
             (long long)count);
    if (is_stdout(opts->out))
        complain(EXIT_OK, "note: %s", line);
    else
        say("%s", line);
    return CONTINUE;
}

int say_accuracy(const emit_opts *opts, const work *w, adj_node *logits)
{
    adj_model_card card = *w->card;
    data_opts o = data_defaults;
    eval_data data = {0};
    const adj_node *images = adj_find(adj_node_graph(logits), "images");
    const int is_classifier = complete_card(images, logits, &card);
    o.path = opts->data;
    if (o.path == NULL && (!is_classifier || !knows_digits(&card)))
        return CONTINUE;
    if (!is_classifier)
        return complain(EXIT_FAILED, "--data: the net is not a classifier of images");
    int status = open_parts(&o, NULL, &card, &data);
    const int is_unscaled = !(card.deviation[0] > 0);
    for (int i = 0; i < data.n && status == CONTINUE && is_unscaled; i++)
        for (int c = 0; c < ADJ_MAX_CHANNELS; c++) {
            data.data[i]->mean[c] = 0;
            data.data[i]->deviation[c] = 1;
        }
    if (status == CONTINUE)
        status = evaluate(opts, w, images, logits, &data);
    close_parts(&data);
    return status;
}
