/* weights.h - the weights that a run begins with, and those that it leaves. */
#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include "network.h"
#include "train.h"

/* Gives n what o->weights has and says what became of each tensor where not all fits. CONTINUE, or
 * an exit status after a complaint. */
int load_start(const train_opts *o, network *n);

/* Writes the evaluation network's parameters to o->out, with the card of a net that was trained on
 * d. accuracy: per cent; 0: not known. */
adj_status save_weights(const train_opts *o, network *n, const adj_dataset *d, double accuracy,
                        adj_error *error);

#endif
