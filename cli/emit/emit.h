/* emit.h - options of adjoint emit, and the net that it writes. */
#ifndef CLI_EMIT_H
#define CLI_EMIT_H

#include "adjoint_io.h"

typedef struct {
    const char *weights, *map, *model, *prefix, *out, *freeze, *arena, *weights_type, *sums, *data;
    int64_t batch, train, accumulate, head_only;
} emit_opts;

/* The net and its text. */
typedef struct {
    adj_tensors *tensors;
    adj_model_card *card; /* NULL: no weights file */
    adj_graph *graph;
    adj_node *output, *loss;           /* loss and updates: NULL without --train */
    adj_updates *updates, *accumulate; /* accumulate: the first part of a step, or NULL */
    adj_exec *exec;
    char *text;
    size_t length;
} work;

/* Prints the accuracy on test images with the parameters of w, then with rounded ones; rounds those
 * of w. logits: the net for a batch of images, without values. CONTINUE, or an exit status after a
 * complaint. */
int say_accuracy(const emit_opts *o, const work *w, adj_node *logits);

#endif
