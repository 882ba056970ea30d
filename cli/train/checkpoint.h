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

/* Reads o->checkpoint and gives o the settings that it leaves unset; the others must agree, but the
 * number of threads, of which another one is reported, --patience, and a larger --epochs, which
 * prolongs the run and may come with another --lr. *file, to which o then points, is to be freed in
 * every case. CONTINUE, or an exit status after a complaint. */
int checkpoint_open(train_opts *o, adj_tensors **file);

/* Prints a note if a new run replaces the file of --checkpoint. */
void checkpoint_say_replaced(const train_opts *o);

#endif
