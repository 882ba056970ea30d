/* accuracy.h - accuracy of a net before and after its filters are rounded. */
#ifndef CLI_EMIT_ACCURACY_H
#define CLI_EMIT_ACCURACY_H

#include "adjoint_io.h"

typedef struct {
    const char *data;           /* path; NULL: the embedded digits, or nothing for other classes */
    const adj_model_card *card; /* of the weights */
    adj_node *logits;           /* a net for a batch of images, without values */
    adj_exec *values;           /* parameters, which are rounded */
    const adj_updates *trained; /* those that stay f32; NULL: none */
    int out_is_stdout;          /* the line is printed to stderr */
} rounded_net;

/* Prints the accuracy on the test images with the parameters and with rounded ones. CONTINUE, or an
 * exit status after a complaint. */
int say_accuracy(const rounded_net *n);

#endif
