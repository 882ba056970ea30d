/* checkpoint.h - settings in a checkpoint file, for resuming. */
#ifndef CLI_CHECKPOINT_H
#define CLI_CHECKPOINT_H

#include "adjoint_io.h"
#include "train.h"

/* Sizes of the metadata that the tool adds to a checkpoint: options of the data, and of the
 * training as given. */
enum { CHECKPOINT_DATA = 12, CHECKPOINT_TEXT = 40 };
typedef struct {
    adj_metadata entry[CHECKPOINT_DATA];
    char text[CHECKPOINT_DATA][CHECKPOINT_TEXT];
} checkpoint_metadata;
/* m points into o and itself. */
void checkpoint_data(train_opts *o, checkpoint_metadata *m);

/* Reads o->checkpoint and sets the options that o leaves unset. The others must agree, except the
 * number of threads (a note), patience, and a larger --epochs, which extends the run and may come
 * with another --lr. o then points into *file, which the caller frees in every case. CONTINUE, or
 * an exit status after a complaint. */
int checkpoint_open(train_opts *o, adj_tensors **file);

/* Prints a note if a new run replaces the file of --checkpoint. */
void checkpoint_say_replaced(const train_opts *o);

#endif
