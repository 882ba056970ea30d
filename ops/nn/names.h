/* names.h - names of parameters, optimizers and schedules, for the libraries and the tool. */
#ifndef NN_NAMES_H
#define NN_NAMES_H

#include "adjoint_nn.h"

/* True if one of the patterns matches the whole name, as for adj_trainable. */
ADJ_API int adj_name_matches(const char *patterns, const char *name);
/* True if the node is a state that only training has: an optimizer's, its loss scale's, dropout's
 * step count, or a sum of adj_emit_accumulation. */
ADJ_API int adj_is_training_state(const adj_node *n);

/* Returns the i-th name for adj_optimizer_from_name, or NULL past the last. */
ADJ_API const char *adj_optimizer_name_at(int i);
/* Returns the name of an optimizer with this kind, momentum and nesterov, or NULL if there is none.
 */
ADJ_API const char *adj_optimizer_name(const adj_optimizer_opts *options);
/* Returns the default learning rate of an optimizer. */
static inline double adj_optimizer_rate(const adj_optimizer_opts *o)
{
    if (o->kind != ADJ_SGD)
        return 0.001;
    return o->momentum == 0 ? 0.05 : 0.01;
}

/* Sets *kind by a name: "constant", "step", "exponential" or "cosine". ADJ_EARG for an unknown
 * name. */
ADJ_API adj_status adj_schedule_from_name(const char *name, adj_schedule_kind *kind);
/* Returns the i-th name of a schedule, or NULL past the last. */
ADJ_API const char *adj_schedule_name_at(int i);

#endif
