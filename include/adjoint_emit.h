/* adjoint_emit.h - networks as one file of C99: for microcontrollers, firmware and other programs
 * without the library.
 *
 * The file needs <math.h> and <stdint.h> alone: no allocation, no recursion. It has a
 * function for each step of a plan, with the plan's order, in-place results and offsets in one
 * static arena. A library of its own (libadjoint_emit). */
#ifndef ADJOINT_EMIT_H
#define ADJOINT_EMIT_H

#include "adjoint_io.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ADJ_EMIT_PREFIX = 40 }; /* maximum length of a prefix */

/* Flags of adj_emit. */
enum {
    /* The caller gives the arena, PREFIX_ARENA_BYTES aligned as a float, as the last argument of
     * PREFIX_predict and PREFIX_train_step. Its content matters only during a call. */
    ADJ_EMIT_CALLER_ARENA = 1,
    /* Filters of convolutions and matrices of products are rounded to integers of 8 bits, from
     * -127 to 127, with a scale for each output channel; sums are multiplied by it, in f32. Biases,
     * parameters that the updates assign, and filters that other nodes read as well, such as
     * gradients, stay f32. */
    ADJ_EMIT_INT8_WEIGHTS = 2,
    /* Sums of convolutions, products, average pools, reductions, softmax and cross-entropy are
     * computed in double and rounded once. Those of norms, and of gradients of convolutions, are
     * float. */
    ADJ_EMIT_DOUBLE_SUMS = 4
};

/* Options of adj_emit. All zero is the default. */
typedef struct {
    /* First part of the names of functions and constants that other files see: a letter, then
     * letters, digits and underscores. NULL: "net". */
    const char *prefix;
    /* Model card; NULL: none. The name of the model goes to the comment at the top. Mean and
     * deviation, if they are known, become constants, and PREFIX_normalize converts pixels of 0 to
     * 255 by them: the input is (pixel - mean) / deviation. Class names become constants. */
    const adj_model_card *card;
    /* Training: the updates of a step and the scalar loss that they follow from, in output's graph;
     * output is then a result of adj_evaluation. The file also has PREFIX_train_step, PREFIX_init,
     * PREFIX_save and PREFIX_load; parameters and states that the updates assign lie in RAM. NULL:
     * inference alone. */
    const adj_updates *updates;
    adj_node *loss; /* NULL without updates */
    /* Gradient accumulation: the first of the two parts of a training step that
     * adj_emit_accumulation returns; updates is then the second one. The file has
     * PREFIX_accumulate and PREFIX_update instead of PREFIX_train_step. NULL: none. */
    const adj_updates *accumulate;
    unsigned flags; /* ADJ_EMIT_..., added; 0: a static arena, weights in f32, no double */
} adj_emit_opts;

/* Splits the updates of a training step for gradient accumulation. *accumulate adds what they read
 * of a batch, gradients and statistics, to states "accumulated/..." of its graph; *apply updates
 * from their means over the runs and sets them to 0. A run then needs RAM for one batch, such as
 * one image, and a step uses the mean gradient of several batches. On error both are NULL and the
 * graph has the message. */
ADJ_API adj_status adj_emit_accumulation(const adj_updates *updates, adj_updates **accumulate,
                                         adj_updates **apply);

/* Writes the function int PREFIX_predict(const float *input, float *output) that computes output
 * from the one input that it depends on, for inference, with the parameters and states of e, an
 * executor of output's graph that holds them. With updates it also writes int
 * PREFIX_train_step(const float *input, const int32_t *labels, float learning_rate, float *loss),
 * which returns -1, and changes nothing, if a label is out of range; or, in two parts,
 * int PREFIX_accumulate(const float *input, const int32_t *labels, float *loss) and
 * int PREFIX_update(float learning_rate). void PREFIX_init(uint64_t
 * seed) sets the parameters and states that the updates assign to the initial values of an executor
 * with that seed, except for rounding, as it computes in f32. void PREFIX_save(uint8_t *buffer)
 * writes them to PREFIX_STATE_BYTES bytes. int PREFIX_load(const uint8_t *buffer) reads these; it
 * returns -1 and changes nothing if they are damaged, or of a net with other names or shapes.
 * Images are [n, h, w, c] in the order of the graph. ADJ_ENOKERNEL, with the node's name and the
 * reason, for a node that emit does not support; then nothing is written. The same graph and values
 * give the same bytes. options may be NULL. */
ADJ_API adj_status adj_emit(adj_exec *e, adj_node *output, const adj_emit_opts *options, FILE *f,
                            adj_error *error);

#ifdef __cplusplus
}
#endif
#endif
