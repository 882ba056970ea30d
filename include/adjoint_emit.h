/* adjoint_emit.h - networks as one file of C99: for microcontrollers, firmware and other programs
 * that cannot have the library.
 *
 * The file needs <math.h> and <stdint.h> alone: no allocation, no recursion, no double. It has a
 * function for each step of a plan, with the plan's order, in-place results and offsets in one
 * static arena. A library of its own (libadjoint_emit). */
#ifndef ADJOINT_EMIT_H
#define ADJOINT_EMIT_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ADJ_EMIT_PREFIX = 40 }; /* most characters of a prefix */

/* Options of adj_emit. All zero is the default. */
typedef struct {
    /* First part of the names of functions and constants that other files see: a letter, then
     * letters, digits and underscores. NULL: "net". */
    const char *prefix;
    const char *model; /* name of the network, for the comment at the top; NULL: none */
    /* n_channels numbers each: (pixel - mean) / deviation is the input, for pixels of 0 to 255.
     * They become constants, and PREFIX_normalize converts pixels. NULL: none. */
    const double *mean, *deviation;
    int n_channels; /* channels of mean and deviation */
    /* Names of the n_classes classes, which become constants. NULL: none. */
    const char *const *class_names;
    int64_t n_classes; /* number of class names */
} adj_emit_opts;

/* Writes the function int PREFIX_predict(const float *input, float *output) that computes output
 * from the one input that it depends on, for inference, with the parameters and states of e, an
 * executor of output's graph that holds them. Images are [n, h, w, c] in the order of the graph.
 * ADJ_ENOKERNEL, with the node's name and the reason, for what no C is written for; then nothing is
 * written. The same graph and values give the same bytes. options may be NULL. */
ADJ_API adj_status adj_emit(adj_exec *e, adj_node *output, const adj_emit_opts *options, FILE *f,
                            adj_error *error);

#ifdef __cplusplus
}
#endif
#endif
